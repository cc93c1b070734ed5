%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_handover_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_ops_handover).
-define(HEARD, #{'a@h' => #{unreachable => ['x@h']}, 'b@h' => silent}).

who_reports_or_is_missed_is_a_witness_test() ->
    [?assertNot(?CORE:without_witness(Id, ?HEARD))
     || Id <- [{busy, 'a@h', 'a@h'}, {silent, 'b@h', 'b@h'}, {no_path, 'a@h', 'c@h'}]],
    [?assert(?CORE:without_witness(Id, ?HEARD))
     || Id <- [{busy, 'c@h', 'c@h'}, {silent, 'c@h', 'c@h'}, {no_path, 'c@h', 'a@h'}]].

%% It does not report itself.
who_is_unreachable_is_missed_by_others_test() ->
    ?assertNot(?CORE:without_witness({unreachable, 'x@h', 'x@h'}, ?HEARD)),
    ?assert(?CORE:without_witness({unreachable, 'b@h', 'b@h'}, ?HEARD)),
    ?assert(?CORE:without_witness({unreachable, 'x@h', 'x@h'}, maps:remove('a@h', ?HEARD))).

%% Each agent has a clock of its own.
times_are_those_of_the_clock_of_who_has_the_alarm_test() ->
    Alarm = #{id => {busy, a, a}, severity => warning, text => <<>>, raised_ms => -900,
              acknowledged => #{comment => <<"seen">>, at_ms => -800}},
    Given = ?CORE:new({group, g}, [], {[Alarm], 1000}),
    ?assertEqual([Alarm#{raised_ms := -4900,
                         acknowledged := #{comment => <<"seen">>, at_ms => -4800}}],
                 ?CORE:alarms(Given, 5000)),
    ?assertEqual([Alarm#{acknowledged := no, raised_ms := 100}],
                 ?CORE:alarms(?CORE:new({node, a}, [], {[Alarm#{acknowledged := no}], 1000}), 0)).
