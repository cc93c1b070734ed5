%% SPDX-License-Identifier: Apache-2.0
%% @doc One clear log event for each refused connection, but a bounded number of events.
%%
%% At most 20 events in 10 seconds are logged; the others are counted and reported in one line. So
%% port scans and broken peers cannot fill the log.
-module(weft_refusals).
-behaviour(gen_server).

-export([start_link/0, report/2, explain/1, format/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(EVENTS_MAX, 20).
-define(PERIOD_MS, 10000).

-record(state, {logged = 0 :: non_neg_integer(), suppressed = 0 :: non_neg_integer()}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc A connection from that address was refused.
-spec report({inet:ip_address(), inet:port_number()} | undefined, term()) -> ok.
report(Peername, Reason) ->
    weft_counters:add(refusals),
    gen_server:cast(?MODULE, {refused, Peername, Reason}).

%% @doc What a reason means and what to do about it.
-spec explain(term()) -> string().
explain({wrong_cookie, Claims}) ->
    claimed(Claims) ++ "its cookie is not ours: use the same -setcookie on both nodes";
explain({wrong_cluster, Claims}) ->
    claimed(Claims) ++ "it belongs to another cluster: set the same {weft, cluster_name}";
explain({wrong_version, #{versions := {Min, Max}} = Claims}) ->
    {OurMin, OurMax} = weft_hello:versions(),
    claimed(Claims) ++ io_lib:format("it speaks wire versions ~b to ~b, this node ~b to ~b: "
                                     "upgrade the older one", [Min, Max, OurMin, OurMax]);
explain({wrong_target, Claims}) ->
    claimed(Claims) ++ "it wanted another node than this one: a stale address or epmd entry";
explain({refused, Claims}) -> claimed(Claims) ++ "the link is cut by weft_fault";
explain({simultaneous, Claims}) -> claimed(Claims) ++ "this node is calling it just now";
explain({same_name, Claims}) ->
    claimed(Claims) ++ "it has the name of this node: give each node a name of its own";
explain({superseded, Claims}) ->
    claimed(Claims) ++ "a node of that name which was started later is linked to this one: stop "
        "the older one, or give each a name of its own";
explain({no_link, Claims}) ->
    claimed(Claims) ++ "a further lane for a link that is not up here";
explain({outdated_lane, Claims}) ->
    claimed(Claims) ++ "a further lane of a link that was replaced in the meantime";
explain({not_a_node, Start}) ->
    io_lib:format("not an Erlang node, it began with ~0p: a port scan or a wrong port", [Start]);
explain({tls, Reason}) ->
    io_lib:format("TLS failed, see {weft, transport} and {weft, tls_options} on both nodes: ~0p",
                  [Reason]);
explain({no_room, Reason}) ->
    io_lib:format("no room for another one (~0p): raise ulimit -n or +Q, or find what keeps so "
                  "many files and sockets open", [Reason]);
explain(wrong_cookie) -> "the cookies differ: use the same -setcookie on both nodes";
explain(wrong_cluster) -> "the cluster names differ: set the same {weft, cluster_name}";
explain(wrong_version) -> "no common version of the wire format: upgrade the older node";
explain(wrong_target) -> "another node answered under that address";
explain(same_name) -> "the other node has the name of this one: give each a name of its own";
explain(superseded) ->
    "a node with the name of this one was started later and is linked there: stop this one, or "
        "give each a name of its own";
explain(simultaneous) -> "both nodes called each other at once";
explain(too_many_new_hosts) ->
    "a node without weft that wants to be given a name, from a host not seen before, after too "
        "many of those: give it a name of its own, or wait";
explain(stock_denied) -> "a node without weft, and stock_nodes in {weft, tuning} is deny";
explain(no_such_node) ->
    "the node is not running: epmd on its host does not know it, or it said so at the broker";
explain(no_port) ->
    "its port is not known here: write it into ports in {weft, tuning}, or let the node call";
explain(no_epmd) ->
    "epmd on its host cannot be reached: the host or the network is down, or a firewall is between";
explain(not_weft) -> "the other side does not speak weft";
explain(econnrefused) -> "nothing listens on its port, or a firewall rejects";
explain(malformed) -> "a malformed hello: garbage or a truncated message";
explain(empty_message) -> "an empty message where a hello was due";
explain(timeout) -> "nothing came in time: a half-open connection or an overloaded peer";
explain(closed) -> "the other side closed the connection";
explain(forged) ->
    "a message at the broker that no node with our cookie has written: another cluster of the same "
        "{weft, cluster_name}, a node with another -setcookie, or another program";
explain(no_link) ->
    "a further lane for a link that is not up at the other node, or was replaced in the "
        "meantime";
explain(refused) -> "the other node refuses this one: the link is cut by its weft_fault";
explain(emsgsize) -> "a packet over the size that is allowed";
explain(bad_control_message) -> "a control message that is no Erlang term";
explain(malformed_frames) -> "session data that is not a sequence of frames";
explain({malformed_channel, Node, Channel}) ->
    io_lib:format("~ts sent a malformed payload on the channel ~ts", [Node, Channel]);
explain(not_at_broker) -> "the node has not announced itself at the broker, or no longer does";
explain(broker_down) -> "this node is not at the broker now, weft:status() tells why";
explain(broker_blocked) -> "the broker takes no messages now: it is short of memory or disk";
explain(broker_lost_it) -> "the broker did not keep a message: is a limit set for its queues?";
explain(message_missing) -> "a message did not come out of the broker";
explain(no_queue) ->
    "the queue of the other node is no more: it has stopped, or was cut off from the broker";
explain(overload) ->
    "too many connections wait for authentication, so it was dropped for a newer one: find the "
        "programs that make them, or raise pending_handshakes_max in {weft, tuning}";
explain(cut) -> "the link is cut by weft_fault";
explain(peer_stopped) -> "the other node stopped in an orderly way";
explain(undefined) -> "none";
explain(Reason) -> io_lib:format("~0p", [Reason]).

claimed(#{name := Name, cluster := Cluster}) ->
    io_lib:format("a peer that calls itself ~0p of cluster ~0p: ", [Name, Cluster]);
claimed(#{name := Name}) ->
    io_lib:format("a node without weft that calls itself ~0p: ", [Name]).

%% @private
-spec format(map()) -> {io:format(), [term()]}.
format(#{what := connection_refused, from := undefined, reason := Reason}) ->
    {"weft refused a connection: ~ts", [explain(Reason)]};
format(#{what := connection_refused, from := {Address, Port}, reason := Reason}) ->
    {"weft refused a connection from ~ts port ~b: ~ts",
     [inet:ntoa(Address), Port, explain(Reason)]};
format(#{what := connections_refused, suppressed := Count}) ->
    {"weft refused ~b more connections in the last ~b s", [Count, ?PERIOD_MS div 1000]}.

%% @private
init([]) -> {ok, #state{}}.

%% @private
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast({refused, Peername, Reason}, #state{logged = Logged} = State)
  when Logged < ?EVENTS_MAX ->
    Logged =:= 0 andalso erlang:send_after(?PERIOD_MS, self(), period),
    log(#{what => connection_refused, from => Peername, reason => Reason}),
    {noreply, State#state{logged = Logged + 1}};
handle_cast({refused, _Peername, _Reason}, #state{suppressed = Suppressed} = State) ->
    {noreply, State#state{suppressed = Suppressed + 1}};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info(period, #state{suppressed = Suppressed}) ->
    Suppressed > 0 andalso log(#{what => connections_refused, suppressed => Suppressed}),
    {noreply, #state{}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

log(Report) ->
    %% Without a domain, because the default handler of OTP drops domains that it does not know.
    logger:warning(Report, #{report_cb => fun ?MODULE:format/1}).
