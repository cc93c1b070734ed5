%% SPDX-License-Identifier: Apache-2.0
%% @doc Causal order against its definition: participants send, the network delivers in any order,
%% and nobody is given a message before one that precedes it.
-module(weft_causal_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, weft_causal_core).
-define(PEOPLE, 4).

%% A message knows which messages its sender had sent or been given before: the definition itself.
%% Nobody waits for those that are given up.
-record(model, {states, past = #{}, net = [], given = #{}, next = 1, sent = 0, given_up = []}).

properties_test_() ->
    [{Name, {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 500}, quiet]))}}
     || {Name, Property} <- [{"causes first, all of them", prop_causal()},
                             {"all given out when somebody dies", prop_down()},
                             {"given up or not, each counts once", prop_given_up()},
                             {"bounded", prop_bounded()}]].

step() ->
    frequency([{3, {send, range(1, ?PEOPLE), range(1, ?PEOPLE)}}, {3, {arrive, range(0, 1000)}}]).

steps() -> ?SIZED(Size, resize(5 * Size, list(step()))).

model(BytesMax) ->
    #model{states = maps:from_list([{P, ?C:new(P, BytesMax, 1000)}
                                    || P <- lists:seq(1, ?PEOPLE)])}.

prop_causal() ->
    ?FORALL(Steps, steps(),
            begin
                #model{given = Given, sent = Sent, states = States} =
                    settle(lists:foldl(fun step/2, model(1 bsl 40), Steps)),
                lists:sum([length(G) || G <- maps:values(Given)]) =:= Sent
                    andalso lists:all(fun(S) -> ?C:waiting(S) =:= 0 end, maps:values(States))
            end).

%% All messages of one participant are lost with it; what waits for them must not wait for ever.
prop_down() ->
    ?FORALL({Steps, Dead, How}, {steps(), range(1, ?PEOPLE), oneof([gone, lost])},
            begin
                #model{net = Net} = Model0 = lists:foldl(fun step/2, model(1 bsl 40), Steps),
                Left = [M || {From, _, _, _} = M <- Net, From =/= Dead],
                Model = lists:foldl(fun(P, M) -> down(P, Dead, How, M) end,
                                    Model0#model{net = Left, past = any},
                                    lists:seq(1, ?PEOPLE) -- [Dead]),
                #model{states = States} = settle(Model),
                lists:all(fun({P, S}) -> P =:= Dead orelse ?C:waiting(S) =:= 0 end,
                          maps:to_list(States))
            end).

down(P, Dead, How, #model{states = States} = Model) ->
    {Out, State} = ?C:down(Dead, How, maps:get(P, States)),
    give(P, Out, Model#model{states = States#{P := State}}).

%% Some messages are lost while all go on. Their senders give up these, and with them others, which
%% have arrived or still do.
prop_given_up() ->
    ?FORALL({Steps, Last, Lost, Runs, Order},
            {steps(), resize(20, list({send, range(1, 2), range(1, 2)})), list(is_lost()),
             resize(3, list(run())), range(1, 1000)},
            begin
                Model0 = lists:foldl(fun step/2, model(1 bsl 40), Steps ++ Last),
                #model{net = Net, sent = Sent} = Model0,
                Gone = [M || {true, M} <- lists:zip(first(length(Net), Lost), Net)],
                Told = [{From, To, N, N} || {From, To, {_, N, _}, _} <- Gone]
                    ++ [{From, To, First, min(End, Had)}
                        || {From, To, First, End} <- Runs, Had <- [had(From, To, Model0)],
                           First =< Had],
                #model{given = Given, states = States} =
                    settle(Model0#model{net = mixed(Order, (Net -- Gone) ++ Told),
                                        given_up = Told}),
                lists:sum([length(G) || G <- maps:values(Given)]) =:= Sent - length(Gone)
                    andalso lists:all(fun(S) -> ?C:waiting(S) =:= 0 end, maps:values(States))
            end).

is_lost() -> frequency([{4, false}, {1, true}]).

%% Few, and of one pair: if all are given up none has to wait. Of that pair many are on their way.
run() ->
    ?LET({First, More}, {range(1, 5), range(0, 2)}, {1, 2, First, First + More}).

had(From, To, #model{states = States}) -> ?C:sent(To, maps:get(From, States)).

first(Count, List) -> lists:sublist(List ++ lists:duplicate(Count, false), Count).

mixed(Order, Packets) ->
    [Packet || {_, Packet} <- lists:sort([{erlang:phash2({Order, P}), P} || P <- Packets])].

%% With room for two messages the order is given up rather than the bound, and that is told.
prop_bounded() ->
    ?FORALL(Steps, steps(),
            begin
                Model0 = lists:foldl(fun step/2, (model(500))#model{past = any}, Steps),
                #model{given = Given, sent = Sent, states = States} = settle(Model0),
                lists:sum([length(G) || G <- maps:values(Given)]) =:= Sent
                    andalso lists:all(fun(S) -> ?C:waiting(S) =< 2 end, maps:values(States))
            end).

step({send, Same, Same}, Model) ->
    Model;
step({send, From, To}, #model{states = States, net = Net, next = Id, past = Past,
                              sent = Sent} = Model) ->
    {ok, Stamp, State} = ?C:stamp(To, maps:get(From, States)),
    Before = case Past of
                 any -> [];
                 #{} -> maps:get(From, Past, [])
             end,
    Model#model{states = States#{From := State}, next = Id + 1, sent = Sent + 1,
                past = case Past of
                           any -> any;
                           _ -> Past#{From => [{Id, From, number(Stamp), To} | Before]}
                       end,
                net = [{From, To, Stamp, {Id, From, number(Stamp), Before}} | Net]};
step({arrive, _}, #model{net = []} = Model) ->
    Model;
step({arrive, Which}, #model{net = Net, states = States} = Model) ->
    Packet = lists:nth(1 + Which rem length(Net), Net),
    To = element(2, Packet),
    {Out, State} = came(Packet, maps:get(To, States)),
    give(To, Out, Model#model{net = lists:delete(Packet, Net), states = States#{To := State}}).

came({From, _To, First, Last}, State) when is_integer(First) ->
    ?C:given_up(From, First, Last, State);
came({_From, _To, Stamp, Message}, State) ->
    ?C:arrived(Stamp, Message, 10, State).

number({_From, Number, _Before}) -> Number.

give(_To, [], Model) ->
    Model;
give(To, [{How, {Id, From, Number, Before}} | Rest], #model{given = Given, past = Past} = Model) ->
    Had = maps:get(To, Given, []),
    Past =:= any orelse begin
                            true = How =:= causal,
                            true = [I || {I, _, _, To0} = M <- Before, To0 =:= To,
                                         not is_given_up(M, Model)] -- Had =:= []
                        end,
    NewPast = case Past of
                  any -> any;
                  _ -> Past#{To => lists:usort([{Id, From, Number, To} | Before]
                                               ++ maps:get(To, Past, []))}
              end,
    give(To, Rest, Model#model{given = Given#{To => [Id | Had]}, past = NewPast}).

is_given_up({_Id, From, Number, To}, #model{given_up = GivenUp}) ->
    lists:any(fun({F, T, First, Last}) ->
                      F =:= From andalso T =:= To andalso First =< Number andalso Number =< Last
              end, GivenUp).

settle(#model{net = []} = Model) -> Model;
settle(Model) -> settle(step({arrive, 17}, Model)).

%% After a lost connection the next message says what came before it: it is waited for no more.
a_participant_that_comes_back_is_in_order_again_test() ->
    A0 = ?C:new(1, 10000, 100),
    {ok, _Lost, A1} = ?C:stamp(2, A0),
    {ok, Second, A2} = ?C:stamp(2, A1),
    {ok, Third, _} = ?C:stamp(2, A2),
    {[], B1} = ?C:arrived(Second, second, 0, ?C:new(2, 10000, 100)),
    {[{causal, second}], B2} = ?C:down(1, lost, B1),
    {[{causal, third}], B3} = ?C:arrived(Third, third, 0, B2),
    ?assertEqual(0, ?C:waiting(B3)).

%% The first one ended, when nobody had used the label for long, and 3 came in its place.
what_was_sent_to_an_earlier_participant_counts_for_no_later_message_test_() ->
    [?_test(sent_to_an_earlier_participant(P)) || P <- [?C:new(3, 10000, 100), lost(1)]].

sent_to_an_earlier_participant(P0) ->
    {ok, _, A1} = ?C:stamp(2, ?C:new(1, 10000, 100)),
    {ok, Late, A2} = ?C:stamp(2, A1),
    {[{causal, late}], P1} = ?C:arrived(Late, late, 0, P0),
    {ok, Question, A3} = ?C:stamp(3, A2),
    {ok, Second, A4} = ?C:stamp(3, A3),
    {ok, Third, A5} = ?C:stamp(3, A4),
    {ok, News, _} = ?C:stamp(4, A5),
    {[{causal, question}], P2} = ?C:arrived(Question, question, 0, P1),
    {[{causal, news}], B1} = ?C:arrived(News, news, 0, ?C:new(4, 10000, 100)),
    {ok, Answer, _} = ?C:stamp(3, B1),
    {[], P3} = ?C:arrived(Answer, answer, 0, P2),
    {[{causal, second}], P4} = ?C:arrived(Second, second, 0, P3),
    ?assertMatch({[{causal, third}, {causal, answer}], _}, ?C:arrived(Third, third, 0, P4)).

lost(Who) ->
    {[], State} = ?C:down(Who, lost, ?C:new(3, 10000, 100)),
    State.

%% Its sender does not know what has become of it.
what_was_given_up_and_arrives_counts_once_test_() ->
    {First, Second, Third} = three(),
    New = ?C:new(2, 10000, 100),
    Both = [fun(State) -> ?C:given_up(1, 1, 1, State) end,
            fun(State) -> ?C:arrived(First, first, 0, State) end],
    [?_test(begin
                {Out, State} = lists:foldl(fun once_more/2, {[], New}, Order),
                ?assertEqual([{causal, first}], Out),
                {[], Waits} = ?C:arrived(Third, third, 0, State),
                ?assertMatch({[{causal, second}, {causal, third}], _},
                             ?C:arrived(Second, second, 0, Waits))
            end) || Order <- [Both, lists:reverse(Both)]].

once_more(Step, {Out0, State0}) ->
    {Out, State} = Step(State0),
    {Out0 ++ Out, State}.

%% What is lost comes after what is still on its way.
what_is_given_up_has_its_turn_test() ->
    {First, _, Third} = three(),
    {[], B1} = ?C:arrived(Third, third, 0, ?C:new(2, 10000, 100)),
    {[], B2} = ?C:given_up(1, 2, 2, B1),
    {Out, B3} = ?C:arrived(First, first, 0, B2),
    ?assertEqual([{causal, first}, {causal, third}], Out),
    ?assertEqual(0, ?C:waiting(B3)).

%% 1 was lost with the connection. What was sent later is in order, whichever arrives first.
what_was_lost_with_a_connection_is_not_waited_for_test() ->
    {_, Second, Third} = three(),
    {[], B1} = ?C:down(1, lost, ?C:new(2, 10000, 100)),
    {[], B2} = ?C:given_up(1, 1, 1, B1),
    {[], B3} = ?C:arrived(Third, third, 0, B2),
    ?assertMatch({[{causal, second}, {causal, third}], _}, ?C:arrived(Second, second, 0, B3)).

%% There is room for one that waits. 3 is forced, and 4 waits for 1 and 2 all the same.
what_is_forced_counts_in_its_turn_test() ->
    {First, Second, Third, Fourth} = four(),
    {[], B1} = ?C:arrived(Third, third, 300, ?C:new(2, 900, 100)),
    {[{forced, third}], B2} = ?C:arrived(Fourth, fourth, 300, B1),
    {[{causal, first}], B3} = ?C:arrived(First, first, 0, B2),
    ?assertMatch({[{causal, second}, {causal, fourth}], _}, ?C:arrived(Second, second, 0, B3)).

%% They have one entry, and count together.
all_that_are_forced_count_in_their_turn_test() ->
    {First, Second, Third, Fourth} = four(),
    {[], B1} = ?C:arrived(Second, second, 300, ?C:new(2, 800, 100)),
    {[{forced, second}], B2} = ?C:arrived(Third, third, 300, B1),
    {[{forced, third}], B3} = ?C:arrived(Fourth, fourth, 300, B2),
    ?assertEqual(2, ?C:waiting(B3)),
    {Out, B4} = ?C:arrived(First, first, 0, B3),
    ?assertEqual({[{causal, first}, {causal, fourth}], 0}, {Out, ?C:waiting(B4)}).

three() ->
    {First, Second, Third, _} = four(),
    {First, Second, Third}.

%% What 1 sends to 2.
four() ->
    {Stamps, _} = lists:mapfoldl(fun(_, A) ->
                                         {ok, Stamp, Next} = ?C:stamp(2, A),
                                         {Stamp, Next}
                                 end, ?C:new(1, 10000, 100), [1, 2, 3, 4]),
    list_to_tuple(Stamps).

what_is_no_stamp_is_malformed_test_() ->
    State = ?C:new(1, 1000, 2),
    [?_assertEqual({error, malformed}, ?C:arrived(Stamp, m, 0, State))
     || Stamp <- [x, {2, 0, #{}}, {2, 1, []}, {2, 1, #{{1, 2} => x}}, {2, 1, #{x => 1}},
                  {"a", 1, #{}}]]
        ++ [?_assertEqual({error, malformed}, ?C:given_up(From, First, Last, State))
            || {From, First, Last} <- [{"a", 1, 1}, {2, 0, 1}, {2, 2, 1}, {2, x, 1}]]
        ++ [?_assertEqual({error, too_many_participants},
                          ?C:arrived({2, 1, #{{1, 2} => 1, {2, 1} => 1, {3, 1} => 1}}, m, 0,
                                     State))].

the_past_names_whom_to_watch_test() ->
    ?assertEqual([2, 3], ?C:depends_on({2, 5, #{{3, 1} => 2, {4, 2} => 1, {2, 1} => 4}}, 1)).
