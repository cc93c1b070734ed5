%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes in groups of ten, two of each gateways between them, are upgraded by one command while
%% people talk. Eight nodes stay as they are, in up to four groups: the Instant Messenger runs on
%% them, one run after the other, and so does a load of numbered messages from each to the next one,
%% which is in another group. All others are upgraded, one by one.
%%
%% With FULL=1; the usual form is a case of weft_deploy_SUITE, with four nodes and numbers only.
%% WEFT_DEPLOY_TALKING has other numbers of nodes than 20. What was measured is in talking.csv of
%% the directory of the suite, with environment.csv.
-module(weft_deploy_im_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([nobody_who_stays_loses_anything/1]).

-define(GROUP, 10).
-define(GATES, 2).
-define(TALKERS, 8).
-define(TALKING_GROUPS_MAX, 4).
-define(CALL_MS, 300000).

suite() -> [{timetrap, {minutes, 40}}].

all() -> [nobody_who_stays_loses_anything].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Dir = ?config(priv_dir, Config),
    Here = weft_bench_environment:gather([{"flags_of_nodes",
                                           lists:append(lists:join(" ", flags()))}]),
    ok = weft_report_record:write_environment(Dir, Here),
    [{port, weft_test_nodes:free_port()}, {code, weft_deploy_talk:code(Dir)},
     {file, filename:join(Dir, "talk.deploy")}, {root, filename:join(Dir, "weft")} | Config].

end_per_suite(Config) ->
    _ = filelib:is_regular(?config(file, Config)) andalso run(down, #{purge => true}, Config),
    weft_test_nodes:end_suite(Config).

flags() -> ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none"].

%% --- the deployment ----------------------------------------------------------------------------

deployment(Count, Version, Config) ->
    Groups = Count div ?GROUP,
    New = #{flags => flags(), env => [{kernel, [{talk_version, Version}]}]},
    Families = [Family || Number <- lists:seq(1, Groups),
                          Family <- families(Number, talking(Number, Groups), New, Config)],
    Terms = [{name, talk}, {epmd_port, ?config(port, Config)}, {healthy_s, 120}, {stable_s, 0.2},
             {drain_s, 120} | Families],
    ok = file:write_file(?config(file, Config), [io_lib:format("~p.~n", [T]) || T <- Terms]).

families(Number, Talking, New, Config) ->
    Group = list_to_atom("g" ++ integer_to_list(Number)),
    [{family, named("talk-", Number),
      #{count => Talking, groups => [Group], paths => ?config(code, Config),
        flags => flags() ++ weft_deploy_talk:flags()}} || Talking > 0]
        ++ [{family, named("in-", Number),
             New#{count => ?GROUP - ?GATES - Talking, groups => [Group]}},
            {family, named("gate-", Number), New#{count => ?GATES, groups => [Group, joined]}}].

named(Prefix, Number) -> list_to_atom(lists:concat([Prefix, Number, "-"])).

%% So many of a group stay as they are.
talking(Number, Groups) ->
    Talking = min(Groups, ?TALKING_GROUPS_MAX),
    case Number =< Talking of
        true -> ?TALKERS div Talking;
        false -> 0
    end.

%% The next one is in another group.
talkers(Count) ->
    Groups = Count div ?GROUP,
    [list_to_atom(lists:concat(["talk-", Group, "-", Number, "@127.0.0.1"]))
     || Number <- lists:seq(1, talking(1, Groups)),
        Group <- lists:seq(1, min(Groups, ?TALKING_GROUPS_MAX))].

run(Function, Config) -> run(Function, #{}, Config).

run(Function, More, Config) ->
    Result = apply(weft_deploy, Function,
                   [?config(file, Config),
                    More#{root => ?config(root, Config),
                          progress => fun(Line) -> ct:log("~ts", [Line]) end}]),
    ct:log("~s~n~tp", [Function, Result]),
    Result.

%% --- cases -------------------------------------------------------------------------------------

nobody_who_stays_loses_anything(Config) ->
    [ok = upgraded(list_to_integer(Count), Config)
     || Count <- string:lexemes(os:getenv("WEFT_DEPLOY_TALKING", "20"), " ")],
    ok.

upgraded(Count, Config) ->
    deployment(Count, 1, Config),
    {UpS, {ok, #{started := Started}, _}} = timed(fun() -> run(apply, Config) end),
    ?assertEqual(Count, length(Started)),
    nothing_changes(Config),
    {ok, Cookie} = file:read_file(filename:join(?config(root, Config), "deploy/talk/cookie")),
    Place = (?config(place, Config))#{epmd := #{port => ?config(port, Config)}},
    Control = weft_test_nodes:start(control, #{carrier => stock, long => "127.0.0.1",
                                               cookie => binary_to_list(Cookie),
                                               args => ["-hidden", "-connect_all", "false"]},
                                    Place),
    Call = fun(Node, M, F, A) ->
               weft_test_nodes:call(Control, erpc, call, [Node, M, F, A, ?CALL_MS], ?CALL_MS)
           end,
    {UpgradeS, Said, Numbers} = try upgraded_while_people_talk(Count, Call, Config)
                                after weft_test_nodes:kill(Control)
                                end,
    nothing_changes(Config),
    {DownS, {ok, #{stopped := Stopped}, _}} = timed(fun() -> run(down, Config) end),
    ?assertEqual(Count, length(Stopped)),
    ?assertEqual([], of_the_deployment(Config)),
    Row = io_lib:format("~b,~.2f,~.2f,~.2f,~b,~b~n",
                        [Count, UpS, UpgradeS, DownS, Said, Numbers]),
    ct:pal("nodes,up_s,upgrade_s,down_s,messages,numbers~n~ts", [Row]),
    File = filename:join(?config(priv_dir, Config), "talking.csv"),
    _ = filelib:is_file(File)
        orelse file:write_file(File, "nodes,up_s,upgrade_s,down_s,messages,numbers\n"),
    file:write_file(File, Row, [append]).

timed(Fun) ->
    {Us, Result} = timer:tc(Fun),
    {Us / 1.0e6, Result}.

nothing_changes(Config) ->
    ?assertMatch({ok, #{started := [], stopped := [], changed := [], failed := []}, _},
                 run(apply, Config)).

%% Command lines of what runs in its directory.
of_the_deployment(Config) ->
    Root = list_to_binary(?config(root, Config)),
    [Line || File <- filelib:wildcard("/proc/[0-9]*/cmdline"), {ok, Line} <- [file:read_file(File)],
             binary:match(Line, Root) =/= nomatch].

upgraded_while_people_talk(Count, Call, Config) ->
    deployment(Count, 2, Config),
    #{s := S, said := Said, numbers := Numbers} =
        weft_deploy_talk:during(talkers(Count), Call, fun() -> all_others(Count, Config) end),
    {S, Said, Numbers}.

all_others(Count, Config) ->
    {ok, #{upgraded := Upgraded}, _} = run(upgrade, Config),
    ?assertEqual(Count - ?TALKERS, length(Upgraded)),
    ok.
