%% SPDX-License-Identifier: Apache-2.0
%% @doc Each change from one sample to the next is an event, and what stays is none.
-module(weft_ops_events_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'a@h').

nothing_happened_test() ->
    Sample = sample(#{peers => [peer(#{})], links => [connection(#{})], cuts => ['c@h']}),
    ?assertEqual([], weft_ops_events:sample(Sample, Sample)).

%% An agent that has just begun hears of nodes that have long been there.
who_comes_up_joins_test_() ->
    Young = sample(#{uptime_ms => 59999}),
    [?_assertMatch([#{kind := joined, node := ?NODE, at_ms := 7}],
                   weft_ops_events:sample(none, Young)),
     ?_assertEqual([], weft_ops_events:sample(none, sample(#{uptime_ms => 60000}))),
     ?_assertMatch([#{kind := joined}], weft_ops_events:sample(sample(#{}), Young)),
     ?_assertMatch([#{kind := joined}], weft_ops_events:sample({silent, sample(#{})}, Young)),
     %% It ended soon after it had come up, and is up for longer now.
     [?_assertMatch(Expected, [Kind || #{kind := Kind} <- weft_ops_events:sample(
                                                {silent, sample(#{uptime_ms => 1000})},
                                                sample(#{uptime_ms => 1500, at_ms => AtMs}))])
      || {Expected, AtMs} <- [{[joined], 3000}, {[back], 1507}]],
     ?_assertMatch([#{kind := back}, #{kind := groups_changed}],
                   weft_ops_events:sample({silent, sample(#{})}, sample(#{groups => [g2]})))].

sessions_test_() ->
    [?_assertEqual([{session_up, 'b@h'}], events(#{}, #{peers => [peer(#{})]})),
     ?_assertEqual([{session_down, 'b@h'}], events(#{peers => [peer(#{})]}, #{})),
     ?_assertEqual([{resumed, 'b@h'}], events(#{peers => [peer(#{})]},
                                              #{peers => [peer(#{resumes => 1})]})),
     ?_assertEqual([{rerouted, 'b@h'}], events(#{peers => [peer(#{})]},
                                               #{peers => [peer(#{reroutes => 1})]}))].

links_test_() ->
    Change = fun(Before, Now) -> events(#{links => [connection(#{state => Before})]},
                                        #{links => [connection(#{state => Now})]}) end,
    [?_assertEqual([{link_up, 'b@h'}], events(#{}, #{links => [connection(#{})]})),
     ?_assertEqual([{link_down, 'b@h'}], events(#{links => [connection(#{})]}, #{})),
     ?_assertEqual([{link_up, 'b@h'}], Change(dialling, up)),
     ?_assertEqual([{link_down, 'b@h'}], Change(up, dialling)),
     ?_assertEqual([], Change(down, dialling)),
     ?_assertEqual([], Change(up, unknown)), ?_assertEqual([], Change(unknown, up)),
     ?_assertEqual([{link_down, 'b@h'}], Change(unknown, down)),
     ?_assertEqual([{link_flapped, 'b@h'}], events(#{links => [connection(#{})]},
                                                   #{links => [connection(#{ups => 1})]}))].

the_rest_test_() ->
    [?_assertEqual([{groups_changed, [g2]}], events(#{}, #{groups => [g2]})),
     ?_assertEqual([{name_conflict, 2}], events(#{}, #{conflicts => 2})),
     ?_assertEqual([{cut, 'b@h'}, {healed, 'c@h'}], events(#{cuts => ['c@h']},
                                                           #{cuts => ['b@h']})),
     ?_assertEqual([{told, upgrade}], events(#{}, #{told => [{upgrade, <<"begins">>}]}))].

%% A node of the version before says less.
a_sample_of_another_version_test() ->
    Less = maps:without([cuts, conflicts, told], sample(#{})),
    ?assertEqual([], weft_ops_events:sample(Less, Less)).

alarms_test() ->
    Alarm = #{id => {busy, ?NODE, ?NODE}, severity => warning, text => <<"late">>, raised_ms => 1,
              acknowledged => #{comment => <<"mine">>, at_ms => 2}},
    ?assertMatch(#{kind := alarm_raised, at_ms := 9, node := ?NODE, about := {busy, _, _},
                   text := <<"busy: late">>}, weft_ops_events:alarm({raised, Alarm}, 9)),
    ?assertMatch(#{kind := alarm_acknowledged, text := <<"busy: late (mine)">>},
                 weft_ops_events:alarm({acknowledged, Alarm}, 9)).

%% It would end each agent that is told.
what_is_no_text_is_not_told_test() ->
    ?assertError({no_text, <<255>>}, weft_ops:tell(deployment, <<255>>)),
    ?assertError({no_text, <<255>>}, weft_ops:acknowledge({busy, ?NODE, ?NODE}, <<255>>)).

%% Two agents know the same sample; each finds out by itself who is silent.
each_is_told_once_test() ->
    [Up] = weft_ops_events:sample(sample(#{}), sample(#{peers => [peer(#{})]})),
    Silent = fun(AtMs) -> weft_ops_events:silent('b@h', AtMs) end,
    ?assertEqual([Up, Silent(10), Silent(10010)],
                 weft_ops_events:merged([Silent(10), Up, Silent(500), Up, Silent(10010)])).

events(Before, Now) ->
    [{Kind, About} || #{kind := Kind, about := About}
                          <- weft_ops_events:sample(sample(Before), sample(Now))].

sample(Set) ->
    maps:merge(#{node => ?NODE, at_ms => 7, uptime_ms => 100000, groups => [g1], peers => [],
                 links => [], cuts => [], conflicts => 0, told => []}, Set).

peer(Set) ->
    maps:merge(#{node => 'b@h', via => 'b@h', state => up, resumes => 0, reroutes => 0}, Set).

connection(Set) ->
    maps:merge(#{node => 'b@h', state => up, ups => 0, last_error => "none"}, Set).
