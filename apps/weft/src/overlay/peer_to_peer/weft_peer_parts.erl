%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node finds out which part of the cluster it is in, and finds other parts.
%%
%% Pure part of `weft_peer_to_peer_core'. Neighbours tell each other which part they are in (`beat',
%% see `weft_peer_component'). Now and then another node is asked (`probe'), and becomes a neighbour
%% if it is in another part. So parts that could live side by side for ever find each other. A beat
%% also reveals a node that takes this one for a neighbour in error.
-module(weft_peer_parts).

-export([beat/2, claim/2, heard/4, probe/1, answer_probe/2, probed/3]).

-type peers() :: weft_peer_state:peers().
-type peer() :: weft_passive_view:peer().

%% @doc To be called once in each shuffle interval: this node may be the root of its part, or
%% without one.
-spec beat(NowMs :: integer(), peers()) -> peers().
beat(NowMs, Peers0) ->
    {Result, Component} = weft_peer_component:tick(NowMs, weft_peer_state:component(Peers0)),
    Peers = weft_peer_state:set_component(Component, Peers0),
    case Result of
        rootless ->
            MaxMs = weft_peer_state:option(shuffle_ms, Peers),
            {DelayMs, Views} = weft_peer_views:random(MaxMs, weft_peer_state:views(Peers)),
            weft_peer_state:emit({after_ms, DelayMs, claim},
                                      weft_peer_state:set_views(Views, Peers));
        _ ->
            flood_if_beat(Result, Peers)
    end.

%% @doc If there still is no root, this node becomes it.
-spec claim(NowMs :: integer(), peers()) -> peers().
claim(NowMs, Peers) ->
    {Result, Component} = weft_peer_component:claim(NowMs, weft_peer_state:component(Peers)),
    flood_if_beat(Result, weft_peer_state:set_component(Component, Peers)).

flood_if_beat({beat, Beat}, Peers) -> weft_peer_state:flood({beat, Beat}, none, Peers);
flood_if_beat(_NotRoot, Peers) -> Peers.

%% @doc A neighbour tells its part. A beat comes over each link in each round, so it also reveals a
%% node that takes this one for a neighbour in error.
-spec heard(weft_peer_component:beat(), weft_core:node_id(), NowMs :: integer(), peers()) ->
          peers().
heard(Beat, From, NowMs, Peers) ->
    IsAsked = weft_peer_attempts:is_asked(From, weft_peer_state:attempts(Peers)),
    case weft_peer_state:is_active(From, Peers) of
        true -> heard(Beat, From, NowMs, weft_peer_state:component(Peers), Peers);
        false when IsAsked -> Peers;
        false -> weft_peer_neighbours:part(From, [], Peers)
    end.

heard(Beat, From, NowMs, Component0, Peers) ->
    {News, Component} = weft_peer_component:heard(Beat, NowMs, Component0),
    Heard = weft_peer_state:set_component(Component, Peers),
    case News of
        news -> weft_peer_state:flood({beat, Beat}, From, Heard);
        old -> Heard
    end.

%% @doc Asks a node which part it is in. Seeds and lost nodes are likely to know another part; a
%% node of the passive view may. In a small part there may be none of the latter.
-spec probe(peers()) -> peers().
probe(Peers) ->
    Attempts = weft_peer_state:attempts(Peers),
    {Coin, Views1} = weft_peer_views:random(2, weft_peer_state:views(Peers)),
    Near = weft_peer_attempts:open(weft_peer_views:passive(Views1), Attempts),
    Far = lists:usort(weft_peer_state:seeds(Peers) ++ weft_peer_views:lost(Views1)),
    Afar = weft_peer_attempts:open(Far -- weft_peer_views:active(Views1), Attempts),
    Pool = case {Near, Afar} of
               {[], _} -> Afar;
               {_, [_ | _]} when Coin =:= 1 -> Afar;
               _ -> Near
           end,
    {Result, Views} = weft_peer_views:one_of(Pool, Views1),
    weft_peer_search:try_chosen({Result, weft_peer_state:set_views(Views, Peers)}, probe).

%% @doc Peer asks which part this node is in.
-spec answer_probe(peer(), peers()) -> peers().
answer_probe({From, _} = Peer, Peers) ->
    Current = weft_peer_component:current(weft_peer_state:component(Peers)),
    weft_peer_state:send(From, {probed, Current, weft_peer_state:incarnation(Peers)},
                              weft_peer_state:learn([Peer], Peers)).

%% @doc The answer. If the node is in another part, makes a link.
-spec probed(none | weft_peer_component:beat(), peer(), peers()) -> peers().
probed(Beat, {From, _} = Peer, Peers0) ->
    case weft_peer_attempts:get(From, weft_peer_state:attempts(Peers0)) of
        {probe, _, _} ->
            Over = weft_peer_state:forget_attempt(From, Peers0),
            Peers = weft_peer_state:learn([Peer], Over),
            case weft_peer_component:differs(Beat, weft_peer_state:component(Peers)) of
                true -> weft_peer_search:try_node(From, bridge, Peers);
                false -> weft_peer_state:release(From, Peers)
            end;
        _ ->
            Peers0
    end.
