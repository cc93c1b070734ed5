%% SPDX-License-Identifier: Apache-2.0
%% @doc A replica of a strong bucket that stands still, as when its disk hangs: what waits before it
%% does not grow without end, and it is asked again when it goes on. Who counts as standing still is
%% in `weft_vnode_stalled_tests'.
-module(weft_kv_strong_stalled_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, weft_kv_strong_stalled).

a_replica_that_hangs_is_not_asked_test_() ->
    {setup, fun bucket/0, fun({Dir, _}) -> ok = file:del_dir_r(Dir) end,
     fun({_, Options}) -> {timeout, 60, fun() -> hangs(Options) end} end}.

hangs(Options) ->
    {ok, Replica} = weft_kv_strong_acceptor:start_link(box, 0, Options),
    {ok, Watcher} = ?S:start_link(#{box => Options}),
    Name = weft_kv_strong_bucket:name(box, 0),
    ok = stands_still(Replica),
    _ = asked(1, ?S:queue_max(), Replica, Options),
    %% It may be asked that much.
    [Watcher ! look || _ <- lists:seq(1, 10)],
    _ = sys:get_state(Watcher),
    ?assertEqual(Replica, whereis(Name)),
    _ = asked(?S:queue_max() + 1, ?S:queue_max() + 1, Replica, Options),
    weft_test_nodes:until(fun() ->
                              Watcher ! look,
                              _ = sys:get_state(Watcher),
                              whereis(Name) =:= undefined
                          end),
    %% Who asks now is told at once, and nothing more waits.
    Before = process_info(Replica, message_queue_len),
    ?assertMatch({error, {not_done, {no_quorum, #{failed := [{_, not_running}]}}}},
                 requested(get, Options)),
    ?assertEqual({error, not_running}, weft_kv_strong_acceptor:status(box, 0)),
    ?assertEqual(Before, process_info(Replica, message_queue_len)),
    %% It is the same one that comes back, and has answered those who waited.
    Replica ! go,
    weft_test_nodes:until(fun() -> whereis(Name) =:= Replica end),
    ?assertEqual(?S:queue_max(),
                 length([N || N <- lists:seq(1, ?S:queue_max() + 1),
                              {state, _, _} <- [receive {N, Answer} -> Answer end]])),
    ?assertEqual(ok, requested({put, <<"new">>}, Options)),
    true = unlink(Watcher),
    ok = gen_server:stop(Watcher),
    true = unlink(Replica),
    ok = gen_server:stop(Replica).

%% Another one has nothing to look at.
where_no_replica_is_nobody_looks_test() ->
    {ok, Options} = weft_kv_bucket:check(#{consistency => strong, voters => [other@host], n => 1,
                                           dir => "nowhere"}),
    {ok, Eventual} = weft_kv_bucket:check(#{}),
    ?assertEqual(ignore, ?S:start_link(#{box => Options, carts => Eventual})).

%% As in a call to a file: it takes no message, and makes no step.
stands_still(Replica) ->
    Stand = fun(State) -> receive go -> State end end,
    _ = spawn_link(fun() -> sys:replace_state(Replica, Stand, infinity) end),
    weft_test_nodes:until(fun() ->
                              {current_function, {Module, _, _}} =
                                  process_info(Replica, current_function),
                              Module =:= ?MODULE andalso
                                  process_info(Replica, status) =:= {status, waiting}
                          end).

asked(First, Last, Replica, Options) ->
    Configuration = weft_kv_strong_bucket:configuration(box, Options),
    Question = {vote, 2, Configuration, {{0, #{}}, {read, <<"k">>}}},
    [Replica ! {'$gen_call', {self(), N}, Question} || N <- lists:seq(First, Last)].

requested(Request, Options) ->
    weft_kv_strong_request:run(box, <<"k">>, Request, Options, weft_kv_admission:new(10)).

bucket() ->
    Dir = filename:join("/tmp", lists:concat([?MODULE, os:getpid(),
                                              erlang:unique_integer([positive])])),
    {ok, Options} = weft_kv_bucket:check(#{consistency => strong, voters => [node()], n => 1,
                                           partitions => 1, dir => Dir, timeout_ms => 20000}),
    {Dir, Options}.
