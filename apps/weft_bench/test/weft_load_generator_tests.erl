%% SPDX-License-Identifier: Apache-2.0
-module(weft_load_generator_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONTEXT, #{id => 1, concurrent => 1}).

draw(Generator, Count) -> [Generator() || _ <- lists:seq(1, Count)].

keys(Spec, Count) -> draw(weft_load_generator:keys(Spec, ?CONTEXT), Count).
values(Spec, Count) -> draw(weft_load_generator:values(Spec, ?CONTEXT), Count).

uniform_keys_fill_their_range_test() ->
    ?assertEqual(lists:seq(0, 9), lists:usort(keys({uniform_int, 10}, 1000))),
    ?assertEqual(lists:seq(5, 9), lists:usort(keys({uniform_int, 5, 5}, 1000))).

%% About four fifths of the keys come from the first fifth and a bit of the range.
pareto_keys_are_mostly_small_test() ->
    Keys = keys({truncated_pareto_int, 10000}, 20000),
    ?assert(lists:max(Keys) < 10000),
    Small = length([Key || Key <- Keys, Key < 2000]),
    ?assert(Small > 14000 andalso Small < 18000).

%% Workers together count through the range once, the last one takes what is left over.
partitioned_sequence_test() ->
    Of = fun(Id, Count) ->
                 in_process(fun() ->
                                    draw(weft_load_generator:keys(
                                           {partitioned_sequential_int, 100, 10},
                                           #{id => Id, concurrent => 3}), Count)
                            end)
         end,
    ?assertEqual(lists:seq(100, 109), Of(1, 3) ++ Of(2, 3) ++ Of(3, 4)),
    ?assertEqual([100, 101, 102, 100], Of(1, 4)).

sequence_test() ->
    ?assertEqual([0, 1, 2, 0, 1],
                 in_process(fun() -> keys({sequential_int, 3}, 5) end)).

in_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive {'DOWN', Monitor, process, Pid, {result, Result}} -> Result end.

wrapped_keys_test() ->
    ?assertEqual([<<7:32>>], lists:usort(keys({int_to_bin_bigendian, {uniform_int, 7, 1}}, 3))),
    ?assertEqual([<<7:32/little>>],
                 lists:usort(keys({int_to_bin_littleendian, {uniform_int, 7, 1}}, 3))),
    ?assertEqual(["7"], lists:usort(keys({int_to_str, {uniform_int, 7, 1}}, 3))),
    ?assertEqual([<<"7">>], lists:usort(keys({to_binstr, {uniform_int, 7, 1}}, 3))),
    ?assertEqual([<<"a7">>], lists:usort(keys({concat_binary, <<"a">>,
                                               {to_binstr, {uniform_int, 7, 1}}}, 3))),
    ?assertEqual([base64:encode(<<"7">>)],
                 lists:usort(keys({base64, {to_binstr, {uniform_int, 7, 1}}}, 3))),
    ?assertEqual([16], lists:usort([byte_size(K) || K <- keys(uuid_v4, 3)])).

sizes_of_values_test() ->
    ?assertEqual([100], lists:usort([byte_size(V) || V <- values({fixed_bin, 100}, 10)])),
    ?assertEqual([<<9, 9>>], lists:usort(values({fixed_bin, 2, 9}, 3))),
    Sizes = [byte_size(V) || V <- values({uniform_bin, 5, 8}, 1000)],
    ?assertEqual([5, 6, 7, 8], lists:usort(Sizes)),
    Exponential = [byte_size(V) || V <- values({exponential_bin, 10, 110}, 20000)],
    Mean = lists:sum(Exponential) / 20000,
    ?assert(lists:min(Exponential) >= 10),
    ?assert(Mean > 100 andalso Mean < 120).

unknown_generators_are_named_test() ->
    ?assertThrow({config, _}, weft_load_generator:keys({no_such, 1}, ?CONTEXT)),
    ?assertThrow({config, _}, weft_load_generator:values({uniform_int, 0}, ?CONTEXT)).
