%% SPDX-License-Identifier: Apache-2.0
%% @doc A counter that goes up and down. State: for each actor what it has added and what it has
%% taken away, both of which only grow. Operations: `increment', `decrement', and both with `{_,
%% By}'. Value: the sum, which may be negative.
-module(weft_crdt_pncounter).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/2, digest/1,
         difference_to_digest/3, retire/2, ended/2, actors/1, tag/1]).
-export([change/3, show/1, is_payload/1]).

%% @private
new() -> #{}.

%% @private
mutate(increment, Who, State) -> mutate({increment, 1}, Who, State);
mutate(decrement, Who, State) -> mutate({decrement, 1}, Who, State);
mutate({Operation, 0}, _, _) when Operation =:= increment; Operation =:= decrement -> {ok, #{}};
mutate({Operation, By}, {Actor, _}, State) when is_integer(By), By > 0 ->
    {Up, Down} = maps:get(Actor, State, {0, 0}),
    case Operation of
        increment -> {ok, #{Actor => {Up + By, Down}}};
        decrement -> {ok, #{Actor => {Up, Down + By}}};
        _ -> {error, bad_operation}
    end;
mutate(_, _, _) -> {error, bad_operation}.

%% @doc As a field of a map: which payloads are added, and which dots undone. Each actor has one dot
%% with its sum. A removal of the field that is concurrent to an operation leaves the sum of that
%% actor.
-spec change(term(), weft_crdt_type:who(), [{weft_crdt_dots:dot(), term()}]) ->
          {ok, [term()], [weft_crdt_dots:dot()]} | {error, bad_operation}.
change(increment, Who, Live) -> change({increment, 1}, Who, Live);
change(decrement, Who, Live) -> change({decrement, 1}, Who, Live);
change({increment, By}, {Actor, _}, Live) when is_integer(By), By >= 0 -> added(Actor, By, Live);
change({decrement, By}, {Actor, _}, Live) when is_integer(By), By >= 0 -> added(Actor, -By, Live);
change(_, _, _) -> {error, bad_operation}.

added(Actor, By, Live) ->
    Own = [{Dot, Sum} || {Dot, {Who, Sum}} <- Live, Who =:= Actor],
    {ok, [{Actor, By + lists:sum([Sum || {_, Sum} <- Own])}], [Dot || {Dot, _} <- Own]}.

%% @doc As a field of a map: its value.
-spec show([term()]) -> integer().
show(Payloads) -> lists:sum([Sum || {_, Sum} <- Payloads]).

%% @private
-spec is_payload(term()) -> boolean().
is_payload({_, Sum}) -> is_integer(Sum);
is_payload(_) -> false.

%% @private
merge(A, B) -> weft_crdt_counts:merge(A, B, fun join/2).

join({Up, Down}, {Up0, Down0}) -> {max(Up, Up0), max(Down, Down0)}.

%% @private
difference(A, B) -> weft_crdt_counts:difference(A, B, fun join/2).

%% @private
value(State) -> lists:sum([Up - Down || {Up, Down} <- weft_crdt_counts:all(State)]).

%% @private
pack(State) -> weft_crdt_counts:pack(State).

%% @private
unpack(Term, Table) -> weft_crdt_counts:unpack(Term, Table, fun is_count/1).

is_count({Up, Down}) ->
    is_integer(Up) andalso is_integer(Down) andalso Up >= 0 andalso Down >= 0
        andalso Up + Down > 0;
is_count(_) -> false.

%% @private
digest(State) -> pack(State).

%% @private
difference_to_digest(State, Digest, Table) ->
    case unpack(Digest, Table) of
        {ok, Other} -> {ok, difference(State, Other)};
        error -> error
    end.

%% @private
retire(Table, State) -> weft_crdt_counts:retire(Table, State, fun plus/2).

%% @private
ended(Table, State) -> weft_crdt_counts:ended(Table, State).

%% @private
actors(State) -> weft_crdt_counts:actors(State).

%% @private
tag(State) -> weft_crdt_counts:tag(State).

plus({Up, Down}, {Up0, Down0}) -> {Up + Up0, Down + Down0}.
