%% SPDX-License-Identifier: Apache-2.0
%% @doc Process groups: the same as OTP's `pg' on one node, whatever is done, and agreement between
%% nodes after any schedule.
-module(weft_pg_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, weft_core_net).
-define(NODES, [a@x, b@x, c@x]).
-define(SCOPES, [{pg, pg_under_test}, {weft_pg, weft_pg_under_test}]).

properties_test_() ->
    [{"any schedule ends in agreement",
      {timeout, 120, ?_assert(proper:quickcheck(prop_agreement(), [{numtests, 300}, quiet]))}},
     {setup, fun start/0, fun stop/1,
      {"as pg", {timeout, 120, ?_assert(proper:quickcheck(prop_as_pg(),
                                                          [{numtests, 150}, quiet]))}}}].

%% --- as pg does -------------------------------------------------------------------------------

start() ->
    [begin {ok, Pid} = Module:start_link(Scope), unlink(Pid), Pid end
     || {Module, Scope} <- ?SCOPES].

stop(Pids) -> [gen_server:stop(Pid) || Pid <- Pids].

action() ->
    frequency([{4, {join, group(), members()}}, {4, {leave, group(), one()}},
               {1, {die, member()}}, {2, {watch, group()}}, {1, watch},
               {1, {unwatch, range(1, 3)}}]).

group() -> range(1, 2).

member() -> range(1, 3).

%% Who leaves and is not in the group is told by pg to have left; here it is not.
one() -> oneof([member(), [member()]]).

members() -> oneof([member(), [member()], [member(), member()]]).

%% The same for both modules: replies, who is in which group, and what monitors were told.
prop_as_pg() ->
    ?FORALL(Actions, ?SIZED(Size, resize(3 * Size, list(action()))),
            begin
                [Pg, Weft] = [outcome(Module, Scope, Actions) || {Module, Scope} <- ?SCOPES],
                Pg =:= Weft orelse begin io:format("~p~n~p~n", [Pg, Weft]), false end
            end).

outcome(Module, Scope, Actions) ->
    Pids = maps:from_list([{N, spawn(fun() -> receive the_end -> ok end end)} || N <- [1, 2, 3]]),
    {Replies, {Left, Refs}} =
        lists:mapfoldl(fun(Action, State) -> act(Action, Module, Scope, State) end, {Pids, []},
                       Actions),
    Names = maps:from_list([{Pid, N} || {N, Pid} <- maps:to_list(Pids)]),
    Shown = shown(Module, Scope, Names),
    [kill(Module, Scope, Pid) || Pid <- maps:values(Left)],
    Told = [lists:sort(told(Ref, Names)) || Ref <- Refs],
    [Module:demonitor(Scope, Ref) || Ref <- Refs],
    {[named(Reply, Names) || Reply <- Replies], Shown, Told, Module:which_groups(Scope)}.

act({How, Group, Numbers}, Module, Scope, {Pids, _} = State) when How =:= join; How =:= leave ->
    Given = case Numbers of
                N when is_integer(N) -> maps:get(N, Pids, none);
                _ -> [maps:get(N, Pids, none) || N <- Numbers]
            end,
    case Given =:= none orelse (is_list(Given) andalso lists:member(none, Given)) of
        true -> {dead, State};
        false -> {Module:How(Scope, Group, Given), State}
    end;
act({die, N}, Module, Scope, {Pids, Refs}) ->
    _ = [kill(Module, Scope, Pid) || #{N := Pid} <- [Pids]],
    {died, {maps:remove(N, Pids), Refs}};
act({watch, Group}, Module, Scope, {Pids, Refs}) ->
    {Ref, Members} = Module:monitor(Scope, Group),
    {lists:sort(Members), {Pids, Refs ++ [Ref]}};
act(watch, Module, Scope, {Pids, Refs}) ->
    {Ref, Groups} = Module:monitor_scope(Scope),
    {[{Group, lists:sort(Members)} || {Group, Members} <- lists:sort(maps:to_list(Groups))],
     {Pids, Refs ++ [Ref]}};
act({unwatch, N}, Module, Scope, {Pids, Refs}) when N =< length(Refs) ->
    {Module:demonitor(Scope, lists:nth(N, Refs)), {Pids, Refs -- [lists:nth(N, Refs)]}};
act({unwatch, _}, Module, Scope, State) ->
    ok = unknown(Module, Scope),
    {unknown, State}.

%% The scope may hear of the end after this process did. Who was in no group is of no interest to
%% it. When it has answered after that, it has told its monitors.
kill(Module, Scope, Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    weft_test_nodes:until(fun() -> not is_member(Module, Scope, Pid) end),
    ok = unknown(Module, Scope).

%% OTP 29 says `ok' of a monitor that there is not, others `false'.
unknown(Module, Scope) ->
    Said = Module:demonitor(Scope, make_ref()),
    true = Said =:= false orelse Module =:= pg andalso Said =:= ok,
    ok.

is_member(Module, Scope, Pid) ->
    lists:any(fun(Group) -> lists:member(Pid, Module:get_members(Scope, Group)) end,
              Module:which_groups(Scope)).

shown(Module, Scope, Names) ->
    [{Group, named(lists:sort(Module:get_members(Scope, Group)), Names),
      named(lists:sort(Module:get_local_members(Scope, Group)), Names)}
     || Group <- lists:sort(Module:which_groups(Scope))].

%% How often each process was told to come or to go; of those who left many groups at once pg tells
%% in no order.
told(Ref, Names) ->
    receive
        {Ref, What, Group, Pids} ->
            [{What, Group, named(Pid, Names)} || Pid <- lists:sort(Pids)] ++ told(Ref, Names)
    after 0 -> []
    end.

named(Pid, Names) when is_pid(Pid) -> map_get(Pid, Names);
named([One | Rest], Names) -> [named(One, Names) | named(Rest, Names)];
named({Group, Members}, Names) -> {Group, named(Members, Names)};
named(Other, _Names) -> Other.

%% --- between nodes ----------------------------------------------------------------------------

step() ->
    Node = oneof(?NODES),
    frequency([{4, {join, Node, range(1, 2), range(1, 3)}},
               {3, {leave, Node, range(1, 2), range(1, 3)}},
               {2, {die, Node, range(1, 3)}}, {20, {deliver, Node, Node}}, {8, {fire, Node}},
               {2, {cut, Node, Node, oneof([noconnection, broken])}}, {4, {heal, Node, Node}},
               {1, {crash, Node}}]).

prop_agreement() ->
    ?FORALL(Steps, ?SIZED(Size, resize(10 * Size, list(step()))),
            begin
                {Net, _} = lists:foldl(fun step/2, {?N:new(weft_pg_core, ?NODES, #{}), 1}, Steps),
                agree(?N:settle(Net))
            end).

step({How, Node, Group, N}, {Net, Round}) when How =:= join; How =:= leave ->
    {?N:command(Node, {How, Group, [?N:pid(Node, Round * 10 + N)]}, Net), Round};
step({die, Node, N}, {Net, Round}) -> {?N:die(?N:pid(Node, Round * 10 + N), Net), Round + 1};
step({crash, Node}, {Net, Round}) -> {?N:crash(Node, Net), Round + 1};
step({deliver, A, B}, {Net, Round}) -> {?N:deliver(A, B, Net), Round};
step({fire, A}, {Net, Round}) -> {?N:fire(A, Net), Round};
step({cut, A, B, Reason}, {Net, Round}) -> {?N:cut(A, B, Reason, Net), Round};
step({heal, A, A}, State) -> State;
step({heal, A, B}, {Net, Round}) -> {?N:heal(A, B, Net), Round}.

%% All show the same members, each node shows its own as local, and nobody is dead.
agree(Net) ->
    All = [maps:map(fun(_, {Members, _}) -> lists:sort(Members) end, ?N:views(Node, Net))
           || Node <- ?NODES],
    Local = [[P || {_, Members} <- maps:values(?N:views(Node, Net)), P <- Members]
             || Node <- ?NODES],
    length(lists:usort(All)) =:= 1
        andalso lists:append(maps:values(hd(All))) -- lists:append(Local) =:= []
        andalso lists:all(fun({Node, Pids}) -> lists:all(fun(P) -> node(P) =:= Node end, Pids) end,
                          lists:zip(?NODES, Local))
        andalso lists:usort(lists:append(Local)) -- ?N:alive(Net) =:= [].

%% --- one by one -------------------------------------------------------------------------------

monitors_are_told_of_other_nodes_test() ->
    [Here, There] = [?N:pid(a@x, 1), ?N:pid(b@x, 1)],
    Ref = make_ref(),
    Net0 = ?N:settle(?N:new(weft_pg_core, [a@x, b@x], #{})),
    Net1 = ?N:command(a@x, {monitor, Ref, Here, {group, g}}, Net0),
    Net2 = ?N:settle(?N:command(b@x, {join, g, [There, There]}, Net1)),
    ?assertEqual([{Here, {Ref, join, g, [There, There]}}], ?N:told(Net2)),
    Net3 = ?N:settle(?N:cut(a@x, b@x, ?N:die(There, Net2))),
    ?assertEqual([{Here, {Ref, leave, g, [There, There]}}, {Here, {Ref, join, g, [There, There]}}],
                 ?N:told(Net3)).

only_processes_of_this_node_may_join_test() ->
    Far = ?N:pid(b@x, 1),
    ?assertError({nolocal, Far}, weft_pg:join(g, Far)),
    ?assertError({nolocal, joe}, weft_pg:leave(g, [self(), joe])),
    ?assertEqual([], weft_pg:get_members(no_such_scope, g)).
