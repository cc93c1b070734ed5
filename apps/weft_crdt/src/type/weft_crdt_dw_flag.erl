%% SPDX-License-Identifier: Apache-2.0
%% @doc A flag of which a concurrent `disable' wins over `enable'. Operations: `enable', `disable'.
%% Value: `true' or `false'; `false' before the first. A `disable' is remembered like an `enable'.
-module(weft_crdt_dw_flag).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).
-export([change/3, show/1, is_payload/1]).

%% @private
new() -> weft_crdt_dots:new().

%% @private
mutate(Operation, {Actor, _} = Who, State) ->
    case change(Operation, Who, weft_crdt_dots:live(State)) of
        {ok, Payloads, Undone} ->
            {ok, weft_crdt_dots:change(Actor, Payloads, Undone, none, State)};
        {error, Reason} -> {error, Reason}
    end.

%% @doc As a field of a map: which payloads are added, and which dots undone.
-spec change(term(), weft_crdt_type:who(), [{weft_crdt_dots:dot(), term()}]) ->
          {ok, [term()], [weft_crdt_dots:dot()]} | {error, bad_operation}.
change(Operation, _, Live) when Operation =:= enable; Operation =:= disable ->
    {ok, [Operation], [Dot || {Dot, _} <- Live]};
change(_, _, _) -> {error, bad_operation}.

%% @private
merge(A, B) -> weft_crdt_dots:merge(A, B, none).

%% @private
difference(A, B) -> weft_crdt_dots:difference(A, B, none).

%% @private
value(State) -> show([Value || {_, Value} <- weft_crdt_dots:live(State)]).

%% @doc As a field of a map: its value.
-spec show([enable | disable]) -> boolean().
show(Payloads) -> Payloads =/= [] andalso not lists:member(disable, Payloads).

%% @private
-spec is_payload(term()) -> boolean().
is_payload(Payload) -> Payload =:= enable orelse Payload =:= disable.

%% @private
pack(State) -> weft_crdt_dots:pack(State).

%% @private
unpack(Term, Table) -> weft_crdt_dots:unpack(Term, none, fun is_payload/1, Table).

%% @private
digest(State) -> weft_crdt_dots:digest(State).

%% @private
difference_to_digest(State, Digest, Table) ->
    weft_crdt_dots:difference_to_digest(State, Digest, none, Table).

%% @private
retire(Table, State) -> weft_crdt_dots:retire(Table, State).

%% @private
ended(Table, State) -> weft_crdt_dots:ended(Table, State).

%% @private
actors(State) -> weft_crdt_dots:actors(State).

%% @private
tag(State) -> weft_crdt_dots:tag(State).
