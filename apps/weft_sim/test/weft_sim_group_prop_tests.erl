%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups in small random worlds. What fails here shrinks to a few nodes and changes.
-module(weft_sim_group_prop_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim']).
-define(LINKS, [{'a@sim', 'b@sim'}, {'b@sim', 'c@sim'}, {'c@sim', 'd@sim'}, {'d@sim', 'e@sim'}]).
-define(START_MS, 2000).
-define(STEPS_MS, 20000).
-define(SETTLE_MS, 25000).

%% All kinds of faults, and changes at any time by anybody.
all_agree_once_healed_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_agree(), [{numtests, 300}, {to_file, user}]))}.

prop_agree() ->
    ?FORALL({Seed, Steps}, {integer(), list(oneof([change(), change(), fault()]))},
            begin
                Timed = [{?START_MS + AtMs, Verb} || {AtMs, Verb} <- Steps],
                World = run(Seed, Timed ++ [{?STEPS_MS, heal_all}], ?STEPS_MS + ?SETTLE_MS),
                Verdict = weft_sim_group_checker:settled(World, #{}),
                ?WHENFAIL(io:format("~0tp~n", [Verdict]), Verdict =:= ok)
            end).

%% One after the other on a network without faults: what was answered `ok' is in force, what was
%% answered with an error changed nothing, and every answer is the one that the state asks for.
answers_are_true_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_answers(), [{numtests, 300},
                                                               {to_file, user}]))}.

prop_answers() ->
    ?FORALL({Seed, Changes}, {integer(), list(change())},
            begin
                Verbs = [Verb || {_, Verb} <- Changes],
                Times = [?START_MS + 1000 * N || N <- lists:seq(1, length(Verbs))],
                UntilMs = ?START_MS + 1000 * (length(Verbs) + 5),
                World = run(Seed, lists:zip(Times, Verbs), UntilMs),
                Answers = [Answer || {_, {reply, _, groups, Answer}}
                                         <- weft_sim_world:trace(World)],
                {Expected, Groups} = lists:mapfoldl(fun model/2, #{}, Verbs),
                ?WHENFAIL(io:format("~0tp~n~0tp~n", [Answers, Expected]),
                          Answers =:= Expected
                          andalso lists:all(fun(Node) -> groups(Node, World) =:= Groups end,
                                            ?NODES))
            end).

%% --- the model --------------------------------------------------------------------------------

model({command, Node, groups, Change}, Groups) ->
    Name = element(2, Change),
    Members = maps:get(Name, Groups, none),
    case refused(Change, Node, Members) of
        false ->
            Changed = changed(Change, Node, Members),
            {{ok, #{members => Changed, unreachable => []}},
             case Changed of
                 [] -> maps:remove(Name, Groups);
                 _ -> Groups#{Name => Changed}
             end};
        Error ->
            {{error, Error}, Groups}
    end.

refused({create, _, _}, _Node, Members) when Members =/= none -> {name_in_use, Members};
refused({create, _, []}, _Node, _) -> no_nodes;
refused({create, _, Nodes}, Node, _) -> not lists:member(Node, Nodes) andalso self_not_in_list;
refused(_Change, _Node, none) -> unknown_group;
refused(Change, Node, Members) ->
    case {lists:member(Node, Members), Change} of
        {false, _} -> not_a_member;
        {true, {_AddOrRemove, _, []}} -> no_nodes;
        {true, {remove, _, Nodes}} -> removal_refused(Node, Nodes, Members);
        {true, _} -> false
    end.

removal_refused(Node, Nodes, Members) ->
    case {lists:member(Node, Nodes), lists:usort(Nodes) -- Members} of
        {true, _} -> cannot_remove_self;
        {false, []} -> false;
        {false, Strangers} -> {not_members, Strangers}
    end.

changed({create, _, Nodes}, _Node, none) -> lists:usort(Nodes);
changed({add, _, Nodes}, _Node, Members) -> lists:usort(Nodes ++ Members);
changed({remove, _, Nodes}, _Node, Members) -> Members -- Nodes;
changed({leave, _}, Node, Members) -> Members -- [Node];
changed({delete, _}, _Node, _Members) -> [].

%% --- generators -------------------------------------------------------------------------------

change() ->
    Name = oneof([g1, g2]),
    Nodes = list(oneof(?NODES)),
    {integer(0, 15000),
     {command, oneof(?NODES), groups,
      oneof([{create, Name, Nodes}, {create, Name, ?NODES}, {add, Name, Nodes},
             {remove, Name, Nodes}, {leave, Name}, {delete, Name}])}}.

fault() ->
    Node = oneof(?NODES),
    {integer(0, 15000),
     oneof([{crash, Node}, {start, Node}, {pause, Node}, {resume, Node},
            ?LET({A, B}, {Node, oneof(?NODES)}, {cut, A, B}),
            ?LET({A, B}, {Node, oneof(?NODES)}, {cut_one_way, A, B}),
            {restart_machine, Node, groups},
            {partition, [['a@sim', 'b@sim'], ['c@sim', 'd@sim', 'e@sim']]}])}.

%% --- running ----------------------------------------------------------------------------------

run(Seed, Steps, UntilMs) ->
    Machines = [{topology, weft_static_core, #{links => ?LINKS}},
                {groups, weft_group_gossip_core, #{}}],
    World = weft_sim_world:new(#{seed => Seed, machines => fun(_Node) -> Machines end,
                                 observer => {weft_sim_answers, weft_sim_answers:new()},
                                 checkers => [], trace => true}),
    Schedule = fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end,
    weft_sim_world:run_until(UntilMs, lists:foldl(Schedule, World,
                                                  [{0, {start, Node}} || Node <- ?NODES] ++ Steps)).

groups(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, groups, World),
    weft_group_table:groups(weft_group_gossip_core:table(State)).
