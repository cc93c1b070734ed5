%% SPDX-License-Identifier: Apache-2.0
%% @doc Eventual names: the rules one by one, the schedule that made zombies elsewhere, and any
%% schedule against what must hold when all have heard of each other.
-module(weft_names_eventual_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, weft_core_net).
-define(CORE, weft_names_eventual_core).
-define(NODES, [a@x, b@x, c@x]).

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, 200}, quiet]))}}
     || {Name, Property} <- [{"any schedule ends in agreement", prop_agreement(#{})},
                             {"newest", prop_agreement(#{conflict => newest})},
                             {"a function that chooses",
                              prop_agreement(#{conflict => fun by_meta/3})},
                             {"a function that wants none",
                              prop_agreement(#{conflict => fun none/3})},
                             {"losers stay alive", prop_agreement(#{loser => none})},
                             {"who waits", prop_agreement(#{wait => all})},
                             {"one node is a map", prop_one_node()}]].

%% --- any schedule -----------------------------------------------------------------------------

node_name() -> oneof(?NODES).

step() ->
    frequency([{4, {register, node_name(), range(1, 3), range(1, 3), range(1, 50)}},
               {2, {re_register, node_name(), range(1, 3), range(1, 3), range(1, 50),
                    range(-1, 3)}},
               {2, {unregister, node_name(), range(1, 3)}},
               {2, {die, node_name(), range(1, 3)}},
               {20, {deliver, node_name(), node_name()}},
               {8, {fire, node_name()}},
               {2, {cut, node_name(), node_name(), oneof([noconnection, broken])}},
               {4, {heal, node_name(), node_name()}},
               {1, {crash, node_name()}}]).

%% Processes have numbers of their own in each incarnation of their node and after each death.
prop_agreement(Options) ->
    ?FORALL(Steps, ?SIZED(Size, resize(10 * Size, list(step()))),
            begin
                Net0 = ?N:new(?CORE, ?NODES, Options#{scope => s}),
                {Net1, _} = lists:foldl(fun step/2, {Net0, 1}, Steps),
                agrees(?N:settle(Net1), Options)
            end).

step({register, Node, Name, Number, TimeUs}, {Net, Round}) ->
    Pid = ?N:pid(Node, Round * 10 + Number),
    {?N:command(Node, {register, Name, Pid, meta(Pid), TimeUs}, Net), Round};
step({re_register, Node, Name, Number, TimeUs, Seen}, {Net, Round}) ->
    Pid = ?N:pid(Node, Round * 10 + Number),
    {?N:command(Node, {re_register, Name, Pid, meta(Pid), TimeUs, Seen}, Net), Round};
step({unregister, Node, Name}, {Net, Round}) ->
    {?N:command(Node, {unregister, Name}, Net), Round};
step({die, Node, Number}, {Net, Round}) ->
    {?N:die(?N:pid(Node, Round * 10 + Number), Net), Round + 1};
step({crash, Node}, {Net, Round}) ->
    {?N:crash(Node, Net), Round + 1};
step({deliver, A, B}, {Net, Round}) -> {?N:deliver(A, B, Net), Round};
step({fire, A}, {Net, Round}) -> {?N:fire(A, Net), Round};
step({cut, A, B, Reason}, {Net, Round}) -> {?N:cut(A, B, Reason, Net), Round};
step({heal, A, A}, State) -> State;
step({heal, A, B}, {Net, Round}) -> {?N:heal(A, B, Net), Round}.

%% A large one is a batch of its own at the beginning of a session.
meta(Pid) ->
    Hash = erlang:phash2(Pid),
    {Hash, lists:nth(1 + Hash rem 2, [small, ?N:large(5000000)])}.

by_meta(_Via, {Pid1, Meta1, _}, {Pid2, Meta2, _}) ->
    case Meta1 > Meta2 of true -> Pid1; false -> Pid2 end.

none(_Via, _, _) -> none.

%% All show the same; nobody shows what is dead; of each name there is one claim, known to all; a
%% process that lives and lost nothing is where it says it is.
agrees(Net, Options) ->
    [Views | Others] = [?N:views(Node, Net) || Node <- ?NODES],
    [Holders | OtherHolders] = [?CORE:holders(?N:state(Node, Net)) || Node <- ?NODES],
    Shown = maps:map(fun(_, {Pid, _, _, _}) -> [Pid] end, Views),
    Wrong = [{views, Others} || not lists:all(fun(V) -> V =:= Views end, Others)]
        ++ [{claims, OtherHolders} || not lists:all(fun(H) -> H =:= Holders end, OtherHolders)]
        ++ [{more_than_one, Holders, Shown} || Holders =/= Shown]
        ++ [{dead, Pid} || Pid <- lists:usort(lists:append(maps:values(Holders)))
                               -- ?N:alive(Net)]
        ++ [{meta, Views} || {Pid, Meta, _, _} <- maps:values(Views), Meta =/= meta(Pid)]
        ++ [{told, ?N:told(Net)} || not is_map_key(loser, Options), ?N:told(Net) =/= []],
    Wrong =:= [] orelse begin io:format("~P~n", [Wrong, 100]), false end.

%% A single node answers like a map from names to processes.
prop_one_node() ->
    ?FORALL(Steps, list(oneof([{register, range(1, 3), range(1, 3)},
                               {re_register, range(1, 3), range(1, 3)},
                               {unregister, range(1, 3)}, {die, range(1, 3)}])),
            begin
                Net = ?N:new(?CORE, [a@x], #{scope => s}),
                {End, Model} = lists:foldl(fun model_step/2, {Net, #{}}, Steps),
                Model =:= maps:map(fun(_, Row) -> element(1, Row) end, ?N:views(a@x, End))
            end).

model_step({register, Name, Number}, {Net0, Model}) ->
    Pid = ?N:pid(a@x, Number),
    Net = ?N:command(a@x, {register, Name, Pid, none, 1}, Net0),
    case Model of
        #{Name := Holder} ->
            ?assertMatch([{a@x, {error, {taken, Holder}}} | _], ?N:replies(Net)),
            {Net, Model};
        #{} ->
            ?assertMatch([{a@x, {ok, _}} | _], ?N:replies(Net)),
            {Net, Model#{Name => Pid}}
    end;
model_step({re_register, Name, Number}, {Net, Model}) ->
    Pid = ?N:pid(a@x, Number),
    {?N:command(a@x, {re_register, Name, Pid, none, 1, -1}, Net), Model#{Name => Pid}};
model_step({unregister, Name}, {Net0, Model}) ->
    Net = ?N:command(a@x, {unregister, Name}, Net0),
    case Model of
        #{Name := _} -> ?assertMatch([{a@x, {ok, _}} | _], ?N:replies(Net));
        #{} -> ?assertMatch([{a@x, {error, not_here}} | _], ?N:replies(Net))
    end,
    {Net, maps:remove(Name, Model)};
model_step({die, Number}, {Net, Model}) ->
    Pid = ?N:pid(a@x, Number),
    {?N:die(Pid, Net), maps:filter(fun(_, Holder) -> Holder =/= Pid end, Model)}.

%% --- one by one -------------------------------------------------------------------------------

%% Both halves registered; when they meet, the later registration wins, and while the news of that
%% cross, the winner is unregistered. Elsewhere the loser, dead already, came back for ever with
%% the first message of the other node (found by a TLA+ model of the registry syn).
a_name_that_lost_while_the_winner_left_does_not_come_back_test() ->
    [A, B] = [a@x, b@x],
    [PidA, PidB] = [?N:pid(A, 1), ?N:pid(B, 1)],
    Apart0 = ?N:new(?CORE, [A, B], #{scope => s, conflict => newest}),
    Apart1 = ?N:command(A, {register, n, PidA, m, 1}, Apart0),
    Apart = ?N:fire(B, ?N:fire(A, ?N:command(B, {register, n, PidB, m, 2}, Apart1))),
    %% Each tells the other all, but nothing of it arrives yet.
    Met = ?N:heal(A, B, Apart),
    ?assert(?N:waiting(A, B, Met) >= 3 andalso ?N:waiting(B, A, Met) >= 3),
    %% A hears of B's process, which is newer.
    AHeard = lists:foldl(fun(_, N) -> ?N:deliver(B, A, N) end, Met,
                         lists:seq(1, ?N:waiting(B, A, Met))),
    ?assertMatch(#{n := {PidB, m, 2, 0}}, ?N:views(A, AHeard)),
    %% B's is unregistered, and A hears that too, before B hears anything.
    BLeft = ?N:deliver(B, A, ?N:fire(B, ?N:command(B, {unregister, n}, AHeard))),
    %% Now the stale news of A's process reaches B, which had settled the matter for itself.
    End = ?N:settle(BLeft),
    ?assertEqual(?N:views(A, End), ?N:views(B, End)),
    [?assert(lists:member(Pid, ?N:alive(End)))
     || #{n := {Pid, _, _, _}} <- [?N:views(A, End), ?N:views(B, End)]],
    %% The name is not taken by a dead process: if nobody shows it, anybody may have it.
    ?assertEqual(PidA, element(1, map_get(n, ?N:views(B, End)))).

who_keeps_a_name_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Options])),
      fun() ->
              {Net, PidA, PidB} = conflict(Options),
              Shown = [element(1, map_get(n, ?N:views(Node, Net))) || Node <- [a@x, b@x]],
              Expected = case Winner of a -> PidA; b -> PidB end,
              ?assertEqual([Expected, Expected], Shown),
              ?assertEqual(Alive, length([P || P <- [PidA, PidB], lists:member(P, ?N:alive(Net))]))
      end}
     || {Options, Winner, Alive} <- [{#{}, a, 1}, {#{conflict => newest}, b, 1},
                                     {#{loser => none}, a, 2}, {#{loser => notify}, a, 2},
                                     {#{conflict => fun(_, {P1, M1, _}, {P2, M2, _}) ->
                                                            case M1 > M2 of true -> P1;
                                                                            false -> P2 end
                                                    end}, b, 1},
                                     {#{conflict => fun(_, _, _) -> error(oops) end}, a, 1}]].

conflict(Options) ->
    [PidA, PidB] = [?N:pid(a@x, 1), ?N:pid(b@x, 1)],
    Net0 = ?N:new(?CORE, [a@x, b@x], Options#{scope => s}),
    Net = ?N:command(b@x, {register, n, PidB, 2, 20},
                     ?N:command(a@x, {register, n, PidA, 1, 10}, Net0)),
    {?N:settle(Net), PidA, PidB}.

a_loser_is_told_whom_it_lost_to_test() ->
    {Net, PidA, PidB} = conflict(#{loser => notify}),
    ?assertEqual([{PidB, {weft_name_conflict, {s, n}, PidA}}], ?N:told(Net)).

%% It was meant for a claim that is not there any more.
a_late_order_hits_nothing_else_test() ->
    {New, _} = ?CORE:init(a@x, #{scope => s, incarnation => 1}),
    Pid = ?N:pid(a@x, 1),
    {Claimed, _} = ?CORE:handle({command, r, {register, x, Pid, meta, 10}}, 0, New),
    Late = {1, yield, x, 99, conflict, ?N:pid(b@x, 1)},
    {Same, Effects} = ?CORE:handle({message, b@x, Late}, 0, Claimed),
    ?assertEqual({[], #{x => [Pid]}}, {Effects, ?CORE:holders(Same)}),
    {Gone, _} = ?CORE:handle({message, b@x, setelement(4, Late, 1)}, 0, Claimed),
    ?assertEqual(#{}, ?CORE:holders(Gone)).

a_function_may_want_none_test() ->
    {Net, _, _} = conflict(#{conflict => fun(_, _, _) -> none end}),
    ?assertEqual([#{}, #{}], [?N:views(Node, Net) || Node <- [a@x, b@x]]),
    ?assertEqual([], ?N:alive(Net)).

%% In one step it loses one name and is shown as the only one left under another; then it is gone.
a_process_that_lost_one_name_is_shown_under_no_other_test() ->
    Nodes = [a@x, b@x, c@x],
    [A, B, C] = [?N:pid(Node, 1) || Node <- Nodes],
    Do = fun(Node, Command, N) -> ?N:command(Node, Command, N) end,
    Net0 = ?N:new(?CORE, Nodes, #{scope => s, conflict => fun none/3}),
    Net1 = Do(b@x, {re_register, 3, B, m, 1, 0}, Do(b@x, {register, 2, B, m, 1}, Net0)),
    Net2 = Do(a@x, {register, 2, A, m, 2}, ?N:heal(b@x, a@x, Net1)),
    Net3 = Do(a@x, {re_register, 3, A, m, 2, 0}, Do(c@x, {register, 2, C, m, 2}, Net2)),
    End = ?N:settle(Net3),
    ?assertEqual([#{}, #{}, #{}], [?N:views(Node, End) || Node <- Nodes]),
    ?assertEqual([], ?N:alive(End)).

re_register_moves_a_name_and_the_former_process_lives_test() ->
    [PidA, PidB] = [?N:pid(a@x, 1), ?N:pid(b@x, 1)],
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = ?N:settle(?N:command(a@x, {register, n, PidA, m, 1}, Net0)),
    Net = ?N:settle(?N:command(b@x, {re_register, n, PidB, m2, 2, -1}, Net1)),
    ?assertMatch([#{n := {PidB, m2, 2, 1}}, #{n := {PidB, m2, 2, 1}}],
                 [?N:views(Node, Net) || Node <- [a@x, b@x]]),
    ?assertEqual([PidA, PidB], lists:sort(?N:alive(Net))),
    %% A's process no longer is behind the name: its end changes nothing.
    ?assertMatch(#{n := {PidB, _, _, _}}, ?N:views(b@x, ?N:settle(?N:die(PidA, Net)))).

%% A's claim and its order to B to take the name cross: B has not heard of the claim yet.
re_register_is_above_the_claim_its_caller_sees_test() ->
    [PidA, PidB] = [?N:pid(a@x, 1), ?N:pid(b@x, 1)],
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = ?N:command(a@x, {register, n, PidA, m, 1}, Net0),
    #{n := {PidA, m, 1, Rank}} = ?N:views(a@x, Net1),
    Net = ?N:settle(?N:command(b@x, {re_register, n, PidB, m2, 2, Rank}, Net1)),
    ?assertMatch([#{n := {PidB, m2, 2, 1}}, #{n := {PidB, m2, 2, 1}}],
                 [?N:views(Node, Net) || Node <- [a@x, b@x]]).

one_name_for_each_process_if_asked_for_test() ->
    Pid = ?N:pid(a@x, 1),
    Net0 = ?N:new(?CORE, [a@x], #{scope => s, names_per_pid => one}),
    Net = ?N:command(a@x, {register, n2, Pid, m, 2},
                     ?N:command(a@x, {register, n1, Pid, m, 1}, Net0)),
    ?assertMatch([{a@x, {error, {pid_registered, n1}}} | _], ?N:replies(Net)),
    ?assertMatch([{a@x, {ok, _}} | _],
                 ?N:replies(?N:command(a@x, {re_register, n1, Pid, m2, 3, -1}, Net))),
    ?assertMatch([{a@x, {error, {pid_registered, n1}}} | _],
                 ?N:replies(?N:command(a@x, {re_register, n2, Pid, m2, 3, -1}, Net))).

%% The connection is there, only the session began anew: names stay until the news is complete.
names_outlive_a_session_that_broke_test() ->
    Pid = ?N:pid(b@x, 1),
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = ?N:settle(?N:command(b@x, {register, n, Pid, m, 1}, Net0)),
    Broken = ?N:cut(a@x, b@x, broken, Net1),
    ?assertMatch(#{n := _}, ?N:views(a@x, Broken)),
    Gone = ?N:heal(a@x, b@x, ?N:command(b@x, {unregister, n}, Broken)),
    ?assertMatch(#{n := _}, ?N:views(a@x, Gone)),
    ?assertEqual(#{}, ?N:views(a@x, ?N:settle(Gone))),
    %% Nobody comes back: they go when the time is over, here at once.
    ?assertEqual(#{}, ?N:views(a@x, ?N:fire(a@x, Broken))).

ten_thousand_names_of_a_lost_node_go_in_steps_test() ->
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = lists:foldl(fun(N, Net) ->
                               ?N:command(b@x, {register, N, ?N:pid(b@x, N), m, N}, Net)
                       end, Net0, lists:seq(1, 10000)),
    Net2 = ?N:settle(Net1),
    ?assertEqual(10000, map_size(?N:views(a@x, Net2))),
    Lost = ?N:cut(a@x, b@x, Net2),
    Steps = lists:foldl(fun(_, [Net | _] = Nets) -> [?N:fire(a@x, Net) | Nets] end, [Lost],
                        lists:seq(1, 10)),
    ?assertEqual([map_size(?N:views(a@x, Net)) || Net <- Steps], lists:seq(0, 10000, 1000)).

%% One who registers a process of another node waits for that node's news; it comes, or the node is
%% lost.
await_ends_with_the_news_or_with_the_node_test() ->
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = ?N:command(b@x, {register, n, ?N:pid(b@x, 1), m, 1}, Net0),
    [{b@x, {ok, Seq}} | _] = ?N:replies(Net1),
    Waits = ?N:command(a@x, {await, b@x, Seq}, Net1),
    ?assertEqual(?N:replies(Net1), ?N:replies(Waits)),
    ?assertMatch([{a@x, ok} | _], ?N:replies(?N:settle(Waits))),
    ?assertMatch([{a@x, ok} | _], ?N:replies(?N:cut(a@x, b@x, Waits))),
    ?assertMatch([{a@x, ok} | _], ?N:replies(?N:command(a@x, {await, c@x, 1}, Net1))).

a_driver_that_starts_again_claims_what_it_had_test() ->
    Pid = ?N:pid(a@x, 1),
    Net = ?N:settle(?N:new(?CORE, [a@x], #{scope => s, own => [{n, Pid, m, 5, 2}]})),
    ?assertEqual(#{n => {Pid, m, 5, 2}}, ?N:views(a@x, Net)),
    ?assertEqual(#{}, ?N:views(a@x, ?N:die(Pid, Net))).

a_message_of_a_newer_version_is_ignored_test() ->
    Net = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    {State, []} = ?CORE:handle({message, b@x, {2, whatever}}, 0, ?N:state(a@x, Net)),
    ?assertEqual(State, ?N:state(a@x, Net)).
