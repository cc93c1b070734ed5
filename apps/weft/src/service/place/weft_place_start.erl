%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts a process on a node within a time, or not at all: a process that starts later is
%% killed, so that a caller that goes on to another node does not have two.
%%
%% A process in between sends the request, because sending may have to wait for a connection.
-module(weft_place_start).

-export([start/3]).
-export([attempt/3]).

%% @doc Starts it on the node. `timeout': it did not start in time, and will not run.
-spec start(node(), {module(), atom(), [term()]}, TimeoutMs :: non_neg_integer()) ->
          {ok, pid()} | {error, term()}.
start(Node, MFA, TimeoutMs) ->
    Alias = alias(),
    Attempt = spawn(?MODULE, attempt, [{self(), Alias}, Node, MFA]),
    Result = receive {Alias, Told} -> Told after TimeoutMs -> too_late(Alias) end,
    _ = unalias(Alias),
    Attempt ! case Result of {error, timeout} -> too_late; _ -> taken end,
    Result.

%% The answer may have come in this very moment.
too_late(Alias) ->
    _ = unalias(Alias),
    receive {Alias, Told} -> Told after 0 -> {error, timeout} end.

%% @private
-spec attempt({pid(), reference()}, node(), {module(), atom(), [term()]}) -> ok.
attempt({Caller, Alias}, Node, {Module, Function, Args}) ->
    Monitor = monitor(process, Caller),
    Request = spawn_request(Node, Module, Function, Args, [{reply, yes}]),
    receive
        {spawn_reply, Request, ok, Pid} ->
            Alias ! {Alias, {ok, Pid}},
            receive
                taken -> ok;
                too_late -> ended(Pid);
                {'DOWN', Monitor, process, Caller, _} -> ended(Pid)
            end;
        {spawn_reply, Request, error, Reason} ->
            Alias ! {Alias, {error, Reason}},
            ok
    end.

ended(Pid) ->
    true = exit(Pid, kill),
    ok.
