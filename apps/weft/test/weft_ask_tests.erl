%% SPDX-License-Identifier: Apache-2.0
%% @doc Who answers in time is heard, whoever else is silent, fails, or comes too late.
-module(weft_ask_tests).

-include_lib("eunit/include/eunit.hrl").

answers_come_in_the_order_of_the_nodes_test() ->
    ?assertEqual({[{c, 3}, {a, 1}, {b, 2}], []},
                 weft_ask:all([c, a, b], fun(Node) -> map_get(Node, #{a => 1, b => 2, c => 3}) end,
                              10000)).

the_silent_and_the_failing_are_named_and_cost_the_others_nothing_test() ->
    Ask = fun(silent) -> receive after infinity -> ok end;
             (failing) -> error(on_purpose);
             (leaving) -> exit({answer, lie});
             (Node) -> Node
          end,
    Nodes = [good, silent, failing, leaving, better],
    Start = erlang:monotonic_time(millisecond),
    ?assertEqual({[{good, good}, {better, better}], [silent, failing, leaving]},
                 weft_ask:all(Nodes, Ask, 2000)),
    Elapsed = erlang:monotonic_time(millisecond) - Start,
    ?assert(Elapsed >= 2000 andalso Elapsed < 30000).

%% Who has to be waited for is known only when enough have answered.
the_last_ones_are_waited_for_a_while_only_test() ->
    Ask = fun(silent) -> receive after infinity -> ok end;
             (Node) -> Node
          end,
    Start = erlang:monotonic_time(millisecond),
    ?assertEqual({[{a, a}], [silent]}, weft_ask:all([a, silent], Ask, 60000, 100)),
    ?assert(erlang:monotonic_time(millisecond) - Start < 30000),
    Later = erlang:monotonic_time(millisecond),
    ?assertEqual({[{a, a}], [silent, silent]}, weft_ask:all([a, silent, silent], Ask, 2000, 0)),
    ?assert(erlang:monotonic_time(millisecond) - Later >= 2000).

%% One is silent, one fails, and one has an answer that is not enough.
the_first_answer_that_is_enough_is_not_delayed_by_others_test() ->
    Ask = fun(silent) -> receive after infinity -> ok end;
             (failing) -> error(on_purpose);
             (Answer) -> Answer
          end,
    Start = erlang:monotonic_time(millisecond),
    ?assertEqual({ok, 1}, weft_ask:first([silent, failing, unknown, 1, silent, silent, silent], Ask,
                                         fun is_integer/1, 60000, 60000)),
    ?assertEqual(none, weft_ask:first([unknown, failing], Ask, fun is_integer/1, 60000, 60000)),
    ?assertEqual(none, weft_ask:first([unknown, silent], Ask, fun is_integer/1, 60000, 100)),
    ?assert(erlang:monotonic_time(millisecond) - Start < 30000),
    ?assertEqual(none, weft_ask:first([silent], Ask, fun is_integer/1, 100, 0)),
    ?assertEqual({messages, []}, process_info(self(), messages)).

nothing_is_left_behind_test() ->
    Self = self(),
    Ask = fun(_) -> Self ! {asked, self()}, receive after infinity -> ok end end,
    ?assertEqual({[], [a]}, weft_ask:all([a], Ask, 2000)),
    Asked = receive {asked, Pid} -> Pid after 0 -> error(never_ran) end,
    Ref = monitor(process, Asked),
    receive {'DOWN', Ref, process, Asked, _} -> ok end,
    ?assertEqual({messages, []}, process_info(self(), messages)).

nobody_is_asked_test() ->
    ?assertEqual({[], []}, weft_ask:all([], fun(_) -> error(never) end, 10000)).
