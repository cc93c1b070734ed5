%% SPDX-License-Identifier: Apache-2.0
%% @doc The walk along a session's circuit or along routes, on hand-made answers of nodes.
-module(weft_trace_tests).

-include_lib("eunit/include/eunit.hrl").

%% a - g - b and a - h - b. The session a-b goes by g (labels 1 and 4), the routes say h.
world() ->
    #{a => status([link_to(g), link_to(h)], [session(b, g, 1)], #{b => h}),
      g => status([link_to(a, [{1, b, 4}]), link_to(b, [{4, a, 1}])], [], #{}),
      h => status([link_to(a), link_to(b)], [], #{}),
      b => status([link_to(g), link_to(h)], [session(a, g, 4)], #{a => h})}.

status(Links, Sessions, Routes) ->
    #{links => Links, sessions => Sessions, topology => static,
      routes => maps:map(fun(_, Next) -> #{next_hop => Next, hops => 2, cost_us => 2000} end,
                         Routes)}.

link_to(Node) -> link_to(Node, []).

link_to(Node, Circuits) ->
    #{node => Node, state => up, rtt_us => 100,
      circuits => [#{label => Label, next_hop => Next, next_label => NextLabel}
                   || {Label, Next, NextLabel} <- Circuits]}.

session(Node, Next, Label) -> #{node => Node, next_hop => Next, label => Label}.

walk(From, To, World) ->
    case weft_trace:walk(From, To, fun(Node) -> maps:find(Node, World) end) of
        {ok, Hops} -> {ok, [{F, T, By} || #{from := F, to := T, by := By} <- Hops]};
        {error, Reason, Hops} -> {error, Reason, [{F, T} || #{from := F, to := T} <- Hops]}
    end.

the_circuit_of_the_session_is_followed_test() ->
    ?assertEqual({ok, [{a, g, session}, {g, b, session}]}, walk(a, b, world())),
    ?assertEqual({ok, [{b, g, session}, {g, a, session}]}, walk(b, a, world())).

without_a_session_routes_are_followed_test() ->
    World = maps:update_with(a, fun(S) -> S#{sessions := []} end, world()),
    ?assertEqual({ok, [{a, h, route}, {h, b, route}]}, walk(a, b, World)).

a_gateway_that_forgot_the_circuit_goes_by_routes_test() ->
    World = maps:update_with(g, fun(S) -> S#{links := [link_to(a), link_to(b)]} end, world()),
    ?assertEqual({ok, [{a, g, session}, {g, b, route}]}, walk(a, b, World)).

nowhere_to_go_test() ->
    ?assertEqual({error, no_route, []}, walk(a, z, world())),
    ?assertEqual({ok, []}, walk(a, a, world())),
    ?assertEqual({error, {no_answer, g}, [{a, g}]}, walk(a, b, maps:remove(g, world()))).

a_link_that_is_down_ends_the_way_test() ->
    Down = (link_to(g))#{state := down},
    World = maps:update_with(a, fun(S) -> S#{links := [Down, link_to(h)]} end, world()),
    ?assertEqual({error, {link_down, g}, []}, walk(a, b, World)).

%% Its process did not answer: nobody says that it is down.
a_link_of_which_nothing_is_known_is_gone_over_test() ->
    Unknown = fun(S) -> S#{links := [link_to(h)], unanswered => [#{what => link, node => g}]} end,
    World = maps:update_with(a, Unknown, world()),
    ?assertEqual({ok, [{a, g, session}, {g, b, session}]}, walk(a, b, World)),
    ?assertEqual({ok, [{a, g, route}]}, walk(a, g, World)).

a_way_that_comes_back_is_no_way_test() ->
    World = #{a => status([link_to(b)], [], #{z => b}), b => status([link_to(a)], [], #{z => a})},
    ?assertEqual({error, {loop, a}, [{a, b}]}, walk(a, z, World)).

%% As one of its links or sessions may be, too.
a_node_answers_though_a_process_of_it_hangs_test_() ->
    {timeout, 30, fun() ->
        Hanging = spawn(fun() -> receive never -> ok end end),
        true = register(weft_partition, Hanging),
        try
            {ok, #{unanswered := Silent}} = weft_trace:ask(node()),
            ?assert(lists:member(#{what => partition}, Silent))
        after
            exit(Hanging, kill)
        end
    end}.

without_a_topology_everyone_is_direct_test() ->
    World = #{a => (status([link_to(b)], [], #{}))#{topology := undefined}},
    ?assertEqual({ok, [{a, b, route}]}, walk(a, b, World)),
    ?assertEqual({error, {link_down, c}, []}, walk(a, c, World)).
