%% SPDX-License-Identifier: Apache-2.0
%% @doc As big, with and without a timeout at each receive: what setting and clearing a timer costs
%% when many processes do it.
-module(bencherl_timer_wheel).

-export([bench_args/2, run/3]).

-define(TIMEOUT_MS, 60000).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    Count = 4 * Cores * case Version of short -> 16; intermediate -> 40; long -> 125 end,
    [[wheel, Count], [no_wheel, Count]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Kind, Count], _Slaves, _Conf) ->
    Starter = self(),
    Pids = [spawn_link(fun() -> wait(Kind, Starter) end) || _ <- lists:seq(1, Count)],
    _ = [Pid ! {others, lists:delete(Pid, Pids)} || Pid <- Pids],
    Answers = [receive {Answer, Pid} -> Answer end || Pid <- Pids],
    [Pid ! stop || Pid <- Pids],
    case lists:usort(Answers) of
        [done] -> ok;
        Other -> {error, Other}
    end.

wait(Kind, Starter) ->
    receive
        {others, Others} ->
            _ = [Other ! {ping, self()} || Other <- Others],
            answer(Kind, length(Others), Starter)
    end.

answer(_Kind, 0, Starter) ->
    Starter ! {done, self()},
    answer(no_wheel, none, Starter);
answer(wheel, Left, Starter) ->
    receive Message -> handle(Message, wheel, Left, Starter)
    after ?TIMEOUT_MS -> Starter ! {timeout, self()}
    end;
answer(no_wheel, Left, Starter) ->
    receive Message -> handle(Message, no_wheel, Left, Starter) end.

handle({ping, From}, Kind, Left, Starter) ->
    From ! pong,
    answer(Kind, Left, Starter);
handle(pong, Kind, Left, Starter) -> answer(Kind, Left - 1, Starter);
handle(stop, _Kind, _Left, _Starter) -> ok.
