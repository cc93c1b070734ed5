%% SPDX-License-Identifier: Apache-2.0
%% @doc How far a median, or the ratio of two medians, can be trusted: an interval that contains, in
%% 95 of 100 runs, the one that very many repetitions would have.
%%
%% It is a percentile bootstrap. From the repetitions of each side as many are drawn as there are,
%% with repetition, and the medians of what is drawn are divided; this a thousand times. Of these
%% quotients the interval leaves out the 25 smallest and the 25 largest. Random numbers begin with
%% the same seed each time, so the same repetitions have the same interval, in whatever order. With
%% two or three repetitions the interval is the whole range of possible quotients, and is right in 2
%% of 3 runs with two, in 9 of 10 with three. One repetition tells nothing of others, and has none.
-module(weft_report_interval).

-export([median/1, ratio/2, contains/2, superiority/2]).
-export_type([interval/0]).

-type interval() :: {Low :: number(), High :: number()} | none.

-define(DRAWN, 1000).
%% What lies below, and above, in percent.
-define(LOWEST, 2.5).
-define(HIGHEST, 97.5).

%% @doc The interval of the median.
-spec median([number(), ...]) -> interval().
median([_]) ->
    none;
median(Values) ->
    {Medians, _} = medians(Values, seed()),
    middle(Medians).

%% @doc The interval of the ratio of two medians. None where the divisor may be zero or less, too:
%% where more of the medians that are drawn are than it leaves out.
-spec ratio(Ours :: [number(), ...], Theirs :: [number(), ...]) -> interval().
ratio([_], _Theirs) ->
    none;
ratio(_Ours, [_]) ->
    none;
ratio(Ours, Theirs) ->
    {Above, Random} = medians(Ours, seed()),
    {Below, _} = medians(Theirs, Random),
    case 100 * length([x || Divisor <- Below, Divisor =< 0]) > (100 - ?HIGHEST) * ?DRAWN of
        true -> none;
        false -> middle(lists:zipwith(fun quotient/2, Above, Below))
    end.

%% An atom is more than any number, so these are among the largest, which are left out.
quotient(_, Divisor) when Divisor =< 0 -> infinity;
quotient(Dividend, Divisor) -> Dividend / Divisor.

seed() -> rand:seed_s(exsss, {1, 2, 3}).

medians(Values, Random) ->
    Sorted = list_to_tuple(lists:sort(Values)),
    lists:mapfoldl(fun(_, Before) -> drawn(Sorted, Before) end, Random, lists:seq(1, ?DRAWN)).

drawn(Sorted, Random) ->
    Count = tuple_size(Sorted),
    {Values, After} = lists:mapfoldl(fun(_, Before) ->
                                         {Rank, Next} = rand:uniform_s(Count, Before),
                                         {element(Rank, Sorted), Next}
                                     end, Random, lists:seq(1, Count)),
    {weft_report_statistics:median(Values), After}.

middle(All) ->
    Sorted = lists:sort(All),
    {weft_report_statistics:percentile(?LOWEST, Sorted),
     weft_report_statistics:percentile(?HIGHEST, Sorted)}.

%% @doc Is the number in the interval? If so, that it is another one is within noise.
-spec contains(number(), interval()) -> boolean().
contains(_Number, none) -> false;
contains(Number, {Low, High}) -> Low =< Number andalso Number =< High.

%% @doc The size of an effect, without a unit: of all pairs of a repetition of ours and one of
%% theirs, the share in which ours is more; equal ones count half. 0.5 is no effect, 1.0 and 0.0
%% that the repetitions do not overlap.
-spec superiority(Ours :: [number(), ...], Theirs :: [number(), ...]) -> float().
superiority(Ours, Theirs) ->
    lists:sum([more(A, B) || A <- Ours, B <- Theirs]) / (length(Ours) * length(Theirs)).

more(A, B) when A > B -> 1;
more(A, B) when A == B -> 0.5;
more(_, _) -> 0.
