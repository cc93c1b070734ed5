%% SPDX-License-Identifier: Apache-2.0
%% @doc The stores that run in Erlang nodes: weft_kv and Mnesia, on all nodes of a cluster of the
%% benchmark, with a copy of each key on each. Their clients run on these nodes.
-module(weft_stores_nodes).
-behaviour(weft_stores_clients).

-export([start/3, connect/2, ask/2]).
-export([begun/3, is_ready/1, schema/1, table/3]).

-define(CALL_MS, 60000).
-define(AGAIN_MS, 50).
-define(TABLE, weft_stores_table).

%% @doc The store runs, and can be asked. Dir is for its files.
-spec start(atom(), Dir :: file:filename(), weft_bench_nodes:nodes()) -> ok.
start(Store, Dir, Nodes) ->
    Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    Names = [weft_bench_nodes:node(Nodes, Role) || Role <- Roles],
    case is_mnesia(Store) of
        true -> mnesia(Store, Dir, Roles, Names, Nodes);
        false -> weft(Store, Dir, Roles, Names, Nodes)
    end.

is_mnesia(Store) -> lists:member(Store, [mnesia_dirty, mnesia, mnesia_disc]).

own(Dir, Role) -> filename:join(Dir, integer_to_list(element(2, Role))).

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).

until(Condition, DeadlineMs) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error(store_not_ready),
            receive after ?AGAIN_MS -> until(Condition, DeadlineMs) end
    end.

%% --- weft -------------------------------------------------------------------------------------

weft(Store, Dir, [First | Others] = Roles, Names, Nodes) ->
    _ = [ok = call(Nodes, Role, ?MODULE, begun, [Store, own(Dir, Role), Names]) || Role <- Roles],
    ok = call(Nodes, First, weft_ring, create, []),
    _ = [ok = call(Nodes, Role, weft_ring, join, [hd(Names)]) || Role <- Others],
    DeadlineMs = erlang:monotonic_time(millisecond) + ?CALL_MS,
    _ = [until(fun() -> ok =:= call(Nodes, First, weft_ring, stage, [Name, join]) end, DeadlineMs)
         || Name <- tl(Names)],
    {ok, Plan} = call(Nodes, First, weft_ring, plan, []),
    ok = call(Nodes, First, weft_ring, commit, [Plan]),
    until(fun() ->
              lists:all(fun(Role) ->
                            #{moving := Moving, owned := Owned} =
                                call(Nodes, Role, weft_ring, status, []),
                            Moving =:= 0 andalso map_size(Owned) =:= length(Names)
                        end, Roles)
          end, DeadlineMs),
    until(fun() -> call(Nodes, First, ?MODULE, is_ready, [Store]) end, DeadlineMs).

%% @private
-spec begun(atom(), Dir :: file:filename(), [node()]) -> ok.
begun(Store, Dir, Names) ->
    Vnode = case Store of
                weft_disk -> {weft_kv_vnode, #{dir => filename:join(Dir, "kv")}};
                _ -> weft_kv_vnode
            end,
    Bucket = case Store of
                 weft_strong -> #{consistency => strong, voters => Names,
                                  dir => filename:join(Dir, "strong")};
                 _ -> #{nodes => 2, siblings => false}
             end,
    _ = [begin
             _ = application:load(Application),
             ok = application:set_env(Application, Key, Value)
         end || {Application, Key, Value} <-
                    [{weft_ring, dir, filename:join(Dir, "ring")}, {weft_ring, vnodes, [Vnode]},
                     {weft_ring, sync_ms, 1000}, {weft_kv, buckets, #{?TABLE => Bucket}}]],
    {ok, _} = application:ensure_all_started(weft_kv),
    ok.

%% @private
-spec is_ready(atom()) -> boolean().
is_ready(_Store) ->
    lists:all(fun(Number) ->
                  Key = <<"ready ", (integer_to_binary(Number))/binary>>,
                  case weft_kv:put(?TABLE, Key, <<>>) of
                      {ok, _} -> true;
                      {error, _} -> false
                  end
              end, lists:seq(1, 100)).

%% --- Mnesia -----------------------------------------------------------------------------------

mnesia(Store, Dir, [First | _] = Roles, Names, Nodes) ->
    _ = [begin
             _ = call(Nodes, Role, application, load, [mnesia]),
             ok = call(Nodes, Role, application, set_env, [mnesia, dir, own(Dir, Role)])
         end || Role <- Roles],
    _ = [ok = call(Nodes, First, ?MODULE, schema, [Names]) || Store =:= mnesia_disc],
    _ = [ok = call(Nodes, Role, mnesia, start, []) || Role <- Roles],
    ok = call(Nodes, First, ?MODULE, table, [Store, Names, ?CALL_MS]).

%% @private
-spec schema([node()]) -> ok.
schema(Names) ->
    _ = [net_kernel:connect_node(Name) || Name <- Names],
    ok = mnesia:create_schema(Names).

%% @private
-spec table(atom(), [node()], TimeoutMs :: pos_integer()) -> ok.
table(Store, Names, TimeoutMs) ->
    _ = [net_kernel:connect_node(Name) || Name <- Names],
    {ok, _} = mnesia:change_config(extra_db_nodes, Names -- [node()]),
    Copies = case Store of mnesia_disc -> disc_copies; _ -> ram_copies end,
    {atomic, ok} = mnesia:create_table(?TABLE, [{Copies, Names}, {attributes, [key, value]}]),
    ok = mnesia:wait_for_tables([?TABLE], TimeoutMs).

%% --- clients ----------------------------------------------------------------------------------

%% @private
connect(Store, _Number) -> Store.

%% @private
ask(Request, mnesia_dirty) ->
    case Request of
        {get, Key} -> found(mnesia:dirty_read(?TABLE, Key));
        {put, Key, Value} -> mnesia:dirty_write({?TABLE, Key, Value})
    end;
ask(Request, Store) when Store =:= mnesia; Store =:= mnesia_disc ->
    Do = case Request of
             {get, Key} -> fun() -> mnesia:read(?TABLE, Key) end;
             {put, Key, Value} -> fun() -> mnesia:write({?TABLE, Key, Value}) end
         end,
    case {mnesia:sync_transaction(Do), Request} of
        {{atomic, Rows}, {get, _}} -> found(Rows);
        {{atomic, ok}, _} -> ok;
        {{aborted, Reason}, _} -> {error, Reason}
    end;
ask({get, Key}, _Weft) ->
    case weft_kv:get(?TABLE, Key) of
        {ok, _, _} -> ok;
        {error, Reason} -> {error, Reason}
    end;
%% The bucket has no siblings: the last write stays, as in the other stores.
ask({put, Key, Value}, _Weft) ->
    case weft_kv:put(?TABLE, Key, Value) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

found([_]) -> ok;
found(_) -> {error, not_found}.
