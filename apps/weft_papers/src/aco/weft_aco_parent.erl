%% SPDX-License-Identifier: Apache-2.0
%% @doc What a process of the tree knows of its parent, as a value; and how a child is started.
%%
%% Without names parent and child are linked, and all end with one. With names a child watches its
%% parent; if that is gone the child waits for some time for the next one, which will find it by its
%% name and send it the round.
-module(weft_aco_parent).

-export([start/4, new/1, pid/1, adopt/2, lost/2, patience_ms/1]).
-export_type([parent/0]).

-opaque parent() :: {pid(), reference()} | {pid(), gone}.

-define(PATIENCE_MS, 30000).

%% @doc Starts a process of the tree on its node. It is watched from its beginning: it may end at
%% once.
-spec start(weft_aco_tree:process(), module(), [term()], weft_aco:settings()) ->
          {pid(), Monitor :: reference()}.
start(#{node := Node}, Module, Arguments, #{names := none}) ->
    weft_bench_program:spawn_link_monitor(Node, Module, init, Arguments);
start(#{node := Node}, Module, Arguments, _Named) ->
    spawn_monitor(Node, Module, init, Arguments).

-spec new(pid()) -> parent().
new(Parent) -> {Parent, monitor(process, Parent)}.

-spec pid(parent()) -> pid().
pid({Parent, _}) -> Parent.

%% @doc Whoever sends a round is the parent.
-spec adopt(pid(), parent()) -> parent().
adopt(Parent, {Parent, _} = Same) ->
    Same;
adopt(New, {_, gone}) ->
    new(New);
adopt(New, {_, Monitor}) ->
    demonitor(Monitor, [flush]),
    new(New).

%% @doc Looks at a message that may tell that the parent is gone; `stop' if that ends the child. All
%% other messages are without effect.
-spec lost(Message :: term(), parent()) -> {ok, parent()} | stop.
lost({'DOWN', Monitor, process, Pid, _Why}, {Pid, Monitor}) -> {ok, {Pid, gone}};
lost({'EXIT', Pid, _Why}, {Pid, _}) -> stop;
lost(_Message, Parent) -> {ok, Parent}.

%% @doc How long to wait for the next message.
-spec patience_ms(parent()) -> timeout().
patience_ms({_, gone}) -> ?PATIENCE_MS;
patience_ms(_) -> infinity.
