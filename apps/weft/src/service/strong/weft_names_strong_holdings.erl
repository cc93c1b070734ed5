%% SPDX-License-Identifier: Apache-2.0
%% @doc The strong names that a node owns, and the processes that it monitors for them: a part of
%% `weft_names_strong_owner', which handles leases and requests. Pure; functions whose changes
%% concern others return effects.
%%
%% A process is monitored as long as it has a name or a request is in progress for it. For each
%% partition there is the sum of the tokens, by which owner and replicas compare what they know.
-module(weft_names_strong_holdings).

-export([new/0, put/3, drop/2, lose/3, find/2, is_known/2, names/2, sum/2, count/1]).
-export([watch/3, unwatch/3, gone/2, compare/3]).
-export_type([holdings/0, holding/0, on_lost/0]).

-type on_lost() :: exit | kill | tell.
-type holding() :: #{part := non_neg_integer(), pid := term(), token := pos_integer(),
                     meta := term(), on_lost := on_lost()}.
-type what() :: {name | request, term()}.

-record(holdings, {owned = #{} :: #{Name :: term() => holding()},
                   %% The sum of the tokens of each partition, and its names.
                   parts = #{} :: #{non_neg_integer() => {Sum :: pos_integer(),
                                                          #{Name :: term() => []}}},
                   pids = #{} :: #{Pid :: term() => #{what() => []}}}).

-opaque holdings() :: #holdings{}.

%% @doc No names.
-spec new() -> holdings().
new() -> #holdings{}.

%% @doc From now on this node owns a name that it did not own.
-spec put(Name :: term(), holding(), holdings()) -> {holdings(), weft_core:effects()}.
put(Name, #{part := P, pid := Pid, token := Token, meta := Meta, on_lost := OnLost} = Holding,
    Holdings0) ->
    {#holdings{owned = Owned, parts = Parts} = Holdings, Watch} =
        watch(Pid, {name, Name}, Holdings0),
    {Sum, Names} = maps:get(P, Parts, {0, #{}}),
    {Holdings#holdings{owned = Owned#{Name => Holding},
                       parts = Parts#{P => {Sum + Token, Names#{Name => []}}}},
     Watch ++ [{view, {name, Name}, {own, Pid, Token, Meta, P, OnLost}}]}.

%% @doc This node does not own the name any more; the process that had it is not told.
-spec drop(Name :: term(), holdings()) -> {holdings(), weft_core:effects()}.
drop(Name, #holdings{owned = Owned0, parts = Parts0} = Holdings0) when is_map_key(Name, Owned0) ->
    {#{part := P, pid := Pid, token := Token}, Owned} = maps:take(Name, Owned0),
    Parts = case map_get(P, Parts0) of
                {Token, _} -> maps:remove(P, Parts0);
                {Sum, Names} -> Parts0#{P := {Sum - Token, maps:remove(Name, Names)}}
            end,
    {Holdings, Unwatch} = unwatch(Pid, {name, Name},
                                  Holdings0#holdings{owned = Owned, parts = Parts}),
    {Holdings, Unwatch ++ [{view, {name, Name}, delete}]};
drop(_Name, Holdings) ->
    {Holdings, []}.

%% @doc This node has lost the name; the process that had it is told, in the way that it chose.
-spec lose(Name :: term(), Scope :: term(), holdings()) -> {holdings(), weft_core:effects()}.
lose(Name, Scope, #holdings{owned = Owned} = Holdings0) when is_map_key(Name, Owned) ->
    #{Name := #{pid := Pid, token := Token, on_lost := OnLost}} = Owned,
    {Holdings, Effects} = drop(Name, Holdings0),
    Told = case OnLost of
               exit -> {exit, Pid, {weft_names_lost, Scope, Name}};
               kill -> {exit, Pid, kill};
               tell -> {tell, Pid, {weft_names_lost, Scope, Name, Token}}
           end,
    {Holdings, Effects ++ [{notice, {lost, Name, Token}}, Told]};
lose(_Name, _Scope, Holdings) ->
    {Holdings, []}.

%% @doc The registration of a name.
-spec find(Name :: term(), holdings()) -> holding() | none.
find(Name, #holdings{owned = Owned}) -> maps:get(Name, Owned, none).

%% @doc Whether the node owns a name by this token.
-spec is_known({Name :: term(), Token :: pos_integer()}, holdings()) -> boolean().
is_known({Name, Token}, #holdings{owned = Owned}) ->
    case Owned of
        #{Name := #{token := Token}} -> true;
        #{} -> false
    end.

%% @doc The names in a partition.
-spec names(P :: non_neg_integer(), holdings()) -> [Name :: term()].
names(P, #holdings{parts = Parts}) ->
    {_, Names} = maps:get(P, Parts, {0, #{}}),
    lists:sort(maps:keys(Names)).

%% @doc The sum of the tokens in a partition; 0 if there is no name.
-spec sum(P :: non_neg_integer(), holdings()) -> non_neg_integer().
sum(P, #holdings{parts = Parts}) ->
    {Sum, _} = maps:get(P, Parts, {0, #{}}),
    Sum.

%% @doc How many names.
-spec count(holdings()) -> non_neg_integer().
count(#holdings{owned = Owned}) -> map_size(Owned).

%% @doc Monitors a process for one more reason.
-spec watch(Pid :: term(), what(), holdings()) -> {holdings(), weft_core:effects()}.
watch(Pid, What, #holdings{pids = Pids} = Holdings) ->
    case Pids of
        #{Pid := Held} -> {Holdings#holdings{pids = Pids#{Pid := Held#{What => []}}}, []};
        #{} -> {Holdings#holdings{pids = Pids#{Pid => #{What => []}}}, [{watch, Pid}]}
    end.

%% @doc There is one reason less to monitor the process.
-spec unwatch(Pid :: term(), what(), holdings()) -> {holdings(), weft_core:effects()}.
unwatch(Pid, What, #holdings{pids = Pids} = Holdings) ->
    case Pids of
        #{Pid := Held} when map_size(Held) =:= 1, is_map_key(What, Held) ->
            {Holdings#holdings{pids = maps:remove(Pid, Pids)}, [{unwatch, Pid}]};
        #{Pid := Held} ->
            {Holdings#holdings{pids = Pids#{Pid := maps:remove(What, Held)}}, []};
        #{} ->
            {Holdings, []}
    end.

%% @doc A process has ended: the numbers of its requests, and its names, which it still has.
-spec gone(Pid :: term(), holdings()) -> {Requests :: [term()], Names :: [term()], holdings()}.
gone(Pid, #holdings{pids = Pids} = Holdings) ->
    Held = lists:sort(maps:keys(maps:get(Pid, Pids, #{}))),
    {[Id || {request, Id} <- Held], [Name || {name, Name} <- Held],
     Holdings#holdings{pids = maps:remove(Pid, Pids)}}.

%% @doc Compares with the names that the replicas have of partition P since the operation No. Names
%% that are just being changed (`Busy') and newer ones are left out.
-spec compare({P :: non_neg_integer(), No :: non_neg_integer(), Busy :: map()},
              #{Name :: term() => Token :: pos_integer()}, holdings()) ->
          {OnlyHere :: [Name :: term()], OnlyThere :: [{Name :: term(), Token :: pos_integer()}]}.
compare({P, No, Busy}, Theirs, #holdings{owned = Owned} = Holdings) ->
    {[Name || Name <- names(P, Holdings), not is_map_key(Name, Busy),
              #{Name := #{token := Token}} <- [Owned],
              Token =< No, maps:get(Name, Theirs, none) =/= Token],
     [{Name, Token} || {Name, Token} <- lists:sort(maps:to_list(Theirs)),
                       not is_map_key(Name, Busy), not is_map_key(Name, Owned)]}.
