%% SPDX-License-Identifier: Apache-2.0
%% @doc Partitions that are started, of a module that opens when it is told to.
-module(weft_vnodes_tests).
-behaviour(weft_vnode).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2, stored/1, waiting/1]).

-define(WAIT_MS, 10000).
-define(CALLERS_MAX, 3).

all_test_() ->
    {foreach, fun setup/0, fun cleanup/1,
     [{Title, {timeout, 60, fun() -> told(Test) end}}
      || {Title, Test} <- [{"one that hangs keeps no other from opening", fun one_hangs/0},
                           {"some are opened at a time", fun some_at_a_time/0},
                           {"a partition is opened once for all who wait", fun once_for_all/0},
                           {"who waits is bounded", fun bounded/0},
                           {"what can not be opened is told", fun can_not_be_opened/0},
                           {"who asks meanwhile is told, too", fun asked_meanwhile/0},
                           {"who asks meanwhile is bounded", fun crowd/0},
                           {"it is opened once whoever starts it", fun started_again/0},
                           {"one that is killed is told", fun killed/0},
                           {"opening counts for the time of a request", fun in_time/0},
                           {"one that is there needs no turn", fun is_there/0},
                           {"what is on disk waits until it is looked at", fun stored/0},
                           {"what is on disk has its turn", fun stored_in_turn/0},
                           {"what is of a larger ring is nobody's", fun of_a_larger_ring/0},
                           {"nobody leaves before that", fun leaves/0},
                           {"it was started by earlier code", fun earlier_code/0},
                           {"strays end nothing", fun strays/0}]]}.

%% Partitions tell the process of the test.
told(Test) ->
    true = register(?MODULE, self()),
    try Test() after unregister(?MODULE) end.

setup() ->
    ok = weft_ring_lookup:publish_owners(weft_ring, [node() || _ <- lists:seq(1, 64)]),
    {ok, Sup} = weft_vnode_sup:start_link(),
    {ok, Watch} = weft_vnode_watch:start_link(),
    {ok, Vnodes} = weft_vnodes:start_link(#{vnodes => [{?MODULE, []}],
                                            queue_max => ?CALLERS_MAX}),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    {[Vnodes, Watch, Sup], Level}.

cleanup({Processes, Level}) ->
    %% Partitions that are being opened do not hear that their supervisor ends.
    Partitions = [Pid || {_, Pid, _, _} <- supervisor:which_children(weft_vnode_sup)],
    lists:foreach(fun(Pid) ->
                      true = unlink(Pid),
                      exit(Pid, kill),
                      weft_test_nodes:until(fun() -> not is_process_alive(Pid) end)
                  end, Processes ++ Partitions),
    ok = weft_ring_lookup:withdraw(weft_ring),
    _ = persistent_term:erase(?MODULE),
    ok = logger:set_primary_config(level, Level).

one_hangs() ->
    Hanging = starts(0),
    _ = opening(0),
    Other = starts(1),
    opening(1) ! {open, {ok, []}},
    ?assertEqual({ok, started}, answer(Other)),
    ?assertEqual(none, answered(Hanging)).

some_at_a_time() ->
    Max = weft_vnodes:at_a_time(),
    All = lists:seq(0, Max),
    Callers = [starts(Partition) || Partition <- All],
    [First | Others] = [receive {opening, Partition, Pid} -> {Partition, Pid}
                        after ?WAIT_MS -> error(not_opened)
                        end
                        || _ <- lists:seq(1, Max)],
    %% It has been asked for all of them.
    weft_test_nodes:until(fun() -> waiting() =:= Max + 1 end),
    ?assertEqual(nothing, receive {opening, _, _} -> more after 0 -> nothing end),
    {_, Pid} = First,
    Pid ! {open, {ok, []}},
    Last = receive {opening, Partition, P} -> {Partition, P} after ?WAIT_MS -> none end,
    _ = [P ! {open, {ok, []}} || {_, P} <- [Last | Others]],
    ?assertEqual([{ok, started} || _ <- All], [answer(Caller) || Caller <- Callers]),
    ?assertEqual(0, waiting()).

once_for_all() ->
    Callers = [starts(0), starts(0)],
    Pid = opening(0),
    weft_test_nodes:until(fun() -> callers(0) =:= 2 end),
    Pid ! {open, {ok, []}},
    ?assertEqual([{ok, started}, {ok, started}], [answer(Caller) || Caller <- Callers]),
    ?assertEqual(nothing, receive {opening, _, _} -> twice after 0 -> nothing end).

bounded() ->
    Callers = [starts(0) || _ <- lists:seq(1, ?CALLERS_MAX)],
    weft_test_nodes:until(fun() -> callers(0) =:= ?CALLERS_MAX end),
    ?assertEqual({error, overload}, answer(starts(0))),
    opening(0) ! {open, {ok, []}},
    ?assertEqual([{ok, started} || _ <- Callers], [answer(Caller) || Caller <- Callers]).

can_not_be_opened() ->
    Caller = starts(0),
    Pid = opening(0),
    Pid ! {open, {error, no_disk}},
    ?assertEqual({error, {failed, no_disk}}, answer(Caller)),
    %% Who asks a moment later need not wait for a disk to find out.
    ?assertEqual({error, {failed, no_disk}}, answer(asks(0, read, ?WAIT_MS))),
    ?assertEqual(unknown, gen_server:call(Pid, waiting)),
    %% And then it may have come right.
    weft_test_nodes:until(fun() -> not is_process_alive(Pid) end),
    Again = starts(0),
    opening(0) ! {open, {ok, []}},
    ?assertEqual({ok, started}, answer(Again)).

%% They wait with those who have started it, and nothing was done.
asked_meanwhile() ->
    Caller = starts(0),
    Pid = opening(0),
    Asking = asks(0, read, ?WAIT_MS),
    weft_test_nodes:until(fun() -> callers(0) =:= 2 end),
    Pid ! {open, {error, no_disk}},
    ?assertEqual({error, {failed, no_disk}}, answer(Caller)),
    ?assertEqual({error, {failed, no_disk}}, answer(Asking)).

%% Their time is over before it is open. One is left to ask whether it is.
crowd() ->
    _ = starts(0),
    Pid = opening(0),
    Asked = [asks(0, read, 10) || _ <- lists:seq(1, 10 * ?CALLERS_MAX)],
    Answers = [answer(Asking) || Asking <- Asked],
    ?assertEqual([], lists:usort(Answers) -- [{error, overload}, {error, timeout}]),
    ?assertEqual(?CALLERS_MAX, callers(0)),
    ?assert(queue_length(Pid) =< 1),
    Pid ! {open, {ok, []}},
    weft_test_nodes:until(fun() -> callers(0) =:= 0 end),
    ?assertEqual({ok, []}, answer(asks(0, read, ?WAIT_MS))).

%% The process that starts partitions has ended meanwhile.
started_again() ->
    _ = starts(0),
    First = opening(0),
    Former = whereis(weft_vnodes),
    true = unlink(Former),
    ok = gen_server:stop(Former),
    ?assert(is_process_alive(First)),
    {ok, Vnodes} = weft_vnodes:start_link(#{vnodes => [{?MODULE, []}], queue_max => ?CALLERS_MAX}),
    ?assertNot(is_process_alive(First)),
    Caller = starts(0),
    opening(0) ! {open, {ok, []}},
    ?assertEqual({ok, started}, answer(Caller)),
    %% What is open goes on.
    true = unlink(Vnodes),
    ok = gen_server:stop(Vnodes),
    {ok, Last} = weft_vnodes:start_link(#{vnodes => [{?MODULE, []}], queue_max => ?CALLERS_MAX}),
    ?assertEqual({ok, []}, answer(asks(0, read, ?WAIT_MS))),
    ?assertEqual(nothing, receive {opening, _, _} -> again after 0 -> nothing end),
    true = unlink(Last),
    ok = gen_server:stop(Last).

killed() ->
    Caller = starts(0),
    Pid = opening(0),
    %% It has been asked whether it is open.
    weft_test_nodes:until(fun() -> queue_length(Pid) > 0 end),
    exit(Pid, kill),
    ?assertEqual({error, {failed, killed}}, answer(Caller)).

in_time() ->
    Begin = erlang:monotonic_time(millisecond),
    Asking = asks(0, hang, 5000),
    Pid = opening(0),
    _ = erlang:send_after(4000, Pid, {open, {ok, []}}),
    ?assertEqual({error, timeout}, answer(Asking)),
    TookMs = erlang:monotonic_time(millisecond) - Begin,
    ?assert(TookMs < 8500).

is_there() ->
    Caller = starts(0),
    opening(0) ! {open, {ok, []}},
    {ok, started} = answer(Caller),
    _ = [{starts(Other), opening(Other)} || Other <- lists:seq(1, weft_vnodes:at_a_time())],
    ?assertEqual({ok, started}, answer(starts(0))),
    ?assertEqual({ok, []}, answer(asks(0, read, ?WAIT_MS))).

%% Also when its process has ended.
stored() ->
    ok = persistent_term:put(?MODULE, [0]),
    Unknown = [{{?MODULE, 0}, unknown}],
    ?assertEqual(Unknown, weft_vnodes:waiting()),
    opening(0) ! {open, {error, no_disk}},
    weft_test_nodes:until(fun no_partitions/0),
    ?assertEqual(Unknown, weft_vnodes:waiting()),
    Pid = opening(0),
    Pid ! {open, {ok, [hint]}},
    %% It has its name a moment later.
    weft_test_nodes:until(fun() -> waiting() =:= 0 end),
    ?assertEqual([{Pid, 1}], weft_vnodes:waiting()),
    exit(Pid, kill),
    weft_test_nodes:until(fun no_partitions/0),
    ?assertEqual(Unknown, weft_vnodes:waiting()),
    opening(0) ! {open, {ok, []}},
    weft_test_nodes:until(fun() -> waiting() =:= 0 end),
    ?assertEqual([], weft_vnodes:waiting()).

no_partitions() -> supervisor:which_children(weft_vnode_sup) =:= [] andalso waiting() =:= 0.

%% Who asks for it again and again is no crowd.
stored_in_turn() ->
    Others = [{starts(P), opening(P)} || P <- lists:seq(1, weft_vnodes:at_a_time())],
    ok = persistent_term:put(?MODULE, [0]),
    Asked = [weft_vnodes:start_stored() || _ <- lists:seq(0, ?CALLERS_MAX)],
    ?assertEqual([[{?MODULE, 0}] || _ <- Asked], Asked),
    Caller = starts(0),
    weft_test_nodes:until(fun() -> callers(0) =:= 1 end),
    _ = [Pid ! {open, {ok, []}} || {_, Pid} <- Others],
    opening(0) ! {open, {ok, []}},
    ?assertEqual({ok, started}, answer(Caller)),
    ?assertEqual([], weft_vnodes:start_stored()).

%% The ring here has 64 partitions.
of_a_larger_ring() ->
    ok = persistent_term:put(?MODULE, [64, 1000, 1024]),
    ?assertEqual([], weft_vnodes:waiting()),
    ?assertEqual([], weft_vnodes:start_stored()),
    %% Without a ring nobody knows.
    ok = weft_ring_lookup:withdraw(weft_ring),
    ?assertEqual([{?MODULE, 64}, {?MODULE, 1000}], weft_vnodes:start_stored()),
    [opening(Partition) ! {open, {ok, []}} || Partition <- [64, 1000]],
    weft_test_nodes:until(fun() -> weft_vnodes:start_stored() =:= [] end).

%% It owns nothing, and has just been started again.
leaves() ->
    Dir = filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)), os:getpid()),
    Ring = weft_ring_table:set_member(node(), leaving, {{location, here}, {2, node()}},
                                      weft_ring_table:create({'x@nowhere', 1}, here, 8, 3)),
    ok = weft_ring_file:write(Dir, #{ring => Ring}),
    {ok, Config} = weft_ring_app:config([{dir, Dir}, {sync_ms, 50}, {vnodes, [?MODULE]}]),
    ok = persistent_term:put(?MODULE, [0]),
    {ok, Server} = weft_ring_server:start_link(Config),
    try
        Pid = opening(0),
        ?assertEqual(leaving, membership()),
        Pid ! {open, {ok, []}},
        weft_test_nodes:until(fun() -> membership() =:= gone end)
    after
        true = unlink(Server),
        ok = gen_server:stop(Server),
        file:del_dir_r(Dir)
    end.

membership() ->
    #{members := Members} = weft_ring:status(),
    map_get(node(), Members).

earlier_code() ->
    ok = sys:suspend(weft_vnodes),
    #{} = sys:replace_state(weft_vnodes, fun(State) -> element(2, State) end),
    ok = sys:change_code(weft_vnodes, weft_vnodes, undefined, []),
    ok = sys:resume(weft_vnodes),
    Caller = starts(0),
    opening(0) ! {open, {ok, []}},
    ?assertEqual({ok, started}, answer(Caller)).

strays() ->
    Server = whereis(weft_vnodes),
    _ = [Server ! Stray || Stray <- [{'DOWN', make_ref(), process, self(), normal}, what]],
    ok = gen_server:cast(Server, what),
    ?assertEqual({error, no_partition}, answer(starts(5000))),
    ?assertMatch({error, _}, gen_server:call(Server, what)),
    ?assertEqual(Server, whereis(weft_vnodes)).

%% --- who waits --------------------------------------------------------------------------------

starts(Partition) -> does(fun() -> weft_vnodes:start({?MODULE, Partition}, node()) end).

asks(Partition, Command, TimeoutMs) ->
    does(fun() ->
             weft_vnode:ask(?MODULE, {Partition, node(), fallback}, key, Command, TimeoutMs)
         end).

does(Fun) ->
    {_, Ref} = spawn_monitor(fun() -> exit({does, Fun()}) end),
    Ref.

answer(Ref) ->
    receive {'DOWN', Ref, process, _, {does, Answer}} -> Answer
    after ?WAIT_MS -> no_answer
    end.

answered(Ref) ->
    receive {'DOWN', Ref, process, _, {does, Answer}} -> Answer after 0 -> none end.

opening(Partition) ->
    receive {opening, Partition, Pid} -> Pid after ?WAIT_MS -> error({not_opened, Partition}) end.

waiting() -> map_size(all_callers()).

callers(Partition) -> length(maps:get({?MODULE, Partition}, all_callers(), [])).

%% The second field of the state of `weft_vnodes'.
all_callers() -> element(3, sys:get_state(weft_vnodes)).

queue_length(Pid) ->
    {message_queue_len, Length} = process_info(Pid, message_queue_len),
    Length.

%% --- a partition ------------------------------------------------------------------------------

init(Partition, []) ->
    ?MODULE ! {opening, Partition, self()},
    receive {open, Answer} -> Answer end.

command(key, read, State) -> {reply, State};
command(key, hang, State) -> receive never -> {reply, State} end.

change(_, _, _, State) -> {ok, State}.
items(_, _, _) -> {[], done}.
take(_, _, State) -> {ok, State}.
clear(_, State) -> {ok, State}.
cover(_, State) -> State.
stored(_) -> persistent_term:get(?MODULE, []).
waiting(State) -> length(State).
