%% SPDX-License-Identifier: Apache-2.0
%% @doc Is a link demanded, by the overlay or by what is above it? And if it is not: since when, and
%% may it be closed?
%%
%% A link is not closed at once. One that was made to ask something may be wanted by the other end a
%% moment later. Two nodes that part as neighbours go on using their link for a while, in which both
%% can find another one, so that routes change before they break. Timers are messages to the calling
%% process, which is that of the link.
-module(weft_link_demand).

-export([new/0, want/2, is_wanted/1, missing/5, is_kept/2, may_be_released/3,
         part/1, is_parting/1, stay/1, is_parted/2, is_steady/4]).
-export_type([demand/0, above/0]).

%% How long the overlay has not wanted a link before the link is closed.
-define(UNWANTED_MS, 300).
%% How long two nodes that have parted still use the link.
-define(PARTING_MS, 2000).

%% Links that run while this code is loaded over that of an earlier version keep a record with this
%% tag, so the tag stays.
-record(wish, {is_wanted = false :: boolean(),
               %% Since when it is no longer wanted; `never' if it never was.
               since_ms = never :: never | integer(),
               parting = none :: none | reference()}).
-opaque demand() :: #wish{}.
%% What is above the link: its handler, and the handler's state.
-type above() :: {module(), weft_link_handler:state()}.

%% @doc Never wanted so far.
-spec new() -> demand().
new() -> #wish{}.

%% @doc The overlay wants the link, or no longer does; in this case `unwanted' is sent after
%% UNWANTED_MS.
-spec want(boolean(), demand()) -> demand().
want(true, Demand) ->
    Demand#wish{is_wanted = true, since_ms = never};
want(false, #wish{is_wanted = true} = Demand) ->
    _ = erlang:send_after(?UNWANTED_MS, self(), unwanted),
    Demand#wish{is_wanted = false, since_ms = now_ms()};
want(false, Demand) ->
    Demand.

%% @doc Does the overlay want it?
-spec is_wanted(demand()) -> boolean().
is_wanted(#wish{is_wanted = IsWanted}) -> IsWanted.

%% @doc What is to be dialled: the link, for its own sake or for something above it; if it is up, a
%% further lane, once the peer was heard. While it is in doubt whether the node of the peer has
%% ended it is dialled also if nothing wants it any more: others wait for this news, which only
%% those hear who had a link (docs/decisions/0019).
-spec missing(demand(), InDoubt :: boolean(), above(), weft_handshake:peer() | undefined,
              weft_link_lanes:lanes()) ->
          link | {weft_hello:purpose(), Token :: binary()} | false.
missing(Demand, InDoubt, {Handler, Above}, _Peer, Lanes) when map_size(Lanes) =:= 0 ->
    (InDoubt orelse is_wanted(Demand) orelse Handler:wants_link(Above)) andalso link;
missing(_Demand, _InDoubt, {Handler, Above}, #{role := Role, token := Token}, Lanes) ->
    case weft_link_lanes:is_heard(Lanes) andalso weft_link_welcome:has_room(map_size(Lanes))
        andalso weft_lane_plan:missing(Role, weft_link_lanes:keys(Lanes), weft_config:get(lanes),
                                       Handler:wants_lanes(Above)) of
        {lane, _, _} = Lane -> {Lane, Token};
        _ -> false
    end.

%% @doc Is the link to stay, and its process if it is down?
-spec is_kept(demand(), above()) -> boolean().
is_kept(Demand, {Handler, Above}) -> is_wanted(Demand) orelse Handler:is_in_use(Above).

%% @doc May the side that dialled the link close it? Not before it has not been wanted for long
%% enough. What uses it needs another way; a link that nothing uses was wanted before.
-spec may_be_released(NowMs :: integer(), demand(), above()) -> boolean().
may_be_released(NowMs, Demand, {Handler, Above}) ->
    is_settled(NowMs, Demand) andalso case Handler:is_in_use(Above) of
                                          true -> Handler:can_spare_link(Above);
                                          false -> Demand#wish.since_ms =/= never
                                      end.

is_settled(_NowMs, #wish{is_wanted = true}) -> false;
is_settled(_NowMs, #wish{parting = Parting}) when Parting =/= none -> false;
is_settled(_NowMs, #wish{since_ms = never}) -> true;
is_settled(NowMs, #wish{since_ms = SinceMs}) -> NowMs - SinceMs >= ?UNWANTED_MS.

%% @doc Is the link to stay for a while, as far as can be known? Only the side that dialled may
%% release a link, and only an overlay gives what uses it another way.
-spec is_steady(demand(), above(), weft_handshake:peer(), weft_link_cores:cores()) -> boolean().
is_steady(#wish{is_wanted = IsWanted, parting = Parting} = Demand, Above, #{role := Role}, Cores) ->
    Parting =:= none andalso is_kept(Demand, Above)
        andalso (IsWanted orelse Role =:= listener orelse not weft_link_cores:has_any(Cores)).

%% @doc No neighbours any more; `{timeout, Timer, parted}' is sent when the link is not to be used
%% any longer.
-spec part(demand()) -> demand().
part(Demand) -> Demand#wish{parting = erlang:start_timer(?PARTING_MS, self(), parted)}.

%% @doc Neighbours (again), or no link: a timer that still runs is ignored.
-spec stay(demand()) -> demand().
stay(Demand) -> Demand#wish{parting = none}.

-spec is_parting(demand()) -> boolean().
is_parting(#wish{parting = Parting}) -> Parting =/= none.

%% @doc Is that the present timer?
-spec is_parted(Timer :: reference(), demand()) -> boolean().
is_parted(Timer, #wish{parting = Parting}) -> Timer =:= Parting.

now_ms() -> erlang:monotonic_time(millisecond).
