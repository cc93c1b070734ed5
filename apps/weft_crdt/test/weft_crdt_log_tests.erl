%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node keeps of its store on disk: it is read again, a tail that was cut off anywhere
%% is dropped, other damage is named, and the file does not grow without end.
-module(weft_crdt_log_tests).

-include_lib("eunit/include/eunit.hrl").

%% In place of the module of a file.
-export([write/2, position/2, truncate/1]).
%% For tests on nodes, too.
-export([full/0, room/0]).
%% A handler of logger.
-export([log/2]).

%% Counters of three keys, one after the other.
-define(ITEMS, [{Key, gcounter, #{{a, 1} => N}} || N <- [1, 2, 3], Key <- [x, y, z]]).
-define(MERGED, [{Key, gcounter, #{{a, 1} => 3}} || Key <- [x, y, z]]).

what_was_written_is_read_test() ->
    in_directory(fun(Dir) ->
                     written(?ITEMS, Dir),
                     ?assertEqual(?MERGED, read(Dir))
                 end).

%% What is before the cut is there, whatever was cut.
a_tail_that_was_cut_off_is_dropped_test_() ->
    {timeout, 60,
     fun() ->
         in_directory(
           fun(Dir) ->
               written([{x, gcounter, #{{a, 1} => 1}}], Dir),
               Before = filelib:file_size(file(Dir)),
               append([{y, gcounter, #{{a, 1} => 7}}], Dir),
               {ok, Bytes} = file:read_file(file(Dir)),
               [begin
                    ok = file:write_file(file(Dir), binary:part(Bytes, 0, Length)),
                    ?assertEqual({Length, [{x, gcounter, #{{a, 1} => 1}}]}, {Length, read(Dir)})
                end || Length <- lists:seq(Before, byte_size(Bytes) - 1)]
           end)
     end}.

%% A table of retired runs, then a state that was folded with it: whatever is cut off, the count is
%% that of before, and it is folded or not.
a_table_that_was_cut_off_is_dropped_test_() ->
    {timeout, 60,
     fun() ->
         in_directory(
           fun(Dir) ->
               {ok, Table} = weft_crdt_retired:next(#{a => 1}, [], weft_crdt_retired:new()),
               written([{x, gcounter, #{{a, 1} => 3, {a, 2} => 4}}, {y, gcounter, #{{a, 2} => 1}}],
                       Dir),
               Before = filelib:file_size(file(Dir)),
               Hash = weft_crdt_entries:ended(Table, entries(Dir)),
               append([{weft_crdt, retired, Table, Hash}, {x, gcounter, #{{a, 2} => 5}}], Dir),
               {ok, Bytes} = file:read_file(file(Dir)),
               Read = [begin
                           ok = file:write_file(file(Dir), binary:part(Bytes, 0, Length)),
                           {weft_crdt_entries:value(x, entries(Dir)),
                            weft_crdt_entries:state(x, entries(Dir))}
                       end || Length <- lists:seq(Before, byte_size(Bytes))],
               ?assertEqual(lists:sort(
                              [{{ok, 7}, {ok, gcounter, #{{a, 1} => 3, {a, 2} => 4}}},
                               {{ok, 7}, {ok, gcounter, #{retired => {Table, 3}, {a, 2} => 4}}},
                               {{ok, 8}, {ok, gcounter, #{retired => {Table, 3}, {a, 2} => 5}}}]),
                            lists:usort(Read))
           end)
     end}.

%% Also states of a store that lacks something: some were folded with the table before, and some
%% not at all.
what_was_folded_is_the_same_after_the_file_was_rewritten_test() ->
    in_directory(
      fun(Dir) ->
          {ok, First} = weft_crdt_retired:next(#{a => 1}, [], weft_crdt_retired:new()),
          {ok, Second} = weft_crdt_retired:next(#{a => 2}, [], First),
          Items = [{x, gcounter, #{{a, 1} => 3, {a, 2} => 4}},
                   {s, orset, #{{a, 1} => {[{1, 2}], #{}}}}],
          Begun = weft_crdt_entries:learn_all(Items, weft_crdt_entries:new(10)),
          Later = [{weft_crdt, retired, First, weft_crdt_entries:ended(First, Begun)},
                   {y, gcounter, #{{a, 2} => 1}}, {members, weft_crdt_members, #{b => 7}},
                   {weft_crdt, retired, Second, 1}, {z, gcounter, #{retired => {2, 9}}}],
          Whole = weft_crdt_entries:learn_all(Later, Begun),
          ?assertMatch({ok, gcounter, #{retired := {First, 3}}}, weft_crdt_entries:state(x, Whole)),
          ?assertMatch({ok, gcounter, #{retired := {Second, 9}}},
                       weft_crdt_entries:state(z, Whole)),
          written(Items ++ Later, Dir),
          [?assertEqual([weft_crdt_entries:state(K, Whole) || K <- [x, s, y, z]],
                        [weft_crdt_entries:state(K, entries(Dir)) || K <- [x, s, y, z]])
           || _ <- [1, 2]],
          ?assertEqual(#{b => 7}, weft_crdt_entries:members(entries(Dir))),
          ?assertEqual(Second, weft_crdt_entries:table(entries(Dir)))
      end).

entries(Dir) ->
    weft_crdt_entries:learn_all(with(Dir, fun weft_crdt_log:kept/0), weft_crdt_entries:new(10)).

damage_is_named_test() ->
    in_directory(
      fun(Dir) ->
          written(?ITEMS, Dir),
          {ok, <<Head:30/binary, Byte, Rest/binary>>} = file:read_file(file(Dir)),
          [begin
               ok = file:write_file(file(Dir), Bytes),
               process_flag(trap_exit, true),
               ?assertEqual({error, {crdt_file, {damaged, file(Dir)}}},
                            weft_crdt_log:start_link(Dir, 1000))
           end || Bytes <- [<<Head/binary, (Byte bxor 1), Rest/binary>>, <<"something else">>]]
      end).

%% Whoever takes it for damaged may delete it.
a_file_of_a_later_version_is_no_damaged_one_test() ->
    in_directory(
      fun(Dir) ->
          process_flag(trap_exit, true),
          ok = filelib:ensure_dir(file(Dir)),
          ok = file:write_file(file(Dir), "weft_crdt 2\nwhatever it has"),
          ?assertEqual({error, {crdt_file, {written_by_another_version, file(Dir)}}},
                       weft_crdt_log:start_link(Dir, 1000))
      end).

%% Wherever a bit has changed: in a length, a checksum or a term, also of the last record. Nothing
%% is left out then, and the file stays as it is.
a_bit_that_has_changed_is_named_test_() ->
    {timeout, 60,
     fun() ->
         in_directory(
           fun(Dir) ->
               process_flag(trap_exit, true),
               written(?ITEMS, Dir),
               _ = read(Dir),
               {ok, Whole} = file:read_file(file(Dir)),
               [begin
                    <<Head:At/binary, Byte, Rest/binary>> = Whole,
                    Damaged = <<Head/binary, (Byte bxor Bit), Rest/binary>>,
                    ok = file:write_file(file(Dir), Damaged),
                    ?assertEqual({At, {error, {crdt_file, {damaged, file(Dir)}}}},
                                 {At, weft_crdt_log:start_link(Dir, 1000)}),
                    ?assertEqual({ok, Damaged}, file:read_file(file(Dir)))
                end || Bit <- [1, 128], At <- lists:seq(0, byte_size(Whole) - 1)]
           end)
     end}.

%% What a file system may leave of the last seconds when the machine fails.
zeros_at_the_end_are_dropped_test() ->
    in_directory(
      fun(Dir) ->
          written(?ITEMS, Dir),
          {ok, Whole} = file:read_file(file(Dir)),
          [begin
               ok = file:write_file(file(Dir), [Whole, Begun, binary:copy(<<0>>, Zeros)]),
               ?assertEqual({Zeros, ?MERGED}, {Zeros, read(Dir)})
           end || Begun <- [<<>>, <<0, 0, 0, 40, 1, 2, 3, 4, 131, 104>>],
                  Zeros <- [1, 7, 8, 9, 4096]]
      end).

%% It is still appended to, and what is answered is there.
a_file_that_can_not_be_rewritten_goes_on_test() ->
    in_directory(
      fun(Dir) ->
          with(Dir, fun() ->
                        ok = file:make_dir(file(Dir) ++ ".new"),
                        [ok = weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, #{{a, 1} => N}}}])
                         || N <- lists:seq(1, 200)],
                        ok = file:del_dir(file(Dir) ++ ".new")
                    end),
          ?assertEqual([{x, gcounter, #{{a, 1} => 200}}], read(Dir))
      end).

%% A directory stands for a node that has no descriptor left at that moment.
a_file_that_can_not_be_read_goes_on_test() ->
    in_directory(
      fun(Dir) ->
          Put = fun(N) ->
                    ok = weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, #{{a, 1} => N}}}])
                end,
          with(Dir, fun() ->
                        %% In the directory of the lock, as the file is.
                        ok = file:make_dir(file(Dir) ++ ".none"),
                        ok = with_file(file(Dir) ++ ".none"),
                        quiet(fun() -> [Put(N) || N <- lists:seq(1, 200)] end),
                        ?assert(filelib:file_size(file(Dir)) > 2000),
                        ok = with_file(file(Dir)),
                        [Put(N) || N <- lists:seq(201, 400)],
                        ?assert(filelib:file_size(file(Dir)) < 8000)
                    end),
          ?assertEqual([{x, gcounter, #{{a, 1} => 400}}], read(Dir))
      end).

%% It is said, and no process ends.
a_store_that_begins_waits_for_a_file_that_can_not_be_read_test() ->
    in_directory(
      fun(Dir) ->
          written(?ITEMS, Dir),
          with(Dir, fun() ->
                        ok = file:make_dir(file(Dir) ++ ".none"),
                        ok = with_file(file(Dir) ++ ".none"),
                        ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                        {_, Store} = spawn_monitor(fun() -> exit(weft_crdt_log:kept()) end),
                        receive {said, warning} -> ok after 10000 -> error(nothing_said) end,
                        ok = logger:remove_handler(?MODULE),
                        ok = with_file(file(Dir)),
                        receive
                            {'DOWN', Store, process, _, Items} ->
                                ?assertEqual(?MERGED, lists:sort(Items))
                        end
                    end)
      end).

%% Others close theirs.
a_log_that_begins_waits_for_a_descriptor_test() ->
    in_directory(
      fun(Dir) ->
          written(?ITEMS, Dir),
          Read = fun() -> weft_test_disk:without_descriptors(weft_crdt_log, 3,
                                                             fun() -> read(Dir) end)
                 end,
          ?assertEqual(?MERGED, quiet(Read))
      end).

%% As at a start: what is written behind damage would not be read.
damage_that_is_found_while_it_runs_is_named_test() ->
    in_directory(
      fun(Dir) ->
          process_flag(trap_exit, true),
          {ok, Log} = weft_crdt_log:start_link(Dir, 200),
          {ok, Magic} = file:read_file(file(Dir)),
          ok = file:write_file(file(Dir), [Magic, binary:copy(<<1>>, 20)]),
          Counts = maps:from_list([{{a, N}, 1} || N <- lists:seq(1, 100)]),
          quiet(fun() ->
                    ok = weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, Counts}}]),
                    receive {'EXIT', Log, Reason} ->
                        ?assertEqual({crdt_file, {damaged, file(Dir)}}, Reason)
                    end
                end)
      end).

%% A device that takes half of it stands for a full disk. What was begun is no damage.
what_can_not_be_written_has_not_happened_test() ->
    in_directory(
      fun(Dir) ->
          Keep = fun(Number) ->
                     Items = [{Key, gcounter, #{{a, 1} => Number}} || Key <- [x, y]],
                     weft_crdt_log:keep(weft_crdt, [{kept, Item} || Item <- Items])
                 end,
          with(Dir, fun() ->
                        ok = Keep(1),
                        Bytes = filelib:file_size(file(Dir)),
                        ok = full(),
                        [?assertEqual({error, {enospc, file(Dir)}}, quiet(fun() -> Keep(2) end))
                         || _ <- [1, 2]],
                        ?assertEqual(Bytes, filelib:file_size(file(Dir))),
                        ok = room(),
                        ok = Keep(3)
                    end),
          ?assertEqual([{x, gcounter, #{{a, 1} => 3}}, {y, gcounter, #{{a, 1} => 3}}], read(Dir))
      end).

%% However many changes are refused meanwhile.
a_full_disk_is_said_once_and_when_it_is_over_test() ->
    in_directory(
      fun(Dir) ->
          Keep = fun(N) ->
                     weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, #{{a, 1} => N}}}])
                 end,
          with(Dir, fun() ->
                        ok = Keep(1),
                        ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                        [begin
                             ok = full(),
                             [{error, {enospc, _}} = Keep(2) || _ <- lists:seq(1, 3)],
                             ok = room(),
                             [ok = Keep(N) || N <- [3, 4]]
                         end || _ <- [once, again]],
                        ok = logger:remove_handler(?MODULE),
                        ?assertEqual([error, notice, error, notice], said())
                    end)
      end).

small_changes_that_have_room_are_no_end_of_it_test() ->
    in_directory(
      fun(Dir) ->
          Keep = fun(Actors) ->
                     Counts = maps:from_list([{{a, N}, 1} || N <- lists:seq(1, Actors)]),
                     weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, Counts}}])
                 end,
          with(Dir, fun() ->
                        ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                        ok = device(tight),
                        [begin
                             {error, {enospc, _}} = Keep(100),
                             ok = Keep(1)
                         end || _ <- [once, again]],
                        ok = room(),
                        ok = Keep(100),
                        ok = logger:remove_handler(?MODULE),
                        ?assertEqual([error, notice], said())
                    end)
      end).

%% It did not know that this is said.
the_state_of_earlier_code_is_gone_on_with_test() ->
    in_directory(
      fun(Dir) ->
          with(Dir, fun() ->
                        ok = sys:suspend(weft_crdt_log),
                        _ = sys:replace_state(weft_crdt_log, fun(Log) ->
                                list_to_tuple(lists:droplast(tuple_to_list(Log)))
                            end),
                        ok = sys:change_code(weft_crdt_log, weft_crdt_log, earlier, []),
                        ok = sys:resume(weft_crdt_log),
                        ok = weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, #{{a, 1} => 1}}}])
                    end),
          ?assertEqual([{x, gcounter, #{{a, 1} => 1}}], read(Dir))
      end).

%% @private Of what is written, half is in the file.
-spec full() -> ok.
full() -> device(full).

device(How) ->
    _ = sys:replace_state(weft_crdt_log, fun(Log) ->
                                             New = {file_descriptor, ?MODULE,
                                                    {How, element(3, Log)}},
                                             setelement(3, Log, New)
                                         end),
    ok.

%% @private
-spec room() -> ok.
room() ->
    _ = sys:replace_state(weft_crdt_log, fun(Log) ->
                                             {file_descriptor, _, {_, Device}} = element(3, Log),
                                             setelement(3, Log, Device)
                                         end),
    ok.

%% @private
-spec position(tuple(), non_neg_integer()) -> {ok, non_neg_integer()} | {error, term()}.
position({file_descriptor, _, {_, Device}}, At) -> file:position(Device, At).

%% @private
-spec truncate(tuple()) -> ok | {error, term()}.
truncate({file_descriptor, _, {_, Device}}) -> file:truncate(Device).

quiet(Fun) ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    try Fun() after ok = logger:set_primary_config(level, Level) end.

%% A directory in the way stands for a full disk. All is in the file that there is, but for what was
%% being written at its end.
a_file_that_can_not_be_rewritten_is_read_and_goes_on_test() ->
    in_directory(
      fun(Dir) ->
          written(?ITEMS, Dir),
          {ok, Whole} = file:read_file(file(Dir)),
          ok = file:write_file(file(Dir), [Whole, <<0, 0, 0, 40, 1, 2, 3, 4, 131, 104>>]),
          ok = file:make_dir(file(Dir) ++ ".new"),
          quiet(fun() ->
                    ?assertEqual(lists:sort(?ITEMS), read(Dir)),
                    ?assertEqual({ok, Whole}, file:read_file(file(Dir))),
                    append([{x, gcounter, #{{a, 1} => 4}}], Dir)
                end),
          ok = file:del_dir(file(Dir) ++ ".new"),
          ?assertEqual([{x, gcounter, #{{a, 1} => 4}} | tl(?MERGED)], read(Dir))
      end).

a_first_file_that_can_not_be_written_is_named_test() ->
    in_directory(
      fun(Dir) ->
          process_flag(trap_exit, true),
          ok = file:make_dir(file(Dir) ++ ".new"),
          ?assertMatch({error, {crdt_file, {_, _}}}, weft_crdt_log:start_link(Dir, 1000))
      end).

%% What is answered is in the file that has the name.
a_rewritten_file_without_a_synced_name_goes_on_test() ->
    in_directory(
      fun(Dir) ->
          Put = fun(Numbers) ->
                    [ok = weft_crdt_log:keep(weft_crdt, [{kept, {x, gcounter, #{{a, 1} => N}}}])
                     || N <- Numbers]
                end,
          with(Dir, fun() ->
                        weft_test_disk:without_directory_sync(
                          fun() -> Put(lists:seq(1, 200)) end),
                        ?assertMatch([{x, gcounter, #{{a, 1} := _}} | _], weft_crdt_log:kept()),
                        Put([201])
                    end),
          ?assertEqual([{x, gcounter, #{{a, 1} => 201}}], read(Dir))
      end).

the_file_is_rewritten_when_it_has_doubled_test_() ->
    {timeout, 60,
     fun() ->
         in_directory(
           fun(Dir) ->
               append([{x, gcounter, #{{a, 1} => N}} || N <- lists:seq(1, 1000)], Dir),
               ?assert(filelib:file_size(file(Dir)) < 2000),
               ?assertEqual([{x, gcounter, #{{a, 1} => 1000}}], read(Dir))
           end)
     end}.

a_directory_that_can_not_be_written_is_named_test() ->
    in_directory(fun(Dir) ->
                     File = filename:join(Dir, "file"),
                     ok = file:write_file(File, "no directory"),
                     process_flag(trap_exit, true),
                     ?assertMatch({error, {crdt_file, {_, _}}}, weft_crdt_log:start_link(File, 1))
                 end).

a_directory_of_another_node_is_refused_test() ->
    in_directory(
      fun(Dir) ->
          process_flag(trap_exit, true),
          {ok, Lock} = weft_directory_lock:start_link(Dir, weft_crdt),
          {ok, Config} = weft_crdt_app:config([{dir, Dir}]),
          ?assertMatch({error, {shutdown, {failed_to_start_child, behind, {shutdown,
                         {failed_to_start_child, lock, {directory_in_use, #{node := _}}}}}}},
                       weft_crdt_sup:start_link(Config)),
          ok = gen_server:stop(Lock)
      end).

%% It stood still for long. Who has the directory then is known when the lock has looked.
nothing_is_written_where_another_node_may_write_test_() ->
    {timeout, 20,
     fun() ->
         locked(fun(Dir, Lock) ->
                    Bytes = filelib:file_size(file(Dir)),
                    ok = not_held(Dir),
                    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
                    Writer = writer(),
                    receive {said, warning} -> ok after 10000 -> error(nothing_said) end,
                    %% pacing: so long nothing comes
                    receive {'DOWN', Writer, process, _, Reason} -> error(Reason)
                    after 200 -> ok
                    end,
                    ok = logger:remove_handler(?MODULE),
                    %% However often it was tried meanwhile.
                    ?assertEqual([], said()),
                    ?assertEqual(Bytes, filelib:file_size(file(Dir))),
                    Lock ! beat,
                    receive {'DOWN', Writer, process, _, Result} -> ?assertEqual(ok, Result) end,
                    ?assertEqual([{x, gcounter, #{{a, 1} => 7}}], weft_crdt_log:kept())
                end)
     end}.

%% @private
-spec log(logger:log_event(), logger:handler_config()) -> term().
log(#{level := Level}, #{config := Test}) -> Test ! {said, Level}.

said() -> receive {said, Level} -> [Level | said()] after 0 -> [] end.

%% While it was being written.
nothing_is_answered_where_another_node_may_have_written_test_() ->
    {timeout, 20,
     fun() ->
         locked(fun(Dir, Lock) ->
                    Device = element(3, sys:get_state(weft_crdt_log)),
                    ok = with_device({file_descriptor, ?MODULE, {Device, Dir}}),
                    Writer = writer(),
                    %% pacing: so long nothing comes
                    receive {'DOWN', Writer, process, _, Reason} -> error(Reason)
                    after 200 -> ok
                    end,
                    ok = with_device(Device),
                    Lock ! beat,
                    receive {'DOWN', Writer, process, _, Result} -> ?assertEqual(ok, Result) end,
                    ?assertMatch([{x, gcounter, #{{a, 1} := 7}} | _], weft_crdt_log:kept())
                end)
     end}.

%% @private
-spec write(tuple(), iodata()) -> ok | {error, enospc}.
write({file_descriptor, _, {tight, Device}} = Tight, Bytes) ->
    case iolist_size(Bytes) < 200 of
        true -> file:write(Device, Bytes);
        false -> write(setelement(3, Tight, {full, Device}), Bytes)
    end;
write({file_descriptor, _, {full, Device}}, Bytes) ->
    ok = file:write(Device, binary:part(iolist_to_binary(Bytes), 0, iolist_size(Bytes) div 2)),
    {error, enospc};
write({file_descriptor, _, {Device, Dir}}, Bytes) ->
    ok = file:write(Device, Bytes),
    not_held(Dir).

a_file_is_not_rewritten_where_another_node_may_write_test() ->
    in_directory(
      fun(Dir) ->
          process_flag(trap_exit, true),
          {ok, Lock} = weft_directory_lock:start_link(Dir, weft_crdt),
          ok = not_held(Dir),
          ?assertEqual({error, {crdt_file, {directory_not_held, file(Dir)}}},
                       weft_crdt_log:start_link(Dir, 1000)),
          ?assertNot(filelib:is_file(file(Dir))),
          ok = gen_server:stop(Lock)
      end).

%% However the directory is written: it is the same to the lock and to the log. These end with it.
the_log_asks_for_its_lock_test() ->
    {ok, Config} = weft_crdt_app:config([{dir, "there//is/"}]),
    {ok, {#{strategy := rest_for_one},
          [#{id := lock, start := {_, _, [Locked, Purpose]}},
           #{id := weft_crdt_log, start := {_, _, [Dir, _]}}, #{id := weft_crdt}]}} =
        weft_crdt_sup:init({behind, Config}),
    ?assertEqual({filename:dirname(file(Dir)), weft_crdt}, {Locked, Purpose}).

locked(Fun) ->
    in_directory(fun(Dir) ->
                     {ok, Lock} = weft_directory_lock:start_link(Dir, weft_crdt),
                     with(Dir, fun() -> Fun(Dir, Lock) end),
                     ok = gen_server:stop(Lock)
                 end).

not_held(Dir) -> atomics:sub(persistent_term:get({weft_directory_lock, Dir, weft_crdt}), 1, 10000).

with_device(Device) ->
    _ = sys:replace_state(weft_crdt_log, fun(Log) -> setelement(3, Log, Device) end),
    ok.

with_file(File) ->
    _ = sys:replace_state(weft_crdt_log, fun(Log) -> setelement(2, Log, File) end),
    ok.

writer() ->
    Item = {x, gcounter, #{{a, 1} => 7}},
    {_, Writer} = spawn_monitor(fun() -> exit(weft_crdt_log:keep(weft_crdt, [{kept, Item}])) end),
    Writer.

%% With what was written before, as it is.
append(Items, Dir) ->
    with(Dir, fun() -> [ok = weft_crdt_log:keep(weft_crdt, [{kept, Item}]) || Item <- Items] end).

written(Items, Dir) -> append(Items, Dir).

read(Dir) -> with(Dir, fun() -> lists:sort(weft_crdt_log:kept()) end).

with(Dir, Fun) ->
    {ok, Pid} = weft_crdt_log:start_link(Dir, 1000),
    try Fun() after ok = gen_server:stop(Pid) end.

file(Dir) -> filename:join(Dir, "store").

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_crdt_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try Fun(Dir) after file:del_dir_r(Dir) end.
