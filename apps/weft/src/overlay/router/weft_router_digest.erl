%% SPDX-License-Identifier: Apache-2.0
%% @doc Digests by which two neighbours find out whether one has heard all that the other announced.
%%
%% A digest is the number of routes and the sum of their hashes. It leaves out the seqno, because a
%% new seqno alone is not announced to everyone. Sums can be subtracted: the digest for one
%% neighbour is that of all routes less those that it is not told.
-module(weft_router_digest).

-export([heard/1, is_due/1, expected/3]).
-export_type([digest/0]).

%% While nothing changes, digests are sent in one round of so many.
-define(ROUNDS, 16).

-type digest() :: {Count :: non_neg_integer(), Sum :: non_neg_integer()}.
-type summary() :: {All :: digest(), Through :: #{weft_core:node_id() => digest()},
                      Each :: #{weft_core:node_id() => {NextHop :: weft_core:node_id(), digest()}}}.

%% @doc Digest of what a neighbour announced to us.
-spec heard(#{weft_core:node_id() => weft_router_table:heard()}) -> digest().
heard(Heard) ->
    maps:fold(fun(Dest, {_, Metric, Hops}, Sum) -> add(digest(Dest, Metric, Hops), Sum) end,
              {0, 0}, Heard).

%% @doc Are digests to be sent in this round, the first one after a change being number 1? What is
%% lost, is lost with a change. So it is looked for soon after one, and then more and more rarely.
-spec is_due(Round :: pos_integer()) -> boolean().
is_due(Round) -> Round band (Round - 1) =:= 0 orelse Round rem ?ROUNDS =:= 0.

%% @doc What each of these neighbours should have heard of all that we announced.
-spec expected([weft_core:node_id()],
               Announced :: #{weft_core:node_id() => NextHop :: weft_core:node_id()},
               Selected :: #{weft_core:node_id() => weft_router_table:selection()}) ->
          [{weft_core:node_id(), digest()}].
expected([], _Announced, _Selected) ->
    [];
expected(Neighbours, Announced, Selected) ->
    Summary = summary(Announced, Selected),
    [{Node, expected(Node, Summary)} || Node <- Neighbours].

-spec summary(#{weft_core:node_id() => weft_core:node_id()},
              #{weft_core:node_id() => weft_router_table:selection()}) -> summary().
summary(Announced, Selected) ->
    Each = maps:map(fun(Dest, Next) ->
                        {_, _, Metric, Hops} = map_get(Dest, Selected),
                        {Next, digest(Dest, Metric, Hops)}
                    end, Announced),
    All = maps:fold(fun(_, {_, Digest}, Sum) -> add(Digest, Sum) end, {0, 0}, Each),
    Through = maps:fold(fun(_, {Next, Digest}, Sums) ->
                            Sums#{Next => add(Digest, maps:get(Next, Sums, {0, 0}))}
                        end, #{}, Each),
    {All, Through, Each}.

%% All but the routes through it and the one to it.
expected(Node, {All, Through, Each}) ->
    Told = subtract(maps:get(Node, Through, {0, 0}), All),
    case Each of
        #{Node := {Next, Digest}} when Next =/= Node -> subtract(Digest, Told);
        #{} -> Told
    end.

digest(Dest, Metric, Hops) ->
    {1, erlang:phash2({Dest, Metric, Hops})}.

add({Count1, Sum1}, {Count2, Sum2}) ->
    {Count1 + Count2, Sum1 + Sum2}.

subtract({Less, LessSum}, {Count, Sum}) ->
    {Count - Less, Sum - LessSum}.
