%% SPDX-License-Identifier: Apache-2.0
%% @doc The node is asked once at a time, for all who want to know; what does not answer is left out
%% and counted.
-module(weft_ops_snapshot_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STATUS, #{sessions => [], links => []}).

those_who_ask_at_once_get_one_result_test_() ->
    with(5000, fun(Asked) ->
        Test = self(),
        Scrapers = [spawn_link(fun() -> Test ! {self(), weft_ops_snapshot:take()} end)
                    || _ <- lists:seq(1, 20)],
        Reader = receive {asked, Pid} -> Pid end,
        Reader ! {answer, ?STATUS},
        Results = [receive {Scraper, Result} -> Result end || Scraper <- Scrapers],
        ?assertMatch([{ok, #{status := #{sessions := []}, peers := []}}], lists:usort(Results)),
        {ok, Again} = weft_ops_snapshot:take(),
        ?assertEqual([{ok, Again}], lists:usort(Results)),
        ?assertEqual(1, counters:get(Asked, 1))
    end).

who_does_not_answer_is_left_out_and_counted_test_() ->
    with(1000, fun(_) ->
        {ok, Snapshot} = weft_ops_snapshot:take(),
        ?assertMatch(#{errors := #{status := 1, peers := 1, families := 0}}, Snapshot),
        ?assertNot(is_map_key(status, Snapshot)),
        Reader = receive {asked, Pid} -> Pid end,
        ?assertNot(is_process_alive(Reader))
    end).

who_fails_is_left_out_and_counted_test_() ->
    with(5000, fun(_) ->
        Test = self(),
        Scraper = spawn_link(fun() -> Test ! {self(), weft_ops_snapshot:take()} end),
        receive {asked, Reader} -> Reader ! {answer, #{sessions => [], links => no_list}} end,
        {ok, Snapshot} = receive {Scraper, Result} -> Result end,
        ?assertMatch(#{status := #{}, errors := #{status := 0, peers := 1}}, Snapshot),
        ?assertNot(is_map_key(peers, Snapshot))
    end).

%% What it did not say is missing, and no more.
a_process_that_did_not_answer_is_counted_test_() ->
    with(5000, fun(_) ->
        Test = self(),
        Scraper = spawn_link(fun() -> Test ! {self(), weft_ops_snapshot:take()} end),
        Unanswered = [#{what => session, node => b@h, pid => self()},
                      #{what => session, node => c@h, pid => self()}, #{what => names}],
        receive {asked, Reader} ->
            Reader ! {answer, (?STATUS)#{unanswered => Unanswered}}
        end,
        {ok, Snapshot} = receive {Scraper, Result} -> Result end,
        ?assertMatch(#{status := #{}, peers := [],
                       errors := #{status := 0, session := 2, link := 0, service := 1}}, Snapshot)
    end).

%% The others are reported when the time is up.
a_store_that_does_not_answer_is_left_out_and_counted_test_() ->
    with(2000, fun(_) ->
        Test = self(),
        true = register(weft_ring_server, Silent = spawn(fun() -> receive stop -> ok end end)),
        Scraper = spawn_link(fun() -> Test ! {self(), weft_ops_snapshot:take()} end),
        receive {asked, Reader} -> Reader ! {answer, ?STATUS} end,
        {ok, Snapshot} = receive {Scraper, Result} -> Result end,
        Silent ! stop,
        ?assertMatch(#{status := #{}, peers := [], errors := #{stores := 1, status := 0}},
                     Snapshot),
        ?assertNot(is_map_key(stores, Snapshot))
    end).

%% As net_kernel:nodes_info/0 does, which peers are read by.
who_takes_all_messages_of_monitors_delays_nothing_test_() ->
    {timeout, 60, fun() ->
        Read = fun(_TimeoutMs) ->
                       receive {'DOWN', _, _, _, _} -> ?STATUS after 300 -> ?STATUS end
               end,
        {Worker, Monitor} = spawn_monitor(weft_ops_snapshot, gather, [self(), Read, 5000]),
        receive {'DOWN', Monitor, process, Worker, Reason} -> ?assertEqual(normal, Reason)
        after 20000 -> error(never_ended)
        end
    end}.

families_that_fail_are_counted_test_() ->
    with(50, fun(_) ->
        ok = weft_ops_snapshot:failed(families),
        ?assertMatch({ok, #{errors := #{families := 1}}}, weft_ops_snapshot:take())
    end).

strange_messages_end_nothing_test_() ->
    with(50, fun(_) ->
        Server = whereis(weft_ops_snapshot),
        Server ! strange,
        Server ! {late, self()},
        ok = gen_server:cast(Server, strange),
        ?assertMatch({error, _}, gen_server:call(Server, strange)),
        ?assertMatch({ok, _}, weft_ops_snapshot:take()),
        ?assertEqual(Server, whereis(weft_ops_snapshot))
    end).

without_the_server_there_is_nothing_test() ->
    ?assertEqual(not_running, weft_ops_snapshot:take()),
    ?assertEqual(ok, weft_ops_collector:collect_mf(default, fun erlang:error/1)),
    ?assertEqual(ok, weft_ops_dist_collector:collect_mf(default, fun erlang:error/1)).

%% Runs a test with a server whose reader tells the test that it was asked, and how often, and
%% answers what it is told to.
with(TimeoutMs, Test) ->
    {timeout, 30, fun() ->
        Self = self(),
        Asked = counters:new(1, []),
        Read = fun(_TimeoutMs) ->
                       ok = counters:add(Asked, 1, 1),
                       Self ! {asked, self()},
                       receive {answer, Status} -> Status end
               end,
        {ok, Config} = weft_ops_config:parse([{timeout_ms, TimeoutMs}]),
        {ok, Server} = weft_ops_snapshot:start_link(Config, Read),
        try Test(Asked)
        after ok = gen_server:stop(Server)
        end
    end}.
