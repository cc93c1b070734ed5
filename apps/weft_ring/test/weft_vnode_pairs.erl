%% SPDX-License-Identifier: Apache-2.0
%% @doc Counters in partitions that are counted up in pairs: each command changes two of them, which
%% are far from each other in the order of the keys. If a handoff lost or repeated a part of a
%% command, the two of a pair would differ. Its functions are those of `my_counters', the example of
%% the guide, which it uses for the data.
-module(weft_vnode_pairs).
-behaviour(weft_vnode).

-export([add/2, sum/0, uneven/0]).
-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2]).

add(Key, Amount) -> weft_vnode:call(?MODULE, Key, {add, Amount}, 5000).

%% Of the first counters of all pairs.
sum() ->
    case covered() of
        {ok, Pairs} -> {ok, lists:sum([First || {_, First, _} <- Pairs])};
        {error, Reason} -> {error, Reason}
    end.

%% The pairs that are not equal.
uneven() ->
    {ok, Pairs} = covered(),
    [Pair || {_, First, Second} = Pair <- Pairs, First =/= Second].

covered() ->
    case weft_vnode:cover(?MODULE, pairs, 5000) of
        {ok, Answers} -> {ok, lists:append([Pairs || {_Partition, Pairs} <- Answers])};
        {error, Reason} -> {error, Reason}
    end.

init(Partition, Options) -> my_counters:init(Partition, Options).

command(Key, {add, Amount}, Counters) ->
    {changes, [{{first, Key}, {add, Amount}}, {{second, Key}, {add, Amount}}],
     of_key({first, Key}, Counters) + Amount}.

change(Key, Change, Note, Counters) -> my_counters:change(Key, Change, Note, Counters).

items(Cursor, Max, Counters) -> my_counters:items(Cursor, Max, Counters).

take(Items, Note, Counters) -> my_counters:take(Items, Note, Counters).

clear(Note, Counters) -> my_counters:clear(Note, Counters).

cover(pairs, Counters) ->
    Keys = lists:usort([Key || {_, Key} <- gb_trees:keys(Counters)]),
    [{Key, of_key({first, Key}, Counters), of_key({second, Key}, Counters)} || Key <- Keys].

of_key(Key, Counters) ->
    {reply, Value} = my_counters:command(Key, value, Counters),
    Value.
