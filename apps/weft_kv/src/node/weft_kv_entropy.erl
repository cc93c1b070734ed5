%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares the replicas of the partitions of this node with others, one pair every
%% `entropy_ms', and repairs what differs (`weft_kv_exchange'). So a node that has lost what it had
%% gets it back, also for keys that nobody reads. At most one comparison runs at a time.
-module(weft_kv_entropy).
-behaviour(gen_server).

-export([start_link/1, info/0, compare/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(KEYS_MAX, 200).
-define(ASK_MS, 5000).
-define(LONGEST_MS, 60000).

-record(entropy, {every_ms :: pos_integer() | infinity,
                  ns :: [pos_integer()],
                  left = [] :: [weft_kv_exchange:pair()],
                  running = none :: none | {pid(), reference(), weft_kv_exchange:pair()},
                  since_ms = 0 :: integer(),
                  counts = #{compared => 0, repaired => 0, failed => 0, alike => 0, pairs => 0}}).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc How many pairs were compared, how many keys were repaired, how many comparisons failed
%% (because a node was away, for example), how many pairs in a row were alike, and how many pairs
%% this node compares. If there were as many alike as there are, the node lacks nothing.
-spec info() -> #{atom() => non_neg_integer()} | {error, not_running}.
info() ->
    try gen_server:call(?MODULE, info)
    catch exit:{noproc, _} -> {error, not_running}
    end.

%% @private
init(#{entropy_ms := EveryMs, buckets := Buckets}) ->
    %% A cache need not have what another one has.
    Ns = lists:usort([N || {_, #{n := N, evict := false}} <- maps:to_list(Buckets), N > 1]),
    {ok, later(#entropy{every_ms = EveryMs, ns = Ns})}.

later(#entropy{every_ms = EveryMs, ns = Ns} = Entropy) ->
    _ = EveryMs =:= infinity orelse Ns =:= [] orelse erlang:send_after(EveryMs, self(), next),
    Entropy.

%% @private
handle_call(info, _From, #entropy{counts = Counts} = Entropy) ->
    {reply, Counts, Entropy};
handle_call(Request, _From, Entropy) ->
    {reply, weft_stray:call(Request), Entropy}.

%% @private
handle_cast(Request, Entropy) ->
    ok = weft_stray:message(Request),
    {noreply, Entropy}.

%% @private
handle_info(next, Entropy) ->
    {noreply, next(later(Entropy))};
handle_info({'DOWN', Ref, process, _, Result}, #entropy{running = {_, Ref, _}} = Entropy) ->
    {noreply, ended(Result, Entropy#entropy{running = none})};
handle_info(Message, Entropy) ->
    ok = weft_stray:message(Message),
    {noreply, Entropy}.

next(#entropy{running = {Pid, _, _}, since_ms = SinceMs} = Entropy) ->
    _ = erlang:monotonic_time(millisecond) - SinceMs > ?LONGEST_MS andalso exit(Pid, kill),
    Entropy;
next(#entropy{left = []} = Entropy) ->
    case pairs(Entropy) of
        [] -> Entropy;
        Pairs -> next(counted(pairs, length(Pairs), Entropy#entropy{left = Pairs}))
    end;
next(#entropy{left = [Pair | Left]} = Entropy) ->
    {Pid, Ref} = spawn_monitor(?MODULE, compare, [Pair]),
    Entropy#entropy{left = Left, running = {Pid, Ref, Pair},
                    since_ms = erlang:monotonic_time(millisecond)}.

%% @private
-spec compare(weft_kv_exchange:pair()) -> no_return().
compare(Pair) ->
    Compare = fun() -> weft_kv_exchange:compare(Pair, ?KEYS_MAX, fun ask/3) end,
    exit({compared, weft_redact:run(Compare)}).

pairs(#entropy{ns = Ns}) ->
    case {weft_ring_lookup:owners(weft_ring), weft_ring:mine()} of
        {{ok, Owners}, Mine} when is_list(Mine) ->
            weft_kv_exchange:pairs(Mine, length(Owners), Ns);
        _ -> []
    end.

ask(Partition, Key, Command) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} ->
            weft_vnode:ask(weft_kv_vnode, {Partition, Owner, primary}, Key, Command, ?ASK_MS);
        {error, Reason} -> {error, Reason}
    end.

ended({compared, {ok, 0}}, #entropy{counts = #{alike := Alike}} = Entropy) ->
    counted(alike, Alike + 1, more(compared, 1, Entropy));
ended({compared, {ok, Repaired}}, Entropy) ->
    counted(alike, 0, more(repaired, Repaired, more(compared, 1, Entropy)));
ended(_Failed, Entropy) ->
    counted(alike, 0, more(failed, 1, Entropy)).

more(What, More, #entropy{counts = Counts} = Entropy) ->
    counted(What, map_get(What, Counts) + More, Entropy).

counted(What, Count, #entropy{counts = Counts} = Entropy) ->
    Entropy#entropy{counts = Counts#{What := Count}}.
