%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node remembers of its store over a restart: a file of deltas, which is appended to,
%% and rewritten as one state for each key when it has doubled. For the store this is the module
%% that keeps its views (`weft_driver').
%%
%% A record is `<<Bytes:32, Checksum:32, Term/binary>>'. A record that was cut off at the end of the
%% file was never answered; it is dropped and logged, also if the file system has put zeros in place
%% of its rest. Any other damage stops the start, with the name of the file: a copy of another node
%% is better than half of this one, so remove the file then. Records are in the file when a change
%% is answered, and on the disk when the operating system writes them: the end of a process or node
%% loses nothing, that of the machine may lose the last seconds.
%%
%% What can not be written, on a full disk, for example, has not happened: what was begun of it is
%% cut off, and the store is told (`keep/2'). If there is no room for a file that is rewritten, or
%% the one that there is can not be read at that moment, that one goes on. A store that begins waits
%% until it can be read. So does the log itself, for some seconds, where there is no file descriptor
%% or no memory for it.
%%
%% A node that stood still may have lost its directory to another one. It is asked before anything
%% is written, and once more before it counts (`weft_directory_lock:is_held/2'); a change waits,
%% and with it the store, until that is known, or the lock has ended, and with it all of this.
-module(weft_crdt_log).
-behaviour(gen_server).

-export([start_link/2, kept/0, clear/1, keep/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1, code_change/3]).

-define(FORMAT, "weft_crdt ").
-define(MAGIC, ?FORMAT "1\n").
-define(NAME, "store").
%% The lock has to look at its file, or others have to close theirs.
-define(AGAIN_MS, 50).
%% That something waits is said with the first of so many tries, so once in ten seconds.
-define(SAID_EACH, 200).
%% The start is given up after so many tries: who starts the application has to hear of that. When
%% its supervisor starts the log anew, it tries without end: so many tries take longer than the time
%% in which restarts are counted (`weft_crdt_sup').
-define(BEGIN_TRIES, 250).
%% Of the file, and it does not pass.
-define(IS_FAULT(Reason), (Reason =:= damaged orelse Reason =:= written_by_another_version)).
%% It is no fault of the file.
-define(IS_PASSING(Reason), (Reason =:= emfile orelse Reason =:= enfile orelse Reason =:= enomem
                                 orelse Reason =:= eagain)).
%% That a rewrite took long is said.
-define(LONG_MS, 1000).

-record(log, {file :: file:filename(), device :: file:io_device(), bytes :: non_neg_integer(),
              %% It is rewritten when it has so many bytes.
              rewrite_at :: pos_integer(), rewrite_min :: pos_integer(),
              %% So many bytes could not be written, which was said.
              failing = false :: false | pos_integer()}).

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

%% @doc See `weft_driver'. Appends deltas. After an error none of them is there.
-spec keep(atom(), [{kept, tuple()}]) -> ok | {error, {Reason :: term(), file:filename()}}.
keep(_Driver, Views) ->
    gen_server:call(?MODULE, {append, [Item || {kept, Item} <- Views]}, infinity).

%% @private
init({Dir, RewriteMin}) ->
    File = filename:join(Dir, ?NAME),
    case filelib:ensure_dir(File) of
        ok -> begun(File, RewriteMin, 0);
        {error, Reason} -> {stop, {crdt_file, {Reason, File}}}
    end.

begun(File, RewriteMin, Tries) ->
    case log_of(read(File), File, RewriteMin) of
        {ok, Log} -> {ok, Log};
        {error, {Reason, _}} when ?IS_PASSING(Reason), Tries < ?BEGIN_TRIES ->
            ok = unread(Reason, Tries, File),
            receive after ?AGAIN_MS -> begun(File, RewriteMin, Tries + 1) end;
        {error, Reason} -> {stop, {crdt_file, Reason}}
    end.

log_of({ok, Items, Before}, File, RewriteMin) ->
    case rewritten(Items, File) of
        {ok, Bytes} -> opened(Bytes, File, RewriteMin);
        {error, {Reason, _}} when Before > 0, Reason =/= directory_not_held ->
            as_it_is(opened(Before, File, RewriteMin), Reason);
        {error, Reason} -> {error, Reason}
    end;
log_of({error, Reason}, _File, _RewriteMin) ->
    {error, Reason}.

as_it_is({ok, #log{file = File} = Log}, Why) ->
    logger:warning("weft_crdt: ~ts can not be rewritten (~0tp), and grows on", [File, Why]),
    case trimmed(Log) of
        ok -> {ok, Log};
        {error, Reason} -> {error, {Reason, File}}
    end;
as_it_is({error, Reason}, _Why) ->
    {error, Reason}.

opened(Bytes, File, RewriteMin) ->
    case file:open(File, [raw, append, binary]) of
        {ok, Device} ->
            {ok, #log{file = File, device = Device, bytes = Bytes, rewrite_min = RewriteMin,
                      rewrite_at = max(RewriteMin, 2 * Bytes)}};
        {error, Reason} -> {error, {Reason, File}}
    end.

unread(Reason, Tries, File) ->
    _ = Tries rem ?SAID_EACH =:= 0 andalso
        logger:warning("weft_crdt: ~ts can not be read now (~0tp). The store waits until it can, "
                       "and all that is asked of it waits behind it", [File, Reason]),
    ok.

%% Behind what is whole there may be the beginning of what was not written.
trimmed(#log{device = Device, bytes = Bytes}) ->
    case file:position(Device, Bytes) of
        {ok, Bytes} -> file:truncate(Device);
        {error, Reason} -> {error, Reason}
    end.

%% @private
handle_call(Request, From, Log) ->
    weft_redact:run(fun() -> asked(Request, From, Log) end).

asked({append, Items}, From, Log) ->
    appended(Items, From, 0, Log);
asked(kept, From, Log) ->
    given(From, 0, Log);
asked(Request, _From, Log) ->
    {reply, weft_stray:call(Request), Log}.

%% To the store, which begins with it. What is written behind damage would not be read.
given(From, Tries, #log{file = File} = Log) ->
    case read(File) of
        {ok, Items, _} ->
            gen_server:reply(From, Items),
            {noreply, Log};
        {error, {Fault, _} = Reason} when ?IS_FAULT(Fault) -> {stop, {crdt_file, Reason}, Log};
        {error, {Reason, _}} ->
            ok = unread(Reason, Tries, File),
            _ = erlang:send_after(?AGAIN_MS, self(), {kept, From, Tries + 1}),
            {noreply, Log}
    end.

%% What is written twice is the same.
appended(Items, From, Tries, #log{file = File, device = Device, bytes = Bytes} = Log) ->
    Records = [record(Item) || Item <- Items],
    case is_held(File) andalso file:write(Device, Records) of
        ok ->
            Size = iolist_size(Records),
            Written = written(Size, Log#log{bytes = Bytes + Size}),
            case is_held(File) of
                true ->
                    gen_server:reply(From, ok),
                    compacted(Written);
                false -> again(Items, From, Tries, Written)
            end;
        false -> again(Items, From, Tries, Log);
        {error, Reason} -> not_written({Reason, iolist_size(Records)}, From, trimmed(Log), Log)
    end.

%% A small change may have room where a large one has none.
written(Size, #log{failing = Failing, file = File} = Log)
  when is_integer(Failing), Size >= Failing ->
    logger:notice("weft_crdt: ~ts can be written again", [File]),
    Log#log{failing = false};
written(_Size, Log) ->
    Log.

%% As it was before. If it can not be made so, the next process does not read what was begun.
not_written({Reason, Size}, From, ok, #log{file = File, failing = Failing} = Log) ->
    _ = Failing =/= false orelse
        logger:error("weft_crdt: ~ts can not be written: ~0tp. This is said once; changes have not "
                     "happened until it can be written again", [File, Reason]),
    gen_server:reply(From, {error, {Reason, File}}),
    {noreply, Log#log{failing = Size}};
not_written(_, _, {error, Reason}, #log{file = File} = Log) ->
    {stop, {crdt_file, {Reason, File}}, Log}.

again(Items, From, Tries, #log{file = File} = Log) ->
    _ = Tries rem ?SAID_EACH =:= 0 andalso
        logger:warning("weft_crdt: ~ts may be another node's by now (directory_not_held). A change "
                       "waits until that is known, and all that is asked of the store waits "
                       "behind it", [File]),
    _ = erlang:send_after(?AGAIN_MS, self(), {append, Items, From, Tries + 1}),
    {noreply, Log}.

is_held(File) -> weft_directory_lock:is_held(filename:dirname(File), weft_crdt).

%% @private
handle_cast(Request, Log) ->
    ok = weft_stray:message(Request),
    {noreply, Log}.

%% @private
handle_info({append, Items, From, Tries}, Log) ->
    weft_redact:run(fun() -> appended(Items, From, Tries, Log) end);
handle_info({kept, From, Tries}, Log) ->
    weft_redact:run(fun() -> given(From, Tries, Log) end);
handle_info(Message, Log) ->
    ok = weft_stray:message(Message),
    {noreply, Log}.

%% What users have stored is not for logs.
%% @private
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> weft_redact:status(Status, ?MODULE).

%% Earlier code did not know whether it was failing.
%% @private
-spec code_change(term(), tuple(), term()) -> {ok, #log{}}.
code_change(_Version, {log, File, Device, Bytes, RewriteAt, RewriteMin}, _Extra) ->
    {ok, #log{file = File, device = Device, bytes = Bytes, rewrite_at = RewriteAt,
              rewrite_min = RewriteMin}};
code_change(_Version, #log{} = Log, _Extra) ->
    {ok, Log}.

%% --- the file ---------------------------------------------------------------------------------

record(Item) ->
    Term = term_to_binary(Item),
    [<<(byte_size(Term)):32, (erlang:crc32(Term)):32>>, Term].

compacted(#log{bytes = Bytes, rewrite_at = At} = Log) when Bytes < At ->
    {noreply, Log};
compacted(#log{file = File} = Log) ->
    StartMs = erlang:monotonic_time(millisecond),
    case read(File) of
        {ok, Items, _} -> compacted(rewritten(Items, File), StartMs, Log);
        %% What is written behind it would not be read.
        {error, {Fault, _} = Reason} when ?IS_FAULT(Fault) -> {stop, {crdt_file, Reason}, Log};
        {error, Reason} -> {noreply, grows_on(Reason, Log)}
    end.

%% The former device is closed first: there may be no descriptor for one more. If another process
%% has taken that one, the next log waits for it.
compacted({ok, Bytes}, StartMs, #log{file = File, device = Device, rewrite_min = Min} = Before) ->
    _ = file:close(Device),
    case opened(Bytes, File, Min) of
        {ok, Log} ->
            ok = lasted(erlang:monotonic_time(millisecond) - StartMs, Log),
            {noreply, Log};
        {error, Reason} -> {stop, {crdt_file, Reason}, Before}
    end;
compacted({error, Reason}, _StartMs, Log) ->
    {noreply, grows_on(Reason, Log)}.

%% Perhaps there is no room for both, or no descriptor now. All is in the file that there is.
grows_on(Reason, #log{bytes = Bytes} = Log) ->
    logger:warning("weft_crdt: a file was not rewritten, and grows on: ~0tp", [Reason]),
    Log#log{rewrite_at = 2 * Bytes}.

%% The store waits for it with its next change.
lasted(Ms, #log{file = File, bytes = Bytes}) when Ms >= ?LONG_MS ->
    logger:warning("weft_crdt: ~ts was rewritten, which took ~b ms. It has ~b bytes now, and is "
                   "rewritten again when it has twice as many", [File, Ms, Bytes]);
lasted(_Ms, _Log) ->
    ok.

%% One record for each key, in place of the file.
rewritten(Items, File) ->
    Entries = weft_crdt_entries:learn_all(Items, weft_crdt_entries:new(1 bsl 59)),
    Bytes = [?MAGIC | [record(Item) || Item <- weft_crdt_entries:packed(Entries)]],
    case is_held(File) andalso weft_durable_file:replace(File, Bytes) of
        ok -> {ok, iolist_size(Bytes)};
        false -> {error, {directory_not_held, File}};
        %% What is written from now on belongs into this one: the former file has no name any more.
        {unsynced, Reason} ->
            logger:warning("weft_crdt: ~ts was rewritten, and its directory can not be synced "
                           "(~0tp); a failure of the machine may bring the former file back",
                           [File, Reason]),
            {ok, iolist_size(Bytes)};
        {error, Reason} -> {error, {Reason, File}}
    end.

%% And how many bytes of the file are whole.
read(File) ->
    case file:read_file(File) of
        {error, enoent} -> {ok, [], 0};
        {error, Reason} -> {error, {Reason, File}};
        {ok, <<?MAGIC, Records/binary>> = Bytes} -> items(Records, byte_size(Bytes), File, []);
        {ok, <<?FORMAT, Version, "\n", _/binary>>} when Version >= $2, Version =< $9 ->
            {error, {written_by_another_version, File}};
        {ok, _} -> {error, {damaged, File}}
    end.

items(<<>>, Whole, _, Items) ->
    {ok, lists:reverse(Items), Whole};
items(Left, Bytes, File, Items) ->
    case first(Left) of
        {Term, Rest} -> items(Rest, Bytes, File, [binary_to_term(Term) | Items]);
        none ->
            case is_cut_off(Left) of
                true -> cut_off(File, Bytes, byte_size(Left), Items);
                false -> {error, {damaged, File}}
            end
    end.

%% No term is empty: `Bytes' are 0 only where zeros were put.
first(<<Bytes:32, Checksum:32, Term:Bytes/binary, Rest/binary>>) when Bytes > 0 ->
    case erlang:crc32(Term) of
        Checksum -> {Term, Rest};
        _ -> none
    end;
first(_) -> none.

%% Whether what is no record is the beginning of one, and perhaps zeros. Not so if records follow,
%% or if it is one but for its length: then that is damaged, and all behind it would be lost.
is_cut_off(<<_:32, Checksum:32, Rest/binary>> = Left) when Rest =/= <<>> ->
    (not is_whole(Left) orelse binary:last(Left) =:= 0)
        andalso erlang:crc32(Rest) =/= Checksum
        andalso not has_record(Left);
is_cut_off(_) -> true.

is_whole(<<Bytes:32, _:32, _:Bytes/binary, _/binary>>) -> true;
is_whole(_) -> false.

%% Each term begins with 131 (the format of the VM's terms).
has_record(<<_:64, 131, _/binary>> = Left) -> first(Left) =/= none orelse has_record_later(Left);
has_record(Left) -> has_record_later(Left).

has_record_later(<<_, Rest/binary>>) -> has_record(Rest);
has_record_later(<<>>) -> false.

cut_off(File, Bytes, Left, Items) ->
    logger:warning("weft_crdt: the last record of ~ts was cut off (~b bytes) and is left out",
                   [File, Left]),
    {ok, lists:reverse(Items), Bytes - Left}.
