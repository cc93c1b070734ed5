%% SPDX-License-Identifier: Apache-2.0
%% @doc Two versions in one cluster: six nodes of the build before are exchanged for this one, one
%% by one, under traffic over gateways. (docs/internals/versions.md) Usually the last two stay as
%% they are: with FULL=1 they are exchanged too, after which no node of the build before is left.
-module(weft_versions_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([nodes_are_exchanged_one_by_one/1]).

%% The version before this one.
-define(BEFORE, "192dd3cc14d680c8c5c03195f6c84f6ea18dd79a").
-define(T, weft_resume_traffic).
-define(ENDS, [a, b, c, d]).
-define(GATEWAYS, [g, h]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [nodes_are_exchanged_one_by_one].

init_per_suite(Config0) ->
    case weft_old_build:make(?BEFORE) of
        {ok, Ebin} -> [{before, Ebin} | weft_test_nodes:begin_suite(Config0)];
        {error, Reason} -> {skip, Reason}
    end.

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% --- the case ---------------------------------------------------------------------------------

%% Both pairs talk while the gateways are exchanged, and c and d while a and b are.
nodes_are_exchanged_one_by_one(Config) ->
    Old = maps:from_list([{Name, start(Name, before, Config)} || Name <- ?GATEWAYS ++ ?ENDS]),
    services(Old),
    talk([a, b], Old),
    talk([c, d], Old),
    Mixed = lists:foldl(fun(Name, Nodes) -> exchange(Name, Nodes, Config) end, Old, ?GATEWAYS),
    nothing_lost([a, b], Mixed),
    Half = lists:foldl(fun(Name, Nodes) -> exchange(Name, Nodes, Config) end, Mixed, [a, b]),
    nothing_lost([c, d], Half),
    far_apart([a, b], [{a, times, 1}, {b, arrived, 3}], Half),
    far_apart([a, c], [{a, times, 1}], Half),
    services(Half),
    [rest_is_exchanged(Half, Config) || os:getenv("FULL") =:= "1"],
    ok.

rest_is_exchanged(Half, Config) ->
    talk([a, b], Half),
    New = lists:foldl(fun(Name, Nodes) -> exchange(Name, Nodes, Config) end, Half, [c, d]),
    nothing_lost([a, b], New),
    services(New).

exchange(Name, Nodes, Config) ->
    #{Name := Node} = Nodes,
    Resting = maps:remove(Name, Nodes),
    Received = traffic(Resting),
    ok = weft_test_nodes:kill(Node),
    Again = start(Name, now, Config),
    Exchanged = Nodes#{Name := Again},
    connected(Exchanged),
    %% Whoever talks has gone on.
    [until(fun() -> received(N, Exchanged) > Count end, 60000) || {N, Count} <- Received],
    Exchanged.

%% A node whose peers are far away asks them to say when they acknowledge. Those of the version
%% before do not know that question. Each of the functions of weft_wire is called on its node.
far_apart(Pair, Functions, Nodes) ->
    Counted = fun(Function, More) ->
                  [call(maps:get(Name, Nodes), erlang, Function,
                        [{weft_wire, Packet, Arity} | More]) || {Name, Packet, Arity} <- Functions]
              end,
    Faults = fun(Function, More) ->
                 [ok = call(maps:get(Name, Nodes), weft_fault, Function, [node_name(To) | More])
                  || Name <- Pair, To <- ?GATEWAYS]
             end,
    _ = Counted(trace_pattern, [true, [call_count]]),
    _ = Faults(delay, [5, 5]),
    talk(Pair, 100000, Nodes),
    nothing_lost(Pair, Nodes),
    _ = Faults(heal, []),
    Calls = [Count || {call_count, Count} <- Counted(trace_info, [call_count])],
    ?assertEqual([], [Count || Count <- Calls, Count < 1]),
    ?assertEqual(length(Functions), length(Calls)),
    _ = Counted(trace_pattern, [false, [call_count]]).

%% --- traffic ----------------------------------------------------------------------------------

talk(Pair, Nodes) -> talk(Pair, 500, Nodes).

talk([A, B] = Pair, BytesMax, Nodes) ->
    [ok = call(maps:get(N, Nodes), ?T, expect, []) || N <- Pair],
    [begin
         ok = call(maps:get(Here, Nodes), ?T, watch, [node_name(There)]),
         ok = call(maps:get(Here, Nodes), ?T, send,
                   [node_name(There), #{rate => 500, bytes_max => BytesMax, seed => 1}])
     end || {Here, There} <- [{A, B}, {B, A}]].

%% Who is talking, and how much it has heard.
traffic(Nodes) ->
    [{Name, received(Name, Nodes)}
     || {Name, Node} <- maps:to_list(Nodes),
        call(Node, erlang, whereis, [weft_traffic_out]) =/= undefined].

received(Name, Nodes) -> maps:get(received, call(maps:get(Name, Nodes), ?T, account, [])).

nothing_lost([A, B], Nodes) ->
    #{A := NodeA, B := NodeB} = Nodes,
    [until(fun() -> received(Name, Nodes) > 1000 end, 60000) || Name <- [A, B]],
    [SentA, SentB] = [call(N, ?T, finish, []) || N <- [NodeA, NodeB]],
    [begin
         until(fun() -> received(Name, Nodes) >= Sent end, 60000),
         ?assertMatch(#{received := Sent, wrong := []},
                      call(maps:get(Name, Nodes), ?T, account, []))
     end || {Name, Sent} <- [{B, SentA}, {A, SentB}]],
    [?assertEqual({name(N), []}, {name(N), ends(N)}) || N <- [NodeA, NodeB]].

ends(Node) ->
    [Signal || {_, Signal} <- maps:get(signals, call(Node, ?T, account, [])),
               lists:member(element(1, Signal), ['DOWN', 'EXIT', nodedown])].

%% --- services ---------------------------------------------------------------------------------

%% A name that each end registers is seen by all others; so are messages of a channel. Who waits
%% until others have heard of a name waits for nobody who can not say so.
services(Nodes) ->
    connected(Nodes),
    Ends = [{Name, maps:get(Name, Nodes)} || Name <- ?ENDS],
    lists:foreach(
      fun({Scope, Name, Node}) ->
              Key = {Scope, {Name, erlang:unique_integer()}},
              Pid = call(Node, erlang, whereis, [init]),
              until(fun() -> ok =:= call(Node, weft_names, register, [Key, Pid]) end, 60000),
              [until(fun() -> Pid =:= call(N, weft_names, whereis_name, [Key]) end, 60000)
               || {_, N} <- Ends],
              ok = call(Node, weft_names, unregister, [Key])
      end, [{Scope, Name, Node} || Scope <- [strong, eventual], {Name, Node} <- Ends]),
    %% One of them may have met a busy machine. In a half exchanged cluster two would wait.
    Quick = [Name || {Name, Node} <- Ends, registering_us(Name, Node) < 2900000],
    ?assert(length(Quick) >= length(Ends) - 1, Quick),
    [[_ | _] = call(Here, weft, call, [{kernel_sup, name(There)}, which_children, 20000,
                                       #{channel => files}])
     || {_, Here} <- Ends, {_, There} <- Ends, Here =/= There].

registering_us(Name, Node) ->
    Global = {Name, erlang:unique_integer()},
    Pid = call(Node, erlang, whereis, [init]),
    {Us, yes} = timer:tc(fun() -> call(Node, weft_global, re_register_name, [Global, Pid]) end),
    ok = call(Node, weft_global, unregister_name, [Global]),
    Us.

%% All with all, and no old route left.
connected(Nodes) ->
    Names = [name(N) || N <- maps:values(Nodes)],
    [until(fun() -> call(Node, net_kernel, connect_node, [Name]) =:= true end, 60000)
     || Node <- maps:values(Nodes), Name <- Names, Name =/= name(Node)],
    ok.

%% --- nodes ------------------------------------------------------------------------------------

%% Each end is linked to both gateways.
start(Name, Build, Config) ->
    [A, B, C, D] = [node_name(N) || N <- ?ENDS],
    [G, H] = Gateways = [node_name(N) || N <- ?GATEWAYS],
    Links = [{G, H} | [{End, Gateway} || End <- [A, B, C, D], Gateway <- Gateways]],
    Env = [{faults, true}, {topology, {static, #{links => Links}}},
           {channels, #{files => #{class => bulk}}},
           {scopes, #{strong => #{kind => strong, voters => [G, H, A]}, eventual => #{}}}],
    Before = ?config(before, Config),
    Args = ["-connect_all", "false", "-kernel", "prevent_overlapping_partitions", "false"
            | case Build of before -> ["-pa", Before]; now -> [] end],
    Node = weft_test_nodes:start(Name, #{config => Env, args => Args}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    ?assertEqual(Build =:= before,
                 Before =:= filename:dirname(call(Node, code, which, [weft_dist]))),
    Node.
