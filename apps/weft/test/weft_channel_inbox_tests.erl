%% SPDX-License-Identifier: Apache-2.0
%% @doc A payload that was decoded, and makes no sense, is malformed; whoever takes it goes on.
-module(weft_channel_inbox_tests).

-include_lib("eunit/include/eunit.hrl").

improper_lists_are_malformed_test_() ->
    [?_assertEqual(malformed, weft_channel_inbox:take(Payload, inbox()))
     || Payload <- [{groups, [[nobody | improper]]}, {groups, [[nobody, message | improper]]},
                    {groups, [[nobody, message] | improper]}, {items, [[nobody | x] | improper]}]].

a_message_for_nobody_is_none_to_refuse_test() ->
    ?assertMatch({ok, _}, weft_channel_inbox:take({groups, [[nobody, message]]}, inbox())).

inbox() ->
    weft_channel_inbox:new(#{counters => weft_channel_counters:new(), mailbox_max => infinity}).
