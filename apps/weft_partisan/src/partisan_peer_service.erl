%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `partisan_peer_service' of Partisan: who belongs to the cluster. Over
%% `weft:join/1', `leave/0,1' and `members/0', on each topology.
-module(partisan_peer_service).

-export([join/1, sync_join/1, leave/0, leave/1, members/0, member/1, members_for_orchestration/0,
         update_members/1, manager/0, on_up/2, on_up/3, on_down/2, on_down/3, stop/0, stop/1,
         decode/1, forward_message/3, name/1]).
-export([connections/0, add_sup_callback/1, reserve/1, partitions/0, inject_partition/2,
         resolve_partition/1, broadcast_members/0, broadcast_members/1, exchanges/0, exchanges/1,
         cancel_exchanges/1, get_local_state/0]).

-type peer() :: node() | string() | binary() | partisan:node_spec().
-type callback() :: fun(() -> term()) | fun((node()) -> term()).

%% @doc This node joins the cluster of that node, whose name alone counts. Returns when it has
%% joined, or cannot: `{error, Text}', after ten seconds at most.
-spec join(peer()) -> ok | {error, self_join | string()}.
join(Peer) ->
    case name(Peer) of
        Self when Self =:= node() -> {error, self_join};
        Node -> weft:join(Node)
    end.

%% @doc The same as join/1.
-spec sync_join(peer()) -> ok | {error, self_join | string()}.
sync_join(Peer) -> join(Peer).

-spec leave() -> ok | {error, string()}.
leave() -> weft:leave().

%% @doc That node is gone for good: see `weft:leave/1'; an error if it is connected. Without a node
%% (`[]'): the same as leave/0.
-spec leave([] | peer()) -> ok | {error, string()}.
leave([]) -> leave();
leave(Peer) -> weft:leave(name(Peer)).

%% @doc All members that are known, this node among them.
-spec members() -> {ok, [node()]}.
members() -> {ok, lists:usort([node() | weft:members()])}.

-spec member(peer()) -> boolean().
member(Peer) ->
    {ok, Members} = members(),
    lists:member(name(Peer), Members).

-spec members_for_orchestration() -> [partisan:node_spec()].
members_for_orchestration() ->
    {ok, Members} = members(),
    [#{name => Node, listen_addrs => [], channels => #{}} || Node <- Members].

%% @doc Joins the nodes that are no members. Members that are not in the list stay: a node leaves
%% its cluster itself, or by leave/1 when it does not come back.
-spec update_members([peer()]) -> ok | {error, {not_joined, [{node(), term()}]}}.
update_members(Peers) ->
    {ok, Members} = members(),
    Results = [{Node, weft:join(Node)} || Node <- lists:usort([name(Peer) || Peer <- Peers]),
                                          not lists:member(Node, Members)],
    case [{Node, Reason} || {Node, {error, Reason}} <- Results] of
        [] -> ok;
        Failed -> {error, {not_joined, Failed}}
    end.

%% @doc A module with `myself/0' and the functions of the same names here.
-spec manager() -> module().
manager() -> partisan_peer_service_manager.

%% @doc Calls the function, in a process of its own, when that node can be reached after it could
%% not: `any' and `'_'' mean each node. The argument is its name.
-spec on_up(peer() | any | '_', callback()) -> ok.
on_up(Peer, Function) -> weft_partisan_watch:add(up, which(Peer), valid(Function)).

%% @doc The same: channels do not come and go one by one.
-spec on_up(peer() | any | '_', callback(), #{channel => atom()}) -> ok.
on_up(Peer, Function, _Options) -> on_up(Peer, Function).

%% @doc Calls the function when that node can no longer be reached.
-spec on_down(peer() | any | '_', callback()) -> ok.
on_down(Peer, Function) -> weft_partisan_watch:add(down, which(Peer), valid(Function)).

-spec on_down(peer() | any | '_', callback(), #{channel => atom()}) -> ok.
on_down(Peer, Function, _Options) -> on_down(Peer, Function).

which(any) -> '_';
which('_') -> '_';
which(Peer) -> name(Peer).

valid(Function) when is_function(Function, 0); is_function(Function, 1) -> Function;
valid(Other) -> error({bad_function, Other, "of no argument, or of the name of a node"}).

%% @doc Stops the node, as in Partisan.
-spec stop() -> ok.
stop() -> init:stop().

-spec stop(Reason :: term()) -> ok.
stop(_Reason) -> init:stop().

%% @doc Membership is a list of names here, so there is nothing to decode.
-spec decode([node()]) -> [node()].
decode(Members) -> Members.

%% @doc Of Partisan before version 4: a message to a name on a node, or to a pid.
-spec forward_message(node(), atom() | pid(), term()) -> ok | {error, term()}.
forward_message(Node, Ref, Message) -> partisan:forward_message(Node, Ref, Message, #{}).

%% @private The name in what Partisan takes for a node. Configurations and programs name nodes, so
%% an atom may be made.
-spec name(peer()) -> node().
name(#{name := Node}) when is_atom(Node) -> Node;
name(Node) when is_atom(Node) -> Node;
name(Node) when is_binary(Node) -> binary_to_atom(Node);
name([Character | _] = Node) when is_integer(Character) -> list_to_atom(Node);
name({Node, _Address, _Port}) when is_atom(Node) -> Node;
name(Other) -> error({bad_node, Other, "a name, or a map with the key name"}).

%% --- what is not there ------------------------------------------------------------------------

%% @doc Not there.
-spec connections() -> no_return().
connections() -> missing({connections, 0}, "call weft:neighbours/0 or weft:status/0").

%% @doc Not there.
-spec add_sup_callback(fun()) -> no_return().
add_sup_callback(_Function) -> missing({add_sup_callback, 1}, "call on_up/2 and on_down/2").

%% @doc Not there: a gateway is chosen by the topology.
-spec reserve(atom()) -> {error, no_available_slots}.
reserve(_Tag) -> {error, no_available_slots}.

-spec partitions() -> {error, not_implemented}.
partitions() -> {error, not_implemented}.

%% @doc Not there: `weft_chaos' breaks links.
-spec inject_partition(term(), term()) -> {error, not_implemented}.
inject_partition(_Origin, _Ttl) -> {error, not_implemented}.

-spec resolve_partition(reference()) -> {error, not_implemented}.
resolve_partition(_Reference) -> {error, not_implemented}.

%% @doc Not there.
-spec broadcast_members() -> no_return().
broadcast_members() -> missing({broadcast_members, 0}, "all members get weft's broadcasts").

%% @doc Not there.
-spec broadcast_members(timeout()) -> no_return().
broadcast_members(_TimeoutMs) -> broadcast_members().

%% @doc Not there: what a node missed of broadcasts is sent again without its doing.
-spec exchanges() -> no_return().
exchanges() -> missing({exchanges, 0}, "weft sends again what a node missed").

%% @doc Not there.
-spec exchanges(node()) -> no_return().
exchanges(_Node) -> exchanges().

%% @doc Not there.
-spec cancel_exchanges(term()) -> no_return().
cancel_exchanges(_Which) -> missing({cancel_exchanges, 1}, "weft sends again what a node missed").

%% @doc Not there.
-spec get_local_state() -> no_return().
get_local_state() -> missing({get_local_state, 0}, "call members/0").

-spec missing({atom(), arity()}, string()) -> no_return().
missing({Function, Arity}, Instead) ->
    weft_partisan_options:not_supported({?MODULE, Function, Arity}, Instead).
