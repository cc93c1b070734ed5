%% SPDX-License-Identifier: Apache-2.0
%% @doc The servers of a DE-Bench node: one that works on a packet itself, and one that applies
%% functions one after the other for callers of other nodes. The latter is how the rpc server of OTP
%% worked when DE-Bench was written (before OTP 23): all remote calls of a node waited in one queue.
-module(weft_de_bench_server).
-behaviour(gen_server).

-export([start/0, call/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(REX, weft_de_bench_rex).

%% @doc Starts both on this node, and the state machine; once.
-spec start() -> ok.
start() ->
    lists:foreach(fun({_Name, {ok, _}}) -> ok;
                     ({_Name, {error, {already_started, _}}}) -> ok
                  end,
                  [{Name, gen_server:start({local, Name}, ?MODULE, [], [])}
                   || Name <- [?MODULE, ?REX]] ++ [{weft_de_bench_fsm, weft_de_bench_fsm:start()}]),
    ok.

%% @doc Has a server of a node work on a packet: {rex | gen_server | channel, Node}.
-spec call({rex | gen_server | channel, node()}, list(), timeout()) -> term().
call({rex, Node}, Arguments, TimeoutMs) ->
    gen_server:call({?REX, Node}, {apply, weft_de_bench_driver, work, Arguments}, TimeoutMs);
call({gen_server, Node}, Arguments, TimeoutMs) ->
    gen_server:call({?MODULE, Node}, {work, Arguments}, TimeoutMs);
call({channel, Node}, Arguments, TimeoutMs) ->
    weft:call({?MODULE, Node}, {work, Arguments}, TimeoutMs, control).

%% @private
-spec init([]) -> {ok, none}.
init([]) -> {ok, none}.

%% @private
-spec handle_call({apply, module(), atom(), list()} | {work, list()}, gen_server:from(), none) ->
          {reply, term(), none}.
handle_call({apply, Module, Function, Arguments}, _From, none) ->
    {reply, apply(Module, Function, Arguments), none};
handle_call({work, Arguments}, _From, none) ->
    {reply, apply(weft_de_bench_driver, work, Arguments), none}.

%% @private
-spec handle_cast(term(), none) -> {stop, term(), none}.
handle_cast(Request, none) -> {stop, {unexpected_cast, Request}, none}.
