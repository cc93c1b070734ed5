%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of a node, each in a process of its own that may go on after its answer, and at
%% most so many of them at a time (`requests_max'). They count themselves, in a table that has each
%% of them while it runs, and no process is shared by them. Those that were killed are removed when
%% the table seems full, at most once a second.
-module(weft_kv_admission).

-export([new/1, count/1, is_full/1, run/4, answer/2]).
-export_type([running/0, caller/0]).

-record(running, {
    table :: ets:table(),
    max :: pos_integer(),
    %% When those that had ended were removed, in a monotonic millisecond.
    swept_ms :: atomics:atomics_ref()}).

%% Requests that are `unlimited' are not counted.
-opaque running() :: #running{} | unlimited.
-opaque caller() :: reference().

-define(MARGIN_MS, 1000).
-define(SWEEP_MS, 1000).

%% @doc None runs. The table ends with the calling process.
-spec new(Max :: pos_integer() | infinity) -> running().
new(infinity) -> unlimited;
new(Max) ->
    SweptMs = atomics:new(1, [{signed, true}]),
    ok = atomics:put(SweptMs, 1, erlang:monotonic_time(millisecond) - ?SWEEP_MS),
    #running{table = ets:new(?MODULE, [public, {write_concurrency, true}]), max = Max,
             swept_ms = SweptMs}.

%% @doc How many run. Some of them may have been killed.
-spec count(running()) -> non_neg_integer().
count(unlimited) -> 0;
count(#running{table = Table}) ->
    case ets:info(Table, size) of
        undefined -> 0;
        Count -> Count
    end.

%% @doc Would one more be refused? Asked before anything is made for it.
-spec is_full(running()) -> boolean().
is_full(unlimited) -> false;
is_full(#running{max = Max} = Running) ->
    count(Running) >= Max andalso not (sweep(Running) andalso count(Running) < Max).

%% Whether those that have ended were removed now. Each look takes as long as there are requests.
sweep(#running{table = Table, swept_ms = SweptMs}) ->
    NowMs = erlang:monotonic_time(millisecond),
    LastMs = atomics:get(SweptMs, 1),
    case NowMs - LastMs >= ?SWEEP_MS
        andalso atomics:compare_exchange(SweptMs, 1, LastMs, NowMs) of
        ok ->
            noted(fun() ->
                      [ets:delete(Table, Pid) || {Pid} <- ets:tab2list(Table),
                                                 not is_process_alive(Pid)]
                  end),
            true;
        _ -> false
    end.

%% @doc The answer that Request gives to its caller (`answer/2'), in a process that Begin makes.
%% There may be none: there are too many requests, time is over, or the process has ended.
-spec run(Request :: fun((caller()) -> term()),
          Begin :: fun((fun(() -> term())) -> {pid(), Monitor :: reference()}),
          TimeoutMs :: pos_integer(), running()) ->
          {answer, term()} | overload | timeout | {ended, Reason :: term()}.
run(Request, Begin, TimeoutMs, Running) ->
    Alias = alias([reply]),
    {Pid, Monitor} = Begin(fun() -> counted(Request, Alias, Running) end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            {ended, Reason}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> timeout end
    end.

counted(Request, Alias, unlimited) ->
    weft_redact:run(fun() -> Request(Alias) end);
counted(Request, Alias, #running{table = Table, max = Max} = Running) ->
    ok = noted(fun() -> ets:insert(Table, {self()}) end),
    try
        %% Callers of the same moment have not seen each other.
        case count(Running) > Max of
            true -> Alias ! {Alias, overload};
            false -> weft_redact:run(fun() -> Request(Alias) end)
        end
    after noted(fun() -> ets:delete(Table, self()) end)
    end.

%% Of an application that was stopped meanwhile there is no table.
noted(Note) ->
    try
        _ = Note(),
        ok
    catch
        error:badarg -> ok
    end.

%% @doc In the process of the request, once.
-spec answer(caller(), term()) -> ok.
answer(Alias, Answer) ->
    Alias ! {Alias, {answer, Answer}},
    ok.
