%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups of senders and receivers, after hackbench: in each group every sender sends to every
%% receiver, and waits for an acknowledgement after each hundredth message.
-module(bencherl_ehb).

-export([bench_args/2, run/3]).

-define(SENDERS, 20).
-define(RECEIVERS, 20).
-define(ACKNOWLEDGED, 100).
-define(BYTES, 100).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    case Version of
        short -> [[Cores, 4]];
        intermediate -> [[2 * Cores, 8]];
        long -> [[8 * Cores, 8]]
    end.

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Groups, Loops], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> group(Loops, Starter) end) || _ <- lists:seq(1, Groups)],
    Received = lists:sum([receive {group_done, Pid, Count} -> Count end || Pid <- Pids]),
    io:format("~b messages~n", [Received]).

group(Loops, Starter) ->
    Group = self(),
    Receivers = [spawn_link(fun() -> receiver(0) end) || _ <- lists:seq(1, ?RECEIVERS)],
    Senders = [spawn_link(fun() -> sender(Loops, Receivers, Group) end)
               || _ <- lists:seq(1, ?SENDERS)],
    [receive {sender_done, Pid} -> ok end || Pid <- Senders],
    _ = [Receiver ! {stop, Group} || Receiver <- Receivers],
    Received = lists:sum([receive {received, Pid, Count} -> Count end || Pid <- Receivers]),
    Starter ! {group_done, Group, Received}.

sender(Loops, Receivers, Group) ->
    Data = binary:copy(<<0>>, ?BYTES),
    loop(Loops * ?ACKNOWLEDGED, Receivers, Data),
    Group ! {sender_done, self()}.

loop(0, _Receivers, _Data) ->
    ok;
loop(Left, Receivers, Data) ->
    _ = [Receiver ! {self(), Left, Data} || Receiver <- Receivers],
    Left rem ?ACKNOWLEDGED =:= 1 andalso
        [receive {acknowledged, Receiver} -> ok end || Receiver <- Receivers],
    loop(Left - 1, Receivers, Data).

receiver(Received) ->
    receive
        {stop, Group} -> Group ! {received, self(), Received};
        {From, Left, _Data} when Left rem ?ACKNOWLEDGED =:= 1 ->
            From ! {acknowledged, self()},
            receiver(Received + 1);
        {_From, _Left, _Data} -> receiver(Received + 1)
    end.
