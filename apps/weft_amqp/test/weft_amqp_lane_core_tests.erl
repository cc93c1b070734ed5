%% SPDX-License-Identifier: Apache-2.0
%% @doc Two ends of a lane with a broker between them that repeats, loses and invents messages.
-module(weft_amqp_lane_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ID, <<7:128>>).
-define(PART, 1000).

all_arrives_in_order_and_whole_test_() ->
    {timeout, 120, fun() -> run(prop_all_arrives()) end}.

a_bad_broker_can_only_end_the_lane_test_() ->
    {timeout, 120, fun() -> run(prop_bad_broker()) end}.

run(Property) ->
    ?assert(proper:quickcheck(Property, [{numtests, 300}, {to_file, user}])).

prop_all_arrives() ->
    ?FORALL(Packets, list(packet()),
            begin
                {Out, In} = ends(),
                {Messages, _} = sent(Packets, Out),
                {Events, _} = received(Messages, In),
                [{packet, P, cost(P)} || P <- Packets] =:= Events
            end).

%% Whatever is delivered is a beginning of what was sent, nothing follows a loss, and all is
%% delivered if nothing was lost.
prop_bad_broker() ->
    ?FORALL({Packets, Faults}, {non_empty(list(packet())), list(fault())},
            begin
                {Out, In} = ends(),
                {Messages, _} = sent(Packets, Out),
                Faulty = faulty(Messages, Faults),
                {Events, _} = received(Faulty, In),
                Delivered = [P || {packet, P, _} <- until_broken(Events)],
                IsLossless = not lists:any(fun(F) -> F =:= drop orelse F =:= change end,
                                           lists:sublist(Faults, length(Messages))),
                lists:prefix(Delivered, Packets)
                    andalso (not IsLossless orelse Delivered =:= Packets)
            end).

packet() -> ?LET(Size, frequency([{5, range(0, 50)}, {1, range(?PART - 1, 3 * ?PART + 1)}]),
                 binary(Size)).

fault() -> frequency([{6, none}, {1, drop}, {1, repeat}, {1, change}, {1, invent}]).

faulty([Message | Messages], [Fault | Faults]) ->
    fault(Fault, Message) ++ faulty(Messages, Faults);
faulty(Messages, _) ->
    Messages.

fault(none, Message) -> [Message];
fault(drop, _) -> [];
fault(repeat, Message) -> [Message, Message];
fault(change, Message) -> [flipped(Message)];
fault(invent, Message) -> [<<1, 2, ?ID/binary, 1:64, 1, 0:128, "made up">>, flipped(Message),
                           Message].

flipped(Message) ->
    Size = byte_size(Message) - 1,
    <<Before:Size/binary, Last>> = Message,
    <<Before/binary, (Last bxor 1)>>.

until_broken(Events) ->
    lists:takewhile(fun({broken, _}) -> false; (_) -> true end, Events).

forged_messages_are_told_and_change_nothing_test() ->
    {Out, In} = ends(),
    {[Message], _} = sent([<<"a">>], Out),
    {[forged], In} = received([flipped(Message)], In),
    ?assertMatch({[{packet, <<"a">>, _}], _}, received([Message], In)).

a_message_of_the_other_direction_is_forged_test() ->
    {Out, _} = ends(),
    {[Message], _} = sent([<<"a">>], Out),
    ?assertMatch({[forged], _}, received([Message], Out)).

another_secret_opens_nothing_test() ->
    {Out, _} = ends(),
    {[Message], _} = sent([<<"a">>], Out),
    {[], Other} = weft_amqp_lane_core:secure(listener, <<"other">>, new()),
    ?assertMatch({[forged], _}, received([Message], Other)).

what_comes_before_the_secret_is_kept_test() ->
    {Out, _} = ends(),
    {Messages, _} = sent([<<"a">>, <<"b">>], Out),
    {[], Early} = received(Messages, new()),
    ?assertMatch({[{packet, <<"a">>, _}, {packet, <<"b">>, _}], _},
                 weft_amqp_lane_core:secure(listener, <<"secret">>, Early)).

not_more_than_two_windows_are_kept_test() ->
    Flood = <<1, 2, ?ID/binary, 1:64, 1, 0:128, 0:8000000>>,
    Full = lists:foldl(fun(_, Core) -> {[], C} = received([Flood], Core), C end, new(),
                       lists:seq(1, 20)),
    ?assert(erts_debug:flat_size(Full) < 1000),
    {Events, _} = weft_amqp_lane_core:secure(listener, <<"secret">>, Full),
    ?assert(length(Events) * 1000000 =< 2 * weft_amqp_lane_core:window()).

handshake_bytes_are_numbered_and_end_with_the_secret_test() ->
    {[One], Dialer} = weft_amqp_lane_core:send(<<"hello">>, new()),
    {[Two], _} = weft_amqp_lane_core:send(<<"proof">>, Dialer),
    {Events, Listener} = received([One, One, Two], new()),
    ?assertEqual([{bytes, <<"hello">>}, {bytes, <<"proof">>}], Events),
    {[Three], _} = weft_amqp_lane_core:hang_up(Listener),
    ?assertMatch({[closed], _}, received([Three], new())),
    {[], Secure} = weft_amqp_lane_core:secure(listener, <<"secret">>, new()),
    ?assertMatch({[], _}, received([One], Secure)).

too_much_before_the_secret_is_ignored_test() ->
    {[Large], _} = weft_amqp_lane_core:send(binary:copy(<<0>>, 5000), new()),
    ?assertMatch({[], _}, received([Large], new())).

packets_over_the_limit_break_the_lane_test() ->
    {Out, In} = ends(),
    {Messages, _} = sent([binary:copy(<<0>>, 5 * ?PART)], Out),
    ?assertMatch({[{broken, emsgsize} | _], _},
                 received(Messages, weft_amqp_lane_core:limit_packets(4 * ?PART, In))).

credit_is_given_for_what_was_taken_test() ->
    {_, In} = ends(),
    Share = weft_amqp_lane_core:window() div 8,
    {[], Some} = weft_amqp_lane_core:taken(Share - 1, In),
    {[Credit], None} = weft_amqp_lane_core:taken(1, Some),
    {[], _} = weft_amqp_lane_core:taken(1, None),
    {Out, _} = ends(),
    ?assertMatch({[{credit, Share}], _}, received([Credit], Out)).

closing_is_the_last_message_test() ->
    {Out, In} = ends(),
    {[Close], Later} = weft_amqp_lane_core:hang_up(Out),
    ?assertMatch({[closed], _}, received([Close], In)),
    %% What would follow has a number of its own.
    {[Packet], _} = weft_amqp_lane_core:send(<<"late">>, Later),
    ?assertEqual([1, 2], [Number || Message <- [Close, Packet],
                                    {lane, _, {sealed, Number, _, _}} <-
                                        [weft_amqp_message:decode(iolist_to_binary(Message))]]).

the_cost_is_the_same_at_both_ends_test() ->
    [?assertMatch({Size, {[{packet, _, Cost}], _}, Cost}, {Size, Received, cost(Packet)})
     || Size <- [0, 1, ?PART - 1, ?PART, ?PART + 1, 10 * ?PART],
        Packet <- [binary:copy(<<0>>, Size)],
        Received <- [begin
                         {Out, In} = ends(),
                         {Messages, _} = sent([Packet], Out),
                         received(Messages, In)
                     end]].

cost(Packet) -> weft_amqp_lane_core:cost(byte_size(Packet), ?PART).

new() -> weft_amqp_lane_core:new(?ID, ?PART).

ends() ->
    {[], Dialer} = weft_amqp_lane_core:secure(dialer, <<"secret">>, new()),
    {[], Listener} = weft_amqp_lane_core:secure(listener, <<"secret">>, new()),
    {Dialer, Listener}.

sent(Packets, Core0) ->
    {Messages, Core} = lists:mapfoldl(fun weft_amqp_lane_core:send/2, Core0, Packets),
    {[iolist_to_binary(Message) || Message <- lists:append(Messages)], Core}.

received(Messages, Core0) ->
    lists:foldl(fun(Message, {Events, Core1}) ->
                        {lane, ?ID, Frame} =
                            weft_amqp_message:decode(iolist_to_binary(Message)),
                        {More, Core2} = weft_amqp_lane_core:received(Frame, Core1),
                        {Events ++ More, Core2}
                end, {[], Core0}, Messages).
