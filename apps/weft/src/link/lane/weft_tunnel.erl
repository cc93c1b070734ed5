%% SPDX-License-Identifier: Apache-2.0
%% @doc Lanes that are no sockets, for nodes that cannot dial each other.
%%
%% A provider implements this behaviour, outside of this application, and is chosen by the topology.
%% While one is in use, all links of this node are dialled through it; addresses and ports are not
%% looked up. A connection of a provider behaves like a TCP connection: bytes for `recv/3' until
%% `activate/3', then whole packets, which come to the controlling process as
%% `{tcp, Connection, Packet}', at most as many as were asked for; the end is
%% `{tcp_closed, Connection}'. Connection is `{tunnel, Provider, Ref}' as made by `connection/2'.
%%
%% `weft_transport' has the functions that links call; nothing above it sees a difference.
-module(weft_tunnel).

-export([use/1, release/1, provider/0, connection/2, connect/3, status/0]).
-export_type([connection/0]).

-define(KEY, weft_tunnel).

-type connection() :: {tunnel, Provider :: module(), Ref :: term()}.

%% The options are well formed, and what the provider needs is installed.
-callback check(Options :: map()) -> ok | {error, iolist()}.
-callback child_spec(Options :: map()) -> supervisor:child_spec().
%% The state of the provider, for people.
-callback status() -> map().
%% Links are about to go another way. The provider is stopped next, but the node is not, so other
%% nodes are not to be told that it stops.
-callback leave() -> ok.
%% no_such_node: the provider is sure that the node does not run. Does not wait for the peer.
-callback connect(node()) -> {ok, connection()} | {error, no_such_node | term()}.
-callback send(Ref :: term(), iodata()) -> ok | {error, term()}.
-callback try_send(Ref :: term(), iodata()) -> ok | busy | {error, term()}.
-callback room(Ref :: term()) -> {ok, non_neg_integer()} | {error, closed}.
-callback recv(Ref :: term(), Size :: non_neg_integer(), timeout()) ->
    {ok, binary()} | {error, term()}.
%% Both ends are authenticated and share Secret: what follows is to be protected by it.
-callback secure(Ref :: term(), Role :: dialer | listener, Secret :: binary()) -> ok.
-callback activate(Ref :: term(), Packets :: pos_integer(), PacketBytesMax :: pos_integer()) ->
    ok | {error, term()}.
-callback more(Ref :: term(), Packets :: pos_integer()) -> ok | {error, term()}.
%% What was sent is still delivered.
-callback close(Ref :: term()) -> ok.
-callback controlling_process(Ref :: term(), pid()) -> ok | {error, term()}.
-callback sent_packets(Ref :: term()) -> non_neg_integer().

%% @doc From now on links are dialled through this provider.
-spec use(module()) -> ok.
use(Provider) -> persistent_term:put(?KEY, Provider).

%% @doc No longer through this provider; links that are up go on as they are.
-spec release(module()) -> ok.
release(Provider) ->
    _ = persistent_term:get(?KEY, none) =:= Provider andalso persistent_term:erase(?KEY),
    ok.

-spec provider() -> {ok, module()} | none.
provider() ->
    case persistent_term:get(?KEY, none) of
        none -> none;
        Provider -> {ok, Provider}
    end.

-spec connection(module(), term()) -> connection().
connection(Provider, Ref) -> {tunnel, Provider, Ref}.

%% @doc Connects to a node, unless there is no provider; then Otherwise says what to do.
-spec connect(node(), fun((connection()) -> Result), Otherwise :: fun(() -> Result)) ->
          Result | {error, term()}.
connect(Node, Then, Otherwise) ->
    case provider() of
        none ->
            Otherwise();
        {ok, Provider} ->
            case Provider:connect(Node) of
                {ok, Connection} -> Then(Connection);
                {error, Reason} -> {error, Reason}
            end
    end.

%% @doc What the provider says of itself; `none' without one.
-spec status() -> map() | none.
status() ->
    case provider() of
        none -> none;
        {ok, Provider} -> Provider:status()
    end.
