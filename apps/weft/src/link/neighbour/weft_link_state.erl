%% SPDX-License-Identifier: Apache-2.0
%% @doc What a link knows of its lanes, of its peer and of who needs it, and what others see of
%% that: any process in the table of links, people by `weft_link:info/1'.
%%
%% The process of the link (`weft_link') changes the state, and publishes after each change that
%% others may act on. This module decides nothing.
-module(weft_link_state).

-export([new/3, is_up/1, up/1, control_lane/1, incarnation/1, above/1, publish/1, published/1,
         info/1]).
-export_type([link/0]).

-include("weft_link_state.hrl").

-type link() :: #link{}.

%% @doc A link without lanes, whose process is the caller. It looks at its lanes from now on.
-spec new(weft_links:key(), Handler :: module(), weft_link_cores:cores()) -> link().
new(Key, Handler, Cores) ->
    Name = case Key of {anonymous, _} -> <<>>; _ -> atom_to_binary(Key) end,
    #link{key = Key, handler = Handler, above = Handler:init(Key, Name), cores = Cores,
          idle_since_ms = erlang:monotonic_time(millisecond), check = weft_link_check:first()}.

%% @doc Is there a lane?
-spec is_up(link()) -> boolean().
is_up(#link{lanes = Lanes}) -> map_size(Lanes) > 0.

%% @doc The lane for control messages, and the incarnation of the peer that they reach.
-spec up(link()) -> {weft_lane:lane(), weft_link_cores:incarnation()} | down.
up(#link{lanes = Lanes}) when map_size(Lanes) =:= 0 -> down;
up(Link) -> {control_lane(Link), incarnation(Link)}.

%% @doc The lane for control messages. It stays the same until it is lost, because messages on
%% another one could overtake those on it. What was published says which it is.
-spec control_lane(link()) -> weft_lane:lane() | none.
control_lane(#link{key = Key, lanes = Lanes}) ->
    case weft_link_table:read(Key) of
        {_Pid, #{lane := Lane}} -> weft_link_lanes:kept(Lane, Lanes);
        _NotPublished -> weft_link_lanes:first(Lanes)
    end.

%% @doc Which run of the peer's node it is; only of a link that has a peer.
-spec incarnation(link()) -> weft_link_cores:incarnation().
incarnation(#link{peer = #{incarnation := Incarnation}}) -> Incarnation.

%% @doc The handler above the link, with its state.
-spec above(link()) -> {Handler :: module(), weft_link_handler:state()}.
above(#link{handler = Handler, above = Above}) -> {Handler, Above}.

%% @doc Writes to the table of links what any process may read.
-spec publish(link()) -> link().
publish(#link{key = Key} = Link) ->
    ok = weft_link_table:publish(Key, published(Link)),
    Link.

%% @doc What any process may read: the lane for control messages when the link is up, and what it is
%% made of.
-spec published(link()) -> weft_link_table:published().
published(#link{peer = Peer, up_us = UpUs, demand = Demand, cores = Cores, dial = Dial,
                is_released = IsReleased} = Link) ->
    Up = case control_lane(Link) of none -> #{}; Lane -> #{lane => Lane} end,
    Told = maps:merge(Up, weft_link_peer:published(Peer, UpUs)),
    Told#{is_calling => not is_up(Link) andalso weft_link_dial:is_calling(Dial),
          wanted => weft_link_demand:is_wanted(Demand),
          neighbour => weft_link_cores:is_neighbour(Cores), is_released => IsReleased}.

%% @doc For people: the peer, each lane, the round trip, how often it came up, the last error, and
%% what is above it.
-spec info(link()) -> map().
info(#link{peer = Peer, handler = Handler, above = Above} = Link) ->
    #{node => Link#link.key, state => state(Link),
      lanes => weft_link_lanes:info(Link#link.lanes),
      incarnation => case Peer of #{incarnation := I} -> I; undefined -> undefined end,
      rtt_us => Link#link.rtt_us, wanted => weft_link_demand:is_wanted(Link#link.demand),
      ups => Link#link.ups, last_error => Link#link.last_error, above => Handler:info(Above)}.

state(#link{lanes = Lanes}) when map_size(Lanes) > 0 -> up;
state(#link{dial = Dial}) ->
    case weft_link_dial:is_under_way(Dial) of true -> dialling; false -> down end.
