%% SPDX-License-Identifier: Apache-2.0
%% @doc How the end of a program is told, for better or worse. The program is this module.
-module(weft_bench_program_tests).
-behaviour(weft_bench_program).

-include_lib("eunit/include/eunit.hrl").

-export([plan/2, start/1, run/1, check/1, stop/1]).

plan(#{plan := bad}, _Nodes) -> {error, "no plan"};
plan(Options, Nodes) -> {ok, Options#{nodes => Nodes}}.

start(#{tell := Pid} = Plan) ->
    Pid ! {helper, spawn_link(fun() -> receive never -> ok end end)},
    Plan;
start(Plan) -> Plan.

run(#{run := hangs}) -> receive never -> ok end;
run(#{run := loses}) -> weft_bench_program:lost(self(), noconnection);
run(#{run := crashes}) -> error(crash);
run(State) -> State#{ran => true}.

check(#{check := wrong}) -> {error, "wrong"};
check(#{check := timed}) -> {ok, #{duration_s => 0.5}};
check(#{ran := true, nodes := Nodes}) -> {ok, #{nodes => Nodes}}.

stop(_State) -> ok.

result(Options) -> weft_bench_program:run(?MODULE, Options, [node()], 10000).

a_result_has_its_duration_test() ->
    {ok, #{nodes := [Node], duration_s := Duration}} = result(#{}),
    ?assertEqual(node(), Node),
    ?assert(Duration >= 0 andalso Duration < 10),
    ?assertEqual({ok, #{duration_s => 0.5}}, result(#{check => timed})).

what_goes_wrong_is_told_test() ->
    ?assertEqual({error, "no plan"}, result(#{plan => bad})),
    ?assertEqual({error, "wrong"}, result(#{check => wrong})),
    {error, Crash} = result(#{run => crashes}),
    ?assertNotEqual(nomatch, string:find(Crash, "crash")),
    ?assertEqual({error, lists:concat(["a process on ", node(), " was lost: noconnection"])},
                 result(#{run => loses})).

a_program_that_hangs_is_ended_with_its_processes_test() ->
    ?assertEqual({error, "not done after 2000 ms"},
                 weft_bench_program:run(?MODULE, #{run => hangs, tell => self()}, [node()], 2000)),
    Helper = receive {helper, Pid} -> Pid end,
    Monitor = monitor(process, Helper),
    receive {'DOWN', Monitor, process, Helper, _} -> ok after 10000 -> error(still_there) end.
