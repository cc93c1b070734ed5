%% SPDX-License-Identifier: Apache-2.0
%% @doc One name of a strong scope as an object for `weft_sim_linearizability': it is free
%% (`none') or somebody's. Each registration has a process of its own.
%%
%% That a lease ends is an operation, too (`{expire, Pid}'), which may take effect from when its
%% owner does not believe in it any more. So a registration that succeeds while somebody else may
%% believe to be the owner is an error. `remove' is what anybody may ask for: whoever has the name
%% loses it, once.
-module(weft_sim_name_model).
-behaviour(weft_sim_linearizability).

-export([step/2, kind/1]).
-export_type([operation/0]).

-type operation() ::
    {register, Pid :: term(), ok | {taken, Holder :: term()} | unknown}
  | {update, Pid :: term(), NewPid :: term(), ok | unknown}
  | {unregister, Pid :: term()}
  | remove
  | {whereis, Pid :: term() | none}
  | {expire, Pid :: term()}.

%% @doc What the operation makes of the state, if it can have had its answer.
-spec step(operation(), term()) -> {ok, term()} | impossible.
step({register, Pid, ok}, none) -> {ok, Pid};
step({register, _Pid, {taken, Holder}}, Holder) when Holder =/= none -> {ok, Holder};
step({register, Pid, unknown}, none) -> {ok, Pid};
step({update, Pid, New, _}, Pid) -> {ok, New};
step({unregister, Pid}, Pid) -> {ok, none};
step({unregister, _Pid}, State) -> {ok, State};
step(remove, _State) -> {ok, none};
step({whereis, State}, State) -> {ok, State};
step({expire, Pid}, Pid) -> {ok, none};
step(_Operation, _State) -> impossible.

%% @private A process has the name once at most.
-spec kind(operation()) -> reads | ends | changes.
kind({register, _Pid, {taken, _Holder}}) -> reads;
kind({whereis, _Pid}) -> reads;
kind({unregister, _Pid}) -> ends;
kind({expire, _Pid}) -> ends;
kind(_Operation) -> changes.
