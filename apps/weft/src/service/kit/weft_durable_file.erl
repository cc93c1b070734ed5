%% SPDX-License-Identifier: Apache-2.0
%% @doc A file that is replaced as a whole, so that after a failure of the host either the one
%% before is there or the new one, and the new one if this has returned.
%%
%% Not here: formats and checksums, which are those of who writes the file.
-module(weft_durable_file).

-export([replace/2, rename/2]).

%% @doc Writes the bytes to `File.new', and puts that in place of the file. After an error the file
%% is as it was.
-spec replace(file:filename(), iodata()) -> ok | {error, term()}.
replace(File, Bytes) ->
    New = File ++ ".new",
    case synced(New, Bytes) of
        ok -> rename(New, File);
        {error, Reason} ->
            %% What was written of it may be the room that the next change needs.
            _ = file:delete(New),
            {error, Reason}
    end.

%% @doc In place of the other file, on disk when this returns. Without a sync of the directory the
%% host may find the other file again after its power has failed, or none.
-spec rename(file:filename(), file:filename()) -> ok | {error, term()}.
rename(From, To) ->
    case file:rename(From, To) of
        ok -> directory_synced(filename:dirname(To));
        {error, Reason} -> {error, Reason}
    end.

%% Some systems do not open directories, and have nothing to sync then.
directory_synced(Dir) ->
    case file:open(Dir, [raw, read, directory]) of
        {ok, Device} ->
            Synced = file:sync(Device),
            _ = file:close(Device),
            case Synced of
                {error, Reason} when Reason =/= einval, Reason =/= enotsup -> {error, Reason};
                _ -> ok
            end;
        {error, _} -> ok
    end.

synced(File, Bytes) ->
    case file:open(File, [raw, write, binary]) of
        {ok, Device} ->
            Written = case file:write(Device, Bytes) of
                          ok -> file:datasync(Device);
                          {error, Reason} -> {error, Reason}
                      end,
            _ = file:close(Device),
            Written;
        {error, Reason} -> {error, Reason}
    end.
