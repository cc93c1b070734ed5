%% SPDX-License-Identifier: Apache-2.0
%% @doc What a partition shows of its objects is of what was asked for, and has a limit.
-module(weft_kv_shown_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => false}).

a_page_has_the_keys_of_one_bucket_and_partition_test() ->
    Table = table([{1, a, <<"z">>}, {1, b, <<"1">>}, {1, b, <<"2">>}, {1, c, <<"0">>},
                   {2, b, <<"3">>}]),
    ?assertMatch({[{<<"1">>, _}, {<<"2">>, _}], true}, weft_kv_shown:page({1, b}, <<>>, Table)),
    ?assertMatch({[{<<"2">>, _}], true}, weft_kv_shown:page({1, b}, <<"1">>, Table)),
    ?assertEqual({[], true}, weft_kv_shown:page({1, b}, <<"2">>, Table)).

a_page_says_that_there_is_more_test() ->
    Table = table([{1, b, <<N:16>>} || N <- lists:seq(1, 250)]),
    {First, false} = weft_kv_shown:page({1, b}, <<>>, Table),
    ?assertEqual(200, length(First)),
    {Second, true} = weft_kv_shown:page({1, b}, element(1, lists:last(First)), Table),
    ?assertEqual([<<N:16>> || N <- lists:seq(1, 250)], [Key || {Key, _} <- First ++ Second]).

a_batch_has_a_limit_and_at_least_one_object_test() ->
    Large = binary:copy(<<"x">>, weft_kv_shown:batch_bytes()),
    Keys = [{1, b, <<N>>} || N <- lists:seq(1, 3)],
    Table = table(Keys, Large),
    ?assertMatch([{{1, b, <<1>>}, {_, #{n := 3}}}], weft_kv_shown:objects(Keys, Table)),
    ?assertMatch([{{1, b, <<1>>}, {_, #{n := 3}}}], weft_kv_shown:some([{0, b}, {1, b}], Table)),
    ?assertEqual([{{9, b, <<>>}, none}], weft_kv_shown:objects([{9, b, <<>>}], Table)).

copies_with_the_same_objects_have_the_same_hashes_test() ->
    Keys = [{1, b, <<"1">>}, {1, b, <<"2">>}],
    [One, Same, Other] = [table(Keys), table(lists:reverse(Keys)), table(tl(Keys))],
    [begin
         Hashes = [weft_kv_shown:hashes({3, 1}, What, Table) || Table <- [One, Same, Other]],
         ?assertMatch({[Hash, Hash, _], What}, {Hashes, What}),
         ?assertNotEqual({lists:last(Hashes), What}, {hd(Hashes), What})
     end || What <- [root, segments]].

what_a_later_version_asks_for_is_unknown_test() ->
    ?assertEqual({error, unknown_command}, weft_kv_shown:hashes({3, 1}, {tree, 7}, table([]))).

table(Keys) -> table(Keys, <<"value">>).

table(Keys, Value) ->
    Table = weft_kv_table:new(),
    Object = weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{},
                                <<"actor">>, weft_kv_object:new()),
    [ok = weft_kv_table:store(Key, Object, ?KIND, Table) || Key <- Keys],
    Table.
