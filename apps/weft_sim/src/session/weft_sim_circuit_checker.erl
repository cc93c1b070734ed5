%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, the nodes know the labels of the circuit that the session uses, and
%% no others. Each end knows one, and the gateway that the circuit passes, if any, one on each side.
%%
%% Options: `ends', the source and the target; `gateways'.
-module(weft_sim_circuit_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the labels known with those of the path of the source.
-spec settled(weft_sim_world:world(), #{ends := {node(), node()}, gateways := [node()]}) ->
          weft_sim_checker:verdict().
settled(World, #{ends := {Source, Target}, gateways := Gateways}) ->
    #{link := Via, labels := OfSource} = weft_sim_session_core:info_of(Source, World),
    #{labels := OfTarget} = weft_sim_session_core:info_of(Target, World),
    Known = [{Source, OfSource, 1}, {Target, OfTarget, 1}
             | [{Gateway, weft_sim_gateway_core:labels(Gateway, World),
                 case Gateway of Via -> 2; _ -> 0 end}
                || Gateway <- Gateways]],
    case [Wrong || {_Node, Labels, Expected} = Wrong <- Known, Labels =/= Expected] of
        [] -> ok;
        Wrong -> {violation, io_lib:format("labels (node, known, of the path): ~0p", [Wrong])}
    end.
