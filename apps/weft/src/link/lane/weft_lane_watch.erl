%% SPDX-License-Identifier: Apache-2.0
%% @doc When to ping a lane, and when it is dead: pure data, one value for each lane.
%%
%% A packet that was heard since the last check proves a lane as well as the answer to a ping. So a
%% lane is pinged only when it was silent: one of the two ends asks, and both know. It is dead when
%% nothing at all was heard for the timeout, counted from the first ping without an answer. If
%% packets are sent and heard all the time, the next ping comes `refresh_ms' after the last one; it
%% measures the round trip.
%%
%% A packet is heard when all of it has come, which takes long for a large one on a slow network. So
%% a lane that is pinged and silent is not dead as long as the kernel still receives bytes on it, or
%% gets rid of bytes that would hold up a ping (`moved/3').
%%
%% A silent lane on which nothing was sent except answers may stay silent for `idle_ms': if
%% a failure detector watches the nodes, not all pairs of a full mesh need ping each other all the
%% time. A process that sends on an idle lane makes it a lane in use.
-module(weft_lane_watch).

-export([new/2, check/3, heard/3, answered/2, is_asked/1, moved/3, is_unchanged/2]).
-export_type([watch/0, limits/0, progress/0]).

-type limits() :: #{timeout_ms := pos_integer(), idle_ms := non_neg_integer(),
                    refresh_ms := pos_integer()}.

%% Bytes that the kernel has received, and those that the other one has acknowledged, if so many
%% wait that no ping is sent; or it does not say.
-type progress() :: {Received :: non_neg_integer(), Acked :: non_neg_integer() | idle} | unknown.

-record(watch, {
    %% Packets heard, and sent by any process, at the last check.
    heard = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    %% Of the packets sent since then: pings, pongs, and other answers.
    own = 1 :: non_neg_integer(),
    %% Had something else been sent before the last check?
    was_used = false :: boolean(),
    %% The first ping after which nothing was heard or moved, with what had moved at the last check;
    %% and the last ping. (Earlier code had the time only.)
    asked :: {integer(), progress()} | integer() | undefined,
    pinged_ms :: integer()}).
-opaque watch() :: #watch{}.

%% @doc A lane that came up and is pinged now. Sent is how many packets went out on it before.
-spec new(NowMs :: integer(), Sent :: non_neg_integer()) -> watch().
new(NowMs, Sent) ->
    #watch{sent = Sent, asked = {NowMs, unknown}, pinged_ms = NowMs}.

%% @doc So many packets were sent that nobody waits for.
-spec answered(Count :: non_neg_integer(), watch()) -> watch().
answered(Count, #watch{own = Own} = Watch) ->
    Watch#watch{own = Own + Count}.

%% @doc So many packets were heard, the last one now, on a lane at rest. It tells as much as the
%% answer to a ping.
-spec heard(NowMs :: integer(), Heard :: non_neg_integer(), watch()) -> watch().
heard(NowMs, Heard, Watch) ->
    Watch#watch{heard = Heard, pinged_ms = NowMs}.

%% @doc Does a ping wait for its answer? Then `moved/3' is to be called before the next check.
-spec is_asked(watch()) -> boolean().
is_asked(#watch{asked = Asked}) -> Asked =/= undefined.

%% @doc So much has moved by now. If it is more than at the last check, the time for the answer
%% begins anew.
-spec moved(NowMs :: integer(), progress(), watch()) -> watch().
moved(NowMs, Progress, #watch{asked = {SinceMs, Before}} = Watch) ->
    case has_moved(Before, Progress) of
        true -> Watch#watch{asked = {NowMs, Progress}};
        false -> Watch#watch{asked = {SinceMs, Progress}}
    end;
moved(_NowMs, Progress, #watch{asked = SinceMs} = Watch) ->
    Watch#watch{asked = {SinceMs, Progress}}.

has_moved({Received, Before}, {Received, Acked}) when is_integer(Before), is_integer(Acked) ->
    Acked =/= Before;
has_moved({Before, _}, {Received, _}) ->
    Received =/= Before;
has_moved(_, _) ->
    false.

%% @doc What to do now that so many packets were heard and sent in all. A lane rests if it is not in
%% use and waits for no answer; then the next check may come late.
-spec check(NowMs :: integer(), {Heard :: non_neg_integer(), Sent :: non_neg_integer()},
            {watch(), limits()}) -> {ping | nothing | rest | dead, watch()}.
check(NowMs, {Heard, Sent}, {#watch{asked = Asked0} = Watch, Limits}) ->
    #{timeout_ms := TimeoutMs} = Limits,
    IsSilent = Watch#watch.heard =:= Heard,
    Asked = case IsSilent of true -> Asked0; false -> undefined end,
    IsUsed = Sent - Watch#watch.own > Watch#watch.sent,
    Seen = Watch#watch{heard = Heard, sent = Sent, own = 0, asked = Asked, was_used = IsUsed},
    case is_asked(Seen) andalso NowMs - since_ms(Asked) > TimeoutMs of
        true ->
            {dead, Seen};
        false ->
            %% What was sent last before a check may have come after what was heard last.
            IsOpen = IsSilent andalso (IsUsed orelse Watch#watch.was_used),
            IsDue = is_asked(Seen) orelse IsOpen
                orelse NowMs - Seen#watch.pinged_ms >= rest_ms(IsSilent, IsUsed, Limits),
            ping(IsDue, IsUsed, NowMs, Seen)
    end.

ping(true, _IsUsed, NowMs, #watch{asked = Asked} = Watch) ->
    {ping, Watch#watch{own = 1, pinged_ms = NowMs, asked = first(Asked, NowMs)}};
ping(false, true, _NowMs, Watch) ->
    {nothing, Watch};
ping(false, false, _NowMs, Watch) ->
    {rest, Watch}.

%% An atom is greater than any time: the peer asks.
rest_ms(true, _IsUsed, #{idle_ms := IdleMs}) -> IdleMs;
rest_ms(false, true, #{refresh_ms := RefreshMs}) -> RefreshMs;
rest_ms(false, false, _Limits) -> never.

first(undefined, NowMs) -> {NowMs, unknown};
first(Asked, _NowMs) -> Asked.

since_ms({Ms, _Progress}) -> Ms;
since_ms(Ms) -> Ms.

%% @doc Was nothing sent since the last check?
-spec is_unchanged(Sent :: non_neg_integer(), watch()) -> boolean().
is_unchanged(Sent, #watch{sent = Seen}) -> Sent =:= Seen.
