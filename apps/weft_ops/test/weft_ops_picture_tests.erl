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

paused() -> receive after infinity -> ok end.

sampler(Answer) ->
    fun() ->
        receive {'$gen_call', From, last} -> gen_server:reply(From, Answer) end,
        paused()
    end.

%% Of a group of this node alone, whose agent does not answer.
picture(Sampler) ->
    ok = weft_view:new(),
    ok = weft_view:put(?MODULE, {group, g}, [node()]),
    Others = [started(Name, Does) || {Name, Does} <- [{weft_ops_agent, fun paused/0},
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
