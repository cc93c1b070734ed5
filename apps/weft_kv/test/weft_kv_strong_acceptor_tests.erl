%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a replica: whose file cannot be written, it answers with errors, and keeps no
%% more than what it could not write the first time; and when it fails, it says nothing of what
%% users have stored.
-module(weft_kv_strong_acceptor_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

-define(A, weft_kv_strong_acceptor).
%% What `start_link/3' takes, but for the directory.
-define(OPTIONS, #{consistency => strong, voters => [node()], n => 1, partitions => 1,
                   keys_max => 100, existing => false, value_max => 100, timeout_ms => 1000}).

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

%% It stood still, so the directory may be another node's, where the key has another value by now.
what_may_be_outdated_is_not_read_test_() ->
    {timeout, 30, fun() -> with_replica(fun stood_still/2) end}.

stood_still(Replica, Configuration) ->
    Dir = weft_kv_strong_bucket:dir(box, ?OPTIONS#{dir => directory()}),
    {ok, Lock} = weft_directory_lock:start_link(Dir, weft_kv_strong),
    Read = fun() ->
               gen_server:call(Replica, {vote, 2, Configuration, {{0, #{}}, {read, <<"key">>}}})
           end,
    try
        ?assertMatch({state, _, _}, Read()),
        ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, weft_kv_strong}), 1, 10000),
        ?assertMatch({error, {failed, {directory_not_held, _}}}, Read()),
        Lock ! beat,
        _ = sys:get_state(Lock),
        ?assertMatch({state, _, _}, Read())
    after
        ok = gen_server:stop(Lock),
        persistent_term:erase({weft_directory_lock, Dir, weft_kv_strong})
    end.

%% It was started, and stood still before it had opened its file.
what_may_be_another_nodes_is_opened_later_test_() ->
    {timeout, 30, fun later/0}.

later() ->
    Dir = weft_kv_strong_bucket:dir(box, ?OPTIONS#{dir => directory()}),
    {ok, Lock} = weft_directory_lock:start_link(Dir, weft_kv_strong),
    ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, weft_kv_strong}), 1, 10000),
    _ = erlang:send_after(300, Lock, beat),
    try with_replica(fun(Replica, Configuration) ->
                         ?assertNotMatch({error, _}, vote(1, Replica, Configuration))
                     end)
    after
        ok = gen_server:stop(Lock),
        persistent_term:erase({weft_directory_lock, Dir, weft_kv_strong})
    end.

%% What it writes to is no log any more, so it fails with the entry in its hands.
what_is_stored_is_in_no_report_test_() ->
    {timeout, 30, fun() -> with_replica(fun fails/2) end}.

fails(Replica, Configuration) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    #{level := Level} = logger:get_primary_config(),
    #{default := Filters} = silenced(),
    try
        true = unlink(Replica),
        Ref = monitor(process, Replica),
        _ = sys:replace_state(Replica, fun without_log/1),
        Accept = {accept, <<"the key">>, {0, 9, <<"me">>}, {1, [<<"me">>], <<"the secret">>}},
        ?assertExit(_, gen_server:call(Replica, {vote, 2, Configuration, {{0, #{}}, Accept}})),
        Reason = receive {'DOWN', Ref, process, _, Why} -> Why end,
        Report = receive {report, Event} -> Event after 5000 -> error(no_report) end,
        [?assertEqual(nomatch, string:find(io_lib:format("~0p", [Said]), Word))
         || Said <- [Reason, Report], Word <- ["secret", "the key"]]
    after
        ok = logger:remove_handler(?MODULE),
        ok = logger:set_handler_config(default, Filters),
        ok = logger:set_primary_config(level, Level)
    end.

silenced() ->
    {ok, Filters} = logger:get_handler_config(default),
    ok = logger:set_handler_config(default, level, none),
    #{default => maps:with([level], Filters)}.

without_log(State) ->
    list_to_tuple([case is_tuple(Part) andalso element(1, Part) =:= log of
                       true -> none;
                       false -> Part
                   end || Part <- tuple_to_list(State)]).

%% A handler of logger.
log(#{level := error} = Event, #{config := Test}) -> Test ! {report, Event};
log(_Event, _Config) -> ok.

vote(Counter, Replica, Configuration) ->
    Prepare = {prepare, <<"key">>, {0, Counter, <<"me">>}},
    gen_server:call(Replica, {vote, 2, Configuration, {{0, #{}}, Prepare}}).

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
    Dir = directory(),
    {ok, Replica} = ?A:start_link(box, 0, ?OPTIONS#{dir => Dir}),
    try Test(Replica, weft_kv_strong_bucket:configuration(box, ?OPTIONS))
    after
        true = unlink(Replica),
        Ref = monitor(process, Replica),
        exit(Replica, kill),
        %% The next case has one of the same name.
        receive {'DOWN', Ref, process, _, _} -> ok end,
        ok = file:del_dir_r(Dir)
    end.

directory() -> filename:join(["_build", "test", lists:concat([?MODULE, "_", os:getpid()])]).
