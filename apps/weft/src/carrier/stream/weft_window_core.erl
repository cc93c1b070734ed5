%% SPDX-License-Identifier: Apache-2.0
%% @doc How much may be under way on a path: enough to keep it busy, and no more.
%%
%% What is sent beyond that only waits below the fair queue, in kernels and routers, where the fair
%% queue cannot reorder it. The window is delivery rate times shortest round trip, and a bit more,
%% in the manner of BBR (Cardwell and others 2016):
%%
%%   window = rate * (1.25 * shortest round trip + 1 ms), at most
%%            the larger of 512 KiB for each link (two over gateways) and
%%            2.5 * rate * shortest round trip
%%
%% The rate is the bytes that acknowledgements confirm per time: the maximum over intervals of a
%% round trip or more, which decays slowly. While the rate still grows the window is twice rate
%% times round trip, to find the end of the growth. Only intervals in which the window was the limit
%% are used. A window that is always full never measures the shortest round trip. So at first, and
%% again when it has not been measured for a while, the window is made small for one round trip (a
%% probe). With several lanes a lost packet stops one lane, and the delivery in order with it, while
%% the other lanes could go on: the longest pause between acknowledgements is then added to the
%% round trip. A receiver that is busy with a large message looks the same, and then more under way
%% would only wait. So the kernel is asked whether anything was lost. Times are in microseconds.
%%
%% Where a round trip takes a millisecond or more the peer says when it sent an acknowledgement, by
%% its own clock (`weft_inbound_core'). If it sends much, too, acknowledgements wait on their way
%% behind that, but by its clock they do not make the rate look smaller. And their wait can be told
%% from that of payloads, which makes the way there longer than the shortest one; the rest of what a
%% round trip takes longer is the wait of the acknowledgement. So much more is under way, to go on
%% meanwhile, up to a round trip and 1 ms: else both ends would widen their windows for each other.
-module(weft_window_core).

-export([new/2, bytes/1, limited/1, acked/4, is_in_doubt/1, losses/2, wants_times/1, times_asked/1,
         lanes/2, relayed/2, restart/1, info/1, code_change/1]).
-export_type([state/0]).

-define(START_BYTES, 1048576).
%% Kernels copy what is under way on a link twice. As long as that is less than half of a core's
%% second cache (1 MiB in 2026) the copies are cheap. A gateway with less than that before it and
%% behind it waits more than it relays.
-define(ENOUGH_BYTES, 524288).
-define(INTERVAL_MIN_US, 2000).
-define(ROUND_TRIP_MIN_US, 20).
-define(ROUND_TRIP_AGE_US, 10000000).
%% A probe of the shortest round trip ends after so many round trips, successful or not.
-define(PROBE_ROUND_TRIPS, 8).
-define(PROBE_BYTES, 65536).
%% A pause is longer than the time that a busy machine takes to answer. If a round trip is shorter
%% than that, TCP repairs a loss sooner, unless by its timeout, which is 200 ms at least.
-define(PAUSE_MIN_US, 5000).
-define(TIMEOUT_US, 150000).
-define(PAUSE_MAX_US, 300000).
%% On a shorter path 512 KiB are enough, however long acknowledgements wait behind as much.
-define(TIMED_MIN_US, 1000).

-record(window, {min :: pos_integer(),
                 max :: pos_integer(),
                 bytes :: pos_integer(),
                 lanes = 1 :: pos_integer(),
                 links = 1 :: 1..2,
                 limited = false :: boolean(),
                 rate = 0.0 :: float(),
                 gain = 1.25 :: float(),
                 round_trip_us :: pos_integer() | undefined,
                 last_round_trip_us = 0 :: non_neg_integer(),
                 round_trip_at_us :: integer() | undefined,
                 probe_since_us :: integer() | undefined,
                 since_us :: integer() | undefined,
                 acked_bytes = 0 :: non_neg_integer(),
                 last_us :: integer() | undefined,
                 pause_us = 0.0 :: float(),
                 %% A pause of which it is not known whether something was lost, and how much was
                 %% when the kernel was asked last.
                 doubt_us :: pos_integer() | undefined,
                 losses = 0 :: integer(),
                 %% The peer was asked for the times of its acknowledgements.
                 times_asked = false :: boolean(),
                 since_peer_us :: integer() | undefined,
                 %% The shortest way to the peer, and by how much its clock is ahead.
                 ahead_us :: integer() | undefined,
                 %% How long acknowledgements waited at most in this interval.
                 waited_us = 0 :: non_neg_integer()}).
-opaque state() :: #window{}.
%% By the clock of this node, and by that of the peer.
-type times() :: {NowUs :: integer(), PeerUs :: integer() | undefined}.

%% @doc A window between the two bounds; if they are the same it stays.
-spec new(MinBytes :: pos_integer(), MaxBytes :: pos_integer()) -> state().
new(Min, Max) when Min =< Max ->
    #window{min = Min, max = Max, bytes = max(Min, min(Max, ?START_BYTES))}.

-spec bytes(state()) -> pos_integer().
bytes(#window{bytes = Bytes}) -> Bytes.

%% @doc A payload had to wait for the window.
-spec limited(state()) -> state().
limited(#window{limited = true} = Window) -> Window;
limited(Window) -> Window#window{limited = true}.

%% @doc The number of lanes that share the stream.
-spec lanes(pos_integer(), state()) -> state().
lanes(Lanes, Window) -> Window#window{lanes = Lanes, times_asked = false}.

%% @doc Does the path lead over gateways?
-spec relayed(boolean(), state()) -> state().
relayed(false, Window) -> Window#window{links = 1};
relayed(true, Window) -> Window#window{links = 2}.

%% @doc For another path: what was learned on the old one means little.
-spec restart(state()) -> state().
restart(#window{min = Min, max = Max, lanes = Lanes, links = Links}) ->
    (new(Min, Max))#window{lanes = Lanes, links = Links}.

%% @doc Bytes have been acknowledged; RoundTripUs is that of a payload that asked for it. StillOut
%% is what is under way now. PeerUs is when the peer sent the acknowledgement, if it says so.
-spec acked({Bytes :: non_neg_integer(), StillOut :: non_neg_integer()},
            RoundTripUs :: non_neg_integer() | undefined, times(), state()) -> state().
acked(_Acked, _RoundTripUs, _Times, #window{min = Same, max = Same} = Window) ->
    Window;
acked({Bytes, StillOut}, RoundTripUs, {NowUs, _} = Times, #window{acked_bytes = Acked} = Window) ->
    Paused = pause(NowUs, Window#window{acked_bytes = Acked + Bytes}),
    Measured = round_trip(RoundTripUs, NowUs, Paused#window{last_us = NowUs}),
    interval(StillOut, Times, waited(RoundTripUs, Times, Measured)).

%% The way there is compared with the shortest one.
waited(RoundTripUs, {NowUs, PeerUs}, #window{ahead_us = Shortest0, round_trip_us = ShortestUs,
                                             waited_us = Longest} = Window)
  when is_integer(RoundTripUs), is_integer(PeerUs) ->
    Ahead = PeerUs - (NowUs - RoundTripUs),
    Shortest = case Shortest0 of
                   undefined -> Ahead;
                   _ -> min(Ahead, Shortest0)
               end,
    WaitedUs = RoundTripUs - ShortestUs - (Ahead - Shortest),
    Window#window{ahead_us = Shortest, waited_us = max(Longest, WaitedUs)};
waited(_RoundTripUs, _Times, Window) ->
    Window.

%% @doc Is the peer to be asked to say when it sends acknowledgements?
-spec wants_times(state()) -> boolean().
wants_times(#window{times_asked = Asked, round_trip_us = Us}) ->
    not Asked andalso is_integer(Us) andalso Us >= ?TIMED_MIN_US.

-spec times_asked(state()) -> state().
times_asked(Window) -> Window#window{times_asked = true}.

round_trip(undefined, _NowUs, Window) ->
    Window;
round_trip(Us, NowUs, Window) ->
    shortest(Us, NowUs, Window#window{last_round_trip_us = Us}).

shortest(Us, NowUs, #window{probe_since_us = SinceUs, round_trip_us = Shortest} = Window)
  when is_integer(SinceUs), NowUs - Us >= SinceUs + Shortest ->
    probe_ends(NowUs, Window#window{round_trip_us = max(Us, ?ROUND_TRIP_MIN_US),
                                    ahead_us = undefined});
shortest(Us, _NowUs, #window{round_trip_us = Shortest} = Window)
  when Shortest =:= undefined; Us =< Shortest ->
    Window#window{round_trip_us = max(Us, ?ROUND_TRIP_MIN_US)};
shortest(_Us, _NowUs, Window) ->
    Window.

probe_ends(NowUs, Window) ->
    Window#window{probe_since_us = undefined, round_trip_at_us = NowUs, since_us = undefined}.

%% Only while the window was the limit: otherwise there was nothing to acknowledge.
pause(NowUs, #window{lanes = Lanes, limited = true, last_us = LastUs,
                     round_trip_us = RoundTripUs} = Window)
  when Lanes > 1, is_integer(LastUs), is_integer(RoundTripUs) ->
    Us = NowUs - LastUs,
    case may_be_repair(Us, RoundTripUs) of
        true -> doubted(Us, Window);
        false -> Window
    end;
pause(_NowUs, Window) ->
    Window.

may_be_repair(Us, RoundTripUs) when RoundTripUs > ?PAUSE_MIN_US -> Us * 4 > RoundTripUs * 3;
may_be_repair(Us, _RoundTripUs) -> Us > ?TIMEOUT_US.

repaired(Us, #window{pause_us = Longest} = Window) ->
    Window#window{pause_us = float(max(Longest, min(Us, ?PAUSE_MAX_US))), doubt_us = undefined}.

%% What is lost behind a gateway, the kernel of this host does not know.
doubted(Us, #window{links = 2} = Window) -> repaired(Us, Window);
doubted(Us, Window) -> Window#window{doubt_us = Us}.

%% @doc Is the kernel to be asked how much was lost (`losses/2')?
-spec is_in_doubt(state()) -> boolean().
is_in_doubt(#window{doubt_us = Us}) -> Us =/= undefined.

%% @doc So many segments were lost on the lanes of now. If it was less when the kernel was asked
%% before, or if it does not say, the pause in doubt was one in which a loss was repaired.
-spec losses(integer() | unknown, state()) -> state().
losses(_Count, #window{doubt_us = undefined} = Window) ->
    Window;
losses(unknown, #window{doubt_us = Us} = Window) ->
    repaired(Us, Window);
losses(Count, #window{doubt_us = Us, losses = Before} = Window) ->
    Counted = Window#window{losses = Count},
    case Count > Before of
        true -> repaired(Us, Counted);
        false -> Counted#window{doubt_us = undefined}
    end.

interval(_StillOut, _Times, #window{round_trip_us = undefined} = Window) ->
    Window;
interval(_StillOut, {NowUs, _}, #window{probe_since_us = SinceUs, last_round_trip_us = Us} = Window)
  when is_integer(SinceUs) ->
    case NowUs - SinceUs > ?PROBE_ROUND_TRIPS * Us + ?INTERVAL_MIN_US of
        true -> probe_ends(NowUs, Window);
        false -> Window
    end;
interval(StillOut, Times, #window{since_us = undefined} = Window) ->
    next_interval(StillOut, Times, resized(Window));
interval(StillOut, {NowUs, _} = Times, #window{round_trip_us = RoundTripUs, limited = Limited,
                                               acked_bytes = Acked} = Window) ->
    case length_us(Times, Window) of
        Us when Us < RoundTripUs; Us < ?INTERVAL_MIN_US ->
            Window;
        _ when not Limited ->
            next_interval(StillOut, Times, Window);
        Us ->
            Resized = resized(learned(Acked / Us, Window)),
            probe(NowUs, next_interval(StillOut, Times, Resized))
    end.

length_us({_, PeerUs}, #window{since_peer_us = SinceUs})
  when is_integer(PeerUs), is_integer(SinceUs), PeerUs >= SinceUs ->
    PeerUs - SinceUs;
length_us({NowUs, _}, #window{since_us = SinceUs}) ->
    NowUs - SinceUs.

learned(New, #window{rate = Rate} = Window) ->
    Window#window{rate = max(New, Rate * 0.85),
                  gain = case New > 1.2 * Rate of
                             true -> 2.0;
                             false -> 1.25
                         end}.

%% A probe: the window is small until a payload has been acknowledged that was sent after what is
%% under way now.
probe(NowUs, #window{round_trip_at_us = AtUs} = Window)
  when is_integer(AtUs), NowUs - AtUs =< ?ROUND_TRIP_AGE_US ->
    Window;
probe(NowUs, #window{rate = Rate, round_trip_us = Us, min = Min} = Window) ->
    Window#window{probe_since_us = NowUs,
                  bytes = min(Min, max(?PROBE_BYTES, trunc(Rate * Us / 2)))}.

next_interval(StillOut, {NowUs, PeerUs}, #window{bytes = Bytes} = Window) ->
    Window#window{since_us = NowUs, since_peer_us = PeerUs, acked_bytes = 0, waited_us = 0,
                  limited = StillOut >= Bytes}.

resized(#window{rate = Rate} = Window) when Rate == 0 ->
    Window;
resized(#window{rate = Rate, gain = Gain, round_trip_us = RoundTripUs, pause_us = PauseUs,
                waited_us = WaitedUs, min = Min, max = Max, links = Links} = Window) ->
    BesidesUs = PauseUs + min(WaitedUs, RoundTripUs + 1000),
    Wanted = Rate * (Gain * RoundTripUs + 1000 + BesidesUs),
    Enough = max(Links * ?ENOUGH_BYTES, Rate * (2.5 * RoundTripUs + BesidesUs)),
    Window#window{bytes = max(Min, min(Max, trunc(min(Wanted, Enough)))),
                  pause_us = PauseUs * 0.98}.

%% @doc For status.
-spec info(state()) -> #{atom() => term()}.
info(#window{bytes = Bytes, rate = Rate, round_trip_us = RoundTripUs}) ->
    #{window_bytes => Bytes, bytes_per_second => round(Rate * 1000000),
      round_trip_us => RoundTripUs}.

%% @doc The state as this version keeps it. Before, it knew no times of the peer; and before that it
%% had no doubts, and did not say over how many links a path goes.
-spec code_change(state() | Before :: tuple()) -> state().
code_change(#window{} = Window) ->
    Window;
code_change(Before) when tuple_size(Before) =:= #window.losses ->
    code_change(appended([false, undefined, undefined, 0], Before));
code_change(Before) when tuple_size(Before) =:= #window.doubt_us - 1 ->
    code_change(appended([undefined, 0], Before));
code_change(Before) ->
    code_change(erlang:insert_element(#window.links, Before, 1)).

appended(Fields, Before) ->
    lists:foldl(fun(Field, Of) -> erlang:append_element(Of, Field) end, Before, Fields).
