%% SPDX-License-Identifier: Apache-2.0
-module(weft_chaos_schedule_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@h', 'b@h', 'c@h', 'd@h']).
-define(KINDS, [{crash, 1}, {pause, 1}, {cut, 3}, {cut_one_way, 1}, {partition, 1}, {break, 2},
                {delay, 1}, {loss, 1}, {kill, 2}]).

random_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_random(), [{numtests, 300}, quiet]))}.

%% The same for a seed, well-formed, over in time, and ends with everything healed.
prop_random() ->
    ?FORALL({Seed, Faults, LengthMs}, {integer(), range(1, 30), range(1000, 60000)},
            begin
                Spec = #{length_ms => LengthMs, faults => Faults, lasts_ms => {10, 5000},
                         kinds => ?KINDS},
                Schedule = weft_chaos_schedule:random(Seed, ?NODES, Spec),
                Schedule =:= weft_chaos_schedule:random(Seed, ?NODES, Spec)
                    andalso weft_chaos_schedule:check(Schedule) =:= ok
                    andalso lists:last(Schedule) =:= {LengthMs, heal_all}
                    andalso weft_chaos_schedule:length_ms(Schedule) =< LengthMs + 1
                    andalso weft_chaos_schedule:nodes(Schedule) -- ?NODES =:= []
                    andalso crashed(Schedule) =:= started(Schedule)
                    andalso [] =:= [Kill || {_, {kill, _, Kill}} <- Schedule,
                                            not is_map_key(seed, Kill)]
            end).

crashed(Schedule) -> lists:sort([Node || {_, {crash, Node}} <- Schedule]).
started(Schedule) -> lists:sort([Node || {_, {start, Node}} <- Schedule]).

partitions_are_cuts_test() ->
    ?assertEqual([{5, {break, a, b}}, {9, {cut, a, b, 7}}, {9, {cut, a, c, 7}}],
                 weft_chaos_schedule:expand([{9, {partition, [[a], [b, c]], 7}},
                                             {5, {break, a, b}}])).

%% Until the step that ends it, or the end of the schedule, and no longer than it says.
what_lasts_has_an_end_test() ->
    ?assertEqual([{1, {cut, a, b, 29}}, {2, {pause, a, 5}}, {3, {pause, b, 7}},
                  {5, {cut_one_way, a, b, 25}}, {10, {resume, b}}, {20, {loss, a, b, 1, 10}},
                  {21, {delay, a, b, 1, 2, 4}}, {30, {heal, b, a}}, {31, {cut, a, b, 9}},
                  {32, {pause, a, 8}}, {39, {break, a, b}}, {40, {crash, c}}],
                 weft_chaos_schedule:expand([{1, {cut, a, b}}, {2, {pause, a, 5}}, {3, {pause, b}},
                                             {5, {cut_one_way, a, b}}, {10, {resume, b}},
                                             {20, {loss, a, b, 1, 15}},
                                             {21, {delay, a, b, 1, 2, 4}}, {30, {heal, b, a}},
                                             {31, {cut, a, b}}, {32, {pause, a}},
                                             {39, {break, a, b}}, {40, {crash, c}}])).

%% Each is told with the step that is wrong.
what_is_no_schedule_test() ->
    [begin
         {error, Text} = weft_chaos_schedule:check(Wrong),
         ?assert(length(Text) > 10)
     end || Wrong <- [none, [{cut, a, b}], [{-1, heal_all}], [{1, {cut, a, a, 5}}],
                      [{1, {cut, a, b, 0}}], [{1, {pause, a, 99999999}}],
                      [{1, {partition, [[a], [a]], 5}}], [{1, {delay, a, b, 5, 1, 5}}],
                      [{1, {loss, a, b, 101, 5}}], [{1, {loss, a, a, 1, 5}}], [{1, {heal, a, a}}],
                      [{1, {cut_one_way, a, b, -1}}], [{1, {partition, none}}],
                      [{1, heal_all} | 2], [{1, {partition, [[a] | b], 5}}],
                      [{1, {partition, [[a | b]], 5}}],
                      [{1, {explode, a}}], [{1, {kill, a, []}}]]],
    {error, Named} = weft_chaos_schedule:check([{1, heal_all}, {2, {explode, a}}]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Named), <<"explode">>)).
