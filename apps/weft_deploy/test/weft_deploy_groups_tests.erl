%% SPDX-License-Identifier: Apache-2.0
%% What a host is asked about groups, and what becomes of its answers. The host is this module.
-module(weft_deploy_groups_tests).

-include_lib("eunit/include/eunit.hrl").

-export([run/3, put/3]).

%% A node that is not what the file says is in the groups that it was made with.
a_node_belongs_to_the_groups_that_it_was_made_with_test() ->
    {Failed, _} = followed({ok, 0, <<"weft\tweb1@h\tbad\t0\tbusy\n">>}),
    ?assertEqual([{"web1@h", "busy"}], Failed),
    #{groups := Groups, changed := Changed} = request(),
    ?assertEqual([{a, ['web1@h', 'gate1@h', 'late1@i']}, {b, ['gate1@h']}], Groups),
    ?assertEqual(['gone1@h'], Changed).

what_goes_wrong_is_told_test() ->
    ?assertEqual({[], []}, followed(well())),
    ?assertEqual({[{"h", "groups: no route"}], ["gone1@h"]}, followed({error, "no route"})),
    _ = [request(), request()].

well() -> {ok, 0, <<"weft\tweb1@h\tok\t0\t\n">>}.

nobody_is_asked_if_nobody_has_changed_test() ->
    ?assertEqual({[], []}, weft_deploy_groups:follow([], session({error, "asked"}))).

%% By whatever changes the deployment next.
what_failed_is_tried_again_test() ->
    Plan = maps:from_list([{Kind, []} || Kind <- [start, restart, upload, stop, forget, lost,
                                                  reopen, recheck]]),
    Applied = fun(Answer) ->
                  #{state := State} = Session = session(Answer),
                  Remembered = Session#{state := State#{ungrouped => ["gone1@h"]}},
                  Outcome = weft_deploy_apply:run(Plan, Remembered),
                  ?assertMatch(#{changed := ['gone1@h']}, request()),
                  maps:with([failed, ungrouped], Outcome)
              end,
    ?assertEqual(#{failed => [{"h", "groups: no route"}], ungrouped => ["gone1@h"]},
                 Applied({error, "no route"})),
    ?assertEqual(#{failed => [], ungrouped => []}, Applied(well())).

what_is_no_configuration_says_no_groups_test() ->
    [?assertEqual(error, weft_deploy_groups:configured("web1@h", Output))
     || Output <- [<<"configuration\t\n">>, <<"it's odd">>,
                   <<"configuration\t\n[{weft, []}].\n">>]].

followed(Answer) -> weft_deploy_groups:follow(["gone1@h"], session(Answer)).

session(Answer) ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop}, {provider, {ssh, #{keys => "k"}}}, {dir, "/srv"},
                    {hosts, [{"h", #{cores => 1}}, {"i", #{cores => 1}}]}
                    | [{family, Name, #{groups => [a], hosts => [Host]}}
                       || {Name, Host} <- [{web, "h"}, {gate, "h"}, {late, "i"}]]]),
    Old = #{up => true, left => false, os_pid => 1, id => "old", previous => none},
    Seen = #{cores => 1, releases => [], closed => [], nodes => #{}},
    #{spec => Spec, dir => "/srv", erl => "erl", own_code => [],
      versions => #{web => "w1", gate => "g1", late => "l1"},
      state => #{scaled => #{}, bad => [], placed => #{}},
      %% One of them has no node yet.
      hosts => #{"h" => {ok, {?MODULE, {self(), Answer}}},
                 "i" => {ok, {?MODULE, {self(), {error, "asked"}}}}},
      seen => #{"h" => {ok, Seen#{nodes := #{"web1@h" => Old, "gate1@h" => Old}}},
                "i" => {ok, Seen}}}.

put({Test, _Answer}, _File, Content) -> Test ! {put, Content}, ok.

run({_Test, Answer}, Script, _TimeoutMs) ->
    case binary:match(Script, <<"/sys.config">>) of
        nomatch -> Answer;
        _ -> {ok, 0, <<"This is the shop's host.\nconfiguration\t\n",
                       "%% coding: utf-8\n[{weft, [{topology, {groups, #{",
                       "a => ['web1@h', 'gate1@h'], b => ['gate1@h']}}}]}].\n">>}
    end.

%% The code of who asks goes before it.
request() ->
    receive {put, _Code} -> ok end,
    receive {put, Text} ->
        {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
        {ok, Request} = erl_parse:parse_term(Tokens),
        Request
    end.
