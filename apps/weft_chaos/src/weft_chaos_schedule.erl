%% SPDX-License-Identifier: Apache-2.0
%% @doc Schedules of faults, as data: `[{AtMs, Verb}]', counted from the start. The verbs are those
%% of the simulator's scenarios, so what was found there can be done to real nodes.
%%
%% ```
%% {crash, Node}              the emulator ends at once, as kill -9 ends it
%% {start, Node}              a crashed node is started (by the option `start' of the runner)
%% {pause, Node}              the emulator stands still (SIGSTOP), then goes on
%% {resume, Node}             now
%% {cut, A, B}                no connection between the two
%% {cut_one_way, From, To}    nothing more gets from one to the other, and no new connection
%% {partition, [[Node]]}      cuts all pairs across the groups
%% {heal, A, B}               ends all faults of the link between the two
%% heal_all                   ends all faults of links, and pauses
%% '''
%% Pauses, cuts and partitions last until they are ended by a later step, at most until the end of
%% the schedule; or as long as they say: {pause, Node, ForMs}, {cut, A, B, ForMs}, {cut_one_way,
%% From, To, ForMs}, {partition, [[Node]], ForMs}. What only real nodes have:
%%
%% ```
%% {break, A, B}              all connections between the two are closed once
%% {delay, A, B, MinMs, MaxMs, ForMs}  each packet between the two is late
%% {loss, A, B, Percent, ForMs}  so many packets between the two are repeated by TCP
%% {kill, Node, Options}      one process (`weft_chaos_monkey')
%% '''
%% What only the simulator has are verbs about single machines of a node, which real nodes can not
%% lose or address apart, and lives with an incarnation that is given.
%%
%% `random/3' draws a schedule from a seed: the same one each time.
-module(weft_chaos_schedule).

-export([check/1, random/3, expand/1, length_ms/1, nodes/1, format/1]).
-export_type([schedule/0, verb/0]).

-type verb() :: {crash, node()} | {start, node()}
              | {pause, node()} | {pause, node(), ForMs :: pos_integer()} | {resume, node()}
              | {cut, node(), node()} | {cut, node(), node(), ForMs :: pos_integer()}
              | {cut_one_way, node(), node()}
              | {cut_one_way, From :: node(), To :: node(), ForMs :: pos_integer()}
              | {partition, [[node()]]} | {partition, [[node()]], ForMs :: pos_integer()}
              | {heal, node(), node()}
              | {break, node(), node()}
              | {delay, node(), node(), MinMs :: non_neg_integer(), MaxMs :: non_neg_integer(),
                 ForMs :: pos_integer()}
              | {loss, node(), node(), Percent :: number(), ForMs :: pos_integer()}
              | {kill, node(), weft_chaos_monkey:options()}
              | heal_all.
-type schedule() :: [{AtMs :: non_neg_integer(), verb()}].

%% A fault that lasts longer than an hour is a mistake.
-define(FOR_MAX_MS, 3600000).

%% @doc Is it one? The error is a text that names the step.
-spec check(term()) -> ok | {error, string()}.
check(Schedule) when length(Schedule) >= 0 -> % not of an improper list
    case [Step || Step <- Schedule, not is_step(Step)] of
        [] -> ok;
        [Step | _] -> {error, lists:flatten(io_lib:format("~0tp ~ts", [Step, why_not(Step)]))}
    end;
check(Other) ->
    {error, lists:flatten(io_lib:format("~0tp is no list of {AtMs, Verb}", [Other]))}.

why_not({_, {restart_machine, Node, _}}) ->
    io_lib:format("is a step for the simulator only: a real node can not lose one of its machines. "
                  "The nearest is {crash, ~0tp} and then {start, ~0tp}", [Node, Node]);
why_not({_, {start, Node, _}}) ->
    io_lib:format("is a step for the simulator only: a real node takes its incarnation from its "
                  "clock. The nearest is {start, ~0tp}", [Node]);
why_not({_, {What, _, _, _}}) when What =:= command; What =:= notice ->
    "is a step for the simulator only: real nodes get requests by the functions of weft";
why_not(_) ->
    "is no step of a schedule; steps are {AtMs, Verb}, verbs are on top of weft_chaos_schedule".

is_step({AtMs, Verb}) -> is_integer(AtMs) andalso AtMs >= 0 andalso is_verb(Verb);
is_step(_) -> false.

is_verb({What, Node}) when What =:= crash; What =:= start; What =:= pause; What =:= resume ->
    is_atom(Node);
is_verb({partition, Groups}) -> is_groups(Groups);
is_verb({partition, Groups, ForMs}) -> is_groups(Groups) andalso is_time(ForMs);
is_verb({pause, Node, ForMs}) -> is_atom(Node) andalso is_time(ForMs);
is_verb({What, A, B}) when What =:= cut; What =:= cut_one_way; What =:= heal; What =:= break ->
    is_pair(A, B);
is_verb({What, A, B, ForMs}) when What =:= cut; What =:= cut_one_way ->
    is_pair(A, B) andalso is_time(ForMs);
is_verb({delay, A, B, MinMs, MaxMs, ForMs}) ->
    is_pair(A, B) andalso is_time(ForMs) andalso is_integer(MinMs) andalso MinMs >= 0
        andalso is_integer(MaxMs) andalso MaxMs >= MinMs;
is_verb({loss, A, B, Percent, ForMs}) ->
    is_pair(A, B) andalso is_time(ForMs) andalso is_number(Percent) andalso Percent >= 0
        andalso Percent =< 100;
is_verb({kill, Node, Options}) -> is_atom(Node) andalso is_map(Options);
is_verb(heal_all) -> true;
is_verb(_) -> false.

is_groups(Groups) when length(Groups) >= 0 ->
    lists:all(fun weft_value:is_atoms/1, Groups)
        andalso length(lists:append(Groups)) =:= length(lists:usort(lists:append(Groups)));
is_groups(_) ->
    false.

is_pair(A, B) -> is_atom(A) andalso is_atom(B) andalso A =/= B.
is_time(Ms) -> is_integer(Ms) andalso Ms > 0 andalso Ms =< ?FOR_MAX_MS.

-type kinds() :: #{length_ms := pos_integer(), faults := pos_integer(),
                   lasts_ms := {Min :: pos_integer(), Max :: pos_integer()},
                   kinds := [{atom(), Weight :: pos_integer()}, ...]}.

%% @doc Draws a schedule over these nodes. Kinds: verbs and their weights, of crash (the node is
%% started again), pause, cut, cut_one_way, partition, break, delay, loss, kill (with a seed, so
%% that the victim is drawn too). `faults' says how many. After the last fault comes heal_all.
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
    {Shuffled, Rand4} = shuffle(Nodes, Rand3),
    {VictimSeed, Rand} = rand:uniform_s(1 bsl 32, Rand4),
    ForMs = max(1, min(Min + More - 1, LengthMs - AtMs)),
    {steps(Kind, AtMs, {ForMs, VictimSeed}, Shuffled), Rand}.

pick(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.

shuffle(Nodes, Rand0) ->
    {Keyed, Rand} = lists:mapfoldl(fun(Node, R0) ->
                                           {Key, R} = rand:uniform_s(R0),
                                           {{Key, Node}, R}
                                   end, Rand0, Nodes),
    {[Node || {_, Node} <- lists:sort(Keyed)], Rand}.

steps(crash, AtMs, {ForMs, _}, [Node | _]) ->
    [{AtMs, {crash, Node}}, {AtMs + ForMs, {start, Node}}];
steps(pause, AtMs, {ForMs, _}, [Node | _]) -> [{AtMs, {pause, Node, ForMs}}];
steps(kill, AtMs, {_, Seed}, [Node | _]) -> [{AtMs, {kill, Node, #{seed => Seed}}}];
steps(break, AtMs, _, [A, B | _]) -> [{AtMs, {break, A, B}}];
steps(delay, AtMs, {ForMs, _}, [A, B | _]) -> [{AtMs, {delay, A, B, 1, 50, ForMs}}];
steps(loss, AtMs, {ForMs, _}, [A, B | _]) -> [{AtMs, {loss, A, B, 10, ForMs}}];
steps(Cut, AtMs, {ForMs, _}, [A, B | _]) when Cut =:= cut; Cut =:= cut_one_way ->
    [{AtMs, {Cut, A, B, ForMs}}];
steps(partition, AtMs, {ForMs, _}, [_, _ | _] = Nodes) ->
    {One, Other} = lists:split(length(Nodes) div 2, Nodes),
    [{AtMs, {partition, [One, Other], ForMs}}];
steps(_Kind, _AtMs, _, _TooFew) -> [].

%% @doc In order of time, with partitions as the cuts they are. What lasts has a ForMs, and it is no
%% longer than until the step that ends it: so nodes can end it by themselves.
-spec expand(schedule()) -> schedule().
expand(Schedule) ->
    bounded(lists:append([expand_step(Step) || Step <- lists:keysort(1, Schedule)]),
            length_ms(Schedule)).

expand_step({AtMs, {partition, Groups}}) ->
    [{AtMs, {cut, A, B}} || {A, B} <- across(Groups)];
expand_step({AtMs, {partition, Groups, ForMs}}) ->
    [{AtMs, {cut, A, B, ForMs}} || {A, B} <- across(Groups)];
expand_step(Step) ->
    [Step].

across(Groups) ->
    Numbered = lists:enumerate(Groups),
    [{A, B} || {I, One} <- Numbered, {J, Other} <- Numbered, I < J, A <- One, B <- Other].

bounded([], _EndMs) ->
    [];
bounded([{AtMs, Verb} | Later], EndMs) ->
    OverMs = hd([Ms || {Ms, Ender} <- Later, is_end(Ender, Verb)] ++ [EndMs]),
    [{AtMs, lasting(Verb, max(1, min(OverMs - AtMs, ?FOR_MAX_MS)))} | bounded(Later, EndMs)].

is_end(heal_all, _) -> true;
is_end({resume, Node}, Pause) -> element(1, Pause) =:= pause andalso element(2, Pause) =:= Node;
is_end({heal, A, B}, Fault) -> is_tuple(Fault) andalso lists:member(ends(Fault), [{A, B}, {B, A}]);
is_end(_, _) -> false.

ends(Fault) when tuple_size(Fault) >= 3 -> {element(2, Fault), element(3, Fault)};
ends(_) -> none.

lasting({pause, Node}, MaxMs) -> {pause, Node, MaxMs};
lasting({pause, Node, ForMs}, MaxMs) -> {pause, Node, min(ForMs, MaxMs)};
lasting({Cut, A, B}, MaxMs) when Cut =:= cut; Cut =:= cut_one_way -> {Cut, A, B, MaxMs};
lasting({Cut, A, B, ForMs}, MaxMs) when Cut =:= cut; Cut =:= cut_one_way ->
    {Cut, A, B, min(ForMs, MaxMs)};
lasting({delay, A, B, Min, Max, ForMs}, MaxMs) -> {delay, A, B, Min, Max, min(ForMs, MaxMs)};
lasting({loss, A, B, Percent, ForMs}, MaxMs) -> {loss, A, B, Percent, min(ForMs, MaxMs)};
lasting(Verb, _MaxMs) -> Verb.

%% @doc When the last fault is over.
-spec length_ms(schedule()) -> non_neg_integer().
length_ms(Schedule) ->
    lists:max([0 | [AtMs + lasts_ms(Verb) || {AtMs, Verb} <- Schedule]]).

lasts_ms({pause, _, ForMs}) -> ForMs;
lasts_ms({cut, _, _, ForMs}) -> ForMs;
lasts_ms({cut_one_way, _, _, ForMs}) -> ForMs;
lasts_ms({partition, _, ForMs}) -> ForMs;
lasts_ms({loss, _, _, _, ForMs}) -> ForMs;
lasts_ms({delay, _, _, _, _, ForMs}) -> ForMs;
lasts_ms(_) -> 0.

%% @doc The nodes that a schedule names.
-spec nodes(schedule()) -> [node()].
nodes(Schedule) ->
    lists:usort(lists:append([nodes_of(Verb) || {_, Verb} <- Schedule])).

nodes_of(heal_all) -> [];
nodes_of({partition, Groups}) -> lists:append(Groups);
nodes_of({partition, Groups, _}) -> lists:append(Groups);
nodes_of({What, Node, _}) when What =:= pause; What =:= kill -> [Node];
nodes_of({_, Node}) -> [Node];
nodes_of(OfLink) -> [element(2, OfLink), element(3, OfLink)].

%% @doc One line about a step.
-spec format({non_neg_integer(), verb()}) -> iolist().
format({AtMs, Verb}) ->
    io_lib:format("~8.1f s  ~0tp", [AtMs / 1000, Verb]).
