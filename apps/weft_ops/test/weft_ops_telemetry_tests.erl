%% SPDX-License-Identifier: Apache-2.0
%% @doc What the library telemetry is given, told by a module that stands in for it.
-module(weft_ops_telemetry_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ALARM, #{id => {busy, 'a@h', 'a@h'}, severity => warning, text => <<"late">>,
                 raised_ms => 1, acknowledged => no}).

telemetry_test_() ->
    [{setup, fun stand_in/0, fun removed/1, {timeout, 30, fun() -> registered(Test) end}}
     || Test <- [fun a_sample_is_an_event_with_its_sums/0, fun what_changed_is_an_event_each/0,
                 fun an_alarm_is_an_event/0, fun a_slow_handler_delays_nobody/0,
                 fun stray_messages_end_nothing/0]].

without_the_library_there_is_no_process_test() ->
    ?assertEqual({ignore, ok, ok}, {weft_ops_telemetry:start_link(),
                                    weft_ops_telemetry:sample(none, sample(#{})),
                                    weft_ops_telemetry:alarm({raised, ?ALARM})}).

a_sample_is_an_event_with_its_sums() ->
    ok = weft_ops_telemetry:sample(none, sample(#{peers => [peer(b), peer(c)]})),
    {Name, Measured, About} = told(),
    ?assertEqual({[weft, node, sample], #{node => 'a@h', groups => [g1]}}, {Name, About}),
    ?assertMatch(#{bytes_out := 20, bytes_in := 4, sessions := 2, links := 0, reroutes := 2,
                   period_ms := 2000, run_queue := 3, relayed_bytes := 7}, Measured).

what_changed_is_an_event_each() ->
    Before = sample(#{peers => [peer(b)]}),
    ok = weft_ops_telemetry:sample(Before, sample(#{peers => [(peer(b))#{resumes => 1}, peer(c)],
                                                    groups => [g2]})),
    {[weft, node, sample], _, _} = told(),
    Events = [told() || _ <- lists:seq(1, 4)],
    ?assertEqual([[weft, groups, changed], [weft, session, rerouted], [weft, session, resumed],
                  [weft, session, up]], lists:sort([Name || {Name, _, _} <- Events])),
    [?assertMatch({_, #{system_time := At}, #{node := 'a@h', about := _, text := _}}
                    when is_integer(At), Event) || Event <- Events].

an_alarm_is_an_event() ->
    ok = weft_ops_telemetry:alarm({cleared, ?ALARM}),
    ?assertMatch({[weft, alarm, cleared], #{system_time := _},
                  #{kind := busy, node := 'a@h', about := 'a@h', severity := warning,
                    text := <<"late">>, acknowledged := no}}, told()).

%% Those that would be too many are left out.
a_slow_handler_delays_nobody() ->
    ok = sys:suspend(weft_ops_telemetry),
    {Us, _} = timer:tc(fun() -> [ok = weft_ops_telemetry:alarm({raised, ?ALARM})
                                 || _ <- lists:seq(1, 1500)] end),
    ?assert(Us < 1000000),
    {message_queue_len, Waiting} = process_info(whereis(weft_ops_telemetry), message_queue_len),
    ?assertEqual(1000, Waiting),
    ok = sys:resume(weft_ops_telemetry),
    _ = [{[weft, alarm, raised], _, _} = told() || _ <- lists:seq(1, 1000)].

stray_messages_end_nothing() ->
    Pid = whereis(weft_ops_telemetry),
    Pid ! stray,
    ok = gen_server:cast(Pid, stray),
    ?assertMatch({error, _}, gen_server:call(Pid, stray)),
    ?assertEqual(Pid, whereis(weft_ops_telemetry)).

%% --- the module that stands in ----------------------------------------------------------------

stand_in() ->
    Lines = ["-module(telemetry).", "-export([execute/3]).",
             "execute(Name, Measured, About) ->"
             "    weft_ops_telemetry_test ! {told, {Name, Measured, About}}, ok."],
    {ok, telemetry, Beam} = compile:forms([form(Line) || Line <- Lines]),
    {module, telemetry} = code:load_binary(telemetry, "telemetry.erl", Beam),
    {ok, Pid} = weft_ops_telemetry:start_link(),
    true = unlink(Pid),
    Pid.

form(Line) ->
    {ok, Tokens, _} = erl_scan:string(Line),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

removed(Pid) ->
    ok = gen_server:stop(Pid),
    true = code:delete(telemetry),
    code:purge(telemetry).

registered(Test) ->
    true = register(weft_ops_telemetry_test, self()),
    try Test() after unregister(weft_ops_telemetry_test) end.

told() ->
    receive {told, Event} -> Event end.

sample(Set) ->
    maps:merge(#{node => 'a@h', at_ms => 7, period_ms => 2000, uptime_ms => 100000, groups => [g1],
                 peers => [], links => [], cuts => [], conflicts => 0, told => [],
                 relayed_bytes => 7, relayed_circuits => 0, unreachable => [],
                 machine => #{wake_up_us => 1, run_queue => 3, memory_bytes => 4,
                              processes => 5}}, Set).

peer(Node) ->
    #{node => Node, via => Node, state => up, bytes_out => 10, bytes_in => 2, resumes => 0,
      reroutes => 1, queued_bytes => 0, suspended => 0}.
