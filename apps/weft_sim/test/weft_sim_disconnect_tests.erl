%% SPDX-License-Identifier: Apache-2.0
%% @doc A node ends its session while the link is lost: what it says of that does not arrive. The
%% other end did not begin the session, so it asks for no path, and can not be told that there is
%% none any more.
-module(weft_sim_disconnect_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOURCE, 'n001@sim').
-define(TARGET, 'n002@sim').
-define(LANE, 'n001-n002-1@sim').
-define(ENDED_MS, 15000).
%% Longer than it may take to notice that a lane is broken.
-define(AWAY_MS, 4000).

%% Not only when the kernel's ticks end it.
an_end_that_was_not_heard_is_told_when_the_link_is_back_test_() ->
    [{integer_to_list(Seed), fun() ->
         Before = weft_sim_world:run_until(?ENDED_MS - 1, world(Seed)),
         Id = session(?TARGET, Before),
         ?assertNotEqual(none, Id),
         ?assertEqual(Id, session(?SOURCE, Before)),
         Away = weft_sim_world:run_until(?ENDED_MS + ?AWAY_MS - 1, Before),
         ?assertEqual({none, Id}, {session(?SOURCE, Away), session(?TARGET, Away)}),
         Back = weft_sim_world:run_until(?ENDED_MS + ?AWAY_MS + 2000, Away),
         ?assertEqual({none, none}, {session(?SOURCE, Back), session(?TARGET, Back)})
     end} || Seed <- lists:seq(1, 5)].

session(Node, World) -> maps:get(id, weft_sim_session_core:info_of(Node, World)).

world(Seed) ->
    Steps = [{1, {start, Node}} || Node <- [?SOURCE, ?TARGET, ?LANE]]
        ++ [{?ENDED_MS, {crash, ?LANE}}, {?ENDED_MS, {notice, ?SOURCE, session, disconnect}},
            {?ENDED_MS + ?AWAY_MS, {start, ?LANE}}],
    lists:foldl(fun({AtMs, Verb}, World) -> weft_sim_world:schedule(AtMs, Verb, World) end,
                weft_sim_world:new(#{machines => fun machines/1, weigh => false,
                                     detection_ms => {50, 3000}, checkers => [], seed => Seed}),
                Steps).

machines(Node) ->
    [{topology, weft_static_core, #{links => [{?SOURCE, ?LANE}, {?LANE, ?TARGET}],
                                    retry_min_ms => 50, retry_max_ms => 500}},
     {session, case Node of ?LANE -> weft_sim_lane_core; _ -> weft_sim_session_core end,
      options(Node)}].

options(?LANE) -> #{ends => {?SOURCE, ?TARGET}, bytes_per_ms => 1000};
options(?SOURCE) -> (quiet())#{role => source, peer => ?TARGET, lanes => #{?LANE => ?TARGET}};
options(?TARGET) -> (quiet())#{role => target, peer => ?SOURCE, lanes => #{?LANE => ?SOURCE}}.

quiet() ->
    #{senders => [], classes => #{}, timed => [], timed_since_ms => 0, until_ms => 0,
      ordered_until_ms => 0, window_bytes => 1048576, queue_bytes => 1048576,
      resume_timeout_ms => auto}.
