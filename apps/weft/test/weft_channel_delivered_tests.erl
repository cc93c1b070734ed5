%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of acknowledged messages.
-module(weft_channel_delivered_tests).

-include_lib("eunit/include/eunit.hrl").

-define(D, weft_channel_delivered).

%% Its place in the order of a label was taken when it came first.
a_name_without_a_process_is_tried_again_test() ->
    ok = ?D:init(),
    Counters = weft_channel_counters:new(),
    Ref = make_ref(),
    Ack = {Ref, 1000},
    try
        ?assertEqual(true, ?D:is_new(Ack, Counters)),
        ?assertEqual(false, ?D:is_new(Ack, Counters)),
        ok = ?D:deliver(?MODULE, message, Ack, Counters),
        ?assertEqual(again, ?D:is_new(Ack, Counters)),
        true = register(?MODULE, self()),
        ok = ?D:deliver(?MODULE, message, Ack, Counters),
        ?assertEqual(message, receive message -> message after 0 -> none end),
        ?assertEqual(false, ?D:is_new(Ack, Counters)),
        ?assertEqual(nothing, receive message -> message after 0 -> nothing end)
    after
        _ = whereis(?MODULE) =:= self() andalso unregister(?MODULE),
        ets:delete(?D)
    end.
