%% SPDX-License-Identifier: Apache-2.0
%% @doc Many senders, one receiver: each sends its messages as fast as it can, and the receiver
%% waits for all of them. Contention for one mailbox. (The original sends a hundredth of the
%% messages, too few for the time to be told.)
-module(bencherl_bang).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    Count = Cores * case Version of short -> 16; intermediate -> 55; long -> 79 end,
    [[Count, 100 * Count]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Senders, Messages], _Slaves, _Conf) ->
    Receiver = self(),
    [spawn_link(fun() -> send(Messages, Receiver) end) || _ <- lists:seq(1, Senders)],
    io:format("messages sum up to ~b~n", [receive_all(Senders * Messages, 0)]).

send(0, _Receiver) -> ok;
send(Left, Receiver) ->
    Receiver ! {message, Left},
    send(Left - 1, Receiver).

receive_all(0, Sum) -> Sum;
receive_all(Left, Sum) -> receive {message, Number} -> receive_all(Left - 1, Sum + Number) end.
