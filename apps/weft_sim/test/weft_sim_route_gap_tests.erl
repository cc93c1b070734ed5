%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes of a peer-to-peer cluster that change their neighbours all the time: while a chain of
%% links leads to a node, there is hardly a moment without a route to it. A session without a path
%% would wait for one, and end after `net_ticktime'.
-module(weft_sim_route_gap_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim', 'f@sim', 'g@sim', 'h@sim']).
%% All have joined by then.
-define(FROM_MS, 15000).
-define(TO_MS, 60000).
-define(LOOK_MS, 250).
-define(SEEDS, 12).

%% One change may come after the other before a request for a route has returned.
a_route_is_found_again_before_long_test_() ->
    {timeout, 600, fun() ->
        Gaps = [longest_gap_ms(Seed) || Seed <- lists:seq(1, ?SEEDS)],
        ?assertEqual([], [GapMs || GapMs <- Gaps, GapMs > 750]),
        %% They did change.
        ?assert(lists:max(Gaps) > 0)
    end}.

%% The longest time for which some node had no route to one that it could have reached.
longest_gap_ms(Seed) ->
    World = weft_sim_world:new(#{seed => Seed, machines => fun(_) -> machines() end}),
    Started = lists:foldl(fun({Index, Node}, W) ->
                                  weft_sim_world:schedule(100 * Index, {start, Node}, W)
                          end, World, lists:zip(lists:seq(1, length(?NODES)), ?NODES)),
    looked(?FROM_MS, weft_sim_world:run_until(?FROM_MS, Started), #{}, 0).

machines() ->
    [{topology, weft_peer_to_peer_core, #{seeds => [hd(?NODES)], active => 3, passive => 8,
                                          shuffle_ms => 1000}},
     {router, weft_router_core, #{}}].

looked(Ms, _World, _Lacking, LongestMs) when Ms > ?TO_MS ->
    LongestMs;
looked(Ms, World, Before, LongestMs) ->
    Lacking = maps:from_list([{Pair, maps:get(Pair, Before, 0) + ?LOOK_MS}
                              || {From, To} = Pair <- pairs(), lacks_route(From, To, World)]),
    NextMs = Ms + ?LOOK_MS,
    looked(NextMs, weft_sim_world:run_until(NextMs, World), Lacking,
           lists:max([LongestMs | maps:values(Lacking)])).

pairs() -> [{From, To} || From <- ?NODES, To <- ?NODES, From =/= To].

lacks_route(From, To, World) ->
    not leads(From, To, [], World) andalso is_reachable([From], [], To, World).

leads(To, To, _Passed, _World) ->
    true;
leads(At, To, Passed, World) ->
    case weft_sim_world:view(At, {route, To}, World) of
        {Next, _Metric, _Hops} ->
            not lists:member(At, Passed) andalso weft_sim_world:is_live(At, Next, World)
                andalso leads(Next, To, [At | Passed], World);
        undefined ->
            false
    end.

is_reachable([], _Seen, _To, _World) ->
    false;
is_reachable([To | _], _Seen, To, _World) ->
    true;
is_reachable([At | Rest], Seen, To, World) ->
    Further = [Node || Node <- ?NODES -- [At | Seen], weft_sim_world:is_live(At, Node, World),
                       weft_sim_world:is_live(Node, At, World)],
    is_reachable(Rest ++ Further, [At | Seen], To, World).
