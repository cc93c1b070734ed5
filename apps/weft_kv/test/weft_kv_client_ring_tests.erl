%% SPDX-License-Identifier: Apache-2.0
%% @doc What a client of the store knows of the ring, and what it makes of answers that are none.
%% Real nodes are in weft_kv_client_SUITE.
-module(weft_kv_client_ring_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(weft_kv_client_ring, [none/0, ask/2, learn/3, replicas/4, forget/1]).

-define(COPIES, #{<<"things">> => 3}).

%% They are those that a node of the ring finds.
replicas_are_those_of_the_ring_test() ->
    Property =
        ?FORALL({Owners, N, Key}, {owners(), range(1, 8), non_empty(binary())},
            begin
                Known = learn(?MODULE, {ok, 1, #{owners => Owners, copies => #{<<"b">> => N}}},
                              none()),
                Size = length(Owners),
                Places = weft_ring_preference:primaries(
                           weft_ring_preference:partition({<<"b">>, Key}, Size), N, Size,
                           fun(Partition) -> lists:nth(Partition + 1, Owners) end),
                Nodes = replicas(?MODULE, maps:get(copies, Known), b, Key),
                ok = forget(?MODULE),
                {_, First, _} = hd(Places),
                First =:= hd(Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes)
                    andalso lists:sort(Nodes) =:= lists:usort([Node || {_, Node, _} <- Places])
                    andalso maps:get(nodes, Known) =:= lists:usort(Owners)
            end),
    ?assert(proper:quickcheck(Property, [{numtests, 300}, quiet])).

owners() -> ?LET(Bits, range(3, 6), vector(1 bsl Bits, oneof([a, b, c, d, e]))).

of_what_is_not_known_there_are_no_replicas_test() ->
    ?assertEqual([], replicas(?MODULE, #{}, things, <<"k">>)),
    ?assertEqual([], replicas(?MODULE, ?COPIES, things, <<"k">>)),
    _ = learn(?MODULE, {ok, 1, #{owners => [a], copies => ?COPIES}}, none()),
    ?assertEqual([a], replicas(?MODULE, ?COPIES, things, <<"k">>)),
    %% The store says what is wrong with these.
    [?assertEqual([], replicas(?MODULE, ?COPIES, Bucket, Key))
     || {Bucket, Key} <- [{locks, <<"k">>}, {"things", <<"k">>}, {things, "k"}]],
    ok = forget(?MODULE),
    ?assertEqual([], replicas(?MODULE, ?COPIES, things, <<"k">>)).

%% An earlier version, a node without a ring, and what is no ring at all.
what_is_no_answer_changes_nothing_test() ->
    Known = learn(?MODULE, {ok, 1, #{owners => [a, b], copies => ?COPIES}}, none()),
    Wrong = [{error, unknown_command}, {error, no_ring}, {error, {unknown, nodedown}}, {ok, 1}, x,
             {ok, 2, []}, {ok, 2, #{owners => [c]}}]
        ++ [{ok, 2, #{owners => Owners, copies => ?COPIES}}
            || Owners <- [[], [1], c, [c | d], lists:duplicate(100000, c)]]
        ++ [{ok, 2, #{owners => [c], copies => Copies}}
            || Copies <- [x, #{things => 3}, #{<<"things">> => 0}, #{<<"things">> => 1000}]],
    [?assertEqual({Answer, Known}, {Answer, learn(?MODULE, Answer, Known)}) || Answer <- Wrong],
    ?assertMatch([_, _], replicas(?MODULE, ?COPIES, things, <<"k">>)),
    ok = forget(?MODULE).

%% This node has no store.
a_node_without_a_store_tells_nothing_test() ->
    ?assertEqual({error, no_ring}, ask(node(), none())),
    ?assertMatch({error, {unknown, _}}, ask('nobody@nowhere.invalid', none())).

%% Who knows what a node would say is told only that.
a_node_tells_its_ring_once_test() ->
    ok = weft_ring_lookup:publish_owners(weft_ring, [a, b, a, b]),
    ok = persistent_term:put(weft_kv_app, #{buckets => #{things => bucket(#{n => 2}),
                                                         locks => strong()}}),
    try
        {ok, Version, Told} = ask(node(), none()),
        ?assertEqual(#{owners => [a, b, a, b], copies => #{<<"things">> => 2}}, Told),
        Known = learn(?MODULE, {ok, Version, Told}, none()),
        ?assertEqual({ok, Version}, ask(node(), Known)),
        ok = weft_ring_lookup:publish_owners(weft_ring, [a, b, b, a]),
        ?assertMatch({ok, _, #{owners := [a, b, b, a]}}, ask(node(), Known)),
        %% A ring of which a part is not known yet.
        ok = weft_ring_lookup:publish_owners(weft_ring, [a, none, b, a]),
        ?assertEqual({error, no_ring}, ask(node(), Known))
    after
        ok = weft_ring_lookup:withdraw(weft_ring),
        _ = persistent_term:erase(weft_kv_app),
        ok = forget(?MODULE)
    end.

bucket(Given) ->
    {ok, Options} = weft_kv_bucket:check(Given),
    Options.

strong() -> bucket(#{consistency => strong, voters => [a, b, c], dir => "strong"}).
