%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes become another version one by one, or all that were touched become what they were.
%%
%% For each node, in order: `drain' (it is no next hop any more, and no circuit passes), `stop',
%% `define' (it is made of the new version), `start' (until it is healthy). At no time is more than
%% one node drained or stopped. So of two gateways between groups one is always there.
%%
%% A node that is not healthy in time is stopped, becomes what it was (`undo') and starts (`return':
%% until it is healthy as it was to be then). Then the nodes that were upgraded to the same id
%% before it follow, in reverse, and the id counts as bad. If a node can not become what it was, the
%% rollback ends: one more would be down. It also ends before a node that is the only way between
%% others. A node that can not be drained stays as it is, and ends the upgrade.
%%
%% So does a host that fails. If it fails while a node starts there, that says nothing about the
%% version: nothing is rolled back, and the next upgrade looks at the node first (`unproven'). A
%% host that is shut down ends the node before it is gone itself. So that holds, too, if it turns
%% out to be gone when the node is to become what it was.
%%
%% A rollback that was asked for is the same with `undo' and `return' in their places.
%%
%% Nodes that are down come first, with `define' and `start' alone: they were stopped by an upgrade
%% that was ended then, or have failed, and none is stopped while another one is down.
%%
%% An upgrade that was ended before may have left nodes of the new version of which it is not known
%% whether they are healthy. They come next, with `start' alone; if one is not healthy, those that
%% had become the same before it follow, too.
-module(weft_deploy_upgrade_core).

-export([new/2, resumed/3, next/1, result/2]).
-export_type([state/0, action/0, outcome/0, item/0]).

%% A name, and the id that the node is to become.
-type item() :: {Node :: string(), Id :: string()}.
-type step() :: drain | stop | define | undo | start | return.
-type action() :: {step(), Node :: string()}.
%% failed: where it ended, and why. bad: ids that are not to be tried again. unproven: nodes that
%% have become new, and of which nobody knows whether they are healthy. killed: nodes that did not
%% end in time.
-type outcome() :: #{done := [string()], undone := [string()],
                     failed := none | {string(), string()},
                     bad := [string()], left := [string()], unproven => [string()],
                     killed := [string()]}.

-record(state, {mode :: define | undo,
                down = [] :: [item()],
                begun = [] :: [item()],
                before = [] :: [item()],
                waiting :: [item()],
                now = none :: none | {item(), [step(), ...], forward | back},
                done = [] :: [item()],
                undone = [] :: [string()],
                back = [] :: [item()],
                failed = none :: none | {string(), string()},
                bad = [] :: [string()],
                killed = [] :: [string()],
                unproven = [] :: [string()],
                %% Before the last node that was not healthy, while that is not what it was yet.
                unblamed = none :: none | state()}).
-opaque state() :: #state{}.

%% @doc Nodes in the order in which they are to become something else: new, or what they were.
-spec new(define | undo, [item()]) -> state().
new(Mode, Items) -> #state{mode = Mode, waiting = Items}.

%% @doc An upgrade that goes on: nodes that have become new and are to be healthy, and those that
%% had become so before, the last ones first; nodes that are down, and those that are to follow.
-spec resumed({Begun :: [item()], Before :: [item()]}, Down :: [item()], [item()]) -> state().
resumed({Begun, Before}, Down, Items) ->
    #state{mode = define, begun = Begun, before = Before, down = Down, waiting = Items}.

%% @doc What is to be done now. The answer to it comes by result/2.
-spec next(state()) -> {action(), state()} | {done, outcome()}.
next(#state{now = {{Node, _}, [Step | _], _}} = State) ->
    {{Step, Node}, State};
next(#state{now = none, back = [Item | Back]} = State) ->
    next(State#state{now = {Item, [drain, stop, undo, return], back}, back = Back});
next(#state{now = none, failed = none, down = [Item | Down]} = State) ->
    next(State#state{now = {Item, [define, start], forward}, down = Down});
next(#state{now = none, failed = none, begun = [Item | Begun]} = State) ->
    next(State#state{now = {Item, [start], forward}, begun = Begun});
next(#state{now = none, failed = none, waiting = [Item | Waiting], mode = Mode} = State) ->
    Last = case Mode of define -> start; undo -> return end,
    next(State#state{now = {Item, [drain, stop, Mode, Last], forward}, waiting = Waiting});
next(#state{done = Done, undone = Undone, failed = Failed, bad = Bad, begun = Begun, down = Down,
            waiting = Waiting, killed = Killed, unproven = Unproven}) ->
    {done, #{done => [Node || {Node, _} <- lists:reverse(Done)], undone => lists:reverse(Undone),
             failed => Failed, bad => Bad,
             left => [Node || {Node, _} <- Down ++ Begun ++ Waiting],
             killed => lists:reverse(Killed), unproven => Unproven}}.

%% @doc How the last action went. `needed': the node was not drained, as it is the only way between
%% others. `killed': it was stopped, and had to be killed. `lost': its host answers no more.
-spec result(ok | killed | {error | needed | lost, string()}, state()) -> state().
result(killed, #state{now = {{Node, _}, [stop | _], _}, killed = Killed} = State) ->
    result(ok, State#state{killed = [Node | Killed]});
result(ok, #state{now = {Item, [undo | Steps], back}} = State) ->
    State#state{now = {Item, Steps, back}, unblamed = none};
result(ok, #state{now = {Item, [_, Next | Steps], Way}} = State) ->
    State#state{now = {Item, [Next | Steps], Way}};
result(ok, #state{now = {Item, [_Last], forward}, done = Done} = State) ->
    State#state{now = none, done = [Item | Done]};
result(ok, #state{now = {{Node, _}, [return], back}, undone = Undone} = State) ->
    State#state{now = none, undone = [Node | Undone]};
result({lost, Why}, #state{mode = define, now = {{Node, _}, [start], forward}} = State) ->
    State#state{now = none, failed = {Node, Why}, unproven = [Node]};
result({lost, Why}, #state{now = {{Node, _}, _, back}, killed = Killed,
                           unblamed = #state{} = Before}) ->
    Before#state{now = none, failed = {Node, Why}, unproven = [Node], killed = Killed};
result({lost, Why}, State) ->
    result({error, Why}, State);
%% What is new about it is to blame, and for all that have it.
result({error, Why}, #state{mode = define, now = {{Node, Id} = Item, [start], forward},
                            done = Done, begun = Begun, before = Before, bad = Bad} = State) ->
    IsSame = fun({_, Other}) -> Other =:= Id end,
    {Same, Others} = lists:partition(IsSame, Done),
    {SameBegun, OtherBegun} = lists:partition(IsSame, Begun),
    State#state{now = {Item, [stop, undo, return], back},
                back = Same ++ SameBegun ++ lists:filter(IsSame, Before), done = Others,
                begun = OtherBegun, failed = {Node, Why}, bad = [Id | Bad], unblamed = State};
result({needed, Why}, #state{now = {{Node, _} = Item, [drain | _], back}, back = Back,
                             waiting = Waiting} = State) ->
    State#state{now = none, back = [], waiting = [Item | Back] ++ Waiting,
                failed = {Node, "it is not rolled back: " ++ Why}};
result({needed, Why}, State) ->
    result({error, Why}, State);
%% Another one on the way back that can not be drained is stopped all the same: the new version is
%% bad.
result({error, _Why}, #state{now = {Item, [drain | Steps], back}} = State) ->
    State#state{now = {Item, Steps, back}};
result({error, Why}, #state{now = {{Node, _}, _, back}, back = Back, waiting = Waiting} = State) ->
    State#state{now = none, back = [], waiting = Back ++ Waiting,
                failed = {Node, "it is down, it could not become what it was: " ++ Why}};
result({error, Why}, #state{now = {{Node, _} = Item, [drain | _], forward},
                            waiting = Waiting} = State) ->
    State#state{now = none, waiting = [Item | Waiting], failed = {Node, Why}};
result({error, Why}, #state{now = {{Node, _}, _, forward}} = State) ->
    State#state{now = none, failed = {Node, Why}}.
