%% SPDX-License-Identifier: Apache-2.0
%% @doc Stops applications in the smaller part of a split cluster and starts them again, for
%% `weft_partition'. It does one thing after the other, in the order in which it was asked, so that
%% a split which heals while an application is being stopped leaves it running.
%%
%% What is stopped, and what is to become of it, is a row of `weft_view', which outlives this
%% process: after a restart it goes on from there. What can not be started again now is tried again
%% later: what it needs may not be back yet.
-module(weft_partition_applications).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, child_spec/0, pause/1, resume/0, paused/0]).
-export([init/1, handle_continue/2, handle_cast/2, handle_call/3, handle_info/2]).

-define(AGAIN_MS, 10000).

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
    ok = want({pause, Paused ++ [App || App <- Applications -- Paused,
                                        lists:member(App, Running)]}),
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

want(Wanted) ->
    ok = weft_view:put(?MODULE, ?MODULE, Wanted),
    carried_out(Wanted).

carried_out({pause, Applications}) ->
    lists:foreach(fun application:stop/1, Applications);
carried_out({resume, Applications}) ->
    case [App || App <- lists:reverse(Applications), not is_started(App)] of
        [] ->
            weft_view:delete(?MODULE, ?MODULE);
        Failed ->
            _ = erlang:send_after(?AGAIN_MS, self(), again),
            weft_view:put(?MODULE, ?MODULE, {resume, lists:reverse(Failed)})
    end.

is_started(Application) ->
    case application:ensure_all_started(Application) of
        {ok, _} -> true;
        {error, Reason} ->
            ?LOG_ERROR(#{weft => ?MODULE, application => Application, reason => Reason,
                         problem => "it was paused, and does not start; it is tried again"}),
            false
    end.
