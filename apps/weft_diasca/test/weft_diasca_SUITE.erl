%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations on real nodes: one hash for each workload, whatever the nodes, schedulers and
%% topologies; nodes that are killed; and going on from a checkpoint.
%%
%% In the long form (FULL=1) there are groups, 8 nodes, all topologies, the stock carrier, and a
%% gateway that is killed while messages pass it.
-module(weft_diasca_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([one_hash_on_a_chain/1, one_hash_in_groups/1, one_hash_on_all_topologies/1,
         one_hash_while_a_gateway_is_killed/1, a_killed_node_is_told_and_the_run_continued/1]).

-define(RUN_MS, 120000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [one_hash_on_a_chain, a_killed_node_is_told_and_the_run_continued]
        ++ [Case || os:getenv("FULL") =:= "1",
                    Case <- [one_hash_in_groups, one_hash_on_all_topologies,
                             one_hash_while_a_gateway_is_killed]].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- one hash ---------------------------------------------------------------------------------

one_hash_on_a_chain(Config) ->
    Names = [A, B, C, D] = names([a, b, c, d]),
    Settings = weft({static, #{links => [{A, B}, {B, C}, {C, D}]}}),
    Refs = [start(Name, Settings, Schedulers, Config)
            || {Name, Schedulers} <- lists:zip([a, b, c, d], [1, 2, 1, 2])],
    one_hash(Refs, [[A], [B], [A, D], Names]),
    ?assertMatch([{B, _}], weft_test_nodes:call(hd(Refs), weft, neighbours, [])).

one_hash_in_groups(Config) ->
    [A, B, C, D] = names([a, b, c, d]),
    Settings = weft({groups, #{left => [A, B, C], right => [C, D]}}),
    Refs = [start(Name, Settings, 2, Config) || Name <- [a, b, c, d]],
    one_hash(Refs, [[D, A], [A, B, C, D]]).

one_hash_on_all_topologies(Config) ->
    Short = [a, b, c, d, e, f, g, h],
    Names = names(Short),
    Mesh = [hd(Names)],
    [begin
         Refs = [start(Name, Settings, Schedulers, Config)
                 || {Name, Schedulers} <- lists:zip(Short, [1, 2, 4, 3, 1, 2, 4, 3])],
         one_hash(Refs, [lists:sublist(Names, Count) || Count <- [1, 2, 4, 8]]),
         weft_test_nodes:stop_all()
     end || Settings <- [#{carrier => plain},
                         weft({full_mesh, #{seeds => Mesh}}),
                         weft({peer_to_peer, #{seeds => Mesh}}),
                         weft({static, #{links => lists:zip(lists:droplast(Names), tl(Names))}}),
                         weft({client_server, #{role => server, servers => Names}})]].

%% Each workload, on these lists of nodes; the first node of all runs it.
one_hash([Ref | _] = Refs, Lists) ->
    wait(fun() -> reach(Ref, Refs) end),
    [begin
         {ok, #{hash := Hash}} = weft_diasca:run(Workload, Options),
         [?assertMatch({Workload, Nodes, {ok, #{hash := Hash}}},
                       {Workload, Nodes, run(Ref, Workload, Options#{nodes => Nodes})})
          || Nodes <- Lists]
     end || {Workload, Options} <- workloads()].

workloads() ->
    [{Name, #{probes => none, ticks => min(Ticks, 60)}}
     || {Name, #{ticks := Ticks}} <- weft_diasca:workloads()].

one_hash_while_a_gateway_is_killed(Config) ->
    [A, B, G, H] = names([a, b, g, h]),
    Settings = weft({groups, #{left => [A, G, H], right => [B, G, H]}}),
    Refs = [Ref | _] = [start(Name, Settings, 2, Config) || Name <- [a, b, g, h]],
    wait(fun() -> reach(Ref, Refs) end),
    Options = #{ticks => 3000, probes => none},
    {ok, #{hash := Hash}} = weft_diasca:run(phold, Options),
    Outcome = in_background(fun() -> run(Ref, phold, Options#{nodes => [A, B]}) end),
    wait(fun() -> not is_idle(Ref) end),
    {ok, [#{to := Gateway}, #{to := B}]} = weft_test_nodes:call(Ref, weft, trace, [B]),
    [ok = weft_test_nodes:kill(Other) || Other <- Refs, weft_test_nodes:name(Other) =:= Gateway],
    ?assertNot(is_idle(Ref)),
    ?assertMatch({ok, #{hash := Hash}}, Outcome()).

%% --- a node that is killed --------------------------------------------------------------------

a_killed_node_is_told_and_the_run_continued(Config) ->
    [A, B, C] = names([a, b, c]),
    Settings = weft({static, #{links => [{A, B}, {B, C}]}}),
    Refs = [Ref, _, Killed] = [start(Name, Settings, 1, Config) || Name <- [a, b, c]],
    wait(fun() -> reach(Ref, Refs) end),
    File = filename:join(?config(priv_dir, Config), "checkpoint"),
    Outcome = in_background(fun() ->
                                    run(Ref, phold, #{nodes => [A, B, C], ticks => 1000000,
                                                      checkpoint => File, checkpoint_ticks => 20})
                            end),
    wait(fun() -> filelib:is_regular(File) end),
    ok = weft_test_nodes:kill(Killed),
    {error, Reason} = Outcome(),
    ?assertMatch({node_lost, C, {_, _}, _}, Reason),
    ?assertMatch("node c@" ++ _, weft_diasca:format_error(Reason)),
    wait(fun() -> is_idle(Ref) end),
    {ok, #{checkpoint := #{tick := Tick}}} = weft_diasca_file:read(File),
    {ok, #{hash := Hash}} = weft_diasca:run(phold, #{ticks => Tick + 50, probes => none}),
    ?assertMatch({ok, #{hash := Hash}},
                 weft_test_nodes:call(Ref, weft_diasca, continue,
                                      [File, #{nodes => [B, A], ticks => Tick + 50}], ?RUN_MS)),
    a_node_that_stands_still_is_told(Refs, [A, B]).

a_node_that_stands_still_is_told([Ref, Paused, _], [_, B] = Nodes) ->
    Outcome = in_background(fun() ->
                                    run(Ref, phold, #{nodes => Nodes, ticks => 1000000,
                                                      probes => none, diasca_ms => 4000})
                            end),
    wait(fun() -> not is_idle(Ref) end),
    ok = weft_test_nodes:pause(Paused),
    %% Actors of the first node may wait for what those of the second one should acknowledge.
    {error, {late, running, {_, _}, Late}} = Outcome(),
    ?assert(lists:member({B, silent}, Late)),
    ok = weft_test_nodes:continue(Paused),
    wait(fun() -> is_idle(Ref) andalso is_idle(Paused) end).

%% No process of an actor is there.
is_idle(Ref) ->
    [] =:= [Pid || Pid <- weft_test_nodes:call(Ref, erlang, processes, []),
                   {dictionary, Dictionary} <- [weft_test_nodes:call(Ref, erlang, process_info,
                                                                     [Pid, dictionary])],
                   {weft_diasca_process, init, 1} =:= proplists:get_value('$initial_call',
                                                                          Dictionary)].

in_background(Run) ->
    Self = self(),
    Pid = spawn_link(fun() -> Self ! {self(), Run()} end),
    fun() -> receive {Pid, Outcome} -> Outcome after ?RUN_MS -> error(no_outcome) end end.

%% --- nodes ------------------------------------------------------------------------------------

names(Short) -> [weft_test_nodes:node_name(Name) || Name <- Short].

weft(Topology) -> #{config => [{topology, Topology}]}.

start(Name, Options, Schedulers, Config) ->
    Args = ["-pa", weft_test_nodes:ebin(weft_diasca),
            "-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false",
            "+S", lists:concat([Schedulers, ":", Schedulers])],
    Ref = weft_test_nodes:start(Name, Options#{args => Args}, ?config(place, Config)),
    _ = [{ok, _} = weft_test_nodes:call(Ref, application, ensure_all_started, [weft])
         || is_map_key(config, Options)],
    Ref.

reach(Ref, Refs) ->
    lists:all(fun(Other) ->
                      weft_test_nodes:call(Ref, net_adm, ping, [weft_test_nodes:name(Other)])
                          =:= pong
              end, Refs).

run(Ref, Workload, Options) ->
    weft_test_nodes:call(Ref, weft_diasca, run, [Workload, Options], ?RUN_MS).

wait(Condition) -> weft_test_nodes:until(Condition).
