%% SPDX-License-Identifier: Apache-2.0
%% @doc Strong names of other nodes that this node has read, for a while: a part of
%% `weft_names_strong_owner'. The rows are views; this module knows only their names, and until
%% when they are valid.
-module(weft_names_strong_cache).

-export([new/0, put/4, drop/2, sweep/3, count/1]).
-export_type([cache/0]).

%% No more are kept; then each reader asks the replicas.
-define(NAMES_MAX, 100000).
-define(LONG_AGO_MS, -(1 bsl 58)).

-opaque cache() :: {#{Name :: term() => UntilMs :: integer()}, SweptMs :: integer()}.

-spec new() -> cache().
new() -> {#{}, ?LONG_AGO_MS}.

%% @doc Keeps the registration of a name until UntilMs.
-spec put(Name :: term(), {Pid :: term(), Token :: pos_integer(), Meta :: term()},
          UntilMs :: integer(), cache()) -> {cache(), weft_core:effects()}.
put(Name, {Pid, Token, Meta}, UntilMs, {Names, SweptMs}) when map_size(Names) < ?NAMES_MAX ->
    {{Names#{Name => UntilMs}, SweptMs},
     [{view, {name, Name}, {cached, Pid, Token, Meta, UntilMs}}]};
put(_Name, _Value, _UntilMs, Cache) ->
    {Cache, []}.

%% @doc Forgets a name.
-spec drop(Name :: term(), cache()) -> {cache(), weft_core:effects()}.
drop(Name, {Names, SweptMs}) when is_map_key(Name, Names) ->
    {{maps:remove(Name, Names), SweptMs}, [{view, {name, Name}, delete}]};
drop(_Name, Cache) ->
    {Cache, []}.

%% @doc Forgets names whose time is over, once in PauseMs.
-spec sweep(NowMs :: integer(), PauseMs :: non_neg_integer(), cache()) ->
          {cache(), weft_core:effects()}.
sweep(NowMs, PauseMs, {Names, SweptMs}) when NowMs - SweptMs >= PauseMs ->
    Over = [Name || {Name, UntilMs} <- maps:to_list(Names), UntilMs =< NowMs],
    {{maps:without(Over, Names), NowMs}, [{view, {name, Name}, delete} || Name <- Over]};
sweep(_NowMs, _PauseMs, Cache) ->
    {Cache, []}.

-spec count(cache()) -> non_neg_integer().
count({Names, _SweptMs}) -> map_size(Names).
