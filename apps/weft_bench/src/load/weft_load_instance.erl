%% SPDX-License-Identifier: Apache-2.0
%% @doc A load on a node, ruled from elsewhere by calls (`weft_load_hosts', `weft_de_bench'). How
%% long it takes to get ready differs between nodes, so each gets ready first and then waits for the
%% moment at which all begin. While it runs, who asks for news is told what each second brought.
%%
%% One load runs on a node at a time. If nobody asks, seconds are kept, the latest of them in one
%% when they become many.
-module(weft_load_instance).
-behaviour(gen_server).

-export([ready/2, begin_at/1, news/0, go/1, interrupt/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
%% The process of the load.
-export([done/2]).
-export_type([news/0, options/0]).

-type news() :: {seconds, [weft_load_second:second(), ...]}
              | {ended, {ok, weft_load:outcome()} | {error, Text :: string()}}.

%% For the slowest of the others.
-define(WAIT_MS, 180000).
-define(SECONDS_MAX, 100).

-type options() :: #{dir := file:filename(), environment => [{string(), string()}],
                     numbers => weft_load:numbers()}.

%% Seconds are those nobody has asked for yet, the latest first. Asking is who waits for news;
%% getting_ready who waits for the load to get ready.
-record(state, {config :: weft_load_config:config(), options :: options(),
                load = none :: none | pid(), monitor = none :: none | reference(),
                getting_ready = none :: none | gen_server:from(),
                has_begun = false :: boolean(),
                asking = none :: none | gen_server:from(),
                seconds = [] :: [weft_load_second:second()],
                answer = none :: none | {ok, weft_load:outcome()} | {error, string()}}).

%% @doc Starts a load, whose workers then wait for `begin_at/1' or `go/1'. Returns once they do. The
%% error is a text.
-spec ready(weft_load_config:config(), options()) -> ok | {error, string()}.
ready(Config, Options) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, {Config, Options}, []) of
        {ok, Instance} -> gen_server:call(Instance, ready, infinity);
        {error, {already_started, _}} -> {error, "another load is on this node"}
    end.

%% @doc Has the load that is ready begin at that time of `os:perf_counter', in microseconds.
-spec begin_at(AtUs :: integer()) -> ok | {error, string()}.
begin_at(AtUs) -> call({begin_at, AtUs}).

%% @doc Waits for the next second, or the end of the load. What was told is told once.
-spec news() -> news().
news() ->
    case call(news) of
        {error, Text} -> {ended, {error, Text}};
        News -> News
    end.

%% @doc Has the load that is ready begin at that time, and waits for what comes of it.
-spec go(AtUs :: integer()) -> {ok, weft_load:outcome()} | {error, string()}.
go(AtUs) ->
    case begin_at(AtUs) of
        ok -> ended(news());
        {error, Text} -> {error, Text}
    end.

ended({ended, Answer}) -> Answer;
ended({seconds, _}) -> ended(news()).

%% @doc Ends the load soon; what it has measured is told as at its end.
-spec interrupt() -> ok.
interrupt() -> gen_server:cast(?MODULE, interrupt).

call(Request) ->
    try gen_server:call(?MODULE, Request, infinity)
    catch exit:{Over, _} when Over =:= noproc; Over =:= normal ->
              {error, "the load has ended before it began"}
    end.

%% --- the process ------------------------------------------------------------------------------

%% @private
init({Config, Options}) -> {ok, #state{config = Config, options = Options}}.

%% @private
handle_call(ready, From, #state{config = Config, options = Options} = State) ->
    Instance = self(),
    Own = Options#{begin_us => fun() -> Instance ! {ready, self()}, begin_us() end,
                   progress => fun(Second) -> Instance ! {second, self(), Second} end},
    {Load, Monitor} = spawn_monitor(?MODULE, done, [Config, Own]),
    {noreply, State#state{load = Load, monitor = Monitor, getting_ready = From}};
handle_call({begin_at, AtUs}, _From, #state{load = Load} = State) ->
    Load ! {begin_at, AtUs},
    {reply, ok, State#state{has_begun = true}};
handle_call(news, From, State) ->
    told(State#state{asking = From});
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec done(weft_load_config:config(), weft_load:options()) -> no_return().
done(Config, Options) -> exit({done, weft_load:run(Config, Options)}).

begin_us() ->
    receive
        {begin_at, AtUs} ->
            LeftUs = AtUs - os:perf_counter(microsecond),
            BeginUs = erlang:monotonic_time(microsecond) + LeftUs,
            %% Not before it: what is due before the load begins has no part in it.
            receive after max(0, (LeftUs + 999) div 1000) -> BeginUs end
    after ?WAIT_MS ->
        throw({load, "the other nodes do not get ready"})
    end.

%% @private
handle_cast(interrupt, #state{load = Load} = State) ->
    Load ! weft_bench_interrupt,
    {noreply, State};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info({ready, Load}, #state{load = Load, getting_ready = From} = State) ->
    ok = gen_server:reply(From, ok),
    {noreply, State#state{getting_ready = none}};
handle_info({second, Load, Second}, #state{load = Load, seconds = Seconds} = State) ->
    told(State#state{seconds = kept(Second, Seconds)});
handle_info({'DOWN', Monitor, process, _, Why}, #state{monitor = Monitor} = State) ->
    over(case Why of
             {done, Answer} -> Answer;
             _ -> {error, weft_bench_error:text("the load ended: ~0tP", [Why, 20])}
         end, State);
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

kept(Second, [Last | Earlier]) when length(Earlier) >= ?SECONDS_MAX ->
    [weft_load_second:joined(Last, Second) | Earlier];
kept(Second, Seconds) ->
    [Second | Seconds].

%% One that never began is over when it has ended: nobody need ask for that.
over(Answer, #state{getting_ready = From} = State) when From =/= none ->
    true = unregister(?MODULE),
    ok = gen_server:reply(From, Answer),
    {stop, normal, State};
over(_Answer, #state{has_begun = false} = State) ->
    {stop, normal, State};
over(Answer, State) ->
    told(State#state{answer = Answer}).

%% Who is told of the end may start another load here at once.
told(#state{asking = none} = State) ->
    {noreply, State};
told(#state{asking = From, seconds = [_ | _] = Seconds} = State) ->
    ok = gen_server:reply(From, {seconds, lists:reverse(Seconds)}),
    {noreply, State#state{asking = none, seconds = []}};
told(#state{answer = none} = State) ->
    {noreply, State};
told(#state{asking = From, answer = Answer} = State) ->
    true = unregister(?MODULE),
    ok = gen_server:reply(From, {ended, Answer}),
    {stop, normal, State#state{asking = none}}.
