%% SPDX-License-Identifier: Apache-2.0
-module(weft_load_generator_tests).

-include_lib("eunit/include/eunit.hrl").

-export([own_generator/2]).

-define(CONTEXT, #{id => 1, concurrent => 1}).
-define(SEVEN, {uniform_int, 7, 1}).

draw(Generator, Count) -> [Generator() || _ <- lists:seq(1, Count)].

keys(Spec, Count) -> draw(weft_load_generator:keys(Spec, ?CONTEXT), Count).
values(Spec, Count) -> draw(weft_load_generator:values(Spec, ?CONTEXT), Count).

uniform_keys_fill_their_range_from_one_test() ->
    ?assertEqual(lists:seq(1, 10), lists:usort(keys({uniform_int, 10}, 1000))),
    ?assertEqual(lists:seq(5, 9), lists:usort(keys({uniform_int, 5, 5}, 1000))).

%% About four fifths of the keys come from the first fifth and a bit of the range.
pareto_keys_are_mostly_small_test() ->
    Keys = keys({truncated_pareto_int, 10000}, 20000),
    ?assertEqual(10000, lists:max(Keys)),
    Small = length([Key || Key <- Keys, Key < 2000]),
    ?assert(Small > 14000 andalso Small < 18000).

eighty_of_hundred_keys_are_of_the_first_fifth_test() ->
    Keys = keys({eightytwenty_int, 10}, 10000),
    ?assertEqual(lists:seq(1, 10), lists:usort(Keys)),
    Small = length([Key || Key <- Keys, Key =< 2]),
    ?assert(Small > 7500 andalso Small < 8500).

%% Workers together count through the range once, the last one takes what is left over. Then each
%% of them stops.
partitioned_sequence_test() ->
    Of = fun(Id, Count) ->
                 used_up({partitioned_sequential_int, 100, Count}, #{id => Id, concurrent => 3})
         end,
    ?assertEqual(lists:seq(100, 109), Of(1, 10) ++ Of(2, 10) ++ Of(3, 10)),
    ?assertEqual([[], [], [100, 101]], [Of(Id, 2) || Id <- [1, 2, 3]]).

sequence_ends_test() ->
    ?assertEqual([0, 1, 2], used_up({sequential_int, 3}, ?CONTEXT)).

%% Two in one generator have each their own place.
two_sequences_test() ->
    Keys = {concat_binary, {to_binstr, "~b", {sequential_int, 3}},
            {to_binstr, "-~b", {partitioned_sequential_int, 7, 3}}},
    ?assertEqual([<<"0-7">>, <<"1-8">>, <<"2-9">>], used_up(Keys, ?CONTEXT)).

used_up(Spec, Context) -> used_up(weft_load_generator:keys(Spec, Context)).

used_up(Generator) ->
    try Generator() of Key -> [Key | used_up(Generator)]
    catch throw:{stop, empty_keygen} -> []
    end.

lines_of_a_file_test() ->
    File = filename:join(code:lib_dir(weft_bench), "weft_load_generator_tests.lines"),
    ok = file:write_file(File, "one\ntwo\nthree\n\nfive"),
    Once = {file_line_bin, File, once},
    ?assertEqual([<<"one">>, <<"two">>, <<"three">>, <<>>, <<"five">>], used_up(Once, ?CONTEXT)),
    ?assertEqual([[<<"one">>, <<"three">>, <<"five">>], [<<"two">>, <<>>], []],
                 [used_up(Once, #{id => Id, concurrent => Workers})
                  || {Id, Workers} <- [{1, 2}, {2, 2}, {6, 7}]]),
    ?assertEqual([<<"five">>, <<"one">>], lists:nthtail(4, keys({file_line_bin, File}, 6))),
    ok = file:write_file(File, ""),
    named("no lines", fun() -> keys({file_line_bin, File}, 1) end),
    ok = file:delete(File),
    named("no such file", fun() -> keys({file_line_bin, File}, 1) end).

wrapped_keys_test_() ->
    [?_assertEqual([Expected], lists:usort(keys(Spec, 3)))
     || {Expected, Spec} <-
            [{<<7:32>>, {int_to_bin_bigendian, ?SEVEN}},
             {<<7:32/little>>, {int_to_bin_littleendian, ?SEVEN}},
             {<<7:64>>, {{int_to_bin_bigendian, 64}, ?SEVEN}},
             {<<7:16/little>>, {{int_to_bin_littleendian, 16}, ?SEVEN}},
             {"7", {int_to_str, ?SEVEN}},
             {"key 7", {to_str, "key ~w", ?SEVEN}},
             {<<"key0007">>, {to_binstr, "key~4..0b", ?SEVEN}},
             {<<"7">>, {str_to_bin, {int_to_str, ?SEVEN}}},
             {"a", {bin_to_str, <<"a">>}},
             {"a", "a"},
             {<<"a7">>, {concat_binary, <<"a">>, {to_binstr, "~b", ?SEVEN}}},
             {base64:encode(<<"7">>), {base64, {to_binstr, "~b", ?SEVEN}}},
             {crypto:hash(sha256, <<"7">>), {{crypto_hash, sha256}, {to_binstr, "~b", ?SEVEN}}},
             {{1, more}, {function, ?MODULE, own_generator, [more]}},
             {<<0, 0>>, {valgen, {fixed_bin, 2, 0}}}]].

own_generator(Id, Argument) -> fun() -> {Id, Argument} end.

uuids_test() ->
    ?assertEqual([16], lists:usort([byte_size(K) || K <- keys(uuid_v4, 3)])).

sizes_of_values_test() ->
    ?assertEqual([100], lists:usort([byte_size(V) || V <- values({fixed_bin, 100}, 10)])),
    ?assertEqual([<<9, 9>>], lists:usort(values({fixed_bin, 2, 9}, 3))),
    Sizes = [byte_size(V) || V <- values({uniform_bin, 5, 8}, 1000)],
    ?assertEqual([6, 7, 8], lists:usort(Sizes)).

%% The mean is that of what comes on top of the smallest.
exponential_values_test() ->
    Exponential = [byte_size(V) || V <- values({exponential_bin, 10, 100}, 20000)],
    Mean = lists:sum(Exponential) / 20000,
    ?assert(lists:min(Exponential) >= 10),
    ?assert(Mean > 105 andalso Mean < 115).

printable_values_test() ->
    [Value] = values({fixed_char, 10000}, 1),
    ?assertEqual(lists:seq(32, 126), lists:usort(binary_to_list(Value))).

values_that_are_numbers_test() ->
    ?assertEqual([1, 2, 3], lists:usort(values({uniform_int, 3}, 1000))),
    ?assertEqual([3, 4, 5], lists:usort(values({uniform_int, 3, 5}, 1000))).

%% Half of them can be compressed. One in ten is ten times as large.
semi_compressible_values_test_() ->
    {timeout, 60, fun semi_compressible_values/0}.

semi_compressible_values() ->
    Values = values({semi_compressible, 8000, 8000, 10, 0.1}, 1000),
    All = iolist_to_binary(Values),
    Ratio = byte_size(zlib:compress(All)) / byte_size(All),
    ?assert(Ratio > 0.4 andalso Ratio < 0.8),
    Large = length([V || V <- Values, byte_size(V) >= 80000]),
    ?assert(Large > 60 andalso Large < 150),
    ?assert(lists:min([byte_size(V) || V <- Values]) >= 8000).

unknown_generators_are_named_test_() ->
    [fun() -> named(Word, fun() -> weft_load_generator:Kind(Spec, ?CONTEXT) end) end
     || {Kind, Spec, Word} <-
            [{keys, {no_such, 1}, "key_generator: there is no generator {no_such,1}; there are u"},
             {keys, {no_such, 1}, "partitioned_sequential_int"},
             {values, {uniform_int, 0}, "value_generator: there is no generator {uniform_int,0}"},
             {values, {no_such, 1}, "semi_compressible"},
             {keys, {to_binstr, "~b", {no_such, 2}}, "{no_such,2}"},
             {keys, {int_to_bin, {uniform_int, 3}}, "int_to_bin_bigendian"},
             {keys, {{crypto_hash, none_such}, <<>>}, "none_such"},
             {values, {function, no_such_module, f, []}, "no_such_module:f/1"}]].

named(Word, Fun) ->
    try Fun() of Other -> error({not_refused, Other})
    catch throw:{config, Text} ->
            ?assertNotEqual(nomatch, string:find(lists:flatten(Text), Word))
    end.
