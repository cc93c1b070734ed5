%% SPDX-License-Identifier: Apache-2.0
%% @doc The children of a process of the tree, as a value of that process: starts them, sends them
%% rounds, gathers their reports, and, if names are used, puts a new one in the place of one that is
%% lost. A child whose node is gone is given up, and the round is done without it. If too many are
%% lost in one round the parent ends, too.
%%
%% Who takes the place of another parent finds the children of that one by their names. Those that
%% are not there are started.
-module(weft_aco_children).

-export([new/3, round/3, handle/2, stop/1]).
-export_type([children/0, next/0]).

-record(children, {settings :: weft_aco:settings(),
                   processes :: #{path() => weft_aco_tree:process()},
                   pids = #{} :: #{path() => pid()}, monitors = #{} :: #{reference() => path()},
                   round = 0 :: non_neg_integer(), common = none :: weft_aco:best(),
                   %% Reports that are still to come.
                   left = #{} :: #{path() => pos_integer()},
                   best = none :: weft_aco:best(), counts :: weft_aco_report:counts()}).

-opaque children() :: #children{}.
-type path() :: [pos_integer()].
-type next() :: {more, children()}
              | {done, weft_aco:best(), weft_aco_report:counts(), children()}
              | {other, children()}.

-define(NO_COUNTS, #{messages => 0, restarts => 0, given_up => 0}).
-define(STOP_MS, 10000).
%% In a round, and since the one before it.
-define(RESTARTS_MAX, 50).

%% @doc Starts children, or looks for those that another parent has started.
-spec new([weft_aco_tree:process()], weft_aco:settings(), started | found) -> children().
new(Processes, Settings, How) ->
    Children = #children{settings = Settings, counts = ?NO_COUNTS,
                         processes = maps:from_list([{Path, Process}
                                                     || #{path := Path} = Process <- Processes])},
    lists:foldl(fun(Process, Acc) -> add(found(How, Process, Settings), Process, Acc) end,
                Children, Processes).

found(started, Process, Settings) ->
    start(Process, Settings, started);
found(found, Process, #{names := Names, run := Run} = Settings) ->
    case weft_aco_names:whereis(Names, Run, Process) of
        undefined -> start(Process, Settings, found);
        Pid -> {Pid, monitor(process, Pid)}
    end.

start(#{kind := colony} = Process, Settings, _How) ->
    weft_aco_colony:start(Process, Settings, self());
start(Process, Settings, How) ->
    weft_aco_submaster:start(Process, Settings, self(), How).

add({Pid, Monitor}, #{path := Path}, #children{pids = Pids, monitors = Monitors} = Children) ->
    Children#children{pids = Pids#{Path => Pid}, monitors = Monitors#{Monitor => Path}}.

%% @doc Begins a round, with the best solution of all colonies.
-spec round(pos_integer(), weft_aco:best(), children()) -> next().
round(Number, Common, #children{pids = Pids} = Children) ->
    Begun = Children#children{round = Number, common = Common, best = none, left = #{}},
    next(lists:foldl(fun send_round/2, Begun, maps:keys(Pids))).

send_round(Path, #children{round = Number, common = Common, pids = Pids} = Children) ->
    map_get(Path, Pids) ! {round, Number, Common, self()},
    #children{left = Left, processes = Processes, settings = #{repeat := Repeat}} = Children,
    Reports = case map_get(Path, Processes) of
                  #{kind := colony} -> Repeat;
                  _ -> 1
              end,
    count(messages, Children#children{left = Left#{Path => Reports}}).

count(Key, #children{counts = Counts} = Children) ->
    Children#children{counts = Counts#{Key := map_get(Key, Counts) + 1}}.

%% Who is lost between two rounds counts in the later one.
next(#children{left = Left, best = Best, counts = Counts} = Children) when Left =:= #{} ->
    {done, Best, Counts, Children#children{counts = ?NO_COUNTS}};
next(Children) ->
    {more, Children}.

%% @doc Takes a message. `other': it says nothing new of children.
-spec handle(Message :: term(), children()) -> next().
handle({report, Path, Round, Best, Counts}, #children{round = Round, left = Left} = Children)
  when is_map_key(Path, Left) ->
    next(report(Path, Best, Counts, count(messages, Children)));
handle({'DOWN', Monitor, process, Pid, Why}, #children{monitors = Monitors} = Children)
  when is_map_key(Monitor, Monitors) ->
    can_replace(Why, Children) orelse weft_bench_program:lost(Pid, Why),
    #children{left = Left} = Children,
    {Path, Others} = maps:take(Monitor, Monitors),
    After = replaced(Path, Pid, Why, Children#children{monitors = Others}),
    case is_map_key(Path, Left) of
        true -> next(After);
        false -> {more, After}
    end;
handle(_Message, Children) ->
    {other, Children}.

report(Path, Best, Counts, #children{left = Left, best = Known, counts = Own} = Children) ->
    Better = Children#children{best = weft_aco_report:better(Best, Known)},
    case Left of
        %% The same report comes as often as it is repeated; its counts are those of one.
        #{Path := 1} -> Better#children{left = maps:remove(Path, Left),
                                        counts = weft_aco_report:add(Counts, Own)};
        #{Path := More} -> Better#children{left = Left#{Path := More - 1}}
    end.

%% A child that has given up has tried often enough.
can_replace({lost, _Node, _Why}, _Children) ->
    false;
can_replace(_Why, #children{settings = #{names := Names}, counts = #{restarts := Restarts}}) ->
    Names =/= none andalso Restarts < ?RESTARTS_MAX.

%% A process that could not be started on its node is one of this node.
replaced(Path, Pid, Why, #children{processes = Processes, settings = Settings} = Children) ->
    #{node := Node} = Process = map_get(Path, Processes),
    case Why =:= noconnection orelse node(Pid) =/= Node of
        true -> given_up(Path, Children);
        false ->
            Again = add(another(Pid, Process, Settings), Process, count(restarts, Children)),
            case is_map_key(Path, Children#children.left) of
                true -> send_round(Path, Again);
                false -> Again
            end
    end.

%% The parent before this one may have started it already. A name may be that of the lost one yet.
another(Lost, Process, Settings) ->
    case found(found, Process, Settings) of
        {Lost, Monitor} ->
            demonitor(Monitor, [flush]),
            start(Process, Settings, found);
        Other -> Other
    end.

given_up(Path, #children{processes = Processes, pids = Pids, left = Left} = Children) ->
    count(given_up, Children#children{processes = maps:remove(Path, Processes),
                                      pids = maps:remove(Path, Pids),
                                      left = maps:remove(Path, Left)}).

%% @doc Ends the children and all below them, and waits until they are gone.
-spec stop(children()) -> ok.
stop(#children{pids = Pids, monitors = Monitors}) ->
    lists:foreach(fun(Pid) -> Pid ! {stop, self()} end, maps:values(Pids)),
    Deadline = erlang:monotonic_time(millisecond) + ?STOP_MS,
    lists:foreach(fun(Monitor) -> await_end(Monitor, Deadline) end, maps:keys(Monitors)).

await_end(Monitor, Deadline) ->
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        demonitor(Monitor, [flush])
    end.
