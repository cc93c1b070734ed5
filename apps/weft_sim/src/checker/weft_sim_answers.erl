%% SPDX-License-Identifier: Apache-2.0
%% @doc Observer of commands: what the machines of each node were asked and told by the scenario,
%% and what they replied, so that a checker need not believe what a core says of itself.
-module(weft_sim_answers).
-behaviour(weft_sim_observer).

-export([new/0, sent/5, notice/5, happened/5, lives/2]).
-export_type([state/0, entry/0]).

%% Newest first.
-opaque state() :: [{NowUs :: non_neg_integer(), node(), Machine :: atom(),
                     weft_sim_observer:happening()}].
-type entry() :: {asked, AtUs :: non_neg_integer(), Command :: term(),
                  {reply, term()} | no_reply}
               | {told, AtUs :: non_neg_integer(), Notice :: term()}.

%% @doc Nothing seen yet.
-spec new() -> state().
new() -> [].

%% @private
-spec sent(node(), atom(), term(), non_neg_integer(), state()) -> state().
sent(_Node, _Machine, _Message, _NowUs, State) -> State.

%% @private
-spec notice(node(), atom(), term(), non_neg_integer(), state()) -> state().
notice(_Node, _Machine, _Notice, _NowUs, State) -> State.

%% @private
-spec happened(node(), atom(), weft_sim_observer:happening(), non_neg_integer(), state()) ->
          state().
happened(Node, Machine, What, NowUs, State) -> [{NowUs, Node, Machine, What} | State].

%% @doc For each node the lives of this machine, the present or last one first, each with what the
%% machine was asked and told in it, in this order.
-spec lives(Machine :: atom(), state()) -> #{node() => [[entry()]]}.
lives(Machine, State) ->
    Own = [{Us, Node, What} || {Us, Node, Of, What} <- State, Of =:= Machine],
    Replies = maps:from_list([{Ref, {reply, Reply}} || {_, _, {replied, Ref, Reply}} <- Own]),
    maps:map(fun(_, Lives) -> lists:map(fun lists:reverse/1, Lives) end,
             lists:foldr(fun(One, Acc) -> entry(One, Replies, Acc) end, #{}, Own)).

entry({_Us, Node, started}, _Replies, Acc) ->
    Acc#{Node => [[] | maps:get(Node, Acc, [])]};
entry({Us, Node, {asked, Ref, Command}}, Replies, Acc) ->
    added(Node, {asked, Us, Command, maps:get(Ref, Replies, no_reply)}, Acc);
entry({Us, Node, {told, Notice}}, _Replies, Acc) ->
    added(Node, {told, Us, Notice}, Acc);
entry({_Us, _Node, {replied, _, _}}, _Replies, Acc) ->
    Acc.

added(Node, Entry, Acc) ->
    #{Node := [Present | Former]} = Acc,
    Acc#{Node := [[Entry | Present] | Former]}.
