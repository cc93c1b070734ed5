%% SPDX-License-Identifier: Apache-2.0
%% @doc What is made of the events of a node.
-module(weft_profile_events_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(P, list_to_pid("<0.101.0>")).
-define(Q, list_to_pid("<0.102.0>")).
-define(F, {m, f, 1}).

history(Events) -> weft_profile_events:history(Events, 0, 1000).

spans(#{slices := Slices}) ->
    [{Pid, Lane, From, To} || #{pid := Pid, lane := Lane, from := From, to := To} <- Slices].

a_process_runs_from_in_to_out_test() ->
    #{dropped := 0} = History = history([{10, in, ?P, 1, ?F}, {30, out, ?P, 1, ?F},
                                         {40, in, ?Q, 1, ?F}, {50, out, ?Q, 1, ?F}]),
    ?assertEqual([{?P, {scheduler, 1}, 10, 30}, {?Q, {scheduler, 1}, 40, 50}], spans(History)).

what_runs_at_the_ends_is_cut_there_test() ->
    ?assertEqual([{?P, {scheduler, 1}, 0, 30}, {?Q, {scheduler, 2}, 900, 1000}],
                 spans(history([{30, out, ?P, 1, ?F}, {900, in, ?Q, 2, ?F}]))).

an_end_without_a_begin_is_counted_test() ->
    #{dropped := 1} = History = history([{10, in, ?P, 1, ?F}, {30, out, ?P, 1, ?F},
                                         {40, out, ?P, 1, ?F}]),
    ?assertEqual(1, length(spans(History))).

migrations_are_changes_of_the_scheduler_test() ->
    Runs = lists:append([[{At, in, ?P, On, ?F}, {At + 1, out, ?P, On, ?F}]
                         || {At, On} <- [{1, 1}, {3, 2}, {5, 0}, {7, 2}, {9, 1}]]),
    #{migrations := Migrations} = history(Runs),
    ?assertEqual(#{?P => 2}, Migrations).

a_port_runs_where_it_is_called_test() ->
    Port = list_to_port("#Port<0.7>"),
    #{migrations := Migrations, slices := [#{inside := Inside}, #{inside := []}]} = History =
        history([{10, in, ?P, 1, ?F}, {12, gc_start, ?P, 1, minor}, {15, gc_end, ?P, 1, minor},
                 {20, in, Port, 1, command}, {30, out, Port, 1, command}, {40, out, ?P, 1, ?F},
                 {50, in, Port, 2, 0}, {60, out, Port, 2, 0}]),
    ?assertEqual([{?P, {scheduler, 1}, 10, 40}, {Port, {scheduler, 2}, 50, 60}], spans(History)),
    ?assertEqual([{12, 15, minor}, {20, 30, {Port, command}}], Inside),
    ?assertEqual(#{}, Migrations).

%% The process was not recorded.
a_port_whose_caller_is_not_known_has_its_own_slice_test() ->
    Port = list_to_port("#Port<0.7>"),
    ?assertEqual([{Port, {scheduler, 1}, 20, 30}],
                 spans(history([{20, in, Port, 1, command}, {30, out, Port, 1, command}]))).

dirty_schedulers_have_a_lane_each_test() ->
    ?assertEqual([{?P, {dirty, 1}, 10, 30}, {?P, {dirty, 1}, 50, 60}, {?Q, {dirty, 2}, 20, 40}],
                 spans(history([{10, in, ?P, 0, ?F}, {20, in, ?Q, 0, ?F}, {30, out, ?P, 0, ?F},
                                {40, out, ?Q, 0, ?F}, {50, in, ?P, 0, ?F},
                                {60, out, ?P, 0, ?F}]))).

collections_are_in_their_slice_test() ->
    #{slices := [#{inside := Inside}], gcs := All} =
        history([{10, in, ?P, 1, ?F}, {12, gc_start, ?P, 1, minor}, {15, gc_end, ?P, 1, minor},
                 {16, gc_start, ?P, 1, major}, {20, gc_end, ?P, 1, major}, {30, out, ?P, 1, ?F}]),
    ?assertEqual([{12, 15, minor}, {16, 20, major}], Inside),
    ?assertEqual([{?P, 12, 15, minor}, {?P, 16, 20, major}], All).

a_new_process_tells_what_it_began_with_test() ->
    #{began := Began, slices := Slices} =
        history([{5, spawned, ?P, 1, ?F}, {7, out, ?P, 1, ?F}]),
    ?assertEqual(#{?P => ?F}, Began),
    ?assertEqual([], Slices).

whatever_comes_in_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_nothing_overlaps(), [{to_file, user}, quiet,
                                                                       {numtests, 500}]))}.

prop_nothing_overlaps() ->
    ?FORALL(Events, weft_profile_sample:events(),
            begin
                #{slices := Slices} = history(lists:keysort(1, Events)),
                Lanes = lists:usort([Lane || #{lane := Lane} <- Slices]),
                lists:all(fun(Lane) -> apart([Slice || #{lane := Of} = Slice <- Slices,
                                                       Of =:= Lane])
                          end, Lanes)
                    andalso lists:all(fun inside/1, Slices)
            end).

apart([#{to := To} | [#{from := From} | _] = Rest]) -> To =< From andalso apart(Rest);
apart([_]) -> true.

inside(#{from := From, to := To, inside := Inside}) ->
    Times = [From] ++ lists:append([[Start, End] || {Start, End, _} <- Inside]) ++ [To],
    Times =:= lists:sort(Times).
