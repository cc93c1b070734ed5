%% SPDX-License-Identifier: Apache-2.0
-module(weft_chaos_monkey_tests).

-include_lib("eunit/include/eunit.hrl").

-behaviour(application).
-behaviour(supervisor).
-export([start/2, stop/1, init/1]).
-export([worker/1]).

%% --- an application with three workers --------------------------------------------------------

start(_Type, []) -> supervisor:start_link(?MODULE, []).
stop(_State) -> ok.

init([]) ->
    {ok, {#{intensity => 100, period => 1},
          [#{id => below, type => supervisor, start => {weft_supervisor, start_link,
                                                        [?MODULE, below]}}
           | [#{id => Id, start => {?MODULE, worker, [Id]}} || Id <- [one, two, three]]]}};
init(below) ->
    {ok, {#{}, []}}.

worker(Id) ->
    {ok, proc_lib:spawn_link(fun() ->
                                     true = register(Id, self()),
                                     receive stop -> ok end
                             end)}.

with_application(Test) ->
    ok = application:load({application, monkey_test,
                           [{vsn, "1"}, {applications, [kernel]}, {modules, []},
                            {registered, []}, {mod, {?MODULE, []}}]}),
    ok = application:set_env(weft_chaos, enabled, true),
    %% Supervisors report each kill.
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ok = application:start(monkey_test),
    try
        weft_test_nodes:until(fun() -> length(named()) =:= 3 end),
        Test()
    after
        _ = application:stop(monkey_test),
        ok = application:unload(monkey_test),
        ok = application:unset_env(weft_chaos, enabled),
        ok = logger:set_primary_config(level, Level)
    end.

named() -> [Name || Name <- [one, two, three], is_pid(whereis(Name))].

%% --- tests ------------------------------------------------------------------------------------

monkey_test_() ->
    [{Name, {timeout, 60, fun() -> with_application(Test) end}}
     || {Name, Test} <- [{"only workers", fun only_workers/0}, {"weights", fun weights/0},
                         {"a seed decides", fun a_seed_decides/0},
                         {"again and again", fun again_and_again/0},
                         {"nobody is found", fun it_says_that_nobody_is_found/0},
                         {"a release", fun applications_beside_those_of_otp_are_found/0},
                         {"strays", fun a_stray_message_ends_no_monkey/0},
                         {"bad options", fun bad_options/0}]].

%% Not the supervisors, nothing of the system, nothing of OTP.
only_workers() ->
    ?assertEqual(lists:sort([whereis(Name) || Name <- [one, two, three]]),
                 lists:sort(weft_chaos_monkey:candidates(#{apps => [monkey_test]}))),
    ?assertEqual([], weft_chaos_monkey:candidates(#{apps => [kernel]})),
    Any = weft_chaos_monkey:candidates(#{apps => all}),
    [?assertNot(lists:member(whereis(Name), Any))
     || Name <- [init, code_server, logger, kernel_sup, application_controller, erl_prim_loader],
        is_pid(whereis(Name))],
    ?assertEqual([whereis(two)],
                 weft_chaos_monkey:candidates(#{apps => [monkey_test], spare => [one, three]})),
    {ok, #{name := Name, pid := Pid}} = weft_chaos:kill(#{apps => [monkey_test]}),
    ?assert(lists:member(Name, [one, two, three])),
    weft_test_nodes:until(fun() -> is_pid(whereis(Name)) andalso whereis(Name) =/= Pid end).

%% Drawn by their weight; a kind that has nobody is left out.
weights() ->
    Options = #{apps => [monkey_test], weights => [{{registered, one}, 9}, {{registered, two}, 1},
                                                   {{registered, nobody}, 100}]},
    Names = [begin
                 weft_test_nodes:until(fun() -> length(named()) =:= 3 end),
                 {ok, #{name := Name}} = weft_chaos:kill(Options),
                 weft_test_nodes:until(fun() -> length(named()) =:= 3 end),
                 Name
             end || _ <- lists:seq(1, 60)],
    Ones = length([one || one <- Names]),
    ?assert(Ones > 30 andalso not lists:member(three, Names)),
    ?assertMatch({error, _}, weft_chaos:kill(#{apps => [monkey_test],
                                               weights => [{{registered, nobody}, 1}]})).

%% The processes are others each time, with other pids; the victims are the same.
a_seed_decides() ->
    ?assertEqual(victims(1), victims(1)),
    ?assert(length(lists:usort([victims(Seed) || Seed <- lists:seq(1, 10)])) > 1),
    Weights = [{{registered, Name}, 1} || Name <- [one, two, three]],
    ?assertEqual(victims(#{weights => Weights}, 1), victims(#{weights => Weights}, 1)).

victims(Seed) -> victims(#{}, Seed).

victims(Options, Seed) ->
    [begin
         weft_test_nodes:until(fun() -> length(named()) =:= 3 end),
         {ok, #{name := Name, pid := Pid}} =
             weft_chaos:kill(Options#{apps => [monkey_test], seed => Seed * 100 + N}),
         weft_test_nodes:until(fun() -> is_pid(whereis(Name)) andalso whereis(Name) =/= Pid end),
         Name
     end || N <- lists:seq(1, 6)].

again_and_again() ->
    {ok, _} = weft_chaos:on(#{ms => 10, apps => [monkey_test]}),
    ?assertMatch({error, _}, weft_chaos:on(#{})),
    weft_test_nodes:until(fun() -> maps:get(count, weft_chaos_monkey:status()) >= 5 end),
    #{last := [#{application := monkey_test} | _]} = weft_chaos_monkey:status(),
    ok = weft_chaos:off(),
    ?assertEqual({error, not_running}, weft_chaos:off()).

%% And somebody later: the worker `one' has another name for a while.
it_says_that_nobody_is_found() ->
    One = whereis(one),
    true = unregister(one),
    true = register(another, One),
    {ok, _} = weft_chaos:on(#{ms => 10, apps => [monkey_test],
                              weights => [{{registered, one}, 1}]}),
    Nobody = #{count => 0, last => [], error => "there is no process that may be killed"},
    weft_test_nodes:until(fun() -> weft_chaos_monkey:status() =:= Nobody end),
    true = unregister(another),
    true = register(one, One),
    weft_test_nodes:until(fun() -> maps:get(error, weft_chaos_monkey:status()) =:= none end),
    ?assertMatch(#{count := Count} when Count > 0, weft_chaos_monkey:status()),
    ok = weft_chaos:off().

%% As in a release with its own emulator, where the application is in the directory of OTP's.
applications_beside_those_of_otp_are_found() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    ToRoot = [".." || _ <- filename:split(code:lib_dir())],
    Ebin = filename:join([code:lib_dir()] ++ ToRoot
                         ++ [string:trim(Dir, leading, "/"), "monkey_test", "ebin"]),
    ok = filelib:ensure_path(Ebin),
    true = code:add_patha(Ebin),
    {ok, Started} = application:ensure_all_started(inets),
    try
        ?assert(lists:prefix(code:lib_dir(), code:lib_dir(monkey_test))),
        Candidates = weft_chaos_monkey:candidates(#{}),
        ?assertEqual([], [one, two, three] -- [Name || Name <- [one, two, three],
                                                       lists:member(whereis(Name), Candidates)]),
        OfOtp = whereis(httpc_manager),
        ?assert(lists:member(OfOtp, weft_chaos_monkey:candidates(#{apps => all}))),
        ?assertNot(lists:member(OfOtp, Candidates))
    after
        [ok = application:stop(Application) || Application <- Started],
        true = code:del_path(Ebin),
        ok = file:del_dir_r(Dir)
    end.

a_stray_message_ends_no_monkey() ->
    {ok, Monkey} = weft_chaos:on(#{ms => 60000, apps => [monkey_test]}),
    Monkey ! stray,
    ok = gen_server:cast(Monkey, stray),
    ?assertEqual({error, {unknown_request, stray}}, gen_server:call(Monkey, stray)),
    ?assertMatch(#{count := 0}, weft_chaos_monkey:status()),
    ok = weft_chaos:off().

bad_options() ->
    [?assertMatch({error, _}, weft_chaos:kill(Wrong))
     || Wrong <- [#{ms => 0}, #{apps => everything}, #{seed => now}, #{weights => []},
                  #{colour => red},
                  #{weights => [{{shoe_size, 43}, 1}]}]].

off_unless_enabled_test() ->
    ?assertMatch({error, _}, weft_chaos:kill()),
    ?assertMatch({error, _}, weft_chaos:on(#{})),
    ?assertMatch({error, _}, weft_chaos_agent:do({crash, node()})).
