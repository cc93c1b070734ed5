%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults on the links of this node, for tests and drills; off unless the key `faults' is true.
%% Those that are there when it is switched off again can still be ended.
%%
%% ```
%% cut          the link is closed and refused in both directions, until healed
%% cut_one_way  nothing more leaves for the node; what it sends still arrives, until it notices
%% delay        each packet to the node is late by a random time
%% loss         that share of the packets to the node is late by `repeat_ms/0'
%% '''
%% Loss is what TCP makes of it. TCP repeats a lost packet after its timeout, at least 200 ms on
%% Linux (RFC 6298 has a second), and later packets in that connection wait for it. Nothing is
%% dropped here.
%%
%% No module below knows this one. Links and lanes do what `weft_fault_table' says. A fault applies
%% at once, also to the lanes that are up: their writers are told (`weft_lane_writer').
-module(weft_fault).

-export([cut/1, cut_one_way/1, delay/3, loss/2, break/1, heal/2, heal/1, heal/0]).
-export([cuts/0, is_cut/1, lateness/1]).
-export_type([kind/0]).

-type kind() :: weft_fault_table:kind().

-define(KINDS, [cut, cut_one_way, delay, loss]).

%% @doc Closes the link to Node and refuses a new one until healed.
-spec cut(node()) -> ok | {error, disabled}.
cut(Node) ->
    set(cut, Node, true, fun() -> weft_links:break(Node) end).

%% @doc Holds back all that is sent to Node until healed, and refuses a new link, which would need
%% answers. Node itself has to notice by its keepalive.
-spec cut_one_way(node()) -> ok | {error, disabled}.
cut_one_way(Node) ->
    set(cut_one_way, Node, true, fun() -> tell(Node) end).

%% @doc Each packet to Node is late by a random time of MinMs to MaxMs. They keep their order.
-spec delay(node(), non_neg_integer(), non_neg_integer()) -> ok | {error, disabled}.
delay(Node, MinMs, MaxMs) when MinMs =< MaxMs ->
    set(delay, Node, {MinMs, MaxMs}, fun() -> tell(Node) end).

%% @doc Percent of the packets to Node are late as if TCP had to repeat them.
-spec loss(node(), Percent :: number()) -> ok | {error, disabled}.
loss(Node, Percent) when Percent >= 0, Percent =< 100 ->
    set(loss, Node, Percent, fun() -> tell(Node) end).

%% @doc Closes every connection of the link to Node once; the link may come back at once.
-spec break(node()) -> ok | {error, disabled}.
break(Node) ->
    if_enabled(fun() -> weft_links:break(Node) end).

%% @doc Ends the faults of one kind on the link to Node, and no other.
-spec heal(node(), kind()) -> ok | {error, disabled}.
heal(Node, Kind) ->
    ended([Kind], [Node]).

%% @doc Ends all faults of the link to Node.
-spec heal(node()) -> ok | {error, disabled}.
heal(Node) ->
    ended(?KINDS, [Node]).

%% @doc Ends all faults of this node.
-spec heal() -> ok | {error, disabled}.
heal() ->
    ended(?KINDS, weft_fault_table:nodes(?KINDS)).

%% @doc The nodes whose links are cut, in one direction or both.
-spec cuts() -> [node()].
cuts() ->
    weft_fault_table:nodes([cut, cut_one_way]).

-spec is_cut(node()) -> boolean().
is_cut(Node) -> weft_fault_table:is_cut(Node).

%% @doc What packets to Node have to wait for now.
-spec lateness(node()) -> weft_lane_writer:lateness().
lateness(Node) -> weft_fault_table:lateness(Node).

set(Kind, Node, Value, Then) ->
    if_enabled(fun() -> ok = weft_fault_table:put(Kind, Node, Value), Then() end).

ended(Kinds, Nodes) ->
    AreThere = [Node || Node <- weft_fault_table:nodes(Kinds), lists:member(Node, Nodes)] =/= [],
    case AreThere orelse weft_config:get(faults) of
        true -> lists:foreach(fun(Node) -> end_faults(Kinds, Node) end, Nodes);
        false -> {error, disabled}
    end.

end_faults(Kinds, Node) ->
    _ = [weft_fault_table:erase(Kind, Node) || Kind <- Kinds],
    tell(Node),
    weft_links:retry(Node).

tell(Node) ->
    case weft_links:lookup(Node) of
        {ok, Link} -> weft_lane_writer:look_again(Link);
        error -> ok
    end.

if_enabled(Change) ->
    case weft_config:get(faults) of
        true -> _ = Change(), ok;
        false -> {error, disabled}
    end.
