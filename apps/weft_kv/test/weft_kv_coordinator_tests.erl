%% SPDX-License-Identifier: Apache-2.0
%% @doc One request to the replicas: as rules, and with losses, cuts and kills. After a thousand
%% schedules each acknowledged write is in what any quorum answers, or was overwritten by somebody
%% who had seen it. With last-write-wins and clocks that differ the same check fails. Each client
%% reads what it has written itself with an acknowledgement before. Replicas also forget: what is
%% over or evicted, and all they had with their disk. What happens while others take the place of
%% owners is in `weft_sim_store_tests'.
-module(weft_kv_coordinator_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PLACES, [{0, a, primary}, {1, b, primary}, {2, c, primary}]).
-define(SCHEDULES, 1000).
-define(STEPS, 150).
-define(SESSION_STEPS, 400).

%% --- rules ------------------------------------------------------------------------------------

a_read_is_answered_by_a_quorum_and_repairs_the_others_test() ->
    One = object(<<"1">>),
    {S0, Effects} = begun(read, #{}),
    ?assertMatch([{ask, _, read}, {ask, _, read}, {ask, _, read}, {after_ms, 5000, deadline}],
                 Effects),
    {S1, []} = reply(a, {ok, weft_kv_object:new()}, S0),
    {S2, [{answer, {ok, One}}]} = reply(b, {ok, One}, S1),
    ?assertMatch({_, [{repair, {0, a, primary}, One}, done]}, reply(c, {ok, One}, S2)).

%% A replica that never answers does not keep the others from being repaired.
a_read_repairs_at_its_deadline_test() ->
    One = object(<<"1">>),
    {S0, _} = begun(read, #{}),
    {S1, []} = reply(a, {ok, weft_kv_object:new()}, S0),
    {S2, _} = reply(b, {ok, One}, S1),
    ?assertMatch({_, [{repair, {0, a, primary}, One}, done]},
                 weft_kv_coordinator_core:handle({timer, deadline}, S2)).

a_write_goes_to_one_replica_first_test() ->
    Write = {write, value(<<"1">>), #{}},
    One = object(<<"1">>),
    {S0, Effects} = begun(Write, #{}),
    ?assertMatch([{ask, {0, a, primary}, Write} | _], Effects),
    {S1, Asked} = reply(a, {ok, One}, S0),
    ?assertEqual([{ask, {1, b, primary}, {merge, One}}, {ask, {2, c, primary}, {merge, One}}],
                 Asked),
    {S2, [{answer, {ok, One}}]} = reply(b, {ok, One}, S1),
    ?assertNot(weft_kv_coordinator_core:may_be_twice(S2)),
    ?assertMatch({_, [done]}, reply(c, {error, overload}, S2)).

a_first_replica_that_refuses_or_is_silent_is_replaced_test() ->
    Write = {write, value(<<"1">>), #{}},
    {S0, _} = begun(Write, #{}),
    ?assertMatch({_, [{ask, {1, b, primary}, Write} | _]}, reply(a, {error, overload}, S0)),
    Silent = {timer, {first, {0, a, primary}}},
    {S1, Effects} = weft_kv_coordinator_core:handle(Silent, S0),
    ?assertMatch([{suspect, {0, a, primary}}, {ask, {1, b, primary}, Write} | _], Effects),
    ?assertMatch({_, []}, weft_kv_coordinator_core:handle(Silent, S1)).

%% Whoever deletes the value meanwhile does not know of the dot that the silent one has given it.
a_first_replica_that_answers_late_does_not_bring_the_value_back_test_() ->
    Value = value(<<"1">>),
    [A, B] = [weft_kv_object:put(Value, #{}, Actor, weft_kv_object:new())
              || Actor <- [<<"a">>, <<"b">>]],
    Seen = seen(B),
    Deleted = weft_kv_object:put(value(deleted), Seen, <<"b">>, B),
    {S0, _} = begun({write, Value, #{}}, #{}),
    {S1, _} = weft_kv_coordinator_core:handle({timer, {first, {0, a, primary}}}, S0),
    [fun() ->
         {_, Effects} = lists:foldl(fun({Node, Reply}, {S, Before}) ->
                                        {Next, More} = reply(Node, Reply, S),
                                        {Next, Before ++ More}
                                    end, {S1, []}, Replies),
         ?assertEqual(done, lists:last(Effects)),
         ?assertEqual([{answer, {ok, B}}], [E || {answer, _} = E <- Effects]),
         Repairs = [{Node, Object} || {repair, {_, Node, primary}, Object} <- Effects],
         ?assertEqual([a, b, c], lists:sort([Node || {Node, _} <- Repairs])),
         Of = fun(Object) ->
                  lists:usort([weft_kv_object:values(weft_kv_object:merge(Repair, Object))
                               || {_, Repair} <- Repairs])
              end,
         %% What each replica may have by then.
         ?assertEqual([[[<<"1">>]], [[<<"1">>]], [[]], [[]]],
                      [Of(A), Of(B), Of(Deleted), Of(weft_kv_object:merge(A, Deleted))])
     end || Replies <- [[{b, {ok, B}}, {c, {ok, B}}, {a, {ok, A}}],
                        [{b, {ok, B}}, {a, {ok, A}}, {c, {ok, B}}],
                        [{a, {ok, A}}, {b, {ok, B}}, {c, {ok, B}}]]].

%% It is waited for as long as the request may take.
one_that_stays_silent_is_not_waited_for_longer_test() ->
    One = object(<<"1">>),
    {S0, _} = begun({write, value(<<"1">>), #{}}, #{}),
    {S1, _} = weft_kv_coordinator_core:handle({timer, {first, {0, a, primary}}}, S0),
    {S2, _} = reply(b, {ok, One}, S1),
    {S3, [{answer, {ok, One}}]} = reply(c, {ok, One}, S2),
    ?assert(weft_kv_coordinator_core:may_be_twice(S3)),
    ?assertMatch({_, [done]}, weft_kv_coordinator_core:handle({timer, deadline}, S3)),
    ?assertMatch({_, [done]}, reply(a, {error, {unknown, killed}}, S3)).

too_few_replicas_are_an_error_at_once_test() ->
    ?assertMatch({_, [{answer, {error, {too_few, #{needed := #{r := 2}, answered := 0}}}}, done]},
                 begun(read, [{0, a, primary}], #{})),
    {S0, _} = begun(read, #{}),
    {S1, []} = reply(a, {error, overload}, S0),
    ?assertMatch({_, [{answer, {error, {too_few, #{failed := [{b, moved}, {a, overload}]}}}}]},
                 reply(b, {error, moved}, S1)).

%% The others are not asked: one that is behind would take it, and would have too many later. It is
%% not said that nothing was done if another one may have done it.
too_many_siblings_are_an_error_at_once_test() ->
    Write = {write, value(<<"1">>), #{}},
    Reason = {too_many_siblings, 100},
    {S0, _} = begun(Write, #{}),
    {S1, [{answer, {error, Reason}}, done]} = reply(a, {error, Reason}, S0),
    ?assertEqual(none, weft_kv_coordinator_core:again(S1)),
    {Refused, _} = reply(a, {error, overload}, S0),
    ?assertMatch({_, [{answer, {error, Reason}}, done]}, reply(b, {error, Reason}, Refused)),
    {Silent, _} = weft_kv_coordinator_core:handle({timer, {first, {0, a, primary}}}, S0),
    ?assertMatch({_, [{answer, {error, {too_few, #{failed := [{b, Reason}, {a, timeout}]}}}} | _]},
                 reply(b, {error, Reason}, Silent)).

%% Whoever asks once more does no more than one write.
what_may_be_asked_again_test() ->
    Again = fun weft_kv_coordinator_core:again/1,
    Write = {write, value(<<"1">>), #{}},
    One = object(<<"1">>),
    Replies = fun(Request, All) ->
                  {S0, _} = begun(Request, #{}),
                  Again(lists:foldl(fun({Node, Reply}, S) -> element(1, reply(Node, Reply, S)) end,
                                    S0, All))
              end,
    Refused = {error, moved},
    ?assertEqual({ok, read}, Replies(read, [{a, {error, timeout}}, {b, {error, timeout}}])),
    ?assertEqual({ok, Write}, Again(element(1, begun(Write, [], #{})))),
    ?assertEqual({ok, Write},
                 Replies(Write, [{a, Refused}, {b, {error, not_owner}}, {c, {error, overload}}])),
    ?assertEqual({ok, {merge, One}},
                 Replies(Write, [{a, {ok, One}}, {b, Refused}, {c, {error, timeout}}])),
    %% What is merged twice is there once.
    ?assertEqual({ok, {merge, One}},
                 Replies({merge, One}, [{a, Refused}, {b, {error, timeout}}, {c, Refused}])),
    %% It may have been written by one of them.
    [?assertEqual({Reason, none}, {Reason, Replies(Write, [{a, Refused}, {b, {error, Reason}},
                                                           {c, Refused}])})
     || Reason <- [timeout, {unknown, killed}, {failed, enospc}]],
    ?assertEqual(none, Replies(Write, [{a, Refused}])),
    {S0, _} = begun(Write, #{}),
    {Late, _} = weft_kv_coordinator_core:handle({timer, deadline}, S0),
    ?assertEqual(none, Again(Late)).

%% Nobody has failed, so the caller need not know of it.
what_was_refused_only_because_partitions_moved_test() ->
    Again = fun weft_kv_coordinator_core:again/1,
    Write = {write, value(<<"1">>), #{}},
    One = object(<<"1">>),
    Two = [{0, a, primary}, {1, b, primary}],
    Replies = fun(Request, All) ->
                  {S0, _} = begun(Request, Two, #{n => 2, r => 1, w => 2, siblings => false}),
                  Again(lists:foldl(fun({Node, Reply}, S) -> element(1, reply(Node, Reply, S)) end,
                                    S0, All))
              end,
    [?assertEqual({{moved, read}, Reason},
                  {Replies(read, [{a, {error, moved}}, {b, {error, Reason}}]), Reason})
     || Reason <- [moved, not_owner, {unknown, normal}, {unknown, noproc}]],
    ?assertEqual({moved, Write}, Replies(Write, [{a, {error, moved}}, {b, {error, not_owner}}])),
    ?assertEqual({moved, {merge, One}}, Replies(Write, [{a, {ok, One}}, {b, {error, moved}}])),
    ?assertEqual({moved, {merge, One}}, Replies(Write, [{a, {error, moved}}, {b, {ok, One}}])),
    %% It may have been written there, or something else has failed, too.
    ?assertEqual(none, Replies(Write, [{a, {error, moved}}, {b, {error, {unknown, normal}}}])),
    ?assertEqual({ok, read}, Replies(read, [{a, {error, moved}}, {b, {error, overload}}])),
    ?assertEqual({ok, Write}, Replies(Write, [{a, {error, full}}, {b, {error, moved}}])),
    ?assertEqual({ok, read}, Again(element(1, begun(read, [], #{})))).

%% The copy of the first try is not one of the second: only what its replicas say counts.
a_write_that_is_tried_again_needs_all_copies_anew_test() ->
    One = object(<<"1">>),
    Later = [{0, a, primary}, {1, c, primary}],
    {S0, [{ask, {0, a, primary}, {merge, One}} | _]} =
        begun({merge, One}, Later, #{n => 2, r => 1, w => 2}),
    {S1, [{ask, {1, c, primary}, {merge, One}}]} =
        weft_kv_coordinator_core:handle({reply, {0, a, primary}, {ok, One}}, S0),
    %% The same one again, and one of before.
    {S2, []} = weft_kv_coordinator_core:handle({reply, {0, a, primary}, {ok, One}}, S1),
    {S3, []} = weft_kv_coordinator_core:handle({reply, {1, b, primary}, {ok, One}}, S2),
    ?assertMatch({_, [{answer, {ok, One}}, done]},
                 weft_kv_coordinator_core:handle({reply, {1, c, primary}, {ok, One}}, S3)).

those_in_place_of_owners_do_not_count_as_owners_test() ->
    Places = [{0, a, primary}, {1, x, fallback}, {2, y, fallback}],
    ?assertMatch({_, [{answer, {error, {too_few, _}}}, done]}, begun(read, Places, #{pr => 2})),
    {S0, _} = begun(read, Places, #{pr => 1}),
    {S1, []} = weft_kv_coordinator_core:handle(
                 {reply, {1, x, fallback}, {ok, weft_kv_object:new()}}, S0),
    {S2, []} = weft_kv_coordinator_core:handle(
                 {reply, {2, y, fallback}, {ok, weft_kv_object:new()}}, S1),
    ?assertMatch({_, [{answer, {ok, _}} | _]}, reply(a, {ok, weft_kv_object:new()}, S2)).

copies_on_one_node_are_not_copies_on_two_test() ->
    Places = [{0, a, primary}, {1, a, primary}, {2, b, primary}],
    Write = {write, value(<<"1">>), #{}},
    One = object(<<"1">>),
    {S0, _} = begun(Write, Places, #{nodes => 2}),
    {S1, _} = weft_kv_coordinator_core:handle({reply, {0, a, primary}, {ok, One}}, S0),
    {S2, []} = weft_kv_coordinator_core:handle({reply, {1, a, primary}, {ok, One}}, S1),
    ?assertMatch({_, [{answer, {ok, One}}, done]},
                 weft_kv_coordinator_core:handle({reply, {2, b, primary}, {ok, One}}, S2)),
    ?assertMatch({_, [{answer, {error, {too_few, _}}}, done]},
                 begun(Write, Places, #{nodes => 3})).

a_reply_of_nobody_who_was_asked_is_dropped_test() ->
    {S0, _} = begun(read, #{}),
    ?assertEqual({S0, []}, reply(x, {ok, object(<<"1">>)}, S0)).

begun(Request, Options) -> begun(Request, ?PLACES, Options).

begun(Request, Places, Given) ->
    {ok, Options} = weft_kv_bucket:check(Given),
    weft_kv_coordinator_core:init(Request, Places, Options).

reply(Node, Reply, State) ->
    Place = case lists:keyfind(Node, 2, ?PLACES) of false -> {9, Node, primary}; P -> P end,
    weft_kv_coordinator_core:handle({reply, Place, Reply}, State).

object(Value) -> weft_kv_object:put(value(Value), #{}, <<"a">>, weft_kv_object:new()).

%% By its context, as a client.
seen(Object) ->
    {ok, Seen} = weft_kv_object:decode({b, <<"k">>}, weft_kv_object:context({b, <<"k">>}, Object)),
    Seen.

value(Value) -> #{value => Value, written_ms => 0, expires_ms => never}.

%% --- schedules --------------------------------------------------------------------------------

%% `clients': what each client has read last (its context and the values). `writes': the values that
%% each written value has seen. `acked': those that were acknowledged, with their clients. `reads':
%% for each answered read the acknowledged writes of its client when it began, and what it found.
%% Each replica keeps its object when it is killed, and writes by another name from then on. Clocks
%% of clients differ.
%% With `forgets' replicas forget the key (`dropped': what they had then), and go on to count
%% (`weft_kv_vnode'), or lose their disk and are other actors then. Copies are compared, too, by
%% what compares them in the store (`weft_kv_exchange'), while all of that goes on.
-record(world, {replicas, clients = #{}, requests = #{}, network = [], cut = [], writes = #{},
                acked = [], reads = [], next = 1, rand, options, forgets = false, dropped = [],
                requests_in_20 = 4}).

nothing_acknowledged_is_lost_test_() ->
    {timeout, 120,
     fun() ->
         Worlds = [run(Seed, #{}) || Seed <- lists:seq(1, ?SCHEDULES)],
         ?assertEqual([], [{Seed, Lost} || {Seed, #world{} = W} <- numbered(Worlds),
                                           Lost <- lost(W)]),
         %% It was put to the test.
         ?assert(lists:sum([length(W#world.acked) || W <- Worlds]) > 2 * ?SCHEDULES)
     end}.

%% A value vanishes only where it was seen, or forgotten: never because a later write of a replica
%% that has forgotten it is taken for one that has seen it, nor the other way round.
nothing_vanishes_but_what_was_forgotten_test_() ->
    {timeout, 300,
     fun() ->
         Count = case os:getenv("FULL") of false -> ?SCHEDULES; _ -> 100 * ?SCHEDULES end,
         ?assertEqual([], [{Seed, Lost} || Seed <- lists:seq(1, Count),
                                           Lost <- vanished(run(Seed, #{}, count))])
     end}.

%% The check itself: who begins to count at 1 again is not believed.
the_same_check_fails_if_a_replica_forgets_its_number_test_() ->
    {timeout, 120,
     fun() ->
         ?assertNotEqual([], [Seed || Seed <- lists:seq(1, ?SCHEDULES),
                                      vanished(run(Seed, #{}, anew)) =/= []])
     end}.

the_same_check_fails_with_last_write_wins_test_() ->
    {timeout, 120,
     fun() ->
         ?assertNotEqual([], [Seed || Seed <- lists:seq(1, ?SCHEDULES div 10),
                                      lost(run(Seed, #{siblings => false})) =/= []])
     end}.

%% The check itself: quorums that do not meet lose writes.
the_same_check_fails_with_quorums_that_do_not_meet_test_() ->
    {timeout, 120,
     fun() ->
         ?assertNotEqual([], [Seed || Seed <- lists:seq(1, ?SCHEDULES div 10),
                                      lost(run(Seed, #{w => 1})) =/= []])
     end}.

%% A session: what a client wrote with an acknowledgement it finds in each later read, or what has
%% replaced it.
clients_read_their_own_writes_test_() ->
    {timeout, 120,
     fun() ->
         Worlds = [sessions(Seed, #{}) || Seed <- lists:seq(1, ?SCHEDULES)],
         ?assertEqual([], [{Seed, Stale} || {Seed, W} <- numbered(Worlds), Stale <- stale(W)]),
         %% It was put to the test: reads after own writes.
         ?assert(length([Own || W <- Worlds, {[_ | _] = Own, _} <- W#world.reads])
                     > 2 * ?SCHEDULES)
     end}.

the_same_check_of_sessions_fails_with_quorums_that_do_not_meet_test_() ->
    [{timeout, 120,
      ?_assertNotEqual([], [Seed || Seed <- lists:seq(1, ?SCHEDULES div 10),
                                    stale(sessions(Seed, Given)) =/= []])}
     || Given <- [#{w => 1}, #{r => 1}]].

numbered(Worlds) -> lists:zip(lists:seq(1, length(Worlds)), Worlds).

run(Seed, Given) -> run(Seed, Given, false).

run(Seed, Given, Forgets) -> steps(?STEPS, world(Seed, Given, Forgets)).

%% So few requests at a time that most have an answer.
sessions(Seed, Given) ->
    World = world(Seed, Given, false),
    steps(?SESSION_STEPS, World#world{requests_in_20 = 1}).

steps(Count, World) -> lists:foldl(fun(_, W) -> step(W) end, World, lists:seq(1, Count)).

world(Seed, Given, Forgets) ->
    {ok, Options} = weft_kv_bucket:check(Given),
    Replicas = maps:from_list([{Node, {weft_kv_object:new(), 0, 0}} || {_, Node, _} <- ?PLACES]),
    #world{replicas = Replicas, rand = rand:seed_s(exsss, Seed), options = Options,
           forgets = Forgets}.

step(World0) ->
    {Choice, World} = random(20, World0),
    case Choice =:= 11 andalso World#world.forgets =/= false of
        true -> compared(World);
        false -> happens(Choice, World)
    end.

happens(Choice, #world{requests_in_20 = Requests} = World) ->
    if
        Choice =< Requests -> client(World);
        Choice =:= 5 -> killed(World);
        Choice =:= 6 -> cut(World);
        Choice =:= 7 -> World#world{cut = []};
        Choice =:= 8 -> dropped(World);
        Choice =:= 9 -> timer(World);
        Choice =:= 10, World#world.forgets =/= false -> forgotten(World);
        true -> delivered(World)
    end.

%% One of three clients reads, or writes with what it has seen last.
client(World0) ->
    {Client, World1} = random(3, World0),
    {Kind, #world{next = Next} = World} = random(2, World1),
    {Seen, Values} = maps:get(Client, World#world.clients, {#{}, []}),
    case Kind of
        1 -> request(read, Client, none, World);
        2 ->
            {Skew, W} = random(50, World),
            Value = #{value => integer_to_binary(Next), written_ms => Next + Skew,
                      expires_ms => never},
            request({write, Value, Seen}, Client, Next,
                    W#world{writes = (W#world.writes)#{Next => Values}})
    end.

request(Request, Client, Written, #world{next = Next, options = Options} = World) ->
    {State, Effects} = weft_kv_coordinator_core:init(Request, ?PLACES, Options),
    What = case Written of none -> {read, own(Client, World)}; _ -> {write, Written} end,
    performed(Next, Effects,
              World#world{next = Next + 1,
                          requests = (World#world.requests)#{Next => {State, Client, What}}}).

own(Client, #world{acked = Acked}) -> [Write || {By, Write} <- Acked, By =:= Client].

performed(Id, Effects, World) ->
    lists:foldl(fun(Effect, W) -> effect(Effect, Id, W) end, World, Effects).

effect({ask, Place, Request}, Id, World) -> sent({Id, to, Place, Request}, World);
effect({repair, Place, Object}, _Id, World) -> sent({none, to, Place, {merge, Object}}, World);
effect({after_ms, _, Timer}, Id, World) -> sent({Id, timer, Timer}, World);
effect(done, _Id, World) -> World;
effect({suspect, _}, _Id, World) -> World;
effect({answer, {error, _}}, _Id, World) -> World;
effect({answer, {ok, Object}}, Id, #world{requests = Requests, clients = Clients} = World) ->
    case Requests of
        #{Id := {_, Client, {read, Own}}} ->
            World#world{clients = Clients#{Client => {seen(Object), numbers(Object)}},
                        reads = [{Own, numbers(Object)} | World#world.reads]};
        #{Id := {_, Client, {write, Written}}} ->
            World#world{acked = [{Client, Written} | World#world.acked]}
    end.

sent(Message, #world{network = Network} = World) -> World#world{network = [Message | Network]}.

numbers(Object) -> [binary_to_integer(Value) || Value <- weft_kv_object:values(Object)].

delivered(World) ->
    taken(fun(Message) -> element(2, Message) =/= timer end, fun deliver/2, World).

timer(World) -> taken(fun(Message) -> element(2, Message) =:= timer end, fun deliver/2, World).

dropped(World) ->
    taken(fun(Message) -> element(2, Message) =/= timer end, fun(_, W) -> W end, World).

taken(Which, Fun, #world{network = Network} = World0) ->
    case lists:filter(Which, Network) of
        [] -> World0;
        Messages ->
            {N, World} = random(length(Messages), World0),
            Message = lists:nth(N, Messages),
            Fun(Message, World#world{network = lists:delete(Message, Network)})
    end.

deliver({Id, to, {_, Node, _} = Place, Request}, #world{cut = Cut} = World) ->
    case lists:member(Node, Cut) of
        true -> World;
        false ->
            {Object, W} = replica(Node, Request, World),
            case Id of
                none -> W;
                _ -> sent({Id, from, Place, {ok, Object}}, W)
            end
    end;
deliver({Id, from, {_, Node, _} = Place, Reply}, #world{cut = Cut} = World) ->
    case lists:member(Node, Cut) of
        true -> World;
        false -> event(Id, {reply, Place, Reply}, World)
    end;
deliver({Id, timer, Timer}, World) ->
    event(Id, {timer, Timer}, World).

event(Id, Event, #world{requests = Requests} = World) ->
    #{Id := {State0, Client, What}} = Requests,
    {State, Effects} = weft_kv_coordinator_core:handle(Event, State0),
    performed(Id, Effects, World#world{requests = Requests#{Id := {State, Client, What}}}).

replica(Node, Request, #world{replicas = Replicas, options = #{siblings := Siblings}} = World) ->
    #{Node := {Object, Run, Last}} = Replicas,
    Actor = actor(Node, Run),
    New = weft_kv_replica:requested(Request, {Actor, Last}, Siblings, Object),
    {New, World#world{replicas = Replicas#{Node := {New, Run, max(Last, weft_kv_object:last(Actor,
                                                                                          New))}}}}.

forgotten(World0) ->
    {N, World1} = random(3, World0),
    {Lost, #world{replicas = Replicas} = World} = random(2, World1),
    {_, Node, _} = lists:nth(N, ?PLACES),
    #{Node := {Object, Run, Last}} = Replicas,
    Empty = case {Lost, World#world.forgets} of
                {1, _} -> {weft_kv_object:new(), Run + 1, 0};
                {2, count} -> {weft_kv_object:new(), Run, Last};
                {2, anew} -> {weft_kv_object:new(), Run, 0}
            end,
    World#world{replicas = Replicas#{Node := Empty},
                dropped = numbers(Object) ++ World#world.dropped}.

%% Two replicas are compared. Before each answer something else may happen, and a replica that is
%% cut off ends it.
compared(World0) ->
    {Left, World} = random(3, World0),
    [One, Other] = lists:delete(Left - 1, [0, 1, 2]),
    undefined = put(?MODULE, World),
    _ = exchanged(weft_kv_exchange:new({3, 0, {One, Other}})),
    erase(?MODULE).

exchanged(Exchange) ->
    case weft_kv_exchange:step(Exchange, fun asked/3) of
        {more, Next} -> exchanged(Next);
        Ended -> Ended
    end.

asked(Partition, _Key, Command) ->
    {Choice, World0} = random(20, get(?MODULE)),
    World = happens(Choice, World0),
    {_, Node, _} = lists:nth(Partition + 1, ?PLACES),
    case lists:member(Node, World#world.cut) of
        true ->
            put(?MODULE, World),
            {error, away};
        false ->
            {Answer, Next} = answered(Command, Node, World),
            put(?MODULE, Next),
            {ok, Answer}
    end.

%% There is one key.
answered({merge_all, [{_, {Object, _}}]}, Node, World) ->
    {_, Next} = replica(Node, {merge, Object}, World),
    {{ok, 1}, Next};
answered(Command, Node, #world{replicas = Replicas, options = #{siblings := Siblings}} = World) ->
    #{Node := {Object, _, _}} = Replicas,
    Key = {0, bucket, <<"key">>},
    Kind = #{n => 3, evict => false, siblings => Siblings},
    Hash = erlang:phash2(Object),
    IsThere = Object =/= weft_kv_object:new(),
    {case Command of
         {entropy, {root, 3}} -> Hash;
         {entropy, {segments, 3}} -> weft_kv_copy:announced([{0, Hash} || IsThere]);
         {entropy, {{entries, [0], start}, 3}} -> {[{Key, Hash, Kind} || IsThere], done};
         {objects, [Key]} -> [{Key, case IsThere of true -> {Object, Kind}; false -> none end}]
     end, World}.

actor(Node, Run) -> iolist_to_binary(io_lib:format("~p~p", [Node, Run])).

%% What waits for it or comes from it is lost.
killed(#world{replicas = Replicas} = World0) ->
    {N, World} = random(3, World0),
    {_, Node, _} = lists:nth(N, ?PLACES),
    #{Node := {Object, Run, _}} = Replicas,
    Network = [Message || Message <- World#world.network,
                          element(2, Message) =:= timer
                              orelse element(2, element(3, Message)) =/= Node],
    World#world{replicas = Replicas#{Node := {Object, Run + 1, 0}}, network = Network}.

cut(World0) ->
    {N, World} = random(3, World0),
    {_, Node, _} = lists:nth(N, ?PLACES),
    World#world{cut = [Node]}.

random(Max, #world{rand = Rand0} = World) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, World#world{rand = Rand}}.

%% For each two replicas: acknowledged writes that are not in what they know together, and that no
%% write that is has seen, nor one that such a write has seen, and so on.
lost(#world{replicas = Replicas, acked = Acked, writes = Writes}) ->
    Objects = [Object || {Object, _, _} <- maps:values(Replicas)],
    Quorums = [weft_kv_object:merge(A, B) || A <- Objects, B <- Objects, A =/= B]
        ++ [A || A <- Objects, length([B || B <- Objects, A =:= B]) > 1],
    lists:usort([Write || Quorum <- Quorums, {_, Write} <- Acked,
                          not is_kept(Write, reached(numbers(Quorum), Writes, []))]).

%% Own writes that a read has missed.
stale(#world{reads = Reads, writes = Writes}) ->
    [{Write, Found} || {Own, Found} <- Reads, Own =/= [],
                       Reached <- [reached(Found, Writes, [])],
                       Write <- Own, not is_kept(Write, Reached)].

%% What all replicas know together, and what that has seen; or was forgotten somewhere.
vanished(#world{replicas = Replicas, acked = Acked, writes = Writes, dropped = Dropped}) ->
    All = lists:foldl(fun({Object, _, _}, Sum) -> weft_kv_object:merge(Object, Sum) end,
                      weft_kv_object:new(), maps:values(Replicas)),
    Reached = reached(numbers(All) ++ Dropped, Writes, []),
    [Write || {_, Write} <- lists:usort(Acked), not is_kept(Write, Reached)].

is_kept(Write, Reached) -> lists:member(Write, Reached).

reached([], _, Reached) -> Reached;
reached([N | Further], Writes, Reached) ->
    case lists:member(N, Reached) of
        true -> reached(Further, Writes, Reached);
        false -> reached(maps:get(N, Writes) ++ Further, Writes, [N | Reached])
    end.
