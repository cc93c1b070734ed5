%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations on real nodes: one hash for each workload, whatever the nodes and schedulers,
%% and while a gateway is killed; nodes that are killed, connections that are lost, nodes with other
%% code, and going on from a checkpoint. The hashes on each topology and on stock distribution are
%% in weft_diasca_topologies_SUITE.
-module(weft_diasca_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_diasca_nodes, [names/1, disturbed/4, continued/4, in_background/1, is_idle/1,
                            one_hash/3, one_hash/4, schedulers/2, until_all_reach/2]).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, end_per_testcase/2]).
-export([one_hash_on_a_chain/1, one_hash_while_a_gateway_is_killed/1,
         a_killed_node_is_told_and_the_run_continued/1, a_node_that_stands_still_is_told/1,
         a_connection_that_is_lost_is_told/1, a_node_with_other_code_is_told/1]).

-define(RUN_MS, 120000).
%% More ticks than any workload has; and as many as are enough where messages take their time: all
%% of the soda machines, twenty minutes of a city.
-define(ALL, 1000000).
-define(SOME, 240).
-define(THREE, [a, b, c]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [one_hash_on_a_chain || os:getenv("FULL") =/= false]
        ++ [one_hash_while_a_gateway_is_killed, {group, chain}, {group, stock}].

%% Each on the same three nodes. One is killed, or another code is loaded, in the last case.
groups() ->
    [{chain, [], [a_node_that_stands_still_is_told, a_killed_node_is_told_and_the_run_continued]},
     {stock, [], [a_connection_that_is_lost_is_told, a_node_with_other_code_is_told]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_group(chain, Config) ->
    Settings = chain(names(?THREE)),
    [{nodes, [start(Name, Settings, Config) || Name <- ?THREE]} | Config];
init_per_group(stock, Config) ->
    [{nodes, [weft_diasca_nodes:start(Name, #{carrier => stock}, ?config(place, Config))
              || Name <- ?THREE]} | Config].

end_per_group(_Group, _Config) -> weft_test_nodes:stop_all().

end_per_testcase(_Case, Config) ->
    ?config(nodes, Config) =/= undefined orelse weft_test_nodes:stop_all().

%% --- one hash ---------------------------------------------------------------------------------

one_hash_on_a_chain(Config) ->
    Short = [a, b, c, d],
    Names = [A, B, _, D] = names(Short),
    Refs = [Ref | _] = [start(Name, chain(Names), Config) || Name <- Short],
    until_all_reach([Ref], Refs),
    [begin
         schedulers([Ref], Count),
         one_hash(Ref, weft_diasca_nodes:workloads(?ALL), [[A]], {schedulers, Count})
     end || Count <- [1, 2, 3, 4]],
    [schedulers([One], Count) || {One, Count} <- lists:zip(Refs, [3, 4, 1, 2])],
    one_hash(Ref, weft_diasca_nodes:workloads(?SOME), [[B], [A, D], Names]),
    ?assertMatch([{B, _}], weft_test_nodes:call(Ref, weft, neighbours, [])).

%% Two groups with two gateways. The one that is in use is killed, and back for the next workload.
one_hash_while_a_gateway_is_killed(Config) ->
    Short = [a, b, g, h],
    [A, B, G, H] = names(Short),
    Groups = {groups, #{left => [A, G, H], right => [B, G, H]}},
    Refs = [Ref | _] = [start(Name, Groups, Config) || Name <- Short],
    Start = fun(Name) -> start(proplists:get_value(Name, lists:zip([G, H], [g, h])), Groups, Config)
            end,
    lists:foldl(
      fun(Workload, Left) ->
              Running = Left ++ [Start(Name) || Name <- [G, H], not is_among(Name, Left)],
              until_all_reach([Ref], Running),
              {ok, [#{to := Gateway}, #{to := B}]} = weft_test_nodes:call(Ref, weft, trace, [B]),
              {[Killed], Others} = lists:partition(
                                     fun(One) -> weft_test_nodes:name(One) =:= Gateway end,
                                     Running),
              disturbed(Ref, Workload, [A, B], fun() -> ok = weft_test_nodes:kill(Killed) end),
              Others
      end, Refs, weft_diasca_nodes:endless()).

is_among(Name, Refs) -> lists:member(Name, [weft_test_nodes:name(Ref) || Ref <- Refs]).

%% --- a node that is killed --------------------------------------------------------------------

a_killed_node_is_told_and_the_run_continued(Config) ->
    Refs = [Ref | _] = ?config(nodes, Config),
    lists:foldl(fun(Workload, Left) ->
                        Running = Left ++ [start(c, chain(names(?THREE)), Config)
                                           || length(Left) < length(Refs)],
                        until_all_reach([Ref], Running),
                        Killed = lists:last(Running),
                        continued(Running, Workload, ?config(priv_dir, Config),
                                  fun() -> ok = weft_test_nodes:kill(Killed) end),
                        lists:droplast(Running)
                end, Refs, weft_diasca_nodes:endless()).

a_node_that_stands_still_is_told(Config) ->
    [Ref, Paused, _] = ?config(nodes, Config),
    [A, B] = Names = names([a, b]),
    until_all_reach([Ref], [Ref, Paused]),
    Outcome = in_background(
                fun() ->
                        weft_test_nodes:call(Ref, weft_diasca_nodes, held,
                                             [phold, #{nodes => Names, ticks => ?ALL,
                                                       probes => none, diasca_ms => 4000}],
                                             ?RUN_MS)
                end),
    %% All actors are made by then, which is another phase.
    weft_test_nodes:until(fun() -> is_running(Ref) end),
    ok = weft_test_nodes:pause(Paused),
    %% If the second node was done with its part just before, actors of the first one wait for what
    %% it should acknowledge.
    {error, {late, running, {_, _}, Late}} = Outcome(),
    ?assertMatch([_ | _], [One || {Node, What} = One <- Late,
                                  {Node, What} =:= {B, silent}
                                      orelse (Node =:= A andalso What =/= [])]),
    ok = weft_test_nodes:continue(Paused),
    weft_test_nodes:until(fun() -> is_idle(Ref) andalso is_idle(Paused) end).

is_running(Ref) ->
    case tick(Ref) of
        over -> false;
        Tick -> Tick > 0
    end.

%% --- a connection that is lost ----------------------------------------------------------------

%% Between two nodes that take part; the node of the run keeps its connections with both. Until
%% something was on its way just then, the run goes on.
a_connection_that_is_lost_is_told(Config) ->
    [_, B, C] = Names = names(?THREE),
    Refs = [Ref, OfB, _] = ?config(nodes, Config),
    until_all_reach([Ref], Refs),
    Outcome = in_background(
                fun() ->
                        weft_test_nodes:call(Ref, weft_diasca_nodes, held,
                                             [phold, #{nodes => Names, ticks => ?ALL,
                                                       probes => none, diasca_ms => 4000}],
                                             ?RUN_MS)
                end),
    %% Before it has begun it looks like one that has ended.
    weft_test_nodes:until(fun() -> is_number(tick(Ref)) end),
    weft_test_nodes:until(fun() ->
                                  _ = weft_test_nodes:call(OfB, erlang, disconnect_node, [C]),
                                  tick(Ref) =:= over
                          end),
    {error, {connection_lost, {One, Other}, {_, _}, _} = Reason} = Outcome(),
    ?assertEqual(lists:sort([B, C]), lists:sort([One, Other])),
    ?assertMatch("the connection between the nodes " ++ _, weft_diasca:format_error(Reason)),
    weft_test_nodes:until(fun() -> lists:all(fun weft_diasca_nodes:is_idle/1, Refs) end).

tick(Ref) -> weft_test_nodes:call(Ref, weft_diasca_nodes, tick_of_held, []).

%% --- other code -------------------------------------------------------------------------------

a_node_with_other_code_is_told(Config) ->
    [A, B] = Names = names([a, b]),
    [Ref, OfB, _] = ?config(nodes, Config),
    until_all_reach([Ref], [Ref, OfB]),
    Run = fun(Workload, Options) ->
                  weft_test_nodes:call(Ref, weft_diasca, run,
                                       [Workload, maps:merge(#{nodes => Names, probes => none},
                                                             Options)],
                                       ?RUN_MS)
          end,
    {ok, #{hash := Hash}} = Run(phold, #{}),
    load_another(Ref, weft_diasca_phold, weft_diasca_only_here),
    ?assertEqual({error, {no_module, B, weft_diasca_only_here, nofile}},
                 Run(weft_diasca_only_here, #{})),
    load_another(OfB, weft_diasca_phold, weft_diasca_phold),
    {error, Workload} = Run(phold, #{}),
    ?assertEqual({other_code, B, weft_diasca_phold, A}, Workload),
    Told = lists:flatten(io_lib:format("node ~ts has another version of the module "
                                       "weft_diasca_phold than ~ts", [B, A])),
    ?assertEqual(Told, lists:sublist(weft_diasca:format_error(Workload), length(Told))),
    ?assertMatch({ok, #{hash := Hash}}, Run(phold, #{code => any})),
    load_another(OfB, weft_diasca_actor_core, weft_diasca_actor_core),
    ?assertEqual({error, {other_code, B, weft_diasca_actor_core, A}}, Run(soda, #{})),
    ?assertEqual({error, {other_code, A, weft_diasca_actor_core, B}}, Run(soda, #{nodes => [B]})).

%% It does the same, by this name, and has one function more.
load_another(Ref, Module, Name) ->
    {Module, Beam, _} = code:get_object_code(Module),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    Line = erl_anno:new(1),
    {Before, [{attribute, _, module, Module} | After]} =
        lists:splitwith(fun(Form) -> element(3, Form) =/= module end, Forms),
    {ok, Name, Binary} = compile:forms(
                           Before ++ [{attribute, Line, module, Name},
                                      {attribute, Line, export, [{another, 0}]} | After]
                           ++ [{function, Line, another, 0,
                                [{clause, Line, [], [], [{atom, Line, version}]}]}]),
    {module, Name} = weft_test_nodes:call(Ref, code, load_binary, [Name, "another", Binary]).

%% --- nodes ------------------------------------------------------------------------------------

chain(Names) -> {static, #{links => lists:zip(lists:droplast(Names), tl(Names))}}.

start(Name, Topology, Config) ->
    weft_diasca_nodes:start(Name, #{config => [{topology, Topology}]}, ?config(place, Config)).
