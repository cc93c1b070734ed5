%% SPDX-License-Identifier: Apache-2.0
%% @doc What a link concludes about the node of its peer when lanes are lost, when attempts to dial
%% fail, and when a lane comes: has the node ended, or can it only not be reached? Pure.
%%
%% That a link is down proves nothing. A node has
%% <ul>
%% <li>`restarted' if another incarnation of it answers;</li>
%% <li>`died' if twice epmd does not know its name and its port refuses, or, where no port of it is
%% known, epmd has not known it for some time (`weft_link_dial:is_gone/1');</li>
%% <li>`departed' if it cannot be dialled, its host has closed the link, and it does not come
%% back. A node that lives on comes back at once, so until then it `may_have_departed'. A node whose
%% name cannot be resolved here, whose host cannot be reached, or of which no port is known, cannot
%% be dialled either.</li>
%% </ul>
%% A peer is `undefined' before the first lane, and once attempts to dial have shown that it died.
-module(weft_link_peer).

-export([can_be_dialled/2, published/2, met/3, lost/2, not_dialled/4, not_returned/2]).

-type peer() :: weft_handshake:peer() | undefined.

-spec can_be_dialled(weft_links:key(), peer()) -> boolean().
can_be_dialled({anonymous, _}, _Peer) -> false;
can_be_dialled(_Node, #{listens := false}) -> false;
can_be_dialled(_Node, _Peer) -> true.

%% @doc What all processes of this node may know about it: further lanes are proved by the token.
%% And when the link came up, if this node had dialled it: a call of the peer may cross that one.
-spec published(peer(), UpUs :: integer()) ->
          #{token => binary(), incarnation => non_neg_integer(), dialled_us => integer()}.
published(undefined, _UpUs) -> #{};
published(#{role := dialer} = Peer, UpUs) ->
    (maps:with([token, incarnation], Peer))#{dialled_us => UpUs};
published(Peer, _UpUs) ->
    maps:with([token, incarnation], Peer).

%% @doc A lane comes from New: that incarnation answers now. While the link is up the node that was
%% started later is preferred, as in `weft_link_admission': the other one may have ended while its
%% lane was authenticated.
-spec met(New :: #{incarnation := non_neg_integer(), atom() => term()},
          #{incarnation := non_neg_integer(), atom() => term()} | undefined, IsUp :: boolean()) ->
          nothing | {restarted, Now :: non_neg_integer()} | superseded.
met(#{incarnation := New}, #{incarnation := Other}, true) when New < Other -> superseded;
met(#{incarnation := New}, #{incarnation := Other}, _IsUp) when New =/= Other -> {restarted, New};
met(_New, _Peer, _IsUp) -> nothing.

%% @doc The last lane was lost, for that reason.
-spec lost(LostBy :: term(), peer()) -> nothing | may_have_departed.
lost(LostBy, #{listens := false}) -> closed_by_host(LostBy);
lost(_LostBy, _Peer) -> nothing.

%% @doc An attempt to dial failed, after what was wrong before. IsGone: see above.
-spec not_dialled(Reason :: term(), Before :: term(), IsGone :: boolean(), peer()) ->
          nothing | may_have_departed | died.
not_dialled(Reason, Before, _IsGone, _Peer)
  when Reason =:= nxdomain; Reason =:= no_epmd; Reason =:= no_port ->
    closed_by_host(Before);
not_dialled(_Reason, _Before, true, #{}) -> died;
not_dialled(_Reason, _Before, _IsGone, _Peer) -> nothing.

%% The host closes the lane also if a node that lives on has closed it, but then the node comes
%% back.
closed_by_host(LostBy) when LostBy =:= closed; LostBy =:= econnreset -> may_have_departed;
closed_by_host(_LostBy) -> nothing.

%% @doc There was time to come back for one that may have departed, and since then no lane has come
%% and gone.
-spec not_returned(IsUp :: boolean(), peer()) -> nothing | departed.
not_returned(false, #{}) -> departed;
not_returned(_IsUp, _Peer) -> nothing.
