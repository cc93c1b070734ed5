%% SPDX-License-Identifier: Apache-2.0
%% @doc Scenarios of sessions: two ends, gateways between them or lanes of their own link, and many
%% short faults. Draws from the sequence of random numbers that `weft_sim_scenario:build/3' has
%% started.
%%
%% Faults happen for six seconds. Once the last broken lane must have been noticed (3 s), dialled
%% and used again, messages of a small sender are timed, while the others go on beside it; then all
%% that was sent has time to be delivered, however much of it is queued.
%%
%% In the scenario of restarts the ends crash and start again, too, each some times. The other end
%% hears news of it from other nodes, at times, and at times late.
%%
%% In the scenario of a stopped kernel one end has nothing to say and sends no ticks any more, while
%% its links go on. The other end sends small messages, which are acknowledged.
%%
%% In the scenario of silence little is said in the first seconds and then nothing for an hour, in
%% which paths break as often as each two seconds, or rarely.
-module(weft_sim_session_scenario).

-export([build/2]).

-define(SAFETY_MS, 6000).
-define(TIMED_AFTER_MS, 4500).
-define(SEND_AFTER_MS, 7000).
%% At least; longer if there is much to deliver.
-define(SETTLE_MS, 25000).
-define(FAULTS, 25).
%% All nodes have started by then.
-define(STARTED_MS, 200).
-define(NEWS_MS, 5000).
-define(CUT_MS, 2000).
-define(SILENCE_MS, 3600000).
-define(SILENCE_BEGINS_MS, 3000).
%% Paths that broke before the kernel stops are whole again, so that nothing but ticks could show
%% that it runs; and then comes net_ticktime, 60 s, with a quarter of it.
-define(STOPS_MS, 15000).
-define(NOTICED_MS, 80000).
-define(MIB, 1048576).
%% A sender's share of the fair queue, and a message of eight fragments beyond it.
-define(SENDER_BYTES, 1572864).
%% What waits in the VM's queue, was fetched at once, and is under way.
-define(BESIDES_BYTES, 4194304).
%% Longer than any way is lost, and over before the end.
-define(GIVE_UP_MS, 20000).
%% Where paths break for an hour they may be lost for longer.
-define(SILENT_GIVE_UP_MS, 120000).

%% @doc `session_faults': over gateways that crash, pause and lose lanes, beside a link that comes
%% and goes. `session_lanes': one link whose lanes fail. `session_silence': as the former, but with
%% nothing to send. `session_stopped': the kernel of one end stops. `session_lives': over gateways,
%% a link, or both; and the ends crash. (The name of a scenario is a part of its seeds.)
-spec build(session_faults | session_lanes | session_silence | session_stopped | session_lives,
            Nodes :: [node()]) -> weft_sim_scenario:scenario().
build(session_faults, Nodes) ->
    scenario(over_gateways(Nodes), busy());
build(session_lanes, Nodes) ->
    scenario(beside(Nodes), busy());
build(session_silence, Nodes) ->
    scenario(over_gateways(Nodes), silent());
build(session_stopped, [Source, Target | _] = Nodes) ->
    Traffic = (traffic())#{senders => [{1, small}], classes => #{}, resume_timeout_ms => auto,
                           until_ms => ?STOPS_MS + ?NOTICED_MS, ordered_until_ms => 0},
    #{world := World} = Scenario =
        scenario(between(pick([gateways, link]), Nodes),
                 #{traffic => Traffic, faults => pick([0, 5]), safety_ms => ?SAFETY_MS}),
    Machines = map_get(machines, World),
    Scenario#{lasting := [{?STOPS_MS - ?SAFETY_MS, {notice, Target, session, kernel_stops}}],
              world := World#{machines := fun(Node) when Node =:= Target -> silent(Machines(Node));
                                             (Node) -> Machines(Node)
                                          end,
                              checkers := [{weft_sim_stopped_checker,
                                            #{living => Source, stops_ms => ?STOPS_MS,
                                              ends => [{Source, Target}]}}]},
              settle_ms := ?STOPS_MS - ?SAFETY_MS + ?NOTICED_MS};
build(session_lives, [Source, Target | _] = Nodes) ->
    #{steps := Steps} = Scenario = scenario(between(pick([gateways, gateways, link]), Nodes),
                                            (busy())#{faults => pick([0, 5, ?FAULTS])}),
    Lane = lane(Source, Target, 1),
    Scenario#{steps := Steps ++ restarts(Source, Target, Lane) ++ restarts(Target, Source, Lane)}.

between(gateways, Nodes) -> over_gateways(Nodes);
between(link, Nodes) -> beside(Nodes).

beside([Source, Target | _]) ->
    {Source, Target, [], [{Source, Target, 1 + uniform(4)}]}.

over_gateways([Source, Target | Gateways]) ->
    Links = [{Source, Target, 1} || pick([true, false])]
        ++ lists:append([[{Source, Gateway, pick([1, 1, 2])}, {Gateway, Target, pick([1, 1, 2])}]
                         || Gateway <- Gateways]),
    {Source, Target, Gateways, Links}.

busy() ->
    #{traffic => traffic(), faults => ?FAULTS, safety_ms => ?SAFETY_MS}.

silent(Machines) ->
    [case Machine of
         {session, Core, Options} -> {session, Core, Options#{senders := []}};
         _ -> Machine
     end || Machine <- Machines].

silent() ->
    Traffic = (traffic())#{senders => pick([[], [{1, small}]]), classes => #{},
                           resume_timeout_ms => pick([auto, ?SILENT_GIVE_UP_MS]),
                   until_ms => ?SILENCE_BEGINS_MS, ordered_until_ms => 0},
    #{traffic => Traffic, faults => ?SILENCE_MS div pick([2000, 5000, 10000, 60000]),
      safety_ms => ?SILENCE_MS}.

scenario({Source, Target, Gateways, Links},
         #{traffic := Traffic, faults := Faults, safety_ms := SafetyMs}) ->
    Lanes = lanes(Links),
    Pairs = lists:append([[{A, Lane}, {Lane, B}] || {Lane, A, B, _Rate} <- Lanes]),
    Ends = #{Source => maps:merge(#{role => source, peer => Target},
                                  pick([#{}, #{}, #{senders => []}])),
             Target => #{role => target, peer => Source}},
    Machines = fun(Node) ->
                   [{topology, weft_static_core, #{links => Pairs, retry_min_ms => 50,
                                                   retry_max_ms => 500}},
                    machine(Node, Ends, Gateways, Lanes, Traffic)]
               end,
    #{world => #{machines => Machines, weigh => false, detection_ms => {50, 3000},
                 checkers => checkers({Source, Target, Gateways}, Traffic, Lanes)},
      steps => [{uniform(?STARTED_MS), {start, Node}}
                || Node <- [Source, Target | Gateways] ++ [Lane || {Lane, _, _, _} <- Lanes]]
          ++ lists:append([fault(Gateways, Lanes, uniform(SafetyMs))
                           || _ <- lists:seq(1, Faults)]),
      heal_at_ms => SafetyMs, lasting => [], settle_ms => settle_ms(Traffic, Lanes)}.

%% When the senders stop their queues may be full, above all if a session has come up shortly
%% before: it may have been accepted late, more than once. All of it leaves over the slowest lane,
%% at half of its rate or more: with as much to send in the other direction acknowledgements wait
%% behind payloads, and the window, which knows the shortest round trip, does not cover that.
settle_ms(#{senders := Kinds, queue_bytes := QueueBytes}, Lanes) ->
    Large = length([Kind || {_, Kind} <- Kinds, Kind =/= small]),
    Bytes = min(QueueBytes, Large * ?SENDER_BYTES) + ?BESIDES_BYTES,
    max(?SETTLE_MS, ?SEND_AFTER_MS + 2 * Bytes div slowest(Lanes)).

%% A node that has started for the first time has the incarnation 1. It is back before others
%% notice, or after, and at times first without the link between the ends.
restarts(Node, Other, Lane) ->
    UpMs = pick([700, 2000, ?SAFETY_MS]),
    restarts(Node, Other, Lane, 1, UpMs, ?STARTED_MS + uniform(UpMs)).

restarts(_Node, _Other, _Lane, _Incarnation, _UpMs, CrashMs) when CrashMs >= ?SAFETY_MS ->
    [];
restarts(Node, Other, Lane, Incarnation, UpMs, CrashMs) ->
    StartMs = CrashMs + uniform(pick([5, 200, 1000])),
    Told = {CrashMs + uniform(?NEWS_MS), {notice, Other, session, {died, Incarnation}}},
    Cut = [{CrashMs, {cut, Lane, Node}}, {StartMs + uniform(?CUT_MS), {heal, Lane, Node}}],
    [{CrashMs, {crash, Node}}, {StartMs, {start, Node, Incarnation + 1}}]
        ++ pick([[], [Told]]) ++ pick([[], Cut])
        ++ restarts(Node, Other, Lane, Incarnation + 1, UpMs, StartMs + uniform(UpMs)).

%% One to two megabytes per second.
lanes(Links) ->
    lists:append([[{lane(A, B, N), A, B, 1000 + uniform(1000)} || N <- lists:seq(1, Count)]
                  || {A, B, Count} <- Links]).

lane(A, B, N) ->
    list_to_atom(lists:flatten(io_lib:format("~s-~s-~b@sim", [name(A), name(B), N]))).

name(Node) -> hd(string:split(atom_to_list(Node), "@")).

machine(Node, Ends, Gateways, Lanes, Traffic) ->
    Leads = maps:from_list([{Lane, case A of Node -> B; _ -> A end}
                            || {Lane, A, B, _} <- Lanes, A =:= Node orelse B =:= Node]),
    case {Ends, lists:member(Node, Gateways)} of
        {#{Node := End}, _} ->
            {session, weft_sim_session_core, maps:merge(Traffic, End#{lanes => Leads})};
        {#{}, true} ->
            {session, weft_sim_gateway_core, #{lanes => Leads}};
        {#{}, false} ->
            {Node, A, B, Rate} = lists:keyfind(Node, 1, Lanes),
            {session, weft_sim_lane_core, #{ends => {A, B}, bytes_per_ms => Rate}}
    end.

%% --- who sends --------------------------------------------------------------------------------

%% One sender alone (then all is in one order), or a small one beside others. At times the source
%% has nothing to say, and so does not see by itself that its path is gone.
traffic() ->
    Others = pick([[], [bulk], [flood], lists:duplicate(2 + uniform(10), bulk),
                   [flood | lists:duplicate(uniform(4), bulk)]]),
    Kinds = lists:zip(lists:seq(1, 1 + length(Others)), [small | Others]),
    Classes = pick([#{}, #{1 => control},
                    maps:from_list([{Key, pinned(Kind)} || {Key, Kind} <- Kinds])]),
    #{senders => Kinds, timed => [1], classes => Classes,
      window_bytes => pick([?MIB div 2, 4 * ?MIB, 16 * ?MIB]),
      resume_timeout_ms => pick([auto, ?GIVE_UP_MS]),
      queue_bytes => pick([?MIB, 64 * ?MIB, 128 * ?MIB]),
      until_ms => ?SAFETY_MS + ?SEND_AFTER_MS, ordered_until_ms => ?SAFETY_MS,
      timed_since_ms => ?SAFETY_MS + ?TIMED_AFTER_MS}.

pinned(small) -> pick([control, default]);
pinned(_) -> pick([control, default, bulk]).

%% Where all senders together may fill the queue the VM stops them all, and nothing is promised.
checkers({Source, Target, Gateways},
         #{queue_bytes := QueueBytes, window_bytes := Window, timed := Timed, classes := Classes},
         Lanes) ->
    Beyond = case [Key || {Key, Class} <- maps:to_list(maps:without(Timed, Classes)),
                          Class =/= bulk] of
                 [] -> express;
                 _Pinned -> bypass
             end,
    [{weft_sim_session_checker, #{ends => [{Source, Target}]}},
     {weft_sim_circuit_checker, #{ends => {Source, Target}, gateways => Gateways}},
     {weft_sim_lanes_checker, #{lanes => [{Lane, A, B} || {Lane, A, B, _Rate} <- Lanes],
                                gateways => Gateways}},
     {weft_sim_session_memory_checker, #{nodes => [Source, Target], queue_bytes => QueueBytes,
                                         window_bytes => Window}}
     | [{weft_sim_direct_path_checker, #{ends => {Source, Target}}}
        || lists:any(fun({_, A, B, _}) -> {A, B} =:= {Source, Target} end, Lanes)]
       ++ [{weft_sim_starvation_checker, #{nodes => [Source, Target], beyond => Beyond,
                                           bytes_per_ms => slowest(Lanes)}}
           || QueueBytes > ?MIB]].

slowest(Lanes) -> lists:min([Rate || {_, _, _, Rate} <- Lanes]).

%% --- faults -----------------------------------------------------------------------------------

fault([], Lanes, AtMs) ->
    lane_fault(pick([cut, cut_one_way, crash, crash, pause]), pick(Lanes), AtMs);
fault(Gateways, Lanes, AtMs) ->
    case pick([gateway, lane, lane]) of
        gateway -> node_fault(pick([crash, pause]), pick(Gateways), AtMs);
        lane -> fault([], Lanes, AtMs)
    end.

lane_fault(cut, {Lane, A, B, _}, AtMs) ->
    End = pick([A, B]),
    [{AtMs, {cut, Lane, End}}, {AtMs + uniform(600), {heal, Lane, End}}];
lane_fault(cut_one_way, {Lane, A, B, _}, AtMs) ->
    End = pick([A, B]),
    {From, To} = pick([{Lane, End}, {End, Lane}]),
    [{AtMs, {cut_one_way, From, To}}, {AtMs + uniform(600), {heal, Lane, End}}];
lane_fault(Kind, {Lane, _, _, _}, AtMs) ->
    node_fault(Kind, Lane, AtMs).

node_fault(crash, Node, AtMs) ->
    [{AtMs, {crash, Node}}, {AtMs + uniform(600), {start, Node}}];
node_fault(pause, Node, AtMs) ->
    [{AtMs, {pause, Node}}, {AtMs + uniform(600), {resume, Node}}].

pick(List) ->
    lists:nth(rand:uniform(length(List)), List).

uniform(Max) ->
    rand:uniform(Max).
