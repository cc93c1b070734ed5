%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `client_server': the routes between clients lead through servers.
%%
%% Every server has a link to every other server, and every client to `links' of the servers. No two
%% clients are linked; they reach each other by circuits through servers. Nodes start with some
%% servers (`servers') and learn of all members by gossip (`weft_membership'; a member is of the
%% kind `client' or `server'). A server passes the news of a client to all its neighbours and the
%% news of a server to its own clients; a client passes nothing on.
%%
%% A client chooses its servers at random. When it lacks a link it tries a further server at once
%% and goes on trying the lost one; each attempt is repeated with backoff. As soon as it has enough
%% links it gives up the other attempts and surplus links, the latest first. So a client that
%% reaches no server is trying them all, and a client that lost a server has another within the time
%% of a dial.
%%
%% A link counts once its other end has said something on it, which each node with this topology
%% does when the link comes up. A node that has left its cluster, or has another topology, does not:
%% after `silent_ms' a further server is tried, as after a dial that was not answered.
%%
%% Further seeds (notice `{seeds, Nodes}') are taken for servers until gossip says otherwise. A
%% server that has left is not tried, unless all have left that a client knows: one may be started
%% again, and it does not dial clients.
%% Commands and notices: see `weft_membership'; besides `{warning, {not_a_server, Node}}' for a node
%% that is in `servers' and says that it is a client.
%% Not here: moving clients to a server that came back (they stay where they are), routes.
-module(weft_client_server_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, seeds/1]).

-record(state, {
    self :: weft_core:node_id(),
    role :: client | server,
    %% Servers by configuration, and those found later; some may turn out to be clients.
    servers :: ordsets:ordset(weft_core:node_id()),
    found = [] :: ordsets:ordset(weft_core:node_id()),
    membership :: weft_membership:membership(),
    links :: weft_wanted_links:links(),
    %% How many servers a client wants.
    target :: pos_integer(),
    %% Wanted nodes that were tried in vain, and have said nothing since.
    failing = [] :: [weft_core:node_id()],
    %% Of a client. Nodes with a link that have said something on it, in the order of their first
    %% words; and those with a link that have not, with the number of their link.
    held = [] :: [weft_core:node_id()],
    silent = #{} :: #{weft_core:node_id() => pos_integer()},
    next_link = 1 :: pos_integer(),
    silent_ms :: pos_integer(),
    rand :: rand:state(),
    %% Effects of the present event.
    out = [] :: weft_core:effects()}).

%% That of earlier code, which counted on each link.
-type former() :: {state, weft_core:node_id(), client | server, Servers :: list(), Found :: list(),
                   weft_membership:membership(), weft_wanted_links:links(),
                   Target :: pos_integer(), Failing :: list(), Held :: list(), rand:state(),
                   weft_core:effects()}.

-define(VERSION, {client_server, 1}).
-define(SILENT_MS, 5000).

%% @doc See `weft_core'. Options: `role', `servers' (a list, or `discovered' for none yet), `links'
%% (1; of a client), `silent_ms' (5000), and those of `weft_membership:new/3' and
%% `weft_wanted_links:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, #{role := Role} = Options) ->
    About = #{kind => Role, version => ?VERSION, salt => weft_membership},
    {Membership, Effects} = weft_membership:new(Self, About, Options#{fanout => all}),
    finish(balance(#state{self = Self, role = Role, membership = Membership,
                          servers = ordsets:from_list(seeds(Options)),
                          links = weft_wanted_links:new(Self, Options),
                          target = maps:get(links, Options, 1),
                          silent_ms = maps:get(silent_ms, Options, ?SILENT_MS),
                          rand = weft_core:seed(Self, ?MODULE, Options), out = Effects})).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #state{} | former()) ->
          {#state{}, weft_core:effects()}.
handle(Event, NowMs, State) ->
    finish(on(Event, NowMs, present(State))).

%% Code may be loaded while a driver has a state.
present(#state{} = State) ->
    State;
present({state, Self, Role, Servers, Found, Membership, Links, Target, Failing, Held, Rand, Out}) ->
    #state{self = Self, role = Role, servers = Servers, found = Found, membership = Membership,
           links = Links, target = Target, failing = Failing, held = Held, rand = Rand, out = Out,
           silent_ms = ?SILENT_MS}.

on({neighbour_up, Node} = Event, NowMs, State) ->
    gossip(Event, NowMs, balance(came_up(Node, State)));
on({neighbour_down, Node, _Reason}, _NowMs, State) ->
    balance(went_down(Node, State));
on({message, Node, {?VERSION, _}} = Event, NowMs, #state{silent = Silent} = State)
  when is_map_key(Node, Silent) ->
    balance(gossip(Event, NowMs, spoke(Node, State)));
on({timer, {silent, Node, Link}}, _NowMs, #state{silent = Silent} = State) ->
    case Silent of
        #{Node := Link} -> balance(failed(Node, State));
        #{} -> State
    end;
on({timer, {_Kind, Node, _Token} = Timer}, _NowMs, #state{links = Links} = State) ->
    case {Timer, weft_wanted_links:timer(Timer, Links)} of
        {{dial_timeout, _, _}, {_, [_ | _]} = Later} -> balance(links(Later, failed(Node, State)));
        {_, Done} -> links(Done, State)
    end;
%% Servers that left may have been forgotten.
on({timer, digest} = Event, NowMs, State) ->
    balance(gossip(Event, NowMs, State));
on({notice, {seeds, Seeds}}, _NowMs, State) ->
    balance(State#state{found = ordsets:from_list(Seeds)});
on(Event, NowMs, State) ->
    gossip(Event, NowMs, State).

came_up(Node, #state{role = server, links = Links} = State) ->
    State#state{links = weft_wanted_links:up(Node, Links)};
came_up(Node, #state{links = Links, held = Held, silent = Silent, next_link = Link,
                     silent_ms = Ms} = State) ->
    emit([{after_ms, Ms, {silent, Node, Link}}],
         State#state{links = weft_wanted_links:up(Node, Links), held = lists:delete(Node, Held),
                     silent = Silent#{Node => Link}, next_link = Link + 1}).

spoke(Node, #state{held = Held, silent = Silent, failing = Failing} = State) ->
    State#state{held = Held ++ [Node], silent = maps:remove(Node, Silent),
                failing = lists:delete(Node, Failing)}.

went_down(Node, #state{links = Links, held = Held, silent = Silent} = State) ->
    links(weft_wanted_links:down(Node, Links),
          failed(Node, State#state{held = lists:delete(Node, Held),
                                   silent = maps:remove(Node, Silent)})).

failed(Node, #state{failing = Failing} = State) ->
    IsWanted = lists:member(Node, wanted(State)),
    State#state{failing = [Node || IsWanted] ++ lists:delete(Node, Failing)}.

%% --- members --------------------------------------------------------------------------------

gossip(Event, NowMs, #state{links = Links, membership = Membership0} = State) ->
    Linked = weft_wanted_links:linked(Links),
    Neighbours = #{linked => Linked, listeners => listeners(Event, Linked, State)},
    {Changes, Effects, Membership} = weft_membership:handle(Event, Neighbours, NowMs, Membership0),
    emit(Effects, lists:foldl(fun change/2, State#state{membership = Membership}, Changes)).

listeners(_Event, _Linked, #state{role = client}) ->
    [];
listeners({message, From, _}, Linked, State) ->
    case kind(From, State) of
        server -> [Node || Node <- Linked, kind(Node, State) =/= server];
        _ClientOrUnknown -> lists:delete(From, Linked)
    end;
listeners(_Event, Linked, _State) ->
    Linked.

kind(Node, #state{membership = Membership}) ->
    case weft_member_table:get(Node, weft_membership:table(Membership)) of
        {ok, {_Incarnation, Kind}} -> Kind;
        error -> unknown
    end.

change({member, Node, client}, #state{servers = Configured} = State) ->
    case ordsets:is_element(Node, Configured) of
        true -> emit([{notice, {warning, {not_a_server, Node}}}], balance(State));
        false -> balance(State)
    end;
change({member, _Node, server}, State) ->
    balance(State);
change({left, _Node}, State) ->
    balance(State);
change(leaving, #state{links = Links} = State) ->
    State#state{links = weft_wanted_links:rest(Links)};
change(left, #state{links = Links} = State) ->
    give_up(weft_wanted_links:linked(Links), State).

%% --- whom to dial -----------------------------------------------------------------------------

%% Adapts what is wanted to the servers that there are and the links that are up.
balance(#state{membership = Membership} = State) ->
    case weft_membership:is_joined(Membership) of
        true -> balance(servers(State), State);
        false -> State
    end.

balance(Servers, #state{role = server} = State) ->
    want(Servers, give_up(wanted(State) -- Servers, State));
balance(Servers, #state{role = client, target = Target} = State0) ->
    State = claim(Servers, give_up(wanted(State0) -- Servers, State0)),
    {Up, Held} = {up(State), held(State)},
    case Target - length(Held) of
        Lacking when Lacking > 0 ->
            try_more(Lacking, Servers, give_up(Up -- wanted(State), State));
        _Enough ->
            %% Also links that came up after they were given up.
            give_up(lists:usort(Up ++ wanted(State)) -- lists:sublist(Held, Target), State)
    end.

%% A link that is up because a server dialled is better than one that has to be dialled.
claim(Servers, #state{target = Target} = State) ->
    Unclaimed = [Node || Node <- up(State) -- wanted(State), lists:member(Node, Servers)],
    want(lists:sublist(Unclaimed, max(0, Target - length(held(State)))), State).

%% An attempt that has not failed yet may still succeed.
try_more(Lacking, Servers, #state{failing = Failing} = State0) ->
    Wanted = wanted(State0),
    Hopeful = Wanted -- (held(State0) ++ Failing),
    {Chosen, State} = choose(Lacking - length(Hopeful), Servers -- Wanted, State0),
    want(Chosen, State).

%% A server knows one at least: itself.
servers(#state{self = Self, servers = Configured, found = Found,
               membership = Membership} = State) ->
    Known = weft_member_table:members(server, weft_membership:table(Membership)),
    Told = ordsets:union(Configured, Found),
    case ordsets:union(Known, weft_membership:strangers(Told, Membership)) of
        [] -> [Node || Node <- Told, kind(Node, State) =:= left];
        Servers -> lists:delete(Self, Servers)
    end.

wanted(#state{links = Links}) ->
    weft_wanted_links:wanted(Links).

%% The nodes that a client has a link to, those first on whose link it may count.
up(#state{held = Held, silent = Silent}) ->
    Held ++ maps:keys(Silent).

%% The links of a client to servers it wants, the oldest first.
held(#state{held = Held} = State) ->
    Wanted = wanted(State),
    [Node || Node <- Held, lists:member(Node, Wanted)].

want(Nodes, State) ->
    lists:foldl(fun(Node, S) -> links(weft_wanted_links:want(Node, S#state.links), S) end,
                State, Nodes).

give_up(Nodes, #state{failing = Failing} = State) ->
    lists:foldl(fun(Node, S) -> links(weft_wanted_links:unwant(Node, S#state.links), S) end,
                State#state{failing = Failing -- Nodes}, Nodes).

%% At most Count random elements of List.
choose(Count, List, #state{rand = Rand0} = State) when Count > 0 ->
    {Keyed, Rand} = lists:mapfoldl(fun(Element, R0) ->
                                       {Key, R} = rand:uniform_s(R0),
                                       {{Key, Element}, R}
                                   end, Rand0, List),
    {[Element || {_, Element} <- lists:sublist(lists:sort(Keyed), Count)],
     State#state{rand = Rand}};
choose(_None, _List, State) ->
    {[], State}.

links({Links, Effects}, State) ->
    emit(Effects, State#state{links = Links}).

emit(Effects, #state{out = Out} = State) ->
    State#state{out = Out ++ Effects}.

finish(#state{out = Out} = State) ->
    {State#state{out = []}, Out}.

%% --- configuration ----------------------------------------------------------------------------

%% @doc See `weft_topology'. Errors: unknown option; missing or wrong role; missing, empty or
%% malformed servers; a client among its own servers; links that are no number, or given for a
%% server.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(Self, Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("client_server", Options,
                                               [role, servers, links]) end,
       fun() -> role(Options) end,
       fun() -> server_names(Options) end,
       fun() -> not_its_own_server(Self, Options) end,
       fun() -> link_count(Options) end]).

role(#{role := Role}) when Role =:= client; Role =:= server ->
    ok;
role(#{role := Other}) ->
    {error, io_lib:format("role of topology client_server is ~0tp: write client or server",
                          [Other])};
role(_Options) ->
    {error, "topology client_server needs the role of this node: write role => client or "
            "role => server"}.

server_names(#{servers := discovered}) ->
    ok;
server_names(#{servers := []}) ->
    {error, "servers of topology client_server is empty: name at least one server, or write "
            "servers => discovered and configure discovery"};
server_names(#{servers := Servers}) ->
    weft_topology_rules:node_names("servers of topology client_server", Servers);
server_names(_Options) ->
    {error, "topology client_server needs its servers: write servers => ['name@host', ...] with "
            "one or more of them, the same list on every node"}.

not_its_own_server(Self, #{role := client, servers := Servers}) when is_list(Servers) ->
    case lists:member(Self, Servers) of
        true ->
            {error, io_lib:format("this node, ~0tp, is in servers of topology client_server, but "
                                  "its role is client: write role => server, or take it out",
                                  [Self])};
        false -> ok
    end;
not_its_own_server(_Self, _Options) ->
    ok.

link_count(#{role := server, links := _}) ->
    {error, "links of topology client_server is for clients: a server has a link to every other "
            "server, remove it"};
link_count(#{links := Links}) when not is_integer(Links); Links < 1; Links > 16 ->
    {error, io_lib:format("links of topology client_server is ~0tp: write how many servers a "
                          "client is linked to, from 1 to 16", [Links])};
link_count(_Options) ->
    ok.

%% @doc See `weft_topology'. Always partial, because clients are never linked to each other.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    true.

%% @doc See `weft_topology'.
-spec neighbours(#state{} | former()) -> [weft_core:node_id()].
neighbours(State) ->
    wanted(present(State)).

%% @doc See `weft_topology'.
-spec seeds(map()) -> [weft_core:node_id()].
seeds(#{servers := discovered}) -> [];
seeds(#{servers := Servers}) -> Servers.
