%% SPDX-License-Identifier: Apache-2.0
%% @doc A process starts in time, or not at all.
-module(weft_place_start_tests).

-include_lib("eunit/include/eunit.hrl").

-export([begun/1]).

a_process_starts_test() ->
    {ok, Pid} = weft_place_start:start(node(), {?MODULE, begun, [self()]}, 20000),
    receive {begun, Pid} -> ok end,
    ?assert(is_process_alive(Pid)),
    exit(Pid, kill).

a_node_that_is_not_there_is_an_error_test() ->
    ?assertEqual({error, noconnection},
                 weft_place_start:start('nobody@nowhere', {?MODULE, begun, [self()]}, 20000)).

%% The answer of the node comes, in effect, after the time.
one_that_starts_too_late_is_killed_test() ->
    {Attempt, Alias} = attempt(),
    Pid = receive {Alias, {ok, Started}} -> Started end,
    Monitor = monitor(process, Pid),
    Attempt ! too_late,
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(killed, Reason) end.

one_that_is_taken_stays_test() ->
    {Attempt, Alias} = attempt(),
    Pid = receive {Alias, {ok, Started}} -> Started end,
    Monitor = monitor(process, Attempt),
    Attempt ! taken,
    receive {'DOWN', Monitor, process, Attempt, _} -> ok end,
    ?assert(is_process_alive(Pid)),
    exit(Pid, kill).

attempt() ->
    Alias = alias(),
    Start = {?MODULE, begun, [spawn(fun() -> ok end)]},
    {spawn(weft_place_start, attempt, [{self(), Alias}, node(), Start]), Alias}.

%% What is started.
begun(Caller) ->
    Caller ! {begun, self()},
    receive after infinity -> ok end.
