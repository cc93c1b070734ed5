%% SPDX-License-Identifier: Apache-2.0
%% @doc Sources are read with the place of each token, whatever is in them, and edits change
%% nothing else.
-module(weft_migrate_source_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---- places ----

a_token_is_found_by_its_bytes_test_() ->
    [{Name, ?_assertEqual([<<"global">>], atoms(global, Bytes))}
     || {Name, Bytes} <-
            [{"utf8", <<"f() -> {\"ä→\"/utf8, \"😀\", global}.\n"/utf8>>},
             {"latin1", <<"%% -*- coding: latin-1 -*-\nf() -> {\"\xe4\xf6\", global}.\n">>},
             {"latin1 that is not named", <<"f() -> {\"\xe4\xf6\", global}.\n">>},
             {"lines of another system", <<"\r\nf() ->\r\n\tglobal.\r\n">>},
             {"behind comments", <<"% ä\n\n%% -\nf() -> % global\n global.\n"/utf8>>}]].

atoms(Atom, Bytes) ->
    #{forms := Forms} = weft_migrate_source:of_bytes("f.erl", Bytes),
    [binary:part(Bytes, Byte, Size) || #{tokens := Tokens} <- Forms,
                                       {atom, A, _, Byte, Size} <- Tokens, A =:= Atom].

forms_cover_the_file_test_() ->
    [?_assertEqual(Bytes, iolist_to_binary(covered(Bytes)))
     || Bytes <- [<<>>, <<"\n">>, <<"%% only a comment">>, <<"f() -> 1.">>, <<"f() -> 1">>,
                  <<"#!/usr/bin/env escript">>, <<"#!/usr/bin/env escript\nf() -> 1.\n">>,
                 <<"f() -> \"open.\n">>, <<"f() -> 1.\n\n$\n">>, <<0, 255, 10>>]].

covered(Bytes) ->
    {_, Forms} = weft_migrate_tokens:forms(Bytes),
    [binary:part(Bytes, Byte, Size) || #{byte := Byte, size := Size} <- Forms].

the_first_line_of_a_script_is_no_form_test() ->
    Source = weft_migrate_source:of_bytes("ctl", <<"#!/usr/bin/env escript\n%%! -sname a\n"
                                                   "f() ->\n global.\n">>),
    ?assertEqual({["f"], []}, {functions(Source), weft_migrate_source:unread(Source)}),
    ?assertMatch(#{forms := [#{at := {3, 1}}]}, Source).

%% ---- what cannot be read ----

a_form_that_cannot_be_read_costs_no_other_test_() ->
    [{Bad, ?_assertMatch({[_], ["f", "g"]}, {weft_migrate_source:unread(source(Bad)),
                                             functions(source(Bad))})}
     || Bad <- ["h() -> ) .", "h() -> $\\xz.", "h() -> 'no end\n, x.", "-define(X(A), A; A).",
                "h() -> case.", "h() -> [."]].

source(Bad) ->
    weft_migrate_source:of_bytes("f.erl", iolist_to_binary(["f() -> 1.\n", Bad,
                                                            "\ng() -> ?A(1), 2.\n"])).

functions(#{forms := Forms}) ->
    [atom_to_list(erl_syntax:atom_value(erl_syntax:function_name(Tree)))
     || #{tree := {ok, Tree}} <- Forms, erl_syntax:type(Tree) =:= function].

the_reason_names_its_line_test() ->
    ?assertMatch([{2, "syntax error" ++ _}], weft_migrate_source:unread(source("h() -> ) ."))).

a_file_that_is_not_there_is_an_error_test() ->
    ?assertEqual({error, "no such file or directory"}, weft_migrate_source:read("/no/such.erl")).

%% ---- edits ----

edits_change_nothing_else_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_edits(), [quiet, {numtests, 300}]))}.

%% Edits of random tokens of a random source: what is between them is as before, in order.
prop_edits() ->
    ?FORALL({Words, Seed}, {list(word()), list(boolean())},
            begin
                Bytes = unicode:characters_to_binary(["f() -> ", Words, "a.\n"]),
                #{forms := Forms} = weft_migrate_source:of_bytes("f.erl", Bytes),
                Tokens = lists:append([T || #{tokens := T} <- Forms]),
                Chosen = [Token || {Token, true} <- some(Tokens, Seed)],
                Edits = [{Byte, Size, <<"<>">>} || {_, _, _, Byte, Size} <- Chosen],
                {ok, Edited} = weft_migrate_edit:splice(Bytes, Edits),
                Edited =:= expected(Bytes, lists:keysort(1, Edits), 0)
                    andalso byte_size(Edited) =:= byte_size(Bytes)
                        + lists:sum([2 - Size || {_, Size, _} <- Edits])
            end).

some([A | As], [B | Bs]) -> [{A, B} | some(As, Bs)];
some(_, _) -> [].

word() ->
    oneof(["x, ", "\"ä\" ", "$😀, ", "% ö\n", "'quoted atom' ", "<<\"é\"/utf8>> ", "\r\n", "1.5 ",
           "#{} ", "?M(X) ", "fun f/1, ", "\"a\nb\" ", "$\\n ", "\t"]).

%% Byte by byte.
expected(Bytes, _, At) when At >= byte_size(Bytes) -> <<>>;
expected(Bytes, [{At, Size, New} | Edits], At) ->
    <<New/binary, (expected(Bytes, Edits, At + Size))/binary>>;
expected(Bytes, Edits, At) ->
    <<(binary:at(Bytes, At)), (expected(Bytes, Edits, At + 1))/binary>>.

edits_that_overlap_are_refused_test() ->
    ?assertEqual({error, {overlap, 1}},
                 weft_migrate_edit:splice(<<"abc">>, [{0, 2, <<>>}, {1, 1, <<"x">>}])),
    ?assertEqual({ok, <<"xc">>},
                 weft_migrate_edit:splice(<<"abc">>, [{0, 2, <<"x">>}, {0, 2, <<"x">>}])).
