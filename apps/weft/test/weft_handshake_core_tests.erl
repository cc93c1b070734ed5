%% SPDX-License-Identifier: Apache-2.0
%% @doc Two ends of the authentication, message by message: who is right is known to both, and
%% whatever is changed, repeated or sent back on the way, an end believes nobody who does not know
%% the key.
-module(weft_handshake_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(KEY, <<"the key">>).
-define(A, <<"a@host">>).
-define(B, <<"b@host">>).
-define(LANE, {lane, <<"bulk">>, 3}).

both_ends_know_each_other_in_the_end_test_() ->
    [fun() ->
         {{done, OfB, Purpose}, {done, OfA, Purpose}} =
             exchange(own(?A, 1), own(?B, 2), Purpose, ?KEY, ?KEY),
         ?assertMatch(#{name := ?B, incarnation := 2, role := dialer, proven_with := ?KEY,
                        version := 1}, OfB),
         ?assertMatch(#{name := ?A, incarnation := 1, role := listener, proven_with := ?KEY,
                        version := 1}, OfA),
         ?assertEqual(map_get(token, OfA), map_get(token, OfB)),
         ?assertNotEqual(?KEY, map_get(token, OfA))
     end || Purpose <- [link, ?LANE]].

%% The dialer proves itself first.
another_key_is_refused_by_the_listener_test() ->
    ?assertMatch({{failed, wrong_cookie}, {failed, {wrong_cookie, #{name := ?A}}}},
                 exchange(own(?A, 1), own(?B, 2), link, ?KEY, <<"another key">>)),
    ?assertMatch({{failed, no_link}, {failed, {outdated_lane, #{name := ?A}}}},
                 exchange(own(?A, 1), own(?B, 2), ?LANE, ?KEY, <<"another key">>)).

a_listener_that_does_not_know_the_key_is_not_believed_test() ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
    {[Challenge], {more, _}} = listener(Hello, own(?B, 2), <<"another key">>),
    {[_Proof], {more, Proving}} = weft_handshake_core:message(Challenge, Dialling),
    Guess = weft_hello:mac(<<"another key">>, listener, Hello, Challenge),
    ?assertEqual({[], {failed, wrong_cookie}},
                 weft_handshake_core:message(weft_hello:answer(ok, Guess), Proving)).

each_reason_is_told_to_both_test_() ->
    Own = own(?B, 2),
    [{atom_to_list(Status),
      fun() ->
          {[Hello], {more, Dialling}} = weft_handshake_core:dial(Target, link, ?KEY, Dialer),
          {[Challenge], {failed, {Status, #{name := _, cluster := _, versions := {1, 1}}}}} =
              weft_handshake_core:hello(Hello, Own),
          ?assertEqual({[], {failed, Status}}, weft_handshake_core:message(Challenge, Dialling))
      end}
     || {Status, Dialer, Target} <-
            [{same_name, own(?B, 1), ?B},
             {wrong_target, own(?A, 1), <<"c@host">>},
             {wrong_cluster, (own(?A, 1))#{cluster := <<"another">>}, ?B}]].

who_is_not_admitted_is_told_test_() ->
    [fun() ->
         {[Hello], {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
         {[], {admit, {?A, 1, link}, Asking}} = weft_handshake_core:hello(Hello, own(?B, 2)),
         {[Challenge], {failed, {Status, #{name := ?A}}}} =
             weft_handshake_core:admitted({Status, <<>>}, Asking),
         ?assertEqual({[], {failed, Status}}, weft_handshake_core:message(Challenge, Dialling))
     end || Status <- [simultaneous, refused, superseded]].

another_node_than_the_dialled_one_is_not_taken_for_it_test() ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
    {ok, Parsed} = weft_hello:parse_hello(Hello),
    Redirected = weft_hello:hello(Parsed#{target := <<"c@host">>}),
    {[Challenge], {more, _}} = listener(Redirected, own(<<"c@host">>, 2), ?KEY),
    ?assertEqual({[], {failed, wrong_target}}, weft_handshake_core:message(Challenge, Dialling)).

a_version_that_is_not_spoken_is_refused_test() ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
    {ok, Parsed} = weft_hello:parse_hello(Hello),
    {[_], {failed, {wrong_version, _}}} =
        weft_handshake_core:hello(weft_hello:hello(Parsed#{versions := {2, 3}}), own(?B, 2)),
    Challenge = weft_hello:challenge(#{version => 2, status => ok, nonce => <<7:256>>,
                                       incarnation => 2, name => ?B}),
    ?assertEqual({[], {failed, wrong_version}}, weft_handshake_core:message(Challenge, Dialling)).

%% A scanner gets the reason of its refusal and nothing that depends on the key.
what_is_no_weft_node_is_refused_test() ->
    ?assertEqual({[], {failed, malformed}}, weft_handshake_core:hello(<<"GET / ">>, own(?B, 2))),
    {_, {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
    ?assertEqual({[], {failed, not_weft}}, weft_handshake_core:message(<<"HTTP/1.1">>, Dialling)).

%% --- somebody in between ----------------------------------------------------------------------

whatever_is_changed_on_the_way_is_not_believed_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_changed(), [{numtests, 1000}, quiet]))}.

%% One of the four messages is another one. The listener is done before the last one is sent.
prop_changed() ->
    ?FORALL({At, Seed}, {integer(1, 4), integer()},
            begin
                _ = rand:seed(exsss, Seed),
                Changed = between(At, fun weft_hostile_mutation:mutate/1),
                case Changed of
                    unchanged -> true;
                    {{failed, _}, {done, _, _}} -> At =:= 4;
                    {OfDialer, OfListener} -> is_over(OfDialer) andalso is_over(OfListener)
                end
            end).

is_over({failed, _}) -> true;
is_over(waits) -> true;
is_over({done, _, _}) -> false.

%% The same connection an hour ago, with the same incarnations: its nonces are others.
what_was_said_before_proves_nothing_test() ->
    Before = recorded(own(?A, 1), own(?B, 2)),
    [begin
         Replay = fun(_) -> lists:nth(At, Before) end,
         {OfDialer, OfListener} = between(At, Replay),
         ?assert(is_over(OfDialer)),
         ?assert(At =:= 4 orelse is_over(OfListener))
     end || At <- [2, 3, 4]].

%% A recorded hello gets a challenge as any hello does; the recorded proof then does not fit.
a_recorded_dialer_is_not_believed_test() ->
    [Hello, _, Proof, _] = recorded(own(?A, 1), own(?B, 2)),
    {[_], {more, Awaiting}} = listener(Hello, (own(?B, 2))#{nonce := <<99:256>>}, ?KEY),
    ?assertMatch({[_], {failed, {wrong_cookie, _}}},
                 weft_handshake_core:message(Proof, Awaiting)).

a_proof_that_comes_back_is_no_answer_test() ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(?B, link, ?KEY, own(?A, 1)),
    {[Challenge], {more, _}} = listener(Hello, own(?B, 2), ?KEY),
    {[Proof], {more, Proving}} = weft_handshake_core:message(Challenge, Dialling),
    ?assertEqual({[], {failed, wrong_cookie}},
                 weft_handshake_core:message(weft_hello:answer(ok, Proof), Proving)).

%% --- exchanges --------------------------------------------------------------------------------

own(Name, Incarnation) ->
    #{name => Name, incarnation => Incarnation, listens => true, cluster => <<"cluster">>,
      nonce => <<(erlang:phash2({Name, Incarnation})):256>>}.

listener(Hello, Own, Key) ->
    {[], {admit, _, Asking}} = weft_handshake_core:hello(Hello, Own),
    weft_handshake_core:admitted({ok, Key}, Asking).

exchange(Dialer, #{name := Target} = Listener, Purpose, DialerKey, ListenerKey) ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(Target, Purpose, DialerKey, Dialer),
    {[Challenge], {more, Awaiting}} = listener(Hello, Listener, ListenerKey),
    {[Proof], {more, Proving}} = weft_handshake_core:message(Challenge, Dialling),
    {[Answer], OfListener} = weft_handshake_core:message(Proof, Awaiting),
    {[], OfDialer} = weft_handshake_core:message(Answer, Proving),
    {OfDialer, OfListener}.

recorded(Dialer, #{name := Target} = Listener) ->
    {[Hello], {more, Dialling}} = weft_handshake_core:dial(Target, link, ?KEY, Dialer),
    {[Challenge], {more, Awaiting}} = listener(Hello, Listener, ?KEY),
    {[Proof], {more, _}} = weft_handshake_core:message(Challenge, Dialling),
    {[Answer], {done, _, _}} = weft_handshake_core:message(Proof, Awaiting),
    [Hello, Challenge, Proof, Answer].

%% What both ends come to if message At is changed; the nonces are not those of recorded/2.
between(At, Change) ->
    Dialer = (own(?A, 1))#{nonce := <<1:256>>},
    Listener = (own(?B, 2))#{nonce := <<2:256>>},
    Dialled = weft_handshake_core:dial(?B, link, ?KEY, Dialer),
    go_on(1, At, Change, Dialled, {hello, Listener}).

%% The messages of one end go to the other one, in turn.
go_on(Number, At, Change, {[Message], Sender}, Receiver) ->
    case {changed(Number, At, Change, Message), At} of
        {Message, Number} -> unchanged;
        {Received, _} -> go_on(Number + 1, At, Change, received(Received, Receiver), Sender)
    end;
go_on(Number, _At, _Change, {[], Next}, Other) ->
    case Number rem 2 of
        0 -> {ended(Other), ended(Next)};
        1 -> {ended(Next), ended(Other)}
    end.

changed(At, At, Change, Message) -> Change(Message);
changed(_Number, _At, _Change, Message) -> Message.

received(Hello, {hello, Own}) ->
    case weft_handshake_core:hello(Hello, Own) of
        {[], {admit, _, Asking}} -> weft_handshake_core:admitted({ok, ?KEY}, Asking);
        Refused -> Refused
    end;
received(Message, {more, State}) ->
    weft_handshake_core:message(Message, State);
received(_Message, Over) ->
    {[], Over}.

ended({more, _}) -> waits;
ended({hello, _}) -> waits;
ended(Over) -> Over.
