%% SPDX-License-Identifier: Apache-2.0
%% @doc Both ends of the authentication of a new connection: what is sent after which message of
%% `weft_hello', when the peer is known, and why not. Pure; `weft_handshake' runs it over a socket.
%%
%% ```
%%  dial/4 ──hello──▶ hello/2, then admitted/2 by those who know the links of the node
%%  message/2 ◀──challenge──┘
%%     └──────proof──▶ message/2: done
%%  message/2: done ◀──answer──┘
%% '''
%% The listener proves itself last, to a dialer that has proved itself before.
-module(weft_handshake_core).

-export([dial/4, hello/2, admitted/2, message/2, declined/2]).
-export_type([own/0, facts/0, claim/0, state/0, next/0]).

%% What this node says of itself. The nonce is another one for each connection.
-type own() :: #{name := binary(), incarnation := non_neg_integer(), listens := boolean(),
                 cluster := binary(), nonce := <<_:256>>}.
%% What is known of the other end when it has proved itself. proven_with: the key of the proofs.
-type facts() :: #{name := binary(), incarnation := non_neg_integer(), listens := boolean(),
                   token := binary(), role := dialer | listener, proven_with := binary(),
                   version := byte()}.
%% What a peer says that has proved nothing yet.
-type claim() :: {Name :: binary(), Incarnation :: non_neg_integer(), weft_hello:purpose()}.
-record(dialling, {target :: binary(), purpose :: weft_hello:purpose(), key :: binary(),
                   hello :: binary()}).
-record(proving, {facts :: facts(), purpose :: weft_hello:purpose(), answer :: binary()}).
-record(asking, {own :: own(), hello :: weft_hello:hello(), raw :: binary(), version :: byte()}).
-record(awaiting, {hello :: weft_hello:hello(), raw :: binary(), challenge :: binary(),
                   facts :: facts()}).
-opaque state() :: #dialling{} | #proving{} | #asking{} | #awaiting{}.
%% What to send, and what becomes of the handshake.
-type next() :: {[Message :: binary()], {more, state()} | {done, facts(), weft_hello:purpose()}
                                      | {failed, Reason :: term()}}.

%% --- the end that dials -----------------------------------------------------------------------

%% @doc Begins. The key is the cookie, or the token of the link that a further lane is for.
-spec dial(Target :: binary(), weft_hello:purpose(), Key :: binary(), own()) -> next().
dial(Target, Purpose, Key, #{name := Name, incarnation := Incarnation, listens := Listens,
                             cluster := Cluster, nonce := Nonce}) ->
    Hello = weft_hello:hello(#{versions => weft_hello:versions(), purpose => Purpose,
                               nonce => Nonce, incarnation => Incarnation, listens => Listens,
                               cluster => Cluster, name => Name, target => Target}),
    {[Hello], {more, #dialling{target = Target, purpose = Purpose, key = Key, hello = Hello}}}.

challenged(Raw, #{status := ok, version := Version, name := Target, incarnation := Incarnation},
           #dialling{target = Target, purpose = Purpose, key = Key, hello = Hello}) ->
    {Min, Max} = weft_hello:versions(),
    case Version >= Min andalso Version =< Max of
        true ->
            Facts = #{name => Target, incarnation => Incarnation, listens => true,
                      role => dialer, version => Version, proven_with => Key,
                      token => weft_hello:token(Key, Hello, Raw)},
            {[weft_hello:mac(Key, dialer, Hello, Raw)],
             {more, #proving{facts = Facts, purpose = Purpose,
                             answer = weft_hello:mac(Key, listener, Hello, Raw)}}};
        false ->
            failed(wrong_version)
    end;
challenged(_Raw, #{status := ok}, #dialling{}) ->
    failed(wrong_target);
challenged(_Raw, #{status := Status}, #dialling{purpose = Purpose}) ->
    failed(refused(Status, Purpose)).

answered({ok, ok, Answer}, #proving{facts = Facts, purpose = Purpose, answer = Answer}) ->
    {[], {done, Facts, Purpose}};
answered({ok, ok, _Other}, #proving{purpose = Purpose}) ->
    failed(refused(wrong_cookie, Purpose));
answered({ok, Status, _}, #proving{purpose = Purpose}) ->
    failed(refused(Status, Purpose));
answered({error, Reason}, #proving{}) ->
    failed(Reason).

%% The key of a further lane is no cookie: the link that it is for has ended or was replaced.
refused(wrong_cookie, {lane, _, _}) -> no_link;
refused(Status, _Purpose) -> Status.

%% --- the end that listens ---------------------------------------------------------------------

%% @doc The first message of a dialer came. `admit' asks whether a peer that claims this may go on,
%% and with which key it has to prove itself: `admitted/2' takes that.
-spec hello(Raw :: binary(), own()) ->
          {[], {admit, claim(), state()}} | {[Message :: binary()], {failed, Reason :: term()}}.
hello(Raw, Own) ->
    case weft_hello:parse_hello(Raw) of
        {ok, Hello} -> judged(judge(Hello, Own), Raw, Hello, Own);
        {error, Reason} -> {[], {failed, Reason}}
    end.

judged({ok, Version}, Raw, Hello, Own) ->
    #{name := Name, incarnation := Incarnation, purpose := Purpose} = Hello,
    {[], {admit, {Name, Incarnation, Purpose},
          #asking{own = Own, hello = Hello, raw = Raw, version = Version}}};
judged({refuse, Status}, _Raw, Hello, Own) ->
    {[declined(Status, Own)], {failed, {Status, claims(Hello)}}}.

judge(#{versions := Versions, cluster := Cluster, target := Target, name := Name},
      #{cluster := OwnCluster, name := Own}) ->
    case {weft_hello:choose_version(weft_hello:versions(), Versions), OwnCluster, Own} of
        {{ok, _}, Cluster, Name} when Name =/= <<>> -> {refuse, same_name};
        {{ok, Version}, Cluster, Target} when Target =/= <<>> -> {ok, Version};
        {{ok, _}, Cluster, _} -> {refuse, wrong_target};
        {{ok, _}, _, _} -> {refuse, wrong_cluster};
        {error, _, _} -> {refuse, wrong_version}
    end.

%% @doc What was decided about the claim. Status `ok' lets the peer go on to its proof.
-spec admitted({weft_hello:status(), Key :: binary()}, state()) -> next().
admitted({Status, Key}, #asking{own = Own, hello = Hello, raw = Raw, version = Version}) ->
    Challenge = challenge(Status, Version, Own),
    #{name := Name, incarnation := Incarnation, listens := Listens} = Hello,
    {[Challenge],
     case Status of
         ok ->
             Facts = #{name => Name, incarnation => Incarnation, listens => Listens,
                       role => listener, version => Version, proven_with => Key,
                       token => weft_hello:token(Key, Raw, Challenge)},
             {more, #awaiting{hello = Hello, raw = Raw, challenge = Challenge, facts = Facts}};
         _ ->
             {failed, {Status, claims(Hello)}}
     end}.

challenge(Status, Version, #{name := Name, incarnation := Incarnation, nonce := Nonce}) ->
    weft_hello:challenge(#{version => Version, status => Status, nonce => Nonce,
                           incarnation => Incarnation, name => Name}).

proved(Proof, #awaiting{hello = #{purpose := Purpose} = Hello, raw = Raw, challenge = Challenge,
                        facts = #{proven_with := Key} = Facts}) ->
    case weft_hello:mac(Key, dialer, Raw, Challenge) of
        Proof ->
            Answer = weft_hello:answer(ok, weft_hello:mac(Key, listener, Raw, Challenge)),
            {[Answer], {done, Facts, Purpose}};
        _ ->
            {Status, Reason} = mistrust(Purpose),
            {[weft_hello:answer(Status, <<>>)], {failed, {Reason, claims(Hello)}}}
    end.

%% A further lane is proved by the token of its link. When the link is replaced, a lane of the link
%% before may be on its way.
mistrust(link) -> {wrong_cookie, wrong_cookie};
mistrust({lane, _, _}) -> {no_link, outdated_lane}.

%% What an unauthenticated peer says of itself, for the log: cut to a printable length.
claims(#{name := Name, cluster := Cluster, versions := Versions}) ->
    #{name => string:slice(Name, 0, 80), cluster => string:slice(Cluster, 0, 80),
      versions => Versions}.

%% --- both -------------------------------------------------------------------------------------

%% @doc The next message of the other end came.
-spec message(binary(), state()) -> next().
message(Raw, #dialling{} = State) ->
    case weft_hello:parse_challenge(Raw) of
        {ok, Challenge} -> challenged(Raw, Challenge, State);
        {error, malformed} -> failed(not_weft)
    end;
message(Raw, #proving{} = State) ->
    answered(weft_hello:parse_answer(Raw), State);
message(Raw, #awaiting{} = State) ->
    proved(Raw, State).

failed(Reason) -> {[], {failed, Reason}}.

%% @doc The message that says to a dialer why this node does not go on.
-spec declined(weft_hello:status(), own()) -> Message :: binary().
declined(Status, Own) ->
    {_, Highest} = weft_hello:versions(),
    challenge(Status, Highest, Own).
