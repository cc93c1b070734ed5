%% SPDX-License-Identifier: Apache-2.0
%% @doc The world of datagrams does what its verbs say.
-module(weft_sim_datagrams_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3]).

%%% The core under test: `{say, To, Text}' sends, what is heard becomes a notice; a timer fires.

-spec init(node(), map()) -> {started, [tuple()]}.
init(_Self, _Options) -> {started, [{after_ms, 50, tick}]}.

-spec handle(tuple(), integer(), started) -> {started, [tuple()]}.
handle({command, _Ref, {say, To, Text}}, _NowMs, started) -> {started, [{send, To, Text}]};
handle({message, From, Text}, _NowMs, started) -> {started, [{notice, {heard, From, Text}}]};
handle({timer, tick}, _NowMs, started) -> {started, [{notice, tick}]}.

a_message_arrives_after_its_latency_test() ->
    ?assertEqual([{50, a, tick}, {50, b, tick}, {103, b, {heard, a, hello}}],
                 notices([{100, {command, a, {say, b, hello}}}], #{latency_ms => {3, 3}})).

messages_to_a_node_that_is_down_or_was_started_anew_are_lost_test() ->
    ?assertEqual([], heard([{100, {crash, b}}, {101, {command, a, {say, b, hello}}}], #{})),
    ?assertEqual([{150, a}], [{AtMs, Name} || {AtMs, Name, tick} <- notices(
                                  [{10, {crash, a}}, {100, {start, a}}], #{}), Name =:= a]).

lost_messages_are_as_many_as_asked_for_test() ->
    Steps = [{100 + N, {command, a, {say, b, N}}} || N <- lists:seq(1, 1000)],
    Heard = length(heard(Steps, #{loss => 0.3})),
    ?assert(Heard > 640 andalso Heard < 760).

a_paused_node_sees_everything_later_and_its_timers_too_test() ->
    Notices = notices([{10, {pause, b}}, {20, {command, a, {say, b, hello}}}, {500, {resume, b}}],
                      #{}),
    ?assertEqual([{500, b, {heard, a, hello}}, {500, b, tick}],
                 [Notice || {_, b, _} = Notice <- Notices]).

a_blocked_node_neither_hears_nor_is_heard_but_its_timers_run_test() ->
    Notices = notices([{10, {command, b, {say, a, early}}}, {20, {block, b}},
                       {30, {command, a, {say, b, hello}}}, {500, {resume, b}}], #{}),
    ?assertEqual([{50, b, tick}, {500, b, {heard, a, hello}}],
                 [Notice || {_, b, _} = Notice <- Notices]),
    ?assertMatch([_], [early || {_, a, {heard, b, early}} <- Notices]).

parts_of_a_split_network_do_not_hear_each_other_test() ->
    Steps = [{100, {partition, [[a], [b]]}}, {101, {command, a, {say, b, lost}}},
             {200, heal}, {201, {command, a, {say, b, found}}}],
    ?assertEqual([found], heard(Steps, #{})).

bytes_are_counted_per_node_and_second_with_headers_test() ->
    Bytes = erlang:external_size(hello) + 28,
    World = run([{1100, {command, a, {say, b, hello}}}, {1200, {command, a, {say, b, hello}}}],
                #{}),
    ?assertEqual([{1, [{0, 0}, {0, 0}]}, {2, [{0, 2 * Bytes}, {2 * Bytes, 0}]},
                  {3, [{0, 0}, {0, 0}]}],
                 [{Second, lists:sort(OfNodes)}
                  || {Second, OfNodes} <- weft_sim_datagrams:traffic(World)]).

notices(Steps, Config) ->
    weft_sim_datagrams:notices(run(Steps, Config)).

heard(Steps, Config) ->
    [Text || {_, b, {heard, a, Text}} <- notices(Steps, Config)].

run(Steps, Config) ->
    World0 = weft_sim_datagrams:new(Config#{seed => 1, core => ?MODULE,
                                            options => fun(_) -> #{} end}),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_datagrams:schedule(AtMs, Verb, W) end,
                        World0, [{0, {start, a}}, {0, {start, b}} | Steps]),
    weft_sim_datagrams:run_until(3000, World).
