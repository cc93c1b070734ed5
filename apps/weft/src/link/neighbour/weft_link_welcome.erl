%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection to the peer of a link was authenticated: is it welcome as a lane, and what has
%% to go before it is one? Pure.
%%
%% If another incarnation of the node answers, the former one is over (`weft_link_peer'), and with
%% it all lanes. On a link that is cut (`weft_fault') nothing comes up. A link that is up is not
%% taken away by an earlier start of the node. A peer that dials the link again has given up all
%% connections that are still open here, so the new lane replaces all. A further lane is welcome on
%% the link that it was authenticated for, while that is up. It replaces the lane with its key that
%% was brought up by the same side.
%%
%% Two calls may have crossed so that both were answered, which `weft_link_admission' cannot see.
%% Both ends keep the one of the node with the greater name, whichever is done first.
%%
%% Lanes are opaque here: `weft_link' carries out on sockets what is decided, the simulator on
%% simulated lanes.
-module(weft_link_welcome).

-export([met/3, peer/3, has_room/1, key/1]).
-export_type([link/0, peer/0, welcome/0]).

%% Lanes of one link, those of channels included.
-define(LANES_MAX, 256).

-type lane() :: term().
%% The name of this node, and what the link has: its lanes, with the role in which this side brought
%% each up, and the peer at the other end of the first one, which came at that time.
-type link() :: #{own_name := binary(), is_cut := boolean(),
                  lanes := [{lane(), weft_lane:key(), dialer | listener}],
                  peer := peer() | undefined, up_us := integer()}.
%% That of `weft_handshake:peer()' that counts here. A simulated one has no time at which it began.
-type peer() :: #{name := binary(), incarnation := non_neg_integer(), role := dialer | listener,
                  token := binary(), proven_with := binary(), begun_us => integer(),
                  atom() => term()}.
%% What goes down, for that reason, before the lane comes up.
-type welcome() :: refused
                 | {welcome, nothing | {link_down, weft_link_handler:down_reason()}
                                     | {lane_down, lane()}}.

%% @doc What the connection says about the node of the peer: if that has `restarted' the link goes
%% down, for this reason. Then, whether the connection becomes a lane.
-spec met(weft_hello:purpose(), peer(), link()) ->
          {nothing | {restarted, Now :: non_neg_integer()} | superseded, welcome()}.
met(Purpose, New, #{peer := Before} = Link) ->
    case weft_link_peer:met(New, Before, is_up(Link)) of
        {restarted, _Now} = Restarted ->
            {Restarted, decide(Purpose, New, Link#{lanes := [], peer := undefined})};
        NothingOrSuperseded ->
            {NothingOrSuperseded, decide(Purpose, New, Link)}
    end.

decide(_Purpose, _New, #{is_cut := true}) ->
    refused;
decide(link, New, #{peer := Peer} = Link) ->
    IsUp = is_up(Link),
    IsRefused = weft_link_peer:met(New, Peer, IsUp) =:= superseded
        orelse is_lost_crossing(New, Link),
    case {IsUp, IsRefused} of
        {false, _} -> {welcome, nothing};
        {true, true} -> refused;
        {true, false} -> {welcome, {link_down, broken}}
    end;
decide({lane, _, _} = Purpose, #{role := Role} = New, #{lanes := Lanes} = Link) ->
    case is_up(Link) andalso is_of_this_link(New, Link) andalso has_room(length(Lanes)) of
        true -> {welcome, replaced(key(Purpose), Role, Lanes)};
        false -> refused
    end.

is_up(#{lanes := Lanes}) -> Lanes =/= [].

is_lost_crossing(#{role := Role, begun_us := BegunUs, name := Name},
                 #{peer := #{role := Other}, up_us := UpUs, own_name := OwnName})
  when Role =/= Other, BegunUs < UpUs ->
    (Role =:= dialer) =/= (OwnName > Name);
is_lost_crossing(_New, _Link) ->
    false.

%% The link may have been made anew while this lane was authenticated.
is_of_this_link(#{proven_with := Token}, #{peer := #{token := Token}}) -> true;
is_of_this_link(_New, _Link) -> false.

replaced(Key, Role, Lanes) ->
    case {[Lane || {Lane, K, R} <- Lanes, K =:= Key, R =:= Role], Lanes} of
        {[], _} -> nothing;
        {[_Only], [_]} -> {link_down, broken};
        {[Lane], _} -> {lane_down, Lane}
    end.

%% @doc The peer of the link once that lane is up, and before: that of the first lane.
-spec peer(weft_hello:purpose(), New :: peer(), Before :: peer() | undefined) -> peer().
peer(link, New, _Before) -> New;
peer({lane, _, _}, _New, Before) -> Before.

%% @doc May a link that has so many lanes have another one?
-spec has_room(Lanes :: non_neg_integer()) -> boolean().
has_room(Lanes) -> Lanes < ?LANES_MAX.

%% @doc The key of a lane that was brought up for that purpose.
-spec key(weft_hello:purpose()) -> weft_lane:key().
key(link) -> {<<>>, 0};
key({lane, Class, Index}) -> {Class, Index}.
