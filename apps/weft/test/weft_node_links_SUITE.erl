%% SPDX-License-Identifier: Apache-2.0
%% @doc Drivers of a service on real nodes: who is a neighbour, and in what order it is told.
-module(weft_node_links_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_neighbour_is_a_node_that_runs_the_service/1, hidden_nodes_are_neighbours/1,
         hidden_nodes_of_the_stock_carrier_are_neighbours/1,
         a_restarted_driver_is_a_new_neighbour/1, a_killed_node_is_down/1,
         sessions_that_break_lose_nothing_in_their_middle/1,
         connect_reaches_a_member_by_a_circuit/1, a_full_outlet_ends_the_session/1,
         an_outlet_that_dies_ends_the_session/1, a_watched_process_is_told_gone/1,
         services_share_an_outlet/1, sessions_of_an_outlet_take_turns/1,
         what_is_being_sent_does_not_wait/1]).
%% Run on the nodes.
-export([start/0, stop/0, observer/1, events/1, flood/2, outlets/1, collector/0, in_turn/2,
         behind_large/1]).

-define(SERVICE, weft_service_under_test).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_neighbour_is_a_node_that_runs_the_service, hidden_nodes_are_neighbours,
     hidden_nodes_of_the_stock_carrier_are_neighbours, connect_reaches_a_member_by_a_circuit,
     a_restarted_driver_is_a_new_neighbour, sessions_that_break_lose_nothing_in_their_middle,
     a_full_outlet_ends_the_session, an_outlet_that_dies_ends_the_session,
     services_share_an_outlet, sessions_of_an_outlet_take_turns, what_is_being_sent_does_not_wait,
     a_watched_process_is_told_gone,
     a_killed_node_is_down].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

a_neighbour_is_a_node_that_runs_the_service(Config) ->
    [A, B] = pair(Config),
    Other = node(other, #{}, Config),
    connect(A, Other),
    done = perform(A, [{connect, name(Other)}]),
    seen(A, {neighbour_down, name(Other), no_service}),
    done = perform(A, [{connect, 'nobody@nowhere'}]),
    seen(A, {neighbour_down, 'nobody@nowhere', connect_failed}),
    service(Other),
    up(A, Other),
    done = perform(A, [{send, name(B), hello}]),
    seen(B, {message, name(A), hello}).

hidden_nodes_are_neighbours(Config) ->
    [A, _] = pair(Config),
    B = node(b, #{args => ["-hidden"]}, Config),
    service(B),
    connect(A, B),
    ?assert(lists:member(name(B), call(A, erlang, nodes, [hidden]))),
    up(A, B),
    up(B, A).

hidden_nodes_of_the_stock_carrier_are_neighbours(Config) ->
    Options = #{carrier => stock,
                args => ["-hidden", "-pa", weft_test_nodes:ebin(weft_node_links)]},
    [A, B] = [node(Name, Options, Config) || Name <- [a, b]],
    [service(N) || N <- [A, B]],
    connect(A, B),
    up(A, B),
    up(B, A).

a_restarted_driver_is_a_new_neighbour(Config) ->
    [A, B] = pair(Config),
    true = call(B, erlang, exit, [call(B, erlang, whereis, [?SERVICE]), kill]),
    weft_test_nodes:until(fun() -> call(B, erlang, whereis, [?SERVICE]) =:= undefined end),
    seen(A, {neighbour_down, name(B), killed}),
    service(B),
    weft_test_nodes:until(fun() -> length(links(A)) =:= 3 end),
    ?assertMatch([{neighbour_up, _}, {neighbour_down, _, killed}, {neighbour_up, _}],
                 lists:reverse(links(A))),
    seen(B, {neighbour_up, name(A)}).

a_killed_node_is_down(Config) ->
    [A, B] = pair(Config),
    weft_test_nodes:kill(B),
    seen(A, {neighbour_down, name(B), noconnection}).

%% What one session brings is a piece of what was sent in it, from its beginning, nothing left out.
sessions_that_break_lose_nothing_in_their_middle(Config) ->
    [A, B] = pair(Config),
    [begin
         done = perform(A, [{send, name(B), {Session, N}} || N <- lists:seq(1, 200)]),
         done = perform(B, [{break, name(A)} || Session rem 2 =:= 0]),
         done = perform(A, [{break, name(B)} || Session rem 3 =:= 0])
     end || Session <- lists:seq(1, 30)],
    up(A, B),
    up(B, A),
    %% It may be sent over the session that breaks last.
    weft_test_nodes:until(fun() ->
                              done = perform(A, [{send, name(B), the_end}]),
                              lists:member({message, name(A), the_end}, events(B))
                          end, 60000),
    ok = runs_of_whole_numbers(lists:reverse(events(B))).

%% Numbers of one Session follow each other; between two of which one is left out the link was down.
%% All numbers of a Session are sent at once, so the first one after that is the first of another.
runs_of_whole_numbers(Events) ->
    {_, {Last, _}} =
        lists:foldl(fun({neighbour_down, _, _}, {Link, Number}) when Link =/= down ->
                            {down, Number};
                       ({neighbour_up, _}, {down, Number}) ->
                            {up, Number};
                       ({message, _, the_end}, {Link, Number}) when Link =/= down ->
                            {Link, Number};
                       ({message, _, {S, 1}}, {up, {Before, _}}) when S > Before ->
                            {carries, {S, 1}};
                       ({message, _, {S, N}}, {carries, {S, Before}}) when N =:= Before + 1 ->
                            {carries, {S, N}};
                       ({message, _, {S, 1}}, {carries, {Before, 200}}) when S =:= Before + 1 ->
                            {carries, {S, 1}}
                    end, {down, {0, 0}}, Events),
    ?assert(Last > 0).

connect_reaches_a_member_by_a_circuit(Config) ->
    Links = [{node_name(a), node_name(g)}, {node_name(g), node_name(b)}],
    Options = #{config => [{topology, {static, #{links => Links}}}],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    [A, B, _G] = Nodes = [node(Name, Options, Config) || Name <- [a, b, g]],
    [service(N) || N <- Nodes],
    weft_test_nodes:until(fun() -> call(A, weft_overlay, route, [name(B)]) =/= {error, no_route}
                          end, 60000),
    done = perform(A, [{connect, name(B)}]),
    up(A, B),
    up(B, A).

%% B sleeps; what is sent to it waits, and only so much.
a_full_outlet_ends_the_session(Config) ->
    [A, B] = pair(Config),
    weft_test_nodes:pause(B),
    done = call(A, ?MODULE, flood, [name(B), 300000]),
    seen(A, {neighbour_down, name(B), broken}),
    weft_test_nodes:continue(B),
    up(A, B),
    up(B, A),
    done = perform(A, [{send, name(B), hello}]),
    seen(B, {message, name(A), hello}).

%% What waited in it is lost, so both drivers have to begin anew.
an_outlet_that_dies_ends_the_session(Config) ->
    [A, B] = pair(Config),
    #{shared := Outlet} = call(A, ?MODULE, outlets, [name(B)]),
    true = call(A, erlang, exit, [Outlet, kill]),
    seen(A, {neighbour_down, name(B), outlet_died}),
    up(A, B),
    up(B, A),
    done = perform(A, [{send, name(B), hello}]),
    seen(B, {message, name(A), hello}).

%% But for broadcasts, which may be long. It ends with the connection, and not with its only session
%% if another one follows.
services_share_an_outlet(Config) ->
    [A, B] = pair(Config),
    [ok = call(N, ?MODULE, stop, []) || N <- [A, B]],
    weft_test_nodes:until(
      fun() ->
              lists:sort(maps:keys(call(A, ?MODULE, outlets, [name(B)])))
                  =:= [shared, weft_broadcast]
      end),
    #{shared := Shared, weft_broadcast := Own} = call(A, ?MODULE, outlets, [name(B)]),
    weft_test_nodes:until(fun() -> length(owners(A, Shared)) > 2 end),
    weft_test_nodes:until(fun() -> length(owners(A, Own)) =:= 1 end),
    Links = fun() -> call(A, sys, get_state, [weft_broadcast_links]) end,
    Before = Links(),
    ok = call(B, gen_server, cast, [weft_broadcast_links, {break, name(A)}]),
    weft_test_nodes:until(fun() -> Links() =/= Before end),
    ?assertMatch(#{shared := Shared, weft_broadcast := Own},
                 call(A, ?MODULE, outlets, [name(B)])),
    true = call(A, erlang, disconnect_node, [name(B)]),
    weft_test_nodes:until(fun() -> call(A, ?MODULE, outlets, [name(B)]) =:= #{} end).

%% What one has to say is on its way after the first messages of another one, and not after all.
sessions_of_an_outlet_take_turns(Config) ->
    [A, B] = pair(Config),
    Collector = call(B, erlang, spawn, [?MODULE, collector, []]),
    Got = call(A, ?MODULE, in_turn, [Collector, 1000]),
    ?assertEqual([{1, N, N} || N <- lists:seq(1, 1000)], [One || {1, _, _} = One <- Got]),
    ?assertEqual([{2, 1, little}], [Two || {2, _, _} = Two <- lists:sublist(Got, 3)]).

%% B sleeps, so that takes long. What has half of the bound each is all that may wait.
what_is_being_sent_does_not_wait(Config) ->
    [A, B] = pair(Config),
    Collector = call(B, erlang, spawn, [?MODULE, collector, []]),
    weft_test_nodes:pause(B),
    Results = call(A, ?MODULE, behind_large, [Collector]),
    weft_test_nodes:continue(B),
    ?assertEqual([ok, ok, ok, {error, not_connected}], Results).

%% Who has a session there.
owners(Node, Outlet) ->
    {monitors, Monitors} = call(Node, erlang, process_info, [Outlet, monitors]),
    [Pid || {process, Pid} <- Monitors, node(Pid) =:= maps:get(node, Node)].

a_watched_process_is_told_gone(Config) ->
    [A, _] = pair(Config),
    [One, Two, Kept] = [call(A, erlang, spawn, [timer, sleep, [infinity]]) || _ <- [1, 2, 3]],
    done = perform(A, [{watch, One}, {watch, One}, {watch, Two}, {watch, Kept}, {unwatch, Two},
                       {exit, Two, kill}, {exit, One, kill}]),
    seen(A, {notice, {gone, One, killed}}),
    done = perform(A, [{exit, Kept, shutdown}, {watch, One}]),
    seen(A, {notice, {gone, Kept, shutdown}}),
    seen(A, {notice, {gone, One, noproc}}),
    [] = [E || {notice, {gone, P, _}} = E <- events(A), P =:= Two].

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Starts the driver and who remembers its events; both outlive the call.
start() ->
    Caller = self(),
    Ref = make_ref(),
    _ = spawn(fun() ->
                      _ = whereis(observer) =:= undefined
                          andalso register(observer, spawn(?MODULE, observer, [[]])),
                      {ok, Driver} = weft_driver:start_link(?SERVICE, weft_echo_core,
                                                            weft_services:options(#{})),
                      ok = weft_driver:subscribe(?SERVICE, whereis(observer)),
                      unlink(Driver),
                      Caller ! {Ref, started}
              end),
    receive {Ref, started} -> ok end.

%% @doc Ends both, if they are there, and what belongs to the driver.
stop() ->
    Pids = [Pid || Name <- [?SERVICE, weft_service_under_test_links, observer],
                   Pid <- [whereis(Name)], is_pid(Pid)],
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    [exit(Pid, kill) || Pid <- Pids],
    [receive {'DOWN', Monitor, _, _, _} -> ok end || Monitor <- Monitors],
    ok.

%% @doc Remembers the events that the driver saw, newest first.
observer(Events) ->
    receive
        {weft_notice, ?SERVICE, {seen, {message, _, <<_/binary>>}}} -> observer(Events);
        {weft_notice, ?SERVICE, {seen, Event}} -> observer([Event | Events]);
        {events, From} -> From ! {events, Events}, observer(Events)
    end.

%% @doc The events of these kinds, newest first.
events(Kinds) when is_list(Kinds) ->
    observer ! {events, self()},
    receive {events, Events} -> [E || E <- Events, lists:member(element(1, E), Kinds)] end;
events(Node) ->
    call(Node, ?MODULE, events, [[neighbour_up, neighbour_down, message, notice]]).

%% @doc More than any connection takes, in messages whose payload is shared.
flood(Node, Count) ->
    Payload = binary:copy(<<1>>, 1000),
    weft_driver:command(?SERVICE, {perform, [{send, Node, Payload} || _ <- lists:seq(1, Count)]},
                        60000).

%% @doc The outlets to a node.
outlets(Node) ->
    maps:from_list([{Share, Pid} || {{To, Share}, Pid} <- ets:tab2list(weft_node_outlet),
                                    To =:= Node, is_process_alive(Pid)]).

%% @doc Keeps the data that it gets, until it is asked for so many.
collector() ->
    receive {give, Count, To} -> To ! {given, [data() || _ <- lists:seq(1, Count)]} end.

data() -> receive {weft_data, Number, Count, Message} -> {Number, Count, Message} end.

%% @doc What Collector gets of two sessions, of which the first has so much to say, when their
%% outlet begins. They have ended when this returns.
in_turn(Collector, Count) ->
    [One, Two] = Outlets =
        [weft_node_outlet:open(turns, Collector, Number, welcome, {erlang, self, []})
         || Number <- [1, 2]],
    #{turns := Pid} = outlets(node(Collector)),
    ok = sys:suspend(Pid),
    [ok = weft_node_outlet:send(One, Collector, N) || N <- lists:seq(1, Count)],
    ok = weft_node_outlet:send(Two, Collector, little),
    ok = sys:resume(Pid),
    Collector ! {give, Count + 1, self()},
    Got = receive {given, All} -> All end,
    Ended = monitor(process, Pid),
    lists:foreach(fun weft_node_outlet:close/1, Outlets),
    receive {'DOWN', Ended, process, Pid, normal} -> Got end.

%% @doc What becomes of messages behind a large one that is being sent.
behind_large(Collector) ->
    Outlet = weft_node_outlet:open(large, Collector, 1, welcome, {erlang, self, []}),
    #{large := Pid} = outlets(node(Collector)),
    Large = binary:copy(<<1>>, 80 bsl 20),
    ok = weft_node_outlet:send(Outlet, Collector, Large),
    weft_test_nodes:until(fun() -> process_info(Pid, status) =:= {status, suspended} end),
    Results = [weft_node_outlet:send(Outlet, Collector, Message)
               || Message <- [Large, Large, small, small]],
    ok = weft_node_outlet:close(Outlet),
    Results.

%% --- small parts ------------------------------------------------------------------------------

node(Name, Options, Config) ->
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

%% The same nodes for several cases, with drivers that know nothing of the case before.
pair(Config) ->
    [A, B] = Nodes = [weft_test_nodes:lasting(node_name(Name), fun() -> node(Name, #{}, Config) end)
                      || Name <- [pair_a, pair_b]],
    [ok = call(N, ?MODULE, stop, []) || N <- Nodes],
    connect(A, B),
    [service(N) || N <- Nodes],
    up(A, B),
    up(B, A),
    Nodes.

service(Node) -> ok = call(Node, ?MODULE, start, []).

connect(A, B) -> true = call(A, net_kernel, connect_node, [name(B)]).

perform(Node, Effects) -> call(Node, weft_driver, command, [?SERVICE, {perform, Effects}]).

up(A, B) ->
    weft_test_nodes:until(
      fun() ->
              [Last | _] = [element(1, E) || E <- links(A), element(2, E) =:= name(B)] ++ [none],
              Last =:= neighbour_up
      end, 60000).

seen(Node, Event) ->
    weft_test_nodes:until(fun() -> lists:member(Event, events(Node)) end, 60000).

%% Without the messages: those of the flood are many.
links(Node) ->
    call(Node, ?MODULE, events, [[neighbour_up, neighbour_down]]).
