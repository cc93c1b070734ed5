%% SPDX-License-Identifier: Apache-2.0
%% @doc A set that costs a number for each element, and knows no actors: how often the element came
%% and went (causal length; Yu and Rostad 2020). Odd: it is in the set. Of a concurrent `add' and
%% `remove' the longer history wins. Elements that were removed are remembered. Operations: `{add,
%% E}', `{remove, E}', `{add_all, List}', `{remove_all, List}'. Value: the elements, in term order.
-module(weft_crdt_clset).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).

%% @private
new() -> #{}.

%% @private
mutate({add, Element}, Who, State) -> mutate({add_all, [Element]}, Who, State);
mutate({remove, Element}, Who, State) -> mutate({remove_all, [Element]}, Who, State);
mutate({add_all, Elements}, _, State) when length(Elements) >= 0 ->
    {ok, turned(0, Elements, State)};
mutate({remove_all, Elements}, _, State) when length(Elements) >= 0 ->
    {ok, turned(1, Elements, State)};
mutate(_, _, _) -> {error, bad_operation}.

%% The elements whose length is even or odd become one longer.
turned(Rest, Elements, State) ->
    maps:from_list([{Element, Length + 1} || Element <- Elements,
                                             Length <- [maps:get(Element, State, 0)],
                                             Length rem 2 =:= Rest]).

%% @private
merge(A, B) -> maps:merge_with(fun(_, N, M) -> max(N, M) end, A, B).

%% @private
difference(A, B) -> maps:filter(fun(E, N) -> N > maps:get(E, B, 0) end, A).

%% @private
value(State) -> lists:sort([Element || {Element, Length} <- maps:to_list(State),
                                       Length rem 2 =:= 1]).

%% @private
pack(State) -> State.

%% @private
unpack(Term, _) ->
    case is_map(Term) andalso lists:all(fun(N) -> is_integer(N) andalso N > 0 end,
                                        maps:values(Term)) of
        true -> {ok, Term};
        false -> error
    end.

%% @private
digest(State) -> State.

%% @private
difference_to_digest(State, Digest, Table) ->
    case unpack(Digest, Table) of
        {ok, Other} -> {ok, difference(State, Other)};
        error -> error
    end.

%% @private It knows no actors.
retire(_, State) -> State.

%% @private
ended(_, _) -> none.

%% @private
actors(_) -> [].

%% @private
tag(_) -> none.
