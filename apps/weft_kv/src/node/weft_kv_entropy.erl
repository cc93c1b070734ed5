%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares the replicas of the partitions of this node with others, one pair every
%% `entropy_ms', and repairs what differs (`weft_kv_exchange'). So a node that has lost what it had
%% gets it back, also for keys that nobody reads. At most one comparison runs at a time. After one
%% that has repaired much the next one begins at once: who lacks that much lacks more.
%%
%% Partitions of this node that may have forgotten what they had (`weft_kv_recall') come first, one
%% comparison at once after the other. One that fails, because the other node is away, for example,
%% does not keep the others waiting.
%%
%% It gives way to requests: between two steps of a comparison it pauses, for as long as
%% `weft_ring_handoff_pace' says. The sign is how long the other node takes for a small question to
%% the partition.
-module(weft_kv_entropy).
-behaviour(gen_server).

-export([start_link/1, info/0, compare/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(ASK_MS, 5000).
-define(ASK_SINCE_MS, 1000).
%% A comparison that is not done by then goes on after all others.
-define(COMPARE_MS, 20000).
%% It hangs.
-define(LONGEST_MS, 60000).
%% The least time between two steps.
-define(PACE_MS, 10).
-define(MUCH, 100).

%% Whoever becomes the owner of a partition meanwhile may know less than the one that was asked
%% first, so it is not asked: a comparison keeps its owners to the end. One of a partition that may
%% have forgotten something knows since when, and what the others were like when it began.
-type comparison() :: {weft_kv_exchange:state(), owners()}
                    | {weft_kv_exchange:state(), owners(), weft_kv_recall:since()}
                    | {weft_kv_exchange:state(), owners(),
                       {weft_kv_recall:since(), weft_kv_sinces:sinces()}}.
-type owners() :: new | #{Partition :: non_neg_integer() => node()}.

-record(entropy, {every_ms :: pos_integer() | infinity,
                  ns :: [pos_integer()],
                  left = [] :: [comparison()],
                  running = none :: none | {pid(), reference()},
                  since_ms = 0 :: integer(),
                  %% For each other node what was learned of it.
                  paces = #{} :: #{node() => weft_ring_handoff_pace:pace()},
                  counts = #{compared => 0, repaired => 0, failed => 0, alike => 0, pairs => 0}}).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc How many pairs were compared, how many keys were repaired (counted twice if both replicas
%% lacked something), how many comparisons failed (because a node was away, for example), how many
%% pairs in a row were alike, and how many pairs this node compares. If there were as many alike as
%% there are, the node lacks nothing, but for values of which no bucket has the `n' any more:
%% `not_compared' is in how many partitions of this node there are some. Answers of `incomplete'
%% partitions do not count yet (`weft_kv_recall'): no other node should be stopped meanwhile. Not
%% seen is what a bucket had in memory before its durability was changed.
-spec info() -> #{atom() => non_neg_integer()} | {error, not_running}.
info() ->
    try gen_server:call(?MODULE, info) of
        {Ns, Counts} -> Counts#{not_compared => weft_kv_stats:not_compared(Ns)}
    catch exit:{noproc, _} -> {error, not_running}
    end.

%% @private
init(#{entropy_ms := EveryMs, buckets := Buckets}) ->
    {ok, later(#entropy{every_ms = EveryMs, ns = weft_kv_bucket:compared(Buckets)})}.

later(#entropy{every_ms = EveryMs, ns = Ns} = Entropy) ->
    _ = EveryMs =:= infinity orelse Ns =:= [] orelse erlang:send_after(EveryMs, self(), next),
    Entropy.

%% @private
handle_call(info, _From, #entropy{ns = Ns, counts = Counts} = Entropy) ->
    {reply, {Ns, Counts#{incomplete => length(incomplete(Entropy))}}, Entropy};
handle_call(Request, _From, Entropy) ->
    {reply, weft_stray:call(Request), Entropy}.

%% @private
handle_cast(Request, Entropy) ->
    ok = weft_stray:message(Request),
    {noreply, Entropy}.

%% @private
handle_info(next, Entropy) ->
    {noreply, next(later(Entropy))};
handle_info({'DOWN', Ref, process, _, Result}, #entropy{running = {_, Ref}} = Entropy) ->
    {noreply, ended(Result, Entropy#entropy{running = none})};
handle_info(Message, Entropy) ->
    ok = weft_stray:message(Message),
    {noreply, Entropy}.

next(#entropy{running = {Pid, _}, since_ms = SinceMs} = Entropy) ->
    _ = erlang:monotonic_time(millisecond) - SinceMs > ?LONGEST_MS andalso exit(Pid, kill),
    Entropy;
next(Entropy) ->
    case lacking(Entropy) of
        [] -> in_turn(Entropy);
        Lacking ->
            {Pair, Since} = lists:nth(rand:uniform(length(Lacking)), Lacking),
            begun({weft_kv_exchange:new(Pair), new, Since}, Entropy)
    end.

%% What is to be known of one comes within a second of its start.
incomplete(#entropy{every_ms = EveryMs, ns = Ns}) when EveryMs =:= infinity; Ns =:= [] ->
    [];
incomplete(#entropy{ns = Ns}) ->
    Recalls = weft_kv_stats:recalls(),
    case weft_ring_lookup:owners(weft_ring) of
        {ok, Owners} ->
            [Partition || {Partition, Owner, primary} <- Owners, Owner =:= node(),
                          case lists:keyfind(Partition, 1, Recalls) of
                              {_, Recall} ->
                                  weft_kv_recall:is_incomplete(Partition, length(Owners),
                                                               {Ns, in_memory()}, Recall);
                              false -> true
                          end];
        {error, no_ring} -> []
    end.

%% The numbers of replicas of what is in memory only, and compared.
in_memory() ->
    {ok, Buckets} = weft_kv_app:buckets(),
    weft_kv_bucket:compared(maps:filter(fun(_, Options) ->
                                            maps:get(durability, Options, synced) =:= memory
                                        end, Buckets)).

lacking(#entropy{ns = Ns}) ->
    case {weft_kv_stats:recalls(), weft_ring_lookup:owners(weft_ring)} of
        {[_ | _] = Recalls, {ok, Owners}} ->
            [Pair || {Partition, Recall} <- Recalls,
                     lists:member({Partition, node(), primary}, Owners),
                     Pair <- weft_kv_recall:lacking(Partition, length(Owners), Ns, Recall)];
        _ -> []
    end.

in_turn(#entropy{left = [], paces = Paces} = Entropy) ->
    case pairs(Entropy) of
        [] -> Entropy;
        Pairs ->
            New = [{weft_kv_exchange:new(Pair), new} || Pair <- Pairs],
            in_turn(counted(pairs, length(Pairs),
                            Entropy#entropy{left = New,
                                            paces = maps:with([node() | nodes(connected)],
                                                              Paces)}))
    end;
in_turn(#entropy{left = [Comparison | Left]} = Entropy) ->
    begun(Comparison, Entropy#entropy{left = Left}).

begun(Comparison, #entropy{paces = Paces} = Entropy) ->
    Entropy#entropy{running = spawn_monitor(?MODULE, compare, [Comparison, Paces]),
                    since_ms = erlang:monotonic_time(millisecond)}.

pairs(#entropy{ns = Ns}) ->
    case weft_ring_lookup:owners(weft_ring) of
        {ok, Owners} ->
            %% The ring is not asked: it may have to wait for its disk.
            Mine = [P || {P, _, _} <- Owners,
                         weft_ring_lookup:is_mine(weft_ring, P) =:= {ok, true}],
            weft_kv_exchange:pairs(Mine, length(Owners), Ns);
        {error, no_ring} -> []
    end.

%% @private
-spec compare(comparison(), #{node() => weft_ring_handoff_pace:pace()}) -> no_return().
compare({Exchange, Before}, Paces) ->
    exit(compared(Exchange, Before, fun(Result) -> Result end, Paces));
compare({Exchange, Before, {_, _} = Known}, Paces) ->
    exit(compared(Exchange, Before, fun(Result) -> {lacked, recalled(Result, Exchange, Known)} end,
                  Paces));
compare({Exchange, Before, Since}, Paces) ->
    case weft_ring_lookup:size(weft_ring) of
        {ok, Size} ->
            Sinces = weft_kv_sinces:before(weft_kv_exchange:pair(Exchange), Size, fun ask_since/3),
            compare({Exchange, Before, {Since, Sinces}}, Paces);
        {error, no_ring} ->
            exit(no_ring)
    end.

compared(Exchange, Before, Then, Paces) ->
    {_, _, {One, Other}} = weft_kv_exchange:pair(Exchange),
    case owners(Before, One, Other) of
        #{Other := Node} = Owners ->
            Pace = maps:get(Node, Paces, weft_ring_handoff_pace:new(?PACE_MS)),
            Run = fun() -> steps(Exchange, Owners, weft_ring_handoff_pace:again(Pace)) end,
            {Result, Left} = weft_redact:run(Run),
            {compared, Then(Result), Node, Left};
        none -> no_ring
    end.

recalled({ok, Repaired}, Exchange, {Since, Sinces}) ->
    {N, KeyPartition, {One, Other}} = Pair = weft_kv_exchange:pair(Exchange),
    case weft_kv_sinces:is_same(Pair, Sinces, fun ask_since/3)
        andalso ask(node(), One, {KeyPartition, '', <<>>}, {compared, Since, {N, Other}, Sinces}) of
        {ok, ok} -> {ok, Repaired};
        {ok, {error, Reason}} -> {error, Reason};
        {error, Reason} -> {error, Reason};
        false -> {error, has_forgotten}
    end;
recalled({more, {Exchange, Owners}}, _, Known) ->
    {more, {Exchange, Owners, Known}};
recalled({error, Reason}, _, _) ->
    {error, Reason}.

owners(new, One, Other) ->
    case {weft_ring_lookup:owner(weft_ring, One), weft_ring_lookup:owner(weft_ring, Other)} of
        {{ok, A}, {ok, B}} -> #{One => A, Other => B};
        _ -> none
    end;
owners(Owners, _, _) ->
    Owners.

steps(Exchange, Owners, Pace0) ->
    Ask = fun(Partition, Key, Command) ->
              ask(map_get(Partition, Owners), Partition, Key, Command)
          end,
    UntilMs = erlang:monotonic_time(millisecond) + ?COMPARE_MS,
    case steps(Exchange, Ask, {1, UntilMs}, Pace0) of
        {{more, Next}, Pace} -> {{more, {Next, Owners}}, Pace};
        Ended -> Ended
    end.

steps(Exchange, Ask, {Number, UntilMs}, Pace0) ->
    case weft_kv_exchange:step(Exchange, Ask) of
        {more, Next} ->
            Pace = asked(Number, Next, Ask, Pace0),
            case erlang:monotonic_time(millisecond) < UntilMs of
                true ->
                    receive after weft_ring_handoff_pace:wait_ms(Pace) -> ok end,
                    steps(Next, Ask, {Number + 1, UntilMs}, Pace);
                false -> {{more, Next}, Pace}
            end;
        {done, Repaired} -> {{ok, Repaired}, Pace0};
        {error, Reason} -> {{error, Reason}, Pace0}
    end.

asked(Number, Exchange, Ask, Pace) ->
    {N, KeyPartition, {_, Other}} = weft_kv_exchange:pair(Exchange),
    Sent = weft_ring_handoff_pace:sent(Number, erlang:monotonic_time(millisecond), Pace),
    _ = Ask(Other, {KeyPartition, '', <<>>}, {entropy, {root, N}}),
    weft_ring_handoff_pace:acknowledged(Number, erlang:monotonic_time(millisecond), Sent).

%% One that hangs does not keep others from being compared. One that is not connected is away.
ask_since(Partition, Key, Command) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} ->
            case lists:member(Owner, [node() | nodes(connected)]) of
                true -> weft_vnode:ask(weft_kv_vnode, {Partition, Owner, primary}, Key, Command,
                                       ?ASK_SINCE_MS);
                false -> {error, {nodedown, Owner}}
            end;
        {error, Reason} -> {error, Reason}
    end.

ask(Owner, Partition, Key, Command) ->
    weft_vnode:ask(weft_kv_vnode, {Partition, Owner, primary}, Key, Command, ?ASK_MS).

ended({compared, Result, Node, Pace}, #entropy{paces = Paces} = Entropy) ->
    compared(Result, Entropy#entropy{paces = Paces#{Node => Pace}});
ended(_Failed, Entropy) ->
    compared({error, failed}, Entropy).

%% These are pairs of others, too, so they say nothing of how many pairs in a row were alike.
compared({lacked, {ok, 0}}, Entropy) ->
    next(more(compared, 1, Entropy));
compared({lacked, {ok, Repaired}}, Entropy) ->
    next(counted(alike, 0, more(repaired, Repaired, more(compared, 1, Entropy))));
compared({lacked, {more, Comparison}}, Entropy) ->
    begun(Comparison, Entropy);
compared({lacked, {error, _}}, Entropy) ->
    in_turn(counted(alike, 0, more(failed, 1, Entropy)));
compared({ok, 0}, #entropy{counts = #{alike := Alike}} = Entropy) ->
    counted(alike, Alike + 1, more(compared, 1, Entropy));
compared({ok, Repaired}, Entropy0) ->
    Entropy = counted(alike, 0, more(repaired, Repaired, more(compared, 1, Entropy0))),
    case Repaired >= ?MUCH of
        true -> next(Entropy);
        false -> Entropy
    end;
compared({more, Comparison}, #entropy{left = Left} = Entropy) ->
    next(Entropy#entropy{left = Left ++ [Comparison]});
compared({error, _}, Entropy) ->
    counted(alike, 0, more(failed, 1, Entropy)).

more(What, More, #entropy{counts = Counts} = Entropy) ->
    counted(What, map_get(What, Counts) + More, Entropy).

counted(What, Count, #entropy{counts = Counts} = Entropy) ->
    Entropy#entropy{counts = Counts#{What := Count}}.
