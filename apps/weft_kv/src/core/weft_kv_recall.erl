%% SPDX-License-Identifier: Apache-2.0
%% @doc Does a replica know all that it has ever acknowledged, or may it have forgotten some of it?
%% One that has started without what it had answers reads, but does not count (a read that finds
%% nothing there may find something elsewhere). It counts again, for the keys of a partition, when
%% it was compared with each other replica of them since, and none of these has forgotten anything
%% from the first comparison to its own (`weft_kv_sinces'): what of its own was left anywhere when
%% the first one began, it has then. What was written meanwhile it has, or was written elsewhere.
%% Pure.
%%
%% All replicas of a new ring are like that: nobody knows that there was nothing. So the answers of
%% all replicas together always count (`weft_kv_coordinator_core').
%%
%% Not here: who compares them (`weft_kv_entropy').
-module(weft_kv_recall).

-export([all/0, none/0, on_disk/0, promised/0, handed/2, is_all/1, is_promised/1, id/1, counts/3,
         counting/4, others/3, lacking/4, is_incomplete/4, is_whole/4, compared/4, mark/0,
         is_mark/1]).
-export_type([recall/0, since/0, id/0, group/0, mark/0]).

-define(MARK, {-1, '', <<>>}).

%% In place of a key.
-type mark() :: {-1, '', <<>>}.
-type since() :: reference().
%% Tells whether it has forgotten something again since a comparison began.
-type what() :: none | on_disk.
%% `on_disk': what buckets have that are in memory only may be forgotten.
-type group() :: {N :: pos_integer(), KeyPartition :: non_neg_integer()}.
%% With whom it was compared while the others were like that.
-type compared() :: {weft_kv_sinces:sinces(), [Other :: non_neg_integer()]}.
%% The keys of a partition in buckets with `N' replicas.
-opaque recall() :: all | promised | {what(), since(), #{group() => compared()}}.
%% Another one if it has forgotten something meanwhile.
-type id() :: all | promised | since().

%% @doc Nothing was forgotten.
-spec all() -> recall().
all() -> all.

%% @doc Everything may be.
-spec none() -> recall().
none() -> {none, make_ref(), #{}}.

%% @doc What is in memory only may be.
-spec on_disk() -> recall().
on_disk() -> {on_disk, make_ref(), #{}}.

%% @doc All of it comes from the former owner, who had all. It may be a part as long as that one has
%% not given the partition on.
-spec promised() -> recall().
promised() -> promised.

%% @doc What was promised came, if this node was given the partition. If it has it by force, nobody
%% knows what is lacking.
-spec handed(given | seized, recall()) -> recall().
handed(given, promised) -> all;
handed(seized, promised) -> none();
handed(_, Recall) -> Recall.

-spec is_all(recall()) -> boolean().
is_all(Recall) -> Recall =:= all.

-spec is_promised(recall()) -> boolean().
is_promised(Recall) -> Recall =:= promised.

%% @doc Since when it knows what it knows.
-spec id(recall()) -> id().
id({_, Since, _}) -> Since;
id(AllOrPromised) -> AllOrPromised.

%% @doc Does an answer count for keys like this, of a bucket that is in memory only or is not?
-spec counts(group(), IsInMemory :: boolean(), recall()) -> boolean().
counts(_, _, all) -> true;
counts(_, _, promised) -> false;
counts(_, false, {on_disk, _, _}) -> true;
counts({N, _} = Group, _, {_, _, Compared}) -> length(others_compared(Group, Compared)) >= N - 1.

others_compared(Group, Compared) ->
    {_, Others} = maps:get(Group, Compared, {#{}, []}),
    Others.

%% @doc Which of the replicas that have answered count for `r', and which for `pr', if some of them
%% may have forgotten something. All were asked, of keys with `N' owners. Once all of them have
%% answered there is no more to be known; but where somebody stands in for an owner, or it is not
%% there, that one may have what others have forgotten.
-spec counting([Place], Incomplete :: [Place], All :: [Place], N :: pos_integer()) ->
          {[Place], [Place]} when Place :: {non_neg_integer(), node(), primary | fallback}.
counting(Answered, Incomplete, All, N) ->
    Complete = Answered -- Incomplete,
    case {length(Answered) =:= length(All),
          length([owner || {_, _, primary} <- Answered]) =:= N} of
        {true, true} -> {Answered, Answered};
        {true, false} -> {Answered, Complete};
        {false, _} -> {Complete, Complete}
    end.

%% @doc The partitions with the other replicas of these keys, in a ring of so many partitions.
-spec others(Partition :: non_neg_integer(), Size :: pos_integer(), group()) ->
          [non_neg_integer()].
others(Partition, Size, {N, KeyPartition}) ->
    [Other || Step <- lists:seq(0, N - 1), Other <- [(KeyPartition + Step) rem Size],
              Other =/= Partition].

%% @doc What the replica of this partition is still to be compared with, in a ring of so many
%% partitions and for buckets with these numbers of replicas. It is the first one of each pair.
-spec lacking(Partition :: non_neg_integer(), Size :: pos_integer(), [pos_integer()], recall()) ->
          [{weft_kv_exchange:pair(), since()}].
lacking(_, _, _, Recall) when Recall =:= all; Recall =:= promised ->
    [];
lacking(Partition, Size, Ns, {_, Since, Compared}) ->
    [{{N, KeyPartition, {Partition, Other}}, Since}
     || N <- Ns, Back <- lists:seq(0, N - 1),
        KeyPartition <- [(Partition - Back + Size) rem Size],
        Other <- others(Partition, Size, {N, KeyPartition}),
        not lists:member(Other, others_compared({N, KeyPartition}, Compared))].

%% @doc Are there answers of its owner that do not count (`counts/3')? In a ring of so many
%% partitions and for buckets with these numbers of replicas, of which those that are in memory only
%% have `InMemory'.
-spec is_incomplete(Partition :: non_neg_integer(), Size :: pos_integer(),
                    {All :: [pos_integer()], InMemory :: [pos_integer()]}, recall()) -> boolean().
is_incomplete(_, _, _, promised) -> true;
is_incomplete(Partition, Size, {_, InMemory}, {on_disk, _, _} = Recall) ->
    lacking(Partition, Size, InMemory, Recall) =/= [];
is_incomplete(Partition, Size, {All, _}, Recall) ->
    lacking(Partition, Size, All, Recall) =/= [].

%% @doc If it starts again with what is on disk, is nothing lacking but what is in memory only? It
%% was compared with all others, for buckets with these numbers of replicas.
-spec is_whole(Partition :: non_neg_integer(), Size :: pos_integer(), [pos_integer()],
               recall()) -> boolean().
is_whole(_, _, _, all) -> true;
is_whole(_, _, _, promised) -> false;
is_whole(_, _, _, {on_disk, _, _}) -> true;
is_whole(_, _, [], _) -> false;
is_whole(Partition, Size, Ns, Recall) -> lacking(Partition, Size, Ns, Recall) =:= [].

%% @doc It was compared with another replica, and has all that this one has. Comparisons before it
%% count only if all others are as they were then. `outdated': it has forgotten something itself
%% since.
-spec compared({group(), Other :: non_neg_integer()}, since(), weft_kv_sinces:sinces(),
               recall()) -> {ok, recall()} | outdated.
compared({Group, Other}, Since, Sinces, {What, Since, Compared}) ->
    Before = case Compared of
                 #{Group := {Sinces, Others}} -> Others;
                 #{} -> []
             end,
    {ok, {What, Since, Compared#{Group => {Sinces, lists:usort([Other | Before])}}}};
compared(_, _, _, _) ->
    outdated.

%% @doc Among the objects of a partition, what says that some may be lacking. Earlier versions take
%% it for an object of a key that nobody asks for, in which nothing was ever written, and forget it.
-spec mark() -> {mark(), {weft_kv_object:object(), weft_kv_table:kind()}}.
mark() -> {?MARK, {weft_kv_object:new(), #{n => 1, evict => false, siblings => true}}}.

-spec is_mark(weft_kv_table:key() | mark()) -> boolean().
is_mark(Key) -> Key =:= ?MARK.
