%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds what two replicas do not both have, and gives it to them. Pure, but for the function
%% that asks them.
%%
%% The keys of a partition are divided into segments. Each replica holds for each segment one hash
%% of all its objects, which it changes with each of them, so a tree of hashes is always there and
%% is never built. First the hashes of the whole trees are compared, then those of the segments,
%% then those of the objects in the segments that differ, and of these objects at most `KeysMax' are
%% read and merged at a time. The rest is found the next time.
%%
%% A pair is the replicas of two partitions for the keys of a third one (or of one of them): keys of
%% partition P are in partitions P to P + N - 1.
-module(weft_kv_exchange).

-export([pairs/3, compare/3]).
-export_type([pair/0, ask/0]).

-type pair() :: {N :: pos_integer(), KeyPartition :: non_neg_integer(),
                 {One :: non_neg_integer(), Other :: non_neg_integer()}}.
-type ask() :: fun((Partition :: non_neg_integer(), weft_kv_table:key(), Command :: term()) ->
                       {ok, Answer :: term()} | {error, term()}).

%% @doc What the owner of these partitions has to compare, for buckets with these numbers of
%% replicas. Of each two partitions the owner of the first one does it.
-spec pairs([non_neg_integer()], pos_integer(), [pos_integer()]) -> [pair()].
pairs(Owned, Size, Ns) ->
    [{N, (One - Back + Size) rem Size, {One, (One + Step) rem Size}}
     || One <- Owned, N <- Ns, Step <- lists:seq(1, min(N, Size) - 1),
        Back <- lists:seq(0, min(N, Size) - 1 - Step)].

%% @doc How many keys were repaired.
-spec compare(pair(), KeysMax :: pos_integer(), ask()) ->
          {ok, Repaired :: non_neg_integer()} | {error, term()}.
compare({N, KeyPartition, Both}, KeysMax, Ask) ->
    Question = fun(What) ->
                   both(Both, {KeyPartition, '', <<>>}, {entropy, {What, N}}, Ask)
               end,
    case Question(root) of
        {ok, Same, Same} -> {ok, 0};
        {ok, _, _} -> segments(Question(segments), Question, {Both, KeysMax, Ask});
        {error, Reason} -> {error, Reason}
    end.

both({One, Other}, Key, Command, Ask) ->
    case {Ask(One, Key, Command), Ask(Other, Key, Command)} of
        {{ok, A}, {ok, B}} -> {ok, A, B};
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, Reason}
    end.

segments({ok, A, B}, Question, Context) ->
    keys([Segment || {Segment, _} <- lists:usort((A -- B) ++ (B -- A))], Question, Context, 0);
segments({error, Reason}, _, _) ->
    {error, Reason}.

keys([], _, _, Repaired) ->
    {ok, Repaired};
keys(_, _, {_, KeysMax, _}, Repaired) when Repaired >= KeysMax ->
    {ok, Repaired};
keys([Segment | Segments], Question, {Both, KeysMax, Ask} = Context, Repaired) ->
    case Question({segment, Segment}) of
        {ok, A, B} ->
            Different = lists:ukeysort(1, [{Key, Kind} || {Key, _, Kind} <- (A -- B) ++ (B -- A)]),
            case repaired(lists:sublist(Different, KeysMax - Repaired), Both, Ask, 0) of
                {ok, More} -> keys(Segments, Question, Context, Repaired + More);
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

repaired([], _, _, Count) ->
    {ok, Count};
repaired([{Key, #{siblings := Siblings} = Kind} | Keys], {One, Other} = Both, Ask, Count) ->
    case both(Both, Key, {read, Kind, primary}, Ask) of
        {ok, {ok, A}, {ok, B}} ->
            All = weft_kv_replica:requested({merge, A}, <<>>, Siblings, B),
            Command = {{merge, All}, Kind, primary},
            Answers = [Ask(Partition, Key, Command)
                       || {Partition, Object} <- [{One, A}, {Other, B}],
                                                       Object =/= All],
            case [Reason || {error, Reason} <- Answers]
                ++ [Reason || {ok, {error, Reason}} <- Answers] of
                [] -> repaired(Keys, Both, Ask, Count + 1);
                [Reason | _] -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.
