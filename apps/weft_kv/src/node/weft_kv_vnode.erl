%% SPDX-License-Identifier: Apache-2.0
%% @doc The replicas of one partition, in memory. It answers requests of coordinators, hands its
%% objects to the next owner, and forgets what is over.
%%
%% An object that was written here because the owner was away is a *hint*: it is brought to the owner
%% as soon as that answers, by a process of its own, and dropped here. Objects merge, so nothing is
%% lost if that is done twice, or if the partition is handed over at the same time.
%%
%% Options (a map in the configuration of weft_ring): `bytes_max' (infinity), for each partition.
%% When it is full, objects of buckets with `evict' are dropped, those first that were not used for
%% longest; if that does not make room, writes are refused. `grace_ms' (a day): how long it is
%% remembered that something was deleted or is over.
%%
%% Not here: how many replicas have to answer (`weft_kv_coordinator_core').
-module(weft_kv_vnode).
-behaviour(weft_vnode).

-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2, tick/1]).

-define(ITEMS_BYTES, 1000000).
-define(PAGE, 200).
-define(CLEANED_MAX, 500).
-define(HINTS_MAX, 100).
-define(PUSH_MS, 5000).

-record(replica, {partition :: non_neg_integer(),
                  actor :: weft_kv_object:actor(),
                  table :: weft_kv_table:table(),
                  options :: map(),
                  hints = #{} :: #{weft_kv_table:key() => true},
                  pushing = none :: none | pid(),
                  %% Objects came from the former owner.
                  filled = false :: boolean(),
                  cleaned = start :: weft_vnode:cursor()}).

%% @private
init(Partition, Options) ->
    case options(Options) of
        {ok, All} ->
            {ok, #replica{partition = Partition, table = weft_kv_table:new(), options = All,
                          actor = actor(Partition)}};
        {error, Reason} -> {error, Reason}
    end.

options([]) -> options(#{});
options(Given) when is_map(Given) ->
    Defaults = #{bytes_max => infinity, grace_ms => 86400000},
    All = maps:merge(Defaults, Given),
    case maps:to_list(maps:without(maps:keys(Defaults), Given))
        ++ [Pair || {_, Value} = Pair <- maps:to_list(All),
                    not (Value =:= infinity orelse is_integer(Value) andalso Value >= 0)] of
        [] -> {ok, All};
        [Wrong | _] -> {error, {bad_option, Wrong}}
    end;
options(Given) -> {error, {bad_option, Given}}.

%% Another one for each run of the process: what the last one has written may be lost.
actor(Partition) ->
    iolist_to_binary([atom_to_binary(node()), $/, integer_to_binary(Partition), $/,
                      integer_to_binary(erlang:system_time(microsecond), 36)]).

%% @private
command(Key, {Request, Kind, Role}, #replica{table = Table, actor = Actor} = Replica) ->
    ok = weft_kv_table:use(Key, Table),
    Object = read(Key, Table),
    case weft_kv_replica:requested(Request, Actor, maps:get(siblings, Kind), Object) of
        Object -> {reply, {ok, Object}};
        New ->
            case is_full(Kind, Replica) of
                true -> {reply, {error, full}};
                false -> {change, {merge, New, Kind, Role}, {ok, New}}
            end
    end;
command({KeyPartition, Bucket, _}, {page, After}, #replica{table = Table}) ->
    Cursor = {'after', {KeyPartition, Bucket, After}},
    {Items, Next} = weft_kv_table:page(Cursor, {?PAGE, ?ITEMS_BYTES}, Table),
    Mine = [{Key, Object} || {{P, B, Key}, {Object, _}} <- Items, P =:= KeyPartition,
                             B =:= Bucket],
    {reply, {Mine, Next =:= done orelse length(Mine) < length(Items)}};
command({KeyPartition, _, _}, {entropy, {What, N}}, #replica{table = Table}) ->
    {reply, case What of
                root -> erlang:phash2(weft_kv_table:segments(N, KeyPartition, Table), 1 bsl 32);
                segments -> weft_kv_table:segments(N, KeyPartition, Table);
                {segment, Segment} -> weft_kv_table:segment(N, KeyPartition, Segment, Table)
            end};
command(Key, {brought, Object}, _Replica) ->
    {change, {brought, Key, Object}, ok}.

read(Key, Table) ->
    case weft_kv_table:read(Key, Table) of
        {Object, _} -> Object;
        none -> weft_kv_object:new()
    end.

is_full(#{evict := true}, _) -> false;
is_full(_, #replica{options = #{bytes_max := Max}, table = Table}) ->
    weft_kv_table:bytes(Table) >= Max.

%% @private
change(Key, {merge, Object, Kind, Role}, _Note, #replica{hints = Hints} = Replica) ->
    ok = merged(Key, Object, Kind, Replica),
    {ok, Replica#replica{hints = case Role of
                                     fallback -> Hints#{Key => true};
                                     primary -> Hints
                                 end}};
%% The owner has it. If it was written to meanwhile, it has to be brought once more.
change(Key, {brought, Key, Object}, _Note, #replica{hints = Hints, table = Table} = Replica) ->
    case read(Key, Table) of
        Object when is_map_key(Key, Hints) ->
            ok = case Replica#replica.filled of
                     true -> ok;
                     false -> weft_kv_table:remove(Key, Table)
                 end,
            {ok, Replica#replica{hints = maps:remove(Key, Hints)}};
        _ -> {ok, Replica}
    end.

merged(Key, Object, #{siblings := Siblings} = Kind, #replica{table = Table} = Replica) ->
    New = weft_kv_replica:requested({merge, Object}, <<>>, Siblings, read(Key, Table)),
    ok = weft_kv_table:store(Key, New, Kind, Table),
    #replica{options = #{bytes_max := Max}} = Replica,
    _ = weft_kv_table:evict(Max, Table),
    ok.

%% @private
items(Cursor, Max, #replica{table = Table}) ->
    weft_kv_table:page(Cursor, {Max, ?ITEMS_BYTES}, Table).

%% @private
take(Items, _Note, Replica) ->
    lists:foreach(fun({Key, {Object, Kind}}) -> ok = merged(Key, Object, Kind, Replica) end,
                  Items),
    {ok, Replica#replica{filled = true}}.

%% Hints are not from a former owner, and there may be no other copy of them. With `none' the
%% partition was handed over, hints and all.
%% @private
clear(none, #replica{table = Table} = Replica) ->
    ok = without(fun(_) -> true end, Table),
    {ok, Replica#replica{hints = #{}}};
clear(_Mark, #replica{table = Table, hints = Hints} = Replica) ->
    ok = without(fun(Key) -> not is_map_key(Key, Hints) end, Table),
    {ok, Replica#replica{filled = true}}.

without(Which, Table) ->
    lists:foreach(fun(Key) -> ok = weft_kv_table:remove(Key, Table) end,
                  weft_kv_table:keys(Which, Table)).

%% @private
cover(bytes, #replica{table = Table}) ->
    weft_kv_table:bytes(Table).

%% --- at rest ----------------------------------------------------------------------------------

%% @private
tick(Replica) ->
    {ok, bring(clean(Replica))}.

clean(#replica{table = Table, cleaned = Cursor, options = #{grace_ms := GraceMs}} = Replica) ->
    {Items, Next} = weft_kv_table:page(Cursor, {?CLEANED_MAX, ?ITEMS_BYTES}, Table),
    NowMs = erlang:system_time(millisecond),
    lists:foreach(fun({Key, {Object, #{evict := Evict}}}) ->
                      Grace = case Evict of true -> 0; false -> GraceMs end,
                      weft_kv_replica:is_waste(NowMs, Grace, Object)
                          andalso weft_kv_table:remove(Key, Table)
                  end, Items),
    Replica#replica{cleaned = case Next of done -> start; _ -> Next end}.

bring(#replica{hints = Hints} = Replica) when map_size(Hints) =:= 0 ->
    Replica;
bring(#replica{pushing = Pid} = Replica) when is_pid(Pid) ->
    case is_process_alive(Pid) of
        true -> Replica;
        false -> bring(Replica#replica{pushing = none})
    end;
bring(#replica{partition = Partition, hints = Hints, table = Table} = Replica) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} when Owner =:= node() -> Replica#replica{hints = #{}};
        {ok, Owner} ->
            Keys = lists:sublist(maps:keys(Hints), ?HINTS_MAX),
            Objects = [{Key, weft_kv_table:read(Key, Table)} || Key <- Keys],
            %% What was forgotten meanwhile needs no owner.
            Left = maps:without([Key || {Key, none} <- Objects], Hints),
            Pid = spawn(fun() -> push(Partition, Owner, Objects) end),
            Replica#replica{pushing = Pid, hints = Left};
        {error, no_ring} -> Replica
    end.

push(Partition, Owner, Objects) ->
    lists:foreach(fun({Key, {Object, Kind}}) -> push(Partition, Owner, Key, Object, Kind);
                     ({_, none}) -> ok
                  end, Objects).

push(Partition, Owner, Key, Object, Kind) ->
    Command = {{merge, Object}, Kind, primary},
    case weft_vnode:ask(?MODULE, {Partition, Owner, primary}, Key, Command, ?PUSH_MS) of
        {ok, {ok, _}} ->
            {ok, ok} = weft_vnode:ask(?MODULE, {Partition, node(), fallback}, Key,
                                      {brought, Object}, ?PUSH_MS);
        %% It is tried again with the next tick.
        {_, _} -> exit(normal)
    end.
