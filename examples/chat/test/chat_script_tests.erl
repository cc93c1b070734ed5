%% SPDX-License-Identifier: Apache-2.0
-module(chat_script_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HEAD, "room market n2\nmember ada@n1 market\nmember ben@n2\n").

parse(Text) ->
    chat_script:parse(list_to_binary(Text)).

statements_test() ->
    {ok, Script} = parse("% a town\n\n" ?HEAD "0.120 ada@n1 #market: a: b\n"
                         "12.000 ben@n2 ada@n1: x\n"),
    ?assertEqual(#{rooms => #{market => <<"n2">>},
                   members => #{{ada, <<"n1">>} => [market], {ben, <<"n2">>} => []},
                   lines => [{120, {ada, <<"n1">>}, {room, market}, <<"a: b">>},
                             {12000, {ben, <<"n2">>}, {direct, {ada, <<"n1">>}}, <<"x">>}]},
                 Script).

errors_say_where_and_what_test_() ->
    [?_assertMatch({error, {Line, _, Reason}}, parse(Text))
     || {Line, Reason, Text} <-
            [{1, syntax, "nonsense"}, {1, syntax, "room Market n1"}, {1, syntax, "room a b c"},
             {2, defined_twice, "room a n1\nroom a n2"},
             {1, no_such_room, "member ada@n1 nowhere_known_room"},
             {4, no_such_member, ?HEAD "0.000 nobody_known_user@n1 #market: x"},
             {4, no_such_member, ?HEAD "0.000 ada@n2 #market: x"},
             {4, no_such_room, ?HEAD "0.000 ada@n1 #nowhere_known_room: x"},
             {4, not_a_member, ?HEAD "0.000 ben@n2 #market: x"},
             {4, syntax, ?HEAD "soon ada@n1 #market: x"},
             {5, time_goes_back, ?HEAD "1.000 ada@n1 #market: x\n0.999 ada@n1 #market: x"}]].

error_is_readable_test() ->
    {error, Error} = parse("room a n1\nrum b n1"),
    ?assertEqual("line 2: not a comment, room, member or message: rum b n1",
                 chat_script:format_error(Error)),
    {error, NoFile} = chat_script:read("no/such/file"),
    ?assertEqual("cannot read no/such/file: no such file or directory",
                 chat_script:format_error(NoFile)).

share_counts_copies_test() ->
    {ok, Script} = parse(?HEAD "member cy@n1 market\n0.120 ada@n1 #market: x\n"
                         "0.200 cy@n1 ben@n2: y\n0.300 ben@n2 cy@n1: z\n"),
    Nodes = #{<<"n1">> => 'n1@h', <<"n2">> => 'n2@h'},
    ?assertEqual({ok, #{rooms => #{market => 'n2@h'},
                        users => #{ada => #{market => 'n2@h'}, cy => #{market => 'n2@h'}},
                        cues => {300, [{120, ada, {room, market}, <<"x">>, 2},
                                       {200, cy, {direct, {chat_user_ben, 'n2@h'}}, <<"y">>, 1}]}}},
                 chat_share:of_node('n1@h', Nodes, Script)).
