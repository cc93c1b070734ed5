%% SPDX-License-Identifier: Apache-2.0
%% @doc The driver that calls functions: what counts as done, and what as failed.
-module(weft_load_driver_call_tests).

-include_lib("eunit/include/eunit.hrl").

-export([never/0]).

-define(DRIVER, weft_load_driver_call).

never() -> receive never -> ok end.

run(Operation, State) -> ?DRIVER:run(Operation, fun() -> 7 end, fun() -> <<"x">> end, State).

keys_and_values_are_drawn_and_errors_count_test() ->
    State = {{node()}, 1000},
    ?assertEqual({ok, State}, run({erlang, integer_to_list, [key]}, State)),
    ?assertEqual({ok, State}, run({erlang, byte_size, [value]}, State)),
    ?assertEqual({error, badarg, State}, run({erlang, byte_size, [key]}, State)),
    ?assertEqual({error, enoent, State}, run({file, read_file, ["/no/such/file"]}, State)),
    ?assertEqual({error, error, State}, run({maps, find, [key, #{}]}, State)),
    Hasty = {{node()}, 10},
    ?assertEqual({error, {erpc, timeout}, Hasty},
                 run({?MODULE, never, []}, Hasty)).

it_needs_nodes_that_answer_test() ->
    ok = basho_bench_config:load([]),
    ?assertEqual({error, no_nodes}, ?DRIVER:new(1)),
    ok = basho_bench_config:load([{nodes, ['nobody@nowhere.invalid']}]),
    ?assertEqual({error, {no_connection_to, ['nobody@nowhere.invalid']}}, ?DRIVER:new(1)).
