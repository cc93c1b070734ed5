%% SPDX-License-Identifier: Apache-2.0
%% @doc A map whose fields are sets, registers, flags, counters (`pncounter') and maps. An update
%% wins over a concurrent removal of the field: what was new to the one who removed it stays.
%% Operations: `{update, Field, Type, Operation}', `{remove, Field}'. Value: a map. A field without
%% content (an empty set, a flag that was disabled) is not in it. If a field was made concurrently
%% with two types, both are kept, and the value shows that of the lesser name. Only that one can be
%% updated: without content it gives way to the other one.
%%
%% A field has no state of its own: its payloads are dots of the map, so that one cause removes it.
-module(weft_crdt_ormap).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).
-export([change/3, show/1, is_payload/1]).

%% @private
new() -> weft_crdt_dots:new().

%% @private
mutate(Operation, {Actor, _} = Who, State) ->
    Live = weft_crdt_dots:payloads(about(Operation, State), State),
    case change(Operation, Who, Live) of
        {ok, Payloads, Undone} ->
            {ok, weft_crdt_dots:change(Actor, Payloads, Undone, fun field/1, State)};
        {error, Reason} -> {error, Reason}
    end.

about({update, Field, _, _}, State) -> weft_crdt_dots:at(Field, State);
about({remove, Field}, State) -> weft_crdt_dots:at(Field, State);
about(_, _) -> [].

field({Field, _, _}) -> Field.

%% @doc As a field of a map: which payloads are added, and which dots undone.
-spec change(term(), weft_crdt_type:who(), [{weft_crdt_dots:dot(), term()}]) ->
          {ok, [term()], [weft_crdt_dots:dot()]} | {error, term()}.
change({remove, Field}, _, Live) ->
    {ok, [], [Dot || {Dot, {F, _, _}} <- Live, F =:= Field]};
change({update, Field, Type, Operation}, Who, Live) ->
    case {module(Type), lists:usort([T || {_, {F, T, _}} <- Live, F =:= Field])} of
        {error, _} -> {error, {no_type_of_field, Type}};
        {{ok, _}, [Shown | _]} when Shown =/= Type -> {error, {type_of_field, Field, Shown}};
        {{ok, Module}, _} ->
            Inner = [{Dot, Payload} || {Dot, {F, T, Payload}} <- Live, F =:= Field, T =:= Type],
            inner(Field, Type, Module:change(Operation, Who, Inner))
    end;
change(_, _, _) -> {error, bad_operation}.

inner(Field, Type, {ok, Payloads, Undone}) ->
    {ok, [{Field, Type, Payload} || Payload <- Payloads], Undone};
inner(_, _, {error, Reason}) -> {error, Reason}.

module(Type) when Type =:= orset; Type =:= mv_register; Type =:= lww_register; Type =:= ew_flag;
                  Type =:= dw_flag; Type =:= pncounter; Type =:= ormap ->
    weft_crdt_type:module(Type);
module(_) -> error.

%% @private
merge(A, B) -> weft_crdt_dots:merge(A, B, fun field/1).

%% @private
difference(A, B) -> weft_crdt_dots:difference(A, B, fun field/1).

%% @private
value(State) -> show([Payload || {_, Payload} <- weft_crdt_dots:live(State)]).

%% @doc As a field of a map: its value.
-spec show([term()]) -> #{Field :: term() => Value :: term()}.
show(Payloads) ->
    Typed = maps:groups_from_list(fun({Field, Type, _}) -> {Field, Type} end,
                                  fun({_, _, Payload}) -> Payload end, Payloads),
    %% The lesser type comes last, and stays.
    maps:from_list([{Field, show(Type, Inner)}
                    || {{Field, Type}, Inner} <- lists:reverse(lists:sort(maps:to_list(Typed)))]).

show(Type, Payloads) ->
    {ok, Module} = module(Type),
    Module:show(Payloads).

%% @private
-spec is_payload(term()) -> boolean().
is_payload({_, Type, Payload}) ->
    case module(Type) of
        {ok, Module} -> Module:is_payload(Payload);
        error -> false
    end;
is_payload(_) -> false.

%% @private
pack(State) -> weft_crdt_dots:pack(State).

%% @private
unpack(Term, Table) -> weft_crdt_dots:unpack(Term, fun field/1, fun is_payload/1, Table).

%% @private
digest(State) -> weft_crdt_dots:digest(State).

%% @private
difference_to_digest(State, Digest, Table) ->
    weft_crdt_dots:difference_to_digest(State, Digest, fun field/1, Table).

%% @private
retire(Table, State) -> weft_crdt_dots:retire(Table, State).

%% @private
ended(Table, State) -> weft_crdt_dots:ended(Table, State).

%% @private
actors(State) -> weft_crdt_dots:actors(State).

%% @private
tag(State) -> weft_crdt_dots:tag(State).
