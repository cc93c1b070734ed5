%% SPDX-License-Identifier: Apache-2.0
%% @doc A file of a partition that is written anew while it is written to: wherever this ends, all
%% that was committed is there, and nothing else.
-module(weft_kv_anew_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KEYS, lists:seq(1, 20)).

%% Small changes, and such that more is added than is in a piece; synced, and only written.
whenever_it_ends_all_is_there_test_() ->
    [{timeout, 60, fun() -> in_directory(fun(Dir) -> ends(How, Bytes, Dir) end) end}
     || How <- [synced, written], Bytes <- [10, 100000]].

ends(How, Bytes, Dir) ->
    {Log0, State0} = changed([{store, Key, Bytes} || Key <- ?KEYS ++ ?KEYS ++ ?KEYS], How,
                             opened(Dir)),
    {ok, Run} = weft_kv_anew:start([], Log0),
    {Log, State, Steps} = run(Run, How, Bytes, {Log0, State0}, 0, Dir),
    ?assert(Steps > 5),
    ?assertNot(filelib:is_file(weft_kv_log:beside(Log))),
    ?assertEqual(filelib:file_size(weft_kv_log:file(Log)), weft_kv_log:bytes(Log)),
    %% What was not synced at the beginning is taken along as it was.
    ?assert(How =:= written orelse weft_kv_log:bytes(Log) < weft_kv_log:bytes(Log0)),
    %% And it is gone on with.
    {Last, Now} = changed([{store, 1, Bytes}, {remove, 2}], How, {Log, State}),
    ?assertEqual(Now, killed(Last, Dir)),
    ok = weft_kv_log:close(Last),
    ?assertEqual(Now, found(Dir)).

%% Between two pieces something is changed, before the cursor and behind it.
run(Run, How, Bytes, Before, Steps, Dir) ->
    Key = 1 + Steps * 7 rem 20,
    Change = case Steps rem 3 of 2 -> {remove, Key}; _ -> {store, Key, Bytes} end,
    {Log, State} = changed([Change], How, Before),
    ?assertEqual({Steps, State}, {Steps, killed(Log, Dir)}),
    case weft_kv_anew:step(next(State), Run, Log) of
        {more, Further} -> run(Further, How, Bytes, {Log, State}, Steps + 1, Dir);
        {done, New} ->
            ?assertEqual(State, killed(New, Dir)),
            {New, State, Steps + 1}
    end.

%% A commit fails in between, and what was only written before is written once more.
what_could_not_be_synced_is_there_test() ->
    in_directory(
      fun(Dir) ->
          {Log0, State0} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run0} = weft_kv_anew:start([], Log0),
          {more, Run1} = weft_kv_anew:step(next(State0), Run0, Log0),
          {Log1, State1} = changed([{store, 1, 10}], written, {Log0, State0}),
          {more, Run2} = weft_kv_anew:step(next(State1), Run1, Log1),
          {Entry, State2} = change({store, 1, 20}, State1),
          Failed = not_committed(weft_kv_log:append(Entry, Log1)),
          {Log2, State3} = changed([{remove, 3}], synced, {Failed, State2}),
          {ok, New} = finished(next(State3), Run2, Log2),
          ?assertEqual(State3, killed(New, Dir))
      end).

%% With a device that fails.
not_committed(Log) ->
    Device = element(5, Log),
    {ok, Closed} = file:open(weft_kv_log:file(Log), [raw, read]),
    ok = file:close(Closed),
    {error, _, Failed} = weft_kv_log:commit(setelement(5, Log, Closed)),
    setelement(5, Failed, Device).

%% It counts with the next commit, as ever.
what_waits_goes_on_waiting_test() ->
    in_directory(
      fun(Dir) ->
          {Log0, State} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log0),
          Waiting = weft_kv_log:append({removed, key(5)}, Log0),
          {ok, New} = finished(next(State), Run, Waiting),
          ?assert(weft_kv_log:is_waiting(New)),
          ?assertEqual(State, killed(New, Dir)),
          {ok, Committed} = weft_kv_log:commit(New),
          ?assertEqual(maps:remove(key(5), State), killed(Committed, Dir))
      end).

%% A device that fails stands for a full disk. Nothing is left, and the file goes on.
without_room_the_file_goes_on_test() ->
    in_directory(
      fun(Dir) ->
          {Log0, State0} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log0),
          New = weft_kv_log:beside(Log0),
          ?assert(filelib:is_file(New)),
          %% The device of the new file.
          ok = file:close(element(2, Run)),
          ?assertMatch({error, {_, New}}, weft_kv_anew:step(next(State0), Run, Log0)),
          ?assertNot(filelib:is_file(New)),
          {Log, State} = changed([{store, 1, 20}], synced, {Log0, State0}),
          ?assertEqual(State, killed(Log, Dir)),
          %% A directory in the way.
          ok = file:make_dir(New),
          ?assertMatch({error, {_, New}}, weft_kv_anew:start([], Log))
      end).

%% Neither is it written there, nor is what may be the other node's deleted.
what_may_be_another_nodes_is_left_test() ->
    in_directory(
      fun(Dir) ->
          {ok, Lock} = weft_directory_lock:start_link(Dir, tests),
          {Log, State} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log),
          New = weft_kv_log:beside(Log),
          Bytes = filelib:file_size(New),
          ok = atomics:sub(persistent_term:get({weft_directory_lock, Dir, tests}), 1, 10000),
          ?assertEqual({error, {directory_not_held, New}},
                       weft_kv_anew:step(next(State), Run, Log)),
          ?assertEqual(Bytes, filelib:file_size(New)),
          ?assertMatch({error, {directory_not_held, _}}, weft_kv_anew:start([], Log)),
          %% It was not. Nobody opens a file of the partition when it has gone.
          ok = atomics:add(persistent_term:get({weft_directory_lock, Dir, tests}), 1, 10000),
          ok = weft_kv_log:delete(Log),
          ?assertNot(filelib:is_file(New)),
          ok = gen_server:stop(Lock)
      end).

%% A directory in the place of the file stands for a disk that fails.
while_a_file_can_not_be_deleted_it_is_written_anew_on_test() ->
    in_directory(
      fun(Dir) ->
          {Log, State} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log),
          File = weft_kv_log:file(Log),
          ok = file:rename(File, File ++ ".aside"),
          ok = file:make_dir(File),
          ?assertMatch({error, {_, File}}, weft_kv_disk:delete({running, Run}, Log)),
          ok = file:del_dir(File),
          ok = file:rename(File ++ ".aside", File),
          {ok, New} = finished(next(State), Run, Log),
          ?assertEqual(State, killed(New, Dir)),
          ok = weft_kv_disk:delete(now, New),
          ?assertNot(filelib:is_file(File))
      end).

%% The former file may be there after a failure of the host.
nothing_counts_before_the_name_is_on_disk_test() ->
    in_directory(
      fun(Dir) ->
          {Log0, State} = changed([{store, Key, 10} || Key <- ?KEYS], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log0),
          {ok, New} = weft_test_disk:without_directory_sync(
                        fun() -> finished(next(State), Run, Log0) end),
          Log = weft_kv_log:append({removed, key(5)}, New),
          ?assertMatch({error, {eio, _}, Log},
                       weft_test_disk:without_directory_sync(
                         fun() -> weft_kv_log:commit(Log) end)),
          {ok, Committed} = weft_kv_log:commit(Log),
          ?assertEqual(maps:remove(key(5), State), killed(Committed, Dir))
      end).

it_is_stopped_test() ->
    in_directory(
      fun(Dir) ->
          {Log, _} = changed([{store, 1, 10}], synced, opened(Dir)),
          {ok, Run} = weft_kv_anew:start([], Log),
          ok = weft_kv_anew:stop(Run, Log),
          ?assertNot(filelib:is_file(weft_kv_log:beside(Log)))
      end).

%% --- a log and what is in it ------------------------------------------------------------------

opened(Dir) ->
    {ok, Log, []} = weft_kv_log:open(Dir, 7, tests),
    {Log, #{}}.

%% Each with a commit of its own.
changed(Changes, How, Before) ->
    lists:foldl(fun(Change, {Log0, State}) ->
                    {Entry, New} = change(Change, State),
                    %% At no time it is long ago that something was written.
                    {ok, Log} = weft_kv_log:commit(0, weft_kv_log:append(Entry, How, Log0)),
                    {Log, New}
                end, Before, Changes).

change({store, N, Bytes}, State) ->
    Object = object(Bytes),
    {{stored, key(N), Object, kind()}, State#{key(N) => Object}};
change({remove, N}, State) ->
    {{removed, key(N)}, maps:remove(key(N), State)}.

key(N) -> {0, bucket, <<N>>}.

kind() -> #{n => 1}.

object(Bytes) ->
    Value = <<(erlang:unique_integer([positive])):64, 0:(8 * Bytes)>>,
    weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{}, <<"actor">>,
                       weft_kv_object:new()).

%% Two at a time.
next(State) ->
    fun(Cursor, _BytesMax) ->
        Keys = [Key || Key <- lists:sort(maps:keys(State)), is_behind(Key, Cursor)],
        Page = lists:sublist(Keys, 2),
        {[{stored, Key, map_get(Key, State), kind()} || Key <- Page],
         case length(Keys) > 2 of true -> {'after', lists:last(Page)}; false -> done end}
    end.

is_behind(_, start) -> true;
is_behind(Key, {'after', Last}) -> Key > Last.

finished(Next, Run, Log) ->
    case weft_kv_anew:step(Next, Run, Log) of
        {more, Further} -> finished(Next, Further, Log);
        {done, New} -> {ok, New}
    end.

%% What is found if the process is killed now.
killed(Log, Dir) ->
    Other = filename:join(Dir, "killed"),
    ok = filelib:ensure_dir(filename:join(Other, "x")),
    [{ok, _} = file:copy(File, filename:join(Other, filename:basename(File)))
     || File <- [weft_kv_log:file(Log), weft_kv_log:beside(Log)], filelib:is_regular(File)],
    State = found(Other),
    ?assertEqual(["7.log"], element(2, file:list_dir(Other))),
    State.

found(Dir) ->
    {ok, Log, Entries} = weft_kv_log:open(Dir, 7, tests),
    ok = weft_kv_log:close(Log),
    lists:foldl(fun({stored, Key, Object, _}, State) -> State#{Key => Object};
                   ({removed, Key}, State) -> maps:remove(Key, State)
                end, #{}, Entries).

in_directory(Fun) -> weft_kv_test_directory:within(Fun).
