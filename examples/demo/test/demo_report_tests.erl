%% SPDX-License-Identifier: Apache-2.0
%% @doc Exit code 0 only if all holds: each promise, broken alone, is noticed.
-module(demo_report_tests).

-include_lib("eunit/include/eunit.hrl").

good() ->
    #{carrier => weft, nodes => 12, victim => 'n03@127.0.0.1',
      link => {'n04@127.0.0.1', 'n06@127.0.0.1'}, connections => 34, full_mesh => 66,
      balance => #{lines => 10, due => 50, delivered => 50, in_order => 50, lost => 0,
                   doubled => 0, late => 0, wrong_streams => 0},
      nodedowns => 0, rooms_lost => 0, all_said => true,
      reroutes_ms => #{kill => [3, 5, 90], cut => [7], heal => []}, seconds => 40.0,
      samples => [#{at_ms => 500, delivered => 3}]}.

with(Key, Value) -> (good())#{Key := Value}.

balance(Key, Value) -> with(balance, (maps:get(balance, good()))#{Key := Value}).

all_holds_test() ->
    ?assertEqual([], demo_report:broken_promises(good())).

each_broken_promise_is_named_test_() ->
    [{Text, ?_assertEqual([Text], demo_report:broken_promises(Result))}
     || {Text, Result} <-
            [{"not every survivor said all its lines", with(all_said, false)},
             {"delivered is not what was due", balance(delivered, 49)},
             {"not all was delivered in order", balance(in_order, 49)},
             {"something was delivered twice", balance(doubled, 1)},
             {"a stream between two users is not complete", balance(wrong_streams, 1)},
             {"a survivor saw a nodedown of a survivor", with(nodedowns, 1)},
             {"a survivor lost a room", with(rooms_lost, 1)},
             {"no TCP connection was saved", with(connections, 66)},
             {"no session was on the killed gateway: nothing was proved",
              with(reroutes_ms, #{kill => [], cut => [7], heal => []})},
             {"no session was on the cut link: nothing was proved",
              with(reroutes_ms, #{kill => [3], cut => [], heal => [7]})}]].

nothing_said_is_no_success_test() ->
    Empty = maps:map(fun(_, _) -> 0 end, maps:get(balance, good())),
    ?assertEqual(["nothing was said"], demo_report:broken_promises(with(balance, Empty))).

the_table_shows_both_test() ->
    Stock = (balance(delivered, 44))#{carrier := stock, connections := 66},
    Text = unicode:characters_to_list(demo_report:text(good(), Stock)),
    [?assertMatch({_, {match, _}}, {Row, re:run(Text, Row)})
     || Row <- ["of a full mesh +34 of 66 +66 of 66", "copies delivered +50 +44",
                "after the kill +3, median 5 ms, worst 90 ms +-", "gateway n03 is killed"]].

json_can_be_written_test() ->
    Json = iolist_to_binary(weft_json:encode(demo_report:json(good(), good()))),
    ?assertMatch({_, _}, binary:match(Json, <<"\"broken_promises\":[]">>)).
