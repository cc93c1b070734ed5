%% SPDX-License-Identifier: Apache-2.0
%% @doc What may wait in a mailbox: limits are kept whoever takes what when, and who catches up gets
%% messages again.
-module(weft_backlog_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MESSAGES, 8).
-define(BYTES, 800).

as_many_as_the_limit_are_sent_without_a_look_test() ->
    Full = send_many(?MESSAGES, 1, new()),
    ?assertEqual(look, weft_backlog_core:offer(1, Full)).

as_many_bytes_as_the_limit_are_sent_without_a_look_test() ->
    Full = send_many(4, 200, new()),
    ?assertEqual(look, weft_backlog_core:offer(1, Full)).

who_took_them_all_gets_more_test() ->
    {send, Backlog} = weft_backlog_core:looked(0, 1, send_many(?MESSAGES, 1, new())),
    _ = send_many(?MESSAGES - 1, 1, Backlog).

who_took_none_is_behind_until_half_is_taken_test() ->
    {behind, Behind} = weft_backlog_core:looked(?MESSAGES, 1, send_many(?MESSAGES, 1, new())),
    ?assertMatch({behind, Behind}, weft_backlog_core:offer(1, Behind)),
    {false, Still} = weft_backlog_core:catches_up(5, Behind),
    ?assert(weft_backlog_core:is_behind(Still)),
    {true, Well} = weft_backlog_core:catches_up(4, Still),
    ?assertMatch({send, _}, weft_backlog_core:offer(1, Well)).

%% The oldest are taken first: of a large and three small ones the small ones wait.
bytes_are_those_of_the_newest_messages_test() ->
    Sent = send_many(3, 10, send_many(1, 700, new())),
    ?assertMatch({send, _}, weft_backlog_core:looked(3, 200, Sent)),
    ?assertMatch({behind, _}, weft_backlog_core:looked(4, 200, Sent)).

new() ->
    weft_backlog_core:new({?MESSAGES, ?BYTES}).

send_many(0, _Bytes, Backlog) ->
    Backlog;
send_many(Count, Bytes, Backlog0) ->
    {send, Backlog} = weft_backlog_core:offer(Bytes, Backlog0),
    send_many(Count - 1, Bytes, Backlog).

no_more_than_the_limits_ever_waits_test_() ->
    {timeout, 60,
     fun() -> ?assert(proper:quickcheck(prop_limits(), [quiet, {numtests, 2000}])) end}.

%% A mailbox beside the account of it: messages come, and are taken from the front.
prop_limits() ->
    ?FORALL(Steps, list(oneof([{send, range(0, 200)}, {take, range(1, 6)}, look])),
            begin
                {Mailbox, Backlog, IsKept} = lists:foldl(fun step/2, {[], new(), true}, Steps),
                {true, _} = weft_backlog_core:catches_up(0, Backlog),
                ?WHENFAIL(io:format("in the mailbox: ~p~n", [Mailbox]), IsKept)
            end).

step({send, Bytes}, {Mailbox, Backlog, IsKept}) ->
    case offer(Bytes, Mailbox, Backlog) of
        {send, Next} -> {Mailbox ++ [Bytes], Next, IsKept andalso is_within(Mailbox ++ [Bytes])};
        {behind, Next} -> {Mailbox, Next, IsKept}
    end;
step({take, Count}, {Mailbox, Backlog, IsKept}) ->
    {lists:nthtail(min(Count, length(Mailbox)), Mailbox), Backlog, IsKept};
step(look, {Mailbox, Backlog, IsKept}) ->
    {_, Next} = weft_backlog_core:catches_up(length(Mailbox), Backlog),
    {Mailbox, Next, IsKept}.

offer(Bytes, Mailbox, Backlog) ->
    case weft_backlog_core:offer(Bytes, Backlog) of
        look -> weft_backlog_core:looked(length(Mailbox), Bytes, Backlog);
        Result -> Result
    end.

is_within(Mailbox) ->
    length(Mailbox) =< ?MESSAGES andalso lists:sum(Mailbox) =< ?BYTES.
