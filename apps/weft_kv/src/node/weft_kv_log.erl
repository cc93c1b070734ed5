%% SPDX-License-Identifier: Apache-2.0
%% @doc The objects of one partition on disk: a file to which each change is appended, and which is
%% written anew when most of it is outdated. All objects are in memory, too, so it is read only when
%% the partition starts.
%%
%% What is at the end and not whole (`weft_kv_log_records') was being written when the host or the
%% node ended; nobody was told that it was there, and it is cut off. Anything else that is wrong is
%% damage: the file is put aside by another name, what is before the damage is kept, and the rest
%% has to come from other replicas. A file whose first line names another form of records is left as
%% it is. One of the form before, which has only single records, gets the present line when it is
%% opened.
%%
%% Changes wait in memory until `commit/1' writes and syncs them together. If that fails (a full
%% disk), they wait for the next try, and whoever calls has to tell nobody that they are there. So
%% it is if the directory may be another node's by now (`weft_directory_lock:is_held/2'): it is
%% asked before anything is written, and once more before it counts; and also where nothing waits,
%% as what was read may be outdated then. Nor is a file opened meanwhile, as that may cut it off.
%%
%% Changes that are only to be `written' are in the file after a commit, and need not be synced. The
%% end of the process takes nothing from them, a failure of the host may. They are synced with the
%% next commit that syncs, and by the first one that comes `UNSYNCED_MS' after they were written, or
%% finds more than `UNSYNCED_BYTES' of them. So whoever writes them has to call `commit/1' now and
%% then. A file is synced when it is opened: the process before may not have come to that.
%%
%% A file that was written anew has its name before that is on disk, and so may one that is opened.
%% Nothing counts before the directory is synced, too: if the host fails, it may find the former
%% file, without what was written since. The former one is not gone on with, as it has no name.
-module(weft_kv_log).

-export([open/3, open/4, damaged/2, file/1, append/2, append/3, commit/1, commit/2, is_waiting/1,
         bytes/1, synced_bytes/1, rewrite/2, delete/1, close/1]).
%% For one that is written a piece at a time (`weft_kv_anew').
-export([beside/1, held/1, image/1, records/1, unsynced/1, moved/3]).
-export_type([log/0, entry/0]).

%% What is not synced. It is kept, the latest first, until it is: after an error nobody knows what
%% of it is in the file, so it is written once more.
-record(behind, {waiting = [] :: [iodata()],
                 %% Some of what waits has to be synced when it is written.
                 urgent = false :: boolean(),
                 %% In the file, behind what is synced.
                 written = [] :: [iodata()],
                 written_bytes = 0 :: non_neg_integer(),
                 since_ms = 0 :: integer()}).

-record(log, {file :: file:filename(),
              dir = "" :: file:filename(),
              purpose = none :: atom(),
              %% `named': the name may not be on disk yet.
              device :: none | file:fd() | {named, file:fd()},
              %% So far it is synced.
              bytes :: non_neg_integer(),
              %% Earlier code kept a list of what waits here.
              behind = #behind{} :: #behind{} | [iodata()]}).
-opaque log() :: #log{}.
-type entry() :: {stored, weft_kv_table:key() | weft_kv_recall:mark(), weft_kv_object:object(),
                  weft_kv_table:kind()}
               | {removed, weft_kv_table:key() | weft_kv_recall:mark()}
               | weft_kv_strong_acceptor_core:entry().

-define(FORMAT, "weft_kv ").
-define(MAGIC, ?FORMAT "2\n").
-define(MAGIC_BEFORE, ?FORMAT "1\n").
-define(MAGIC_BYTES, 10).
-define(UNSYNCED_MS, 500).
-define(UNSYNCED_BYTES, 1000000).

%% @doc The log of a partition, with all entries in their order. The purpose is that of the lock on
%% the directory.
-spec open(file:filename(), non_neg_integer(), Purpose :: atom()) ->
          {ok, log(), [entry()]} | {error, term()}.
open(Dir, Partition, Purpose) -> open(Dir, Partition, Purpose, []).

%% @doc The same; of a file that is damaged, these entries are behind what is kept of it. While the
%% directory may be another node's the error is `{directory_not_held, File}'.
-spec open(file:filename(), non_neg_integer(), Purpose :: atom(), IfDamaged :: [entry()]) ->
          {ok, log(), [entry()]} | {error, term()}.
open(Dir, Partition, Purpose, IfDamaged) ->
    File = filename:join(Dir, integer_to_list(Partition) ++ ".log"),
    case weft_directory_lock:is_held(Dir, Purpose) andalso found(File, IfDamaged) of
        false -> {error, {directory_not_held, File}};
        {ok, Log, Entries} -> {ok, Log#log{dir = Dir, purpose = Purpose}, Entries};
        {error, Reason} -> {error, Reason}
    end.

found(File, IfDamaged) ->
    %% Somebody has not come to the end of it.
    _ = file:delete(beside_file(File)),
    case {filelib:ensure_dir(File), file:read_file(File)} of
        {{error, Reason}, _} -> {error, {Reason, File}};
        {ok, {error, enoent}} -> created(File, []);
        {ok, {error, Reason}} -> {error, {Reason, File}};
        {ok, {ok, Bytes}} -> recovered(File, Bytes, IfDamaged)
    end.

recovered(File, <<Magic:?MAGIC_BYTES/binary, Records/binary>> = Bytes, IfDamaged)
  when Magic =:= <<?MAGIC>>; Magic =:= <<?MAGIC_BEFORE>> ->
    case weft_kv_log_records:read(Records, ?MAGIC_BYTES) of
        {whole, _, Entries} -> opened(File, byte_size(Bytes), Entries);
        {torn, At, Entries} ->
            logger:warning("weft_kv: ~ts was being written at its end; ~b bytes are cut off",
                           [File, byte_size(Bytes) - At]),
            opened(File, At, Entries);
        {damaged, At, Entries} -> quarantined(File, At, Entries ++ IfDamaged)
    end;
recovered(File, <<?FORMAT, Version, "\n", _/binary>>, _) when Version >= $0, Version =< $9 ->
    {error, {written_by_another_version, File}};
recovered(File, Bytes, IfDamaged) ->
    IsBegun = fun(Magic) ->
                  binary:longest_common_prefix([Bytes, Magic]) =:= byte_size(Bytes)
              end,
    case lists:any(IsBegun, [<<?MAGIC>>, <<?MAGIC_BEFORE>>]) of
        true -> created(File, []);
        false -> quarantined(File, 0, IfDamaged)
    end.

%% @doc The files that were put aside, by their names. What was behind the damage is forgotten.
-spec damaged(file:filename(), non_neg_integer()) -> [file:filename()].
damaged(Dir, Partition) ->
    case file:list_dir(Dir) of
        {ok, Files} ->
            Prefix = integer_to_list(Partition) ++ ".log.damaged",
            lists:sort([File || File <- Files, lists:prefix(Prefix, File)]);
        {error, _} -> []
    end.

quarantined(File, At, Entries) ->
    Aside = File ++ ".damaged." ++ integer_to_list(erlang:system_time(microsecond)),
    logger:error("weft_kv: ~ts is damaged at byte ~b. It is ~ts now; what was before the damage is "
                 "kept, the rest has to come from other replicas", [File, At, Aside]),
    case file:make_link(File, Aside) of
        ok -> without_damage(File, Entries, Aside);
        %% Not all file systems have links.
        {error, _} ->
            case file:rename(File, Aside) of
                ok -> created(File, Entries);
                {error, Reason} -> {error, {Reason, File}}
            end
    end.

%% If there is no room for what is kept, the damaged file stays where it was, for the next start.
without_damage(File, Entries, Aside) ->
    case created(File, Entries) of
        {ok, Log, Entries} -> {ok, Log, Entries};
        {error, Reason} ->
            _ = file:delete(Aside),
            {error, Reason}
    end.

opened(File, Size, Entries) ->
    case file:open(File, [raw, read, write, binary]) of
        {ok, Device} ->
            case first_error([fun() -> cut_off(Device, Size) end,
                              fun() -> file:pwrite(Device, 0, ?MAGIC) end,
                              fun() -> file:datasync(Device) end]) of
                ok -> {ok, #log{file = File, device = {named, Device}, bytes = Size}, Entries};
                {error, Reason} ->
                    _ = file:close(Device),
                    {error, {Reason, File}}
            end;
        {error, Reason} -> {error, {Reason, File}}
    end.

cut_off(Device, Size) ->
    case file:position(Device, Size) of
        {ok, Size} -> file:truncate(Device);
        {error, Reason} -> {error, Reason}
    end.

created(File, Entries) ->
    case replaced(File, Entries) of
        {ok, Log} -> {ok, Log, Entries};
        {error, Reason} -> {error, Reason}
    end.

%% The old file is there until the new one is on disk.
replaced(File, Entries) ->
    New = beside_file(File),
    Bytes = image(Entries),
    case file:open(New, [raw, write, binary]) of
        {ok, Device} ->
            Done = first_error([fun() -> file:write(Device, Bytes) end,
                                fun() -> file:datasync(Device) end,
                                fun() -> weft_durable_file:rename(New, File) end]),
            case Done of
                {error, Reason} ->
                    _ = file:close(Device),
                    _ = file:delete(New),
                    {error, {Reason, New}};
                Renamed ->
                    {ok, #log{file = File, device = named(Renamed, Device, File),
                              bytes = iolist_size(Bytes)}}
            end;
        {error, Reason} -> {error, {Reason, New}}
    end.

named(ok, Device, _) ->
    Device;
named({unsynced, Reason}, Device, File) ->
    logger:error("weft_kv: ~ts was written anew, and its directory can not be synced (~0tp); "
                 "nothing is acknowledged before it is", [File, Reason]),
    {named, Device}.

first_error([]) -> ok;
first_error([Step | Steps]) ->
    case Step() of
        ok -> first_error(Steps);
        Failed -> Failed
    end.

%% @doc An entry waits for the next commit, which syncs it.
-spec append(entry(), log()) -> log().
append(Entry, Log) -> append(Entry, synced, Log).

%% @doc The same. What is only to be `written' need not be synced by that commit.
-spec append(entry(), synced | written, log()) -> log().
append(Entry, How, Log) ->
    #behind{waiting = Waiting, urgent = Urgent} = Behind = behind(Log),
    Log#log{behind = Behind#behind{waiting = [weft_kv_log_records:one(Entry) | Waiting],
                                   urgent = Urgent orelse How =:= synced}}.

behind(#log{behind = #behind{} = Behind}) -> Behind;
behind(#log{behind = Waiting}) -> #behind{waiting = Waiting, urgent = Waiting =/= []}.

%% @doc Is there something that is not synced?
-spec is_waiting(log()) -> boolean().
is_waiting(#log{device = {named, _}}) ->
    true;
is_waiting(Log) ->
    case behind(Log) of
        #behind{waiting = [], written = []} -> false;
        #behind{} -> true
    end.

%% @doc What waits is in the file now, and synced if it has to be. After an error it waits on, and
%% nothing that was read counts either.
-spec commit(log()) -> {ok, log()} | {error, term(), log()}.
commit(Log) -> commit(erlang:monotonic_time(millisecond), Log).

%% @doc The same at this time (`erlang:monotonic_time/1').
-spec commit(NowMs :: integer(), log()) -> {ok, log()} | {error, term(), log()}.
commit(NowMs, #log{file = File, device = {named, Device}} = Log) ->
    case weft_durable_file:sync_name(File) of
        ok -> commit(NowMs, Log#log{device = Device});
        {error, Reason} -> {error, {Reason, File}, Log}
    end;
commit(NowMs, Log) ->
    Behind = behind(Log),
    case is_due(NowMs, Behind) of
        true -> synced(Behind, Log);
        false -> written(NowMs, Behind, Log)
    end.

is_due(_, #behind{urgent = true}) -> true;
is_due(_, #behind{written = []}) -> false;
is_due(NowMs, #behind{written_bytes = Bytes, since_ms = SinceMs}) ->
    NowMs - SinceMs >= ?UNSYNCED_MS orelse Bytes >= ?UNSYNCED_BYTES.

%% What is in the file already is synced also if there is no room for more.
synced(#behind{waiting = Waiting, written = Written, written_bytes = Before} = Behind,
       #log{device = Device, bytes = At, file = File} = Log) ->
    Together = weft_kv_log_records:together(lists:reverse(Waiting)),
    case {added(Together, Behind, Log),
          first_error([fun() -> file:datasync(Device) end, fun() -> held(Log) end])} of
        {ok, ok} ->
            {ok, Log#log{bytes = At + Before + iolist_size(Together), behind = #behind{}}};
        {{error, Reason}, ok} ->
            {error, {Reason, File}, Log#log{bytes = At + Before,
                                            behind = #behind{waiting = Waiting, urgent = true}}};
        {_, {error, Reason}} ->
            All = #behind{waiting = Waiting ++ Written, urgent = true},
            {error, {Reason, File}, Log#log{behind = All}}
    end.

written(_NowMs, #behind{waiting = []}, #log{file = File} = Log) ->
    case held(Log) of
        ok -> {ok, Log};
        {error, Reason} -> {error, {Reason, File}, Log}
    end;
written(NowMs, #behind{waiting = Waiting, written = Written, written_bytes = Before,
                       since_ms = SinceMs} = Behind, #log{file = File} = Log) ->
    Together = weft_kv_log_records:together(lists:reverse(Waiting)),
    case first_error([fun() -> added(Together, Behind, Log) end, fun() -> held(Log) end]) of
        ok ->
            {ok, Log#log{behind = #behind{written = [Together | Written],
                                          written_bytes = Before + iolist_size(Together),
                                          since_ms = case Written of
                                                         [] -> NowMs;
                                                         _ -> SinceMs
                                                     end}}};
        {error, Reason} -> {error, {Reason, File}, Log#log{behind = Behind}}
    end.

added([], _Behind, _Log) ->
    ok;
added(Together, #behind{written_bytes = Before}, #log{device = Device, bytes = Synced} = Log) ->
    first_error([fun() -> held(Log) end,
                 fun() -> file:pwrite(Device, Synced + Before, Together) end]).

%% @doc Is the directory still that of this node? It is asked before anything is written there.
-spec held(log()) -> ok | {error, directory_not_held}.
held(#log{dir = Dir, purpose = Purpose}) ->
    case weft_directory_lock:is_held(Dir, Purpose) of
        true -> ok;
        false -> {error, directory_not_held}
    end.

%% @doc Where it is.
-spec file(log()) -> file:filename().
file(#log{file = File}) -> File.

%% @doc How large the file is.
-spec bytes(log()) -> non_neg_integer().
bytes(#log{bytes = Bytes} = Log) -> Bytes + (behind(Log))#behind.written_bytes.

%% @doc How much of it no failure of the host takes away.
-spec synced_bytes(log()) -> non_neg_integer().
synced_bytes(#log{bytes = Bytes}) -> Bytes.

%% @doc The file has these entries and no others, those that waited among them. They count with the
%% next commit. After an error it is as it was.
-spec rewrite([entry()], log()) -> {ok, log()} | {error, term(), log()}.
rewrite(Entries, #log{file = File, dir = Dir, purpose = Purpose} = Log) ->
    case held(Log) =:= ok andalso replaced(File, Entries) of
        false -> {error, {directory_not_held, File}, Log};
        {ok, New} ->
            _ = file:close(device(Log)),
            {ok, New#log{dir = Dir, purpose = Purpose}};
        {error, Reason} -> {error, Reason, Log}
    end.

%% @doc There is nothing of the partition any more. The file may be another node's by now, as with a
%% commit. After an error it is as it was.
-spec delete(log()) -> ok | {error, term()}.
delete(#log{file = File} = Log) ->
    case first_error([fun() -> held(Log) end, fun() -> file:delete(File) end]) of
        {error, Reason} when Reason =/= enoent -> {error, {Reason, File}};
        _ ->
            %% From a time at which the directory may have been another node's.
            _ = file:delete(beside_file(File)),
            close(Log)
    end.

-spec close(log()) -> ok.
close(Log) ->
    _ = (behind(Log))#behind.written =:= [] orelse file:datasync(device(Log)),
    _ = file:close(device(Log)),
    ok.

device(#log{device = {named, Device}}) -> Device;
device(#log{device = Device}) -> Device.

%% --- beside it --------------------------------------------------------------------------------

%% @doc What is written there is no file of the partition before it is in its place. It is deleted
%% when a file is opened.
-spec beside(log()) -> file:filename().
beside(#log{file = File}) -> beside_file(File).

beside_file(File) -> File ++ ".new".

%% @doc What a file with these entries begins with.
-spec image([entry()]) -> iodata().
image(Entries) -> [?MAGIC | records(Entries)].

-spec records([entry()]) -> iodata().
records(Entries) -> [weft_kv_log_records:one(Entry) || Entry <- Entries].

%% @doc What is in the file behind what is synced.
-spec unsynced(log()) -> iodata().
unsynced(Log) -> lists:reverse((behind(Log))#behind.written).

%% @doc What is beside the file takes its place. It has so many bytes, which are synced, and among
%% them all that the file has, also what is not synced there. What waits goes on to do so, and
%% nothing counts before the next commit. After an error all is as it was.
-spec moved(file:fd(), Bytes :: non_neg_integer(), log()) -> {ok, log()} | {error, term()}.
moved(Device, Bytes, #log{file = File} = Log) ->
    case first_error([fun() -> held(Log) end,
                      fun() -> weft_durable_file:rename(beside_file(File), File) end]) of
        {error, Reason} -> {error, {Reason, File}};
        Renamed ->
            _ = file:close(device(Log)),
            Behind = (behind(Log))#behind{written = [], written_bytes = 0},
            {ok, Log#log{device = named(Renamed, Device, File), bytes = Bytes, behind = Behind}}
    end.
