%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients and servers, event by event, and properties of any order of events. Whole clusters
%% are in the simulator's tests.
-module(weft_client_server_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'me@host').
-define(SERVERS, ['s1@host', 's2@host', 's3@host', 's4@host']).
-define(CLIENTS, ['c1@host', 'c2@host']).

a_server_dials_all_other_servers_but_not_itself_test() ->
    {_, Effects} = init(#{role => server, servers => [?SELF | ?SERVERS]}),
    ?assertEqual(?SERVERS, dialled(Effects)).

a_client_dials_as_many_servers_as_it_wants_links_test_() ->
    [?_assertEqual(min(Count, 4), length(dialled(element(2, client(Count)))))
     || Count <- [1, 2, 9]].

clients_with_different_names_choose_different_servers_test() ->
    Chosen = [dialled(element(2, weft_client_server_core:init(
                                   list_to_atom("c" ++ integer_to_list(N) ++ "@host"),
                                   #{role => client, servers => ?SERVERS})))
              || N <- lists:seq(1, 40)],
    ?assertEqual([[Server] || Server <- ?SERVERS], lists:usort(Chosen)).

a_client_that_lost_a_server_tries_it_and_another_test() ->
    {State0, Effects0} = client(1),
    [Lost] = dialled(Effects0),
    {State1, _} = up(Lost, server, State0),
    {State, Effects} = handle({neighbour_down, Lost, closed}, State1),
    [Other] = dialled(Effects) -- [Lost],
    ?assertEqual(lists:sort([Lost, Other]), dialled(Effects)),
    %% The first that answers is enough.
    {_, Then} = up(Other, server, State),
    ?assertEqual([Lost], disconnected(Then)).

a_client_that_reaches_no_server_tries_all_of_them_test() ->
    {State0, _} = client(1),
    State = lists:foldl(fun(_, S0) ->
                                lists:foldl(fun(Node, S) -> step({down, Node}, S) end,
                                            S0, weft_client_server_core:neighbours(S0))
                        end, State0, lists:seq(1, 4)),
    ?assertEqual(?SERVERS, weft_client_server_core:neighbours(State)).

%% It has left its cluster, for example, or has another topology, and its VM goes on.
a_server_that_says_nothing_is_not_held_test() ->
    {State0, Effects0} = client(1),
    [Silent] = dialled(Effects0),
    {State1, Effects1} = handle({neighbour_up, Silent}, State0),
    ?assertEqual({[], []}, {dialled(Effects1), disconnected(Effects1)}),
    [Timer] = silence(Effects1),
    {State2, Effects2} = handle({timer, Timer}, State1),
    [Other] = dialled(Effects2),
    ?assertEqual(lists:sort([Silent, Other]), weft_client_server_core:neighbours(State2)),
    {State3, Effects3} = up(Other, server, State2),
    ?assertEqual([Silent], disconnected(Effects3)),
    ?assertEqual([Other], weft_client_server_core:neighbours(State3)),
    %% If it speaks first, it is that one which is kept.
    {State4, Effects4} = handle(news(Silent, [{Silent, 1, server}]), State2),
    ?assertEqual([Other], disconnected(Effects4)),
    ?assertEqual([Silent], weft_client_server_core:neighbours(State4)).

%% Others say that it is a server, as they have not heard that it has left.
what_others_say_of_a_server_is_not_its_own_word_test() ->
    {State0, _} = init(#{role => client, servers => ['s1@host'], links => 2}),
    {State1, _} = up('s1@host', server, State0),
    {State2, _} = handle(news('s1@host', [{'s9@host', 1, server}, {'s8@host', 1, server}]), State1),
    [Silent] = weft_client_server_core:neighbours(State2) -- ['s1@host'],
    {State3, Effects3} = handle({neighbour_up, Silent}, State2),
    {_, Effects} = handle({timer, hd(silence(Effects3))}, State3),
    ?assertEqual(['s8@host', 's9@host'] -- [Silent], dialled(Effects)).

the_silence_of_an_earlier_link_means_nothing_test() ->
    {State0, Effects0} = client(1),
    [Server] = dialled(Effects0),
    {State1, Effects1} = handle({neighbour_up, Server}, State0),
    {State2, _} = handle({neighbour_down, Server, closed}, State1),
    {State3, _} = handle({neighbour_up, Server}, State2),
    ?assertEqual({State3, []}, handle({timer, hd(silence(Effects1))}, State3)),
    {State, _} = up(Server, server, State3),
    ?assertEqual({State, []}, handle({timer, hd(silence(Effects1))}, State)).

a_dial_that_is_not_answered_is_one_that_failed_test() ->
    {State0, Effects0} = client(1),
    [Dial] = [Timer || {after_ms, _, {dial, _, _} = Timer} <- Effects0],
    {State1, Effects1} = handle({timer, Dial}, State0),
    [{dial_timeout, Silent, _} = Late] = [Timer || {after_ms, _, Timer} <- Effects1],
    {State2, Effects2} = handle({timer, Late}, State1),
    [Other] = dialled(Effects2) -- [Silent],
    ?assertEqual(lists:sort([Silent, Other]), dialled(Effects2)),
    ?assertEqual({State2, []}, handle({timer, Late}, State2)).

%% Started again, it dials no clients.
a_client_whose_only_server_has_left_goes_on_dialling_it_test() ->
    {State0, _} = init(#{role => client, servers => ['s1@host', 'c1@host']}),
    {State1, _} = up('s1@host', server, State0),
    {State2, _} = handle(news('s1@host', [{'c1@host', 1, client}, {'s1@host', 1, left}]), State1),
    {State3, Effects} = handle({neighbour_down, 's1@host', closed}, State2),
    ?assertEqual(['s1@host'], dialled(Effects)),
    {State4, _} = up('s1@host', left, State3),
    {State, _} = handle(news('s1@host', [{'s1@host', 2, server}, {'s2@host', 1, server}]), State4),
    {_, Left} = handle(news('s1@host', [{'s1@host', 2, left}]), State),
    ?assertEqual({['s2@host'], ['s1@host']}, {dialled(Left), disconnected(Left)}).

a_server_that_left_long_ago_is_tried_again_test() ->
    {State0, _} = init(#{role => client, servers => ['s1@host', 's2@host'], links => 2,
                         tombstone_ms => 1000}),
    State1 = lists:foldl(fun(S, St) -> element(1, up(S, server, St)) end, State0,
                         ['s1@host', 's2@host']),
    {State2, Effects} = handle(news('s1@host', [{'s1@host', 1, left}]), State1),
    ?assertEqual(['s1@host'], disconnected(Effects)),
    {State, _} = weft_client_server_core:handle({timer, digest}, 1001, State2),
    ?assertEqual(['s1@host', 's2@host'], weft_client_server_core:neighbours(State)).

a_client_takes_a_link_that_is_up_rather_than_dial_test() ->
    {State, Effects0} = client(1),
    [First] = dialled(Effects0),
    [Ready | _] = ?SERVERS -- [First],
    {_, Effects} = up(Ready, server, State),
    ?assertEqual([Ready], [Node || {connect, Node} <- Effects]),
    ?assertEqual([First], disconnected(Effects)).

a_client_hears_of_servers_that_it_was_not_told_of_test() ->
    {State0, _} = init(#{role => client, servers => ['s1@host'], links => 2}),
    {State1, _} = up('s1@host', server, State0),
    {_, Effects} = handle(news('s1@host', [{'s9@host', 1, server}, {'c1@host', 1, client}]),
                          State1),
    ?assertEqual(['s9@host'], dialled(Effects)),
    ?assertEqual([{{member, 'c1@host'}, 1}, {{member, 's9@host'}, 1}], views(Effects)).

a_client_passes_nothing_on_test() ->
    {State0, _} = client(4),
    State = lists:foldl(fun(S, St) -> element(1, up(S, server, St)) end, State0, ?SERVERS),
    {_, Effects} = handle(news('s1@host', [{'c1@host', 1, client}]), State),
    ?assertEqual([], sent(Effects)).

a_server_passes_news_of_clients_to_all_and_news_of_servers_to_clients_test() ->
    {State0, _} = init(#{role => server, servers => ?SERVERS}),
    State1 = lists:foldl(fun(S, St) -> element(1, up(S, server, St)) end, State0, ?SERVERS),
    State = lists:foldl(fun(C, St) -> element(1, up(C, client, St)) end, State1, ?CLIENTS),
    {_, FromClient} = handle(news('c1@host', [{'c8@host', 1, client}]), State),
    ?assertEqual(['c2@host' | ?SERVERS], receivers(FromClient)),
    {_, FromServer} = handle(news('s1@host', [{'c9@host', 1, client}]), State),
    ?assertEqual(?CLIENTS, receivers(FromServer)).

a_client_among_the_servers_is_told_and_given_up_test() ->
    {State0, _} = init(#{role => client, servers => ['s1@host', 's2@host'], links => 2}),
    {State1, _} = up('s2@host', server, State0),
    {State, Effects} = up('s1@host', client, State1),
    ?assert(lists:member({notice, {warning, {not_a_server, 's1@host'}}}, Effects)),
    ?assertEqual(['s1@host'], disconnected(Effects)),
    ?assertEqual(['s2@host'], weft_client_server_core:neighbours(State)).

seeds_that_come_later_are_dialled_and_strangers_left_out_are_given_up_test() ->
    {State0, []} = without_views(init(#{role => client, servers => discovered, links => 3})),
    {State1, Effects1} = handle({notice, {seeds, ['s1@host', 's2@host']}}, State0),
    ?assertEqual(['s1@host', 's2@host'], dialled(Effects1)),
    {State2, _} = up('s2@host', server, State1),
    {State, Effects} = handle({notice, {seeds, ['s3@host']}}, State2),
    ?assertEqual(['s3@host'], dialled(Effects)),
    ?assertEqual(['s1@host'], disconnected(Effects)),
    ?assertEqual(['s2@host', 's3@host'], weft_client_server_core:neighbours(State)).

messages_of_another_topology_are_ignored_test() ->
    {State, _} = client(1),
    ?assertEqual({State, []},
                 handle({message, 's1@host', {1, {delta, [{a@b, 1, member}]}}}, State)).

leaving_gives_up_everything_and_dials_no_more_test() ->
    {State0, _} = client(1),
    [Server] = weft_client_server_core:neighbours(State0),
    {State1, _} = up(Server, server, State0),
    {State2, Effects} = handle({command, ref, leave}, State1),
    ?assertEqual([{Server, {delta, [{?SELF, 1, left}]}}], sent(Effects)),
    {State3, Left} = handle({timer, left}, State2),
    ?assertEqual([{disconnect, Server}, {reply, ref, ok}], Left),
    ?assertMatch({_, []}, handle({neighbour_down, Server, closed}, State3)),
    ?assertMatch({_, []}, handle({notice, {seeds, ['s2@host']}}, State3)).

%% A driver may have one when the code is loaded.
a_state_of_earlier_code_goes_on_test() ->
    {State0, _} = client(1),
    [Server] = weft_client_server_core:neighbours(State0),
    {State, _} = up(Server, server, State0),
    {state, Self, Role, Servers, Found, Membership, Links, Target, Failing, Held, _, _, _, Rand,
     Out} = State,
    Former = {state, Self, Role, Servers, Found, Membership, Links, Target, Failing, Held, Rand,
              Out},
    ?assertEqual([Server], weft_client_server_core:neighbours(Former)),
    Lost = {neighbour_down, Server, closed},
    ?assertEqual(dialled(element(2, handle(Lost, State))),
                 dialled(element(2, handle(Lost, Former)))).

%% --- properties -------------------------------------------------------------------------------

%% Whatever goes up, down, is silent or changes its role in whatever order: a client wants known
%% servers only and no more links than configured once it has them; and as long as it has fewer, it
%% is trying.
a_client_never_gives_up_and_never_wants_too_much_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_client(), [{numtests, 500}, {to_file, user}]))}.

prop_client() ->
    ?FORALL({Seed, Target, Events}, {integer(), integer(1, 3), list(event())},
            begin
                {State0, _} = weft_client_server_core:init(
                                ?SELF, #{role => client, servers => ['s1@host', 's2@host'],
                                         links => Target, seed => Seed, incarnation => 1}),
                {State, Up, Kinds} = lists:foldl(fun model/2, {State0, #{}, #{}}, Events),
                Wanted = weft_client_server_core:neighbours(State),
                Servers = worth_trying(Kinds),
                Held = [Node || Node <- Wanted, maps:get(Node, Up, silent) =:= heard],
                ?WHENFAIL(io:format("wants ~p of ~p, up ~p~n", [Wanted, Servers, Up]),
                          Wanted -- Servers =:= []
                          andalso length(Held) =< Target
                          andalso (length(Held) < Target orelse Wanted =:= Held)
                          andalso length(Wanted) >= min(Target, length(Servers)))
            end).

%% A server wants exactly the servers that it knows.
a_server_wants_all_servers_and_no_clients_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_server(), [{numtests, 300}, {to_file, user}]))}.

prop_server() ->
    ?FORALL(Events, list(event()),
            begin
                {State0, _} = init(#{role => server, servers => ['s1@host', 's2@host']}),
                {State, _, Kinds} = lists:foldl(fun model/2, {State0, #{}, #{}}, Events),
                weft_client_server_core:neighbours(State) =:= servers(Kinds)
            end).

worth_trying(Kinds) ->
    case servers(Kinds) of
        [] -> [Node || Node <- ['s1@host', 's2@host'],
                       element(2, maps:get(Node, Kinds)) =:= left];
        Servers -> Servers
    end.

%% What a node that was only configured is taken for, until it is heard of.
servers(Kinds) ->
    Known = maps:merge(#{'s1@host' => {0, server}, 's2@host' => {0, server}}, Kinds),
    lists:sort([Node || {Node, {_, server}} <- maps:to_list(Known)]).

event() ->
    Node = oneof(?SERVERS ++ ?CLIENTS),
    oneof([{up, Node}, {down, Node}, {late, Node},
           {heard, oneof(?SERVERS), Node, integer(1, 5), oneof([client, server, server, left])}]).

model({up, Node}, {State, Up, Kinds}) ->
    {step({up, Node}, State), Up#{Node => silent}, Kinds};
model({down, Node}, {State, Up, Kinds}) ->
    {step({down, Node}, State), maps:remove(Node, Up), Kinds};
%% The time to say something is over, for whichever link it is now.
model({late, Node}, {State, Up, Kinds}) ->
    {lists:foldl(fun(Link, S) -> step({timer, {silent, Node, Link}}, S) end, State,
                 lists:seq(1, 50)), Up, Kinds};
model({heard, From, Node, Incarnation, Kind}, {State, Up, Kinds}) ->
    Known = maps:get(Node, Kinds, {0, server}),
    {step(news(From, [{Node, Incarnation, Kind}]), State),
     maps:map(fun(Peer, Said) -> case Peer of From -> heard; _ -> Said end end, Up),
     Kinds#{Node => case Known of
                        {Older, _} when Older < Incarnation -> {Incarnation, Kind};
                        {Incarnation, _} when Kind =:= left -> {Incarnation, left};
                        _ -> Known
                    end}}.

step({up, Node}, State) -> step({neighbour_up, Node}, State);
step({down, Node}, State) -> step({neighbour_down, Node, closed}, State);
step(Event, State) -> element(1, handle(Event, State)).

%% --- parts ------------------------------------------------------------------------------------

init(Options) ->
    weft_client_server_core:init(?SELF, Options#{incarnation => 1}).

client(Links) ->
    init(#{role => client, servers => ?SERVERS, links => Links}).

up(Node, Kind, State0) ->
    {State1, Effects1} = handle({neighbour_up, Node}, State0),
    {State, Effects} = handle(news(Node, [{Node, 1, Kind}]), State1),
    {State, Effects1 ++ Effects}.

news(From, Entries) ->
    {message, From, {{client_server, 1}, {delta, Entries}}}.

handle(Event, State) ->
    weft_client_server_core:handle(Event, 0, State).

dialled(Effects) -> lists:usort([Node || {after_ms, _, {dial, Node, _}} <- Effects]).

silence(Effects) -> [Timer || {after_ms, _, {silent, _, _} = Timer} <- Effects].

disconnected(Effects) -> lists:usort([Node || {disconnect, Node} <- Effects]).

sent(Effects) -> [{To, Message} || {send, To, {{client_server, 1}, Message}} <- Effects].

receivers(Effects) -> lists:sort([To || {To, {delta, _}} <- sent(Effects)]).

views(Effects) -> lists:sort([{Key, Value} || {view, Key, Value} <- Effects]).

without_views({State, Effects}) ->
    {State, [E || E <- Effects, element(1, E) =/= view, element(3, E) =/= digest]}.
