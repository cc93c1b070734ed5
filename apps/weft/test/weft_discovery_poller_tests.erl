%% SPDX-License-Identifier: Apache-2.0
%% @doc The poller: what it gives to the topology, and that nothing takes it back. The test is the
%% topology (registered as its driver) and the source (it answers what the test says). Each test is
%% a process of its own: a source that was asked by the poller of another one may say so late.
-module(weft_discovery_poller_tests).
-behaviour(weft_discovery).

-include_lib("eunit/include/eunit.hrl").

-export([discover/1, hear_once/1]).

-define(WAIT_MS, 30000).
%% Longer than one wait, so that it is told which.
-define(TEST_S, 60).

poller_test_() ->
    [{Title, {timeout, ?TEST_S, {spawn, fun() -> with_poller(Test) end}}}
     || {Title, Test} <-
            [{"what a source names becomes seeds", fun seeds/0},
             {"an empty answer changes nothing", fun empty/0},
             {"an answer counts though something is wrong with it", fun half_wrong/0},
             {"an error, a crash and an answer that is none change nothing", fun errors/0},
             {"a node that is no longer named is left out", fun replaced/0},
             {"what others name is added", fun added/0},
             {"a topology that was started again is told all", fun started_again/0},
             {"a slow source is not asked twice and delays no other", fun slow/0}]].

seeds() ->
    answer(one, {ok, ['a@h', 'b@h']}),
    ?assertEqual(['a@h', 'b@h'], seeded()).

empty() ->
    answer(one, {ok, ['a@h']}),
    ['a@h'] = seeded(),
    weft_discovery_poller:poll(),
    answer(one, {ok, []}),
    ?assertEqual(['a@h'], weft_discovery_poller:found()),
    nothing_but(['a@h']).

half_wrong() ->
    answer(one, {ok, ['a@h'], {no_node_names, #{line => 3}}}),
    ?assertEqual(['a@h'], seeded()),
    weft_discovery_poller:poll(),
    answer(one, {ok, [], {no_node_names, #{line => 3}}}),
    ?assertEqual(['a@h'], weft_discovery_poller:found()).

errors() ->
    answer(one, {ok, ['a@h']}),
    ['a@h'] = seeded(),
    [begin
         weft_discovery_poller:poll(),
         answer(one, Answer),
         ?assertEqual(['a@h'], weft_discovery_poller:found())
     end || Answer <- [{error, nxdomain}, {crash, badarg}, nonsense]],
    nothing_but(['a@h']).

replaced() ->
    answer(one, {ok, ['a@h', 'b@h']}),
    ['a@h', 'b@h'] = seeded(),
    weft_discovery_poller:poll(),
    answer(one, {ok, ['b@h', 'c@h']}),
    ?assertEqual(['b@h', 'c@h'], seeded(['a@h', 'b@h'])).

added() ->
    answer(one, {ok, ['a@h']}),
    ['a@h'] = seeded(),
    ok = weft_discovery_poller:add('z@h'),
    ?assertEqual(['a@h', 'z@h'], seeded(['a@h'])),
    ?assertEqual(['z@h'], weft_discovery_poller:added()),
    ok = weft_discovery_poller:remove('z@h'),
    ?assertEqual(['a@h'], seeded(['a@h', 'z@h'])),
    ok = weft_discovery_poller:remove('a@h'),
    ?assertEqual({['a@h'], []}, {weft_discovery_poller:found(), weft_discovery_poller:added()}),
    nothing_but(['a@h']).

%% No source answers any more, and nobody names a node again.
started_again() ->
    ok = weft_discovery_poller:add('z@h'),
    ['z@h'] = seeded(),
    true = unregister(weft_topology),
    {Again, Ref} = spawn_monitor(?MODULE, hear_once, [self()]),
    weft_test_nodes:until(fun() -> whereis(weft_topology) =:= Again end),
    weft_discovery_poller ! poll,
    ?assertEqual(['z@h'], seeded()),
    receive {'DOWN', Ref, process, Again, normal} -> ok end,
    true = register(weft_topology, self()).

%% @private The topology of another process, which passes on what it is told first.
hear_once(Test) ->
    true = register(weft_topology, self()),
    receive {'$gen_cast', _} = Told -> Test ! Told end.

slow() ->
    Waiting = asked(one),
    answer(two, {ok, ['b@h']}),
    ['b@h'] = seeded(),
    weft_discovery_poller:poll(),
    answer(two, {ok, ['b@h', 'c@h']}),
    ['b@h', 'c@h'] = seeded(['b@h']),
    receive {asked, one, _} -> error(asked_twice) after 0 -> ok end,
    Waiting ! {answer, {ok, ['a@h']}},
    ?assertEqual(['a@h', 'b@h', 'c@h'], seeded(['b@h', 'c@h'])).

%% --- parts ------------------------------------------------------------------------------------

with_poller(Test) ->
    Poller = start(),
    try
        Test()
    after
        stop(Poller)
    end.

start() ->
    true = register(weft_topology, self()),
    Sources = [{Name, ?MODULE, #{name => Name, test => self()}} || Name <- [one, two]],
    {ok, Poller} = weft_discovery_poller:start_link(#{sources => Sources, seeds => [],
                                                      interval_ms => 3600000}),
    Poller.

stop(Poller) ->
    ok = gen_server:stop(Poller),
    true = unregister(weft_topology).

%% @private
discover(#{name := Name, test := Test}) ->
    Test ! {asked, Name, self()},
    receive
        {answer, {crash, Reason}} -> error(Reason);
        {answer, Answer} -> Answer
    end.

asked(Name) ->
    receive {asked, Name, Pid} -> Pid after ?WAIT_MS -> error({not_asked, Name}) end.

%% The answer has been dealt with once the poller was told that its process is gone, which others
%% may be told before, and the poller answers.
answer(Name, Answer) ->
    Pid = asked(Name),
    Pid ! {answer, Answer},
    ok = weft_test_nodes:until(fun() -> not is_awaited(Pid) end),
    _ = weft_discovery_poller:found(),
    ok.

is_awaited(Pid) ->
    {monitors, Monitors} = process_info(whereis(weft_discovery_poller), monitors),
    lists:member({process, Pid}, Monitors).

seeded() -> seeded([]).

%% Each poll says again what is known.
seeded(Before) ->
    receive {'$gen_cast', {notice, {seeds, Nodes}}} when Nodes =/= Before -> Nodes
    after ?WAIT_MS -> error(no_seeds)
    end.

nothing_but(Before) ->
    _ = weft_discovery_poller:found(),
    receive {'$gen_cast', {notice, {seeds, Nodes}}} = Cast when Nodes =/= Before -> error(Cast)
    after 0 -> ok
    end.
