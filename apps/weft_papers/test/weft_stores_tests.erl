%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench stores' decides without a store; see also weft_stores_SUITE.
-module(weft_stores_tests).

-include_lib("eunit/include/eunit.hrl").

-export([connect/2, ask/2]).

%% A store that answers at once, and one that does not keep all that it acknowledges.
connect({kept, Table}, _Number) ->
    Table;
connect(Test, Number) ->
    _ = Test ! {connected, Number},
    none.

ask(_Request, none) ->
    ok;
ask({put, Key, _Value}, Table) ->
    _ = erlang:phash2(Key, 10) =:= 0 orelse ets:insert(Table, {Key}),
    ok;
ask({get, Key}, Table) ->
    case ets:member(Table, Key) of
        true -> ok;
        false -> {error, not_found}
    end.

what_was_acknowledged_and_is_nowhere_is_lost_test() ->
    Dir = filename:join("/tmp", "weft_stores_tests_" ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    Kept = ets:new(kept, [public]),
    try
        ok = weft_stores_losses:put(?MODULE, {kept, Kept}, Dir, 2000),
        Lost = fun(Stores) -> weft_stores_losses:lost(?MODULE, Stores, Dir, 0) end,
        {Acknowledged, Absent} = Lost([{kept, Kept}]),
        ?assert(Absent > 0),
        ?assertEqual(Acknowledged, Absent + ets:info(Kept, size)),
        ?assertEqual({Acknowledged, 0}, Lost([{kept, Kept}, self()]))
    after ok = file:del_dir_r(Dir)
    end.

%% It was one minute for each, however long the clients were to ask.
a_load_may_take_longer_than_it_asks_test() ->
    [?assert(weft_stores:answer_ms(#{operation => get, clients => 1, keys => 1, value_bytes => 1,
                                     ms => Ms}) >= Ms + 10000)
     || Ms <- [0, 2000, 60000, 3600000]].

%% Who collects it has no turn for much longer than clients ask.
what_is_elapsed_ends_with_the_last_operation_test() ->
    Self = self(),
    %% Long enough for this process to have a turn beside the two before they have ended.
    Load = #{operation => get, clients => 2, keys => 1, value_bytes => 1, ms => 600},
    Running = spawn_link(fun() ->
                             Self ! {self(), weft_stores_clients:run(?MODULE, Self, Load)}
                         end),
    [receive {connected, Number} -> ok end || Number <- [1, 2]],
    true = erlang:suspend_process(Running),
    %% pacing: it can not go on before
    receive after 5000 -> true = erlang:resume_process(Running) end,
    #{elapsed_us := ElapsedUs, latencies := [_ | _]} = receive {Running, Outcome} -> Outcome end,
    ?assert(ElapsedUs >= 600000 andalso ElapsedUs < 4500000).

%% Such a store ended the command, and what others had done was not shown.
what_only_fails_has_no_times_test() ->
    Row = fun(Store, Repetition, Outcome) ->
              weft_stores:row(Store, get, 4, Repetition, fun(_Load) -> Outcome end,
                              #{seconds => 1})
          end,
    Bad = #{latencies => [], errors => 7, elapsed_us => 1000000},
    Good = #{latencies => [2000, 1000, 3000], errors => 0, elapsed_us => 1000000},
    #{p50_us := none, p99_us := none, calls := 0, errors := 7} = Failed = Row(redis, 1, Bad),
    Done = [Row(weft, 1, Good), Row(etcd, 1, Bad), Row(etcd, 2, Good)],
    [_, Weft, Redis, Etcd | _] =
        string:split(unicode:characters_to_list(weft_stores:table([weft, redis, etcd],
                                                                  [Failed | Done])), "\n", all),
    ?assertMatch(["weft", "get", "4", "3.0", "2.000", "3.000", "0" | _],
                 string:lexemes(Weft, " ")),
    ?assertMatch(["redis", "get", "4", "0.0", "none", "none", "7" | _],
                 string:lexemes(Redis, " ")),
    ?assertMatch(["etcd", "get", "4", "1.5", "2.000", "3.000", "7" | _],
                 string:lexemes(Etcd, " ")),
    Killed = [weft_stores:killed(redis, Turn, {100 * Turn, Turn}) || Turn <- [1, 2]],
    ?assertNotEqual(nomatch, string:find(weft_stores:table([redis], [Failed | Killed]),
                                         "3 of 300 acknowledged puts lost")),
    ?assertEqual(ok, weft_stores:status([hd(Done)])),
    {failed, Text} = weft_stores:status([Failed | Done]),
    ?assertEqual("failed: each get of etcd; each get of redis", unicode:characters_to_list(Text)).

%% What the others have done is not lost, but for a disk that is full: that ends all.
what_fails_is_told_and_not_measured_test() ->
    Tried = fun(Turn, Measure) ->
                    weft_stores:tried(Turn, Measure, fun() -> self() ! {written, Turn} end)
            end,
    ?assertEqual([#{}], Tried("one", fun() -> [#{}] end)),
    Failed = Tried("two, turn 1", fun() -> error(no_memory) end),
    ?assertEqual([{failed, "two, turn 1"}], Failed),
    ?assertEqual([{failed, "three"}], Tried("three", fun() -> exit(killed) end)),
    ?assertThrow({results, _}, Tried("four", fun() -> throw({results, "full"}) end)),
    ?assertEqual(["two, turn 1", "three"], written()),
    {failed, Text} = weft_stores:status([#{store => one, operation => get, calls => 1, errors => 0}
                                         | Failed]),
    ?assertEqual("failed: two, turn 1", unicode:characters_to_list(Text)).

written() ->
    receive {written, Turn} -> [Turn | written()]
    after 0 -> []
    end.

%% Of a server that does not answer as it should, or ends: the connection is not used any more.
a_connection_that_fails_is_an_error_test() ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listening),
    [begin
         Connection = weft_stores_program:connect(#{store => Store, ports => [Port]}, 1),
         {ok, Served} = gen_tcp:accept(Listening),
         ok = gen_tcp:close(Served),
         [?assertMatch({Store, {error, _}}, {Store, weft_stores_program:ask(Request, Connection)})
          || Request <- [{get, <<"key">>}, {put, <<"key">>, <<"value">>}]]
     end || Store <- [redis, redis_disk, etcd]],
    ok = gen_tcp:close(Listening).
