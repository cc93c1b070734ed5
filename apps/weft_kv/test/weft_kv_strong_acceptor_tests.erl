%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a replica whose file cannot be written: it answers with errors, and keeps no
%% more than what it could not write the first time.
-module(weft_kv_strong_acceptor_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, weft_kv_strong_acceptor).
%% What `start_link/3' takes, but for the directory.
-define(OPTIONS, #{consistency => strong, voters => [node()], n => 1, partitions => 1,
                   keys_max => 100, value_max => 100, timeout_ms => 1000}).

a_disk_that_takes_nothing_fills_no_memory_test_() ->
    {timeout, 30, fun() -> with_replica(fun refuses/2) end}.

refuses(Replica, Configuration) ->
    ?assertNotMatch({error, _}, vote(1, Replica, Configuration)),
    %% Its file is closed behind its back: each write fails from now on.
    _ = sys:replace_state(Replica, fun(State) -> ok = file:close(device(State)), State end),
    ?assertMatch({error, {failed, _}}, vote(2, Replica, Configuration)),
    Before = waiting_bytes(Replica),
    [?assertMatch({error, {failed, _}}, vote(Counter, Replica, Configuration))
     || Counter <- lists:seq(3, 50)],
    ?assertEqual(Before, waiting_bytes(Replica)).

vote(Counter, Replica, Configuration) ->
    gen_server:call(Replica, {vote, 1, Configuration, {prepare, <<"key">>, {Counter, <<"me">>}}}).

waiting_bytes(Replica) -> erlang:external_size(sys:get_state(Replica)).

%% The file in the state, wherever it stands there.
device({file_descriptor, _, _} = Device) -> Device;
device(Term) when is_tuple(Term) -> device(tuple_to_list(Term));
device([Head | Tail]) ->
    case device(Head) of
        none -> device(Tail);
        Device -> Device
    end;
device(_Other) -> none.

with_replica(Test) ->
    Dir = filename:join(["_build", "test", lists:concat([?MODULE, "_", os:getpid()])]),
    {ok, Replica} = ?A:start_link(box, 0, ?OPTIONS#{dir => Dir}),
    try Test(Replica, weft_kv_strong_bucket:configuration(box, ?OPTIONS))
    after
        true = unlink(Replica),
        exit(Replica, kill),
        ok = file:del_dir_r(Dir)
    end.
