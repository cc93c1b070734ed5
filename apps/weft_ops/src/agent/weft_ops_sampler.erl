%% SPDX-License-Identifier: Apache-2.0
%% @doc Takes a sample of this node every `sample_ms', and sends it to its agents
%% (`weft_ops_agents').
%%
%% It watches each of them. When one ends, or cannot be reached, the next node that may be agent
%% takes its place at once. After a while the former one is probed, watched too, and gets its place
%% back if it has been there for a whole period. So is a node that has come and would take the place
%% of another one, and one that would be the agent of a group that this node has joined, or that its
%% agent has left: meanwhile this node is its own agent. So all members of a group come back to the
%% same agent. The one that had its place, or is the agent of a group that this node has left, is
%% told with a last sample who has it now. The witness of a free node is chosen in the same way,
%% among those that may be it, and is told little more than that this node is there.
%%
%% A connection that is busy, or has no path now, holds up whoever sends over it. So each sample is
%% sent by a process of its own, and each agent is monitored by one. As long as a sample waits,
%% later ones for the same agent are left out, and all others are sent. What was to be told with
%% those that are left out goes with the next one.
%%
%% It runs at high priority, so that a busy node is reported as busy and not as silent. How late
%% processes of normal priority are woken, which is what the programs of this node feel, is measured
%% by one that answers as soon as it runs. Nothing here is on the way of a message.
-module(weft_ops_sampler).
-behaviour(gen_server).

-export([start_link/1, tell/2, last/1, witness/1]).
-export([wake/2, watch/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

%% How long a node that was not there is not asked again.
-define(RETRY_MS, 10000).
%% So much is told with a sample, and the rest is left out.
-define(TOLD_MAX, 20).

-record(sampler, {period_ms :: pos_integer(),
                  due_ms :: integer(),
                  before = none :: none | weft_ops_sample:before(),
                  last_ms :: integer(),
                  last = none :: none | weft_ops_sample:sample(),
                  %% Since when a process of normal priority waits for its turn; the longest wait.
                  waits_us = none :: none | integer(),
                  wake_up_us = 0 :: non_neg_integer(),
                  told = [] :: [weft_ops_sample:told()],
                  agents = #{} :: #{weft_ops_agents:role() => {node(), Watcher :: pid()}},
                  candidates = #{} :: #{weft_ops_agents:role() => [node(), ...]},
                  %% Until when a node is not considered.
                  absent = #{} :: #{node() => integer()},
                  probes = #{} :: #{Watcher :: pid() => {node(), SinceMs :: integer()}},
                  %% Who has sent the last sample, and may still wait for that.
                  senders = #{} :: #{{weft_ops_agents:role(), node()} => pid()},
                  %% Of samples that were left out.
                  untold = #{} :: #{weft_ops_agents:role() => [weft_ops_sample:told()]}}).

-spec start_link(weft_ops_config:config()) -> {ok, pid()} | {error, term()}.
start_link(#{sample_ms := PeriodMs}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, PeriodMs,
                          [{spawn_opt, [{priority, high}]}]).

%% @doc Has something told with the next sample.
-spec tell(About :: term(), Text :: binary()) -> ok.
tell(About, Text) -> gen_server:cast(?MODULE, {tell, {About, Text}}).

%% @doc The last sample of that node; none if there is none, or nobody to ask.
-spec last(node()) -> weft_ops_sample:sample() | none.
last(Node) ->
    try gen_server:call({?MODULE, Node}, last, infinity) of
        {ok, Sample} ->
            case weft_ops_sample:is_sample(Sample) of
                true -> Sample;
                false -> none
            end;
        {error, _OfAnotherVersion} ->
            none
    catch
        exit:_ -> none
    end.

%% @doc To which witness that node reports. One that is not free has none, and one of an earlier
%% version does not say it.
-spec witness(node()) -> {ok, node()} | {error, term()}.
witness(Node) -> gen_server:call({?MODULE, Node}, witness, infinity).

%% @private
-spec init(pos_integer()) -> {ok, #sampler{}}.
init(PeriodMs) ->
    NowMs = now_ms(),
    {ok, timer(#sampler{period_ms = PeriodMs, due_ms = NowMs, last_ms = NowMs})}.

timer(#sampler{due_ms = DueMs, period_ms = PeriodMs} = Sampler) ->
    %% Periods that have passed by are left out.
    NextMs = max(DueMs + PeriodMs, now_ms()),
    _ = erlang:start_timer(NextMs, self(), look, [{abs, true}]),
    Sampler#sampler{due_ms = NextMs}.

%% @private
-spec handle_call(term(), gen_server:from(), #sampler{}) -> {reply, term(), #sampler{}}.
handle_call(last, _From, #sampler{last = Last} = Sampler) ->
    {reply, {ok, Last}, Sampler};
handle_call(witness, _From, #sampler{agents = Agents} = Sampler) ->
    {reply, case Agents of
                #{witness := {Witness, _}} -> {ok, Witness};
                #{} -> {error, no_witness}
            end, Sampler};
handle_call(Request, _From, Sampler) ->
    {reply, weft_stray:call(Request), Sampler}.

%% @private
-spec handle_cast(term(), #sampler{}) -> {noreply, #sampler{}}.
handle_cast({tell, What}, #sampler{told = Told} = Sampler) when length(Told) < ?TOLD_MAX ->
    {noreply, Sampler#sampler{told = Told ++ [What]}};
handle_cast({tell, _OneTooMuch}, Sampler) ->
    {noreply, Sampler};
handle_cast(Request, Sampler) ->
    ok = weft_stray:message(Request),
    {noreply, Sampler}.

%% @private
-spec handle_info(term(), #sampler{}) -> {noreply, #sampler{}}.
handle_info({timeout, _Timer, look}, Sampler) ->
    {noreply, timer(woken_soon(looked(status(Sampler), Sampler)))};
handle_info({awake, SinceUs}, #sampler{waits_us = SinceUs} = Sampler) ->
    {noreply, (waited(Sampler))#sampler{waits_us = none}};
handle_info({'DOWN', _, process, Watcher, _}, #sampler{probes = Probes} = Sampler)
  when is_map_key(Watcher, Probes) ->
    {{Node, _}, Left} = maps:take(Watcher, Probes),
    {noreply, absent(Node, Sampler#sampler{probes = Left})};
handle_info({'DOWN', _, process, Watcher, _}, #sampler{agents = Agents} = Sampler) ->
    case [Node || {Node, Of} <- maps:values(Agents), Of =:= Watcher] of
        [Node] when Node =/= node() ->
            {noreply, chosen(absent(Node, Sampler))};
        %% The own one is started again.
        [_Own] ->
            Others = maps:filter(fun(_Duty, {_, Of}) -> Of =/= Watcher end, Agents),
            {noreply, Sampler#sampler{agents = Others}};
        [] ->
            {noreply, Sampler}
    end;
handle_info(Message, Sampler) ->
    ok = weft_stray:message(Message),
    {noreply, Sampler}.

%% @private The state of earlier code ends with the probes, or has monitors and no watchers. What it
%% has of the reading before is of another form: there is no sample of this period.
-spec code_change(term(), tuple(), term()) -> {ok, #sampler{}}.
code_change(_Version, #sampler{agents = Agents} = Sampler, _Extra) ->
    Watched = fun(_, {Node, Watcher}) when is_pid(Watcher) -> {Node, Watcher};
                 (_, {Node, _Monitor}) -> {Node, watched(Node)}
              end,
    {ok, Sampler#sampler{before = none, agents = maps:map(Watched, Agents), probes = #{}}};
code_change(_Version, Before, _Extra) ->
    {ok, erlang:append_element(erlang:append_element(Before, #{}), #{})}.

%% --- samples ----------------------------------------------------------------------------------

%% Not by way of `weft_ops_snapshot': what it gives may be older than the period. Who has not
%% answered in half of the period is unknown in the sample.
status(#sampler{period_ms = PeriodMs}) ->
    try {ok, weft_status:status(PeriodMs div 2)} catch _:_ -> none end.

looked({ok, Status}, #sampler{before = none} = Sampler) ->
    with_duties(Status, Sampler#sampler{before = weft_ops_sample:first(Status),
                                        last_ms = now_ms()});
looked({ok, Status}, #sampler{before = Before0, last_ms = LastMs, last = Last,
                              told = Said} = Sampler0) ->
    NowMs = now_ms(),
    #sampler{wake_up_us = WakeUpUs} = Sampler = waited(Sampler0),
    {Unsaid, Before} = weft_ops_sample:next(Status, machine(WakeUpUs),
                                            {erlang:system_time(millisecond),
                                             max(1, NowMs - LastMs)}, Before0),
    Sample = Unsaid#{told := Said},
    ok = weft_ops_telemetry:sample(Last, Sample),
    sent(Sample, with_duties(Status, Sampler#sampler{before = Before, last_ms = NowMs,
                                                     last = Sample, wake_up_us = 0, told = []}));
%% What has not answered is in no sample. The next one covers the time since the last.
looked(none, Sampler) ->
    Sampler.

sent(Sample, #sampler{agents = Agents} = Sampler) ->
    Sent = [sent(Duty, Agent, Sample, Sampler) || {Duty, {Agent, _}} <- maps:to_list(Agents)],
    Sampler#sampler{senders = maps:from_list([{To, Sender} || {To, Sender, _} <- Sent]),
                    untold = maps:from_list([{Duty, Told} || {{Duty, _}, _, Told} <- Sent])}.

sent(Duty, Agent, #{told := Said} = Sample, #sampler{senders = Senders, untold = Untold}) ->
    Before = maps:get({Duty, Agent}, Senders, none),
    Told = lists:sublist(maps:get(Duty, Untold, []) ++ Said, ?TOLD_MAX),
    case is_pid(Before) andalso is_process_alive(Before) of
        true -> {{Duty, Agent}, Before, Told};
        false -> {{Duty, Agent}, sender(Agent, Duty, Sample#{told := Told}), []}
    end.

%% To a witness it matters only that the sample comes.
sender(Agent, witness, Sample) ->
    sender(Agent, {node, node()}, Sample#{peers := [], links := [], unreachable := [], cuts := [],
                                          told := []});
sender(Agent, Duty, Sample) ->
    spawn_opt(weft_ops_agent, report, [Agent, Duty, Sample], [{priority, high}]).

%% One at a time.
woken_soon(#sampler{waits_us = none} = Sampler) ->
    NowUs = erlang:monotonic_time(microsecond),
    _ = spawn_opt(?MODULE, wake, [self(), NowUs], [{priority, normal}]),
    Sampler#sampler{waits_us = NowUs};
woken_soon(Sampler) ->
    Sampler.

%% @private
-spec wake(pid(), integer()) -> {awake, integer()}.
wake(Sampler, SinceUs) -> Sampler ! {awake, SinceUs}.

waited(#sampler{waits_us = none} = Sampler) ->
    Sampler;
waited(#sampler{waits_us = SinceUs, wake_up_us = WorstUs} = Sampler) ->
    Sampler#sampler{wake_up_us = max(WorstUs, erlang:monotonic_time(microsecond) - SinceUs)}.

machine(WakeUpUs) ->
    #{wake_up_us => WakeUpUs,
      run_queue => erlang:statistics(total_run_queue_lengths),
      memory_bytes => erlang:memory(total),
      processes => erlang:system_info(process_count)}.

%% --- agents -----------------------------------------------------------------------------------

with_duties(#{groups := Groups, members := Members}, Sampler) ->
    Agents = weft_ops_agents:of_node(node(), Groups),
    There = weft_ops_agents:there(Members, nodes(connected)),
    Candidates = case weft_ops_agents:witnesses(node(), There, Groups) of
                     [] -> Agents;
                     Witnesses -> Agents#{witness => Witnesses}
                 end,
    chosen(probed(newcomers(Sampler#sampler{candidates = Candidates}))).

%% Whether weft_ops runs on a node that has just come, and would take the place of an agent that is
%% there, is not known: it is probed first, so that no agent gives its alarms to nobody. One that is
%% an agent of this node is known to run it. Who has just begun has given nobody anything that could
%% be lost.
newcomers(#sampler{agents = Agents} = Sampler) when map_size(Agents) =:= 0 ->
    Sampler;
newcomers(#sampler{agents = Agents, candidates = Candidates, absent = Absent} = Sampler) ->
    Chosen = who(Agents),
    There = nodes(connected) -- (maps:values(Chosen) ++ maps:keys(Absent)),
    New = [Node || Node <- weft_ops_agents:unproven(Chosen, Candidates, node()),
                   lists:member(Node, There)],
    Sampler#sampler{absent = maps:merge(Absent, maps:from_keys(New, now_ms()))}.

who(Agents) -> maps:map(fun(_, {Node, _Watcher}) -> Node end, Agents).

%% Who has been there for a whole period is a candidate again; who was not for a while is probed.
probed(#sampler{probes = Probes, absent = Absent, period_ms = PeriodMs} = Sampler) ->
    NowMs = now_ms(),
    Back = [{Watcher, Node} || {Watcher, {Node, SinceMs}} <- maps:to_list(Probes),
                               NowMs - SinceMs >= PeriodMs],
    lists:foreach(fun({Watcher, _}) -> exit(Watcher, kill) end, Back),
    Watched = maps:without([Watcher || {Watcher, _} <- Back], Probes),
    Gone = maps:without([Node || {_, Node} <- Back], Absent),
    Probed = [Node || {Node, _} <- maps:values(Watched)],
    New = maps:from_list([{watched(Node), {Node, NowMs}}
                          || {Node, UntilMs} <- maps:to_list(Gone), UntilMs =< NowMs,
                             is_candidate(Node, Sampler), not lists:member(Node, Probed),
                             lists:member(Node, nodes(connected))]),
    Sampler#sampler{probes = maps:merge(Watched, New),
                    absent = maps:filter(fun(Node, _) -> is_candidate(Node, Sampler) end, Gone)}.

is_candidate(Node, #sampler{candidates = Candidates}) ->
    lists:any(fun(Nodes) -> lists:member(Node, Nodes) end, maps:values(Candidates)).

absent(Node, #sampler{absent = Absent} = Sampler) ->
    Sampler#sampler{absent = Absent#{Node => now_ms() + ?RETRY_MS}}.

%% For each role the first candidate that is there. For a duty this node always is; there may be no
%% witness. Who is not connected is not there, because to monitor such a node may take as long as to
%% find out that it does not answer.
chosen(#sampler{agents = Before, candidates = Candidates, absent = Absent} = Sampler) ->
    There = [node() | nodes(connected)] -- maps:keys(Absent),
    Agents = maps:from_list([{Role, agent(Node, maps:get(Role, Before, none))}
                             || {Role, Nodes} <- maps:to_list(Candidates),
                                Node <- first(Nodes, There)]),
    Kept = [Watcher || {_, Watcher} <- maps:values(Agents)],
    _ = [exit(Watcher, kill) || {_, Watcher} <- maps:values(Before),
                                not lists:member(Watcher, Kept)],
    ok = parted(Before, Agents, Sampler),
    Sampler#sampler{agents = Agents}.

first(Nodes, There) -> lists:sublist([Node || Node <- Nodes, lists:member(Node, There)], 1).

parted(Before, Agents, #sampler{last = #{} = Sample}) ->
    lists:foreach(fun({Former, Role, Now}) -> sender(Former, Role, Sample#{agent => Now}) end,
                  weft_ops_agents:parted(who(Before), who(Agents)));
parted(_Before, _Agents, _BeforeTheFirstSample) ->
    ok.

agent(Node, {Node, Watcher}) -> {Node, Watcher};
agent(Node, _Other) -> {Node, watched(Node)}.

%% By a process that ends when the agent does.
watched(Node) ->
    {Watcher, _} = spawn_opt(?MODULE, watch, [Node, self()], [monitor, {priority, high}]),
    Watcher.

%% @private
-spec watch(node(), Sampler :: pid()) -> ok.
watch(Node, Sampler) ->
    _ = [monitor(process, Watched) || Watched <- [Sampler, {weft_ops_agent, Node}]],
    receive {'DOWN', _, process, _, _} -> ok end.

now_ms() -> erlang:monotonic_time(millisecond).
