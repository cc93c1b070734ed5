%% SPDX-License-Identifier: Apache-2.0
%% @doc What a reader waits for. `{at_least, N}': a number, or the size of a list or map, is N or
%% more. `{contains, Element}': of a list, or the fields of a map. `{is, Value}': exactly that.
%% A register may have any value, so a list may be improper; it passes only `is'.
-module(weft_crdt_threshold).

-export([is_valid/1, is_passed/2]).
-export_type([threshold/0]).

-type threshold() :: {at_least, number()} | {contains, term()} | {is, term()}.

-spec is_valid(term()) -> boolean().
is_valid({at_least, N}) -> is_number(N);
is_valid({contains, _}) -> true;
is_valid({is, _}) -> true;
is_valid(_) -> false.

-spec is_passed(threshold(), Value :: term()) -> boolean().
is_passed({at_least, N}, Value) when is_number(Value) -> Value >= N;
is_passed({at_least, N}, Value) when length(Value) >= N -> true;
is_passed({at_least, N}, Value) when is_map(Value) -> map_size(Value) >= N;
is_passed({contains, Element}, Value) when length(Value) >= 0 ->
    lists:any(fun(E) -> E =:= Element end, Value);
is_passed({contains, Field}, Value) when is_map(Value) -> is_map_key(Field, Value);
is_passed({is, Wanted}, Value) -> Value =:= Wanted;
is_passed(_, _) -> false.
