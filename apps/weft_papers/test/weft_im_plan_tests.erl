%% SPDX-License-Identifier: Apache-2.0
-module(weft_im_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, weft_im_plan).

plan(Routers, Servers, ClientNodes, IsGrouped) ->
    Size = #{routers => Routers, servers => Servers, client_nodes => ClientNodes,
             is_grouped => IsGrouped},
    Nodes = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, ?M:needed(Size))],
    {ok, Service} = ?M:new(Size, Nodes),
    Service.

%% The experiment of the paper: three groups of 2, 7 and 7 nodes; here with a node of clients each.
groups_of_the_paper_test() ->
    Size = #{routers => 2, servers => 6, client_nodes => 0},
    ?assertEqual(14, ?M:needed(Size)),
    ?assertEqual([[1, 2], [1 | lists:seq(3, 8)], [2 | lists:seq(9, 14)]], ?M:groups(Size)),
    ?assertEqual([[1, 2], [1, 3, 4, 7], [2, 5, 6, 8]],
                 ?M:groups(#{routers => 2, servers => 2, client_nodes => 1})),
    ?assertEqual([[1, 2, 3]], ?M:groups(#{routers => 1, servers => 2, client_nodes => 0})).

nodes_are_those_of_their_group_test() ->
    Service = plan(2, 2, 1, true),
    ?assertEqual([1, 2, 1, 1, 2, 2, 1, 2],
                 [?M:group_of(Node, Service) || Node <- [n1, n2, n3, n4, n5, n6, n7, n8]]),
    ?assertEqual([{2, n8}], ?M:client_nodes(2, Service)),
    ?assertEqual([n2, n5, n5, n6, n5],
                 [?M:node_of(Name, Service) || Name <- [{router, 2}, {server, 3},
                                                        {client_db, 3, main},
                                                        {client_db, 3, replica},
                                                        {chat_db, 4, replica}]]),
    ?assertEqual([[1, 2], [2], [3]],
                 [?M:scopes(Name, Service) || Name <- [{router, 1}, {server, 2}, {notes, 3}]]).

the_ring_of_the_distributed_form_is_one_test() ->
    Service = plan(2, 2, 1, false),
    ?assertEqual([4, 1, 2, 3], [?M:before(Server, Service) || Server <- [1, 2, 3, 4]]),
    ?assertEqual([2, 3, 4, 1], [?M:next(Server, Service) || Server <- [1, 2, 3, 4]]).

lost_servers_have_names_test() ->
    Service = plan(1, 3, 0, false),
    ?assertEqual([{server, 2}, {notes, 2}, {client_db, 2, main}, {chat_db, 2, main},
                  {client_db, 3, replica}, {chat_db, 3, replica}],
                 [Name || Name <- ?M:names(1, Service), ?M:is_at(Name, [2], Service)]).

%% A copy is on another server, in the grouped form of the same router, and each server has one.
copies_are_elsewhere_test_() ->
    ?_assert(proper:quickcheck(
               ?FORALL({Routers, Servers, IsGrouped}, {integer(1, 4), integer(2, 9), boolean()},
                       copies_are_elsewhere(plan(Routers, Servers, 1, IsGrouped))),
               [{to_file, user}])).

copies_are_elsewhere(#{is_grouped := IsGrouped} = Service) ->
    Servers = ?M:servers(Service),
    Before = [?M:before(Server, Service) || Server <- Servers],
    lists:sort(Before) =:= Servers
        andalso lists:all(fun({Server, Other}) ->
                              Server =/= Other andalso ?M:next(Other, Service) =:= Server
                                  andalso (not IsGrouped
                                           orelse ?M:router_of(Server, Service)
                                               =:= ?M:router_of(Other, Service))
                          end, lists:zip(Servers, Before)).

clients_are_spread_evenly_test() ->
    Service = plan(1, 12, 0, false),
    Of = [?M:server_of(weft_im_traffic:name(N), Service) || N <- lists:seq(1, 12000)],
    Counts = [length([S || S <- Of, S =:= Server]) || Server <- lists:seq(1, 12)],
    ?assert(lists:min(Counts) > 800),
    ?assert(lists:max(Counts) < 1200).

sessions_are_with_the_same_router_test() ->
    Service = plan(3, 4, 1, true),
    Attempts = [?M:session_server({<<"a">>, <<"b">>, 1}, Attempt, 6, Service)
                || Attempt <- [0, 1, 2, 3]],
    ?assertEqual([5, 6, 7, 8], lists:sort(Attempts)).

%% The weights of the killer: a quarter of routers; notes, databases and servers alike, and twice as
%% often as monitors and sessions.
kinds_are_drawn_by_weight_test() ->
    {Drawn, _} = lists:mapfoldl(fun(_, Rand) ->
                                    weft_im_killer:draw(all, #{routers => 2, servers => 3}, Rand)
                                end, rand:seed_s(exsss, 1), lists:seq(1, 8000)),
    Count = fun(Kind) -> length([K || {_, K, _} <- Drawn, K =:= Kind]) end,
    [?assert(abs(Count(Kind) - Expected) < Expected / 5, {Kind, Count(Kind)})
     || {Kind, Expected} <- [{router, 1000}, {router_supervisor, 1000}, {server, 1200},
                             {notes, 1200}, {chat_db, 1200}, {client_db, 1200},
                             {client_monitor, 600}, {chat_session, 600}]],
    ?assertEqual([1, 2], lists:usort([Node || {Node, router, _} <- Drawn])),
    ?assertEqual(lists:seq(3, 8), lists:usort([Node || {Node, chat_db, _} <- Drawn])).
