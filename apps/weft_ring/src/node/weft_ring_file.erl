%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of the ring over a restart: a file that is replaced as a whole, with a
%% checksum. Without a directory it is a table, which belongs to the supervisor: what the process
%% that runs the ring knew does not end with it.
-module(weft_ring_file).

-export([in_memory/0, read/1, write/2]).
-export_type([kept/0]).

-type kept() :: #{ring => weft_ring_table:ring(), asked => node(), forgotten => boolean()}.

-define(KEPT, weft_ring_kept).
-define(NAME, "ring").
-define(FORMAT, "weft_ring ").
-define(MAGIC, ?FORMAT "1\n").

%% @doc Makes the table of what is kept without a directory, unless it is there. It ends with the
%% calling process.
-spec in_memory() -> ok.
in_memory() ->
    _ = ets:whereis(?KEPT) =/= undefined
        orelse ets:insert(ets:new(?KEPT, [named_table, public]), {kept, #{}}),
    ok.

%% @doc What was written last; nothing if nothing was. A file that is damaged is not guessed at: the
%% node could take itself for the owner of what it has handed over. Nor is that of a later version.
-spec read(none | file:filename()) -> {ok, kept()} | {error, term()}.
read(none) ->
    %% Where the application was started by earlier code there is no table.
    case ets:whereis(?KEPT) of
        undefined -> {ok, #{}};
        Table -> {ok, ets:lookup_element(Table, kept, 2)}
    end;
read(Dir) ->
    File = filename:join(Dir, ?NAME),
    case file:read_file(File) of
        {error, enoent} -> {ok, #{}};
        {error, Reason} -> {error, {Reason, File}};
        {ok, <<?MAGIC, Checksum:32, Kept/binary>>} ->
            case erlang:crc32(Kept) of
                Checksum -> named(File, Kept);
                _ -> {error, {damaged, File}}
            end;
        {ok, <<?FORMAT, Version, "\n", _/binary>>} when Version >= $2, Version =< $9 ->
            {error, {written_by_another_version, File}};
        {ok, _} -> {error, {damaged, File}}
    end.

%% Its writer may have ended before its name was on disk.
named(File, Kept) ->
    case weft_durable_file:sync_name(File) of
        ok -> {ok, binary_to_term(Kept)};
        {error, Reason} -> {error, {Reason, File}}
    end.

%% @doc When this returns `ok', it is on disk. After `unsynced' it may be there after a failure of
%% the host, or what was there before.
-spec write(none | file:filename(), kept()) -> weft_durable_file:done().
write(none, Kept) ->
    case ets:whereis(?KEPT) of
        undefined -> ok;
        Table ->
            true = ets:insert(Table, {kept, Kept}),
            ok
    end;
write(Dir, Kept) ->
    File = filename:join(Dir, ?NAME),
    Bytes = term_to_binary(Kept),
    Written = case filelib:ensure_dir(File) of
                  ok -> weft_durable_file:replace(File, [<<?MAGIC, (erlang:crc32(Bytes)):32>>,
                                                         Bytes]);
                  Failed -> Failed
              end,
    case Written of
        ok -> ok;
        {How, Reason} -> {How, {Reason, File}}
    end.
