%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node and others agree on being neighbours, and which neighbour goes when
%% there is one too many. How it finds nodes to ask is in `weft_peer_search'.
%%
%% Pure part of `weft_peer_to_peer_core'. A node that wants a neighbour asks (`neighbour'), over a
%% link dialled for it if there is none. The other end agrees (`accept') or not (`decline'); either
%% may end it (`disconnect'). Links are ordered, so three rules are enough for both ends to agree in
%% the end, whatever messages cross on the way:
%% <ul>
%% <li>A question has a number, and the answer repeats it. Answers to earlier questions are
%%     ignored.</li>
%% <li>Two nodes that ask each other agree. While a question of this node is open, a `disconnect'
%%     belongs to an earlier time.</li>
%% <li>A node that takes this one for a neighbour in error (an unexpected `accept' or `beat') is
%%     told so by `disconnect'.</li>
%% </ul>
%% `weft_peer_parts' finds out which part of the cluster this is, and `weft_peer_exchange' finds
%% nearer neighbours; both are built on this module.
-module(weft_peer_neighbours).

-export([up/2, asked/4, take/3, accepted/3, swap_out/2, declined/3, attempt_timeout/3, part/3,
         parted/3, down/2, left/4, leave/1]).

-import(weft_peer_state, [active/1, is_active/2, forget_attempt/2, not_now/2, release/2, option/2,
                          learn/2, send/3, emit/2]).
-import(weft_peer_search, [try_node/3, ask/2, refill/1]).

-include("weft_peer_state.hrl").

-type peers() :: weft_peer_state:peers().

%% @doc A link came up.
-spec up(weft_core:node_id(), peers()) -> peers().
up(Node, #peers{attempts = Attempts} = Peers) ->
    ask(Node, Peers#peers{attempts = weft_peer_attempts:up(Node, Attempts)}).

%% @doc Peer asks to be a neighbour. `full': the question is about an exchange
%% (`weft_peer_exchange'), and has no answer yet.
-spec asked(Number :: pos_integer(), weft_peer_attempts:priority(), peer(), peers()) ->
          {agreed | declined | full, peers()}.
asked(Number, Priority, {From, _} = Peer, #peers{views = Views} = Peers) ->
    IsMutual = weft_peer_attempts:is_asked(From, Peers#peers.attempts),
    case weft_peer_views:is_active(From, Views) of
        true ->
            {agreed, accept(Number, From, Peers)};
        false when IsMutual; Priority =:= high; Priority =:= join ->
            {agreed, accept(Number, From, make_room(From, activate(Peer, Peers)))};
        false ->
            case {weft_peer_views:has_left(Peer, Views), weft_peer_views:is_full(Views)} of
                {false, false} -> {agreed, take(Number, Peer, Peers)};
                {false, true} when Priority =/= low -> {full, learn([Peer], Peers)};
                _ -> {declined, send(From, {decline, Number}, learn([Peer], Peers))}
            end
    end.

%% @doc The peer that asked is a neighbour now, and is told.
-spec take(Number :: pos_integer(), peer(), peers()) -> peers().
take(Number, {From, _} = Peer, Peers) ->
    accept(Number, From, activate(Peer, Peers)).

accept(Number, Node, #peers{incarnation = Incarnation} = Peers) ->
    say_beat(Node, send(Node, {accept, Number, Incarnation}, Peers)).

%% @doc Peer agrees.
-spec accepted(Number :: pos_integer(), peer(), peers()) -> peers().
accepted(Number, {From, _} = Peer, #peers{views = Views, attempts = Attempts} = Peers) ->
    IsActive = weft_peer_views:is_active(From, Views),
    case weft_peer_attempts:get(From, Attempts) of
        {Purpose, {asked, _}, Number} -> use_accepted(Purpose, Peer, Peers);
        {_, {asked, _}, _} -> Peers;
        _ when IsActive -> Peers;
        _ -> part(From, [], Peers)
    end.

%% A place that was free when the question was asked may be taken. For the new link of a join or a
%% bridge another neighbour goes.
use_accepted({swap, Gone, _}, {From, _} = Peer, Peers) ->
    make_room(From, swap_out(Gone, say_beat(From, activate(Peer, Peers))));
use_accepted(Purpose, {From, _} = Peer, #peers{views = Views} = Peers) ->
    case weft_peer_views:is_full(Views) of
        true when Purpose =/= walk, Purpose =/= bridge ->
            release(From, part(From, [], learn([Peer], forget_attempt(From, Peers))));
        _ ->
            make_room(From, say_beat(From, activate(Peer, Peers)))
    end.

%% @doc Another node has the place of this neighbour now.
-spec swap_out(weft_core:node_id(), peers()) -> peers().
swap_out(Gone, Peers) ->
    case is_active(Gone, Peers) of
        true -> release(Gone, not_now(Gone, part(Gone, [], step_back(Gone, Peers))));
        false -> Peers
    end.

%% @doc The node that was asked does not agree.
-spec declined(Number :: pos_integer(), weft_core:node_id(), peers()) -> peers().
declined(Number, From, #peers{attempts = Attempts} = Peers) ->
    case weft_peer_attempts:get(From, Attempts) of
        {_, {asked, _}, Number} ->
            refill(release(From, forget_attempt(From, not_now(From, Peers))));
        _ -> Peers
    end.

%% @doc An attempt took too long. The node that was asked may still agree, so it is told that this
%% is over.
-spec attempt_timeout(weft_core:node_id(), Number :: pos_integer(), peers()) -> peers().
attempt_timeout(Node, Number, #peers{attempts = Attempts} = Peers) ->
    case weft_peer_attempts:get(Node, Attempts) of
        {_, {asked, _}, Number} ->
            Over = part(Node, [], forget_attempt(Node, not_now(Node, Peers))),
            refill(release(Node, Over));
        {_, dialling, Number} ->
            unreachable(Node, Peers);
        _ ->
            Peers
    end.

unreachable(Node, #peers{views = Views} = Peers) ->
    Failed = Peers#peers{views = weft_peer_views:failed(Node, Views)},
    refill(release(Node, forget_attempt(Node, Failed))).

activate({Node, _Incarnation} = Peer, #peers{views = Views} = Peers) ->
    Added = forget_attempt(Node, Peers#peers{views = weft_peer_views:add(Peer, Views),
                                             retry_ms = option(retry_min_ms, Peers)}),
    emit({neighbour, Node, true}, emit({connect, Node}, Added)).

%% No longer a neighbour, but alive.
step_back(Node, #peers{views = Views} = Peers) ->
    emit({neighbour, Node, false}, Peers#peers{views = weft_peer_views:part(Node, Views)}).

%% One neighbour too many: one other than Keep goes, and gets names to find another.
make_room(Keep, #peers{views = Views0} = Peers) ->
    case weft_peer_views:is_over(Views0) of
        true ->
            {{ok, Node}, Views1} = weft_peer_views:one_active([Keep], Views0),
            {Names, Views} = weft_peer_views:some(Node, Views1),
            Parted = part(Node, Names, step_back(Node, Peers#peers{views = Views})),
            release(Node, not_now(Node, Parted));
        false ->
            Peers
    end.

%% @doc Tells the node that it is no neighbour any more.
-spec part(weft_core:node_id(), [peer()], peers()) -> peers().
part(Node, Names, Peers) ->
    send(Node, {disconnect, Names}, Peers).

%% @doc The node is no longer a neighbour, and names some others to replace it. If this node waits
%% for its answer, that is still to come: the message belongs to an earlier time.
-spec parted(weft_core:node_id(), [peer()], peers()) -> peers().
parted(From, Names, Peers0) ->
    #peers{views = Views} = Peers = learn(Names, Peers0),
    case weft_peer_views:is_active(From, Views) of
        true -> refill(release(From, not_now(From, step_back(From, Peers))));
        false -> Peers
    end.

%% @doc A link went down, or could not be brought up.
-spec down(weft_core:node_id(), peers()) -> peers().
down(Node, #peers{views = Views, attempts = Attempts} = Peers0) ->
    Peers = Peers0#peers{attempts = weft_peer_attempts:down(Node, Attempts)},
    case weft_peer_views:is_active(Node, Views) of
        true ->
            %% A link that only failed for a moment is the best replacement of itself.
            refill(try_node(Node, refill, step_back(Node, Peers)));
        false ->
            case weft_peer_attempts:get(Node, Attempts) of
                none -> Peers;
                _Failed -> unreachable(Node, Peers)
            end
    end.

%% @doc A node has left in this incarnation. `known' if that is no news.
-spec left(weft_core:node_id(), Incarnation :: non_neg_integer(), NowMs :: integer(), peers()) ->
          {new | known, peers()}.
left(Node, Incarnation, NowMs, #peers{views = Views0} = Peers) ->
    {News, Views} = weft_peer_views:left(Node, Incarnation, NowMs, Views0),
    case weft_peer_views:is_active(Node, Views) of
        true when News =:= new ->
            Removed = Peers#peers{views = weft_peer_views:remove(Node, Views)},
            {new, refill(release(Node, emit({neighbour, Node, false}, Removed)))};
        _ ->
            {News, Peers#peers{views = Views}}
    end.

%% @doc Parts with all neighbours without a message, asks no node any more, and needs no link.
-spec leave(peers()) -> peers().
leave(#peers{self = Self, attempts = Attempts} = Peers) ->
    Alone = lists:foldl(fun step_back/2, emit({view, {member, Self}, delete}, Peers),
                        active(Peers)),
    lists:foldl(fun weft_peer_state:release/2, Alone#peers{attempts = weft_peer_attempts:new(),
                                           exchange = weft_peer_exchange_state:new()},
                weft_peer_attempts:links(Attempts)).

say_beat(Node, #peers{component = Component} = Peers) ->
    case weft_peer_component:current(Component) of
        none -> Peers;
        Beat -> send(Node, {beat, Beat}, Peers)
    end.
