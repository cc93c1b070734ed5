%% SPDX-License-Identifier: Apache-2.0
%% @doc The same store on each topology: five nodes join, write and read what others have written,
%% one leaves, and one is killed. Neither the ring nor the store is told what the topology is. Other
%% suites have a full mesh; with FULL=1 this one tries the rest as well.
-module(weft_kv_topologies_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4, call/5, name/1, node_name/1, until/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([full_mesh/1, swim/1, line/1, groups/1, client_server/1, peer_to_peer/1]).

-define(NAMES, [n1, n2, n3, n4, n5]).
-define(KEYS, 20).
-define(CALL_MS, 30000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [groups, client_server]
        ++ [Case || os:getenv("FULL") =/= false, Case <- [full_mesh, swim, line, peer_to_peer]].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

full_mesh(Config) -> stored(fun(_) -> {full_mesh, #{seeds => [node_name(n1)]}} end, Config).

swim(Config) ->
    stored(fun(_) -> {full_mesh, #{seeds => [node_name(n1)], detector => swim}} end, Config).

%% All between its ends goes over three others.
line(Config) ->
    All = names(?NAMES),
    Links = lists:zip(lists:droplast(All), tl(All)),
    stored(fun(_) -> {static, #{links => Links}} end, Config).

groups(Config) ->
    Groups = #{one => names([n1, n2, n3]), two => names([n3, n4, n5])},
    stored(fun(_) -> {groups, Groups} end, Config).

client_server(Config) ->
    Servers = names([n1, n2]),
    stored(fun(Name) ->
               Role = case lists:member(node_name(Name), Servers) of
                          true -> server;
                          false -> client
                      end,
               {client_server, #{role => Role, servers => Servers}}
           end, Config).

peer_to_peer(Config) ->
    stored(fun(_) -> {peer_to_peer, #{seeds => [node_name(n1)], active => 2}} end, Config).

stored(Topology, Config) ->
    [A | Others] = All = [start(Name, Topology(Name), Config) || Name <- ?NAMES],
    ok = call(A, weft_ring, create, []),
    [until(fun() -> ring(Ref, join, [name(A)]) =:= ok end) || Ref <- Others],
    until(fun() -> statuses(A, Others) =:= [joining] end),
    ok = committed(A, [{Ref, join} || Ref <- Others]),
    settled(All, All),
    until(fun() -> lists:all(fun(Ref) -> owners_are_active(Ref) end, All) end),
    [?assertEqual({{from, name(Ref)}, []}, {{from, name(Ref)}, not_put(Ref)}) || Ref <- All],
    [?assertEqual({{at, name(Ref)}, []}, {{at, name(Ref)}, not_found(Ref, All)}) || Ref <- All],
    [E, D | _] = lists:reverse(All),
    ok = committed(A, [{E, leave}]),
    settled(All, All -- [E]),
    ?assertEqual([], not_found(A, All)),
    ok = weft_test_nodes:kill(D),
    [until(fun() -> not_found(Ref, All) =:= [] end, 60000) || Ref <- All -- [D, E]].

%% --- the store --------------------------------------------------------------------------------

keys(Ref) -> [{name(Ref), Number} || Number <- lists:seq(1, ?KEYS)].

key(Key) -> iolist_to_binary(io_lib:format("~0p", [Key])).

not_put(Ref) ->
    [{Key, Error} || Key <- keys(Ref),
                     {error, Error} <- [kv(Ref, put, [bucket, key(Key), key(Key)])]].

not_found(Ref, Writers) ->
    [{Key, Other} || Writer <- Writers, Key <- keys(Writer),
                     Other <- [kv(Ref, get, [bucket, key(Key)])],
                     not is_value(Other, key(Key))].

is_value({ok, Value, _}, Value) -> true;
is_value(_, _) -> false.

kv(Ref, Function, Arguments) -> call(Ref, weft_kv, Function, Arguments, ?CALL_MS).

%% --- the ring ---------------------------------------------------------------------------------

ring(Ref, Function, Arguments) -> call(Ref, weft_ring, Function, Arguments, ?CALL_MS).

statuses(Ref, Others) ->
    #{members := Members} = ring(Ref, status, []),
    lists:usort([maps:get(name(Other), Members, none) || Other <- Others]).

committed(Ref, Changes) ->
    [ok = ring(Ref, stage, [name(Other), Change]) || {Other, Change} <- Changes],
    {ok, Plan} = ring(Ref, plan, []),
    ring(Ref, commit, [Plan]).

%% All have the same ring, and the members own all of it.
settled(Refs, Members) ->
    until(fun() ->
              Statuses = lists:usort([ring(Ref, status, []) || Ref <- Refs]),
              Mine = lists:append([ring(Ref, mine, []) || Ref <- Members]),
              length(Statuses) =:= 1 andalso maps:get(moving, hd(Statuses)) =:= 0
                  andalso lists:sort(Mine) =:= lists:seq(0, 15)
          end, 60000).

owners_are_active(Ref) ->
    lists:all(fun(Number) ->
                  Key = {<<"bucket">>, integer_to_binary(Number)},
                  ring(Ref, active, [Key, 3]) =:= ring(Ref, primaries, [Key, 3])
              end, lists:seq(1, 50)).

%% --- nodes ------------------------------------------------------------------------------------

names(Names) -> [node_name(Name) || Name <- Names].

start(Name, Topology, Config) ->
    Keys = [{weft_ring, partitions, 16}, {weft_ring, sync_ms, 300},
            {weft_ring, dir, filename:join([?config(priv_dir, Config),
                                            atom_to_list(element(1, Topology)),
                                            integer_to_list(erlang:unique_integer([positive]))])},
            {weft_ring, vnodes, [{weft_kv_vnode, #{}}]}, {weft_kv, buckets, #{bucket => #{}}}],
    Args = ["-connect_all", "false" | weft_kv_test_args:args(?MODULE, Keys)],
    Ref = weft_test_nodes:start(Name, #{config => [{topology, Topology}], args => Args},
                                ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv], ?CALL_MS),
    Ref.
