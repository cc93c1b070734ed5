%% SPDX-License-Identifier: Apache-2.0
%% @doc Schedules of faults, as data: `[{AtMs, Verb}]', counted from the start. The verbs are those
%% of the simulator's scenarios, so what was found there can be done to real nodes.
%%
%% ```
%% {crash, Node}              the emulator ends at once, as kill -9 ends it
%% {start, Node}              a crashed node is started (by the option `start' of the runner)
%% {pause, Node, ForMs}       the emulator stands still (SIGSTOP), then goes on
%% {cut, A, B, ForMs}         no connection between the two
%% {partition, [[Node]], ForMs}  cuts all pairs across the groups
%% {break, A, B}              all connections between the two are closed once, as by lost packets
%% {delay, A, B, MinMs, MaxMs, ForMs}  each packet between the two is late
%% {kill, Node, Options}      one process (`weft_chaos_monkey')
%% heal_all                   ends all cuts, delays and pauses
%% '''
%% What has a ForMs ends by itself. `random/3' draws a schedule from a seed: the same one each time.
-module(weft_chaos_schedule).

-export([check/1, random/3, expand/1, length_ms/1, nodes/1, format/1]).
-export_type([schedule/0, verb/0]).

-type verb() :: {crash, node()} | {start, node()} | {pause, node(), ForMs :: pos_integer()}
              | {cut, node(), node(), ForMs :: pos_integer()}
              | {partition, [[node()]], ForMs :: pos_integer()}
              | {break, node(), node()}
              | {delay, node(), node(), MinMs :: non_neg_integer(), MaxMs :: non_neg_integer(),
                 ForMs :: pos_integer()}
              | {kill, node(), weft_chaos_monkey:options()}
              | heal_all.
-type schedule() :: [{AtMs :: non_neg_integer(), verb()}].

%% A fault that lasts longer than an hour is a mistake.
-define(FOR_MAX_MS, 3600000).

%% @doc Is it one? The error is a text that names the step.
-spec check(term()) -> ok | {error, string()}.
check(Schedule) when is_list(Schedule) ->
    case [Step || Step <- Schedule, not is_step(Step)] of
        [] -> ok;
        [Step | _] ->
            {error, lists:flatten(io_lib:format("~0tp is no step of a schedule; steps are "
                                                "{AtMs, Verb}, verbs are on top of "
                                                "weft_chaos_schedule", [Step]))}
    end;
check(Other) ->
    {error, lists:flatten(io_lib:format("~0tp is no list of {AtMs, Verb}", [Other]))}.

is_step({AtMs, Verb}) -> is_integer(AtMs) andalso AtMs >= 0 andalso is_verb(Verb);
is_step(_) -> false.

is_verb({What, Node}) when What =:= crash; What =:= start -> is_atom(Node);
is_verb({pause, Node, ForMs}) -> is_atom(Node) andalso is_time(ForMs);
is_verb({cut, A, B, ForMs}) -> is_pair(A, B) andalso is_time(ForMs);
is_verb({break, A, B}) -> is_pair(A, B);
is_verb({delay, A, B, MinMs, MaxMs, ForMs}) ->
    is_pair(A, B) andalso is_time(ForMs) andalso is_integer(MinMs) andalso MinMs >= 0
        andalso is_integer(MaxMs) andalso MaxMs >= MinMs;
is_verb({partition, Groups, ForMs}) when is_list(Groups) ->
    is_time(ForMs) andalso lists:all(fun is_group/1, Groups)
        andalso length(lists:append(Groups)) =:= length(lists:usort(lists:append(Groups)));
is_verb({kill, Node, Options}) -> is_atom(Node) andalso is_map(Options);
is_verb(heal_all) -> true;
is_verb(_) -> false.

is_pair(A, B) -> is_atom(A) andalso is_atom(B) andalso A =/= B.
is_time(Ms) -> is_integer(Ms) andalso Ms > 0 andalso Ms =< ?FOR_MAX_MS.
is_group(Group) -> is_list(Group) andalso lists:all(fun is_atom/1, Group).

-type kinds() :: #{length_ms := pos_integer(), faults := pos_integer(),
                   lasts_ms := {Min :: pos_integer(), Max :: pos_integer()},
                   kinds := [{atom(), Weight :: pos_integer()}, ...]}.

%% @doc Draws a schedule over these nodes. Kinds: verbs and their weights, of crash (the node is
%% started again), pause, cut, partition, break, delay, kill. `faults' says how many. After the last
%% fault comes heal_all.
-spec random(Seed :: integer(), [node(), ...], kinds()) -> schedule().
random(Seed, Nodes, #{length_ms := LengthMs, faults := Count, lasts_ms := Lasts, kinds := Kinds}) ->
    Weighted = lists:append([lists:duplicate(Weight, Kind) || {Kind, Weight} <- Kinds]),
    {Steps, _} = lists:mapfoldl(fun(_, Rand) -> fault(Weighted, Nodes, LengthMs, Lasts, Rand) end,
                                rand:seed_s(exsss, Seed), lists:seq(1, Count)),
    lists:keysort(1, lists:append(Steps)) ++ [{LengthMs, heal_all}].

fault(Weighted, Nodes, LengthMs, {Min, Max}, Rand0) ->
    {Kind, Rand1} = pick(Weighted, Rand0),
    {AtMs, Rand2} = rand:uniform_s(LengthMs, Rand1),
    {More, Rand3} = rand:uniform_s(Max - Min + 1, Rand2),
    {Shuffled, Rand} = shuffle(Nodes, Rand3),
    ForMs = max(1, min(Min + More - 1, LengthMs - AtMs)),
    {steps(Kind, AtMs, ForMs, Shuffled), Rand}.

pick(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.

shuffle(Nodes, Rand0) ->
    {Keyed, Rand} = lists:mapfoldl(fun(Node, R0) ->
                                           {Key, R} = rand:uniform_s(R0),
                                           {{Key, Node}, R}
                                   end, Rand0, Nodes),
    {[Node || {_, Node} <- lists:sort(Keyed)], Rand}.

steps(crash, AtMs, ForMs, [Node | _]) -> [{AtMs, {crash, Node}}, {AtMs + ForMs, {start, Node}}];
steps(pause, AtMs, ForMs, [Node | _]) -> [{AtMs, {pause, Node, ForMs}}];
steps(kill, AtMs, _ForMs, [Node | _]) -> [{AtMs, {kill, Node, #{}}}];
steps(cut, AtMs, ForMs, [A, B | _]) -> [{AtMs, {cut, A, B, ForMs}}];
steps(break, AtMs, _ForMs, [A, B | _]) -> [{AtMs, {break, A, B}}];
steps(delay, AtMs, ForMs, [A, B | _]) -> [{AtMs, {delay, A, B, 1, 50, ForMs}}];
steps(partition, AtMs, ForMs, [_, _ | _] = Nodes) ->
    {One, Other} = lists:split(length(Nodes) div 2, Nodes),
    [{AtMs, {partition, [One, Other], ForMs}}];
steps(_Kind, _AtMs, _ForMs, _TooFew) -> [].

%% @doc In order of time, with partitions as the cuts they are.
-spec expand(schedule()) -> schedule().
expand(Schedule) ->
    lists:append([expand_step(Step) || Step <- lists:keysort(1, Schedule)]).

expand_step({AtMs, {partition, Groups, ForMs}}) ->
    Numbered = lists:enumerate(Groups),
    [{AtMs, {cut, A, B, ForMs}} || {I, One} <- Numbered, {J, Other} <- Numbered, I < J,
                                   A <- One, B <- Other];
expand_step(Step) ->
    [Step].

%% @doc When the last fault is over.
-spec length_ms(schedule()) -> non_neg_integer().
length_ms(Schedule) ->
    lists:max([0 | [AtMs + lasts_ms(Verb) || {AtMs, Verb} <- Schedule]]).

lasts_ms({pause, _, ForMs}) -> ForMs;
lasts_ms({cut, _, _, ForMs}) -> ForMs;
lasts_ms({partition, _, ForMs}) -> ForMs;
lasts_ms({delay, _, _, _, _, ForMs}) -> ForMs;
lasts_ms(_) -> 0.

%% @doc The nodes that a schedule names.
-spec nodes(schedule()) -> [node()].
nodes(Schedule) ->
    lists:usort(lists:append([nodes_of(Verb) || {_, Verb} <- Schedule])).

nodes_of(heal_all) -> [];
nodes_of({partition, Groups, _}) -> lists:append(Groups);
nodes_of({What, A, B, _}) when What =:= cut -> [A, B];
nodes_of({break, A, B}) -> [A, B];
nodes_of({delay, A, B, _, _, _}) -> [A, B];
nodes_of(Verb) -> [element(2, Verb)].

%% @doc One line about a step.
-spec format({non_neg_integer(), verb()}) -> iolist().
format({AtMs, Verb}) ->
    io_lib:format("~8.1f s  ~0tp", [AtMs / 1000, Verb]).
