%% SPDX-License-Identifier: Apache-2.0
%% @doc Sets of positive integers, as ordered lists of intervals that do not touch each other. An
%% actor numbers what it does from 1 on, so what is known of it is nearly always one interval.
-module(weft_crdt_intervals).

-export([from_list/1, union/2, subtract/2, intersect/2, is_member/2, count/1, fold/3, last/1,
         is_valid/1]).
-export_type([intervals/0]).

-type intervals() :: [{From :: pos_integer(), To :: pos_integer()}].

%% @doc The set of these numbers.
-spec from_list([pos_integer()]) -> intervals().
from_list(Numbers) ->
    joined([{N, N} || N <- lists:usort(Numbers)]).

%% @doc What is in one of them.
-spec union(intervals(), intervals()) -> intervals().
union([], B) -> B;
union(A, []) -> A;
union(A, A) -> A;
union(A, B) -> joined(lists:merge(A, B)).

joined([{From, To}, {Next, End} | Rest]) when Next =< To + 1 ->
    joined([{From, max(To, End)} | Rest]);
joined([Interval | Rest]) ->
    [Interval | joined(Rest)];
joined([]) ->
    [].

%% @doc What is in the first one and not in the second one.
-spec subtract(intervals(), intervals()) -> intervals().
subtract([], _) -> [];
subtract(A, []) -> A;
subtract([{_, To} = First | A], [{From, _} | _] = B) when To < From -> [First | subtract(A, B)];
subtract([{From, _} | _] = A, [{_, To} | B]) when To < From -> subtract(A, B);
subtract([{From, To} | A], [{Cut, _} | _] = B) when From < Cut ->
    [{From, Cut - 1} | subtract([{Cut, To} | A], B)];
subtract([{_, To} | A], [{_, End} | _] = B) when To =< End -> subtract(A, B);
subtract([{_, To} | A], [{_, End} | B]) -> subtract([{End + 1, To} | A], B).

%% @doc What is in both.
-spec intersect(intervals(), intervals()) -> intervals().
intersect([{_, To} | A], [{From, _} | _] = B) when To < From -> intersect(A, B);
intersect([{From, _} | _] = A, [{_, To} | B]) when To < From -> intersect(A, B);
intersect([{From1, To1} | A] = As, [{From2, To2} | B] = Bs) ->
    [{max(From1, From2), min(To1, To2)} | case To1 < To2 of
                                              true -> intersect(A, Bs);
                                              false -> intersect(As, B)
                                          end];
intersect(_, _) -> [].

-spec is_member(pos_integer(), intervals()) -> boolean().
is_member(N, [{From, To} | Rest]) -> N >= From andalso (N =< To orelse is_member(N, Rest));
is_member(_, []) -> false.

%% @doc How many numbers there are.
-spec count(intervals()) -> non_neg_integer().
count(Intervals) ->
    lists:foldl(fun({From, To}, Sum) -> Sum + To - From + 1 end, 0, Intervals).

%% @doc Folds over the numbers, which should be few.
-spec fold(fun((pos_integer(), Acc) -> Acc), Acc, intervals()) -> Acc.
fold(Fun, Acc0, Intervals) ->
    lists:foldl(fun({From, To}, Acc) -> lists:foldl(Fun, Acc, lists:seq(From, To)) end, Acc0,
                Intervals).

%% @doc The greatest number; 0 if there is none.
-spec last(intervals()) -> non_neg_integer().
last([]) -> 0;
last(Intervals) -> element(2, lists:last(Intervals)).

%% @doc Whether a term is such a list, in order.
-spec is_valid(term()) -> boolean().
is_valid(Term) -> is_valid(Term, -1).

is_valid([{From, To} | Rest], Before)
  when is_integer(From), is_integer(To), From >= 1, From > Before + 1, From =< To ->
    is_valid(Rest, To);
is_valid([], _) -> true;
is_valid(_, _) -> false.
