%% SPDX-License-Identifier: Apache-2.0
%% @doc Values that are computed from others and follow them: map, filter, fold, union,
%% intersection, product; and invariants, which do something when a threshold is passed.
%%
%% What is computed belongs to this node and is not sent. Each node that asks for the same gets the
%% same, because the inputs become equal. It is read like any key (`weft_crdt:value/1', `read/2',
%% `subscribe/1'), and may be the input of other flows. Inputs are sets, or lists as flows make
%% them; results are in term order, each element once. Functions run in a process of the flow, and
%% get whole sets again after a change.
%%
%% A flow is kept as data, and what it does is called by its name: flows that run go on with code
%% that was loaded anew. So it is with functions of users that are `fun Module:Function/Arity'.
-module(weft_crdt_flow).

-export([map/3, filter/3, fold/4, union/3, intersection/3, product/3, invariant/3, stop/1]).
-export([derive/3, check/3]).

-type how() :: {map, fun((term()) -> term())} | {filter, fun((term()) -> boolean())}
             | {fold, fun((term(), Acc :: term()) -> term()), Acc :: term()}
             | union | intersection | product.
-type key() :: weft_crdt:key().
-type result() :: ok | {error, {undeclared, Input :: key()} | {failed, Reason :: term()} | declared
                             | {no_set, Value :: term()} | already_started | not_running | term()}.

%% @doc The set of what the function makes of each element.
-spec map(In :: key(), fun((Element :: term()) -> term()), Out :: key()) -> result().
map(In, Fun, Out) -> start([In], {map, Fun}, Out).

%% @doc The set of elements for which the function is true.
-spec filter(In :: key(), fun((Element :: term()) -> boolean()), Out :: key()) -> result().
filter(In, Fun, Out) -> start([In], {filter, Fun}, Out).

%% @doc What a fold over the elements, in term order, makes of the first accumulator. Any term.
-spec fold(In :: key(), fun((Element :: term(), Acc) -> Acc), Acc, Out :: key()) -> result().
fold(In, Fun, Acc0, Out) -> start([In], {fold, Fun, Acc0}, Out).

-spec union(key(), key(), Out :: key()) -> result().
union(A, B, Out) -> start([A, B], union, Out).

-spec intersection(key(), key(), Out :: key()) -> result().
intersection(A, B, Out) -> start([A, B], intersection, Out).

%% @doc All pairs of an element of the first and one of the second.
-spec product(key(), key(), Out :: key()) -> result().
product(A, B, Out) -> start([A, B], product, Out).

start(Inputs, How, Out) ->
    weft_crdt_flow_sup:start_flow({flow, Out}, always,
                                  #{inputs => Inputs, act => {?MODULE, derive, [How, Out]},
                                    name => Out}).

%% @private
-spec derive(Values :: [term()], how(), Out :: key()) -> again.
derive(Values, How, Out) ->
    Made = made(How, [set(V) || V <- Values]),
    case weft_driver:command(weft_crdt, {derive, Out, Made}, infinity) of
        ok -> again;
        {error, Reason} -> throw(Reason)
    end.

made({fold, Fun, Acc0}, [Set]) -> lists:foldl(Fun, Acc0, Set);
made(How, Sets) -> once_each(elements(How, Sets)).

elements({map, Fun}, [Set]) -> [Fun(E) || E <- Set];
elements({filter, Fun}, [Set]) -> [E || E <- Set, Fun(E)];
elements(union, [As, Bs]) -> As ++ Bs;
elements(intersection, [As, Bs]) ->
    In = maps:from_keys(Bs, []),
    [E || E <- As, is_map_key(E, In)];
elements(product, [As, Bs]) -> [{X, Y} || X <- As, Y <- Bs].

set(Value) when is_list(Value) -> Value;
set(Value) -> throw({no_set, Value}).

once_each(List) -> lists:sort(maps:keys(maps:from_keys(List, []))).

%% @doc Calls the function with the value, once, as soon as this node knows that the threshold is
%% passed. On each node that asks for it: let one node ask for what must be done once. Values that
%% come and go faster than they are told, or while the function runs, are not seen.
-spec invariant(key(), weft_crdt_threshold:threshold(), fun((Value :: term()) -> term())) ->
          result() | {error, {bad_threshold, term()}}.
invariant(Key, Threshold, Fun) ->
    case weft_crdt_threshold:is_valid(Threshold) of
        true ->
            weft_crdt_flow_sup:start_flow({invariant, make_ref()}, once,
                                          #{inputs => [Key],
                                            act => {?MODULE, check, [Threshold, Fun]},
                                            name => {invariant, Key}});
        false -> {error, {bad_threshold, Threshold}}
    end.

%% @private
-spec check(Values :: [term()], weft_crdt_threshold:threshold(), fun((term()) -> term())) ->
          again | done.
check([Value], Threshold, Fun) ->
    case weft_crdt_threshold:is_passed(Threshold, Value) of
        true -> _ = Fun(Value), done;
        false -> again
    end.

%% @doc Ends the flow that makes this, and forgets the value. `not_running': no flows are here.
-spec stop(Out :: key()) -> ok | {error, not_found | not_running}.
stop(Out) ->
    case weft_crdt_flow_sup:stop_flow({flow, Out}) of
        ok ->
            %% Without a store there is nothing to forget: one that starts again knows no results.
            try weft_driver:command(weft_crdt, {forget, Out}, infinity)
            catch exit:_Ended -> ok
            end;
        {error, Reason} -> {error, Reason}
    end.
