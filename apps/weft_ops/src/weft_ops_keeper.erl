%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps what watches a node from ending the node.
%%
%% When the processes of an application (weft_ops, weft_dashboard) have ended too often for their
%% supervisor, it ends, too. Then they are all started again after a pause, for ever. Without this
%% the application would end, and with it the node where the application is permanent, as those of a
%% release are.
-module(weft_ops_keeper).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% How long one that was started before may take to end.
-define(FORMER_MS, 10000).

-type start() :: {module(), atom(), [term()]}.

-record(keeper, {application :: atom(),
                 start :: start(),
                 pause_ms :: pos_integer(),
                 kept = none :: none | pid()}).

%% @doc Start is the function that starts the supervisor of that application's processes, linked to
%% its caller. If it fails the first time, so does this.
-spec start_link(Application :: atom(), start(), PauseMs :: pos_integer()) ->
          {ok, pid()} | {error, term()}.
start_link(Application, Start, PauseMs) ->
    gen_server:start_link(?MODULE, {Application, Start, PauseMs}, []).

%% @private
-spec init({atom(), start(), pos_integer()}) -> {ok, #keeper{}} | {stop, term()}.
init({Application, Start, PauseMs}) ->
    _ = process_flag(trap_exit, true),
    case started(Start) of
        {ok, Kept} -> {ok, #keeper{application = Application, start = Start, pause_ms = PauseMs,
                                   kept = Kept}};
        {error, Reason} -> {stop, Reason}
    end.

%% When this process is killed, the supervisor ends a moment later than that.
started({Module, Function, Arguments} = Start) ->
    case apply(Module, Function, Arguments) of
        {error, {already_started, Former}} ->
            Monitor = monitor(process, Former),
            receive {'DOWN', Monitor, process, _, _} -> started(Start)
            after ?FORMER_MS -> demonitor(Monitor, [flush]), {error, former_does_not_end}
            end;
        Other ->
            Other
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #keeper{}) -> {reply, term(), #keeper{}}.
handle_call(Request, _From, Keeper) ->
    {reply, weft_stray:call(Request), Keeper}.

%% @private
-spec handle_cast(term(), #keeper{}) -> {noreply, #keeper{}}.
handle_cast(Request, Keeper) ->
    ok = weft_stray:message(Request),
    {noreply, Keeper}.

%% @private
-spec handle_info(term(), #keeper{}) -> {noreply, #keeper{}}.
handle_info({'EXIT', Kept, Reason}, #keeper{kept = Kept} = Keeper) ->
    {noreply, ended(Reason, Keeper)};
%% Of one that could not start.
handle_info({'EXIT', _Other, _Reason}, Keeper) ->
    {noreply, Keeper};
handle_info(start, #keeper{start = Start, kept = none} = Keeper) ->
    case started(Start) of
        {ok, Kept} -> {noreply, Keeper#keeper{kept = Kept}};
        {error, Reason} -> {noreply, ended(Reason, Keeper)}
    end;
handle_info(Message, Keeper) ->
    ok = weft_stray:message(Message),
    {noreply, Keeper}.

ended(Reason, #keeper{application = Application, pause_ms = PauseMs} = Keeper) ->
    ?LOG_ERROR("~s: its processes end again and again (~0tP), see the reports before this one. "
               "They are started again in ~b ms; until then it does nothing.",
               [Application, Reason, 20, PauseMs]),
    _ = erlang:send_after(PauseMs, self(), start),
    Keeper#keeper{kept = none}.

%% @private
-spec terminate(term(), #keeper{}) -> ok.
terminate(_Reason, #keeper{kept = none}) ->
    ok;
terminate(_Reason, #keeper{kept = Kept}) ->
    Monitor = monitor(process, Kept),
    true = exit(Kept, shutdown),
    receive {'DOWN', Monitor, process, _, _} -> ok end.
