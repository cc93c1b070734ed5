%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node tells which part of the cluster it is in, and finds other parts.
%%
%% Pure part of `weft_peer_to_peer_core'. Neighbours tell each other which part they are in (`beat',
%% see `weft_component'); now and then some other node is asked (`probe'), and becomes a neighbour
%% if it is in another part. So parts that could live side by side for ever find each other. A beat
%% also shows who takes us for a neighbour in error.
-module(weft_peer_parts).

-export([beat/2, claim/2, heard/4, probe/1, answer_probe/2, probed/3]).

-type peers() :: weft_peer_neighbours:peers().
-type peer() :: weft_passive_view:peer().

%% @doc To be called once per shuffle: we may be the root of our part, or without one.
-spec beat(NowMs :: integer(), peers()) -> peers().
beat(NowMs, Peers0) ->
    {Result, Component} = weft_component:tick(NowMs, weft_peer_neighbours:component(Peers0)),
    Peers = weft_peer_neighbours:set_component(Component, Peers0),
    case Result of
        rootless ->
            MaxMs = weft_peer_neighbours:option(shuffle_ms, Peers),
            {DelayMs, Views} = weft_peer_views:random(MaxMs, weft_peer_neighbours:views(Peers)),
            weft_peer_neighbours:emit({after_ms, DelayMs, claim},
                                      weft_peer_neighbours:set_views(Views, Peers));
        _ ->
            flood_if_beat(Result, Peers)
    end.

%% @doc If there still is no root, we are it.
-spec claim(NowMs :: integer(), peers()) -> peers().
claim(NowMs, Peers) ->
    {Result, Component} = weft_component:claim(NowMs, weft_peer_neighbours:component(Peers)),
    flood_if_beat(Result, weft_peer_neighbours:set_component(Component, Peers)).

flood_if_beat({beat, Beat}, Peers) -> weft_peer_neighbours:flood({beat, Beat}, none, Peers);
flood_if_beat(_NotRoot, Peers) -> Peers.

%% @doc A neighbour tells its part. That comes over each link in each round, so it also shows who
%% takes us for a neighbour in error.
-spec heard(weft_component:beat(), weft_core:node_id(), NowMs :: integer(), peers()) -> peers().
heard(Beat, From, NowMs, Peers) ->
    IsAsked = weft_peer_attempts:is_asked(From, weft_peer_neighbours:attempts(Peers)),
    case weft_peer_neighbours:is_active(From, Peers) of
        true -> heard(Beat, From, NowMs, weft_peer_neighbours:component(Peers), Peers);
        false when IsAsked -> Peers;
        false -> weft_peer_neighbours:part(From, [], Peers)
    end.

heard(Beat, From, NowMs, Component0, Peers) ->
    {News, Component} = weft_component:heard(Beat, NowMs, Component0),
    Heard = weft_peer_neighbours:set_component(Component, Peers),
    case News of
        news -> weft_peer_neighbours:flood({beat, Beat}, From, Heard);
        old -> Heard
    end.

%% @doc Asks somebody which part he is in. Seeds and lost nodes are the ones to know another part;
%% the passive view is a chance.
-spec probe(peers()) -> peers().
probe(Peers) ->
    Attempts = weft_peer_neighbours:attempts(Peers),
    {Coin, Views1} = weft_peer_views:random(2, weft_peer_neighbours:views(Peers)),
    Near = weft_peer_attempts:open(weft_peer_views:passive(Views1), Attempts),
    Far = lists:usort(weft_peer_neighbours:seeds(Peers) ++ weft_peer_views:lost(Views1)),
    Afar = weft_peer_attempts:open(Far -- weft_peer_views:active(Views1), Attempts),
    Pool = case Coin of
               1 when Afar =/= [] -> Afar;
               _ -> Near
           end,
    {Result, Views} = weft_peer_views:one_of(Pool, Views1),
    weft_peer_neighbours:try_chosen({Result, weft_peer_neighbours:set_views(Views, Peers)}, probe).

%% @doc Peer asks which part we are in.
-spec answer_probe(peer(), peers()) -> peers().
answer_probe({From, _} = Peer, Peers) ->
    Current = weft_component:current(weft_peer_neighbours:component(Peers)),
    weft_peer_neighbours:send(From, {probed, Current, weft_peer_neighbours:incarnation(Peers)},
                              weft_peer_neighbours:learn([Peer], Peers)).

%% @doc The answer. In another part: make a link.
-spec probed(none | weft_component:beat(), peer(), peers()) -> peers().
probed(Beat, {From, _} = Peer, Peers0) ->
    case weft_peer_attempts:get(From, weft_peer_neighbours:attempts(Peers0)) of
        {probe, _, _} ->
            Over = weft_peer_neighbours:forget_attempt(From, Peers0),
            Peers = weft_peer_neighbours:learn([Peer], Over),
            case weft_component:differs(Beat, weft_peer_neighbours:component(Peers)) of
                true -> weft_peer_neighbours:try_node(From, bridge, Peers);
                false -> weft_peer_neighbours:release(From, Peers)
            end;
        _ ->
            Peers0
    end.
