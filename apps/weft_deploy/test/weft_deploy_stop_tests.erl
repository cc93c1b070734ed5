%% SPDX-License-Identifier: Apache-2.0
%% How long nodes have to end, and what is said of those that are killed. The host is this module,
%% which answers each script in the same way.
-module(weft_deploy_stop_tests).

-include_lib("eunit/include/eunit.hrl").

-export([run/3, put/3]).

%% Many that end at once have a second more for each eight of them.
a_node_has_the_time_to_end_that_the_file_says_test() ->
    {["web1@h"], [], []} = weft_deploy_apply:stop([{"h", "web1@h"}], session({stop_s, 7}, <<>>)),
    ?assertMatch({match, _}, re:run(script(), "\nawait 70\n")),
    Many = [{"h", lists:concat(["web", Number, "@h"])} || Number <- lists:seq(1, 16)],
    {[_ | _], [], []} = weft_deploy_apply:stop(Many, session({stop_s, 7}, <<>>)),
    ?assertMatch({match, _}, re:run(script(), "\nawait 90\n")).

a_node_that_is_killed_is_told_test() ->
    Stop = fun(Output) ->
               weft_deploy_apply:stop([{"h", "web1@h"}, {"h", "web2@h"}],
                                      session({stop_s, 1}, Output))
           end,
    {Stopped, Killed, []} = Stop(<<"killed\tweb1@h\n">>),
    ?assertEqual({["web1@h", "web2@h"], ["web1@h"]}, {lists:sort(Stopped), Killed}),
    ?assertEqual([true, false], [string:find(Line, "was killed") =/= nomatch || Line <- told()]),
    Outcome = #{started => [], stopped => Stopped, killed => Killed, failed => []},
    ?assertMatch({match, _}, re:run(weft_deploy_text:outcome(Outcome, []),
                                    "^web1@h: stopped by force: .*and was killed\n0 started, 2")),
    ?assertMatch(#{killed := [<<"web1@h">>]}, weft_deploy_text:outcome_json(Outcome, [])),
    %% One that can not even be killed was not stopped.
    ?assertMatch({["web2@h"], [], [{"web1@h", _}]},
                 Stop(<<"killed\tweb1@h\nleft\tweb1@h\n">>)).

an_upgrade_tells_of_a_node_that_was_killed_test() ->
    Session = #{root := Root} =
        session({stop_s, 1}, <<"killed\tweb1@h\nweft\tweb1@h\tok\t1\t\n">>),
    [Node] = weft_deploy_session:desired(Session),
    Made = weft_deploy_upgrade:run(define, [Node], Session),
    ok = file:del_dir_r(Root),
    ?assertMatch(#{done := ["web1@h"], failed := none, killed := ["web1@h"]}, Made),
    ?assertMatch({match, _}, re:run(weft_deploy_text:upgrade(Made, [], {[], []}),
                                    "^web1@h: stopped by force: .*\n1 upgraded")),
    ?assertMatch(#{killed := [<<"web1@h">>]},
                 weft_deploy_text:upgrade_json(Made, [], {[], []})).

%% --- the host -----------------------------------------------------------------------------------

session(Setting, Output) ->
    _ = [script(), told()],
    Self = self(),
    {ok, #{name := Name} = Spec} =
        weft_deploy_spec:new([{name, shop}, {provider, {ssh, #{keys => "k"}}}, {dir, "/srv"},
                              {topology, none}, {hosts, [{"h", #{cores => 1}}]},
                              {family, web, #{}}, Setting]),
    Old = #{up => true, left => false, os_pid => 1, id => "old-1", previous => none},
    #{spec => Spec, root => filename:join("/tmp", Name ++ "-weft_deploy_stop-" ++ os:getpid()),
      dir => "/srv", erl => "erl", own_code => [], versions => #{web => "w1"},
      cookie => <<"cookie">>, started_ms => 0,
      progress => fun(Line) -> Self ! {progress, Line} end,
      state => #{scaled => #{}, bad => [], placed => #{}},
      hosts => #{"h" => {ok, {?MODULE, {Self, Output}}}},
      seen => #{"h" => {ok, #{cores => 1, releases => ["w1"], closed => [],
                              nodes => #{"web1@h" => Old}}}}}.

put(_Host, _File, _Content) -> ok.

run({Test, Output}, Script, _TimeoutMs) ->
    Test ! {script, Script},
    {ok, 0, Output}.

%% The last one.
script() ->
    receive {script, Script} ->
        case script() of none -> Script; Later -> Later end
    after 0 -> none
    end.

told() -> receive {progress, Line} -> [Line | told()] after 0 -> [] end.
