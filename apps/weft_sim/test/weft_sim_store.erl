%% SPDX-License-Identifier: Apache-2.0
%% @doc Schedules of faults for the store of `weft_kv', and what became of the writes of its
%% clients. Four nodes have the partitions; a fifth one joins, and nodes leave. Messages are lost
%% and overtake each other; nodes are killed, pause, and are cut off from each other. In the end all
%% is healed.
%%
%% Checked is what an acknowledgement means (see `checked/3'), and that of all hints none is left:
%% each has reached the owner of its partition. Nothing else brings copies there: replicas are not
%% compared here, unless nodes forget what they had (`run/3'). Then one node is killed once, or more
%% would be lost than can be got back.
-module(weft_sim_store).
-behaviour(weft_core).

-export([run/2, run/3, init/2, handle/3]).
-export_type([result/0]).

-define(FAULTS_MS, 3000).
%% Then clients stop, so that in the end not all has been read, and repaired with that.
-define(UNTIL_MS, 3200).
-define(END_MS, 5000).
%% Until all was compared: one message in fifty is lost, and waited for.
-define(COMPARED_MS, 9000).
-define(TIMEOUT_MS, 300).
-define(NODES, ['n1@sim', 'n2@sim', 'n3@sim', 'n4@sim', 'n5@sim']).
-define(CLIENTS, ['c1@sim', 'c2@sim', 'c3@sim']).
%% Some keys are used often, so that sessions have something to read, others about once.
-define(HOT, [{0, b, <<"k">>}, {3, b, <<"l">>}, {6, b, <<"m">>}]).
-define(COLD, [{P, b, <<"cold", N>>} || N <- [1, 2, 3, 4], P <- [0, 1, 2, 3, 4, 5, 6, 7]]).
-define(KEYS, ?HOT ++ ?COLD).

-type result() :: #{stale := [term()], lost := [term()], left := [term()],
                    acked := non_neg_integer(), reads_of_own := non_neg_integer(),
                    hints := non_neg_integer(), handed := non_neg_integer()}.
%% `stale': reads that missed an own write. `lost': acknowledged writes that owners do not have.
%% `left': hints that are still kept. `moving': partitions that do not belong to whom the plan wants
%% for them, as a node knows it. `lacking': those that do not count yet. `hints', `handed': how many
%% there were at most, and how many partitions have another owner in the end.

%% @doc One schedule, with these options of the bucket. The same seed gives the same result.
-spec run(Seed :: integer(), map()) -> result().
run(Seed, Given) ->
    run(Seed, Given, #{forgets => false, tells => false}).

%% @doc The same with nodes that have forgotten all but the ring when they start again, and say so
%% or do not.
-spec run(Seed :: integer(), map(), #{forgets | tells := boolean()}) -> result().
run(Seed, Given, Nodes) ->
    {ok, Bucket} = weft_kv_bucket:check(Given#{timeout_ms => ?TIMEOUT_MS}),
    %% Its tables, and who brings hints, end with it.
    {_, Ref} = spawn_monitor(fun() ->
                                 ok = weft_kv_stats:new(),
                                 exit({ran, ran(Seed, Bucket, Nodes)})
                             end),
    receive
        {'DOWN', Ref, process, _, {ran, Result}} -> Result;
        {'DOWN', Ref, process, _, Reason} -> error({Seed, Reason})
    end.

ran(Seed, Bucket, Nodes) ->
    Ring = ring(),
    Options = fun(Name) ->
                  case lists:member(Name, ?CLIENTS) of
                      true -> #{role => client, nodes => ?NODES, keys => [?HOT, ?HOT, ?COLD],
                                timeout_ms => ?TIMEOUT_MS + 50, until_ms => ?UNTIL_MS};
                      false -> Nodes#{role => store, nodes => ?NODES, bucket => Bucket,
                                      ring => Ring}
                  end
              end,
    World0 = weft_sim_datagrams:new(#{seed => Seed, core => ?MODULE, latency_ms => {1, 8},
                                      loss => 0.02, late => {0.01, 80},
                                      options => Options}),
    Planned = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_datagrams:schedule(AtMs, Verb, W) end,
                          World0, [{0, {start, Name}} || Name <- ?NODES ++ ?CLIENTS]
                              ++ schedule(Seed, Nodes)),
    {World, Hints} = lists:foldl(fun(AtMs, {W0, Most}) ->
                                     W = weft_sim_datagrams:run_until(AtMs, W0),
                                     {W, max(Most, waiting(W))}
                                 end, {Planned, 0}, lists:seq(50, end_ms(Nodes), 50)),
    Cores = [{Name, Core} || Name <- ?NODES,
                             {store, Core} <- [weft_sim_datagrams:core(Name, World)]],
    {_, Last} = hd(Cores),
    checked(weft_sim_datagrams:notices(World), Cores,
            #{hints => Hints, handed => handed(Ring, weft_sim_store_node:ring(Last))}).

end_ms(#{forgets := true}) -> ?COMPARED_MS;
end_ms(#{forgets := false}) -> ?END_MS.

waiting(World) ->
    lists:sum([element(1, weft_sim_store_node:waiting(Core))
               || Name <- weft_sim_datagrams:nodes_in([running, paused, blocked], World),
                  {store, Core} <- [weft_sim_datagrams:core(Name, World)]]).

handed(Before, After) ->
    length([moved || {A, B} <- lists:zip(weft_ring_table:owners(Before),
                                         weft_ring_table:owners(After)), A =/= B]).

%% The first four own all of it.
ring() ->
    [First | Others] = lists:sublist(?NODES, 4),
    Created = weft_ring_table:create({First, 1}, First, 8, 3),
    Asked = lists:foldl(fun(Node, Ring) ->
                            Version = weft_ring_table:version({First, Ring}),
                            weft_ring_table:set_member(Node, joining,
                                                       {{location, Node}, Version}, Ring)
                        end, Created, Others),
    {ok, Planned} = weft_ring_plan:apply(First, maps:from_keys(Others, join), Asked),
    lists:foldl(fun({P, Baton, To}, Ring) -> weft_ring_table:give(P, Baton, To, Ring) end,
                Planned, weft_ring_table:transfers(First, Planned)).

%% --- nodes ------------------------------------------------------------------------------------

%% @private
init(Self, #{role := client} = Options) -> role(client, weft_sim_store_client:init(Self, Options));
init(Self, Options) -> role(store, weft_sim_store_node:init(Self, Options)).

%% @private
handle(Event, NowMs, {client, Core}) ->
    role(client, weft_sim_store_client:handle(Event, NowMs, Core));
handle(Event, NowMs, {store, Core}) ->
    role(store, weft_sim_store_node:handle(Event, NowMs, Core)).

role(Role, {Core, Effects}) -> {{Role, Core}, Effects}.

%% --- schedules --------------------------------------------------------------------------------

schedule(Seed, #{forgets := Forgets}) ->
    _ = rand:seed(exsss, Seed),
    Faults = [fault(rand:uniform(?FAULTS_MS - 500) + 100, kinds(Nth, Forgets))
              || Nth <- lists:seq(1, 3 + rand:uniform(5))],
    lists:append([changes() | Faults])
        ++ [{?FAULTS_MS, Verb} || Node <- ?NODES, Verb <- [{resume, Node}, {start, Node}]]
        ++ [{?FAULTS_MS, heal}].

%% One joins, or also leaves again, or another one leaves.
changes() ->
    JoinMs = 100 + rand:uniform(1500),
    Join = [{JoinMs, {command, 'n5@sim', {join, 'n1@sim'}}},
            {JoinMs, {command, 'n2@sim', {change, 'n5@sim', join}}}],
    Leave = fun(Node) ->
                [{JoinMs + rand:uniform(1200), {command, 'n1@sim', {change, Node, leave}}}]
            end,
    case rand:uniform(5) of
        1 -> [];
        2 -> Join ++ Leave('n5@sim');
        3 -> Join ++ Leave(pick(['n2@sim', 'n3@sim', 'n4@sim']));
        _ -> Join
    end.

%% Of a node that has forgotten all, another one has the copies.
kinds(_, false) -> [1, 2, 3, 4, 5, 6, 8, 8, 8];
kinds(1, true) -> [5, 6, 7, 7];
kinds(_, true) -> [1, 2, 3, 4].

fault(AtMs, Kinds) ->
    LaterMs = AtMs + 50 + rand:uniform(700),
    Node = pick(?NODES),
    Other = pick(?NODES -- [Node]),
    case pick(Kinds) of
        1 -> [{AtMs, {pause, Node}}, {LaterMs, {resume, Node}}];
        2 -> [{AtMs, {block, Node}}, {LaterMs, {resume, Node}}];
        3 -> [{AtMs, {partition, split(?NODES ++ ?CLIENTS)}}, {LaterMs, heal}];
        4 -> [{AtMs, {partition, [[Node], (?NODES ++ ?CLIENTS) -- [Node]]}}, {LaterMs, heal}];
        5 -> [{AtMs, {crash, Node}}, {AtMs + rand:uniform(100), {start, Node}}];
        6 -> [{AtMs, {crash, Node}}, {LaterMs, {start, Node}}];
        %% What was written just before, the other one does not have.
        7 ->
            [{max(1, AtMs - 300), {partition, [[Other], (?NODES ++ ?CLIENTS) -- [Other]]}},
             {AtMs, heal}, {AtMs, {crash, Node}}, {AtMs + rand:uniform(100), {start, Node}}];
        %% Of many keys only one owner is left.
        8 ->
            [{Ms, {Verb, N}} || {Ms, Verb} <- [{AtMs, crash}, {LaterMs, start}], N <- [Node, Other]]
    end.

split(Names) ->
    {Some, Others} = lists:partition(fun(_) -> rand:uniform(2) =:= 1 end, Names),
    [Some, Others].

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% --- what became of it ------------------------------------------------------------------------

%% A session reads its own writes: what a client has written with an acknowledgement is in what it
%% reads later, or what it reads has replaced it, seen what has replaced it, and so on. And in the
%% end any two owners of a key have all of its acknowledged writes in this sense.
checked(Notices, Cores, Counts) ->
    Calls = maps:from_list([{Id, {Key, What}} || {_, _, {call, Id, Key, What}} <- Notices]),
    Seen = maps:from_list([{Value, Values}
                           || {_, {write, Value, Values}} <- maps:values(Calls)]),
    {Own, _, Reads} = lists:foldl(fun({_, Client, Notice}, Before) ->
                                      noticed(Notice, Client, Calls, Before)
                                  end, {#{}, #{}, []}, Notices),
    Acked = [{Key, Value} || {{_, Key}, Values} <- maps:to_list(Own), Value <- Values],
    Counts#{stale => [{Id, Value} || {Id, Values, Found} <- Reads,
                                     Value <- missing(Values, Found, Seen)],
            lost => [{Key, Value} || Key <- ?KEYS, Pair <- pairs(Key, Cores),
                                     Value <- missing([V || {K, V} <- Acked, K =:= Key], Pair,
                                                      Seen)],
            left => of_nodes(fun hints/1, Cores),
            moving => of_nodes(fun(Core) -> moving(weft_sim_store_node:ring(Core)) end, Cores),
            lacking => of_nodes(fun weft_sim_store_node:lacking/1, Cores),
            acked => length(Acked),
            reads_of_own => length([read || {_, [_ | _], _} <- Reads])}.

of_nodes(What, Cores) ->
    [{Name, Found} || {Name, Core} <- Cores, [_ | _] = Found <- [What(Core)]].

hints(Core) ->
    [Count || {Count, _} <- [weft_sim_store_node:waiting(Core)], Count > 0].

%% A node that never joined knows no ring.
moving(none) -> [];
moving(Ring) ->
    [Moving || {Owner, Planned} = Moving <- lists:zip(weft_ring_table:owners(Ring),
                                                      weft_ring_table:planned(Ring)),
               Owner =/= Planned].

%% What each client has written with an acknowledgement so far, what its client had when a read
%% began, and with that what each read has found.
noticed({call, Id, Key, read}, Client, _, {Own, Open, Reads}) ->
    {Own, Open#{Id => maps:get({Client, Key}, Own, [])}, Reads};
noticed({return, Id, {ok, Found}}, Client, Calls, {Own, Open, Reads}) ->
    case Calls of
        #{Id := {_, read}} -> {Own, Open, [{Id, map_get(Id, Open), Found} | Reads]};
        #{Id := {Key, {write, Value, _}}} ->
            Before = maps:get({Client, Key}, Own, []),
            {Own#{{Client, Key} => [Value | Before]}, Open, Reads}
    end;
noticed(_, _, _, Before) ->
    Before.

missing([], _, _) -> [];
missing(Values, Found, Seen) -> Values -- reached(Found, Seen, []).

reached([], _, Reached) -> Reached;
reached([Value | Further], Seen, Reached) ->
    case lists:member(Value, Reached) of
        true -> reached(Further, Seen, Reached);
        false -> reached(maps:get(Value, Seen) ++ Further, Seen, [Value | Reached])
    end.

%% What each two of the three owners have together.
pairs({KeyPartition, _, _} = Key, Cores) ->
    Owned = lists:foldl(fun({_, Core}, All) -> maps:merge(All, weft_sim_store_node:items(Core)) end,
                        #{}, Cores),
    [A, B, C] = [case lists:keyfind(Key, 1, maps:get(P rem 8, Owned)) of
                     {_, {Object, _}} -> Object;
                     false -> weft_kv_object:new()
                 end || P <- [KeyPartition, KeyPartition + 1, KeyPartition + 2]],
    [[binary_to_term(Value) || Value <- weft_kv_object:values(weft_kv_object:merge(One, Other))]
     || {One, Other} <- [{A, B}, {A, C}, {B, C}]].
