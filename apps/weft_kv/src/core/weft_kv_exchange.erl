%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds what two replicas do not both have, and gives it to them. Pure, but for the function
%% that asks them.
%%
%% The keys of a partition are divided into segments. Each replica holds for each segment one hash
%% of all its objects, which it changes with each of them, so a tree of hashes is always there and
%% is never built. First the hashes of the whole trees are compared, then those of the segments. For
%% all segments that differ both replicas go through their keys once, a page at a time, and say the
%% hashes of the objects. What only one of them has, or has otherwise, is read from it and merged
%% into the other one, in batches (`weft_kv_copy'). Replicas of which one does not know pages are
%% asked segment by segment.
%%
%% A step is a page of both, or a batch. Between two steps whoever runs this may wait, do something
%% else, or end it: what was not done is found the next time. At most a page of each replica and a
%% batch are held.
%%
%% A pair is the replicas of two partitions for the keys of a third one (or of one of them): keys of
%% partition P are in partitions P to P + N - 1.
-module(weft_kv_exchange).

-export([pairs/3, new/1, pair/1, step/2]).
-export_type([pair/0, state/0]).

-type pair() :: {N :: pos_integer(), KeyPartition :: non_neg_integer(),
                 {One :: non_neg_integer(), Other :: non_neg_integer()}}.
-type key() :: {weft_kv_table:key(), weft_kv_table:kind()}.

-record(exchange, {pair :: pair(),
                   %% What is compared next.
                   next = root :: root | segments | done | {pages, weft_vnode:cursor()} | each,
                   %% Those that differ.
                   segments = [] :: [non_neg_integer()],
                   %% What is brought before that.
                   copies = [] :: [{From :: non_neg_integer(), To :: non_neg_integer(), [key()]}],
                   repaired = 0 :: non_neg_integer()}).
-opaque state() :: #exchange{}.

%% @doc What the owner of these partitions has to compare, for buckets with these numbers of
%% replicas. Of each two partitions the owner of the first one does it.
-spec pairs([non_neg_integer()], pos_integer(), [pos_integer()]) -> [pair()].
pairs(Owned, Size, Ns) ->
    [{N, (One - Back + Size) rem Size, {One, (One + Step) rem Size}}
     || One <- Owned, N <- Ns, Step <- lists:seq(1, min(N, Size) - 1),
        Back <- lists:seq(0, min(N, Size) - 1 - Step)].

-spec new(pair()) -> state().
new(Pair) -> #exchange{pair = Pair}.

-spec pair(state()) -> pair().
pair(#exchange{pair = Pair}) -> Pair.

%% @doc The next step. Both have all if it was the last one, and so many objects were brought to one
%% that did not have them.
-spec step(state(), weft_kv_copy:ask()) ->
          {more, state()} | {done, Repaired :: non_neg_integer()} | {error, term()}.
step(#exchange{copies = [{_, _, []} | Copies]} = State, Ask) ->
    step(State#exchange{copies = Copies}, Ask);
step(#exchange{copies = [{From, To, Keys} | Copies], repaired = Repaired} = State, Ask) ->
    Way = way(State),
    case weft_kv_copy:read(Way, From, Keys, Ask) of
        {ok, Items, Left} ->
            case weft_kv_copy:write(Way, To, Items, Ask) of
                {ok, New} -> {more, State#exchange{copies = [{From, To, Left} | Copies],
                                                   repaired = Repaired + New}};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end;
step(#exchange{next = root} = State, Ask) ->
    case both(root, State, Ask) of
        {ok, Same, Same} -> {done, 0};
        {ok, _, _} -> {more, State#exchange{next = segments}};
        {error, Reason} -> {error, Reason}
    end;
step(#exchange{next = segments} = State, Ask) ->
    case both(segments, State, Ask) of
        {ok, A, B} -> {more, State#exchange{next = ways(weft_kv_copy:way(A), weft_kv_copy:way(B)),
                                            segments = different(A, B)}};
        {error, Reason} -> {error, Reason}
    end;
step(#exchange{segments = Segments, next = Next, repaired = Repaired}, _)
  when Next =:= done; Segments =:= [] ->
    {done, Repaired};
step(#exchange{next = {pages, Cursor}, segments = Segments} = State, Ask) ->
    case both({entries, Segments, Cursor}, State, Ask) of
        {ok, {A, NextA}, {B, NextB}} ->
            Until = first(NextA, NextB),
            {more, found(until(Until, A), until(Until, B), State#exchange{next = rest(Until)})};
        {error, Reason} -> {error, Reason}
    end;
step(#exchange{next = each, segments = [Segment | Segments]} = State, Ask) ->
    case both({segment, Segment}, State, Ask) of
        {ok, A, B} -> {more, found(A, B, State#exchange{segments = Segments})};
        {error, Reason} -> {error, Reason}
    end.

both(What, #exchange{pair = {N, KeyPartition, {One, Other}}}, Ask) ->
    Key = {KeyPartition, '', <<>>},
    case {Ask(One, Key, {entropy, {What, N}}), Ask(Other, Key, {entropy, {What, N}})} of
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, Reason};
        {{ok, {error, Reason}}, _} -> {error, Reason};
        {_, {ok, {error, Reason}}} -> {error, Reason};
        {{ok, A}, {ok, B}} -> {ok, A, B}
    end.

ways(batches, batches) -> {pages, start};
ways(_, _) -> each.

way(#exchange{next = each}) -> keys;
way(#exchange{}) -> batches.

different(A, B) ->
    lists:usort([Segment || {Segment, _} <- (A -- B) ++ (B -- A)]).

%% Up to here both pages go.
first(done, Next) -> Next;
first(Next, done) -> Next;
first({'after', A}, {'after', B}) -> {'after', min(A, B)}.

rest(done) -> done;
rest(Until) -> {pages, Until}.

until(done, Entries) -> Entries;
until({'after', Last}, Entries) -> [Entry || {Key, _, _} = Entry <- Entries, Key =< Last].

found(A, B, #exchange{pair = {_, _, {One, Other}}} = State) ->
    State#exchange{copies = [{One, Other, keys(A, B)}, {Other, One, keys(B, A)}]}.

%% What is here, and not there or otherwise.
keys(Here, There) ->
    Hashes = maps:from_list([{Key, Hash} || {Key, Hash, _} <- There]),
    [{Key, Kind} || {Key, Hash, Kind} <- Here, maps:get(Key, Hashes, none) =/= Hash].
