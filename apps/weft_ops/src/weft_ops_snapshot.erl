%% SPDX-License-Identifier: Apache-2.0
%% @doc Gathers what a scrape reports, in a process of its own, once at a time.
%%
%% Who asks while it is gathered waits for that result, and a result is given for a second: the
%% collectors of one scrape see the same, and many scrapers cost as much as one. What has not
%% answered in time is left out and counted (`errors'). The processes that are asked are those of
%% the node's links and sessions; they answer between two packets. One that does not takes nothing
%% else along: the status names it.
%%
%% Not here: what is made of it (`weft_ops_families', `weft_ops_detailed').
-module(weft_ops_snapshot).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/2, take/0, failed/1, gather/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([snapshot/0, source/0]).

-define(REUSE_MS, 1000).

%% families: one could not be made of what the others have said. link, session, service: one of the
%% status did not answer.
-type source() :: status | peers | stores | families | link | session | service.
%% status: of `weft:status/0'; seconds: what it took to gather it; dist_peers_max: see
%% `weft_ops_config'. status, peers and stores are missing if they have failed.
-type snapshot() :: #{status => map(), peers => [weft_ops_peers:peer()],
                      stores => weft_ops_stores:stores(),
                      build := #{cluster := binary(), version := string(),
                                 otp_release := string()},
                      webhook => #{atom() => non_neg_integer()}, seconds := float(),
                      dist_peers_max := non_neg_integer(),
                      errors := #{source() => non_neg_integer()}}.

-type read() :: fun((TimeoutMs :: pos_integer()) -> map()).

-record(state, {
    config :: weft_ops_config:config(),
    read :: read(),
    worker = none :: none | {pid(), reference(), SinceUs :: integer()},
    parts = #{} :: map(),
    waiting = [] :: [gen_server:from()],
    last = none :: none | {AtMs :: integer(), map()},
    %% What had failed the last time, so that it is logged once.
    missing = [] :: [source()],
    errors = #{status => 0, peers => 0, stores => 0, families => 0, link => 0, session => 0,
               service => 0}
        :: #{source() => non_neg_integer()}}).

%% @doc Read is what asks the node, `weft_status:status/1'.
-spec start_link(weft_ops_config:config(), Read :: read()) ->
          {ok, pid()} | {error, term()}.
start_link(Config, Read) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Config, Read}, []).

%% @doc What is known now. It takes at most as long as `timeout_ms' says.
-spec take() -> {ok, snapshot()} | not_running.
take() ->
    try {ok, gen_server:call(?MODULE, take, infinity)}
    catch exit:_NotRunning -> not_running
    end.

%% @doc Counts what could not be reported.
-spec failed(source()) -> ok.
failed(Source) ->
    gen_server:cast(?MODULE, {failed, Source}).

%% @private
-spec init({weft_ops_config:config(), read()}) -> {ok, #state{}}.
init({Config, Read}) ->
    {ok, #state{config = Config, read = Read}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
          {noreply, #state{}} | {reply, term(), #state{}}.
handle_call(take, From, #state{last = Last} = State) ->
    NowMs = erlang:monotonic_time(millisecond),
    case Last of
        {AtMs, Snapshot} when NowMs - AtMs < ?REUSE_MS ->
            {reply, Snapshot#{errors => State#state.errors}, State};
        _ ->
            {noreply, begun(State#state{waiting = [From | State#state.waiting]})}
    end;
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({failed, Source}, State) ->
    {noreply, count(Source, State)};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({part, Worker, Source, Part}, #state{worker = {Worker, _, _}} = State) ->
    {noreply, State#state{parts = (State#state.parts)#{Source => Part}}};
handle_info({late, Worker}, #state{worker = {Worker, _, _}} = State) ->
    true = exit(Worker, kill),
    {noreply, State};
handle_info({'DOWN', Monitor, process, _, _}, #state{worker = {_, Monitor, _}} = State) ->
    {noreply, finished(State)};
handle_info({late, _HasEnded}, State) ->
    {noreply, State};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

begun(#state{worker = none, config = #{timeout_ms := TimeoutMs}, read = Read} = State) ->
    {Worker, Monitor} = spawn_monitor(?MODULE, gather, [self(), Read, max(1, TimeoutMs div 2)]),
    _ = erlang:send_after(TimeoutMs, self(), {late, Worker}),
    State#state{worker = {Worker, Monitor, erlang:monotonic_time(microsecond)}, parts = #{}};
begun(State) ->
    State.

%% @private The worker. Whose session a peer is comes from the status: without it nothing is said
%% of peers, rather than the socket of the first hop for all of them. The status has half of the
%% time, so that what waits for one process is still reported.
-spec gather(pid(), read(), TimeoutMs :: pos_integer()) -> ok.
gather(Server, Read, TimeoutMs) ->
    Worker = self(),
    %% A store that does not answer holds nobody up. That it has ended is no `DOWN': such messages
    %% are all taken by net_kernel:nodes_info/0, also those that are not its own.
    Asking = spawn_link(fun() ->
                                _ = part(Server, Worker, stores, fun weft_ops_stores:all/0),
                                Worker ! {asked, self()}
                        end),
    _ = case part(Server, Worker, status, fun() -> Read(TimeoutMs) end) of
            {ok, Known} -> part(Server, Worker, peers, fun() -> weft_ops_peers:all(Known) end);
            failed -> failed
        end,
    receive {asked, Asking} -> ok end.

part(Server, Worker, Source, Read) ->
    try Read() of
        Part ->
            Server ! {part, Worker, Source, Part},
            {ok, Part}
    catch
        Class:Reason ->
            ?LOG_DEBUG("metrics: ~w failed: ~0tp", [Source, {Class, Reason}]),
            failed
    end.

finished(#state{worker = {_, _, SinceUs}, parts = Parts, waiting = Waiting} = State0) ->
    Missing = [Source || Source <- [status, peers, stores], not is_map_key(Source, Parts)]
        ++ [source(What) || #{status := #{unanswered := Unanswered}} <- [Parts],
                            #{what := What} <- Unanswered],
    State = lists:foldl(fun count/2, told(lists:usort(Missing), State0), Missing),
    Us = erlang:monotonic_time(microsecond) - SinceUs,
    Snapshot = Parts#{seconds => Us / 1000000, build => build(),
                      webhook => weft_ops_webhook:counts(), errors => State#state.errors,
                      dist_peers_max => maps:get(dist_peers_max, State#state.config)},
    lists:foreach(fun(From) -> gen_server:reply(From, Snapshot) end, Waiting),
    State#state{worker = none, parts = #{}, waiting = [], missing = lists:usort(Missing),
                last = {erlang:monotonic_time(millisecond), Snapshot}}.

source(What) when What =:= link; What =:= session -> What;
source(_Service) -> service.

told(Missing, #state{missing = Missing} = State) ->
    State;
told([], State) ->
    State;
told(Missing, #state{config = #{timeout_ms := TimeoutMs}} = State) ->
    ?LOG_WARNING("metrics: an error, or no answer within ~b ms, from ~ts of this node; what that "
                 "would have said is left out until it answers. See weft_scrape_errors_total.",
                 [TimeoutMs, names(Missing)]),
    State.

names(Sources) -> lists:join(" and ", [atom_to_list(Source) || Source <- Sources]).

count(Source, #state{errors = Errors} = State) ->
    State#state{errors = maps:update_with(Source, fun(Count) -> Count + 1 end, Errors)}.

build() ->
    Version = case application:get_key(weft, vsn) of
                  {ok, Vsn} -> Vsn;
                  undefined -> "unknown"
              end,
    #{cluster => unicode:characters_to_binary(weft_config:get(cluster_name)), version => Version,
      otp_release => erlang:system_info(otp_release)}.
