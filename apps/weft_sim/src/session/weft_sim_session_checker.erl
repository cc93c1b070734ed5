%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: a session delivers each frame once, those of one sender in the order sent and
%% signals without sender in their place, and nothing of another session, at any time. No end takes
%% the other one for dead or gives the session up, unless that incarnation of the other one is over;
%% then the session ends as soon as the link that hosts it, and was with that one, reaches the next
%% incarnation. A link that never was, as the session has gone over gateways, has nothing to compare
%% with: there it ends when the next incarnation is asked for it. No end goes on with another
%% incarnation than it began with. Once settled, all ends have one session each, the same with the
%% present incarnation of the other, in which all that was sent has arrived.
%%
%% Option: `ends', the pairs of nodes with a session.
-module(weft_sim_session_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2]).

%% @doc An end itself notices a frame that is not the next one of its sender, and that it goes on
%% with another incarnation of its peer.
-spec view_changed(node(), term(), term(), weft_sim_world:world(),
                   #{ends := [{node(), node()}], atom() => term()}) ->
          weft_sim_checker:verdict().
view_changed(Node, disorder, What, _World, _Options) ->
    {violation, io_lib:format("~s got what must not come: ~0p", [Node, What])};
view_changed(Node, ended, {Id, Why, Incarnation}, World, #{ends := Ends}) ->
    [Peer] = [Peer || {A, B} <- Ends, {One, Peer} <- [{A, B}, {B, A}], One =:= Node],
    IsOver = weft_sim_session_core:incarnation(Peer, World) =/= Incarnation,
    case is_right(Why, IsOver) orelse weft_sim_session_core:gave_up(Peer, Id, World) of
        true -> ok;
        false when IsOver -> {violation, io_lib:format("~s ends its session with a peer that was "
                                                       "dead for the reason ~0p", [Node, Why])};
        false -> {violation, io_lib:format("~s ends its session with a living peer: ~0p",
                                           [Node, Why])}
    end;
view_changed(Node, reached, #{before := Earlier, now := Now}, World, _Options)
  when is_integer(Earlier), Earlier =/= Now ->
    case weft_sim_session_core:info_of(Node, World) of
        #{incarnations := {_, Earlier}, host := Host} when Host =/= own_process ->
            {violation, io_lib:format("~s keeps its session with an earlier incarnation", [Node])};
        #{} ->
            ok
    end;
view_changed(_Node, _Key, _Value, _World, _Options) ->
    ok.

%% The peer is known to be gone, or has connected anew.
is_right(Why, IsOver) ->
    IsOver andalso lists:member(Why, [gone, died, departed, ended, replaced]).

%% @doc Compares what the senders of one end sent with what the other delivered, both ways.
-spec settled(weft_sim_world:world(), #{ends := [{node(), node()}]}) ->
          weft_sim_checker:verdict().
settled(World, #{ends := Ends}) ->
    case [Wrong || {A, B} <- Ends, {From, To} <- [{A, B}, {B, A}],
                   Wrong <- differences({From, weft_sim_session_core:info_of(From, World)},
                                        {To, weft_sim_session_core:info_of(To, World)})] of
        [] -> ok;
        All -> {violation, io_lib:format("~0tp", [All])}
    end.

differences({From, #{id := Id, incarnations := {Own, Other}, sent := Sent, sessions := 1}},
            {To, #{id := Id, incarnations := {Other, Own}, arrived := Arrived}}) ->
    [{sent_and_delivered_differ, From, To, Sent, Arrived} || Sent =/= Arrived];
differences({From, One}, {To, Other}) ->
    [{sessions_differ, [{Node, maps:with([id, incarnations, sessions], Info)}
                        || {Node, Info} <- [{From, One}, {To, Other}]]}].
