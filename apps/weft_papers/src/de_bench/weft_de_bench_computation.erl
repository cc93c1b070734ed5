%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node computes for a command of DE-Bench. As there it takes its time by the clock:
%% processes that compute at the same time, on one core, are all done after that time, and a node
%% that stands still for it has computed nothing. With a number of rounds each computes by itself,
%% so that what a core can do is a limit.
-module(weft_de_bench_computation).

-export([new/2, run/1, rounds_per_us/0]).
-export_type([computation/0]).

-type computation() :: {us | rounds, non_neg_integer()}.

%% Some tens of milliseconds, which whoever else wants the core may disturb.
-define(ROUNDS, 1000000).
-define(TRIES, 10).

%% @doc So many microseconds: by the clock, or as rounds, of which so many take a microsecond.
-spec new(Us :: non_neg_integer(), RoundsPerUs :: number() | none) -> computation().
new(Us, none) -> {us, Us};
new(Us, RoundsPerUs) -> {rounds, round(Us * RoundsPerUs)}.

%% @doc Computes.
-spec run(computation()) -> ok.
run({us, Us}) -> until(erlang:monotonic_time(microsecond) + Us);
run({rounds, Rounds}) ->
    _ = rounds(Rounds, 0),
    ok.

until(EndUs) ->
    case erlang:monotonic_time(microsecond) < EndUs of
        true -> until(EndUs);
        false -> ok
    end.

%% A hash of a hash can not be left out by a compiler.
rounds(0, Hash) -> Hash;
rounds(Rounds, Hash) -> rounds(Rounds - 1, erlang:phash2(Hash)).

%% @doc How many rounds this machine does in a microsecond, if nothing disturbs it. Found out once,
%% so that all that this emulator measures is held against the same work.
-spec rounds_per_us() -> float().
rounds_per_us() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Times = [Us || _ <- lists:seq(1, ?TRIES),
                           {Us, _} <- [timer:tc(fun() -> rounds(?ROUNDS, 0) end)]],
            RoundsPerUs = ?ROUNDS / lists:min(Times),
            ok = persistent_term:put(?MODULE, RoundsPerUs),
            RoundsPerUs;
        RoundsPerUs ->
            RoundsPerUs
    end.
