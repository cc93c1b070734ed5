%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench stores' decides without a store; see also weft_stores_SUITE.
-module(weft_stores_tests).

-include_lib("eunit/include/eunit.hrl").

-export([connect/2, ask/2]).

%% A store that answers at once.
connect(Test, Number) ->
    _ = Test ! {connected, Number},
    none.

ask(_Request, none) -> ok.

%% It was one minute for each, however long the clients were to ask.
a_load_may_take_longer_than_it_asks_test() ->
    [?assert(weft_stores:answer_ms(#{operation => get, clients => 1, keys => 1, value_bytes => 1,
                                     ms => Ms}) >= Ms + 10000)
     || Ms <- [0, 2000, 60000, 3600000]].

%% Who collects it has no turn for much longer than clients ask.
what_is_elapsed_ends_with_the_last_operation_test() ->
    Self = self(),
    Load = #{operation => get, clients => 2, keys => 1, value_bytes => 1, ms => 100},
    Running = spawn_link(fun() ->
                             Self ! {self(), weft_stores_clients:run(?MODULE, Self, Load)}
                         end),
    [receive {connected, Number} -> ok end || Number <- [1, 2]],
    true = erlang:suspend_process(Running),
    %% pacing: it can not go on before
    receive after 1000 -> true = erlang:resume_process(Running) end,
    #{elapsed_us := ElapsedUs, latencies := [_ | _]} = receive {Running, Outcome} -> Outcome end,
    ?assert(ElapsedUs >= 100000 andalso ElapsedUs < 900000).

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
    ?assertMatch(["weft", "get", "4", "3.0", "2.000", "3.000" | _], string:lexemes(Weft, " ")),
    ?assertMatch(["redis", "get", "4", "0.0", "none", "none" | _], string:lexemes(Redis, " ")),
    ?assertMatch(["etcd", "get", "4", "1.5", "2.000", "3.000" | _], string:lexemes(Etcd, " ")),
    ?assertEqual(ok, weft_stores:failed([hd(Done)])),
    {error, Text} = weft_stores:failed([Failed | Done]),
    ?assertEqual("each operation failed: get of etcd, get of redis",
                 unicode:characters_to_list(Text)).
