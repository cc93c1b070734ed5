%% SPDX-License-Identifier: Apache-2.0
%% @doc Messages of the authentication: what is encoded is parsed again; all else is malformed.
-module(weft_hello_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MUTATIONS, 20000).
-define(STATUSES, [ok, wrong_cluster, wrong_version, wrong_target, simultaneous, refused, no_link,
                   wrong_cookie, overload, same_name, superseded]).

every_message_comes_back_test_() ->
    {timeout, 60, [?_assert(proper:quickcheck(Property, [{numtests, 1000}, quiet]))
                   || Property <- [prop_hello(), prop_challenge(), prop_answer()]]}.

prop_hello() ->
    ?FORALL(Hello, hello(), weft_hello:parse_hello(weft_hello:hello(Hello)) =:= {ok, Hello}).

prop_challenge() ->
    ?FORALL(Challenge, challenge(),
            weft_hello:parse_challenge(weft_hello:challenge(Challenge)) =:= {ok, Challenge}).

prop_answer() ->
    ?FORALL({Status, Mac}, {status(), binary(32)},
            weft_hello:parse_answer(weft_hello:answer(Status, Mac)) =:= {ok, Status, Mac}).

%% The lengths inside say how long a message is: no part of it and nothing longer is one.
truncated_or_extended_messages_are_malformed_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_length(), [{numtests, 200}, quiet]))}.

prop_length() ->
    ?FORALL({Hello, Challenge}, {hello(), challenge()},
            lists:all(fun({Parse, Message}) ->
                              Part = fun(Size) -> Parse(binary:part(Message, 0, Size)) end,
                              lists:all(fun(Size) -> Part(Size) =:= {error, malformed} end,
                                        lists:seq(0, byte_size(Message) - 1))
                                  andalso Parse(<<Message/binary, 0>>) =:= {error, malformed}
                      end, [{fun weft_hello:parse_hello/1, weft_hello:hello(Hello)},
                            {fun weft_hello:parse_challenge/1, weft_hello:challenge(Challenge)}])).

twenty_thousand_spoiled_messages_make_no_atom_test_() ->
    {timeout, 60, fun() ->
                          _ = rand:seed(exsss, 43),
                          _ = spoil(1000, 0),
                          Atoms = erlang:system_info(atom_count),
                          WellFormed = spoil(?MUTATIONS, 0),
                          ?assertEqual(Atoms, erlang:system_info(atom_count)),
                          %% Some changes, to a nonce say, leave a message well-formed.
                          ?assert(WellFormed > 0 andalso WellFormed < ?MUTATIONS)
                  end}.

spoil(0, WellFormed) ->
    WellFormed;
spoil(Left, WellFormed) ->
    {Parse, Message} = message(rand:uniform(3)),
    case Parse(weft_hostile_mutation:mutate(Message)) of
        {error, malformed} ->
            spoil(Left - 1, WellFormed);
        Parsed ->
            ?assert(is_well_formed(Parsed)),
            spoil(Left - 1, WellFormed + 1)
    end.

message(1) ->
    {fun weft_hello:parse_hello/1,
     weft_hello:hello(#{versions => {1, 2}, purpose => link, nonce => <<0:256>>,
                        incarnation => 17, listens => true, cluster => <<"default">>,
                        name => <<"some@where">>, target => <<"else@where">>})};
message(2) ->
    {fun weft_hello:parse_challenge/1,
     weft_hello:challenge(#{version => 1, status => ok, nonce => <<0:256>>, incarnation => 18,
                            name => <<"else@where">>})};
message(3) ->
    {fun weft_hello:parse_answer/1, weft_hello:answer(ok, <<0:256>>)}.

is_well_formed({ok, #{versions := {Min, Max}, purpose := Purpose, nonce := <<_:256>>,
                      incarnation := _, listens := Listens, cluster := Cluster, name := Name,
                      target := Target}}) ->
    Min =< Max andalso is_boolean(Listens)
        andalso (Purpose =:= link orelse element(3, Purpose) < 64)
        andalso lists:all(fun fits_an_atom/1, [Cluster, Name, Target]);
is_well_formed({ok, #{version := _, status := Status, nonce := <<_:256>>, incarnation := _,
                      name := Name}}) ->
    lists:member(Status, ?STATUSES) andalso is_binary(Name);
is_well_formed({ok, Status, Mac}) ->
    lists:member(Status, ?STATUSES) andalso is_binary(Mac).

fits_an_atom(Name) ->
    length(unicode:characters_to_list(Name)) =< 255.

%% A name that is no text, or too long for an atom, would hurt those who make or print one of it.
names_that_are_none_are_malformed_test_() ->
    Good = #{versions => {1, 1}, purpose => link, nonce => <<0:256>>, incarnation => 1,
             listens => false, cluster => <<"c">>, name => <<"a@b">>, target => <<"c@d">>},
    [?_assertEqual({error, malformed},
                   weft_hello:parse_hello(weft_hello:hello(Good#{Key := Value})))
     || {Key, Value} <- [{name, <<255>>}, {name, binary:copy(<<"x">>, 256)},
                         {target, <<"a@", 200>>}, {cluster, <<128, 128>>}]]
        ++ [?_assertMatch({ok, _}, weft_hello:parse_hello(weft_hello:hello(Good#{Key := Value})))
            || {Key, Value} <- [{name, <<>>}, {name, binary:copy(<<"ä"/utf8>>, 255)},
                                {target, <<"löss@häuser"/utf8>>}]].

the_highest_common_version_is_chosen_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_version(), [{numtests, 1000}, quiet]))}.

prop_version() ->
    ?FORALL({A, B}, {versions(), versions()},
            begin
                Common = [V || V <- in(A), lists:member(V, in(B))],
                weft_hello:choose_version(A, B)
                    =:= case Common of [] -> error; _ -> {ok, lists:max(Common)} end
            end).

in({Min, Max}) -> lists:seq(Min, Max).

%% Each proof is for one key, role, hello and challenge.
proofs_differ_test() ->
    Proofs = [weft_hello:mac(Key, Role, Hello, Challenge)
              || Key <- [<<"k">>, <<"l">>], Role <- [dialer, listener], Hello <- [<<"h">>, <<"i">>],
                 Challenge <- [<<"c">>, <<"d">>]],
    Tokens = [weft_hello:token(<<"k">>, Hello, <<"c">>) || Hello <- [<<"h">>, <<"i">>]],
    ?assertEqual(18, length(lists:usort(Proofs ++ Tokens))).

%% --- generators -------------------------------------------------------------------------------

hello() ->
    ?LET({Versions, Lane, Class, Nonce, Incarnation, Listens, Cluster, Name, Target},
         {versions(), range(0, 63), name(60), binary(32), range(0, (1 bsl 64) - 1), boolean(),
          name(60), name(255), name(255)},
         #{versions => Versions, nonce => Nonce, incarnation => Incarnation, listens => Listens,
           purpose => case Lane of 0 -> link; _ -> {lane, Class, Lane} end,
           cluster => Cluster, name => Name, target => Target}).

challenge() ->
    ?LET({Version, Status, Nonce, Incarnation, Name},
         {byte(), status(), binary(32), range(0, (1 bsl 64) - 1), name(255)},
         #{version => Version, status => Status, nonce => Nonce, incarnation => Incarnation,
           name => Name}).

status() -> oneof(?STATUSES).

versions() -> ?LET({A, B}, {byte(), byte()}, {min(A, B), max(A, B)}).

name(Max) ->
    ?LET(Characters, list(oneof([range($a, $z), $@, range(16#a1, 16#d7ff)])),
         unicode:characters_to_binary(lists:sublist(Characters, Max))).
