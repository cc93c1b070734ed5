%% SPDX-License-Identifier: Apache-2.0
%% @doc One change at a time of what this node is a member of: joining, leaving, another topology
%% and links that follow the groups take several steps, and those of two may not mix.
%%
%% Whoever comes second waits. The change is made by a process of its own, which has a registered
%% name meanwhile, so that a change that has begun goes on to its end when the caller is ended.
-module(weft_one_change).

-export([run/1]).
-export([change/2]).

-define(WAIT_MS, 60000).

%% @doc Calls the function when no other change is under way, and returns, or raises, what it does.
%% An error if the one before takes more than a minute.
-spec run(fun(() -> Result)) -> Result | {error, string()}.
run(Change) ->
    Deadline = erlang:monotonic_time(millisecond) + ?WAIT_MS,
    {Pid, Ref} = spawn_monitor(?MODULE, change, [Change, Deadline]),
    receive
        {'DOWN', Ref, process, Pid, {?MODULE, {returned, Result}}} -> Result;
        {'DOWN', Ref, process, Pid, {?MODULE, {raised, Class, Reason, Stack}}} ->
            erlang:raise(Class, Reason, Stack);
        {'DOWN', Ref, process, Pid, Reason} -> exit({Reason, {?MODULE, run, [Change]}})
    end.

%% @private
-spec change(fun(() -> term()), DeadlineMs :: integer()) -> no_return().
change(Change, Deadline) -> exit({?MODULE, turn(Change, Deadline)}).

turn(Change, Deadline) ->
    try register(?MODULE, self()) of
        true -> outcome(Change)
    catch
        error:badarg -> wait(whereis(?MODULE), Change, Deadline)
    end.

outcome(Change) ->
    try {returned, Change()}
    catch Class:Reason:Stack -> {raised, Class, Reason, Stack}
    end.

wait(undefined, Change, Deadline) ->
    turn(Change, Deadline);
wait(Other, Change, Deadline) ->
    Ref = monitor(process, Other),
    receive
        {'DOWN', Ref, process, Other, _} -> turn(Change, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        {returned, {error, "another call of weft:join, weft:leave or weft:topology is under way on "
                           "this node, and has not ended for a minute: call again later"}}
    end.
