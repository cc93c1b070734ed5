%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits for a peer is bounded by number and by size; who is over it hears of it once.
-module(weft_node_outlet_tests).

-include_lib("eunit/include/eunit.hrl").

-export([full/1]).

-define(MEGABYTE, 1048576).

bytes_are_bounded_test() ->
    Outlet = stopped(),
    Message = binary:copy(<<0>>, ?MEGABYTE),
    Results = [weft_node_outlet:send(Outlet, self(), Message) || _ <- lists:seq(1, 100)],
    Taken = length([ok || ok <- Results]),
    ?assert(Taken >= 60 andalso Taken =< 70),
    ?assertEqual([{error, not_connected}], lists:usort(Results) -- [ok]),
    ?assertEqual(1, told_full()),
    ok = weft_node_outlet:close(Outlet).

one_may_be_larger_test_() ->
    {timeout, 60, fun one_may_be_larger/0}.

one_may_be_larger() ->
    Outlet = stopped(),
    ?assertEqual(ok, weft_node_outlet:send(Outlet, self(), binary:copy(<<0>>, 80 * ?MEGABYTE))),
    ?assertEqual({error, not_connected}, weft_node_outlet:send(Outlet, self(), more)),
    ?assertEqual(1, told_full()),
    ok = weft_node_outlet:close(Outlet).

number_is_bounded_test() ->
    Outlet = stopped(),
    Results = [weft_node_outlet:send(Outlet, self(), x) || _ <- lists:seq(1, 50100)],
    ?assertEqual(50000, length([ok || ok <- Results])),
    ?assertEqual(1, told_full()),
    ok = weft_node_outlet:close(Outlet).

%% One that takes nothing any more: this node is not connected to itself, so it ends at once. What
%% is given to it is counted all the same.
stopped() ->
    false = process_flag(trap_exit, true),
    Outlet = weft_node_outlet:open(self(), 1, welcome, {?MODULE, full, [self()]}),
    receive {'EXIT', _, {shutdown, {lost, _, noconnection}}} -> ok end,
    true = process_flag(trap_exit, false),
    Outlet.

full(Test) ->
    Test ! {?MODULE, full},
    ok.

told_full() ->
    receive {?MODULE, full} -> 1 + told_full() after 0 -> 0 end.
