%% SPDX-License-Identifier: Apache-2.0
%% @doc An upgrade of gateways while people talk: twelve nodes in two groups that four gateways
%% join. The Instant Messenger runs on the eight others, and so does a load of numbered messages
%% between each node of the one group and one of the other. The gateways are upgraded one by one.
%%
%% With FULL=1; the usual form is a case of weft_deploy_SUITE, with four nodes and numbers only.
-module(weft_deploy_im_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([nobody_who_stays_loses_anything/1]).

-define(TALK_MS, 90000).
-define(CALL_MS, 300000).
-define(FRONT, ['front1@127.0.0.1', 'front2@127.0.0.1', 'front3@127.0.0.1', 'front4@127.0.0.1']).
-define(BACK, ['back1@127.0.0.1', 'back2@127.0.0.1', 'back3@127.0.0.1', 'back4@127.0.0.1']).

suite() -> [{timetrap, {minutes, 20}}].

all() -> [nobody_who_stays_loses_anything].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Dir = ?config(priv_dir, Config),
    Code = filename:join([Dir, "load", "ebin"]),
    ok = filelib:ensure_path(Code),
    {ok, _} = file:copy(code:which(weft_deploy_load),
                        filename:join(Code, "weft_deploy_load.beam")),
    [{port, weft_test_nodes:free_port()}, {code, Code},
     {file, filename:join(Dir, "talk.deploy")}, {root, filename:join(Dir, "weft")} | Config].

end_per_suite(Config) ->
    _ = filelib:is_regular(?config(file, Config)) andalso run(down, #{purge => true}, Config),
    weft_test_nodes:end_suite(Config).

deployment(Gate, Config) ->
    Code = [filename:dirname(code:which(Module))
            || Module <- [weft_im, weft_bench_program, weft_report_record]],
    Common = #{paths => [?config(code, Config) | Code], count => 4,
               flags => ["+S", "1:1", "+sbwt", "none", "-run", "weft_deploy_load", "start"]},
    Terms = [{name, talk}, {epmd_port, ?config(port, Config)}, {healthy_s, 120}, {stable_s, 0.2},
             {family, front, Common#{groups => [front]}},
             {family, gate, maps:merge(Common#{groups => [front, back]}, Gate)},
             {family, back, Common#{groups => [back]}}],
    ok = file:write_file(?config(file, Config), [io_lib:format("~p.~n", [T]) || T <- Terms]).

run(Function, More, Config) ->
    Result = apply(weft_deploy, Function,
                   [?config(file, Config),
                    More#{root => ?config(root, Config),
                          progress => fun(Line) -> ct:log("~ts", [Line]) end}]),
    ct:log("~s~n~tp", [Function, Result]),
    Result.

nobody_who_stays_loses_anything(Config) ->
    deployment(#{}, Config),
    {ok, #{started := Started}, _} = run(apply, #{}, Config),
    ?assertEqual(12, length(Started)),
    {ok, Cookie} = file:read_file(filename:join(?config(root, Config), "deploy/talk/cookie")),
    Place = (?config(place, Config))#{epmd := #{port => ?config(port, Config)}},
    Control = weft_test_nodes:start(control, #{carrier => plain, long => "127.0.0.1",
                                               cookie => binary_to_list(Cookie),
                                               args => ["-hidden", "-connect_all", "false"]},
                                    Place),
    Call = fun(Node, M, F, A) ->
               weft_test_nodes:call(Control, erpc, call, [Node, M, F, A, ?CALL_MS], ?CALL_MS)
           end,
    try upgraded_while_people_talk(Call, Config) after weft_test_nodes:kill(Control) end.

upgraded_while_people_talk(Call, Config) ->
    Pairs = lists:zip(?FRONT, ?BACK) ++ lists:zip(?BACK, ?FRONT),
    [ok = Call(From, weft_deploy_load, send_to, [To]) || {From, To} <- Pairs],
    Self = self(),
    Talk = spawn_link(fun() -> Self ! {self(), talk(Call)} end),
    deployment(#{env => [{kernel, [{talk_version, 2}]}]}, Config),
    {Us, {ok, #{upgraded := Upgraded}, _}} = timer:tc(fun() -> run(upgrade, #{}, Config) end),
    ?assertEqual(4, length(Upgraded)),
    ?assert(Us < ?TALK_MS * 1000), % people talked all the time
    Result = receive {Talk, Of} -> Of end,
    ct:pal("~.1f s, ~tp", [Us / 1.0e6, Result]),
    {ok, #{said := Said, heard := Heard, given_up := GivenUp, logged_out := Out,
           lost_messages := Lost}} = Result,
    ?assertEqual({Said, 0, [], 0}, {Heard, GivenUp, Out, Lost}),
    ?assert(Said > 1000),
    Sent = [{To, Call(From, weft_deploy_load, stop, [])} || {From, To} <- Pairs],
    [weft_test_nodes:until(fun() ->
                                   Call(To, weft_deploy_load, received, []) =:= {Count, []}
                           end) || {To, Count} <- Sent],
    ct:pal("~b numbers", [lists:sum([Count || {_, Count} <- Sent])]),
    Downs = lists:append([Call(Node, weft_deploy_load, downs, []) || {Node, _} <- Pairs]),
    ?assertEqual([], [Node || Node <- Downs, lists:member(Node, ?FRONT ++ ?BACK)]).

%% Nodes of both groups in turn, so that most of what is said goes over a gateway.
talk(Call) ->
    Nodes = lists:append([[Front, Back] || {Front, Back} <- lists:zip(?FRONT, ?BACK)]),
    Options = #{routers => 2, servers => 2, client_nodes => 1, names => {weft, cluster},
                is_grouped => false, count => 24, scale => 0.01, warm_up_ms => 100,
                run_ms => ?TALK_MS},
    Call(hd(Nodes), weft_bench_program, run, [weft_im, Options, Nodes, 2 * ?TALK_MS]).
