%% SPDX-License-Identifier: Apache-2.0
%% @doc Tools that look into other nodes, used as they are from a node that has no connection of its
%% own with the node that is looked at: a chain of three. What is not installed is skipped.
-module(weft_tools_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([dbg_traces_there/1, nl_loads_code_there/1, etop_shows_it/1, observer_cli_shows_it/1,
         observer_asks_it/1, observer_traces_it/1, recon_runs_there/1, cover_counts_there/1]).
%% Run on the nodes.
-export([traced/1, probe/1, covered/1, counted/1]).

-define(WAIT_MS, 20000).
-define(SCREENS, weft_tools_screens).
-define(COOKIE, "weft_test").
%% A module that is on the path of the nodes, and loaded on none of them.
-define(STRANGER, weft_strangers_SUITE).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [dbg_traces_there, nl_loads_code_there, etop_shows_it, observer_cli_shows_it, observer_asks_it,
     observer_traces_it, recon_runs_there, cover_counts_there].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    {ok, _} = file:script(filename:join(root(), "rebar.config.script"), [{'CONFIG', []}]),
    [A, G, B] = Names = [weft_test_nodes:node_name(Name) || Name <- [a, g, b]],
    Options = #{config => [{topology, {static, #{links => [{A, G}, {G, B}]}}}],
                args => ["-connect_all", "false"] ++ path_to(recon) ++ path_to(observer_cli)},
    Nodes = [weft_test_nodes:start(Name, Options, ?config(place, Config)) || Name <- [a, g, b]],
    [{ok, _} = weft_test_nodes:call(Node, application, ensure_all_started, [weft])
     || Node <- Nodes],
    From = hd(Nodes),
    weft_test_nodes:until(fun() -> weft_test_nodes:call(From, net_adm, ping, [B]) =:= pong end),
    Holder = weft_test_nodes:call(From, ?SCREENS, hold, [B]),
    [{from, From}, {names, Names}, {holder, Holder} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

root() -> hd(string:split(code:lib_dir(weft), "/_build")).

path_to(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> [];
        Dir -> ["-pa", filename:join(Dir, "ebin")]
    end.

dbg_traces_there(Config) ->
    {From, Node} = ends(Config),
    ?assertEqual(Node, weft_test_nodes:call(From, ?MODULE, traced, [Node])).

%% The node of the process that a call was traced in.
traced(Node) ->
    {ok, _} = dbg:tracer(process, {fun(Message, To) -> To ! Message, To end, self()}),
    {ok, _} = dbg:n(Node),
    {ok, _} = dbg:p(all, [c]),
    {ok, _} = dbg:tp(?MODULE, probe, 1, []),
    1 = erpc:call(Node, ?MODULE, probe, [1]),
    receive {trace, Pid, call, {?MODULE, probe, [1]}} -> dbg:stop(), node(Pid)
    after ?WAIT_MS -> no_trace
    end.

%% @private
probe(Term) -> Term.

%% `nl' loads code on the nodes of `nodes()', which are neighbours.
nl_loads_code_there(Config) ->
    {From, _} = ends(Config),
    [_, Neighbour, _] = ?config(names, Config),
    IsLoaded = fun() -> weft_test_nodes:call(From, erpc, call,
                                             [Neighbour, erlang, module_loaded, [?STRANGER]])
               end,
    ?assertNot(IsLoaded()),
    abcast = weft_test_nodes:call(From, c, nl, [?STRANGER]),
    weft_test_nodes:until(IsLoaded).

etop_shows_it(Config) ->
    {From, Node} = ends(Config),
    needs(etop, fun() ->
        ?assertEqual(shown, weft_test_nodes:call(From, ?SCREENS, etop, [Node]))
    end).

%% From a node that has it, and as the command that comes with it: from a node of its own, which
%% has no weft.
observer_cli_shows_it(Config) ->
    {From, Node} = ends(Config),
    needs(observer_cli, fun() ->
        ?assertEqual(quit, weft_test_nodes:call(From, ?SCREENS, observer_cli, [Node])),
        observer_cli_command(Node, Config)
    end).

observer_cli_command(Node, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Main = lists:flatten(io_lib:format("observer_cli_escriptize:main(~0p), halt().",
                                       [[atom_to_list(Node), ?COOKIE, "1000"]])),
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, path_to(observer_cli) ++ path_to(recon)
                       ++ ["-noshell", "-setcookie", ?COOKIE, "-eval", Main]},
                      {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}]},
                      exit_status, stderr_to_stdout, binary]),
    printed(Port, ?config(holder, Config), <<>>),
    true = port_command(Port, "q\n"),
    ?assertEqual(0, status(Port)).

printed(Port, Word, Output) ->
    case binary:match(Output, atom_to_binary(Word)) of
        nomatch ->
            receive
                {Port, {data, Data}} -> printed(Port, Word, <<Output/binary, Data/binary>>);
                {Port, {exit_status, Status}} -> ct:fail({ended, Status, Output})
            after ?WAIT_MS -> ct:fail({not_shown, Output})
            end;
        _ ->
            ok
    end.

status(Port) ->
    receive
        {Port, {data, _}} -> status(Port);
        {Port, {exit_status, Status}} -> Status
    after ?WAIT_MS -> ct:fail(does_not_end)
    end.

%% What its windows show comes from these answers.
observer_asks_it(Config) ->
    {From, Node} = ends(Config),
    needs(appmon_info, fun() ->
        ?assertMatch(#{load_charts := {true, true},
                       applications := {Node, true, true},
                       processes := {[Node], true},
                       ports := [Node],
                       tables := {true, rows},
                       process := {kernel_sup, status}},
                     weft_test_nodes:call(From, ?SCREENS, observer, [Node])),
        #{system := Release, sockets := Sockets} =
            weft_test_nodes:call(From, ?SCREENS, observer, [Node]),
        ?assertEqual({erlang:system_info(otp_release), true}, {Release, is_list(Sockets)})
    end).

observer_traces_it(Config) ->
    {From, Node} = ends(Config),
    needs(ttb, fun() ->
        ?assertEqual({Node, called},
                     weft_test_nodes:call(From, ?SCREENS, observer_traces, [Node]))
    end).

recon_runs_there(Config) ->
    {From, Node} = ends(Config),
    needs(recon, fun() ->
        ?assertMatch({[{Node, [_, _]}], []},
                     weft_test_nodes:call(From, ?MODULE, counted, [Node]))
    end).

%% The two largest processes.
counted(Node) ->
    recon:named_rpc(Node, fun() -> recon:proc_count(memory, 2) end).

cover_counts_there(Config) ->
    {From, Node} = ends(Config),
    ?assertEqual({ok, {?STRANGER, {1, 0}}}, weft_test_nodes:call(From, ?MODULE, covered, [Node])).

%% The clause that was run there is covered.
covered(Node) ->
    {ok, [Node]} = cover:start([Node]),
    {ok, ?STRANGER} = cover:compile_beam(?STRANGER),
    _ = erpc:call(Node, ?STRANGER, suite, []),
    {ok, Functions} = cover:analyse(?STRANGER, coverage, function),
    Suite = lists:keyfind({?STRANGER, suite, 0}, 1, Functions),
    ok = cover:stop(),
    {ok, {?STRANGER, element(2, Suite)}}.

%% --- small parts ------------------------------------------------------------------------------

ends(Config) ->
    [_, _, Node] = ?config(names, Config),
    {?config(from, Config), Node}.

needs(Module, Test) ->
    case code:which(Module) of
        non_existing -> {skip, lists:concat([Module, " is not installed"])};
        _ -> Test()
    end.
