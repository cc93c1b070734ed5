%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of this node that run and wait, so that there is no room for others.
-module(weft_kv_test_requests).

-export([occupied/1, freed/1, running/0, lingering/0]).

-define(TIMEOUT_MS, 60000).

%% @doc So many requests begin: their callers, with their own processes.
occupied(Count) ->
    Self = self(),
    Wait = fun(_) ->
               Self ! {waits, self(), ok},
               receive stop -> ok end
           end,
    Begin = fun(Fun) ->
                {Pid, Monitor} = spawn_monitor(Fun),
                Self ! {request, self(), Pid},
                {Pid, Monitor}
            end,
    _ = [spawn(fun() -> waits(Wait, Begin) end) || _ <- lists:seq(1, Count)],
    Waiting = [receive {waits, Request, ok} -> Request end || _ <- lists:seq(1, Count)],
    [receive {request, Caller, Request} -> {Caller, Request} end || Request <- Waiting].

%% Another request may have been there for a moment.
waits(Wait, Begin) ->
    case weft_kv_admission:run(Wait, Begin, ?TIMEOUT_MS, weft_kv_app:running()) of
        overload ->
            %% pacing: until the other one is over
            receive after 1 -> waits(Wait, Begin) end;
        _ -> ok
    end.

%% @doc They end.
freed(Occupied) ->
    Left = running() - length(Occupied),
    lists:foreach(fun({_, Request}) -> Request ! stop end, Occupied),
    weft_test_nodes:until(fun() -> running() =< Left end),
    ok.

%% @doc How many run, as their callers wait.
running() -> weft_kv_admission:count(weft_kv_app:running()).

%% @doc How many go on after their answer.
lingering() -> weft_kv_admission:lingering(weft_kv_app:running()).
