%% SPDX-License-Identifier: Apache-2.0
%% @doc What goes up the tree after a round: the best solution below, and counts. Pure.
%%
%% Of solutions with the same cost the one with the smaller schedule is better, so that the result
%% depends neither on who reports first nor on the form of the tree.
-module(weft_aco_report).

-export([new/3, new/4, better/2, add/2]).
-export_type([report/0, counts/0]).

%% Of a round and all that is below: messages between parents and children, children that were
%% started anew and those given up.
-type counts() :: #{messages := non_neg_integer(), restarts := non_neg_integer(),
                    given_up := non_neg_integer()}.
-type report() :: {report, Path :: [pos_integer()], Round :: pos_integer(), weft_aco:best(),
                   counts()}.

%% @doc The report of a colony.
-spec new([pos_integer()], pos_integer(), weft_aco:best()) -> report().
new(Path, Round, Best) ->
    new(Path, Round, Best, #{messages => 0, restarts => 0, given_up => 0}).

-spec new([pos_integer()], pos_integer(), weft_aco:best(), counts()) -> report().
new(Path, Round, Best, Counts) ->
    {report, Path, Round, Best, Counts}.

-spec better(weft_aco:best(), weft_aco:best()) -> weft_aco:best().
better(none, Other) -> Other;
better(Best, none) -> Best;
better(Best, Other) -> min(Best, Other).

-spec add(counts(), counts()) -> counts().
add(Counts, Others) ->
    maps:map(fun(Key, Count) -> Count + maps:get(Key, Others) end, Counts).
