%% SPDX-License-Identifier: Apache-2.0
%% @doc For an experiment only: one supervisor that starts the processes of all requests of a node,
%% one after the other, each when the one before has said that it runs. Riak did so until release
%% 1.2, and stopped growing at about 60 nodes (Ghaffari et al., Erlang Workshop 2013). It is there
%% with `{coordinators, one_supervisor}' in the configuration of weft_kv, and the figure `riak_wall'
%% of `weft paper' measures what it costs. Not here: any limit of its mailbox.
-module(weft_kv_request_sup).
-behaviour(supervisor).

-export([start_link/0, start/1]).
-export([begin_request/1, request/1]).
-export([init/1]).

%% @doc The supervisor, under its own name.
-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc As `spawn_monitor/1', by way of the supervisor.
-spec start(fun(() -> term())) -> {pid(), reference()}.
start(Fun) ->
    {ok, Pid} = supervisor:start_child(?MODULE, [Fun]),
    {Pid, monitor(process, Pid)}.

%% @private
-spec begin_request(fun(() -> term())) -> {ok, pid()}.
begin_request(Fun) ->
    proc_lib:start_link(?MODULE, request, [Fun]).

%% @private
-spec request(fun(() -> term())) -> term().
request(Fun) ->
    ok = proc_lib:init_ack({ok, self()}),
    Fun().

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1, period => 1},
          [#{id => request, start => {?MODULE, begin_request, []}, restart => temporary,
             shutdown => brutal_kill}]}}.
