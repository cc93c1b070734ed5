%% SPDX-License-Identifier: Apache-2.0
%% @doc Options of a strong scope: checked, with defaults, and the times that follow from the lease.
%%
%% The user sets one time: `lease_ms', how long an owner that was not heard keeps its names. A
%% longer lease tolerates longer interruptions; a shorter one frees the names of a lost node sooner.
%% All other times follow from it, so that a leader can fail and be replaced within a lease.
-module(weft_names_strong_options).

-export([check/1, complete/1]).
-export_type([options/0]).

-define(LEASE_MS, 8000).

-type options() :: #{voters := [node()],
                     view := pos_integer(),
                     replicas := pos_integer(),
                     partitions := pos_integer(),
                     names_max := pos_integer(),
                     lease_ms := pos_integer(),
                     margin_ms := pos_integer(),
                     tick_ms := pos_integer(),
                     heartbeat_ms := pos_integer(),
                     election_ms := pos_integer(),
                     renew_ms := pos_integer(),
                     retry_ms := pos_integer(),
                     cache_ms := pos_integer(),
                     atom() => term()}.
%% `margin_ms': how much longer than the owner itself the replicas take a lease for valid; it covers
%% clocks whose rates differ by a tenth. `view': 1 may found the scope, see
%% `weft_names_strong_replica'.

%% @doc The text says what is wrong with the options of a scope and what they must be.
-spec check(map()) -> ok | {error, string()}.
check(Options) ->
    Unknown = maps:keys(Options) -- [kind | [Key || {Key, _, _} <- rules()]],
    case [io_lib:format("unknown option ~0p", [Key]) || Key <- Unknown]
        ++ [io_lib:format("~s is ~0p, it must be ~s", [Key, maps:get(Key, Options), Text])
            || {Key, Check, Text} <- rules(), is_map_key(Key, Options),
               not Check(maps:get(Key, Options))]
        ++ ["voters are missing: name the nodes that keep the names"
            || not is_map_key(voters, Options)] of
        [] -> ok;
        Errors -> {error, lists:flatten(lists:join("; ", Errors))}
    end.

rules() ->
    [{voters, fun is_voters/1, "a list of 1 to 1000 different nodes"},
     {view, between(1, 1 bsl 40), "an integer from 1"},
     {replicas, fun(N) -> lists:member(N, [1, 3, 5, 7]) end, "1, 3, 5 or 7"},
     {partitions, between(1, 4096), "an integer from 1 to 4096, the same on all nodes"},
     {names_max, between(1, 1 bsl 40), "an integer from 1"},
     {lease_ms, between(500, 600000), "milliseconds, from 500 to 600000, the same on all nodes"},
     {cache_ms, between(0, 600000), "milliseconds, from 0 to 600000"}].

is_voters(Voters) when length(Voters) >= 1, length(Voters) =< 1000 -> % not an improper list
    lists:all(fun is_atom/1, Voters)
        andalso length(lists:usort(Voters)) =:= length(Voters);
is_voters(_) ->
    false.

between(Min, Max) ->
    fun(Value) -> is_integer(Value) andalso Value >= Min andalso Value =< Max end.

%% @doc All options and times.
-spec complete(map()) -> options().
complete(Options) ->
    LeaseMs = maps:get(lease_ms, Options, ?LEASE_MS),
    maps:merge(#{view => 1, replicas => 3, partitions => 16, names_max => 1000000,
                 lease_ms => LeaseMs,
                 margin_ms => max(100, LeaseMs div 8),
                 tick_ms => max(10, LeaseMs div 80),
                 heartbeat_ms => max(30, LeaseMs div 20),
                 election_ms => max(120, LeaseMs div 6),
                 renew_ms => LeaseMs div 4,
                 retry_ms => max(50, LeaseMs div 16),
                 cache_ms => LeaseMs}, Options).
