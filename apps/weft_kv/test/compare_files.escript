#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbwt none
%% The file of one partition of the store (`weft_kv_log', with its table) beside bitcask, in one
%% process, in turns:
%%
%%   apps/weft_kv/test/compare_files.escript OUT     (after `make compile')
%%
%% Bitcask is that of the system (Debian: erlang-bitcask). Values have 1 KB. Puts are synced by
%% one, 16 or 200 at a time, as the store commits what came together; bitcask by `sync/1', because
%% it ignores its option for synced writes. Then 100,000 keys are put, and put again, in batches of
%% 200, the space is taken back (`rewrite/2', `merge/1'), 10,000 keys are read, and all is opened
%% again until the first key was read.
%%
%% OUT gets files.csv and environment.csv, and must be new. The files are in OUT while this runs:
%% what is measured is the disk below it.
-mode(compile).

-define(TURNS, 5).
-define(BATCHES, [1, 16, 200]).
-define(SYNCED_MS, 2000).
-define(KEYS, 100000).
-define(READ, 10000).
-define(VALUE_BYTES, 1024).
-define(KIND, #{n => 3, evict => false, siblings => true}).

main([Out]) ->
    ok = code:add_pathsa(filelib:wildcard("_build/default/lib/*/ebin")),
    code:which(bitcask) =/= non_existing orelse stop("there is no bitcask on the code path"),
    filelib:is_file(Out) andalso stop(Out ++ " is there, and may be of another run"),
    {ok, _} = application:ensure_all_started(bitcask),
    ok = filelib:ensure_dir(filename:join(Out, "x")),
    {ok, Bitcask} = application:get_key(bitcask, vsn),
    ok = weft_report_record:write_environment(
           Out, weft_bench_environment:gather([{"bitcask", Bitcask}])),
    {ok, File} = file:open(filename:join(Out, "files.csv"), [write]),
    ok = io:format(File, "store,metric,batch,turn,value~n", []),
    [[io:format(File, "~s,~s,~w,~w,~w~n", [Store, Metric, Batch, Turn, Value])
      || {Metric, Batch, Value} <- turn(Store, Turn, Out)]
     || Turn <- lists:seq(1, ?TURNS), Store <- in_turns(Turn, [weft, bitcask])],
    file:close(File);
main(_) ->
    stop("usage: apps/weft_kv/test/compare_files.escript OUT").

stop(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    halt(2).

in_turns(Turn, Stores) when Turn rem 2 =:= 0 -> lists:reverse(Stores);
in_turns(_Turn, Stores) -> Stores.

turn(Store, Turn, Out) ->
    io:format("~w of ~w: ~s~n", [Turn, ?TURNS, Store]),
    Synced = in_directory(Store, Out, fun(Dir) ->
        {Rows, Open} = lists:foldl(fun(Batch, {Before, Open}) ->
                                           {More, Next} = synced(Store, Batch, Open),
                                           {Before ++ More, Next}
                                   end, {[], open(Store, Dir)}, ?BATCHES),
        ok = close(Store, Open),
        Rows
    end),
    Synced ++ in_directory(Store, Out, fun(Dir) -> filled(Store, Dir) end).

in_directory(Store, Out, Fun) ->
    Dir = filename:join([Out, "data", atom_to_list(Store)]),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try Fun(Dir) after ok = file:del_dir_r(Dir) end.

%% For a while, batch after batch: how many puts a second, and the time of a batch.
synced(Store, Batch, Open0) ->
    EndUs = now_us() + ?SYNCED_MS * 1000,
    {TimesUs, Open} = batches(Store, Batch, EndUs, [], Open0),
    Count = Batch * length(TimesUs),
    {[{puts_per_s, Batch, round(Count * 1.0e6 / lists:sum(TimesUs))},
      {batch_p50_us, Batch, percentile(50, TimesUs)},
      {batch_p99_us, Batch, percentile(99, TimesUs)}], Open}.

batches(Store, Batch, EndUs, TimesUs, Open0) ->
    Keys = [key(rand:uniform(1000)) || _ <- lists:seq(1, Batch)],
    {Us, Open} = timer:tc(fun() -> sync(Store, put_all(Store, Keys, Open0)) end),
    case now_us() of
        NowUs when NowUs < EndUs -> batches(Store, Batch, EndUs, [Us | TimesUs], Open);
        _ -> {[Us | TimesUs], Open}
    end.

filled(Store, Dir) ->
    Fill = fun(Open) ->
                   lists:foldl(fun(First, Filled) ->
                                       Keys = [key(N) || N <- lists:seq(First, First + 199)],
                                       sync(Store, put_all(Store, Keys, Filled))
                               end, Open, lists:seq(1, ?KEYS, 200))
           end,
    {FirstUs, Once} = timer:tc(fun() -> Fill(open(Store, Dir)) end),
    {AgainUs, Twice} = timer:tc(fun() -> Fill(Once) end),
    Before = bytes(Dir),
    {SpaceUs, Left} = timer:tc(fun() -> tidied(Store, Dir, Twice) end),
    Read = [key(rand:uniform(?KEYS)) || _ <- lists:seq(1, ?READ)],
    {ReadUs, _} = timer:tc(fun() -> [{found, _} = get(Store, Key, Left) || Key <- Read] end),
    ok = close(Store, Left),
    {OpenUs, Again} = timer:tc(fun() ->
                                       Opened = open(Store, Dir),
                                       {found, _} = get(Store, key(1), Opened),
                                       Opened
                               end),
    ok = close(Store, Again),
    [{fill_ms, 200, FirstUs div 1000}, {fill_again_ms, 200, AgainUs div 1000},
     {bytes_before, 200, Before}, {space_ms, 200, SpaceUs div 1000},
     {bytes_after, 200, bytes(Dir)}, {gets_per_s, 1, round(?READ * 1.0e6 / ReadUs)},
     {open_ms, 200, OpenUs div 1000}].

%% --- the two stores -----------------------------------------------------------------------------

open(weft, Dir) ->
    {ok, Log, Entries} = weft_kv_log:open(Dir, 0, compare),
    Table = weft_kv_table:new(),
    [ok = weft_kv_table:store(Key, Object, Kind, Table) || {stored, Key, Object, Kind} <- Entries],
    {Log, Table};
%% A file that is written to is not merged, so there are several.
open(bitcask, Dir) ->
    bitcask:open(Dir, [read_write, {max_file_size, 64 bsl 20}]).

put_all(weft, Keys, {Log0, Table}) ->
    {lists:foldl(fun(Name, Log) ->
                         Key = {0, files, Name},
                         Object = object(weft_kv_table:read(Key, Table)),
                         ok = weft_kv_table:store(Key, Object, ?KIND, Table),
                         weft_kv_log:append({stored, Key, Object, ?KIND}, Log)
                 end, Log0, Keys), Table};
put_all(bitcask, Keys, Store) ->
    [ok = bitcask:put(Store, Key, value()) || Key <- Keys],
    Store.

object(none) -> written(weft_kv_object:new());
object({Object, _}) -> written(Object).

written({Vector, _} = Object) ->
    Value = #{value => value(), written_ms => erlang:system_time(millisecond),
              expires_ms => never},
    weft_kv_object:put(Value, Vector, <<"actor">>, Object).

sync(weft, {Log, Table}) ->
    {ok, Committed} = weft_kv_log:commit(Log),
    {Committed, Table};
sync(bitcask, Store) ->
    ok = bitcask:sync(Store),
    Store.

get(weft, Name, {_Log, Table}) ->
    case weft_kv_table:read({0, files, Name}, Table) of
        {Object, _} -> {found, hd(weft_kv_object:values(Object))};
        none -> none
    end;
get(bitcask, Name, Store) ->
    case bitcask:get(Store, Name) of
        {ok, Value} -> {found, Value};
        not_found -> none
    end.

%% In the store a partition does nothing else meanwhile. A merge of bitcask is usually another
%% process's; the files that it has merged are deleted later.
tidied(weft, _Dir, {Log0, Table}) ->
    {Items, done} = weft_kv_table:page(start, {infinity, infinity}, Table),
    {ok, Log} = weft_kv_log:rewrite([{stored, Key, Object, Kind}
                                     || {Key, {Object, Kind}} <- Items], Log0),
    {ok, Synced} = weft_kv_log:commit(Log),
    {Synced, Table};
tidied(bitcask, Dir, Store) ->
    ok = bitcask:merge(Dir),
    Store.

close(weft, {Log, _Table}) -> weft_kv_log:close(Log);
close(bitcask, Store) -> bitcask:close(Store).

%% --- numbers ------------------------------------------------------------------------------------

key(Number) -> <<"key ", (integer_to_binary(Number))/binary>>.

value() -> rand:bytes(?VALUE_BYTES).

bytes(Dir) ->
    lists:sum([filelib:file_size(File) || File <- filelib:wildcard(filename:join(Dir, "*"))]).

percentile(Percent, Values) ->
    lists:nth(max(1, ceil(Percent * length(Values) / 100)), lists:sort(Values)).

now_us() -> erlang:monotonic_time(microsecond).
