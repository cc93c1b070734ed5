%% SPDX-License-Identifier: Apache-2.0
%% @doc A checkpoint on disk: one file that is replaced as a whole, with a checksum. It has terms of
%% actors in it, so it is only for those who trust who has written it.
-module(weft_diasca_file).

-export([read/1, write/2, check/1]).

-define(MAGIC, "weft_diasca 1\n").
%% Some systems do not open directories, or let not everybody do so.
-define(IS_NOT_OPENED(Reason), (Reason =:= eacces orelse Reason =:= eisdir orelse Reason =:= eperm
                                    orelse Reason =:= enotsup orelse Reason =:= einval)).

%% @doc What was written; a file that is damaged or something else is not guessed at.
-spec read(file:filename()) -> {ok, term()} | {error, damaged | file:posix()}.
read(File) ->
    case file:read_file(File) of
        {ok, <<?MAGIC, Checksum:32/binary, Bytes/binary>>} ->
            case crypto:hash(sha256, Bytes) of
                Checksum -> {ok, binary_to_term(Bytes)};
                _ -> {error, damaged}
            end;
        {ok, _} -> {error, damaged};
        {error, Reason} -> {error, Reason}
    end.

%% @doc When this returns `ok', it is there and on disk; until it is there, the one before is. What
%% could not be written or put in its place is not left there. Two who write to one file do not
%% mix: each has a new file of its own, which stays if the emulator is killed meanwhile. If the last
%% step fails, the sync of the directory, it is there, but perhaps not after a failure of the host.
%% Directories that it makes are not synced in those that they are in.
-spec write(file:filename(), term()) -> ok | {error, term()}.
write(File, Term) ->
    Bytes = term_to_binary(Term, [compressed]),
    in_place(File, fun(New) ->
                           case synced(New, [?MAGIC, crypto:hash(sha256, Bytes), Bytes]) of
                               ok -> renamed(New, File);
                               {error, Reason} -> {error, Reason}
                           end
                   end).

%% @doc Whether it could be written, as far as that can be known without replacing anything.
-spec check(file:filename()) -> ok | {error, term()}.
check(File) ->
    in_place(File, fun(New) ->
                           case filelib:is_dir(File) of
                               true -> {error, eisdir};
                               false -> emptied(New)
                           end
                   end).

emptied(New) ->
    case file:write_file(New, []) of
        ok -> file:delete(New);
        {error, Reason} -> {error, Reason}
    end.

in_place(File, Write) ->
    Own = binary:encode_hex(crypto:strong_rand_bytes(8)),
    New = File ++ "." ++ binary_to_list(Own) ++ ".new",
    case filelib:ensure_dir(File) of
        ok ->
            case Write(New) of
                ok -> ok;
                {error, Reason} ->
                    _ = file:delete(New),
                    {error, Reason}
            end;
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

%% If the power fails before the directory is on disk, too, the host may find the one before.
renamed(New, File) ->
    case file:rename(New, File) of
        ok -> directory_synced(filename:dirname(File));
        {error, Reason} -> {error, Reason}
    end.

%% As `weft_durable_file:sync_name/1' of weft, on which this application does not depend.
directory_synced(Directory) ->
    case file:open(Directory, [raw, read, directory]) of
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
