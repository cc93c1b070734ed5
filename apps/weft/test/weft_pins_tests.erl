%% SPDX-License-Identifier: Apache-2.0
%% @doc Pins come and go with processes and names, and say what is wrong with a channel.
-module(weft_pins_tests).

-include_lib("eunit/include/eunit.hrl").

pins_test_() ->
    {foreach, fun start/0, fun stop/1,
     [{timeout, 60, Test} || Test <- [fun pinned_until_it_ends/0, fun unknown_channels_are_named/0,
                                      fun names_are_pinned_by_rules/0,
                                      fun bad_channels_are_said/0,
                                      fun outlive_their_server/0]]}.

start() ->
    ok = application:set_env(weft, channels, #{gossip => #{class => control}}),
    ok = application:set_env(weft, pins, #{weft_pins_tests_name => bulk}),
    ok = weft_pins:new_table(),
    start_server().

start_server() ->
    {ok, Pid} = weft_pins:start_link(),
    true = unlink(Pid),
    Pid.

stop(_First) ->
    ok = gen_server:stop(weft_pins),
    true = ets:delete(weft_pins),
    ok = application:unset_env(weft, channels),
    ok = application:unset_env(weft, pins).

pinned_until_it_ends() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    Before = weft_pins:version(),
    ok = weft_pins:pin(Pid, bulk),
    ?assertEqual(bulk, weft_pins:class(Pid)),
    ok = weft_pins:pin(Pid, gossip),
    ?assertEqual(control, weft_pins:class(Pid)),
    ?assertEqual(#{weft_frame:key(Pid) => control}, weft_pins:classes()),
    ?assertNotEqual(Before, weft_pins:version()),
    Pid ! stop,
    until(fun() -> weft_pins:classes() =:= #{} end),
    ?assertEqual({error, noproc}, weft_pins:pin(Pid, bulk)),
    ok = weft_pins:pin(self(), bulk),
    ok = weft_pins:unpin(self()),
    ?assertEqual(default, weft_pins:class(self())).

unknown_channels_are_named() ->
    ?assertEqual({error, {unknown_channel, fast, [bulk, control, default, gossip]}},
                 weft_pins:pin(self(), fast)).

%% The configuration is checked at the start, but can be changed later.
bad_channels_are_said() ->
    ok = application:set_env(weft, channels, []),
    ?assertEqual({error, {bad_channels, "weft: channels is [], it must be a map from names to maps "
                          "of options"}},
                 weft_pins:pin(self(), bulk)),
    ?assertEqual(ok, weft_pins:unpin(self())).

outlive_their_server() ->
    Pinned = spawn(fun() -> receive stop -> ok end end),
    ok = weft_pins:pin(Pinned, bulk),
    exit(whereis(weft_pins), kill),
    until(fun() -> whereis(weft_pins) =:= undefined end),
    _ = start_server(),
    ?assertEqual(bulk, weft_pins:class(Pinned)),
    Pinned ! stop,
    until(fun() -> weft_pins:classes() =:= #{} end).

%% A name that is registered later, and again by another process.
names_are_pinned_by_rules() ->
    [begin
         Pid = spawn(fun() -> receive stop -> ok end end),
         true = register(weft_pins_tests_name, Pid),
         until(fun() -> weft_pins:class(Pid) =:= bulk end),
         Pid ! stop,
         until(fun() -> weft_pins:classes() =:= #{} end)
     end || _ <- [1, 2]].

until(Condition) ->
    weft_test_nodes:until(Condition).
