%% SPDX-License-Identifier: Apache-2.0
%% @doc The store (`weft_kv') on some nodes of a cluster of the benchmark: one ring of them, which
%% is made by the first one and joined by the others. The other nodes of the cluster are left alone;
%% those who ask the store run there. Data is in memory only, unless it is to be on disk, too.
-module(weft_store_ring).

-export([form/3, form/4, again/4, coordinators/3, removed/3]).
-export([begun/3, restarted/1, settled/0, ended/1]).
-export_type([options/0]).

%% Other partitions beside those of the store; whether copies are on disk; how many parts the ring
%% has.
-type options() :: #{more => [module() | {module(), term()}], on_disk => boolean(),
                     partitions => pos_integer()}.

-define(CALL_MS, 30000).
-define(SETTLED_MS, 180000).
-define(AGAIN_MS, 50).

%% @doc Makes the ring, if the nodes have none yet: it stays for as long as they run. Each node has
%% a directory of its own for its ring below Dir.
-spec form(weft_bench_nodes:nodes(), [weft_bench_nodes:role(), ...], Dir :: file:filename()) -> ok.
form(Nodes, Roles, Dir) -> form(Nodes, Roles, Dir, #{}).

%% @doc The same with options.
-spec form(weft_bench_nodes:nodes(), [weft_bench_nodes:role(), ...], Dir :: file:filename(),
           options()) -> ok.
form(Nodes, [First | Others] = Roles, Dir, Options) ->
    Members = [weft_bench_nodes:node(Nodes, Role) || Role <- Roles],
    Start = fun(Role) -> start(Nodes, Role, {Dir, Members}, Options) end,
    ok = lists:foreach(fun(ok) -> ok end, weft_kv_crew:map(Start, Roles, length(Roles))),
    case call(Nodes, First, weft_ring, status, []) of
        {error, no_ring} -> made(Nodes, First, Others);
        #{} -> ok
    end.

made(Nodes, First, Others) ->
    ok = call(Nodes, First, weft_ring, create, []),
    Via = weft_bench_nodes:node(Nodes, First),
    _ = [ok = call(Nodes, Role, weft_ring, join, [Via]) || Role <- Others],
    DeadlineMs = erlang:monotonic_time(millisecond) + ?SETTLED_MS,
    _ = [until(fun() ->
                   ok =:= call(Nodes, First, weft_ring, stage,
                               [weft_bench_nodes:node(Nodes, Role), join])
               end, DeadlineMs) || Role <- Others],
    _ = [begin
             {ok, Plan} = call(Nodes, First, weft_ring, plan, []),
             ok = call(Nodes, First, weft_ring, commit, [Plan])
         end || Others =/= []],
    until(fun() ->
              Settled = [call(Nodes, Role, ?MODULE, settled, []) || Role <- [First | Others]],
              length(lists:usort(Settled)) =:= 1 andalso hd(Settled) =/= moving
          end, DeadlineMs).

until(Condition, DeadlineMs) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse erlang:error(ring_not_settled),
            receive after ?AGAIN_MS -> until(Condition, DeadlineMs) end
    end.

%% @doc What the function says of the nodes while one that was killed is there again, with its store
%% and the ring that it had. It ends with the function, however that ends: nobody else knows it.
-spec again(weft_bench_nodes:nodes(), weft_bench_nodes:role(),
            {Dir :: file:filename(), Members :: [node()]},
            fun((weft_bench_nodes:nodes()) -> Result)) -> Result.
again(Nodes, Role, Ring, Function) ->
    {ok, New} = weft_bench_nodes:restart(Nodes, Role),
    try
        ok = start(New, Role, Ring, #{}),
        Function(New)
    after
        ok = weft_bench_nodes:kill(New, Role)
    end.

start(Nodes, Role, {Dir, Members}, Options) ->
    Vnodes = [store(copies(Nodes, Role, Dir), Options) | maps:get(more, Options, [])],
    Ring = [{vnodes, Vnodes} | maps:to_list(maps:with([partitions], Options))],
    call(Nodes, Role, ?MODULE, begun, [of_node(Nodes, Role, Dir, "store"), Members, Ring]).

store(Copies, #{on_disk := true}) -> {weft_kv_vnode, #{dir => Copies}};
store(_Copies, _Options) -> weft_kv_vnode.

copies(Nodes, Role, Dir) -> of_node(Nodes, Role, Dir, "copies").

of_node(Nodes, Role, Dir, What) ->
    filename:absname(filename:join([Dir, What, atom_to_list(weft_bench_nodes:node(Nodes, Role))])).

%% @doc Ends the store of nodes whose copies are on disk, and removes these: in the directory of a
%% run they are of no use, and large.
-spec removed(weft_bench_nodes:nodes(), [weft_bench_nodes:role()], Dir :: file:filename()) -> ok.
removed(Nodes, Roles, Dir) ->
    lists:foreach(fun(Role) ->
                      ok = call(Nodes, Role, ?MODULE, ended, [copies(Nodes, Role, Dir)])
                  end, Roles).

%% @doc How all nodes start the requests from now on, see `weft_kv_request_sup'.
-spec coordinators(weft_bench_nodes:nodes(), [weft_bench_nodes:role()],
                   spawned | one_supervisor) -> ok.
coordinators(Nodes, Roles, How) ->
    lists:foreach(fun(Role) -> ok = call(Nodes, Role, ?MODULE, restarted, [How]) end, Roles).

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).

%% ---- on the nodes ----

%% @private
-spec begun(Dir :: file:filename(), Members :: [node()], Ring :: [{atom(), term()}]) -> ok.
begun(Dir, Members, Ring) ->
    Copies = min(3, length(Members)),
    Environment = [{weft_ring, [{dir, Dir}, {sync_ms, 1000} | Ring]},
                   {weft_kv, [{buckets, #{bench => #{n => Copies, nodes => min(2, Copies)}}}]}],
    _ = [begin
             _ = application:load(Application),
             ok = application:set_env(Application, Key, Value)
         end || {Application, Pairs} <- Environment, {Key, Value} <- Pairs],
    %% On stock distribution the nodes of the ring have to know each other.
    _ = [net_kernel:connect_node(Member) || Member <- Members],
    {ok, _} = application:ensure_all_started(weft_kv),
    ok.

%% @private
-spec restarted(spawned | one_supervisor) -> ok.
restarted(How) ->
    ok = application:stop(weft_kv),
    ok = application:set_env(weft_kv, coordinators, How),
    application:start(weft_kv).

%% @private
-spec settled() -> moving | non_neg_integer().
settled() ->
    case weft_ring:status() of
        #{moving := 0, hash := Hash} -> Hash;
        _ -> moving
    end.

%% @private It may not have begun.
-spec ended(Copies :: file:filename()) -> ok | {error, file:posix() | badarg}.
ended(Copies) ->
    _ = [application:stop(Application) || Application <- [weft_kv, weft_ring]],
    case file:del_dir_r(Copies) of
        {error, enoent} -> ok;
        Removed -> Removed
    end.
