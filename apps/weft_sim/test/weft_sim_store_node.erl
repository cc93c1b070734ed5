%% SPDX-License-Identifier: Apache-2.0
%% @doc A node of the store in the simulator (`weft_sim_datagrams'): the cores of the ring, of
%% requests and of handoffs as real nodes run them, and `weft_kv_vnode' with its hints. What is
%% changed is on disk at once. A node takes those for up of which it has heard in the last
%% `?SILENCE_MS', so it may be wrong for a while; for owners that are not up, others stand in.
%%
%% Processes that bring hints (`weft_kv_hints') run as coroutines: each waits here for the answer to
%% its question, and the simulator for its next question, so the order is always the same. So do
%% those that compare a partition that may have forgotten what it had with others, and those that
%% list keys (`weft_kv_fold').
%%
%% Options: `nodes' (all of the store), `n', `bucket' (options of requests), `forgets' (a node that
%% starts again has forgotten all but the ring), `tells' (it says so). Messages of clients:
%% `{client, Id, Key, read | list | {write, Value, Seen}}', answered by `{result, Id, Answer}'.
%% Commands: `{join, Via}', and `{change, Node, join | leave}', which is tried again until it can be
%% done.
-module(weft_sim_store_node).
-behaviour(weft_core).

-export([init/2, handle/3, waiting/1, items/1, ring/1, lacking/1]).

-define(P, weft_sim_store_partition).
-define(PARTITIONS, 8).
-define(BEAT_MS, 40).
-define(SILENCE_MS, 130).
-define(TICK_MS, 100).
-define(SYNC_MS, 100).
-define(HINT_MS, 250).
-define(AGAIN_MS, 100).
-define(COMPARE_MS, 50).
%% What is refused because a partition has moved is tried again.
-define(MOVED_MS, 20).

-record(node, {self :: node(),
               options :: map(),
               ring :: weft_ring_core:state(),
               heard = #{} :: #{node() => Ms :: integer()},
               up = [] :: [node()],
               partitions = #{} :: #{non_neg_integer() => ?P:partition()},
               requests = #{} :: #{{Id :: term(), Try :: pos_integer()} =>
                                       {weft_kv_coordinator_core:state(), Client :: node(),
                                        weft_kv_table:key(),
                                        {DeadlineMs :: integer(), weft_kv_seen:asked(),
                                         none | weft_kv_seen:state()}}},
               %% Who brings hints, and waits for an answer. Questions of an earlier start of the
               %% node are others.
               asking = #{} :: #{{Incarnation :: pos_integer(), pos_integer()} => pid()},
               asked = 0 :: non_neg_integer(),
               comparing = none :: none | pid(),
               disk :: map(),
               now_ms = 0 :: integer(),
               effects = [] :: [term()]}).

%% @doc How many hints wait here, for how many partitions.
-spec waiting(#node{}) -> {non_neg_integer(), non_neg_integer()}.
waiting(#node{partitions = Partitions}) ->
    Counts = [Count || {_, P} <- maps:to_list(Partitions), Count <- [?P:waiting(P)], Count > 0],
    {lists:sum(Counts), length(Counts)}.

%% @doc What there is of each partition that this node owns.
-spec items(#node{}) -> #{non_neg_integer() => [weft_kv_copy:item()]}.
items(#node{ring = Ring, partitions = Partitions}) ->
    Mine = maps:from_keys(weft_ring_core:mine(Ring), []),
    maps:merge(Mine, maps:map(fun(_, P) -> ?P:items(P) end,
                              maps:with(maps:keys(Mine), Partitions))).

%% @doc The ring as this node knows it.
-spec ring(#node{}) -> none | weft_ring_table:ring().
ring(#node{ring = Ring}) -> weft_ring_core:ring(Ring).

%% @doc The partitions of this node that do not count yet, as they may have forgotten what they had.
-spec lacking(#node{}) -> [non_neg_integer()].
lacking(#node{ring = Core, partitions = Partitions}) ->
    [Number || Number <- weft_ring_core:mine(Core), #{Number := P} <- [Partitions],
               lacking(Number, P) =/= []].

lacking(Number, P) -> weft_kv_recall:lacking(Number, ?PARTITIONS, [3], ?P:recall(P)).

%% @private
init(Self, #{disk := Disk0, incarnation := Incarnation, seed := Seed} = Options) ->
    Disk = case Disk0 of [] -> first_disk(Self, Options); _ -> Disk0 end,
    {Ring, Effects} = weft_ring_core:init(
                        Self, maps:merge(#{sync_ms => ?SYNC_MS, settle => true, n_val => 3,
                                           partitions => ?PARTITIONS, incarnation => Incarnation,
                                           seed => Seed},
                                         maps:with([ring, asked, forgotten], Disk))),
    NowMs = maps:get(ms, Disk, 0) + 1,
    Node0 = #node{self = Self, options = Options, ring = Ring, disk = Disk, now_ms = NowMs},
    Node = maps:fold(fun(Number, Items, N) ->
                         put_partition(Number, ?P:start(Self, Number, Items, NowMs), N)
                     end, Node0, maps:get(parts, Disk, #{})),
    done(ring_effects(Effects, emit([{after_ms, 1, beat}, {after_ms, ?TICK_MS, tick},
                                     {after_ms, ?COMPARE_MS, compare}], Node))).

first_disk(Self, #{ring := Ring}) ->
    case weft_ring_table:member(Self, Ring) of
        none -> #{};
        _ -> #{ring => Ring}
    end.

%% @private
handle(Event, NowMs, Node) ->
    done(event(Event, Node#node{now_ms = NowMs})).

%% What is on disk comes first, and the time, so that what begins after a start is later.
done(#node{disk = Disk, effects = Effects, now_ms = NowMs} = Node) ->
    {Node#node{effects = []}, [{disk, Disk#{ms => NowMs}} | lists:reverse(Effects)]}.

emit(New, #node{effects = Effects} = Node) -> Node#node{effects = lists:reverse(New) ++ Effects}.

event({timer, beat}, #node{self = Self, options = #{nodes := Nodes}} = Node) ->
    silent(emit([{send, Other, beat} || Other <- Nodes, Other =/= Self]
                ++ [{after_ms, ?BEAT_MS, beat}], Node));
event({message, From, beat}, #node{heard = Heard, up = Up, now_ms = NowMs} = Node0) ->
    Node = Node0#node{heard = Heard#{From => NowMs}},
    case lists:member(From, Up) of
        true -> Node;
        false -> linked(link_up, From, ring({neighbour_up, From}, Node#node{up = [From | Up]}))
    end;
event({message, From, {ring, 1, _} = Msg}, #node{up = Up} = Node) ->
    case lists:member(From, Up) of
        true -> ring({message, From, Msg}, Node);
        false -> Node
    end;
event({message, From, {ask, Tag, {Number, _, Role}, Key, Command}}, Node0) ->
    {Answer, Node} = command(Number, Role, Key, Command, Node0),
    emit([{send, From, {answer, Tag, Answer}}], Node);
event({message, _From, {answer, {request, Id, Place}, Answer}}, Node) ->
    coordinator(Id, {reply, Place, case Answer of {ok, Reply} -> Reply; Error -> Error end}, Node);
event({message, _From, {answer, {hint, Asked}, Answer}}, Node) ->
    answered(Asked, Answer, Node);
event({message, _From, {answer, repair, _}}, Node) ->
    Node;
event({message, From, {End, Number, Msg}}, Node) when End =:= sender; End =:= receiver ->
    with(Number, fun(P) -> ?P:heard({End, From, Msg}, ring(Node), Node#node.now_ms, P) end, Node);
event({message, Client, {client, Id, Key, list}}, Node) ->
    case ring(Node) of
        none -> emit([{send, Client, {result, Id, {error, no_ring}}}], Node);
        _ -> listed(Id, Client, Key, Node)
    end;
event({message, Client, {client, Id, Key, Request}}, #node{now_ms = NowMs} = Node) ->
    #{bucket := #{timeout_ms := TimeoutMs}} = Node#node.options,
    Seen = case Request of read -> none; {write, _, _} -> weft_kv_seen:init(Request) end,
    request({Id, 1}, Client, Key, Request, {NowMs + TimeoutMs, configured, Seen}, Node);
event({timer, {again, Id, Client, Key, Request, Asked}}, Node) ->
    request(Id, Client, Key, Request, Asked, Node);
event({timer, {request, Id, Timer}}, Node) ->
    coordinator(Id, {timer, Timer}, Node);
event({timer, {hint, Asked}}, Node) ->
    answered(Asked, {error, timeout}, Node);
event({timer, {handoff, Number, Start, Timer}}, #node{partitions = Partitions} = Node) ->
    case Partitions of
        #{Number := _} ->
            with(Number, fun(P) -> ?P:timer(Start, Timer, Node#node.now_ms, P) end, Node);
        #{} -> Node
    end;
event({timer, tick}, #node{partitions = Partitions} = Node) ->
    lists:foldl(fun tick/2, emit([{after_ms, ?TICK_MS, tick}], Node),
                lists:sort(maps:keys(Partitions)));
event({timer, compare}, Node) ->
    compare(emit([{after_ms, ?COMPARE_MS, compare}], Node));
event({timer, settle}, Node) ->
    case waiting(Node) of
        {0, 0} -> ring({command, none, {leave, ready}}, Node);
        _ -> emit([{after_ms, ?AGAIN_MS, settle}], Node)
    end;
event({timer, sync}, Node) ->
    ring({timer, sync}, Node);
event({timer, {change, Other, Change}}, Node) ->
    change(Other, Change, Node);
event({command, sim, {join, Via}}, Node) ->
    ring({command, none, {join, Via}}, Node);
event({command, sim, {change, Other, Change}}, Node) ->
    change(Other, Change, Node).

silent(#node{up = Up, heard = Heard, now_ms = NowMs} = Node) ->
    Gone = [Other || Other <- Up, map_get(Other, Heard) + ?SILENCE_MS < NowMs],
    lists:foldl(fun(Other, N) ->
                    linked(link_down, Other, ring({neighbour_down, Other, silent}, N))
                end, Node#node{up = Up -- Gone}, Gone).

%% --- the ring ---------------------------------------------------------------------------------

ring(Event, #node{ring = Core0, now_ms = NowMs} = Node) ->
    {Core, Effects} = weft_ring_core:handle(Event, NowMs, Core0),
    ring_effects(Effects, Node#node{ring = Core}).

ring_effects(Effects, Node) -> lists:foldl(fun ring_effect/2, Node, Effects).

ring_effect({view, mine, _}, Node) -> Node;
ring_effect({view, Key, Value}, #node{disk = Disk} = Node) -> Node#node{disk = Disk#{Key => Value}};
ring_effect({reply, _, Reply}, Node) ->
    _ = put(reply, Reply),
    Node;
ring_effect({notice, {handoff, start, {Number, _, To} = Transfer}}, #node{up = Up} = Node) ->
    case lists:member(To, Up) of
        true ->
            with(Number, fun(P) -> ?P:hand_over(Transfer, ring(Node), Node#node.now_ms, P) end,
                 Node);
        %% The other node can not start its partition.
        false -> ring({command, none, {handoff, failed, Transfer}}, Node)
    end;
ring_effect({notice, {handoff, cancel, {Number, _, _}}}, Node) ->
    with(Number, fun(P) -> ?P:cancel(Node#node.now_ms, P) end, Node);
ring_effect({notice, leave}, Node) ->
    event({timer, settle}, Node);
ring_effect({notice, {warning, Warning}}, Node) ->
    error({Warning, Node#node.self});
ring_effect(Effect, Node) ->
    emit([Effect], Node).

%% An operator, who tries again.
change(Other, Change, Node0) ->
    Node1 = ring({command, none, {stage, Other, Change}}, Node0),
    case get(reply) of
        ok ->
            Node2 = ring({command, none, plan}, Node1),
            {ok, #{token := Token}} = get(reply),
            ring({command, none, {commit, Token}}, Node2);
        {error, _} -> emit([{after_ms, ?AGAIN_MS, {change, Other, Change}}], Node1)
    end.

linked(Event, Other, #node{partitions = Partitions, now_ms = NowMs} = Node) ->
    lists:foldl(fun(Number, N) ->
                    with(Number, fun(P) -> ?P:linked({Event, Other}, NowMs, P) end, N)
                end, Node, lists:sort(maps:keys(Partitions))).

%% --- partitions -------------------------------------------------------------------------------

%% A partition starts when it is needed.
with(Number, Fun, #node{self = Self, partitions = Partitions, now_ms = NowMs} = Node) ->
    P = case Partitions of
            #{Number := Running} -> Running;
            #{} -> ?P:start(Self, Number, [], NowMs)
        end,
    put_partition(Number, Fun(P), Node).

put_partition(Number, P0, #node{partitions = Partitions, disk = Disk} = Node) ->
    {Effects, P} = ?P:effects(P0),
    Parts = maps:get(parts, Disk, #{}),
    Kept = case Node#node.options of
               #{forgets := true} -> Disk;
               #{forgets := false} -> Disk#{parts => Parts#{Number => ?P:items(P)}}
           end,
    partition_effects(Effects, Node#node{partitions = Partitions#{Number => P}, disk = Kept}).

partition_effects(Effects, Node) -> lists:foldl(fun partition_effect/2, Node, Effects).

partition_effect({handed, ok, Transfer}, Node) ->
    ring({command, none, {handoff, done, Transfer}}, Node);
partition_effect({handed, {error, _}, Transfer}, Node) ->
    ring({command, none, {handoff, failed, Transfer}}, Node);
partition_effect(Effect, Node) ->
    emit([Effect], Node).

command(Number, primary, Key, Command, #node{self = Self, partitions = Partitions} = Node) ->
    Ring = ring(Node),
    case Ring =:= none orelse weft_ring_table:owner(Number, Ring) =/= Self of
        true when not is_map_key(Number, Partitions) -> {{error, not_owner}, Node};
        _ -> asked(Number, primary, Key, Command, Node)
    end;
command(Number, Role, Key, Command, Node) ->
    asked(Number, Role, Key, Command, Node).

asked(Number, Role, Key, Command, #node{now_ms = NowMs} = Node0) ->
    Ring = ring(Node0),
    Node = with(Number, fun(P0) ->
                            {Answer, P} = ?P:command(Role, Key, Command, Ring, NowMs, P0),
                            _ = put(answer, Answer),
                            P
                        end, Node0),
    {get(answer), Node}.

tick(Number, #node{partitions = Partitions, disk = Disk} = Node0) ->
    #{Number := P0} = Partitions,
    case ?P:tick(fun bring/2, ring(Node0), Node0#node.now_ms, P0) of
        {ok, P} -> brought(put_partition(Number, P, Node0));
        {stop, _} ->
            Parts = maps:get(parts, Disk, #{}),
            brought(Node0#node{partitions = maps:remove(Number, Partitions),
                               disk = Disk#{parts => maps:remove(Number, Parts)}})
    end.

%% --- hints ------------------------------------------------------------------------------------

%% In the process of the partition, which is the simulator. Without pauses.
bring(Partition, Owner) ->
    coroutine(fun(Ask) -> weft_kv_hints:bring(Partition, Owner, 0, Ask) end).

coroutine(Fun) ->
    Simulator = self(),
    Ask = fun(Place, Key, Command) ->
              Simulator ! {hints, self(), {ask, Place, Key, Command}},
              receive {Simulator, Answer} -> Answer end
          end,
    Pid = spawn_link(fun() ->
                         receive Simulator -> ok end,
                         Fun(Ask)
                     end),
    Simulator ! {begun, Pid},
    Pid.

brought(Node) ->
    receive {begun, Pid} ->
        Pid ! self(),
        went_on(Pid, Node)
    after 0 -> Node
    end.

%% Until its next question, or its end.
went_on(Pid, #node{self = Self, asked = Asked0, asking = Asking, options = Options} = Node) ->
    Ref = monitor(process, Pid),
    Asked = {maps:get(incarnation, Options), Asked0 + 1},
    receive
        {hints, Pid, {ask, {Number, To0, Role}, Key, Command}} ->
            true = demonitor(Ref, [flush]),
            To = case node() of To0 -> Self; _ -> To0 end,
            emit([{send, To, {ask, {hint, Asked}, {Number, To, Role}, Key, Command}},
                  {after_ms, ?HINT_MS, {hint, Asked}}],
                 Node#node{asked = Asked0 + 1, asking = Asking#{Asked => Pid}});
        {hints, Pid, {tell, Client, Msg}} ->
            true = demonitor(Ref, [flush]),
            went_on(Pid, emit([{send, Client, Msg}], Node));
        {'DOWN', Ref, process, Pid, Reason} ->
            true = lists:member(Reason, [normal, noproc]),
            Node
    end.

answered(Asked, Answer, #node{asking = Asking} = Node) ->
    case maps:take(Asked, Asking) of
        {Pid, Left} ->
            Pid ! {self(), Answer},
            went_on(Pid, Node#node{asking = Left});
        error -> Node
    end.

%% --- comparisons ------------------------------------------------------------------------------

%% One at a time, of those that lack something.
compare(#node{comparing = Pid} = Node) when is_pid(Pid) ->
    case is_process_alive(Pid) of
        true -> Node;
        false -> compare(Node#node{comparing = none})
    end;
compare(#node{options = #{forgets := true}, ring = Core, asked = Asked} = Node0) ->
    Mine = weft_ring_core:mine(Core),
    %% On a real node the comparisons in turn start them.
    Node = lists:foldl(fun(Number, N) -> with(Number, fun(P) -> P end, N) end, Node0, Mine),
    case [Pair || Number <- Mine, #{Number := P} <- [Node#node.partitions],
                  Pair <- lacking(Number, P)] of
        [] -> Node;
        Lacking ->
            Pid = compared(lists:nth(1 + Asked rem length(Lacking), Lacking), Node),
            brought(Node#node{comparing = Pid})
    end;
compare(Node) ->
    Node.

compared({{N, KeyPartition, {Number, Other}} = Pair, Since}, #node{self = Self} = Node) ->
    #{Number := Self} = Owners = maps:from_list([{P, weft_ring_table:owner(P, ring(Node))}
                                                 || P <- lists:seq(0, ?PARTITIONS - 1)]),
    coroutine(fun(Ask) ->
                  Of = fun(P, Key, Command) -> Ask({P, map_get(P, Owners), primary}, Key, Command)
                       end,
                  Sinces = weft_kv_sinces:before(Pair, ?PARTITIONS, Of),
                  case exchanged(weft_kv_exchange:new(Pair), Of) of
                      {done, _} ->
                          weft_kv_sinces:is_same(Pair, Sinces, Of)
                              andalso Of(Number, {KeyPartition, '', <<>>},
                                         {compared, Since, {N, Other}, Sinces});
                      {error, _} -> not_compared
                  end
              end).

exchanged(Exchange, Ask) ->
    case weft_kv_exchange:step(Exchange, Ask) of
        {more, Next} -> exchanged(Next, Ask);
        Ended -> Ended
    end.

%% --- lists ------------------------------------------------------------------------------------

%% All keys of a partition, of which the client wants one.
listed(Id, Client, {KeyPartition, Bucket, Name} = Key, #node{options = Options} = Node) ->
    #{bucket := #{n := N, siblings := Siblings} = Kind, tells := Tells} = Options,
    Places = places(Key, Node),
    Simulator = self(),
    _ = coroutine(fun(Ask) ->
                      Page = fun(Place, _IsNeeded) ->
                                 Ask(Place, {KeyPartition, Bucket, <<>>},
                                     weft_kv_coverage:command(Place, <<>>, Kind, Tells))
                             end,
                      Coverage = weft_kv_coverage:new(in_turn, Kind, N, Places),
                      Answer = case weft_kv_fold:covered(Coverage, Page) of
                                   {ok, Done} ->
                                       {Objects, all} = weft_kv_coverage:page(Siblings, Done),
                                       {ok, proplists:get_value(Name, Objects,
                                                                weft_kv_object:new())};
                                   {error, Reason} -> {error, Reason}
                               end,
                      Simulator ! {hints, self(), {tell, Client, {result, Id, Answer}}}
                  end),
    brought(Node).

places({KeyPartition, _, _}, #node{self = Self, up = Up, options = Options} = Node) ->
    #{bucket := #{n := N}} = Options,
    Ring = ring(Node),
    weft_ring_preference:active(KeyPartition, N,
                                fun(Other) -> lists:member(Other, [Self | Up]) end,
                                ?PARTITIONS,
                                fun(Number) -> weft_ring_table:owner(Number, Ring) end).

%% --- requests ---------------------------------------------------------------------------------

%% A try of a request of a client, one after the other, and what a write asks after its answer.
request({ClientsId, _} = Id, Client, Key, Request, {DeadlineMs, Of, _} = Asked, Node) ->
    #node{options = #{bucket := #{n := N, r := R} = Bucket}, requests = Requests,
          now_ms = NowMs} = Node,
    case ring(Node) of
        none -> emit([{send, Client, {result, ClientsId, {error, no_ring}}}], Node);
        _ ->
            {State, Effects} = weft_kv_coordinator_core:init(
                                 Request, places(Key, Node),
                                 Bucket#{timeout_ms := max(1, DeadlineMs - NowMs),
                                         r := case Of of all -> N; configured -> R end}),
            Run = {State, Client, Key, Asked},
            request_effects(Id, Effects, Node#node{requests = Requests#{Id => Run}})
    end.

coordinator(Id, Event, #node{requests = Requests} = Node) ->
    case Requests of
        #{Id := Run} ->
            {State, Effects} = weft_kv_coordinator_core:handle(Event, element(1, Run)),
            request_effects(Id, Effects,
                            Node#node{requests = Requests#{Id := setelement(1, Run, State)}});
        #{} -> Node
    end.

request_effects(Id, Effects, Node) ->
    lists:foldl(fun(Effect, N) -> request_effect(Effect, Id, N) end, Node, Effects).

request_effect(done, Id, #node{requests = Requests} = Node) ->
    Node#node{requests = maps:remove(Id, Requests)};
%% Each one asks the replicas in the same order here, so that a slow one is asked first again.
request_effect({suspect, _}, _Id, Node) ->
    Node;
request_effect({after_ms, Ms, Timer}, Id, Node) ->
    emit([{after_ms, Ms, {request, Id, Timer}}], Node);
request_effect({answer, Answer}, {ClientsId, Try} = Id, #node{requests = Requests} = Node) ->
    #{Id := {State, Client, Key, {DeadlineMs, _, Seen} = Asked}} = Requests,
    case {Answer, weft_kv_coordinator_core:again(State)} of
        {{error, _}, {moved, Request}} when Node#node.now_ms + ?MOVED_MS < DeadlineMs ->
            Again = {again, {ClientsId, Try + 1}, Client, Key, Request, Asked},
            emit([{after_ms, ?MOVED_MS, Again}], Node);
        _ when Seen =:= none -> emit([{send, Client, {result, ClientsId, Answer}}], Node);
        _ ->
            case weft_kv_seen:handle(Answer, Seen) of
                {answer, Result} -> emit([{send, Client, {result, ClientsId, Result}}], Node);
                {ask, Next, Of, Further} ->
                    request({ClientsId, Try + 1}, Client, Key, Next, {DeadlineMs, Of, Further},
                            Node)
            end
    end;
request_effect({ask, Place, Request}, Id, Node) ->
    ask({request, Id, Place}, Place, Request, Id, Node);
request_effect({repair, Place, Object}, Id, Node) ->
    ask(repair, Place, {merge, Object}, Id, Node).

ask(Tag, {_, To, Role} = Place, Request, Id, #node{requests = Requests} = Node) ->
    #{Id := {_, _, Key, _}} = Requests,
    Kind0 = maps:with([n, evict, siblings], maps:get(bucket, Node#node.options)),
    Kind = case {Request, Node#node.options} of
               {read, #{tells := true}} -> Kind0#{tell => incomplete};
               _ -> Kind0
           end,
    emit([{send, To, {ask, Tag, Place, Key, {Request, Kind, Role}}}], Node).
