%% SPDX-License-Identifier: Apache-2.0
%% @doc What a trifle can end: one link, one session, one helper, never the node.
%%
%% Nodes a, g and b in a row, with all services, and talk from a to b all the time where it matters.
%% The cases have the same nodes, as none of these may end, but for those with two gateways side by
%% side. One adds a link for its time.
-module(weft_supervision_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1, kill_named/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([strays_are_logged_and_answered/1, strays_of_any_form_end_nothing/1,
         bad_channels_do_not_end_the_node/1,
         helpers_start_again_alone/1, registry_finds_the_links_again/1,
         links_are_children_and_end_alone/1, writer_takes_its_lane_with_it/1,
         keeper_is_killed_unnoticed/1, carrier_starts_again/1,
         application_of_a_gateway_stops_and_starts/1, network_of_a_gateway_stops_and_starts/1,
         host_link_is_watched_on_a_detour/1, link_does_not_wait_for_supervisors/1]).
-export([stray/1]).

-define(TRAFFIC, weft_resume_traffic).
%% Half of the time after which a session without a path ends.
-define(AROUND_MS_MAX, 15000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [strays_are_logged_and_answered, strays_of_any_form_end_nothing,
     bad_channels_do_not_end_the_node, helpers_start_again_alone,
     registry_finds_the_links_again, links_are_children_and_end_alone,
     writer_takes_its_lane_with_it, keeper_is_killed_unnoticed, carrier_starts_again,
     application_of_a_gateway_stops_and_starts, network_of_a_gateway_stops_and_starts,
     host_link_is_watched_on_a_detour, link_does_not_wait_for_supervisors].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Row = row([row_a, row_g, row_b], [{row_a, row_g}, {row_g, row_b}], Config),
    Diamond = diamond(Config),
    ok = weft_test_nodes:share_all(),
    [{row, Row}, {diamond, Diamond} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- strays -----------------------------------------------------------------------------------

%% Every name that there is: a message is one line, a call is one line and an error.
strays_are_logged_and_answered(Config) ->
    {A, _, _} = row(Config),
    true = call(A, code, add_patha, [weft_test_nodes:ebin(s_group)]),
    {ok, Started} = call(A, application, ensure_all_started, [sd_erlang]),
    ok = call(A, weft_stray_log, start, []),
    Names = call(A, weft_odd_input, registered_of_weft, []),
    ct:pal("~b names: ~p", [length(Names), Names]),
    ?assert(length(Names) >= 25),
    Pids = [{Name, call(A, erlang, whereis, [Name])} || Name <- Names],
    Heard = [{Name, call(A, ?MODULE, stray, [Name])} || Name <- Names],
    ?assertEqual([], [Bad || {_, Result} = Bad <- Heard,
                             Result =/= {[message, call], {unknown_request, foo}}]),
    ?assertEqual(Pids, [{Name, call(A, erlang, whereis, [Name])} || Name <- Names]),
    [ok = call(A, application, stop, [App]) || App <- lists:reverse(Started)].

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

strays_of_any_form_end_nothing(Config) ->
    {A, _, B} = Nodes = row(Config),
    ?assertEqual([], call(A, weft_odd_input, strays, [])),
    talk(Nodes),
    ok = call(A, weft, send, [{nobody, name(B)}, message, default]),
    ?assertEqual([], call(A, weft_odd_input, strays,
                          [[weft_link, weft_session, weft_input_proc, weft_channel_sender]])),
    all_arrived(Nodes).

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
    Writers = writers(G, Link),
    ?assertMatch([_ | _], Writers),
    [true = call(G, erlang, exit, [Writer, kill]) || Writer <- Writers],
    until(fun() ->
              Others = writers(G, Link),
              Others =/= [] andalso Others -- Writers =:= Others
                  andalso call(G, weft_links, up, [name(A)])
          end),
    ?assertEqual({ok, Link}, call(G, weft_links, lookup, [name(A)])),
    all_arrived(Nodes).

writers(Node, Link) ->
    {links, Linked} = call(Node, erlang, process_info, [Link, links]),
    [Pid || Pid <- Linked, is_pid(Pid), is_writer(Node, Pid)].

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
    Incarnation = call(G, weft_identity, incarnation, []),
    kill_named(G, weft_carrier_sup),
    ?assertNotEqual(Incarnation, call(G, weft_identity, incarnation, [])),
    until(fun() -> has_route(A, B) andalso has_route(B, A) end),
    until(fun() -> call(G, net_adm, ping, [name(A)]) =:= pong end),
    all_arrived(Nodes).

%% --- stop and start ---------------------------------------------------------------------------

%% There are two gateways; the one that is used stops its overlay.
application_of_a_gateway_stops_and_starts(Config) ->
    {A, B, Gateways} = diamond_at_rest(Config),
    talk({A, none, B}),
    Used = used(A, B, Gateways),
    [Other] = Gateways -- [Used],
    ok = call(Used, application, stop, [weft]),
    Ms = until_ms(fun() -> goes_by(Other, A, B) end),
    ok = call(Used, application, start, [weft]),
    until(fun() -> routes_everywhere([A, B | Gateways]) end),
    ct:pal("routes around a gateway without overlay after ~b ms", [Ms]),
    ?assert(Ms < ?AROUND_MS_MAX),
    all_arrived({A, none, B}).

%% And the network itself: that this incarnation of the node is over is known at once.
network_of_a_gateway_stops_and_starts(Config) ->
    {A, B, Gateways} = diamond_at_rest(Config),
    talk({A, none, B}),
    Used = used(A, B, Gateways),
    [Other] = Gateways -- [Used],
    [begin
         Incarnation = call(Used, weft_identity, incarnation, []),
         ok = call(Used, net_kernel, stop, []),
         Ms = until_ms(fun() -> goes_by(Other, A, B) end),
         until(fun() -> call(A, weft_overlay, has_died, [name(Used), Incarnation]) end),
         start_network(Used),
         until(fun() -> routes_everywhere([A, B | Gateways]) end),
         ct:pal("routes around a gateway without a network after ~b ms", [Ms]),
         ?assert(Ms < ?AROUND_MS_MAX)
     end || _ <- [1, 2]],
    pong = call(Used, net_adm, ping, [name(A)]),
    all_arrived({A, none, B}).

diamond(Config) ->
    [A, B, G, H] = Full = [node_name(N) || N <- [sup_a, sup_b, sup_g, sup_h]],
    Links = [{A, G}, {G, B}, {A, H}, {H, B}],
    [NodeA, NodeB] = [start(N, Links, Config) || N <- [sup_a, sup_b]],
    Gateways = [start_later(N, Links, Config) || N <- [sup_g, sup_h]],
    until(fun() -> routes_everywhere([NodeA, NodeB | Gateways]) end),
    ?assertEqual(Full, [name(N) || N <- [NodeA, NodeB | Gateways]]),
    {NodeA, NodeB, Gateways}.

%% A node that is given its name later can stop its network.
start_later(Name, Links, Config) ->
    Node = weft_test_nodes:start(none, options(Links), ?config(place, Config)),
    Named = Node#{node := node_name(Name)},
    start_network(Named),
    {ok, _} = call(Named, application, ensure_all_started, [weft]),
    Named.

start_network(#{node := Name} = Node) ->
    [Short, _] = string:split(atom_to_list(Name), "@"),
    {ok, _} = call(Node, net_kernel, start, [[list_to_atom(Short), shortnames]]),
    ok.

route(Node, To) ->
    case call(Node, weft_overlay, route, [name(To)]) of
        {ok, NextHop} -> NextHop;
        {error, no_route} -> none
    end.

goes_by(Gateway, A, B) ->
    route(A, B) =:= name(Gateway) andalso route(B, A) =:= name(Gateway).

used(A, B, Gateways) ->
    [Used] = [G || G <- Gateways, name(G) =:= route(A, B)],
    Used.

routes_everywhere(Nodes) ->
    lists:all(fun({From, To}) -> From =:= To orelse route(From, To) =/= none end,
              [{From, To} || From <- Nodes, To <- Nodes]).

until_ms(Condition) ->
    {Us, ok} = timer:tc(fun() -> until(Condition) end),
    Us div 1000.

%% --- what links wait for, and who waits for links ---------------------------------------------

%% The link between a and b delivers the input of their session, also while it goes through g.
host_link_is_watched_on_a_detour(Config) ->
    {A, G, B} = Row = row(Config),
    Links = [{name(X), name(Y)} || {X, Y} <- [{A, G}, {G, B}, {A, B}]],
    ok = linked(Links, Row),
    try link_is_watched(Row)
    after ok = linked([{X, Y} || {X, Y} <- Links, {X, Y} =/= {name(A), name(B)}], Row)
    end.

linked(Links, {A, G, B}) ->
    lists:foreach(fun(Node) -> ok = call(Node, weft, topology, [{static, #{links => Links}}]) end,
                  [A, G, B]).

link_is_watched({A, G, B}) ->
    until(fun() -> is_hosted(A, B) orelse connects_again(A, B) end),
    ok = call(A, ?TRAFFIC, expect, []),
    ok = call(A, ?TRAFFIC, watch, [name(B)]),
    {ok, Link} = call(A, weft_links, lookup, [name(B)]),
    until(fun() -> path(A, B) =:= Link end),
    ok = call(A, weft_fault, cut, [name(B)]),
    {ok, Around} = call(A, weft_links, lookup, [name(G)]),
    until(fun() -> path(A, B) =:= Around end),
    true = call(A, erlang, exit, [Link, kill]),
    until(fun() -> is_down(A, B) end),
    ok = call(A, weft_fault, heal, [name(B)]),
    until(fun() -> call(A, net_adm, ping, [name(B)]) =:= pong end).

%% A session that has begun on a circuit has a process of its own for that.
is_hosted(A, B) ->
    Peer = atom_to_binary(name(B)),
    Inputs = [Input || {_, _, Input, With, distribution}
                           <- call(A, ets, tab2list, [weft_sessions]), With =:= Peer],
    [call(A, weft_links, lookup, [name(B)])] =:= [{ok, Input} || Input <- Inputs].

connects_again(A, B) ->
    until(fun() -> call(A, weft_links, up, [name(B)]) end),
    _ = call(A, erlang, disconnect_node, [name(B)]),
    _ = call(A, net_adm, ping, [name(B)]),
    false.

path(A, #{node := B}) ->
    case [Path || Session <- call(A, weft_sessions, of_distribution, [atom_to_binary(B)]),
                  #{link := Path} <- info(A, Session)] of
        [Path] -> Path;
        [] -> none
    end.

info(Node, Session) ->
    try [call(Node, weft_session, info, [Session])]
    catch _:{noproc, _} -> []
    end.

is_down(A, B) ->
    #{signals := Signals} = call(A, ?TRAFFIC, account, []),
    [] =/= [Down || {_, {nodedown, Node, _}} = Down <- Signals, Node =:= name(B)].

%% A supervisor that stands still keeps a stream from beginning, and nothing else.
link_does_not_wait_for_supervisors(Config) ->
    {A, G, _B} = row(Config),
    pong = call(A, net_adm, ping, [name(G)]),
    ok = call(G, sys, suspend, [weft_channel_workers]),
    ok = call(A, weft, send, [{?MODULE, name(G)}, hello, #{channel => bulk}]),
    until(fun() -> has_helper(G) end),
    ?assertEqual(pong, call(A, net_adm, ping, [name(G)])),
    ok = call(G, sys, resume, [weft_channel_workers]),
    until(fun() -> not has_helper(G) end).

has_helper(Node) ->
    lists:any(fun(Pid) -> call(Node, erlang, process_info, [Pid, initial_call])
                              =:= {initial_call, {weft_switch, accept, 5}}
              end, call(Node, erlang, processes, [])).

%% --- steps ------------------------------------------------------------------------------------

%% What the case before has left is gone.
row(Config) ->
    {A, G, B} = Row = ?config(row, Config),
    quiet([A, G, B]),
    until(fun() -> has_route(A, B) andalso has_route(B, A) end),
    Row.

diamond_at_rest(Config) ->
    {A, B, Gateways} = Diamond = ?config(diamond, Config),
    quiet([A, B | Gateways]),
    until(fun() -> routes_everywhere([A, B | Gateways]) end),
    Diamond.

quiet(Nodes) -> [ok = call(Node, ?TRAFFIC, stop, []) || Node <- Nodes].

row([_, _, _] = Names, Links, Config) ->
    Full = [{node_name(X), node_name(Y)} || {X, Y} <- Links],
    [A, G, B] = [start(Name, Full, Config) || Name <- Names],
    until(fun() -> has_route(A, B) andalso has_route(B, A) end),
    {A, G, B}.

options(Links) ->
    #{config => [{topology, {static, #{links => Links}}}, {faults, true},
                 {resume_timeout_ms, 30000}],
      args => ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]}.

start(Name, Links, Config) ->
    Node = weft_test_nodes:start(Name, options(Links), ?config(place, Config)),
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
