%% SPDX-License-Identifier: Apache-2.0
%% @doc Where the names of a strong scope are kept: names fall into partitions, and each partition
%% has its replicas on some of the voters, chosen by rendezvous hashing (Thaler and Ravishankar,
%% 1998).
%%
%% When a voter comes or goes only those partitions change that have, or had, a replica on it. The
%% first replica of a partition should lead it; first replicas are spread evenly over the voters.
-module(weft_names_strong_placement).

-export([partition/2, replicas/3, majority/1]).

%% @doc The partition of a name, from 0.
-spec partition(Name :: term(), Partitions :: pos_integer()) -> non_neg_integer().
partition(Name, Partitions) ->
    erlang:phash2(Name, Partitions).

%% @doc The nodes with the replicas of a partition, the preferred leader first: Wanted of them, or
%% with fewer voters the greatest odd number (an even one would not survive more losses).
-spec replicas(Partition :: non_neg_integer(), Voters :: [node()], Wanted :: pos_integer()) ->
          [node()].
replicas(Partition, Voters, Wanted) ->
    Count = min(Wanted, length(Voters) - (1 - length(Voters) rem 2)),
    Ranked = lists:sort([{erlang:phash2({Voter, Partition}), Voter} || Voter <- Voters]),
    [Voter || {_, Voter} <- lists:sublist(Ranked, Count)].

%% @doc The smallest number that is more than half of Count.
-spec majority(Count :: non_neg_integer()) -> pos_integer().
majority(Count) ->
    Count div 2 + 1.
