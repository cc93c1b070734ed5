%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients of the store, for the experiments on Riak: processes of a node that is not in the
%% ring. Each has a session on a node of the store, as a client of Riak has a connection; the
%% session does one operation after the other. A client whose session is lost counts a failure, and
%% goes on with the next node. Where keys are only read each has one value; two are a failure.
%%
%% `through => library': they use the client of the store instead (`weft_kv_client'), with its
%% defaults. It asks another node if one is lost. How many times it did that is counted, too; a
%% failure is what it tells as an error. With `read_back' some of the keys that were inserted are
%% read when all is done, with retries, since a node may just be starting. Those that are not there
%% are lost.
%%
%% Operations are get of a key that is there, insert of a new key, update of one that is there (read
%% and written), `mixed' one of these three, each as often. Latencies are those of all operations,
%% also of failed ones.
%%
%% Without a rate a client does its next operation when the last one is done. With one they are due
%% at times drawn beforehand, whether the last one is done or not, and latencies count from then on.
%% These times depend on the seed alone. What is due and not begun at the end counts as long as it
%% has waited.
-module(weft_store_clients).

-export([fill/2, run/1, metrics/1, due/1]).
-export([session/1]).
-export_type([load/0, outcome/0]).

-type operation() :: get | insert | update | mixed.
-type load() :: #{operation := operation(), through => session | library,
                  nodes := [node(), ...], clients := pos_integer(),
                  keys := pos_integer(), value_bytes := pos_integer(), seed := integer(),
                  duration_ms := pos_integer(),
                  %% Of so many keys that were inserted one is read in the end, by the library.
                  read_back => pos_integer(),
                  %% Of each client.
                  per_second => float()}.
-type outcome() :: #{elapsed_us := pos_integer(), latencies := weft_load_histogram:snapshot(),
                     seconds := [{Done :: non_neg_integer(), Failed :: non_neg_integer()}],
                     %% Of the library.
                     repeated => non_neg_integer(),
                     %% How many of the keys that were inserted were read, and how many were not
                     %% there.
                     read_back => non_neg_integer(), lost => non_neg_integer()}.

-define(BUCKET, bench).
-define(ANSWER_MS, 10000).
-define(AGAIN_MS, 20).
%% For what is no part of the load: a node that is asked tries again with the replicas.
-define(RETRIES, #{retries => 10}).

%% @doc On a node of the store: these of the keys that are there from the beginning, each with one
%% value, whatever it had before. The partitions of a ring that was just made may still move.
-spec fill(Keys :: [pos_integer()], ValueBytes :: pos_integer()) -> ok.
fill(Keys, ValueBytes) ->
    Value = value(ValueBytes),
    lists:foreach(fun(Number) ->
                      case weft_kv:update(?BUCKET, key(Number), fun(_) -> Value end, ?RETRIES) of
                          {ok, _} -> ok;
                          {error, Reason} -> erlang:error({not_filled, Reason})
                      end
                  end, Keys).

key(Number) -> <<"key ", (integer_to_binary(Number))/binary>>.

value(Bytes) -> rand:bytes(Bytes).

%% @doc On a node of clients: all of them, for the time that is given.
-spec run(load()) -> outcome().
run(#{clients := Clients, duration_ms := DurationMs} = Load) ->
    ok = begin_library(Load),
    Histogram = weft_load_histogram:new(),
    Seconds = ceil(DurationMs / 1000) + 1,
    Counts = counters:new(2 * Seconds, []),
    StartUs = erlang:monotonic_time(microsecond),
    Context = Load#{histogram => Histogram, counts => Counts, last => Seconds - 1,
                    start_us => StartUs, end_us => StartUs + DurationMs * 1000,
                    inserted => []},
    Self = self(),
    Running = [spawn_monitor(fun() -> Self ! {inserted, self(), client(Number, Context)} end)
               || Number <- lists:seq(1, Clients)],
    Inserted = lists:append([inserted(One) || One <- Running]),
    ElapsedUs = erlang:monotonic_time(microsecond) - StartUs,
    Read = read_back(Inserted, Load),
    (maps:merge(Read, end_library(Load)))#{
      elapsed_us => ElapsedUs,
      latencies => weft_load_histogram:snapshot(Histogram),
      seconds => [{counters:get(Counts, 2 * Second + 1), counters:get(Counts, 2 * Second + 2)}
                  || Second <- lists:seq(0, Seconds - 1)]}.

%% Of the keys that a client has inserted, those that are to be read. It said so before it ended.
inserted({Pid, Monitor}) ->
    receive
        {'DOWN', Monitor, process, Pid, normal} -> receive {inserted, Pid, Keys} -> Keys end;
        {'DOWN', Monitor, process, Pid, Why} -> erlang:error({client, Why})
    end.

read_back(Keys, #{read_back := _}) ->
    There = weft_kv_crew:map(fun(Key) -> got_by_library(Key, ?RETRIES) end, Keys),
    #{read_back => length(Keys), lost => length([lost || failed <- There])};
read_back([], _Load) ->
    #{}.

begin_library(#{through := library, nodes := Nodes}) ->
    {ok, _} = weft_kv_client:start_link(?MODULE, #{nodes => Nodes}),
    known(Nodes, erlang:monotonic_time(millisecond) + ?ANSWER_MS);
begin_library(_Load) ->
    ok.

%% It has a connection to each node, and knows who has which keys.
known(Nodes, DeadlineMs) ->
    case weft_kv_client:info(?MODULE) of
        #{partitions := Count, connected := Connected}
          when Count > 0, length(Connected) =:= length(Nodes) -> ok;
        Info ->
            erlang:monotonic_time(millisecond) < DeadlineMs
                orelse erlang:error({no_ring, maps:with([partitions, connected], Info)}),
            receive after ?AGAIN_MS -> known(Nodes, DeadlineMs) end
    end.

end_library(#{through := library}) ->
    #{repeated := Repeated} = weft_kv_client:info(?MODULE),
    ok = weft_kv_client:stop(?MODULE),
    #{repeated => Repeated};
end_library(_Load) ->
    #{}.

client(Number, #{seed := Seed} = Context0) ->
    Context = first_due(rand:seed_s(exsss, {Seed, Number, 2}), Context0),
    client_loop(begun(Number, Context), Number, 0, rand:seed_s(exsss, {Seed, Number, 1}), Context).

begun(_Number, #{through := library, value_bytes := ValueBytes}) ->
    {library, value(ValueBytes)};
begun(Number, #{nodes := Nodes} = Context) ->
    {Behind, Before} = lists:split(Number rem length(Nodes), Nodes),
    connected(Before ++ Behind, Context).

%% All clients at once would be a burst, which is no part of the load.
first_due(Pauses, #{per_second := _, start_us := StartUs} = Context) ->
    next_due(Context#{due_us => StartUs, pauses => Pauses});
first_due(_Pauses, Context) ->
    Context.

next_due(#{per_second := PerSecond, due_us := DueUs, pauses := Pauses} = Context) ->
    {PauseUs, Next} = pause_us(PerSecond, Pauses),
    Context#{due_us := DueUs + PauseUs, pauses := Next}.

pause_us(PerSecond, Random0) ->
    {Drawn, Random} = rand:uniform_s(Random0),
    {round(-math:log(1 - Drawn) * 1.0e6 / PerSecond), Random}.

connected([Node | Nodes], #{value_bytes := ValueBytes}) ->
    {Session, Monitor} = spawn_monitor(Node, ?MODULE, session, [{self(), ValueBytes}]),
    {Session, Monitor, Nodes ++ [Node]}.

client_loop(Connected, Number, Done, Random, Context0) ->
    {StartUs, Context} = begin_us(Context0),
    case Context of
        #{end_us := EndUs, inserted := Inserted} when StartUs >= EndUs ->
            _ = ended(Connected),
            Inserted;
        #{} ->
            {Request, NewRandom} = request(Number, Done, Random, Context),
            Outcome = asked(Request, Connected),
            ok = counted(Outcome, StartUs, Context),
            client_loop(next(Outcome, Connected, Context), Number, Done + 1, NewRandom,
                        remembered(Request, Outcome, Context))
    end.

%% Those that are read in the end are from all of the time.
remembered({insert, Key}, done, #{read_back := OneOf, inserted := Inserted} = Context) ->
    Context#{inserted := [Key || erlang:phash2(Key, OneOf) =:= 0] ++ Inserted};
remembered(_Request, _Outcome, Context) ->
    Context.

ended({library, _Value}) ->
    ok;
ended({Session, Monitor, _Nodes}) ->
    Session ! stop,
    true = demonitor(Monitor, [flush]).

asked(Request, {library, Value}) ->
    by_library(Request, Value);
asked(Request, {Session, Monitor, _Nodes}) ->
    Session ! Request,
    receive
        {Session, Answer} -> Answer;
        {'DOWN', Monitor, process, Session, _} -> lost
    after ?ANSWER_MS -> lost
    end.

%% When the next operation begins, or should have begun.
begin_us(#{due_us := DueUs, end_us := EndUs} = Context) ->
    ok = wait_until(min(DueUs, EndUs)),
    case erlang:monotonic_time(microsecond) of
        NowUs when NowUs >= EndUs, DueUs < EndUs ->
            ok = weft_load_histogram:record(NowUs - DueUs, maps:get(histogram, Context)),
            begin_us(next_due(Context));
        _ ->
            {DueUs, next_due(Context)}
    end;
begin_us(Context) ->
    {erlang:monotonic_time(microsecond), Context}.

%% Timers count milliseconds, so an operation may begin up to two of them late. To yield until then
%% would take the cores from the store.
wait_until(AtUs) ->
    case AtUs - erlang:monotonic_time(microsecond) of
        LeftUs when LeftUs > 0 -> receive after (LeftUs + 999) div 1000 -> wait_until(AtUs) end;
        _ -> ok
    end.

next(lost, {Session, Monitor, Nodes}, Context) ->
    true = demonitor(Monitor, [flush]),
    exit(Session, kill),
    receive after ?AGAIN_MS -> connected(Nodes, Context) end;
next(_Outcome, Connected, _Context) ->
    Connected.

counted(Outcome, StartUs, #{histogram := Histogram, counts := Counts, start_us := BeganUs,
                            last := Last} = Context) ->
    NowUs = erlang:monotonic_time(microsecond),
    ok = weft_load_histogram:record(NowUs - StartUs, Histogram),
    Second = min(Last, (NowUs - BeganUs) div 1000000),
    counters:add(Counts, 2 * Second + case is_done(Outcome, Context) of true -> 1; false -> 2 end,
                 1).

%% Updates at the same time make siblings, which are there until the next one.
is_done(siblings, #{operation := Operation}) -> Operation =/= get;
is_done(Outcome, _Context) -> Outcome =:= done.

request(Number, Done, Random, #{operation := mixed} = Context) ->
    {Which, NewRandom} = rand:uniform_s(3, Random),
    request(Number, Done, NewRandom,
            Context#{operation := element(Which, {get, insert, update})});
request(Number, Done, Random, #{operation := insert, seed := Seed}) ->
    {{insert, <<Seed:32, Number:32, Done:64>>}, Random};
request(_Number, _Done, Random, #{operation := Operation, keys := Keys}) ->
    {Key, NewRandom} = rand:uniform_s(Keys, Random),
    {{Operation, key(Key)}, NewRandom}.

%% @doc On a node of the store: does what a client asks for, and ends with it.
-spec session({Client :: pid(), ValueBytes :: pos_integer()}) -> ok.
session({Client, ValueBytes}) ->
    session(Client, monitor(process, Client), value(ValueBytes)).

session(Client, Monitor, Value) ->
    receive
        {Operation, Key} ->
            Client ! {self(), outcome(Operation, Key, Value)},
            session(Client, Monitor, Value);
        stop -> ok;
        {'DOWN', Monitor, process, Client, _} -> ok
    end.

outcome(get, Key, _Value) -> got(weft_kv:get(?BUCKET, Key));
outcome(insert, Key, Value) -> written(weft_kv:put(?BUCKET, Key, Value));
outcome(update, Key, Value) -> written(weft_kv:update(?BUCKET, Key, fun(_) -> Value end)).

got({ok, _, _}) -> done;
got({siblings, _, _}) -> siblings;
got({error, _}) -> failed.

written({ok, _}) -> done;
written({error, _}) -> failed.

by_library({get, Key}, _Value) ->
    got_by_library(Key, #{});
by_library({insert, Key}, Value) ->
    told(insert, weft_kv_client:put(?MODULE, ?BUCKET, Key, Value));
by_library({update, Key}, Value) ->
    told(update, weft_kv_client:update(?MODULE, ?BUCKET, Key, fun(_) -> Value end)).

got_by_library(Key, Options) ->
    case weft_kv_client:get(?MODULE, ?BUCKET, Key, Options) of
        {error, _} = Error -> told(get, Error);
        Got -> got(Got)
    end.

%% Failures are few, and each is of interest.
told(_Operation, {ok, _}) ->
    done;
told(Operation, Error) ->
    logger:warning("~p failed: ~0tP", [Operation, Error, 20]),
    failed.

%% @doc What several nodes of clients found, as measurements.
-spec metrics([outcome(), ...]) -> [weft_bench_workload:measurement()].
metrics(Outcomes) ->
    Latencies = weft_load_histogram:merge([Snapshot || #{latencies := Snapshot} <- Outcomes]),
    Sums = [{Done, Failed} || #{seconds := Seconds} <- Outcomes, {Done, Failed} <- Seconds],
    ElapsedUs = lists:max([Us || #{elapsed_us := Us} <- Outcomes]),
    Done = lists:sum([Count || {Count, _} <- Sums]),
    [{calls_per_s, Done * 1.0e6 / ElapsedUs}, {calls, Done},
     {failed_operations, lists:sum([Count || {_, Count} <- Sums])}
     | [{repeated_operations, Count} || Count <- repeated(Outcomes)] ++ kept(Outcomes)
       ++ [{Metric, weft_load_histogram:percentile(Percent, Latencies)}
          || {Metric, Percent} <- [{latency_p50_us, 50}, {latency_p99_us, 99},
                                   {latency_max_us, 100}]]].

%% @doc How many operations were due on all of them in the time of the load, done or not. Each has a
%% latency.
-spec due([outcome()]) -> non_neg_integer().
due(Outcomes) -> lists:sum([weft_load_histogram:count(All) || #{latencies := All} <- Outcomes]).

repeated(Outcomes) ->
    case [Count || #{repeated := Count} <- Outcomes] of
        [] -> [];
        Counts -> [lists:sum(Counts)]
    end.

kept(Outcomes) ->
    case [Outcome || #{read_back := _} = Outcome <- Outcomes] of
        [] -> [];
        Kept -> [{read_keys, lists:sum([Read || #{read_back := Read} <- Kept])},
                 {lost_keys, lists:sum([Lost || #{lost := Lost} <- Kept])}]
    end.
