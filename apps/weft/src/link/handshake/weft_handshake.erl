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
%% and checks that of the listener. Target is the node that should answer.
-spec dial(weft_transport:socket(), node(), link | {weft_hello:purpose(), Token :: binary()},
           deadline()) -> {ok, peer()} | {error, term()}.
dial(Socket, Target, What, Deadline) ->
    BegunUs = erlang:monotonic_time(microsecond),
    Purpose = case What of link -> link; {Lane, _} -> Lane end,
    Key = case What of link -> cookie(Target); {_, Token} -> Token end,
    Hello = weft_hello:hello(#{versions => weft_hello:versions(), purpose => Purpose,
                               nonce => weft_random:bytes(32),
                               incarnation => weft_identity:incarnation(),
                               listens => weft_identity:listens(),
                               cluster => weft_identity:cluster(),
                               name => weft_identity:name(), target => atom_to_binary(Target)}),
    try
        ok = send(Socket, Hello),
        {Challenge, ChallengeBin} = recv_challenge(Socket, Deadline),
        ok = check_challenge(Challenge, Target),
        ok = send(Socket, weft_hello:mac(Key, dialer, Hello, ChallengeBin)),
        ok = check_answer(recv(Socket, Deadline),
                          weft_hello:mac(Key, listener, Hello, ChallengeBin)),
        #{incarnation := Incarnation, version := Version, name := Name} = Challenge,
        Secret = weft_hello:token(Key, Hello, ChallengeBin),
        ok = weft_transport:secure(Socket, dialer, Secret),
        {ok, #{node => Target, name => Name, incarnation => Incarnation, listens => true,
               token => Secret, role => dialer, proven_with => Key,
               version => Version, begun_us => BegunUs, peername => peername(Socket)}}
    catch
        throw:wrong_cookie when What =/= link -> {error, no_link};
        throw:Reason -> {error, Reason}
    end.

%% A stock node drops a connection that does not begin with its own handshake. Other programs may
%% answer our hello in any way.
recv_challenge(Socket, Deadline) ->
    try recv(Socket, Deadline) of
        ChallengeBin ->
            case weft_hello:parse_challenge(ChallengeBin) of
                {ok, Challenge} -> {Challenge, ChallengeBin};
                {error, malformed} -> throw(not_weft)
            end
    catch
        throw:closed -> throw(hung_up(weft_transport:tcp_socket(Socket)));
        throw:{not_a_node, _} -> throw(not_weft);
        throw:empty_message -> throw(not_weft)
    end.

%% Over TLS the peer has named itself weft before, so it refuses us, for example our certificate.
hung_up({ok, _Tcp}) -> not_weft;
hung_up(error) -> closed.

check_challenge(#{status := ok, version := Version, name := Name}, Target) ->
    {Min, Max} = weft_hello:versions(),
    case Name =:= atom_to_binary(Target) of
        true when Version >= Min, Version =< Max -> ok;
        true -> throw(wrong_version);
        false -> throw(wrong_target)
    end;
check_challenge(#{status := Status}, _Target) ->
    throw(Status).

check_answer(Answer, ExpectedMac) ->
    case weft_hello:parse_answer(Answer) of
        {ok, ok, ExpectedMac} -> ok;
        {ok, ok, _Other} -> throw(wrong_cookie);
        {ok, Status, _} -> throw(Status);
        {error, Reason} -> throw(Reason)
    end.

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
        Hello = parse(fun weft_hello:parse_hello/1, HelloBin),
        {Status, Key, Version} = judge(Hello, Admit),
        Challenge = challenge(Status, Version),
        ok = send(Socket, Challenge),
        ok = weft_stranger:heard(Place),
        Status =:= ok orelse throw({Status, claims(Hello)}),
        ok = check_proof(Socket, recv(Socket, Deadline), Key, HelloBin, Challenge, Hello),
        ok = send(Socket, weft_hello:answer(
                            ok, weft_hello:mac(Key, listener, HelloBin, Challenge))),
        #{name := Name, incarnation := Incarnation, listens := Listens,
          purpose := Purpose} = Hello,
        Secret = weft_hello:token(Key, HelloBin, Challenge),
        ok = weft_transport:secure(Socket, listener, Secret),
        {ok, #{node => node_of(Name), name => Name, incarnation => Incarnation,
               listens => Listens, role => listener, proven_with => Key, version => Version,
               begun_us => BegunUs, peername => peername(Socket), token => Secret}, Purpose}
    catch
        throw:Reason -> {error, Reason}
    end.

challenge(Status, Version) ->
    weft_hello:challenge(#{version => Version, status => Status,
                           nonce => weft_random:bytes(32),
                           incarnation => weft_identity:incarnation(),
                           name => weft_identity:name()}).

%% @doc As listener: refuses a connection before its hello is read, in such a way that a weft node
%% knows why. Does not wait.
-spec decline(weft_transport:socket(), weft_hello:status()) -> ok.
decline(Socket, Status) ->
    {_, Highest} = weft_hello:versions(),
    Message = challenge(Status, Highest),
    Framed = <<(byte_size(Message)):16, Message/binary>>,
    %% A new connection has room, unless it is a TLS one whose handshake is not done yet.
    _ = weft_transport:room(Socket) =/= {ok, 0} andalso weft_transport:try_send(Socket, Framed),
    ok.

check_proof(Socket, Proof, Key, HelloBin, Challenge, Hello) ->
    case weft_hello:mac(Key, dialer, HelloBin, Challenge) of
        Proof ->
            ok;
        _ ->
            {Status, Reason} = mistrust(Hello),
            _ = send(Socket, weft_hello:answer(Status, <<>>)),
            throw({Reason, claims(Hello)})
    end.

%% A further lane is proved by the token of its link. When the link is replaced, a lane of the link
%% before may be on its way.
mistrust(#{purpose := link}) -> {wrong_cookie, wrong_cookie};
mistrust(#{purpose := {lane, _, _}}) -> {no_link, outdated_lane}.

judge(#{versions := Versions, cluster := Cluster, target := Target, name := Name,
        incarnation := Incarnation, purpose := Purpose}, {Module, Function}) ->
    {_, Highest} = weft_hello:versions(),
    case {weft_hello:choose_version(weft_hello:versions(), Versions),
          weft_identity:cluster(), weft_identity:name()} of
        {{ok, _}, Cluster, Name} when Name =/= <<>> -> {same_name, <<>>, Highest};
        {{ok, Version}, Cluster, Target} when Target =/= <<>> ->
            {Status, Key} = Module:Function(Name, Incarnation, Purpose),
            {Status, Key, Version};
        {{ok, _}, Cluster, _} -> {wrong_target, <<>>, Highest};
        {{ok, _}, _, _} -> {wrong_cluster, <<>>, Highest};
        {error, _, _} -> {wrong_version, <<>>, Highest}
    end.

%% What an unauthenticated peer says of itself, for the log: cut to a printable length.
claims(#{name := Name, cluster := Cluster, versions := Versions}) ->
    #{name => string:slice(Name, 0, 80), cluster => string:slice(Cluster, 0, 80),
      versions => Versions}.

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

parse(Parser, Message) ->
    case Parser(Message) of
        {ok, Parsed} -> Parsed;
        {error, Reason} -> throw(Reason)
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
