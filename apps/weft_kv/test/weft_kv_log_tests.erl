%% SPDX-License-Identifier: Apache-2.0
%% @doc The file of a partition: what is found after each kind of end.
-module(weft_kv_log_tests).

-include_lib("eunit/include/eunit.hrl").

what_was_committed_is_found_again_test() ->
    in_directory(fun(Dir) ->
                     _ = written(Dir, 3),
                     ?assertEqual(entries(3), found(Dir)),
                     %% And can be gone on with.
                     {ok, Log, _} = weft_kv_log:open(Dir, 7, tests),
                     {ok, More} = weft_kv_log:commit(weft_kv_log:append(entry(4), Log)),
                     ok = weft_kv_log:close(More),
                     ?assertEqual(entries(4), found(Dir))
                 end).

what_was_not_committed_is_not_there_test() ->
    in_directory(fun(Dir) ->
                     {ok, Log, []} = weft_kv_log:open(Dir, 7, tests),
                     ok = weft_kv_log:close(weft_kv_log:append(entry(1), Log)),
                     ?assertEqual([], found(Dir))
                 end).

%% Each length from nothing to all, with and without zeros where the bytes should be.
a_torn_end_is_cut_off_at_each_byte_test_() ->
    {timeout, 60, fun() -> in_directory(fun torn/1) end}.

torn(Dir) ->
    {File, Bytes, Ends} = written(Dir, 4),
    [begin
         ok = file:write_file(File, [binary:part(Bytes, 0, At), Filling]),
         Whole = length([End || End <- Ends, End =< At]),
         ?assertEqual({At, entries(Whole)}, {At, found(Dir)}),
         %% And what is written next is found.
         {ok, Log, _} = weft_kv_log:open(Dir, 7, tests),
         {ok, More} = weft_kv_log:commit(weft_kv_log:append(entry(9), Log)),
         ok = weft_kv_log:close(More),
         ?assertEqual({At, entries(Whole) ++ [entry(9)]}, {At, found(Dir)}),
         %% Half a header and zeros could be damage as well, so that file is put aside.
         Aside = aside(File),
         ?assertEqual({At, []}, {At, [Name || Name <- Aside, Filling =:= <<>>]}),
         [ok = file:delete(Name) || Name <- Aside]
     end || At <- lists:seq(10, byte_size(Bytes)), Filling <- [<<>>, fill(At, Bytes, Ends)]].

%% A shorter record would leave the rest of it behind itself.
nothing_is_left_of_a_torn_end_test() ->
    in_directory(fun(Dir) ->
                     {File, Bytes, _} = written(Dir, 2),
                     ok = file:write_file(File, [Bytes, <<200:32, (erlang:crc32(<<200:32>>)):32>>,
                                                 binary:copy(<<1>>, 100)]),
                     ?assertEqual(entries(2), found(Dir)),
                     ?assertEqual({ok, Bytes}, file:read_file(File))
                 end).

%% The file system has made the file longer, and the host has failed.
zeros_at_the_end_are_no_damage_test() ->
    in_directory(fun(Dir) ->
                     {File, Bytes, _} = written(Dir, 2),
                     ok = file:write_file(File, [Bytes, <<0:800>>]),
                     ?assertEqual(entries(2), found(Dir)),
                     ?assertEqual([], aside(File))
                 end).

%% Zeros that end with the record that was being written.
fill(At, _Bytes, Ends) ->
    case [End || End <- Ends, End > At] of
        [] -> <<>>;
        [End | _] -> <<0:((End - At) * 8)>>
    end.

%% Each byte flipped, those of the last record, too. What is before it is kept, and the file is not
%% thrown away.
a_damaged_file_is_put_aside_test_() ->
    {timeout, 60, fun() -> in_directory(fun damaged/1) end}.

damaged(Dir) ->
    {File, Bytes, Ends} = written(Dir, 4),
    [begin
         <<Before:At/binary, Byte, After/binary>> = Bytes,
         ok = file:write_file(File, [Before, Byte bxor 16, After]),
         Whole = length([End || End <- Ends, End =< At]),
         ?assertEqual({At, entries(case At < 10 of true -> 0; false -> Whole end)},
                      {At, found(Dir)}),
         Aside = aside(File),
         ?assertMatch({At, [_]}, {At, Aside}),
         [ok = file:delete(Name) || Name <- Aside]
     end || At <- lists:seq(0, byte_size(Bytes) - 1)].

%% As a list its bytes would take sixteen times the room.
a_large_file_with_a_damaged_beginning_is_put_aside_in_little_memory_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "7.log"),
                     ok = file:write_file(File, ["Weft_kv 2\n", <<0:32000000>>]),
                     Heap = #{size => 1000000, kill => true, error_logger => false},
                     {Pid, Ref} = spawn_opt(fun() -> exit({found, found(Dir)}) end,
                                            [monitor, {max_heap_size, Heap}]),
                     receive
                         {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual({found, []}, Reason)
                     end,
                     ?assertMatch([_], aside(File))
                 end).

%% The file is longer than what was written of it, and the record crosses sectors.
a_sector_that_was_not_written_is_no_damage_test_() ->
    {timeout, 60, fun() -> in_directory(fun sectors/1) end}.

sectors(Dir) ->
    {File, Bytes, _} = written(Dir, 1),
    {ok, Log, _} = weft_kv_log:open(Dir, 7, tests),
    Large = {stored, {0, bucket, binary:copy(<<"k">>, 2000)}, weft_kv_object:new(), #{n => 1}},
    {ok, More} = weft_kv_log:commit(weft_kv_log:append(Large, Log)),
    ok = weft_kv_log:close(More),
    {ok, Whole} = file:read_file(File),
    Lost = fun(From, To) ->
               <<Before:From/binary, Gone:(To - From)/binary, After/binary>> = Whole,
               ok = file:write_file(File, [Before, <<0:(8 * byte_size(Gone))>>, After]),
               ?assertEqual(entries(1), found(Dir)),
               Aside = aside(File),
               [ok = file:delete(Name) || Name <- Aside],
               Aside
           end,
    ?assert(byte_size(Bytes) < 512),
    End = byte_size(Whole),
    [?assertEqual({From, To, []}, {From, To, Lost(From, To)})
     || {From, To} <- [{512, 1024}, {1024, 1536}, {1024, End}, {1536, End}]],
    %% So much is no sector.
    [?assertMatch({From, To, [_]}, {From, To, Lost(From, To)})
     || {From, To} <- [{513, 1024}, {512, 1023}, {600, 700}]].

%% A directory in the way stands for a full disk.
what_is_before_the_damage_is_kept_though_there_is_no_room_test() ->
    in_directory(fun(Dir) ->
                     {File, Bytes, [First | _]} = written(Dir, 4),
                     <<Before:First/binary, Byte, After/binary>> = Bytes,
                     ok = file:write_file(File, [Before, Byte bxor 16, After]),
                     ok = file:make_dir(File ++ ".new"),
                     ?assertMatch({error, _}, weft_kv_log:open(Dir, 7, tests)),
                     ?assertEqual([], aside(File)),
                     ok = file:del_dir(File ++ ".new"),
                     ?assertEqual(entries(1), found(Dir)),
                     ?assertMatch([_], aside(File))
                 end).

%% A device that fails stands for a full disk.
what_can_not_be_written_waits_test() ->
    in_directory(fun(Dir) ->
                     {ok, Log, []} = weft_kv_log:open(Dir, 7, tests),
                     ok = weft_kv_log:close(Log),
                     Full = weft_kv_log:append(entry(1), Log),
                     {error, {_, File}, Same} = weft_kv_log:commit(Full),
                     ?assertEqual("7.log", filename:basename(File)),
                     ?assert(weft_kv_log:is_waiting(Same)),
                     {ok, Room} = weft_kv_log:rewrite(entries(1), Same),
                     ?assertNot(weft_kv_log:is_waiting(Room)),
                     ok = weft_kv_log:close(Room),
                     ?assertEqual(entries(1), found(Dir))
                 end).

%% Before: nothing is written, and what is read does not count. It is the case again: what waited is
%% written.
what_may_be_another_nodes_is_not_written_test() ->
    in_directory(fun(Dir) ->
                     {ok, Lock} = weft_directory_lock:start_link(Dir, tests),
                     {ok, Log0, []} = weft_kv_log:open(Dir, 7, tests),
                     {ok, Log1} = weft_kv_log:commit(weft_kv_log:append(entry(1), Log0)),
                     Seen = persistent_term:get({weft_directory_lock, Dir, tests}),
                     ok = atomics:sub(Seen, 1, 10000),
                     {error, {directory_not_held, _}, Log1} = weft_kv_log:commit(Log1),
                     Log2 = weft_kv_log:append(entry(2), Log1),
                     {error, {directory_not_held, _}, Log3} = weft_kv_log:commit(Log2),
                     {error, {directory_not_held, _}, Log3} = weft_kv_log:rewrite([], Log3),
                     {error, {directory_not_held, _}} = weft_kv_log:delete(Log3),
                     ?assertEqual({error, {directory_not_held, weft_kv_log:file(Log3)}},
                                  weft_kv_log:open(Dir, 7, tests)),
                     Lock ! beat,
                     _ = sys:get_state(Lock),
                     ?assertEqual(entries(1), found(Dir)),
                     {ok, Log4} = weft_kv_log:commit(Log3),
                     ok = weft_kv_log:close(Log4),
                     ?assertEqual(entries(2), found(Dir)),
                     ok = gen_server:stop(Lock)
                 end).

%% Its end may be what another node is writing.
what_may_be_another_nodes_is_not_cut_off_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "7.log"),
                     ok = file:write_file(File, "weft_kv 1\nhalf"),
                     {ok, Lock} = weft_directory_lock:start_link(Dir, tests),
                     ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, tests}), 1,
                                      10000),
                     ?assertEqual({error, {directory_not_held, File}},
                                  weft_kv_log:open(Dir, 7, tests)),
                     ?assertEqual({ok, <<"weft_kv 1\nhalf">>}, file:read_file(File)),
                     ok = gen_server:stop(Lock)
                 end).

%% A directory in the way stands for one that may not be written to.
what_can_not_be_deleted_is_gone_on_with_test() ->
    in_directory(fun(Dir) ->
                     {ok, Log0, []} = weft_kv_log:open(Dir, 7, tests),
                     File = weft_kv_log:file(Log0),
                     ok = file:rename(File, File ++ ".aside"),
                     ok = file:make_dir(File),
                     ?assertMatch({error, {_, File}}, weft_kv_log:delete(Log0)),
                     ok = file:del_dir(File),
                     ok = file:rename(File ++ ".aside", File),
                     {ok, Log} = weft_kv_log:commit(weft_kv_log:append(entry(1), Log0)),
                     ?assertEqual(entries(1), found(Dir)),
                     ?assertEqual(ok, weft_kv_log:delete(Log)),
                     ?assertNot(filelib:is_file(File)),
                     %% Nobody has anything to do any more.
                     ?assertEqual(ok, weft_kv_log:delete(Log))
                 end).

a_file_that_can_not_be_made_is_named_test() ->
    in_directory(fun(Dir) ->
                     ok = file:write_file(filename:join(Dir, "file"), "x"),
                     ?assertMatch({error, {_, _}},
                                  weft_kv_log:open(filename:join(Dir, "file"), 7, tests))
                 end).

%% The partition can not be opened, and has what is in the file when it can.
a_file_whose_end_can_not_be_cut_off_is_named_test() ->
    in_directory(fun(Dir) ->
                     {File, _, _} = written(Dir, 2),
                     [?assertEqual({Call, {error, {eio, File}}},
                                   {Call, weft_test_disk:without_cutting(
                                            weft_kv_log, Call,
                                            fun() -> weft_kv_log:open(Dir, 7, tests) end)})
                      || Call <- [position, truncate]],
                     ?assertEqual(entries(2), found(Dir))
                 end).

%% Its data may be good.
a_file_of_another_version_is_refused_and_left_test() ->
    in_directory(fun(Dir) ->
                     {File, <<"weft_kv 2\n", Records/binary>>, _} = written(Dir, 2),
                     Later = <<"weft_kv 3\n", Records/binary>>,
                     ok = file:write_file(File, Later),
                     ?assertEqual({error, {written_by_another_version, File}},
                                  weft_kv_log:open(Dir, 7, tests)),
                     ?assertEqual({ok, Later}, file:read_file(File)),
                     ?assertEqual([], aside(File))
                 end).

%% So that the version before refuses it from then on: it does not know what is written behind.
a_file_of_the_version_before_is_gone_on_with_test() ->
    in_directory(fun(Dir) ->
                     {File, <<"weft_kv 2\n", Records/binary>>, _} = written(Dir, 2),
                     ok = file:write_file(File, ["weft_kv 1\n", Records]),
                     ?assertEqual(entries(2), found(Dir)),
                     ?assertEqual({ok, <<"weft_kv 2\n", Records/binary>>}, file:read_file(File)),
                     ok = committed([3, 4], Dir),
                     ?assertEqual(entries(4), found(Dir))
                 end).

%% --- commits of several -----------------------------------------------------------------------

%% Nothing of it was told to anybody, whichever sector is missing. In the first one is the end of
%% the commit before.
a_torn_commit_of_several_is_no_damage_test() ->
    in_directory(fun(Dir) ->
                     {File, Bytes, _} = written(Dir, 1),
                     ok = committed([binary:copy(<<N>>, 2000) || N <- [2, 3, 4]], Dir),
                     {ok, Whole} = file:read_file(File),
                     ?assert(byte_size(Bytes) < 500),
                     Sectors = [{At, min(512, byte_size(Whole) - At)}
                                || At <- lists:seq(512, byte_size(Whole) - 1, 512)],
                     [begin
                          <<Before:At/binary, Gone:Size/binary, After/binary>> = Whole,
                          ?assertNotEqual(<<0:(8 * Size)>>, Gone),
                          ok = file:write_file(File, [Before, <<0:(8 * Size)>>, After]),
                          ?assertEqual({At, entries(1)}, {At, found(Dir)}),
                          ?assertEqual({At, []}, {At, aside(File)})
                      end || {At, Size} <- [{byte_size(Bytes), 512 - byte_size(Bytes)} | Sectors]]
                 end).

%% Zeros in a part of it only are damage, and so is a sector at whose beginning a commit begins:
%% others may have been acknowledged behind it.
zeros_where_a_commit_begins_may_be_damage_test() ->
    in_directory(fun(Dir) ->
                     {File, Bytes, _} = written(Dir, 1),
                     Filling = entry(binary:copy(<<"f">>, 512 - byte_size(Bytes) - filler())),
                     {ok, Log, _} = weft_kv_log:open(Dir, 7, tests),
                     {ok, More} = weft_kv_log:commit(weft_kv_log:append(Filling, Log)),
                     ?assertEqual(512, weft_kv_log:bytes(More)),
                     ok = weft_kv_log:close(More),
                     ok = committed([binary:copy(<<N>>, 2000) || N <- [2, 3]], Dir),
                     {ok, Whole} = file:read_file(File),
                     [begin
                          <<Before:At/binary, _:Size/binary, After/binary>> = Whole,
                          ok = file:write_file(File, [Before, <<0:(8 * Size)>>, After]),
                          ?assertMatch({At, [_ | _]}, {At, found(Dir)}),
                          Aside = aside(File),
                          ?assertMatch({At, [_]}, {At, Aside}),
                          [ok = file:delete(Name) || Name <- Aside]
                      end || {At, Size} <- [{512, 512}, {byte_size(Bytes), 100}]]
                 end).

%% How many bytes a record has besides those of its key.
filler() ->
    iolist_size(weft_kv_log_records:one(entry(<<"f">>))) - 1.

%% What is before it in the same commit is kept.
a_commit_of_several_may_be_damaged_test() ->
    in_directory(fun(Dir) ->
                     {File, _, _} = written(Dir, 1),
                     ok = committed([2, 3, 4], Dir),
                     ok = committed([5], Dir),
                     {ok, Whole} = file:read_file(File),
                     {At, _} = binary:match(Whole, term_to_binary(entry(4), [{minor_version, 2}])),
                     <<Before:At/binary, Byte, After/binary>> = Whole,
                     ok = file:write_file(File, [Before, Byte bxor 16, After]),
                     ?assertEqual(entries(3), found(Dir)),
                     ?assertMatch([_], aside(File))
                 end).

%% What could not be synced is written once more, with what came meanwhile.
commits_of_several_in_one_are_found_test() ->
    in_directory(fun(Dir) ->
                     {ok, Log0, []} = weft_kv_log:open(Dir, 7, tests),
                     {ok, Log1} = weft_kv_log:commit(0, appended([1, 2], written, Log0)),
                     {ok, Log2} = weft_kv_log:commit(1, appended([3, 4], written, Log1)),
                     Size = weft_kv_log:bytes(Log2),
                     ?assertEqual(Size, filelib:file_size(weft_kv_log:file(Log2))),
                     {ok, Log3} = weft_kv_log:commit(2, appended([5, 6], synced, Log2)),
                     ?assert(is_synced(Log3)),
                     ok = weft_kv_log:close(Log3),
                     ?assertEqual(entries(6), found(Dir))
                 end).

committed(Which, Dir) ->
    {ok, Log, _} = weft_kv_log:open(Dir, 7, tests),
    {ok, More} = weft_kv_log:commit(appended(Which, synced, Log)),
    weft_kv_log:close(More).

appended(Which, How, Log) ->
    lists:foldl(fun(One, Acc) -> weft_kv_log:append(entry(One), How, Acc) end, Log, Which).

%% --- written anew, and its name is not on disk ------------------------------------------------

%% What is written then is in the file that has the name, and counts as soon as the name is on disk.
a_new_file_without_a_synced_name_is_gone_on_with_test() ->
    in_directory(fun(Dir) ->
                     {File, _, _} = written(Dir, 3),
                     {ok, Log0, _} = weft_kv_log:open(Dir, 7, tests),
                     {ok, Log1} = weft_kv_log:commit(Log0),
                     {ok, Log2} = failing(fun() -> weft_kv_log:rewrite(entries(1), Log1) end),
                     ?assertEqual(entries(1), found(Dir)),
                     Log3 = weft_kv_log:append(entry(2), Log2),
                     ?assertEqual({error, {eio, File}, Log3},
                                  failing(fun() -> weft_kv_log:commit(Log3) end)),
                     ?assert(weft_kv_log:is_waiting(Log3)),
                     {ok, Log4} = weft_kv_log:commit(Log3),
                     ?assertNot(weft_kv_log:is_waiting(Log4)),
                     ?assertEqual(entries(2), found(Dir)),
                     {ok, Log5} = weft_kv_log:commit(weft_kv_log:append(entry(3), written, Log4)),
                     ok = weft_kv_log:close(Log5),
                     ?assertEqual(entries(3), found(Dir))
                 end).

%% The process before may have ended in between.
nothing_counts_before_the_name_of_a_file_is_on_disk_test() ->
    in_directory(fun(Dir) ->
                     {ok, Made, []} = failing(fun() -> weft_kv_log:open(Dir, 7, tests) end),
                     File = weft_kv_log:file(Made),
                     ok = weft_kv_log:close(Made),
                     {ok, Log, []} = weft_kv_log:open(Dir, 7, tests),
                     [?assertMatch({error, {eio, File}, _},
                                   failing(fun() ->
                                               weft_kv_log:commit(
                                                 weft_kv_log:append(entry(1), How, Log))
                                           end)) || How <- [synced, written]],
                     ok = weft_kv_log:close(Log)
                 end).

%% A replica of a strong bucket goes by it.
what_was_damaged_stays_aside_test() ->
    in_directory(fun(Dir) ->
                     {File, <<Before:60/binary, Byte, After/binary>>, _} = written(Dir, 4),
                     ok = file:write_file(File, [Before, Byte bxor 16, After]),
                     {ok, Log, _} = failing(fun() -> weft_kv_log:open(Dir, 7, tests) end),
                     ok = weft_kv_log:close(Log),
                     ?assertMatch([_], aside(File))
                 end).

failing(Fun) -> weft_test_disk:without_directory_sync(Fun).

%% --- written, and not synced ------------------------------------------------------------------

%% The end of the process takes nothing from it.
what_is_written_is_in_the_file_and_not_synced_test() ->
    in_directory(fun(Dir) ->
                     {Log, Synced} = half_synced(Dir, 2, 3),
                     ?assertEqual(Synced, weft_kv_log:synced_bytes(Log)),
                     ?assert(weft_kv_log:is_waiting(Log)),
                     ?assertEqual(weft_kv_log:bytes(Log), filelib:file_size(weft_kv_log:file(Log))),
                     ?assertEqual(entries(5), found(Dir))
                 end).

%% Half a second after the first of it was written, and before that with what has to be synced.
it_is_synced_in_time_test() ->
    in_directory(fun(Dir) ->
                     {Log, Synced} = half_synced(Dir, 1, 2),
                     {ok, More} = weft_kv_log:commit(499, weft_kv_log:append(entry(4), written,
                                                                             Log)),
                     ?assertEqual(Synced, weft_kv_log:synced_bytes(More)),
                     {ok, Later} = weft_kv_log:commit(500, More),
                     ?assert(is_synced(Later)),
                     {ok, Half} = weft_kv_log:commit(501, weft_kv_log:append(entry(5), written,
                                                                             Later)),
                     ?assertNot(is_synced(Half)),
                     {ok, All} = weft_kv_log:commit(501, weft_kv_log:append(entry(6), Half)),
                     ?assert(is_synced(All)),
                     ?assertEqual(entries(6), found(Dir))
                 end).

%% What waits for a sync is kept in memory, too.
much_is_synced_sooner_test() ->
    in_directory(fun(Dir) ->
                     {ok, Start, []} = weft_kv_log:open(Dir, 7, tests),
                     Large = {stored, {0, bucket, <<0:4800000>>}, weft_kv_object:new(), #{n => 1}},
                     [Third, Second, First | _] =
                         lists:foldl(fun(_, [L0 | _] = Logs) ->
                                         Log = weft_kv_log:append(Large, written, L0),
                                         {ok, L} = weft_kv_log:commit(0, Log),
                                         [L | Logs]
                                     end, [Start], [1, 2, 3]),
                     ?assertEqual([true, false, false],
                                  [is_synced(Log) || Log <- [Third, Second, First]])
                 end).

an_orderly_end_syncs_it_test() ->
    in_directory(fun(Dir) ->
                     Self = self(),
                     Pid = spawn_link(fun() ->
                                          {Log, _} = half_synced(Dir, 1, 2),
                                          Self ! {self(), written},
                                          receive close -> ok = weft_kv_log:close(Log) end
                                      end),
                     receive {Pid, written} -> ok end,
                     1 = erlang:trace(Pid, true, [call]),
                     1 = erlang:trace_pattern({file, datasync, 1}, true, []),
                     Pid ! close,
                     try receive {trace, Pid, call, {file, datasync, [_]}} -> ok
                         after 5000 -> error(not_synced)
                         end
                     after 1 = erlang:trace_pattern({file, datasync, 1}, false, [])
                     end
                 end).

%% The end of the file is cut off at each byte that is not synced, or is zeros from there on, or has
%% a hole there, as sectors get to the disk in any order. What was synced is there, of the rest the
%% first ones or none, and nothing else.
a_failure_of_the_host_takes_only_what_was_not_synced_test_() ->
    {timeout, 120, fun() -> in_directory(fun not_synced/1) end}.

not_synced(Dir) ->
    {Log, Synced} = half_synced(Dir, 2, 2),
    File = weft_kv_log:file(Log),
    {ok, Bytes} = file:read_file(File),
    ok = weft_kv_log:close(Log),
    Zeros = fun(Count) -> <<0:(8 * Count)>> end,
    [begin
         <<Before:At/binary, Rest/binary>> = Bytes,
         Hole = min(40, byte_size(Rest)),
         Left = case How of
                    cut -> [];
                    zeros -> Zeros(byte_size(Rest));
                    hole -> [Zeros(Hole), binary:part(Rest, Hole, byte_size(Rest) - Hole)]
                end,
         ok = file:write_file(File, [Before, Left]),
         Found = found(Dir),
         ?assertEqual({At, How, entries(max(2, length(Found)))}, {At, How, Found}),
         {ok, Again, Found} = weft_kv_log:open(Dir, 7, tests),
         {ok, More} = weft_kv_log:commit(weft_kv_log:append(entry(9), Again)),
         ok = weft_kv_log:close(More),
         ?assertEqual({At, How, Found ++ [entry(9)]}, {At, How, found(Dir)}),
         [ok = file:delete(Name) || Name <- aside(File)]
     end || At <- lists:seq(Synced, byte_size(Bytes)), How <- [cut, zeros, hole]].

%% A file system may drop what it could not write, and tell so once.
what_a_failed_sync_may_have_dropped_is_written_again_test() ->
    in_directory(fun(Dir) ->
                     {ok, Lock} = weft_directory_lock:start_link(Dir, tests),
                     {Log, Synced} = half_synced(Dir, 1, 2),
                     File = weft_kv_log:file(Log),
                     Seen = persistent_term:get({weft_directory_lock, Dir, tests}),
                     ok = atomics:sub(Seen, 1, 10000),
                     {error, {directory_not_held, File}, Failed} = weft_kv_log:commit(1000, Log),
                     {ok, <<Kept:Synced/binary, Lost/binary>>} = file:read_file(File),
                     ok = file:write_file(File, [Kept, <<0:(8 * byte_size(Lost))>>]),
                     Lock ! beat,
                     _ = sys:get_state(Lock),
                     {ok, Again} = weft_kv_log:commit(1000, Failed),
                     ?assert(is_synced(Again)),
                     ?assertEqual(entries(3), found(Dir)),
                     ok = gen_server:stop(Lock)
                 end).

%% Code that was loaded while it ran had a list of what waits there.
a_log_of_earlier_code_goes_on_test() ->
    in_directory(fun(Dir) ->
                     {ok, Log, []} = weft_kv_log:open(Dir, 7, tests),
                     Earlier = setelement(tuple_size(Log), Log, []),
                     ?assertNot(weft_kv_log:is_waiting(Earlier)),
                     {ok, More} = weft_kv_log:commit(weft_kv_log:append(entry(1), Earlier)),
                     ok = weft_kv_log:close(More),
                     ?assertEqual(entries(1), found(Dir))
                 end).

is_synced(Log) -> weft_kv_log:synced_bytes(Log) =:= weft_kv_log:bytes(Log).

%% So many entries that are synced, where these end, and so many that are only written, at 0 ms.
half_synced(Dir, Synced, Written) ->
    {ok, Start, []} = weft_kv_log:open(Dir, 7, tests),
    Append = fun(Numbers, How, From) ->
                 lists:foldl(fun(N, Log0) ->
                                 {ok, Log} = weft_kv_log:commit(
                                               0, weft_kv_log:append(entry(N), How, Log0)),
                                 Log
                             end, From, Numbers)
             end,
    First = Append(lists:seq(1, Synced), synced, Start),
    Log = Append(lists:seq(Synced + 1, Synced + Written), written, First),
    {Log, weft_kv_log:bytes(First)}.

%% --- files ------------------------------------------------------------------------------------

entry(Key) when is_binary(Key) -> {stored, {0, bucket, Key}, weft_kv_object:new(), #{n => 1}};
entry(N) -> {stored, {0, bucket, <<N>>}, weft_kv_object:new(), #{n => N}}.

entries(Count) -> [entry(N) || N <- lists:seq(1, Count)].

%% The file, its bytes, and where its records end.
written(Dir, Count) ->
    {ok, Log0, []} = weft_kv_log:open(Dir, 7, tests),
    {Log, Ends} = lists:foldl(fun(N, {L0, Ends}) ->
                                  {ok, L} = weft_kv_log:commit(weft_kv_log:append(entry(N), L0)),
                                  {L, Ends ++ [weft_kv_log:bytes(L)]}
                              end, {Log0, []}, lists:seq(1, Count)),
    ok = weft_kv_log:close(Log),
    File = filename:join(Dir, "7.log"),
    {ok, Bytes} = file:read_file(File),
    ?assertEqual(byte_size(Bytes), lists:last(Ends)),
    {File, Bytes, Ends}.

%% The files that were put aside.
aside(File) ->
    {ok, Names} = file:list_dir(filename:dirname(File)),
    [filename:join(filename:dirname(File), Name)
     || Name <- Names, lists:prefix(filename:basename(File) ++ ".damaged.", Name)].

found(Dir) ->
    {ok, Log, Entries} = weft_kv_log:open(Dir, 7, tests),
    ok = weft_kv_log:close(Log),
    Entries.

in_directory(Fun) -> weft_kv_test_directory:within(Fun).
