%% SPDX-License-Identifier: Apache-2.0
%% @doc Neighbours exchanged for nearer ones: what it brings, that it harms nothing, and that faults
%% in between harm nothing either.
-module(weft_sim_sites_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(STEPS_MS, 30000).
-define(SETTLE_MS, 35000).
-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim', 'f@sim', 'g@sim', 'h@sim', 'i@sim',
                'j@sim', 'k@sim', 'l@sim']).

links_get_cheap_and_the_cluster_stays_as_good_test_() ->
    {timeout, 600, ?_assertEqual([], weft_sim_sites:print(60))}.

%% --- faults -----------------------------------------------------------------------------------

a_cluster_that_optimises_is_one_and_both_ends_agree_once_healed_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_faults(), [{numtests, 30}, {to_file, user}]))}.

prop_faults() ->
    ?FORALL({Seed, Steps}, {integer(), list({integer(1000, ?STEPS_MS - 1), verb()})},
            begin
                World = run(?STEPS_MS + ?SETTLE_MS, scheduled(Steps ++ [{?STEPS_MS, heal_all}],
                                                              started(Seed))),
                Violations = violations(World),
                ?WHENFAIL(io:format(user, "~tp~n", [Violations]), [] =:= Violations)
            end).

verb() ->
    Node = oneof(?NODES),
    Pair = ?SUCHTHAT({A, B}, {Node, Node}, A =/= B),
    oneof([?LET({A, B}, Pair, {cut, A, B}), ?LET({A, B}, Pair, {cut_one_way, A, B}),
           ?LET({A, B}, Pair, {heal, A, B}), {pause, Node}, {resume, Node},
           {crash, Node}, {start, Node}]).

%% The first exchange that is made from beginning to end, once more for each of its messages and
%% each of its four nodes: that node crashes as the message arrives.
a_crash_at_any_step_of_an_exchange_leaves_no_link_with_one_end_test_() ->
    {timeout, 600, fun() ->
        {Before, Steps, Four} = first_exchange(1),
        ?assert(length(Steps) >= 8),
        ?assertEqual(4, length(Four)),
        [?assertEqual({StepMs, Node, []},
                      {StepMs, Node, violations(run(StepMs + ?SETTLE_MS, crashed(StepMs, Node,
                                                                                 Before)))})
         || StepMs <- Steps, Node <- Four]
    end}.

%% The world some milliseconds before, when the messages arrive, and the nodes. Worlds are values,
%% so that one can go back to it.
first_exchange(Seed) ->
    Trace = [{Us div 1000, From, To, Message}
             || {Us, {message, From, To, topology, {1, Message}}} <-
                    weft_sim_world:trace(run(120000, traced(Seed)))],
    [{SwitchMs, D, O, Initiator} | _] =
        [{Ms, From, To, I} || {Ms, From, To, {neighbour, Number, _, {switch, I}}} <- Trace,
                              is_accepted(Ms, To, From, Number, Trace)],
    {ReplaceMs, C} = lists:last([{Ms, From} || {Ms, From, To, {replace, I, Old, _}} <- Trace,
                                               To =:= D, I =:= Initiator, Old =:= O,
                                               Ms < SwitchMs]),
    Four = lists:usort([Initiator, O, C, D]),
    BeginMs = ReplaceMs - 200,
    Steps = lists:usort([Ms || {Ms, From, To, Message} <- Trace, is_step(Message),
                               Ms >= BeginMs, Ms =< SwitchMs + 200,
                               lists:member(From, Four), lists:member(To, Four)]),
    {run(BeginMs, started(Seed)), Steps, Four}.

is_accepted(AskedMs, From, To, Number, Trace) ->
    [] =/= [Ms || {Ms, F, T, {accept, N, _}} <- Trace, F =:= From, T =:= To, N =:= Number,
                  Ms >= AskedMs, Ms < AskedMs + 1000].

is_step({neighbour, _, _, _}) -> true;
is_step({replace, _, _, _}) -> true;
is_step({ping, _, Left}) -> Left > 0;
is_step({accept, _, _}) -> true;
is_step({disconnect, _}) -> true;
is_step(_Other) -> false.

crashed(AtMs, Node, World) ->
    weft_sim_world:schedule(AtMs, {crash, Node}, World).

%% --- worlds -----------------------------------------------------------------------------------

started(Seed) -> started(Seed, #{}).

traced(Seed) -> started(Seed, #{trace => true}).

started(Seed, Config) ->
    Options = #{seeds => ['a@sim', 'b@sim'], active => 3, passive => 5, optimise => rtt,
                shuffle_ms => 2000, probe_ms => 3000, optimise_ms => 1000, mix_from => 0,
                mix_rounds => 0},
    World = weft_sim_world:new(Config#{seed => Seed, detection_ms => {10, 3000},
                                       latency_us => fun latency_us/2,
                                       machines => fun(_Node) ->
                                           [{topology, weft_peer_to_peer_core, Options}]
                                       end}),
    scheduled([{0, {start, Node}} || Node <- ?NODES], World).

%% Each pair is as far apart as it happens to be, so that there is always something to gain.
latency_us(A, B) ->
    Us = 1000 * erlang:phash2({min(A, B), max(A, B)}, 50),
    {Us + 200, Us + 500}.

scheduled(Steps, World) ->
    lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World, Steps).

run(UntilMs, World) ->
    weft_sim_world:run_until(UntilMs, World).

violations(World) ->
    [Verdict || {Checker, Options} <- [{weft_sim_connectivity_checker, #{}},
                                       {weft_sim_symmetry_checker, #{}},
                                       {weft_sim_degree_checker, #{max => 3}}],
                Verdict <- [Checker:settled(World, Options)], Verdict =/= ok].
