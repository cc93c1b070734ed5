%% SPDX-License-Identifier: Apache-2.0
%% @doc Does the overlay demand a link? And if it does not: since when, and may the link be closed?
%%
%% A link is not closed at once. One that was made to ask something may be wanted by the other end a
%% moment later. Two nodes that part as neighbours go on using their link for a while, in which both
%% can find another one, so that routes change before they break. Timers are messages to the calling
%% process, which is that of the link.
-module(weft_link_wish).

-export([new/0, wish/2, is_wanted/1, is_given_up/1, part/1, is_parting/1, stay/1, is_parted/2,
         is_settled/2]).
-export_type([wish/0]).

%% How long the overlay has not wanted a link before the link is closed.
-define(UNWANTED_MS, 300).
%% How long two nodes that have parted still use the link.
-define(PARTING_MS, 2000).

-record(wish, {is_wanted = false :: boolean(),
               %% Since when it is no longer wanted; `never' if it never was.
               since_ms = never :: never | integer(),
               parting = none :: none | reference()}).
-opaque wish() :: #wish{}.

%% @doc Never wanted so far.
-spec new() -> wish().
new() -> #wish{}.

%% @doc The overlay wants the link, or no longer does; in this case `unwanted' is sent after
%% UNWANTED_MS.
-spec wish(boolean(), wish()) -> wish().
wish(true, Wish) ->
    Wish#wish{is_wanted = true, since_ms = never};
wish(false, #wish{is_wanted = true} = Wish) ->
    _ = erlang:send_after(?UNWANTED_MS, self(), unwanted),
    Wish#wish{is_wanted = false, since_ms = now_ms()};
wish(false, Wish) ->
    Wish.

-spec is_wanted(wish()) -> boolean().
is_wanted(#wish{is_wanted = IsWanted}) -> IsWanted.

%% @doc Was it wanted, and is no longer?
-spec is_given_up(wish()) -> boolean().
is_given_up(#wish{since_ms = SinceMs}) -> SinceMs =/= never.

%% @doc No neighbours any more; `{timeout, Timer, parted}' is sent when the link is not to be used
%% any longer.
-spec part(wish()) -> wish().
part(Wish) -> Wish#wish{parting = erlang:start_timer(?PARTING_MS, self(), parted)}.

%% @doc Neighbours (again), or no link: a timer that still runs is ignored.
-spec stay(wish()) -> wish().
stay(Wish) -> Wish#wish{parting = none}.

-spec is_parting(wish()) -> boolean().
is_parting(#wish{parting = Parting}) -> Parting =/= none.

%% @doc Is that the present timer?
-spec is_parted(Timer :: reference(), wish()) -> boolean().
is_parted(Timer, #wish{parting = Parting}) -> Timer =:= Parting.

%% @doc Is the link not wanted, and has it not been for long enough to be closed?
-spec is_settled(NowMs :: integer(), wish()) -> boolean().
is_settled(_NowMs, #wish{is_wanted = true}) -> false;
is_settled(_NowMs, #wish{parting = Parting}) when Parting =/= none -> false;
is_settled(_NowMs, #wish{since_ms = never}) -> true;
is_settled(NowMs, #wish{since_ms = SinceMs}) -> NowMs - SinceMs >= ?UNWANTED_MS.

now_ms() -> erlang:monotonic_time(millisecond).
