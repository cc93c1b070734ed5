%% SPDX-License-Identifier: Apache-2.0
%% @doc The neighbours of a store: who gets changes at once, what waits for each, and what each has
%% sent too much of.
%%
%% With few neighbours all of them get changes. With many, a node picks those at distance 1, 2, 4, 8
%% ... after it in the ring of names, so that everybody is reached in a logarithmic number of steps;
%% who was picked serves the one who picked it, too (message `serve').
-module(weft_crdt_peers).

-export([new/1, up/3, down/2, nodes/1, served/1, marks/1, marked/2, picks/2, wants/3, update/3,
         find/2, spread/5, allow/3, info/1]).
-export_type([peers/0]).

%% Up to so many neighbours are served all.
-define(ALL, 8).
%% Messages of a comparison that are answered in a second.
-define(PER_SECOND, 200).

-record(peer, {
    buffer :: weft_crdt_buffer:buffer(),
    is_picked = false :: boolean(),
    has_picked = false :: boolean(),
    second = 0 :: integer(),
    heard = 0 :: non_neg_integer()}).

-record(peers, {
    self :: node(),
    known = #{} :: #{node() => #peer{}}}).

-opaque peers() :: #peers{}.

-spec new(node()) -> peers().
new(Self) -> #peers{self = Self}.

%% @doc A neighbour, and who is now picked or no longer.
-spec up(node(), Seq :: integer(), peers()) -> {peers(), [{node(), boolean()}]}.
up(Node, Seq, #peers{known = Known} = Peers) ->
    picked(Peers#peers{known = Known#{Node => #peer{buffer = weft_crdt_buffer:new(Seq)}}}).

-spec down(node(), peers()) -> {peers(), [{node(), boolean()}]}.
down(Node, #peers{known = Known} = Peers) ->
    picked(Peers#peers{known = maps:remove(Node, Known)}).

picked(#peers{self = Self, known = Known} = Peers) ->
    Picks = picks(Self, maps:keys(Known)),
    Changed = [{Node, not Before} || {Node, #peer{is_picked = Before}} <- maps:to_list(Known),
                                     lists:member(Node, Picks) =/= Before],
    {Peers#peers{known = lists:foldl(fun({Node, Is}, All) ->
                                         Peer = map_get(Node, All),
                                         All#{Node := Peer#peer{is_picked = Is}}
                                     end, Known, Changed)}, Changed}.

%% @doc Whom a node picks of its neighbours.
-spec picks(node(), [node()]) -> [node()].
picks(_, Nodes) when length(Nodes) =< ?ALL ->
    Nodes;
picks(Self, Nodes) ->
    {Before, After} = lists:partition(fun(Node) -> Node < Self end, lists:sort(Nodes)),
    Ring = list_to_tuple(After ++ Before),
    [element(Distance, Ring) || Distance <- distances(1, tuple_size(Ring))].

distances(Distance, Max) when Distance > Max -> [];
distances(Distance, Max) -> [Distance | distances(2 * Distance, Max)].

%% @doc A neighbour has picked this node, or no longer.
-spec wants(node(), boolean(), peers()) -> peers().
wants(Node, Does, Peers) ->
    changed(Node, fun(Peer) -> Peer#peer{has_picked = Does} end, Peers).

changed(Node, Fun, #peers{known = Known} = Peers) ->
    case Known of
        #{Node := Peer} -> Peers#peers{known = Known#{Node := Fun(Peer)}};
        #{} -> Peers
    end.

-spec nodes(peers()) -> [node()].
nodes(#peers{known = Known}) -> lists:sort(maps:keys(Known)).

%% @doc Who gets changes at once.
-spec served(peers()) -> [node()].
served(#peers{known = Known}) ->
    [Node || {Node, #peer{is_picked = Is, has_picked = Has}} <- maps:to_list(Known), Is orelse Has].

%% @doc Nodes as three bytes each. If two are mistaken for each other, one of them gets a change by
%% the next comparison only.
-spec marks([node()]) -> binary().
marks(Nodes) -> << <<(mark(Node)):24>> || Node <- Nodes >>.

mark(Node) -> erlang:phash2(Node, 1 bsl 24).

%% @doc The neighbours that are among them.
-spec marked(binary(), peers()) -> [node()].
marked(Marks, #peers{known = Known}) ->
    Given = [Mark || <<Mark:24>> <= Marks],
    [Node || Node <- maps:keys(Known), lists:member(mark(Node), Given)].

%% @doc The buffer of a neighbour.
-spec find(node(), peers()) -> {ok, weft_crdt_buffer:buffer()} | error.
find(Node, #peers{known = Known}) ->
    case Known of
        #{Node := #peer{buffer = Buffer}} -> {ok, Buffer};
        #{} -> error
    end.

%% @doc Changes the buffer of a neighbour, if it is one.
-spec update(node(), fun((weft_crdt_buffer:buffer()) -> weft_crdt_buffer:buffer()), peers()) ->
          peers().
update(Node, Fun, Peers) ->
    changed(Node, fun(#peer{buffer = Buffer} = Peer) -> Peer#peer{buffer = Fun(Buffer)} end, Peers).

%% @doc A delta for all that are served, except those that have it or get it from others.
-spec spread(Key :: term(), {weft_crdt_type:name(), weft_crdt_type:state()}, Except :: [node()],
             Max :: pos_integer(), peers()) -> peers().
spread(Key, {Type, Delta}, Except, Max, Peers) ->
    lists:foldl(fun(Node, P) ->
                    update(Node, fun(Buffer) ->
                                     weft_crdt_buffer:add(Key, Type, Delta, shared, Max, Buffer)
                                 end, P)
                end, Peers, served(Peers) -- Except).

%% @doc Whether a message that costs much is to be answered now; too many in a second are not.
-spec allow(node(), NowMs :: integer(), peers()) -> {boolean(), peers()}.
allow(Node, NowMs, #peers{known = Known} = Peers) ->
    Second = NowMs div 1000,
    case Known of
        #{Node := #peer{second = Second, heard = Heard}} when Heard >= ?PER_SECOND ->
            {false, Peers};
        #{Node := #peer{second = Second, heard = Heard} = Peer} ->
            {true, Peers#peers{known = Known#{Node := Peer#peer{heard = Heard + 1}}}};
        #{Node := Peer} ->
            {true, Peers#peers{known = Known#{Node := Peer#peer{second = Second, heard = 1}}}};
        #{} -> {false, Peers}
    end.

%% @doc How many keys wait for each neighbour.
-spec info(peers()) -> #{node() => non_neg_integer()}.
info(#peers{known = Known}) ->
    maps:map(fun(_, #peer{buffer = Buffer}) -> weft_crdt_buffer:count(Buffer) end, Known).
