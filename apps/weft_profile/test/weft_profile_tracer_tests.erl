%% SPDX-License-Identifier: Apache-2.0
%% @doc Recordings of this very node, of which nobody else has to know.
-module(weft_profile_tracer_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 30000).

%% A recording that has ended and was not fetched yet holds up nobody who traces after it: not when
%% its time comes, and not when it is fetched.
who_traces_after_it_is_left_alone_test() ->
    Guard = started(#{}),
    ok = weft_profile_tracer:stop(Guard),
    ok = await_end(Guard),
    Pattern = [{['$1', '_'], [false], []}],
    {Traced, Tracer} = {idle(), idle()},
    try
        1 = erlang:trace(Traced, true, [procs, {tracer, Tracer}]),
        _ = trace_pattern(Pattern),
        Guard ! time,
        Monitor = monitor(process, Guard),
        ?assertMatch(#{ended := stopped}, fetched(Guard)),
        receive {'DOWN', Monitor, process, Guard, _} -> ok after ?MS -> error(still_there) end,
        ?assertEqual({flags, [procs]}, erlang:trace_info(Traced, flags)),
        ?assertEqual({match_spec, Pattern}, erlang:trace_info(send, match_spec))
    after
        _ = trace_pattern(true),
        %% At once, as the next recording would be refused.
        _ = erlang:trace(Traced, false, [procs]),
        [exit(Pid, kill) || Pid <- [Traced, Tracer]]
    end.

%% From OTP 27 on both can.
who_traces_a_port_is_left_alone_test() ->
    [Port | _] = erlang:ports(),
    Tracer = idle(),
    try
        1 = erlang:trace(Port, true, [ports, {tracer, Tracer}]),
        case weft_profile_switch:prepare() of
            {ok, session} -> ok;
            {error, Text} -> ?assertNotEqual(nomatch, string:find(Text, "traces ports"))
        end,
        ?assertEqual({flags, [ports]}, erlang:trace_info(Port, flags))
    after
        %% At once, as the next recording would be refused.
        _ = erlang:trace(Port, false, [ports]),
        exit(Tracer, kill)
    end.

%% It may not have begun before all is said.
some_processes_have_their_ports_test() ->
    Port = open_port({spawn, "cat"}, []),
    weft_test_nodes:until(fun() -> is_recorded(Port) end),
    true = port_close(Port).

is_recorded(Port) ->
    Guard = started(#{pids => [self()], window_ms => 1000, every_ms => 1000, gc => false}),
    ok = weft_profile_tracer:go(Guard, erlang:monotonic_time(nanosecond)),
    [begin
         true = port_command(Port, "x"),
         receive {Port, {data, "x"}} -> ok after ?MS -> error(no_echo) end
     end || _ <- lists:seq(1, 50)],
    ok = weft_profile_tracer:stop(Guard),
    ok = await_end(Guard),
    Monitor = monitor(process, Guard),
    {Events, #{names := Names}} = fetched(Guard, []),
    %% Or another case finds its guard.
    receive {'DOWN', Monitor, process, Guard, _} -> ok after ?MS -> error(still_there) end,
    ?assertEqual([], lists:usort([element(3, Event) || Event <- Events]) -- [Port, self()]),
    case [Event || {_, in, Of, _, command} = Event <- Events, Of =:= Port] of
        [_ | _] -> ?assertMatch(#{Port := <<"cat of ", _/binary>>}, Names), true;
        [] -> false
    end.

recordings_are_found_by_their_guards_test() ->
    ?assertEqual([], weft_profile_tracer:guards()),
    Guard = started(#{}),
    ?assertEqual([Guard], weft_profile_tracer:guards()),
    ok = weft_profile_tracer:stop(Guard),
    ok = await_end(Guard),
    ?assertEqual([Guard], weft_profile_tracer:guards()),
    Monitor = monitor(process, Guard),
    _ = fetched(Guard),
    receive {'DOWN', Monitor, process, Guard, _} -> ok after ?MS -> error(still_there) end,
    ?assertEqual([], weft_profile_tracer:guards()).

started(Options) ->
    {ok, Guard} = weft_profile_tracer:start(self(), Options),
    Guard.

await_end(Guard) ->
    receive {weft_profile, Guard, ended, stopped} -> ok after ?MS -> error(not_ended) end.

fetched(Guard) ->
    {_Events, Info} = fetched(Guard, []),
    Info.

fetched(Guard, Before) ->
    case weft_profile_tracer:fetch(Guard) of
        {events, Events} -> fetched(Guard, Before ++ Events);
        {done, Info} -> {Before, Info}
    end.

idle() -> spawn(fun() -> receive after infinity -> ok end end).

trace_pattern(Pattern) -> erlang:trace_pattern(send, Pattern, []).
