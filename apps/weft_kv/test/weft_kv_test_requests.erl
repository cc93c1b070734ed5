%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of this node that run and wait, so that there is no room for others.
-module(weft_kv_test_requests).

-include_lib("eunit/include/eunit.hrl").

-export([occupied/1, freed/1, running/0]).

-define(TIMEOUT_MS, 60000).

%% @doc So many requests begin: their callers, with their own processes.
occupied(Count) ->
    Self = self(),
    Wait = fun(_) ->
               Self ! {waits, self(), ok},
               receive stop -> ok end
           end,
    Run = fun() ->
              Begin = fun(Fun) ->
                          {Pid, Monitor} = spawn_monitor(Fun),
                          Self ! {request, self(), Pid},
                          {Pid, Monitor}
                      end,
              weft_kv_admission:run(Wait, Begin, ?TIMEOUT_MS, weft_kv_app:running())
          end,
    _ = [spawn(Run) || _ <- lists:seq(1, Count)],
    Told = [receive {Kind, _, _} = One when Kind =:= waits; Kind =:= request -> One end
            || _ <- lists:seq(1, 2 * Count)],
    ?assertEqual(Count, length([Who || {waits, Who, ok} <- Told])),
    [{Caller, Request} || {request, Caller, Request} <- Told].

%% @doc They end.
freed(Occupied) ->
    Left = running() - length(Occupied),
    lists:foreach(fun({_, Request}) -> Request ! stop end, Occupied),
    weft_test_nodes:until(fun() -> running() =< Left end),
    ok.

%% @doc How many run.
running() -> weft_kv_admission:count(weft_kv_app:running()).
