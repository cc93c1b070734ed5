%% SPDX-License-Identifier: Apache-2.0
%% @doc How much processor time a suite takes, with all that it starts (on Linux; elsewhere it is
%% told to be nothing).
%%
%% Which processes those are a variable of their environment says. Every two seconds their times are
%% read, each with the times of its children that ended. So what ended in between is counted by its
%% parent. Only what ended together with its parent is counted as it was seen last.
-module(suite_processor).

-export([start/1, used_s/1]).

-define(EVERY_MS, 2000).
%% Fields of /proc/PID/stat, behind the name: parent; own and children's times, user and system.
-define(PARENT, 2).
-define(TIMES, 12).
-define(TIMES_COUNT, 4).
%% The unit of these times is the same on all Linux machines.
-define(TICKS_PER_S, 100).

-type pid_name() :: string().
%% Of each process: whose it is, its parent, and its ticks. `gone' are ticks of those whose parent
%% is gone, too.
-type state() :: #{variable := binary(), marks := #{pid_name() => binary() | new | none},
                   seen := #{pid_name() => {binary(), pid_name(), non_neg_integer()}},
                   gone := #{binary() => non_neg_integer()}}.

%% @doc Begins to watch all processes that have a variable of that name.
-spec start(Variable :: string()) -> ok.
start(Variable) ->
    State = #{variable => iolist_to_binary([0, Variable, "="]), marks => #{}, seen => #{},
              gone => #{}},
    true = register(?MODULE, spawn_link(fun() -> watch(looked(State)) end)),
    ok.

%% @doc Seconds that processes with this value of the variable have taken so far.
-spec used_s(Value :: string()) -> float().
used_s(Value) ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {used, list_to_binary(Value), self(), Ref},
    receive
        {Ref, Ticks} -> demonitor(Ref, [flush]), Ticks / ?TICKS_PER_S;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    end.

-spec watch(state()) -> no_return().
watch(State) ->
    receive
        {used, Mark, From, Ref} ->
            Looked = #{seen := Seen, gone := Gone} = looked(State),
            Running = [Ticks || {M, _, Ticks} <- maps:values(Seen), M =:= Mark],
            From ! {Ref, maps:get(Mark, Gone, 0) + lists:sum(Running)},
            watch(Looked#{gone := maps:remove(Mark, Gone)})
    after ?EVERY_MS ->
        watch(looked(State))
    end.

looked(#{marks := Known, seen := Before, gone := Gone, variable := Variable} = State) ->
    Pids = [filename:basename(Dir) || Dir <- filelib:wildcard("/proc/[0-9]*")],
    Marks = maps:from_list([{Pid, mark(Pid, Known, Variable)} || Pid <- Pids]),
    Seen = maps:from_list([{Pid, {Mark, Parent, Ticks}}
                           || {Pid, Mark} <- maps:to_list(Marks), is_binary(Mark),
                              {Parent, Ticks} <- times(Pid)]),
    Ended = [{Mark, Ticks} || {Pid, {Mark, Parent, Ticks}} <- maps:to_list(Before),
                              not is_map_key(Pid, Seen), not is_map_key(Parent, Seen)],
    Add = fun({Mark, Ticks}, Sums) -> maps:update_with(Mark, fun(S) -> S + Ticks end, Ticks, Sums)
          end,
    State#{marks := Marks, seen := Seen, gone := lists:foldl(Add, Gone, Ended)}.

%% A process keeps what it was started with. One that is new may be about to be another program.
mark(Pid, Known, Variable) ->
    case Known of
        #{Pid := new} -> marked(read(Pid, "environ"), Variable, none);
        #{Pid := Mark} -> Mark;
        #{} -> marked(read(Pid, "environ"), Variable, new)
    end.

marked(Environment, Variable, Otherwise) ->
    case binary:split(<<0, Environment/binary>>, Variable) of
        [_, Rest] -> hd(binary:split(Rest, <<0>>));
        [_] -> Otherwise
    end.

%% Its name, in parentheses, may hold anything.
times(Pid) ->
    case re:run(read(Pid, "stat"), "^.*\\) (.*)$", [dotall, {capture, [1], list}]) of
        {match, [Text]} ->
            Fields = string:lexemes(Text, " "),
            Times = lists:sublist(Fields, ?TIMES, ?TIMES_COUNT),
            [{lists:nth(?PARENT, Fields), lists:sum([list_to_integer(Time) || Time <- Times])}];
        nomatch ->
            []
    end.

read(Pid, Name) ->
    case file:read_file(filename:join(["/proc", Pid, Name])) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.
