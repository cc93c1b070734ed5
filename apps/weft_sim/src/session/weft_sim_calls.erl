%% SPDX-License-Identifier: Apache-2.0
%% @doc The connections of a simulated node on which it is not known yet who is at the other end.
%% The counterpart of `weft_handshake', and of what `weft_link_dial' does for a link.
%%
%% Of two nodes the one with the smaller name calls, so that calls do not cross. It brings up one
%% lane of a link at a time: the first one with the cookie, further ones (`weft_lane_plan') with the
%% token of the link. Other connections to the same node wait. The other end answers as
%% `weft_link_admission' says. What is exchanged is that of `weft_handshake_core'.
-module(weft_sim_calls).

-export([new/2, is_open/2, connected/4, heard/4, lost/3, next/3]).
-export_type([calls/0, lane/0]).

-define(COOKIE, <<"cookie">>).
%% More than any link here has.
-define(LANES, 63).

-type lane() :: {Lane :: node(), Time :: pos_integer()}.
-type sent() :: {Lane :: node(), Message :: binary()}.
-record(calls, {own :: binary(),
                incarnation :: non_neg_integer(),
                open = #{} :: #{Lane :: node() => {lane(), Peer :: node(),
                                                   waiting | listening
                                                   | weft_handshake_core:state()}}}).
-opaque calls() :: #calls{}.

%% @doc Of a node with that name, in that incarnation.
-spec new(Own :: binary(), Incarnation :: non_neg_integer()) -> calls().
new(Own, Incarnation) -> #calls{own = Own, incarnation = Incarnation}.

%% @doc Is that a connection on which the peer has not proved yet who it is?
-spec is_open(Lane :: node(), calls()) -> boolean().
is_open(Lane, #calls{open = Open}) -> is_map_key(Lane, Open).

%% @doc There is a connection to Peer, with which this node has that link.
-spec connected(lane(), Peer :: node(), weft_link_welcome:link(), calls()) -> {[sent()], calls()}.
connected({Lane, _} = Time, Peer, Link, #calls{own = Own, open = Open} = Calls) ->
    Begins = case Own < atom_to_binary(Peer) of true -> waiting; false -> listening end,
    next(Peer, Link, Calls#calls{open = Open#{Lane => {Time, Peer, Begins}}}).

%% @doc This node calls again by one of the connections to Peer that wait, unless it does already.
-spec next(Peer :: node(), weft_link_welcome:link(), calls()) -> {[sent()], calls()}.
next(Peer, Link, #calls{open = Open} = Calls) ->
    ToPeer = lists:sort([{At, Time} || {Time, To, At} <- maps:values(Open), To =:= Peer]),
    case [Time || {waiting, Time} <- ToPeer] of
        [{Lane, _} = Time | _] = Waiting when length(Waiting) =:= length(ToPeer) ->
            {Purpose, Key} = purpose(Link),
            {[Hello], {more, At}} = weft_handshake_core:dial(atom_to_binary(Peer), Purpose, Key,
                                                             own(Time, Calls)),
            {[{Lane, Hello}], Calls#calls{open = Open#{Lane := {Time, Peer, At}}}};
        _CallsOrListens ->
            {[], Calls}
    end.

purpose(#{lanes := []}) ->
    {link, ?COOKIE};
purpose(#{lanes := Lanes, peer := #{token := Token}}) ->
    {weft_lane_plan:missing(dialer, [Key || {_, Key, _} <- Lanes], ?LANES, []), Token}.

%% What an incarnation has sent before its end is no proof later, because a nonce of this lane is in
%% it.
own({Lane, Time}, #calls{own = Own, incarnation = Incarnation}) ->
    #{name => Own, incarnation => Incarnation, listens => true, cluster => <<"sim">>,
      nonce => <<(erlang:phash2({Own, Incarnation, Lane, Time})):256>>}.

%% @doc The next message came on a connection: what is sent, and what becomes of it.
-spec heard(Lane :: node(), Raw :: binary(), weft_link_welcome:link(), calls()) ->
          {[sent()], more | failed | {done, weft_handshake_core:facts(), weft_hello:purpose()},
           calls()}.
heard(Lane, Raw, Link, #calls{open = Open} = Calls) ->
    #{Lane := {Time, Peer, At}} = Open,
    {Messages, Next} = heard(Raw, At, atom_to_binary(Peer), own(Time, Calls), Link),
    Sent = [{Lane, Message} || Message <- Messages],
    Left = Calls#calls{open = maps:remove(Lane, Open)},
    case Next of
        {more, Then} -> {Sent, more, Calls#calls{open = Open#{Lane := {Time, Peer, Then}}}};
        {done, Facts, Purpose} -> {Sent, {done, Facts, Purpose}, Left};
        {failed, _Reason} -> {Sent, failed, Left}
    end.

%% Each connection is known to lead to one peer.
heard(Hello, listening, Peer, Own, Link) ->
    case weft_handshake_core:hello(Hello, Own) of
        {[], {admit, {Peer, Incarnation, Purpose}, Asking}} ->
            Claim = #{name => Peer, incarnation => Incarnation, purpose => Purpose},
            weft_handshake_core:admitted(admitted(Claim, Link), Asking);
        {[], {admit, _, Asking}} ->
            weft_handshake_core:admitted({refused, <<>>}, Asking);
        Refused ->
            Refused
    end;
heard(Message, At, _Peer, _Own, _Link) ->
    weft_handshake_core:message(Message, At).

admitted(Claim, #{own_name := Own, is_cut := IsCut} = Link) ->
    case weft_link_admission:decide(Claim, published(Link),
                                    #{own_name => Own, is_cut => IsCut, now_us => 0}) of
        {ok, cookie} -> {ok, ?COOKIE};
        {ok, {token, Token}} -> {ok, Token};
        Status -> {Status, <<>>}
    end.

%% As in the table of links. Who is called calls nobody.
published(#{lanes := Lanes, peer := Peer, up_us := UpUs}) ->
    Up = case Lanes of [] -> #{}; [{Lane, _, _} | _] -> #{lane => Lane} end,
    maps:merge(Up#{is_calling => false}, weft_link_peer:published(Peer, UpUs)).

%% @doc A connection is lost on which the peer has proved nothing yet.
-spec lost(Lane :: node(), weft_link_welcome:link(), calls()) -> {[sent()], calls()}.
lost(Lane, Link, #calls{open = Open} = Calls) ->
    {{_, Peer, _}, Left} = maps:take(Lane, Open),
    next(Peer, Link, Calls#calls{open = Left}).
