%% SPDX-License-Identifier: Apache-2.0
%% @doc Schedules on real nodes: what is done, what heals, what is refused.
-module(weft_chaos_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_cut_heals_by_itself/1, faults_of_a_schedule/1, a_crash_and_a_start/1,
         stopped_is_healed/1, refused_unless_enabled/1, a_cut_outlives_a_delay/1,
         a_cut_in_one_way/1, late_and_lost/1, pauses_end/1, a_pause_under_way_is_ended/1,
         too_late_is_not_done/1, a_slow_answer_counts/1, a_node_of_the_version_before/1]).
-export([starter/1, inbox/0, received/0]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    healed() ++ [a_crash_and_a_start, a_cut_heals_by_itself].

%% After these the nodes are as before, for the next one.
healed() ->
    [a_cut_in_one_way, faults_of_a_schedule, stopped_is_healed, refused_unless_enabled,
     a_cut_outlives_a_delay, late_and_lost, pauses_end, a_pause_under_way_is_ended,
     too_late_is_not_done, a_slow_answer_counts, a_node_of_the_version_before].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(Case, Config) ->
    case {lists:member(Case, healed()), ?config(tc_status, Config)} of
        {true, ok} -> ok;
        _ ->
            _ = persistent_term:erase(?MODULE),
            weft_test_nodes:stop_all()
    end.

%% Three nodes in a mesh, those of the case before if it has left them; the schedule is run by the
%% third.
mesh(Config, Enabled) ->
    Refs = case persistent_term:get(?MODULE, none) of
               none -> started(Config);
               Left -> Left
           end,
    [weft_test_nodes:call(Ref, application, set_env, [weft_chaos, enabled, Enabled])
     || Ref <- Refs],
    Names = [maps:get(node, Ref) || Ref <- Refs],
    %% There and back: a link that was cut may still be on its way to be used again.
    [weft_test_nodes:until(fun() -> weft_test_nodes:call(From, net_adm, ping, [To]) =:= pong end)
     || From <- Refs, To <- Names, To =/= maps:get(node, From)],
    {Refs, Names}.

started(Config) ->
    Options = #{config => [{faults, true}], args => ["-pa", weft_test_nodes:ebin(weft_chaos), "-pa",
                                                     weft_test_nodes:ebin(?MODULE)]},
    Refs = [weft_test_nodes:start(Name, Options, ?config(place, Config)) || Name <- [a, b, c]],
    ok = persistent_term:put(?MODULE, Refs),
    Refs.

call(Ref, Function, Arguments) ->
    weft_test_nodes:call(Ref, weft_chaos, Function, Arguments).

%% The one who asked for it is gone; the cut ends all the same.
a_cut_heals_by_itself(Config) ->
    {[A, _, C], [NodeA, NodeB, _]} = mesh(Config, true),
    {ok, _} = call(C, start, [[{0, {cut, NodeA, NodeB, 5000}}], #{}]),
    weft_test_nodes:until(fun() -> cuts(A) =:= [NodeB] end),
    ok = weft_test_nodes:kill(C),
    weft_test_nodes:until(fun() -> cuts(A) =:= [] end),
    weft_test_nodes:until(fun() ->
                                  weft_test_nodes:call(A, net_adm, ping, [NodeB]) =:= pong
                          end).

cuts(Ref) -> weft_test_nodes:call(Ref, weft_fault, cuts, []).

faults_of_a_schedule(Config) ->
    {[A, _, C], [NodeA, NodeB, NodeC]} = mesh(Config, true),
    Schedule = [{0, {break, NodeA, NodeB}}, {50, {delay, NodeA, NodeC, 1, 5, 300}},
                {100, {pause, NodeB, 300}}, {200, {partition, [[NodeA], [NodeB]], 500}},
                {900, {kill, NodeA, #{apps => [no_such_application]}}}],
    {ok, #{done := Done, failed := Failed}} = call(C, run, [Schedule]),
    ?assertEqual([break, cut, delay, pause],
                 lists:sort([element(1, Verb) || {_, Verb, _} <- Done])),
    ?assertMatch([{_, {kill, NodeA, _}, _}], Failed),
    ?assertEqual([], cuts(A)),
    ?assertMatch(#{schedule := none, faults_here := []}, call(A, status, [])),
    weft_test_nodes:until(fun() ->
                                  weft_test_nodes:call(A, net_adm, ping, [NodeB]) =:= pong
                          end).

a_crash_and_a_start(Config) ->
    {[_, _, C], [NodeA, NodeB, _]} = mesh(Config, true),
    {ok, #{done := [{_, {crash, NodeA}, _}], failed := [{_, {start, NodeA}, Text}]}} =
        call(C, run, [[{0, {crash, NodeA}}, {500, {start, NodeA}}]]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"start">>)),
    weft_test_nodes:until(fun() ->
                                  not lists:member(NodeA, weft_test_nodes:call(C, erlang, nodes,
                                                                               []))
                          end),
    ?assert(lists:member(NodeB, weft_test_nodes:call(C, erlang, nodes, []))),
    {ok, #{done := [{_, {start, NodeA}, _}], failed := []}} =
        call(C, run, [[{0, {start, NodeA}}], #{start => fun weft_chaos_SUITE:starter/1}]),
    ?assertEqual(NodeA, weft_test_nodes:call(C, persistent_term, get, [?MODULE])).

%% @doc How a node is started is up to whoever runs the schedule; this one only writes it down.
-spec starter(node()) -> ok.
starter(Node) -> persistent_term:put(?MODULE, Node).

stopped_is_healed(Config) ->
    {[A, _, C], [NodeA, NodeB, _]} = mesh(Config, true),
    {ok, _} = call(C, start, [[{0, {cut, NodeA, NodeB, 60000}}], #{}]),
    weft_test_nodes:until(fun() -> cuts(A) =:= [NodeB] end),
    ?assertMatch({error, _}, call(C, start, [[{0, heal_all}], #{}])),
    weft_test_nodes:until(fun() ->
                                  #{schedule := Schedule} = call(C, status, []),
                                  maps:with([done, to_come], Schedule) =:= #{done => 1,
                                                                             to_come => 0}
                          end),
    ok = call(C, stop, []),
    ?assertEqual([], cuts(A)),
    ?assertEqual({error, not_running}, call(C, stop, [])).

refused_unless_enabled(Config) ->
    {[A, _, C], [NodeA, NodeB, _]} = mesh(Config, false),
    {ok, #{done := [], failed := [{_, {cut, NodeA, NodeB, _}, Text}]}} =
        call(C, run, [[{0, {cut, NodeA, NodeB, 500}}]]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"enabled">>)),
    ?assertEqual([], cuts(A)),
    {error, Wrong} = call(C, run, [[{0, {explode, NodeA}}]]),
    ?assertMatch({_, _}, binary:match(list_to_binary(Wrong), <<"explode">>)).

%% Several links of one node at once, each cut and slow for times of their own.
a_cut_outlives_a_delay(Config) ->
    {[A, _, C], [NodeA, NodeB, NodeC]} = mesh(Config, true),
    {ok, _} = call(C, start, [[{0, {cut, NodeA, NodeB, 60000}}, {0, {loss, NodeA, NodeC, 1, 60000}},
                               {10, {delay, NodeA, NodeB, 1, 2, 200}},
                               {20, {delay, NodeA, NodeC, 1, 2, 200}}], #{}]),
    weft_test_nodes:until(fun() ->
                                  #{schedule := Schedule} = call(C, status, []),
                                  maps:with([done], Schedule) =:= #{done => 4}
                          end),
    weft_test_nodes:until(fun() ->
                                  maps:get(faults_here, call(A, status, []))
                                      =:= lists:sort([{cut, NodeB}, {loss, NodeC}])
                          end),
    ?assertEqual([NodeB], cuts(A)),
    ?assertEqual({0, 0, 1}, weft_test_nodes:call(A, weft_fault, lateness, [NodeC])),
    ok = call(C, stop, []),
    ?assertEqual([], cuts(A)).

%% What B sends still arrives at A on the link that there is; what A sends does not arrive at B, not
%% even its answer. Healed, what was held back arrives.
a_cut_in_one_way(Config) ->
    {[A, B, C], [NodeA, NodeB, _]} = mesh(Config, true),
    [true = weft_test_nodes:call(Ref, ?MODULE, inbox, []) || Ref <- [A, B]],
    {ok, _} = call(C, start, [[{0, {cut_one_way, NodeA, NodeB}}, {60000, heal_all}], #{}]),
    weft_test_nodes:until(fun() -> cuts(A) =:= [NodeB] end),
    ?assertEqual([], cuts(B)),
    _ = weft_test_nodes:call(A, erlang, send, [{inbox, NodeB}, from_a]),
    _ = weft_test_nodes:call(B, erlang, send, [{inbox, NodeA}, from_b]),
    weft_test_nodes:until(fun() -> received(A) =:= [from_b] end),
    ?assertEqual([], received(B)),
    ok = call(C, stop, []),
    weft_test_nodes:until(fun() -> received(B) =:= [from_a] end),
    ?assertEqual([], cuts(A)).

%% @doc Starts a process that keeps what it gets.
-spec inbox() -> true.
inbox() -> register(inbox, spawn(fun() -> receive never -> ok end end)).

%% @doc What it got.
-spec received() -> [term()].
received() -> element(2, process_info(whereis(inbox), messages)).

received(Ref) -> weft_test_nodes:call(Ref, ?MODULE, received, []).

%% A round trip takes both delays, or the repetition of both packets, on links that are up already;
%% and all is as before when it is over.
late_and_lost(Config) ->
    {[A, _, C], [NodeA, NodeB, _]} = mesh(Config, true),
    weft_test_nodes:until(fun() -> round_trip_ms(A, NodeB) < 100 end),
    [begin
         {ok, _} = call(C, start, [[{0, Verb}], #{}]),
         weft_test_nodes:until(fun() -> length(maps:get(faults_here, call(A, status, []))) =:= 1
                                            andalso round_trip_ms(A, NodeB) >= AtLeastMs end),
         ?assert(round_trip_ms(A, NodeB) >= AtLeastMs),
         ok = call(C, stop, []),
         weft_test_nodes:until(fun() -> round_trip_ms(A, NodeB) < AtLeastMs end)
     end || {Verb, AtLeastMs} <- [{{delay, NodeA, NodeB, 60, 70, 60000}, 120},
                                  {{loss, NodeA, NodeB, 100, 60000}, 400}]].

round_trip_ms(Ref, Node) ->
    {Us, pong} = weft_test_nodes:call(Ref, timer, tc, [net_adm, ping, [Node]]),
    Us div 1000.

%% By a step, or when a schedule is stopped: long before their time, and later ones are not ended by
%% the time of those before.
pauses_end(Config) ->
    {[_, #{os_pid := OsPid} = B, C], [_, NodeB, _]} = mesh(Config, true),
    {ok, _} = call(C, start, [[{0, {pause, NodeB, 60000}}], #{}]),
    weft_test_nodes:until(fun() -> stands_still(OsPid) end),
    ?assert(has_waker(OsPid)),
    ok = call(C, stop, []),
    ?assertNot(stands_still(OsPid)),
    weft_test_nodes:until(fun() -> not has_waker(OsPid) end),
    ?assertEqual(NodeB, weft_test_nodes:call(B, erlang, node, [])),
    {ok, #{done := Done, failed := []}} =
        call(C, run, [[{0, {pause, NodeB}}, {400, {resume, NodeB}}, {600, {pause, NodeB}},
                       {1000, heal_all}]]),
    ?assertEqual(4, length(Done)),
    weft_test_nodes:until(fun() -> not stands_still(OsPid) end).

%% What gets to the node is a second late. When the schedule is stopped it has been told that the
%% pause is still wanted, and does not know it yet.
a_pause_under_way_is_ended(Config) ->
    {[_, #{os_pid := OsPid}, C], [_, NodeB, _]} = mesh(Config, true),
    ok = weft_test_nodes:call(C, weft_fault, delay, [NodeB, 1000, 1000]),
    {ok, _} = call(C, start, [[{0, {pause, NodeB, 60000}}], #{}]),
    receive after 1500 -> ok end, % pacing: between the two seconds that this takes
    ok = call(C, stop, []),
    weft_test_nodes:until(fun() -> not has_waker(OsPid) end),
    ?assertNot(stands_still(OsPid)),
    ok = weft_test_nodes:call(C, weft_chaos_agent, heal_all, []).

stands_still(OsPid) ->
    lists:prefix("T", os:cmd(lists:concat(["ps -o state= -p ", OsPid]))).

%% The process of the system that would end a pause in the end.
has_waker(OsPid) ->
    string:find(os:cmd("ps -A -o args="), lists:concat(["weft_chaos_pause_", OsPid, "_"]))
        =/= nomatch.

%% A node gets what it was asked for while it stood still when it goes on.
too_late_is_not_done(Config) ->
    {[A, _, C], [NodeA, _, _]} = mesh(Config, true),
    {ok, #{done := Done, failed := Failed}} =
        call(C, run, [[{0, {pause, NodeA, 9000}}, {2000, {crash, NodeA}}]]),
    ?assertMatch({[{_, {pause, NodeA, _}, _}], [{_, {crash, NodeA}, _}]}, {Done, Failed}),
    ?assertEqual(NodeA, weft_test_nodes:call(A, erlang, node, [])),
    receive after 1000 -> ok end, % pacing: a crash comes some time after it was asked for
    ?assertEqual(NodeA, weft_test_nodes:call(A, erlang, node, [])).

%% What is asked for goes there, the question whether it is still wanted back, and so on.
a_slow_answer_counts(Config) ->
    {[_, _, C], [NodeA, NodeB, NodeC]} = mesh(Config, true),
    ?assertMatch({ok, #{failed := [], done := [_, _]}},
                 call(C, run, [[{0, {delay, NodeA, NodeC, 550, 550, 5000}},
                                {1000, {break, NodeA, NodeB}}]])).

a_node_of_the_version_before(Config) ->
    {[A, _, C], [NodeA, _, _]} = mesh(Config, true),
    {ok, Module, Beam} =
        compile:forms([form(Text) || Text <- ["-module(weft_chaos_agent).",
                                              "-export([do/1, heal_all/0]).",
                                              "do(_Verb) -> {ok, before}.", "heal_all() -> ok."]]),
    {module, Module} = weft_test_nodes:call(A, code, load_binary, [Module, "before", Beam]),
    ?assertMatch({ok, #{done := [{_, _, before}], failed := []}},
                 call(C, run, [[{0, {kill, NodeA, #{}}}]])),
    _ = weft_test_nodes:call(A, code, purge, [Module]),
    {module, Module} = weft_test_nodes:call(A, code, load_file, [Module]).

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.
