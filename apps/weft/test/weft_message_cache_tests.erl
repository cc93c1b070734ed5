%% SPDX-License-Identifier: Apache-2.0
%% @doc The cache keeps the newest messages within its bounds, and tells what others lack.
-module(weft_message_cache_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, {'a@host', 1}).
-define(B, {'b@host', 1}).

filled(Options) ->
    lists:foldl(fun({Id, Ms}, Cache) -> weft_message_cache:add(Id, 2, <<"12345">>, Ms, Cache) end,
                weft_message_cache:new(Options),
                [{{?A, 1}, 0}, {{?B, 4}, 10}, {{?A, 2}, 20}, {{?A, 4}, 30}]).

a_message_is_found_until_it_is_too_old_test() ->
    Cache = filled(#{cache_ms => 1000}),
    ?assertEqual({ok, 2, <<"12345">>}, weft_message_cache:get({?A, 2}, Cache)),
    ?assertEqual(error, weft_message_cache:get({?A, 3}, Cache)),
    Later = weft_message_cache:expire(1010, Cache),
    ?assertEqual([{?A, [{4, 4}, {2, 2}]}], weft_message_cache:summary(Later)),
    ?assertEqual([], weft_message_cache:summary(weft_message_cache:expire(1030, Cache))).

the_oldest_go_when_there_are_too_many_messages_or_bytes_test_() ->
    [?_assertEqual([{?A, [{4, 4}, {2, 2}]}], weft_message_cache:summary(filled(Options)))
     || Options <- [#{cache_max => 2}, #{cache_bytes => 10}]].

what_another_cache_lacks_test() ->
    Cache = filled(#{}),
    ?assertEqual([], weft_message_cache:lacking(weft_message_cache:summary(Cache), Cache)),
    ?assertEqual([{{?A, 1}, 2}, {{?B, 4}, 2}],
                 weft_message_cache:lacking([{?A, [{2, 9}]}, {?B, [{5, 5}]}], Cache)).
