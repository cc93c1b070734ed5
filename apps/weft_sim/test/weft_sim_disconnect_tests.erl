%% SPDX-License-Identifier: Apache-2.0
%% @doc A node ends its session, while there is a path or while the path is lost: then what it says
%% of that does not arrive. The other end has to hear of it all the same, at the latest by the
%% kernel's ticks. A session is disconnected, or ends by itself.
-module(weft_sim_disconnect_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOURCE, 'n001@sim').
-define(TARGET, 'n002@sim').
-define(GATEWAY, 'n003@sim').
-define(LANE, 'n001-n002-1@sim').
-define(ENDED_MS, 15000).
%% Longer than it may take to notice that a lane is broken.
-define(AWAY_MS, 4000).
%% The ticker looks each 15 s, and has heard nothing for net_ticktime then.
-define(TICKS_MS, 80000).

%% The target did not begin the session, so it asks for no path, and can not be told that there is
%% none any more. Not only when the kernel's ticks end it.
an_end_that_was_not_heard_is_told_when_the_link_is_back_test_() ->
    each_seed(fun(Seed) -> ends_by(?AWAY_MS + 2000, {lost, ?SOURCE, direct}, Seed) end).

%% It has heard that the target has died, which is wrong, and nothing on the source wants to connect
%% again.
an_end_by_wrong_news_is_told_when_the_link_is_back_test_() ->
    each_seed(fun(Seed) -> ends_by(?AWAY_MS + 2000, {misled, ?SOURCE, direct}, Seed) end).

%% It asks for a path.
the_end_that_has_begun_finds_out_when_a_path_is_back_test_() ->
    each_seed(fun(Seed) ->
                  [ends_by(?AWAY_MS + 2000, {lost, ?TARGET, Ways}, Seed)
                   || Ways <- [direct, gateway]]
              end).

an_end_that_is_heard_ends_the_other_one_at_once_test_() ->
    each_seed(fun(Seed) ->
                  [ends_by(500, {up, End, Ways}, Seed)
                   || End <- [?SOURCE, ?TARGET], Ways <- [direct, gateway]]
              end).

%% No link to the target comes up by which it would be told.
behind_a_gateway_the_ticks_end_what_was_not_heard_test_() ->
    each_seed(fun(Seed) ->
                  Case = {lost, ?SOURCE, gateway},
                  Back = weft_sim_world:run_until(?ENDED_MS + ?AWAY_MS + 2000, world(Case, Seed)),
                  ?assertNotEqual(none, session(?TARGET, Back)),
                  ends_by(?TICKS_MS, Case, Seed)
              end).

each_seed(Test) ->
    [{integer_to_list(Seed), fun() -> Test(Seed) end} || Seed <- lists:seq(1, 5)].

%% Both ends have the session before, and neither has it so long after one has been disconnected.
ends_by(WithinMs, {Path, End, _} = Case, Seed) ->
    Before = weft_sim_world:run_until(?ENDED_MS - 1, world(Case, Seed)),
    Id = session(?TARGET, Before),
    ?assertNotEqual(none, Id),
    ?assertEqual(Id, session(?SOURCE, Before)),
    Then = weft_sim_world:run_until(?ENDED_MS + ?AWAY_MS - 1, Before),
    [?assertEqual({Case, none, Id}, {Case, session(End, Then), session(other(End), Then)})
     || Path =/= up],
    Now = weft_sim_world:run_until(?ENDED_MS + WithinMs, Before),
    [?assertNotEqual({Case, Node, Id}, {Case, Node, session(Node, Now)})
     || Node <- [?SOURCE, ?TARGET]].

other(?SOURCE) -> ?TARGET;
other(?TARGET) -> ?SOURCE.

session(Node, World) -> maps:get(id, weft_sim_session_core:info_of(Node, World)).

%% The lane of the source is lost, or not. Who is misled makes an end of his session himself.
world({Path, End, Ways}, Seed) ->
    Lanes = lanes(Ways),
    Nodes = lists:usort(lists:append([[Lane, A, B] || {Lane, A, B} <- Lanes])),
    Steps = [{1, {start, Node}} || Node <- Nodes]
        ++ [{?ENDED_MS, {crash, ?LANE}} || Path =/= up]
        ++ [{?ENDED_MS, {notice, End, session, Notice}} || Notice <- notices(Path)]
        ++ [{?ENDED_MS + ?AWAY_MS, {start, ?LANE}} || Path =/= up],
    lists:foldl(fun({AtMs, Verb}, World) -> weft_sim_world:schedule(AtMs, Verb, World) end,
                weft_sim_world:new(#{machines => fun(Node) -> machines(Node, Lanes) end,
                                     weigh => false, detection_ms => {50, 3000}, checkers => [],
                                     seed => Seed}),
                Steps).

%% All nodes have their first incarnation.
notices(misled) -> [{died, 1}, kernel_stops];
notices(_UpOrLost) -> [disconnect].

lanes(direct) -> [{?LANE, ?SOURCE, ?TARGET}];
lanes(gateway) -> [{?LANE, ?SOURCE, ?GATEWAY}, {'n003-n002-1@sim', ?GATEWAY, ?TARGET}].

machines(Node, Lanes) ->
    Pairs = lists:append([[{A, Lane}, {Lane, B}] || {Lane, A, B} <- Lanes]),
    [{topology, weft_static_core, #{links => Pairs, retry_min_ms => 50, retry_max_ms => 500}},
     session_machine(Node, Lanes)].

session_machine(Node, Lanes) ->
    Leads = maps:from_list([{Lane, case A of Node -> B; _ -> A end}
                            || {Lane, A, B} <- Lanes, A =:= Node orelse B =:= Node]),
    case lists:keyfind(Node, 1, Lanes) of
        {Node, A, B} -> {session, weft_sim_lane_core, #{ends => {A, B}, bytes_per_ms => 1000}};
        false when Node =:= ?GATEWAY -> {session, weft_sim_gateway_core, #{lanes => Leads}};
        false -> {session, weft_sim_session_core, (options(Node))#{lanes => Leads}}
    end.

options(?SOURCE) -> (quiet())#{role => source, peer => ?TARGET};
options(?TARGET) -> (quiet())#{role => target, peer => ?SOURCE}.

quiet() ->
    #{senders => [], classes => #{}, timed => [], timed_since_ms => 0, until_ms => 0,
      ordered_until_ms => 0, window_bytes => 1048576, queue_bytes => 1048576,
      resume_timeout_ms => auto}.
