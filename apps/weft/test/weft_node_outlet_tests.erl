%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits for a peer is bounded by number and by size; who is over it hears of it once. And
%% when the process ends.
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
    Large = binary:copy(<<0>>, 80 * ?MEGABYTE),
    ?assertEqual([ok, ok], [weft_node_outlet:send(Outlet, self(), Message)
                            || Message <- [Large, more]]),
    ?assertEqual(0, told_full()),
    ?assertEqual([ok, {error, not_connected}],
                 [weft_node_outlet:send(Outlet, self(), Large) || _ <- [1, 2]]),
    ?assertEqual(1, told_full()),
    ok = weft_node_outlet:close(Outlet).

number_is_bounded_test() ->
    Outlet = stopped(),
    Results = [weft_node_outlet:send(Outlet, self(), x) || _ <- lists:seq(1, 50100)],
    ?assertEqual(50000, length([ok || ok <- Results])),
    ?assertEqual(1, told_full()),
    ok = weft_node_outlet:close(Outlet).

who_opens_no_session_leaves_no_process_test_() ->
    {timeout, 60, fun who_opens_no_session_leaves_no_process/0}.

who_opens_no_session_leaves_no_process() ->
    ok = weft_node_outlet:new_table(),
    {ok, Pid} = gen_server:start(weft_node_outlet, {node(), shared}, []),
    Monitor = monitor(process, Pid),
    ?assertEqual([{{node(), shared}, Pid}], ets:tab2list(weft_node_outlet)),
    ?assertEqual(ignore, gen_server:start(weft_node_outlet, {node(), shared}, [])),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end,
    ?assertEqual([], ets:tab2list(weft_node_outlet)),
    true = ets:delete(weft_node_outlet).

the_row_of_one_that_was_killed_is_no_obstacle_test() ->
    ok = weft_node_outlet:new_table(),
    {ok, Pid} = gen_server:start(weft_node_outlet, {node(), shared}, []),
    Monitor = monitor(process, Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
    ?assertMatch([_], ets:tab2list(weft_node_outlet)),
    _ = not_connected(),
    true = ets:delete(weft_node_outlet).

%% One that takes nothing any more: this node is not connected to itself, so it ends at once. What
%% is given to it is counted all the same.
stopped() ->
    ok = weft_node_outlet:new_table(),
    Outlet = not_connected(),
    true = ets:delete(weft_node_outlet),
    Outlet.

not_connected() ->
    Outlet = weft_node_outlet:open(shared, self(), 1, welcome, {?MODULE, full, [self()]}),
    Session = weft_node_outlet:reference(Outlet),
    receive {weft_outlet_lost, Session, noconnection} -> ok end,
    receive {'DOWN', Session, process, _, normal} -> ok end,
    Outlet.

full(Test) ->
    Test ! {?MODULE, full},
    ok.

told_full() ->
    receive {?MODULE, full} -> 1 + told_full() after 0 -> 0 end.
