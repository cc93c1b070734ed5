%% SPDX-License-Identifier: Apache-2.0
%% @doc The faults of the demo, on either carrier: a gateway is killed, a link is cut and healed.
%% Those are picked that matter most: what the most circuits pass through.
-module(demo_faults).

-export([busiest_gateway/2, busiest_link/2, kill/2, cut/2, heal/2]).

-type link() :: {node(), node()}.

%% @doc Of these gateways the one that most circuits pass through.
-spec busiest_gateway([node()], weft_local_picture:picture()) -> node().
busiest_gateway(Gateways, #{circuits := Circuits}) ->
    Passes = fun(Gateway) ->
                     length([Hops || #{hops := Hops} <- Circuits, lists:member(Gateway, Hops)])
             end,
    busiest(Gateways, Passes).

%% @doc Of these links the one that most circuits use.
-spec busiest_link([link()], weft_local_picture:picture()) -> link().
busiest_link(Links, #{circuits := Circuits}) ->
    Used = lists:append([lists:zip(lists:droplast(Hops), tl(Hops))
                         || #{hops := [_ | _] = Hops} <- Circuits]),
    busiest(Links, fun({A, B}) ->
                           length([L || L <- Used, L =:= {A, B} orelse L =:= {B, A}])
                   end).

busiest(Candidates, Count) ->
    {_, Busiest} = lists:max([{Count(Candidate), Candidate} || Candidate <- Candidates]),
    Busiest.

%% @doc Ends the node's process at once (SIGKILL).
-spec kill(weft_local:cluster(), node()) -> ok.
kill(Cluster, Node) ->
    ok = weft_local:kill(Cluster, Node).

-spec cut(weft_local:cluster(), link()) -> ok.
cut(#{carrier := weft} = Cluster, {A, B}) -> ok = weft_local:cut(Cluster, A, B);
cut(#{carrier := stock}, Link) -> on_both(cut, Link).

-spec heal(weft_local:cluster(), link()) -> ok.
heal(#{carrier := weft} = Cluster, {A, B}) -> ok = weft_local:heal(Cluster, A, B);
heal(#{carrier := stock}, Link) -> on_both(heal, Link).

on_both(Function, {A, B}) ->
    {ok, ok} = weft_local_control:call(A, {demo_probe, Function, [B]}),
    {ok, ok} = weft_local_control:call(B, {demo_probe, Function, [A]}),
    ok.
