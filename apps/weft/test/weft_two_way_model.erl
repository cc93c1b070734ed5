%% SPDX-License-Identifier: Apache-2.0
%% @doc Two ends that both send large payloads all the time, in virtual time: a link for each
%% direction, of one rate, with an endless queue before it, and a delay. An acknowledgement waits in
%% the queue behind payloads that go its way. The clocks of the ends differ.
-module(weft_two_way_model).

-export([run/1]).

-define(PAYLOAD_BYTES, 131072).
-define(ACK_BYTES, 80).
-define(LATE_MAX_US, 1000).

-record(end_point, {out :: weft_outbound_core:state(),
                    timed = false :: boolean(),
                    ahead_us :: integer(),
                    free_us = 0.0 :: number(),
                    last = 0 :: non_neg_integer(),
                    sent = [] :: [{AtUs :: number(), Bytes :: pos_integer()}]}).

%% @doc What both carried from FromUs to UntilUs, as parts of the rate. Bytes per microsecond, the
%% delay of one direction, and when each begins. Peers that are not timed are of a version that says
%% nothing but what it received.
-spec run(#{rate := float(), delay_us := pos_integer(), begin_us := {number(), number()},
            from_us := pos_integer(), until_us := pos_integer(), timed => boolean(),
            seed => integer()}) -> {float(), float()}.
run(#{rate := Rate, begin_us := {A, B}, from_us := FromUs, until_us := UntilUs} = Options) ->
    _ = rand:seed(exsss, maps:get(seed, Options, 1)),
    Ends = #{a => end_point(987654321000), b => end_point(-555555)},
    Events = gb_sets:from_list([{A, 1, {send, a}}, {B, 2, {send, b}}]),
    #{a := OfA, b := OfB} = go(Events, 3, Ends, Options),
    Carried = fun(#end_point{sent = Sent}) ->
                  lists:sum([Bytes || {AtUs, Bytes} <- Sent, AtUs >= FromUs, AtUs < UntilUs])
                      / (Rate * (UntilUs - FromUs))
              end,
    {Carried(OfA), Carried(OfB)}.

end_point(AheadUs) ->
    #end_point{out = weft_outbound_core:new(262144, 67108864), ahead_us = AheadUs}.

go(Events0, Count, Ends0, #{until_us := UntilUs} = Options) ->
    case gb_sets:take_smallest(Events0) of
        {{NowUs, _, _}, _} when NowUs > UntilUs ->
            Ends0;
        {{NowUs, _, Event}, Events1} ->
            {Ends, New} = event(Event, NowUs, Ends0, Options),
            Numbered = lists:enumerate(Count, New),
            Events = lists:foldl(fun({N, {AtUs, E}}, Acc) -> gb_sets:add({AtUs, N, E}, Acc) end,
                                 Events1, Numbered),
            go(Events, Count + length(New), Ends, Options)
    end.

event({send, Of}, NowUs, Ends, Options) ->
    send(Of, NowUs, Ends, [], Options);
event({payload, Of, Sequence}, NowUs, Ends, Options) ->
    acknowledge(other(Of), Sequence, NowUs + late_us(), Ends, Options);
event({times, Of}, _NowUs, Ends, Options) ->
    #{Of := End} = Ends,
    {Ends#{Of := End#end_point{timed = maps:get(timed, Options, true)}}, []};
event({ack, Of, Sequence, PeerUs}, NowUs, Ends, Options) ->
    #{Of := #end_point{out = Out0, last = Last} = End} = Ends,
    {Next, Out} = weft_outbound_core:acked(Sequence, PeerUs, trunc(NowUs), Out0),
    Asked = case Next of
                ask -> [{behind(NowUs, End, Options), {payload, Of, Last}}];
                times -> [{behind(NowUs, End, Options), {times, other(Of)}}];
                ok -> []
            end,
    send(Of, NowUs, Ends#{Of := End#end_point{out = Out}}, Asked, Options).

other(a) -> b;
other(b) -> a.

%% One in twenty takes as long as ten others: machines are busy.
late_us() ->
    rand:uniform(?LATE_MAX_US) * case rand:uniform(20) of 1 -> 10; _ -> 1 end.

behind(NowUs, #end_point{free_us = FreeUs}, #{delay_us := DelayUs}) ->
    max(NowUs, FreeUs) + DelayUs.

acknowledge(By, Sequence, NowUs, Ends, #{rate := Rate, delay_us := DelayUs}) ->
    #{By := #end_point{free_us = FreeUs, timed = IsTimed, ahead_us = AheadUs} = End} = Ends,
    OutUs = max(NowUs, FreeUs) + ?ACK_BYTES / Rate,
    PeerUs = case IsTimed of
                 true -> trunc(NowUs) + AheadUs;
                 false -> undefined
             end,
    {Ends#{By := End#end_point{free_us = OutUs}},
     [{OutUs + DelayUs, {ack, other(By), Sequence, PeerUs}}]}.

send(Of, NowUs, Ends, Events, #{rate := Rate, delay_us := DelayUs} = Options) ->
    #{Of := #end_point{out = Out0, free_us = FreeUs, sent = Sent} = End} = Ends,
    case weft_outbound_core:room(Out0) of
        true ->
            {{Sequence, Kind, _, _}, Out} =
                weft_outbound_core:push(frames, <<>>, ?PAYLOAD_BYTES, trunc(NowUs), Out0),
            OutUs = max(NowUs, FreeUs) + ?PAYLOAD_BYTES / Rate,
            Arrives = [{OutUs + DelayUs, {payload, Of, Sequence}} || Kind =:= frames_ack],
            send(Of, NowUs,
                 Ends#{Of := End#end_point{out = Out, free_us = OutUs, last = Sequence,
                                           sent = [{OutUs, ?PAYLOAD_BYTES} | Sent]}},
                 Arrives ++ Events, Options);
        false ->
            {Ends, Events}
    end.
