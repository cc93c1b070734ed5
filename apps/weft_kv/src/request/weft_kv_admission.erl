%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of a node, each in a process of its own, and at most so many of them at a time
%% (`requests_max'). A request counts until its caller has the answer. It may go on after that
%% (`linger/2'), and may need further processes that wait for it (`aside/2'): of these, too, there
%% are at most as many. All of them count themselves (`weft_kv_counted'). For a request that ends
%% without an answer its caller says that it does not count any more.
-module(weft_kv_admission).

-export([new/1, count/1, lingering/1, is_full/1, run/4, answer/2, linger/2, lingered/2, aside/2]).
-export_type([running/0, caller/0, stay/0]).

-record(running, {
    %% Those whose callers wait.
    callers :: weft_kv_counted:counted(),
    lingering :: weft_kv_lingering:lingering(),
    aside :: weft_kv_counted:counted()}).

%% Requests that are `unlimited' are not counted.
-opaque running() :: #running{} | unlimited.
-opaque caller() :: {reference(), running()}.
-opaque stay() :: weft_kv_lingering:place() | not_counted.

-define(MARGIN_MS, 1000).
-define(TRIES_MAX, 100).

%% @doc None runs. The tables end with the calling process.
-spec new(Max :: pos_integer() | infinity) -> running().
new(infinity) -> unlimited;
new(Max) ->
    #running{callers = weft_kv_counted:new(in_any_order, Max),
             lingering = weft_kv_lingering:new(Max),
             aside = weft_kv_counted:new(in_order, Max)}.

%% @doc How many callers wait. Some of their requests may have been killed.
-spec count(running()) -> non_neg_integer().
count(unlimited) -> 0;
count(#running{callers = Callers}) -> weft_kv_counted:count(Callers).

%% @doc How many requests go on after their answer.
-spec lingering(running()) -> non_neg_integer().
lingering(unlimited) -> 0;
lingering(#running{lingering = Lingering}) -> weft_kv_lingering:count(Lingering).

%% @doc Would one more be refused? Asked before anything is made for it.
-spec is_full(running()) -> boolean().
is_full(unlimited) -> false;
is_full(#running{callers = Callers}) -> weft_kv_counted:is_full(Callers).

%% @doc The answer that Request gives to its caller (`answer/2'), in a process that Begin makes.
%% There may be none: there are too many requests, time is over, or the process has ended.
-spec run(Request :: fun((caller()) -> term()),
          Begin :: fun((fun(() -> term())) -> {pid(), Monitor :: reference()}),
          TimeoutMs :: pos_integer(), running()) ->
          {answer, term()} | overload | timeout | {ended, Reason :: term()}.
run(Request, Begin, TimeoutMs, Running) ->
    Alias = alias([reply]),
    {Pid, Monitor} = Begin(fun() -> counted(Request, {Alias, Running}) end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            ok = left(Pid, Running),
            {ended, Reason}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> timeout end
    end.

counted(Request, {_, unlimited} = Caller) ->
    weft_redact:run(fun() -> Request(Caller) end);
counted(Request, {Alias, #running{callers = Callers}} = Caller) ->
    case has_entered(?TRIES_MAX, Callers) of
        true -> weft_redact:run(fun() -> Request(Caller) end);
        false -> Alias ! {Alias, overload}
    end.

%% Callers of the same moment have not seen each other. Each that finds too many leaves, and looks
%% once more: the last one that leaves sees whether there is room after all. So they are not all
%% refused then. Those that are never out of step with each other give up.
has_entered(0, _Callers) ->
    false;
has_entered(Tries, Callers) ->
    ok = weft_kv_counted:enter(self(), Callers),
    case weft_kv_counted:is_over(Callers) of
        true ->
            ok = weft_kv_counted:leave(self(), Callers),
            not weft_kv_counted:is_full(Callers) andalso has_entered(Tries - 1, Callers);
        false -> true
    end.

left(_Request, unlimited) -> ok;
left(Request, #running{callers = Callers}) -> weft_kv_counted:leave(Request, Callers).

%% @doc In the process of the request, once. It does not count any more when the caller has it: who
%% asks again at once finds room.
-spec answer(caller(), term()) -> ok.
answer({Alias, Running}, Answer) ->
    ok = left(self(), Running),
    Alias ! {Alias, {answer, Answer}},
    ok.

%% @doc The process of a request goes on after its answer, until it says `lingered/2'. It may be
%% told to `give_up' before: see `weft_kv_lingering'.
-spec linger(MayBeTwice :: boolean(), caller()) -> stay().
linger(_MayBeTwice, {_, unlimited}) -> not_counted;
linger(MayBeTwice, {_, #running{lingering = Lingering}}) ->
    weft_kv_lingering:begun(MayBeTwice, Lingering).

%% @doc It ends.
-spec lingered(stay(), caller()) -> ok.
lingered(not_counted, _Caller) -> ok;
lingered(Place, {_, #running{lingering = Lingering}}) ->
    weft_kv_lingering:ended(Place, Lingering).

%% @doc Does something for a request in another process, in which it may have to wait for a
%% connection. If there are too many of these, the oldest is killed: it most likely waits for a node
%% that hangs. The request hears nothing of it then, as of a replica that does not answer.
-spec aside(fun(() -> term()), caller()) -> ok.
aside(Do, {_, unlimited}) ->
    _ = spawn(weft_redact, run, [Do]),
    ok;
aside(Do, {_, #running{aside = Aside}}) ->
    _ = spawn(fun() -> counted_aside(Do, Aside) end),
    ok.

counted_aside(Do, Aside) ->
    Place = {erlang:monotonic_time(), self()},
    ok = weft_kv_counted:enter(Place, Aside),
    ok = weft_kv_counted:make_room(fun(Pid) -> exit(Pid, kill) end, Aside),
    try weft_redact:run(Do)
    after weft_kv_counted:leave(Place, Aside)
    end.
