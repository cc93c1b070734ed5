%% SPDX-License-Identifier: Apache-2.0
%% @doc The orbit of 0 under three generators, in a hash table spread over workers that send each
%% other what they find. Ends when no worker has anything left: each vertex under way is counted.
-module(bencherl_orbit_int).

-export([bench_args/2, run/3]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    Space = Cores * case Version of short -> 1000; intermediate -> 5000; long -> 20000 end,
    [[Space, 2 * Cores]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Space, Count], _Slaves, _Conf) ->
    UnderWay = atomics:new(1, []),
    Starter = self(),
    Workers = list_to_tuple([spawn_link(fun() -> start(Space, UnderWay, Starter) end)
                             || _ <- lists:seq(1, Count)]),
    _ = [Worker ! {workers, Workers} || Worker <- tuple_to_list(Workers)],
    _ = send(0, Workers, UnderWay),
    receive finished -> ok end,
    Sizes = [begin Worker ! {size, self()}, receive {size, Worker, Size} -> Size end end
             || Worker <- tuple_to_list(Workers)],
    io:format("orbit of ~b~n", [lists:sum(Sizes)]).

start(Space, UnderWay, Starter) ->
    receive {workers, Workers} -> work(#{}, Space, Workers, UnderWay, Starter) end.

work(Known, Space, Workers, UnderWay, Starter) ->
    receive
        {vertex, X} when is_map_key(X, Known) ->
            handled(UnderWay, Starter),
            work(Known, Space, Workers, UnderWay, Starter);
        {vertex, X} ->
            _ = [send(Y, Workers, UnderWay) || Y <- images(X, Space)],
            handled(UnderWay, Starter),
            work(Known#{X => true}, Space, Workers, UnderWay, Starter);
        {size, From} ->
            From ! {size, self(), map_size(Known)}
    end.

send(X, Workers, UnderWay) ->
    ok = atomics:add(UnderWay, 1, 1),
    element(1 + erlang:phash2(X, tuple_size(Workers)), Workers) ! {vertex, X}.

%% The images of a vertex are under way before it is handled, so zero is the end.
handled(UnderWay, Starter) ->
    case atomics:sub_get(UnderWay, 1, 1) of
        0 -> Starter ! finished;
        _ -> ok
    end.

%% Generators 1, 2 and 4 of the orbit benchmark.
images(X, Space) ->
    [(fib(X rem 16) + X) rem Space,
     (fib(5 + X rem 16) + 2 * X * X + 5 * X - 1) rem Space,
     (fib(case X rem 100 of
              C when C < 49 -> 11;
              C when C < 98 -> 19;
              _ -> 27
          end) - 1) rem Space].

fib(N) when N < 2 -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).
