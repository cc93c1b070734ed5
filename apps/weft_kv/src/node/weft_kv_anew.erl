%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes the file of a partition anew, a piece at a time, so that nobody has to wait for all
%% of it. This goes on beside the file (`weft_kv_log:beside/1'), which is written to meanwhile as
%% always, and is all that counts.
%%
%% First come the entries of what there is, each as it is when its piece is written. Behind them
%% comes all that was added to the file since the beginning, as it is there. So whoever reads the
%% new file finds what the old one says: of what was changed meanwhile the last change, and of
%% anything else what it was all the time. Then it is synced, and takes the place of the old one.
%%
%% A piece is at least twice what was added to the file since the last one, so this comes to its
%% end. It is synced every few pieces, as all of it at the end would take long. Wherever it ends
%% before, the file is as it was. After an error nothing is left of it, unless the directory may be
%% another node's.
-module(weft_kv_anew).

-export([start/2, step/3, stop/2]).
-export_type([run/0, next/0]).

-record(run, {to :: file:fd(),
              %% So much is written there, and so much of that is not synced.
              bytes = 0 :: non_neg_integer(),
              unsynced = 0 :: non_neg_integer(),
              from :: file:fd(),
              %% What was added before this is there, or need not be.
              copied :: non_neg_integer(),
              %% How large the file was when the last piece was written.
              seen :: non_neg_integer(),
              cursor = start :: weft_vnode:cursor()}).
-opaque run() :: #run{}.

%% The entries behind a cursor: not many more than so many bytes.
-type next() :: fun((weft_vnode:cursor(), BytesMax :: pos_integer()) ->
                        {[weft_kv_log:entry()], weft_vnode:cursor()}).

-define(PIECE_BYTES, 262144).
-define(UNSYNCED_BYTES, 1000000).

%% @doc The new file begins with these entries.
-spec start([weft_kv_log:entry()], weft_kv_log:log()) -> {ok, run()} | {error, term()}.
start(First, Log) ->
    File = weft_kv_log:file(Log),
    case weft_kv_log:held(Log) =:= ok andalso file:open(File, [raw, read, binary]) of
        false -> {error, {directory_not_held, File}};
        {ok, From} -> begun(From, First, Log);
        {error, Reason} -> {error, {Reason, File}}
    end.

begun(From, First, Log) ->
    New = weft_kv_log:beside(Log),
    case file:open(New, [raw, write, binary]) of
        {ok, To} ->
            written(weft_kv_log:image(First),
                    #run{to = To, from = From, copied = weft_kv_log:synced_bytes(Log),
                         seen = weft_kv_log:bytes(Log)}, Log);
        {error, Reason} ->
            _ = file:close(From),
            {error, {Reason, New}}
    end.

%% @doc One piece more, best after a commit. `done' is the log with the new file, for which the next
%% commit counts.
-spec step(next(), run(), weft_kv_log:log()) ->
          {more, run()} | {done, weft_kv_log:log()} | {error, term()}.
step(Next, #run{cursor = Cursor, seen = Seen} = Run0, Log) ->
    Bytes = weft_kv_log:bytes(Log),
    Max = max(?PIECE_BYTES, 2 * (Bytes - Seen)),
    Run = Run0#run{seen = Bytes},
    case Cursor of
        done -> added(Max, Run, Log);
        _ -> piece(Next(Cursor, Max), Max, Run, Log)
    end.

piece({Entries, Cursor}, Max, Run0, Log) ->
    case written(weft_kv_log:records(Entries), Run0#run{cursor = Cursor}, Log) of
        {ok, Run} when Cursor =:= done -> added(Max, Run, Log);
        {ok, Run} -> {more, Run};
        {error, Reason} -> {error, Reason}
    end.

%% What is synced in the file is never written over. What is behind that may be, if a sync fails, so
%% it comes last, from memory.
added(Max, #run{copied = Copied} = Run, Log) ->
    case {weft_kv_log:synced_bytes(Log) - Copied, read(Max, Run, Log)} of
        {_, {error, Reason}} -> failed(Reason, Run, Log);
        {Left, {ok, Bytes}} when Left > Max -> more(Bytes, Run, Log);
        {_, {ok, Bytes}} -> last(Bytes, Run, Log)
    end.

read(Max, #run{from = From, copied = Copied}, Log) ->
    case min(Max, weft_kv_log:synced_bytes(Log) - Copied) of
        0 -> {ok, <<>>};
        Size ->
            case file:pread(From, Copied, Size) of
                {ok, Bytes} when byte_size(Bytes) =:= Size -> {ok, Bytes};
                {error, Reason} -> {error, Reason};
                %% Somebody else has cut it off.
                _ -> {error, too_short}
            end
    end.

more(Bytes, #run{copied = Copied} = Run0, Log) ->
    case written(Bytes, Run0#run{copied = Copied + byte_size(Bytes)}, Log) of
        {ok, Run} -> {more, Run};
        {error, Reason} -> {error, Reason}
    end.

last(Bytes, Run0, Log) ->
    case written([Bytes | weft_kv_log:unsynced(Log)], Run0, Log) of
        {ok, #run{to = To, from = From, bytes = Size} = Run} ->
            case synced(Run) of
                {ok, _} ->
                    case weft_kv_log:moved(To, Size, Log) of
                        {ok, New} ->
                            _ = file:close(From),
                            {done, New};
                        {error, Reason} -> failed(Reason, Run, Log)
                    end;
                {error, Reason} -> failed(Reason, Run, Log)
            end;
        {error, Reason} -> {error, Reason}
    end.

written(Bytes, #run{to = To, bytes = Before, unsynced = Unsynced} = Run, Log) ->
    Size = iolist_size(Bytes),
    case weft_kv_log:held(Log) =:= ok andalso file:write(To, Bytes) of
        false -> failed(directory_not_held, Run, Log);
        {error, Reason} -> failed(Reason, Run, Log);
        ok ->
            New = Run#run{bytes = Before + Size, unsynced = Unsynced + Size},
            case New#run.unsynced > ?UNSYNCED_BYTES andalso synced(New) of
                false -> {ok, New};
                {ok, Synced} -> {ok, Synced};
                {error, Reason} -> failed(Reason, Run, Log)
            end
    end.

synced(#run{to = To} = Run) ->
    case file:datasync(To) of
        ok -> {ok, Run#run{unsynced = 0}};
        {error, Reason} -> {error, Reason}
    end.

failed(Reason, Run, Log) ->
    ok = stop(Run, Log),
    {error, {Reason, weft_kv_log:beside(Log)}}.

%% @doc Nothing is left of it. What is beside the file may be another node's, if the directory is.
-spec stop(run(), weft_kv_log:log()) -> ok.
stop(#run{to = To, from = From}, Log) ->
    _ = [file:close(Device) || Device <- [To, From]],
    _ = weft_kv_log:held(Log) =:= ok andalso file:delete(weft_kv_log:beside(Log)),
    ok.
