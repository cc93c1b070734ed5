%% SPDX-License-Identifier: Apache-2.0
%% @doc One scope of process groups on one node: which processes are in which group, and which
%% processes monitor it.
%%
%% A node tells the others how often each of its processes is in each group
%% (`weft_own_rows_core': `{Group, Pid}' => count); joins and leaves within a millisecond share a
%% message. Members are shown as `{All, Local}'; a process occurs as often as it joined.
%%
%% Commands: `{join | leave, Group, [Pid]}': `ok' or `not_joined'; `{monitor, Ref, Pid, scope |
%% {group, Group}}': the present members; `{demonitor, Ref}': boolean. A process that monitors gets
%% `{Ref, join | leave, Group, [Pid]}'.
-module(weft_pg_core).
-behaviour(weft_core).

-export([init/2, handle/3, named/2]).

-record(pg, {
    self :: node(),
    rows = weft_own_rows_core:new() :: weft_own_rows_core:rows(),
    groups = #{} :: #{Group :: term() => {All :: [pid()], Local :: [pid()]}},
    %% Groups of the processes of this node, and monitors by processes that wait for news.
    joined = #{} :: #{pid() => #{Group :: term() => []}},
    watching = #{} :: #{pid() => [reference()]},
    of_scope = #{} :: #{reference() => pid()},
    of_group = #{} :: #{Group :: term() => #{reference() => pid()}},
    monitors = #{} :: #{reference() => {pid(), scope | {group, Group :: term()}}},
    out = [] :: weft_core:effects()}).

%% @private
-spec init(node(), weft_core:options()) -> {#pg{}, weft_core:effects()}.
init(Self, _Options) ->
    {#pg{self = Self}, []}.

%% @private
-spec named(node(), #pg{}) -> {#pg{}, weft_core:effects()}.
named(Self, Pg) ->
    {Pg#pg{self = Self}, []}.

%% @private
-spec handle(weft_core:event(), NowMs :: integer(), #pg{}) -> {#pg{}, weft_core:effects()}.
handle({command, Ref, Command}, _NowMs, Pg) ->
    done(command(Command, Ref, Pg));
handle({message, From, Msg}, _NowMs, #pg{rows = Rows} = Pg) ->
    done(outcome(weft_own_rows_core:message(From, Msg, Rows), Pg));
handle({timer, Timer}, _NowMs, #pg{rows = Rows} = Pg) ->
    done(outcome(weft_own_rows_core:timer(Timer, Rows), Pg));
handle({neighbour_up, Node}, _NowMs, #pg{rows = Rows} = Pg) ->
    done(outcome(weft_own_rows_core:up(Node, Rows), Pg));
handle({neighbour_down, Node, Reason}, _NowMs, #pg{rows = Rows} = Pg) ->
    done(outcome(weft_own_rows_core:down(Node, Reason, Rows), Pg));
handle({notice, {gone, Pid, _Reason}}, _NowMs, Pg) ->
    done(gone(Pid, Pg)).

done(#pg{out = Out} = Pg) ->
    {Pg#pg{out = []}, lists:reverse(Out)}.

effects(Effects, #pg{out = Out} = Pg) ->
    Pg#pg{out = lists:reverse(Effects, Out)}.

outcome({Changes, Rows, Effects}, Pg) ->
    changed(Changes, effects(Effects, Pg#pg{rows = Rows})).

command({join, Group, Pids}, Ref, Pg) ->
    effects([{reply, Ref, ok}], changed_here([{Group, Pid, 1} || Pid <- Pids], Pg));
command({leave, Group, Pids}, Ref, #pg{joined = Joined} = Pg) ->
    case [{Group, Pid, -1} || Pid <- Pids, is_map_key(Group, maps:get(Pid, Joined, #{}))] of
        [] -> effects([{reply, Ref, not_joined}], Pg);
        Steps -> effects([{reply, Ref, ok}], changed_here(Steps, Pg))
    end;
command({monitor, Monitor, Pid, What}, Ref, Pg) ->
    effects([{reply, Ref, there_is(What, Pg)}], watch(Monitor, Pid, What, Pg));
command({demonitor, Monitor}, Ref, #pg{monitors = Monitors} = Pg) ->
    effects([{reply, Ref, is_map_key(Monitor, Monitors)}], unmonitored(Monitor, Pg)).

there_is(scope, #pg{groups = Groups}) ->
    maps:map(fun(_, {All, _}) -> All end, Groups);
there_is({group, Group}, #pg{groups = Groups}) ->
    case Groups of
        #{Group := {All, _}} -> All;
        #{} -> []
    end.

%% --- members ----------------------------------------------------------------------------------

%% Changes of processes of this node, one after the other: `{Group, Pid, 1 | -1}'.
changed_here(Steps, Pg0) ->
    {Changes, Pg} = lists:foldl(fun step/2, {[], Pg0}, Steps),
    changed(lists:reverse(Changes), Pg).

step({Group, Pid, By}, {Changes, #pg{rows = Rows0, self = Self} = Pg0}) ->
    Key = {Group, Pid},
    Old = case weft_own_rows_core:find(Key, Rows0) of {ok, Count} -> Count; error -> 0 end,
    case Old + By of
        New when New < 0 ->
            {Changes, Pg0};
        0 ->
            {_Seq, Rows, Effects} = weft_own_rows_core:delete(Key, Rows0),
            {[{Self, Key, Old, 0} | Changes],
             left(Group, Pid, effects(Effects, Pg0#pg{rows = Rows}))};
        New ->
            {_Seq, Rows, Effects} = weft_own_rows_core:put(Key, New, Rows0),
            {[{Self, Key, Old, New} | Changes],
             joined(Group, Pid, effects(Effects, Pg0#pg{rows = Rows}))}
    end.

joined(Group, Pid, #pg{joined = Joined} = Pg) ->
    Groups = maps:get(Pid, Joined, #{}),
    effects([{watch, Pid} || map_size(Groups) =:= 0],
            Pg#pg{joined = Joined#{Pid => Groups#{Group => []}}}).

left(Group, Pid, #pg{joined = Joined} = Pg) ->
    case maps:remove(Group, map_get(Pid, Joined)) of
        Groups when map_size(Groups) =:= 0 ->
            unneeded(Pid, Pg#pg{joined = maps:remove(Pid, Joined)});
        Groups -> Pg#pg{joined = Joined#{Pid := Groups}}
    end.

unneeded(Pid, #pg{joined = Joined, watching = Watching} = Pg) ->
    effects([{unwatch, Pid} || not is_map_key(Pid, Joined), not is_map_key(Pid, Watching)], Pg).

gone(Pid, #pg{joined = Joined, rows = Rows, watching = Watching} = Pg) ->
    Steps = [{Group, Pid, -1} || Group <- lists:sort(maps:keys(maps:get(Pid, Joined, #{}))),
                                 {ok, Count} <- [weft_own_rows_core:find({Group, Pid}, Rows)],
                                 _ <- lists:seq(1, Count)],
    changed_here(Steps, lists:foldl(fun unmonitored/2, Pg, maps:get(Pid, Watching, []))).

%% First the views, then the news: a process that gets the news may read the table.
changed(Changes, #pg{groups = Groups0, self = Self} = Pg) ->
    {Groups, News} = lists:foldl(fun(Change, Acc) -> change(Change, Self, Acc) end,
                                 {Groups0, #{}}, Changes),
    Touched = lists:usort([Group || {_, Group} <- maps:keys(News)]),
    Views = [{view, Group, maps:get(Group, Groups, delete)} || Group <- Touched],
    told(News, effects(Views, Pg#pg{groups = Groups})).

change({Node, {Group, Pid}, Old, New}, Self, {Groups, News}) when node(Pid) =:= Node ->
    Members = maps:get(Group, Groups, {[], []}),
    case count(New) - count(Old) of
        0 ->
            {Groups, News};
        More when More > 0 ->
            Pids = lists:duplicate(More, Pid),
            {Groups#{Group => added(Pids, Node =:= Self, Members)}, news(join, Group, Pids, News)};
        Less ->
            Pids = lists:duplicate(-Less, Pid),
            {case removed(Pids, Members) of
                 {[], []} -> maps:remove(Group, Groups);
                 Rest -> Groups#{Group => Rest}
             end, news(leave, Group, Pids, News)}
    end;
change(_NotItsOwn, _Self, Unchanged) ->
    Unchanged.

count(none) -> 0;
count(Count) -> Count.

added(Pids, true, {All, Local}) -> {Pids ++ All, Pids ++ Local};
added(Pids, false, {All, Local}) -> {Pids ++ All, Local}.

removed(Pids, {All, Local}) ->
    {All -- Pids, case Local of [] -> []; _ -> Local -- Pids end}.

news(What, Group, Pids, News) ->
    Key = {What, Group},
    News#{Key => Pids ++ maps:get(Key, News, [])}.

%% --- monitors ---------------------------------------------------------------------------------

watch(Monitor, Pid, What, #pg{watching = Watching, monitors = Monitors} = Pg0) ->
    Pg = Pg0#pg{watching = Watching#{Pid => [Monitor | maps:get(Pid, Watching, [])]},
                monitors = Monitors#{Monitor => {Pid, What}}},
    effects([{watch, Pid}], add_monitor(What, Monitor, Pid, Pg)).

add_monitor(scope, Monitor, Pid, #pg{of_scope = OfScope} = Pg) ->
    Pg#pg{of_scope = OfScope#{Monitor => Pid}};
add_monitor({group, Group}, Monitor, Pid, #pg{of_group = OfGroup} = Pg) ->
    Of = maps:get(Group, OfGroup, #{}),
    Pg#pg{of_group = OfGroup#{Group => Of#{Monitor => Pid}}}.

unmonitored(Monitor, #pg{monitors = Monitors0, watching = Watching} = Pg) ->
    case maps:take(Monitor, Monitors0) of
        {{Pid, What}, Monitors} ->
            Left = case lists:delete(Monitor, map_get(Pid, Watching)) of
                       [] -> maps:remove(Pid, Watching);
                       Others -> Watching#{Pid := Others}
                   end,
            unneeded(Pid, remove_monitor(What, Monitor, Pg#pg{monitors = Monitors,
                                                              watching = Left}));
        error ->
            Pg
    end.

remove_monitor(scope, Monitor, #pg{of_scope = OfScope} = Pg) ->
    Pg#pg{of_scope = maps:remove(Monitor, OfScope)};
remove_monitor({group, Group}, Monitor, #pg{of_group = OfGroup} = Pg) ->
    case maps:remove(Monitor, map_get(Group, OfGroup)) of
        Of when map_size(Of) =:= 0 -> Pg#pg{of_group = maps:remove(Group, OfGroup)};
        Of -> Pg#pg{of_group = OfGroup#{Group := Of}}
    end.

told(News, #pg{of_scope = OfScope, of_group = OfGroup} = Pg) ->
    effects([{tell, Pid, {Monitor, What, Group, Pids}}
             || {{What, Group}, Pids} <- lists:sort(maps:to_list(News)),
                {Monitor, Pid} <- lists:sort(maps:to_list(
                                    maps:merge(OfScope, maps:get(Group, OfGroup, #{}))))], Pg).
