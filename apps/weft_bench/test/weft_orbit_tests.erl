%% SPDX-License-Identifier: Apache-2.0
%% @doc Orbits on one node. The sizes are those of independent programs; see also weft_orbit_SUITE.
-module(weft_orbit_tests).

-include_lib("eunit/include/eunit.hrl").

-define(RUN_MS, 60000).

%% Generators, and the size of the orbit in spaces of 11, 157, 1,000 and 10,000.
sizes() ->
    [{"1", [5, 34, 213, 3125]}, {"2", [5, 6, 11, 8]}, {"3", [7, 11, 10, 11]},
     {"4", [1, 2, 2, 2]}, {"5", [2, 2, 2, 2]}, {"12", [10, 131, 853, 6886]},
     {"13", [10, 139, 895, 9122]}, {"14", [5, 51, 219, 4380]}, {"15", [5, 35, 214, 4376]},
     {"23", [11, 116, 447, 2751]}, {"24", [5, 33, 38, 224]}, {"25", [5, 12, 33, 67]},
     {"34", [7, 32, 32, 41]}, {"35", [8, 16, 61, 40]}, {"45", [2, 4, 4, 4]},
     {"123", [11, 151, 968, 9123]}, {"124", [10, 133, 854, 6889]}, {"125", [10, 132, 853, 6889]},
     {"134", [10, 139, 895, 9122]}, {"135", [10, 139, 895, 9122]},
     {"145", [5, 52, 220, 4381]}, {"234", [11, 119, 447, 2752]}, {"235", [11, 116, 448, 2760]},
     {"245", [5, 34, 48, 275]}, {"345", [8, 33, 74, 62]}, {"1234", [11, 151, 968, 9123]},
     {"1235", [11, 151, 968, 9123]}, {"1245", [10, 134, 854, 6892]},
     {"1345", [10, 139, 895, 9122]}, {"2345", [11, 119, 448, 2761]},
     {"12345", [11, 151, 968, 9123]}].

generators(Digits) -> [Digit - $0 || Digit <- Digits].

run(Generators, Space, Workers) ->
    weft_bench_program:run(weft_orbit, #{generators => Generators, space => Space,
                                         workers => Workers, idle_ms => 0}, [node()], ?RUN_MS).

size_of_each_set_test_() ->
    [{timeout, 120, {Digits, fun() -> has_size(Digits, Space, Size) end}}
     || {Digits, Sizes} <- sizes(),
        {Space, Size} <- lists:zip([11, 157, 1000], lists:sublist(Sizes, 3))].

size_of_large_orbits_test_() ->
    [{timeout, 120, {Digits, fun() -> has_size(Digits, 10000, lists:nth(4, Sizes)) end}}
     || {Digits, Sizes} <- sizes(), lists:member(Digits, ["1", "2", "12", "24", "45"])].

has_size(Digits, Space, Size) ->
    {ok, #{size := Found, received := Received}} = run(generators(Digits), Space, 3),
    ?assertEqual({Size, 1 + Size * length(Digits)}, {Found, Received}).

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
                        {#{workers => 0}, "there must be one"},
                        {#{groups => [[a], []]}, "no node"},
                        {#{groups => [[a], [a]]}, "in two groups"},
                        {#{groups => [[b]], gateways => 1}, "not there: \\[b\\]"},
                        {#{groups => [[a]]}, "gateway"}]].

text(Options) ->
    {error, Text} = weft_orbit_plan:new(Options, [a]),
    lists:flatten(Text).

a_name_tells_the_generators_test() ->
    ?assertEqual("g124", weft_orbit_generators:name([1, 2, 4])).
