%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes of a store are killed while clients use it, one after the other, and each is started
%% again: the experiment `riak_availability' of `weft_store_workload'. A node comes back without
%% its copies, which were in memory. The next one is killed when it has them again, as far as the
%% number of its objects tells; or else the last copy of something may be killed.
-module(weft_store_availability).

-export([during/4]).
-export([objects/0]).

-type round() :: #{until_ms := integer(), pause_ms := pos_integer(), dir := file:filename(),
                   members := [node()]}.

-define(CALL_MS, 60000).
-define(LOOK_MS, 500).
%% Partitions have a few keys more or less than others.
-define(FILLED, 0.98).

%% @doc Kills and starts until there is no time for one more; then what the function says of how
%% many were killed. Nodes that were started again are there for as long. The first of the store is
%% never killed.
-spec during(weft_bench_nodes:nodes(), [weft_bench_nodes:role(), ...], round(),
             fun((Kills :: non_neg_integer()) -> Result)) -> Result.
during(Nodes, Store, Round, Then) -> during(Nodes, Store, Round, 0, Then).

during(Nodes, [First, Victim | Others] = Store, Round, Killed, Then) ->
    #{until_ms := UntilMs, pause_ms := PauseMs, dir := Dir, members := Members} = Round,
    ok = pause(PauseMs),
    case UntilMs - now_ms() > 3 * PauseMs of
        true ->
            Share = share(Nodes, Victim, Store),
            ok = weft_bench_nodes:kill(Nodes, Victim),
            ok = pause(PauseMs),
            weft_store_ring:again(
              Nodes, Victim, {Dir, Members},
              fun(New) ->
                  ok = filled(New, Victim, Store, ?FILLED * Share, UntilMs),
                  during(New, [First | Others] ++ [Victim], Round, Killed + 1, Then)
              end);
        false ->
            ok = pause(max(0, UntilMs - now_ms())),
            Then(Killed)
    end.

filled(Nodes, Victim, Store, Wanted, UntilMs) ->
    case now_ms() >= UntilMs orelse share(Nodes, Victim, Store) >= Wanted of
        true -> ok;
        false ->
            ok = pause(?LOOK_MS),
            filled(Nodes, Victim, Store, Wanted, UntilMs)
    end.

%% Of all objects, copies counted.
share(Nodes, Victim, Store) ->
    Counts = [{Role, weft_bench_nodes:call(Nodes, Role, ?MODULE, objects, {[], ?CALL_MS})}
              || Role <- Store],
    proplists:get_value(Victim, Counts) / max(1, lists:sum([Count || {_, Count} <- Counts])).

%% @private
-spec objects() -> non_neg_integer().
objects() ->
    case weft_kv_stats:read() of
        #{objects := Count} -> Count;
        not_running -> 0
    end.

pause(Ms) -> receive after Ms -> ok end.

now_ms() -> erlang:monotonic_time(millisecond).
