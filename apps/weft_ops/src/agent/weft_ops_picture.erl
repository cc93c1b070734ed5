%% SPDX-License-Identifier: Apache-2.0
%% @doc The whole cluster, as its agents see it: asked from any node, at the cost of one question to
%% each agent. Where one does not answer, as it is paused, its nodes do not know that yet: they are
%% asked themselves, all at once, so that it takes no longer if several of them are paused.
-module(weft_ops_picture).

-export([take/1, events/2, heard/2, acknowledge/3]).
-export_type([picture/0]).

%% nodes: the last sample of each, or `silent' if it has stopped to report, or is asked itself and
%% does not answer; nodes without weft_ops are in none of them. agents: who answered for each group
%% and each free node, `none' if nobody did. alarms: those of all agents, each once, the oldest
%% first.
-type picture() :: #{nodes := #{node() => weft_ops_sample:sample() | silent},
                     agents := #{weft_ops_agents:duty() => node() | none},
                     alarms := [weft_ops_alarms_core:alarm()]}.

%% @doc Asks all agents. It takes that long at most.
-spec take(TimeoutMs :: pos_integer()) -> picture().
take(TimeoutMs) ->
    Duties = duties(),
    Answers = asked(Duties, TimeoutMs, fun(Candidates, Duty) ->
                                           reported(Candidates, Duty, TimeoutMs div 4)
                                       end),
    Agents = maps:from_list([{Duty, Agent} || {Duty, {Agent, _}} <- Answers]),
    Reports = [Report || {_, {_, #{} = Report}} <- Answers],
    #{agents => maps:merge(maps:map(fun(_, _) -> none end, Duties), Agents),
      nodes => lists:foldl(fun(#{nodes := Nodes}, All) -> maps:merge_with(fun latest/3, All, Nodes)
                           end, #{}, Reports),
      alarms => each_once([Alarm || #{alarms := Alarms} <- Reports, Alarm <- Alarms])}.

%% @doc What the agents know to have happened since that system time, the oldest first.
-spec events(SinceMs :: integer(), TimeoutMs :: pos_integer()) -> [weft_ops_events:event()].
events(SinceMs, TimeoutMs) ->
    {Events, _FromWhom} = heard(fun(_Agent) -> SinceMs end, TimeoutMs),
    Events.

%% @doc The same, where each agent is asked for what it knows since another time; and from whom that
%% is. Others were not reached or did not answer in time, are no agents, or are not asked now.
-spec heard(fun((Agent :: node()) -> SinceMs :: integer()), TimeoutMs :: pos_integer()) ->
          {[weft_ops_events:event()], FromWhom :: [node()]}.
heard(SinceMs, TimeoutMs) ->
    Answers = asked(duties(), TimeoutMs,
                    fun(Candidates, _Duty) ->
                        first(Candidates, fun(Node, PartMs) ->
                                              weft_ops_agent:events(Node, SinceMs(Node), PartMs)
                                          end, TimeoutMs div 4)
                    end),
    Told = [{Agent, Events} || {_, {Agent, Events, _}} <- Answers, is_list(Events)],
    {weft_ops_events:merged(lists:append([Events || {_, Events} <- Told])),
     lists:usort([Agent || {Agent, _} <- Told])}.

duties() -> weft_ops_agents:all(nodes_known(), weft_group:groups()).

%% For each duty, what its candidates answer.
asked(Duties, TimeoutMs, Ask) ->
    {Answers, _Silent} = weft_ask:all(maps:keys(Duties),
                                      fun(Duty) -> Ask(maps:get(Duty, Duties), Duty) end,
                                      TimeoutMs, TimeoutMs),
    Answers.

%% The members of the topology; without one those that are connected.
nodes_known() ->
    case weft_overlay:members() of
        [] -> [node() | nodes(connected)];
        Members -> Members
    end.

%% The first agent that answers, what, and how: `paused' if one before it did not in time, else
%% `prompt'. As long as it is known at once that who is asked is none, or is not there, the next one
%% is asked; all others at once when the time for that is over.
first(Candidates, Ask, PartMs) -> first(Candidates, Ask, now_ms() + PartMs, PartMs).

first([], _Ask, _UntilMs, _PartMs) ->
    {none, none, prompt};
first([Candidate | Others] = Candidates, Ask, UntilMs, PartMs) ->
    case max(0, UntilMs - now_ms()) of
        0 -> first_of_all(Candidates, Ask, PartMs);
        LeftMs ->
            case one_asked(Candidate, Ask, LeftMs) of
                {ok, Answer} -> {Candidate, Answer, prompt};
                {error, timeout} -> first_of_all(Others, Ask, PartMs);
                {error, _NoneOrNotThere} -> first(Others, Ask, UntilMs, PartMs)
            end
    end.

%% By a process of its own: over a connection that takes nothing now the question itself waits, for
%% longer than its time.
one_asked(Candidate, Ask, TimeoutMs) ->
    case weft_ask:all([Candidate], fun(Node) -> Ask(Node, TimeoutMs) end, TimeoutMs) of
        {[{Candidate, Answer}], []} -> Answer;
        {[], [Candidate]} -> {error, timeout}
    end.

first_of_all(Candidates, Ask, PartMs) ->
    {Answers, _Silent} = weft_ask:all(Candidates, fun(Node) -> Ask(Node, PartMs) end, PartMs),
    case [{Agent, Answer, paused} || {Agent, {ok, Answer}} <- Answers] of
        [First | _] -> First;
        [] -> {none, none, paused}
    end.

%% In three parts of the time at most.
reported(Candidates, Duty, PartMs) ->
    Ask = fun(Node, TimeoutMs) -> weft_ops_agent:ask(Node, Duty, TimeoutMs) end,
    case first(Candidates, Ask, PartMs) of
        {none, none, paused} ->
            {none, with_samples(Candidates, #{nodes => #{}, alarms => []}, PartMs)};
        {Agent, Report, paused} ->
            {Agent, with_samples(Candidates, Report, PartMs)};
        {Agent, Report, prompt} ->
            {Agent, Report}
    end.

with_samples(Candidates, #{nodes := Nodes} = Report, TimeoutMs) ->
    {Answers, Silent} = weft_ask:all(Candidates -- maps:keys(Nodes), fun weft_ops_sampler:last/1,
                                     TimeoutMs),
    Said = [{Node, Sample} || {Node, #{} = Sample} <- Answers]
        ++ [{Node, silent} || Node <- Silent],
    Report#{nodes := maps:merge(maps:from_list(Said), Nodes)}.

latest(_Node, silent, Other) -> Other;
latest(_Node, One, silent) -> One;
latest(_Node, #{at_ms := A} = One, #{at_ms := B}) when A >= B -> One;
latest(_Node, _One, Other) -> Other.

each_once(Alarms) ->
    Each = lists:foldr(fun(#{id := Id} = Alarm, All) ->
                           maps:update_with(Id, fun(Other) -> known(Alarm, Other) end, Alarm, All)
                       end, #{}, Alarms),
    [Alarm || {_, Alarm} <- lists:sort([{{maps:get(at_ms, Alarm, 0), Id}, Alarm}
                                        || {Id, Alarm} <- maps:to_list(Each)])].

%% An agent that did not answer when the alarm was acknowledged has it as if nobody knew.
known(#{acknowledged := no}, #{acknowledged := #{}} = Other) -> Other;
known(Alarm, _Other) -> Alarm.

%% @doc Acknowledges an alarm at all agents that have raised it. `silent': agents with these duties
%% may have raised it, and did not answer; `{silent, _}' says that others know it now.
-spec acknowledge(weft_ops_alarms_core:id(), Comment :: binary(), TimeoutMs :: pos_integer()) ->
          ok | {silent, Duties} | {error, unknown_alarm | {silent, Duties}}
              when Duties :: [weft_ops_agents:duty(), ...].
acknowledge(Id, Comment, TimeoutMs) ->
    Duties = duties(),
    Agents = maps:from_list(asked(Duties, TimeoutMs,
                                  fun(Candidates, Duty) ->
                                      agent(Candidates, Duty, TimeoutMs div 4)
                                  end)),
    Ask = fun(Agent) -> weft_ops_agent:acknowledge(Agent, Id, Comment, TimeoutMs) end,
    {Answers, _} = weft_ask:all(lists:usort([Agent || {Agent, _} <- maps:values(Agents)]) -- [none],
                                Ask, TimeoutMs),
    Told = maps:from_list(Answers),
    Silent = [Duty || Duty <- concerned(Id, Duties),
                      is_silent(maps:get(Duty, Agents, not_asked), Told)],
    case {lists:member(ok, maps:values(Told)), Silent} of
        {true, []} -> ok;
        {true, _} -> {silent, Silent};
        {false, []} -> {error, unknown_alarm};
        {false, _} -> {error, {silent, Silent}}
    end.

%% Who has this duty, and whether one that may have it did not answer in time.
agent(Candidates, Duty, PartMs) ->
    Ask = fun(Node, TimeoutMs) -> weft_ops_agent:ask(Node, Duty, TimeoutMs) end,
    {Agent, _Report, How} = first(Candidates, Ask, PartMs),
    {Agent, How =:= paused}.

%% Who misses a node is of any group, or of none. All else is said by those to whom it reports.
concerned({unreachable, Node, _About}, Duties) ->
    lists:sort(maps:keys(maps:remove({node, Node}, Duties)));
concerned({_Kind, Node, _About}, Duties) ->
    Groups = weft_group:groups(),
    Own = lists:sort(maps:keys(weft_ops_agents:of_node(Node, Groups)))
        ++ [{node, Witness} || Witness <- weft_ops_agents:witnesses(Node, nodes_known(), Groups)],
    [Duty || Duty <- Own, is_map_key(Duty, Duties)].

%% One that has ended, as the free node itself that an alarm is about, has no alarms any more. One
%% that was there when it was asked for its duty, and can not be reached now, may have them.
is_silent({none, IsPaused}, _Told) -> IsPaused;
is_silent({_Agent, true}, _Told) -> true;
is_silent({Agent, false}, Told) ->
    case Told of
        #{Agent := ok} -> false;
        #{Agent := {error, Reason}} -> not lists:member(Reason, [unknown_alarm, noproc]);
        #{} -> true
    end;
is_silent(not_asked, _Told) -> true.

now_ms() -> erlang:monotonic_time(millisecond).
