%% SPDX-License-Identifier: Apache-2.0
%% @doc Many schedules: which seeds, what is remembered, and some of them.
-module(weft_sim_nightly_tests).

-include_lib("eunit/include/eunit.hrl").

%% Part of what `make nightly' does. Small worlds, so that many of them fit into the tests.
some_schedules_of_every_scenario_hold_test_() ->
    {timeout, 600, {setup, fun directory/0, fun restore/1, fun(_) ->
        {timeout, 600, fun() ->
            ?assert(weft_sim_nightly:run(1, 1)),
            ?assertEqual({2, 30}, weft_sim_nightly:seeds(#{resume => true, to => 30}))
        end}
    end}}.

seeds_are_a_hundred_thousand_schedules_unless_told_test_() ->
    {setup, fun directory/0, fun restore/1, fun(_) ->
        {1, To} = weft_sim_nightly:seeds(#{}),
        Scenarios = length(weft_sim_scenario:names()),
        [?_assert(To * Scenarios >= 100000),
         ?_assert((To - 1) * Scenarios < 100000),
         ?_assertEqual({7, 9}, weft_sim_nightly:seeds(#{from => 7, to => 9})),
         ?_assertEqual({1, To}, weft_sim_nightly:seeds(#{resume => true}))]
    end}.

directory() ->
    Former = os:getenv("REBAR_BASE_DIR"),
    Directory = filename:join([os:getenv("TMPDIR", "/tmp"), "weft_sim_nightly_" ++ os:getpid()]),
    ok = filelib:ensure_dir(filename:join(Directory, "file")),
    true = os:putenv("REBAR_BASE_DIR", Directory),
    {Former, Directory}.

restore({Former, Directory}) ->
    _ = case Former of
            false -> os:unsetenv("REBAR_BASE_DIR");
            _ -> os:putenv("REBAR_BASE_DIR", Former)
        end,
    ok = file:del_dir_r(Directory).
