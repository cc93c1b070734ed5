%% SPDX-License-Identifier: Apache-2.0
%% @doc What is known of nodes whose agent does not answer.
-module(weft_ops_picture_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SAMPLE, #{node => node(), at_ms => 5, period_ms => 100, uptime_ms => 1, groups => [g],
                  peers => [], links => [], relayed_bytes => 0, relayed_circuits => 0,
                  unreachable => [], machine => #{wake_up_us => 0, run_queue => 0,
                                                  memory_bytes => 1, processes => 1}}).

%% Its nodes report to it all the same.
who_has_an_agent_that_is_paused_is_asked_itself_test() ->
    ?assertEqual(#{nodes => #{node() => ?SAMPLE}, agents => #{{group, g} => none}, alarms => []},
                 picture(sampler({ok, ?SAMPLE}))).

who_does_not_answer_either_is_silent_test() ->
    ?assertEqual(#{nodes => #{node() => silent}, agents => #{{group, g} => none}, alarms => []},
                 picture(fun paused/0)).

%% It has no sample yet, is of another version, or is not there.
of_whom_nothing_is_known_is_left_out_test() ->
    [?assertEqual(#{nodes => #{}, agents => #{{group, g} => none}, alarms => []}, picture(Sampler))
     || Sampler <- [sampler({ok, none}), sampler({ok, #{node => node()}}),
                    sampler({error, {unknown_request, last}}), fun() -> ok end]].

%% One of two agents did not answer when an alarm of both was acknowledged.
what_one_agent_knows_to_be_acknowledged_is_test() ->
    Known = alarm(#{comment => <<"mine">>, at_ms => 7}),
    ?assertMatch(#{alarms := [Known]}, picture([g, h], agent(#{g => alarm(no), h => Known}),
                                               fun paused/0)),
    ?assertMatch(#{alarms := [Known]}, picture([g, h], agent(#{g => Known, h => alarm(no)}),
                                               fun paused/0)).

%% --- who knows of an acknowledgement ------------------------------------------------------------

all_agents_of_a_node_are_told_test() ->
    ?assertEqual(ok, acknowledged([g, h], #{asks => [g, h], says => ok})).

%% One of two says nothing: somebody who believes that all know it would look at the alarm again.
agents_that_do_not_answer_are_named_test() ->
    ?assertEqual({silent, [{group, h}]}, acknowledged([g, h], #{asks => [g], says => ok})).

%% Whether they have raised it is not known.
if_no_agent_answers_the_alarm_is_not_unknown_test() ->
    ?assertEqual({error, {silent, [{group, g}, {group, h}]}},
                 acknowledged([g, h], #{asks => [g, h], says => nothing})),
    ?assertEqual({error, {silent, [{group, h}]}},
                 acknowledged([g, h], #{asks => [g], says => {error, unknown_alarm}})).

what_no_agent_has_raised_is_unknown_test() ->
    ?assertEqual({error, unknown_alarm},
                 acknowledged([g, h], #{asks => [g, h], says => {error, unknown_alarm}})).

%% Agents of all groups, and of all free nodes, may have raised that. The node itself has not.
all_agents_may_miss_an_unreachable_node_test() ->
    Gone = {unreachable, other@h, other@h},
    ?assertEqual({silent, [{group, h}]}, acknowledged(Gone, [g, h], #{asks => [g], says => ok})),
    ?assertEqual({error, {silent, [{group, h}]}},
                 acknowledged(Gone, [g, h], #{asks => [g], says => {error, unknown_alarm}})),
    ?assertEqual(ok, acknowledged(Gone, [g, h], #{asks => [g, h], says => ok})),
    %% Of all else only its own agents say anything.
    ?assertEqual(ok, acknowledged({busy, other@h, other@h}, [g, h], #{asks => [g], says => ok})).

%% It was there when it was asked which agent has the duty. Whether it knows is not known.
an_agent_that_is_lost_meanwhile_is_named_test() ->
    ?assertEqual({error, {silent, [{group, g}]}},
                 acknowledged([g], #{asks => [g], says => lost})).

%% An agent of a group that the alarm is not of does not matter, and one that has ended has none.
who_is_not_concerned_is_not_missed_test() ->
    ok = weft_view:new(),
    ok = weft_view:put(?MODULE, {group, other}, [other@h]),
    ?assertEqual({error, unknown_alarm},
                 weft_ops_picture:acknowledge({busy, other@h, here}, <<"mine">>, 1000)),
    ok = weft_view:clear(?MODULE),
    ?assertEqual(ok, acknowledged([g], #{asks => [g], says => ok})).

acknowledged(Groups, Does) -> acknowledged({silent, node(), node()}, Groups, Does).

acknowledged(Id, Groups, Does) ->
    with(Groups, fun() -> answers(Does) end, fun paused/0,
         fun() -> weft_ops_picture:acknowledge(Id, <<"mine">>, 1000) end).

%% Answers for these groups only, and that to an acknowledgement.
answers(#{asks := Groups, says := Says} = Does) ->
    receive
        {'$gen_call', From, {ask, {group, Group}}} ->
            [gen_server:reply(From, {ok, #{nodes => #{}, alarms => []}})
             || lists:member(Group, Groups)];
        {'$gen_call', From, {acknowledge, {_, _, _}, <<"mine">>}} ->
            %% As the connection with its node.
            _ = Says =:= lost andalso exit(noconnection),
            [gen_server:reply(From, Says) || Says =/= nothing]
    end,
    answers(Does).

%% ------------------------------------------------------------------------------------------------

alarm(Acknowledged) ->
    #{id => {silent, node(), node()}, severity => critical, text => <<"it is gone">>,
      raised_ms => 1, at_ms => 1, acknowledged => Acknowledged}.

%% For each group it has one alarm.
agent(Alarms) ->
    fun Serve() ->
        receive
            {'$gen_call', From, {ask, {group, Group}}} ->
                gen_server:reply(From, {ok, #{nodes => #{node() => ?SAMPLE},
                                              alarms => [maps:get(Group, Alarms)]}}),
                Serve()
        end
    end.

paused() -> receive after infinity -> ok end.

sampler(Answer) ->
    fun() ->
        receive {'$gen_call', From, last} -> gen_server:reply(From, Answer) end,
        paused()
    end.

%% Of a group of this node alone, whose agent does not answer.
picture(Sampler) -> picture([g], fun paused/0, Sampler).

picture(Groups, Agent, Sampler) ->
    with(Groups, Agent, Sampler, fun() -> weft_ops_picture:take(1000) end).

with(Groups, Agent, Sampler, Ask) ->
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, {group, Group}, [node()]) || Group <- Groups],
    Others = [started(Name, Does) || {Name, Does} <- [{weft_ops_agent, Agent},
                                                      {weft_ops_sampler, Sampler}]],
    Answer = Ask(),
    [begin
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> ok end
     end || {Pid, Ref} <- Others],
    ok = weft_view:clear(?MODULE),
    Answer.

started(Name, Does) ->
    Self = self(),
    Started = spawn_monitor(fun() ->
                                true = register(Name, self()),
                                Self ! {is_there, Name},
                                Does()
                            end),
    receive {is_there, Name} -> Started end.
