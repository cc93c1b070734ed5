%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_model_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PERIOD_MS, 100).
-define(VISITS, 6).
-define(LOOKS, 5).

%% Each visit ends after a look, and the next one begins before the tick that comes then.
quick_visits_do_not_make_it_look_more_often_test() ->
    Test = self(),
    Source = fun(_) -> Test ! {looked, erlang:monotonic_time(millisecond)}, {seen(), known} end,
    {ok, Model} = weft_dashboard_model:start_link(#{period_ms => ?PERIOD_MS, browsers_max => 5,
                                                    source => Source}),
    [visit() || _ <- lists:seq(1, ?VISITS)],
    ok = weft_dashboard_model:subscribe(),
    First = looked(),
    Last = lists:last([looked() || _ <- lists:seq(1, ?LOOKS)]),
    unlink(Model),
    ok = gen_server:stop(Model),
    ?assert(Last - First >= (?LOOKS - 1) * ?PERIOD_MS).

%% Such as a sample of a version of weft_ops that is to come.
what_can_not_be_shown_ends_nothing_test() ->
    Odd = (seen())#{nodes => #{a@h => #{node => a@h}}},
    Source = fun(none) -> {Odd, odd}; (odd) -> error(odd) end,
    {ok, Model} = weft_dashboard_model:start_link(#{period_ms => ?PERIOD_MS, browsers_max => 5,
                                                    source => Source}),
    unlink(Model),
    ?assertMatch({error, timeout}, weft_dashboard_model:current()),
    ?assertEqual(Model, whereis(weft_dashboard_model)),
    ok = gen_server:stop(Model).

visit() ->
    {Pid, Ref} = spawn_monitor(fun() ->
                                       ok = weft_dashboard_model:subscribe(),
                                       receive leave -> ok end
                               end),
    _ = looked(),
    Pid ! leave,
    receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    _ = sys:get_state(weft_dashboard_model).

looked() -> receive {looked, AtMs} -> AtMs after 5000 -> error(no_look) end.

seen() -> #{nodes => #{}, agents => #{}, alarms => [], groups => #{}}.
