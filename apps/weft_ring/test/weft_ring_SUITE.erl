%% SPDX-License-Identifier: Apache-2.0
%% @doc A ring of real nodes: they join, leave, are killed, restarted and removed.
-module(weft_ring_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([the_life_of_a_ring/1, a_ring_over_a_gateway/1, locations_are_attributes/1]).
-export([hand_over/1]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [the_life_of_a_ring, a_ring_over_a_gateway, locations_are_attributes].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

the_life_of_a_ring(Config) ->
    [A, B, C] = Refs = [start(Name, Config) || Name <- [a, b, c]],
    ?assertEqual({error, no_ring}, ring(A, status, [])),
    ok = ring(A, create, []),
    ?assertEqual({error, has_ring}, ring(A, create, [])),
    [ok = ring(Ref, join, [node_of(A)]) || Ref <- [B, C]],
    wait(fun() -> statuses(A, [B, C]) =:= [joining, joining] end),
    #{moves := Moves} = committed(A, [{B, join}, {C, join}]),
    ?assertEqual(10, lists:sum(maps:values(Moves))),
    settled(Refs, [A, B, C]),
    lookups_are_equal(Refs),
    a_killed_node_keeps_its_ring(B, Refs, Config).

%% What it had handed over it does not take back.
a_killed_node_keeps_its_ring(B0, [A, B0, C], Config) ->
    Mine = ring(B0, mine, []),
    ok = weft_test_nodes:kill(B0),
    B = start(b, Config),
    ?assertEqual(Mine, ring(B, mine, [])),
    settled([A, B, C], [A, B, C]),
    _ = committed(C, [{A, leave}]),
    settled([A, B, C], [B, C]),
    ?assertEqual([gone], statuses(B, [A])),
    a_dead_node_is_removed([B, C]).

a_dead_node_is_removed([B, C]) ->
    ok = weft_test_nodes:kill(C),
    #{lost := Lost} = committed(B, [{C, remove}]),
    ?assertEqual(8, Lost),
    settled([B], [B]).

%% The gateway knows nothing of the ring. While it is away, each side changes what it likes.
a_ring_over_a_gateway(Config) ->
    [A, G, C] = [weft_test_nodes:node_name(Name) || Name <- [a, g, c]],
    Settings = [{topology, {static, #{links => [{A, G}, {G, C}]}}}, {resume_timeout_ms, 1000}],
    Gateway = started(g, Settings, Config),
    Refs = [RefA, RefC] = [start(Name, Settings, Config) || Name <- [a, c]],
    ok = ring(RefA, create, []),
    ok = ring(RefC, join, [A]),
    wait(fun() -> statuses(RefA, [RefC]) =:= [joining] end),
    _ = committed(RefA, [{RefC, join}]),
    settled(Refs, Refs),
    ?assertEqual([], [L || L <- weft_test_nodes:call(RefA, weft, neighbours, []), L =:= C]),
    %% Connected, though nodes/0 does not show who is behind a gateway: the owners are asked.
    wait(fun() -> owners_are_active(RefA) andalso owners_are_active(RefC) end),
    ok = weft_test_nodes:kill(Gateway),
    _ = committed(RefC, [{RefA, leave}]),
    ?assertEqual([member], statuses(RefA, [RefA])),
    _ = started(g, Settings, Config),
    settled(Refs, [RefC]),
    ?assertEqual([gone], statuses(RefA, [RefA])).

%% Each node says by itself in which rack it is, and the one that plans goes by that: copies of a
%% key are in distinct racks, also when there are more nodes, and on a node that was not told.
locations_are_attributes(Config) ->
    [A, B, C, D] = Refs =
        [start(Name, [{tuning, #{attributes => #{rack => Rack}}}],
               [{location, {attribute, rack}}], Config)
         || {Name, Rack} <- [{a, 1}, {b, 1}, {c, 2}, {d, 2}]],
    ok = ring(A, create, []),
    [ok = ring(Ref, join, [node_of(A)]) || Ref <- [B, C, D]],
    wait(fun() -> statuses(A, [B, C, D]) =:= [joining, joining, joining] end),
    _ = committed(A, [{B, join}, {C, join}]),
    settled(Refs, [A, B, C]),
    %% Two of three nodes are in one rack, and have two thirds of the partitions.
    ?assertNotEqual([], in_one_rack(D, [A, B])),
    #{gave_way := GaveWay} = committed(C, [{D, join}]),
    ?assertEqual(false, lists:keymember(distinct_locations, 1, GaveWay)),
    settled(Refs, [A, B, C, D]),
    ?assertEqual([], in_one_rack(D, [A, B])),
    ?assertEqual([], in_one_rack(A, [C, D])).

%% Keys of which both copies are on these nodes.
in_one_rack(Ref, Others) ->
    Nodes = [node_of(Other) || Other <- Others],
    [Key || Number <- lists:seq(1, 200), Key <- [integer_to_binary(Number)],
            {ok, Places} <- [ring(Ref, primaries, [Key, 2])],
            [Node || {_, Node, _} <- Places] -- Nodes =:= []].

%% --- nodes ------------------------------------------------------------------------------------

started(Name, Settings, Config) ->
    Args = ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"],
    Ref = weft_test_nodes:start(Name, #{config => Settings, args => Args}, ?config(place, Config)),
    {ok, _} = weft_test_nodes:call(Ref, application, ensure_all_started, [weft]),
    Ref.

start(Name, Config) -> start(Name, [], Config).

start(Name, Settings, Config) -> start(Name, Settings, [], Config).

start(Name, Settings, OfRing, Config) ->
    Dir = filename:join([?config(priv_dir, Config), integer_to_list(length(Settings)),
                         atom_to_list(Name)]),
    Environment = [{partitions, 16}, {n_val, 2}, {sync_ms, 300}, {dir, Dir},
                   {handoff, {?MODULE, hand_over}} | OfRing],
    Args = lists:append([["-pa", weft_test_nodes:ebin(Module)] || Module <- [?MODULE, weft_ring]])
        ++ ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]
        ++ lists:append([["-weft_ring", atom_to_list(Key), lists:flatten(io_lib:format("~p", [V]))]
                         || {Key, V} <- Environment]),
    Ref = weft_test_nodes:start(Name, #{config => Settings, args => Args}, ?config(place, Config)),
    {ok, _} = weft_test_nodes:call(Ref, application, ensure_all_started, [weft_ring]),
    Ref.

%% There is nothing to hand over, but the next owner has to be there.
hand_over({_Partition, _Baton, To}) ->
    case net_adm:ping(To) of
        pong -> ok;
        pang -> {error, To}
    end.

node_of(Ref) -> weft_test_nodes:name(Ref).

ring(Ref, Function, Arguments) ->
    weft_test_nodes:call(Ref, weft_ring, Function, Arguments, 20000).

statuses(Ref, Others) ->
    #{members := Members} = ring(Ref, status, []),
    [maps:get(node_of(Other), Members, none) || Other <- Others].

committed(Ref, Changes) ->
    [ok = ring(Ref, stage, [node_of(Other), Change]) || {Other, Change} <- Changes],
    {ok, Plan} = ring(Ref, plan, []),
    ok = ring(Ref, commit, [Plan]),
    Plan.

%% All have the same ring, and the members own all of it.
settled(Refs, Members) ->
    wait(fun() ->
             Statuses = [ring(Ref, status, []) || Ref <- Refs],
             Mine = lists:sort(lists:append([ring(Ref, mine, []) || Ref <- Members])),
             length(lists:usort(Statuses)) =:= 1
                 andalso maps:get(moving, hd(Statuses)) =:= 0
                 andalso Mine =:= lists:seq(0, 15)
         end).

owners_are_active(Ref) ->
    lists:all(fun(Key) -> ring(Ref, active, [Key, 2]) =:= ring(Ref, primaries, [Key, 2]) end,
              [integer_to_binary(N) || N <- lists:seq(1, 20)]).

lookups_are_equal(Refs) ->
    [?assertMatch([_], lists:usort([ring(Ref, primaries, [integer_to_binary(Key), 2])
                                    || Ref <- Refs]))
     || Key <- lists:seq(1, 20)].

wait(Condition) -> weft_test_nodes:until(Condition).
