%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the carrier's processes, and owner of their tables: a process that ends is
%% started again alone, and finds its table as it was. Links are below a supervisor of their own.
%% Sessions are not here: as in the stock carrier they belong to the connection that the kernel
%% asked for.
%%
%% It is not under the kernel's network supervisor, which ends the node with the first process that
%% ends: there is only `weft_carrier_keeper'.
-module(weft_carrier_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
init([]) ->
    ok = weft_never_stopped:new(),
    ok = weft_pins:new_table(),
    ok = weft_sessions:new_table(),
    ok = weft_link_table:new(),
    %% They end in reverse order: links say goodbye while there is still a table.
    Children = [#{id => weft_carrier_watch, start => {weft_carrier_watch, start_link, []},
                  shutdown => brutal_kill},
                worker(weft_refusals, []),
                worker(weft_pins, []),
                worker(weft_sessions, []),
                #{id => weft_link_sup, type => supervisor,
                  start => {weft_link_sup, start_link, [weft_switch]}},
                worker(weft_links, [])],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Children}}.

worker(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}}.
