%% SPDX-License-Identifier: Apache-2.0
%% @doc Generators that send all their messages through one dispatcher to receivers: one process
%% that everything passes.
-module(bencherl_serialmsg).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    {Pairs, Messages, Words} = case Version of
                                   short -> {2, 1600, 32};
                                   intermediate -> {2, 3200, 40};
                                   long -> {5, 16000, 32}
                               end,
    [[Pairs * Cores, Messages, Words]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Pairs, Messages, Words], _Slaves, _Conf) ->
    Starter = self(),
    Data = lists:seq(1, Words),
    Dispatcher = spawn_link(fun dispatch/0),
    Receivers = [spawn_link(fun() -> take(Messages, 0, Starter) end) || _ <- lists:seq(1, Pairs)],
    [spawn_link(fun() -> generate(Messages, Receiver, Data, Dispatcher) end)
     || Receiver <- Receivers],
    Arrived = lists:sum([receive {done, Receiver, Sum} -> Sum end || Receiver <- Receivers]),
    Dispatcher ! stop,
    io:format("~b words arrived~n", [Arrived]).

generate(0, _Receiver, _Data, _Dispatcher) -> ok;
generate(Left, Receiver, Data, Dispatcher) ->
    Dispatcher ! {to, Receiver, Data},
    generate(Left - 1, Receiver, Data, Dispatcher).

dispatch() ->
    receive
        {to, Receiver, Data} -> Receiver ! {message, Data}, dispatch();
        stop -> ok
    end.

take(0, Words, Starter) -> Starter ! {done, self(), Words};
take(Left, Words, Starter) ->
    receive {message, Data} -> take(Left - 1, Words + length(Data), Starter) end.
