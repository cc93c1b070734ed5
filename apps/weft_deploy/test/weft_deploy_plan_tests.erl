%% SPDX-License-Identifier: Apache-2.0
%% Where nodes go, what is to be done, and that it is done once.
-module(weft_deploy_plan_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [{atom_to_list(Name), {timeout, 60, ?_assert(proper:quickcheck(Property,
                                                                   [{numtests, 200}, quiet]))}}
     || {Name, Property} <- [{new_nodes_are_placed_fairly, prop_fair()},
                             {more_nodes_move_nobody, prop_stable()},
                             {applied_twice_nothing_is_left, prop_once()}]].

%% --- placement ----------------------------------------------------------------------------------

hosts() ->
    ?LET(Cores, non_empty(resize(8, list(range(1, 64)))),
         [{"h" ++ integer_to_list(N), C}
          || {N, C} <- lists:zip(lists:seq(1, length(Cores)), Cores)]).

prop_fair() ->
    ?FORALL({Count, Hosts}, {range(0, 60), hosts()},
            weft_deploy_place:is_fair(weft_deploy_place:place(lists:seq(1, Count), Hosts, #{}),
                                      Hosts)).

%% Also when hosts are added, in front of the others.
prop_stable() ->
    ?FORALL({Count, More, Hosts}, {range(0, 40), range(0, 20), hosts()},
            begin
                Before = weft_deploy_place:place(lists:seq(1, Count), Hosts, #{}),
                After = weft_deploy_place:place(lists:seq(1, Count + More), [{"new", 4} | Hosts],
                                                maps:from_list(Before)),
                Before -- After =:= []
            end).

a_node_of_a_host_that_is_no_more_gets_another_one_test() ->
    ?assertEqual([{1, "b"}], weft_deploy_place:place([1], [{"b", 1}], #{1 => "a"})).

cores_count_test() ->
    Placed = weft_deploy_place:place(lists:seq(1, 9), [{"small", 1}, {"large", 2}], #{}),
    ?assertEqual(6, length([Name || {Name, "large"} <- Placed])).

%% --- plans --------------------------------------------------------------------------------------

spec(Count, Hosts, Flags) ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop}, {provider, {ssh, #{keys => "k"}}}, {dir, "/srv/shop"},
                    {hosts, [{Host, #{cores => Cores}} || {Host, Cores} <- Hosts]},
                    {family, web, #{count => Count, flags => Flags}}, {family, db, #{}}]),
    Spec.

desired(Spec, Seen) ->
    Lost = [Host || {Host, {error, _}} <- maps:to_list(Seen)],
    Placed = maps:from_list([{hd(string:split(Node, "@")), Host}
                             || {Host, {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                                Node <- maps:keys(Nodes)]),
    weft_deploy_nodes:desired(Spec, Lost, #{counts => weft_deploy_spec:counts(Spec, #{}),
                                            versions => #{web => "w1", db => "d1"}, cores => #{},
                                            placed => Placed, dir => "/srv/shop", erl => "erl"}).

empty(Hosts) ->
    maps:from_list([{Host, {ok, #{cores => Cores, releases => [], closed => [], nodes => #{}}}}
                    || {Host, Cores} <- Hosts]).

%% What is there after a plan: `changed' nodes stay as they are.
done(#{upload := Uploads, start := Start, restart := Restart, stop := Stop, forget := Forget},
     Seen) ->
    maps:map(fun(Host, {ok, #{releases := Releases, nodes := Nodes} = Now}) ->
                     Gone = [Node || {At, Node} <- Stop ++ Forget, At =:= Host],
                     New = maps:from_list([{Node, up(Id)} || #{node := Node, host := At, id := Id}
                                                                 <- Start ++ Restart, At =:= Host]),
                     {ok, Now#{releases := [V || {To, V} <- Uploads, To =:= Host] ++ Releases,
                               nodes := maps:merge(maps:without(Gone, Nodes), New)}};
                (_Host, Lost) -> Lost
             end, Seen).

up(Id) -> #{up => true, left => false, os_pid => 1, id => Id, previous => none}.

%% From any state: other nodes, dead ones, old ones, foreign ones.
prop_once() ->
    ?FORALL({Before, After, Hosts, Dead}, {range(0, 12), range(0, 12), hosts(), range(0, 5)},
            begin
                Old = weft_deploy_plan:new(desired(spec(Before, Hosts, []), empty(Hosts)),
                                           empty(Hosts), [], [], false),
                Seen = kill(Dead, done(Old, empty(Hosts))),
                Spec = spec(After, Hosts, []),
                Plan = weft_deploy_plan:new(desired(Spec, Seen), Seen, [], [], false),
                Now = done(Plan, Seen),
                Second = weft_deploy_plan:new(desired(Spec, Now), Now, [], [], false),
                Up = [Node || {ok, #{nodes := Nodes}} <- maps:values(Now),
                              {Node, #{up := true}} <- maps:to_list(Nodes)],
                weft_deploy_plan:is_empty(Second) andalso length(Up) =:= After + 1
            end).

kill(Count, Seen) ->
    All = [{Host, Node} || {Host, {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                           Node <- maps:keys(Nodes)],
    lists:foldl(fun({Host, Node}, Left) ->
                        #{Host := {ok, #{nodes := #{Node := Was} = Nodes} = Now}} = Left,
                        Left#{Host := {ok, Now#{nodes := Nodes#{Node := Was#{up := false}}}}}
                end, Seen, lists:sublist(All, Count)).

two() -> [{"h1", 1}, {"h2", 1}].

running(Spec) -> running(Spec, two()).

running(Spec, Hosts) ->
    Seen = empty(Hosts),
    done(weft_deploy_plan:new(desired(Spec, Seen), Seen, [], [], false), Seen).

a_host_that_does_not_answer_is_named_and_nothing_moves_test() ->
    Spec = spec(4, two(), []),
    #{"h2" := {ok, #{nodes := There}}} = Seen = running(Spec),
    Lost = Seen#{"h2" := {error, "no route"}},
    Desired = [Node || #{host := "h2"} = Node <- desired_remembering(Spec, Lost, There)],
    Plan = weft_deploy_plan:new(desired_remembering(Spec, Lost, There), Lost, [], [], false),
    ?assertEqual(maps:size(There), length(Desired)),
    ?assertMatch(#{lost := [{"h2", "no route"}], start := [], stop := []}, Plan).

desired_remembering(Spec, Seen, There) ->
    Placed = maps:merge(maps:from_list([{hd(string:split(N, "@")), "h2"} || N <- maps:keys(There)]),
                        #{"web1" => "h1", "web3" => "h1", "db1" => "h1"}),
    Real = maps:from_list([{hd(string:split(Node, "@")), "h1"}
                           || {"h1", {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                              Node <- maps:keys(Nodes)]),
    weft_deploy_nodes:desired(Spec, ["h2"],
                              #{counts => weft_deploy_spec:counts(Spec, #{}),
                                versions => #{web => "w1", db => "d1"}, cores => #{},
                                placed => maps:merge(Placed, Real), dir => "/srv/shop",
                                erl => "erl"}).

other_flags_change_nodes_that_run_without_restarting_them_test() ->
    Seen = running(spec(2, two(), [])),
    Plan = weft_deploy_plan:new(desired(spec(2, two(), ["+S", "1:1"]), Seen), Seen, [], [], false),
    ?assertMatch(#{changed := [_, _], start := [], stop := [], restart := [], same := 1}, Plan).

what_was_rolled_back_is_not_tried_unless_asked_test() ->
    Seen = running(spec(2, two(), [])),
    [#{id := Id} | _] = Desired = desired(spec(2, two(), ["+S", "1:1"]), Seen),
    ?assertMatch(#{changed := [], refused := [_, _]},
                 weft_deploy_plan:new(Desired, Seen, [Id], [], false)),
    ?assertMatch(#{changed := [_, _], refused := []},
                 weft_deploy_plan:new(Desired, Seen, [Id], [], true)).

%% Of three nodes one runs as it was, one became what it was and does not run, and one is to follow.
what_a_rollback_has_left_is_known_unless_it_is_tried_again_test() ->
    Spec = spec(3, [{"h1", 1}], []),
    Seen = running(Spec, [{"h1", 1}]),
    [#{id := Old} | _] = desired(Spec, Seen),
    [First, Second, Third | _] = Desired = desired(spec(3, [{"h1", 1}], ["+S", "1:1"]), Seen),
    #{id := Bad} = First,
    Half = with(First, #{id => Bad, previous => Old}, with(Second, #{up => false}, Seen)),
    Plan = weft_deploy_plan:new(Desired, Half, [Bad], [], false),
    ?assertEqual([First], maps:get(back, Plan)),
    ?assertMatch(#{return := [Second], restart := [Second], refused := [Third], same := 1,
                   changed := []}, Plan),
    ?assertMatch(#{back := [], return := [], same := 2, changed := [Third]},
                 weft_deploy_plan:new(Desired, Half, [Bad], [], true)),
    %% Something else is in the file.
    ?assertMatch(#{back := [], return := [], changed := [_], refused := []},
                 weft_deploy_plan:new(desired(Spec, Half), Half, [Bad], [], false)),
    %% One that does not run either is what was rolled back, and comes first.
    Down = with(Second, #{id => Bad, previous => Old}, Half),
    ?assertMatch(#{back := [Second, First], return := []},
                 weft_deploy_plan:new(Desired, Down, [Bad], [], false)),
    %% A new node was never anything else.
    New = with(First, #{previous => none}, Half),
    ?assertMatch(#{back := [], same := 2}, weft_deploy_plan:new(Desired, New, [Bad], [], false)).

%% Of three nodes two became what they are to be, and only the first one was healthy then.
what_an_upgrade_has_left_is_looked_at_again_test() ->
    Seen = running(spec(3, [{"h1", 1}], []), [{"h1", 1}]),
    [#{id := Old} | _] = desired(spec(3, [{"h1", 1}], []), Seen),
    [First, Second, Third | _] = Desired = desired(spec(3, [{"h1", 1}], ["+S", "1:1"]), Seen),
    #{id := New} = First,
    #{node := Name} = Second,
    Made = #{id => New, previous => Old},
    Half = with(First, Made, with(Second, Made, Seen)),
    ?assertMatch(#{unproven := [Second], along := [First], changed := [Third], same := 2,
                   restart := []}, weft_deploy_plan:new(Desired, Half, [], [Name], false)),
    ?assertMatch(#{unproven := [], along := [], changed := [Third], same := 3},
                 weft_deploy_plan:new(Desired, Half, [], [], false)),
    %% It does not run.
    Down = with(Second, #{up => false}, Half),
    ?assertMatch(#{unproven := [Second], along := [First], restart := [Second], same := 2},
                 weft_deploy_plan:new(Desired, Down, [], [Name], false)),
    %% It was ended before the node became new, or it is known by now that it is not healthy.
    ?assertMatch(#{unproven := [], along := [], changed := [Second, Third]},
                 weft_deploy_plan:new(Desired, with(First, Made, Seen), [], [Name], false)),
    ?assertMatch(#{unproven := [], back := [Second, First]},
                 weft_deploy_plan:new(Desired, Half, [New], [Name], false)).

%% Of three nodes one is down that is to become new, as when an upgrade was ended before it did.
a_node_that_is_down_is_started_by_an_upgrade_test() ->
    Seen = running(spec(3, [{"h1", 1}], []), [{"h1", 1}]),
    [First, Second, Third | _] = Desired = desired(spec(3, [{"h1", 1}], ["+S", "1:1"]), Seen),
    #{id := New, node := Name} = First,
    Down = with(First, #{up => false}, Seen),
    Of = fun(Now, Bad, Unproven) ->
             maps:with([as_is, anew, changed, unproven],
                       weft_deploy_plan:new(Desired, Now, Bad, Unproven, false))
         end,
    ?assertEqual(#{as_is => [], anew => [First], changed => [Second, Third], unproven => []},
                 Of(Down, [], [])),
    %% What it would become was rolled back.
    ?assertEqual(#{as_is => [First], anew => [], changed => [], unproven => []},
                 Of(Down, [New], [])),
    %% It is that already, and was healthy.
    Made = with(First, #{id => New, previous => "old"}, Down),
    ?assertEqual(#{as_is => [First], anew => [], changed => [Second, Third], unproven => []},
                 Of(Made, [], [])),
    %% It was not healthy yet: the upgrade starts it, and rolls it back if it has to.
    ?assertEqual(#{as_is => [], anew => [], changed => [Second, Third], unproven => [First]},
                 Of(Made, [], [Name])),
    %% It runs, and has left the cluster.
    ?assertMatch(#{as_is := [], anew := [First]}, Of(with(First, #{left => true}, Seen), [], [])).

with(#{host := Host, node := Node}, Other, Seen) ->
    #{Host := {ok, #{nodes := #{Node := Was} = Nodes} = Now}} = Seen,
    Seen#{Host := {ok, Now#{nodes := Nodes#{Node := maps:merge(Was, Other)}}}}.

what_an_interrupted_drain_has_closed_is_opened_unless_it_goes_test() ->
    Spec = spec(2, two(), []),
    #{"h1" := {ok, #{nodes := Nodes} = Here}} = Seen = running(Spec),
    Some = hd(maps:keys(Nodes)),
    Closed = Seen#{"h1" := {ok, Here#{closed := [Some]}}},
    Plan = weft_deploy_plan:new(desired(Spec, Closed), Closed, [], [], false),
    ?assertMatch(#{reopen := [{"h1", Some}]}, Plan),
    ?assertNot(weft_deploy_plan:is_empty(Plan)),
    ?assertMatch(#{reopen := []}, weft_deploy_plan:new([], Closed, [], [], false)).

%% The id of a node does not tell of it.
another_health_check_is_seen_test() ->
    Spec = spec(1, [{"h1", 1}], []),
    Seen = #{"h1" := {ok, #{nodes := Nodes} = Here}} = running(Spec, [{"h1", 1}]),
    Plan = fun(Health) ->
               Checks = maps:map(fun(_Node, _) -> Health end, Nodes),
               Now = Seen#{"h1" := {ok, Here#{health => Checks}}},
               weft_deploy_plan:new(desired(Spec, Now), Now, [], [], false)
           end,
    ?assertMatch(#{recheck := [], same := 2}, Plan(none)),
    Other = Plan({shop, is_good, []}),
    ?assertMatch(#{recheck := [_, _], same := 0, changed := [], restart := []}, Other),
    ?assertNot(weft_deploy_plan:is_empty(Other)).

%% It does not come back by itself.
a_node_that_has_left_is_started_again_unless_it_goes_test() ->
    Spec = spec(3, [{"h1", 1}], []),
    Seen = running(Spec, [{"h1", 1}]),
    [#{node := Name, id := Id} = First | Others] = Desired = desired(Spec, Seen),
    Left = with(First, #{left => true}, Seen),
    New = fun(Wanted, Now, Bad) -> weft_deploy_plan:new(Wanted, Now, Bad, [Name], false) end,
    ?assertMatch(#{restart := [First], same := 3, stop := []}, New(Desired, Left, [])),
    ?assertMatch(#{restart := [], stop := [{"h1", Name}]}, New(Others, Left, [])),
    %% Also if an upgrade, or its rollback, had been ended before.
    Made = with(First, #{previous => "old"}, Left),
    ?assertMatch(#{restart := [First], unproven := [First]}, New(Desired, Made, [])),
    Was = with(First, #{id => "old"}, Left),
    ?assertMatch(#{restart := [First | _], return := [First]}, New(Desired, Was, [Id])),
    ?assertEqual([left, surplus],
                 [State || #{node := Node, state := State}
                               <- weft_deploy_text:rows(Desired, Left)
                                  ++ weft_deploy_text:rows(Others, Left), Node =:= Name]).

%% Versions have dashes, ids one more.
releases_stay_if_they_are_used_or_new_test() ->
    Node = #{up => true, os_pid => 1, id => "code-6-12345678", previous => "code-5-12345678"},
    Down = Node#{up := false, id := "code-4-12345678", previous := none},
    Seen = #{"h1" => {ok, #{cores => 1, closed => [], nodes => #{"a@h1" => Node, "b@h1" => Down},
                            releases => ["code-" ++ [N] || N <- "87654321"]}},
             "h2" => {ok, #{cores => 1, closed => [], nodes => #{}, releases => ["code-1"]}},
             "h3" => {error, "no route"}},
    ?assertEqual([{"h1", ["code-2", "code-1"]}],
                 weft_deploy_plan:surplus_releases(["code-8"], 2, Seen)),
    ?assertEqual([], weft_deploy_plan:surplus_releases(["code-8"], 9, Seen)),
    ?assertEqual([{"h1", ["code-7", "code-3", "code-2", "code-1"]}, {"h2", ["code-1"]}],
                 weft_deploy_plan:surplus_releases(["code-8"], 0, Seen)).

the_number_of_nodes_is_no_part_of_what_a_node_is_test() ->
    Ids = fun(Count) -> lists:usort([Id || #{family := web, id := Id}
                                               <- desired(spec(Count, two(), []), empty(two()))])
          end,
    ?assertEqual(Ids(1), Ids(9)).

% It is the same from one version of weft to the next one, and wherever it is made.
what_a_node_is_made_of_has_one_id_test() ->
    Id = fun(Terms, Settings) ->
             {ok, #{families := [Web]} = Spec} =
                 weft_deploy_spec:new([{name, shop}, {family, web, #{env => Settings}} | Terms]),
             weft_deploy_nodes:id(Web, Spec, "v1")
         end,
    ?assertEqual("v1-5880265b", Id([], [])),
    Map = maps:from_list([{list_to_atom("key" ++ integer_to_list(N)), #{n => N}}
                          || N <- lists:seq(1, 40)]),
    Sorted = {map, [{Key, {map, maps:to_list(Value)}}
                    || {Key, Value} <- lists:sort(maps:to_list(Map))]},
    ?assertEqual(Id([], [{shop, [{key, [x | Sorted]}]}]), Id([], [{shop, [{key, [x | Map]}]}])),
    ?assertNotEqual(Id([], []), Id([{erl, "/opt/bin/erl"}], [])),
    ?assertEqual(Id([], []), Id([{erl, default}], [])).

groups_of_all_nodes_are_in_the_configuration_of_each_test() ->
    {ok, Spec} = weft_deploy_spec:new([{name, shop}, {family, web, #{count => 2, groups => [a]}},
                                       {family, gate, #{groups => [a, b]}},
                                       {family, db, #{groups => [b]}}]),
    Desired = weft_deploy_nodes:desired(
                Spec, [], #{counts => weft_deploy_spec:counts(Spec, #{}),
                            versions => #{web => "v", gate => "v", db => "v"}, cores => #{},
                            placed => #{}, dir => "/srv", erl => "erl"}),
    [#{config := Config, words := Words} | _] = Desired,
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Config)),
    {ok, Terms} = erl_parse:parse_term(Tokens),
    {groups, Groups} = proplists:get_value(topology, proplists:get_value(weft, Terms)),
    ?assertEqual(#{a => ['web1@127.0.0.1', 'web2@127.0.0.1', 'gate1@127.0.0.1'],
                   b => ['gate1@127.0.0.1', 'db1@127.0.0.1']}, Groups),
    ?assert(lists:member("-connect_all", Words)).

