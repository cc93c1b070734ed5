%% SPDX-License-Identifier: Apache-2.0
%% @doc The state machine of a DE-Bench node: as its server, with two states that take turns.
%% Registered under its name on each node.
-module(weft_de_bench_fsm).
-behaviour(gen_statem).

-export([start/0, call/3]).
-export([init/1, callback_mode/0, tick/3, tock/3]).

-spec start() -> {ok, pid()} | {error, term()}.
start() -> gen_statem:start({local, ?MODULE}, ?MODULE, [], []).

-spec call(node(), list(), timeout()) -> term().
call(Node, Arguments, TimeoutMs) ->
    gen_statem:call({?MODULE, Node}, Arguments, TimeoutMs).

%% @private
-spec callback_mode() -> state_functions.
callback_mode() -> state_functions.

%% @private
-spec init([]) -> {ok, tick, none}.
init([]) -> {ok, tick, none}.

%% @private
-spec tick({call, gen_statem:from()}, list(), none) -> tuple().
tick({call, From}, Arguments, none) -> work(tock, From, Arguments).

%% @private
-spec tock({call, gen_statem:from()}, list(), none) -> tuple().
tock({call, From}, Arguments, none) -> work(tick, From, Arguments).

work(Next, From, Arguments) ->
    {next_state, Next, none, [{reply, From, apply(weft_de_bench_driver, work, Arguments)}]}.
