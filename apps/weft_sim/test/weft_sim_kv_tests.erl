%% SPDX-License-Identifier: Apache-2.0
%% @doc Strong buckets in the simulator: that the checker finds what it is for, and that nothing is
%% found when the protocol is as it is. FULL=1 tries ten thousand schedules, SEED=<number> only that
%% one.
-module(weft_sim_kv_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SCHEDULES, 150).

%% --- histories --------------------------------------------------------------------------------

good_histories_pass_test_() ->
    [?_assertEqual(ok, check(History))
     || History <- [[],
                    [{0, 1, {put, a}}, {2, 3, {get, a}}, {4, 5, {cas, a, b}}, {6, 7, {get, b}}],
                    [{0, 1, {get, not_found}}, {2, 3, {cas, not_found, a}},
                     {4, 5, {differs, b, a}}, {6, 7, {put, not_found}}, {8, 9, {get, not_found}}],
                    %% At the same time: either order will do.
                    [{0, 10, {put, a}}, {1, 9, {put, b}}, {11, 12, {get, a}}],
                    [{0, 10, {put, a}}, {1, 9, {put, b}}, {11, 12, {get, b}}],
                    [{0, 10, {put, a}}, {1, 2, {get, not_found}}, {3, 4, {get, a}}],
                    %% One that was not acknowledged: never, or later.
                    [{0, never, {put, a}}, {1, 2, {get, not_found}}, {3, 4, {get, not_found}}],
                    [{0, never, {put, a}}, {1, 2, {get, not_found}}, {3, 4, {get, a}}],
                    [{0, never, {put, a}}, {1, 2, {put, b}}, {3, 4, {get, b}}, {5, 6, {get, a}}],
                    [{0, never, {cas, not_found, a}}, {1, 2, {differs, b, a}}]]].

bad_histories_are_found_test_() ->
    [{Name, ?_assertMatch({error, _}, check(History))}
     || {Name, History} <-
            [{"a lost update", [{0, 1, {put, a}}, {2, 3, {put, b}}, {4, 5, {get, a}}]},
             {"two that both compared with the same",
              [{0, 1, {put, a}}, {2, 9, {cas, a, b}}, {3, 8, {cas, a, c}}]},
             {"a stale read", [{0, 1, {put, a}}, {2, 3, {get, not_found}}]},
             {"a read that goes back",
              [{0, 9, {put, a}}, {1, 2, {get, a}}, {3, 4, {get, not_found}}]},
             {"one that appears and vanishes",
              [{0, never, {put, a}}, {1, 2, {get, a}}, {3, 4, {get, not_found}}]},
             {"one that appears twice",
              [{0, 9, {put, a}}, {1, 2, {get, a}}, {3, 4, {put, b}}, {5, 6, {get, a}}]},
             {"of nobody", [{0, 1, {get, a}}]},
             {"a conflict with what was expected",
              [{0, 1, {put, a}}, {2, 3, {differs, a, a}}]},
             {"a conflict with what was never there",
              [{0, 1, {put, a}}, {2, 3, {differs, b, c}}]},
             {"found before it was asked for", [{0, 1, {get, a}}, {2, never, {put, a}}]}]].

answers_are_read_as_they_are_meant_test() ->
    ?assertEqual([], entry({put, a}, {error, {not_done, contention}})),
    ?assertEqual([{1, never, {put, a}}], entry({put, a}, {error, {unknown, contention}})),
    ?assertEqual([{1, 2, {differs, b, c}}], entry({cas, b, a}, {error, {conflict, c}})),
    ?assertEqual([], entry(get, {error, {not_done, contention}})).

entry(Request, Result) -> weft_sim_register_model:entry(Request, 1, 2, Result).

check(History) ->
    weft_sim_linearizability:check(History, weft_sim_register_model, not_found).

%% --- runs -------------------------------------------------------------------------------------

nothing_is_found_test_() ->
    {timeout, 3600, fun() ->
        Results = [{Seed, weft_sim_kv:run(Seed)} || Seed <- seeds()],
        [?assertEqual({Seed, none}, {Seed, Violation})
         || {Seed, #{violation := Violation}} <- Results],
        Sum = fun(What) -> lists:sum([map_get(What, Result) || {_, Result} <- Results]) end,
        %% So that something was tried: most have an answer, and some have not.
        ?assert(Sum(done) > 100 * length(Results)),
        ?assert(Sum(unknown) >= length(Results)),
        ?assert(Sum(rejoined) >= length(Results) div 4),
        %% Few have so many replicas that have forgotten all.
        Excused = [Seed || {Seed, #{is_excused := true}} <- Results],
        ?assert(length(Excused) =< max(1, length(Results) div 8))
    end}.

seeds() ->
    case {os:getenv("SEED"), os:getenv("FULL")} of
        {false, false} -> lists:seq(1, ?SCHEDULES);
        {false, _} -> lists:seq(1, 10000);
        {Seed, _} -> [list_to_integer(Seed)]
    end.

the_same_seed_gives_the_same_history_test() ->
    ?assertEqual(weft_sim_kv:history(7), weft_sim_kv:history(7)).
