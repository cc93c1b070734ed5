%% SPDX-License-Identifier: Apache-2.0
%% @doc TCP and TLS behind one interface: just what links need of a socket. The third kind of lane
%% has no socket, because it goes through a tunnel (`weft_tunnel').
%%
%% A socket is passive and raw until `activate/2'; then it delivers whole packets ({packet, 4}) as
%% messages {tcp | ssl, Socket, Packet}, until a message that `lost/1' knows. Options of the
%% kernel's own carrier are honoured: inet_dist_use_interface, inet_dist_listen_min/max,
%% inet_dist_listen_options, inet_dist_connect_options, dist_nodelay.
-module(weft_transport).

-export([listen/1, explain_listen/2, accept/1, secure_accepted/2, connect/4, connect/5,
         may_speak_weft/1,
         way/1, send/2, room/1, try_send/2, recv/3, secure/3, activate/2, more/2, half/0, lost/1,
         close/1, abort/1, controlling_process/2, give/2, peername/1, user_setopts/2, getopts/2,
         sent_packets/1, statistics/1, losses/1, progress/1, tcp_socket/1]).
-export_type([socket/0, connected/0]).

-type socket() :: gen_tcp:socket() | ssl:sslsocket() | weft_tunnel:connection().
-type connected() :: fun(() -> ok | {error, term()}).

%% Packets delivered before `more/2' has to be called again. It is called at half, so the socket
%% never goes passive: a passive socket leaves the scheduler's poll set, which costs a thread
%% switch for each read.
-define(ACTIVE, 32).
-define(HALF, 16).
%% What weft calls itself in the TLS handshake (RFC 7301). Stock nodes do not answer to it.
-define(ALPN, <<"weft">>).
%% The driver is busy while its own queue has more bytes than HIGH, until it has LOW: a packet of
%% the usual size (two fragments of the VM) fits as a whole, so no sender waits for its own packet.
-define(QUEUE_HIGH, 524288).
-define(QUEUE_LOW, 65536).
%% Bytes that the kernel may hold beyond what the network takes now.
-define(UNSENT_BYTES, 65536).
%% As many as Linux lets wait by default. If the kernel has no room for another connection it drops
%% it, and the other side tries again after a second.
-define(BACKLOG, 4096).
%% The user cannot change how packets are read.
-define(OWN_OPTIONS, [active, packet, packet_size, mode, list, binary, deliver]).

%% @doc Opens the listening socket of this node on a port, or on one of the kernel's range if 0.
-spec listen(inet:port_number()) -> {ok, inet:socket()} | {error, term()}.
listen(0) ->
    First = kernel_env(inet_dist_listen_min, 0),
    listen(First, kernel_env(inet_dist_listen_max, First));
listen(Port) ->
    listen(Port, Port).

listen(First, Last) when First > Last ->
    {error, eaddrinuse};
listen(First, Last) ->
    Interface = case application:get_env(kernel, inet_dist_use_interface) of
                    {ok, Address} -> [{ip, Address}];
                    undefined -> []
                end,
    Options = [weft_config:get(family), binary, {active, false}, {packet, raw},
               {reuseaddr, true}, {backlog, ?BACKLOG}]
        ++ Interface ++ user_options(kernel_env(inet_dist_listen_options, [])),
    case gen_tcp:listen(First, Options) of
        {error, eaddrinuse} when First > 0 -> listen(First + 1, Last);
        Result -> Result
    end.

%% @doc In words, why this node could not listen on a port (0: on one of the kernel's range).
-spec explain_listen(inet:port_number(), inet:posix() | term()) -> string().
explain_listen(Port, Reason) ->
    lists:flatten(io_lib:format("weft: this node can not listen on ~ts: ~ts",
                                [ports(Port), listen_reason(Port, Reason)])).

ports(0) ->
    First = kernel_env(inet_dist_listen_min, 0),
    case kernel_env(inet_dist_listen_max, First) of
        0 -> "a port of the system's choice";
        First -> ["port ", integer_to_list(First)];
        Last -> io_lib:format("any port from ~b to ~b", [First, Last])
    end;
ports(Port) ->
    ["port ", integer_to_list(Port)].

listen_reason(0, eaddrinuse) ->
    "in use by other nodes or programs; stop one, or widen inet_dist_listen_min and "
        "inet_dist_listen_max of kernel";
listen_reason(_Port, eaddrinuse) ->
    "it is in use by another program or node; stop that, or give this node another port: see "
        "ports in {weft, tuning}";
listen_reason(_Port, Reason) when is_atom(Reason) ->
    io_lib:format("~ts (~ts)", [inet:format_error(Reason), Reason]);
listen_reason(_Port, Reason) ->
    io_lib:format("~0tp", [Reason]).

-spec accept(inet:socket()) -> {ok, inet:socket()} | {error, term()}.
accept(Listen) ->
    gen_tcp:accept(Listen).

%% @doc Runs the TLS handshake on an accepted socket if the transport is tls. That takes processes
%% and time, so it begins when the other side has sent something.
-spec secure_accepted(inet:socket(), timeout()) -> {ok, socket()} | {error, term()}.
secure_accepted(Socket, TimeoutMs) ->
    case weft_config:get(transport) of
        tcp -> {ok, Socket};
        tls -> handshake_when_spoken(gen_tcp:recv(Socket, 1, TimeoutMs), Socket, TimeoutMs)
    end.

handshake_when_spoken({ok, Said}, Socket, TimeoutMs) ->
    case gen_tcp:unrecv(Socket, Said) of
        ok -> with_ssl(fun() -> ssl:handshake(Socket, server_options(), TimeoutMs) end, TimeoutMs);
        {error, Reason} -> {error, Reason}
    end;
handshake_when_spoken({error, Reason}, _Socket, _TimeoutMs) ->
    {error, Reason}.

-spec connect(inet:ip_address(), inet:port_number(), string(), timeout()) ->
          {ok, socket()} | {error, term()}.
connect(Address, Port, Host, TimeoutMs) ->
    connect(Address, Port, Host, TimeoutMs, fun() -> ok end).

%% @doc The same; Connected is called when the other side has answered, before a handshake of TLS.
%% An error of it closes the connection, and is the result.
-spec connect(inet:ip_address(), inet:port_number(), string(), timeout(), connected()) ->
          {ok, socket()} | {error, term()}.
connect(Address, Port, Host, TimeoutMs, Connected) ->
    Options = [weft_config:get(family), binary, {active, false}, {packet, raw}]
        ++ user_options(kernel_env(inet_dist_connect_options, [])),
    case gen_tcp:connect(Address, Port, Options, TimeoutMs) of
        {ok, Socket} -> goes_on(Connected(), Socket, Host, TimeoutMs);
        {error, Reason} -> {error, Reason}
    end.

goes_on(ok, Socket, Host, TimeoutMs) ->
    secure_connected(weft_config:get(transport), Socket, Host, TimeoutMs);
goes_on({error, Reason}, Socket, _Host, _TimeoutMs) ->
    gen_tcp:close(Socket),
    {error, Reason}.

secure_connected(tcp, Socket, _Host, _TimeoutMs) ->
    {ok, Socket};
secure_connected(tls, Socket, Host, TimeoutMs) ->
    Secure = fun() -> ssl:connect(Socket, client_options(Host), TimeoutMs) end,
    case with_ssl(Secure, TimeoutMs) of
        {ok, Tls} -> {ok, Tls};
        {error, Reason} -> gen_tcp:close(Socket), {error, Reason}
    end.

%% @doc May the peer that we connected to speak weft? Over TCP only its answer will tell.
-spec may_speak_weft(socket()) -> boolean().
may_speak_weft(Socket) when is_port(Socket) -> true;
may_speak_weft({tunnel, _, _}) -> true;
may_speak_weft(Socket) -> ssl:negotiated_protocol(Socket) =:= {ok, ?ALPN}.

%% @doc Whether the connection goes through a tunnel, or over the network as usual.
-spec way(socket()) -> tunnel | network.
way({tunnel, _, _}) -> tunnel;
way(_Socket) -> network.

%% The carrier may need ssl before the release has started it.
with_ssl(Fun, TimeoutMs) ->
    case application:ensure_all_started(ssl) of
        {ok, _} ->
            Fun();
        {error, _} when TimeoutMs > 0 ->
            receive after 50 -> with_ssl(Fun, TimeoutMs - 50) end;
        {error, Reason} ->
            {error, {ssl_not_started, Reason}}
    end.

server_options() ->
    [{fail_if_no_peer_cert, true}, {alpn_preferred_protocols, [?ALPN]} | client_options()].

client_options(Host) ->
    Named = lists:keymember(server_name_indication, 1, weft_config:get(tls_options)),
    [{server_name_indication, Host} || not Named]
        ++ [{alpn_advertised_protocols, [?ALPN]} | client_options()].

client_options() ->
    Defaults = [{verify, verify_peer}],
    Given = weft_config:get(tls_options),
    [Option || {Key, _} = Option <- Defaults, not lists:keymember(Key, 1, Given)] ++ Given.

-spec send(socket(), iodata()) -> ok | {error, term()}.
send(Socket, Data) when is_port(Socket) -> gen_tcp:send(Socket, Data);
send({tunnel, Provider, Ref}, Data) -> Provider:send(Ref, Data);
send(Socket, Data) -> ssl:send(Socket, Data).

%% @doc Bytes that can be given to `try_send/2' before a caller would have to wait; none with TLS.
%% The driver lets a sender wait whose own packet fills its queue. To ask costs about as much as to
%% send, so callers count down the number that they got.
-spec room(socket()) -> {ok, non_neg_integer()} | {error, closed}.
room(Socket) when is_port(Socket) ->
    case erlang:port_info(Socket, queue_size) of
        {queue_size, Queued} when Queued =< ?QUEUE_LOW -> {ok, ?QUEUE_HIGH - 1 - Queued};
        {queue_size, _} -> {ok, 0};
        undefined -> {error, closed}
    end;
room({tunnel, Provider, Ref}) ->
    Provider:room(Ref);
room(_Tls) ->
    {ok, 0}.

%% @doc Sends if there is `room/1': from OTP 26 on a send that is refused leaves a monitor behind
%% until the socket is closed. TLS is always busy: its process would let the caller wait.
-spec try_send(socket(), iodata()) -> ok | busy | {error, term()}.
try_send({tunnel, Provider, Ref}, Data) ->
    Provider:try_send(Ref, Data);
try_send(Socket, Data) when is_port(Socket) ->
    case inet_tcp:send(Socket, Data, [nosuspend]) of
        {error, busy} -> busy;
        Result -> Result
    end;
try_send(_Tls, _Data) ->
    busy.

-spec recv(socket(), non_neg_integer(), timeout()) -> {ok, binary()} | {error, term()}.
recv(Socket, Size, TimeoutMs) when is_port(Socket) -> gen_tcp:recv(Socket, Size, TimeoutMs);
recv({tunnel, Provider, Ref}, Size, TimeoutMs) -> Provider:recv(Ref, Size, TimeoutMs);
recv(Socket, Size, TimeoutMs) -> ssl:recv(Socket, Size, TimeoutMs).

%% @doc Both ends have authenticated each other and share a secret. TCP does not use it, TLS has a
%% better one. A tunnel, into which others may put messages, protects what follows by it.
-spec secure(socket(), dialer | listener, binary()) -> ok.
secure({tunnel, Provider, Ref}, Role, Secret) -> Provider:secure(Ref, Role, Secret);
secure(_Socket, _Role, _Secret) -> ok.

%% @doc Switches to whole packets of at most BytesMax delivered as messages. Returns how many may
%% come before `more/2' is due.
-spec activate(socket(), pos_integer()) -> {ok, pos_integer()} | {error, term()}.
activate({tunnel, Provider, Ref}, BytesMax) ->
    case Provider:activate(Ref, ?ACTIVE, BytesMax) of
        ok -> {ok, ?HALF};
        Error -> Error
    end;
activate(Socket, BytesMax) ->
    Options = [{packet, 4}, {packet_size, BytesMax}, {active, ?ACTIVE},
               {high_watermark, ?QUEUE_HIGH}, {low_watermark, ?QUEUE_LOW},
               {nodelay, kernel_env(dist_nodelay, true)}],
    case setopts(Socket, Options ++ short_queue(Socket, os:type())) of
        ok -> {ok, ?HALF};
        Error -> Error
    end.

%% Bytes that the kernel takes before it can send them only wait there. A lane that is stalled
%% should show it, so that other lanes take over (TCP_NOTSENT_LOWAT of Linux, tcp(7)).
short_queue(Socket, {unix, linux}) when is_port(Socket) ->
    [{raw, 6, 25, <<?UNSENT_BYTES:32/native>>}];
short_queue(_Socket, _Os) ->
    [].

%% @doc How many packets to take before each `more/2', and how many to ask for then.
-spec half() -> pos_integer().
half() -> ?HALF.

%% @doc Allows as many further packets as were taken since the last call.
-spec more(socket(), pos_integer()) -> ok | {error, term()}.
more({tunnel, Provider, Ref}, Count) -> Provider:more(Ref, Count);
more(Socket, Count) -> setopts(Socket, [{active, Count}]).

%% @doc Does this message say that a socket is no more, and why? `emsgsize' is a packet that is too
%% large.
-spec lost(Message :: term()) -> {socket(), Reason :: term()} | none.
lost({tcp_closed, Socket}) -> {Socket, closed};
lost({ssl_closed, Socket}) -> {Socket, closed};
lost({tcp_error, Socket, Reason}) -> {Socket, Reason};
lost({ssl_error, Socket, Reason}) -> {Socket, Reason};
lost({'EXIT', Socket, Reason}) when is_port(Socket) -> {Socket, Reason};
lost(_Message) -> none.

-spec close(socket()) -> ok.
close(Socket) when is_port(Socket) -> gen_tcp:close(Socket);
close({tunnel, Provider, Ref}) -> Provider:close(Ref);
close(Socket) -> _ = ssl:close(Socket), ok.

%% @doc Closes and discards what was not sent. Otherwise a peer that does not read could hold up the
%% caller for seconds. TLS sends a last message of its own, which may take as long.
-spec abort(socket()) -> ok.
abort(Socket) when is_port(Socket) ->
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    gen_tcp:close(Socket);
abort({tunnel, Provider, Ref}) ->
    Provider:close(Ref);
abort(Socket) ->
    _ = spawn(fun() -> ssl:close(Socket) end),
    ok.

-spec controlling_process(socket(), pid()) -> ok | {error, term()}.
controlling_process(Socket, Pid) when is_port(Socket) ->
    gen_tcp:controlling_process(Socket, Pid);
controlling_process({tunnel, Provider, Ref}, Pid) ->
    Provider:controlling_process(Ref, Pid);
controlling_process(Socket, Pid) ->
    ssl:controlling_process(Socket, Pid).

%% @doc The same for a socket that has just been accepted: it is passive, so no message can have
%% come to the caller. Takes half the time.
-spec give(inet:socket(), pid()) -> ok.
give(Socket, Pid) ->
    try
        true = erlang:port_connect(Socket, Pid),
        true = unlink(Socket),
        ok
    catch
        %% Closed by now: Pid will find out.
        error:badarg -> ok
    end.

-spec peername(socket()) -> {ok, {inet:ip_address(), inet:port_number()}} | {error, term()}.
peername(Socket) when is_port(Socket) -> inet:peername(Socket);
peername({tunnel, _, _}) -> {error, enotsup};
peername(Socket) -> ssl:peername(Socket).

%% @doc How many packets were sent on a socket so far; 0 if it is closed.
-spec sent_packets(socket()) -> non_neg_integer().
sent_packets({tunnel, Provider, Ref}) ->
    Provider:sent_packets(Ref);
sent_packets(Socket) ->
    case getstat(Socket, [send_cnt]) of
        {ok, [{send_cnt, Count}]} -> Count;
        {error, _} -> 0
    end.

%% @doc What a socket has counted, and what waits in it; nothing if it is closed or is none.
-spec statistics(socket()) -> #{inet:stat_option() => integer()}.
statistics({tunnel, _, _}) ->
    #{};
statistics(Socket) ->
    case getstat(Socket, [recv_oct, recv_cnt, recv_max, recv_avg, recv_dvi, send_oct, send_cnt,
                          send_max, send_avg, send_pend]) of
        {ok, Counted} -> maps:from_list(Counted);
        {error, _} -> #{}
    end.

%% @doc How many segments of a connection were lost, where the kernel says so: those that it has
%% sent again, without those that the peer had all the same (TCP_INFO of Linux, tcp(7):
%% `tcpi_total_retrans' and `tcpi_dsack_dups'). A process of TLS would have to be waited for.
-spec losses(socket()) -> integer() | unknown.
losses(Socket) ->
    case tcp_info(Socket, 220) of
        <<_:100/binary, Again:32/native, _:112/binary, Had:32/native>> -> Again - Had;
        unknown -> unknown
    end.

%% @doc How many bytes of a connection the kernel has received, also of a packet that is not whole
%% yet, and how many the other one has acknowledged, where it says so (TCP_INFO of Linux:
%% `tcpi_bytes_received' and `tcpi_bytes_acked').
-spec progress(socket()) ->
          {Received :: non_neg_integer(), Acked :: non_neg_integer()} | unknown.
progress(Socket) ->
    case tcp_info(Socket, 136) of
        <<_:120/binary, Acked:64/native, Received:64/native>> -> {Received, Acked};
        unknown -> unknown
    end.

tcp_info(Socket, Bytes) when is_port(Socket) ->
    case os:type() =:= {unix, linux} andalso inet:getopts(Socket, [{raw, 6, 11, Bytes}]) of
        {ok, [{raw, 6, 11, <<Info:Bytes/binary>>}]} -> Info;
        _ -> unknown
    end;
tcp_info(_TlsOrTunnel, _Bytes) ->
    unknown.

getstat(Socket, Keys) when is_port(Socket) -> inet:getstat(Socket, Keys);
getstat(Socket, Keys) -> ssl:getstat(Socket, Keys).

-spec setopts(socket(), list()) -> ok | {error, term()}.
setopts(Socket, Options) when is_port(Socket) -> inet:setopts(Socket, Options);
setopts({tunnel, _, _}, _Options) -> {error, enotsup};
setopts(Socket, Options) -> ssl:setopts(Socket, Options).

%% @doc The same for options that come from a user, without those that decide how packets are read.
-spec user_setopts(socket(), list()) -> ok | {error, term()}.
user_setopts(Socket, Options) ->
    case Options -- user_options(Options) of
        [] -> setopts(Socket, Options);
        Bad -> {error, {badopts, Bad}}
    end.

-spec getopts(socket(), list()) -> {ok, list()} | {error, term()}.
getopts(Socket, Options) when is_port(Socket) -> inet:getopts(Socket, Options);
getopts({tunnel, _, _}, _Options) -> {error, enotsup};
getopts(Socket, Options) -> ssl:getopts(Socket, Options).

%% @doc The socket as a port, for the stock protocol; TLS and tunnels have none.
-spec tcp_socket(socket()) -> {ok, inet:socket()} | error.
tcp_socket(Socket) when is_port(Socket) -> {ok, Socket};
tcp_socket(_TlsOrTunnel) -> error.

kernel_env(Key, Default) ->
    application:get_env(kernel, Key, Default).

user_options(Options) ->
    [Option || Option <- Options, not lists:member(option_key(Option), ?OWN_OPTIONS)].

option_key(Option) when is_tuple(Option), tuple_size(Option) > 0 -> element(1, Option);
option_key(Option) -> Option.
