%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole runs on this node: workloads, what ends a run, stopping, checkpoints.
-module(weft_diasca_tests).

-include_lib("eunit/include/eunit.hrl").

-export([about/0, actors/1, init/2, on_tick/2, on_message/4]).

-define(WAIT_MS, 20000).

%% --- workloads --------------------------------------------------------------------------------

%% One machine (actor 1) with 3 cans for 1.00, Ann (2) with 2.50, thirsty each minute, and Bob (3)
%% with 10.00, each second minute. By hand:
%%   minute 1: both are thirsty and order, Ann is served first, as her number is less: 2, 1 cans
%%             left; Ann has 1.50, Bob 9.00
%%   minute 2: Ann only: 0 cans left; Ann has 0.50
%%   minute 3: Ann has not enough for the price and ends; Bob's order finds no can, and he ends
%% Minutes 1 and 3 have the diascas 0 to 4, as minute 2, and the beginning has one: 16. Messages: 4
%% for each can, 2 for Ann's last price, 4 for Bob's last order: 18.
soda_is_what_was_worked_out_by_hand_test() ->
    {ok, Result} = weft_diasca:run(soda, #{options => #{machines => [{3, 100}],
                                                        customers => [{1, 1, 250}, {1, 2, 1000}]}}),
    ?assertMatch(#{tick := 3, diascas := 16, messages := 18, away := 0, dropped := 0, actors := 1,
                   ticks := 4, is_stopped := false}, Result),
    ?assertEqual(#{cans => [{{1, 3}, 1, 2}, {{1, 3}, 1, 1}, {{2, 3}, 1, 0}],
                   cents => [{{1, 4}, 2, 150}, {{1, 4}, 3, 900}, {{2, 4}, 2, 50}],
                   too_poor => [{{3, 2}, 2, 50}],
                   sold_out => [{{3, 4}, 3, 900}],
                   cents_left => [{{3, 2}, 2, 50}, {{3, 4}, 3, 900}],
                   cans_left => [{{3, 5}, 1, 0}]},
                 maps:get(probes, Result)).

workloads_have_one_hash_each_test_() ->
    [{atom_to_list(Name),
      fun() ->
          {ok, #{hash := Hash, values := Values}} = weft_diasca:run(Name, #{probes => none}),
          {ok, #{hash := Again}} = weft_diasca:run(Name, #{probes => none}),
          {ok, #{hash := Other}} = weft_diasca:run(Name, #{probes => none, order => shuffled,
                                                           seed => other}),
          ?assertEqual(Hash, Again),
          ?assert(Values > 0),
          ?assert(Name =:= soda orelse Hash =/= Other)
      end} || {Name, _} <- weft_diasca:workloads()].

phold_neither_loses_nor_makes_events_test() ->
    {ok, #{probes := #{handled := Handled}, messages := Messages}} =
        weft_diasca:run(phold, #{options => #{actors => 10, events => 3, delay_max => 1},
                                 ticks => 50}),
    ?assertEqual({10, 10 * 3 * 50}, {length(Handled), lists:sum([N || {_, _, N} <- Handled])}),
    ?assertEqual(10 * 3 * 50, Messages).

%% --- what ends a run --------------------------------------------------------------------------

%% A workload of actors that do what the test says.
about() -> #{text => "for tests", ticks => 1000000, options => #{actors => []}}.

actors(#{actors := {are, Actors}}) -> Actors;
actors(#{actors := Actors}) -> [{?MODULE, Do, #{}} || Do <- Actors].

init(Do, #{tick := Tick}) -> {Do, [{schedule, Tick + 1}]}.

on_tick({tell, Pid} = Do, #{tick := Tick}) ->
    Pid ! {self(), Tick},
    {Do, [{schedule, Tick + 1}, {probe, tick, Tick}]};
on_tick({stuck_after, Pid}, #{tick := Tick}) ->
    Pid ! {self(), Tick},
    receive go -> {stuck, [{schedule, Tick + 1}]} end;
on_tick(stuck, _Context) -> receive never -> {stuck, []} end;
on_tick(crash, #{tick := Tick}) -> {Tick rem (Tick - 1), []};
on_tick(idle, #{tick := Tick}) -> {idle, [{schedule, Tick + 1}]}.

on_message(_From, _Message, Do, _Context) -> {Do, []}.

run(Actors, Options) -> weft_diasca:run(?MODULE, Options#{options => #{actors => Actors}}).

start(Actors, Options) ->
    {ok, Run} = weft_diasca:start(?MODULE, Options#{options => #{actors => Actors}}),
    Run.

an_actor_that_does_not_end_is_named_test_() ->
    {timeout, 30,
     fun() ->
         {error, Reason} = run([idle, stuck, stuck], #{diasca_ms => 200}),
         ?assertEqual({late, running, {1, 0}, [{node(), [2, 3]}]}, Reason),
         told("at tick 1, diasca 0 did not end in time.*waits for actors \\[2,3\\]", Reason)
     end}.

%% That of a node that has no part in the run is another matter.
a_connection_that_was_lost_is_named_if_a_diasca_does_not_end_test_() ->
    {timeout, 30,
     fun() ->
         Lost = fun(Node) ->
                    Run = start([{tell, self()}, stuck], #{diasca_ms => 1000}),
                    {links, [Manager]} = process_info(actor(), links),
                    Manager ! {nodedown, Node, []},
                    {error, Reason} = weft_diasca:await(Run),
                    Reason
                end,
         Here = node(),
         Cut = Lost(Here),
         ?assertEqual({connection_lost, {Here, Here}, {1, 0}, [{Here, [2]}]}, Cut),
         told("^the connection between the nodes .* was lost at tick 1, diasca 0, so what .* may "
              "not have arrived.*waits for actors \\[2\\].*checkpoint", Cut),
         ?assertEqual({late, running, {1, 0}, [{Here, [2]}]}, Lost(elsewhere@host))
     end}.

%% Until the next diasca, that is.
a_connection_that_is_back_is_not_named_test_() ->
    {timeout, 30,
     fun() ->
         Run = start([{stuck_after, self()}], #{diasca_ms => 1000}),
         Actor = actor(),
         {links, [Manager]} = process_info(Actor, links),
         [Manager ! {Event, node(), []} || Event <- [nodedown, nodeup]],
         {error, _} = gen_server:call(Manager, are_they_handled),
         Actor ! go,
         ?assertEqual({error, {late, running, {2, 0}, [{node(), [1]}]}}, weft_diasca:await(Run))
     end}.

%% As it does with `code => any', if its node has that version.
a_manager_of_the_version_before_names_late_actors_test_() ->
    {timeout, 30,
     fun() ->
         %% The manager is not asked before it is suspended.
         Run = start([{tell, self()}, stuck], #{diasca_ms => 2000}),
         {links, [Manager]} = process_info(actor(), links),
         1 = erlang:trace(Manager, true, ['receive']),
         ok = sys:suspend(Manager),
         receive {trace, Manager, 'receive', {weft_diasca, who_is_late}} -> ok
         after ?WAIT_MS -> error(not_asked)
         end,
         Run ! {weft_diasca, {late, node(), [2]}},
         ?assertEqual({error, {late, running, {1, 0}, [{node(), [2]}]}}, weft_diasca:await(Run)),
         1 = erlang:trace(Manager, false, ['receive']),
         ok = sys:resume(Manager),
         flush()
     end}.

an_actor_that_crashes_is_named_test() ->
    {error, Reason} = run([idle, crash], #{}),
    ?assertMatch({actor_failed, _, {1, 0}, 2, {?MODULE, error, badarith, _}}, Reason),
    told("actor 2 on .* failed at tick 1, diasca 0: .*badarith", Reason).

a_killed_actor_is_named_test() ->
    Run = start([idle, {tell, self()}], #{}),
    exit(actor(), kill),
    ?assertMatch({error, {actor_failed, _, _, 2, {process, exit, killed, []}}},
                 weft_diasca:await(Run)),
    flush().

a_killed_manager_is_named_test() ->
    Run = start([idle, {tell, self()}], #{}),
    {links, [Manager]} = process_info(actor(), links),
    exit(Manager, kill),
    {error, Reason} = weft_diasca:await(Run),
    told("^the manager on node .* was lost at tick .*: killed", Reason),
    flush().

a_run_ends_with_its_caller_and_all_ends_with_the_run_test() ->
    Self = self(),
    Caller = spawn(fun() ->
                       Run = start([{tell, Self}], #{}),
                       Self ! {run, Run},
                       weft_diasca:await(Run)
                   end),
    Run = receive {run, Pid} -> Pid after ?WAIT_MS -> none end,
    Monitors = [monitor(process, One) || One <- [Run, actor()]],
    exit(Caller, kill),
    [receive {'DOWN', Monitor, _, _, _} -> ok after ?WAIT_MS -> ?assert(false) end
     || Monitor <- Monitors],
    flush().

strays_change_nothing_test() ->
    %% It is stopped long before its last tick.
    Run = start([{tell, self()}], #{probes => none}),
    Actor = actor(),
    {links, [Manager]} = process_info(Actor, links),
    [begin
         Pid ! stray,
         gen_server:cast(Pid, stray),
         ?assertEqual({error, {unknown, what}}, gen_server:call(Pid, what))
     end || Pid <- [Run, Actor, Manager]],
    ?assertMatch(#{phase := running}, weft_diasca:status(Run)),
    ok = weft_diasca:stop(Run),
    {ok, #{tick := Tick, values := Tick, is_stopped := true}} = weft_diasca:await(Run),
    flush().

actor() -> receive {Pid, Tick} when is_pid(Pid), is_integer(Tick) -> Pid after ?WAIT_MS -> none end.

flush() -> receive _ -> flush() after 0 -> ok end.

bad_options_are_refused_with_a_reason_test() ->
    Refused = fun(Workload, Options, Text) ->
                      {error, Reason} = weft_diasca:run(Workload, Options),
                      told(Text, Reason)
              end,
    Refused(no_such_thing, #{}, "there is no workload no_such_thing.*about/0"),
    Refused(lists, #{}, "there is no workload lists"),
    Refused(soda, #{tiks => 5}, "no option tiks"),
    Refused(soda, #{ticks => -5}, "option ticks can not be -5"),
    Refused(soda, #{diasca_ms => 1 bsl 32}, "option diasca_ms can not be"),
    Refused(soda, #{code => other}, "option code can not be other"),
    Refused(soda, #{nodes => [a, a]}, "option nodes can not be"),
    Refused(soda, #{nodes => 5}, "option nodes can not be"),
    Refused(soda, #{nodes => []}, "option nodes can not be"),
    Refused(soda, #{nodes => [a | b]}, "option nodes can not be"),
    Refused(soda, #{probes => [a | b]}, "option probes can not be"),
    Refused(soda, #{checkpoint => ""}, "option checkpoint can not be"),
    Refused(soda, #{checkpoint_ticks => 5}, "checkpoint_ticks says how often"),
    Refused(soda, #{options => #{cans => 5}}, "no option cans; it has"),
    Refused(soda, #{options => #{customers => [{7, 1, 1}]}}, "a customer wants machine 7 of 2"),
    Refused(phold, #{options => #{actors => 0}}, "actors, events and delay_max are numbers"),
    Refused(phold, #{actors_max => 10}, "more than 10 actors"),
    Refused(soda, #{nodes => [none@nowhere]}, "node none@nowhere can not be used").

a_workload_that_is_wrong_is_told_what_it_is_to_return_test() ->
    Wrong = fun(Actors, Text) ->
                    {error, Reason} = run({are, Actors}, #{}),
                    told(Text, Reason)
            end,
    Right = {?MODULE, idle, #{place => here}},
    Wrong(Right, "actors/1 is to return a list, and returned {"),
    Wrong([Right | Right], "actors/1 is to return a list"),
    Wrong([Right, {?MODULE, idle}], "actor 2 is to be .*, and is {weft_diasca_tests,idle}"),
    Wrong([Right, {?MODULE, idle, #{near => here}}], "Options is a map that may have place").

told(Pattern, Reason) ->
    ?assertMatch({match, _}, re:run(weft_diasca:format_error(Reason), Pattern, [dotall])).

%% --- code -------------------------------------------------------------------------------------

engine_workload_and_actors_are_compared_test() ->
    About = #{workload => weft_diasca_phold},
    Modules = weft_diasca_code:modules(About, {actors, [{lists, x, #{}}]}),
    [?assert(lists:member(Module, Modules))
     || Module <- [weft_diasca_phold, weft_diasca_actor_core, weft_diasca_root, lists]],
    Saved = {checkpoint, #{actors => [#{module => lists}]}},
    ?assert(lists:member(lists, weft_diasca_code:modules(About, Saved))).

md5s_are_those_of_what_is_loaded_or_would_be_test() ->
    ?assertEqual([{lists, lists:module_info(md5)}, {no_such_module, {error, nofile}}],
                 weft_diasca_code:md5s([lists, no_such_module])).

nodes_of_a_run_are_compared_with_the_first_of_them_test_() ->
    None = {error, nofile},
    [?_assertEqual(Differences,
                   weft_diasca_code:differences([{Node, [{engine, Engine}, {actor, Actor}]}
                                                 || {Node, Engine, Actor} <- Nodes],
                                                {Root, [{engine, 1}]}))
     || {Differences, Root, Nodes} <-
            [{[], a, [{a, 1, 1}, {b, 1, 1}]},
             {[{other_code, b, engine, a}, {other_code, c, actor, a}], a,
              [{a, 1, 1}, {b, 2, 1}, {c, 1, 2}]},
             {[{no_module, b, actor, nofile}], a, [{a, 1, 1}, {b, 1, None}]},
             {[{no_module, a, actor, nofile}], a, [{a, 1, None}, {b, 1, 1}]},
             {[{no_module, a, actor, nofile}, {no_module, b, actor, nofile}], root,
              [{a, 1, None}, {b, 1, None}]},
             %% The node of the run is none of them: only the engine has to be the same there.
             {[], root, [{a, 1, 7}, {b, 1, 7}]},
             {[{other_code, b, actor, a}], root, [{a, 1, 7}, {b, 1, 8}]},
             {[{other_code, root, engine, a}], root, [{a, 2, 7}, {b, 2, 7}]}]].

what_differs_is_told_test() ->
    told("^node b@host has another version of the module lists than a@host: .*code => any",
         {other_code, b@host, lists, a@host}),
    told("^node b@host can not load the module lists \\(embedded\\): put it .* or load it there",
         {no_module, b@host, lists, embedded}).

%% --- checkpoints ------------------------------------------------------------------------------

a_run_goes_on_from_its_file_to_the_same_hash_test_() ->
    {setup, fun() -> filename:join(string:trim(os:cmd("mktemp -d")), "checkpoint") end,
     fun(File) -> file:del_dir_r(filename:dirname(File)) end,
     fun(File) ->
         [{"after it has ended", fun() -> again(File) end},
          {"when it was stopped", fun() -> stopped(File) end},
          {"unless it is damaged", fun() -> damaged(File) end}]
     end}.

again(File) ->
    {ok, #{hash := Hash} = Whole} = weft_diasca:run(phold, #{}),
    {ok, #{hash := Hash}} = weft_diasca:run(phold, #{checkpoint => File, checkpoint_ticks => 30}),
    {ok, #{checkpoint := #{tick := Tick, time := {At, _}}}} = weft_diasca_file:read(File),
    ?assert(Tick > 60 andalso Tick < 100),
    {ok, #{hash := Then}} = weft_diasca:run(phold, #{ticks => At}),
    ?assertMatch({ok, #{tick := At, hash := Then}}, weft_diasca:continue(File, #{ticks => At})),
    {error, Before} = weft_diasca:continue(File, #{ticks => At - 1}),
    told("the last tick can not be .*: the checkpoint is of tick", Before),
    {ok, Continued} = weft_diasca:continue(File, #{}),
    Measured = [wall_ms, setup_ms],
    ?assertEqual(maps:without(Measured, Whole), maps:without(Measured, Continued)),
    ?assertMatch({ok, #{tick := 200}}, weft_diasca:continue(File, #{ticks => 200})).

stopped(File) ->
    Actors = [{tell, self()}, idle],
    Run = start(Actors, #{checkpoint => File, ticks => 500000}),
    _ = actor(),
    ok = weft_diasca:stop(Run),
    {ok, #{tick := Tick}} = weft_diasca:await(Run),
    {ok, #{hash := Whole}} = run(Actors, #{ticks => Tick + 100}),
    {ok, #{hash := Hash}} = weft_diasca:continue(File, #{ticks => Tick + 100}),
    ?assertEqual(Whole, Hash),
    flush().

damaged(File) ->
    {ok, Bytes} = file:read_file(File),
    Size = byte_size(Bytes) - 5,
    <<Before:Size/binary, Byte, After/binary>> = Bytes,
    ok = file:write_file(File, [Before, Byte bxor 1, After]),
    {error, Reason} = weft_diasca:continue(File, #{}),
    told("is no checkpoint, or is damaged", Reason),
    {error, None} = weft_diasca:continue(File ++ "s", #{}),
    told("checkpoints: no such file", None),
    {error, Seed} = weft_diasca:continue(File, #{seed => 1}),
    told("seed can not be changed", Seed),
    {error, Where} = weft_diasca:run(phold, #{checkpoint => "/dev/null/x", checkpoint_ticks => 1}),
    told("can not be written to /dev/null/x: ", Where),
    %% It would be written when the run is stopped; that is too late to say that it can not be.
    {error, Dir} = weft_diasca:run(phold, #{checkpoint => filename:dirname(File), ticks => 1}),
    told("can not be written to .*: illegal operation on a directory", Dir).
