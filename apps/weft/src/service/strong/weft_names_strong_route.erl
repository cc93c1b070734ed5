%% SPDX-License-Identifier: Apache-2.0
%% @doc Which replica of each partition of a strong scope a node asks: the one that answered last,
%% or that another named as the leader; else the first that can be reached. A part of
%% `weft_names_strong_owner'. Pure.
-module(weft_names_strong_route).

-export([new/0, choose/4, answered/3, sent_on/5, elsewhere/3, to/2]).
-export_type([routes/0]).

%% Without a pause; two replicas may each believe that the other leads.
-define(SENT_ON_MAX, 3).

-opaque routes() :: #{non_neg_integer() => {node(), SentOn :: non_neg_integer()}}.

%% @doc No replica was asked yet.
-spec new() -> routes().
new() -> #{}.

%% @doc The replica to ask now; `true' if it is not the one that was asked before, so that others
%% should be connected, too.
-spec choose(P :: non_neg_integer(), Replicas :: [node(), ...], Up :: #{node() => term()},
             routes()) -> {node(), IsNew :: boolean(), routes()}.
choose(P, Replicas, Up, Routes) ->
    case Routes of
        #{P := {Replica, _}} when is_map_key(Replica, Up) ->
            {Replica, false, Routes};
        #{} ->
            Chosen = hd([Replica || Replica <- Replicas, is_map_key(Replica, Up)] ++ Replicas),
            {_, Count} = maps:get(P, Routes, {none, 0}),
            {Chosen, true, Routes#{P => {Chosen, Count}}}
    end.

%% @doc This replica answered as the leader does.
-spec answered(P :: non_neg_integer(), node(), routes()) -> routes().
answered(P, Replica, Routes) -> Routes#{P => {Replica, 0}}.

%% @doc A replica says that it does not lead, and names the leader, if it knows. `again': the leader
%% should be asked at once; `later': with the next tick; `not_asked': it is not the replica that was
%% asked.
-spec sent_on(P :: non_neg_integer(), From :: node(), Leader :: node() | none,
              Replicas :: [node(), ...], routes()) -> {again | later | not_asked, routes()}.
sent_on(P, From, Leader, Replicas, Routes) ->
    case Routes of
        #{P := {From, Count}} when Leader =:= none ->
            {later, Routes#{P := {next(From, Replicas), Count + 1}}};
        #{P := {From, Count}} when Count < ?SENT_ON_MAX ->
            {again, Routes#{P := {Leader, Count + 1}}};
        #{P := {From, Count}} ->
            {later, Routes#{P := {Leader, Count + 1}}};
        #{} ->
            {not_asked, Routes}
    end.

%% @doc The next replica, because this one can not be reached or does not answer.
-spec elsewhere(P :: non_neg_integer(), Replicas :: [node(), ...], routes()) -> routes().
elsewhere(P, Replicas, Routes) ->
    {Replica, _} = maps:get(P, Routes, {none, 0}),
    Routes#{P => {next(Replica, Replicas), 0}}.

next(Replica, Replicas) ->
    case lists:dropwhile(fun(Other) -> Other =/= Replica end, Replicas) of
        [Replica, Next | _] -> Next;
        _ -> hd(Replicas)
    end.

%% @doc The partitions for which this replica is asked.
-spec to(node(), routes()) -> [P :: non_neg_integer()].
to(Replica, Routes) ->
    lists:sort([P || {P, {Asked, _}} <- maps:to_list(Routes), Asked =:= Replica]).
