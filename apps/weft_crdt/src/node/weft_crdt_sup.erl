%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the store of this node and of what is computed from it. It owns the table of
%% what was declared here, so a store that has to start again knows its keys at once, and gets their
%% content from other nodes. Flows wait for it and go on.
%%
%% A store with a directory is under a supervisor of its own, behind the lock and the log. If the
%% lock ends, another node may have had the directory meanwhile. Then both start again, from the
%% file.
-module(weft_crdt_sup).
-behaviour(supervisor).

-export([start_link/1, declared/2]).
-export([init/1, start_behind/1, start_store/1]).

-define(DECLARED, weft_crdt_declared).
%% Messages of neighbours that may wait for the store. More are dropped, and sent again later.
-define(MAILBOX_MAX, 10000).
%% The file is not rewritten before it is this large.
-define(REWRITE_MIN_BYTES, 4194304).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, {all, Config}).

%% @private
-spec start_behind(map()) -> {ok, pid()} | {error, term()}.
start_behind(Config) ->
    weft_supervisor:start_link({local, weft_crdt_locked_sup}, ?MODULE, {behind, Config}).

%% @doc Remembers a key as long as the application runs.
-spec declared(Key :: term(), weft_crdt_type:name()) -> ok.
declared(Key, Type) ->
    true = ets:insert(?DECLARED, {Key, Type}),
    ok.

%% @private
-spec init({all | behind, map()}) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({all, Config}) ->
    ?DECLARED = ets:new(?DECLARED, [named_table, public]),
    {ok, {#{strategy => one_for_one, intensity => 5, period => 10},
          [locked(Config),
           #{id => weft_crdt_flow_sup, type => supervisor,
             start => {weft_crdt_flow_sup, start_link, []}}]}};
init({behind, #{dir := Given} = Config}) ->
    %% As the log has it from the name of its file, and asks for its lock.
    Dir = filename:dirname(filename:join(Given, "x")),
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10},
          [#{id => lock, start => {weft_directory_lock, start_link, [Dir, weft_crdt]}},
           #{id => weft_crdt_log, start => {weft_crdt_log, start_link, [Dir, ?REWRITE_MIN_BYTES]}},
           store(Config)]}}.

locked(#{dir := none} = Config) -> store(Config);
locked(Config) ->
    #{id => behind, start => {?MODULE, start_behind, [Config]}, type => supervisor}.

store(Config) ->
    #{id => weft_crdt, modules => [weft_driver, weft_crdt_core],
      start => {?MODULE, start_store, [Config]}}.

%% @private Nodes hear of each other over connections, which a partial topology makes on demand.
-spec start_store(map()) -> {ok, pid()} | {error, term()}.
start_store(Config) ->
    ok = weft_overlay_sup:reach_members(),
    %% Users' values are computed there, so it is no more urgent than they are.
    Options = maps:merge(Config#{link_module => weft_own_links, mailbox_max => ?MAILBOX_MAX,
                                 private => true, priority => normal,
                                 declared => ets:tab2list(?DECLARED)}, remembered(Config)),
    weft_driver:start_link(weft_crdt, weft_crdt_core, weft_services:options(Options)).

remembered(#{dir := none}) -> #{};
remembered(_) -> #{durable => true, kept => weft_crdt_log:kept(), view_module => weft_crdt_log}.
