%% SPDX-License-Identifier: Apache-2.0
%% @doc Simulations on real nodes, for suites: nodes that simulate, runs that are disturbed, and the
%% hash that each of them has to have. That hash is the one of a run in the emulator of the test.
%%
%% A run that is to be disturbed has no last tick. It is stopped some ticks after the disturbance,
%% so it is never over before, however fast it is; the hash is that of a run up to its last tick.
-module(weft_diasca_nodes).

-include_lib("stdlib/include/assert.hrl").

-export([names/1, start/3, schedulers/2, until_all_reach/2]).
-export([workloads/1, endless/0, one_hash/3, one_hash/4, disturbed/4, continued/4, is_idle/1,
         in_background/1]).
%% Run on the nodes.
-export([held/2, tick_of_held/0, stop_held/0, actors/0]).

-define(SCHEDULERS_MAX, 4).
-define(RUN_MS, 120000).
%% So many ticks a run goes on before it is disturbed, and after it.
-define(TICKS, 50).
-define(NEVER, 1 bsl 40).
-define(CHECKPOINT_TICKS, 20).

-type workload() :: {Name :: atom(), weft_diasca:options()}.

%% --- nodes ------------------------------------------------------------------------------------

-spec names([atom()]) -> [node()].
names(Short) -> [weft_test_nodes:node_name(Name) || Name <- Short].

%% @doc A node with the engine, which may have up to four schedulers. It has one.
-spec start(atom(), map(), weft_test_nodes:place()) -> weft_test_nodes:node_ref().
start(Name, Options, Place) ->
    Args = ["-pa", weft_test_nodes:ebin(weft_diasca), "-pa", weft_test_nodes:ebin(?MODULE),
            "-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false",
            "+S", lists:concat([?SCHEDULERS_MAX, ":1"])],
    Ref = weft_test_nodes:start(Name, Options#{args => Args ++ maps:get(args, Options, [])}, Place),
    _ = [{ok, _} = weft_test_nodes:call(Ref, application, ensure_all_started, [weft])
         || is_map_key(config, Options)],
    Ref.

%% @doc So many schedulers run on these nodes from now on.
-spec schedulers([weft_test_nodes:node_ref()], 1..?SCHEDULERS_MAX) -> ok.
schedulers(Refs, Count) ->
    lists:foreach(fun(Ref) ->
                          _ = weft_test_nodes:call(Ref, erlang, system_flag,
                                                   [schedulers_online, Count]),
                          ?assertEqual(Count, weft_test_nodes:call(Ref, erlang, system_info,
                                                                   [schedulers_online]))
                  end, Refs).

%% @doc Waits until each of the first can reach each of the second.
-spec until_all_reach([weft_test_nodes:node_ref()], [weft_test_nodes:node_ref()]) -> ok.
until_all_reach(From, To) ->
    wait(fun() ->
                 lists:all(fun({One, Other}) ->
                                   weft_test_nodes:call(One, net_adm, ping,
                                                        [weft_test_nodes:name(Other)]) =:= pong
                           end, [{One, Other} || One <- From, Other <- To])
         end).

%% --- what is simulated ------------------------------------------------------------------------

%% @doc All that come with the engine: their own ticks, but not more than these.
-spec workloads(TicksMax :: pos_integer()) -> [workload()].
workloads(TicksMax) ->
    [{Name, #{probes => none, ticks => min(Ticks, TicksMax)}}
     || {Name, #{ticks := Ticks}} <- weft_diasca:workloads()].

%% @doc The same, so that they never end: cans and money are there for ever.
-spec endless() -> [workload()].
endless() ->
    Much = 1 bsl 40,
    Soda = #{machines => [{Much, 100}, {Much, 115}],
             customers => [{1, 1, Much}, {1, 7, Much}, {2, 2, Much}, {2, 3, Much}]},
    [{Name, #{probes => none, options => case Name of soda -> Soda; _ -> #{} end}}
     || {Name, _} <- weft_diasca:workloads()].

%% @doc Each workload, by each of these lists of nodes, has one hash.
-spec one_hash(weft_test_nodes:node_ref(), [workload()], [[node(), ...]]) -> ok.
one_hash(Ref, Workloads, Lists) -> one_hash(Ref, Workloads, Lists, none).

%% @doc The same; what else is different is told if it fails.
-spec one_hash(weft_test_nodes:node_ref(), [workload()], [[node(), ...]], term()) -> ok.
one_hash(Ref, Workloads, Lists, About) ->
    lists:foreach(
      fun({{Name, Options} = Workload, Nodes}) ->
              Hash = hash(Workload),
              ?assertMatch({Name, Nodes, About, {ok, #{hash := Hash}}},
                           {Name, Nodes, About, run(Ref, Name, Options#{nodes => Nodes})})
      end, [{Workload, Nodes} || Workload <- Workloads, Nodes <- Lists]).

hash({Name, Options}) ->
    {ok, #{hash := Hash}} = weft_diasca:run(Name, Options),
    Hash.

run(Ref, Name, Options) ->
    weft_test_nodes:call(Ref, weft_diasca, run, [Name, Options], ?RUN_MS).

%% @doc Runs a workload on these nodes, does something meanwhile, and wants the hash as if nothing
%% had been.
-spec disturbed(weft_test_nodes:node_ref(), workload(), [node(), ...], fun(() -> term())) -> ok.
disturbed(Ref, {Name, Options}, Nodes, Disturb) ->
    Outcome = in_background(
                fun() ->
                        weft_test_nodes:call(Ref, ?MODULE, held,
                                             [Name, Options#{nodes => Nodes, ticks => ?NEVER}],
                                             ?RUN_MS)
                end),
    %% Before it has begun it looks like one that has ended.
    wait(fun() -> tick(Ref) =/= over end),
    until_tick(Ref, ?TICKS),
    _ = Disturb(),
    until_tick(Ref, later(tick(Ref))),
    ok = weft_test_nodes:call(Ref, ?MODULE, stop_held, []),
    {ok, #{tick := Last, is_stopped := true} = Result} = Outcome(),
    Hash = hash({Name, Options#{ticks => Last}}),
    ?assertMatch({Name, Nodes, Last, #{hash := Hash}}, {Name, Nodes, Last, Result}).

%% A run that has ended gets no further: its outcome says why.
until_tick(Ref, Tick) ->
    wait(fun() -> Now = tick(Ref), Now =:= over orelse Now >= Tick end).

later(over) -> over;
later(Tick) -> Tick + ?TICKS.

tick(Ref) -> weft_test_nodes:call(Ref, ?MODULE, tick_of_held, []).

%% @doc Runs a workload with checkpoints on the nodes of these references, by the first; kills the
%% last one, and wants to be told so; then goes on without it, to the hash of a whole run.
-spec continued([weft_test_nodes:node_ref(), ...], workload(), Dir :: file:filename(),
                fun(() -> term())) -> ok.
continued([Ref | _] = Refs, {Name, Options}, Dir, Kill) ->
    Names = [weft_test_nodes:name(One) || One <- Refs],
    Killed = lists:last(Names),
    File = filename:join(Dir, lists:concat([Name, "_", erlang:unique_integer([positive])])),
    Outcome = in_background(
                fun() ->
                        run(Ref, Name, Options#{nodes => Names, ticks => ?NEVER, checkpoint => File,
                                                checkpoint_ticks => ?CHECKPOINT_TICKS})
                end),
    wait(fun() -> filelib:is_regular(File) end),
    _ = Kill(),
    {error, Reason} = Outcome(),
    ?assertMatch({Name, {node_lost, Killed, {_, _}, _}}, {Name, Reason}),
    ?assertEqual("node " ++ atom_to_list(Killed),
                 lists:sublist(weft_diasca:format_error(Reason),
                               5 + length(atom_to_list(Killed)))),
    wait(fun() -> is_idle(Ref) end),
    {ok, #{checkpoint := #{tick := Tick}}} = weft_diasca_file:read(File),
    Hash = hash({Name, Options#{ticks => Tick + ?TICKS}}),
    Others = lists:reverse(lists:droplast(Names)),
    ?assertMatch({Name, {ok, #{hash := Hash}}},
                 {Name, weft_test_nodes:call(Ref, weft_diasca, continue,
                                             [File, #{nodes => Others, ticks => Tick + ?TICKS}],
                                             ?RUN_MS)}).

%% @doc No process of an actor is there.
-spec is_idle(weft_test_nodes:node_ref()) -> boolean().
is_idle(Ref) -> weft_test_nodes:call(Ref, ?MODULE, actors, []) =:= [].

%% @doc Begins something; what is returned waits for its outcome.
-spec in_background(fun(() -> Outcome)) -> fun(() -> Outcome).
in_background(Run) ->
    Self = self(),
    Pid = spawn_link(fun() -> Self ! {self(), Run()} end),
    fun() -> receive {Pid, Outcome} -> Outcome after ?RUN_MS -> error(no_outcome) end end.

wait(Condition) -> weft_test_nodes:until(Condition, ?RUN_MS div 2).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc A run that others on this node can look at and stop. There is one at a time.
-spec held(atom(), weft_diasca:options()) -> term().
held(Name, Options) ->
    {ok, Run} = weft_diasca:start(Name, Options),
    true = register(?MODULE, Run),
    Monitor = monitor(process, Run),
    Outcome = weft_diasca:await(Run),
    receive {'DOWN', Monitor, process, Run, _} -> Outcome end.

%% @doc How far it is.
-spec tick_of_held() -> weft_diasca_actor:tick() | over.
tick_of_held() ->
    case whereis(?MODULE) of
        undefined -> over;
        Run -> try maps:get(tick, weft_diasca:status(Run)) catch exit:_ -> over end
    end.

-spec stop_held() -> ok.
stop_held() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Run -> weft_diasca:stop(Run)
    end.

%% @doc The processes of actors.
-spec actors() -> [pid()].
actors() ->
    [Pid || Pid <- processes(),
            {dictionary, Dictionary} <- [process_info(Pid, dictionary)],
            {weft_diasca_process, init, 1} =:= proplists:get_value('$initial_call', Dictionary)].
