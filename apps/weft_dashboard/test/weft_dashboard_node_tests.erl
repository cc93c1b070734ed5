%% SPDX-License-Identifier: Apache-2.0
%% @doc Which members a node does not reach, as it says on its page.
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

%% It is no member any more.
who_has_failed_is_unreachable_test() ->
    ?assertEqual([e@h, f@h], weft_dashboard_node:unreachable((?STATUS)#{failed => [f@h]})).
