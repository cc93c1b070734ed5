%% SPDX-License-Identifier: Apache-2.0
%% @doc What users name becomes labels that a scraper takes, and a family that cannot be read is
%% left out.
-module(weft_ops_family_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

labels_are_texts_or_erlang_terms_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Term])),
      ?_assertEqual(Label, weft_ops_family:label(Term))}
     || {Term, Label} <- [{'a@h', <<"a@h">>}, {<<"a">>, <<"a">>}, {7, <<"7">>},
                          {{own, "x"}, <<"{own,\"x\"}">>},
                          {<<255, 0>>, <<"<<255,0>>">>}, {'\x{444}', <<"\x{444}"/utf8>>}]].

long_labels_are_cut_and_stay_different_test() ->
    [One, Two] = [weft_ops_family:label({lists:duplicate(200, $x), N}) || N <- [1, 2]],
    ?assertNotEqual(One, Two),
    ?assert(string:length(One) < 150).

any_term_is_a_text_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(any_term_is_a_text(), [{to_file, user}, 300]))}.

any_term_is_a_text() ->
    ?FORALL(Term, term(),
            is_list(unicode:characters_to_list(weft_ops_family:label(Term)))).

no_two_samples_have_the_same_labels_test() ->
    Family = family([peer], fun(_) -> [{[a], 1}, {[<<"a">>], 2}, {[b], 3}] end),
    ?assertEqual({ok, [{[{peer, <<"a">>}], 1}, {[{peer, <<"b">>}], 3}]},
                 weft_ops_family:samples(Family, #{status => #{}})).

what_has_no_value_is_left_out_test_() ->
    [?_assertEqual({ok, []}, weft_ops_family:samples(family([], fun(_) -> undefined end),
                                                     #{status => #{}})),
     ?_assertEqual({ok, []}, weft_ops_family:samples(family([a], fun(_) -> [{[x], undefined}] end),
                                                     #{status => #{}})),
     ?_assertEqual({ok, []}, weft_ops_family:samples(family([], fun(_) -> 1 end), #{}))].

what_cannot_be_read_has_failed_test_() ->
    [?_assertEqual(failed, weft_ops_family:samples(family(Labels, Read), #{status => #{}}))
     || {Labels, Read} <- [{[], fun(#{no_such_key := Value}) -> Value end},
                           {[], fun(_) -> no_number end},
                           {[a, b], fun(_) -> [{[only_one], 1}] end}]].

family(Labels, Read) ->
    #{name => x, type => gauge, labels => Labels, help => "", from => status, read => Read}.
