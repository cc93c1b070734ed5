%% SPDX-License-Identifier: Apache-2.0
%% @doc Records the cluster: on a node with the key `recording', each sample period, the picture and
%% the events that the agents know. They are gathered for a minute and then written as a chunk
%% (`weft_ops_chunk') to the files of a directory (`weft_ops_recording_files').
%%
%% A disk that is full or a directory that is gone is logged once, and once when it is well again;
%% what could not be written is lost, and the node does not notice. So it is with an entry that is
%% larger than what can be read. When the process is killed, the last minute is lost.
-module(weft_ops_recorder).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, flush/0, flush/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, code_change/3]).

-define(CHUNK_MS, 60000).
%% How long the agents are waited for. Each is asked for its events since it told them last, and for
%% those of so much time before that: `weft_ops_reel' knows which of them are written. So one that
%% was cut off tells what is missing, and the others no more for that. One that is not back after so
%% long has most likely ended.
-define(TIMEOUT_MS, 5000).
-define(EVENTS_MS, 30000).
-define(CUT_OFF_MS, 600000).

-record(recorder, {period_ms :: pos_integer(),
                   due_ms :: integer(),
                   chunk = weft_ops_chunk:new() :: weft_ops_chunk:chunk(),
                   reel = weft_ops_reel:new() :: weft_ops_reel:state(),
                   files :: weft_ops_recording_files:writing(),
                   is_failing = false :: boolean(),
                   %% Since when those are asked that have told nothing: when this began.
                   asked_ms :: integer(),
                   %% When agents told their events.
                   told_ms = #{} :: #{node() => integer()},
                   %% How many entries in a row of looks were too large.
                   left_out = 0 :: non_neg_integer()}).

%% @doc With a configuration without `recording' there is no process.
-spec start_link(weft_ops_config:config()) -> {ok, pid()} | ignore | {error, term()}.
start_link(#{recording := none}) ->
    ignore;
start_link(#{recording := Recording, sample_ms := PeriodMs}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Recording, PeriodMs}, []).

%% @doc Writes what was gathered since the last chunk, so that it can be read. It may have to wait
%% until silent agents are waited for no more, and for the disk.
-spec flush() -> ok | {error, not_recording | timeout}.
flush() -> flush(3 * ?TIMEOUT_MS).

%% @doc The same, with the time to wait. After `timeout' it is written later.
-spec flush(TimeoutMs :: pos_integer()) -> ok | {error, not_recording | timeout}.
flush(TimeoutMs) ->
    try gen_server:call(?MODULE, flush, TimeoutMs)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:_ -> {error, not_recording}
    end.

%% @private
-spec init({weft_ops_config:recording(), pos_integer()}) -> {ok, #recorder{}}.
init({Recording, PeriodMs}) ->
    %% What was gathered is written at the end.
    _ = process_flag(trap_exit, true),
    NowMs = now_ms(),
    {ok, timer(#recorder{period_ms = PeriodMs, due_ms = NowMs, asked_ms = NowMs,
                         files = weft_ops_recording_files:new(Recording)})}.

%% Periods that have passed by are left out.
timer(#recorder{due_ms = DueMs, period_ms = PeriodMs} = Recorder) ->
    NextMs = max(DueMs + PeriodMs, now_ms()),
    _ = erlang:start_timer(NextMs, self(), look, [{abs, true}]),
    Recorder#recorder{due_ms = NextMs}.

%% @private
-spec handle_call(term(), gen_server:from(), #recorder{}) -> {reply, term(), #recorder{}}.
handle_call(flush, _From, Recorder) ->
    {reply, ok, written(Recorder)};
handle_call(Request, _From, Recorder) ->
    {reply, weft_stray:call(Request), Recorder}.

%% @private
-spec handle_cast(term(), #recorder{}) -> {noreply, #recorder{}}.
handle_cast(Request, Recorder) ->
    ok = weft_stray:message(Request),
    {noreply, Recorder}.

%% @private
-spec handle_info(term(), #recorder{}) -> {noreply, #recorder{}}.
handle_info({timeout, _Timer, look}, Recorder) ->
    {noreply, timer(full(looked(Recorder)))};
handle_info(Message, Recorder) ->
    ok = weft_stray:message(Message),
    {noreply, Recorder}.

%% @private
-spec terminate(term(), #recorder{}) -> #recorder{}.
terminate(_Reason, Recorder) -> written(Recorder).

%% @private The state of earlier code does not say when agents were asked, or each of them. What it
%% has gathered is written with the next look.
-spec code_change(term(), tuple(), term()) -> {ok, #recorder{}}.
code_change(_Version, #recorder{chunk = Chunk} = Recorder, _Extra) ->
    {ok, Recorder#recorder{chunk = weft_ops_chunk:upgrade(Chunk)}};
code_change(Version, Before, Extra) when tuple_size(Before) =:= 7 ->
    code_change(Version, erlang:append_element(Before, now_ms()), Extra);
code_change(Version, Before, Extra) ->
    code_change(Version, erlang:append_element(erlang:append_element(Before, #{}), 0), Extra).

looked(#recorder{told_ms = ToldMs, asked_ms = AskedMs} = Recorder) ->
    NowMs = now_ms(),
    OffsetMs = erlang:time_offset(millisecond),
    %% Copied to a process for each agent, so nothing large may be in it.
    Since = fun(Agent) ->
                max(maps:get(Agent, ToldMs, AskedMs), NowMs - ?CUT_OFF_MS) - ?EVENTS_MS + OffsetMs
            end,
    %% In this order: what an event tells is in the picture that is written with it.
    {Events, FromWhom} = weft_ops_picture:heard(Since, ?TIMEOUT_MS),
    Picture = weft_ops_picture:take(?TIMEOUT_MS),
    Lately = maps:filter(fun(_, Ms) -> NowMs - Ms < ?CUT_OFF_MS end, ToldMs),
    gathered(erlang:system_time(millisecond), Picture, Events,
             Recorder#recorder{told_ms = maps:merge(Lately, maps:from_keys(FromWhom, NowMs))}).

gathered(AtMs, Picture, Events, #recorder{chunk = Chunk, reel = Reel0} = Recorder) ->
    {Entries, Reel} = weft_ops_reel:entries({AtMs, Picture}, Events, Reel0),
    case weft_ops_chunk:add([{AtMs, Entry} || Entry <- Entries], Chunk) of
        {ok, Next} -> left_out(0, Recorder#recorder{chunk = Next, reel = Reel});
        full -> begun(AtMs, Picture, Events, written(Recorder))
    end.

%% With a whole picture, which may be too large for one chunk.
begun(AtMs, Picture, Events, #recorder{reel = Reel0} = Recorder) ->
    {Entries, Reel} = weft_ops_reel:entries({AtMs, Picture}, Events, Reel0),
    {Chunks, LeftOut} = weft_ops_chunk:several([{AtMs, Entry} || Entry <- Entries]),
    left_out(LeftOut, lists:foldl(fun stored/2,
                                  Recorder#recorder{chunk = lists:last(Chunks), reel = Reel},
                                  lists:droplast(Chunks))).

full(#recorder{chunk = Chunk} = Recorder) ->
    case weft_ops_chunk:first_ms(Chunk) of
        none ->
            Recorder;
        FromMs ->
            AgeMs = erlang:system_time(millisecond) - FromMs,
            %% The clock may have been set back.
            IsFull = AgeMs >= ?CHUNK_MS orelse AgeMs < 0
                orelse weft_ops_chunk:is_full(Chunk),
            case IsFull of
                true -> written(Recorder);
                false -> Recorder
            end
    end.

written(#recorder{chunk = Chunk, reel = Reel} = Recorder) ->
    case weft_ops_chunk:first_ms(Chunk) of
        none -> Recorder;
        _ -> stored(Chunk, Recorder#recorder{chunk = weft_ops_chunk:new(),
                                             reel = weft_ops_reel:forget(Reel)})
    end.

stored(Chunk, #recorder{files = Files0} = Recorder) ->
    case weft_ops_recording_files:append(weft_ops_chunk:first_ms(Chunk),
                                         weft_ops_chunk:encode(Chunk), Files0) of
        {ok, Files} -> well(Recorder#recorder{files = Files});
        {error, Reason, Files} -> failed(Reason, Recorder#recorder{files = Files})
    end.

well(#recorder{is_failing = false} = Recorder) ->
    Recorder;
well(#recorder{files = #{dir := Dir}} = Recorder) ->
    ?LOG_NOTICE("recording: it is written to ~ts again", [Dir]),
    Recorder#recorder{is_failing = false}.

failed(_Reason, #recorder{is_failing = true} = Recorder) ->
    Recorder;
failed(Reason, #recorder{files = #{dir := Dir}} = Recorder) ->
    ?LOG_WARNING("recording: nothing can be written to ~ts (~ts), so it is lost until that is "
                 "mended. Check the disk and the rights, or set another dir or larger bytes_max in "
                 "the key recording of weft_ops.", [Dir, file:format_error(Reason)]),
    Recorder#recorder{is_failing = true}.

left_out(0, #recorder{left_out = 0} = Recorder) ->
    Recorder;
left_out(0, #recorder{left_out = Count} = Recorder) ->
    ?LOG_NOTICE("recording: all is written again; ~b entries were left out", [Count]),
    Recorder#recorder{left_out = 0};
left_out(More, #recorder{left_out = Count} = Recorder) ->
    _ = Count =:= 0 andalso
        ?LOG_WARNING("recording: ~b entries are left out, as each of them alone, such as the "
                     "sample of a node, is larger than what can be read: 64 MiB, or 33,554,432 "
                     "terms. This is not logged again until all is written.", [More]),
    Recorder#recorder{left_out = Count + More}.

now_ms() -> erlang:monotonic_time(millisecond).
