%% SPDX-License-Identifier: Apache-2.0
%% @doc The kernel's end of a connection that a stock node began.
-module(weft_stock_tests).

-include_lib("eunit/include/eunit.hrl").

%% The process that has read the first message was killed, as others needed its place, after the
%% kernel had been asked.
who_is_not_given_the_socket_ends_test() ->
    {Examiner, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Examiner, _} -> ok end,
    Accept = spawn(weft_stock, accept, [self(), Examiner, {stock, socket, <<>>}, node(), [], 1000]),
    weft_test_nodes:until(fun() -> not is_process_alive(Accept) end).
