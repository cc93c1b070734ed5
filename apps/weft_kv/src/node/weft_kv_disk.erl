%% SPDX-License-Identifier: Apache-2.0
%% @doc Which objects of a partition are in its file, and what is written there: changes, all of it
%% anew when most of it is outdated (a piece with each commit), or when other buckets are to be in
%% it.
%%
%% Buckets that ask for `memory' are not in the file, nor is what they delete. When what a bucket
%% asks for has changed (`weft_kv_durability'), the next commit first writes the file anew, from
%% what is in memory, and goes by the new configuration if that is done. So a bucket that gets into
%% a file has all its objects there, and of one that has left it a later start finds nothing, above
%% all not what was deleted since. While there is no room for that, commits fail.
%%
%% Not here: when a change may count (`weft_kv_vnode'), and the form of the file (`weft_kv_log').
-module(weft_kv_disk).

-export([open/4, append/4, say/4, commit/2, delete/2, close/2, stored/1]).
-export_type([state/0, rewrite/0]).

%% The file, for which buckets it is as they ask, and when it is looked whether it is to be written
%% anew.
-type state() :: {weft_kv_log:log(), weft_kv_durability:durabilities(), rewrite()}.
-type rewrite() :: now | {above, Bytes :: non_neg_integer()} | integer()
                   | {running, weft_kv_anew:run()}.
%% `above': it was not outdated, and is not before it is larger than so much. A time in ms: there
%% was no room. `running': it is written anew, a piece with each commit.

%% A file is written anew when it is larger, and larger than twice what is in it.
-define(REWRITE_BYTES, 1000000).
-define(REWRITE_AGAIN_MS, 60000).
-define(PASSED_OVER_MAX, 32).

%% @doc Puts what is in the file of a partition into the table. A bucket that is to be in memory
%% only and is in the file counts as `synced' until it has left it. A file in which there is nothing
%% may have been lost, and of a damaged one the end was; that is in the file which replaces it.
-spec open(file:filename(), non_neg_integer(), Purpose :: atom(), weft_kv_table:table()) ->
          {ok, weft_kv_log:log(), weft_kv_durability:durabilities()} | {error, term()}.
open(Dir, Partition, Purpose, Table) ->
    case weft_kv_log:open(Dir, Partition, Purpose, [saying(lacking)]) of
        {ok, Log0, Entries} ->
            Says = lists:foldl(fun(Entry, Before) -> loaded(Entry, Before, Table) end, whole,
                               Entries),
            Configured = weft_kv_durability:expected(),
            InMemory = weft_kv_durability:in_memory(Configured),
            InFile = [Bucket || Bucket <- InMemory, weft_kv_table:bytes([Bucket], Table) > 0],
            IsWhole = Entries =/= [] andalso Says =:= whole,
            ok = weft_kv_table:recall(case {IsWhole, InMemory -- InFile} of
                                          {false, _} -> weft_kv_recall:none();
                                          {true, []} -> weft_kv_recall:all();
                                          {true, _} -> weft_kv_recall:on_disk()
                                      end, Table),
            ok = weft_kv_table:filed(Says, Table),
            Log = said(IsWhole, Entries, Table, Log0),
            {ok, Log, maps:without(InFile, Configured)};
        {error, Reason} -> {error, Reason}
    end.

loaded({stored, Key, Object, Kind}, Before, Table) ->
    case weft_kv_recall:is_mark(Key) of
        true -> lacking;
        false ->
            ok = weft_kv_table:store(Key, Object, Kind, Table),
            Before
    end;
loaded({removed, Key}, Before, Table) ->
    case weft_kv_recall:is_mark(Key) of
        true -> whole;
        false ->
            ok = weft_kv_table:remove(Key, Table),
            Before
    end.

said(true, _, _, Log) ->
    Log;
said(false, Entries, Table, Log) ->
    case {weft_kv_table:filed(Table), Entries} of
        {lacking, _} -> Log;
        %% An empty file says the same.
        {whole, []} -> say(lacking, written, Table, Log);
        {whole, _} -> say(lacking, synced, Table, Log)
    end.

%% @doc The file says this with the next commit.
-spec say(whole | lacking, synced | written, weft_kv_table:table(), weft_kv_log:log()) ->
          weft_kv_log:log().
say(Says, How, Table, Log) ->
    ok = weft_kv_table:filed(Says, Table),
    weft_kv_log:append(saying(Says), How, Log).

saying(lacking) ->
    {Key, {Object, Kind}} = weft_kv_recall:mark(),
    {stored, Key, Object, Kind};
saying(whole) ->
    {Key, _} = weft_kv_recall:mark(),
    {removed, Key}.

%% @doc The partitions of which there is something on disk.
-spec stored(none | file:filename()) -> [non_neg_integer()].
stored(none) ->
    [];
stored(Dir) ->
    Files = case file:list_dir(Dir) of {ok, Names} -> Names; {error, _} -> [] end,
    lists:sort([Partition || File <- Files, filename:extension(File) =:= ".log",
                             {Partition, ""} <- [string:to_integer(filename:rootname(File))],
                             Partition >= 0]).

%% @doc A change waits for the next commit, if its bucket is in the file: as the bucket asks, or as
%% it is said.
-spec append(weft_kv_log:entry(), as_configured | synced | written,
             weft_kv_durability:durabilities(), weft_kv_log:log()) -> weft_kv_log:log().
append(Entry, How, Durabilities, Log) ->
    {_, Bucket, _} = element(2, Entry),
    case {weft_kv_durability:of_bucket(Bucket, Durabilities), How} of
        {memory, _} -> Log;
        {Durability, as_configured} -> weft_kv_log:append(Entry, Durability, Log);
        {_, _} -> weft_kv_log:append(Entry, How, Log)
    end.

%% @doc What waits is on disk as its bucket asks for it by now.
-spec commit(state(), weft_kv_table:table()) -> {ok | {error, term()}, state()}.
commit({_, Before, _} = State, Table) ->
    case weft_kv_durability:current(Before) of
        Before -> committed(State, Table);
        Now ->
            case configured(Now, State, Table) of
                {ok, New} -> committed(New, Table);
                {{error, Reason}, Same} -> {{error, Reason}, Same}
            end
    end.

committed({Log0, Durabilities, Rewrite}, Table) ->
    case {weft_kv_log:commit(Log0), Rewrite} of
        {{ok, Log}, _} -> {ok, tidied({Log, Durabilities, Rewrite}, Table)};
        %% A new file that is not whole may have taken the room.
        {{error, _, Log}, {running, _}} ->
            _ = stopped(Rewrite, Log),
            committed({Log, Durabilities, later()}, Table);
        {{error, Reason, Log}, _} -> {{error, Reason}, {Log, Durabilities, Rewrite}}
    end.

%% This one is not written a piece at a time: what waits is as it was configured before, and is not
%% to get into the new file.
configured(Now, {Log, Before, Rewrite} = State, Table) ->
    case {weft_kv_table:bytes(weft_kv_durability:moved(Before, Now), Table),
          is_too_soon(Rewrite)} of
        {0, _} -> {ok, {Log, Now, Rewrite}};
        {_, true} -> {{error, {no_room_to_write_anew, weft_kv_log:file(Log)}}, State};
        {_, false} ->
            case anew({Log, Now, stopped(Rewrite, Log)}, Table) of
                {ok, New} -> {ok, New};
                {{error, Reason}, {Same, _, Later}} -> {{error, Reason}, {Same, Before, Later}}
            end
    end.

stopped({running, Run}, Log) ->
    ok = weft_kv_anew:stop(Run, Log),
    now;
stopped(Rewrite, _Log) ->
    Rewrite.

%% If there is no room for a new file, it goes on with the old one.
tidied({Log, Durabilities, {running, Run}}, Table) ->
    stepped(Run, {Log, Durabilities}, Table);
tidied({Log, Durabilities, Rewrite} = State, Table) ->
    Bytes = weft_kv_log:bytes(Log),
    case Bytes > ?REWRITE_BYTES andalso is_time(Rewrite, Bytes)
        andalso logged_bytes(Durabilities, Table) of
        false -> State;
        Logged when Bytes > 2 * Logged -> begun({Log, Durabilities}, Table);
        Logged -> {Log, Durabilities, next(2 * Logged, Durabilities)}
    end.

begun({Log, Durabilities}, Table) ->
    case weft_kv_anew:start([saying(weft_kv_table:filed(Table))], Log) of
        {ok, Run} -> stepped(Run, {Log, Durabilities}, Table);
        {error, Reason} -> {Log, Durabilities, put_off(Reason)}
    end.

stepped(Run, {Log, Durabilities}, Table) ->
    Next = fun(Cursor, BytesMax) ->
               next(Cursor, BytesMax, ?PASSED_OVER_MAX, {Durabilities, Table})
           end,
    case weft_kv_anew:step(Next, Run, Log) of
        {more, Further} -> {Log, Durabilities, {running, Further}};
        {done, New} -> {New, Durabilities, now};
        {error, Reason} -> {Log, Durabilities, put_off(Reason)}
    end.

%% Buckets that are in memory only have nothing for the file. So many of their pages are passed over
%% at once.
next(Cursor, BytesMax, Left, {Durabilities, Table} = What) ->
    {Items, Further} = weft_kv_table:page(Cursor, {infinity, BytesMax}, Table),
    case entries(Items, Durabilities) of
        [] when Further =/= done, Left > 0 -> next(Further, BytesMax, Left - 1, What);
        Entries -> {Entries, Further}
    end.

logged_bytes(Durabilities, Table) ->
    weft_kv_table:bytes(Table)
        - weft_kv_table:bytes(weft_kv_durability:in_memory(Durabilities), Table).

%% To look at all objects with each commit would take too long.
next(Bytes, Durabilities) ->
    case weft_kv_durability:in_memory(Durabilities) of
        [] -> now;
        _ -> {above, Bytes}
    end.

is_time({above, Least}, Bytes) -> Bytes > Least;
is_time(Rewrite, _Bytes) -> not is_too_soon(Rewrite).

is_too_soon(Ms) when is_integer(Ms) -> erlang:monotonic_time(millisecond) < Ms;
is_too_soon(_) -> false.

anew({Log0, Durabilities, _}, Table) ->
    {Items, done} = weft_kv_table:page(start, {infinity, infinity}, Table),
    Entries = [saying(weft_kv_table:filed(Table)) | entries(Items, Durabilities)],
    case weft_kv_log:rewrite(Entries, Log0) of
        {ok, Log} -> {ok, {Log, Durabilities, now}};
        {error, Reason, Log} -> {{error, Reason}, {Log, Durabilities, put_off(Reason)}}
    end.

entries(Items, Durabilities) ->
    [{stored, Key, Object, Kind}
     || {{_, Bucket, _} = Key, {Object, Kind}} <- Items,
        weft_kv_durability:of_bucket(Bucket, Durabilities) =/= memory].

put_off(Reason) ->
    logger:warning("weft_kv: ~0tp", [Reason]),
    later().

later() -> erlang:monotonic_time(millisecond) + ?REWRITE_AGAIN_MS.

%% @doc There is nothing of the partition any more. After an error the file is as it was.
-spec delete(rewrite(), weft_kv_log:log()) -> ok | {error, term()}.
delete(Rewrite, Log) ->
    case weft_kv_log:delete(Log) of
        ok ->
            _ = stopped(Rewrite, Log),
            ok;
        {error, Reason} -> {error, Reason}
    end.

-spec close(rewrite(), weft_kv_log:log()) -> ok.
close(Rewrite, Log) ->
    _ = stopped(Rewrite, Log),
    weft_kv_log:close(Log).
