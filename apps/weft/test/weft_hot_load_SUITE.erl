%% SPDX-License-Identifier: Apache-2.0
%% @doc Code is loaded again on live nodes: nothing is lost and nobody notices.
-module(weft_hot_load_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([no_process_stays_in_old_code/1, loads_under_traffic/1,
         streams_of_another_shape_go_on/1]).

-define(T, weft_resume_traffic).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [loads_under_traffic, streams_of_another_shape_go_on, no_process_stays_in_old_code].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

%% But for the one that waits for connections, in a call that only a connection ends: when it is
%% killed another one waits.
no_process_stays_in_old_code(Config) ->
    [A, Gateway, B] = cluster(Config),
    talk(A, B),
    lists:foreach(fun(N) ->
                          ?assert(call(N, weft_hot_load, load, []) > 100),
                          until(fun() -> short_lived_are_gone(N) end)
                  end, [A, Gateway]).

short_lived_are_gone(Node) ->
    case call(Node, weft_hot_load, stale, []) of
        [{{initial_call, {weft_listener, accept_loop, 4}}, weft_listener}] -> true;
        Stale -> ct:pal("~p: ~p", [name(Node), Stale]), false
    end.

%% The second one ends who has not left the code that was there before the first.
loads_under_traffic(Config) ->
    [A, Gateway, B] = Nodes = cluster(Config),
    C = stock_node(Config),
    until(fun() -> call(C, net_kernel, connect_node, [name(A)]) =:= true end),
    Pairs = [{A, B}, {B, A}],
    [ok = call(N, ?T, expect, []) || N <- Nodes],
    [ok = call(Here, ?T, watch, [name(There)]) || {Here, There} <- Pairs],
    ok = call(Gateway, ?T, watch_nodes, []),
    Plan = #{rate => 1000, bytes_max => 2000, seed => 1},
    [ok = call(Here, ?T, send, [name(There), Plan]) || {Here, There} <- Pairs],
    Before = [registered(N) || N <- Nodes],
    lists:foreach(fun(Count) ->
                          [call(N, weft_hot_load, load, []) || N <- Nodes],
                          until(fun() -> received(B) > Count * 500 end)
                  end, [1, 2]),
    ?assertEqual(Before, [registered(N) || N <- Nodes]),
    [SentA, SentB] = [call(N, ?T, finish, []) || N <- [A, B]],
    [begin
         until(fun() -> received(N) >= Sent end),
         ?assertMatch(#{received := Sent, wrong := []}, call(N, ?T, account, []))
     end || {N, Sent} <- [{B, SentA}, {A, SentB}]],
    [?assertEqual({name(N), []}, {name(N), ends(N)}) || N <- Nodes],
    ?assert(lists:member(name(C), call(A, erlang, nodes, [hidden]))),
    %% Who comes now finds the door open.
    D = start(d, [{topology, {static, #{links => [{node_name(d), name(A)}]}}}], Config),
    until(fun() -> call(D, net_kernel, connect_node, [name(A)]) =:= true end),
    talk(A, B).

streams_of_another_shape_go_on(Config) ->
    [A, _Gateway, B] = Nodes = cluster(Config),
    [ok = call(N, ?T, expect, []) || N <- [A, B]],
    Pairs = [{A, B}, {B, A}],
    [ok = call(Here, ?T, watch, [name(There)]) || {Here, There} <- Pairs],
    Plan = #{rate => 1000, bytes_max => 2000, seed => 1},
    [ok = call(Here, ?T, send, [name(There), Plan]) || {Here, There} <- Pairs],
    Changed = [call(N, weft_hot_load, upgrade, [What])
               || {What, At} <- [{set_back, Nodes}, {as_it_is, [A]}], N <- At],
    ?assertEqual([weft_channel_receiver, weft_channel_sender, weft_session],
                 lists:usort(lists:append(Changed))),
    Received = received(B),
    until(fun() -> received(B) > Received + 500 end),
    [SentA, SentB] = [call(N, ?T, finish, []) || N <- [A, B]],
    [begin
         until(fun() -> received(N) >= Sent end),
         ?assertMatch(#{received := Sent, wrong := []}, call(N, ?T, account, []))
     end || {N, Sent} <- [{B, SentA}, {A, SentB}]],
    [?assertEqual({name(N), []}, {name(N), ends(N)}) || N <- [A, B]],
    talk(A, B).

%% --- small parts ------------------------------------------------------------------------------

%% a - gateway - b, with what weft can do: the same for all cases.
cluster(Config) ->
    Names = [node_name(Name) || Name <- [a, gateway, b]],
    [A, Gateway, B] = Names,
    Env = [{topology, {static, #{links => [{A, Gateway}, {Gateway, B}]}}}, {lanes, 2},
           {channels, #{files => #{class => bulk, parallelism => 2}}},
           {scopes, #{strong => #{kind => strong, voters => Names}, eventual => #{}}}],
    [RefA, RefGateway, RefB] = Refs =
        [weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Env, Config) end)
         || Name <- [a, gateway, b]],
    [ok = call(Ref, ?T, stop, []) || Ref <- Refs],
    until(fun() -> call(RefA, net_kernel, connect_node, [B]) =:= true end),
    [until(fun() -> call(RefGateway, net_kernel, connect_node, [N]) =:= true end) || N <- [A, B]],
    talk(RefA, RefB),
    Refs.

start(Name, Env, Config) ->
    Options = #{config => Env, args => ["-connect_all", "false", "-kernel",
                                        "prevent_overlapping_partitions", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

stock_node(Config) ->
    weft_test_nodes:start(c, #{carrier => stock, args => ["-hidden"]}, ?config(place, Config)).

%% Each service says something.
talk(A, B) ->
    Pid = call(A, erlang, whereis, [init]),
    lists:foreach(fun(Name) ->
                          until(fun() -> ok =:= call(A, weft_names, register, [Name, Pid]) end),
                          until(fun() -> Pid =:= call(B, weft_names, whereis_name, [Name]) end),
                          ok = call(A, weft_names, unregister, [Name])
                  end, [{strong, init}, {eventual, init}]),
    [_ | _] = call(A, weft, call, [{kernel_sup, name(B)}, which_children, 10000,
                                   #{channel => files}]),
    ok = call(A, weft, broadcast, [hot_load, hello]).

received(Node) -> maps:get(received, call(Node, ?T, account, [])).

ends(Node) ->
    [Signal || {_, Signal} <- maps:get(signals, call(Node, ?T, account, [])),
               lists:member(element(1, Signal), ['DOWN', 'EXIT', nodedown])].

%% The processes of weft that have names.
registered(Node) ->
    [{Name, call(Node, erlang, whereis, [Name])} || Name <- call(Node, erlang, registered, []),
                                                    lists:prefix("weft_", atom_to_list(Name)),
                                                    not lists:prefix("weft_traffic",
                                                                     atom_to_list(Name))].
