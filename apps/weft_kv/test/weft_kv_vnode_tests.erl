%% SPDX-License-Identifier: Apache-2.0
%% @doc One partition: room, time, hints, and the way to the next owner. And the configuration.
-module(weft_kv_vnode_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STORE, #{n => 3, evict => false, siblings => true}).
-define(CACHE, #{n => 1, evict => true, siblings => false}).

a_cache_drops_what_was_not_used_for_longest_test() ->
    Start = vnode(#{bytes_max => 4000}),
    Full = lists:foldl(fun(N, V) -> write(key(N), <<0:800>>, ?CACHE, V) end, Start,
                       lists:seq(1, 9)),
    [{Oldest, _} | _] = weft_kv_test_copies:objects(Full),
    ?assert(Oldest > key(1)),
    %% What was read is not the oldest any more.
    ?assertEqual([<<0:800>>], values(Oldest, Full)),
    Next = write(key(10), <<0:800>>, ?CACHE, Full),
    ?assertEqual([<<0:800>>], values(Oldest, Next)),
    ?assert(weft_kv_vnode:cover(bytes, Next) =< 4000).

a_store_that_is_full_refuses_and_forgets_nothing_test() ->
    One = write(key(1), <<0:8000>>, ?STORE, vnode(#{bytes_max => 1000})),
    ?assertEqual({reply, {error, full}}, command(key(2), <<"2">>, ?STORE, One)),
    ?assertEqual([<<0:8000>>], values(key(1), One)).

%% Or nobody could ever make room.
a_store_that_is_full_lets_delete_test() ->
    One = write(key(1), <<0:8000>>, ?STORE, vnode(#{bytes_max => 1000})),
    Deleted = written(key(1), {{write, value(deleted, never), seen(key(1), One)}, ?STORE, primary},
                      One),
    ?assertEqual([], values(key(1), Deleted)),
    ?assertEqual([<<"2">>], values(key(2), write(key(2), <<"2">>, ?STORE, Deleted))).

%% By the process of a later start, which the key does not know.
a_store_that_is_full_lets_delete_what_is_empty_test() ->
    One = write(key(1), <<>>, ?STORE, vnode(#{})),
    Full = merged(key(1), stored(key(1), One), vnode(#{bytes_max => 100})),
    Delete = {{write, value(deleted, never), seen(key(1), Full)}, ?STORE, primary},
    ?assertEqual([], values(key(1), written(key(1), Delete, Full))),
    ?assertEqual({reply, {error, full}}, weft_kv_vnode:command(key(2), Delete, Full)).

%% Whoever writes without having read would make a key larger and larger.
siblings_are_bounded_test() ->
    One = write(key(1), <<"1">>, ?STORE, vnode(#{siblings_max => 2})),
    Two = write(key(1), <<"2">>, ?STORE, One),
    [?assertEqual({reply, {error, {too_many_siblings, 2}}},
                  weft_kv_vnode:command(key(1), {{write, value(Value, never), #{}}, ?STORE, Role},
                                        Two))
     || Value <- [<<"3">>, deleted], Role <- [primary, fallback]],
    %% Each key for itself. And whoever has read it may write, whatever has come in between.
    ?assertEqual([<<"1">>], values(key(2), write(key(2), <<"1">>, ?STORE, Two))),
    Replace = {{write, value(<<"3">>, never), seen(key(1), Two)}, ?STORE, primary},
    More = merged(key(1), object(<<"other">>), Two),
    ?assertEqual([<<"1">>, <<"2">>, <<"other">>], lists:sort(values(key(1), More))),
    ?assertEqual([<<"3">>, <<"other">>],
                 lists:sort(values(key(1), written(key(1), Replace, More)))).

%% What was acknowledged elsewhere.
siblings_that_are_brought_are_taken_test() ->
    Full = write(key(1), <<"1">>, ?STORE, vnode(#{siblings_max => 1})),
    Item = {key(1), {object(<<"2">>), ?STORE}},
    {changes, [{_, Change}], {ok, 1}} = weft_kv_vnode:command(key(1), {merge_all, [Item]}, Full),
    {ok, Brought} = weft_kv_vnode:change(key(1), Change, none, Full),
    {ok, Taken} = weft_kv_vnode:take([Item], none,
                                     write(key(1), <<"1">>, ?STORE, vnode(#{siblings_max => 1}))),
    [?assertEqual([<<"1">>, <<"2">>], lists:sort(values(key(1), Vnode)))
     || Vnode <- [Brought, Taken]].

there_may_be_a_hundred_siblings_or_what_is_configured_test() ->
    Written = fun(Count, Kind, Options) ->
                  lists:foldl(fun(N, V) -> write(key(1), <<N>>, Kind, V) end, vnode(Options),
                              lists:seq(1, Count))
              end,
    ?assertEqual({reply, {error, {too_many_siblings, 100}}},
                 command(key(1), <<"more">>, ?STORE, Written(100, ?STORE, #{}))),
    [?assertEqual({Kind, Left}, {Kind, length(values(key(1), Written(101, Kind, Options)))})
     || {Kind, Options, Left} <- [{?STORE, #{siblings_max => infinity}, 101}, {?CACHE, #{}, 1}]].

%% --- numbers ----------------------------------------------------------------------------------

%% Those of all keys of the partition would go on from there, up to where none is left.
a_context_that_was_made_up_moves_no_number_test_() ->
    [fun() ->
         One = write(key(1), <<"1">>, ?STORE, vnode(#{})),
         [Actor] = maps:keys(seen(key(1), One)),
         Forged = {{write, value(Value, never), #{Actor => 1 bsl 64 - 1}}, ?STORE, primary},
         Two = written(key(1), Forged, One),
         ?assertEqual(#{Actor => 2}, seen(key(1), Two)),
         ?assertEqual(#{Actor => 3}, seen(key(2), write(key(2), <<"3">>, ?STORE, Two)))
     end || Value <- [<<"2">>, deleted]].

%% Of a file that somebody has made, for example. No write is taken for one of those it names.
an_object_that_was_made_up_moves_no_number_test_() ->
    [fun() ->
         One = write(key(1), <<"1">>, ?STORE, vnode(#{})),
         [Actor] = maps:keys(seen(key(1), One)),
         Number = 1 bsl 56,
         Made = {#{Actor => Number}, #{{Actor, Number} => value(<<"made up">>, never)}},
         Two = write(key(2), <<"2">>, ?STORE, Bring({key(2), {Made, ?STORE}}, One)),
         [Other] = maps:keys(seen(key(2), Two)) -- [Actor],
         ?assertEqual(#{Actor => Number, Other => 1}, seen(key(2), Two)),
         ?assertEqual([<<"2">>, <<"made up">>],
                      lists:sort(weft_kv_object:values(
                                   weft_kv_object:merge(Made, stored(key(2), Two))))),
         ?assertEqual(#{Other => 2}, seen(key(3), write(key(3), <<"3">>, ?STORE, Two)))
     end || Bring <- [fun({Key, {Made, _}}, Vnode) -> merged(Key, Made, Vnode) end,
                      fun({Key, _} = Item, Vnode) ->
                          {changes, [{_, Change}], {ok, 1}} =
                              weft_kv_vnode:command(Key, {merge_all, [Item]}, Vnode),
                          {ok, Brought} = weft_kv_vnode:change(Key, Change, none, Vnode),
                          Brought
                      end,
                      fun(Item, Vnode) ->
                          {ok, Taken} = weft_kv_vnode:take([Item], none, Vnode),
                          Taken
                      end]].

%% Another replica that has not forgotten the key would take the new value for one that it has seen.
a_write_of_a_key_that_was_forgotten_is_new_to_other_replicas_test() ->
    One = write(key(1), <<"1">>, ?STORE, vnode(#{grace_ms => 0})),
    Deleted = written(key(1), {{write, value(deleted, never), seen(key(1), One)}, ?STORE, primary},
                      One),
    Other = merged(key(1), stored(key(1), Deleted), vnode(#{})),
    Forgotten = tick(Deleted),
    ?assertEqual(0, weft_kv_vnode:cover(bytes, Forgotten)),
    Again = write(key(1), <<"2">>, ?STORE, Forgotten),
    ?assertEqual([<<"2">>], values(key(1), merged(key(1), stored(key(1), Again), Other))).

a_write_of_a_key_that_was_evicted_is_new_to_other_replicas_test() ->
    Old = write(key(1), <<"old">>, ?CACHE, vnode(#{bytes_max => 3000})),
    Other = merged(key(1), stored(key(1), Old), vnode(#{})),
    Evicted = lists:foldl(fun(N, V) -> write(key(N), <<0:800>>, ?CACHE, V) end, Old,
                          lists:seq(2, 20)),
    ?assertEqual([], values(key(1), Evicted)),
    New = write(key(1), <<"new">>, ?CACHE, Evicted),
    ?assertEqual([<<"new">>], values(key(1), merged(key(1), stored(key(1), New), Other))).

%% What others still have was not replaced by what is written here next.
a_write_after_a_hint_was_brought_is_a_sibling_of_it_test() ->
    Hint = fallback(key(1), <<"1">>, vnode(#{})),
    Owner = merged(key(1), stored(key(1), Hint), vnode(#{})),
    Next = fallback(key(1), <<"2">>, brought(stored(key(1), Hint), Hint)),
    ?assertEqual([<<"1">>, <<"2">>], values(key(1), merged(key(1), stored(key(1), Next), Owner))).

%% The next owner repeats what was changed while the partition moved, and may have more by then.
a_merge_that_is_repeated_elsewhere_overwrites_nothing_test() ->
    One = write(key(1), <<"1">>, ?STORE, vnode(#{})),
    Other = write(key(1), <<"2">>, ?STORE, vnode(#{})),
    Merge = {merge, stored(key(1), One), ?STORE, primary},
    {ok, Both} = weft_kv_vnode:change(key(1), Merge, none, Other),
    ?assertEqual([<<"1">>, <<"2">>], lists:sort(values(key(1), Both))).

seen(Key, Vnode) ->
    {Seen, _} = stored(Key, Vnode),
    Seen.

stored(Key, Vnode) ->
    {reply, {ok, Object}} = weft_kv_vnode:command(Key, {read, ?STORE, primary}, Vnode),
    Object.

merged(Key, Object, Vnode) -> written(Key, {{merge, Object}, ?STORE, primary}, Vnode).

what_is_over_is_forgotten_after_its_time_test() ->
    Over = erlang:system_time(millisecond) - 10,
    Cache = tick(write(key(1), <<"1">>, Over, ?CACHE, vnode(#{}))),
    ?assertEqual(0, weft_kv_vnode:cover(bytes, Cache)),
    Store = tick(write(key(1), <<"1">>, Over, ?STORE, vnode(#{}))),
    ?assert(weft_kv_vnode:cover(bytes, Store) > 0),
    Short = tick(write(key(1), <<"1">>, Over, ?STORE, vnode(#{grace_ms => 0}))),
    ?assertEqual(0, weft_kv_vnode:cover(bytes, Short)).

%% Each page has room for one of them. On a busy machine a tick does not come to the end of its time
%% with all, but it does not take ten.
large_values_that_are_over_do_not_pile_up_test() ->
    Over = erlang:system_time(millisecond) - 10,
    [begin
         Full = lists:foldl(fun(N, V) -> write(key(N), <<0:8000000>>, Over, ?STORE, V) end,
                            vnode(#{grace_ms => GraceMs}), lists:seq(1, 10)),
         ?assert(weft_kv_vnode:cover(bytes, Full) >= 10000000),
         ?assert(weft_kv_vnode:cover(bytes, tick(tick(tick(Full)))) < 10000)
     end || GraceMs <- [0, 60000]].

%% Only that it was there has to be known for longer.
what_is_over_takes_no_room_test() ->
    Over = erlang:system_time(millisecond) - 10,
    Full = write(key(2), <<"2">>, ?STORE, write(key(1), <<0:80000>>, Over, ?STORE, vnode(#{}))),
    Object = stored(key(1), Full),
    Shed = tick(Full),
    ?assert(weft_kv_vnode:cover(bytes, Shed) < 1000),
    ?assertEqual({seen(key(1), Full), 1}, {seen(key(1), Shed),
                                           weft_kv_object:count(stored(key(1), Shed))}),
    ?assertEqual([<<"2">>], values(key(2), Shed)),
    %% It was written long ago, and is over since a moment.
    ?assertEqual(stored(key(1), Shed), stored(key(1), tick(Shed))),
    %% A replica that has yet to look at it does not bring it back.
    ?assertEqual({reply, {ok, stored(key(1), Shed)}},
                 weft_kv_vnode:command(key(1), {{merge, Object}, ?STORE, primary}, Shed)),
    Other = merged(key(1), Object, vnode(#{})),
    ?assertEqual(stored(key(1), Shed),
                 stored(key(1), merged(key(1), stored(key(1), Shed), Other))).

all_items_reach_the_next_owner_in_order_test() ->
    From = lists:foldl(fun(N, V) -> write(key(N), <<N>>, ?STORE, V) end, vnode(#{}),
                       lists:seq(1, 20)),
    To = handed(start, From, vnode(#{})),
    ?assertEqual([[<<N>>] || N <- lists:seq(1, 20)], [values(key(N), To) || N <- lists:seq(1, 20)]),
    %% Again, as after a kill.
    ?assertEqual(weft_kv_vnode:cover(bytes, To),
                 weft_kv_vnode:cover(bytes, handed(start, From, To))).

handed(done, _, To) -> To;
handed(Cursor, From, To0) ->
    {Items, Next} = weft_kv_vnode:items(Cursor, 3, From),
    ?assert(length(Items) =< 3),
    {ok, To} = weft_kv_vnode:take(Items, none, To0),
    handed(Next, From, To).

%% A handoff that begins anew drops what the former one brought, but not what nobody else has.
hints_stay_when_a_handoff_begins_anew_test() ->
    Hint = fallback(key(1), <<"hint">>, vnode(#{})),
    {ok, Filled} = weft_kv_vnode:take(
                     [{key(2), {object(<<"old">>), ?STORE}}], none, Hint),
    {ok, Cleared} = weft_kv_vnode:clear({mark, none}, Filled),
    ?assertEqual({[<<"hint">>], []}, {values(key(1), Cleared), values(key(2), Cleared)}),
    {ok, Given} = weft_kv_vnode:clear(none, Cleared),
    ?assertEqual([], values(key(1), Given)).

%% Neither objects, nor what is kept beside them.
what_was_handed_over_leaves_nothing_test() ->
    Fill = fun(Vnode) ->
               lists:foldl(fun(N, V) -> write(key(N), <<N>>, ?CACHE, V) end,
                           write(key(100), <<"kept">>, ?STORE, Vnode), lists:seq(1, 20))
           end,
    {ok, Given} = weft_kv_vnode:clear(none, Fill(vnode(#{bytes_max => 100000}))),
    ?assertEqual({0, []}, {weft_kv_vnode:cover(bytes, Given), segments(Given)}),
    ?assertEqual([], weft_kv_test_copies:objects(Given)),
    Again = Fill(Given),
    ?assertMatch([_], segments(Again)),
    ?assertEqual([<<"kept">>], values(key(100), Again)).

segments(Vnode) ->
    {reply, Segments} = weft_kv_vnode:command({0, a, <<>>}, {entropy, {segments, 3}}, Vnode),
    [Segment || {_, _} = Segment <- Segments].

a_hint_that_was_brought_is_dropped_unless_it_has_changed_test() ->
    Hint = fallback(key(1), <<"hint">>, vnode(#{})),
    {reply, {ok, Object}} = weft_kv_vnode:command(key(1), {read, ?STORE, primary}, Hint),
    ?assertEqual([], values(key(1), brought(Object, Hint))),
    More = fallback(key(1), <<"more">>, fallback(key(1), <<"hint">>, vnode(#{}))),
    ?assertEqual([<<"hint">>, <<"more">>], values(key(1), brought(Object, More))).

%% By force, or by two commits at once: the new owner has nothing of what was written here.
what_was_taken_by_force_is_a_hint_test() ->
    Mine = ring(node()),
    try
        ok = weft_ring_lookup:publish(weft_ring, Mine),
        One = tick(write(key(1), <<"1">>, ?STORE, vnode(#{}))),
        %% While it is the owner nothing is dropped.
        ?assertEqual({reply, ok},
                     weft_kv_vnode:command(key(1), {brought, items([1], One)}, One)),
        ok = weft_ring_lookup:publish(weft_ring, ring('x@nowhere')),
        Taken = tick(One),
        ?assertEqual([], values(key(1), brought(stored(key(1), One), Taken)))
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% What came before the plan was changed goes to the owner, and is not kept for ever. If the sender
%% goes on because it does not know of that, it has to begin anew.
what_came_in_a_cancelled_handoff_goes_to_the_owner_test() ->
    Ring = ring('x@nowhere'),
    ok = weft_ring_lookup:publish(weft_ring, Ring),
    Server = spawn_link(fun() -> ring_server(Ring) end),
    true = register(weft_ring_server, Server),
    {ok, Pid} = weft_vnode_process:start_link(weft_kv_vnode_tests_partition, weft_kv_vnode, 0, [],
                                              #{queue_max => 100}),
    Send = fun(Msg) ->
               Pid ! {weft_vnode, receiver, self(), {handoff, 1, Msg}},
               receive {weft_vnode, sender, {handoff, 1, Answer}} -> Answer
               after 5000 -> error(no_answer)
               end
           end,
    {resume, 1, Session, start, 0} = Send({start, {{0, 1, node()}, 1}, 1}),
    Items = [{key(N), {object(<<N>>), ?STORE}} || N <- [1, 2]],
    {ack, Session, 1, 0} = Send({items, Session, 1, Items, {'after', key(2)}, 0}),
    ?assertEqual(0, gen_server:call(Pid, waiting)),
    Pid ! tick,
    ?assertEqual(2, gen_server:call(Pid, waiting)),
    ?assertEqual({stale, Session}, Send({items, Session, 2, [], done, 0})),
    ?assertMatch({resume, 2, _, start, 0}, Send({start, {{0, 1, node()}, 1}, 2})),
    true = unlink(Pid),
    ok = gen_server:stop(Pid),
    true = unlink(Server),
    Ref = monitor(process, Server),
    exit(Server, kill),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    weft_ring_lookup:withdraw(weft_ring).

ring_server(Ring) ->
    receive {'$gen_call', From, {command, ring}} ->
        gen_server:reply(From, Ring),
        ring_server(Ring)
    end.

ring(Owner) -> weft_ring_table:create({Owner, 1}, here, 8, 3).

%% The owner would go on to serve what was deleted. So would others to whom an answer of before it
%% brings the value (read repair).
a_cache_keeps_a_deletion_until_others_have_heard_of_it_test() ->
    Left = fun(Role, AgoMs) ->
               Ms = erlang:system_time(millisecond) - AgoMs,
               Value = (value(deleted, never))#{written_ms := Ms},
               Deleted = written(key(1), {{write, Value, #{}}, ?CACHE, Role}, vnode(#{})),
               weft_kv_vnode:cover(bytes, tick(Deleted)) > 0
           end,
    ?assertEqual({true, false}, {Left(primary, 9), Left(primary, 20000)}),
    ?assert(Left(fallback, 20000)).

brought(Object, Vnode) ->
    Items = [{key(1), {Object, ?STORE}}],
    {changes, [{_, Change}], ok} = weft_kv_vnode:command(key(1), {brought, Items}, Vnode),
    {ok, New} = weft_kv_vnode:change(key(1), Change, none, Vnode),
    New.

items(Numbers, Vnode) ->
    {reply, Items} = weft_kv_vnode:command(key(1), {objects, [key(N) || N <- Numbers]}, Vnode),
    Items.

%% --- batches ----------------------------------------------------------------------------------

%% Behind 64 KB comes no more, and what is not there takes no room.
objects_are_answered_as_far_as_there_is_room_test() ->
    All = lists:foldl(fun(N, V) -> write(key(N), <<0:240000>>, ?STORE, V) end, vnode(#{}),
                      lists:seq(1, 5)),
    ?assertMatch([{_, none}, {_, {_, _}}, {_, {_, _}}, {_, none}, {_, {_, _}}],
                 items([9, 1, 2, 8, 3, 4, 5], All)),
    ?assertMatch([_], items([1], write(key(1), <<0:8000000>>, ?STORE, All))),
    ?assertEqual([], items([], All)).

%% What it has already is not written again, and what is smaller is taken also if there is no room.
a_batch_is_merged_as_far_as_there_is_room_test() ->
    One = write(key(1), <<0:8000>>, ?STORE, vnode(#{})),
    Deleted = written(key(1), {{write, value(deleted, never), seen(key(1), One)}, ?STORE, primary},
                      vnode(#{})),
    Items = items([1], Deleted) ++ [{key(2), {object(<<"2">>), ?STORE}}],
    Full = write(key(1), <<0:8000>>, ?STORE, vnode(#{bytes_max => 1000})),
    {reply, {ok, Old}} = weft_kv_vnode:command(key(1), {read, ?STORE, primary}, Full),
    ?assertEqual({reply, {ok, 0}},
                 weft_kv_vnode:command(key(1), {merge_all, [{key(1), {Old, ?STORE}}]}, Full)),
    Room = write(key(1), <<0:8000>>, ?STORE, vnode(#{})),
    ?assertMatch({changes, [_, _], {ok, 2}},
                 weft_kv_vnode:command(key(1), {merge_all, Items}, Room)),
    ?assertMatch({changes, [{{_, _, _}, {merge, _, _, primary}}], {error, full}},
                 weft_kv_vnode:command(key(1), {merge_all, smaller(Old) ++ tl(Items)}, Full)).

smaller({Known, _}) -> [{key(1), {{Known, #{}}, ?STORE}}].

%% With an answer, after all of it.
a_batch_is_carried_out_by_the_process_of_the_partition_test() ->
    {ok, Pid} = weft_vnode_process:start_link(weft_kv_vnode_tests_batch, weft_kv_vnode, 0, [],
                                              #{queue_max => 100}),
    Ask = fun(Command) -> gen_server:call(Pid, {command, fallback, key(1), Command}) end,
    Items = [{key(N), {object(<<N>>), ?STORE}} || N <- lists:seq(1, 50)],
    ?assertEqual({ok, {ok, 50}}, Ask({merge_all, Items})),
    ?assertEqual({ok, Items}, Ask({objects, [Key || {Key, _} <- Items]})),
    ?assertEqual({ok, {ok, 0}}, Ask({merge_all, Items})),
    ?assertEqual({ok, {error, unknown_command}}, Ask({merge_all, Items, of_a_later_version})),
    true = unlink(Pid),
    ok = gen_server:stop(Pid).

%% --- on disk ----------------------------------------------------------------------------------

%% What was found on disk may belong to another node by now.
what_was_committed_is_there_after_a_restart_test() ->
    in_directory(fun(Dir) ->
                     One = committed(write(key(1), <<"1">>, ?STORE, vnode(#{dir => Dir}))),
                     _ = write(key(2), <<"2">>, ?STORE, One),
                     New = vnode(#{dir => Dir}),
                     ?assertEqual({[<<"1">>], []}, {values(key(1), New), values(key(2), New)}),
                     ?assertEqual([0], weft_kv_disk:stored(Dir)),
                     {ok, Cleared} = weft_kv_vnode:clear({mark, none}, New),
                     ?assertEqual([<<"1">>], values(key(1), Cleared)),
                     {ok, _} = weft_kv_vnode:clear(none, Cleared),
                     ?assertEqual([], weft_kv_disk:stored(Dir))
                 end).

a_directory_of_another_node_is_refused_test() ->
    in_directory(
      fun(Dir) ->
          {ok, Lock} = weft_directory_lock:start_link(Dir, weft_kv_vnode),
          {ok, Config} = weft_ring_app:config([{vnodes, [{weft_kv_vnode, #{dir => Dir}}]}]),
          ?assertMatch({error, {shutdown, {failed_to_start_child, {lock, weft_kv_vnode},
                                           {directory_in_use, #{node := _}}}}},
                       weft_test_trapping:run(fun() -> weft_ring_sup:start_link(Config) end)),
          ok = gen_server:stop(Lock)
      end).

%% Of other programs, or of partitions that no ring has.
other_files_are_left_alone_test() ->
    in_directory(fun(Parent) ->
                     Dir = filename:join(Parent, "a{b}[c]"),
                     ok = weft_kv_vnode:terminate(normal, vnode(#{dir => Dir})),
                     [ok = file:write_file(filename:join(Dir, Name), "")
                      || Name <- ["notes.log", "7x.log", "-1.log", "0.log.new", ".log"]],
                     ?assertEqual([0], weft_kv_disk:stored(Dir))
                 end).

a_partition_that_no_ring_has_ends_nothing_test() ->
    ok = weft_vnode_names:make([weft_kv_vnode]),
    try ?assertEqual({error, no_vnode}, weft_vnode_names:name(weft_kv_vnode, 1024))
    after weft_vnode_names:forget()
    end,
    ok = weft_ring_lookup:publish(a_ring, ring(node())),
    try ?assertEqual({error, no_partition}, weft_ring_lookup:owner(a_ring, 8))
    after weft_ring_lookup:withdraw(a_ring)
    end.

a_file_that_is_mostly_outdated_is_written_anew_test_() ->
    {timeout, 30, fun() -> in_directory(fun outdated/1) end}.

outdated(Dir) ->
    Big = binary:copy(<<"x">>, 100000),
    Last = lists:foldl(fun(N, V) -> committed(overwrite(key(1), <<N, Big/binary>>, V)) end,
                       vnode(#{dir => Dir}), lists:seq(1, 25)),
    [File] = filelib:wildcard(filename:join(Dir, "*.log")),
    ?assert(filelib:file_size(File) < 1200000),
    ok = weft_kv_vnode:terminate(normal, Last),
    ?assertEqual([<<25, Big/binary>>], values(key(1), vnode(#{dir => Dir}))).

%% What is large is written a piece with each commit. What is changed meanwhile is there.
a_large_file_is_written_anew_a_piece_at_a_time_test_() ->
    {timeout, 30, fun() -> in_directory(fun large/1) end}.

large(Dir) ->
    {Begun, Big} = being_written_anew(Dir),
    Small = committed(overwrite(key(1), <<"last">>, Begun)),
    [File, New] = [filename:join(Dir, Name) || Name <- ["0.log", "0.log.new"]],
    ?assert(filelib:is_file(New)),
    ?assert(filelib:file_size(File) > 2000000),
    Rest = lists:foldl(fun(_, V) -> committed(V) end, Small, lists:seq(1, 10)),
    ?assertNot(filelib:is_file(New)),
    ?assert(filelib:file_size(File) < 1500000),
    ok = weft_kv_vnode:terminate(normal, Rest),
    Again = vnode(#{dir => Dir}),
    ?assertEqual([<<"last">>], values(key(1), Again)),
    [?assertEqual([<<N, Big/binary>>], values(key(1 + N rem 10), Again))
     || N <- [12, 13, 14, 15, 16, 17, 18, 19, 21]].

%% Ten keys in a file of twice their size.
being_written_anew(Dir) ->
    Big = binary:copy(<<"x">>, 100000),
    {lists:foldl(fun(N, V) ->
                     committed(overwrite(key(1 + N rem 10), <<N, Big/binary>>, V))
                 end, vnode(#{dir => Dir}), lists:seq(1, 21)), Big}.

nothing_is_left_of_a_new_file_that_is_not_at_its_end_test_() ->
    [{timeout, 30, fun() ->
          in_directory(fun(Dir) ->
                           {Begun, _} = being_written_anew(Dir),
                           New = filename:join(Dir, "0.log.new"),
                           ?assert(filelib:is_file(New)),
                           ok = End(Begun),
                           ?assertNot(filelib:is_file(New))
                       end)
      end} || End <- [fun(Begun) -> weft_kv_vnode:terminate(normal, Begun) end,
                      fun(Begun) -> {ok, _} = weft_kv_vnode:clear(none, Begun), ok end]].

%% The room that it takes is what the next write needs.
a_full_disk_ends_what_is_written_anew_test_() ->
    {timeout, 30, fun() ->
        in_directory(fun(Dir) ->
                         {Begun, _} = being_written_anew(Dir),
                         New = filename:join(Dir, "0.log.new"),
                         ok = weft_kv_log:close(log(Begun)),
                         {error, _, _} = weft_kv_vnode:commit(overwrite(key(1), <<"1">>, Begun)),
                         ?assertNot(filelib:is_file(New))
                     end)
    end}.

%% The log of a partition.
log(Vnode) -> lists:keyfind(log, 1, [Field || Field <- tuple_to_list(Vnode), is_tuple(Field)]).

%% With each write it would be tried in vain, and take long.
a_file_that_can_not_be_written_anew_is_left_for_a_while_test_() ->
    {timeout, 30, fun() -> in_directory(fun no_room/1) end}.

no_room(Dir) ->
    Start = vnode(#{dir => Dir}),
    New = filename:join(Dir, "0.log.new"),
    ok = file:make_dir(New),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, critical),
    Big = binary:copy(<<"x">>, 100000),
    Large = lists:foldl(fun(N, V) -> committed(overwrite(key(1), <<N, Big/binary>>, V)) end,
                        Start, lists:seq(1, 15)),
    ok = logger:set_primary_config(level, Level),
    ok = file:del_dir(New),
    ok = weft_kv_vnode:terminate(normal, committed(overwrite(key(1), <<"last">>, Large))),
    ?assert(filelib:file_size(filename:join(Dir, "0.log")) > 1400000),
    ?assertEqual([<<"last">>], values(key(1), vnode(#{dir => Dir}))).

%% While the disk is full nothing is promised, and nothing more waits.
a_full_disk_is_an_error_and_no_end_test() ->
    in_directory(fun(Dir) ->
                     Start = vnode(#{dir => Dir}),
                     ok = weft_kv_vnode:terminate(normal, Start),
                     {error, _, Full} = weft_kv_vnode:commit(write(key(1), <<"1">>, ?STORE, Start)),
                     ?assertEqual({reply, {error, not_written}},
                                  command(key(2), <<"2">>, ?STORE, Full)),
                     ?assertMatch({error, _, _}, weft_kv_vnode:commit(tick(Full)))
                 end).

overwrite(Key, Value, Vnode) ->
    {reply, {ok, Object}} = weft_kv_vnode:command(Key, {read, ?STORE, primary}, Vnode),
    {Seen, _} = Object,
    written(Key, {{write, value(Value, never), Seen}, ?STORE, primary}, Vnode).

committed(Vnode) ->
    {ok, New} = weft_kv_vnode:commit(Vnode),
    New.

in_directory(Fun) ->
    Name = os:getpid() ++ "." ++ integer_to_list(erlang:unique_integer([positive])),
    Dir = filename:join(filename:basedir(user_cache, "weft_kv_tests"), Name),
    try Fun(Dir) after file:del_dir_r(Dir) end.

%% There is no ring here, so nobody owns it.
a_partition_without_anything_ends_test() ->
    ?assertMatch({stop, _}, weft_kv_vnode:tick(vnode(#{}))),
    ?assertMatch({ok, _}, weft_kv_vnode:tick(write(key(1), <<"1">>, ?STORE, vnode(#{})))),
    in_directory(fun(Dir) ->
                     ?assertMatch({stop, _}, weft_kv_vnode:tick(vnode(#{dir => Dir}))),
                     ?assertEqual([], weft_kv_disk:stored(Dir)),
                     %% Unless its file can not be deleted.
                     Vnode = vnode(#{dir => Dir}),
                     ok = file:delete(filename:join(Dir, "0.log")),
                     ok = file:make_dir(filename:join(Dir, "0.log")),
                     {ok, Left} = weft_kv_vnode:tick(Vnode),
                     ok = file:del_dir(filename:join(Dir, "0.log")),
                     ?assertMatch({stop, _}, weft_kv_vnode:tick(Left))
                 end).

%% Also if nobody looks at it. In place of an owner that is away there may be a new process each
%% second.
what_a_partition_has_is_not_told_when_it_has_ended_test() ->
    ok = weft_kv_stats:new(),
    {ok, Pid} = weft_vnode_process:start_link(weft_kv_vnode_tests_ended, weft_kv_vnode, 0, [],
                                              #{queue_max => 100}),
    Ref = monitor(process, Pid),
    Pid ! tick,
    receive {'DOWN', Ref, process, Pid, normal} -> ok after 5000 -> error(goes_on) end,
    ?assertEqual([], ets:tab2list(weft_kv_stats)),
    true = ets:delete(weft_kv_stats),
    _ = persistent_term:erase(weft_kv_stats).

%% After a change of the configuration.
values_that_are_not_compared_are_counted_test() ->
    Buckets = #{two => #{n => 2, evict => false}, cache => #{n => 4, evict => true}},
    ok = weft_kv_stats:new(),
    {ok, Entropy} = weft_kv_entropy:start_link(#{entropy_ms => infinity, buckets => Buckets}),
    NotCompared = fun(Kinds) ->
                      Vnode = lists:foldl(fun({N, Kind}, V) -> write(key(N), <<"1">>, Kind, V) end,
                                          vnode(#{}), lists:enumerate(Kinds)),
                      {ok, _} = weft_kv_vnode:tick(Vnode),
                      map_get(not_compared, weft_kv_entropy:info())
                  end,
    try
        [?assertEqual({Count, Kinds}, {NotCompared(Kinds), Kinds})
         || {Count, Kinds} <- [{0, [?STORE#{n := 2}]}, {1, [?STORE#{n := 3}]},
                               {1, [?STORE#{n := 2}, ?STORE#{n := 4}]},
                               {0, [?STORE#{n := 1}, ?STORE#{n := 4, evict := true}]}]]
    after
        ok = gen_server:stop(Entropy),
        true = ets:delete(weft_kv_stats),
        _ = persistent_term:erase(weft_kv_stats)
    end.

%% --- configuration ----------------------------------------------------------------------------

wrong_options_are_named_test() ->
    ?assertEqual({error, {bad_option, {bytes_max, -1}}}, weft_kv_vnode:init(0, #{bytes_max => -1})),
    ?assertEqual({error, {bad_option, {siblings_max, 0}}},
                 weft_kv_vnode:init(0, #{siblings_max => 0})),
    ?assertEqual({error, {bad_option, {dir, 1}}}, weft_kv_vnode:init(0, #{dir => 1})),
    ?assertEqual({error, {bad_option, {bytes, 1}}}, weft_kv_vnode:init(0, #{bytes => 1})),
    ?assertEqual({error, {bad_option, [1]}}, weft_kv_vnode:init(0, [1])).

wrong_configuration_is_named_test_() ->
    [?_assertEqual({error, Error}, weft_kv_app:config([Pair]))
     || {Pair, Error} <-
            [{{bucket, #{}}, {unknown_key, bucket}},
             {{buckets, []}, {bad_value, {buckets, []}}},
             {{entropy_ms, 0}, {bad_value, {entropy_ms, 0}}},
             {{requests_max, 0}, {bad_value, {requests_max, 0}}},
             {{coordinators, rex}, {bad_value, {coordinators, rex}}},
             {{buckets, #{"b" => #{}}}, {bucket, "b", not_an_atom}},
             {{buckets, #{b => #{w => 9}}},
              {bucket, b, {bad_option, {w, 9, {from, 1, to, 3}}}}}]].

buckets_get_their_defaults_test() ->
    ?assertMatch({ok, #{buckets := #{b := #{n := 3, w := 2}}, requests_max := 10000}},
                 weft_kv_app:config([{buckets, #{b => #{}}}])).

%% --- a partition ------------------------------------------------------------------------------

vnode(Options) ->
    {ok, Vnode} = weft_kv_vnode:init(0, Options),
    Vnode.

key(N) -> {0, bucket, integer_to_binary(N)}.

value(Value, Expires) -> #{value => Value, written_ms => 0, expires_ms => Expires}.

object(Value) -> weft_kv_object:put(value(Value, never), #{}, <<"x">>, weft_kv_object:new()).

command(Key, Value, Kind, Vnode) ->
    weft_kv_vnode:command(Key, {{write, value(Value, never), #{}}, Kind, primary}, Vnode).

write(Key, Value, Kind, Vnode) -> write(Key, Value, never, Kind, Vnode).

write(Key, Value, Expires, Kind, Vnode) ->
    written(Key, {{write, value(Value, Expires), #{}}, Kind, primary}, Vnode).

fallback(Key, Value, Vnode) ->
    written(Key, {{write, value(Value, never), #{}}, ?STORE, fallback}, Vnode).

written(Key, Command, Vnode) ->
    {change, Change, {ok, _}} = weft_kv_vnode:command(Key, Command, Vnode),
    {ok, New} = weft_kv_vnode:change(Key, Change, none, Vnode),
    New.

values(Key, Vnode) ->
    {reply, {ok, Object}} = weft_kv_vnode:command(Key, {read, ?STORE, primary}, Vnode),
    weft_kv_object:values(Object).

tick(Vnode) ->
    {_, New} = weft_kv_vnode:tick(Vnode),
    New.
