%% SPDX-License-Identifier: Apache-2.0
%% @doc Tools that look into other nodes, used as they are from a node that has no connection of its
%% own with the node that is looked at: a chain of three.
-module(weft_tools_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([dbg_traces_there/1, nl_loads_code_there/1, etop_shows_it/1, observer_asks_it/1,
         recon_runs_there/1, cover_counts_there/1]).
%% Run on the nodes.
-export([traced/1, probe/1, covered/1, shown/1, counted/1]).

-define(WAIT_MS, 20000).
%% A module that is on the path of the nodes, and loaded on none of them.
-define(STRANGER, weft_strangers_SUITE).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [dbg_traces_there, nl_loads_code_there, etop_shows_it, observer_asks_it, recon_runs_there,
     cover_counts_there].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    {ok, _} = file:script(filename:join(root(), "rebar.config.script"), [{'CONFIG', []}]),
    [A, G, B] = Names = [weft_test_nodes:node_name(Name) || Name <- [a, g, b]],
    Options = #{config => [{topology, {static, #{links => [{A, G}, {G, B}]}}}],
                args => ["-connect_all", "false"] ++ path_to(recon)},
    Nodes = [weft_test_nodes:start(Name, Options, ?config(place, Config)) || Name <- [a, g, b]],
    [{ok, _} = weft_test_nodes:call(Node, application, ensure_all_started, [weft])
     || Node <- Nodes],
    From = hd(Nodes),
    weft_test_nodes:until(fun() -> weft_test_nodes:call(From, net_adm, ping, [B]) =:= pong end),
    [{from, From}, {names, Names} | Config].

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
        ?assertEqual(shown, weft_test_nodes:call(From, ?MODULE, shown, [Node]))
    end).

%% Whether etop names the node, and a process that is there.
shown(Node) ->
    Self = self(),
    Leader = spawn_link(fun() -> tell_output(Self) end),
    Etop = spawn(fun() ->
                         group_leader(Leader, self()),
                         etop:start([{node, Node}, {output, text}, {tracing, off}, {interval, 1}])
                 end),
    Shown = wait_for([atom_to_list(Node), "net_kernel"], ""),
    exit(Etop, kill),
    Shown.

%% The part of the io protocol that output needs.
tell_output(To) ->
    receive
        {io_request, From, Ref, {put_chars, _, Text}} -> said(Text, From, Ref, To);
        {io_request, From, Ref, {put_chars, _, M, F, A}} -> said(apply(M, F, A), From, Ref, To);
        {io_request, From, Ref, _} -> From ! {io_reply, Ref, {error, request}}
    end,
    tell_output(To).

said(Text, From, Ref, To) ->
    To ! {said, unicode:characters_to_list(Text)},
    From ! {io_reply, Ref, ok}.

wait_for(Words, Said) ->
    case [Word || Word <- Words, string:find(Said, Word) =:= nomatch] of
        [] -> shown;
        _ ->
            receive {said, Text} -> wait_for(Words, Said ++ Text)
            after ?WAIT_MS -> {not_shown, Said}
            end
    end.

%% What the windows of observer show comes from this module, which it asks on the node.
observer_asks_it(Config) ->
    {From, Node} = ends(Config),
    Info = weft_test_nodes:call(From, rpc, call, [Node, observer_backend, sys_info, []]),
    ?assertEqual(erlang:system_info(version), proplists:get_value(version, Info)).

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
