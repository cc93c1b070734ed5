%% SPDX-License-Identifier: Apache-2.0
%% @doc Which lanes of a node are up, and to whom they lead. Pure part of the machines with links of
%% several lanes; the lanes of a link are in the order in which they came up.
-module(weft_sim_lanes).

-export([new/1, up/2, down/2, peer/2, to/2, peers/1]).
-export_type([lanes/0]).

-record(lanes, {peers :: #{Lane :: node() => Peer :: node()},
                up = #{} :: #{Peer :: node() => [Lane :: node(), ...]}}).
-opaque lanes() :: #lanes{}.

%% @doc None is up yet.
-spec new(#{Lane :: node() => Peer :: node()}) -> lanes().
new(Peers) -> #lanes{peers = Peers}.

-spec up(Lane :: node(), lanes()) -> lanes().
up(Lane, #lanes{peers = Peers, up = Up} = Lanes) ->
    #{Lane := Peer} = Peers,
    Lanes#lanes{up = Up#{Peer => lists:delete(Lane, maps:get(Peer, Up, [])) ++ [Lane]}}.

%% @doc Of a lane that may not have been up.
-spec down(Lane :: node(), lanes()) -> lanes().
down(Lane, #lanes{peers = Peers, up = Up} = Lanes) ->
    #{Lane := Peer} = Peers,
    case lists:delete(Lane, maps:get(Peer, Up, [])) of
        [] -> Lanes#lanes{up = maps:remove(Peer, Up)};
        Left -> Lanes#lanes{up = Up#{Peer => Left}}
    end.

%% @doc The other end of a lane.
-spec peer(Lane :: node(), lanes()) -> node().
peer(Lane, #lanes{peers = Peers}) -> map_get(Lane, Peers).

%% @doc The lanes to a node that are up.
-spec to(Peer :: node(), lanes()) -> [node()].
to(Peer, #lanes{up = Up}) -> maps:get(Peer, Up, []).

%% @doc The nodes with a lane that is up, in term order.
-spec peers(lanes()) -> [node()].
peers(#lanes{up = Up}) -> lists:sort(maps:keys(Up)).
