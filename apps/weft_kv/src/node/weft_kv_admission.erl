%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of a node, each in a process of its own that may go on after its answer, and at
%% most so many of them at a time (`requests_max'). They count themselves: nothing stays counted of
%% a caller that is killed, and no process is shared by them. One that is killed is taken off by its
%% caller; if that has ended as well before, it stays counted.
-module(weft_kv_admission).

-export([is_full/1, run/4, answer/2]).
-export_type([running/0, caller/0]).

-type running() :: {counters:counters_ref(), Max :: pos_integer()}.
-opaque caller() :: reference().

-define(MARGIN_MS, 1000).

%% @doc Would one more be refused? Asked before anything is made for it.
-spec is_full(running()) -> boolean().
is_full({Running, Max}) -> counters:get(Running, 1) >= Max.

%% @doc The answer that Request gives to its caller (`answer/2'), in a process that Begin makes.
%% There may be none: there are too many requests, time is over, or the process has ended.
-spec run(Request :: fun((caller()) -> term()),
          Begin :: fun((fun(() -> term())) -> {pid(), Monitor :: reference()}),
          TimeoutMs :: pos_integer(), running()) ->
          {answer, term()} | overload | timeout | {ended, Reason :: term()}.
run(Request, Begin, TimeoutMs, {Running, _Max} = Limit) ->
    Alias = alias([reply]),
    {Pid, Monitor} = Begin(fun() -> counted(Request, Alias, Limit) end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            ok = uncounted(Reason, Running),
            {ended, Reason}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> timeout end
    end.

%% Callers of the same moment have not seen each other.
counted(Request, Alias, {Running, Max}) ->
    ok = counters:add(Running, 1, 1),
    try
        case counters:get(Running, 1) > Max of
            true -> Alias ! {Alias, overload};
            false -> weft_redact:run(fun() -> Request(Alias) end)
        end
    after counters:sub(Running, 1, 1)
    end.

%% Who is killed, for too large a heap, for example, has not said that it ends.
uncounted(killed, Running) -> counters:sub(Running, 1, 1);
uncounted(_, _Running) -> ok.

%% @doc In the process of the request, once.
-spec answer(caller(), term()) -> ok.
answer(Alias, Answer) ->
    Alias ! {Alias, {answer, Answer}},
    ok.
