%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbits on one node. The sizes are those of independent programs; see also weft_orbit_SUITE.
-module(weft_orbit_tests).

-include_lib("eunit/include/eunit.hrl").

%% Of the largest one.
-define(RUN_MS, 900000).
%% Vertices: with so many an orbit takes seconds on a busy machine.
-define(LARGE, 500).

run(Generators, Space, Workers) ->
    weft_bench_program:run(weft_orbit, #{generators => Generators, space => Space,
                                         workers => Workers, idle_ms => 0}, [node()], ?RUN_MS).

%% Large ones only with FULL=1, but for those below.
size_of_each_set_test_() ->
    ?assertEqual(31, length(weft_orbit_sizes:of_each_set())),
    [has_size(Digits, Space, Size)
     || {Digits, Sizes} <- weft_orbit_sizes:of_each_set(), {Space, Size} <- Sizes,
        Size < ?LARGE orelse os:getenv("FULL") =:= "1"].

%% More of them, with FULL=1 in the environment up to those that take minutes.
size_of_large_orbits_test_() ->
    [has_size(Digits, Space, Size)
     || {Digits, Space, Size} <- [{"13", 22, 21}, {"124", 314, 250}, {"1245", 314, 251},
                                  {"124", 1000, 854}]
            ++ [Large || os:getenv("FULL") =:= "1",
                         Large <- [{"13", 15000, 13204}, {"124", 40000, 27547},
                                   {"1245", 60000, 37116}, {"1245", 120000, 74226},
                                   {"12345", 200000, 169040}, {"124", 1000000, 688547},
                                   {"12345", 1000000, 845164}]]].

has_size(Digits, Space, Size) ->
    {lists:concat([Digits, " below ", Space]),
     {timeout, ?RUN_MS div 1000,
      fun() ->
          {ok, #{size := Found, received := Received}} =
              run(weft_orbit_sizes:generators(Digits), Space, 3),
          ?assertEqual({Size, 1 + Size * length(Digits)}, {Found, Received})
      end}}.

%% Not by way of the program: breadth first.
orbit([], _Generators, _Space, Seen) -> Seen;
orbit([X | Todo], Generators, Space, Seen) ->
    New = [Y || Y <- lists:usort(weft_orbit_generators:images(Generators, X, Space)),
                not is_map_key(Y, Seen)],
    orbit(New ++ Todo, Generators, Space, maps:merge(Seen, maps:from_list([{Y, x} || Y <- New]))).

the_number_of_workers_changes_nothing_test_() ->
    {timeout, 60,
     fun() ->
         Orbit = maps:keys(orbit([0], [1, 2, 4], 157, #{0 => x})),
         [begin
              {ok, #{size := Size, sum := Sum}} = run([1, 2, 4], 157, Workers),
              ?assertEqual({Workers, length(Orbit), lists:sum(Orbit)}, {Workers, Size, Sum})
          end || Workers <- [1, 2, 5, 16]]
     end}.

no_generators_leave_the_first_vertex_test() ->
    ?assertMatch({ok, #{size := 1, received := 1, program_messages := 1}}, run([], 10, 2)).

%% Slots and workers: each slot has one, they are dealt evenly, the hash stays inside.
slots_are_cut_into_equal_parts_test() ->
    Options = #{generators => [1], space => 100, workers => 3, gateways => 2,
                groups => [[a, b, c], [d, e]]},
    {ok, #{slots := Slots, chunk := Chunk, groups := Groups, group_of := GroupOf} = Plan} =
        weft_orbit_plan:new(Options, [m, a, b, c, d, e]),
    Owners = [weft_orbit_plan:owner(Slot, Plan) || Slot <- lists:seq(0, Slots - 1)],
    ?assertEqual(lists:seq(1, 9), lists:usort(Owners)),
    [?assertEqual(Chunk, length([Owner || Owner <- Owners, Owner =:= Worker]))
     || Worker <- lists:seq(1, 9)],
    ?assertEqual([#{number => 1, head => a, nodes => [b, c], first => 1},
                  #{number => 2, head => d, nodes => [e], first => 7}], Groups),
    ?assertEqual({1, 1, 1, 1, 1, 1, 2, 2, 2}, GroupOf),
    ?assert(lists:all(fun(X) -> weft_orbit_plan:slot(X, Plan) < Slots end, lists:seq(0, 99))).

%% A vertex takes one hop within a group; between two it passes a gateway of each.
routes_pass_gateways_test() ->
    [Own1, Own2, Near, Far1, Far2] = [list_to_pid("<0.9999." ++ integer_to_list(N) ++ ">")
                                      || N <- lists:seq(1, 5)],
    Group = #{number => 1, head => a, nodes => [a], first => 1},
    GroupOf = {1, 1, 2, 2},
    Worker = weft_orbit_routes:new(Group, [Own1, Own2], GroupOf, Near),
    ?assertEqual([Own1, Own2, Near, Near],
                 [weft_orbit_routes:next(N, Worker) || N <- [1, 2, 3, 4]]),
    Gateway = weft_orbit_routes:new(Group, [Own1, Own2], GroupOf,
                                    #{1 => {Near}, 2 => {Far1, Far2}}),
    ?assertEqual([Own1, Own2, Far2, Far1],
                 [weft_orbit_routes:next(N, Gateway) || N <- [1, 2, 3, 4]]).

bad_options_are_told_test_() ->
    Good = #{generators => [1, 2], space => 10, workers => 1},
    [?_assertMatch({Part, {match, _}}, {Part, re:run(text(maps:merge(Good, Bad)), Part)})
     || {Bad, Part} <- [{#{generators => [1, 6]}, "from 1 to 5"},
                        {#{generators => [2, 1]}, "in order"}, {#{space => 0}, "above 0"},
                        {#{workers => 0}, "must be one"},
                        {#{groups => [[a], []]}, "no node"},
                        {#{groups => [[a], [a]]}, "in two groups"},
                        {#{groups => [[b]], gateways => 1}, "not there: \\[b\\]"},
                        {#{groups => [[a]]}, "gateway"}]].

text(Options) ->
    {error, Text} = weft_orbit_plan:new(Options, [a]),
    lists:flatten(Text).

a_name_tells_the_generators_test() ->
    ?assertEqual("g124", weft_orbit_generators:name([1, 2, 4])).

clusters_are_cut_into_equal_groups_test() ->
    ?assertEqual([[1, 2, 5], [2, 3, 4], [5, 6, 7]], weft_orbit_workload:groups(2, 3)),
    ?assertEqual([2, 3, 4], [weft_orbit_workload:group_count(Count) || Count <- [7, 13, 21]]).
