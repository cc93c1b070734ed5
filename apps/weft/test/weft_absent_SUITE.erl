%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that are named but are not there: an attempt to reach one takes about as long as on
%% the stock carrier, each time, also when attempts follow one another, and when the overlay wants a
%% link to that node itself and has long pauses between its own attempts.
%%
%% Both carriers are measured in turn, in one run. COUNT=50 makes more attempts (20).
-module(weft_absent_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, call/5]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([epmd_does_not_know_it/1, there_is_no_epmd/1, its_port_refuses/1,
         the_overlay_wants_a_link_to_it/1, it_would_be_behind_a_gateway/1,
         it_was_behind_a_gateway/1, many_at_once/1]).
-export([attempts_us/2, calls/2]).

-define(ROUNDS, 20).
%% A busy machine may spoil one.
-define(SERIES, 3).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [epmd_does_not_know_it, there_is_no_epmd, its_port_refuses, the_overlay_wants_a_link_to_it,
     it_would_be_behind_a_gateway, it_was_behind_a_gateway, many_at_once].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

epmd_does_not_know_it(Config) ->
    compare(stock(Config), weft(Config), node_name(nobody)).

there_is_no_epmd(Config) ->
    Port = integer_to_list(weft_test_nodes:free_port()),
    Args = ["-dist_listen", "false", "-start_epmd", "false", "-erl_epmd_port", Port,
            "-epmd_port", Port],
    compare(start(stock_alone, #{carrier => stock, args => Args}, Config),
            start(weft_alone, #{args => Args}, Config), node_name(nobody)).

%% epmd keeps the name of a process that is not to be reached.
its_port_refuses(Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Registered = register_at_epmd("stale", weft_test_nodes:free_port(), EpmdPort),
    compare(stock(Config), weft(Config), node_name(stale)),
    ok = gen_tcp:close(Registered).

register_at_epmd(Name, Port, EpmdPort) ->
    Options = [binary, {active, false}, {packet, 2}],
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, EpmdPort, Options),
    ok = gen_tcp:send(Socket, [<<$x, Port:16, $M, 0, 6:16, 5:16, (length(Name)):16>>, Name,
                               <<0:16>>]),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, <<_, 0, _/binary>>} = gen_tcp:recv(Socket, 0, 5000),
    Socket.

the_overlay_wants_a_link_to_it(Config) ->
    Absent = node_name(absent),
    Stock = stock(Config),
    [Weft, _] = start_linked([{wanting, gateway}, {wanting, absent}], [wanting, gateway], Config),
    weft_test_nodes:until(fun() -> pauses_long(Weft, Absent) end),
    compare(Stock, Weft, Absent),
    %% Attempts of others do not hurry those of the overlay.
    ?assert(pauses_long(Weft, Absent)).

%% The pauses of the link to it have become as long as they do, or longer by now.
pauses_long(Node, Absent) ->
    {ok, Link} = call(Node, weft_links, lookup, [Absent]),
    Dial = tuple_to_list(dial(call(Node, sys, get_state, [Link]))),
    [] =/= [RetryMs || RetryMs <- Dial, is_integer(RetryMs), RetryMs >= 1000].

dial(Link) ->
    [Dial] = [Field || Field <- tuple_to_list(Link), is_tuple(Field), element(1, Field) =:= dial],
    Dial.

it_would_be_behind_a_gateway(Config) ->
    Stock = stock(Config),
    [Weft, Gateway] = start_linked([{wanting, gateway}, {gateway, absent}], [wanting, gateway],
                                   Config),
    weft_test_nodes:until(fun() -> is_routed(Weft, Gateway) end),
    compare(Stock, Weft, node_name(absent)).

it_was_behind_a_gateway(Config) ->
    Stock = stock(Config),
    [Weft, _, Absent] = start_linked([{wanting, gateway}, {gateway, absent}],
                                     [wanting, gateway, absent], Config),
    weft_test_nodes:until(fun() -> call(Weft, net_kernel, connect_node, [name(Absent)]) end),
    ok = weft_test_nodes:kill(Absent),
    weft_test_nodes:until(fun() -> not is_routed(Weft, Absent) end),
    weft_test_nodes:until(fun() -> not lists:member(name(Absent),
                                                    call(Weft, erlang, nodes, [connected])) end),
    compare(Stock, Weft, name(Absent)).

is_routed(Node, To) ->
    {error, no_route} =/= call(Node, weft_overlay, route, [name(To)]).

%% Each of them waits for nobody else: one round of what would wait takes seconds. The stock node
%% tells how busy the machine is.
many_at_once(Config) ->
    Weft = weft(Config),
    Absent = [node_name("nobody" ++ integer_to_list(Index)) || Index <- lists:seq(1, 30)],
    {Us, Answers} = call(Weft, timer, tc, [?MODULE, calls, [Absent, ?ROUNDS]], 120000),
    ?assertEqual([{error, {erpc, noconnection}}], Answers),
    {StockUs, _} = call(stock(Config), timer, tc, [?MODULE, calls, [Absent, ?ROUNDS]], 120000),
    ct:pal("~b absent nodes, ~b times: ~b us, on stock ~b us",
           [length(Absent), ?ROUNDS, Us, StockUs]),
    ?assert(Us < max(8_000_000, 8 * StockUs)).

%% @private Runs on a node: what is answered when all are called, so many times.
-spec calls([node()], pos_integer()) -> [term()].
calls(Nodes, Rounds) ->
    lists:usort(lists:append([erpc:multicall(Nodes, erlang, node, [])
                              || _ <- lists:seq(1, Rounds)])).

%% --- measuring --------------------------------------------------------------------------------

%% The two take turns; the first attempts, for which code is loaded, do not count. Something else
%% may hold up some on weft only. Who waits does so each time, or each time that it goes one of the
%% two ways: that is half of them, in each series.
compare(Stock, Weft, Absent) ->
    _ = [call(Node, ?MODULE, attempts_us, [Absent, 2]) || Node <- [Stock, Weft]],
    compare(Stock, Weft, Absent, ?SERIES).

compare(Stock, Weft, Absent, Series) ->
    Turns = [{call(Stock, ?MODULE, attempts_us, [Absent, 2]),
              call(Weft, ?MODULE, attempts_us, [Absent, 2])} || _ <- lists:seq(1, count() div 2)],
    {StockUs, WeftUs} = lists:unzip(Turns),
    [Of, Than] = [lists:sort(lists:append(Us)) || Us <- [WeftUs, StockUs]],
    ct:pal("an attempt on weft: median ~b us, slowest ~b us; on stock: ~b and ~b us",
           [median(Of), lists:last(Of), median(Than), lists:last(Than)]),
    Slow = [Us || Us <- Of, Us > max(2 * median(Than), lists:last(Than)) + 10_000],
    case length(Slow) =< count() div 4 of
        true -> ok;
        false when Series > 1 -> compare(Stock, Weft, Absent, Series - 1);
        false -> ct:fail({slow_us, Slow})
    end.

count() ->
    list_to_integer(os:getenv("COUNT", "20")).

median(Sorted) ->
    lists:nth((length(Sorted) + 1) div 2, Sorted).

%% @private Runs on a node: the time of each of so many attempts, in different ways in turn.
-spec attempts_us(node(), pos_integer()) -> [non_neg_integer()].
attempts_us(Node, Count) ->
    [element(1, timer:tc(fun() -> false = is_there(Way rem 2, Node) end))
     || Way <- lists:seq(1, Count)].

is_there(0, Node) -> net_adm:ping(Node) =:= pong;
is_there(1, Node) -> rpc:call(Node, erlang, node, []) =/= {badrpc, nodedown}.

%% --- nodes ------------------------------------------------------------------------------------

%% The two that most cases share.
stock(Config) -> lasting(stock, #{carrier => stock}, Config).

weft(Config) -> lasting(weft, #{}, Config).

lasting(Name, Options, Config) ->
    weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Options, Config) end).

start(Name, Options, Config) ->
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

start_linked(NamedLinks, Started, Config) ->
    Links = [{node_name(X), node_name(Y)} || {X, Y} <- NamedLinks],
    Options = #{config => [{topology, {static, #{links => Links}}}],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    [begin
         Node = start(Name, Options, Config),
         {ok, _} = call(Node, application, ensure_all_started, [weft]),
         Node
     end || Name <- Started].
