%% SPDX-License-Identifier: Apache-2.0
%% @doc Which members a node does not reach, as it says on its page, and what it says of processes.
-module(weft_dashboard_node_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STATUS, #{node => a@h, members => [a@h, b@h, c@h, d@h, e@h],
                  links => [#{node => b@h, state => up}, #{node => e@h, state => down}],
                  sessions => [#{node => c@h, state => up}], routes => #{d@h => #{}}}).

who_has_no_link_no_session_and_no_route_is_unreachable_test() ->
    ?assertEqual([e@h], weft_dashboard_node:unreachable(?STATUS)).

of_whom_a_process_does_not_answer_nothing_is_said_test() ->
    ?assertEqual([], weft_dashboard_node:unreachable(
                       (?STATUS)#{unanswered => [#{what => session, node => e@h, pid => self()},
                                                 #{what => names}]})).

%% Its dictionary would be copied each time that somebody looks.
a_large_dictionary_is_not_looked_at_test() ->
    {Large, Small} = {with_dictionary(lists:seq(1, 1000000)), with_dictionary([])},
    {Looker, Ref} = spawn_opt(fun() ->
                                  exit([weft_dashboard_node:process(Pid, 0, #{})
                                        || Pid <- [Large, Small]])
                              end, [monitor, {max_heap_size, #{size => 500000, kill => true,
                                                               error_logger => false}}]),
    receive
        {'DOWN', Ref, process, Looker, Rows} ->
            ?assertMatch([[#{name := <<"erlang:apply/2">>, memory_bytes := Bytes}],
                          [#{name := <<"m:f/3">>}]] when Bytes > 16000000, Rows)
    end,
    [exit(Pid, kill) || Pid <- [Large, Small]].

with_dictionary(Term) ->
    Test = self(),
    Pid = spawn(fun() ->
                    put('$initial_call', {m, f, 3}),
                    put(?MODULE, Term),
                    Test ! {has_put, self()},
                    receive after infinity -> ok end
                end),
    receive {has_put, Pid} -> Pid end.

%% It is no member any more.
who_has_failed_is_unreachable_test() ->
    ?assertEqual([e@h, f@h], weft_dashboard_node:unreachable((?STATUS)#{failed => [f@h]})).
