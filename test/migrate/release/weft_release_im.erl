%% SPDX-License-Identifier: Apache-2.0
%% @doc Drives RSD-IM on its own nodes as its own traffic generators do, but with pairs of clients
%% and numbers of messages that are given, so two runs have the same results. Its clients tell a
%% process `throughput_logger' of what they do; here this one counts.
-module(weft_release_im).

-export([run/3]).
-export([spawned/3, is_deployed/0, start_counter/0, counts/0, rows/0, talk/3, finished/0]).
-export([started/3, count/1, collect/1]).

-import(weft_release_nodes, [call/4, until/3]).

-define(ANSWER_MS, 2000).
-define(MINUTES, 12).
-define(SERVERS, [server_1, server_2, server_3, server_4]).
-define(NAMES, [router_1, router_2, client_1, client_2, dashboard | ?SERVERS]).

%% @doc Two routers with two servers each, and two nodes of clients: what the tables of the servers
%% hold when all clients are logged in, which sessions ended, and how many messages the clients of
%% each node sent (s), received (r) and know to be delivered (d).
-spec run(Application :: atom(), Paths :: [file:filename()],
          {Clients :: pos_integer(), Messages :: non_neg_integer()}) ->
          {#{Table :: atom() => [string()]}, [string()], [#{s | r | d => pos_integer()}]}.
run(Application, Paths, Traffic) ->
    weft_release_nodes:with(?NAMES, Paths, fun(Peers) -> ran(Application, Peers, Traffic) end).

ran(Application, #{dashboard := Board, client_1 := Client1, client_2 := Client2} = Peers,
    {Clients, Messages}) ->
    [{ok, _} = call(Peer, application, ensure_all_started, [Application])
     || Peer <- maps:values(Peers)],
    Servers = [maps:get(Name, Peers) || Name <- ?SERVERS],
    Nodes = [Node || {Name, {_, Node}} <- lists:sort(maps:to_list(Peers)), Name =/= dashboard],
    ok = call(Board, ?MODULE, spawned, [launcher, start_bencherl, [Nodes]]),
    until("deployed", fun() -> [call(Client, ?MODULE, is_deployed, [])
                                || Client <- [Client1, Client2]]
                                   =:= [{4, [4, 4, 4, 4]}, {4, [4, 4, 4, 4]}]
                      end, ?MINUTES),
    [true = call(Client, ?MODULE, start_counter, []) || Client <- [Client1, Client2]],
    ok = call(Board, ?MODULE, spawned, [doped_client, launch,
                                        [Clients, [Node || {_, Node} <- [Client1, Client2]]]]),
    until("logged in",
          fun() -> length(lists:append(maps:values(all_rows(Servers)))) =:= 2 * Clients end,
          ?MINUTES),
    Tables = all_rows(Servers),
    ok = call(Client1, ?MODULE, talk, [Clients div 2, Messages, collector(Board)]),
    until("talked", fun() -> length(call(Board, ?MODULE, finished, [])) =:= Clients div 2
                                 andalso all_rows(Servers) =:= Tables
                    end, ?MINUTES),
    {Tables, call(Board, ?MODULE, finished, []),
     [call(Client, ?MODULE, counts, []) || Client <- [Client1, Client2]]}.

collector(Board) ->
    Pid = call(Board, erlang, spawn, [?MODULE, collect, [[]]]),
    true = call(Board, erlang, register, [finished, Pid]),
    Pid.

all_rows(Servers) ->
    lists:foldl(fun(Server, Rows) -> maps:merge(Rows, call(Server, ?MODULE, rows, [])) end, #{},
                Servers).

%%% On the nodes

%% @doc Calls a function in a process of its own, with nothing printed.
-spec spawned(module(), atom(), [term()]) -> ok.
spawned(Module, Function, Arguments) ->
    _ = spawn(?MODULE, started, [Module, Function, Arguments]),
    ok.

%% @private
-spec started(module(), atom(), [term()]) -> term().
started(Module, Function, Arguments) ->
    group_leader(weft_release_nodes:silent(), self()),
    apply(Module, Function, Arguments).

%% @doc Asked on a client's node: do all routers know all servers?
-spec is_deployed() -> {Routers :: non_neg_integer(), Servers :: [non_neg_integer()]} | false.
is_deployed() ->
    case global:whereis_name(routers_db) of
        undefined -> false;
        Pid ->
            Pid ! {retrieve_routers, self()},
            receive
                {Routers, router_list} ->
                    {length(Routers), lists:append([servers(Router) || {_, _, Router} <- Routers])}
            after ?ANSWER_MS -> false
            end
    end.

servers(Router) ->
    Router ! {request_servers_list, self()},
    receive {list_servers, Servers} -> [length(Servers)] after ?ANSWER_MS -> [] end.

%% @doc Rows of the tables of this server's node: names of clients, and sessions.
-spec rows() -> #{Table :: atom() => [string()]}.
rows() ->
    maps:from_list([{Table, lists:sort([element(1, Row) || Row <- ets:tab2list(Table)])}
                    || Table <- ets:all(), is_atom(Table),
                       lists:suffix("_DB", atom_to_list(Table))]).

%% @doc On a client's node.
-spec start_counter() -> true.
start_counter() -> register(throughput_logger, spawn(?MODULE, count, [#{}])).

%% @private
count(Counts) ->
    receive
        {counts, From} -> From ! {counts, Counts}, ?MODULE:count(Counts);
        {What, _Metadata, _Status} ->
            ?MODULE:count(maps:update_with(What, fun(Count) -> Count + 1 end, 1, Counts))
    end.

%% @doc Messages sent (s), received (r) and delivered (d) by the clients of this node.
-spec counts() -> #{s | r | d => pos_integer()}.
counts() ->
    throughput_logger ! {counts, self()},
    receive {counts, Counts} -> Counts after ?ANSWER_MS -> #{} end.

%% @doc On the first client's node: its client number N talks to number N of the other node. They
%% exchange so many messages after the first one.
-spec talk(Pairs :: pos_integer(), Messages :: non_neg_integer(), Collector :: pid()) -> ok.
talk(Pairs, Messages, Collector) ->
    lists:foreach(
      fun(Number) ->
              Name = lists:concat(["tc", Number]),
              [{_, Pid, _}] = ets:lookup(client_1_Client_DB, Name ++ "_1"),
              Pid ! {Name ++ "_1", Name ++ "_2", {"hello", Messages, Collector}, send_message}
      end, lists:seq(1, Pairs)).

%% @private Registered as `finished'.
collect(Sessions) ->
    receive
        {finished_chat, Session} -> ?MODULE:collect([Session | Sessions]);
        {sessions, From} -> From ! {sessions, Sessions}, ?MODULE:collect(Sessions)
    end.

%% @doc The sessions that have ended.
-spec finished() -> [string()].
finished() ->
    finished ! {sessions, self()},
    receive {sessions, Sessions} -> lists:sort(Sessions) after ?ANSWER_MS -> [] end.
