%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `full_mesh': everybody is everybody's neighbour, members are found by gossip.
%%
%% A node starts with the addresses of some seeds and connects to them. Protocol, in order:
%% <ol>
%% <li>A link comes up: both ends send their whole table and ask for what they lack (`pull'); the
%%     answer, if the other end has any, is a `delta'.</li>
%% <li>What was new to the receiver is passed on to `fanout' random neighbours (`delta'), each
%%     news once. Every member met is dialled, and kept dialled for ever.</li>
%% <li>Every `digest_ms' a random neighbour gets a `digest' of our table. If its own differs it
%%     answers with a `pull'. So lost news heal.</li>
%% </ol>
%% A crashed or cut-off member stays a member and is retried with backoff, so a partition longer
%% than any timeout heals by itself. A member that leaves (command `leave') is remembered as
%% `left'. A node that finds itself called `left', or meets a later incarnation of itself, takes a
%% yet higher one.
%%
%% Commands: `leave' (answered `ok' after `linger_ms', when the news is out; the node then drops its
%% links and stays alone until it is started again) and `{forget, Node}' for a member that will
%% never come back (answered `ok' or `{error, unknown_member | self}'; a node that was forgotten in
%% error comes back by itself). Notices: `{member, Node, joined | left}', and once
%% `{warning, {members_full, Node}}'.
%% Not here: failure detection (links tell) and routes.
-module(weft_full_mesh_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2]).

-record(state, {
    self :: weft_core:node_id(),
    table :: weft_member_table:table(),
    links :: weft_wanted_links:links(),
    seeds :: [weft_core:node_id()],
    mode = joined :: joined | {leaving, Ref :: term()} | left,
    is_full_told = false :: boolean(),
    rand :: rand:state(),
    fanout :: pos_integer(),
    digest_ms :: pos_integer(),
    linger_ms :: pos_integer(),
    %% Effects of the event being handled, newest first.
    out = [] :: weft_core:effects()}).

-type message() :: {1, {pull | delta, [weft_member_table:entry()]}
                     | {digest, {non_neg_integer(), non_neg_integer()}}}.
%% `pull': this is all I know, send back what I lack. `delta': news.
-export_type([message/0]).

-define(VERSION, 1).

%% @doc See `weft_core'. Options: `seeds' ([]), `fanout' (4), `digest_ms' (10000), `linger_ms'
%% (500), and those of `weft_member_table:new/2' and `weft_wanted_links:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Options) ->
    Entry = {Self, maps:get(incarnation, Options, 0), member},
    Seeds = lists:usort(maps:get(seeds, Options, [])) -- [Self],
    State = #state{self = Self, table = weft_member_table:new(Entry, Options),
                   links = weft_wanted_links:new(Self, Options), seeds = Seeds,
                   rand = weft_core:seed(Self, ?MODULE, Options),
                   fanout = maps:get(fanout, Options, 4),
                   digest_ms = maps:get(digest_ms, Options, 10000),
                   linger_ms = maps:get(linger_ms, Options, 500)},
    finish(digest_later(lists:foldl(fun want/2, show(Entry, State), Seeds))).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #state{}) -> {#state{}, weft_core:effects()}.
handle(Event, NowMs, State) ->
    finish(on(Event, NowMs, State)).

on({neighbour_up, Node}, _NowMs, #state{links = Links} = State0) ->
    State = State0#state{links = weft_wanted_links:up(Node, Links)},
    send(Node, {pull, weft_member_table:entries(State#state.table)}, State);
on({neighbour_down, Node, _Reason}, _NowMs, State) ->
    links(weft_wanted_links:down(Node, State#state.links), State);
on({message, From, {?VERSION, Message}}, NowMs, State) ->
    message(Message, From, NowMs, State);
on({message, _From, _NewerVersion}, _NowMs, State) ->
    State;
on({timer, digest}, NowMs, State) ->
    digest_later(send_digest(expire(NowMs, State)));
on({timer, left}, _NowMs, #state{mode = {leaving, Ref}} = State) ->
    emit({reply, Ref, ok}, drop_links(State#state{mode = left}));
on({timer, Timer}, _NowMs, State) ->
    links(weft_wanted_links:timer(Timer, State#state.links), State);
on({command, Ref, leave}, NowMs, State) ->
    leave(Ref, NowMs, State);
on({command, Ref, {forget, Node}}, NowMs, State) ->
    forget(Ref, Node, NowMs, State).

message({delta, Entries}, From, NowMs, State) ->
    learn(Entries, From, NowMs, State);
message({pull, Entries}, From, NowMs, State0) ->
    State = learn(Entries, From, NowMs, State0),
    case weft_member_table:newer_than(Entries, State#state.table) of
        [] -> State;
        Lacking -> send(From, {delta, Lacking}, State)
    end;
message({digest, Digest}, From, _NowMs, #state{table = Table} = State) ->
    case weft_member_table:digest(Table) of
        Digest -> State;
        _Differs -> send(From, {pull, weft_member_table:entries(Table)}, State)
    end.

%% A node that has left listens no more: it must not be drawn back in by late news.
learn(_Entries, _From, _NowMs, #state{mode = Mode} = State) when Mode =/= joined ->
    State;
learn(Entries0, From, NowMs, #state{table = Table0} = State0) ->
    Entries = refute(Entries0, State0),
    {Changed, Refused, Table} = weft_member_table:merge(Entries, NowMs, Table0),
    State1 = warn(Refused, State0#state{table = Table}),
    spread(Changed, From, lists:foldl(fun apply_change/2, State1, Changed)).

warn([{Node, _, _} | _], #state{is_full_told = false} = State) ->
    emit({notice, {warning, {members_full, Node}}}, State#state{is_full_told = true});
warn(_Refused, State) ->
    State.

%% News about ourselves that we did not make: answer with an incarnation above it.
refute(Entries, #state{self = Self, table = Table}) ->
    {ok, Own} = weft_member_table:get(Self, Table),
    [case Entry of
         {Self, Incarnation, Status} when Status =:= left, Incarnation >= element(1, Own);
                                          Incarnation > element(1, Own) ->
             {Self, Incarnation + 1, member};
         _ ->
             Entry
     end || Entry <- Entries].

apply_change({Self, _, _} = Entry, #state{self = Self} = State) ->
    show(Entry, State);
apply_change({Node, _, member} = Entry, State) ->
    emit({notice, {member, Node, joined}}, want(Node, show(Entry, State)));
apply_change({Node, _, left} = Entry, State) ->
    emit({notice, {member, Node, left}},
         links(weft_wanted_links:unwant(Node, State#state.links), show(Entry, State))).

show({Node, Incarnation, member}, State) -> emit({view, {member, Node}, Incarnation}, State);
show({Node, _Incarnation, left}, State) -> emit({view, {member, Node}, delete}, State).

spread([], _From, State) ->
    State;
spread(Changed, From, #state{links = Links, fanout = Fanout} = State0) ->
    Others = lists:delete(From, weft_wanted_links:linked(Links)),
    {Receivers, State} = choose(Fanout, Others, State0),
    lists:foldl(fun(Node, S) -> send(Node, {delta, Changed}, S) end, State, Receivers).

send_digest(#state{links = Links, table = Table} = State0) ->
    {Receivers, State} = choose(1, weft_wanted_links:linked(Links), State0),
    lists:foldl(fun(Node, S) -> send(Node, {digest, weft_member_table:digest(Table)}, S) end,
                State, Receivers).

%% Spread over 3/4 to 5/4 of the interval so that nodes do not speak in step.
digest_later(#state{mode = left} = State) ->
    State;
digest_later(#state{digest_ms = Ms, rand = Rand0} = State) ->
    {Jitter, Rand} = rand:uniform_s(Rand0),
    emit({after_ms, round(Ms * (0.75 + Jitter / 2)), digest}, State#state{rand = Rand}).

expire(NowMs, #state{table = Table} = State) ->
    State#state{table = weft_member_table:expire(NowMs, Table)}.

leave(Ref, NowMs, #state{self = Self, table = Table0, mode = joined} = State0) ->
    {ok, {Incarnation, _}} = weft_member_table:get(Self, Table0),
    Gone = {Self, Incarnation, left},
    {_, _, Table} = weft_member_table:merge([Gone], NowMs, Table0),
    State1 = lists:foldl(fun(Node, S) -> send(Node, {delta, [Gone]}, S) end, State0,
                         weft_wanted_links:linked(State0#state.links)),
    State = State1#state{table = Table, mode = {leaving, Ref},
                         links = weft_wanted_links:rest(State1#state.links)},
    emit({after_ms, State#state.linger_ms, left}, show(Gone, State));
leave(Ref, _NowMs, State) ->
    emit({reply, Ref, ok}, State).

forget(Ref, Self, _NowMs, #state{self = Self} = State) ->
    emit({reply, Ref, {error, self}}, State);
forget(Ref, Node, NowMs, #state{table = Table} = State) ->
    case weft_member_table:get(Node, Table) of
        {ok, {Incarnation, member}} ->
            emit({reply, Ref, ok}, learn([{Node, Incarnation, left}], Node, NowMs, State));
        _ ->
            emit({reply, Ref, {error, unknown_member}}, State)
    end.

drop_links(#state{links = Links} = State) ->
    lists:foldl(fun(Node, S) -> links(weft_wanted_links:unwant(Node, S#state.links), S) end,
                State, weft_wanted_links:linked(Links)).

want(Node, State) ->
    links(weft_wanted_links:want(Node, State#state.links), State).

links({Links, Effects}, #state{out = Out} = State) ->
    State#state{links = Links, out = lists:reverse(Effects, Out)}.

%% Count random elements of List.
choose(Count, List, #state{rand = Rand0} = State) ->
    {Keyed, Rand} = lists:mapfoldl(fun(Element, R0) ->
                                       {Key, R} = rand:uniform_s(R0),
                                       {{Key, Element}, R}
                                   end, Rand0, List),
    {[Element || {_, Element} <- lists:sublist(lists:sort(Keyed), Count)],
     State#state{rand = Rand}}.

send(Node, Message, State) ->
    emit({send, Node, {?VERSION, Message}}, State).

emit(Effect, #state{out = Out} = State) ->
    State#state{out = [Effect | Out]}.

finish(#state{out = Out} = State) ->
    {State#state{out = []}, lists:reverse(Out)}.

%% @doc See `weft_topology'. Errors: unknown option, malformed seed.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(_Self, Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("full_mesh", Options, [seeds]) end,
       fun() -> weft_topology_rules:node_names("seeds of the full mesh",
                                               maps:get(seeds, Options, [])) end]).

%% @doc See `weft_topology'. Never partial.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    false.
