%% SPDX-License-Identifier: Apache-2.0
%% @doc Random programs of signals, for weft_signal_order_SUITE. Pure: a seed makes a program.
%%
%% There are listeners on both nodes. Each spawns some talkers on either node. A talker sends
%% numbered signals to all listeners, by every kind of address and in every size, and ends. Numbers
%% count per pair of talker and listener, over all kinds of signals:
%%   pid, name, alias   messages; `nosuspend' is one to the pid by send_nosuspend
%%   exit               an exit signal (the listeners trap)
%%   ask                a message which the listener answers three times: to the reply alias in it,
%%                      to the talker's pid and to its name; answers are numbered the same way
%% A listener watches each talker it hears of by a monitor of the pid or the name, or by a link.
-module(weft_signal_program).

-export([random/1, expected/3, asks/2, exchange/1, forget/1]).

-type listener() :: pos_integer().
-type talker() :: pos_integer().
-type kind() :: pid | name | alias | nosuspend | exit | ask.
-type step() :: {kind(), listener(), Number :: pos_integer(), Bytes :: non_neg_integer()}.
-type watch() :: pid | name | link.
-type script() :: #{id := talker(), parent := listener(), place := a | b,
                    spawn_options := [monitor | link], steps := [step()],
                    watches := #{listener() => watch()}}.
-type program() :: #{seed := integer(), listeners := #{listener() => a | b},
                     talkers := #{talker() => script()}}.
-export_type([program/0, script/0, listener/0, talker/0, kind/0]).

-define(LISTENERS, 4).
-define(TALKERS_MAX, 14).
-define(STEPS_MAX, 40).

%% @doc The program of this seed.
-spec random(integer()) -> program().
random(Seed) ->
    _ = rand:seed(exsss, Seed),
    Listeners = maps:from_list([{L, place(L rem 2)} || L <- lists:seq(1, ?LISTENERS)]),
    Talkers = maps:from_list([{T, script(T)} || T <- lists:seq(1, 1 + rand:uniform(?TALKERS_MAX))]),
    #{seed => Seed, listeners => Listeners, talkers => Talkers}.

%% @doc How many signals a talker sends to a listener.
-spec expected(talker(), listener(), program()) -> non_neg_integer().
expected(Talker, Listener, #{talkers := Talkers}) ->
    #{Talker := #{steps := Steps}} = Talkers,
    length([Step || {_, To, _, _} = Step <- Steps, To =:= Listener]).

%% @doc How many of them ask for answers.
-spec asks(listener(), script()) -> non_neg_integer().
asks(Listener, #{steps := Steps}) ->
    length([Step || {ask, To, _, _} = Step <- Steps, To =:= Listener]).

%% @doc The program with two signals of one pair exchanged: an error which has to be found.
-spec exchange(program()) -> program().
exchange(#{talkers := #{1 := #{steps := Steps} = Script} = Talkers} = Program) ->
    Signal = fun(Number) -> {pid, 1, Number, 0} end,
    Others = [Step || {_, To, _, _} = Step <- Steps, To =/= 1],
    Wrong = [Signal(1), Signal(3), Signal(2), Signal(4)] ++ Others,
    Program#{talkers := Talkers#{1 := Script#{steps := Wrong}}}.

%% @doc The script of talker 1 without its last signal to a listener; the rest of the program still
%% counts on it: an error which has to be found when the talker ends.
-spec forget(program()) -> script().
forget(#{talkers := #{1 := #{steps := Steps} = Script}}) ->
    Script#{steps := lists:droplast(Steps)}.

%% ---- random parts ----

place(0) -> a;
place(1) -> b.

script(Talker) ->
    Quiet = rand:uniform(2) =:= 1,
    Sends = [{kind(rand:uniform(12), Quiet), rand:uniform(?LISTENERS), bytes(rand:uniform(20))}
             || _ <- lists:seq(1, 1 + rand:uniform(?STEPS_MAX))],
    #{id => Talker, parent => rand:uniform(?LISTENERS), place => place(rand:uniform(2) - 1),
      spawn_options => one_of([[], [monitor], [link], [monitor, link]]),
      steps => numbered(Sends, #{}),
      watches => maps:from_list([{L, one_of([pid, name, link])} || L <- lists:seq(1, ?LISTENERS)])}.

numbered([], _) ->
    [];
numbered([{Kind, To, Bytes} | Sends], Numbers) ->
    Number = maps:get(To, Numbers, 0) + 1,
    [{Kind, To, Number, Bytes} | numbered(Sends, Numbers#{To => Number})].

%% Half of the talkers ask nothing: they end without waiting for anybody.
kind(N, _) when N =< 3 -> pid;
kind(N, _) when N =< 6 -> name;
kind(N, _) when N =< 8 -> alias;
kind(9, _) -> nosuspend;
kind(N, _) when N =< 11 -> exit;
kind(12, true) -> pid;
kind(12, false) -> ask.

bytes(1) -> 300_000;
bytes(2) -> 65_536 - rand:uniform(200);
bytes(3) -> 65_536 + rand:uniform(200);
bytes(N) when N < 8 -> 100 * N;
bytes(_) -> 0.

one_of(List) ->
    lists:nth(rand:uniform(length(List)), List).
