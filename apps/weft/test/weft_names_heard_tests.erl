%% SPDX-License-Identifier: Apache-2.0
%% @doc Eventual names whose changes return when all have heard of them (the option `wait'): what
%% holds in any schedule, and each end of such a wait.
-module(weft_names_heard_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, weft_core_net).
-define(CORE, weft_names_eventual_core).
-define(NODES, [a@x, b@x, c@x]).
-define(OPTIONS, #{scope => s, wait => all}).

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, 300}, quiet]))}}
     || {Name, Property} <- [{"who is answered has been heard", prop_heard()},
                             {"of many at once one gets the name", prop_one_gets_it()}]].

%% --- any schedule -----------------------------------------------------------------------------

node_name() -> oneof(?NODES).

step() ->
    frequency([{4, {register, node_name(), range(1, 4)}},
               {2, {re_register, node_name(), range(1, 4), range(-1, 3)}},
               {2, {unregister, node_name(), range(1, 4)}},
               {1, {die, node_name(), range(1, 4)}},
               {20, {deliver, node_name(), node_name()}},
               {8, {fire, node_name()}},
               {2, {cut, node_name(), node_name(), oneof([noconnection, broken])}},
               {4, {heal, node_name(), node_name()}},
               {1, {crash, node_name()}}]).

-record(run, {net, number = 1, asked = #{}, unheard = []}).

%% Nobody is late here: no second passes. Whoever is answered with ok was heard by each node with
%% which there was a link all the time.
prop_heard() ->
    ?FORALL(Steps, ?SIZED(Size, resize(10 * Size, list(step()))),
            begin
                Run0 = #run{net = ?N:settle(?N:new(?CORE, ?NODES, ?OPTIONS))},
                Run = lists:foldl(fun checked/2, Run0, Steps),
                End = ?N:settle(Run#run.net),
                %% All are answered in the end, and nobody waits.
                Run#run.unheard =:= [] andalso length(?N:replies(End)) =:= Run#run.number - 1
                    andalso not lists:any(fun(Node) -> ?CORE:is_waiting(?N:state(Node, End)) end,
                                          ?NODES)
            end).

checked(Step, #run{net = Before} = Run0) ->
    #run{net = Net, asked = Asked, unheard = Unheard} = Run = step(Step, Run0),
    New = lists:sublist(?N:replies(Net), length(?N:replies(Net)) - length(?N:replies(Before))),
    Run#run{unheard = [{Seq, Other} || {Ref, {ok, Seq}} <- New,
                                       {Node, Linked} <- [map_get(Ref, Asked)], Other <- Linked,
                                       ?CORE:heard_of(Node, ?N:state(Other, Net)) < Seq]
                      ++ Unheard}.

%% A large one is a batch of its own at the beginning of a session.
step({register, Node, Name}, Run) ->
    command(Node, fun(Pid) -> {register, Name, Pid, ?N:large(5000000), 1} end, Run);
step({re_register, Node, Name, Seen}, Run) ->
    command(Node, fun(Pid) -> {re_register, Name, Pid, meta, 1, Seen} end, Run);
step({unregister, Node, Name}, Run) ->
    command(Node, fun(_) -> {unregister, Name} end, Run);
step({die, Node, Number}, #run{net = Net} = Run) ->
    Run#run{net = ?N:die(?N:pid(Node, Number), Net)};
%% Who asked it is gone too.
step({crash, Node}, #run{net = Net, asked = Asked} = Run) ->
    lists:foldl(fun(Other, R) -> unlinked(Node, Other, R) end,
                Run#run{net = answered_by_crash(Node, Asked, ?N:crash(Node, Net))}, ?NODES);
step({deliver, A, B}, #run{net = Net} = Run) -> Run#run{net = ?N:deliver(A, B, Net)};
step({fire, A}, #run{net = Net} = Run) -> Run#run{net = ?N:fire_but(rows_tick, A, Net)};
step({cut, A, B, Reason}, #run{net = Net} = Run) ->
    unlinked(A, B, Run#run{net = ?N:cut(A, B, Reason, Net)});
step({heal, A, A}, Run) -> Run;
step({heal, A, B}, #run{net = Net} = Run) -> Run#run{net = ?N:heal(A, B, Net)}.

command(Node, Command, #run{net = Net, number = Number, asked = Asked} = Run) ->
    Linked = [Other || Other <- ?NODES, Other =/= Node, ?N:is_linked(Node, Other, Net)],
    Run#run{net = ?N:command(Node, Number, Command(?N:pid(Node, Number)), Net),
            number = Number + 1, asked = Asked#{Number => {Node, Linked}}}.

unlinked(A, B, #run{asked = Asked} = Run) ->
    Run#run{asked = maps:map(fun(_, {Node, Linked}) when Node =:= A -> {Node, Linked -- [B]};
                                (_, {Node, Linked}) when Node =:= B -> {Node, Linked -- [A]};
                                (_, Other) -> Other
                             end, Asked)}.

answered_by_crash(Node, Asked, Net) ->
    Open = [Ref || {Ref, {N, _}} <- maps:to_list(Asked), N =:= Node,
                   not lists:keymember(Ref, 1, ?N:replies(Net))],
    lists:foldl(fun(Ref, N) -> ?N:replied(Ref, {error, crashed}, N) end, Net, Open).

%% All are linked, nobody fails. Some may tell the others what they had. All times are equal or not,
%% but never those of the real order.
prop_one_gets_it() ->
    Step = frequency([{3, {register, node_name(), range(1, 2), range(1, 3)}},
                      {10, {deliver, node_name(), node_name()}},
                      {4, {fire, node_name()}}]),
    ?FORALL({Order, Had, Steps},
            {oneof([oldest, newest, fun asked_in_vain/3]), list(node_name()), list(Step)},
            begin
                Options = ?OPTIONS#{conflict => Order},
                Net0 = had(Had, ?N:new(?CORE, ?NODES, Options)),
                {Net1, Names} = lists:foldl(fun race/2, {Net0, #{}}, Steps),
                Net = ?N:settle_but(rows_tick, Net1),
                Shown = maps:map(fun(_, {Pid, _, _, _}) -> Pid end,
                                 maps:with(maps:keys(Names), ?N:views(a@x, Net))),
                maps:fold(fun(Name, Asked, Ok) -> Ok andalso one_got(Name, Asked, Shown, Net) end,
                          map_size(Shown) =:= map_size(Names), Names)
                    andalso ?N:told(Net) =:= []
                    andalso lists:all(fun(Pid) -> lists:member(Pid, ?N:alive(Net)) end,
                                      maps:values(Shown))
            end).

%% The names that each node had before they met are in batches of their own.
had([], Net) -> ?N:settle(Net);
had(Nodes, Net) ->
    Named = lists:zip(Nodes, lists:seq(1, length(Nodes))),
    ?N:healed(lists:foldl(fun({Node, Number}, N) ->
                                  Claim = {register, {had, Number}, ?N:pid(Node, 100000 + Number),
                                           ?N:large(5000000), 1},
                                  ?N:fire(Node, ?N:command(Node, {had, Number}, Claim, N))
                          end, Net, Named)).

%% Would leave the name to nobody.
asked_in_vain(_Via, _, _) -> none.

race({register, Node, Name, TimeUs}, {Net, Names}) ->
    Pid = ?N:pid(Node, 1000 * map_size(Names) + length(lists:append(maps:values(Names)))),
    {?N:command(Node, Pid, {register, Name, Pid, meta, TimeUs}, Net),
     Names#{Name => [Pid | maps:get(Name, Names, [])]}};
race({deliver, A, B}, {Net, Names}) -> {?N:deliver(A, B, Net), Names};
race({fire, A}, {Net, Names}) -> {?N:fire_but(rows_tick, A, Net), Names}.

one_got(Name, Asked, Shown, Net) ->
    Replies = [{Pid, proplists:get_value(Pid, ?N:replies(Net))} || Pid <- Asked],
    [Pid || {Pid, {ok, _}} <- Replies] =:= [maps:get(Name, Shown, none)]
        andalso length([Pid || {Pid, {error, {taken, _}}} <- Replies]) =:= length(Asked) - 1.

%% --- one by one -------------------------------------------------------------------------------

pair() -> ?N:settle(?N:new(?CORE, [a@x, b@x], ?OPTIONS)).

registers(Node, Name, Net) ->
    ?N:command(Node, Name, {register, Name, ?N:pid(Node, erlang:phash2(Name)), meta, 1}, Net).

is_answered(Name, Net) ->
    lists:keymember(Name, 1, ?N:replies(Net)).

seconds(Count, Node, Net) ->
    lists:foldl(fun(_, N) -> ?N:fire(Node, N) end, Net, lists:seq(1, Count)).

a_lone_node_answers_at_once_test() ->
    Net = registers(a@x, n, ?N:new(?CORE, [a@x], ?OPTIONS)),
    ?assertMatch([{n, {ok, 1}}], ?N:replies(Net)),
    Gone = ?N:command(a@x, u, {unregister, n}, Net),
    ?assertMatch([{u, {ok, 2}} | _], ?N:replies(Gone)).

%% The change is sent without a pause, then the question.
the_answer_comes_when_the_other_shows_it_test() ->
    Asked = ?N:fire(a@x, registers(a@x, n, pair())),
    ?assertEqual(2, ?N:waiting(a@x, b@x, ?N:fire(a@x, Asked))),
    Shown = ?N:deliver(a@x, b@x, ?N:fire(a@x, Asked)),
    ?assertMatch(#{n := _}, ?N:views(b@x, Shown)),
    ?assertNot(is_answered(n, Shown)),
    ?assertMatch([{n, {ok, 1}} | _], ?N:replies(?N:deliver(b@x, a@x, ?N:deliver(a@x, b@x, Shown)))).

%% So who is answered knows what the other one did before it heard.
what_a_node_did_itself_goes_before_its_answer_test() ->
    Both = registers(a@x, n, registers(b@x, m, pair())),
    Sent = ?N:fire(a@x, ?N:fire(a@x, Both)),
    Heard = ?N:deliver(a@x, b@x, ?N:deliver(a@x, b@x, Sent)),
    First = ?N:deliver(b@x, a@x, Heard),
    ?assertMatch(#{m := _}, ?N:views(a@x, First)),
    ?assertNot(is_answered(n, First)),
    ?assert(is_answered(n, ?N:deliver(b@x, a@x, ?N:deliver(b@x, a@x, First)))).

%% One question for all of them.
those_who_wait_share_a_question_test() ->
    Net = lists:foldl(fun(Name, N) -> registers(a@x, Name, N) end, pair(), lists:seq(1, 100)),
    Sent = ?N:fire(a@x, ?N:fire(a@x, Net)),
    ?assertEqual(2, ?N:waiting(a@x, b@x, Sent)),
    Done = ?N:deliver(b@x, a@x, ?N:deliver(a@x, b@x, ?N:deliver(a@x, b@x, Sent))),
    ?assertEqual(100, length(?N:replies(Done))).

%% What the version before says at the beginning of a session.
a_node_of_the_version_before_is_not_waited_for_test() ->
    {New, _} = ?CORE:init(a@x, ?OPTIONS#{incarnation => 1}),
    Handle = fun(Event, State0) -> {State, _} = ?CORE:handle(Event, 0, State0), State end,
    Begun = lists:foldl(Handle, New, [{neighbour_up, b@x}, {message, b@x, {1, all}}]),
    Register = fun(Name) -> {command, Name, {register, Name, ?N:pid(a@x, 1), meta, 1}} end,
    {Waits, Effects} = ?CORE:handle(Register(n), 0, Begun),
    ?assertEqual([], [Ref || {reply, Ref, _} <- Effects]),
    Asked = Handle({timer, rows_flush}, Waits),
    {Known, Answer} = ?CORE:handle({message, b@x, {1, complete, 0}}, 0, Asked),
    ?assertMatch([{reply, n, {ok, 1}}], Answer),
    {_, AtOnce} = ?CORE:handle(Register(m), 0, Known),
    ?assertMatch([{ok, 2}], [Reply || {reply, m, Reply} <- AtOnce]).

%% Four seconds the first time, nothing after that, and again when it goes on.
a_silent_node_is_waited_for_once_test() ->
    Sent = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, n, pair()))),
    ?assertNot(is_answered(n, seconds(3, a@x, Sent))),
    Late = seconds(4, a@x, Sent),
    ?assertMatch([{n, {ok, 1}}], ?N:replies(Late)),
    Next = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, m, Late))),
    ?assertMatch([{m, {ok, 2}} | _], ?N:replies(Next)),
    Woken = ?N:settle(Next),
    Waits = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, o, Woken))),
    ?assertNot(is_answered(o, Waits)),
    ?assert(is_answered(o, ?N:settle(Waits))).

%% The question was lost with the session; the new one shows that the node is there.
a_silent_node_with_a_new_session_is_waited_for_test() ->
    Sent = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, n, pair()))),
    Late = seconds(4, a@x, Sent),
    ?assert(is_answered(n, Late)),
    Again = ?N:settle(?N:cut(a@x, b@x, broken, Late)),
    Waits = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, m, Again))),
    ?assertNot(is_answered(m, Waits)),
    ?assert(is_answered(m, ?N:settle(Waits))).

%% Of a thousand flushes that nobody has answered yet, and all are answered in the end.
rounds_are_bounded_test() ->
    One = fun(Seq, H0) ->
                  {_, H1} = weft_heard_core:wait(Seq, register, Seq, ok, H0),
                  {[b@x], [], H2} = weft_heard_core:begun(Seq, [b@x], H1),
                  H2
          end,
    Heard = lists:foldl(One, weft_heard_core:new(), lists:seq(1, 1000)),
    {First, Rest} = weft_heard_core:heard(b@x, 49, Heard),
    ?assertEqual([{reply, Seq, ok} || Seq <- lists:seq(1, 49)], First),
    {[], _} = weft_heard_core:heard(b@x, 999, Rest),
    {Others, Done} = weft_heard_core:heard(b@x, 1000, Rest),
    ?assertEqual([{reply, Seq, ok} || Seq <- lists:seq(50, 1000)], Others),
    ?assertNot(weft_heard_core:is_waiting(Done)).

%% Nobody waits, so there is nothing to do each second.
no_timer_is_left_when_nobody_waits_test() ->
    Net = ?N:settle(registers(a@x, n, pair())),
    ?assertEqual(Net, ?N:fire(a@x, Net)).

a_node_that_is_lost_is_not_waited_for_test() ->
    Sent = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, n, pair()))),
    [?assert(is_answered(n, ?N:cut(a@x, b@x, Reason, Sent))) || Reason <- [noconnection, killed]],
    %% The nodes are still connected.
    Broken = ?N:cut(a@x, b@x, broken, Sent),
    ?assertNot(is_answered(n, Broken)),
    Again = ?N:heal(a@x, b@x, Broken),
    Told = lists:foldl(fun(_, N) -> ?N:deliver(a@x, b@x, N) end, Again,
                       lists:seq(1, ?N:waiting(a@x, b@x, Again))),
    ?assertMatch(#{n := _}, ?N:views(b@x, Told)),
    Heard = lists:foldl(fun(_, N) -> ?N:deliver(b@x, a@x, N) end, Told,
                        lists:seq(1, ?N:waiting(b@x, a@x, Told))),
    ?assert(is_answered(n, Heard)).

who_comes_meanwhile_is_not_waited_for_but_told_test() ->
    Two = ?N:heal(a@x, b@x, ?N:new(?CORE, ?NODES, ?OPTIONS)),
    Ready = lists:foldl(fun(_, N) -> ?N:deliver(a@x, b@x, ?N:deliver(b@x, a@x, N)) end, Two,
                        lists:seq(1, 5)),
    Sent = ?N:fire(a@x, ?N:fire(a@x, registers(a@x, n, Ready))),
    Joined = ?N:heal(a@x, c@x, Sent),
    Heard = lists:foldl(fun(_, N) -> ?N:deliver(b@x, a@x, ?N:deliver(a@x, b@x, N)) end, Joined,
                        lists:seq(1, 5)),
    ?assert(is_answered(n, Heard)),
    ?assertMatch(#{n := _}, ?N:views(c@x, ?N:settle(Heard))).

%% The third claim comes when the first two are settled and not yet gone: nobody is asked then, too.
the_function_is_not_asked_about_those_at_once_test() ->
    Ask = fun(_, _, _) -> error(asked), none end,
    Net0 = ?N:settle(?N:new(?CORE, ?NODES, ?OPTIONS#{conflict => Ask})),
    Net1 = lists:foldl(fun({Node, Us}, N) ->
                               ?N:command(Node, Node, {register, n, ?N:pid(Node, 1), m, Us}, N)
                       end, Net0, [{a@x, 1}, {b@x, 2}, {c@x, 3}]),
    Net = ?N:settle_but(rows_tick, Net1),
    ?assertMatch([{a@x, {ok, _}}, {b@x, {error, {taken, _}}}, {c@x, {error, {taken, _}}}],
                 lists:sort(?N:replies(Net))),
    ?assertEqual(3, length(?N:alive(Net))).

%% In two halves, both were answered before they met.
the_function_is_asked_after_a_split_test() ->
    Apart = ?N:new(?CORE, [a@x, b@x], ?OPTIONS#{conflict => fun later/3}),
    Both = registers(b@x, n, registers(a@x, n, Apart)),
    ?assertMatch([{n, {ok, _}}, {n, {ok, _}}], ?N:replies(Both)),
    Net = ?N:settle(Both),
    ?assertMatch(#{n := {Pid, _, _, _}} when node(Pid) =:= b@x, ?N:views(a@x, Net)),
    ?assertEqual(1, length(?N:alive(Net))).

%% It had the name long ago, in another part of the cluster, and is waited for by now.
the_function_is_asked_about_who_comes_meanwhile_test() ->
    Apart = ?N:new(?CORE, ?NODES, ?OPTIONS#{conflict => fun later/3}),
    Two = ?N:heal(a@x, c@x, Apart),
    Ready = lists:foldl(fun(_, N) -> ?N:deliver(a@x, c@x, ?N:deliver(c@x, a@x, N)) end, Two,
                        lists:seq(1, 5)),
    Late = ?N:command(b@x, b, {register, n, ?N:pid(b@x, 1), meta, 9}, Ready),
    Pending = ?N:heal(a@x, b@x, registers(a@x, n, Late)),
    Net = ?N:settle(?N:fire(a@x, ?N:fire(a@x, Pending))),
    ?assertMatch(#{n := {Pid, _, _, _}} when node(Pid) =:= b@x, ?N:views(a@x, Net)),
    ?assertMatch({n, {error, {taken, _}}}, lists:keyfind(n, 1, ?N:replies(Net))).

later(_Via, {Pid1, _, _}, _) when node(Pid1) =:= b@x -> Pid1;
later(_Via, _, {Pid2, _, _}) -> Pid2.

%% A name may be seen before all pieces of a large change have arrived; who waits for the last one
%% of them does not go on with the first.
a_change_in_pieces_has_arrived_with_the_last_test() ->
    Net0 = ?N:settle(?N:new(?CORE, [a@x, b@x], #{scope => s})),
    Net1 = lists:foldl(fun(N, Net) ->
                               ?N:command(b@x, {register, N, ?N:pid(b@x, N), m, N}, Net)
                       end, Net0, lists:seq(1, 300)),
    Sent = ?N:command(a@x, await, {await, b@x, 300}, ?N:fire(b@x, Net1)),
    ?assertEqual(2, ?N:waiting(b@x, a@x, Sent)),
    First = ?N:deliver(b@x, a@x, Sent),
    ?assertNot(is_answered(await, First)),
    ?assert(is_answered(await, ?N:deliver(b@x, a@x, First))).
