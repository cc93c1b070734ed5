%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `full_mesh': every node is a neighbour of every other; members are found by gossip.
%%
%% A node starts with the names of some seeds and connects to them; more seeds may come later
%% (notice `{seeds, Nodes}'). Over these links it learns which members the others know
%% (`weft_membership', which also has the commands and notices). It dials every member and keeps
%% dialling: one that crashed or was cut off is retried with backoff, so a partition longer than any
%% timeout heals by itself. A node that has left drops its links and stays alone until it is started
%% again. Who is dialled and was never met here, as a seed or a member of another topology that ran
%% before, can be forgotten like a member.
%% Not here: failure detection (links tell; see `weft_swim_mesh_core' for large clusters) and
%% routes.
-module(weft_full_mesh_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, seeds/1]).

-record(state, {
    self :: weft_core:node_id(),
    membership :: weft_membership:membership(),
    links :: weft_wanted_links:links(),
    %% Seeds of the configuration, and those that were found later.
    seeds :: [weft_core:node_id()],
    found = [] :: [weft_core:node_id()],
    %% Effects of the present event.
    out = [] :: weft_core:effects()}).

-define(ABOUT, #{kind => member, version => {full_mesh, 1}, salt => ?MODULE}).

%% @doc See `weft_core'. Options: `seeds' ([]), `known' ([]; members that another topology knew),
%% and those of `weft_membership:new/3' and `weft_wanted_links:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Options) ->
    {Membership, Effects} = weft_membership:new(Self, ?ABOUT, Options),
    State = #state{self = Self, membership = Membership, out = Effects, seeds = seeds(Options),
                   links = weft_wanted_links:new(Self, Options)},
    finish(want(lists:usort(maps:get(known, Options, []) ++ seeds(Options)), State)).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #state{}) -> {#state{}, weft_core:effects()}.
handle(Event, NowMs, State) ->
    finish(on(Event, NowMs, State)).

on({neighbour_up, Node} = Event, NowMs, #state{links = Links} = State) ->
    gossip(Event, NowMs, State#state{links = weft_wanted_links:up(Node, Links)});
on({neighbour_down, Node, _Reason}, _NowMs, #state{links = Links} = State) ->
    links(weft_wanted_links:down(Node, Links), State);
on({timer, {_Kind, _Node, _Token} = Timer}, _NowMs, #state{links = Links} = State) ->
    links(weft_wanted_links:timer(Timer, Links), State);
on({notice, {seeds, Found}}, _NowMs, State) ->
    found(Found, State);
on({command, Ref, {forget, Node}} = Event, NowMs, State) ->
    case is_dialled_stranger(Node, State) of
        true -> gossip({command, Ref, {forget_stranger, Node}}, NowMs, give_up([Node], State));
        false -> gossip(Event, NowMs, State)
    end;
on(Event, NowMs, State) ->
    gossip(Event, NowMs, State).

found(Found, #state{found = Before, seeds = Seeds, membership = Membership} = State) ->
    Gone = weft_membership:strangers(Before -- (Seeds ++ Found), Membership),
    want(weft_membership:dialable(Found, Membership), give_up(Gone, State#state{found = Found})).

is_dialled_stranger(Node, #state{links = Links, membership = Membership}) ->
    lists:member(Node, weft_wanted_links:wanted(Links))
        andalso weft_membership:strangers([Node], Membership) =:= [Node].

gossip(Event, NowMs, #state{links = Links, membership = Membership0} = State) ->
    Linked = weft_wanted_links:linked(Links),
    Neighbours = #{linked => Linked, listeners => Linked -- sender(Event)},
    {Changes, Effects, Membership} = weft_membership:handle(Event, Neighbours, NowMs, Membership0),
    emit(Effects, lists:foldl(fun change/2, State#state{membership = Membership}, Changes)).

sender({message, From, _}) -> [From];
sender(_Event) -> [].

change({member, Node, member}, State) ->
    want([Node], State);
change({left, Node}, State) ->
    give_up([Node], State);
change(leaving, #state{links = Links} = State) ->
    State#state{links = weft_wanted_links:rest(Links)};
change(left, #state{links = Links} = State) ->
    give_up(weft_wanted_links:linked(Links), State).

want(Nodes, #state{self = Self} = State) ->
    lists:foldl(fun(Node, S) -> links(weft_wanted_links:want(Node, S#state.links), S) end,
                State, lists:delete(Self, Nodes)).

give_up(Nodes, State) ->
    lists:foldl(fun(Node, S) -> links(weft_wanted_links:unwant(Node, S#state.links), S) end,
                State, Nodes).

links({Links, Effects}, State) ->
    emit(Effects, State#state{links = Links}).

emit(Effects, #state{out = Out} = State) ->
    State#state{out = Out ++ Effects}.

finish(#state{out = Out} = State) ->
    {State#state{out = []}, Out}.

%% @doc See `weft_topology'.
-spec neighbours(#state{}) -> [weft_core:node_id()].
neighbours(#state{links = Links}) ->
    weft_wanted_links:wanted(Links).

%% @doc See `weft_topology'.
-spec seeds(map()) -> [weft_core:node_id()].
seeds(Options) ->
    maps:get(seeds, Options, []).

%% @doc See `weft_topology'. Errors: unknown option, malformed seed.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(_Self, Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("full_mesh", Options, [seeds, detector])
       end,
       fun() -> weft_topology_rules:node_names("seeds of the full mesh",
                                               maps:get(seeds, Options, [])) end,
       fun() -> detector(maps:get(detector, Options, ticks)) end]).

detector(ticks) -> ok;
detector(Other) -> {error, io_lib:format("detector of the full mesh is ~0tp: write ticks or swim",
                                         [Other])}.

%% @doc See `weft_topology'. Never partial.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    false.
