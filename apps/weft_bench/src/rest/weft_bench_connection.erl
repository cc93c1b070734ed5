%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `connection': what a connection of a node costs that node, in memory and processes.
%%
%% Two nodes are connected and call each other, so that all code is loaded and all tables are there.
%% Then the other nodes come, as in `weft_bench_form', and the first node makes 200 calls to each of
%% them (`gen_server:call' to a process there that echoes 100 B, one after the other). What it has
%% more than before, divided by the connections that came, is counted at once, and again after some
%% time in which nobody does anything. No garbage is collected by the measurement: what processes
%% keep is what they take. Memory is erlang:memory(total), without what the allocators hold in
%% reserve.
-module(weft_bench_connection).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, prepare/1]).
-export([serve/0, call_all/2, taken/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(CALLS, 200).
-define(SIZE_BYTES, 100).
-define(CALL_MS, 60000).
-define(SOON_MS, 500).

%% @private
cells(quick) -> [cell(3, 1000)];
cells(full) -> [cell(Count, 35000) || Count <- [12, 24]].

cell(Count, RestMs) ->
    #{suite => rest, workload => connection, size_bytes => ?SIZE_BYTES, pairs => Count,
      streams => 0, link => weft_bench_link:loopback(), on_demand => true, fresh => true,
      layout => {apart, weft_bench_cluster:shape(Count, [])},
      variants => [stock, weft_1, stock_mesh, weft_mesh, weft_swim],
      cost_ms => 4000 + 300 * Count + RestMs, with => #{rest_ms => RestMs}}.

%% @private
run(#{with := #{rest_ms := RestMs}}, Nodes) ->
    {First, Connect} = prepare(Nodes),
    Before = call(Nodes, First, taken, []),
    Count = Connect(),
    Soon = call(Nodes, First, taken, []),
    receive after RestMs -> ok end,
    Late = call(Nodes, First, taken, []),
    %% A connection that is gone takes nothing.
    ok = weft_bench_form:still_formed(lists:sort(weft_bench_nodes:roles(Nodes)), Nodes),
    Each = fun(Key, Taken) -> (maps:get(Key, Taken) - maps:get(Key, Before)) / Count end,
    {ok, [{connection_bytes, Each(bytes, Soon)},
          {connection_rest_bytes, Each(bytes, Late)},
          {connection_processes, Each(processes, Soon)}]}.

%% @doc Connects the first two nodes, which call each other. The function connects the first one
%% with all others, and calls them; it tells how many these are.
-spec prepare(weft_bench_nodes:nodes()) ->
          {First :: weft_bench_nodes:role(), Connect :: fun(() -> pos_integer())}.
prepare(Nodes) ->
    [First, Second | Others] = Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    ok = weft_bench_form:load(Roles, Nodes),
    lists:foreach(fun(Role) -> ok = call(Nodes, Role, serve, []) end, Roles),
    Connect = fun(All, Called) ->
                  _ = weft_bench_form:form(All, Nodes),
                  called(First, Called, Nodes),
                  receive after ?SOON_MS -> ok end,
                  length(Called)
              end,
    1 = Connect([First, Second], [Second]),
    {First, fun() -> Connect(Roles, Others) end}.

called(From, To, Nodes) ->
    Names = [weft_bench_nodes:node(Nodes, Role) || Role <- To],
    ok = call(Nodes, From, call_all, [Names, ?CALLS]).

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, Function, {Arguments, ?CALL_MS}).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Starts the process that is called.
-spec serve() -> ok.
serve() ->
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    ok.

%% @doc Calls each of the nodes so often.
-spec call_all([node()], Calls :: pos_integer()) -> ok.
call_all(Names, Calls) ->
    Text = binary:copy(<<0>>, ?SIZE_BYTES),
    lists:foreach(fun(Name) -> Text = gen_server:call({?MODULE, Name}, Text) end,
                  [Name || Name <- Names, _ <- lists:seq(1, Calls)]).

%% @doc What this node takes now.
-spec taken() -> #{bytes := non_neg_integer(), processes := non_neg_integer()}.
taken() ->
    #{bytes => erlang:memory(total), processes => lists:min([running() || _ <- lists:seq(1, 5)])}.

%% Who asks another node something is there for a moment only.
running() ->
    receive after 20 -> erlang:system_info(process_count) end.

%% @private
-spec init([]) -> {ok, []}.
init([]) -> {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, term(), []}.
handle_call(Text, _From, State) -> {reply, Text, State}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Request, State) -> {noreply, State}.
