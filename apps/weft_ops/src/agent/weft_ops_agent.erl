%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node knows as an agent: the last samples of the nodes that report to it, and the
%% alarms and events that follow from them. Of the events it keeps the last thousand.
%%
%% The process runs on each node, at high priority, and has nothing to do as long as nobody reports.
%% A node that has reported is expected to go on: who does not is `silent', until it is no member
%% any more or is forgotten (`weft_ops_heard'). One that reports to another agent from now on says
%% so with a last sample. If that is this node itself, the other one is the agent, and nobody is
%% missed here. What is no sample of this version is logged and dropped.
%%
%% Of a free node for which this one is the witness only that it is silent is told here: its own
%% agent tells the rest. When it has left the cluster it is not missed.
%%
%% Alarms go to the log, to a webhook if there is one (`weft_ops_tell'), and to whoever asks.
%% The other agent gets those that nobody reports here any more (`weft_ops_handover'): they are not
%% over. So does that of a group which this node has left. As long as no member with weft_ops is
%% there, this node goes on. They begin anew when an agent ends and another node takes its place.
-module(weft_ops_agent).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, report/3, ask/3, events/3, acknowledge/4]).
-export([witness_asked/2, next_asked/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).
-export_type([report/0]).

-define(EVENTS_MAX, 1000).
%% So many answers to a node may wait for its connection; what it asks then is not answered.
-define(ANSWERS_MAX, 8).

%% What is known of the nodes of a duty, and all alarms of this agent: one may be about a node that
%% has never reported to it.
-type report() :: #{nodes := #{node() => weft_ops_sample:sample() | silent},
                    alarms := [weft_ops_alarms_core:alarm()]}.

-record(agent, {period_ms :: pos_integer(),
                thresholds :: weft_ops_anomalies:thresholds(),
                heard = #{} :: #{weft_ops_agents:duty() => weft_ops_heard:reports()},
                %% Who was silent at the last look.
                silent = [] :: [node()],
                %% The last ones, with the time when they were known here, the newest first.
                events = [] :: [{SeenMs :: integer(), weft_ops_events:event()}],
                alarms :: weft_ops_alarms_core:state(),
                %% How many conditions had no room until the last look; so that it is logged once.
                left_out = 0 :: non_neg_integer(),
                is_full = false :: boolean(),
                %% Who sends an answer to another node, and may still wait for that.
                senders = [] :: [{node(), pid()}]}).

-spec start_link(weft_ops_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, [{spawn_opt, [{priority, high}]}]).

%% @doc Gives the agent on that node a sample. Who is not connected is not told. While the
%% connection is busy or has no path, the caller waits.
-spec report(node(), weft_ops_agents:duty(), weft_ops_sample:sample()) -> ok.
report(Agent, Duty, Sample) ->
    _ = erlang:send({?MODULE, Agent}, {weft_ops_sample, Duty, Sample}, [noconnect]),
    ok.

%% @doc What the agent on that node knows.
-spec ask(node(), weft_ops_agents:duty(), timeout()) -> {ok, report()} | {error, term()}.
ask(Agent, Duty, TimeoutMs) ->
    call(Agent, {ask, Duty}, TimeoutMs).

%% @doc What the agent on that node has seen since that time of the clock here: it is told how long
%% ago that is, as its own may be another one. One of the version before takes it for its own.
-spec events(node(), SinceMs :: integer(), timeout()) ->
          {ok, [weft_ops_events:event()]} | {error, term()}.
events(Agent, SinceMs, TimeoutMs) ->
    case call(Agent, {events_of, system_ms() - SinceMs}, TimeoutMs) of
        {error, {unknown_request, _}} -> call(Agent, {events, SinceMs}, TimeoutMs);
        Answer -> Answer
    end.

%% @doc Acknowledges an alarm of that agent.
-spec acknowledge(node(), weft_ops_alarms_core:id(), Comment :: binary(), timeout()) ->
          ok | {error, unknown_alarm | term()}.
acknowledge(Agent, Id, Comment, TimeoutMs) ->
    call(Agent, {acknowledge, Id, Comment}, TimeoutMs).

call(Agent, Request, TimeoutMs) ->
    try gen_server:call({?MODULE, Agent}, Request, TimeoutMs)
    catch exit:{Reason, _} -> {error, Reason}
    end.

%% @private
-spec init(weft_ops_config:config()) -> {ok, #agent{}}.
init(#{sample_ms := PeriodMs, thresholds := Thresholds} = Config) ->
    ok = look_in(PeriodMs),
    {ok, #agent{period_ms = PeriodMs, thresholds = Thresholds,
                alarms = weft_ops_alarms_core:new(Config)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #agent{}) ->
          {reply, term(), #agent{}} | {noreply, #agent{}}.
handle_call({ask, Duty}, From, #agent{heard = Heard, alarms = Alarms} = Agent) ->
    NowMs = now_ms(),
    Nodes = maps:map(fun(_, What) -> without_skew(What) end,
                     maps:merge(silent_free(NowMs, Agent),
                                state(maps:get(Duty, Heard, #{}), NowMs, Agent))),
    answered(From, #{nodes => Nodes,
                     alarms => [dated(Alarm) || Alarm <- weft_ops_alarms_core:list(Alarms)]},
             Agent);
handle_call({events_of, LastMs}, From, Agent) when is_integer(LastMs) ->
    handle_call({events, system_ms() - LastMs}, From, Agent);
handle_call({events, SinceMs}, From, #agent{events = Events} = Agent) ->
    Late = lists:takewhile(fun({SeenMs, _}) -> SeenMs >= SinceMs end, Events),
    answered(From, [Event || {_, Event} <- lists:reverse(Late)], Agent);
handle_call({acknowledge, Id, Comment}, _From, #agent{alarms = Alarms0} = Agent) ->
    case weft_ops_alarms_core:acknowledge(Id, Comment, now_ms(), Alarms0) of
        {ok, Alarms} ->
            [Alarm] = [Alarm || #{id := Of} = Alarm <- weft_ops_alarms_core:list(Alarms),
                                Of =:= Id],
            ok = weft_ops_tell:alarm({acknowledged, Alarm}),
            {reply, ok, noted([weft_ops_events:alarm({acknowledged, Alarm}, system_ms())],
                              Agent#agent{alarms = Alarms})};
        {error, Reason} -> {reply, {error, Reason}, Agent}
    end;
handle_call(Request, _From, Agent) ->
    {reply, weft_stray:call(Request), Agent}.

%% It may be megabytes, and who sends it to another node may have to wait.
answered({Caller, _}, Answer, Agent) when node(Caller) =:= node() ->
    {reply, {ok, Answer}, Agent};
answered({Caller, _} = From, Answer, #agent{senders = Before} = Agent) ->
    Senders = [{Node, Sender} || {Node, Sender} <- Before, is_process_alive(Sender)],
    case length([Node || {Node, _} <- Senders, Node =:= node(Caller)]) < ?ANSWERS_MAX of
        true ->
            New = spawn_opt(gen_server, reply, [From, {ok, Answer}], [{priority, high}]),
            {noreply, Agent#agent{senders = [{node(Caller), New} | Senders]}};
        false ->
            {noreply, Agent#agent{senders = Senders}}
    end.

%% Elsewhere the time of this node's own clock says nothing.
dated(#{raised_ms := RaisedMs, acknowledged := Said} = Alarm) ->
    OffsetMs = erlang:time_offset(millisecond),
    Alarm#{at_ms => RaisedMs + OffsetMs,
           acknowledged := case Said of
                               no -> no;
                               #{at_ms := AtMs} -> Said#{at_ms := AtMs + OffsetMs}
                           end}.

without_skew({Sample, _SkewMs}) -> Sample;
without_skew(silent) -> silent.

%% @private
-spec handle_cast(term(), #agent{}) -> {noreply, #agent{}}.
handle_cast(Request, Agent) ->
    ok = weft_stray:message(Request),
    {noreply, Agent}.

%% @private
-spec handle_info(term(), #agent{}) -> {noreply, #agent{}}.
handle_info({weft_ops_sample, Duty, Sample} = Message, Agent) ->
    case weft_ops_sample:is_sample(Sample) of
        true ->
            {noreply, parted(Duty, Sample, heard(Duty, Sample, Agent))};
        false ->
            ok = weft_stray:message(Message),
            {noreply, Agent}
    end;
handle_info({weft_ops_handover, Periods, Given} = Message, Agent) when is_integer(Periods) ->
    case weft_ops_handover:is_handover(Given) of
        true ->
            {noreply, taken(Periods, Given, Agent)};
        false ->
            ok = weft_stray:message(Message),
            {noreply, Agent}
    end;
handle_info({look, DueMs}, #agent{period_ms = PeriodMs} = Agent) ->
    ok = look_in(PeriodMs),
    NowMs = now_ms(),
    Here = stood_still(NowMs - DueMs, NowMs, Agent),
    Groups = weft_group:groups(),
    ok = nexts_asked(NowMs, Groups, Here),
    ok = witnesses_asked(NowMs, Here),
    {noreply, looked(NowMs, missed(NowMs, forgotten(NowMs, Groups, Here)))};
handle_info({weft_ops_next, Duty, Next}, Agent) ->
    {noreply, left(Duty, Next, weft_group:groups(), Agent)};
%% From before this code was loaded.
handle_info(look, Agent) ->
    handle_info({look, now_ms()}, Agent);
handle_info(Message, Agent) ->
    ok = weft_stray:message(Message),
    {noreply, Agent}.

%% @private The state of earlier code ends with the alarms, or lacks who sends; what is heard ends
%% with the skew.
-spec code_change(term(), tuple(), term()) -> {ok, #agent{}}.
code_change(_Version, {agent, PeriodMs, Thresholds, Heard, Silent, Events, Alarms}, _Extra) ->
    {ok, #agent{period_ms = PeriodMs, thresholds = Thresholds, silent = Silent, events = Events,
                heard = upgraded(Heard), alarms = Alarms}};
code_change(_Version, #agent{heard = Heard} = Agent, _Extra) ->
    {ok, Agent#agent{heard = upgraded(Heard)}};
code_change(Version, WithoutSenders, Extra) ->
    code_change(Version, erlang:append_element(WithoutSenders, []), Extra).

upgraded(Heard) ->
    One = fun(_, Earlier) -> weft_ops_heard:upgrade(Earlier) end,
    maps:map(fun(_, Nodes) -> maps:map(One, Nodes) end, Heard).

look_in(PeriodMs) ->
    _ = erlang:send_after(PeriodMs, self(), {look, now_ms() + PeriodMs}),
    ok.

%% --- who reports ------------------------------------------------------------------------------

heard(Duty, #{node := Node} = Sample,
      #agent{heard = Heard, silent = Silent} = Agent) ->
    Nodes = maps:get(Duty, Heard, #{}),
    New = weft_ops_heard:hear(Sample, node(), {now_ms(), system_ms()}, Nodes),
    Before = case {lists:member(Node, Silent), weft_ops_heard:last(Node, Nodes)} of
                 {true, {ok, Last}} -> {silent, Last};
                 {false, {ok, Last}} -> Last;
                 {_, none} -> none
             end,
    noted(weft_ops_events:sample(Before, Sample),
          Agent#agent{heard = Heard#{Duty => New}, silent = lists:delete(Node, Silent)}).

%% Has it another agent from now on?
parted(Duty, #{agent := Other, node := Node}, #agent{heard = Heard} = Agent)
  when Other =/= node() ->
    Nodes = maps:remove(Node, maps:get(Duty, Heard)),
    Silent = case Node =:= node() of
                 true -> silent(Nodes, now_ms(), Agent);
                 false -> []
             end,
    given(Other, {Duty, Silent}, Agent#agent{heard = Heard#{Duty := Nodes}});
parted(_Duty, _Sample, Agent) ->
    Agent.

%% --- from agent to agent ----------------------------------------------------------------------

%% The next agent of a group that this node has left has never heard who is silent there. Members
%% that are connected are asked whether they run weft_ops: others would lose what they are given.
nexts_asked(NowMs, Groups, #agent{heard = Heard, period_ms = PeriodMs} = Agent) ->
    There = nodes(connected),
    lists:foreach(fun({group, Name} = Duty) ->
                      Duties = weft_ops_agents:all(There, maps:with([Name], Groups)),
                      Candidates = [Node || Node <- maps:get(Duty, Duties, []),
                                            lists:member(Node, There)],
                      spawn(?MODULE, next_asked, [Duty, Candidates, PeriodMs])
                  end, [Duty || {{group, _} = Duty, Nodes} <- maps:to_list(Heard),
                                not reports(node(), Duty, Groups),
                                silent(Nodes, NowMs, Agent) =/= []]).

%% @private The first one that has an agent is it for the others, too. So is one that is paused: it
%% is asked again. That nothing happened since now is a short answer.
-spec next_asked(weft_ops_agents:duty(), [node()], TimeoutMs :: pos_integer()) -> ok.
next_asked(Duty, Candidates, TimeoutMs) ->
    Ask = fun(Node) -> events(Node, system_ms(), TimeoutMs) end,
    {Answers, _Silent} = weft_ask:all(Candidates, Ask, TimeoutMs),
    None = [Node || {Node, {error, Reason}} <- Answers, Reason =/= timeout],
    First = lists:sublist(Candidates -- None, 1),
    _ = [erlang:send({?MODULE, node()}, {weft_ops_next, Duty, Next})
         || {Next, {ok, _}} <- Answers, [Next] =:= First],
    ok.

%% This node may be back in the group by now.
left(Duty, Next, Groups, #agent{heard = Heard} = Agent) ->
    case not reports(node(), Duty, Groups)
        andalso silent(maps:get(Duty, Heard, #{}), now_ms(), Agent) of
        [_ | _] = Silent -> given(Next, {Duty, Silent}, Agent);
        _BackOrNobody -> Agent
    end.

silent(Nodes, NowMs, #agent{period_ms = PeriodMs}) ->
    weft_ops_heard:silent(Nodes, NowMs, PeriodMs).

%% Where the other one can not be told, all stays as it is. If it has the duty, this is over here.
given(Other, {Duty, Silent}, #agent{heard = Heard, alarms = Before} = Agent) ->
    NowMs = now_ms(),
    #{Duty := Nodes} = Heard,
    Without = Agent#agent{heard = Heard#{Duty := maps:without(Silent, Nodes)}},
    Known = maps:map(fun(_, What) -> without_skew(What) end, known(NowMs, Without)),
    {Alarms, Left} = weft_ops_alarms_core:part(fun(Id) ->
                                                   weft_ops_handover:without_witness(Id, Known)
                                               end, Before),
    Given = weft_ops_handover:new(Duty, weft_ops_heard:ages(maps:with(Silent, Nodes), NowMs),
                                  {Alarms, erlang:time_offset(millisecond)}),
    case [Silent, Alarms] =/= [[], []] andalso lists:member(Other, nodes(connected)) of
        true ->
            %% Who sends it may have to wait.
            Handover = {weft_ops_handover, weft_ops_heard:silent_periods(), Given},
            _ = spawn(erlang, send, [{?MODULE, Other}, Handover, [noconnect]]),
            Without#agent{alarms = Left};
        false ->
            Agent
    end.

%% Who has just become the agent misses nobody before its own first sample: it waits so many periods
%% for that.
taken(Periods, #{duty := Duty, silent := Silent} = Given,
      #agent{heard = Heard, period_ms = PeriodMs} = Agent) ->
    Nodes = maps:get(Duty, Heard, #{}),
    case Periods > 0 andalso Silent =/= [] andalso not is_map_key(node(), Nodes) of
        true ->
            _ = erlang:send_after(PeriodMs, self(), {weft_ops_handover, Periods - 1, Given}),
            Agent;
        false ->
            taken(Given, Agent#agent{heard = Heard#{Duty => Nodes}})
    end.

taken(#{duty := Duty, silent := Given} = Handover,
      #agent{heard = Heard, silent = Before, alarms = Alarms} = Agent) ->
    NowMs = now_ms(),
    New = weft_ops_heard:of_ages(Given, NowMs),
    %% Who reports here is not silent.
    Silent = maps:keys(New) -- nodes_of(Heard),
    Taken = weft_ops_handover:alarms(Handover, erlang:time_offset(millisecond)),
    Agent#agent{heard = maps:update_with(Duty, fun(Nodes) -> maps:merge(New, Nodes) end, Heard),
                silent = lists:usort(Silent ++ Before),
                alarms = weft_ops_alarms_core:take(Taken, NowMs, Alarms)}.

%% --- who is silent ----------------------------------------------------------------------------

%% What was sent to a node that was paused comes after this: nobody else is silent for that.
stood_still(LateMs, _NowMs, #agent{period_ms = PeriodMs} = Agent) when LateMs < PeriodMs ->
    Agent;
stood_still(LateMs, NowMs, #agent{heard = Heard} = Agent) ->
    Later = fun(_, Nodes) -> weft_ops_heard:later(LateMs, NowMs, Nodes) end,
    Agent#agent{heard = maps:map(Later, Heard)}.

%% Who is no member any more, or has been silent for long, is not missed.
forgotten(NowMs, Groups, #agent{heard = Heard, period_ms = PeriodMs} = Agent) ->
    Left = maps:map(fun(Duty, Nodes) ->
                        IsElsewhere = is_elsewhere(Duty, Nodes, Groups),
                        maps:filter(fun(Node, One) ->
                                            weft_ops_heard:is_kept(One, IsElsewhere, NowMs,
                                                                   PeriodMs)
                                                andalso reports(Node, Duty, Groups)
                                                andalso not has_left(Node, Duty)
                                    end, Nodes)
                    end, Heard),
    Gone = nodes_of(Heard) -- nodes_of(Left),
    noted([weft_ops_events:left(Node, system_ms()) || Node <- Gone, is_gone(Node)],
          Agent#agent{heard = maps:filter(fun(_, Nodes) -> map_size(Nodes) > 0 end, Left)}).

%% Groups say themselves who has left them.
has_left(Node, {node, _}) -> weft_overlay:is_foreign(Node);
has_left(_Node, {group, _}) -> false.

%% An agent reports to itself. Where it does not, another one is the agent; of a group that this
%% node has left that is asked first. Which witness a free node has follows from whom it is
%% connected with, which only that node knows: it says, or is asked, when that is another one.
is_elsewhere(Duty, Nodes, Groups) ->
    not is_map_key(node(), Nodes) andalso reports(node(), Duty, Groups).

%% A free node that was silent and is back may have another witness, as one that was started anew
%% has, and may never say so here.
witnesses_asked(NowMs, #agent{heard = Heard, period_ms = PeriodMs} = Agent) ->
    There = nodes(connected),
    lists:foreach(fun({Node, Nodes}) ->
                      {ok, Last} = weft_ops_heard:last(Node, Nodes),
                      spawn(?MODULE, witness_asked, [Last, PeriodMs])
                  end, [{Node, Nodes} || {Free, Nodes} <- free(Heard),
                                         Node <- silent(Nodes, NowMs, Agent), Node =:= Free,
                                         lists:member(Node, There)]).

%% @private It is as if the node had said it with a last sample.
-spec witness_asked(weft_ops_sample:sample(), TimeoutMs :: pos_integer()) -> ok.
witness_asked(#{node := Node} = Last, TimeoutMs) ->
    case weft_ask:all([Node], fun weft_ops_sampler:witness/1, TimeoutMs) of
        {[{Node, {ok, Witness}}], []} when is_atom(Witness), Witness =/= node() ->
            report(node(), {node, Node}, Last#{agent => Witness});
        _SameOrNotSaid ->
            ok
    end.

nodes_of(Heard) -> lists:usort(lists:append([maps:keys(Nodes) || Nodes <- maps:values(Heard)])).

%% One that reports to another agent from now on has not left. The connection with one that has left
%% may end a little later.
is_gone(Node) ->
    not lists:member(Node, [node() | nodes(connected)]) orelse weft_overlay:is_foreign(Node).

%% Who has stopped to report since the last look. A node that reports under one duty is there.
missed(NowMs, #agent{heard = Heard, silent = Before} = Agent) ->
    There = [Node || Nodes <- maps:values(Heard),
                     {Node, {_, _}} <- maps:to_list(state(Nodes, NowMs, Agent))],
    Silent = nodes_of(Heard) -- There,
    noted([weft_ops_events:silent(Node, system_ms()) || Node <- Silent -- Before],
          Agent#agent{silent = Silent}).

reports(Node, Duty, Groups) -> is_map_key(Duty, weft_ops_agents:of_node(Node, Groups)).

state(Nodes, NowMs, #agent{period_ms = PeriodMs}) ->
    weft_ops_heard:states(Nodes, NowMs, PeriodMs).

%% Of all duties.
known(NowMs, #agent{heard = Heard} = Agent) ->
    Free = [Node || {Node, _} <- free(Heard)],
    maps:filter(fun(Node, What) -> What =:= silent orelse not lists:member(Node, Free) end,
                state(maps:fold(fun(_, One, All) -> maps:merge(All, One) end, #{}, Heard), NowMs,
                      Agent)).

%% Free nodes for which this one is the witness, and those of them that are missed.
free(Heard) ->
    [{Node, Nodes} || {{node, Node}, Nodes} <- maps:to_list(Heard), Node =/= node()].

silent_free(NowMs, #agent{heard = Heard} = Agent) ->
    maps:from_list([{Silent, silent} || {_, Nodes} <- free(Heard),
                                        Silent <- silent(Nodes, NowMs, Agent)]).

%% --- alarms -----------------------------------------------------------------------------------

looked(NowMs, #agent{thresholds = Thresholds, alarms = Before} = Agent) ->
    Told = [Node || #{id := {silent, Node, _}} <- weft_ops_alarms_core:list(Before)],
    Conditions = weft_ops_anomalies:find(known(NowMs, Agent), weft_group:groups(), Thresholds,
                                         Told),
    {Alarms, Events} = weft_ops_alarms_core:observe(Conditions, NowMs, Before),
    lists:foreach(fun weft_ops_tell:alarm/1, Events),
    noted([weft_ops_events:alarm(Event, system_ms()) || Event <- Events],
          counted(Agent#agent{alarms = Alarms})).

counted(#agent{alarms = Alarms, left_out = Before, is_full = WasFull} = Agent) ->
    LeftOut = weft_ops_alarms_core:left_out(Alarms),
    _ = LeftOut > Before andalso not WasFull andalso
        ?LOG_WARNING("~b conditions that are alarms, or may become some, are left out: there are "
                     "more than alarms_max of weft_ops. Raise that if there are often so many. "
                     "This is not logged again until there was room for all.",
                     [LeftOut - Before]),
    Agent#agent{left_out = LeftOut, is_full = LeftOut > Before}.

noted([], Agent) ->
    Agent;
noted(New, #agent{events = Events} = Agent) ->
    SeenMs = system_ms(),
    Agent#agent{events = lists:sublist(lists:foldl(fun(Event, All) -> [{SeenMs, Event} | All] end,
                                                   Events, New), ?EVENTS_MAX)}.

system_ms() -> erlang:system_time(millisecond).

now_ms() -> erlang:monotonic_time(millisecond).
