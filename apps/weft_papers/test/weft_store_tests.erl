%% SPDX-License-Identifier: Apache-2.0
%% @doc What the experiments on Riak do with a store of one node, which is this one; and how they
%% read a timeline. Clusters of them are measured by weft_paper_SUITE.
-module(weft_store_tests).

-include_lib("eunit/include/eunit.hrl").

%% --- a timeline -------------------------------------------------------------------------------

throughput_is_back_where_three_seconds_are_test() ->
    Done = [100, 100, 40, 50, 90, 96, 96, 95, 60],
    Recovery = fun(Begin, End) -> weft_store_timeline:recovery(Done, {Begin, End}, 100) end,
    ?assertEqual({ok, 3}, Recovery(2, 8)),
    ?assertEqual({ok, 0}, Recovery(5, 8)),
    ?assertEqual(none, Recovery(2, 5)),
    %% Two good seconds at the end are not three.
    ?assertEqual(none, Recovery(2, 7)).

%% A node that is killed before throughput is back from the kill before is no recovery from that.
of_several_faults_the_longest_recovery_counts_test() ->
    Done = [100, 100, 40, 96, 96, 96, 40, 50, 60, 96, 96, 96],
    Longest = fun(Times) -> weft_store_timeline:longest(Done, Times, 100) end,
    ?assertEqual({ok, 3}, Longest([{2, 6}, {6, 12}])),
    ?assertEqual({ok, 1}, Longest([{2, 6}])),
    ?assertEqual(none, Longest([{2, 6}, {6, 11}])),
    ?assertEqual(none, Longest([{2, 5}, {6, 12}])).

%% --- messages that wait ------------------------------------------------------------------------

%% Each node looks at times of its own, which may be late.
of_all_nodes_the_most_counts_test() ->
    ?assertEqual([{100, 3}, {200, 7}, {300, 1}],
                 weft_store_mailbox:of_all([[{100, 3}, {203, 0}, {304, 1}], [{101, 2}, {201, 7}]])),
    ?assertEqual([], weft_store_mailbox:of_all([[], []])).

%% As those of single requests, and of connections.
processes_without_a_name_are_seen_where_all_are_looked_at_test() ->
    Waiting = spawn(fun() -> receive stop -> ok end end),
    _ = [Waiting ! Number || Number <- lists:seq(1, 1000)],
    Named = looked_at(named),
    All = looked_at(all),
    Waiting ! stop,
    ?assert(Named < 1000),
    ?assert(All >= 1000).

looked_at(Which) ->
    Looking = weft_store_mailbox:start(Which, 10),
    %% pacing: some looks
    receive after 50 -> ok end,
    case weft_store_mailbox:stop(Looking) of
        [] -> looked_at(Which);
        Seen -> lists:max([Messages || {_, Messages} <- Seen])
    end.

%% --- what is counted ---------------------------------------------------------------------------

what_a_node_receives_and_writes_is_counted_test() ->
    Before = weft_store_cost:counted(),
    ok = received(100000),
    After = weft_store_cost:counted(),
    Measured = maps:from_list(weft_store_cost:per_call(Before, After, 10)),
    ?assertMatch(#{call_received_bytes := Bytes} when Bytes >= 10000, Measured),
    ?assert(map_get(call_received_bytes, Measured) < 20000),
    case {written(), After} of
        {none, _} ->
            ?assertEqual(false, is_map_key(call_written_bytes, Measured));
        {AtMost, #{written := Written}} ->
            ?assert(Written =< AtMost),
            ?assertEqual((Written - map_get(written, Before)) / 10,
                         map_get(call_written_bytes, Measured))
    end.

written() ->
    case file:read_file("/proc/self/io") of
        {ok, Io} ->
            [Bytes] = [Number || <<"write_bytes: ", Number/binary>> <- string:lexemes(Io, "\n")],
            binary_to_integer(Bytes);
        {error, _} -> none
    end.

received(Bytes) ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listening),
    {ok, There} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, Here} = gen_tcp:accept(Listening),
    ok = gen_tcp:send(There, binary:copy(<<0>>, Bytes)),
    {ok, _} = gen_tcp:recv(Here, Bytes),
    lists:foreach(fun gen_tcp:close/1, [There, Here, Listening]).

%% --- clients and the store --------------------------------------------------------------------

on_one_node_test_() ->
    {setup, fun started/0, fun stopped/1,
     fun(_) -> {timeout, 30, fun each_operation_does_what_it_says/0} end}.

started() ->
    Dir = filename:join(filename:basedir(user_cache, "weft_store_tests"), os:getpid()),
    ok = weft_store_ring:begun(Dir, [node()], [{vnodes, [weft_kv_vnode]}]),
    ok = weft_ring:create(),
    Dir.

stopped(Dir) ->
    _ = [application:stop(Application) || Application <- [weft_kv, weft_ring, weft]],
    _ = [application:unload(Application) || Application <- [weft_kv, weft_ring]],
    file:del_dir_r(Dir).

each_operation_does_what_it_says() ->
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    {ok, Filled} = weft_kv:list(bench),
    ?assertEqual(10, length(Filled)),
    Before = written(Filled),
    Got = ran(get),
    ?assertEqual(Before, written(Filled)),
    Updated = ran(update),
    ?assertNotEqual(Before, written(Filled)),
    {ok, Same} = weft_kv:list(bench),
    ?assertEqual(10, length(Same)),
    %% Clients that updated a key at the same time have left several values.
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    Inserted = ran(insert),
    {ok, More} = weft_kv:list(bench),
    ?assertEqual(10 + calls(Inserted), length(More)),
    [?assertMatch({N, 0} when N > 3, {calls(Outcome), failed(Outcome)})
     || Outcome <- [Got, Updated, Inserted]],
    ?assertEqual(undefined, metric(lost_keys, Inserted)),
    ?assertEqual([5, 2], [metric(Name, Inserted#{read_back => 5, lost => 2})
                          || Name <- [read_keys, lost_keys]]),
    with_a_rate(),
    by_library(),
    supervised(),
    a_supervisor_is_timed(),
    filled_anew(Filled),
    failures_are_counted().

%% As each cell does it on the same nodes: no key has the values of all fills. If it had, that would
%% be seen.
filled_anew(Keys) ->
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    ok = weft_store_ring:restarted(spawned),
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    [?assertMatch({ok, _, _}, Value) || Value <- written(Keys)],
    _ = [{ok, _} = weft_kv:put(bench, Key, <<"another">>) || Key <- Keys],
    [?assertMatch({siblings, [_, _], _}, Value) || Value <- written(Keys)],
    Got = ran(get),
    ?assertMatch({0, N} when N > 3, {calls(Got), failed(Got)}),
    %% They are usual where others write.
    ?assertEqual(0, failed(ran(mixed))),
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    [?assertMatch({ok, _, _}, Value) || Value <- written(Keys)].

ran(Operation) ->
    weft_store_clients:run(#{operation => Operation, nodes => [node()], clients => 3, keys => 10,
                             value_bytes => 64, seed => 1, duration_ms => 400}).

%% Requests are due whether the store answers or not: what it holds up counts from then on.
with_a_rate() ->
    Load = #{operation => get, nodes => [node()], clients => 2, keys => 10, value_bytes => 64,
             seed => 1, duration_ms => 400, per_second => 100.0},
    Outcome = weft_store_clients:run(Load),
    Due = due(Outcome),
    ?assert(Due > 40 andalso Due < 130),
    ?assert(calls(Outcome) =< Due),
    %% Of what is due in two seconds some is done in time, also by one that is late for long.
    ?assert(calls(weft_store_clients:run(Load#{duration_ms := 2000})) > 40),
    %% Another seed is another schedule.
    ?assertNotEqual([Due, Due], [due(weft_store_clients:run(Load#{seed := Seed}))
                                 || Seed <- [2, 3]]),
    %% Each of many clients is due once in 100 seconds, and none of them to begin with.
    #{latencies := Few} = weft_store_clients:run(Load#{clients => 50, per_second => 0.01}),
    ?assert(weft_load_histogram:count(Few) < 10),
    ok = weft_store_ring:restarted(one_supervisor),
    %% For three quarters of the time, and for longer than that.
    [begin
         #{latencies := Latencies} = Late = while_it_stands_still(Ms, Load),
         ?assertEqual({Ms, Due}, {Ms, due(Late)}),
         ?assert(weft_load_histogram:percentile(60, Latencies) > 50000)
     end || Ms <- [300, 600]],
    ok = weft_store_ring:restarted(spawned).

while_it_stands_still(Ms, Load) ->
    ok = sys:suspend(weft_kv_request_sup),
    %% pacing: so long
    _ = spawn(fun() -> receive after Ms -> sys:resume(weft_kv_request_sup) end end),
    weft_store_clients:run(Load).

due(Outcome) -> weft_store_clients:due([Outcome]).
calls(Outcome) -> metric(calls, Outcome).
failed(Outcome) -> metric(failed_operations, Outcome).
metric(Name, Outcome) -> proplists:get_value(Name, weft_store_clients:metrics([Outcome])).

written(Keys) ->
    [weft_kv:get(bench, Key) || Key <- Keys].

%% As programs have it: no more time, and no more tries, than by default. What is read at the end is
%% to tell what is lost, and may be tried again.
by_library() ->
    {module, _} = code:ensure_loaded(weft_kv_served),
    1 = erlang:trace_pattern({weft_kv_served, run, 2}, true, [global]),
    _ = erlang:trace(all, true, [call]),
    Outcome = weft_store_clients:run(#{operation => mixed, through => library, nodes => [node()],
                                       clients => 2, keys => 10, value_bytes => 64, seed => 7,
                                       duration_ms => 300, read_back => 1}),
    _ = erlang:trace(all, false, [call]),
    Asked = asked_with(erlang:trace_delivered(all)),
    {Again, Once} = lists:partition(fun(Options) -> is_map_key(retries, Options) end, Asked),
    ?assertEqual(metric(read_keys, Outcome), length(Again)),
    ?assert(length(Once) >= calls(Outcome)),
    ?assert(lists:max([Ms || #{timeout_ms := Ms} <- Once]) =< 5000 / 3),
    ?assert(metric(latency_max_us, Outcome) >= metric(latency_p99_us, Outcome)).

%% The options of the requests that came to the store. Who asks for the ring has none.
asked_with(Delivered) ->
    receive
        {trace, _, call, {weft_kv_served, run, [What, _Try]}} ->
            [Options || Options <- [element(tuple_size(What), What)], is_map(Options)]
                ++ asked_with(Delivered);
        {trace_delivered, all, Delivered} ->
            []
    end.

%% The switch of the store: requests wait for the supervisor while it stands still, and otherwise
%% they do not.
supervised() ->
    %% Those before may have left several values.
    ok = weft_store_clients:fill(lists:seq(1, 10), 64),
    {ok, [Key | _]} = weft_kv:list(bench),
    ok = weft_store_ring:restarted(one_supervisor),
    ok = sys:suspend(weft_kv_request_sup),
    Self = self(),
    Asking = spawn(fun() -> Self ! {self(), weft_kv:get(bench, Key)} end),
    weft_test_nodes:until(fun() -> is_seen_waiting(Asking) end),
    ok = sys:resume(weft_kv_request_sup),
    receive {Asking, Answer} -> ?assertMatch({ok, _, _}, Answer) end,
    ?assertMatch(#{failed := 0}, #{failed => failed(ran(get))}),
    ok = weft_store_ring:restarted(spawned),
    ?assertEqual(undefined, whereis(weft_kv_request_sup)),
    ?assertMatch({ok, _, _}, weft_kv:get(bench, Key)).

%% By all that it starts in that time.
a_supervisor_is_timed() ->
    ok = weft_store_ring:restarted(one_supervisor),
    Request = {weft_kv_request_sup, request, 1},
    1 = erlang:trace_pattern(Request, true, [call_count]),
    {ElapsedUs, Us} = timer:tc(fun() -> weft_store_cost:supervised_us(100) end),
    {call_count, Started} = erlang:trace_info(Request, call_count),
    1 = erlang:trace_pattern(Request, false, [call_count]),
    ok = weft_store_ring:restarted(spawned),
    ?assert(Started > 8),
    ?assert(Us * Started > 99999),
    ?assert(Us * Started < ElapsedUs + 1).

%% If this process was late and the one that looks was, too, it has not looked.
is_seen_waiting(Asking) ->
    Looking = weft_store_mailbox:start(named, 100),
    %% pacing: two looks, in which the request must not be answered
    receive {Asking, TooEarly} -> erlang:error(TooEarly) after 250 -> ok end,
    lists:member(1, [Length || {_, Length} <- weft_store_mailbox:stop(Looking)]).

%% Without the application no session can do anything.
failures_are_counted() ->
    ok = application:stop(weft_kv),
    Outcome = ran(get),
    ?assertEqual(0, calls(Outcome)),
    ?assert(failed(Outcome) > 3).
