%% SPDX-License-Identifier: Apache-2.0
-module(weft_chaos_keeper_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PEER, 'peer@host').

keeper_test_() ->
    [{Name, {timeout, 60, fun() -> with_faults(Test) end}}
     || {Name, Test} <- [{"kinds", fun a_delay_that_ends_leaves_the_cut/0},
                         {"one kind", fun the_last_to_end_ends_it/0},
                         {"peers at once", fun a_partition_ends_with_all_its_cuts/0},
                         {"healing", fun healed_before_its_time/0},
                         {"switched off", fun what_is_there_ends_when_faults_are_off/0},
                         {"killed", fun a_keeper_that_is_killed_leaves_no_fault/0},
                         {"strays", fun a_stray_message_ends_no_keeper/0},
                         {"an application", fun belongs_to_no_application/0}]].

with_faults(Test) ->
    ok = application:set_env(weft, faults, true),
    ok = application:set_env(weft_chaos, enabled, true),
    try Test()
    after
        ok = weft_chaos_agent:heal_all(),
        ok = application:unset_env(weft_chaos, enabled),
        ok = application:unset_env(weft, faults)
    end.

do(Verb) -> {ok, done} = weft_chaos_agent:do(Verb).

a_delay_that_ends_leaves_the_cut() ->
    do({cut, node(), ?PEER, 60000}),
    do({loss, node(), ?PEER, 5, 60000}),
    do({delay, node(), ?PEER, 1, 2, 1000}),
    ?assertEqual({1, 2, 5}, weft_fault:lateness(?PEER)),
    weft_test_nodes:until(fun() -> weft_fault:lateness(?PEER) =:= {0, 0, 5} end),
    ?assertEqual({[?PEER], [{cut, ?PEER}, {loss, ?PEER}]},
                 {weft_fault:cuts(), weft_chaos_agent:faults()}).

%% Also if it began first; and then it is as it was before the other.
the_last_to_end_ends_it() ->
    do({cut, node(), ?PEER, 4000}),
    do({cut, ?PEER, node(), 20}),
    do({delay, node(), ?PEER, 1, 2, 60000}),
    do({delay, node(), ?PEER, 3, 4, 1000}),
    ?assertEqual({3, 4, 0}, weft_fault:lateness(?PEER)),
    weft_test_nodes:until(fun() -> weft_fault:lateness(?PEER) =:= {1, 2, 0} end),
    ?assertEqual([?PEER], weft_fault:cuts()),
    weft_test_nodes:until(fun() -> weft_fault:cuts() =:= [] end),
    ?assertEqual({1, 2, 0}, weft_fault:lateness(?PEER)).

a_partition_ends_with_all_its_cuts() ->
    Peers = [list_to_atom("peer" ++ integer_to_list(N) ++ "@host") || N <- lists:seq(1, 30)],
    Running = [spawn_monitor(fun() ->
                                     do({cut, node(), Peer, 3000}),
                                     do({cut, node(), Peer, 20})
                             end)
               || Peer <- Peers],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
     || {Pid, Monitor} <- Running],
    ?assertEqual(lists:sort(Peers), weft_fault:cuts()),
    weft_test_nodes:until(fun() -> weft_fault:cuts() =:= [] end),
    ?assertEqual([], weft_chaos_agent:faults()).

%% What was not asked of it stays.
a_keeper_that_is_killed_leaves_no_fault() ->
    do({cut, node(), ?PEER, 60000}),
    do({delay, node(), ?PEER, 1, 2, 60000}),
    ok = weft_fault:cut(other@host),
    true = exit(whereis(weft_chaos_keeper), kill),
    weft_test_nodes:until(fun() -> {[other@host], none} =:= {weft_fault:cuts(),
                                                             weft_fault:lateness(?PEER)}
                          end),
    ?assertEqual([], weft_chaos_agent:faults()).

a_stray_message_ends_no_keeper() ->
    do({cut, node(), ?PEER, 60000}),
    weft_chaos_keeper ! stray,
    ok = gen_server:cast(weft_chaos_keeper, stray),
    ?assertEqual([{cut, ?PEER}], weft_chaos_agent:faults()).

%% A fault that comes later is not ended by the time of the one that was healed.
healed_before_its_time() ->
    do({cut_one_way, node(), ?PEER, 1000}),
    do({cut, node(), 'other@host', 60000}),
    ?assertEqual(stopped, weft_fault:lateness(?PEER)),
    do({heal, node(), ?PEER}),
    ?assertEqual({none, ['other@host']}, {weft_fault:lateness(?PEER), weft_fault:cuts()}),
    do({cut_one_way, node(), ?PEER, 60000}),
    do({delay, node(), ?PEER, 1, 1, 2000}),
    weft_test_nodes:until(fun() -> weft_chaos_agent:faults()
                                       =:= [{cut, 'other@host'}, {cut_one_way, ?PEER}]
                          end),
    ?assertEqual(stopped, weft_fault:lateness(?PEER)),
    ok = weft_chaos_agent:heal_all(),
    ?assertEqual({[], []}, {weft_fault:cuts(), weft_chaos_agent:faults()}).

%% By its time, by a step of a schedule, and when its keeper is killed.
what_is_there_ends_when_faults_are_off() ->
    do({cut, node(), ?PEER, 100}),
    do({cut, node(), 'b@host', 60000}),
    do({delay, node(), 'c@host', 1, 2, 60000}),
    ok = application:set_env(weft, faults, false),
    ok = application:set_env(weft_chaos, enabled, false),
    weft_test_nodes:until(fun() -> weft_fault:cuts() =:= ['b@host'] end),
    do({heal, node(), 'b@host'}),
    ?assertEqual({[], {1, 2, 0}}, {weft_fault:cuts(), weft_fault:lateness('c@host')}),
    true = exit(whereis(weft_chaos_keeper), kill),
    weft_test_nodes:until(fun() -> weft_fault:lateness('c@host') =:= none end).

%% Whoever asks for a fault may be of an application whose processes the monkey kills.
belongs_to_no_application() ->
    do({cut, node(), ?PEER, 60000}),
    ?assertEqual({group_leader, whereis(init)},
                 process_info(whereis(weft_chaos_keeper), group_leader)).
