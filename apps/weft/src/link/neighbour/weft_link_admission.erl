%% SPDX-License-Identifier: Apache-2.0
%% @doc May a connection go on whose peer claims a name and a purpose, and has proved nothing yet?
%% Pure; `weft_links:admit/3' asks, with what it knows of the link to that peer.
%%
%% If two nodes dial each other at once, the call of the one with the greater name is preferred: the
%% other call is refused as `simultaneous', and its dialer waits for the first one. It is refused a
%% moment after the first one is up, too. For it may have been begun before its dialer knew, and to
%% take it for a call that replaces the first one would leave neither of them: the dialer prefers
%% the first one. A peer that has lost the link so soon dials again. That both were answered before
%% either node knew of the other's call is seen when they are done (`weft_link_welcome').
%% Of two nodes with one name the one that was started later is preferred, as long as its link is
%% up; that is looked at then (`weft_link:doubt/1'), because a node may have started again with a
%% clock that was set back. A further lane is for a link that is up, and proved by the token of that
%% link.
-module(weft_link_admission).

-export([decide/3]).
-export_type([claim/0, own/0, verdict/0]).

%% So long after it came up, a call that a node made may be crossed by one of its peer.
-define(CROSSING_US, 1_000_000).

-type claim() :: #{name := binary(), incarnation := non_neg_integer(),
                   purpose := weft_hello:purpose()}.
%% The name of this node, and is the link to that peer cut by `weft_fault'?
-type own() :: #{own_name := binary(), is_cut := boolean(), now_us := integer()}.
%% What the peer has to prove that it knows, or why it may not go on.
-type verdict() :: {ok, cookie | {token, binary()}} | refused | superseded | simultaneous | no_link.

%% @doc The link is what the table of links has of it, undefined if there is none.
-spec decide(claim(), weft_link_table:published() | undefined, own()) -> verdict().
decide(#{purpose := link, incarnation := Incarnation}, #{lane := _, incarnation := Newer}, _Own)
  when Incarnation < Newer ->
    superseded;
decide(_Claim, _Link, #{is_cut := true}) ->
    refused;
decide(#{purpose := {lane, _, _}}, #{lane := _, token := Token}, _Own) ->
    {ok, {token, Token}};
decide(#{purpose := {lane, _, _}}, _DownOrNone, _Own) ->
    no_link;
decide(#{purpose := link, name := Name}, #{is_calling := true}, #{own_name := OwnName})
  when OwnName > Name ->
    simultaneous;
decide(#{purpose := link, name := Name, incarnation := Same},
       #{lane := _, incarnation := Same, dialled_us := UpUs},
       #{own_name := OwnName, now_us := NowUs})
  when OwnName > Name, NowUs - UpUs < ?CROSSING_US ->
    simultaneous;
decide(#{purpose := link}, _Link, _Own) ->
    {ok, cookie}.
