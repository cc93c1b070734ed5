%% SPDX-License-Identifier: Apache-2.0
%% @doc Which lane of a path takes the next payload.
%%
%% Large payloads go to the lanes in turn; small ones stay on one lane, where they need not wait for
%% large ones. A lane that is busy is left out until it is free.
%%
%% Bypass payloads (`weft_inbound_core') should not wait in a lane behind payloads of other senders.
%% Once there are some, one of several lanes is reserved for them, until it was not used for a
%% while.
-module(weft_lane_turns).

-export([new/2, all/1, can/2, room/3, lane/2, sent/4, free/2, change/2, spare/1, is_spared/1]).
-export_type([turns/1, order/0]).

%% Payloads from this size on are spread over the lanes.
-define(STRIPE_BYTES, 16384).

-type order() :: in_order | bypass.
-record(turns, {idle :: [Lane :: term()],
                busy = [] :: [Lane :: term()],
                kept = none :: none | {ready | busy, Lane :: term()},
                is_used = false :: boolean()}).
-opaque turns(_Lane) :: #turns{}.

-spec new(Idle :: [Lane], Busy :: [Lane]) -> turns(Lane).
new(Idle, Busy) -> #turns{idle = Idle, busy = Busy}.

%% @doc The lanes, the one to use next first.
-spec all(turns(Lane)) -> [Lane].
all(#turns{idle = Idle, busy = Busy, kept = none}) -> Idle ++ Busy;
all(#turns{idle = Idle, busy = Busy, kept = {_, Lane}}) -> Idle ++ Busy ++ [Lane].

%% @doc Is there a lane that is not busy?
-spec can(order(), turns(_)) -> boolean().
can(_Order, #turns{idle = [_ | _]}) -> true;
can(bypass, #turns{kept = {ready, _}}) -> true;
can(_Order, _Turns) -> false.

%% @doc What may be sent now, if the window has that room: payloads that are repeated go before all
%% others except bypass payloads.
-spec room(weft_fair_queue_core:room() | none, Repeats :: boolean(), turns(_)) ->
          weft_fair_queue_core:room() | none.
room(none, _Repeats, _Turns) -> none;
room(Window, false, #turns{idle = [_ | _]}) -> Window;
room(_Window, _Repeats, Turns) ->
    case can(bypass, Turns) of
        true -> bypass;
        false -> none
    end.

%% @doc The lane for the next payload, if there is one that is not busy.
-spec lane(order(), turns(Lane)) -> {Lane, turns(Lane)} | none.
lane(in_order, #turns{idle = [Lane | _]} = Turns) ->
    {Lane, Turns};
lane(bypass, #turns{kept = {ready, Lane}} = Turns) ->
    {Lane, Turns#turns{is_used = true}};
lane(bypass, #turns{kept = none, idle = [Lane | Idle], busy = Busy} = Turns)
  when Idle =/= []; Busy =/= [] ->
    {Lane, Turns#turns{idle = Idle, kept = {ready, Lane}, is_used = true}};
lane(bypass, #turns{idle = [Lane | _]} = Turns) ->
    {Lane, Turns};
lane(_Order, _Turns) ->
    none.

%% @doc A payload was given to that lane. The outcome says whether the lane can take more.
-spec sent(Lane, Bytes :: non_neg_integer(), free | busy, turns(Lane)) -> turns(Lane).
sent(Lane, _Bytes, Outcome, #turns{kept = {_, Lane}} = Turns) ->
    Turns#turns{kept = {case Outcome of free -> ready; busy -> busy end, Lane}};
sent(Lane, _Bytes, busy, #turns{idle = [Lane | Idle], busy = Busy} = Turns) ->
    Turns#turns{idle = Idle, busy = [Lane | Busy]};
sent(_Lane, Bytes, free, #turns{idle = [_]} = Turns) when Bytes >= ?STRIPE_BYTES ->
    Turns;
sent(Lane, Bytes, free, #turns{idle = [Lane | Idle]} = Turns) when Bytes >= ?STRIPE_BYTES ->
    Turns#turns{idle = Idle ++ [Lane]};
sent(_Lane, _Bytes, free, Turns) ->
    Turns.

%% @doc That lane can take more.
-spec free(Lane, turns(Lane)) -> turns(Lane).
free(Lane, #turns{kept = {_, Lane}} = Turns) ->
    Turns#turns{kept = {ready, Lane}};
free(Lane, #turns{idle = Idle, busy = Busy} = Turns) ->
    case lists:member(Lane, Busy) of
        true -> Turns#turns{idle = Idle ++ [Lane], busy = lists:delete(Lane, Busy)};
        false -> Turns
    end.

%% @doc Sets the lanes. Answers those that are new, and those that are lost.
-spec change([Lane], turns(Lane)) -> {New :: [Lane], Lost :: [Lane], turns(Lane)}.
change(Lanes, #turns{idle = Idle, busy = Busy, kept = Kept} = Turns) ->
    Before = all(Turns),
    New = Lanes -- Before,
    IsThere = fun(Lane) -> lists:member(Lane, Lanes) end,
    Changed = Turns#turns{idle = lists:filter(IsThere, Idle) ++ New,
                          busy = lists:filter(IsThere, Busy)},
    {New, Before -- Lanes, with_kept(Kept, length(Lanes), Changed)}.

%% The only lane is never reserved.
with_kept(none, _Count, Turns) ->
    Turns;
with_kept(Kept, Count, #turns{idle = Idle, busy = Busy} = Turns) ->
    case length(Idle) + length(Busy) of
        Count -> Turns#turns{kept = none};
        0 -> given_back(Kept, Turns);
        _ -> Turns
    end.

given_back({ready, Lane}, #turns{idle = Idle} = Turns) ->
    Turns#turns{idle = Idle ++ [Lane], kept = none};
given_back({busy, Lane}, #turns{busy = Busy} = Turns) ->
    Turns#turns{busy = [Lane | Busy], kept = none};
given_back(none, Turns) ->
    Turns.

%% @doc To be called at intervals: a reserved lane that was not used since the last call becomes an
%% ordinary one.
-spec spare(turns(Lane)) -> turns(Lane).
spare(#turns{is_used = true} = Turns) -> Turns#turns{is_used = false};
spare(#turns{kept = Kept} = Turns) -> given_back(Kept, Turns).

%% @doc Is no lane reserved?
-spec is_spared(turns(_)) -> boolean().
is_spared(#turns{kept = Kept}) -> Kept =:= none.
