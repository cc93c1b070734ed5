%% SPDX-License-Identifier: Apache-2.0
%% @doc Probes one member after the other, directly and then through others. Pure data, part of
%% `weft_swim_core'.
%%
%% A round takes `probe_interval_ms'. Its target gets a `ping'. If no answer comes within
%% `probe_timeout_ms', some other members get a `ping_req' and ping the target for this node (one
%% that has no link to it answers `no_link', and another one is asked). If there is no answer at all
%% when the round ends, the target is suspected. Targets come in random order, and each comes once
%% before one comes twice, so that the time until a failure is noticed is bounded (SWIM 4.3). A
%% member whose link broke comes first, and a target without a link is probed through others at
%% once.
%%
%% Lifeguard's local health (LHA-Probe): a score from 0 to `health_max' - 1. It rises with signs
%% that this node itself is slow, and makes its probes slower. Such signs are a failed round in
%% which relays did not even answer that they tried (`nack'), and a suspicion that this node had to
%% refute. A round that succeeds lowers the score. One sign is not in the paper: a round that ends
%% long after it should have means that this node was stopped. Such a round accuses no member.
-module(weft_swim_probe).

-export([new/2, start/1, timer/4, ping_req/4, ack/3, nack/2, no_link/3, joined/2, urgent/2,
         refuted/1, health/1]).
-export_type([probe/0, timer/0, message/0, action/0, peers/0]).

-type sequence() :: pos_integer().
-type timer() :: {round | indirect | relay, sequence()}.
-type message() :: {ping | ack | nack | no_link, sequence()}
                 | {ping_req, sequence(), weft_core:node_id()}.
-type action() :: {send, weft_core:node_id(), message()} | {after_ms, non_neg_integer(), timer()}
                | {suspect, weft_core:node_id()}.
-type set() :: weft_random_set:set(weft_core:node_id()).
%% `living': members to probe. `reachable': nodes that messages can be sent to at all.
-type peers() :: #{living := set(), reachable := set()}.

-record(round, {target :: weft_core:node_id(), sequence :: sequence(), due_ms :: integer(),
                is_acked = false :: boolean(), asked = [] :: [weft_core:node_id()],
                nacks = 0 :: non_neg_integer()}).

-record(probe, {
    %% Members that are still to be probed before one is probed a second time.
    order = weft_random_set:new() :: set(),
    urgent = [] :: [weft_core:node_id()],
    next = 1 :: sequence(),
    %% The timer of the present round; others are stale.
    token = 0 :: non_neg_integer(),
    round = none :: none | #round{},
    relayed = #{} :: #{sequence() => {Target :: weft_core:node_id(),
                                      {Asker :: weft_core:node_id(), sequence()}}},
    score = 0 :: non_neg_integer(),
    has_health :: boolean(),
    rand :: rand:state(),
    options :: weft_swim_options:options()}).
-opaque probe() :: #probe{}.

-spec new(weft_swim_options:options(), rand:state()) -> probe().
new(#{lifeguard := Lifeguard} = Options, Rand) ->
    #probe{has_health = lists:member(health, Lifeguard), rand = Rand, options = Options}.

%% @doc The first round begins at a random time within one interval, so that nodes that start
%% together do not probe together.
-spec start(probe()) -> {probe(), [action()]}.
start(#probe{rand = Rand0, options = #{probe_interval_ms := Ms}} = Probe) ->
    {Delay, Rand} = rand:uniform_s(Ms, Rand0),
    {Probe#probe{rand = Rand}, [{after_ms, Delay, {round, 0}}]}.

%% @doc The node's own health: 0 is the best.
-spec health(probe()) -> non_neg_integer().
health(#probe{score = Score}) -> Score.

%% @doc A member joined or came back; it is probed before any member is probed a second time.
-spec joined(weft_core:node_id(), probe()) -> probe().
joined(Node, #probe{order = Order} = Probe) ->
    Probe#probe{order = weft_random_set:add(Node, Order)}.

%% @doc There is evidence against a member: it is probed next.
-spec urgent(weft_core:node_id(), probe()) -> probe().
urgent(Node, #probe{urgent = Urgent} = Probe) ->
    case lists:member(Node, Urgent) of
        true -> Probe;
        false -> Probe#probe{urgent = Urgent ++ [Node]}
    end.

%% @doc This node was suspected, but is alive.
-spec refuted(probe()) -> probe().
refuted(Probe) ->
    worse(1, Probe).

worse(_Points, #probe{has_health = false} = Probe) ->
    Probe;
worse(Points, #probe{score = Score, options = #{health_max := Max}} = Probe) ->
    Probe#probe{score = max(0, min(Max - 1, Score + Points))}.

%% --- rounds -----------------------------------------------------------------------------------

%% @doc One of our timers fired. A stale one does nothing.
-spec timer(timer(), NowMs :: integer(), peers(), probe()) -> {probe(), [action()]}.
timer({round, Token}, NowMs, Peers, #probe{token = Token} = Probe0) ->
    {Probe1, Verdict} = conclude(NowMs, Probe0),
    {Probe, Actions} = begin_round(NowMs, Peers, Probe1),
    {Probe, Verdict ++ Actions};
timer({indirect, Sequence}, _NowMs, Peers,
      #probe{round = #round{sequence = Sequence, is_acked = false}} = Probe) ->
    ask_others(Peers, Probe);
timer({relay, Sequence}, _NowMs, _Peers, #probe{relayed = Relayed, has_health = Nacks} = Probe) ->
    case maps:take(Sequence, Relayed) of
        {{_Target, {Asker, AskersSequence}}, Rest} ->
            {Probe#probe{relayed = Rest}, [{send, Asker, {nack, AskersSequence}} || Nacks]};
        error ->
            {Probe, []}
    end;
timer(_Stale, _NowMs, _Peers, Probe) ->
    {Probe, []}.

conclude(_NowMs, #probe{round = none} = Probe) ->
    {Probe, []};
conclude(_NowMs, #probe{round = #round{is_acked = true}} = Probe) ->
    {worse(-1, Probe), []};
conclude(NowMs, #probe{round = #round{target = Target, due_ms = DueMs} = Round} = Probe) ->
    #probe{has_health = HasHealth, options = #{probe_timeout_ms := LateMs}} = Probe,
    case HasHealth andalso NowMs - DueMs > LateMs of
        true -> {worse(1, Probe), []};
        false -> {worse(points(Round), Probe), [{suspect, Target}]}
    end.

%% As in memberlist (state.go): relays that are silent count, and so does a round without relays.
points(#round{asked = []}) -> 1;
points(#round{asked = Asked, nacks = Nacks}) -> max(0, length(Asked) - Nacks).

begin_round(NowMs, #{living := Living} = Peers, #probe{next = Sequence} = Probe0) ->
    IntervalMs = scaled(probe_interval_ms, Probe0),
    Again = {after_ms, IntervalMs, {round, Sequence}},
    Probe1 = Probe0#probe{next = Sequence + 1, token = Sequence, round = none},
    case target(Living, Probe1) of
        {none, Probe} ->
            {Probe, [Again]};
        {Target, Probe2} ->
            Round = #round{target = Target, sequence = Sequence, due_ms = NowMs + IntervalMs},
            {Probe, Actions} = first_step(Peers, Probe2#probe{round = Round}),
            {Probe, [Again | Actions]}
    end.

first_step(#{reachable := Reachable} = Peers,
           #probe{round = #round{target = Target, sequence = Sequence}} = Probe) ->
    case weft_random_set:is_member(Target, Reachable) of
        true -> {Probe, [{send, Target, {ping, Sequence}},
                         {after_ms, scaled(probe_timeout_ms, Probe), {indirect, Sequence}}]};
        false -> ask_others(Peers, Probe)
    end.

ask_others(Peers, #probe{options = #{indirect_probes := Count}} = Probe) ->
    ask(Count, Peers, Probe).

ask(Count, #{reachable := Reachable}, #probe{rand = Rand0, round = Round} = Probe) ->
    #round{target = Target, sequence = Sequence, asked = Asked} = Round,
    {Relays, Rand} = weft_random_set:choose(
                       Count, fun(Node) -> not lists:member(Node, [Target | Asked]) end, Reachable,
                       Rand0),
    {Probe#probe{rand = Rand, round = Round#round{asked = Relays ++ Asked}},
     [{send, Relay, {ping_req, Sequence, Target}} || Relay <- Relays]}.

%% Targets that failed or left in the meantime are skipped.
target(Living, #probe{urgent = [Node | Urgent], order = Order} = Probe) ->
    chosen(Node, Living, Probe#probe{urgent = Urgent, order = weft_random_set:delete(Node, Order)});
target(Living, #probe{order = Order0, rand = Rand0} = Probe) ->
    Order = case weft_random_set:size(Order0) of 0 -> Living; _ -> Order0 end,
    case weft_random_set:choose(1, fun(_) -> true end, Order, Rand0) of
        {[], _} ->
            {none, Probe};
        {[Node], Rand} ->
            chosen(Node, Living, Probe#probe{order = weft_random_set:delete(Node, Order),
                                             rand = Rand})
    end.

chosen(Node, Living, Probe) ->
    case weft_random_set:is_member(Node, Living) of
        true -> {Node, Probe};
        false -> target(Living, Probe)
    end.

scaled(Key, #probe{score = Score, options = Options}) ->
    map_get(Key, Options) * (Score + 1).

%% --- answers ----------------------------------------------------------------------------------

%% @doc Asker wants this node to ping Target; IsReachable says whether there is a link to it. Beyond
%% the limit the asker is told at once that it was not done.
-spec ping_req(sequence(), {Target :: weft_core:node_id(), IsReachable :: boolean()},
               Asker :: weft_core:node_id(), probe()) -> {probe(), [action()]}.
ping_req(Sequence, {_Target, false}, Asker, Probe) ->
    {Probe, [{send, Asker, {no_link, Sequence}}]};
ping_req(Sequence, _Target, Asker, #probe{relayed = Relayed, has_health = Nacks,
                                          options = #{relays_max := Max}} = Probe)
  when map_size(Relayed) >= Max ->
    {Probe, [{send, Asker, {nack, Sequence}} || Nacks]};
ping_req(Sequence, {Target, true}, Asker, #probe{relayed = Relayed, next = Own} = Probe) ->
    #{probe_timeout_ms := TimeoutMs} = Probe#probe.options,
    %% As in Lifeguard: the nack is sent early enough to arrive before the round ends.
    {Probe#probe{relayed = Relayed#{Own => {Target, {Asker, Sequence}}}, next = Own + 1},
     [{send, Target, {ping, Own}}, {after_ms, TimeoutMs * 4 div 5, {relay, Own}}]}.

%% @doc An answer to a probe of this node, from the target or a relay, or to one that it relays.
-spec ack(sequence(), From :: weft_core:node_id(), probe()) -> {probe(), [action()]}.
ack(Sequence, _From, #probe{round = #round{sequence = Sequence} = Round} = Probe) ->
    {Probe#probe{round = Round#round{is_acked = true}}, []};
ack(Sequence, From, #probe{relayed = Relayed} = Probe) ->
    case Relayed of
        #{Sequence := {From, {Asker, AskersSequence}}} ->
            {Probe#probe{relayed = maps:remove(Sequence, Relayed)},
             [{send, Asker, {ack, AskersSequence}}]};
        #{} ->
            {Probe, []}
    end.

%% @doc A relay got no answer either; but it is alive itself, and so is this node.
-spec nack(sequence(), probe()) -> probe().
nack(Sequence, #probe{round = #round{sequence = Sequence, nacks = Nacks} = Round} = Probe) ->
    Probe#probe{round = Round#round{nacks = Nacks + 1}};
nack(_Late, Probe) ->
    Probe.

%% @doc A relay has no link to the target: another one is asked, up to three times as many in all.
-spec no_link(sequence(), peers(), probe()) -> {probe(), [action()]}.
no_link(Sequence, Peers, #probe{round = #round{sequence = Sequence, asked = Asked}} = Probe0) ->
    #probe{options = #{indirect_probes := Count}} = Probe = nack(Sequence, Probe0),
    case length(Asked) < 3 * Count of
        true -> ask(1, Peers, Probe);
        false -> {Probe, []}
    end;
no_link(_Late, _Peers, Probe) ->
    {Probe, []}.
