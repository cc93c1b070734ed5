%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_model_core_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_model_core, [model/2]).

-define(META, #{node => a@h, at_ms => 7, source => live}).

a_cluster_test() ->
    ?assertEqual(
       #{<<"at_ms">> => 7, <<"node">> => <<"a@h">>, <<"source">> => <<"live">>,
         <<"nodes">> =>
             #{<<"a@h">> => #{<<"state">> => <<"up">>, <<"groups">> => [<<"g">>],
                              <<"uptime_ms">> => 100, <<"memory_bytes">> => 4,
                              <<"processes">> => 3, <<"run_queue">> => 2, <<"wake_up_us">> => 1,
                              <<"relayed_bytes">> => 5, <<"relayed_circuits">> => 6,
                              <<"unreachable">> => [<<"c@h">>], <<"bytes_out">> => 30,
                              <<"bytes_in">> => 3, <<"queued_bytes">> => 15, <<"suspended">> => 1,
                              <<"at_ms">> => 6, <<"period_ms">> => 1000},
               <<"b@h">> => #{<<"state">> => <<"silent">>,
                              <<"groups">> => [<<"g">>, <<"{h,1}">>]}},
         <<"links">> =>
             #{<<"a@h b@h">> => #{<<"state">> => <<"up">>, <<"rtt_us">> => 9,
                                  <<"queued_bytes">> => 8, <<"lanes">> => [1, 2],
                                  <<"ups">> => 1, <<"last_error">> => <<"none">>}},
         <<"traffic">> =>
             #{<<"a@h b@h">> => #{<<"bytes_out">> => 10, <<"bytes_in">> => 1,
                                  <<"queued_bytes">> => 3, <<"suspended">> => 0,
                                  <<"resumes">> => 0, <<"reroutes">> => 3,
                                  <<"via">> => <<"b@h">>,
                                  <<"state">> => <<"up">>},
               %% A way is looked for.
               <<"a@h c@h">> => #{<<"bytes_out">> => 20, <<"bytes_in">> => 2,
                                  <<"queued_bytes">> => 4, <<"suspended">> => 1,
                                  <<"resumes">> => 2, <<"reroutes">> => 0,
                                  <<"state">> => <<"resuming">>}},
         <<"groups">> => #{<<"g">> => #{<<"members">> => [<<"a@h">>, <<"b@h">>],
                                        <<"gateways">> => [<<"b@h">>]},
                           <<"{h,1}">> => #{<<"members">> => [<<"b@h">>, <<"c@h">>],
                                            <<"gateways">> => [<<"b@h">>]}},
         <<"alarms">> => #{<<"busy a@h">> => #{<<"kind">> => <<"busy">>, <<"node">> => <<"a@h">>,
                                               <<"about">> => <<"a@h">>, <<"at_ms">> => 5,
                                               <<"severity">> => <<"note">>,
                                               <<"text">> => <<"late">>}},
         <<"agents">> => #{<<"group g">> => <<"a@h">>, <<"group {h,1}">> => <<"none">>}},
       model(seen(), ?META)).

%% Null means gone in a merge patch.
nothing_is_null_test() ->
    ?assertEqual(nomatch, binary:match(iolist_to_binary(weft_json:encode(model(seen(), ?META))),
                                       <<"null">>)).

an_acknowledged_alarm_has_the_comment_test() ->
    #{alarms := [Alarm]} = Seen = seen(),
    Said = Alarm#{acknowledged := #{comment => <<"I look">>, at_ms => 6}, id := {busy, a@h, g}},
    #{<<"alarms">> := #{<<"busy a@h g">> := #{<<"acknowledged">> := Comment}}} =
        model(Seen#{alarms := [Said]}, ?META),
    ?assertEqual(<<"I look">>, Comment).

what_is_in_it_can_be_found_test() ->
    ?assertEqual(#{<<"a@h">> => a@h, <<"b@h">> => b@h}, weft_dashboard_model_core:nodes(seen())),
    ?assertEqual(#{<<"busy a@h">> => {busy, a@h, a@h}},
                 weft_dashboard_model_core:alarm_ids(seen())).

seen() ->
    Peer = #{node => b@h, via => b@h, state => up, bytes_out => 10, bytes_in => 1,
             queued_bytes => 3, suspended => 0, resumes => 0, reroutes => 3},
    Lost = #{node => c@h, via => undefined, state => resuming, bytes_out => 20, bytes_in => 2,
             queued_bytes => 4, suspended => 1, resumes => 2},
    Link = #{node => b@h, state => up, ups => 1, rtt_us => 9, queued_bytes => 8, lanes => [1, 2],
             last_error => "none"},
    Machine = #{wake_up_us => 1, run_queue => 2, processes => 3, memory_bytes => 4},
    #{nodes => #{a@h => #{node => a@h, at_ms => 6, period_ms => 1000, uptime_ms => 100,
                          groups => [g], peers => [Peer, Lost], links => [Link],
                          relayed_bytes => 5, relayed_circuits => 6, unreachable => [c@h],
                          machine => Machine},
                 b@h => silent},
      agents => #{{group, g} => a@h, {group, {h, 1}} => none},
      alarms => [#{id => {busy, a@h, a@h}, severity => note, text => <<"late">>, raised_ms => 3,
                   at_ms => 5, acknowledged => no}],
      groups => #{g => [a@h, b@h], {h, 1} => [b@h, c@h]}}.
