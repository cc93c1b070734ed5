%% SPDX-License-Identifier: Apache-2.0
%% @doc A topology of a user may do what it likes; what goes on nevertheless is tested here. This
%% module is also that topology: what its callbacks do is in the options, or comes as a notice.
-module(weft_own_topology_core_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3, validate/2, partial/2, neighbours/1]).

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
%% Like that of a caller, whose request is answered with it.
-define(REF, {caller, tag}).

%% --- the topology -----------------------------------------------------------------------------

init(_Self, #{init := {crash, Reason}}) -> error(Reason);
init(_Self, #{init := {return, What}}) -> What;
init(_Self, #{wants := Nodes} = Options) ->
    {Options#{heard => []}, [{view, {member, Node}, 1} || Node <- Nodes]
        ++ [{connect, Node} || Node <- Nodes]};
init(_Self, Options) -> {Options, []}.

handle({notice, {crash, Reason}}, _NowMs, _State) -> error(Reason);
handle({notice, {return, What}}, _NowMs, _State) -> What;
handle({notice, {do, Effects}}, _NowMs, State) -> {State, Effects};
handle({command, _Ref, leave}, _NowMs, #{leave := crash}) -> error(cannot_leave);
handle({command, Ref, Command}, _NowMs, State) -> {State, [{reply, Ref, {did, Command}}]};
handle(Event, _NowMs, #{heard := Heard} = State) -> {State#{heard := [Event | Heard]}, []}.

validate(_Self, #{validate := {crash, Reason}}) -> error(Reason);
validate(_Self, #{validate := Result}) -> Result;
validate(_Self, _Options) -> ok.

partial(_Self, Options) -> maps:get(partial, Options, true).

neighbours(#{neighbours := {crash, Reason}}) -> error(Reason);
neighbours(#{neighbours := Nodes}) -> Nodes;
neighbours(#{wants := Nodes}) -> Nodes;
neighbours(_State) -> [].

%% --- what is refused at boot ------------------------------------------------------------------

errors_at_boot_say_what_is_wrong_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Term])),
      fun() ->
              {error, Text0} = weft_topology:validate(?A, Term),
              Text = unicode:characters_to_list(Text0),
              [?assertNotEqual({nomatch, Word, Text}, {string:find(Text, Word), Word, Text})
               || Word <- Words]
      end}
     || {Term, Words} <-
            [{{no_such_module, #{}}, ["no_such_module", "no module", "code path", "full_mesh"]},
             {{lists, #{}}, ["lists", "init/2", "handle/3", "validate/2", "partial/2",
                             "neighbours/1", "weft_topology"]},
             {{?MODULE, [option]}, ["no topology"]},
             {{?MODULE, #{validate => {error, "wants more"}}}, ["wants more"]},
             {{?MODULE, #{validate => {crash, oops}}}, ["validate", "crashed", "oops"]},
             {{?MODULE, #{validate => true}}, ["validate", "returned true"]},
             {{?MODULE, #{partial => maybe_so}}, ["partial", "returned maybe_so"]},
             {{?MODULE, #{init => {crash, oops}}}, ["init", "crashed", "oops"]},
             {{?MODULE, #{init => {return, ok}}}, ["init", "returned", "ok"]},
             {{?MODULE, #{init => {return, {s, [{conect, ?B}]}}}}, ["no_effect", "conect"]},
             {{?MODULE, #{neighbours => none}}, ["neighbours", "returned none"]},
             {{?MODULE, #{init => {return, {s, [{reply, r, ok}]}}}}, ["no_effect", "reply"]},
             {{?MODULE, #{neighbours => {crash, oops}}}, ["neighbours", "crashed"]}]].

a_good_one_is_accepted_and_run_by_the_core_for_others_test() ->
    ?assertEqual(ok, weft_topology:validate(?A, {?MODULE, #{wants => [?B]}})),
    ?assertEqual({weft_own_topology_core, #{own => {?MODULE, #{wants => [?B]}}}},
                 weft_topology:core(?MODULE, #{wants => [?B]})),
    ?assertEqual({weft_static_core, #{}}, weft_topology:core(weft_static_core, #{})).

%% --- what passes ------------------------------------------------------------------------------

messages_reach_the_same_module_only_test() ->
    {S0, _} = start(#{wants => [?B]}),
    {S1, [{send, ?B, Sent}]} = step({notice, {do, [{send, ?B, hello}]}}, S0),
    {S2, []} = step({message, ?B, Sent}, S1),
    {S3, []} = step({message, ?B, hello}, S2),
    {S4, []} = step({message, ?B, setelement(2, Sent, other_module)}, S3),
    ?assertMatch([{message, ?B, hello}], heard(S4)).

timers_commands_and_links_are_passed_on_test() ->
    {S0, Effects} = start(#{wants => [?B]}),
    ?assert(lists:member({connect, ?B}, Effects)),
    ?assertEqual([?B], weft_own_topology_core:neighbours(S0)),
    {S1, [{after_ms, 5, Timer}]} = step({notice, {do, [{after_ms, 5, tick}]}}, S0),
    {S2, []} = step({timer, Timer}, S1),
    {S3, []} = step({neighbour_up, ?B}, S2),
    {S4, []} = step({neighbour_down, ?B, closed}, S3),
    ?assertEqual([{neighbour_down, ?B, closed}, {neighbour_up, ?B}, {timer, tick}], heard(S4)),
    ?assertMatch({_, [{reply, ?REF, {did, leave}}]}, step({command, ?REF, leave}, S4)).

%% --- failures ---------------------------------------------------------------------------------

%% Each is a failure, of which nothing is carried out.
rubbish_is_a_failure_test_() ->
    [?_assertMatch({_, [{notice, {warning, {topology_failed, #{module := ?MODULE}}}} | _]},
                   step({notice, What}, element(1, start(#{wants => [?B]}))))
     || What <- [{crash, oops}, {return, ok}, {return, {state, effects}},
                 {return, {state, [{conect, ?B}]}}, {do, [{connect, ?A}]},
                 {do, [{connect, "b@host"}]}, {do, [{after_ms, -1, tick}]},
                 {do, [{view, {route, ?B}, {?B, 1, 1}}]}, {do, [{disconnect, ?B}, rubbish]},
                 {do, [{reply, nobody, ok}]}, {do, [{reply, {one, two, three}, ok}]},
                 {do, [{after_ms, 1 bsl 64, tick}]}, {do, [{after_ms, 1.0, tick}]},
                 {do, [{disconnect, ?B} | rubbish]}]].

%% What passes ends no driver.
a_reply_and_a_long_timer_can_be_carried_out_test() ->
    {State, _} = start(#{}),
    {_, [{after_ms, Ms, Timer}, {reply, Ref, ok}]} =
        step({notice, {do, [{after_ms, 1000000000000, tick}, {reply, {self(), tag}, ok}]}}, State),
    ?assert(is_integer(erlang:cancel_timer(erlang:send_after(Ms, self(), Timer)))),
    ok = gen_server:reply(Ref, ok),
    receive {tag, ok} -> ok end,
    ok = gen_server:reply({nobody_has_this_name, tag}, ok).

what_is_no_list_of_neighbours_is_none_test() ->
    [begin
         {State, _} = start(#{init => {return, {#{neighbours => Wrong}, [{connect, ?B}]}}}),
         ?assertEqual([?B], weft_own_topology_core:neighbours(State))
     end || Wrong <- [none, [?C | ?B]]].

links_are_kept_until_the_module_has_begun_anew_test() ->
    {S0, _} = start(#{wants => [?B, ?C]}),
    {S1, _} = step({neighbour_up, ?B}, S0),
    {S2, Failed} = step({notice, {crash, oops}}, S1),
    ?assertEqual([], [E || {disconnect, _} = E <- Failed]),
    ?assertEqual([], [E || {view, _, delete} = E <- Failed]),
    ?assertEqual([?B, ?C], weft_own_topology_core:neighbours(S2)),
    {S3, Lost} = step({neighbour_down, ?B, closed}, S2),
    [{after_ms, _, Dial}] = Lost,
    ?assertMatch({_, [{connect, ?B} | _]}, step({timer, Dial}, S3)),
    {S4, []} = step({neighbour_up, ?C}, S3),
    {S5, Anew} = step({timer, again(Failed)}, S4),
    ?assert(lists:member({connect, ?B}, Anew)),
    ?assertEqual([{neighbour_up, ?C}], heard(S5)),
    ?assertMatch({_, []}, step({timer, Dial}, S5)).

what_the_module_no_longer_wants_is_given_up_after_a_while_test() ->
    {S0, _} = start(#{}),
    {S1, _} = step({notice, {do, [{connect, ?B}, {view, {member, ?B}, 1}]}}, S0),
    {S2, Failed} = step({notice, {crash, oops}}, S1),
    {S3, Anew} = step({timer, again(Failed)}, S2),
    ?assert(lists:member({view, {member, ?B}, delete}, Anew)),
    [Handover] = [Timer || {after_ms, _, {handover, _} = Timer} <- Anew],
    ?assertMatch({_, [{disconnect, ?B}]}, step({timer, Handover}, S3)).

pauses_grow_up_to_a_minute_and_begin_anew_after_a_quiet_one_test() ->
    {S0, _} = start(#{wants => [?B]}),
    {Pauses, {S, NowMs}} = lists:mapfoldl(
        fun(_, {State0, Ms}) ->
                {State1, Failed} = step({notice, {crash, oops}}, Ms, State0),
                {State2, _} = step({timer, again(Failed)}, Ms, State1),
                {pause(Failed), {State2, Ms}}
        end, {S0, 1}, lists:seq(1, 9)),
    ?assertEqual([1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000], Pauses),
    {_, Failed} = step({notice, {crash, oops}}, NowMs + 60000, S),
    ?assertEqual(1000, pause(Failed)).

a_module_that_fails_when_it_begins_is_tried_again_test() ->
    {S0, Failed} = start(#{init => {crash, oops}}),
    {_, Again} = step({timer, again(Failed)}, S0),
    ?assertEqual({1000, 2000}, {pause(Failed), pause(Again)}).

timers_of_an_earlier_start_are_stale_test() ->
    {S0, _} = start(#{wants => [?B]}),
    {S1, [{after_ms, 5, Timer}]} = step({notice, {do, [{after_ms, 5, tick}]}}, S0),
    {S2, Failed} = step({notice, {crash, oops}}, S1),
    {S3, _} = step({timer, again(Failed)}, S2),
    ?assertMatch({_, []}, step({timer, Timer}, S3)),
    ?assertMatch({_, []}, step({timer, again(Failed)}, S3)).

a_module_that_has_failed_can_leave_and_answers_test() ->
    {S0, _} = start(#{wants => [?B]}),
    {S1, Failed} = step({notice, {crash, oops}}, S0),
    ?assertMatch({_, [{reply, ?REF, {error, topology_failed}}]},
                 step({command, ?REF, {forget, ?B}}, S1)),
    {S2, Left} = step({command, ?REF, leave}, S1),
    ?assertEqual([{disconnect, ?B}, {reply, ?REF, ok}], Left),
    ?assertMatch({_, []}, step({timer, again(Failed)}, S2)).

a_module_that_fails_when_it_is_to_leave_has_left_test() ->
    {S0, _} = start(#{wants => [?B], leave => crash}),
    ?assertMatch({_, [{notice, _}, {disconnect, ?B}, {reply, ?REF, ok}]},
                 step({command, ?REF, leave}, S0)).

a_command_that_makes_it_fail_is_answered_test() ->
    {S0, _} = start(#{init => {return, {no_map, []}}}),
    {_, Effects} = step({command, ?REF, leave_it}, S0),
    ?assertEqual([{reply, ?REF, {did, leave_it}}], Effects),
    {S1, _} = start(#{wants => [?B]}),
    {_, Failed} = step({notice, {return, {state, [{reply, r}]}}}, S1),
    ?assertMatch([{notice, {warning, {topology_failed, #{no_effect := {reply, r}}}}} | _], Failed).

%% --- helpers ----------------------------------------------------------------------------------

start(Options) ->
    weft_own_topology_core:init(?A, #{own => {?MODULE, Options}, seed => 1, incarnation => 1}).

step(Event, State) -> step(Event, 1, State).

step(Event, NowMs, State) -> weft_own_topology_core:handle(Event, NowMs, State).

%% What the module has heard, the latest first: its state is in that of the core.
heard(State) ->
    [#{heard := Heard}] = [Own || {running, Own} <- tuple_to_list(State)],
    Heard.

again(Effects) ->
    [Timer] = [Timer || {after_ms, _, {again, _} = Timer} <- Effects],
    Timer.

pause(Effects) ->
    [Ms] = [Ms || {after_ms, Ms, {again, _}} <- Effects],
    Ms.
