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
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, {group, Group}, [node()]) || Group <- Groups],
    Others = [started(Name, Does) || {Name, Does} <- [{weft_ops_agent, Agent},
                                                      {weft_ops_sampler, Sampler}]],
    Picture = weft_ops_picture:take(1000),
    [begin
         exit(Pid, kill),
         receive {'DOWN', Ref, process, Pid, _} -> ok end
     end || {Pid, Ref} <- Others],
    ok = weft_view:clear(?MODULE),
    Picture.

started(Name, Does) ->
    Self = self(),
    Started = spawn_monitor(fun() ->
                                true = register(Name, self()),
                                Self ! {is_there, Name},
                                Does()
                            end),
    receive {is_there, Name} -> Started end.
