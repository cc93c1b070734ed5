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
         Aside = filelib:wildcard(File ++ ".damaged.*"),
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
                     ?assertEqual([], filelib:wildcard(File ++ ".damaged.*"))
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
         Aside = filelib:wildcard(File ++ ".damaged.*"),
         ?assertMatch({At, [_]}, {At, Aside}),
         [ok = file:delete(Name) || Name <- Aside]
     end || At <- lists:seq(0, byte_size(Bytes) - 1)].

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
               Aside = filelib:wildcard(File ++ ".damaged.*"),
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
                     ?assertEqual([], filelib:wildcard(File ++ ".damaged.*")),
                     ok = file:del_dir(File ++ ".new"),
                     ?assertEqual(entries(1), found(Dir)),
                     ?assertMatch([_], filelib:wildcard(File ++ ".damaged.*"))
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

%% Before: nothing is written. It is the case again: what waited is written.
what_may_be_another_nodes_is_not_written_test() ->
    in_directory(fun(Dir) ->
                     {ok, Lock} = weft_directory_lock:start_link(Dir, tests),
                     {ok, Log0, []} = weft_kv_log:open(Dir, 7, tests),
                     {ok, Log1} = weft_kv_log:commit(weft_kv_log:append(entry(1), Log0)),
                     Seen = persistent_term:get({weft_directory_lock, Dir, tests}),
                     ok = atomics:sub(Seen, 1, 10000),
                     Log2 = weft_kv_log:append(entry(2), Log1),
                     {error, {directory_not_held, _}, Log3} = weft_kv_log:commit(Log2),
                     {error, {directory_not_held, _}, Log3} = weft_kv_log:rewrite([], Log3),
                     {error, {directory_not_held, _}} = weft_kv_log:delete(Log3),
                     ?assertEqual(entries(1), found(Dir)),
                     Lock ! beat,
                     _ = sys:get_state(Lock),
                     {ok, Log4} = weft_kv_log:commit(Log3),
                     ok = weft_kv_log:close(Log4),
                     ?assertEqual(entries(2), found(Dir)),
                     ok = gen_server:stop(Lock)
                 end).

a_file_that_can_not_be_made_is_named_test() ->
    in_directory(fun(Dir) ->
                     ok = file:write_file(filename:join(Dir, "file"), "x"),
                     ?assertMatch({error, {_, _}},
                                  weft_kv_log:open(filename:join(Dir, "file"), 7, tests))
                 end).

%% Its data may be good.
a_file_of_another_version_is_refused_and_left_test() ->
    in_directory(fun(Dir) ->
                     {File, <<"weft_kv 1\n", Records/binary>>, _} = written(Dir, 2),
                     Later = <<"weft_kv 2\n", Records/binary>>,
                     ok = file:write_file(File, Later),
                     ?assertEqual({error, {written_by_another_version, File}},
                                  weft_kv_log:open(Dir, 7, tests)),
                     ?assertEqual({ok, Later}, file:read_file(File)),
                     ?assertEqual([], filelib:wildcard(File ++ ".damaged.*"))
                 end).

%% --- files ------------------------------------------------------------------------------------

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

found(Dir) ->
    {ok, Log, Entries} = weft_kv_log:open(Dir, 7, tests),
    ok = weft_kv_log:close(Log),
    Entries.

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_kv_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, critical),
    try Fun(Dir)
    after
        ok = logger:set_primary_config(level, Level),
        file:del_dir_r(Dir)
    end.
