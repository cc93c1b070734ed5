%% SPDX-License-Identifier: Apache-2.0
%% @doc Is a lane that was authenticated welcome on the link of its peer, and which lanes does it
%% replace? Pure.
%%
%% On a link that is cut (`weft_fault') nothing comes up. A link that is up is not taken away by an
%% earlier start of the node (`weft_link_peer'). A peer that dials the link again has given up all
%% connections that are still open here, so the new lane replaces all. A further lane is welcome on
%% the link that it was authenticated for, while that is up. It replaces the lane with its key that
%% was brought up by the same side.
%%
%% Two calls may have crossed so that both were answered, which `weft_link_admission' cannot see.
%% Both ends keep the one of the node with the greater name, whichever is done first.
-module(weft_link_welcome).

-export([decide/3, has_room/1, key/1]).
-export_type([link/0]).

%% Lanes of one link, those of channels included.
-define(LANES_MAX, 256).

%% The name of this node, and what the link has: its lanes, and the peer at the other end of the
%% first one, which came at that time.
-type link() :: #{own_name := binary(), is_cut := boolean(), lanes := weft_link_lanes:lanes(),
                  peer := weft_handshake:peer() | undefined, up_us := integer()}.

%% @doc The lane is refused, or welcome, and then it replaces nothing, all lanes, or that lane.
-spec decide(weft_hello:purpose(), weft_handshake:peer(), link()) ->
          refused | {welcome, Replaces :: nothing | all | weft_lane:lane()}.
decide(_Purpose, _New, #{is_cut := true}) ->
    refused;
decide(link, New, #{peer := Peer} = Link) ->
    IsUp = is_up(Link),
    IsRefused = weft_link_peer:met(New, Peer, IsUp) =:= superseded
        orelse is_lost_crossing(New, Link),
    case {IsUp, IsRefused} of
        {false, _} -> {welcome, nothing};
        {true, true} -> refused;
        {true, false} -> {welcome, all}
    end;
decide({lane, _, _} = Purpose, #{role := Role} = New, #{lanes := Lanes} = Link) ->
    case is_up(Link) andalso is_of_this_link(New, Link) andalso has_room(Lanes) of
        true -> {welcome, replaced(weft_link_lanes:find(key(Purpose), Role, Lanes), Lanes)};
        false -> refused
    end.

is_up(#{lanes := Lanes}) -> map_size(Lanes) > 0.

is_lost_crossing(#{role := Role, begun_us := BegunUs, name := Name},
                 #{peer := #{role := Other}, up_us := UpUs, own_name := OwnName})
  when Role =/= Other, BegunUs < UpUs ->
    (Role =:= dialer) =/= (OwnName > Name);
is_lost_crossing(_New, _Link) ->
    false.

%% The link may have been made anew while this lane was authenticated.
is_of_this_link(#{proven_with := Token}, #{peer := #{token := Token}}) -> true;
is_of_this_link(_New, _Link) -> false.

replaced(none, _Lanes) -> nothing;
replaced(_Only, Lanes) when map_size(Lanes) =:= 1 -> all;
replaced(Lane, _Lanes) -> Lane.

%% @doc May a link have another lane beside these?
-spec has_room(weft_link_lanes:lanes()) -> boolean().
has_room(Lanes) -> map_size(Lanes) < ?LANES_MAX.

%% @doc The key of a lane that was brought up for that purpose.
-spec key(weft_hello:purpose()) -> weft_lane:key().
key(link) -> {<<>>, 0};
key({lane, Class, Index}) -> {Class, Index}.
