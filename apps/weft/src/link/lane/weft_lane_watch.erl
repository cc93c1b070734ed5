%% SPDX-License-Identifier: Apache-2.0
%% @doc When to ping a lane, and when it is dead: pure data, one value for each lane.
%%
%% A packet that was heard since the last check proves a lane as well as the answer to a ping. So a
%% lane is pinged only when it was silent: one of the two ends asks, and both know. It is dead when
%% nothing at all was heard for the timeout, counted from the first ping without an answer. If
%% packets are sent and heard all the time, the next ping comes `refresh_ms' after the last one; it
%% measures the round trip.
%%
%% A silent lane on which nothing was sent except answers may stay silent for `idle_ms': if
%% a failure detector watches the nodes, not all pairs of a full mesh need ping each other all the
%% time. A process that sends on an idle lane makes it a lane in use.
-module(weft_lane_watch).

-export([new/2, check/3, heard/3, answered/2, is_unchanged/2]).
-export_type([watch/0, limits/0]).

-type limits() :: #{timeout_ms := pos_integer(), idle_ms := non_neg_integer(),
                    refresh_ms := pos_integer()}.

-record(watch, {
    %% Packets heard, and sent by any process, at the last check.
    heard = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    %% Of the packets sent since then: pings, pongs, and other answers.
    own = 1 :: non_neg_integer(),
    %% Had something else been sent before the last check?
    was_used = false :: boolean(),
    %% The first ping after which nothing was heard, and the last ping.
    asked_ms :: integer() | undefined,
    pinged_ms :: integer()}).
-opaque watch() :: #watch{}.

%% @doc A lane that came up and is pinged now. Sent is how many packets went out on it before.
-spec new(NowMs :: integer(), Sent :: non_neg_integer()) -> watch().
new(NowMs, Sent) ->
    #watch{sent = Sent, asked_ms = NowMs, pinged_ms = NowMs}.

%% @doc So many packets were sent that nobody waits for.
-spec answered(Count :: non_neg_integer(), watch()) -> watch().
answered(Count, #watch{own = Own} = Watch) ->
    Watch#watch{own = Own + Count}.

%% @doc So many packets were heard, the last one now, on a lane at rest. It tells as much as the
%% answer to a ping.
-spec heard(NowMs :: integer(), Heard :: non_neg_integer(), watch()) -> watch().
heard(NowMs, Heard, Watch) ->
    Watch#watch{heard = Heard, pinged_ms = NowMs}.

%% @doc What to do now that so many packets were heard and sent in all. A lane rests if it is not in
%% use and waits for no answer; then the next check may come late.
-spec check(NowMs :: integer(), {Heard :: non_neg_integer(), Sent :: non_neg_integer()},
            {watch(), limits()}) -> {ping | nothing | rest | dead, watch()}.
check(NowMs, {Heard, Sent}, {#watch{asked_ms = Asked0} = Watch, Limits}) ->
    #{timeout_ms := TimeoutMs} = Limits,
    IsSilent = Watch#watch.heard =:= Heard,
    Asked = case IsSilent of true -> Asked0; false -> undefined end,
    IsUsed = Sent - Watch#watch.own > Watch#watch.sent,
    Seen = Watch#watch{heard = Heard, sent = Sent, own = 0, asked_ms = Asked, was_used = IsUsed},
    case is_integer(Asked) andalso NowMs - Asked > TimeoutMs of
        true ->
            {dead, Seen};
        false ->
            %% What was sent last before a check may have come after what was heard last.
            IsOpen = IsSilent andalso (IsUsed orelse Watch#watch.was_used),
            IsDue = is_integer(Asked) orelse IsOpen
                orelse NowMs - Seen#watch.pinged_ms >= rest_ms(IsSilent, IsUsed, Limits),
            ping(IsDue, IsUsed, NowMs, Seen)
    end.

ping(true, _IsUsed, NowMs, #watch{asked_ms = Asked} = Watch) ->
    {ping, Watch#watch{own = 1, pinged_ms = NowMs, asked_ms = first(Asked, NowMs)}};
ping(false, true, _NowMs, Watch) ->
    {nothing, Watch};
ping(false, false, _NowMs, Watch) ->
    {rest, Watch}.

%% An atom is greater than any time: the peer asks.
rest_ms(true, _IsUsed, #{idle_ms := IdleMs}) -> IdleMs;
rest_ms(false, true, #{refresh_ms := RefreshMs}) -> RefreshMs;
rest_ms(false, false, _Limits) -> never.

first(undefined, NowMs) -> NowMs;
first(Asked, _NowMs) -> Asked.

%% @doc Was nothing sent since the last check?
-spec is_unchanged(Sent :: non_neg_integer(), watch()) -> boolean().
is_unchanged(Sent, #watch{sent = Seen}) -> Sent =:= Seen.
