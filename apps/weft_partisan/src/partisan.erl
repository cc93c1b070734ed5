%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `partisan' of Partisan 5 and 6 on distributed Erlang over weft, for programs that
%% were written for it. Thin: a process is a pid here, on every node, so most of this is `erlang'.
%%
%% New code calls `erlang' and `weft' directly. docs/guide/partisan.md says what is different, and
%% what is not there.
-module(partisan).
-compile({no_auto_import, [demonitor/1, demonitor/2, exit/2, is_alive/0, is_pid/1,
                           is_process_alive/1,
                           is_reference/1, make_ref/0, monitor/2, monitor/3, monitor_node/2,
                           node/0, node/1, nodes/0, nodes/1, process_info/1, process_info/2,
                           self/0, spawn/2, spawn/4, spawn_monitor/2, spawn_monitor/4,
                           whereis/1]}).

-export([start/0, stop/0, is_alive/0, join/1, leave/0]).
-export([forward_message/2, forward_message/3, forward_message/4,
         cast_message/2, cast_message/3, cast_message/4, send/2, send/3,
         send_after/3, send_after/4, cancel_timer/1, cancel_timer/2, broadcast/2]).
-export([node/0, node/1, nodes/0, nodes/1, nodestring/0, node_spec/0, node_spec/1, node_spec/2,
         is_connected/1, is_connected/2, is_fully_connected/1, disconnect_node/1,
         kill_connections/1,
         monitor_node/2, monitor_node/3, monitor_nodes/1, monitor_nodes/2,
         default_channel/0, channel_opts/1]).
-export([self/0, self/1, make_ref/0, spawn/2, spawn/4, spawn_monitor/2, spawn_monitor/4,
         monitor/1, monitor/2, monitor/3, demonitor/1, demonitor/2, exit/2, whereis/1,
         is_process_alive/1, process_info/1, process_info/2, is_pid/1, is_reference/1,
         is_local/1, is_local_name/1, is_local_name/2, is_local_pid/1, is_local_pid/2,
         is_local_reference/1, is_local_reference/2, is_self/1]).
-export_type([server_ref/0, node_spec/0]).

-type server_ref() :: pid() | atom() | {atom(), node()} | {global, term()}
                    | {via, module(), term()}.
%% Addresses and channels belong to Partisan's connections; weft finds a node by its name.
-type node_spec() :: #{name := node(), listen_addrs => [term()], channels => map(),
                       atom() => term()}.

%% --- the node and its cluster -----------------------------------------------------------------

-spec start() -> ok | {error, term()}.
start() ->
    case application:ensure_all_started(weft_partisan) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-spec stop() -> ok | {error, term()}.
stop() -> application:stop(weft_partisan).

-spec is_alive() -> boolean().
is_alive() -> erlang:whereis(weft_partisan_sup) =/= undefined.

%% @doc See `partisan_peer_service:join/1'.
-spec join(node() | string() | node_spec()) -> ok | {error, term()}.
join(Node) -> partisan_peer_service:join(Node).

-spec leave() -> ok | {error, term()}.
leave() -> partisan_peer_service:leave().

-spec node() -> node().
node() -> erlang:node().

-spec node(pid() | port() | reference() | {atom(), node()}) -> node().
node({_Name, Node}) -> Node;
node(Term) -> erlang:node(Term).

-spec nodestring() -> binary().
nodestring() -> atom_to_binary(erlang:node()).

%% @doc The other nodes that can be reached, connected or not.
-spec nodes() -> [node()].
nodes() -> weft_partisan_watch:up().

%% @doc With `visible' or `connected': as nodes/0. With `hidden' the other connected nodes, such as
%% tools. With other kinds: as `erlang:nodes/1'. With a list, what one of the kinds has.
-spec nodes(atom() | [atom()]) -> [node()].
nodes(Kinds) when is_list(Kinds) -> lists:usort(lists:append([nodes(Kind) || Kind <- Kinds]));
nodes(Kind) when Kind =:= visible; Kind =:= connected -> nodes();
nodes(hidden) -> erlang:nodes(hidden) -- nodes();
nodes(Kind) -> erlang:nodes(Kind).

%% @doc Without addresses, since join/1 needs none.
-spec node_spec() -> node_spec().
node_spec() -> spec(erlang:node()).

-spec node_spec(node() | string() | binary()) -> {ok, node_spec()} | {error, term()}.
node_spec(Node) -> node_spec(Node, #{}).

-spec node_spec(node() | string() | binary(), map()) -> {ok, node_spec()} | {error, term()}.
node_spec(Node, _Options) -> {ok, spec(partisan_peer_service:name(Node))}.

spec(Node) -> #{name => Node, listen_addrs => [], channels => #{}}.

%% @doc Whether the node can be reached.
-spec is_connected(node() | node_spec()) -> boolean().
is_connected(Node) -> lists:member(partisan_peer_service:name(Node), nodes()).

%% @doc All channels reach the nodes that one of them reaches.
-spec is_connected(node() | node_spec(), Channel :: atom()) -> boolean().
is_connected(Node, _Channel) -> is_connected(Node).

-spec is_fully_connected(node() | node_spec()) -> boolean().
is_fully_connected(Node) -> is_connected(Node).

%% @doc For the own node: leaves the cluster.
-spec disconnect_node(node()) -> boolean() | ignored.
disconnect_node(Node) when Node =:= erlang:node() ->
    ok = leave(),
    true;
disconnect_node(Node) -> erlang:disconnect_node(Node).

-spec kill_connections(node() | [node()]) -> ok.
kill_connections(Nodes) when is_list(Nodes) ->
    lists:foreach(fun erlang:disconnect_node/1, Nodes -- [erlang:node()]);
kill_connections(Node) -> kill_connections([Node]).

-spec monitor_node(node() | node_spec(), boolean()) -> true.
monitor_node(Node, Flag) -> erlang:monitor_node(partisan_peer_service:name(Node), Flag).

-spec monitor_node(node() | node_spec(), boolean(), [allow_passive_connect]) -> true.
monitor_node(Node, Flag, Options) ->
    erlang:monitor_node(partisan_peer_service:name(Node), Flag, Options).

%% @doc From now on the caller gets `{nodeup, Node}' and `{nodedown, Node}' for the nodes of
%% nodes/0, or no more.
-spec monitor_nodes(boolean()) -> ok | error.
monitor_nodes(Flag) -> monitor_nodes(Flag, []).

%% @doc With the option `nodedown_reason' the messages have a third element, as in Partisan. No node
%% is hidden.
-spec monitor_nodes(boolean(), [nodedown_reason | {node_type, all | visible | hidden}]) ->
          ok | error.
monitor_nodes(Flag, Options) when is_boolean(Flag), is_list(Options) ->
    Form = case lists:member(nodedown_reason, Options) of
               true -> with_reason;
               false -> plain
           end,
    case lists:member({node_type, hidden}, Options) of
        true -> ok;
        false -> monitor_reachable(is_alive(), Flag, Form)
    end.

monitor_reachable(true, Flag, Form) -> weft_partisan_watch:monitor_nodes(self(), Flag, Form);
monitor_reachable(false, _Flag, _Form) -> error.

%% @doc `undefined', as in Partisan: a message goes as with `!'.
-spec default_channel() -> atom().
default_channel() -> undefined.

%% @doc The options of a channel, as weft has them.
-spec channel_opts(atom()) -> map().
channel_opts(undefined) -> channel_opts(default);
channel_opts(Channel) ->
    case weft_channels:find(Channel) of
        undefined -> error({unknown_channel, Channel, weft_channels:names()});
        Options -> maps:with([parallelism, monotonic, compression], Options)
    end.

%% --- messages ---------------------------------------------------------------------------------

%% @doc As `!', but without an exception if a name has no process.
-spec forward_message(server_ref(), term()) -> ok | {error, term()}.
forward_message(Ref, Message) -> forward_message(Ref, Message, #{}).

%% @doc Options: channel, partition_key, ack, causal_label. With `ack' it returns when the message
%% is in the receiver's mailbox, or cannot be.
-spec forward_message(server_ref(), term(), weft_partisan_options:options()) ->
          ok | {error, term()}.
forward_message(Ref, Message, Options) ->
    to(place(Ref), Message, weft_partisan_options:translate(Options)).

%% @doc The receiver is a name on that node, or a pid, wherever it is.
-spec forward_message(node(), server_ref(), term(), weft_partisan_options:options()) ->
          ok | {error, term()}.
forward_message(Node, Name, Message, Options) when is_atom(Name) ->
    forward_message({Name, Node}, Message, Options);
forward_message(Node, Ref, Message, Options) when Node =:= erlang:node(); erlang:is_pid(Ref);
                                                  element(2, Ref) =:= Node ->
    forward_message(Ref, Message, Options);
forward_message(Node, {Kind, _} = Ref, _Message, _Options) ->
    weft_partisan_options:not_supported({Kind, on, Node, Ref}, "write the name alone, it is known "
                                        "on all nodes, or {Name, Node}");
forward_message(Node, Ref, _Message, _Options) ->
    error({bad_destination, {Ref, Node}}).

place({global, Name}) -> found(global:whereis_name(Name));
place({via, Module, Name}) -> found(Module:whereis_name(Name));
place({Name, Node}) when Node =:= erlang:node() -> place(Name);
place(Name) when is_atom(Name) -> found(erlang:whereis(Name));
place(Ref) -> Ref.

found(undefined) -> nobody;
found(Pid) -> Pid.

%% Partisan drops a message for a name without process; asked for an acknowledgement it says so.
to(nobody, _Message, #{ack := true}) -> {error, {not_delivered, noproc, 1}};
to(nobody, _Message, _Options) -> ok;
to(Place, Message, none) ->
    _ = erlang:send(Place, Message),
    ok;
to(Place, Message, Options) -> weft:send(Place, Message, Options).

%% @doc A cast to a `gen_server'.
-spec cast_message(server_ref(), term()) -> ok.
cast_message(Ref, Request) -> cast_message(Ref, Request, #{}).

-spec cast_message(server_ref(), term(), weft_partisan_options:options()) -> ok.
cast_message(Ref, Request, Options) ->
    _ = forward_message(Ref, {'$gen_cast', Request}, Options),
    ok.

-spec cast_message(node(), server_ref(), term(), weft_partisan_options:options()) -> ok.
cast_message(Node, Ref, Request, Options) ->
    _ = forward_message(Node, Ref, {'$gen_cast', Request}, Options),
    ok.

%% @doc The result is the message.
-spec send(server_ref(), Message) -> Message when Message :: term().
send(Ref, Message) ->
    _ = forward_message(Ref, Message),
    Message.

-spec send(server_ref(), term(), weft_partisan_options:options()) -> ok | {error, term()}.
send(Ref, Message, Options) -> forward_message(Ref, Message, Options).

-spec send_after(non_neg_integer(), server_ref(), term()) -> reference().
send_after(TimeMs, Receiver, Message) -> send_after(TimeMs, Receiver, Message, []).

%% @doc To a process of this node, as `erlang:send_after/4'.
-spec send_after(integer(), server_ref(), term(), [{abs, boolean()}]) -> reference().
send_after(TimeMs, Receiver, Message, Options)
  when is_atom(Receiver); erlang:node(Receiver) =:= erlang:node() ->
    erlang:send_after(TimeMs, Receiver, Message, Options);
send_after(TimeMs, {Name, Node}, Message, Options) when is_atom(Name), Node =:= erlang:node() ->
    erlang:send_after(TimeMs, Name, Message, Options);
send_after(_TimeMs, Receiver, _Message, _Options) ->
    weft_partisan_options:not_supported({send_after, Receiver},
                                        "set the timer for a process of this node, and send then").

-spec cancel_timer(reference()) -> non_neg_integer() | false | ok.
cancel_timer(Timer) -> erlang:cancel_timer(Timer).

-spec cancel_timer(reference(), list()) -> non_neg_integer() | false | ok.
cancel_timer(Timer, Options) -> erlang:cancel_timer(Timer, Options).

%% @doc Not there: handlers of Partisan's broadcast decide themselves what is new.
-spec broadcast(term(), module()) -> no_return().
broadcast(_Message, _Handler) ->
    weft_partisan_options:not_supported({partisan, broadcast, 2},
                                        "call weft:broadcast/2 and weft:subscribe/1").

%% --- processes --------------------------------------------------------------------------------

-spec self() -> pid().
self() -> erlang:self().

-spec self([cache]) -> pid().
self(_Options) -> erlang:self().

-spec make_ref() -> reference().
make_ref() -> erlang:make_ref().

-spec spawn(node(), fun(() -> term())) -> pid().
spawn(Node, Fun) -> erlang:spawn(Node, Fun).

-spec spawn(node(), module(), atom(), [term()]) -> pid().
spawn(Node, Module, Function, Args) -> erlang:spawn(Node, Module, Function, Args).

-spec spawn_monitor(node(), fun(() -> term())) -> {pid(), reference()}.
spawn_monitor(Node, Fun) -> erlang:spawn_monitor(Node, Fun).

-spec spawn_monitor(node(), module(), atom(), [term()]) -> {pid(), reference()}.
spawn_monitor(Node, Module, Function, Args) ->
    erlang:spawn_monitor(Node, Module, Function, Args).

-spec monitor(pid() | atom() | {atom(), node()}) -> reference().
monitor(Process) -> erlang:monitor(process, Process).

-spec monitor(process | port | time_offset, term()) -> reference().
monitor(Kind, Item) -> erlang:monitor(Kind, Item).

-spec monitor(process | port | time_offset, term(), [term()]) -> reference().
monitor(Kind, Item, Options) -> erlang:monitor(Kind, Item, Options).

-spec demonitor(reference()) -> true.
demonitor(Monitor) -> erlang:demonitor(Monitor).

-spec demonitor(reference(), [flush | info]) -> boolean().
demonitor(Monitor, Options) -> erlang:demonitor(Monitor, Options).

-spec exit(pid(), term()) -> true.
exit(Pid, Reason) -> erlang:exit(Pid, Reason).

%% @doc Of a name on another node, too.
-spec whereis(atom() | {atom(), node()}) -> pid() | port() | undefined.
whereis({Name, Node}) -> erpc:call(Node, erlang, whereis, [Name]);
whereis(Name) -> erlang:whereis(Name).

%% @doc Of a process on another node, too.
-spec is_process_alive(pid()) -> boolean().
is_process_alive(Pid) -> at(Pid, is_process_alive, [Pid]).

-spec process_info(pid()) -> [{atom(), term()}] | undefined.
process_info(Pid) -> at(Pid, process_info, [Pid]).

-spec process_info(pid(), atom() | [atom()]) -> {atom(), term()} | [{atom(), term()}] | undefined.
process_info(Pid, Items) -> at(Pid, process_info, [Pid, Items]).

at(Pid, Function, Args) when erlang:node(Pid) =:= erlang:node() -> apply(erlang, Function, Args);
at(Pid, Function, Args) -> erpc:call(erlang:node(Pid), erlang, Function, Args).

-spec is_pid(term()) -> boolean().
is_pid(Term) -> erlang:is_pid(Term).

-spec is_reference(term()) -> boolean().
is_reference(Term) -> erlang:is_reference(Term).

-spec is_local(pid() | port() | reference()) -> boolean().
is_local(Term) -> erlang:node(Term) =:= erlang:node().

-spec is_local_pid(pid()) -> boolean().
is_local_pid(Pid) when erlang:is_pid(Pid) -> is_local(Pid).

%% @doc Is it this pid, which is one of this node?
-spec is_local_pid(pid(), pid()) -> boolean().
is_local_pid(Pid, Other) -> Pid =:= Other andalso is_local_pid(Pid).

-spec is_local_name(atom() | {atom(), node()}) -> boolean().
is_local_name({Name, Node}) when is_atom(Name) -> Node =:= erlang:node();
is_local_name(Name) -> is_atom(Name).

-spec is_local_name(atom() | {atom(), node()}, atom()) -> boolean().
is_local_name({Name, Node}, Other) -> Name =:= Other andalso Node =:= erlang:node();
is_local_name(Name, Other) -> Name =:= Other.

-spec is_local_reference(reference()) -> boolean().
is_local_reference(Reference) when erlang:is_reference(Reference) -> is_local(Reference).

-spec is_local_reference(reference(), reference()) -> boolean().
is_local_reference(Reference, Other) -> Reference =:= Other andalso is_local_reference(Reference).

-spec is_self(term()) -> boolean().
is_self(Term) -> Term =:= erlang:self().
