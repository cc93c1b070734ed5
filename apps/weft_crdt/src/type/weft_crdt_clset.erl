%% SPDX-License-Identifier: Apache-2.0
%% @doc A set that costs a number for each element, and knows no actors: how often the element came
%% and went (causal length; Yu and Rostad 2020). Odd: it is in the set. Of a concurrent `add' and
%% `remove' the longer history wins. Elements that were removed are remembered. Operations: `{add,
%% E}', `{remove, E}', `{add_all, List}', `{remove_all, List}'. Value: the elements, in term order.
%%
%% Two copies that differ in little find that by sums of parts of the set (`sums/1'), as stores find
%% keys (`weft_crdt_ranges'). The elements of parts that differ are sent, from both sides.
-module(weft_crdt_clset).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1, sums/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).

%% As many elements as a part has, on average.
-define(PART, 16).
%% No history is so long, so this is no digest of a version that sent the state as one.
-define(SUMS, 1 bsl 64).

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

%% @doc A digest that is smaller than the state: 8 bytes for each part of the elements. A version
%% that knows of no sums takes it for a state without any of the elements, and sends all it has.
-spec sums(#{term() => pos_integer()}) -> weft_crdt_type:digest().
sums(State) ->
    Parts = map_size(State) div ?PART + 1,
    Sums = sums(Parts, State),
    #{{sums, << <<(maps:get(Part, Sums, 0)):64>> || Part <- lists:seq(0, Parts - 1) >>} => ?SUMS}.

sums(Parts, State) ->
    maps:fold(fun(Element, Length, Sums) ->
                  Part = part(Element, Parts),
                  Hash = weft_crdt_type:hash({Element, Length}),
                  Sums#{Part => maps:get(Part, Sums, 0) bxor Hash}
              end, #{}, State).

part(Element, Parts) -> erlang:phash2(Element, Parts).

%% @private
difference_to_digest(State, Digest, Table) ->
    case {sums_in(Digest), unpack(Digest, Table)} of
        {{ok, Sums}, _} -> {ok, unlike(Sums, State)};
        {none, {ok, Other}} -> {ok, difference(State, Other)};
        {none, error} -> error
    end.

sums_in(#{} = Digest) when map_size(Digest) =:= 1 ->
    case maps:to_list(Digest) of
        [{{sums, Sums}, ?SUMS}] when is_binary(Sums), Sums =/= <<>>, byte_size(Sums) rem 8 =:= 0 ->
            {ok, Sums};
        _ -> none
    end;
sums_in(_) -> none.

%% All that is in parts of which something differs.
unlike(There, State) ->
    Parts = byte_size(There) div 8,
    Here = sums(Parts, State),
    maps:filter(fun(Element, _) ->
                    Part = part(Element, Parts),
                    <<(map_get(Part, Here)):64>> =/= binary:part(There, 8 * Part, 8)
                end, State).

%% @private It knows no actors.
retire(_, State) -> State.

%% @private
ended(_, _) -> none.

%% @private
actors(_) -> [].

%% @private
tag(_) -> none.
