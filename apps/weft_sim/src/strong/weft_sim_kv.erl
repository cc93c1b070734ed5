%% SPDX-License-Identifier: Apache-2.0
%% @doc Schedules of faults for strong buckets of `weft_kv', and what clients saw of them, checked
%% for linearizability. Messages are lost, repeated and overtake each other; nodes are killed,
%% started, paused and cut off from each other; disks are lost, one after the other. In the end all
%% is healed. Unless fewer than a majority of the replicas vote then, as too many have forgotten
%% what they had, the clients of each node get answers, and some for each key, and all replicas
%% vote.
-module(weft_sim_kv).

-export([run/1, history/1]).
-export_type([result/0]).

-type result() :: #{violation := none | term(), operations := non_neg_integer(),
                    done := non_neg_integer(), unknown := non_neg_integer(),
                    rejoined := non_neg_integer(), is_excused := boolean()}.

-define(FAULTS_MS, 3000).
-define(END_MS, 5600).
-define(TIMEOUT_MS, 600).
%% What was forgotten of a key that is seldom used is not soon covered by another write.
-define(KEYS, [<<"x">>, <<"x">>, <<"x">>, <<"y">>, <<"y">>, <<"a">>, <<"b">>, <<"c">>]).

%% @doc One schedule. The same seed gives the same schedule and the same result.
-spec run(Seed :: integer()) -> result().
run(Seed) ->
    {Histories, Rejoined, Lacking} = seen(Seed),
    Wrong = [{Key, Entry, States, History}
             || {Key, History} <- lists:sort(maps:to_list(Histories)),
                {error, {Entry, States}} <- [weft_sim_linearizability:check(
                                               History, weft_sim_register_model, not_found)]],
    All = lists:append(maps:values(Histories)),
    #{violation => case {Wrong, Lacking} of
                       {[First | _], _} -> {not_linearizable, First};
                       {[], [_ | _]} -> {not_done_after_the_healing, Lacking};
                       _ -> none
                   end,
      operations => length(All),
      done => length([done || {_, Return, _} <- All, Return =/= never]),
      unknown => length([unknown || {_, never, _} <- All]),
      rejoined => Rejoined, is_excused => Lacking =:= excused}.

%% @doc What was seen of each key.
-spec history(Seed :: integer()) -> #{binary() => [weft_sim_linearizability:entry()]}.
history(Seed) -> element(1, seen(Seed)).

%% And how many replicas voted again, and what was not carried out after the healing.
seen(Seed) ->
    {Nodes, Replicas, Verbs} = schedule(Seed),
    World0 = weft_sim_datagrams:new(
               #{seed => Seed, core => weft_sim_kv_core, latency_ms => {1, 6}, loss => 0.02,
                 repeats => 0.03, late => {0.02, 140},
                 options => fun(_) -> #{replicas => Replicas, keys => ?KEYS, clients => 2,
                                        pause_ms => 100, timeout_ms => ?TIMEOUT_MS,
                                        until_ms => ?END_MS - 2 * ?TIMEOUT_MS}
                            end}),
    Planned = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_datagrams:schedule(AtMs, Verb, W) end,
                          World0, [{0, {start, Node}} || Node <- Nodes] ++ Verbs),
    Healed = weft_sim_datagrams:run_until(?FAULTS_MS, Planned),
    Ended = weft_sim_datagrams:run_until(?END_MS, Healed),
    Notices = weft_sim_datagrams:notices(Ended),
    Returns = maps:from_list([{Id, {N, Result}}
                              || {N, {_, _, {return, Id, Result}}} <- numbered(Notices)]),
    {maps:from_list([{Key, [Entry || {N, {_, _, {call, Id, K, Request}}} <- numbered(Notices),
                                     K =:= Key,
                                     {Return, Result} <- [maps:get(Id, Returns, {never, never})],
                                     Entry <- weft_sim_register_model:entry(Request, N, Return,
                                                                            Result)]}
                     || Key <- lists:usort(?KEYS)]),
     length([rejoined || {_, _, rejoined} <- Notices]),
     case 2 * length(voters(Replicas, Healed)) > length(Replicas) of
         true -> lacking(Nodes, Notices) ++ (Replicas -- voters(Replicas, Ended));
         false -> excused
     end}.

voters(Replicas, World) ->
    [Node || Node <- Replicas,
             weft_sim_kv_core:is_voting(weft_sim_datagrams:core(Node, World))].

%% The nodes and the keys of which nothing was carried out.
lacking(Nodes, Notices) ->
    Late = maps:from_list([{Id, Node} || {AtMs, Node, {return, Id, Result}} <- Notices,
                                         AtMs > ?FAULTS_MS + ?TIMEOUT_MS, is_done(Result)]),
    Keys = [Key || {_, _, {call, Id, Key, _}} <- Notices, is_map_key(Id, Late)],
    (Nodes -- maps:values(Late)) ++ (lists:usort(?KEYS) -- Keys).

%% The order in which things happened is finer than milliseconds.
numbered(Notices) -> lists:zip(lists:seq(1, length(Notices)), Notices).

is_done({error, {conflict, _}}) -> true;
is_done({error, _}) -> false;
is_done(_) -> true.

%% --- schedules --------------------------------------------------------------------------------

schedule(Seed) ->
    _ = rand:seed(exsss, Seed),
    Count = case rand:uniform(4) of 1 -> 5; _ -> 3 end,
    Nodes = [list_to_atom("n" ++ integer_to_list(N) ++ "@sim") || N <- lists:seq(1, Count + 1)],
    Replicas = lists:sublist(Nodes, Count),
    Faults = [fault(rand:uniform(?FAULTS_MS - 600) + 200, Nodes)
              || _ <- lists:seq(1, 3 + rand:uniform(6))],
    Wiped = case rand:uniform(6) of
                N when N < 3 -> [wiped(rand:uniform(1500) + 500, Replicas)];
                N when N < 5 -> one_by_one(Replicas);
                _ -> []
            end,
    Healing = [{?FAULTS_MS, Verb} || Node <- Nodes, Verb <- [{resume, Node}, {start, Node}]]
        ++ [{?FAULTS_MS, heal}],
    {Nodes, Replicas, lists:append(Faults ++ Wiped) ++ Healing}.

fault(AtMs, Nodes) ->
    LaterMs = AtMs + 20 + rand:uniform(600),
    Node = pick(Nodes),
    case rand:uniform(6) of
        1 -> [{AtMs, {pause, Node}}, {LaterMs, {resume, Node}}];
        2 -> [{AtMs, {block, Node}}, {LaterMs, {resume, Node}}];
        3 ->
            {Some, Others} = lists:partition(fun(_) -> rand:uniform(2) =:= 1 end, Nodes),
            [{AtMs, {partition, [Some, Others]}}, {LaterMs, heal}];
        4 -> lists:append([[{AtMs, {crash, N}}, {LaterMs + rand:uniform(50), {start, N}}]
                           || N <- Nodes, rand:uniform(3) > 1]);
        _ -> [{AtMs, {crash, Node}}, {AtMs + rand:uniform(200), {start, Node}}]
    end.

%% Some replicas miss what happens before another one loses its disk, and are there afterwards; then
%% those that know better are away.
wiped(AtMs, [Node | Others]) ->
    {Before, After} = lists:split(length(Others) div 2, Others),
    BackMs = AtMs + rand:uniform(100),
    [{AtMs - 200, {crash, N}} || N <- Before]
        ++ [{AtMs, {crash, N}} || N <- [Node | After]] ++ [{AtMs, {wipe, Node}}]
        ++ [{BackMs, {start, N}} || N <- [Node | Before]]
        ++ [{BackMs + 400, {start, N}} || N <- After].

%% Disks are lost, mostly so that the ones before have had time to be filled.
one_by_one(Replicas) ->
    Lost = [pick(Replicas) || _ <- lists:seq(1, 1 + rand:uniform(3))],
    [lost(200 + N * 600 + rand:uniform(300), Node)
     || {N, Node} <- lists:zip(lists:seq(0, length(Lost) - 1), Lost)].

lost(AtMs, Node) ->
    [{AtMs, {crash, Node}}, {AtMs, {wipe, Node}}, {AtMs + rand:uniform(100), {start, Node}}].

pick(List) -> lists:nth(rand:uniform(length(List)), List).
