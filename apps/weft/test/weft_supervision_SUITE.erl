%% SPDX-License-Identifier: Apache-2.0
%% @doc What a trifle can end: one link, one session, one helper, never the node.
%%
%% Nodes a, g and b in a row, with all services, and talk from a to b all the time where it matters.
-module(weft_supervision_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([strays_are_logged_and_answered/1, bad_channels_do_not_end_the_node/1,
         helpers_start_again_alone/1, registry_finds_the_links_again/1,
         links_are_children_and_end_alone/1, writer_takes_its_lane_with_it/1,
         keeper_is_killed_unnoticed/1, carrier_starts_again/1]).
-export([registered_of_weft/0, stray/1]).

-define(TRAFFIC, weft_resume_traffic).
%% What a process of weft registers itself as.
-define(NAMES, ["weft_", "s_group"]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [strays_are_logged_and_answered, bad_channels_do_not_end_the_node, helpers_start_again_alone,
     registry_finds_the_links_again, links_are_children_and_end_alone,
     writer_takes_its_lane_with_it, keeper_is_killed_unnoticed, carrier_starts_again].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- strays -----------------------------------------------------------------------------------

%% Every name that there is: a message is one line, a call is one line and an error.
strays_are_logged_and_answered(Config) ->
    {A, _, _} = row(Config),
    true = call(A, code, add_patha, [weft_test_nodes:ebin(s_group)]),
    {ok, _} = call(A, application, ensure_all_started, [sd_erlang]),
    ok = call(A, weft_stray_log, start, []),
    Names = call(A, ?MODULE, registered_of_weft, []),
    ct:pal("~b names: ~p", [length(Names), Names]),
    ?assert(length(Names) >= 25),
    Pids = [{Name, call(A, erlang, whereis, [Name])} || Name <- Names],
    Heard = [{Name, call(A, ?MODULE, stray, [Name])} || Name <- Names],
    ?assertEqual([], [Bad || {_, Result} = Bad <- Heard,
                             Result =/= {[message, call], {unknown_request, foo}}]),
    ?assertEqual(Pids, [{Name, call(A, erlang, whereis, [Name])} || Name <- Names]).

%% @private Runs on the node.
-spec registered_of_weft() -> [atom()].
registered_of_weft() ->
    lists:sort([Name || Name <- registered(),
                        lists:any(fun(Start) -> lists:prefix(Start, atom_to_list(Name)) end,
                                  ?NAMES)]).

%% @private Runs on the node: what the process has logged, and the answer.
-spec stray(atom()) -> {Lines :: list(), Answer :: term()}.
stray(Name) ->
    _ = weft_stray_log:taken(),
    Name ! {tcp_closed, x},
    Pid = whereis(Name),
    %% What a process does not answer it has not come to yet.
    Answer = try gen_server:call(Name, foo) of
                 {error, Error} -> Error;
                 Other -> Other
             catch exit:Reason -> {exit, Reason}
             end,
    {lists:reverse(lists:sort([Kind || {P, Kind} <- weft_stray_log:taken(), P =:= Pid])), Answer}.

bad_channels_do_not_end_the_node(Config) ->
    {A, _, B} = row(Config),
    ok = call(A, application, set_env, [weft, channels, []]),
    Text = try call(A, weft, pin, [bulk]) of Ok -> Ok
           catch error:Error -> lists:flatten(io_lib:format("~0tp", [Error]))
           end,
    ?assertMatch({match, _}, re:run(Text, "must be a map from names")),
    ok = call(A, application, set_env, [weft, channels, #{}]),
    ok = call(A, weft_pins, pin, [call(A, erlang, whereis, [init]), bulk]),
    ?assertEqual(pong, call(A, net_adm, ping, [name(B)])).

%% --- helpers ----------------------------------------------------------------------------------

helpers_start_again_alone(Config) ->
    {A, G, B} = Nodes = row(Config),
    talk(Nodes),
    [begin
         kill_named(Node, Helper),
         pong = call(A, net_adm, ping, [name(B)])
     end || Helper <- [weft_refusals, weft_pins, weft_sessions, weft_carrier_watch],
            Node <- [A, G]],
    all_arrived(Nodes).

%% Also while somebody asks for a link, and with a subscriber that has to go on hearing.
registry_finds_the_links_again(Config) ->
    {A, G, B} = Nodes = row(Config),
    talk(Nodes),
    Before = [call(Node, weft_links, list, []) || Node <- [A, G, B]],
    [kill_named(Node, weft_links) || _ <- lists:seq(1, 5), Node <- [A, G, B]],
    ?assertEqual(Before, [call(Node, weft_links, list, []) || Node <- [A, G, B]]),
    %% The overlay hears of a link that goes down and comes up.
    ok = call(A, weft_links, break, [name(G)]),
    until(fun() -> has_route(A, B) end),
    {ok, Link} = call(G, weft_links, lookup, [name(B)]),
    true = call(G, erlang, exit, [Link, kill]),
    until(fun() -> call(G, weft_links, lookup, [name(B)]) =/= {ok, Link} end),
    until(fun() -> has_route(A, B) end),
    all_arrived(Nodes).

%% A gateway loses one of its links: circuits through it find another way or wait for the next one;
%% nobody but the two that the link was for loses a session.
links_are_children_and_end_alone(Config) ->
    {A, G, B} = Nodes = row(Config),
    talk(Nodes),
    Listed = lists:sort([Pid || {_, Pid} <- call(G, weft_links, list, [])]),
    ?assertEqual(Listed, lists:sort([Pid || {_, Pid, worker, _}
                                                <- call(G, supervisor, which_children,
                                                        [weft_link_sup])])),
    [begin
         {ok, Link} = call(G, weft_links, lookup, [name(Node)]),
         true = call(G, erlang, exit, [Link, kill]),
         until(fun() -> call(G, weft_links, up, [name(Node)])
                            andalso call(G, weft_links, lookup, [name(Node)]) =/= {ok, Link} end),
         until(fun() -> has_route(A, B) andalso has_route(B, A) end)
     end || Node <- [A, B, A, B]],
    all_arrived(Nodes).

writer_takes_its_lane_with_it(Config) ->
    {A, G, _B} = Nodes = row(Config),
    talk(Nodes),
    {ok, Link} = call(G, weft_links, lookup, [name(A)]),
    {links, Linked} = call(G, erlang, process_info, [Link, links]),
    Writers = [Pid || Pid <- Linked, is_pid(Pid), is_writer(G, Pid)],
    ?assertMatch([_ | _], Writers),
    [true = call(G, erlang, exit, [Writer, kill]) || Writer <- Writers],
    until(fun() -> call(G, weft_links, up, [name(A)]) end),
    ?assertEqual({ok, Link}, call(G, weft_links, lookup, [name(A)])),
    all_arrived(Nodes).

is_writer(Node, Pid) ->
    {weft_lane_writer, init, 1} =:= call(Node, proc_lib, translate_initial_call, [Pid]).

%% --- the carrier as a whole -------------------------------------------------------------------

keeper_is_killed_unnoticed(Config) ->
    {_A, G, _B} = Nodes = row(Config),
    talk(Nodes),
    Carrier = call(G, erlang, whereis, [weft_carrier_sup]),
    [kill_named(G, weft_carrier_keeper) || _ <- lists:seq(1, 3)],
    ?assertEqual(Carrier, call(G, erlang, whereis, [weft_carrier_sup])),
    ?assertMatch([{_, _, _, _}],
                 [Child || {weft_carrier_keeper, _, _, _} = Child
                               <- call(G, supervisor, which_children, [net_sup])]),
    all_arrived(Nodes).

%% All links of the gateway end, and the session between a and b goes on as soon as there are
%% others.
carrier_starts_again(Config) ->
    {A, G, B} = Nodes = row(Config),
    talk(Nodes),
    kill_named(G, weft_carrier_sup),
    until(fun() -> has_route(A, B) andalso has_route(B, A) end),
    until(fun() -> call(G, net_adm, ping, [name(A)]) =:= pong end),
    all_arrived(Nodes).

%% --- steps ------------------------------------------------------------------------------------

row(Config) ->
    Links = [{node_name(sup_a), node_name(sup_g)}, {node_name(sup_g), node_name(sup_b)}],
    [A, G, B] = [start(Name, Links, Config) || Name <- [sup_a, sup_g, sup_b]],
    until(fun() -> has_route(A, B) andalso has_route(B, A) end),
    {A, G, B}.

start(Name, Links, Config) ->
    Options = #{config => [{topology, {static, #{links => Links}}}, {faults, true},
                           {resume_timeout_ms, 30000}],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

has_route(Node, To) ->
    {error, no_route} =/= call(Node, weft_overlay, route, [name(To)]).

%% From a to b, all the time, with links and monitors.
talk({A, _G, B}) ->
    pong = call(A, net_adm, ping, [name(B)]),
    ok = call(B, ?TRAFFIC, expect, []),
    ok = call(A, ?TRAFFIC, expect, []),
    ok = call(A, ?TRAFFIC, watch, [name(B)]),
    ok = call(A, ?TRAFFIC, send, [name(B), #{rate => 500, bytes_max => 2000, seed => 1}]).

all_arrived({A, _G, B}) ->
    Sent = call(A, ?TRAFFIC, finish, []),
    until(fun() -> maps:get(received, call(B, ?TRAFFIC, account, [])) =:= Sent end),
    ?assertMatch(#{wrong := []}, call(B, ?TRAFFIC, account, [])),
    ?assertMatch(#{signals := []}, call(A, ?TRAFFIC, account, [])).

kill_named(Node, Name) ->
    Pid = call(Node, erlang, whereis, [Name]),
    true = call(Node, erlang, exit, [Pid, kill]),
    until(fun() -> not lists:member(call(Node, erlang, whereis, [Name]), [Pid, undefined]) end).
