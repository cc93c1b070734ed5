%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of the ring over a restart: a file that is replaced as a whole, with a
%% checksum. Without a directory nothing is remembered.
-module(weft_ring_file).

-export([read/1, write/2, rename/2]).
-export_type([kept/0]).

-type kept() :: #{ring => weft_ring_table:ring(), asked => node()}.

-define(NAME, "ring").
-define(MAGIC, "weft_ring 1\n").

%% @doc What was written last; nothing if nothing was. A file that is damaged is not guessed at: the
%% node could take itself for the owner of what it has handed over.
-spec read(none | file:filename()) -> {ok, kept()} | {error, term()}.
read(none) ->
    {ok, #{}};
read(Dir) ->
    File = filename:join(Dir, ?NAME),
    case file:read_file(File) of
        {error, enoent} -> {ok, #{}};
        {error, Reason} -> {error, {Reason, File}};
        {ok, <<?MAGIC, Checksum:32, Kept/binary>>} ->
            case erlang:crc32(Kept) of
                Checksum -> {ok, binary_to_term(Kept)};
                _ -> {error, {damaged, File}}
            end;
        {ok, _} -> {error, {damaged, File}}
    end.

%% @doc When this returns, it is on disk.
-spec write(none | file:filename(), kept()) -> ok | {error, term()}.
write(none, _Kept) ->
    ok;
write(Dir, Kept) ->
    File = filename:join(Dir, ?NAME),
    New = File ++ ".new",
    Bytes = term_to_binary(Kept),
    case filelib:ensure_dir(File) of
        ok -> replace(New, File, [<<?MAGIC, (erlang:crc32(Bytes)):32>>, Bytes]);
        {error, Reason} -> {error, {Reason, File}}
    end.

replace(New, File, Bytes) ->
    case synced(New, Bytes) of
        ok ->
            case rename(New, File) of
                ok -> ok;
                {error, Reason} -> {error, {Reason, File}}
            end;
        {error, Reason} -> {error, {Reason, New}}
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
