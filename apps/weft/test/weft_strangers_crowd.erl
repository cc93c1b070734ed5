%% SPDX-License-Identifier: Apache-2.0
%% @doc Strangers who come in crowds: they connect to a port, prove nothing, and come again. Run on
%% a node of its own, away from the one under test.
-module(weft_strangers_crowd).

-export([idle/4, storm/3, count/1, stop/1]).
-export([stay/4, rush/4]).

-type crowd() :: {[pid()], counters:counters_ref()}.

%% @doc So many connections at once that say nothing. Who is dropped comes again after a pause.
-spec idle(inet:port_number(), [inet:ip4_address()], pos_integer(), PauseMs :: non_neg_integer()) ->
          crowd().
idle(Port, From, Count, PauseMs) ->
    Counter = counters:new(1, [write_concurrency]),
    {[spawn(?MODULE, stay, [Port, Ip, PauseMs, Counter]) || Ip <- spread(From, Count)], Counter}.

%% @doc Connections one after the other by each of the addresses, closed at once, until `stop/1'.
%% Between: milliseconds from one to the next, 0 for as fast as can be.
-spec storm(inet:port_number(), [inet:ip4_address()], Between :: non_neg_integer()) -> crowd().
storm(Port, From, Between) ->
    Counter = counters:new(1, [write_concurrency]),
    {[spawn(?MODULE, rush, [Port, Ip, Between, Counter]) || Ip <- From], Counter}.

spread(From, Count) ->
    [lists:nth(1 + N rem length(From), From) || N <- lists:seq(1, Count)].

%% @doc How many connections were made, of a crowd that was not stopped: a caller on another node
%% cannot keep its counter, only its processes do.
-spec count(crowd()) -> non_neg_integer().
count({_Pids, Counter}) -> counters:get(Counter, 1).

-spec stop(crowd()) -> ok.
stop({Pids, _Counter}) ->
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids).

%% @private
-spec stay(inet:port_number(), inet:ip4_address(), non_neg_integer(), counters:counters_ref()) ->
          no_return().
stay(Port, Ip, PauseMs, Counter) ->
    case connect(Port, Ip) of
        {ok, Socket} ->
            counters:add(Counter, 1, 1),
            _ = until_closed(Socket),
            gen_tcp:close(Socket);
        {error, _} ->
            ok
    end,
    receive after PauseMs -> ok end, % pacing: how soon it comes again
    ?MODULE:stay(Port, Ip, PauseMs, Counter).

until_closed(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, _} -> until_closed(Socket);
        {error, _} -> closed
    end.

%% @private
-spec rush(inet:port_number(), inet:ip4_address(), non_neg_integer(), counters:counters_ref()) ->
          no_return().
rush(Port, Ip, Between, Counter) ->
    case connect(Port, Ip) of
        {ok, Socket} ->
            counters:add(Counter, 1, 1),
            gen_tcp:close(Socket);
        {error, _} ->
            ok
    end,
    receive after Between -> ok end, % pacing: the rate of the storm
    ?MODULE:rush(Port, Ip, Between, Counter).

%% Closed with a reset, so that its own port is free at once.
connect(Port, Ip) ->
    gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {ip, Ip}, {reuseaddr, true},
                                           {linger, {true, 0}}], 10000).
