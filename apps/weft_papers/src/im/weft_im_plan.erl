%% SPDX-License-Identifier: Apache-2.0
%% @doc What all processes of an Instant Messenger know of it: which nodes have what, who keeps the
%% rows of a client, where a copy of them is, which nodes talk to each other (N. Chechina et al.,
%% "Evaluating Scalable Distributed Erlang for Scalability and Reliability", IEEE TPDS 28(8), 2017,
%% section 4.3). Pure.
%%
%% Nodes are given in this order: routers; the servers of the first router, of the second, ...; the
%% nodes of clients, which belong to routers in the same way. A router, its servers and its nodes
%% of clients are a group; the routers are one, too, if there are several.
%%
%% Servers form a ring: the copy of a database is on the server before. In the grouped form there is
%% a ring for each router, so that a copy stays in the group.
-module(weft_im_plan).

-export([new/2, groups/1, needed/1]).
-export([server_of/2, session_server/4, router_of/2, servers/1, servers/2, before/2, next/2,
         node_of/2, is_at/3, group_of/2, scopes/2, client_nodes/2, names/2]).
-export_type([service/0, name/0]).

%% A process that can be found by its name.
-type name() :: {router | router_supervisor, Router :: pos_integer()}
              | {server | notes, Server :: pos_integer()}
              | {client_db | chat_db, Server :: pos_integer(), main | replica}.
%% Times: `resend_ms' without an answer until something is sent again; `ping_ms' between two signs
%% of life of a client; `idle_ms' until a session ends in which nothing is said; `give_up_ms' until
%% a message that is not acknowledged is told to its sender.
-type service() :: #{run := integer(), names := weft_im_names:names(), is_grouped := boolean(),
                     routers := tuple(), servers := tuple(), clients := tuple(),
                     per_router := pos_integer(), groups := #{node() => pos_integer()},
                     resend_ms := pos_integer(), ping_ms := pos_integer(),
                     idle_ms := pos_integer(), give_up_ms := pos_integer()}.
-type size() :: #{routers := pos_integer(), servers := pos_integer(),
                  client_nodes := non_neg_integer(), _ => _}.

-define(DEFAULTS, #{names => global, is_grouped => false, resend_ms => 1000, ping_ms => 5000,
                    idle_ms => 300000, give_up_ms => 60000}).
-define(KEYS, [names, is_grouped, resend_ms, ping_ms, idle_ms, give_up_ms]).

%% @doc The plan for `routers', each with so many `servers' and `client_nodes', on these nodes.
%% `run' tells its names from those of another service.
-spec new(map(), [node()]) -> {ok, service()} | {error, iodata()}.
new(#{routers := Routers, servers := PerRouter, client_nodes := ClientNodes} = Size, Nodes) ->
    Options = maps:merge(?DEFAULTS, Size),
    case bad(Options, length(Nodes)) of
        [] ->
            {RouterNodes, Others} = lists:split(Routers, Nodes),
            {ServerNodes, Rest} = lists:split(Routers * PerRouter, Others),
            Clients = lists:sublist(Rest, Routers * ClientNodes),
            {ok, (maps:with(?KEYS, Options))#{
                   run => maps:get(run, Options, 0), per_router => PerRouter,
                   routers => list_to_tuple(RouterNodes), servers => list_to_tuple(ServerNodes),
                   clients => list_to_tuple(Clients),
                   groups => maps:from_list(numbered(Clients, ClientNodes)
                                            ++ numbered(ServerNodes, PerRouter)
                                            ++ numbered(RouterNodes, 1))}};
        [Text | _] ->
            {error, Text}
    end.

bad(#{routers := Routers, servers := PerRouter} = Options, Count) ->
    [io_lib:format("~s is ~0p: it must be a number above 0", [Key, Value])
     || Key <- [routers, servers, resend_ms, ping_ms, idle_ms, give_up_ms],
        Value <- [map_get(Key, Options)], not is_integer(Value) orelse Value < 1]
        ++ ["a copy of a database needs a second server"
            || Routers * PerRouter < 2 orelse map_get(is_grouped, Options) andalso PerRouter < 2]
        ++ [io_lib:format("~b nodes, and ~b are needed", [Count, needed(Options)])
            || Count < needed(Options)].

numbered([], _Each) -> [];
numbered(Nodes, Each) ->
    [{Node, 1 + Index div Each}
     || {Index, Node} <- lists:zip(lists:seq(0, length(Nodes) - 1), Nodes)].

%% @doc How many nodes there are.
-spec needed(size()) -> pos_integer().
needed(#{routers := Routers, servers := PerRouter, client_nodes := ClientNodes}) ->
    Routers * (1 + PerRouter + ClientNodes).

%% @doc The groups, as numbers of nodes: first that of the routers, if there are several.
-spec groups(size()) -> [[pos_integer(), ...]].
groups(#{routers := Routers, servers := PerRouter, client_nodes := ClientNodes}) ->
    [lists:seq(1, Routers) || Routers > 1]
        ++ [[Router | lists:seq(Routers + 1 + (Router - 1) * PerRouter,
                                Routers + Router * PerRouter)]
            ++ [Routers * (1 + PerRouter) + (Router - 1) * ClientNodes + Number
                || Number <- lists:seq(1, ClientNodes)]
            || Router <- lists:seq(1, Routers)].

%% ---- who has what ----

%% @doc The server with the rows of a client. (The hash function of the original crowds clients on
%% few servers; this one spreads them evenly.)
-spec server_of(Client :: binary(), service()) -> pos_integer().
server_of(Client, #{servers := Servers}) ->
    1 + erlang:phash2(Client, tuple_size(Servers)).

%% @doc The server for the session of a conversation, among those of the same router; with the next
%% attempt it is the next one, since the first may be lost.
-spec session_server(Conversation :: term(), Attempt :: non_neg_integer(), Server :: pos_integer(),
                     service()) -> pos_integer().
session_server(Conversation, Attempt, Server, #{per_router := PerRouter} = Service) ->
    First = (router_of(Server, Service) - 1) * PerRouter + 1,
    First + (erlang:phash2(Conversation, PerRouter) + Attempt) rem PerRouter.

-spec router_of(Server :: pos_integer(), service()) -> pos_integer().
router_of(Server, #{per_router := PerRouter}) ->
    1 + (Server - 1) div PerRouter.

-spec servers(service()) -> [pos_integer()].
servers(#{servers := Servers}) ->
    lists:seq(1, tuple_size(Servers)).

%% @doc The servers of a router.
-spec servers(Router :: pos_integer(), service()) -> [pos_integer()].
servers(Router, #{per_router := PerRouter}) ->
    lists:seq((Router - 1) * PerRouter + 1, Router * PerRouter).

%% @doc The server with the copy of what this one has.
-spec before(Server :: pos_integer(), service()) -> pos_integer().
before(Server, Service) -> in_ring(Server, -1, Service).

%% @doc The server of whose databases this one has the copy.
-spec next(Server :: pos_integer(), service()) -> pos_integer().
next(Server, Service) -> in_ring(Server, 1, Service).

in_ring(Server, Step, #{is_grouped := true, per_router := Size} = Service) ->
    First = (router_of(Server, Service) - 1) * Size + 1,
    First + (Server - First + Step + Size) rem Size;
in_ring(Server, Step, #{servers := Servers}) ->
    Size = tuple_size(Servers),
    1 + (Server - 1 + Step + Size) rem Size.

%% @doc The nodes of clients that belong to a router, with their numbers among all of these.
-spec client_nodes(Router :: pos_integer(), service()) -> [{pos_integer(), node()}].
client_nodes(Router, #{clients := Clients, routers := Routers}) ->
    Each = tuple_size(Clients) div tuple_size(Routers),
    [{Number, element(Number, Clients)}
     || Number <- lists:seq((Router - 1) * Each + 1, Router * Each)].

%% @doc All names of a router and its servers.
-spec names(Router :: pos_integer(), service()) -> [name()].
names(Router, Service) ->
    [{router, Router}, {router_supervisor, Router}]
        ++ lists:append([[{server, Server}, {notes, Server}]
                         ++ [{Db, Server, Copy} || Db <- [client_db, chat_db],
                                                   Copy <- [main, replica]]
                         || Server <- servers(Router, Service)]).

%% ---- where that is ----

%% @doc The node of the process with a name.
-spec node_of(name(), service()) -> node().
node_of({Kind, Router}, #{routers := Routers})
  when Kind =:= router; Kind =:= router_supervisor ->
    element(Router, Routers);
node_of({_Kind, Server}, #{servers := Servers}) ->
    element(Server, Servers);
node_of({_Db, Server, main}, #{servers := Servers}) ->
    element(Server, Servers);
node_of({_Db, Server, replica}, #{servers := Servers} = Service) ->
    element(before(Server, Service), Servers).

%% @doc Is that on one of these servers?
-spec is_at(name(), [Server :: pos_integer()], service()) -> boolean().
is_at({Kind, _Router}, _Servers, _Service) when Kind =:= router; Kind =:= router_supervisor ->
    false;
is_at({_Db, Server, replica}, Servers, Service) ->
    lists:member(before(Server, Service), Servers);
is_at(Name, Servers, _Service) ->
    lists:member(element(2, Name), Servers).

%% @doc The router to whose group a node, a process or a name belongs.
-spec group_of(node() | pid() | name(), service()) -> pos_integer().
group_of({Kind, Router}, _Service) when Kind =:= router; Kind =:= router_supervisor ->
    Router;
group_of(Name, Service) when is_tuple(Name) ->
    router_of(element(2, Name), Service);
group_of(Pid, Service) when is_pid(Pid) ->
    group_of(node(Pid), Service);
group_of(Node, #{groups := Groups}) ->
    map_get(Node, Groups).

%% @doc The groups, by their numbers in groups/1, in which a name is registered: the group of its
%% router, and for a router that of all routers.
-spec scopes(name(), service()) -> [pos_integer()].
scopes(_Name, #{routers := Routers}) when tuple_size(Routers) =:= 1 -> [1];
scopes({router, Router}, _Service) -> [1, Router + 1];
scopes(Name, Service) -> [group_of(Name, Service) + 1].
