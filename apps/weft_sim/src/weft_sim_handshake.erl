%% SPDX-License-Identifier: Apache-2.0
%% @doc The handshake on a new lane in the simulator: the four messages of `weft_hello', with their
%% proofs. The counterpart of `weft_handshake', which reads and writes sockets; pure.
%%
%% The end with the smaller name dials. An end is done when the other one has proved that it is
%% there: what a life has sent before its end is no proof later, because a nonce of this lane is in
%% it.
-module(weft_sim_handshake).

-export([dial/2, listen/1, message/2]).
-export_type([handshake/0, own/0]).

-define(COOKIE, <<"cookie">>).

%% `nonce': another one for each lane and each time.
-type own() :: #{name := binary(), peer := binary(), incarnation := non_neg_integer(),
                 nonce := <<_:256>>}.
-opaque handshake() :: {listening, own()}
                     | {dialling, own(), Hello :: binary()}
                     | {answering, Incarnation :: non_neg_integer(), Proof :: binary(),
                        Answer :: binary()}
                     | {proving, Incarnation :: non_neg_integer(), Answer :: binary()}.

%% @doc The end that begins. Also its first message.
-spec dial(weft_hello:purpose(), own()) -> {Hello :: binary(), handshake()}.
dial(Purpose, #{name := Name, peer := Peer, incarnation := Incarnation, nonce := Nonce} = Own) ->
    Hello = weft_hello:hello(#{versions => weft_hello:versions(), purpose => Purpose,
                               nonce => Nonce, incarnation => Incarnation, listens => true,
                               cluster => <<"sim">>, name => Name, target => Peer}),
    {Hello, {dialling, Own, Hello}}.

%% @doc The end that waits for a hello.
-spec listen(own()) -> handshake().
listen(Own) -> {listening, Own}.

%% @doc A message came. What is to be sent; and the rest of the handshake, or who is there, or that
%% the other end has not proved to be there.
-spec message(binary(), handshake()) ->
          {[binary()], {more, handshake()} | {done, #{incarnation := non_neg_integer()}} | refused}.
message(Hello, {listening, #{name := Name, peer := Peer, incarnation := Own, nonce := Nonce}}) ->
    case weft_hello:parse_hello(Hello) of
        {ok, #{name := Peer, target := Name, incarnation := Incarnation, versions := Versions}} ->
            {ok, Version} = weft_hello:choose_version(weft_hello:versions(), Versions),
            Challenge = weft_hello:challenge(#{version => Version, status => ok, nonce => Nonce,
                                               incarnation => Own, name => Name}),
            Answer = weft_hello:answer(ok, weft_hello:mac(?COOKIE, listener, Hello, Challenge)),
            Proof = weft_hello:mac(?COOKIE, dialer, Hello, Challenge),
            {[Challenge], {more, {answering, Incarnation, Proof, Answer}}};
        _ ->
            {[], refused}
    end;
message(Challenge, {dialling, #{peer := Peer}, Hello}) ->
    case weft_hello:parse_challenge(Challenge) of
        {ok, #{status := ok, name := Peer, incarnation := Incarnation}} ->
            Answer = weft_hello:answer(ok, weft_hello:mac(?COOKIE, listener, Hello, Challenge)),
            {[weft_hello:mac(?COOKIE, dialer, Hello, Challenge)],
             {more, {proving, Incarnation, Answer}}};
        _ ->
            {[], refused}
    end;
message(Proof, {answering, Incarnation, Proof, Answer}) ->
    {[Answer], {done, #{incarnation => Incarnation}}};
message(Answer, {proving, Incarnation, Answer}) ->
    {[], {done, #{incarnation => Incarnation}}};
message(_Other, _Handshake) ->
    {[], refused}.
