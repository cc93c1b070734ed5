%% SPDX-License-Identifier: Apache-2.0
%% @doc What buckets ask of the disk, and one partition with buckets that ask for different things:
%% what is in its file, and when.
-module(weft_kv_durability_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => true}).
-define(ALL, #{log => written, cache => memory}).

%% --- configuration ----------------------------------------------------------------------------

a_wrong_word_is_named_test() ->
    Words = [default, synced, written, memory],
    ?assertEqual({error, {bad_option, {durability, disk, {one_of, Words}}}},
                 weft_kv_bucket:check(#{durability => disk})),
    [?assertMatch({ok, #{durability := Word}}, weft_kv_bucket:check(#{durability => Word}))
     || Word <- Words],
    {ok, Bucket} = weft_kv_bucket:check(#{}),
    ?assertMatch(#{durability := default}, Bucket),
    ?assertEqual({error, {unknown_option, durability}},
                 weft_kv_bucket:options(#{durability => memory}, Bucket)),
    ?assertEqual({error, {bad_option, {durability, memory, not_in_strong_buckets}}},
                 weft_kv_bucket:check(#{consistency => strong, voters => [a, b, c], dir => "d",
                                        durability => memory})).

%% Where nothing is said it is as it was before there was anything to be said.
a_node_promises_what_it_has_test() ->
    Buckets = #{a => #{durability => default}, m => #{durability => memory},
                strong => #{consistency => strong}},
    ?assertEqual({ok, Buckets#{a := #{durability => memory}}},
                 weft_kv_durability:promised(none, Buckets)),
    ?assertEqual({ok, Buckets#{a := #{durability => synced}}},
                 weft_kv_durability:promised("dir", Buckets)),
    [begin
         More = Buckets#{b => #{durability => Asked}},
         ?assertEqual({error, {bucket, b, {durability, Asked,
                                           {not_in_the_configuration_of, weft_ring,
                                            {vnodes, weft_kv_vnode, dir}}}}},
                      weft_kv_durability:promised(none, More)),
         ?assertMatch({ok, #{b := #{durability := Asked}}},
                      weft_kv_durability:promised("dir", More))
     end || Asked <- [synced, written]].

%% A partition may start before the application.
a_partition_knows_before_the_application_starts_test() ->
    ok = application:set_env(weft_kv, buckets, #{cache => #{durability => memory}, store => #{}}),
    try ?assertEqual(#{cache => memory}, weft_kv_durability:expected())
    after application:unset_env(weft_kv, buckets)
    end.

%% --- the file ---------------------------------------------------------------------------------

what_is_in_memory_only_leaves_no_byte_in_the_file_test() ->
    with(?ALL, fun(Dir) ->
                   Vnode = committed(deleted(cache, written(all(), vnode(Dir)))),
                   {ok, Bytes} = file:read_file(file(Dir)),
                   ?assertEqual(nomatch, binary:match(Bytes, [<<"cache">>, value(cache)])),
                   ?assertNotEqual(nomatch, binary:match(Bytes, value(store))),
                   %% Nor does anything that takes it away, or goes through all of it.
                   {ok, Cleared} = weft_kv_vnode:clear({mark, none},
                                                       committed(written([cache], Vnode))),
                   _ = committed(tick(Cleared)),
                   {ok, Later} = file:read_file(file(Dir)),
                   ?assertEqual(nomatch, binary:match(Later, [<<"cache">>, value(cache)]))
               end).

%% The process is killed: nobody closes the file.
all_but_that_is_there_after_a_kill_test() ->
    with(?ALL, fun(Dir) ->
                   _ = committed(written(all(), vnode(Dir))),
                   ?assertEqual([{store, true}, {log, true}, {cache, false}], has(vnode(Dir)))
               end).

what_is_written_is_not_synced_yet_test() ->
    with(?ALL, fun(Dir) ->
                   Vnode = committed(written([log], vnode(Dir))),
                   ?assertNot(is_synced(Vnode)),
                   ?assert(is_synced(committed(written([store], Vnode)))),
                   ?assert(is_synced(committed(written([cache], vnode(Dir)))))
               end).

%% The process of a partition sees to it at rest.
what_is_written_is_synced_though_nobody_asks_test() ->
    with(?ALL, fun(Dir) ->
                   {ok, Pid} = weft_vnode_process:start_link(weft_kv_durability_tests_partition,
                                                             weft_kv_vnode, 0, #{dir => Dir},
                                                             #{queue_max => 100}),
                   Write = {command, fallback, key(log), write(log)},
                   {ok, {ok, _}} = gen_server:call(Pid, Write),
                   weft_test_nodes:until(fun() ->
                       is_synced(inside([data, replica], sys:get_state(Pid)))
                   end),
                   true = unlink(Pid),
                   ok = gen_server:stop(Pid)
               end).

%% The node that it came from drops it: hints, and partitions that move.
what_others_drop_is_synced_in_each_bucket_test() ->
    Items = [{key(log), {object(log), ?KIND}}],
    with(?ALL, fun(Dir) ->
                   {changes, [{Key, Change}], _} =
                       weft_kv_vnode:command(key(log), {merge_all, Items}, vnode(Dir)),
                   {ok, Brought} = weft_kv_vnode:change(Key, Change, none, vnode(Dir)),
                   ?assert(is_synced(committed(Brought))),
                   ?assertEqual([{key(log), {object(log), ?KIND}}],
                                weft_kv_test_copies:objects(Brought))
               end),
    with(?ALL, fun(Dir) ->
                   {ok, Taken} = weft_kv_vnode:take(Items, {mark, {1, 1}}, vnode(Dir)),
                   ?assert(is_synced(committed(Taken))),
                   Merge = {merge, object(log), ?KIND, primary},
                   Changed = fun(Note) ->
                                 {ok, New} = weft_kv_vnode:change({0, log, <<"2">>}, Merge, Note,
                                                                  committed(Taken)),
                                 committed(New)
                             end,
                   ?assert(is_synced(Changed({mark, {1, 2}}))),
                   ?assertNot(is_synced(Changed(none)))
               end).

%% Or the file of a small store would be as large as the cache beside it.
what_is_in_memory_only_does_not_make_the_file_larger_test_() ->
    {timeout, 60, fun() -> with(?ALL, fun outdated/1) end}.

outdated(Dir) ->
    Big = binary:copy(<<"x">>, 100000),
    Cached = lists:foldl(fun(N, V) -> written({0, cache, <<N>>}, Big, V) end, vnode(Dir),
                         lists:seq(1, 50)),
    Last = lists:foldl(fun(N, V) ->
                           committed(written(key(store), <<N, Big/binary>>, deleted(store, V)))
                       end, Cached, lists:seq(1, 40)),
    %% A megabyte, and what was not synced yet when it was written anew.
    ?assert(filelib:file_size(file(Dir)) < 2200000),
    ?assertEqual([<<40, Big/binary>>], values(store, Last)),
    ?assertEqual([<<40, Big/binary>>], values(store, vnode(Dir))).

%% --- a full disk ------------------------------------------------------------------------------

%% A device that fails stands for it.
what_is_in_memory_only_needs_no_room_test() ->
    with(?ALL, fun(Dir) ->
                   Start = vnode(Dir),
                   ok = weft_kv_vnode:terminate(normal, Start),
                   {error, _, Full} = weft_kv_vnode:commit(written([store], Start)),
                   [begin
                        ?assertEqual({reply, {error, not_written}}, command(Bucket, Full)),
                        ?assert(weft_kv_vnode:is_held(key(Bucket), write(Bucket), Full)),
                        ?assert(weft_kv_vnode:is_held(key(Bucket), {read, ?KIND, primary}, Full))
                    end || Bucket <- [store, log]],
                   Cached = written([cache], Full),
                   ?assertEqual([value(cache)], values(cache, Cached)),
                   [?assertNot(weft_kv_vnode:is_held(key(cache), Command, Cached))
                    || Command <- [write(cache), {read, ?KIND, primary}, {page, <<>>}]],
                   %% What may have to do with others waits for them.
                   [?assert(weft_kv_vnode:is_held(key(cache), Command, Cached))
                    || Command <- [{merge_all, []}, {objects, []}, {entropy, {root, 3}}]],
                   ?assertMatch({error, _, _}, weft_kv_vnode:commit(tick(Cached)))
               end).

%% --- changed ----------------------------------------------------------------------------------

what_is_to_be_in_memory_only_leaves_the_file_at_the_next_start_test() ->
    with(#{}, fun(Dir) ->
                  _ = committed(written(all(), vnode(Dir))),
                  ok = publish(#{store => memory}),
                  Start = vnode(Dir),
                  %% Nobody hears of it before that.
                  ?assert(weft_kv_vnode:is_held(key(store), {read, ?KIND, primary}, Start)),
                  Left = committed(Start),
                  ?assertEqual([value(store)], values(store, Left)),
                  {ok, Bytes} = file:read_file(file(Dir)),
                  ?assertEqual(nomatch, binary:match(Bytes, value(store))),
                  _ = committed(deleted(store, Left)),
                  ?assertEqual([{store, false}, {log, true}, {cache, true}], has(vnode(Dir))),
                  %% It does not come back with the file.
                  ok = publish(#{}),
                  ?assertEqual([{store, false}, {log, true}, {cache, true}], has(vnode(Dir)))
              end).

what_changes_while_it_runs_is_so_with_the_next_commit_test() ->
    with(?ALL, fun(Dir) ->
                   First = committed(written(all(), vnode(Dir))),
                   ok = publish(#{store => memory}),
                   ?assert(weft_kv_vnode:is_held(key(cache), write(cache), First)),
                   ?assert(weft_kv_vnode:is_held(key(store), write(store), First)),
                   Second = committed(First),
                   ?assertEqual([{store, true}, {log, true}, {cache, true}], has(Second)),
                   ?assertNot(weft_kv_vnode:is_held(key(store), write(store), Second)),
                   ok = weft_kv_vnode:terminate(normal, Second),
                   ?assertEqual([{store, false}, {log, true}, {cache, true}], has(vnode(Dir)))
               end).

%% The application was stopped, and the partition goes on.
what_is_not_said_any_more_stays_as_it_was_test() ->
    with(?ALL, fun(Dir) ->
                   First = committed(written(all(), vnode(Dir))),
                   ok = weft_kv_durability:withdraw(),
                   _ = committed(written([cache], First)),
                   {ok, Bytes} = file:read_file(file(Dir)),
                   ?assertEqual(nomatch, binary:match(Bytes, value(cache)))
               end).

%% A directory in the way stands for a full disk.
nothing_is_said_before_an_old_file_is_left_test() ->
    with(#{}, fun(Dir) ->
                  _ = committed(written(all(), vnode(Dir))),
                  ok = publish(#{store => memory}),
                  New = file(Dir) ++ ".new",
                  ok = file:make_dir(New),
                  {error, {_, New}, First} = quiet(fun() -> weft_kv_vnode:commit(vnode(Dir)) end),
                  ?assertEqual({reply, {error, not_written}}, command(store, First)),
                  ?assert(weft_kv_vnode:is_held(key(store), {read, ?KIND, primary}, First)),
                  %% It is not tried again at once.
                  File = file(Dir),
                  ?assertMatch({error, {no_room_to_write_anew, File}, _},
                               weft_kv_vnode:commit(First)),
                  ok = file:del_dir(New),
                  ?assertMatch({error, _, _}, weft_kv_vnode:commit(First)),
                  _ = committed(vnode(Dir)),
                  {ok, Bytes} = file:read_file(File),
                  ?assertEqual(nomatch, binary:match(Bytes, value(store)))
              end).

%% --- a partition ------------------------------------------------------------------------------

all() -> [store, log, cache].

vnode(Dir) ->
    {ok, Vnode} = weft_kv_vnode:init(0, #{dir => Dir}),
    Vnode.

file(Dir) -> filename:join(Dir, "0.log").

key(Bucket) -> {0, Bucket, <<"key">>}.

value(Bucket) -> iolist_to_binary(["the value of ", atom_to_list(Bucket)]).

object(Bucket) ->
    weft_kv_object:put(#{value => value(Bucket), written_ms => 0, expires_ms => never}, #{},
                       <<"actor">>, weft_kv_object:new()).

write(Bucket) -> write(value(Bucket), #{}).

%% Each at a time of its own: the same write is not done twice.
write(Value, Seen) ->
    Ms = erlang:unique_integer([positive]),
    {{write, #{value => Value, written_ms => Ms, expires_ms => never}, Seen}, ?KIND, primary}.

command(Bucket, Vnode) -> weft_kv_vnode:command(key(Bucket), write(Bucket), Vnode).

written(Buckets, Vnode) ->
    lists:foldl(fun(Bucket, V) -> written(key(Bucket), value(Bucket), V) end, Vnode, Buckets).

written(Key, Value, Vnode) -> carried_out(Key, write(Value, #{}), Vnode).

deleted(Bucket, Vnode) ->
    {Known, _} = stored(Bucket, Vnode),
    carried_out(key(Bucket), write(deleted, Known), Vnode).

carried_out(Key, Command, Vnode) ->
    {change, Change, {ok, _}} = weft_kv_vnode:command(Key, Command, Vnode),
    {ok, New} = weft_kv_vnode:change(Key, Change, none, Vnode),
    New.

committed(Vnode) ->
    {ok, New} = weft_kv_vnode:commit(Vnode),
    New.

tick(Vnode) ->
    {_, New} = weft_kv_vnode:tick(Vnode),
    New.

stored(Bucket, Vnode) ->
    {reply, {ok, Object}} = weft_kv_vnode:command(key(Bucket), {read, ?KIND, primary}, Vnode),
    Object.

values(Bucket, Vnode) -> weft_kv_object:values(stored(Bucket, Vnode)).

has(Vnode) -> [{Bucket, values(Bucket, Vnode) =:= [value(Bucket)]} || Bucket <- all()].

is_synced(Vnode) ->
    Log = inside([log], Vnode),
    weft_kv_log:synced_bytes(Log) =:= weft_kv_log:bytes(Log).

%% A record in a record.
inside(Names, State) ->
    lists:foldl(fun(Name, Record) -> lists:keyfind(Name, 1, tuple_to_list(Record)) end, State,
                Names).

%% --- around it --------------------------------------------------------------------------------

publish(Durabilities) ->
    weft_kv_durability:publish(maps:map(fun(_, D) -> #{durability => D} end, Durabilities)).

with(Durabilities, Fun) ->
    Name = os:getpid() ++ "." ++ integer_to_list(erlang:unique_integer([positive])),
    Dir = filename:join(filename:basedir(user_cache, "weft_kv_tests"), Name),
    ok = publish(Durabilities),
    try Fun(Dir)
    after
        ok = weft_kv_durability:withdraw(),
        file:del_dir_r(Dir)
    end.

quiet(Fun) ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, critical),
    try Fun() after logger:set_primary_config(level, Level) end.
