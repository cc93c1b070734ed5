%% SPDX-License-Identifier: Apache-2.0
-module(weft_sim_ticker_tests).

-include_lib("eunit/include/eunit.hrl").

a_tick_is_sent_when_nothing_was_written_test() ->
    {tick, Ticker1} = weft_sim_ticker:look(0, 0, weft_sim_ticker:new()),
    %% The tick itself counts as written.
    {tick, Ticker2} = weft_sim_ticker:look(0, 1, Ticker1),
    ?assertMatch({rest, _}, weft_sim_ticker:look(0, 3, Ticker2)).

%% What it was told to be written, and is not, keeps the next tick back.
a_tick_that_is_not_counted_costs_the_next_one_test() ->
    {tick, Ticker} = weft_sim_ticker:look(0, 0, weft_sim_ticker:new()),
    ?assertMatch({rest, _}, weft_sim_ticker:look(0, 0, Ticker)).

a_peer_of_which_nothing_is_read_does_not_respond_test() ->
    ?assertEqual(not_responding, looks([1, 1, 1, 1, 1])),
    ?assertNotEqual(not_responding, looks([1, 1, 1, 1])),
    ?assertNotEqual(not_responding, looks([1, 1, 2, 2, 3, 3, 3, 4, 4])).

looks(Reads) ->
    lists:foldl(fun(_Read, not_responding) -> not_responding;
                   (Read, Ticker) ->
                        case weft_sim_ticker:look(Read, 0, Ticker) of
                            not_responding -> not_responding;
                            {_, Looked} -> Looked
                        end
                end, weft_sim_ticker:new(), Reads).
