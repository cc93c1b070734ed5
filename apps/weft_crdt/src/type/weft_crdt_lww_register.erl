%% SPDX-License-Identifier: Apache-2.0
%% @doc A register of which the last write wins, by the clocks of the nodes. A write comes after
%% each one that it has seen, also if the clock was set back; of two that do not know of each other
%% one is lost. Operation: `{set, Value}'. Value: that, or `undefined'.
-module(weft_crdt_lww_register).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).
-export([change/3, show/1, is_payload/1]).

%% @private
new() -> none.

%% @private
mutate({set, Value}, {Actor, NowUs}, none) -> {ok, {NowUs, Actor, Value}};
mutate({set, Value}, {Actor, NowUs}, {Us, _, _}) -> {ok, {max(NowUs, Us + 1), Actor, Value}};
mutate(_, _, _) -> {error, bad_operation}.

%% @doc As a field of a map: which payloads are added, and which dots undone.
-spec change(term(), weft_crdt_type:who(), [{weft_crdt_dots:dot(), term()}]) ->
          {ok, [term()], [weft_crdt_dots:dot()]} | {error, bad_operation}.
change(Operation, Who, Live) ->
    case mutate(Operation, Who, last([Write || {_, Write} <- Live])) of
        {ok, Write} -> {ok, [Write], [Dot || {Dot, _} <- Live]};
        {error, Reason} -> {error, Reason}
    end.

last(Writes) -> lists:foldl(fun merge/2, none, Writes).

%% @doc As a field of a map: its value.
-spec show([term()]) -> term().
show(Writes) -> value(last(Writes)).

%% @private
-spec is_payload(term()) -> boolean().
is_payload({Us, _, _}) -> is_integer(Us);
is_payload(_) -> false.

%% @private
merge(none, B) -> B;
merge(A, none) -> A;
merge(A, B) -> max(A, B).

%% @private
difference(none, _) -> none;
difference(A, none) -> A;
difference(A, B) when A > B -> A;
difference(_, _) -> none.

%% @private
value(none) -> undefined;
value({_, _, Value}) -> Value.

%% @private
pack(State) -> State.

%% @private
unpack(none, _) -> {ok, none};
unpack({Us, _, _} = State, _) when is_integer(Us) -> {ok, State};
unpack(_, _) -> error.

%% @private The value itself, which may be large, is not in it.
digest(none) -> none;
digest({Us, Actor, _}) -> {Us, Actor}.

%% @private
difference_to_digest(none, _, _) -> {ok, none};
difference_to_digest(State, none, _) -> {ok, State};
difference_to_digest({Us, Actor, _} = State, {Us0, _} = Digest, _) when is_integer(Us0) ->
    {ok, case {Us, Actor} > Digest of true -> State; false -> none end};
difference_to_digest(_, _, _) -> error.

%% @private The actor of the last write stays, and no other.
retire(_, State) -> State.

%% @private
ended(_, _) -> none.

%% @private
actors(_) -> [].

%% @private
tag(_) -> none.
