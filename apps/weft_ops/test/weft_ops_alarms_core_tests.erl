%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_alarms_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_ops_alarms_core).
-define(OPTIONS, #{grace_ms => #{default => 10, silent => 0}, clear_ms => 30, alarms_max => 3}).
-define(ID, {busy, a, a}).

an_alarm_is_raised_after_its_grace_time_test() ->
    {One, []} = ?CORE:observe([busy()], 100, ?CORE:new(?OPTIONS)),
    {Two, []} = ?CORE:observe([busy()], 109, One),
    ?assertMatch({_, [{raised, #{id := ?ID, raised_ms := 110}}]},
                 ?CORE:observe([busy()], 110, Two)).

a_kind_has_a_grace_time_of_its_own_test() ->
    ?assertMatch({_, [{raised, #{id := {silent, a, a}}}]},
                 ?CORE:observe([condition(silent, a)], 100, ?CORE:new(?OPTIONS))).

what_comes_and_goes_within_the_grace_time_is_none_test() ->
    {One, []} = ?CORE:observe([busy()], 100, ?CORE:new(?OPTIONS)),
    {Two, []} = ?CORE:observe([], 105, One),
    ?assertMatch({_, []}, ?CORE:observe([busy()], 111, Two)).

it_is_cleared_when_it_has_not_held_for_a_while_test() ->
    Raised = raised(),
    {One, []} = ?CORE:observe([], 139, Raised),
    {Held, []} = ?CORE:observe([busy()], 139, Raised),
    ?assertMatch({_, [{cleared, #{id := ?ID}}]}, ?CORE:observe([], 140, One)),
    ?assertMatch({_, []}, ?CORE:observe([], 140, Held)).

it_is_acknowledged_until_it_is_cleared_test() ->
    {ok, Known} = ?CORE:acknowledge(?ID, <<"seen">>, 115, raised()),
    ?assertMatch([#{acknowledged := #{comment := <<"seen">>, at_ms := 115}}], ?CORE:list(Known)),
    {Held, []} = ?CORE:observe([(busy())#{text := <<"worse">>}], 120, Known),
    ?assertMatch([#{text := <<"worse">>, acknowledged := #{}}], ?CORE:list(Held)),
    {Over, [{cleared, _}]} = ?CORE:observe([], 200, Held),
    {Again, []} = ?CORE:observe([busy()], 210, Over),
    {New, [{raised, _}]} = ?CORE:observe([busy()], 220, Again),
    ?assertMatch([#{acknowledged := no}], ?CORE:list(New)).

what_is_given_to_another_agent_is_not_cleared_test() ->
    {[Alarm], Left} = ?CORE:part(fun(Id) -> Id =:= ?ID end, raised()),
    ?assertMatch(#{id := ?ID}, Alarm),
    ?assertEqual({[], {Left, []}}, {?CORE:list(Left), ?CORE:observe([], 200, Left)}),
    ?assertMatch({[], _}, ?CORE:part(fun(_) -> false end, raised())).

%% It is not raised again, and stays for as long as if it had held until then.
what_is_taken_from_another_agent_goes_on_test() ->
    {[Alarm], _} = ?CORE:part(fun(_) -> true end, raised()),
    Taken = ?CORE:take([Alarm], 500, ?CORE:new(?OPTIONS)),
    {Held, []} = ?CORE:observe([busy()], 520, Taken),
    ?assertEqual([Alarm], ?CORE:list(Held)),
    {Waits, []} = ?CORE:observe([], 529, Taken),
    ?assertMatch({_, [{cleared, #{id := ?ID}}]}, ?CORE:observe([], 530, Waits)),
    {Watched, []} = ?CORE:observe([busy()], 499, ?CORE:new(?OPTIONS)),
    ?assertMatch({_, []}, ?CORE:observe([busy()], 520, ?CORE:take([Alarm], 500, Watched))).

who_takes_care_is_kept_where_it_was_raised_as_well_test() ->
    {ok, Known} = ?CORE:acknowledge(?ID, <<"seen">>, 115, raised()),
    {[Alarm], _} = ?CORE:part(fun(_) -> true end, Known),
    ?assertMatch([#{acknowledged := #{comment := <<"seen">>}, raised_ms := 110}],
                 ?CORE:list(?CORE:take([Alarm], 120, raised()))),
    ?assertMatch([#{acknowledged := #{comment := <<"seen">>}}],
                 ?CORE:list(?CORE:take([Alarm#{acknowledged := no}], 120, Known))).

what_is_taken_has_a_bound_test() ->
    {[Alarm], _} = ?CORE:part(fun(_) -> true end, raised()),
    Full = ?CORE:take([Alarm#{id := {busy, Node, Node}} || Node <- [b, c, d, e]], 0,
                      ?CORE:new(?OPTIONS)),
    ?assertEqual({3, 1}, {length(?CORE:list(Full)), ?CORE:left_out(Full)}).

only_an_alarm_can_be_acknowledged_test() ->
    {Waits, []} = ?CORE:observe([busy()], 100, ?CORE:new(?OPTIONS)),
    ?assertEqual({error, unknown_alarm}, ?CORE:acknowledge(?ID, <<>>, 101, Waits)).

there_is_a_bound_test() ->
    {State, []} = ?CORE:observe([condition(busy, Node) || Node <- [a, b, c, d, e]], 0,
                                ?CORE:new(?OPTIONS)),
    {Bounded, Events} = ?CORE:observe([condition(busy, Node) || Node <- [a, b, c, d, e]], 10,
                                      State),
    ?assertMatch([{raised, _}, {raised, _}, {raised, _}], Events),
    ?assertEqual(4, ?CORE:left_out(Bounded)).

%% However late they begin, and in whichever order they are told: three others, and six of all.
the_worst_ones_have_room_test() ->
    Of = fun(Severity, Nodes) ->
             [(condition(busy, Node))#{severity => Severity} || Node <- Nodes]
         end,
    Mixed = Of(note, [a, b]) ++ Of(warning, [c, d]),
    {Others, []} = ?CORE:observe(Mixed, 0, ?CORE:new(?OPTIONS)),
    {Some, Raised} = ?CORE:observe(Mixed, 10, Others),
    ?assertEqual([{c, warning}, {d, warning}, {a, note}],
                 [{Node, Severity}
                  || {raised, #{id := {_, Node, _}, severity := Severity}} <- Raised]),
    Critical = [{(condition(silent, Node))#{severity => critical}, Node} || Node <- [w, x, y, z]],
    {All, Told} = ?CORE:observe(Mixed ++ [Condition || {Condition, _} <- Critical], 20, Some),
    ?assertEqual([w, x, y], [Node || {raised, #{id := {silent, Node, _}}} <- Told]),
    ?assertEqual(1 + 1 + 2, ?CORE:left_out(All)),
    %% Who takes the place of that agent begins with the worst ones, too.
    {Alarms, _} = ?CORE:part(fun(_) -> true end, All),
    ?assertEqual([w, x, y], [Node || #{id := {_, Node, _}}
                                         <- ?CORE:list(?CORE:take(Alarms, 20,
                                                                  ?CORE:new(?OPTIONS)))]).

%% Raised and cleared take turns for each alarm, and what is listed was raised and not cleared.
events_tell_what_is_listed_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_events(), [{numtests, 300}, {to_file, user}]))}.

prop_events() ->
    ?FORALL(Steps, list({range(1, 40), list(oneof([a, b]))}),
            begin
                {_, Last, Open} = lists:foldl(fun step/2, {0, ?CORE:new(?OPTIONS), []}, Steps),
                lists:sort([Id || #{id := Id} <- ?CORE:list(Last)]) =:= lists:sort(Open)
            end).

step({PauseMs, Nodes}, {NowMs0, State0, Open0}) ->
    NowMs = NowMs0 + PauseMs,
    {State, Events} = ?CORE:observe([condition(busy, Node) || Node <- lists:usort(Nodes)], NowMs,
                                    State0),
    {NowMs, State, lists:foldl(fun({raised, #{id := Id}}, Open) ->
                                       false = lists:member(Id, Open),
                                       [Id | Open];
                                  ({cleared, #{id := Id}}, Open) ->
                                       true = lists:member(Id, Open),
                                       lists:delete(Id, Open)
                               end, Open0, Events)}.

raised() ->
    {Waits, []} = ?CORE:observe([busy()], 100, ?CORE:new(?OPTIONS)),
    {Raised, [{raised, _}]} = ?CORE:observe([busy()], 110, Waits),
    Raised.

busy() -> condition(busy, a).

condition(Kind, Node) ->
    #{kind => Kind, node => Node, about => Node, severity => warning, text => <<"it is">>}.
