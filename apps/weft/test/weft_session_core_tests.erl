%% SPDX-License-Identifier: Apache-2.0
-module(weft_session_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MIB, 1048576).

%% What has to be repeated goes first. What there is to fetch is fetched also if it can not be sent.
what_comes_first_test() ->
    ?assertEqual([{flush, flush, flush}, {send, send, fetch}, {send, send, fetch}],
                 for_each(fun weft_session_core:first/2)).

what_there_is_to_do_test() ->
    ?assertEqual([{true, true, true}, {false, true, true}, {false, false, true}],
                 for_each(fun weft_session_core:is_ready/2)).

a_session_rests_if_nothing_waits_test() ->
    ?assertEqual([{false, false, false}, {true, false, false}, {true, false, false}],
                 for_each(fun weft_session_core:may_rest/2)).

for_each(Rule) ->
    [{Rule(Stream, empty()), Rule(Stream, queued()), Rule(Stream, told())}
     || Stream <- [repeating(), stream(), broken()]].

%% --- streams and outlets ----------------------------------------------------------------------

stream() ->
    {Stream, _} = weft_stream_core:acceptor(distribution, ?MIB, {link, [lane], 1}, 0),
    Stream.

broken() ->
    About = #{has_died => false, may_be_found => true, resume_timeout_ms => auto,
              net_ticktime_ms => 60000},
    {ok, Stream, _} = weft_stream_core:handle({closed, link, any, broken, About}, 1, stream()),
    Stream.

%% The peer has not received what was sent on the path before.
repeating() ->
    {write, lane, 1, _, Sent} = weft_stream_core:push(frames, <<1>>, 1, 1, stream()),
    {ok, Stream, _} = weft_stream_core:handle({reattached, other, [another], 2, 0}, 2, Sent),
    Stream.

empty() -> weft_outlet_core:connected([], weft_outlet_core:new(?MIB, false)).

%% There are frames where they are got from.
told() ->
    Frame = weft_test_frames:whole(1, 1, 100),
    weft_outlet_core:more(weft_outlet_core:connected([{iolist_size(Frame), Frame}], empty())).

queued() -> weft_outlet_core:fetch(fun out/1, told()).

out([{Size, Data} | Left]) -> {Size, Data, Left};
out([]) -> none.
