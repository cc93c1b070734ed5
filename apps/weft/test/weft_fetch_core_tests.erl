%% SPDX-License-Identifier: Apache-2.0
-module(weft_fetch_core_tests).

-include_lib("eunit/include/eunit.hrl").

-include("../src/carrier/queue/weft_frame_sizes.hrl").

-define(SMALL, 100).
-define(LARGE, 20000).

small_frames_are_joined_in_order_test() ->
    {Next, Batch, Bytes, 3, Left} = join([frame(?SMALL, N) || N <- [1, 2, 3]]),
    ?assertEqual({none, []}, {Next, Left}),
    ?assertEqual(joined([1, 2, 3]), iolist_to_binary(Batch)),
    ?assertEqual(Bytes, iolist_size(Batch)).

nothing_is_an_empty_batch_test() ->
    ?assertEqual({none, [], 0, 0, []}, join([])).

a_large_frame_ends_a_batch_test() ->
    Large = frame(?LARGE, 2),
    ?assertMatch({Large, _, _, 1, [_]},
                 threaded(join([frame(?SMALL, 1), Large, frame(?SMALL, 3)]))),
    ?assertMatch({Large, [], 0, 0, []}, threaded(join([Large]))).

a_frame_that_defines_atoms_ends_a_batch_test() ->
    Defining = {?SMALL, [<<131, 68, 1, 8, 0:((?SMALL - 4) * 8)>>]},
    ?assertMatch({Defining, _, _, 1, [_]},
                 threaded(join([frame(?SMALL, 1), Defining, frame(?SMALL, 3)]))).

a_batch_is_no_larger_than_a_payload_test() ->
    Frames = [frame(16000, N rem 256) || N <- lists:seq(1, 10)],
    {full, _, Bytes, 5, Left} = join(Frames),
    ?assertEqual(5, length(Left)),
    ?assert(Bytes >= ?EXPRESS_BYTES).

%% A source that is not changed by asking it, as the VM is.
a_source_may_be_the_same_one_test() ->
    Get = fun(_Vm) ->
              case get(?MODULE) of
                  [Frame | Left] -> put(?MODULE, Left), Frame;
                  [] -> none
              end
          end,
    put(?MODULE, [frame(?SMALL, 1), frame(?SMALL, 2)]),
    {none, Batch, _, 2, vm} = weft_fetch_core:join(Get, vm),
    erase(?MODULE),
    ?assertEqual(joined([1, 2]), iolist_to_binary(Batch)).

all_is_fetched_but_not_at_once_test() ->
    Frames = [frame(?LARGE, N rem 256) || N <- lists:seq(1, 700)],
    {more, Left, Fair} = fetch(Frames, #{}, queue()),
    %% Two megabytes and the frame that reaches them.
    ?assertEqual(700 - 1 - 2097152 div ?LARGE, length(Left)),
    {more, Small, _} = fetch([frame(?SMALL, N rem 256) || N <- lists:seq(1, 700)],
                             #{1 => control}, queue()),
    ?assertEqual(200, length(Small)),
    ?assertMatch({all, [], _}, fetch([], #{}, Fair)).

what_comes_behind_a_batch_is_fetched_with_it_test() ->
    Frames = [frame(?SMALL, 1), frame(?LARGE, 2), frame(?SMALL, 3)],
    {all, [], Fair} = fetch(Frames, #{}, queue()),
    ?assertEqual(3 * 4 + 2 * ?SMALL + ?LARGE, weft_fair_queue_core:bytes(Fair)).

nothing_is_fetched_while_the_queue_is_full_test() ->
    {more, Left, Fair} = fetch([frame(?LARGE, N) || N <- lists:seq(1, 9)], #{},
                               weft_fair_queue_core:new(50000)),
    ?assert(weft_fair_queue_core:full(Fair)),
    ?assertNotEqual([], Left),
    ?assertEqual({more, Left, Fair}, fetch(Left, #{}, Fair)).

queue() -> weft_fair_queue_core:new(134217728).

%% From senders that are known: SEND_SENDER.
frame(Size, N) ->
    Start = <<131, 68, 0, 104, 3, 97, 22, 88, 119, 1, $s, N:32, 0:32, 1:32>>,
    {Size, [Start, <<N, 0:((Size - byte_size(Start) - 1) * 8)>>]}.

joined(Numbers) ->
    iolist_to_binary([[<<?SMALL:32>>, Data] || N <- Numbers, {_, Data} <- [frame(?SMALL, N)]]).

join(Frames) -> weft_fetch_core:join(fun out/1, Frames).

fetch(Frames, Classes, Fair) -> weft_fetch_core:fetch(fun out/1, Frames, Classes, Fair).

threaded({{Size, Data, _}, Batch, Bytes, Pieces, Left}) ->
    {{Size, Data}, Batch, Bytes, Pieces, Left}.

out([{Size, Data} | Left]) -> {Size, Data, Left};
out([]) -> none.
