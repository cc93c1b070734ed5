%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_merge_patch_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([apply_patch/2]).

-import(weft_dashboard_merge_patch, [difference/2]).

what_is_equal_is_not_in_it_test() ->
    ?assertEqual(#{}, difference(#{<<"a">> => 1, <<"b">> => #{}}, #{<<"a">> => 1, <<"b">> => #{}})).

new_changed_and_gone_test() ->
    ?assertEqual(#{<<"b">> => 2, <<"c">> => 3, <<"d">> => null},
                 difference(#{<<"a">> => 1, <<"b">> => 1, <<"d">> => 4},
                            #{<<"a">> => 1, <<"b">> => 2, <<"c">> => 3})).

objects_inside_test() ->
    ?assertEqual(#{<<"o">> => #{<<"x">> => null, <<"y">> => [2]}},
                 difference(#{<<"o">> => #{<<"x">> => 1, <<"y">> => [1], <<"z">> => 0}},
                            #{<<"o">> => #{<<"y">> => [2], <<"z">> => 0}})).

applied_it_gives_the_new_one_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(gives_the_new_one(), [{to_file, user},
                                                                   {numtests, 500}]))}.

gives_the_new_one() ->
    ?FORALL({Old, New}, {object(3), object(3)}, apply_patch(Old, difference(Old, New)) =:= New).

object(0) -> #{};
object(Depth) ->
    ?LET(Pairs, list({oneof([<<"a">>, <<"b">>, <<"c">>]),
                      oneof([integer(0, 2), list(integer(0, 1)), object(Depth - 1)])}),
         maps:from_list(Pairs)).

%% @doc MergePatch of section 2 of the RFC.
apply_patch(Target, #{} = Patch) ->
    maps:fold(fun(Key, null, Acc) -> maps:remove(Key, Acc);
                 (Key, Value, Acc) -> Acc#{Key => apply_patch(maps:get(Key, Acc, #{}), Value)}
              end, case Target of #{} -> Target; _ -> #{} end, Patch);
apply_patch(_Target, Patch) ->
    Patch.
