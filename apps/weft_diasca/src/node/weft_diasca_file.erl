%% SPDX-License-Identifier: Apache-2.0
%% @doc A checkpoint on disk: one file that is replaced as a whole, with a checksum. It has terms of
%% actors in it, so it is only for those who trust who has written it.
-module(weft_diasca_file).

-export([read/1, write/2]).

-define(MAGIC, "weft_diasca 1\n").

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

%% @doc When this returns `ok', it is there and its bytes are on disk; until then the one before is
%% there. If the power fails soon after, the host may find that one again, as the directory is not
%% synced. What could not be written or put in its place is not left there.
-spec write(file:filename(), term()) -> ok | {error, term()}.
write(File, Term) ->
    New = File ++ ".new",
    Bytes = term_to_binary(Term, [compressed]),
    case filelib:ensure_dir(File) of
        ok ->
            case replaced(New, File, [?MAGIC, crypto:hash(sha256, Bytes), Bytes]) of
                ok -> ok;
                {error, Reason} ->
                    _ = file:delete(New),
                    {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

replaced(New, File, Bytes) ->
    case synced(New, Bytes) of
        ok -> file:rename(New, File);
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
