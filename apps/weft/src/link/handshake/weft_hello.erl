%% SPDX-License-Identifier: Apache-2.0
%% @doc The four messages by which two nodes authenticate a new connection; pure.
%%
%% ```
%%  dialer                                             listener
%%    | hello: versions, purpose, cluster, names, nonce  ->  |
%%    | <-  challenge: status, version, name, nonce          |
%%    | proof: HMAC-SHA256(key, "dialer" hello challenge) -> |
%%    | <-  answer: status, HMAC-SHA256(key, "listener" ...)  |
%% '''
%% The key is the cookie, or for a further lane of a link the token of that link. The dialer proves
%% itself first, so a scanner gets nothing by which it could test guesses of the cookie. Both MACs
%% cover both first messages entirely, so names, incarnations and versions cannot be altered.
%% Each message follows its length in 16 bits; `message_bytes_max/0' bounds it.
%% Names stay binaries here: no atom is made before a peer is authenticated.
-module(weft_hello).

-export([hello/1, parse_hello/1, challenge/1, parse_challenge/1, mac/4, token/3,
         answer/2, parse_answer/1, message_bytes_max/0, versions/0, choose_version/2]).
-export_type([hello/0, challenge/0, status/0, purpose/0]).

-define(MAGIC, "WEFT").

%% The first lane of a link, or a further one: of the link itself (the class is empty) or of the
%% channel that the class names.
-type purpose() :: link | {lane, Class :: binary(), 1..63}.
-type hello() :: #{versions := {byte(), byte()}, purpose := purpose(), nonce := <<_:256>>,
                   incarnation := non_neg_integer(), listens := boolean(),
                   cluster := binary(), name := binary(), target := binary()}.
-type challenge() :: #{version := byte(), status := status(), nonce := <<_:256>>,
                       incarnation := non_neg_integer(), name := binary()}.
-type status() :: ok | wrong_cluster | wrong_version | wrong_target | simultaneous | refused
                | no_link | wrong_cookie | overload | same_name | superseded.

%% @doc Largest message of this handshake, in bytes.
-spec message_bytes_max() -> pos_integer().
message_bytes_max() -> 2048.

%% @doc Lowest and highest version of the wire format that this node speaks.
-spec versions() -> {byte(), byte()}.
versions() -> {1, 1}.

%% @doc The highest version that both ranges hold.
-spec choose_version({byte(), byte()}, {byte(), byte()}) -> {ok, byte()} | error.
choose_version({MinA, MaxA}, {MinB, MaxB}) ->
    Version = min(MaxA, MaxB),
    case Version >= MinA andalso Version >= MinB of
        true -> {ok, Version};
        false -> error
    end.

-spec hello(hello()) -> binary().
hello(#{versions := {Min, Max}, purpose := Purpose, nonce := Nonce, incarnation := Incarnation,
        listens := Listens, cluster := Cluster, name := Name, target := Target}) ->
    {Class, Index} = lane(Purpose),
    <<?MAGIC, Min, Max, Index, (byte_size(Class)), Class/binary, Nonce:32/binary, Incarnation:64,
      (flag(Listens)), (byte_size(Cluster)), Cluster/binary,
      (byte_size(Name)):16, Name/binary, (byte_size(Target)):16, Target/binary>>.

-spec parse_hello(binary()) -> {ok, hello()} | {error, malformed}.
parse_hello(<<?MAGIC, Min, Max, Index, ClassSize, Class:ClassSize/binary, Nonce:32/binary,
              Incarnation:64, Listens,
              ClusterSize, Cluster:ClusterSize/binary, NameSize:16, Name:NameSize/binary,
              TargetSize:16, Target:TargetSize/binary>>)
  when Min =< Max, Index < 64, Listens =< 1, Index > 0 orelse ClassSize =:= 0 ->
    case lists:all(fun is_name/1, [Class, Cluster, Name, Target]) of
        true -> {ok, #{versions => {Min, Max}, purpose => purpose(Class, Index), nonce => Nonce,
                       incarnation => Incarnation, listens => Listens =:= 1,
                       cluster => Cluster, name => Name, target => Target}};
        false -> {error, malformed}
    end;
parse_hello(_) ->
    {error, malformed}.

%% A name that passes can be made an atom and written to a log.
is_name(Name) ->
    case unicode:characters_to_list(Name) of
        Characters when is_list(Characters) -> length(Characters) =< 255;
        _ -> false
    end.

-spec challenge(challenge()) -> binary().
challenge(#{version := Version, status := Status, nonce := Nonce,
            incarnation := Incarnation, name := Name}) ->
    <<?MAGIC, Version, (status_code(Status)), Nonce:32/binary, Incarnation:64,
      (byte_size(Name)):16, Name/binary>>.

-spec parse_challenge(binary()) -> {ok, challenge()} | {error, malformed}.
parse_challenge(<<?MAGIC, Version, Status, Nonce:32/binary, Incarnation:64,
                  NameSize:16, Name:NameSize/binary>>) when Status =< 10 ->
    {ok, #{version => Version, status => status(Status), nonce => Nonce,
           incarnation => Incarnation, name => Name}};
parse_challenge(_) ->
    {error, malformed}.

%% @doc Proof of knowing Key, bound to both first messages as they were on the wire.
-spec mac(binary(), dialer | listener, binary(), binary()) -> <<_:256>>.
mac(Key, Role, Hello, Challenge) ->
    crypto:mac(hmac, sha256, Key, [atom_to_binary(Role), Hello, Challenge]).

%% @doc The secret by which further lanes attach to this link; never on the wire.
-spec token(binary(), binary(), binary()) -> <<_:256>>.
token(Key, Hello, Challenge) ->
    crypto:mac(hmac, sha256, Key, [<<"token">>, Hello, Challenge]).

-spec answer(status(), binary()) -> binary().
answer(Status, Mac) -> <<(status_code(Status)), Mac/binary>>.

-spec parse_answer(binary()) -> {ok, status(), binary()} | {error, malformed}.
parse_answer(<<Status, Mac/binary>>) when Status =< 10 -> {ok, status(Status), Mac};
parse_answer(_) -> {error, malformed}.

lane(link) -> {<<>>, 0};
lane({lane, Class, Index}) -> {Class, Index}.

purpose(_Empty, 0) -> link;
purpose(Class, Index) -> {lane, Class, Index}.

flag(true) -> 1;
flag(false) -> 0.

status_code(ok) -> 0;
status_code(wrong_cluster) -> 1;
status_code(wrong_version) -> 2;
status_code(wrong_target) -> 3;
status_code(simultaneous) -> 4;
status_code(refused) -> 5;
status_code(no_link) -> 6;
status_code(wrong_cookie) -> 7;
status_code(overload) -> 8;
status_code(same_name) -> 9;
status_code(superseded) -> 10.

status(0) -> ok;
status(1) -> wrong_cluster;
status(2) -> wrong_version;
status(3) -> wrong_target;
status(4) -> simultaneous;
status(5) -> refused;
status(6) -> no_link;
status(7) -> wrong_cookie;
status(8) -> overload;
status(9) -> same_name;
status(10) -> superseded.
