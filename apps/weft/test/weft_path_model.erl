%% SPDX-License-Identifier: Apache-2.0
%% @doc A path with a bottleneck, in virtual time: a sender with fair queue and window, a link of
%% one rate with an endless queue before it, a delay, and a receiver that acknowledges when asked.
%%
%% Some senders of large messages always have something to send. A small message comes now and then.
%% Tells what the path carried and how long small messages took. Frames are said to have their size,
%% to be quick.
-module(weft_path_model).

-export([run/1]).

-define(MESSAGE_BYTES, 65540).
-define(BULK, 1).
-define(SMALL, 1000).
-define(AHEAD_US, 1000000000).

-record(path, {rate :: float(),
               delay_us :: pos_integer(),
               now_us = 0 :: number(),
               free_us = 0 :: number(),
               fair = weft_fair_queue_core:new(64 * 1048576),
               out :: weft_outbound_core:state(),
               acks = queue:new(),
               is_timed = false :: boolean(),
               next_small_us :: number(),
               sent_us :: number() | undefined,
               last = 0 :: non_neg_integer(),
               carried = 0 :: non_neg_integer(),
               small_us = [] :: [number()],
               windows = [] :: [pos_integer()]}).

%% @doc Rate in bytes per microsecond, delay of one direction. Changes are {AtUs, Rate, DelayUs}.
-spec run(#{rate := float(), delay_us := pos_integer(), until_us := pos_integer(),
            window => {pos_integer(), pos_integer()}, changes => list()}) ->
          #{carried | small_us | windows => term()}.
run(#{rate := Rate, delay_us := DelayUs, until_us := UntilUs} = Options) ->
    {Min, Max} = maps:get(window, Options, {262144, 67108864}),
    Path = #path{rate = Rate, delay_us = DelayUs, out = weft_outbound_core:new(Min, Max),
                 next_small_us = 10 * DelayUs},
    #path{carried = Carried, small_us = Small, windows = Windows} =
        go(UntilUs, maps:get(changes, Options, []), Path),
    #{carried => Carried, small_us => lists:sort(Small), windows => lists:reverse(Windows)}.

go(UntilUs, _Changes, #path{now_us = NowUs} = Path) when NowUs >= UntilUs ->
    Path;
go(UntilUs, [{AtUs, Rate, DelayUs} | Changes], #path{now_us = NowUs} = Path) when NowUs >= AtUs ->
    go(UntilUs, Changes, Path#path{rate = Rate, delay_us = DelayUs});
go(UntilUs, Changes, Path) ->
    go(UntilUs, Changes, wait(send(small(Path)))).

refill(#path{fair = Fair} = Path) ->
    case weft_fair_queue_core:bytes(Fair) < 1048576 of
        true -> refill(Path#path{fair = add(?BULK, ?MESSAGE_BYTES, Fair)});
        false -> Path
    end.

%% One at a time, as a caller would.
small(#path{now_us = NowUs, next_small_us = AtUs, fair = Fair} = Path) when NowUs >= AtUs ->
    Path#path{fair = add(?SMALL, 100, Fair), sent_us = AtUs, next_small_us = infinity};
small(Path) ->
    Path.

add(Key, Bytes, Fair) ->
    weft_fair_queue_core:add(Bytes, weft_test_frames:whole(Key, Key, 0), #{}, Fair).

send(Path0) ->
    #path{out = Out, fair = Fair0} = Path = refill(Path0),
    case weft_outbound_core:room(Out, express) of
        none -> Path;
        Room ->
            case weft_fair_queue_core:take(Room, 4194304, Fair0) of
                {_, Bytes, _, Fair} -> send(push(Bytes, Path#path{fair = Fair}));
                empty -> Path
            end
    end.

push(Bytes, #path{out = Out0, now_us = NowUs, free_us = FreeUs, rate = Rate,
                           delay_us = DelayUs, acks = Acks} = Path) ->
    {{Sequence, Kind, _, _}, Out} =
        weft_outbound_core:push(frames, <<>>, Bytes, trunc(NowUs), Out0),
    OutUs = max(NowUs, FreeUs) + Bytes / Rate,
    Sent = Path#path{out = Out, last = Sequence, free_us = OutUs,
                     carried = Path#path.carried + Bytes,
                     acks = case Kind of
                                frames_ack ->
                                    queue:in(answered(OutUs + DelayUs, Sequence, Path), Acks);
                                frames -> Acks
                            end},
    case Bytes rem (?MESSAGE_BYTES + 4) of
        0 -> Sent;
        _HasSmall -> arrived(OutUs + DelayUs, Sent)
    end.

arrived(AtUs, #path{sent_us = SentUs, small_us = Small} = Path) ->
    Path#path{small_us = [AtUs - SentUs | Small], next_small_us = AtUs + Path#path.delay_us}.

%% Until the next acknowledgement, or small message.
wait(#path{acks = Acks, next_small_us = SmallUs, now_us = NowUs} = Path) ->
    case queue:peek(Acks) of
        {value, {AtUs, PeerUs, Sequence}} when AtUs =< SmallUs ->
            acked(Sequence, PeerUs, Path#path{acks = queue:drop(Acks), now_us = max(NowUs, AtUs)});
        _ ->
            Path#path{now_us = max(NowUs, SmallUs)}
    end.

%% An empty packet asks as well as a payload does.
acked(Sequence, PeerUs, #path{out = Out0, now_us = NowUs, free_us = FreeUs, delay_us = DelayUs,
                              windows = Windows, acks = Acks} = Path) ->
    {Ask, Out} = weft_outbound_core:acked(Sequence, PeerUs, trunc(NowUs), Out0),
    #{window_bytes := Window} = weft_outbound_core:window(Out),
    Asked = case Ask of
                ask -> queue:in(answered(max(NowUs, FreeUs) + DelayUs, Path#path.last, Path), Acks);
                _ -> Acks
            end,
    Path#path{out = Out, windows = [Window | Windows], acks = Asked,
              is_timed = Path#path.is_timed orelse Ask =:= times}.

%% When the acknowledgement is here, and when it was sent by the clock of the peer, which is ahead.
answered(AtUs, Sequence, #path{delay_us = DelayUs, is_timed = IsTimed}) ->
    {AtUs + DelayUs,
     case IsTimed of
         true -> trunc(AtUs) + ?AHEAD_US;
         false -> undefined
     end, Sequence}.
