%% SPDX-License-Identifier: Apache-2.0
%% @doc Stops applications in the smaller part of a split cluster and starts them again, for
%% `weft_partition'. It does one thing after the other, in the order in which it was asked, so that
%% a split which heals while an application is being stopped leaves it running.
%%
%% What is stopped, and what is to become of it, is a row of `weft_view', which outlives this
%% process: after a restart it goes on from there. What can not be started again now is tried again
%% later: what it needs may not be back yet.
%%
%% An application is started again with the restart type that it had. So OTP ends the node when a
%% permanent or transient one is started and fails, as it does when the node boots. To start it as
%% temporary first would spare the node that, but would start each application twice.
-module(weft_partition_applications).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, child_spec/0, pause/1, resume/0, paused/0]).
-export([init/1, handle_continue/2, handle_cast/2, handle_call/3, handle_info/2]).

-define(AGAIN_MS, 10000).

%% The restart types of what is stopped, in a row of their own: code of an earlier version reads the
%% other row, and writes it without them.
-define(TYPES, {?MODULE, types}).

-type wanted() :: {pause | resume, [atom()]}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}}.

%% @doc Stops those of the applications that run, the first one first. Does not wait for the end.
-spec pause([atom()]) -> ok.
pause(Applications) ->
    gen_server:cast(?MODULE, {pause, Applications}).

%% @doc Starts what was stopped, the last one first.
-spec resume() -> ok.
resume() ->
    gen_server:cast(?MODULE, resume).

%% @doc What is stopped, or is just being stopped or started.
-spec paused() -> [atom()].
paused() ->
    {_, Applications} = wanted(),
    Applications.

-spec wanted() -> wanted().
wanted() ->
    case weft_view:lookup(?MODULE) of
        undefined -> {resume, []};
        Wanted -> Wanted
    end.

%% @private
-spec init([]) -> {ok, none, {continue, again}}.
init([]) ->
    {ok, none, {continue, again}}.

%% @private
-spec handle_continue(again, none) -> {noreply, none}.
handle_continue(again, none) ->
    ok = carried_out(wanted()),
    {noreply, none}.

%% @private
-spec handle_cast(term(), none) -> {noreply, none}.
handle_cast({pause, Applications}, none) ->
    Running = [App || {App, _, _} <- application:which_applications()],
    Paused = paused(),
    Further = [App || App <- Applications -- Paused, lists:member(App, Running)],
    ok = remember_types(Paused, Further),
    ok = want({pause, Paused ++ Further}),
    {noreply, none};
handle_cast(resume, none) ->
    ok = want({resume, paused()}),
    {noreply, none};
handle_cast(Request, none) ->
    ok = weft_stray:message(Request),
    {noreply, none}.

%% @private
-spec handle_call(term(), gen_server:from(), none) -> {reply, {error, term()}, none}.
handle_call(Request, _From, none) ->
    {reply, weft_stray:call(Request), none}.

%% @private
-spec handle_info(term(), none) -> {noreply, none}.
handle_info(again, none) ->
    ok = carried_out(wanted()),
    {noreply, none};
handle_info(Message, none) ->
    ok = weft_stray:message(Message),
    {noreply, none}.

%% Of one that is paused already the type has been seen when it still ran.
remember_types(Paused, Further) ->
    Started = maps:from_list(proplists:get_value(started, application:info())),
    weft_view:put(?MODULE, ?TYPES, maps:merge(maps:with(Further, Started),
                                              maps:with(Paused, types()))).

types() ->
    case weft_view:lookup(?TYPES) of
        undefined -> #{};
        Types -> Types
    end.

want(Wanted) ->
    ok = weft_view:put(?MODULE, ?MODULE, Wanted),
    carried_out(Wanted).

carried_out({pause, Applications}) ->
    lists:foreach(fun application:stop/1, Applications);
carried_out({resume, Applications}) ->
    case [App || App <- lists:reverse(Applications), not is_started(App)] of
        [] ->
            ok = weft_view:delete(?MODULE, ?MODULE),
            weft_view:delete(?MODULE, ?TYPES);
        Failed ->
            _ = erlang:send_after(?AGAIN_MS, self(), again),
            weft_view:put(?MODULE, ?MODULE, {resume, lists:reverse(Failed)})
    end.

is_started(Application) ->
    case start(Application, types(), [Application]) of
        ok -> true;
        {error, Reason} ->
            ?LOG_ERROR(#{weft => ?MODULE, application => Application, reason => Reason,
                         problem => "it was paused, and does not start; it is tried again"}),
            false
    end.

%% What it needs may be paused as well. If it is not, it was stopped by somebody else.
start(Application, Types, Begun) ->
    case application:start(Application, maps:get(Application, Types, temporary)) of
        {error, {already_started, Application}} -> ok;
        {error, {not_started, Needed}} = Error ->
            case not lists:member(Needed, Begun) andalso start(Needed, Types, [Needed | Begun]) of
                ok -> start(Application, Types, [Needed | Begun]);
                false -> Error;
                NeededFails -> NeededFails
            end;
        Result -> Result
    end.
