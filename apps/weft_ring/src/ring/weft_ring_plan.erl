%% SPDX-License-Identifier: Apache-2.0
%% @doc From staged changes of the members to a plan that one can look at, and from there to a ring.
%% A plan is a function of the ring and the changes, so that what is committed is what was shown.
-module(weft_ring_plan).

-export([check/3, possible/2, plan/3, commit/4, apply/3, mend/2]).
-export_type([change/0, plan/0]).

-type change() :: join | leave | remove.
%% `remove' is for a node that does not come back: what it owned goes to others at once, empty.

-type plan() :: #{changes := #{node() => change()},
                  moves := #{{From :: node(), To :: node()} => pos_integer()},
                  before := #{node() => non_neg_integer()},
                  'after' := #{node() => non_neg_integer()},
                  lost := non_neg_integer(),
                  gave_way := [weft_ring_claim:fault()],
                  token := integer()}.
%% `moves': how many partitions are handed over, by whom to whom. `lost': how many belong to nodes
%% that are removed. `before' and `after': how many partitions each node owns.

%% @doc Can this be staged?
-spec check(node(), change(), weft_ring_table:ring()) -> ok | {error, term()}.
check(Node, Change, Ring) ->
    case {Change, weft_ring_table:member(Node, Ring)} of
        {join, joining} -> ok;
        {leave, member} -> ok;
        {remove, Status} when Status =/= none, Status =/= gone -> ok;
        {_, Status} -> {error, {Node, Status}}
    end.

%% @doc Those of the changes that can still be made: others may have made some since.
-spec possible(#{node() => change()}, weft_ring_table:ring()) -> #{node() => change()}.
possible(Changes, Ring) ->
    maps:filter(fun(Node, Change) -> check(Node, Change, Ring) =:= ok end, Changes).

%% @doc What these changes would do.
-spec plan(node(), #{node() => change()}, weft_ring_table:ring()) -> {ok, plan()} | {error, term()}.
plan(Author, Changes, Ring) ->
    case changed(Author, Changes, Ring) of
        {error, Reason} -> {error, Reason};
        {ok, Planned, GaveWay} ->
            Pairs = lists:zip(weft_ring_table:owners(Ring), weft_ring_table:planned(Planned)),
            Removed = [Node || {Node, remove} <- maps:to_list(Changes)],
            {ok, #{changes => Changes,
                   moves => counted([{From, To} || {From, To} <- Pairs, From =/= To,
                                                   not lists:member(From, Removed)]),
                   before => counted([From || {From, _} <- Pairs]),
                   'after' => counted([To || {_, To} <- Pairs]),
                   lost => length([x || {From, _} <- Pairs, lists:member(From, Removed)]),
                   gave_way => GaveWay,
                   token => token(Changes, Ring)}}
    end.

%% The plan was made of these, and depends on nothing else.
token(Changes, Ring) ->
    erlang:phash2({lists:sort(maps:to_list(Changes)), weft_ring_table:hash(Ring)}, 1 bsl 32).

counted(List) ->
    lists:foldl(fun(Item, Acc) -> maps:update_with(Item, fun(N) -> N + 1 end, 1, Acc) end, #{},
                List).

%% @doc The ring after the changes, if their plan is the one that was looked at.
-spec commit(node(), Token :: term(), #{node() => change()}, weft_ring_table:ring()) ->
          {ok, weft_ring_table:ring()} | {error, term()}.
commit(_Author, _Token, Changes, _Ring) when map_size(Changes) =:= 0 ->
    {error, nothing_staged};
commit(Author, Token, Changes, Ring) ->
    case {token(Changes, Ring), ?MODULE:apply(Author, Changes, Ring)} of
        {_, {error, Reason}} -> {error, Reason};
        {Token, {ok, Planned}} -> {ok, Planned};
        _ -> {error, changed}
    end.

%% @doc The ring after the changes.
-spec apply(node(), #{node() => change()}, weft_ring_table:ring()) ->
          {ok, weft_ring_table:ring()} | {error, term()}.
apply(Author, Changes, Ring) ->
    case changed(Author, Changes, Ring) of
        {ok, Planned, _} -> {ok, Planned};
        {error, Reason} -> {error, Reason}
    end.

changed(Author, Changes, Ring0) ->
    Version = weft_ring_table:version({Author, Ring0}),
    Ring = maps:fold(fun(Node, Change, Acc) ->
                         weft_ring_table:set_member(Node, status(Change), {keep, Version}, Acc)
                     end, Ring0, Changes),
    Removed = [Node || {Node, remove} <- maps:to_list(Changes)],
    Lost = lists:append([weft_ring_table:owned(Node, Ring) || Node <- Removed]),
    case claimed(Version, Ring) of
        {ok, Planned, GaveWay} -> {ok, weft_ring_table:seize(Lost, Version, Planned), GaveWay};
        {error, Reason} -> {error, Reason}
    end.

status(join) -> member;
status(leave) -> leaving;
status(remove) -> gone.

%% From the plan that there is: what moves already goes on, if it still can.
claimed(Version, Ring) ->
    Members = weft_ring_table:members([member], Ring),
    case weft_ring_claim:claim(#{partitions => weft_ring_table:size(Ring),
                                 n_val => weft_ring_table:n_val(Ring),
                                 members => maps:from_list(Members),
                                 before => weft_ring_table:planned(Ring)}) of
        {ok, #{owners := Owners, gave_way := GaveWay}} ->
            {ok, weft_ring_table:set_plan(Version, Members, Owners, Ring), GaveWay};
        {error, Reason} -> {error, Reason}
    end.

%% @doc The ring with what commits at the same time have left to do: a plan for all members, and
%% owners for what belongs to nodes that are gone. If there are no members, the author is one.
-spec mend(node(), weft_ring_table:ring()) -> weft_ring_table:ring().
mend(Author, Torn) ->
    Version = weft_ring_table:version({Author, Torn}),
    Ring0 = case weft_ring_table:members([member], Torn) of
                [] -> weft_ring_table:set_member(Author, member, {keep, Version}, Torn);
                _ -> Torn
            end,
    Ring = case weft_ring_table:needs_plan(Ring0) of
               false -> Ring0;
               true ->
                   {ok, Planned, _} = claimed(Version, Ring0),
                   Planned
           end,
    weft_ring_table:seize(weft_ring_table:orphans(Ring), Version, Ring).
