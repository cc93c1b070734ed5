%% SPDX-License-Identifier: Apache-2.0
%% @doc Strong names in the simulator: that the checkers find what they are for, and that nothing is
%% found when the protocol is as it is.
-module(weft_sim_names_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim']).
-define(MODEL, weft_sim_name_model).

%% --- histories --------------------------------------------------------------------------------

good_histories_pass_test_() ->
    [?_assertEqual(ok, check(History))
     || History <- [[],
                    [{0, 1, {register, a, ok}}, {2, 3, {whereis, a}}, {4, 5, {unregister, a}},
                     {6, 7, {whereis, none}}],
                    %% At the same time: either order will do, also of what it says of the other.
                    [{0, 10, {register, a, ok}}, {1, 9, {register, b, {taken, a}}}],
                    [{0, 10, {register, a, {taken, b}}}, {5, 11, {register, b, ok}}],
                    %% Lost answers: carried out, late, or never.
                    [{0, never, {register, a, unknown}}, {1, 2, {whereis, a}}],
                    [{0, never, {register, a, unknown}}, {1, 2, {whereis, none}},
                     {5, 6, {whereis, a}}],
                    [{0, never, {register, a, unknown}}, {1, 2, {register, b, ok}}],
                    %% A lease that ended.
                    [{0, 1, {register, a, ok}}, {5, never, {expire, a}},
                     {9, 10, {register, b, ok}}],
                    [{0, 1, {register, a, ok}}, {2, 3, {update, a, b, ok}}, {4, 5, {whereis, b}}],
                    %% Taken away by somebody else; perhaps, and late.
                    [{0, 1, {register, a, ok}}, {2, 3, remove}, {4, 5, {register, b, ok}}],
                    [{0, 1, remove}, {0, 9, {register, a, ok}}, {2, 3, remove}],
                    [{0, 1, {register, a, ok}}, {2, never, remove}, {3, 4, {whereis, a}},
                     {5, 6, {register, b, ok}}],
                    [{0, 1, {register, a, ok}}, {2, never, remove},
                     {3, 4, {register, b, {taken, a}}}]]].

bad_histories_are_found_test_() ->
    [?_assertMatch({error, _}, check(History))
     || History <- [%% Two owners.
                    [{0, 1, {register, a, ok}}, {2, 3, {register, b, ok}}],
                    [{0, 10, {register, a, ok}}, {1, 9, {register, b, ok}}],
                    %% The second one came before the first could stop believing.
                    [{0, 1, {register, a, ok}}, {5, never, {expire, a}}, {3, 4, {register, b, ok}}],
                    %% What was given back is there again; what was read is forgotten.
                    [{0, 1, {register, a, ok}}, {2, 3, {unregister, a}}, {4, 5, {whereis, a}}],
                    [{0, 1, {register, a, ok}}, {2, 3, {whereis, none}}],
                    [{0, never, {register, a, unknown}}, {1, 2, {whereis, a}},
                     {3, 4, {whereis, none}}],
                    %% Carried out twice.
                    [{0, 9, {register, a, ok}}, {1, 2, {whereis, a}}, {3, never, {unregister, a}},
                     {4, 5, {whereis, none}}, {6, 7, {whereis, a}}],
                    %% Taken by somebody who never had it; failed, but carried out.
                    [{0, 1, {register, a, {taken, b}}}],
                    [{0, 1, {register, a, ok}}, {2, 3, {register, b, {taken, a}}},
                     {4, 5, {unregister, a}}, {6, 7, {whereis, b}}],
                    [{0, 1, {register, a, ok}}, {2, 3, {update, a, b, ok}}, {4, 5, {whereis, a}}],
                    %% It was said to be free, and was not; it was handed over and not free.
                    [{0, 1, {register, a, ok}}, {2, 3, remove}, {4, 5, {register, b, {taken, a}}}],
                    [{0, 1, {register, a, ok}}, {2, 3, remove}, {4, 5, {whereis, a}}],
                    [{0, 1, {register, a, ok}}, {2, 9, remove}, {3, 4, {update, a, b, ok}},
                     {5, 6, {whereis, b}}, {10, 11, {whereis, b}}],
                    %% One removal took two registrations; one took what came after it.
                    [{0, 1, {register, a, ok}}, {2, 9, remove}, {3, 4, {whereis, none}},
                     {5, 6, {register, b, ok}}, {7, 8, {whereis, none}}],
                    [{0, 1, {register, a, ok}}, {2, 3, remove}, {4, 5, {register, b, ok}},
                     {6, 7, {whereis, none}}],
                    %% Free before anybody asked for it.
                    [{0, 1, {register, a, ok}}, {2, 3, {register, b, ok}}, {4, never, remove}],
                    %% Two registered while only one removal may have been carried out.
                    [{0, 1, {register, a, ok}}, {2, never, remove}, {3, 4, {register, b, ok}},
                     {5, 6, {register, c, ok}}]]].

the_wrong_operation_is_named_test() ->
    ?assertEqual({error, {{2, 3, {register, b, ok}}, [a]}},
                 check([{2, 3, {register, b, ok}}, {0, 1, {register, a, ok}}])).

%% Histories made from one order of operations pass; one wrong answer in them is found.
checker_test_() ->
    [{timeout, 600, ?_assert(proper:quickcheck(Property, [{numtests, 200}, {to_file, user}]))}
     || Property <- [prop_real_orders_pass(), prop_a_wrong_read_is_found()]]
        ++ [{timeout, 600, ?_assert(proper:quickcheck(prop_all_orders_tried(),
                                                      [{numtests, 4000}, {to_file, user}]))}].

%% What the checker leaves out changes no verdict: it says what trying all orders says.
prop_all_orders_tried() ->
    ?FORALL(History, any_history(), (ok =:= check(History)) =:= is_explained(History, none)).

%% Some operation is the first one, which none that has returned before its call can come after;
%% what does not return need not be carried out.
is_explained(History, State) ->
    lists:all(fun({_, Return, _}) -> Return =:= never end, History)
        orelse lists:any(fun({Call, _, Operation} = Entry) ->
                             not lists:any(fun({_, Return, _}) -> Return < Call end, History)
                                 andalso case ?MODEL:step(Operation, State) of
                                             {ok, Next} ->
                                                 is_explained(lists:delete(Entry, History), Next);
                                             impossible -> false
                                         end
                         end, History).

%% A few operations at any time with any answers. Each registration has a process of its own.
any_history() ->
    ?LET(Operations, resize(6, list(any_operation())),
         [case Operation of
              {new, Made} -> {Call, Return, Made(Number)};
              _ -> {Call, Return, Operation}
          end || {Number, {Operation, Call, Length}} <- lists:zip(lists:seq(1, length(Operations)),
                                                                  Operations),
                 Return <- [case Length of never -> never; _ -> Call + Length end]]).

any_operation() ->
    Process = range(1, 6),
    ?LET({Call, Length, Own, Other}, {range(0, 20), oneof([never | lists:seq(1, 12)]), Process,
                                      oneof([none, Process])},
         oneof([{{new, fun(N) -> {register, N, answer(Length, ok)} end}, Call, Length},
                {{new, fun(N) -> {register, N, {taken, Own}} end}, Call, max(1, number(Length))},
                {{new, fun(N) -> {update, Own, N, answer(Length, ok)} end}, Call, Length},
                {{unregister, Own}, Call, Length}, {{expire, Own}, Call, never},
                {remove, Call, Length}, {{whereis, Other}, Call, number(Length)}])).

answer(never, _Answer) -> unknown;
answer(_Length, Answer) -> Answer.

number(never) -> 5;
number(Length) -> Length.

prop_real_orders_pass() ->
    ?FORALL(History, history(), ok =:= check(History)).

prop_a_wrong_read_is_found() ->
    ?FORALL({History, Where}, {history(), range(1, 1000)},
            begin
                %% One after the other, so that there is one state in between.
                InOrder = [{N, N + 0.1, Op} || {N, {_, _, Op}}
                                                  <- lists:zip(lists:seq(1, length(History)),
                                                               lists:reverse(History))],
                Before = lists:sublist(InOrder, Where rem (length(History) + 1)),
                State = lists:foldl(fun({_, _, Op}, S0) -> {ok, S} = ?MODEL:step(Op, S0), S end,
                                    none, Before),
                Wrong = case State of none -> somebody; _ -> none end,
                At = length(Before) + 0.5,
                {error, {{At, At + 0.1, {whereis, Wrong}}, [State]}}
                    =:= check([{At, At + 0.1, {whereis, Wrong}} | InOrder])
            end).

%% Operations carried out in order at the instants 1, 2, ..; calls and returns around them.
history() ->
    ?LET(Choices, list({oneof([register, unregister, whereis, taken, remove]), range(1, 3),
                        range(0, 30), range(0, 30)}),
         element(2, lists:foldl(fun carried_out/2, {{none, 1}, []}, Choices))).

carried_out({Kind, Who, Before, After}, {{State, Time}, Entries}) ->
    Op = case {Kind, State} of
             {register, none} -> {register, {Who, Time}, ok};
             {unregister, {_, _}} -> {unregister, State};
             {remove, _} -> remove;
             {taken, {_, _}} -> {register, {Who, Time}, {taken, State}};
             _ -> {whereis, State}
         end,
    {ok, Next} = ?MODEL:step(Op, State),
    {{Next, Time + 1}, [{Time * 10 - Before, Time * 10 + After + 1, Op} | Entries]}.

check(History) ->
    weft_sim_linearizability:check(History, ?MODEL, none).

histories_end_what_was_believed_test() ->
    Registered = [{1000, {call, 1, {register, x, p}}}, {2000, {lease, 0, {9}}},
                  {2000, {return, 1, {ok, 7}}}, {5000, {lease, 0, {12}}}],
    Later = {20000, {call, 2, {whereis, x}}},
    [?assertEqual([{1000, 2000, {register, p, ok}}, {Us, never, {expire, p}}],
                  history_of_x(Registered ++ Events, Crashes))
     || {Us, Events, Crashes} <-
            [{12000, [Later], []},
             {6000, [Later], [{6000, 'a@sim'}]},
             {7000, [{7000, {lost, x, p}}, {8000, {lease, 0, {25}}}], []},
             {7000, [{7000, {lease, 0, delete}}, {8000, {lease, 0, {25}}}], []},
             {12000, [{13000, {lost, x, p}}], []},
             %% A late answer brings back what had ended.
             {25000, [Later, {20000, {lease, 0, {25}}}, {30000, {lost, x, p}}], []}]].

history_of_x(Events, Crashes) ->
    Seen = lists:foldl(fun({Us, Event}, Acc) ->
                           weft_sim_name_history:notice('a@sim', names, {history, Event}, Us, Acc)
                       end, weft_sim_name_history:new(), Events),
    #{x := History} = weft_sim_name_history:histories(Seen, options(Crashes)),
    lists:sort(History).

%% From the second 10 on some are registered, handed over, or kept; others are of no use to anybody.
names_that_nobody_can_get_are_found_test() ->
    Before = [{1000000, 2000000, {register, p, ok}}],
    Histories = #{got => [{9000000, 11000000, {register, q, ok}} | Before],
                  handed_over => [{11000000, 12000000, {update, p, q, ok}} | Before],
                  kept => Before,
                  given_back => [{3000000, 4000000, {unregister, p}} | Before],
                  taken => [{11000000, 12000000, {register, q, {taken, p}}} | Before],
                  unknown => [{11000000, never, {update, p, q, unknown}} | Before]},
    Names = [never | lists:sort(maps:keys(Histories))],
    ?assertEqual([never, given_back, taken, unknown],
                 weft_sim_names_checker:stuck(Names, Histories, [{kept, 1}], 10000)).

%% Two at the same time have no order, and one node may count anew after a crash.
tokens_that_go_backwards_are_found_test() ->
    Events = lists:foldl(fun({Us, Node, Event}, Acc) ->
                             weft_sim_name_history:notice(Node, names, {history, Event}, Us, Acc)
                         end, weft_sim_name_history:new(),
                         [{1, 'a@sim', {call, 1, {register, x, p}}},
                          {3, 'a@sim', {return, 1, {ok, 7}}},
                          {3, 'b@sim', {call, 1, {register, x, q}}},
                          {5, 'b@sim', {call, 2, {whereis, x}}},
                          {6, 'b@sim', {return, 1, {ok, 6}}},
                          {7, 'b@sim', {return, 2, {ok, q, 6, none}}},
                          {8, 'a@sim', {call, 1, {register, x, r}}},
                          {9, 'a@sim', {return, 1, {ok, 7}}}]),
    Grants = weft_sim_name_history:grants(Events, [{4, 'a@sim'}]),
    ?assertEqual([{{x, 1, 3, 7}, {x, 8, 9, 7}}], weft_sim_names_checker:backwards(Grants)).

options(Crashes) -> #{crashes => Crashes, partition_of => fun(_) -> 0 end}.

%% --- runs -------------------------------------------------------------------------------------

nothing_is_found_test_() ->
    [{timeout, 600, {atom_to_list(Name), fun() ->
         [?assertEqual({Seed, none}, {Seed, violation(weft_sim:run(Name, Seed, 5))})
          || Seed <- lists:seq(1001, 1000 + Seeds)]
     end}} || {Name, Seeds} <- [{strong_faults, 6}, {strong_crashes, 6}, {strong_clocks, 6},
                             {strong_voters, 6}, {strong_retries, 6}, {strong_removals, 8}]].

%% A leader that is cut off while the voters change has a member that is no voter any more, and
%% needs its vote.
members_that_are_no_voters_still_elect_test_() ->
    [{timeout, 600, ?_assertEqual(none, violation(weft_sim:run(strong_voters, Seed, Nodes)))}
     || {Seed, Nodes} <- [{220, 8}, {353, 6}]].

%% A node pauses just before an answer to a question about its lease, and so gets it when the lease
%% has ended and its name is another one's. The answer counts from the question.
answers_that_waited_bring_no_name_back_test() ->
    Trace = weft_sim_world:trace(weft_sim_world:run_until(10000, owner_and_heir([]))),
    [_Registered | Renewed] = [Us div 1000 || {Us, {view, 'd@sim', {lease, 0}, _}} <- Trace],
    ?assertMatch([_, _ | _], Renewed),
    [?assertEqual({PauseMs, none}, {PauseMs, paused_at(PauseMs)}) || PauseMs <- Renewed].

paused_at(PauseMs) ->
    Tries = [registered(AtMs, 'e@sim') || AtMs <- lists:seq(PauseMs + 3000, PauseMs + 6000, 500)],
    World = owner_and_heir([{PauseMs, {pause, 'd@sim'}}, {PauseMs + 7000, {resume, 'd@sim'}}
                            | Tries]),
    After = weft_sim_world:run_until(PauseMs + 6999, World),
    [?assertMatch({own, {Node, _}, _, _, _, _}, weft_sim_world:view(Node, {name, one}, After))
     || Node <- ['d@sim', 'e@sim']],
    weft_sim_world:violation(weft_sim_world:run_until(PauseMs + 8000, After)).

owner_and_heir(Steps) ->
    Nodes = ['e@sim' | ?NODES],
    Options = #{scope => accounts, voters => ['a@sim', 'b@sim', 'c@sim'], partitions => 1,
                lease_ms => 3000},
    World = weft_sim_world:new(#{seed => 1, trace => true,
                                 machines => fun(_) -> [{names, weft_names_strong_core, Options}]
                                             end,
                                 checkers => [{weft_sim_names_checker,
                                               #{nodes => Nodes, names => [one]}}]}),
    lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World,
                [{0, {start, Node}} || Node <- Nodes] ++ [registered(7000, 'd@sim') | Steps]).

registered(AtMs, Node) ->
    {AtMs, {command, Node, names, {register, one, {Node, AtMs}, none, tell, 1000}}}.

%% Messages take up to 100 ms, so a round trip takes longer than a tick (37 ms), and some longer
%% than a heartbeat.
names_are_got_over_slow_links_test_() ->
    [{timeout, 600, ?_assertEqual(none, violation(over_slow_links(Name, Seed)))}
     || {Name, Seed} <- [{strong_faults, 1}, {strong_crashes, 7}]].

over_slow_links(Name, Seed) ->
    #{world := World} = Scenario = weft_sim_scenario:build(Name, Seed, 5),
    {Result, _} = weft_sim:run_scenario(
                    Seed, Scenario#{world := World#{latency_us => {10000, 100000}}}),
    Result.

leases_that_end_early_at_the_replicas_are_found_test_() ->
    {timeout, 600, fun() ->
        Found = [Checker || Seed <- lists:seq(1, 5),
                            {_, Checker, _} <- [violation(without_margin(Seed))]],
        ?assertEqual([weft_sim_names_checker], lists:usort(Found))
    end}.

%% Replicas that forget an owner 300 ms after they last heard of him.
without_margin(Seed) ->
    #{world := #{machines := Machines} = World} = Scenario =
        weft_sim_scenario:build(strong_faults, Seed, 5),
    Hasty = fun(Node) ->
                [{Name, Module, Options#{margin_ms => -2700}}
                 || {Name, Module, Options} <- Machines(Node)]
            end,
    {Result, _} = weft_sim:run_scenario(Seed, Scenario#{world := World#{machines := Hasty}}),
    Result.

violation(#{violation := Violation}) -> Violation.

%% Few nodes and any verbs: what fails here shrinks.
any_faults_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_any_faults(), [{numtests, 30},
                                                                   {to_file, user}]))}.

prop_any_faults() ->
    ?FORALL({Seed, Steps}, {nat(), list(step())},
            begin
                {#{violation := Violation}, _} = weft_sim:run_scenario(Seed, scenario(Steps)),
                ?WHENFAIL(io:format("~p~n", [Violation]), Violation =:= none)
            end).

scenario(Steps) ->
    _ = rand:seed(exsss, 1),
    #{world := #{checkers := [{Checker, Checked}]} = World, steps := All} = Scenario =
        weft_sim_names_scenario:build(strong_faults, ?NODES),
    Crashes = [{AtMs * 1000, Node} || {AtMs, {crash, Node}} <- Steps],
    Scenario#{world := World#{checkers := [{Checker, Checked#{crashes := Crashes}}]},
              steps := [Step || {_, {start, _}} = Step <- All, element(1, Step) =< 500] ++ Steps}.

step() ->
    {range(5000, 34000),
     oneof([{cut, node_name(), node_name()}, {cut_one_way, node_name(), node_name()},
            {heal, node_name(), node_name()}, {crash, node_name()}, {start, node_name()},
            {pause, node_name()}, {resume, node_name()}])}.

node_name() -> oneof(?NODES).
