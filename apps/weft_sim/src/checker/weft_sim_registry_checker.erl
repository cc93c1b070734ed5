%% SPDX-License-Identifier: Apache-2.0
%% @doc In the end all running nodes show the same names and the same members of groups, there is
%% one claim for each name, and each process is where its own node says it is: nothing of the dead.
%% Nobody waits any more until others have heard of a change.
%%
%% What was answered and not undone since is shown: members of groups, and the names `{Node, _}',
%% which no other node uses. Needs the observer `weft_sim_answers'.
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
           first([nobody_waits(Node, World) || Node <- Running]),
           kept(names, Running, World, fun named/2, fun own_names/2),
           kept(members, Running, World, fun joined/2, fun memberships/2)]).

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

%% --- what was answered ------------------------------------------------------------------------

%% All nodes show the same, so the first one speaks for all.
kept(_Machine, [], _World, _Step, _ShownBy) ->
    ok;
kept(Machine, [First | _] = Running, World, Step, ShownBy) ->
    Lives = maps:with(Running, weft_sim_answers:lives(Machine, weft_sim_world:observed(World))),
    Expected = lists:sort(lists:append([maps:to_list(lists:foldl(Step, #{}, Present))
                                        || [Present | _] <- maps:values(Lives)])),
    case ShownBy(First, World) of
        Expected -> ok;
        Shown -> {violation, io_lib:format("~s: answered and not undone is ~0p, ~s shows ~0p",
                                           [Machine, Expected -- Shown, First, Shown -- Expected])}
    end.

own_names(Node, World) ->
    [One || {{_Node, _}, _Pid} = One <- names(Node, World)].

named({asked, _, Command, {reply, {ok, _}}}, Names) ->
    case {element(1, Command), element(2, Command)} of
        {unregister, {name, Name}} -> maps:remove(Name, Names);
        {_Claims, {name, {_, _} = Own}} -> Names#{Own => element(3, Command)};
        {_Claims, _Contested} -> Names
    end;
named({asked, _, _Refused, _}, Names) ->
    Names;
named({told, _, {gone, Pid, _}}, Names) ->
    maps:filter(fun(_, Other) -> Other =/= Pid end, Names).

%% How often each process is in a group.
joined({asked, _, {join, Group, Pids}, {reply, ok}}, Counts) ->
    lists:foldl(fun(Pid, C) -> C#{{Group, Pid} => 1 + maps:get({Group, Pid}, C, 0)} end, Counts,
                Pids);
joined({asked, _, {leave, Group, Pids}, {reply, ok}}, Counts) ->
    lists:foldl(fun(Pid, C) ->
                    case C of
                        #{{Group, Pid} := Count} when Count > 1 -> C#{{Group, Pid} := Count - 1};
                        #{} -> maps:remove({Group, Pid}, C)
                    end
                end, Counts, Pids);
joined({asked, _, _Refused, _}, Counts) ->
    Counts;
joined({told, _, {gone, Pid, _}}, Counts) ->
    maps:filter(fun({_, Other}, _) -> Other =/= Pid end, Counts).

memberships(Node, World) ->
    [{{{group, Group}, Pid}, length([Same || Same <- All, Same =:= Pid])}
     || {Group, All} <- members(Node, World), Pid <- lists:usort(All)].
