%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs the authentication of `weft_hello' over a socket, as dialer or as listener.
%%
%% All this happens in a short-lived process of its own, under one deadline. Whatever the peer
%% sends, the worst outcome is {error, Reason} and a closed socket.
-module(weft_handshake).

-export([dial/4, first_message/2, answer/5, decline/2, send/2, recv/2]).
-export_type([peer/0, deadline/0, admit/0]).

-type deadline() :: integer().
-type peer() :: #{node := node() | undefined, name := binary(), incarnation := non_neg_integer(),
                  listens := boolean(), token := binary(), role := dialer | listener,
                  %% What the proof was made with: for a lane, the token of its link.
                  proven_with := binary(),
                  version := byte(), begun_us := integer(),
                  peername := {inet:ip_address(), inet:port_number()} | undefined}.

%% Called with the name, the incarnation and the purpose that a peer claims, before anything is
%% proved. It answers whether the peer may go on, and with which key it has to prove itself.
-type admit() :: {module(), Function :: atom()}.

%% @doc As dialer: proves knowledge of the cookie (or of the link's token, for a further lane)
%% and checks that of the listener. Target is the node that should answer. `hung_up': over TCP, the
%% connection was closed before it did, as a node without weft does; `not_weft': something else
%% answered.
-spec dial(weft_transport:socket(), node(), link | {weft_hello:purpose(), Token :: binary()},
           deadline()) -> {ok, peer()} | {error, term()}.
dial(Socket, Target, What, Deadline) ->
    BegunUs = erlang:monotonic_time(microsecond),
    {Purpose, Key} = case What of
                         link -> {link, cookie(Target)};
                         {_, _} -> What
                     end,
    try
        {more, Dialling} = sent(Socket, weft_handshake_core:dial(atom_to_binary(Target), Purpose,
                                                                 Key, own())),
        Challenge = recv_challenge(Socket, Deadline),
        Next = sent(Socket, weft_handshake_core:message(Challenge, Dialling)),
        {Facts, Purpose} = finish(Socket, Next, Deadline),
        {ok, secured(Socket, Facts#{node => Target}, BegunUs)}
    catch
        throw:Reason -> {error, Reason}
    end.

%% A stock node drops a connection that does not begin with its own handshake, and a weft node may
%% have no room for it. Other programs may answer our hello in any way.
recv_challenge(Socket, Deadline) ->
    try
        recv(Socket, Deadline)
    catch
        throw:closed -> throw(hung_up(weft_transport:tcp_socket(Socket)));
        throw:{not_a_node, _} -> throw(not_weft);
        throw:empty_message -> throw(not_weft)
    end.

%% Over TLS the peer has named itself weft before, so it refuses us, for example our certificate.
hung_up({ok, _Tcp}) -> hung_up;
hung_up(error) -> closed.

%% @doc As listener: reads the first message of an accepted connection and says what it is.
%% A stock node begins with its name message ('N' of the distribution handshake).
-spec first_message(weft_transport:socket(), deadline()) ->
          {hello, binary()} | {stock, binary()} | {error, term()}.
first_message(Socket, Deadline) ->
    try recv(Socket, Deadline) of
        <<"WEFT", _/binary>> = Hello -> {hello, Hello};
        <<$N, _/binary>> = Name -> {stock, Name};
        <<Start:8/binary, _/binary>> -> {error, {not_a_node, Start}};
        Short -> {error, {not_a_node, Short}}
    catch
        throw:Reason -> {error, Reason}
    end.

%% @doc As listener: answers a hello.
-spec answer(weft_transport:socket(), binary(), deadline(), weft_stranger:place(), admit()) ->
          {ok, peer(), weft_hello:purpose()} | {error, term()}.
answer(Socket, HelloBin, Deadline, Place, Admit) ->
    BegunUs = erlang:monotonic_time(microsecond),
    try
        Next = sent(Socket, admitted(weft_handshake_core:hello(HelloBin, own()), Admit)),
        ok = weft_stranger:heard(Place),
        {#{name := Name} = Facts, Purpose} = finish(Socket, Next, Deadline),
        {ok, secured(Socket, Facts#{node => node_of(Name)}, BegunUs), Purpose}
    catch
        throw:Reason -> {error, Reason}
    end.

admitted({[], {admit, {Name, Incarnation, Purpose}, Asking}}, {Module, Function}) ->
    weft_handshake_core:admitted(Module:Function(Name, Incarnation, Purpose), Asking);
admitted(Refused, _Admit) ->
    Refused.

%% @doc As listener: refuses a connection before its hello is read, in such a way that a weft node
%% knows why. Does not wait.
-spec decline(weft_transport:socket(), weft_hello:status()) -> ok.
decline(Socket, Status) ->
    Message = weft_handshake_core:declined(Status, own()),
    Framed = <<(byte_size(Message)):16, Message/binary>>,
    %% A new connection has room, unless it is a TLS one whose handshake is not done yet.
    _ = weft_transport:room(Socket) =/= {ok, 0} andalso weft_transport:try_send(Socket, Framed),
    ok.

%% --- both -------------------------------------------------------------------------------------

own() ->
    #{name => weft_identity:name(), incarnation => weft_identity:incarnation(),
      listens => weft_identity:listens(), cluster => weft_identity:cluster(),
      nonce => weft_random:bytes(32)}.

finish(_Socket, {done, Facts, Purpose}, _Deadline) ->
    {Facts, Purpose};
finish(Socket, {more, Core}, Deadline) ->
    Message = recv(Socket, Deadline),
    finish(Socket, sent(Socket, weft_handshake_core:message(Message, Core)), Deadline).

%% A peer that is refused may have hung up already.
sent(Socket, {Messages, {failed, Reason}}) ->
    try lists:foreach(fun(Message) -> ok = send(Socket, Message) end, Messages)
    catch throw:_ -> ok
    end,
    throw(Reason);
sent(Socket, {Messages, Next}) ->
    lists:foreach(fun(Message) -> ok = send(Socket, Message) end, Messages),
    Next.

secured(Socket, #{token := Secret, role := Role} = Facts, BegunUs) ->
    ok = weft_transport:secure(Socket, Role, Secret),
    Facts#{begun_us => BegunUs, peername => peername(Socket)}.

%% Made only after the peer has proved that it knows the cookie.
node_of(<<>>) -> undefined;
node_of(Name) -> binary_to_atom(Name).

%% The cookie for a node we dial.
cookie(Node) ->
    atom_to_binary(auth:get_cookie(Node)).

%% For later use: a closed socket does not know its address any more.
peername(Socket) ->
    case weft_transport:peername(Socket) of
        {ok, Peername} -> Peername;
        {error, _} -> undefined
    end.

%% @doc Sends a message of a handshake, with its length before it; throws the reason why not.
-spec send(weft_transport:socket(), binary()) -> ok | no_return().
send(Socket, Message) ->
    case weft_transport:send(Socket, [<<(byte_size(Message)):(length_bits(Socket))>>, Message]) of
        ok -> ok;
        {error, Reason} -> throw(Reason)
    end.

%% @doc Receives the next message, of at most the size of a hello; throws the reason if there is
%% none.
-spec recv(weft_transport:socket(), deadline()) -> binary() | no_return().
recv(Socket, Deadline) ->
    LengthBits = length_bits(Socket),
    case recv_bytes(Socket, LengthBits div 8, Deadline) of
        <<0:LengthBits>> ->
            throw(empty_message);
        <<Size:LengthBits>> = Head ->
            case Size =< weft_hello:message_bytes_max() of
                true -> recv_bytes(Socket, Size, Deadline);
                false -> throw({not_a_node, Head})
            end
    end.

%% As the stock carriers do, because a connection may begin with a message of theirs.
length_bits(Socket) ->
    case weft_transport:tcp_socket(Socket) of
        {ok, _} -> 16;
        error -> 32
    end.

recv_bytes(Socket, Size, Deadline) ->
    TimeoutMs = max(0, Deadline - erlang:monotonic_time(millisecond)),
    case weft_transport:recv(Socket, Size, TimeoutMs) of
        {ok, Bytes} -> Bytes;
        {error, Reason} -> throw(Reason)
    end.
