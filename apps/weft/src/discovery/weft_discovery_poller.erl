%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks the sources of discovery at intervals and gives the nodes that they name to the
%% topology, as seeds.
%%
%% Each source is asked in a process of its own, so none delays another. Of each source the last
%% answer that named a node is valid: an empty answer (a name server that has just been started, a
%% service without ready pods) and an error change nothing. As long as no node was found the sources
%% are asked every second.
%%
%% At each interval the topology is told again what is known: its process may have been started
%% again, and then it knows its configuration only.
%%
%% It also watches the seeds, including those in the configuration of the topology. The topology
%% dials a seed that can not be reached again and again; the poller logs it with the reason, after
%% ten seconds and then more and more rarely. It does the same for a source that fails.
-module(weft_discovery_poller).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, found/0, added/0, poll/0, add/1, remove/1, changed/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([answer/2]).
-export_type([config/0]).

-type config() :: #{sources := [weft_discovery:source()], seeds := [node()],
                    interval_ms := pos_integer()}.
%% `seeds': those in the configuration of the topology, to be watched.

%% A source that takes longer has not answered.
-define(ANSWER_MS, 30000).
-define(SEARCH_INTERVAL_MS, 1000).
-define(ADDED_MAX, 1000).
%% Seeds named in one line of the log.
-define(TOLD_MAX, 10).

-record(poller, {sources :: [weft_discovery:source()],
                 seeds :: [node()],
                 interval_ms :: pos_integer(),
                 answers = #{} :: #{weft_discovery:source() => [node()]},
                 added = [] :: [node()],
                 asking = #{} :: #{reference() => {pid(), weft_discovery:source()}},
                 limit = weft_log_limit:new() :: weft_log_limit:limit()}).

%% @doc Starts to ask.
-spec start_link(config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc What the sources named last, in term order.
-spec found() -> [node()].
found() ->
    gen_server:call(?MODULE, found).

%% @doc The nodes that other processes have named and not taken back, in term order. None if
%% discovery does not run.
-spec added() -> [node()].
added() ->
    try gen_server:call(?MODULE, added)
    catch exit:{noproc, _} -> []
    end.

%% @doc Asks all sources now; does not wait for their answers.
-spec poll() -> ok.
poll() ->
    gen_server:cast(?MODULE, poll).

%% @doc Another process names a node: the same as if a source did.
-spec add(node()) -> ok.
add(Node) ->
    gen_server:cast(?MODULE, {add, Node}).

%% @doc It does so no longer, and the topology is told.
-spec remove(node()) -> ok.
remove(Node) ->
    gen_server:cast(?MODULE, {remove, Node}).

%% @doc The topology has changed and has these seeds. It is told which nodes were found.
-spec changed(Seeds :: [node()]) -> ok.
changed(Seeds) ->
    gen_server:cast(?MODULE, {changed, Seeds}).

%% @private
-spec init(config()) -> {ok, #poller{}}.
init(#{sources := Sources, seeds := Seeds, interval_ms := IntervalMs}) ->
    self() ! poll,
    {ok, #poller{sources = Sources, seeds = Seeds -- [node()], interval_ms = IntervalMs}}.

%% @private
-spec handle_call(term(), gen_server:from(), #poller{}) -> {reply, [node()], #poller{}}.
handle_call(found, _From, State) ->
    {reply, all_found(State), State};
handle_call(added, _From, #poller{added = Added} = State) ->
    {reply, lists:sort(Added), State};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #poller{}) -> {noreply, #poller{}}.
handle_cast(poll, State) ->
    {noreply, ask_all(State)};
handle_cast({add, Node}, #poller{added = Added} = State) ->
    {noreply, seed(State#poller{added = lists:sublist([Node | lists:delete(Node, Added)],
                                                      ?ADDED_MAX)})};
handle_cast({remove, Node}, #poller{added = Added} = State) ->
    case lists:member(Node, Added) of
        true -> {noreply, seed(State#poller{added = lists:delete(Node, Added)})};
        false -> {noreply, State}
    end;
handle_cast({changed, Seeds}, State) ->
    {noreply, seed(State#poller{seeds = Seeds -- [node()]})};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #poller{}) -> {noreply, #poller{}}.
handle_info(poll, State0) ->
    State = look_after(ask_all(seed_again(State0))),
    _ = erlang:send_after(pause_ms(State), self(), poll),
    {noreply, State};
handle_info({too_late, Ref}, #poller{asking = Asking} = State) ->
    _ = case Asking of
            #{Ref := {Pid, _}} -> exit(Pid, too_late);
            #{} -> over
        end,
    {noreply, State};
handle_info({'DOWN', Ref, process, _Pid, Reason}, #poller{asking = Asking0} = State)
  when is_map_key(Ref, Asking0) ->
    {{_, Source}, Asking} = maps:take(Ref, Asking0),
    {noreply, answered(Source, Reason, State#poller{asking = Asking})};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

pause_ms(#poller{interval_ms = IntervalMs, sources = [_ | _], answers = Answers})
  when map_size(Answers) =:= 0 ->
    min(IntervalMs, ?SEARCH_INTERVAL_MS);
pause_ms(#poller{interval_ms = IntervalMs}) ->
    IntervalMs.

%% A source that has not answered yet is not asked again.
ask_all(#poller{sources = Sources, asking = Asking} = State) ->
    Waiting = [Source || {_, Source} <- maps:values(Asking)],
    New = [ask(Source) || Source <- Sources -- Waiting],
    State#poller{asking = maps:merge(Asking, maps:from_list(New))}.

ask({_Name, Module, Options} = Source) ->
    {Pid, Ref} = spawn_monitor(?MODULE, answer, [Module, Options]),
    _ = erlang:send_after(?ANSWER_MS, self(), {too_late, Ref}),
    {Ref, {Pid, Source}}.

%% @private The answer is the reason of the end.
-spec answer(module(), map()) -> no_return().
answer(Module, Options) ->
    exit({answer, weft_discovery_source:discover(Module, Options)}).

answered(Source, {answer, {ok, [_ | _] = Nodes}}, State) ->
    seed(good(Source, found(Source, Nodes, State)));
answered(Source, {answer, {ok, []}}, State) ->
    bad(Source, nobody_found, State);
answered(Source, {answer, {ok, [_ | _] = Nodes, Wrong}}, State) ->
    seed(bad(Source, Wrong, found(Source, Nodes, State)));
answered(Source, {answer, {ok, [], Wrong}}, State) ->
    bad(Source, Wrong, State);
answered(Source, {answer, {error, Reason}}, State) ->
    bad(Source, Reason, State);
answered(Source, Crash, State) ->
    bad(Source, Crash, State).

found(Source, Nodes, #poller{answers = Answers} = State) ->
    State#poller{answers = Answers#{Source => Nodes}}.

seed(State) ->
    ok = weft_overlay:seed(all_found(State)),
    State.

seed_again(State) ->
    case all_found(State) of
        [] -> State;
        _ -> seed(State)
    end.

all_found(#poller{answers = Answers, added = Added}) ->
    lists:usort(Added ++ lists:append(maps:values(Answers))).

%% --- what is told -----------------------------------------------------------------------------

good(Subject, #poller{limit = Limit} = State) ->
    State#poller{limit = weft_log_limit:good(Subject, Limit)}.

bad({Name, _, _} = Source, Reason, #poller{answers = Answers} = State) ->
    tell(Source, fun(LastedMs) ->
                         #{weft => discovery, source => Name, reason => Reason,
                           for_s => LastedMs div 1000,
                           still_used => maps:get(Source, Answers, [])}
                 end, State).

look_after(State) ->
    case lists:append([trouble(Seed) || Seed <- seeds(State)]) of
        [] -> good(seeds, State);
        Troubles -> tell(seeds, fun(LastedMs) ->
                                        #{weft => discovery, for_s => LastedMs div 1000,
                                          unreachable_seeds => lists:sublist(Troubles, ?TOLD_MAX),
                                          number => length(Troubles),
                                          what => "they are tried again and again"}
                                end, State)
    end.

seeds(#poller{seeds = Seeds} = State) ->
    lists:usort(Seeds ++ all_found(State)).

%% A seed that the topology wants to be linked to and that has no link.
trouble(Seed) ->
    case weft_links:wanted(Seed) andalso not weft_links:up(Seed) of
        true -> [{Seed, Why} || Why <- last_error(Seed)];
        false -> []
    end.

last_error(Seed) ->
    try
        {ok, Link} = weft_links:lookup(Seed),
        [weft_refusals:explain(Reason) || #{last_error := Reason} <- [weft_link:info(Link)],
                                          Reason =/= undefined]
    catch
        _:_ -> []
    end.

tell(Subject, Report, #poller{limit = Limit0} = State) ->
    {Verdict, Limit} = weft_log_limit:bad(Subject, erlang:monotonic_time(millisecond), Limit0),
    case Verdict of
        {tell, LastedMs} -> ?LOG_WARNING(Report(LastedMs));
        quiet -> ok
    end,
    State#poller{limit = Limit}.
