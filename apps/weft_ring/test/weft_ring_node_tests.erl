%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node keeps of the ring on disk, and its configuration.
-module(weft_ring_node_tests).

-include_lib("eunit/include/eunit.hrl").

%% A handler of logger, and what hands a partition over.
-export([log/2, hand_over/1]).

-define(KEPT, #{ring => weft_ring_table:create({a, 1}, here, 8, 3), asked => b}).

what_was_written_is_read_test() ->
    in_directory(fun(Dir) ->
                     ?assertEqual({ok, #{}}, weft_ring_file:read(Dir)),
                     ok = weft_ring_file:write(Dir, #{asked => c}),
                     ok = weft_ring_file:write(Dir, ?KEPT),
                     ?assertEqual({ok, ?KEPT}, weft_ring_file:read(Dir))
                 end).

%% Each byte flipped, and each length cut.
a_damaged_file_is_named_test_() ->
    {timeout, 60, fun() -> in_directory(fun damaged/1) end}.

damaged(Dir) ->
    ok = weft_ring_file:write(Dir, #{asked => c}),
    File = filename:join(Dir, "ring"),
    {ok, Bytes} = file:read_file(File),
    [begin
         ok = file:write_file(File, Other),
         ?assertEqual({At, {error, {damaged, File}}}, {At, weft_ring_file:read(Dir)})
     end || At <- lists:seq(0, byte_size(Bytes) - 1), Other <- worse(At, Bytes)].

worse(At, Bytes) ->
    <<Before:At/binary, Byte, After/binary>> = Bytes,
    [[Before, Byte bxor 1, After], Before].

%% Whoever takes it for damaged may delete it.
a_file_of_a_later_version_is_no_damaged_one_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "ring"),
                     ok = filelib:ensure_dir(File),
                     ok = file:write_file(File, "weft_ring 2\nwhatever it has"),
                     ?assertEqual({error, {written_by_another_version, File}},
                                  weft_ring_file:read(Dir))
                 end).

a_directory_that_can_not_be_written_is_named_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "file"),
                     ok = file:write_file(File, "no directory"),
                     ?assertMatch({error, {_, _}}, weft_ring_file:write(File, ?KEPT))
                 end).

%% As when the disk is full. The partitions of the node live below the same supervisor.
a_ring_that_can_not_be_written_ends_nothing_test() ->
    running(fun(Dir) ->
                ok = file:write_file(Dir, "no directory"),
                ?assertMatch({error, {not_written, _}}, weft_ring:create()),
                ?assertEqual({error, no_ring}, weft_ring:plan()),
                ok = file:delete(Dir),
                ?assertEqual(ok, weft_ring:create()),
                ?assertEqual(lists:seq(0, 7), weft_ring:mine()),
                ?assertMatch({ok, #{ring := _}}, weft_ring_file:read(Dir))
            end).

%% The node stood still, and the directory may be another one's by now.
a_ring_that_may_be_another_nodes_is_not_written_test() ->
    running(fun(Dir) ->
                {ok, Lock} = weft_directory_lock:start_link(Dir, weft_ring),
                ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, weft_ring}), 1,
                                 10000),
                ?assertEqual({error, {not_written, directory_not_held}}, weft_ring:create()),
                ?assertEqual({ok, #{}}, weft_ring_file:read(Dir)),
                Lock ! beat,
                _ = sys:get_state(Lock),
                ?assertEqual(ok, weft_ring:create()),
                ?assertMatch({ok, #{ring := _}}, weft_ring_file:read(Dir)),
                ok = gen_server:stop(Lock)
            end).

a_join_that_nobody_answers_is_in_the_log_test() ->
    running(fun(_Dir) ->
                ok = logger:set_primary_config(level, warning),
                ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                ok = weft_ring:join('typo@nowhere'),
                [weft_ring_server ! {timer, sync} || _ <- [1, 2]],
                try receive {said, Text} -> Text after 10000 -> "nothing" end of
                    Said -> ?assertNotEqual(nomatch, string:find(Said, "typo@nowhere"))
                after ok = logger:remove_handler(?MODULE)
                end
            end).

%% @private
-spec log(logger:log_event(), logger:handler_config()) -> term().
log(#{msg := {Format, Arguments}}, #{config := Test}) when is_list(Format) ->
    Test ! {said, lists:flatten(io_lib:format(Format, Arguments))};
log(_Other, _Config) ->
    ok.

%% Of a version that knows more.
a_command_that_is_not_known_ends_nothing_test() ->
    running(fun(_Dir) ->
                Server = whereis(weft_ring_server),
                ok = weft_ring:create(),
                ?assertEqual({error, unknown_command}, weft_ring_server:command({later, 1})),
                ?assertEqual(Server, whereis(weft_ring_server))
            end).

%% What has not happened is not found by the next start either.
a_ring_whose_name_is_not_on_disk_does_not_stay_there_test() ->
    running(fun(Dir) ->
                Create = fun() -> weft_ring:create() end,
                ?assertMatch({error, {not_written, {eio, _}}},
                             weft_test_disk:without_directory_sync(Create)),
                ?assertEqual({error, no_ring}, weft_ring:plan()),
                ?assertEqual({ok, #{}}, weft_ring_file:read(Dir)),
                ?assertEqual(ok, weft_ring:create()),
                ?assertMatch({ok, #{ring := _}}, weft_ring_file:read(Dir)),
                %% The node may have ended before it was.
                Read = fun() -> weft_ring_file:read(Dir) end,
                ?assertEqual({error, {eio, filename:join(Dir, "ring")}},
                             weft_test_disk:without_directory_sync(Read))
            end).

%% It has heard of the ring since, and started again.
who_has_forgotten_the_ring_is_no_owner_on_its_node_either_test() ->
    Ring = weft_ring_table:create({node(), 1}, here, 8, 3),
    Mine = fun(Kept) ->
               running(Kept, fun(_) ->
                                 {weft_ring:mine(), weft_ring_lookup:is_mine(weft_ring, 0)}
                             end)
           end,
    ?assertEqual({[], {ok, false}}, Mine(#{ring => Ring, forgotten => true})),
    ?assertEqual({lists:seq(0, 7), {ok, true}}, Mine(#{ring => Ring, forgotten => false})),
    ?assertEqual({lists:seq(0, 7), {ok, true}}, Mine(#{ring => Ring})).

%% --- handoffs ---------------------------------------------------------------------------------

%% What a former process of the partition has had is given to the next owner already, and the ring
%% is about to hear of that.
a_handoff_begins_anew_when_its_partition_is_opened_test() ->
    handing_over(fun([{First, {P, _, _} = Transfer}, {Second, _}]) ->
                     ok = sys:suspend(weft_ring_server),
                     {_, Opened} = spawn_monitor(fun() -> exit(weft_ring_server:opened(P)) end),
                     ok = waiting(1),
                     First ! {answer, ok},
                     ok = waiting(2),
                     ok = sys:resume(weft_ring_server),
                     receive {'DOWN', Opened, process, _, Answer} -> ?assertEqual(ok, Answer) end,
                     ?assert(lists:member(P, weft_ring:mine())),
                     {Again, Transfer} = begun(),
                     Again ! {answer, ok},
                     weft_test_nodes:until(fun() -> not lists:member(P, weft_ring:mine()) end),
                     ?assert(is_process_alive(Second)),
                     ?assertNot(ets:member(weft_ring_server, P))
                 end).

waiting(Count) ->
    weft_test_nodes:until(fun() -> process_info(whereis(weft_ring_server), message_queue_len)
                                       =:= {message_queue_len, Count} end).

%% The next process of the ring begins it again, and would find it busy.
a_handoff_ends_with_the_process_of_the_ring_test() ->
    handing_over(fun([{First, _} | _]) ->
                     Ref = monitor(process, First),
                     true = exit(whereis(weft_ring_server), kill),
                     ?assertEqual(killed, receive {'DOWN', Ref, process, _, Why} -> Why
                                          after 4000 -> nothing end)
                 end).

%% All that are due to a node fail in the same way.
one_failure_for_each_node_is_in_the_log_test() ->
    handing_over(fun(Begun) ->
                     ok = logger:set_primary_config(level, warning),
                     ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                     _ = [Pid ! {answer, {error, disk_full}} || {Pid, _} <- Begun],
                     weft_test_nodes:until(fun() ->
                         maps:get(failed, weft_ring_server:handoffs()) =:= length(Begun) end),
                     ok = logger:remove_handler(?MODULE),
                     Said = [Text || Text <- said(), string:find(Text, "disk_full") =/= nomatch],
                     ?assertMatch([_], Said)
                 end).

said() ->
    receive {said, Text} -> [Text | said()] after 0 -> [] end.

%% Two of the partitions of this node are on their way to another one, which is there for a moment.
handing_over(Fun) ->
    Ring = weft_ring_table:create({node(), 1}, here, 8, 3),
    Joined = weft_ring_table:set_member('x@nowhere', member, {{location, x}, {2, node()}}, Ring),
    Kept = weft_ring_table:set_plan({2, node()}, weft_ring_table:members([member], Joined),
                                    lists:duplicate(8, 'x@nowhere'), Joined),
    true = register(?MODULE, self()),
    try
        running(#{ring => Kept}, [{handoff, {?MODULE, hand_over}}],
                fun(_Dir) ->
                    weft_ring_server ! {weft_ring, hello, pid_of('x@nowhere')},
                    Fun([begun(), begun()])
                end)
    after unregister(?MODULE)
    end.

pid_of(Node) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, 1:32, 0:32, 1:32>>).

begun() ->
    receive {begun, Pid, Transfer} -> {Pid, Transfer} after 4000 -> error(none_begun) end.

%% @private
-spec hand_over(weft_ring_table:transfer()) -> term().
hand_over(Transfer) ->
    ?MODULE ! {begun, self(), Transfer},
    receive {answer, Answer} -> Answer end.

running(Fun) -> running(none, Fun).

running(Kept, Fun) -> running(Kept, [], Fun).

running(Kept, Environment, Fun) ->
    in_directory(fun(Parent) ->
                     Dir = filename:join(Parent, "ring"),
                     Level = maps:get(level, logger:get_primary_config()),
                     ok = logger:set_primary_config(level, critical),
                     _ = [ok = weft_ring_file:write(Dir, Kept) || Kept =/= none],
                     {ok, Config} = weft_ring_app:config([{dir, Dir}, {partitions, 8}
                                                          | Environment]),
                     {ok, Pid} = weft_ring_server:start_link(Config),
                     true = unlink(Pid),
                     try Fun(Dir)
                     after
                         _ = is_process_alive(Pid) andalso gen_server:stop(Pid),
                         ok = logger:set_primary_config(level, Level),
                         weft_ring_lookup:withdraw(weft_ring)
                     end
                 end).

without_a_directory_it_is_kept_as_long_as_its_table_test() ->
    ok = weft_ring_file:in_memory(),
    ?assertEqual({ok, #{}}, weft_ring_file:read(none)),
    ok = weft_ring_file:write(none, #{asked => c}),
    ok = weft_ring_file:write(none, ?KEPT),
    ?assertEqual({ok, ?KEPT}, weft_ring_file:read(none)),
    true = ets:delete(weft_ring_kept).

%% It would take itself for one that has forgotten the ring, and own nothing any more.
without_a_directory_the_ring_outlives_its_process_test() ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    {ok, Config} = weft_ring_app:config([{partitions, 8}]),
    {ok, Sup} = weft_ring_sup:start_link(Config),
    true = unlink(Sup),
    try
        ok = weft_ring:create(),
        Before = {weft_ring:status(), weft_ring:mine()},
        ?assertMatch({#{moving := 0}, [0 | _]}, Before),
        Former = whereis(weft_ring_server),
        true = exit(Former, kill),
        weft_test_nodes:until(fun() ->
                                  Now = whereis(weft_ring_server),
                                  is_pid(Now) andalso Now =/= Former
                              end),
        ?assertEqual(Before, {weft_ring:status(), weft_ring:mine()}),
        ?assertEqual({ok, true}, weft_ring_lookup:is_mine(weft_ring, 0))
    after
        ok = gen_server:stop(Sup),
        weft_ring_lookup:withdraw(weft_ring),
        ok = logger:set_primary_config(level, Level)
    end.

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_ring_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try Fun(Dir) after file:del_dir_r(Dir) end.

%% --- configuration ----------------------------------------------------------------------------

defaults_test() ->
    ?assertMatch({ok, #{partitions := 64, n_val := 3, dir := none, handoff := none}},
                 weft_ring_app:config([])),
    ?assertMatch({ok, #{vnodes := [{lists, []}, {maps, on}]}},
                 weft_ring_app:config([{vnodes, [lists, {maps, on}]}])),
    ?assertMatch({ok, #{partitions := 128}}, weft_ring_app:config([{partitions, 128}])).

%% What it is when this application starts, also where it has to be found out.
a_location_is_an_attribute_of_the_node_test() ->
    Table = ets:new(weft_attributes, [named_table]),
    Location = fun(Given) ->
                   case weft_ring_app:config(Given) of
                       {ok, #{location := Location}} -> Location;
                       {error, Reason} -> Reason
                   end
               end,
    Lacking = {location, {no_attribute, rack, {not_in_the_configuration_of, weft,
                                               {tuning, attributes}}}},
    try
        ?assertEqual([node(), here, Lacking],
                     [Location(Given) || Given <- [[], [{location, here}],
                                                   [{location, {attribute, rack}}]]]),
        true = ets:insert(Table, [{rack, {value, [europe, 7]}}, {location, {value, cellar}},
                                  {asked, {dynamic, {erlang, node}}},
                                  {failing, {dynamic, {erlang, error}}}]),
        ?assertEqual([cellar, here, [europe, 7], node()],
                     [Location(Given) || Given <- [[], [{location, here}],
                                                   [{location, {attribute, rack}}],
                                                   [{location, {attribute, asked}}]]]),
        ?assertMatch({location, {no_attribute, failing, _}},
                     Location([{location, {attribute, failing}}]))
    after true = ets:delete(Table)
    end.

wrong_configuration_is_named_test_() ->
    [?_assertEqual({error, Error}, weft_ring_app:config([Pair]))
     || {Pair, Error} <- [{{partition, 8}, {unknown_key, partition}}]
            ++ [{Pair, {bad_value, Pair}}
                || Pair <- [{partitions, 60}, {partitions, 2048}, {n_val, 0}, {n_val, nine},
                            {dir, 7}, {handoff, me}, {sync_ms, 0}, {handoffs_max, 0},
                            {vnodes, lists}, {vnodes, [1]}, {vnodes, [lists, {lists, []}]},
                            {vnodes, [lists | maps]},
                            {queue_max, 0}, {handoff_pace_ms, -1}, {handoff_items, 0},
                            {channel, "bulk"}]]].
