%% SPDX-License-Identifier: Apache-2.0
%% @doc What the workloads of weft_partisan_workload leave on their nodes, which the next cells have
%% as well: nothing of what they keep there. And what weft_partisan_ads_workload tells of its
%% server.
-module(weft_partisan_workload_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_ring_is_gone_when_it_was_measured/1, the_server_is_watched/1]).
-export([of_rings/0]).

-define(CALL_MS, 30000).
-define(DURATION_MS, 400).
-define(SIZE_BYTES, 1000).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [a_ring_is_gone_when_it_was_measured, the_server_is_watched].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% On nodes of stock distribution, whose messages to what is gone are lost.
a_ring_is_gone_when_it_was_measured(Config) ->
    with_trio(
      Config,
      fun(Nodes) ->
          [begin
               {ok, Values} = weft_partisan_workload:run(cell(Kind), Nodes),
               [?assertMatch({Metric, Value} when is_number(Value) andalso Value > 0,
                             lists:keyfind(Metric, 1, Values))
                || Metric <- [calls, warm_up_s, measured_s | gossiped(Kind)]],
               ok = weft_test_nodes:until(fun() -> left(Nodes) =:= [] end, ?CALL_MS)
           end || Kind <- [echo, key_value, key_value_paced]]
      end).

gossiped(echo) -> [];
gossiped(_Kind) -> [background_megabytes_per_s].

%% Paced gossip has to come once, at least.
cell(Kind) ->
    #{workload => Kind, size_bytes => ?SIZE_BYTES, pairs => 2,
      with => #{duration_ms => ?DURATION_MS, warm_up_ms => ?DURATION_MS}}.

%% Who gossips takes a moment to end.
left(Nodes) -> lists:append([call(Nodes, Role, ?MODULE, of_rings, []) || Role <- [a, b, c]]).

%% Processes that code of the ring has started on this node, and that have not ended.
of_rings() ->
    [Started || Pid <- processes(), Pid =/= self(),
                {current_function, Started} <- [process_info(Pid, current_function)],
                lists:member(element(1, Started), [weft_partisan_ring, weft_partisan_gossip])].

%% While an advertisement is shown, which all nodes do.
the_server_is_watched(Config) ->
    weft_bench_test_cluster:with_nodes(
      weft_mesh, weft_bench_cluster:shape(3, []), Config,
      fun(Nodes) ->
          {ok, Values} = weft_partisan_ads_workload:run(
                           #{workload => ads, pairs => 3,
                             with => #{impressions => 10, faster => 50}}, Nodes),
          Of = maps:from_list(Values),
          #{server_cpu_percent := OfServer, nodes_cpu_percent := OfAll, duration_s := Seconds,
            server_mailbox_max := Messages} = Of,
          ?assert(Seconds >= 1.8),
          ?assert(OfServer > 0),
          ?assert(OfAll > OfServer),
          ?assert(OfAll =< 100 * 3 * erlang:system_info(logical_processors)),
          ?assert(is_integer(Messages) andalso Messages >= 0)
      end).

with_trio(Config, Test) ->
    Dir = ?config(priv_dir, Config),
    Here = filename:absname(filename:dirname(code:which(?MODULE))),
    weft_bench_place:with(
      weft_bench_link:loopback(), Dir,
      fun(Place) ->
          {ok, Nodes} = weft_bench_nodes:start(stock, trio, #{place => Place, log_dir => Dir}),
          try
              [true = call(Nodes, Role, code, add_patha, [Here]) || Role <- [a, b, c]],
              Test(Nodes)
          after weft_bench_nodes:stop(Nodes)
          end
      end).

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).
