%% SPDX-License-Identifier: Apache-2.0
%% @doc The router: finds the neighbour that leads to each other node. A loop-free distance-vector
%% protocol in the manner of Babel (RFC 8966), over reliable ordered links.
%%
%% Protocol, in order (details and costs: docs/internals/router.md):
%% <ol>
%% <li>Each node originates a route to itself: metric 0, and a sequence number (seqno) that starts
%%     at its incarnation, so that routes of a restarted node are newer than those before. If the
%%     clock went back, others find its routes unfeasible, and their requests raise the seqno above
%%     the old one.</li>
%% <li>A link comes up: both ends send all their routes (`full'), with a number drawn at the start
%%     of the router. If that number changes on a link that is up, the router there was restarted;
%%     this is handled as a link that went down and up.</li>
%% <li>A selection changes: the change goes to all neighbours (`update'). The first change is sent
%%     at once; changes of the next `batch_ms' are sent together, in one message to each
%%     neighbour.</li>
%% <li>A route is lost: it is retracted, also to the neighbour that has become its next hop.</li>
%% <li>Only unfeasible routes are left, or a better one is unfeasible: a `request' for a newer seqno
%%     travels towards the destination, which raises its seqno; the answer travels back.</li>
%% <li>After `digest_ms', and then more and more rarely, each neighbour gets a `digest' of what it
%%     should have heard from us. If its own differs it asks for everything (`refresh', answered by
%%     a `full'). Babel repeats its table instead; here links are ordered and reliable.</li>
%% </ol>
%% Link costs are microseconds, at least 1, from notices `{link_cost, Node, Cost}'. A link without
%% measurement counts `default_cost' (1000). A change below a quarter is ignored, so that jitter is
%% not announced through the cluster. Routes of more than `hop_limit' links are not taken. The
%% notices `{transit, false}' and `{transit, true}' end and begin to relay.
%%
%% Views: `{route, Dest} => {NextHop, Metric, Hops}' and `{neighbour, Node} => Cost'; when a route
%% was lost, `{lost, Dest} => Ms', and when the last link came up, `link_up_ms => Ms'. Notices:
%% `{route, Dest, NextHop | unreachable}', and once `{warning, {routes_full, Dest}}'.
-module(weft_router_core).
-behaviour(weft_core).

-export([init/2, handle/3, table/1]).
-export_type([message/0]).

-record(state, {
    self :: weft_core:node_id(),
    table :: weft_router_table:table(),
    requests :: weft_router_requests:requests(),
    %% Destinations whose selection changed since they were last announced.
    dirty = #{} :: #{weft_core:node_id() => []},
    announced :: weft_router_announcements:announced(),
    %% Number of this start of the router, and those that neighbours told on the present links.
    start :: non_neg_integer(),
    starts = #{} :: #{weft_core:node_id() => non_neg_integer()},
    %% First parts of a `full' that is still arriving.
    arriving = #{} :: #{weft_core:node_id() => [weft_router_table:route()]},
    %% Costs measured, kept for neighbours that come back.
    measured = #{} :: #{weft_core:node_id() => pos_integer()},
    %% When a destination became unreachable, until its feasibility distance may be forgotten.
    lost_at_ms = #{} :: #{weft_core:node_id() => integer()},
    is_full_told = false :: boolean(),
    is_holding = false :: boolean(),
    is_retrying = false :: boolean(),
    rand :: rand:state(),
    options :: #{atom() => term()},
    out = [] :: weft_core:effects(),
    %% Rounds of digests since something was announced.
    digest_rounds = 0 :: non_neg_integer()}).

-type message() ::
    {1, {update, [weft_router_table:route()], Retracted :: [weft_core:node_id()]}
      | {full, Start :: non_neg_integer(), more | last, [weft_router_table:route()]}
      | {request, Dest :: weft_core:node_id(), Seqno :: non_neg_integer(),
         HopsLeft :: pos_integer()}
      | {digest, Count :: non_neg_integer(), Sum :: non_neg_integer()}
      | refresh}.

-define(VERSION, 1).
%% Time between changes that are told, for each neighbour that they are told to.
-define(NEIGHBOUR_MS, 2).

%% @doc See `weft_core'. Options: `relay' (true; with false the node announces itself only, so no
%% route leads through it), `default_cost' (1000), `hop_limit' (64), `batch_ms' (10; more with many
%% neighbours), `request_retry_ms' (500), `digest_ms' (30000), `forget_ms' (180000: how long the
%% feasibility distance of a lost destination is kept), `destinations_max' (20000), `entries_max'
%% (1000, in one message).
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Given) ->
    Options = maps:merge(defaults(), maps:with(maps:keys(defaults()), Given)),
    Table = weft_router_table:new(Self, maps:get(incarnation, Given, 0)),
    {Start, Rand} = rand:uniform_s(1 bsl 32, weft_core:seed(Self, ?MODULE, Given)),
    State = #state{self = Self, table = Table, start = Start, rand = Rand, options = Options,
                   announced = weft_router_announcements:new(Self),
                   requests = weft_router_requests:new(map_get(request_retry_ms, Options))},
    finish(digest_later(State)).

defaults() ->
    #{relay => true, default_cost => 1000, hop_limit => 64, batch_ms => 10,
      request_retry_ms => 500, digest_ms => 30000, forget_ms => 180000,
      destinations_max => 20000, entries_max => 1000}.

%% @doc The tables, for checkers and diagnosis.
-spec table(#state{}) -> weft_router_table:table().
table(#state{table = Table}) -> Table.

%% @doc See `weft_core'. A router that runs while this code is loaded over that of an earlier
%% version has no rounds of digests in its state yet.
-spec handle(weft_core:event(), integer(), #state{} | Before :: tuple()) ->
          {#state{}, weft_core:effects()}.
handle(Event, NowMs, #state{} = State) ->
    finish(on(Event, NowMs, State));
handle(Event, NowMs, Before) ->
    #state{} = State = erlang:append_element(Before, 0),
    handle(Event, NowMs, State).

on({message, From, {?VERSION, Message}}, NowMs, #state{table = Table} = State) ->
    case weft_router_table:cost(From, Table) of
        {ok, _} -> message(Message, From, NowMs, State);
        error -> State
    end;
on({message, _From, _NewerVersion}, _NowMs, State) ->
    State;
on({neighbour_up, Node}, NowMs, State) ->
    up(Node, NowMs, flush(down(Node, NowMs, State)));
on({neighbour_down, Node, _Reason}, NowMs, State) ->
    down(Node, NowMs, State);
on({notice, {link_cost, Node, Cost}}, NowMs, State) when is_integer(Cost) ->
    link_cost(Node, max(1, Cost), NowMs, State);
on({notice, {transit, IsOpen}}, _NowMs, #state{table = Table, options = Options} = State) ->
    All = maps:map(fun(_Dest, _) -> [] end, weft_router_table:selected(Table)),
    State#state{options = Options#{relay := IsOpen}, dirty = All};
on({timer, flush}, _NowMs, State) ->
    State#state{is_holding = false};
on({timer, retry}, NowMs, State) ->
    retry(NowMs, State#state{is_retrying = false});
on({timer, digest}, NowMs, State) ->
    digest_later(send_digests(forget(NowMs, flush(State)))).

message({update, Routes, Retracted}, From, NowMs, State0) ->
    State = lists:foldl(fun(Dest, S) -> retracted(From, Dest, NowMs, S) end, State0, Retracted),
    lists:foldl(fun(Route, S) -> heard(From, Route, NowMs, S) end, State, Routes);
message({full, Start, Part, Routes}, From, NowMs, #state{starts = Starts} = State) ->
    case Starts of
        #{From := Start} ->
            full(Part, Routes, From, NowMs, State);
        #{From := _Former} ->
            Anew = up(From, NowMs, flush(down(From, NowMs, State))),
            full(Part, Routes, From, NowMs, Anew#state{starts = Starts#{From := Start}});
        #{} ->
            full(Part, Routes, From, NowMs, State#state{starts = Starts#{From => Start}})
    end;
message({request, Dest, Seqno, HopsLeft}, From, NowMs, State) ->
    requested(From, Dest, Seqno, HopsLeft, NowMs, State);
message({digest, Count, Sum}, From, _NowMs, #state{table = Table} = State) ->
    case weft_router_digest:heard(weft_router_table:heard(From, Table)) of
        {Count, Sum} -> State;
        _Differs -> send(From, refresh, State)
    end;
message(refresh, From, _NowMs, State) ->
    send_full(From, flush(State)).

full(more, Routes, From, _NowMs, #state{arriving = Arriving} = State) ->
    State#state{arriving = Arriving#{From => Routes ++ maps:get(From, Arriving, [])}};
full(last, Routes, From, NowMs, #state{arriving = Arriving} = State) ->
    All = Routes ++ maps:get(From, Arriving, []),
    replace(From, All, NowMs, State#state{arriving = maps:remove(From, Arriving)}).

%% --- links ---

up(Node, NowMs, #state{table = Table, measured = Measured, options = Options} = State0) ->
    Cost = maps:get(Node, Measured, map_get(default_cost, Options)),
    State = State0#state{table = weft_router_table:neighbour_up(Node, Cost, Table)},
    send_full(Node, emit({view, link_up_ms, NowMs}, emit({view, {neighbour, Node}, Cost}, State))).

down(Node, NowMs, #state{table = Table0, arriving = Arriving, starts = Starts} = State0) ->
    case weft_router_table:cost(Node, Table0) of
        error ->
            State0;
        {ok, _} ->
            {Dests, Table} = weft_router_table:neighbour_down(Node, Table0),
            {Asked, Requests} = weft_router_requests:lost(Node, State0#state.requests),
            State = State0#state{table = Table, requests = Requests,
                                 arriving = maps:remove(Node, Arriving),
                                 starts = maps:remove(Node, Starts)},
            reselect_all(lists:umerge(lists:sort(Dests), Asked), NowMs,
                         emit({view, {neighbour, Node}, delete}, State))
    end.

link_cost(Node, Cost, NowMs, #state{table = Table0, measured = Measured} = State0) ->
    State = State0#state{measured = Measured#{Node => Cost}},
    case weft_router_table:cost(Node, Table0) of
        {ok, Old} when abs(Cost - Old) * 4 >= Old ->
            {Dests, Table} = weft_router_table:set_cost(Node, Cost, Table0),
            reselect_all(Dests, NowMs, emit({view, {neighbour, Node}, Cost},
                                            State#state{table = Table}));
        _UnknownOrNear ->
            State
    end.

%% --- what neighbours announce ---

heard(_From, {Self, _, _, _}, _NowMs, #state{self = Self} = State) ->
    State;
heard(From, {Dest, Seqno, Metric, Hops}, NowMs, #state{table = Table, options = Options} = State) ->
    Heard = weft_router_table:heard(From, Table),
    IsKnown = is_map_key(Dest, Heard),
    case Options of
        #{hop_limit := Limit} when Hops >= Limit ->
            retracted(From, Dest, NowMs, State);
        #{destinations_max := Max} when not IsKnown, map_size(Heard) >= Max ->
            warn_full(Dest, State);
        #{} ->
            New = weft_router_table:put_heard(From, Dest, {Seqno, Metric, Hops}, Table),
            reselect_if_matters(From, Dest, NowMs, State#state{table = New})
    end.

warn_full(_Dest, #state{is_full_told = true} = State) -> State;
warn_full(Dest, State) -> emit({notice, {warning, {routes_full, Dest}}},
                               State#state{is_full_told = true}).

retracted(From, Dest, NowMs, #state{table = Table} = State) ->
    New = weft_router_table:drop_heard(From, Dest, Table),
    reselect_if_matters(From, Dest, NowMs, State#state{table = New}).

replace(From, Routes, NowMs, #state{table = Table} = State0) ->
    New = maps:from_list([{Dest, []} || {Dest, _, _, _} <- Routes]),
    Gone = maps:keys(maps:without(maps:keys(New), weft_router_table:heard(From, Table))),
    message({update, Routes, Gone}, From, NowMs, State0).

%% --- selection ---

reselect_if_matters(From, Dest, NowMs, #state{table = Table} = State) ->
    case weft_router_table:matters(From, Dest, Table) of
        true -> reselect(Dest, NowMs, State);
        false -> State
    end.

reselect_all(Dests, NowMs, State) ->
    lists:foldl(fun(Dest, S) -> reselect(Dest, NowMs, S) end, State, Dests).

reselect(Dest, NowMs, #state{table = Table0} = State0) ->
    {Before, After, Ask, Table} = weft_router_table:reselect(Dest, Table0),
    State = State0#state{table = Table},
    ask(Dest, Ask, NowMs, answer(Dest, After, selection(Dest, Before, After, NowMs, State))).

%% A change of the seqno alone is told only to the neighbours that asked for it.
selection(_Dest, {Next, _, Metric, Hops}, {Next, _, Metric, Hops}, _NowMs, State) ->
    State;
selection(_Dest, none, none, _NowMs, State) ->
    State;
selection(Dest, _Before, none, NowMs, #state{lost_at_ms = LostAt} = State0) ->
    State = emit({view, {lost, Dest}, NowMs}, emit({view, {route, Dest}, delete},
                                                  dirty(Dest, State0))),
    emit({notice, {route, Dest, unreachable}}, State#state{lost_at_ms = LostAt#{Dest => NowMs}});
selection(Dest, Before, {Next, _, Metric, Hops}, _NowMs, State0) ->
    State = emit({view, {route, Dest}, {Next, Metric, Hops}}, dirty(Dest, State0)),
    notice_next(Dest, Before, Next, not_lost(Dest, State)).

not_lost(Dest, #state{lost_at_ms = LostAt} = State) when is_map_key(Dest, LostAt) ->
    emit({view, {lost, Dest}, delete}, State#state{lost_at_ms = maps:remove(Dest, LostAt)});
not_lost(_Dest, State) ->
    State.

notice_next(_Dest, {Next, _, _, _}, Next, State) -> State;
notice_next(Dest, _Before, Next, State) -> emit({notice, {route, Dest, Next}}, State).

dirty(Dest, #state{dirty = Dirty} = State) ->
    State#state{dirty = Dirty#{Dest => []}}.

%% --- seqno requests ---

ask(_Dest, none, _NowMs, State) ->
    State;
ask(Dest, {Node, Seqno}, NowMs, #state{requests = Requests0, options = Options} = State0) ->
    {Action, Requests} = weft_router_requests:want(Dest, Node, Seqno, NowMs, Requests0),
    State = State0#state{requests = Requests},
    case Action of
        send -> send(Node, {request, Dest, Seqno, map_get(hop_limit, Options)}, State);
        wait -> State
    end.

answer(_Dest, none, State) ->
    State;
answer(Dest, {_, Seqno, _, _}, #state{requests = Requests0} = State) ->
    {Waiting, Requests} = weft_router_requests:answered(Dest, Seqno, Requests0),
    tell(Dest, Waiting, State#state{requests = Requests}).

requested(From, Self, Seqno, _HopsLeft, _NowMs, #state{self = Self, table = Table} = State) ->
    case weft_router_table:own(Table) of
        Own when Seqno > Own ->
            dirty(Self, State#state{table = weft_router_table:raise_own(Seqno, Table)});
        _ ->
            tell(Self, [From], State)
    end;
requested(_From, _Dest, _Seqno, _HopsLeft, _NowMs, #state{options = #{relay := false}} = State) ->
    State;
requested(From, Dest, Seqno, HopsLeft, NowMs, #state{table = Table} = State) ->
    case weft_router_table:selected(Dest, Table) of
        {Next, Ours, _, _} when Ours >= Seqno, Next =/= From ->
            tell(Dest, [From], State);
        {Next, _, _, _} when Next =/= From ->
            pass_on(From, [Next], {request, Dest, Seqno, HopsLeft - 1}, NowMs, State);
        _ViaTheRequesterOrNone ->
            Others = weft_router_table:alternatives(Dest, From, Table),
            pass_on(From, Others, {request, Dest, Seqno, HopsLeft - 1}, NowMs, State)
    end.

pass_on(From, [Next | _], {request, Dest, Seqno, HopsLeft} = Request, NowMs, State0)
  when HopsLeft > 0 ->
    {Action, Requests} = weft_router_requests:relay(From, Next, Dest, Seqno, NowMs,
                                                    State0#state.requests),
    State = State0#state{requests = Requests},
    case Action of
        send -> send(Next, Request, State);
        wait -> State
    end;
pass_on(_From, _NoneOrTooFar, _Request, _NowMs, State) ->
    State.

retry(NowMs, #state{requests = Requests0} = State0) ->
    {Own, Requests} = weft_router_requests:due(NowMs, Requests0),
    lists:foldl(fun(Dest, S) -> retry(Dest, NowMs, S) end, State0#state{requests = Requests}, Own).

retry(Dest, NowMs, #state{table = Table, requests = Requests} = State) ->
    case weft_router_table:reselect(Dest, Table) of
        {_, _, none, _} -> State#state{requests = weft_router_requests:drop(Dest, Requests)};
        {_, _, _Ask, _} -> reselect(Dest, NowMs, State)
    end.

%% --- announcing ---

%% Tells some neighbours our route to Dest, whether it changed or not. A change that is still to be
%% announced goes to all first, so that `announced' stays true.
tell(_Dest, [], State) ->
    State;
tell(Dest, Nodes, #state{dirty = Dirty} = State) when is_map_key(Dest, Dirty) ->
    tell(Dest, Nodes, flush(State));
tell(Dest, Nodes, #state{table = Table0, announced = Announced} = State) ->
    case weft_router_announcements:next_hop(Dest, Announced) of
        {ok, Next} ->
            {Route, Table} = weft_router_table:announce(Dest, Table0),
            lists:foldl(fun(Node, S) -> send(Node, {update, [Route], []}, S) end,
                        State#state{table = Table}, Nodes -- [Next, Dest]);
        error ->
            State
    end.

send_full(Node, #state{announced = Announced, table = Table0, start = Start,
                       options = #{entries_max := Max}} = State) ->
    {Parts, Table} = weft_router_announcements:all(Node, Max, Announced, Table0),
    lists:foldl(fun({Which, Routes}, S) -> send(Node, {full, Start, Which, Routes}, S) end,
                State#state{table = Table, digest_rounds = 0}, Parts).

%% Announces all changes to all neighbours.
flush(#state{dirty = Dirty} = State) when map_size(Dirty) =:= 0 ->
    State;
flush(#state{dirty = Dirty, announced = Announced0, table = Table0} = State0) ->
    {Changes, Announced, Table} =
        weft_router_announcements:changes(lists:sort(maps:keys(Dirty)), rules(State0), Announced0,
                                          Table0),
    State = State0#state{dirty = #{}, announced = Announced, table = Table, digest_rounds = 0},
    lists:foldl(fun(Node, S) -> send_changes(Node, Changes, S) end, State,
                weft_router_table:neighbours(Table)).

rules(#state{self = Self, options = #{relay := IsRelay, hop_limit := Limit}}) ->
    #{self => Self, relay => IsRelay, hop_limit => Limit}.

send_changes(Node, Changes, #state{options = #{entries_max := Max}} = State) ->
    lists:foldl(fun(Update, S) -> send(Node, Update, S) end, State,
                weft_router_announcements:updates(Node, Changes, Max)).

%% --- upkeep ---

send_digests(#state{table = Table, announced = Announced, digest_rounds = Rounds} = State) ->
    Round = Rounds + 1,
    To = [Node || weft_router_digest:is_due(Round), Node <- weft_router_table:neighbours(Table)],
    lists:foldl(fun({Node, {Count, Sum}}, S) -> send(Node, {digest, Count, Sum}, S) end,
                State#state{digest_rounds = Round},
                weft_router_digest:expected(To, Announced, weft_router_table:selected(Table))).

%% A feasibility distance protects from routes that are still on their way. Long after the last one
%% it may be dropped.
forget(NowMs, #state{lost_at_ms = LostAt, table = Table0, options = Options} = State) ->
    #{forget_ms := ForgetMs} = Options,
    Old = [Dest || {Dest, AtMs} <- maps:to_list(LostAt), NowMs - AtMs > ForgetMs],
    {Gone, Table} = weft_router_table:forget_distances(Old, Table0),
    lists:foldl(fun not_lost/2, State#state{table = Table}, Gone).

digest_later(#state{rand = Rand0, options = #{digest_ms := Ms}} = State) ->
    {Jitter, Rand} = rand:uniform_s(Rand0),
    emit({after_ms, round(Ms * (0.75 + Jitter / 2)), digest}, State#state{rand = Rand}).

send(Node, Message, State) ->
    emit({send, Node, {?VERSION, Message}}, State).

emit(Effect, #state{out = Out} = State) ->
    State#state{out = [Effect | Out]}.

finish(#state{dirty = Dirty, is_holding = false} = State) when map_size(Dirty) > 0 ->
    finish(emit({after_ms, pause_ms(State), flush}, (flush(State))#state{is_holding = true}));
finish(#state{requests = Requests, is_retrying = false, options = Options} = State) ->
    case weft_router_requests:is_empty(Requests) of
        true -> effects(State);
        false ->
            Ms = map_get(request_retry_ms, Options),
            effects(emit({after_ms, Ms, retry}, State#state{is_retrying = true}))
    end;
finish(State) ->
    effects(State).

%% Changes are sent at once, and then none for so long: each is a message to all neighbours, and
%% while a mesh of many forms there are changes all the time.
pause_ms(#state{table = Table, options = #{batch_ms := Ms}}) ->
    max(Ms, ?NEIGHBOUR_MS * length(weft_router_table:neighbours(Table))).

effects(#state{out = Out} = State) ->
    {State#state{out = []}, lists:reverse(Out)}.
