%% SPDX-License-Identifier: Apache-2.0
%% @doc A node with a replica of a strong bucket of `weft_kv', and clients: the cores that real
%% nodes run, with a disk that takes some milliseconds and loses what was not synced. One that has
%% lost its disk is filled by the others and votes again, which is the notice `rejoined'.
%%
%% Clients choose a key and what to do with it at random; a compare-and-set expects what its client
%% saw last. All that they ask and are told is a notice, `{call, Id, Key, Request}' and
%% `{return, Id, Result}'.
%%
%% Options: `replicas' (the nodes that have one), `keys', `clients' (how many requests run at a
%% time), `pause_ms' (the longest between two requests), `timeout_ms', `until_ms' (then they stop),
%% `disk'.
-module(weft_sim_kv_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export([is_voting/1]).

-define(INTRODUCE_MS, 20).
-define(SYNC_MAX_MS, 4).
-define(REJOIN_PAUSE_MS, 20).
-define(REJOIN_REST_MS, 5).

-record(node, {self :: node(),
               options :: map(),
               acceptor = none :: none | weft_kv_strong_acceptor_core:state(),
               %% On disk, the last entry first, and what waits for it.
               disk :: [term()],
               waiting = [] :: [term()],
               %% If it has lost its disk.
               rejoin = none :: none | weft_kv_strong_rejoin_core:state(),
               members = weft_kv_strong_members:founders() :: weft_kv_strong_members:members(),
               requests = #{} :: #{binary() => weft_kv_strong_proposer_core:state()},
               keys = #{} :: #{binary() => Key :: binary()},
               seen = #{} :: #{binary() => binary() | not_found},
               next = 1 :: pos_integer(),
               rand :: rand:state()}).

%% @private
-spec init(node(), weft_core:options()) -> {#node{}, weft_core:effects()}.
init(Self, #{replicas := Replicas, disk := Disk, clients := Clients, incarnation := Incarnation}
     = Options) ->
    Node0 = #node{self = Self, options = Options, disk = Disk,
                  rand = weft_core:seed(Self, ?MODULE, Options)},
    Timers = [{after_ms, 50 + 10 * N, client} || N <- lists:seq(1, Clients)],
    case lists:member(Self, Replicas) of
        false -> {Node0, Timers};
        true ->
            Identity = term_to_binary({Self, Incarnation}),
            {ok, Acceptor, Effects} =
                weft_kv_strong_acceptor_core:init(
                  #{identity => Identity, self => Self, others => Replicas -- [Self],
                    configuration => Replicas, keys_max => 100, damaged => [], existing => false},
                  lists:reverse(Disk)),
            {Node, _Sync} = performed(Effects, Node0#node{acceptor = Acceptor}),
            {Ready, Written} = synced(Node),
            {Ready, Written ++ [{after_ms, ?INTRODUCE_MS, introduce} | Timers]}
    end.

%% @private
-spec handle(weft_core:event(), integer(), #node{}) -> {#node{}, weft_core:effects()}.
handle({timer, client}, NowMs, #node{options = #{until_ms := UntilMs}} = Node)
  when NowMs >= UntilMs ->
    {Node, []};
handle({timer, client}, NowMs, Node) ->
    request(NowMs, Node);
handle({timer, introduce}, _NowMs, Node0) ->
    {Node, Effects} = acceptor(introduce, Node0),
    {Node, [{after_ms, ?INTRODUCE_MS, introduce} | Effects]};
handle({timer, sync}, _NowMs, Node) ->
    synced(Node);
handle({timer, {request, Id, Timer}}, _NowMs, Node) ->
    proposer(Id, {timer, Timer}, Node);
handle({timer, {rejoin, Timer}}, _NowMs, Node) ->
    rejoin({timer, Timer}, Node);
handle({message, From, {ask, Id, Tag, Members, Message}}, _NowMs, Node) ->
    acceptor({vote, {From, {reply, Id, Tag}}, Members, Message}, Node);
handle({message, From, {{reply, rejoin, Tag}, Reply}}, _NowMs, Node) ->
    rejoin({reply, From, Tag, Reply}, Node);
handle({message, From, {{reply, Id, Tag}, Reply}}, _NowMs, Node) ->
    proposer(Id, {reply, From, Tag, Reply}, Node);
handle({message, From, {introduce, Identity}}, _NowMs, Node) ->
    acceptor({introduce, {From, introduced}, From, Identity}, Node);
handle({message, From, {introduced, Reply}}, _NowMs, Node) ->
    acceptor({introduced, From, Reply}, Node).

%% @doc Whether its replica votes: it has forgotten nothing, or was filled again.
-spec is_voting(#node{}) -> boolean().
is_voting(#node{acceptor = Acceptor}) ->
    weft_kv_strong_acceptor_core:status(Acceptor) =:= voting.

%% --- the replica ------------------------------------------------------------------------------

acceptor(Event, #node{acceptor = Acceptor0} = Node0) ->
    {Acceptor, Effects} = weft_kv_strong_acceptor_core:handle(Event, Acceptor0),
    {Node, Done} = performed(Effects, Node0#node{acceptor = Acceptor}),
    {Next, More} = candidate(weft_kv_strong_acceptor_core:status(Acceptor), Node),
    {Next, Done ++ More}.

performed(Effects, #node{waiting = Before, acceptor = Acceptor} = Node0) ->
    Waiting = lists:reverse([Entry || {append, Entry} <- Effects]) ++ Before,
    {Ms, Node1} = uniform(?SYNC_MAX_MS, Node0#node{waiting = Waiting}),
    {Node, More} = all(fun(Stored, N) -> rejoin({stored, Stored}, N) end,
                       [Stored || {reply, rejoin, Stored} <- Effects], Node1),
    {Node, [{send, To, {What, Reply}} || {reply, {To, What}, Reply} <- Effects]
         ++ [{send, To, {introduce, Identity}} || {introduce, To, Identity} <- Effects]
         ++ [{after_ms, Ms, sync} || Waiting =/= []
                                         orelse weft_kv_strong_acceptor_core:is_holding(Acceptor)]
         ++ More}.

synced(#node{waiting = Waiting, disk = Disk0} = Node0) ->
    Disk = Waiting ++ Disk0,
    {Node, Effects} = acceptor(committed, Node0#node{disk = Disk, waiting = []}),
    {Node, [{disk, Disk} || Waiting =/= []] ++ Effects}.

%% --- a lost disk ------------------------------------------------------------------------------

candidate(forgotten, #node{acceptor = Acceptor, rejoin = none, self = Self, next = Next,
                           options = #{replicas := Replicas, timeout_ms := TimeoutMs,
                                       incarnation := Incarnation}} = Node) ->
    case weft_kv_strong_acceptor_core:candidate(Acceptor) of
        none ->
            Identity = term_to_binary({Self, Incarnation, candidate, Next}),
            acceptor({candidate, Identity}, Node#node{next = Next + 1});
        {ok, Identity} ->
            {Rejoin, Effects} = weft_kv_strong_rejoin_core:init(
                                  #{self => Self, identity => Identity,
                                    others => Replicas -- [Self], timeout_ms => TimeoutMs,
                                    pause_ms => ?REJOIN_PAUSE_MS, rest_ms => ?REJOIN_REST_MS}),
            all(fun rejoin_effect/2, Effects, Node#node{rejoin = Rejoin})
    end;
candidate(_Status, Node) ->
    {Node, []}.

rejoin(_Late, #node{rejoin = none} = Node) ->
    {Node, []};
rejoin(Event, #node{rejoin = Rejoin0} = Node) ->
    {Rejoin, Effects} = weft_kv_strong_rejoin_core:handle(Event, Rejoin0),
    all(fun rejoin_effect/2, Effects, Node#node{rejoin = Rejoin}).

rejoin_effect({register, Request}, #node{self = Self, next = Next, options = Options} = Node) ->
    Id = term_to_binary({Self, maps:get(incarnation, Options), Next}),
    proposed(Id, weft_kv_strong_members:key(), Request, Next, Node#node{next = Next + 1});
rejoin_effect({ask, To, Tag, Members, Message}, Node) ->
    {Node, [{send, To, {ask, rejoin, Tag, Members, Message}}]};
rejoin_effect({fill, Step}, Node) ->
    acceptor({fill, rejoin, Step}, Node);
rejoin_effect({after_ms, Ms, Timer}, Node) ->
    {Node, [{after_ms, Ms, {rejoin, Timer}}]};
rejoin_effect(done, Node) ->
    {Node#node{rejoin = none}, [{notice, rejoined}]}.

%% What each of them does to the node, one after the other.
all(Fun, Each, Node0) ->
    lists:foldl(fun(One, {N0, Done}) ->
                    {N, More} = Fun(One, N0),
                    {N, Done ++ More}
                end, {Node0, []}, Each).

%% --- clients ----------------------------------------------------------------------------------

request(NowMs, #node{options = #{keys := Keys} = Options, self = Self, next = Next,
                     seen = Seen} = Node0) ->
    {Key, Node1} = pick(Keys, Node0),
    {Kind, Node2} = pick([get, get, put, put, cas, cas, cas, delete], Node1),
    {CounterMs, Node3} = uniform(2000, Node2),
    Id = term_to_binary({Self, maps:get(incarnation, Options), Next}),
    Request = case Kind of
                  get -> get;
                  put -> {put, Id};
                  delete -> {put, not_found};
                  cas -> {cas, maps:get(Key, Seen, not_found), Id}
              end,
    %% Clocks differ by up to a second.
    {Node, Asks} = proposed(Id, Key, Request, NowMs + CounterMs, Node3#node{next = Next + 1}),
    {Node, [{notice, {call, Id, Key, Request}} | Asks]}.

proposed(Id, Key, Request, Counter,
         #node{options = #{replicas := Replicas, timeout_ms := TimeoutMs}, members = Members,
               requests = Requests, keys = ByRequest} = Node) ->
    {Proposer, Effects} = weft_kv_strong_proposer_core:init(
                            Request, #{key => Key, id => Id, replicas => Replicas,
                                       members => Members, counter => Counter,
                                       timeout_ms => TimeoutMs}),
    effects(Id, Effects, Node#node{requests = Requests#{Id => Proposer},
                                   keys = ByRequest#{Id => Key}}).

proposer(Id, Event, #node{requests = Requests} = Node) ->
    case Requests of
        #{Id := Proposer0} ->
            {Proposer, Effects} = weft_kv_strong_proposer_core:handle(Event, Proposer0),
            effects(Id, Effects, Node#node{requests = Requests#{Id := Proposer}});
        #{} -> {Node, []}
    end.

effects(Id, Effects, Node) ->
    all(fun(Effect, N) -> effect(Id, Effect, N) end, Effects, Node).

effect(Id, {ask, To, Tag, Members, Message}, Node) ->
    {Node, [{send, To, {ask, Id, Tag, Members, Message}}]};
effect(_Id, {learned, Members}, Node) ->
    {Node#node{members = Members}, []};
effect(Id, {after_ms, Ms, Timer}, Node) ->
    {Node, [{after_ms, Ms, {request, Id, Timer}}]};
effect(Id, {answer, Result}, #node{requests = Requests, keys = ByRequest} = Node) ->
    {Key, Keys} = maps:take(Id, ByRequest),
    answered(Key =:= weft_kv_strong_members:key(), Key, Id, Result,
             Node#node{requests = maps:remove(Id, Requests), keys = Keys}).

answered(true, _Key, _Id, Result, Node) ->
    rejoin({registered, Result}, Node);
answered(false, Key, Id, Result, #node{seen = Seen, options = #{pause_ms := PauseMs}} = Node0) ->
    {Ms, Node} = uniform(PauseMs, Node0#node{seen = remembered(Key, Result, Id, Seen)}),
    {Node, [{notice, {return, Id, Result}}, {after_ms, Ms, client}]}.

remembered(Key, {ok, Value}, _Id, Seen) -> Seen#{Key => Value};
remembered(Key, {error, {conflict, Value}}, _Id, Seen) -> Seen#{Key => Value};
remembered(Key, ok, Id, Seen) -> Seen#{Key => Id};
remembered(_Key, _Unknown, _Id, Seen) -> Seen.

%% --- drawing ----------------------------------------------------------------------------------

pick(List, Node0) ->
    {N, Node} = uniform(length(List), Node0),
    {lists:nth(N, List), Node}.

uniform(Max, #node{rand = Rand0} = Node) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, Node#node{rand = Rand}}.
