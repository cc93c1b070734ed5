%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of its store over a restart: a file of deltas, which is appended to,
%% and rewritten as one state for each key when it has doubled. For the store this is the module
%% that keeps its views (`weft_driver').
%%
%% A record is `<<Bytes:32, Checksum:32, Term/binary>>'. A record that was cut off at the end of the
%% file was never answered; it is dropped and logged. Any other damage stops the start, with the
%% name of the file: a copy of another node is better than half of this one, so remove the file
%% then. Records are in the file when a change is answered, and on the disk when the operating
%% system writes them: the end of a process or node loses nothing, that of the machine may lose the
%% last seconds.
-module(weft_crdt_log).
-behaviour(gen_server).

-export([start_link/2, kept/0, clear/1, put/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(MAGIC, "weft_crdt 1\n").
-define(NAME, "store").

-record(log, {file :: file:filename(), device :: file:io_device(), bytes :: non_neg_integer(),
              %% It is rewritten when it has so many bytes.
              rewrite_at :: pos_integer(), rewrite_min :: pos_integer()}).

%% @doc Opens the file in Dir, or makes it. It is not rewritten before it has so many bytes.
-spec start_link(Dir :: file:filename(), RewriteMinBytes :: pos_integer()) ->
          {ok, pid()} | {error, term()}.
start_link(Dir, RewriteMin) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Dir, RewriteMin}, []).

%% @doc All that was kept.
-spec kept() -> [tuple()].
kept() -> gen_server:call(?MODULE, kept, infinity).

%% @doc See `weft_driver'. What is kept stays.
-spec clear(atom()) -> ok.
clear(_Driver) -> ok.

%% @doc See `weft_driver'. Appends a delta. If it can not be written the caller ends, with the
%% reason: it has not answered yet.
-spec put(atom(), kept, tuple()) -> ok.
put(_Driver, kept, Item) -> gen_server:call(?MODULE, {append, Item}, infinity).

%% @private
init({Dir, RewriteMin}) ->
    File = filename:join(Dir, ?NAME),
    case filelib:ensure_dir(File) of
        ok ->
            case read(File) of
                {ok, Items} -> opened(rewritten(Items, File), File, RewriteMin);
                {error, Reason} -> {stop, {crdt_file, Reason}}
            end;
        {error, Reason} -> {stop, {crdt_file, {Reason, File}}}
    end.

opened({ok, Bytes}, File, RewriteMin) ->
    {ok, Device} = file:open(File, [raw, append, binary]),
    {ok, #log{file = File, device = Device, bytes = Bytes, rewrite_min = RewriteMin,
              rewrite_at = max(RewriteMin, 2 * Bytes)}};
opened({error, Reason}, _, _) ->
    {stop, {crdt_file, Reason}}.

%% @private
handle_call({append, Item}, _From, #log{device = Device, bytes = Bytes} = Log) ->
    Record = record(Item),
    case file:write(Device, Record) of
        ok -> {reply, ok, compacted(Log#log{bytes = Bytes + iolist_size(Record)})};
        {error, Reason} -> {stop, {crdt_file, {Reason, Log#log.file}}, Log}
    end;
handle_call(kept, _From, #log{file = File} = Log) ->
    {ok, Items} = read(File),
    {reply, Items, Log};
handle_call(Request, _From, Log) ->
    {reply, weft_stray:call(Request), Log}.

%% @private
handle_cast(Request, Log) ->
    ok = weft_stray:message(Request),
    {noreply, Log}.

%% @private
handle_info(Message, Log) ->
    ok = weft_stray:message(Message),
    {noreply, Log}.

%% --- the file ---------------------------------------------------------------------------------

record(Item) ->
    Term = term_to_binary(Item),
    [<<(byte_size(Term)):32, (erlang:crc32(Term)):32>>, Term].

compacted(#log{bytes = Bytes, rewrite_at = At} = Log) when Bytes < At ->
    Log;
compacted(#log{file = File, device = Device, rewrite_min = Min} = Log) ->
    {ok, Items} = read(File),
    ok = file:close(Device),
    {ok, #log{} = New} = opened(rewritten(Items, File), File, Min),
    Log#log{device = New#log.device, bytes = New#log.bytes, rewrite_at = New#log.rewrite_at}.

%% One record for each key, in place of the file.
rewritten(Items, File) ->
    Entries = weft_crdt_entries:learn_all(Items, weft_crdt_entries:new(1 bsl 59)),
    Bytes = [?MAGIC | [record(Item) || Item <- weft_crdt_entries:packed(Entries)]],
    case synced(File ++ ".new", Bytes) of
        ok ->
            case file:rename(File ++ ".new", File) of
                ok -> {ok, iolist_size(Bytes)};
                {error, Reason} -> {error, {Reason, File}}
            end;
        {error, Reason} -> {error, {Reason, File}}
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

read(File) ->
    case file:read_file(File) of
        {error, enoent} -> {ok, []};
        {error, Reason} -> {error, {Reason, File}};
        {ok, <<?MAGIC, Records/binary>>} -> items(Records, File, []);
        {ok, _} -> {error, {damaged, File}}
    end.

items(<<>>, _, Items) ->
    {ok, lists:reverse(Items)};
items(<<Bytes:32, Checksum:32, Term:Bytes/binary, Rest/binary>>, File, Items) ->
    case erlang:crc32(Term) of
        Checksum -> items(Rest, File, [binary_to_term(Term) | Items]);
        _ when Rest =:= <<>> -> cut_off(File, byte_size(Term), Items);
        _ -> {error, {damaged, File}}
    end;
items(CutOff, File, Items) ->
    cut_off(File, byte_size(CutOff), Items).

cut_off(File, Bytes, Items) ->
    logger:warning("weft_crdt: the last record of ~ts was cut off (~b bytes) and is left out",
                   [File, Bytes]),
    {ok, lists:reverse(Items)}.
