%% SPDX-License-Identifier: Apache-2.0
%% @doc A file that is replaced as a whole, so that after a failure of the host either the one
%% before is there or the new one, and the new one if this has returned `ok'.
%%
%% `unsynced' says that the new one is there, but its name perhaps not on disk: the host may find
%% the one before after a failure. Whoever has that one open must not go on with it, as it has no
%% name any more.
%%
%% Not here: formats and checksums, which are those of who writes the file.
-module(weft_durable_file).

-export([replace/2, rename/2, sync_name/1]).
-export_type([done/0]).

-type done() :: ok | {unsynced, Reason :: term()} | {error, Reason :: term()}.

%% Some systems do not open directories, or let not everybody do so, and others have nothing to sync
%% there. What is in the way for now, as too many open files, is an error.
-define(IS_NOT_OPENED(Reason), (Reason =:= eacces orelse Reason =:= eisdir orelse Reason =:= eperm
                                    orelse Reason =:= enotsup orelse Reason =:= einval)).

%% @doc Writes the bytes to `File.new', and puts that in place of the file. After an error the file
%% is as it was.
-spec replace(file:filename(), iodata()) -> done().
replace(File, Bytes) ->
    New = File ++ ".new",
    case synced(New, Bytes) of
        ok -> rename(New, File);
        {error, Reason} ->
            %% What was written of it may be the room that the next change needs.
            _ = file:delete(New),
            {error, Reason}
    end.

%% @doc In place of the other file, on disk when this returns `ok'. Without a sync of the directory
%% the host may find the other file again after its power has failed, or none. After an error
%% nothing was renamed.
-spec rename(file:filename(), file:filename()) -> done().
rename(From, To) ->
    case file:rename(From, To) of
        ok ->
            case sync_name(To) of
                ok -> ok;
                {error, Reason} -> {unsynced, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% @doc When this returns `ok', the file that has this name has it on disk, too.
-spec sync_name(file:filename()) -> ok | {error, term()}.
sync_name(File) ->
    case file:open(filename:dirname(File), [raw, read, directory]) of
        {ok, Device} ->
            Synced = file:sync(Device),
            _ = file:close(Device),
            case Synced of
                {error, Reason} when Reason =/= einval, Reason =/= enotsup -> {error, Reason};
                _ -> ok
            end;
        {error, Reason} when ?IS_NOT_OPENED(Reason) -> ok;
        {error, Reason} -> {error, Reason}
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
