%% SPDX-License-Identifier: Apache-2.0
%% @doc A deployment on this machine: two gateways between the node web1 and the node db1, which
%% have no link. Messages go from the one to the other all the time.
-module(weft_deploy_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_node_alone_is_upgraded/1, a_rollback_that_is_interrupted_goes_on/1,
         an_upgrade_that_is_interrupted_as_it_rolls_back_goes_on/1,
         what_an_interrupted_upgrade_has_not_seen_healthy_is_looked_at/1,
         a_node_that_has_left_is_started_again/1,
         nodes_may_need_those_of_a_later_part/1, what_needs_no_code_works_without_it/1,
         applied_twice_nothing_changes/1, a_node_that_failed_is_started_again/1,
         secrets_are_nowhere_in_clear/1,
         a_drain_that_is_interrupted_is_taken_back/1,
         a_closed_gateway_is_gone_around/1,
         a_closed_gateway_refuses_new_circuits/1,
         upgrade_loses_nothing/1,
         a_bad_version_is_rolled_back/1, a_node_that_can_not_be_asked_is_not_stopped/1,
         groups_shrink_and_grow_back/1, numbers_change/1,
         a_dead_node_that_is_taken_away_is_in_no_group/1,
         the_only_way_is_not_drained/1, down_leaves_nothing/1]).

-define(WEB, 'web1@127.0.0.1').
-define(DB, 'db1@127.0.0.1').
-define(SPARE, 'spare1@127.0.0.1').
-define(PASSWORD, "open sesame").

suite() -> [{timetrap, {minutes, 5}}, {userdata, in_sequence}].

%% Each case goes on with what the one before has left.
all() ->
    [a_node_alone_is_upgraded, a_rollback_that_is_interrupted_goes_on]
        ++ in_full([an_upgrade_that_is_interrupted_as_it_rolls_back_goes_on])
        ++ [what_an_interrupted_upgrade_has_not_seen_healthy_is_looked_at,
            a_node_that_has_left_is_started_again, what_needs_no_code_works_without_it]
        ++ in_full([nodes_may_need_those_of_a_later_part])
        ++ [applied_twice_nothing_changes, a_node_that_failed_is_started_again,
            a_closed_gateway_is_gone_around, a_closed_gateway_refuses_new_circuits,
            upgrade_loses_nothing, a_bad_version_is_rolled_back,
            a_node_that_can_not_be_asked_is_not_stopped]
        ++ in_full([groups_shrink_and_grow_back])
        ++ [numbers_change, a_dead_node_that_is_taken_away_is_in_no_group,
            the_only_way_is_not_drained, a_drain_that_is_interrupted_is_taken_back,
            secrets_are_nowhere_in_clear, down_leaves_nothing].

in_full(Cases) -> [Case || os:getenv("FULL") =/= false, Case <- Cases].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Dir = ?config(priv_dir, Config),
    Code = filename:join([Dir, "load", "ebin"]),
    ok = filelib:ensure_path(Code),
    {ok, _} = file:copy(code:which(weft_deploy_load),
                        filename:join(Code, "weft_deploy_load.beam")),
    [{port, weft_test_nodes:free_port()}, {port_alone, weft_test_nodes:free_port()}, {code, Code},
     {file, filename:join(Dir, "shop.deploy")},
     {root, filename:join(Dir, "weft")}, {said, filename:join(Dir, "said")} | Config].

end_per_suite(Config) ->
    _ = [down(Of) || Of <- [Config, alone(Config)], filelib:is_regular(?config(file, Of))],
    weft_test_nodes:end_suite(Config).

%% --- the deployment -----------------------------------------------------------------------------

%% Writes the file: what all families have, and what gateways have beside.
deployment(Gate, Config) ->
    Port = ?config(port, Config),
    Common = #{paths => [?config(code, Config)],
               flags => ["+S", "1:1", "+sbwt", "none", "-run", "weft_deploy_load", "start"]},
    Families = [{family, web, Common#{groups => [front]}},
                {family, gate, maps:merge(Common#{count => 2, groups => [front, back],
                                                  health => {weft_deploy_load, is_good, []},
                                                  env => with_password([])}, Gate)},
                {family, db, Common#{groups => [back]}}],
    write([{name, shop}, {epmd_port, Port}, {healthy_s, 30}, {stable_s, 0.2}, {keep_releases, 0}
           | Families], Config).

with_password(Env) -> [{kernel, [{shop_password, ?PASSWORD} | Env]}].

write(Terms, Config) ->
    ok = file:write_file(?config(file, Config), [io_lib:format("~p.~n", [T]) || T <- Terms]).

%% The same file but for one setting.
other(Key, Value, Config) ->
    {ok, Terms} = file:consult(?config(file, Config)),
    write(lists:keystore(Key, 1, Terms, {Key, Value}), Config).

run(Function, Config) -> run(Function, [], #{}, Config).

run(Function, Words, Options, Config) ->
    Case = self(),
    All = Options#{root => ?config(root, Config),
                   progress => fun(Line) ->
                                       said(Line, Config),
                                       Case ! {progress, unicode:characters_to_binary(Line)}
                               end},
    Result = apply(weft_deploy, Function, [?config(file, Config) | Words] ++ [All]),
    Text = io_lib:format("~s ~p~n~tp~n~ts", [Function, Words, Result,
                                             element(tuple_size(Result), Result)]),
    said(Text, Config),
    ct:log("~ts", [Text]),
    Result.

%% How it went since this was asked the last time.
progress() -> receive {progress, Line} -> [Line | progress()] after 0 -> [] end.

%% All that commands have said, for the end.
said(Text, Config) ->
    ok = file:write_file(?config(said, Config), unicode:characters_to_binary([Text, $\n]),
                         [append]).

down(Config) -> run(down, Config).

%% A node of this suite that talks to those that were deployed; it is started once.
with_control(Config, Fun) ->
    Control = case weft_test_nodes:running() of
                  [Node] -> Node;
                  [] -> control(Config)
              end,
    Fun(fun(Node, M, F, A) -> weft_test_nodes:call(Control, erpc, call, [Node, M, F, A]) end).

control(Config) ->
    {ok, Cookie} = file:read_file(filename:join(?config(root, Config), "deploy/shop/cookie")),
    Port = ?config(port, Config),
    weft_test_nodes:start(control, #{carrier => stock, long => "127.0.0.1",
                                     cookie => binary_to_list(Cookie),
                                     args => ["-hidden", "-connect_all", "false"]},
                          (?config(place, Config))#{epmd := #{port => Port}}).

%% A deployment of one node, beside the other one.
alone(Config) -> [{file, filename:join(?config(priv_dir, Config), "alone.deploy")} | Config].

alone(Version, Config) -> alone(Version, #{}, Config).

alone(Version, Other, Config) ->
    Alone = alone(Config),
    write([{name, alone}, {epmd_port, ?config(port_alone, Config)}, {healthy_s, 30},
           {stable_s, 0.2},
           {family, web, Other#{flags => ["+S", "1:1", "+sbwt", "none"],
                                env => [{kernel, [{shop_version, Version}]}]}}], Alone),
    Alone.

%% What the one node is made of.
made_of(Config) ->
    {ok, #{nodes := [#{id := Id}]}, _} = run(status, Config),
    Id.

%% --- cases --------------------------------------------------------------------------------------

%% There is nobody whom it could have a link to.
a_node_alone_is_upgraded(Config) ->
    {ok, #{started := [_]}, _} = run(apply, alone(1, Config)),
    Alone = alone(2, Config),
    {wanting, _, _} = run(status, Alone),
    ?assertMatch({ok, #{upgraded := [_], rolled_back := [], failed := []}, _}, run(upgrade, Alone)),
    {ok, _, _} = run(status, Alone),
    %% It runs on with another health check.
    Checked = alone(2, #{health => {erlang, is_atom, [good]}}, Config),
    ?assertMatch({ok, #{recheck := [_], changed := [], same := 0}, _}, run(plan, Checked)),
    ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Checked)),
    ?assertMatch({ok, #{recheck := [], changed := [], same := 1}, _}, run(plan, Checked)).

%% The command was ended when the node was what it had been, and did not run yet.
a_rollback_that_is_interrupted_goes_on(Config) ->
    Upgraded = made_of(alone(2, Config)),
    ended_at_stop(1, fun(Options) ->
                         weft_deploy:rollback(?config(file, alone(Config)), [], Options)
                     end, Config),
    undo_by_hand(Config),
    {ok, #{started := [_]}, _} = run(apply, alone(Config)),
    {_, #{nodes := [#{id := Id, state := changed}]}, _} = run(status, alone(Config)),
    ?assertNotEqual(Upgraded, Id),
    ?assertMatch({ok, #{refused := [_], upgraded := []}, _}, run(upgrade, alone(Config))).

%% The command ends when it has told so often that a node is stopped.
ended_at_stop(Times, Command, Config) -> ended_at(": stopped", Times, Command, Config).

ended_at(Text, Times, Command, Config) ->
    Told = counters:new(1, []),
    Ends = fun(Line) ->
               [counters:add(Told, 1, 1) || string:find(Line, Text) =/= nomatch],
               counters:get(Told, 1) < Times orelse exit(ended)
           end,
    ?assertExit(ended, Command(#{root => ?config(root, Config), progress => Ends})).

undo_by_hand(Config) ->
    Dir = filename:join(?config(root, Config), "deploy/alone/host"),
    {ok, Host} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    {ok, _} = weft_deploy_host:script(Host, weft_deploy_shell:undo(Dir, "web1@127.0.0.1")).

%% The command was ended after the node was not healthy: once it is still what it became, once
%% it is what it was before, and does not run yet.
an_upgrade_that_is_interrupted_as_it_rolls_back_goes_on(Config) ->
    {_, #{nodes := [#{id := Before}]}, _} = run(status, alone(2, Config)),
    Alone = alone(3, #{health => {erlang, is_atom, [1]}}, Config),
    Upgrade = fun(Options) ->
                  other(healthy_s, 1, Alone),
                  ended_at_stop(2, fun(How) ->
                                       weft_deploy:upgrade(?config(file, Alone),
                                                           maps:merge(How, Options))
                                   end, Config),
                  other(healthy_s, 30, Alone)
              end,
    Upgrade(#{}),
    ?assertMatch({ok, #{back := [_], restart := [_], same := 0}, _}, run(plan, Alone)),
    ?assertMatch({ok, #{rolled_back := [_], refused := [_], failed := []}, _}, run(upgrade, Alone)),
    ?assertMatch({_, #{nodes := [#{id := Before, state := changed}]}, _}, run(status, Alone)),
    Upgrade(#{again => true}),
    undo_by_hand(Config),
    ?assertMatch({ok, #{back := [], restart := [_]}, _}, run(plan, Alone)),
    ?assertMatch({ok, #{rolled_back := [_], refused := [_], failed := []}, _}, run(upgrade, Alone)),
    ?assertMatch({_, #{nodes := [#{id := Before, state := changed}]}, _}, run(status, Alone)),
    Upgrade(#{again => true}),
    other(healthy_s, 1, Alone),
    {wanting, #{failed := [_]}, _} = run(apply, Alone),
    other(healthy_s, 30, Alone),
    ?assertMatch({ok, #{back := [_], restart := [], same := 0}, _}, run(plan, Alone)),
    ?assertMatch({ok, #{rolled_back := [_], refused := [_], failed := []}, _}, run(upgrade, Alone)).

%% The command ended when the node was stopped, and was not made anything else yet. The next one
%% ended when it had waited for the node, and before it did anything about that: the node runs, and
%% is what it is to be. Once it is healthy, once it is not.
what_an_interrupted_upgrade_has_not_seen_healthy_is_looked_at(Config) ->
    Ended = fun(Text, Alone) ->
                ended_at(Text, 1, fun(How) -> weft_deploy:upgrade(?config(file, Alone), How) end,
                         Config),
                ?assertMatch({ok, #{unproven := [_], changed := [], same := 0}, _},
                             run(plan, Alone))
            end,
    Good = alone(5, Config),
    Upgrade = fun(How) -> weft_deploy:upgrade(?config(file, Good), How) end,
    ended_at_stop(1, Upgrade, Config),
    ?assertMatch({ok, #{restart := [_], changed := [], unproven := []}, _}, run(plan, Good)),
    Ended(": up after", Good),
    ?assertMatch({ok, #{upgraded := [_], failed := []}, _}, run(upgrade, Good)),
    killed_by_somebody(Good),
    ?assertMatch({ok, #{upgraded := [], failed := []}, _}, run(upgrade, Good)),
    Before = made_of(Good),
    Bad = alone(6, #{health => {erlang, is_atom, [1]}}, Config),
    other(healthy_s, 1, Bad),
    Ended(": failed: ", Bad),
    other(healthy_s, 10, Bad),
    ?assertMatch({wanting, #{rolled_back := [_], upgraded := [], bad := [_]}, _},
                 run(upgrade, Bad)),
    ?assertMatch({_, #{nodes := [#{id := Before, state := changed}]}, _}, run(status, Bad)),
    ?assertMatch({ok, #{unproven := [], refused := [_]}, _}, run(plan, Bad)),
    {ok, _, _} = down(Bad).

killed_by_somebody(Config) ->
    {ok, #{nodes := [#{os_pid := OsPid}]}, _} = run(status, Config),
    [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    weft_test_nodes:until(fun() -> element(1, run(status, Config)) =:= wanting end).

%% The command ended when the node was to go and had told the others so, before it was stopped. Then
%% it is wanted again.
a_node_that_has_left_is_started_again(Config) ->
    Alone = alone(7, #{count => 2, paths => [copied_code(Config)]}, Config),
    {ok, #{started := [_, _]}, _} = run(apply, Alone),
    ended_at(": drained in", 1,
             fun(How) -> weft_deploy:scale(?config(file, Alone), ["web=1"], How) end, Config),
    ?assertMatch({ok, #{stop := [<<"web2@", _/binary>>], same := 1}, _}, run(plan, Alone)),
    %% It is up when it has a link.
    ?assertMatch({ok, #{started := [#{node := <<"web2@", _/binary>>}], failed := []}, _},
                 run(scale, [["web=2"]], #{}, Alone)),
    ?assertMatch({ok, #{reopen := [], restart := [], same := 2}, _}, run(plan, Alone)).

%% One at a time, and the gateway comes last. One that has no link in the end has failed: here, as
%% the only node that it could have one to does not start.
nodes_may_need_those_of_a_later_part(Config) ->
    Alone = alone(Config),
    Apply = fun(Families) ->
                Own = #{flags => ["+S", "1:1", "+sbwt", "none"]},
                write([{name, alone}, {epmd_port, ?config(port_alone, Config)}, {healthy_s, 10},
                       {stable_s, 0.2}, {parallel, 1}
                       | [{family, Name, Own#{groups => Groups, start => Start}}
                          || {Name, Groups, Start} <- Families]], Alone),
                run(apply, Alone)
            end,
    All = [{web, [front], []}, {db, [back], []}, {gate, [front, back], []}],
    ?assertMatch({ok, #{started := [_, _, _], failed := []}, _}, Apply(All)),
    {wanting, #{started := [], failed := [#{what := <<"near1@", _/binary>>},
                                          #{what := <<"far1@", _/binary>>, why := Why}]}, _} =
        Apply([{far, [away], []}, {near, [away, front], [no_such_application]} | All]),
    ?assertMatch({match, _}, re:run(Why, "^it has no link")),
    {ok, _, _} = down(Alone).

%% As on a machine that has the file, and where nothing is built.
what_needs_no_code_works_without_it(Config) ->
    ok = file:del_dir_r(copied_code(Config)),
    Alone = alone(Config),
    {usage, Text} = run(plan, Alone),
    ?assertMatch({match, _}, re:run(Text, "family web: .* is no directory")),
    {ok, #{nodes := [#{state := up}, #{state := up}], unbuilt := [Why]}, Said} = run(status, Alone),
    ?assertMatch({match, _}, re:run(Why, "^family web: .* is no directory$")),
    ?assertMatch({match, _}, re:run(Said, "is no directory: which of its nodes differ")),
    ?assertEqual(['web1@127.0.0.1', 'web2@127.0.0.1'],
                 weft_deploy:reach(?config(file, Alone), #{root => ?config(root, Config)},
                                   fun(Reach) -> maps:get(nodes, weft_deploy_reach:info(Reach))
                                   end)),
    ?assertMatch({ok, #{stopped := [_]}, _}, run(drain, [["web1"]], #{}, Alone)),
    ?assertMatch({ok, _, _}, down(Alone)).

copied_code(Config) ->
    Code = filename:join([?config(priv_dir, Config), "gone", "ebin"]),
    ok = filelib:ensure_path(Code),
    {ok, _} = file:copy(code:which(weft_deploy_load), Code ++ "/weft_deploy_load.beam"),
    Code.

applied_twice_nothing_changes(Config) ->
    deployment(#{}, Config),
    {ok, #{start := [_, _, _, _]}, _} = run(plan, Config),
    [] = progress(),
    {TookUs, {ok, #{started := Started, failed := []}, _}} =
        timer:tc(fun() -> run(apply, Config) end),
    ?assertEqual(4, length(Started)),
    each_node_is_told_with_its_time(Started, TookUs div 1000, progress()),
    ?assertMatch({ok, #{start := [], restart := [], stop := [], changed := [], same := 4}, _},
                 run(plan, Config)),
    ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Config)),
    ?assertEqual([], progress()).

%% A line for each, once, and the release before them. Each line begins with the time since the
%% start. No node took longer than all together.
each_node_is_told_with_its_time(Started, TookMs, Told) ->
    Lines = [begin
                 {match, [S, Text]} = re:run(Line, "^ *([0-9]+\\.[0-9]) s  (.*)$",
                                             [{capture, all_but_first, binary}]),
                 {binary_to_float(S), Text}
             end || Line <- Told],
    [{_, Release} | OfNodes] = Lines,
    ?assertMatch({match, _}, re:run(Release, "^127\\.0\\.0\\.1: release code-")),
    ?assertEqual(lists:sort([iolist_to_binary(io_lib:format("~ts: up after ~.1f s",
                                                            [Node, Ms / 1000]))
                             || #{node := Node, ms := Ms} <- Started]),
                 lists:sort([Text || {_, Text} <- OfNodes])),
    Times = [S || {S, _} <- Lines],
    ?assertEqual(lists:sort(Times), Times),
    ?assert(lists:last(Times) * 1000 =< TookMs + 100),
    ?assertEqual([], [Row || #{ms := Ms} = Row <- Started, Ms =< 0 orelse Ms > TookMs]).

a_node_that_failed_is_started_again(Config) ->
    {ok, #{nodes := Before}, _} = run(status, Config),
    [OsPid] = [Pid || #{node := <<"gate2@", _/binary>>, os_pid := Pid} <- Before],
    [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    Ready = a_pod_waits_for_all_neighbours(Config),
    weft_test_nodes:until(fun() -> element(1, run(status, Config)) =:= wanting end),
    ?assertNot(filelib:is_file(Ready)),
    {Result, Lines} = watched(fun() -> run(apply, Config) end),
    ?assertMatch({ok, #{started := [#{node := <<"gate2@", _/binary>>}], stopped := [],
                        failed := []}, _}, Result),
    weft_test_nodes:until(fun() -> filelib:is_regular(Ready) end),
    %% Also the emulator that asks whether it is healthy was seen.
    ?assert(lists:any(fun(Line) -> binary:match(Line, <<"weft_deploy_control">>) =/= nomatch end,
                      Lines)),
    %% The suite's own node has the cookie on its command line.
    [#{os_pid := OwnPid}] = weft_test_nodes:running(),
    Own = maps:keys(command_lines(["/proc/" ++ OwnPid ++ "/cmdline"])),
    ?assertEqual([], [Line || Line <- Lines -- Own, has_secret(Line, Config)]).

%% What an export has a node evaluate, while one of its neighbours is down. It makes that file.
a_pod_waits_for_all_neighbours(Config) ->
    Ready = filename:join(?config(priv_dir, Config), "ready"),
    {ok, Tokens, _} = erl_scan:string(weft_deploy_export:linked(weft, Ready)),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    with_control(Config, fun(Call) ->
        weft_test_nodes:until(fun() ->
                                      not Call(?WEB, weft_links, up, ['gate2@127.0.0.1'])
                              end),
        {value, Pid, _} = Call(?WEB, erl_eval, exprs, [Expressions, []]),
        weft_test_nodes:until(fun() -> Call(?WEB, erlang, process_info, [Pid, current_function])
                                           =:= {current_function, {timer, sleep, 1}}
                              end)
    end),
    Ready.

%% The command lines of all processes that there are meanwhile, as `ps' shows them. Those that were
%% there before are read once.
watched(Fun) ->
    Self = self(),
    Before = command_line_files(),
    Lines = command_lines(Before),
    Watcher = spawn_link(fun() -> watch(Self, Before, Lines) end),
    Result = Fun(),
    Watcher ! stop,
    receive {Watcher, Seen} -> {Result, Seen} end.

watch(Parent, Before, Seen) ->
    Now = maps:merge(Seen, command_lines(command_line_files() -- Before)),
    receive
        stop -> Parent ! {self(), maps:keys(Now)}
    after 50 -> watch(Parent, Before, Now)
    end.

command_line_files() ->
    {ok, Names} = file:list_dir("/proc"),
    ["/proc/" ++ Name ++ "/cmdline" || [Digit | _] = Name <- Names, Digit >= $0, Digit =< $9].

command_lines(Files) ->
    maps:from_list([{Line, []} || File <- Files, {ok, Line} <- [file:read_file(File)]]).

has_secret(Text, Config) ->
    {ok, Cookie} = file:read_file(filename:join(?config(root, Config), "deploy/shop/cookie")),
    binary:match(Text, [Cookie, <<?PASSWORD>>]) =/= nomatch.

%% Not in what commands have printed in all cases before, and in no file that others can read; the
%% password also where it belongs, and in the logs of nodes that have printed it.
secrets_are_nowhere_in_clear(Config) ->
    {ok, Said} = file:read_file(?config(said, Config)),
    ?assertMatch({_, _}, binary:match(Said, <<"the password is ***">>)),
    ?assertNot(has_secret(Said, Config)),
    Files = [File || File <- filelib:wildcard(?config(root, Config) ++ "/**/{*,.*}"),
                     filelib:is_regular(File)],
    Holding = [File || File <- Files, {ok, Content} <- [file:read_file(File)],
                       has_secret(Content, Config)],
    ?assertEqual(["output", "sys.config"],
                 lists:usort([filename:basename(File) || File <- Holding])
                 -- ["cookie", ".erlang.cookie"]),
    ?assertEqual([8#400, 8#600], lists:usort([mode(File) || File <- Holding])),
    ?assertMatch({usage, _}, run(export, [["systemd"]], #{out => ?config(root, Config) ++ "/out"},
                                 Config)).

mode(File) ->
    {ok, Info} = file:read_file_info(File),
    element(8, Info) band 8#777.

%% The circuit between web1 and db1 moves to the other gateway, while this one runs on.
a_closed_gateway_is_gone_around(Config) ->
    with_control(Config, fun(Call) ->
        Gates = ['gate1@127.0.0.1', 'gate2@127.0.0.1'],
        Circuits = fun(Gate) -> Call(Gate, weft_transit, circuits, []) end,
        pong = Call(?WEB, net_adm, ping, [?DB]),
        [Used] = [Gate || Gate <- Gates, Circuits(Gate) > 0],
        [Other] = Gates -- [Used],
        ok = Call(Used, weft_transit, close, []),
        weft_test_nodes:until(fun() -> Call(?WEB, weft_overlay, route, [?DB]) =:= {ok, Other}
                              end),
        ?assert(Circuits(Used) > 0),
        ok = Call(Used, weft_transit, move, []),
        weft_test_nodes:until(fun() -> Circuits(Used) =:= 0 andalso Circuits(Other) > 0 end),
        pong = Call(?WEB, net_adm, ping, [?DB]),
        ok = Call(Used, weft_transit, open, []),
        ?assert(Call(Used, weft_transit, is_open, []))
    end).

%% All routes stay here, so it is the gateways that refuse: what needs a circuit has to wait.
a_closed_gateway_refuses_new_circuits(Config) ->
    with_control(Config, fun(Call) ->
        Gates = ['gate1@127.0.0.1', 'gate2@127.0.0.1'],
        Set = fun(How) -> [ok = Call(Gate, weft_view, put, [weft_transit, transit, How])
                           || Gate <- Gates]
              end,
        pong = Call(?WEB, net_adm, ping, [?DB]),
        Set(closed),
        [ok = Call(Gate, weft_transit, move, []) || Gate <- Gates],
        weft_test_nodes:until(fun() -> lists:sum([Call(Gate, weft_transit, circuits, [])
                                                  || Gate <- Gates]) =:= 0
                              end),
        {ok, _} = Call(?WEB, weft_overlay, route, [?DB]),
        ?assertError(_, Call(?WEB, erpc, call, [?DB, erlang, node, [], 1000])),
        Set(open),
        weft_test_nodes:until(fun() -> Call(?WEB, net_adm, ping, [?DB]) =:= pong end)
    end).

upgrade_loses_nothing(Config) ->
    with_control(Config, fun(Call) ->
        ok = Call(?WEB, weft_deploy_load, send_to, [?DB]),
        weft_test_nodes:until(fun() -> element(1, Call(?DB, weft_deploy_load, received, [])) > 0
                              end),
        deployment(#{env => with_password([{shop_version, 2}])}, Config),
        Releases = filename:join(?config(root, Config), "deploy/shop/host/releases"),
        ok = filelib:ensure_dir(Releases ++ "/old/x"),
        ok = file:write_file(Releases ++ "/old/.complete", <<>>),
        {ok, #{upgraded := [_, _], rolled_back := [], failed := []}, _} = run(upgrade, Config),
        ?assertMatch(["code-" ++ _], filelib:wildcard("*", Releases)),
        Sent = Call(?WEB, weft_deploy_load, stop, []),
        weft_test_nodes:until(fun() ->
                                      element(1, Call(?DB, weft_deploy_load, received, []))
                                          =:= Sent
                              end),
        ?assertEqual({Sent, []}, Call(?DB, weft_deploy_load, received, [])),
        Stay = [?WEB, ?DB],
        ?assertEqual([], [Down || Down <- Call(?WEB, weft_deploy_load, downs, []),
                                  lists:member(Down, Stay)])
    end),
    ?assertMatch({ok, #{changed := [], same := 4}, _}, run(plan, Config)).

%% The first one is not healthy, the second one is not even tried.
a_bad_version_is_rolled_back(Config) ->
    {ok, #{nodes := Before}, _} = run(status, Config),
    deployment(#{env => with_password([{shop_good, false}])}, Config),
    %% Time to start on a busy machine, so that it is asked and says what is hidden then.
    other(healthy_s, 8, Config),
    {wanting, #{upgraded := [], rolled_back := [_], left := [_], bad := [_]}, _} =
        run(upgrade, Config),
    {_, #{nodes := After}, _} = run(status, Config),
    Ids = fun(Nodes) -> [{Node, Id} || #{node := Node, id := Id} <- Nodes] end,
    ?assertEqual(Ids(Before), Ids(After)),
    with_control(Config, fun(Call) ->
        %% What it was made with is asked, of the node that has come back, too.
        ?assertEqual([true, true], [Call(Gate, persistent_term, get, [weft_deploy_asked, false])
                                    || Gate <- ['gate1@127.0.0.1', 'gate2@127.0.0.1']])
    end),
    ?assertMatch({ok, #{upgraded := [], refused := [_, _]}, _}, run(upgrade, Config)),
    deployment(#{env => with_password([{shop_version, 2}])}, Config),
    ?assertMatch({ok, #{changed := [], same := 4}, _}, run(plan, Config)).

%% The file names another epmd than that of the nodes. One can not be drained unseen.
a_node_that_can_not_be_asked_is_not_stopped(Config) ->
    other(epmd_port, weft_test_nodes:free_port(), Config),
    {failed, Text} = run(drain, [["gate1"]], #{}, Config),
    ?assertMatch({match, _}, re:run(Text, "port of epmd")),
    other(epmd_port, ?config(port, Config), Config),
    ?assertMatch({ok, #{same := 4}, _}, run(plan, Config)).

%% Both gateways become nodes of one group only, while another one stays; a rollback makes them
%% gateways again.
groups_shrink_and_grow_back(Config) ->
    with_control(Config, fun(Call) ->
        Has = fun(Node, Group, Members) ->
                  {ok, Members} =:= Call(Node, weft_group, members, [Group])
              end,
        Gates = ['gate1@127.0.0.1', 'gate2@127.0.0.1'],
        with_spare(#{env => with_password([{shop_version, 2}])}, Config),
        {ok, #{started := [_], failed := []}, _} = run(apply, Config),
        weft_test_nodes:until(fun() -> Has(?DB, back, [?DB | Gates] ++ [?SPARE]) end),
        with_spare(#{groups => [front], env => with_password([{shop_version, 3}])}, Config),
        {ok, #{upgraded := [_, _], failed := []}, _} = run(upgrade, Config),
        ?assert(Has(?DB, back, [?DB, ?SPARE])),
        ?assert(Has(?DB, front, Gates ++ [?SPARE, ?WEB])),
        {ok, #{rolled_back := [_, _], failed := []}, _} = run(rollback, [["gate"]], #{}, Config),
        ?assert(Has(?DB, back, [?DB | Gates] ++ [?SPARE]))
    end),
    deployment(#{env => with_password([{shop_version, 2}])}, Config),
    ?assertMatch({ok, #{started := [], stopped := [_], failed := []}, _}, run(apply, Config)).

with_spare(Gate, Config) ->
    deployment(Gate, Config),
    {ok, Terms} = file:consult(?config(file, Config)),
    {family, web, Web} = lists:keyfind(web, 2, Terms),
    write(Terms ++ [{family, spare, Web#{groups => [front, back]}}], Config).

numbers_change(Config) ->
    ?assertMatch({usage, _}, run(scale, [["wbe=2"]], #{}, Config)),
    {ok, #{started := [_, _], stopped := []}, _} = run(scale, [["web=3"]], #{}, Config),
    with_control(Config, fun(Call) ->
        Members = fun() ->
                      {ok, Nodes} = Call(?WEB, weft_group, members, [front]),
                      length(Nodes)
                  end,
        weft_test_nodes:until(fun() -> Members() =:= 5 end),
        {ok, #{started := [], stopped := [_, _]}, _} =
            run(scale, [["web=2", "gate=1"]], #{}, Config),
        weft_test_nodes:until(fun() -> Members() =:= 3 end)
    end).

a_dead_node_that_is_taken_away_is_in_no_group(Config) ->
    with_control(Config, fun(Call) ->
        Members = fun() -> {ok, Nodes} = Call(?WEB, weft_group, members, [front]), Nodes end,
        ?assertEqual(['gate1@127.0.0.1', ?WEB, 'web2@127.0.0.1'], Members()),
        {ok, #{nodes := Nodes}, _} = run(status, Config),
        [OsPid] = [Pid || #{node := <<"web2@", _/binary>>, os_pid := Pid} <- Nodes],
        [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
        weft_test_nodes:until(fun() -> element(1, run(status, Config)) =:= wanting end),
        ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _},
                     run(scale, [["web=1"]], #{}, Config)),
        ?assertEqual(['gate1@127.0.0.1', ?WEB], Members())
    end).

the_only_way_is_not_drained(Config) ->
    other(drain_s, 2, Config),
    {failed, Text} = run(drain, [["gate1"]], #{}, Config),
    ?assertMatch({match, _}, re:run(Text, "only way between")),
    with_control(Config, fun(Call) ->
        weft_test_nodes:until(fun() -> Call(?WEB, net_adm, ping, [?DB]) =:= pong end)
    end).

%% The emulator that drains is killed while it waits for the others to find another way.
a_drain_that_is_interrupted_is_taken_back(Config) ->
    other(drain_s, 60, Config),
    with_control(Config, fun(Call) ->
        IsOpen = fun() -> Call('gate1@127.0.0.1', weft_transit, is_open, []) end,
        Drain = spawn_monitor(fun() -> exit(run(drain, [["gate1"]], #{}, Config)) end),
        weft_test_nodes:until(fun() -> not IsOpen() end),
        [] = os:cmd("kill -KILL " ++ draining(Config)),
        receive {'DOWN', _, process, Pid, Result} when Pid =:= element(1, Drain) ->
            ?assertMatch({failed, _}, Result)
        end,
        ?assertNot(IsOpen()),
        ?assertMatch({ok, #{reopen := [<<"gate1@", _/binary>>], same := 3}, _}, run(plan, Config)),
        ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Config)),
        ?assert(IsOpen()),
        ?assertMatch({ok, #{reopen := [], same := 3}, _}, run(plan, Config)),
        weft_test_nodes:until(fun() -> Call(?WEB, net_adm, ping, [?DB]) =:= pong end)
    end).

draining(Config) ->
    Mark = unicode:characters_to_binary(filename:join(?config(root, Config),
                                                      "deploy/shop/host/control")),
    [OsPid] = [lists:nth(3, filename:split(File))
               || File <- filelib:wildcard("/proc/[0-9]*/cmdline"),
                  {ok, Line} <- [file:read_file(File)], binary:match(Line, Mark) =/= nomatch],
    OsPid.

down_leaves_nothing(Config) ->
    {ok, #{nodes := [_, _, _] = Nodes}, _} = run(status, Config),
    %% An epmd that others use stays.
    weft_test_nodes:stop_all(),
    {ok, _, _} = run(down, [], #{purge => true}, Config),
    ?assertEqual([], [Pid || #{os_pid := Pid} <- Nodes, is_alive(Pid)]),
    ?assertNot(filelib:is_dir(filename:join(?config(root, Config), "deploy/shop/host"))).

%% One that has ended and was not waited for has no command line.
is_alive(OsPid) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/cmdline") of
        {ok, <<>>} -> false;
        {ok, _} -> true;
        {error, _} -> false
    end.
