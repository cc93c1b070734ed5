%% SPDX-License-Identifier: Apache-2.0
%% @doc A counter that goes up and down. State: for each actor what it has added and what it has
%% taken away, both of which only grow. Operations: `increment', `decrement', and both with `{_,
%% By}'. Value: the sum, which may be negative.
-module(weft_crdt_pncounter).
-behaviour(weft_crdt_type).

-export([new/0, mutate/3, merge/2, difference/2, value/1, pack/1, unpack/1, digest/1,
         difference_to_digest/2]).
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
merge(A, B) when map_size(A) < map_size(B) -> merge(B, A);
merge(A, B) ->
    maps:fold(fun(Actor, {Up, Down}, M) ->
                  {Up0, Down0} = maps:get(Actor, M, {0, 0}),
                  M#{Actor => {max(Up, Up0), max(Down, Down0)}}
              end, A, B).

%% @private
difference(A, B) ->
    maps:filter(fun(Actor, {Up, Down}) ->
                    {Up0, Down0} = maps:get(Actor, B, {0, 0}),
                    Up > Up0 orelse Down > Down0
                end, A).

%% @private
value(State) -> lists:sum([Up - Down || {Up, Down} <- maps:values(State)]).

%% @private
pack(State) -> State.

%% @private
unpack(Term) ->
    case is_map(Term) andalso lists:all(fun is_count/1, maps:values(Term)) of
        true -> {ok, Term};
        false -> error
    end.

is_count({Up, Down}) ->
    is_integer(Up) andalso is_integer(Down) andalso Up >= 0 andalso Down >= 0
        andalso Up + Down > 0;
is_count(_) -> false.

%% @private
digest(State) -> State.

%% @private
difference_to_digest(State, Digest) ->
    case unpack(Digest) of
        {ok, Other} -> {ok, difference(State, Other)};
        error -> error
    end.
