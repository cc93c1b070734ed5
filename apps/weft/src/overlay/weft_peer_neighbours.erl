%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node and others agree on being neighbours, and how it finds those to ask.
%%
%% Pure part of `weft_peer_to_peer_core'. Who wants a neighbour asks (`neighbour'), over a link
%% dialled for it if there is none. The other end agrees (`accept') or not (`decline'); either may
%% end it (`disconnect'). Links are ordered, so three rules are enough for both ends to agree in the
%% end, whatever crosses on the way:
%% <ul>
%% <li>A question has a number, and the answer repeats it. Answers to earlier questions do not
%%     count.</li>
%% <li>Two who ask each other agree. While our question is open, a `disconnect' is about an earlier
%%     time.</li>
%% <li>Who takes us for a neighbour in error (an `accept' or a `beat' that we do not expect) is told
%%     by `disconnect'.</li>
%% </ul>
%% Which part of the cluster this is, is the business of `weft_peer_parts', and nearer neighbours
%% are that of `weft_peer_exchange'; both are built on what is here.
-module(weft_peer_neighbours).

-export([new/2, at/2, now_ms/1, active/1, is_active/2, is_engaged/2, option/2, incarnation/1,
         seeds/1, views/1, set_views/2, attempts/1, component/1, set_component/2,
         exchange/1, set_exchange/2]).
-export([up/2, down/2, asked/4, accepted/3, take/3, declined/3, parted/3, part/3, swap_out/2,
         left/4, outlive/2, leave/1, attempt_timeout/3, again/1, new_round/2, refill/1,
         more_seeds/2, offer/2, try_walk/2, candidate/1, try_node/3, try_chosen/2,
         forget_attempt/2, not_now/2, release/2]).
-export([learn/2, flood/3, send/3, later/3, emit/2, take_effects/1]).
-export_type([peers/0]).

-record(peers, {
    self :: weft_core:node_id(),
    incarnation :: non_neg_integer(),
    seeds :: [weft_core:node_id()],
    views :: weft_peer_views:views(),
    attempts = weft_peer_attempts:new() :: weft_peer_attempts:attempts(),
    component :: weft_component:component(),
    exchange = weft_peer_exchange:new() :: weft_peer_exchange:exchange(),
    now_ms = 0 :: integer(),
    %% Pause before the next round over all known nodes, once nobody answers; whether it is on.
    retry_ms :: pos_integer(),
    is_waiting = false :: boolean(),
    options :: #{atom() => term()},
    %% Effects of the event being handled, newest first.
    out = [] :: weft_core:effects()}).

-opaque peers() :: #peers{}.
-type peer() :: weft_passive_view:peer().

-define(VERSION, 1).
%% Beats a node does without before it takes the root to be gone.
-define(BEATS_MISSED, 4).

%% @doc Nobody known. Options: see `weft_peer_to_peer_options'.
-spec new(weft_core:node_id(), weft_core:options()) -> peers().
new(Self, #{shuffle_ms := ShuffleMs, retry_min_ms := RetryMs, seeds := Seeds} = Options) ->
    Incarnation = maps:get(incarnation, Options, 0),
    #peers{self = Self, incarnation = Incarnation, seeds = lists:usort(Seeds) -- [Self],
           views = weft_peer_views:new(Self, Options),
           component = weft_component:new(Self, #{incarnation => Incarnation,
                                                  timeout_ms => ?BEATS_MISSED * ShuffleMs}),
           retry_ms = RetryMs, options = Options}.

%% @doc The time of the event being handled.
-spec at(NowMs :: integer(), peers()) -> peers().
at(NowMs, Peers) -> Peers#peers{now_ms = NowMs}.

-spec now_ms(peers()) -> integer().
now_ms(#peers{now_ms = NowMs}) -> NowMs.

%% @doc The neighbours, in term order.
-spec active(peers()) -> [weft_core:node_id()].
active(#peers{views = Views}) ->
    weft_peer_views:active(Views).

-spec is_active(weft_core:node_id(), peers()) -> boolean().
is_active(Node, #peers{views = Views}) -> weft_peer_views:is_active(Node, Views).

%% @doc Both views.
-spec views(peers()) -> weft_peer_views:views().
views(#peers{views = Views}) ->
    Views.

%% @doc The views after something was chosen from them.
-spec set_views(weft_peer_views:views(), peers()) -> peers().
set_views(Views, Peers) ->
    Peers#peers{views = Views}.

-spec seeds(peers()) -> [weft_core:node_id()].
seeds(#peers{seeds = Seeds}) -> Seeds.

-spec attempts(peers()) -> weft_peer_attempts:attempts().
attempts(#peers{attempts = Attempts}) -> Attempts.

-spec component(peers()) -> weft_component:component().
component(#peers{component = Component}) -> Component.

-spec set_component(weft_component:component(), peers()) -> peers().
set_component(Component, Peers) -> Peers#peers{component = Component}.

-spec exchange(peers()) -> weft_peer_exchange:exchange().
exchange(#peers{exchange = Exchange}) -> Exchange.

-spec set_exchange(weft_peer_exchange:exchange(), peers()) -> peers().
set_exchange(Exchange, Peers) -> Peers#peers{exchange = Exchange}.

%% @doc Our incarnation.
-spec incarnation(peers()) -> non_neg_integer().
incarnation(#peers{incarnation = Incarnation}) ->
    Incarnation.

%% @doc Somebody remembers that we left in this incarnation, so the clock went back: a later one.
-spec outlive(Incarnation :: non_neg_integer(), peers()) -> peers().
outlive(Incarnation, #peers{incarnation = Own} = Peers) ->
    Peers#peers{incarnation = max(Own, Incarnation + 1)}.

%% @doc A link came up.
-spec up(weft_core:node_id(), peers()) -> peers().
up(Node, #peers{attempts = Attempts} = Peers) ->
    ask(Node, Peers#peers{attempts = weft_peer_attempts:up(Node, Attempts)}).

%% --- asking somebody to be our neighbour ------------------------------------------------------

%% @doc Asks the node, once there is a link. Purposes: `join' (a seed), `refill' (a free place),
%% `walk' (end of somebody's join), `bridge' (another part of the cluster), `{swap, Gone, _}' (in
%% the place of Gone); `probe' and `{measure, _}' ask something else.
-spec try_node(weft_core:node_id(), weft_peer_attempts:purpose(), peers()) -> peers().
try_node(Node, Purpose, #peers{attempts = Attempts0} = Peers0) ->
    {Number, Attempts} = weft_peer_attempts:start(Node, Purpose, Attempts0),
    Peers = emit({after_ms, patience_ms(Purpose, Peers0), {attempt, Node, Number}},
                 emit({connect, Node}, Peers0#peers{attempts = Attempts})),
    case weft_peer_attempts:is_up(Node, Attempts) of
        true -> ask(Node, Peers);
        false -> Peers
    end.

%% The candidate of an exchange first asks somebody else, who asks somebody else.
patience_ms({swap, _, {exchange, _, _}}, Peers) -> 3 * option(attempt_ms, Peers);
patience_ms(_Purpose, Peers) -> option(attempt_ms, Peers).

%% @doc The same for a node that was chosen, if there was one.
-spec try_chosen({{ok, weft_core:node_id()} | none, peers()}, weft_peer_attempts:purpose()) ->
          peers().
try_chosen({{ok, Node}, Peers}, Purpose) -> try_node(Node, Purpose, Peers);
try_chosen({none, Peers}, _Purpose) -> Peers.

%% The link is up.
ask(Node, #peers{attempts = Attempts, component = Component, incarnation = Own} = Peers) ->
    case weft_peer_attempts:get(Node, Attempts) of
        {probe, _, _} ->
            send(Node, {probe, weft_component:current(Component), Own}, Peers);
        {{measure, _}, _, _} ->
            weft_peer_exchange:ping(Node, Peers);
        {Purpose, _, Number} ->
            Priority = priority(Purpose, Peers),
            send(Node, {neighbour, Number, Own, Priority},
                 Peers#peers{attempts = weft_peer_attempts:asked(Node, Priority, Attempts)});
        none ->
            Peers
    end.

%% Of several that are asked at once by a node without neighbours, one has to agree.
priority(bridge, _Peers) -> high;
priority({swap, _Gone, Question}, _Peers) -> Question;
priority(Purpose, #peers{views = Views, attempts = Attempts}) ->
    case weft_peer_views:count(Views) > 0 orelse weft_peer_attempts:is_urgent(Attempts) of
        true -> low;
        false when Purpose =:= join -> join;
        false -> high
    end.

%% @doc Peer asks to be our neighbour. `full': it is about an exchange (`weft_peer_exchange'), and
%% has no answer yet.
-spec asked(Number :: pos_integer(), weft_peer_attempts:priority(), peer(), peers()) ->
          {agreed | declined | full, peers()}.
asked(Number, Priority, {From, _} = Peer, #peers{views = Views} = Peers) ->
    IsMutual = weft_peer_attempts:is_asked(From, Peers#peers.attempts),
    case weft_peer_views:is_active(From, Views) of
        true ->
            {agreed, accept(Number, From, Peers)};
        false when IsMutual; Priority =:= high; Priority =:= join ->
            {agreed, accept(Number, From, make_room(From, activate(Peer, Peers)))};
        false ->
            case {weft_peer_views:has_left(Peer, Views), weft_peer_views:is_full(Views)} of
                {false, false} -> {agreed, take(Number, Peer, Peers)};
                {false, true} when Priority =/= low -> {full, learn([Peer], Peers)};
                _ -> {declined, send(From, {decline, Number}, learn([Peer], Peers))}
            end
    end.

%% @doc The peer that asked is a neighbour, and is told.
-spec take(Number :: pos_integer(), peer(), peers()) -> peers().
take(Number, {From, _} = Peer, Peers) ->
    accept(Number, From, activate(Peer, Peers)).

accept(Number, Node, #peers{incarnation = Incarnation} = Peers) ->
    say_beat(Node, send(Node, {accept, Number, Incarnation}, Peers)).

%% @doc Peer agrees.
-spec accepted(Number :: pos_integer(), peer(), peers()) -> peers().
accepted(Number, {From, _} = Peer, #peers{views = Views, attempts = Attempts} = Peers) ->
    IsActive = weft_peer_views:is_active(From, Views),
    case weft_peer_attempts:get(From, Attempts) of
        {Purpose, {asked, _}, Number} -> use_accepted(Purpose, Peer, Peers);
        {_, {asked, _}, _} -> Peers;
        _ when IsActive -> Peers;
        _ -> part(From, [], Peers)
    end.

%% A place that was free when we asked may be taken. For the new link of a join or a bridge another
%% one goes.
use_accepted({swap, Gone, _}, {From, _} = Peer, Peers) ->
    make_room(From, swap_out(Gone, say_beat(From, activate(Peer, Peers))));
use_accepted(Purpose, {From, _} = Peer, #peers{views = Views} = Peers) ->
    case weft_peer_views:is_full(Views) of
        true when Purpose =/= walk, Purpose =/= bridge ->
            release(From, part(From, [], learn([Peer], forget_attempt(From, Peers))));
        _ ->
            make_room(From, say_beat(From, activate(Peer, Peers)))
    end.

%% @doc Somebody else has the place of this neighbour now.
-spec swap_out(weft_core:node_id(), peers()) -> peers().
swap_out(Gone, Peers) ->
    case is_active(Gone, Peers) of
        true -> release(Gone, not_now(Gone, part(Gone, [], step_back(Gone, Peers))));
        false -> Peers
    end.

%% @doc The node we asked does not agree.
-spec declined(Number :: pos_integer(), weft_core:node_id(), peers()) -> peers().
declined(Number, From, #peers{attempts = Attempts} = Peers) ->
    case weft_peer_attempts:get(From, Attempts) of
        {_, {asked, _}, Number} ->
            refill(release(From, forget_attempt(From, not_now(From, Peers))));
        _ -> Peers
    end.

%% @doc An attempt took too long. Who was asked may agree yet, so it has to hear that this is over.
-spec attempt_timeout(weft_core:node_id(), Number :: pos_integer(), peers()) -> peers().
attempt_timeout(Node, Number, #peers{attempts = Attempts} = Peers) ->
    case weft_peer_attempts:get(Node, Attempts) of
        {_, {asked, _}, Number} ->
            Over = part(Node, [], forget_attempt(Node, not_now(Node, Peers))),
            refill(release(Node, Over));
        {_, dialling, Number} ->
            unreachable(Node, Peers);
        _ ->
            Peers
    end.

unreachable(Node, #peers{views = Views} = Peers) ->
    Failed = Peers#peers{views = weft_peer_views:failed(Node, Views)},
    refill(release(Node, forget_attempt(Node, Failed))).

%% @doc There is nothing more to ask the node.
-spec forget_attempt(weft_core:node_id(), peers()) -> peers().
forget_attempt(Node, #peers{attempts = Attempts} = Peers) ->
    Peers#peers{attempts = weft_peer_attempts:forget(Node, Attempts)}.

%% @doc The node is not to be asked again for now.
-spec not_now(weft_core:node_id(), peers()) -> peers().
not_now(Node, #peers{attempts = Attempts} = Peers) ->
    Peers#peers{attempts = weft_peer_attempts:declined(Node, Attempts)}.

activate({Node, _Incarnation} = Peer, #peers{views = Views} = Peers) ->
    Added = forget_attempt(Node, Peers#peers{views = weft_peer_views:add(Peer, Views),
                                             retry_ms = option(retry_min_ms, Peers)}),
    emit({neighbour, Node, true}, emit({connect, Node}, Added)).

%% No longer a neighbour, but alive.
step_back(Node, #peers{views = Views} = Peers) ->
    emit({neighbour, Node, false}, Peers#peers{views = weft_peer_views:part(Node, Views)}).

%% One neighbour too many: some other one than Keep goes, and gets names to find another.
make_room(Keep, #peers{views = Views0} = Peers) ->
    case weft_peer_views:is_over(Views0) of
        true ->
            {{ok, Node}, Views1} = weft_peer_views:one_active([Keep], Views0),
            {Names, Views} = weft_peer_views:some(Node, Views1),
            Parted = part(Node, Names, step_back(Node, Peers#peers{views = Views})),
            release(Node, not_now(Node, Parted));
        false ->
            Peers
    end.

%% @doc Tells the node that it is no neighbour of ours.
-spec part(weft_core:node_id(), [peer()], peers()) -> peers().
part(Node, Names, Peers) ->
    send(Node, {disconnect, Names}, Peers).

%% @doc The node is no longer our neighbour, and names some others instead. If we wait for its
%% answer, that comes yet: this is about an earlier time.
-spec parted(weft_core:node_id(), [peer()], peers()) -> peers().
parted(From, Names, Peers0) ->
    #peers{views = Views} = Peers = learn(Names, Peers0),
    case weft_peer_views:is_active(From, Views) of
        true -> refill(release(From, not_now(From, step_back(From, Peers))));
        false -> Peers
    end.

%% @doc A link went down, or could not be brought up.
-spec down(weft_core:node_id(), peers()) -> peers().
down(Node, #peers{views = Views, attempts = Attempts} = Peers0) ->
    Peers = Peers0#peers{attempts = weft_peer_attempts:down(Node, Attempts)},
    case weft_peer_views:is_active(Node, Views) of
        true ->
            %% A link that only failed for a moment is the best replacement of itself.
            refill(try_node(Node, refill, step_back(Node, Peers)));
        false ->
            case weft_peer_attempts:get(Node, Attempts) of
                none -> Peers;
                _Failed -> unreachable(Node, Peers)
            end
    end.

%% --- finding neighbours -----------------------------------------------------------------------

%% @doc Asks as many nodes as there are free places.
-spec refill(peers()) -> peers().
refill(#peers{views = Views, attempts = Attempts, exchange = Exchange} = Peers) ->
    refill(option(active, Peers) - weft_peer_views:count(Views)
               - weft_peer_exchange:count_kept(Exchange)
               - weft_peer_attempts:count_wanted(Attempts), Peers).

refill(Free, Peers0) when Free > 0 ->
    case not is_content(Peers0) andalso candidate(Peers0) of
        false -> Peers0;
        {{ok, Node}, Peers} -> refill(Free - 1, try_node(Node, refill, Peers));
        {none, Peers} -> rejoin(Peers)
    end;
refill(_Free, Peers) ->
    Peers.

%% With all others full it makes no sense to ask them all in each round: a link is made for nothing
%% each time. Who lacks but one neighbour asks one node, and is offered more by `offer/2'.
is_content(#peers{views = Views, attempts = Attempts} = Peers) ->
    Lacking = option(active, Peers) - weft_peer_views:count(Views),
    weft_peer_views:count(Views) > 0
        andalso weft_peer_attempts:declined_count(Attempts) >= 2 * Lacking - 1.

%% @doc A random node that could be a neighbour.
-spec candidate(peers()) -> {{ok, weft_core:node_id()} | none, peers()}.
candidate(#peers{views = Views0, attempts = Attempts} = Peers) ->
    Open = case weft_peer_attempts:open(weft_peer_views:passive(Views0), Attempts) of
               [] -> weft_peer_attempts:open(weft_peer_views:former(Views0), Attempts);
               Passive -> Passive
           end,
    {Result, Views} = weft_peer_views:one_of(Open, Views0),
    {Result, Peers#peers{views = Views}}.

%% @doc These are seeds besides the configured ones, in place of those told before.
-spec more_seeds([weft_core:node_id()], peers()) -> peers().
more_seeds(More, #peers{self = Self} = Peers) ->
    refill(Peers#peers{seeds = lists:usort(option(seeds, Peers) ++ More) -- [Self]}).

%% @doc A node that lacks a neighbour came by. Are we another one?
-spec offer(weft_core:node_id(), peers()) -> peers().
offer(Node, #peers{views = Views} = Peers) ->
    case weft_peer_views:is_full(Views) orelse is_engaged(Node, Peers) of
        true -> Peers;
        false -> try_node(Node, refill, Peers)
    end.

%% @doc Whether the node is a neighbour, or about to be asked something.
-spec is_engaged(weft_core:node_id(), peers()) -> boolean().
is_engaged(Node, #peers{views = Views, attempts = Attempts}) ->
    weft_peer_views:is_active(Node, Views) orelse weft_peer_attempts:get(Node, Attempts) =/= none.

%% @doc A join ends here: the new node is to be a neighbour, if it is none and there are not too
%% many of them already.
-spec try_walk(peer(), peers()) -> peers().
try_walk({Node, _} = Peer, #peers{views = Views, attempts = Attempts} = Peers) ->
    case is_engaged(Node, Peers) orelse weft_peer_views:has_left(Peer, Views)
        orelse weft_peer_attempts:count_wanted(Attempts) >= 2 * option(active, Peers) of
        true -> learn([Peer], Peers);
        false -> try_node(Node, walk, Peers)
    end.

%% @doc The pause is over: everybody may be asked again.
-spec again(peers()) -> peers().
again(#peers{attempts = Attempts} = Peers) ->
    refill(Peers#peers{is_waiting = false, attempts = weft_peer_attempts:again(Attempts)}).

%% @doc To be called once per shuffle: forgets what is old, and tries anew.
-spec new_round(NowMs :: integer(), peers()) -> peers().
new_round(NowMs, #peers{views = Views, attempts = Attempts} = Peers) ->
    refill(drop_idle(Peers#peers{views = weft_peer_views:expire(NowMs, Views),
                                 attempts = weft_peer_attempts:again(Attempts)})).

%% Nobody left: back to the seeds, and to those who could not be reached before.
rejoin(#peers{views = Views, attempts = Attempts, seeds = Seeds} = Peers) ->
    case {weft_peer_views:count(Views) + weft_peer_attempts:count_wanted(Attempts),
          weft_peer_attempts:open(Seeds, Attempts),
          weft_peer_attempts:open(weft_peer_views:lost(Views) -- Seeds, Attempts)} of
        {0, [], []} -> again_later(Peers);
        {0, [], Lost} -> join_one_of(Lost, Peers);
        {0, Open, _} -> join_one_of(Open, Peers);
        _ -> Peers
    end.

join_one_of(Nodes, #peers{views = Views0} = Peers) ->
    {{ok, Node}, Views} = weft_peer_views:one_of(Nodes, Views0),
    try_node(Node, join, not_now(Node, Peers#peers{views = Views})).

again_later(#peers{is_waiting = true} = Peers) ->
    Peers;
again_later(#peers{retry_ms = RetryMs, views = Views0, attempts = Attempts} = Peers) ->
    MaxMs = option(retry_max_ms, Peers),
    {DelayMs, Views} = weft_peer_views:around(RetryMs, Views0),
    case weft_peer_attempts:declined_count(Attempts) of
        0 ->
            Peers;
        _ ->
            %% Told once it has reached its longest, so not for a seed that starts a little later.
            Warning = [{notice, {warning, {no_seed_answers, Peers#peers.seeds}}}
                       || RetryMs < MaxMs, 2 * RetryMs >= MaxMs],
            lists:foldl(fun emit/2, Peers#peers{retry_ms = min(2 * RetryMs, MaxMs), views = Views,
                                                is_waiting = true},
                        [{after_ms, DelayMs, again} | Warning])
    end.

%% --- leaving ----------------------------------------------------------------------------------

%% @doc A node has left in this incarnation. `known' if that is no news.
-spec left(weft_core:node_id(), Incarnation :: non_neg_integer(), NowMs :: integer(), peers()) ->
          {new | known, peers()}.
left(Node, Incarnation, NowMs, #peers{views = Views0} = Peers) ->
    {News, Views} = weft_peer_views:left(Node, Incarnation, NowMs, Views0),
    case weft_peer_views:is_active(Node, Views) of
        true when News =:= new ->
            Removed = Peers#peers{views = weft_peer_views:remove(Node, Views)},
            {new, refill(release(Node, emit({neighbour, Node, false}, Removed)))};
        _ ->
            {News, Peers#peers{views = Views}}
    end.

%% @doc Parts with all without a word, asks nobody any more, and needs no link.
-spec leave(peers()) -> peers().
leave(#peers{self = Self, attempts = Attempts} = Peers) ->
    Alone = lists:foldl(fun step_back/2, emit({view, {member, Self}, delete}, Peers),
                        active(Peers)),
    lists:foldl(fun release/2, Alone#peers{attempts = weft_peer_attempts:new(),
                                           exchange = weft_peer_exchange:new()},
                weft_peer_attempts:links(Attempts)).

%% @doc The link is not needed any more.
-spec release(weft_core:node_id(), peers()) -> peers().
release(Node, Peers) ->
    emit({disconnect, Node}, Peers).

%% Links that somebody dialled to ask us something, and that came to nothing.
drop_idle(#peers{attempts = Attempts0} = Peers) ->
    {Idle, Attempts} = weft_peer_attempts:idle(active(Peers), Attempts0),
    lists:foldl(fun release/2, Peers#peers{attempts = Attempts}, Idle).

%% @doc An option.
-spec option(atom(), peers()) -> term().
option(Key, #peers{options = Options}) ->
    map_get(Key, Options).

%% @doc Takes in nodes heard of.
-spec learn([peer()], peers()) -> peers().
learn(Names, #peers{views = Views} = Peers) ->
    Peers#peers{views = weft_peer_views:learn(Names, Views)}.

%% @doc Sends to all neighbours but one.
-spec flood(Message :: tuple(), Except :: weft_core:node_id(), peers()) -> peers().
flood(Message, Except, Peers) ->
    lists:foldl(fun(Node, P) -> send(Node, Message, P) end, Peers,
                lists:delete(Except, active(Peers))).

say_beat(Node, #peers{component = Component} = Peers) ->
    case weft_component:current(Component) of
        none -> Peers;
        Beat -> send(Node, {beat, Beat}, Peers)
    end.

%% @doc Sends to a node, if there is a link.
-spec send(weft_core:node_id(), Message :: tuple() | atom(), peers()) -> peers().
send(Node, Message, Peers) ->
    emit({send, Node, {?VERSION, Message}}, Peers).

%% @doc The timer fires after about the interval that the option has.
-spec later(Interval :: atom(), Timer :: term(), peers()) -> peers().
later(Interval, Timer, #peers{views = Views0} = Peers) ->
    {DelayMs, Views} = weft_peer_views:around(option(Interval, Peers), Views0),
    emit({after_ms, DelayMs, Timer}, Peers#peers{views = Views}).

%% @doc One more effect of the event being handled.
-spec emit(weft_core:effect(), peers()) -> peers().
emit(Effect, #peers{out = Out} = Peers) ->
    Peers#peers{out = [Effect | Out]}.

%% @doc All effects of the event being handled.
-spec take_effects(peers()) -> {weft_core:effects(), peers()}.
take_effects(#peers{out = Out} = Peers) ->
    {lists:reverse(Out), Peers#peers{out = []}}.
