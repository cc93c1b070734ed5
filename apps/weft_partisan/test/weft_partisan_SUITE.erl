%% SPDX-License-Identifier: Apache-2.0
%% @doc Programs for Partisan on three real nodes: a full mesh, and a server with two clients, which
%% in Partisan cannot talk to each other. Cases share the latter, and leave them as they were, but
%% for the last one and those that failed.
-module(weft_partisan_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([nodes_join_and_leave/1, messages_arrive/1, options_of_messages/1, processes/1,
         functions_hear_of_nodes/1, tools_are_no_nodes/1, the_example_of_the_guide/1,
         what_is_not_there_says_so/1]).
%% Run on the nodes.
-export([holder/0, hear_of_nodes/0, forward/1, attempt/3, hear/1, start_tally/0]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [nodes_join_and_leave, messages_arrive, options_of_messages, processes, tools_are_no_nodes,
     the_example_of_the_guide, what_is_not_there_says_so, functions_hear_of_nodes].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(nodes_join_and_leave, Config) ->
    Config;
init_per_testcase(_Case, Config) ->
    [{star, weft_test_nodes:shared([p1, p2, p3], fun() -> star(Config) end)} | Config].

end_per_testcase(Case, Config) ->
    IsLeft = ?config(tc_status, Config) =:= ok
        andalso not lists:member(Case, [nodes_join_and_leave, functions_hear_of_nodes]),
    case IsLeft of
        true -> lists:foreach(fun end_holder/1, ?config(star, Config));
        false -> weft_test_nodes:stop_all()
    end.

end_holder(Node) ->
    case call(Node, erlang, whereis, [holder]) of
        undefined -> ok;
        Pid ->
            true = call(Node, erlang, exit, [Pid, kill]),
            until(fun() -> call(Node, erlang, whereis, [holder]) =:= undefined end)
    end.

%% --- the cluster ------------------------------------------------------------------------------

nodes_join_and_leave(Config) ->
    [A, B, C] = Nodes = [start(Name, full_mesh, Config) || Name <- [m1, m2, m3]],
    [?assertEqual({ok, [name(Node)]}, call(Node, partisan_peer_service, members, []))
     || Node <- Nodes],
    %% As a map with an address, which is not read, and as a string.
    Spec = #{name => name(A), listen_addrs => [#{ip => {192, 0, 2, 1}, port => 1}],
             channels => #{}},
    ?assertEqual(ok, call(B, partisan_peer_service, join, [Spec])),
    ?assertEqual(ok, call(C, partisan, join, [atom_to_list(name(A))])),
    until_members(Nodes),
    ?assertEqual({error, self_join}, call(A, partisan_peer_service, join, [name(A)])),
    {error, [_ | _]} = call(A, partisan_peer_service, sync_join, [node_name(nobody)]),
    ?assertEqual(true, call(A, partisan_peer_service, member, [name(C)])),
    ?assertEqual(lists:sort([name(B), name(C)]), call(A, partisan, nodes, [])),
    Manager = call(A, partisan_peer_service, manager, []),
    #{name := Self} = Myself = call(A, Manager, myself, []),
    ?assertEqual(name(A), Self),
    %% One that is there leaves itself.
    {error, Text} = call(A, partisan_peer_service, leave, [name(C)]),
    ?assertNotEqual({nomatch, Text}, {string:find(Text, "call weft:leave() there"), Text}),
    ?assertEqual(ok, call(C, partisan_peer_service, leave, [])),
    until_members([A, B]),
    ?assertEqual(false, call(A, partisan_peer_service, member, [name(C)])),
    %% A node that has left joins, it is not joined.
    ?assertEqual(ok, call(C, partisan_peer_service, update_members, [[name(B), Myself, name(C)]])),
    until_members(Nodes).

%% --- messages ---------------------------------------------------------------------------------

messages_arrive(Config) ->
    [A, _, C] = ?config(star, Config),
    Holder = call(C, ?MODULE, hear, [holder]),
    Name = name(C),
    [?assertEqual(ok, call(A, partisan, forward_message, Args))
     || Args <- [[Holder, 1], [{holder, Name}, 2], [Holder, 3, #{}], [Name, holder, 4, []],
                 [Name, Holder, 5, #{}], [{global, nobody}, lost], [Name, nobody, lost, #{}]]],
    until(fun() -> held(C) =:= [1, 2, 3, 4, 5] end),
    ?assertEqual(ok, call(A, partisan_peer_service, forward_message, [Name, holder, 6])),
    Node = #{name => Name},
    ?assertEqual(ok, call(A, partisan_peer_service_manager, forward_message,
                          [Node, undefined, holder, 7, []])),
    ?assertEqual(8, call(A, partisan, send, [{holder, Name}, 8])),
    ?assertEqual(ok, call(A, partisan, cast_message, [{holder, Name}, 9])),
    until(fun() -> held(C) =:= [1, 2, 3, 4, 5, 6, 7, 8, {'$gen_cast', 9}] end),
    %% On the own node, by a name in a registry.
    yes = call(C, global, register_name, [there, Holder]),
    ?assertEqual(ok, call(C, partisan, forward_message, [{global, there}, 10])),
    ?assertEqual(ok, call(C, partisan, forward_message, [{via, global, there}, 11, []])),
    ?assertEqual(ok, call(C, partisan, forward_message, [nobody, lost])),
    until(fun() -> lists:nthtail(9, held(C)) =:= [10, 11] end).

options_of_messages(Config) ->
    [A, _, C] = ?config(star, Config),
    _ = call(C, ?MODULE, hear, [holder]),
    To = {holder, name(C)},
    Sent = lists:seq(1, 300),
    ok = call(A, ?MODULE, forward, [[[To, N, #{channel => votes, partition_key => 7,
                                              transitive => true}] || N <- Sent]]),
    until(fun() -> held(C) =:= Sent end),
    Send = fun(Ref, Options) ->
                   call(A, ?MODULE, attempt, [partisan, forward_message, [Ref, last, Options]])
           end,
    %% With ack it has arrived when the call returns.
    ?assertEqual(ok, Send(To, #{ack => true})),
    ?assertEqual(last, lists:last(held(C))),
    ?assertMatch({error, {not_delivered, noproc, _}},
                 Send(dead_pid(C), [{ack, true}, {channel, votes}])),
    ?assertEqual({error, {not_delivered, noproc, 1}}, Send({global, nobody}, #{ack => true})),
    ?assertEqual(ok, Send(To, #{causal_label => story})),
    ?assertMatch({raised, {unknown_option, clok, [_ | _]}}, Send(To, #{clok => 1})),
    ?assertMatch({raised, {not_supported, {option, clock}, [_ | _]}}, Send(To, #{clock => 1})),
    ?assertMatch({raised, {unknown_channel, vote, [_ | _]}}, Send(To, #{channel => vote})),
    ?assertMatch({raised, {bad_option, ack, 'maybe'}}, Send(To, #{ack => 'maybe'})),
    ?assertMatch({raised, {bad_options, none, _}}, Send(To, none)),
    until(fun() -> length(held(C)) =:= 302 end).

processes(Config) ->
    [A, _, C] = ?config(star, Config),
    Holder = call(C, ?MODULE, hear, [holder]),
    ?assertEqual(Holder, call(A, partisan, whereis, [{holder, name(C)}])),
    ?assertEqual(name(C), call(A, partisan, node, [Holder])),
    ?assertEqual([true, false, true], [call(A, partisan, Is, [Holder])
                                       || Is <- [is_pid, is_local, is_process_alive]]),
    ?assertEqual({registered_name, holder},
                 call(A, partisan, process_info, [Holder, registered_name])),
    ?assertEqual(42, call(A, partisan_rpc, call, [name(C), erlang, '+', [40, 2]])),
    true = call(A, partisan, exit, [Holder, kill]),
    until(fun() -> not call(A, partisan, is_process_alive, [Holder]) end),
    ?assertEqual(undefined, call(A, partisan, process_info, [Holder])).

%% --- nodes come and go ------------------------------------------------------------------------

functions_hear_of_nodes(Config) ->
    [A, B, C] = ?config(star, Config),
    _ = call(A, ?MODULE, hear, [holder]),
    Name = name(C),
    Tell = fun(What) -> fun(Node) -> holder ! {What, Node} end end,
    Add = fun(On, Of, Function) -> ok = call(A, partisan_peer_service, On, [Of, Function]) end,
    Add(on_up, '_', Tell(up)),
    Add(on_down, #{name => Name}, Tell(down)),
    Add(on_down, name(B), Tell(wrong)),
    Add(on_down, any, fun(_) -> exit(on_purpose) end),
    Add(on_down, any, fun() -> holder ! down end),
    Monitor = call(A, ?MODULE, hear_of_nodes, []),
    weft_test_nodes:kill(C),
    until(fun() -> lists:sort(held(A)) =:= lists:sort([down, {down, Name}]) end),
    %% The functions outlive the process that calls them.
    true = call(A, erlang, apply, [fun() -> exit(whereis(weft_partisan_watch), kill) end, []]),
    until(fun() -> is_pid(call(A, erlang, whereis, [weft_partisan_watch])) end),
    _ = start(p3, client([p1]), Config),
    until(fun() -> lists:last(held(A)) =:= {up, Name} end),
    ?assertEqual(3, length(held(A))),
    %% Processes are told after functions.
    until(fun() -> call(A, weft_test_nodes, ask, [Monitor, held])
                       =:= [{nodedown, Name}, {nodeup, Name}] end),
    ?assertMatch({raised, {bad_function, _, _}},
                 call(A, ?MODULE, attempt, [partisan_peer_service, on_up, [any, holder]])),
    ?assertEqual({error, {unknown_request, stray}},
                 call(A, gen_server, call, [weft_partisan_watch, stray])),
    Many = [call(A, ?MODULE, attempt, [partisan_peer_service, on_up, [any, fun() -> ok end]])
            || _ <- lists:seq(1, 1020)],
    ?assertEqual({raised, {too_many_functions, 1024}}, lists:last(Many)).

%% A hidden node that observes is no node of the cluster, and answers no calls to all.
tools_are_no_nodes(Config) ->
    [A, B, C] = ?config(star, Config),
    Tool = weft_test_nodes:start(tool, #{carrier => stock, args => ["-hidden" | ?PARTIAL]},
                                 ?config(place, Config)),
    true = call(Tool, net_kernel, connect_node, [name(A)]),
    until(fun() -> lists:member(name(Tool), call(A, erlang, nodes, [hidden])) end),
    Names = lists:sort([name(B), name(C)]),
    ?assertEqual(Names, call(A, partisan, nodes, [])),
    ?assertEqual(Names, call(A, partisan, nodes, [[visible]])),
    ?assertEqual([name(Tool)], call(A, partisan, nodes, [hidden])),
    ?assertMatch({[_, _, _], []},
                 call(A, partisan_gen_server, multi_call, [weft_partisan_watch, stray])),
    weft_test_nodes:kill(Tool).

%% --- the guide --------------------------------------------------------------------------------

%% What was written for Partisan, and the same without: equal results.
the_example_of_the_guide(Config) ->
    [Partisan, Plain] = weft_guide:page("partisan.md", "erlang module"),
    [?assertEqual([no, yes, yes], tally(Source, Config)) || Source <- [Partisan, Plain]].

tally(Source, Config) ->
    {Module, Binary} = compiled(Source, Config),
    Nodes = [A | _] = ?config(star, Config),
    [begin
         {module, _} = call(Node, code, load_binary, [Module, "tally.erl", Binary]),
         true = is_pid(call(Node, ?MODULE, start_tally, []))
     end || Node <- Nodes],
    [ok = call(Node, Module, vote, [For]) || {Node, For} <- lists:zip(Nodes, [yes, no, yes])],
    Expected = lists:sort(lists:zip([yes, no, yes], [name(Node) || Node <- Nodes])),
    [until(fun() -> call(A, Module, votes, [name(Node)]) =:= Expected end) || Node <- Nodes],
    [ok = call(Node, gen_server, stop, [Module]) || Node <- Nodes],
    [For || {For, _} <- Expected].

compiled(Source, Config) ->
    File = filename:join(?config(priv_dir, Config), "tally.erl"),
    ok = file:write_file(File, Source),
    {ok, Module, Binary, []} = compile:file(File, [binary, return]),
    {Module, Binary}.

what_is_not_there_says_so(Config) ->
    [A | _] = ?config(star, Config),
    [?assertMatch({{Module, Function}, {raised, {not_supported, _, [_ | _]}}},
                  {{Module, Function}, call(A, ?MODULE, attempt, [Module, Function, Args])})
     || {Module, Function, Args} <- [{partisan, broadcast, [message, handler]},
                                     {partisan, send_after, [1, {name, 'x@y'}, message]},
                                     {partisan_peer_service, connections, []},
                                     {partisan_peer_service, add_sup_callback, [fun() -> ok end]},
                                     {partisan_peer_service, broadcast_members, []}]],
    [?assertEqual({error, not_implemented}, call(A, partisan_peer_service, Function, Args))
     || {Function, Args} <- [{partitions, []}, {inject_partition, [x, 1]},
                             {resolve_partition, [make_ref()]}]],
    ?assertEqual({raised, {bad_node, 17, "a name, or a map with the key name"}},
                 call(A, ?MODULE, attempt, [partisan, join, [17]])).

%% --- on the nodes -----------------------------------------------------------------------------

holder() -> hold([]).

hold(Messages) ->
    receive
        {held, From, Ref} -> From ! {Ref, lists:reverse(Messages)}, hold(Messages);
        Message -> hold([Message | Messages])
    end.

hear(Name) ->
    Pid = spawn(?MODULE, holder, []),
    true = register(Name, Pid),
    Pid.

hear_of_nodes() ->
    Self = self(),
    Pid = spawn(fun() ->
                        ok = partisan:monitor_nodes(true),
                        Self ! {self(), monitors},
                        holder()
                end),
    receive {Pid, monitors} -> Pid end.

%% One process sends them all.
forward(Messages) ->
    lists:foreach(fun(Args) -> ok = apply(partisan, forward_message, Args) end, Messages).

attempt(Module, Function, Args) ->
    try apply(Module, Function, Args)
    catch
        error:Reason -> {raised, Reason}
    end.

%% Outside of the control channel's process, with which a linked process would end.
start_tally() ->
    Self = self(),
    spawn(fun() ->
                  {ok, Pid} = tally:start_link(),
                  Self ! {started, Pid},
                  receive stop -> ok end
          end),
    receive {started, Pid} -> Pid end.

%% --- helpers ----------------------------------------------------------------------------------

%% p1 serves; p2 and p3 reach each other through it.
star(Config) ->
    Nodes = [start(p1, server(), Config), start(p2, client([p1]), Config),
             start(p3, client([p1]), Config)],
    until_members(Nodes),
    Nodes.

server() -> {client_server, #{role => server, servers => [node_name(p1)]}}.

client(Servers) ->
    {client_server, #{role => client, servers => [node_name(Name) || Name <- Servers]}}.

start(Name, Topology, Config) ->
    Paths = [weft_test_nodes:ebin(Module) || Module <- [partisan, ?MODULE]],
    Env = [{topology, Topology}, {keepalive_ms, 200},
           {channels, #{votes => #{parallelism => 2}}}],
    Node = weft_test_nodes:start(Name, #{config => Env, args => ?PARTIAL ++ ["-pa" | Paths]},
                                 ?config(place, Config)),
    ok = call(Node, partisan, start, []),
    Node.

held(Node) -> call(Node, erlang, apply, [fun() -> weft_test_nodes:ask(holder, held) end, []]).

dead_pid(Node) ->
    Pid = call(Node, erlang, spawn, [erlang, now, []]),
    until(fun() -> not call(Node, erlang, is_process_alive, [Pid]) end),
    Pid.

until_members(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    [until(fun() ->
                   {ok, Names} =:= call(Node, partisan_peer_service, members, [])
                       andalso call(Node, partisan, nodes, []) =:= Names -- [name(Node)]
           end) || Node <- Nodes],
    ok.
