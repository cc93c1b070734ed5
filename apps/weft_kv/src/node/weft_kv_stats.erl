%% SPDX-License-Identifier: Apache-2.0
%% @doc What requests of this node came to, in counters that no process owns; what its partitions
%% hold, which they say once a second; and whether its replicas of strong buckets vote. For metrics,
%% and for whoever looks.
%%
%% Not here: how the replicas of other nodes are (each says that itself).
-module(weft_kv_stats).

-export([new/0, count/3, partition/1, replica/1, ended/0, not_compared/1, recalls/0, read/0]).
-export_type([kind/0, partition/0]).

-type kind() :: get | put | delete.
-type partition() :: #{hints | objects | memory_bytes | file_bytes := non_neg_integer(),
                       unwritable := 0 | 1, ns := [pos_integer()],
                       recall := {Partition :: non_neg_integer(), weft_kv_recall:recall()}}.
%% `hints': objects that wait for their owner. `unwritable': the last commit has failed. `ns': of
%% how many replicas its objects are that others have to have, too.

-define(KINDS, [get, put, delete]).
-define(ERRORS, [caller, overload, too_few, timeout, no_ring, other]).
-define(FIELDS, 12).

%% @doc Counters at 0, and the table for the partitions, which belongs to the caller.
-spec new() -> ok.
new() ->
    _ = ets:new(?MODULE, [named_table, public]),
    persistent_term:put(?MODULE, counters:new(?FIELDS, [write_concurrency])).

%% @doc Counts a request that began at this time (`erlang:monotonic_time/0').
-spec count(kind(), SinceNative :: integer(), term()) -> ok.
count(Kind, Since, Result) ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        Counters ->
            Us = erlang:convert_time_unit(erlang:monotonic_time() - Since, native, microsecond),
            Place = place(Kind, ?KINDS),
            ok = counters:add(Counters, Place, 1),
            ok = counters:add(Counters, length(?KINDS) + Place, Us),
            failed(Counters, Result)
    end.

%% A key that is not as a condition says is an answer.
failed(_Counters, {error, {conflict, _}}) -> ok;
failed(Counters, {error, Reason}) when Reason =/= not_found ->
    counters:add(Counters, 2 * length(?KINDS) + place(group(Reason), ?ERRORS), 1);
failed(_, _) -> ok.

group(Reason) when Reason =:= overload; Reason =:= timeout; Reason =:= no_ring -> Reason;
group({too_few, _}) -> too_few;
group(Reason) when Reason =:= unknown_bucket; Reason =:= bad_key; Reason =:= bad_value;
                   Reason =:= bad_context -> caller;
group({Reason, _}) when Reason =:= too_large; Reason =:= unknown_option;
                        Reason =:= bad_option; Reason =:= too_many_siblings -> caller;
group(_) -> other.

place(What, [What | _]) -> 1;
place(What, [_ | Others]) -> 1 + place(What, Others).

%% @doc What the partition has whose process calls this.
-spec partition(partition()) -> ok.
partition(Has) -> said({partition, Has}).

%% @doc What the replica of a strong bucket is whose process calls this.
-spec replica(weft_kv_strong_acceptor_core:status()) -> ok.
replica(Status) -> said({replica, Status}).

said(What) ->
    try ets:insert(?MODULE, {self(), What}) of
        true -> ok
    catch
        %% The partitions run without the application, too.
        error:badarg -> ok
    end.

%% @doc The partition whose process calls this has nothing any more. While an owner is away, others
%% start a process for each second in which somebody reads, and perhaps nobody looks here.
-spec ended() -> ok.
ended() ->
    try ets:delete(?MODULE, self()) of
        true -> ok
    catch
        error:badarg -> ok
    end.

%% @doc How many partitions of this node have objects of other numbers of replicas than these.
-spec not_compared([pos_integer()]) -> non_neg_integer().
not_compared(Ns) ->
    try living() of
        Said -> length([Has || {partition, Has} <- Said, maps:get(ns, Has, []) -- Ns =/= []])
    catch
        %% The application ends.
        error:badarg -> 0
    end.

%% @doc What the partitions of this node may have forgotten.
-spec recalls() -> [{Partition :: non_neg_integer(), weft_kv_recall:recall()}].
recalls() ->
    try living() of
        Said -> [Recall || {partition, #{recall := Recall}} <- Said]
    catch
        %% The application ends.
        error:badarg -> []
    end.

%% @doc What there is to tell, `not_running' if the application is not started. Times are sums.
%% `running': requests whose callers wait; `lingering': those that go on after their answer.
-spec read() -> #{requests := #{kind() => non_neg_integer()},
                  request_us := #{kind() => non_neg_integer()},
                  errors := #{atom() => non_neg_integer()},
                  running | lingering := non_neg_integer(),
                  entropy := #{atom() => non_neg_integer()},
                  strong := #{weft_kv_strong_acceptor_core:status() => non_neg_integer()},
                  hints | objects | memory_bytes | file_bytes | unwritable := non_neg_integer()}
              | not_running.
read() ->
    case {persistent_term:get(?MODULE, none), weft_kv_entropy:info()} of
        {none, _} -> not_running;
        {_, {error, not_running}} -> not_running;
        {Counters, Entropy} ->
            Said = living(),
            Sum = fun(Key) -> lists:sum([map_get(Key, Has) || {partition, Has} <- Said]) end,
            maps:merge(
              maps:from_list([{Key, Sum(Key)} || Key <- [hints, objects, memory_bytes, file_bytes,
                                                        unwritable]]),
              #{requests => counted(?KINDS, 0, Counters),
                request_us => counted(?KINDS, length(?KINDS), Counters),
                errors => counted(?ERRORS, 2 * length(?KINDS), Counters),
                running => weft_kv_admission:count(weft_kv_app:running()),
                lingering => weft_kv_admission:lingering(weft_kv_app:running()),
                entropy => Entropy,
                strong => maps:from_list([{Status, length([Is || {replica, Is} <- Said,
                                                                 Is =:= Status])}
                                          || Status <- [voting, founding, forgotten]])})
    end.

counted(Names, From, Counters) ->
    maps:from_list([{Name, counters:get(Counters, From + place(Name, Names))} || Name <- Names]).

%% One that was killed has nothing any more.
living() ->
    lists:append([case is_process_alive(Pid) of
                      true -> [What];
                      false -> true = ets:delete(?MODULE, Pid), []
                  end || {Pid, What} <- ets:tab2list(?MODULE)]).
