%% SPDX-License-Identifier: Apache-2.0
%% What a host is asked about groups, and what becomes of its answers. The host is this module.
-module(weft_deploy_groups_tests).

-include_lib("eunit/include/eunit.hrl").

-export([run/3, put/3]).

%% A node that is not what the file says is in the groups that it was made with.
a_node_belongs_to_the_groups_that_it_was_made_with_test() ->
    ?assertEqual([{"web1@h", "busy"}], followed({ok, 0, <<"weft\tweb1@h\tbad\t0\tbusy\n">>})),
    #{groups := Groups, changed := Changed} = request(),
    ?assertEqual([{a, ['web1@h', 'gate1@h']}, {b, ['gate1@h']}], Groups),
    ?assertEqual(['gone1@h'], Changed).

what_goes_wrong_is_told_test() ->
    ?assertEqual([], followed({ok, 0, <<"weft\tweb1@h\tok\t0\t\n">>})),
    ?assertEqual([{"h", "groups: no route"}], followed({error, "no route"})),
    _ = [request(), request()].

nobody_is_asked_if_nobody_has_changed_test() ->
    ?assertEqual([], weft_deploy_groups:follow([], session({error, "asked"}))).

followed(Answer) -> weft_deploy_groups:follow(["gone1@h"], session(Answer)).

session(Answer) ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop}, {provider, {ssh, #{keys => "k"}}}, {dir, "/srv"},
                    {hosts, [{"h", #{cores => 1}}]},
                    {family, web, #{groups => [a]}}, {family, gate, #{groups => [a]}}]),
    Old = #{up => true, left => false, os_pid => 1, id => "old", previous => none},
    #{spec => Spec, dir => "/srv", erl => "erl", versions => #{web => "w1", gate => "g1"},
      state => #{scaled => #{}, bad => [], placed => #{}},
      hosts => #{"h" => {ok, {?MODULE, {self(), Answer}}}},
      seen => #{"h" => {ok, #{cores => 1, releases => [], closed => [],
                              nodes => #{"web1@h" => Old, "gate1@h" => Old}}}}}.

put({Test, _Answer}, _File, Content) -> Test ! {put, Content}, ok.

run({_Test, Answer}, Script, _TimeoutMs) ->
    case binary:match(Script, <<"/sys.config">>) of
        nomatch -> Answer;
        _ -> {ok, 0, <<"%% coding: utf-8\n[{weft, [{topology, {groups, #{",
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
