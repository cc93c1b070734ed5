%% SPDX-License-Identifier: Apache-2.0
%% @doc Placement on real nodes: attributes, zones, silent nodes, processes, and a suggestion of
%% groups from measured traffic.
-module(weft_place_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([attributes_are_set_changed_and_read/1, nodes_are_chosen_by_what_they_say/1,
         a_silent_node_is_named_and_harms_nobody/1, processes_start_where_it_is_best/1,
         a_silent_node_is_not_waited_for/1,
         what_is_no_query_is_an_error/1, groups_are_suggested_from_traffic/1]).
-export([fail/0, count/0, attempt/1, talk/3]).

%% Less than is waited for a node that is silent.
-define(PROMPT_MS, 1500).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [groups_are_suggested_from_traffic, nodes_are_chosen_by_what_they_say,
     what_is_no_query_is_an_error, attributes_are_set_changed_and_read,
     a_silent_node_is_not_waited_for, a_silent_node_is_named_and_harms_nobody,
     processes_start_where_it_is_best].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

attributes_are_set_changed_and_read(Config) ->
    [_, Node | _] = start_all(Config),
    Read = fun(Name) -> call(Node, weft_attributes, read, [[Name]]) end,
    ?assertEqual(#{roles => [db, web]}, Read(roles)),
    ?assertEqual(ok, call(Node, weft_attributes, insert, [rack, one])),
    ?assertEqual({error, {attribute_exists, rack}}, call(Node, weft_attributes, insert, [rack, x])),
    ?assertEqual({error, {attribute_exists, cores}},
                 call(Node, weft_attributes, insert, [cores, 64])),
    ?assertEqual(ok, call(Node, weft_attributes, update, [rack, two])),
    ?assertEqual({error, {attribute_not_set, tape}},
                 call(Node, weft_attributes, update, [tape, x])),
    ?assertEqual(#{rack => two}, Read(rack)),
    Counted = {?MODULE, count},
    ok = call(Node, weft_attributes, insert, [once, {automatic, Counted}]),
    ok = call(Node, weft_attributes, insert, [always, {dynamic, Counted}]),
    ?assertEqual(Read(once), Read(once)),
    ?assertNotEqual(Read(always), Read(always)),
    ?assertEqual({error, {bad_function, bad}},
                 call(Node, weft_attributes, insert, [bad, {automatic, {?MODULE, fail}}])),
    ok = call(Node, weft_attributes, insert, [bad, {dynamic, {?MODULE, fail, []}}]),
    ?assertEqual(#{}, Read(bad)),
    ?assertEqual(ok, call(Node, weft_attributes, delete, [rack])),
    ?assertEqual({error, {attribute_not_set, rack}}, call(Node, weft_attributes, delete, [rack])),
    [ok = call(Node, weft_attributes, delete, [Name]) || Name <- [once, always, bad]],
    Facts = call(Node, weft_node_facts, names, []),
    ?assertEqual([], Facts -- call(Node, weft_attributes, list, [])),
    #{cores := Cores, processes := Processes, memory_vm := Bytes, otp_release := Release} =
        call(Node, weft_attributes, read, [Facts]),
    ?assertEqual([true, true, true, true],
                 [Cores > 0, Processes > 10, Bytes > 1000000, Release >= 25]).

nodes_are_chosen_by_what_they_say(Config) ->
    [N1 | _] = start_all(Config),
    Choose = fun(Where) -> names(maps:get(nodes, choose(N1, [Where]))) end,
    ?assertEqual([n1, n2, n3, n4], Choose([])),
    ?assertEqual([n2, n3], Choose([{role, db}])),
    ?assertEqual([n2], Choose([{role, db}, {zone, [eu]}])),
    ?assertEqual([n2], Choose([near])),
    ?assertEqual([n3, n4], Choose([far])),
    ?assertEqual([n3], Choose([{disk, ge, 200}])),
    ?assertEqual([n1, n2, n3, n4], Choose([{otp_release, ge, 25}, {cores, gt, 0}])),
    ?assertEqual([n3, n2, n1], Choose(#{where => [{disk, gt, 0}], order => [{disk, descending}]})),
    ?assertEqual([n3], Choose(#{order => [{disk, descending}], limit => 1})),
    #{nodes := OfTwo} = choose(N1, [[node_name(n2), node_name(n1)], []]),
    ?assertEqual([n1, n2], names(OfTwo)),
    %% Measured: to oneself it is nothing, to others something.
    ?assertEqual([n2, n3, n4], Choose([{rtt_us, gt, 0}])),
    ?assertEqual(n1, hd(Choose(#{order => [{rtt_us, ascending}]}))),
    {ok, _} = call(N1, weft_group, create, [g, [node_name(n1), node_name(n3)]]),
    ?assertEqual([n1, n3], names(maps:get(nodes, choose(N1, [{group, g}, []])))),
    {ok, _} = call(N1, weft_group, delete, [g]).

a_silent_node_is_named_and_harms_nobody(Config) ->
    [N1, N2, _, N4] = start_all(Config),
    ok = weft_test_nodes:pause(N4),
    ok = weft_test_nodes:kill(N2),
    All = [node_name(Name) || Name <- [n1, n2, n3, n4, never_there]],
    #{nodes := Nodes, silent := Silent} =
        choose(N1, [#{from => All, where => [{cores, gt, 0}], timeout_ms => 10000}]),
    ?assertEqual([n1, n3], names(Nodes)),
    ?assertEqual([n2, n4, never_there], names(Silent)),
    {Values, Silent} = call(N1, weft_place, attributes, [All, [disk]]),
    ?assertEqual(#{node_name(n1) => #{disk => 1}, node_name(n3) => #{disk => 200}}, Values),
    ok = weft_test_nodes:continue(N4).

processes_start_where_it_is_best(Config) ->
    [N1, N2 | _] = start_all(Config),
    Sleep = {timer, sleep, [infinity]},
    {ok, Best} = prompt(fun() ->
                            call(N1, weft_place, spawn, [#{order => [{disk, descending}]}, Sleep])
                        end),
    ?assertEqual(node_name(n3), node(Best)),
    {ok, Any} = call(N1, weft_place, spawn, [#{where => [{zone, [eu]}]}, Sleep]),
    ?assert(lists:member(node(Any), [node_name(n1), node_name(n2)])),
    ?assertEqual({error, no_node},
                 call(N1, weft_place, spawn, [#{where => [{role, none}]}, Sleep])),
    %% One that is gone is left out.
    ok = weft_test_nodes:kill(N2),
    {ok, Other} = call(N1, weft_place, spawn, [#{from => [node_name(n2), node_name(n3)],
                                                 timeout_ms => 10000}, Sleep]),
    ?assertEqual(node_name(n3), node(Other)).

%% Neither by who wants a process, nor by who measures: what was asked for a minute takes seconds.
a_silent_node_is_not_waited_for(Config) ->
    [N1, _, _, N4] = start_all(Config),
    Suggest = fun() ->
                  call(N1, weft_group, suggest, [#{window_ms => 1000, timeout_ms => 60000}])
              end,
    %% A node that was started just now may be late the first time.
    weft_test_nodes:until(fun() -> #{silent := Late} = Suggest(), Late =:= [] end),
    ok = weft_test_nodes:pause(N4),
    {SpawnMs, {ok, Pid}} =
        timed(fun() -> call(N1, weft_place, spawn,
                            [#{from => [node_name(n3), node_name(n4)], timeout_ms => 60000},
                             {timer, sleep, [infinity]}])
              end),
    ?assertEqual(node_name(n3), node(Pid)),
    %% On a busy machine another one may be late by a second, and is silent, too.
    {SuggestMs, #{silent := Silent}} =
        first_with(fun({_Ms, #{silent := Late}}) -> lists:delete(n4, names(Late)) =:= [] end,
                   fun() -> timed(Suggest) end),
    ?assertEqual([n4], names(Silent)),
    ct:pal("with a silent node: spawned after ~w ms, measured for 1 s in ~w ms",
           [SpawnMs, SuggestMs]),
    ?assert(SpawnMs < 20000),
    ?assert(SuggestMs < 20000),
    ok = weft_test_nodes:continue(N4).

timed(Fun) ->
    Start = erlang:monotonic_time(millisecond),
    Result = Fun(),
    {erlang:monotonic_time(millisecond) - Start, Result}.

what_is_no_query_is_an_error(Config) ->
    [Node | _] = start_all(Config),
    [?assertEqual({Query, Reason}, {Query, call(Node, ?MODULE, attempt, [Query])})
     || {Query, Reason} <- [{[{cores, more, 1}], {bad_predicate, {cores, more, 1}}},
                            {#{order => [cores]}, {bad_order, cores}},
                            {#{form => all}, {unknown_option, form}},
                            {#{from => ["n1"]}, {not_a_node, "n1"}},
                            {#{from => {group, none}}, {unknown_group, none}}]].

%% Two pairs that talk much, over one that talks little.
groups_are_suggested_from_traffic(Config) ->
    [N1, _, N3, N4] = start_all(Config),
    [ok = call(Node, ?MODULE, talk, [node_name(Peer), 100000, 20])
     || {Node, Peer} <- [{N1, n2}, {N3, n4}]],
    #{groups := Groups, why := Why, silent := Silent} =
        prompt(fun() -> call(N1, weft_group, suggest, []) end),
    ?assertEqual([], Silent),
    [Group1, Group2] = [names(Nodes) || {_, Nodes} <- lists:sort(maps:to_list(Groups))],
    ?assertEqual({[], []}, {[n1, n2] -- Group1, [n3, n4] -- Group2}),
    ?assert(length(Why) >= 3),
    %% In a window only what was said in it counts.
    Self = self(),
    Asked = spawn_link(fun() -> Self ! {self(), call(N1, weft_group, suggest,
                                                     [#{window_ms => 3000}])} end),
    talk_until(Asked, N4, n1).

talk_until(Asked, Node, Peer) ->
    receive
        {Asked, #{groups := Groups}} ->
            ?assert(lists:any(fun(Nodes) -> [n1, n4] -- names(Nodes) =:= [] end,
                              maps:values(Groups)))
    after 0 ->
        ok = call(Node, ?MODULE, talk, [node_name(Peer), 100000, 1]),
        talk_until(Asked, Node, Peer)
    end.

%% --- on the nodes -----------------------------------------------------------------------------

fail() -> error(on_purpose).

count() -> erlang:unique_integer([monotonic]).

attempt(Query) ->
    try weft_place:choose_nodes(Query)
    catch
        error:Reason -> Reason
    end.

talk(Node, Bytes, Times) ->
    _ = [erpc:call(Node, erlang, byte_size, [rand:bytes(Bytes)]) || _ <- lists:seq(1, Times)],
    ok.

%% --- helpers ----------------------------------------------------------------------------------

%% The same nodes for all cases, but for those that a case has ended.
start_all(Config) ->
    Attributes = [{n1, #{zone => [eu, dc1], disk => 1}},
                  {n2, #{zone => [eu, dc2], disk => 100, roles => [db, web]}},
                  {n3, #{zone => [us], disk => 200, roles => [db]}},
                  {n4, #{}}],
    Nodes = [weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Values, Config) end)
             || {Name, Values} <- Attributes],
    %% Each with each: who sends to a new neighbour while that one connects may lose the race.
    [weft_test_nodes:until(fun() -> call(From, net_kernel, connect_node, [Node]) end)
     || From <- Nodes, #{node := Node} <- Nodes -- [From]],
    Nodes.

start(Name, Values, Config) ->
    Env = [{attributes, Values}, {topology, {full_mesh, #{seeds => [node_name(n1)]}}}],
    Node = weft_test_nodes:start(Name, #{config => Env}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

choose(Node, Args) -> call(Node, weft_place, choose_nodes, Args).

%% The first answer for which no node was waited that was late, as one may be on a busy machine.
prompt(Ask) ->
    {_Ms, Answer} = first_with(fun({Ms, _}) -> Ms < ?PROMPT_MS end, fun() -> timed(Ask) end),
    Answer.

first_with(Is, Ask) ->
    Ref = make_ref(),
    weft_test_nodes:until(fun() ->
                              Answer = Ask(),
                              case Is(Answer) of
                                  true -> self() ! {Ref, Answer}, true;
                                  false -> false
                              end
                          end, 60000),
    receive {Ref, First} -> First end.

names(Nodes) ->
    [begin
         [Name, _Host] = string:split(atom_to_list(Node), "@"),
         list_to_atom(Name)
     end || Node <- Nodes].
