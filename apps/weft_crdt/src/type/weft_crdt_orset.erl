%% SPDX-License-Identifier: Apache-2.0
%% @doc A set of which a concurrent `add' wins over `remove' (observed-remove, without tombstones).
%% A `remove' undoes those adds that it has seen. Operations: `{add, E}', `{remove, E}', `{add_all,
%% List}', `{remove_all, List}'. Value: the elements, in term order.
-module(weft_crdt_orset).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).
-export([change/3, show/1, is_payload/1]).

%% @private
new() -> weft_crdt_dots:new().

%% @private
mutate({add, Element}, Who, State) -> mutate({add_all, [Element]}, Who, State);
mutate({remove, Element}, Who, State) -> mutate({remove_all, [Element]}, Who, State);
mutate({add_all, Elements}, {Actor, _}, State) when length(Elements) >= 0 ->
    Added = maps:keys(maps:from_keys(Elements, [])),
    {ok, weft_crdt_dots:change(Actor, Added, dots_of(Added, State), fun element/1, State)};
mutate({remove_all, Elements}, {Actor, _}, State) when length(Elements) >= 0 ->
    Gone = maps:keys(maps:from_keys(Elements, [])),
    {ok, weft_crdt_dots:change(Actor, [], dots_of(Gone, State), fun element/1, State)};
mutate(_, _, _) -> {error, bad_operation}.

dots_of(Elements, State) ->
    lists:append([weft_crdt_dots:at(Element, State) || Element <- Elements]).

element(Payload) -> Payload.

%% @doc As a field of a map: which payloads are added, and which dots undone.
-spec change(term(), weft_crdt_type:who(), [{weft_crdt_dots:dot(), term()}]) ->
          {ok, [term()], [weft_crdt_dots:dot()]} | {error, bad_operation}.
change({add, Element}, Who, Live) -> change({add_all, [Element]}, Who, Live);
change({remove, Element}, Who, Live) -> change({remove_all, [Element]}, Who, Live);
change({Operation, Elements}, _, Live)
  when length(Elements) >= 0, Operation =:= add_all orelse Operation =:= remove_all ->
    Named = maps:from_keys(Elements, []),
    {ok, case Operation of add_all -> maps:keys(Named); remove_all -> [] end,
     [Dot || {Dot, Element} <- Live, is_map_key(Element, Named)]};
change(_, _, _) -> {error, bad_operation}.

%% @private
merge(A, B) -> weft_crdt_dots:merge(A, B, fun element/1).

%% @private
difference(A, B) -> weft_crdt_dots:difference(A, B, fun element/1).

%% @private
value(State) -> lists:sort(weft_crdt_dots:places(State)).

%% @doc As a field of a map: its value.
-spec show([term()]) -> [term()].
show(Payloads) -> lists:sort(maps:keys(maps:from_keys(Payloads, []))).

%% @private
-spec is_payload(term()) -> boolean().
is_payload(_) -> true.

%% @private
pack(State) -> weft_crdt_dots:pack(State).

%% @private
unpack(Term, Table) -> weft_crdt_dots:unpack(Term, fun element/1, fun is_payload/1, Table).

%% @private
digest(State) -> weft_crdt_dots:digest(State).

%% @private
difference_to_digest(State, Digest, Table) ->
    weft_crdt_dots:difference_to_digest(State, Digest, fun element/1, Table).

%% @private
retire(Table, State) -> weft_crdt_dots:retire(Table, State).

%% @private
ended(Table, State) -> weft_crdt_dots:ended(Table, State).

%% @private
actors(State) -> weft_crdt_dots:actors(State).

%% @private
tag(State) -> weft_crdt_dots:tag(State).
