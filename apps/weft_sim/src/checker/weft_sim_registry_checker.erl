%% SPDX-License-Identifier: Apache-2.0
%% @doc In the end all running nodes show the same names and the same members of groups, there is
%% one claim for each name, and each process is where its own node says it is: nothing of the dead.
%% Nobody waits any more until others have heard of a change.
-module(weft_sim_registry_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @private
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, _Options) ->
    Running = weft_sim_world:running(World),
    first([same(names, [{Node, names(Node, World)} || Node <- Running]),
           same(groups, [{Node, members(Node, World)} || Node <- Running]),
           first([one_claim(Node, World) || Node <- Running]),
           first([own(Node, World) || Node <- Running]),
           first([nobody_waits(Node, World) || Node <- Running])]).

first(Verdicts) ->
    case [Verdict || Verdict <- Verdicts, Verdict =/= ok] of
        [] -> ok;
        [Violation | _] -> Violation
    end.

same(What, [{First, Shown} | Others]) ->
    case [{Node, S} || {Node, S} <- Others, S =/= Shown] of
        [] -> ok;
        [{Node, Other} | _] ->
            {violation, io_lib:format("~s: ~s shows ~0p, ~s shows ~0p",
                                      [What, First, Shown -- Other, Node, Other -- Shown])}
    end;
same(_What, []) ->
    ok.

%% {Name, Pid} of all names shown.
names(Node, World) ->
    lists:sort([{Name, element(1, Row)}
                || {{name, Name}, Row} <- maps:to_list(weft_sim_world:views(Node, World))]).

members(Node, World) ->
    lists:sort([{Group, lists:sort(All)}
                || {{group, Group}, {All, _}} <- maps:to_list(weft_sim_world:views(Node, World))]).

one_claim(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, names, World),
    Claims = lists:sort([{Name, Pids}
                         || {{name, Name}, Pids} <-
                                maps:to_list(weft_names_eventual_core:holders(State))]),
    case [{Name, [Pid]} || {Name, Pid} <- names(Node, World)] of
        Claims -> ok;
        Shown -> {violation, io_lib:format("~s has the claims ~0p and shows ~0p",
                                           [Node, Claims -- Shown, Shown -- Claims])}
    end.

nobody_waits(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, names, World),
    case weft_names_eventual_core:is_waiting(State) of
        false -> ok;
        true -> {violation, io_lib:format("at ~s somebody waits for ever", [Node])}
    end.

%% What others show of this node's processes is what it has itself. All show the same, so its own
%% view tells it: whose names are shown, and what it lists as local.
own(Node, World) ->
    Local = lists:sort([Pid || {{group, _}, {_, Local}} <-
                                   maps:to_list(weft_sim_world:views(Node, World)), Pid <- Local]),
    Shown = lists:sort([Pid || {_, All} <- members(Node, World), Pid <- All, node(Pid) =:= Node]),
    case Local of
        Shown -> ok;
        _ -> {violation, io_lib:format("~s has ~0p in groups, shown are ~0p", [Node, Local, Shown])}
    end.
