%% SPDX-License-Identifier: Apache-2.0
%% @doc Has the newest model of the cluster, and takes a new one each period while there is a
%% browser. Nobody is asked as long as there is none.
%%
%% A worker takes it, so that an agent that does not answer delays nothing here, and what can not be
%% shown ends nothing. One that takes too long is ended. Only the newest model is kept, in a table
%% that whoever serves a browser reads. These processes get `weft_dashboard_changed' when there is a
%% newer one.
-module(weft_dashboard_model).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, subscribe/0, newest/0, current/0, find/1, known/0, alarm_id/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([see/2]).

-define(TAKE_MS, 10000).

-record(dashboard, {source :: weft_dashboard_config:source(),
                    known = none :: term(),
                    period_ms :: pos_integer(),
                    browsers_max :: pos_integer(),
                    browsers = #{} :: #{pid() => reference()},
                    number :: pos_integer(),
                    taken_ms = never :: never | integer(),
                    %% Whether a tick is under way: there is one at most.
                    is_ticking = false :: boolean(),
                    worker = none :: none | {pid(), reference()},
                    %% So that what can not be seen is logged once.
                    is_failing = false :: boolean(),
                    waiting = [] :: [gen_server:from()]}).

-spec start_link(weft_dashboard_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc From now on the caller, which serves a browser, is told of newer models.
-spec subscribe() -> ok | {error, too_many | not_running}.
subscribe() -> call(subscribe, infinity).

%% @doc The newest model, without asking for one.
-spec newest() -> none | weft_dashboard_feed_core:numbered().
newest() -> look_up(newest, none).

%% @doc A model that is not older than a period.
-spec current() -> {ok, weft_dashboard_feed_core:numbered()} | {error, not_running | timeout}.
current() -> call(current, ?TAKE_MS + 1000).

%% @doc The node of that name, if it is in the newest model. So no atom is made of what a browser
%% says.
-spec find(binary()) -> {ok, node()} | error.
find(Text) -> maps:find(Text, known()).

%% @doc The nodes of the newest model.
-spec known() -> #{binary() => node()}.
known() -> look_up(nodes, #{}).

%% @doc The alarm that is called so in the newest model.
-spec alarm_id(binary()) -> {ok, weft_ops_alarms_core:id()} | error.
alarm_id(Text) -> maps:find(Text, look_up(alarms, #{})).

look_up(Key, Default) ->
    try ets:lookup(?MODULE, Key) of
        [{Key, Value}] -> Value;
        [] -> Default
    catch error:badarg -> Default
    end.

call(Request, TimeoutMs) ->
    try gen_server:call(?MODULE, Request, TimeoutMs)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:_ -> {error, not_running}
    end.

%% @private Numbers go on over restarts, as far as the clock does: a browser that has a model of the
%% process before does not take this one for it.
-spec init(weft_dashboard_config:config()) -> {ok, #dashboard{}}.
init(#{period_ms := PeriodMs, browsers_max := BrowsersMax, source := Source}) ->
    ?MODULE = ets:new(?MODULE, [named_table, {read_concurrency, true}]),
    {ok, #dashboard{source = Source, period_ms = PeriodMs, browsers_max = BrowsersMax,
                    number = max(1, erlang:system_time(millisecond))}}.

%% @private
-spec handle_call(term(), gen_server:from(), #dashboard{}) ->
          {reply, term(), #dashboard{}} | {noreply, #dashboard{}}.
handle_call(subscribe, _From, #dashboard{browsers = Browsers, browsers_max = Max} = Dashboard)
  when map_size(Browsers) >= Max ->
    {reply, {error, too_many}, Dashboard};
handle_call(subscribe, {Browser, _}, #dashboard{browsers = Browsers} = Dashboard) ->
    Subscribed = Browsers#{Browser => monitor(process, Browser)},
    {reply, ok, ticking(0, Dashboard#dashboard{browsers = Subscribed})};
handle_call(current, From, #dashboard{waiting = Waiting} = Dashboard) ->
    case is_fresh(Dashboard) of
        true -> {reply, {ok, newest()}, Dashboard};
        false -> {noreply, take(Dashboard#dashboard{waiting = [From | Waiting]})}
    end;
handle_call(Request, _From, Dashboard) ->
    {reply, weft_stray:call(Request), Dashboard}.

is_fresh(#dashboard{taken_ms = never}) -> false;
is_fresh(#dashboard{taken_ms = TakenMs, period_ms = PeriodMs}) -> now_ms() - TakenMs < PeriodMs.

%% @private
-spec handle_cast(term(), #dashboard{}) -> {noreply, #dashboard{}}.
handle_cast(Request, Dashboard) ->
    ok = weft_stray:message(Request),
    {noreply, Dashboard}.

%% @private
-spec handle_info(term(), #dashboard{}) -> {noreply, #dashboard{}}.
handle_info(tick, #dashboard{browsers = Browsers} = Dashboard) when map_size(Browsers) =:= 0 ->
    {noreply, Dashboard#dashboard{is_ticking = false}};
handle_info(tick, #dashboard{period_ms = PeriodMs} = Dashboard) ->
    {noreply, take(ticking(PeriodMs, Dashboard#dashboard{is_ticking = false}))};
handle_info({take_timeout, Worker}, #dashboard{worker = {Worker, _}} = Dashboard) ->
    true = exit(Worker, kill),
    {noreply, Dashboard};
handle_info({take_timeout, _Earlier}, Dashboard) ->
    {noreply, Dashboard};
handle_info({'DOWN', Ref, process, _, Result}, #dashboard{worker = {_, Ref}} = Dashboard) ->
    {noreply, taken(Result, Dashboard#dashboard{worker = none})};
handle_info({'DOWN', _, process, Pid, _}, #dashboard{browsers = Browsers} = Dashboard) ->
    {noreply, Dashboard#dashboard{browsers = maps:remove(Pid, Browsers)}};
handle_info(Message, Dashboard) ->
    ok = weft_stray:message(Message),
    {noreply, Dashboard}.

%% A browser that comes back before the tick of its last visit finds that one under way.
ticking(_Ms, #dashboard{is_ticking = true} = Dashboard) ->
    Dashboard;
ticking(Ms, Dashboard) ->
    _ = erlang:send_after(Ms, self(), tick),
    Dashboard#dashboard{is_ticking = true}.

%% --- a new model ------------------------------------------------------------------------------

take(#dashboard{worker = none, source = Source, known = Known} = Dashboard) ->
    {Worker, _} = Started = spawn_monitor(?MODULE, see, [Source, Known]),
    _ = erlang:send_after(?TAKE_MS, self(), {take_timeout, Worker}),
    Dashboard#dashboard{worker = Started};
take(Dashboard) ->
    Dashboard.

%% @private The worker. An `error' would be logged as a crash, each period.
-spec see(weft_dashboard_config:source(), term()) -> no_return().
see(Source, Known) ->
    exit(try shown(look(Source, Known)) catch Class:Reason:Stack -> {Class, Reason, Stack} end).

look(agents, Known) ->
    {(weft_ops:picture())#{groups => weft_group:groups()}, Known};
look(Source, Known) ->
    Source(Known).

shown({Seen, Known}) ->
    Meta = #{node => node(), at_ms => erlang:system_time(millisecond), source => live},
    {seen, weft_dashboard_model_core:pack(weft_dashboard_model_core:model(Seen, Meta)),
     [{nodes, weft_dashboard_model_core:nodes(Seen)},
      {alarms, weft_dashboard_model_core:alarm_ids(Seen)}], Known}.

taken({seen, Packed, Rows, Known}, #dashboard{number = Before, browsers = Browsers,
                                             waiting = Waiting} = Dashboard) ->
    Newest = {Before + 1, Packed},
    true = ets:insert(?MODULE, [{newest, Newest} | Rows]),
    lists:foreach(fun(Browser) -> Browser ! weft_dashboard_changed end, maps:keys(Browsers)),
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Newest}) end, Waiting),
    Dashboard#dashboard{number = Before + 1, known = Known, taken_ms = now_ms(), waiting = [],
                        is_failing = false};
taken(Reason, #dashboard{waiting = Waiting, is_failing = IsFailing} = Dashboard) ->
    _ = IsFailing orelse
        ?LOG_WARNING("the dashboard can not see the cluster: ~0tP. It goes on trying, and this is "
                     "not logged again until it could.", [Reason, 30]),
    lists:foreach(fun(From) -> gen_server:reply(From, {error, timeout}) end, Waiting),
    Dashboard#dashboard{waiting = [], is_failing = true}.

now_ms() -> erlang:monotonic_time(millisecond).
