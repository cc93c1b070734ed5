%% SPDX-License-Identifier: Apache-2.0
%% @doc Stores that retire actors in a world where messages are lost, doubled and reordered, links
%% break, nodes end at any step and lose the end of their files, several retire at once, and nodes
%% come and go. In the end all have what was counted, added and removed, as if nobody had retired
%% anything; and less is kept.
-module(weft_crdt_retirement_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(W, weft_crdt_world).
-define(NODES, [a, b, c, d]).
-define(KEYS, [{up, gcounter}, {count, pncounter}, {set, orset}, {map, ormap}, {flag, ew_flag}]).
%% The others forget everything when they end.
-define(OPTIONS, #{durable_nodes => [a, b]}).
-define(MESH, [{A, B} || A <- ?NODES, B <- ?NODES, A < B]).

%% --- any schedule -----------------------------------------------------------------------------

any_schedule_test_() ->
    [{Name, {timeout, 1200, ?_assert(proper:quickcheck(nothing_is_lost(Options),
                                                      [{numtests, count()}, quiet]))}}
     || {Name, Options} <- [{"in a mesh", ?OPTIONS},
                            {"with one delta in a message", ?OPTIONS#{message_bytes => 1}}]].

count() ->
    case os:getenv("FULL") of false -> 60; _ -> 3000 end.

%% Each element is added once, so what has to be in the set in the end is known: what was added, and
%% not removed by somebody who had it.
nothing_is_lost(Options) ->
    ?FORALL(Steps, ?SIZED(Size, resize(3 * Size, list(step()))),
            begin
                Begun = {joined(?W:new(?NODES, Options)), #{count => 0, set => []}},
                {World, Model} = lists:foldl(fun step/2, Begun, numbered(Steps)),
                End = retired(a, ?W:settle(joined(World))),
                Values = [[?W:value(Node, Key, End) || {Key, _} <- ?KEYS] || Node <- ?NODES],
                ?WHENFAIL(io:format("~p~n~p~n~p~n~p~n",
                                    [Steps, Values, Model, unexpected(End)]),
                          length(lists:usort(Values)) =:= 1 andalso is_like(Model, End)
                              andalso unexpected(End) =:= [] andalso is_small(End))
            end).

%% Where messages overtake each other, one may come before the sender has said hello.
unexpected(World) ->
    [Warning || {_, _, Reason} = Warning <- ?W:warnings(World),
                Reason =/= {unknown_version, older}].

numbered(Steps) -> lists:zip(lists:seq(1, length(Steps)), Steps).

is_like(#{count := Count, set := Set}, World) ->
    [{ok, Count}, {ok, -Count}, {ok, lists:sort(Set)}, {ok, {Count, Set}}]
        =:= [?W:value(a, up, World), ?W:value(a, count, World), ?W:value(a, set, World),
             in_map(?W:value(a, map, World))].

in_map({ok, Map}) -> {ok, {maps:get(n, Map, 0), lists:reverse(maps:get(s, Map, []))}}.

%% No run that has ended is remembered, but those with elements that live, and all have folded.
is_small(World) ->
    hd(?W:answers({retire, []}, World)) =:= {ok, 0} andalso length(roots(World)) =:= 1.

%% Twice: the second time there is nothing left to do.
retired(Node, World) ->
    lists:foldl(fun(_, W) -> ?W:settle(2, ?W:command(Node, {retire, []}, W)) end, World, [1, 2]).

joined(World) -> lists:foldl(fun({A, B}, W) -> ?W:link(A, B, W) end, declared(World), ?MESH).

declared(World) ->
    lists:foldl(fun({Node, {Key, Type}}, W) -> ?W:command(Node, {declare, Key, Type}, W) end,
                World, [{Node, Key} || Node <- ?W:nodes(World), Key <- ?KEYS]).

step() ->
    Node = oneof(?NODES),
    Durable = oneof([a, b]),
    Message = range(0, 50),
    frequency([{8, {change, Node}}, {3, {remove, Node}}, {25, {deliver, Message}},
               {3, {double, Message}}, {3, {lose, Message}}, {6, {tick, oneof([10, 100, 2500])}},
               {2, {cut, oneof(?MESH)}}, {2, {link, oneof(?MESH)}}, {1, join},
               {8, {in_order, range(1, 30)}}, {2, {retire, Node}},
               {4, {begin_to_retire, Node, Node, range(0, 60)}}, {2, {restart, Node}},
               {2, {crash, Message, range(0, 4)}}, {1, {tear, Durable, range(0, 6)}},
               {1, {away, d}}]).

step({N, {change, Node}}, {World, #{count := Count, set := Set}}) ->
    Changes = [{up, increment}, {count, decrement}, {set, {add, N}}, {flag, enable},
               {map, {update, n, pncounter, increment}}, {map, {update, s, orset, {add, N}}}],
    {lists:foldl(fun({Key, Operation}, W) -> ?W:command(Node, {update, Key, Operation, 0}, W) end,
                 World, Changes), #{count => Count + 1, set => [N | Set]}};
%% The oldest one that it has of both.
step({_, {remove, Node}}, {World, #{set := Set} = Model}) ->
    {ok, Has} = ?W:value(Node, set, World),
    {ok, Map} = ?W:value(Node, map, World),
    InMap = maps:get(s, Map, []),
    case [E || E <- lists:sort(Set), lists:member(E, Has), lists:member(E, InMap)] of
        [] -> {World, Model};
        [E | _] ->
            {lists:foldl(fun({Key, Operation}, W) ->
                             ?W:command(Node, {update, Key, Operation, 0}, W)
                         end, World, [{set, {remove, E}},
                                      {map, {update, s, orset, {remove, E}}}]),
             Model#{set := lists:delete(E, Set)}}
    end;
step({_, Step}, {World, Model}) -> {happens(Step, World), Model}.

happens({cut, {A, B}}, World) -> ?W:cut(A, B, World);
happens({link, {A, B}}, World) -> ?W:link(A, B, World);
happens(join, World) -> joined(World);
happens({retire, Node}, World) -> ?W:command(Node, {retire, []}, World);
%% One that can succeed: so many messages later something else happens.
happens({begin_to_retire, Node, Former, Count}, World) ->
    Ready = ?W:settle(1, happens({restart, Former}, World)),
    ?W:in_order(Count, ?W:command(Node, {retire, []}, Ready));
happens({restart, Node}, World) -> declared(?W:restart(Node, kept(Node, World)));
happens({crash, Nth, Count}, World) ->
    declared(?W:crash(Nth, Count, [a, b], World));
happens({tear, Node, Items}, World) -> declared(?W:tear(Node, Items, known(World)));
%% It is gone for good, and one with its name begins with nothing.
happens({away, Node}, World) ->
    Others = ?W:settle(1, ?W:depart(Node, known(World))),
    joined(?W:arrive(Node, ?W:settle(2, ?W:command(a, {retire, [Node]}, Others))));
happens({Step, N}, World) -> ?W:Step(N, World).

kept(Node, World) ->
    case lists:member(Node, [a, b]) of
        true -> World;
        false -> known(World)
    end.

%% All have got everything.
known(World) -> ?W:settle(joined(World)).

%% --- who has to be there ----------------------------------------------------------------------

former_runs_are_forgotten_test() ->
    Before = former_runs(30, ?W:settle(joined(?W:new(?NODES, #{})))),
    After = asked(a, [], Before),
    ?assertEqual([{ok, 30}], ?W:answers({retire, []}, After)),
    ?assertEqual({ok, 30}, ?W:value(b, up, After)),
    ?assertEqual(1, length(roots(After))),
    ?assertEqual({30, [retired]}, {length(what_is_sent(up, Before)), what_is_sent(up, After)}),
    ?assertMatch(#{retired := 1}, ?W:reply(d, info, After)).

%% Nothing is done, and the error says who is not there.
an_absent_member_is_named_test() ->
    World = ?W:depart(b, former_runs(1, ?W:settle(joined(?W:new(?NODES, #{}))))),
    ?assertEqual({error, {absent, [b]}}, ?W:reply(a, {retire, []}, World)),
    ?assertEqual({error, {present, [c]}}, ?W:reply(a, {retire, [b, c]}, World)),
    ?assertEqual({error, {present, [a]}}, ?W:reply(a, {retire, [a]}, World)),
    ?assertEqual({error, {bad_nodes, x}}, ?W:reply(a, {retire, x}, World)),
    ?assertEqual({error, {bad_nodes, [1]}}, ?W:reply(a, {retire, [1]}, World)),
    ?assertEqual({error, {bad_nodes, [a | b]}}, ?W:reply(a, {retire, [a | b]}, World)),
    ?assertEqual([{ok, 2}], ?W:answers({retire, [b]}, asked(a, [b], World))).

%% One that only another member knows, or that is only known by what it did.
a_member_of_whom_others_know_is_named_test() ->
    World0 = ?W:settle(?W:link(c, d, linked([{a, b}, {a, c}, {b, c}], ?W:new(?NODES, #{})))),
    World = former_runs(1, World0),
    ?assertEqual([{error, {absent, [d]}}], ?W:answers({retire, []}, asked(a, [], World))),
    Item = {up, gcounter, #{{e, 7} => 1}},
    Known = ?W:event(a, {message, b, {weft_crdt, 1, {deltas, 99, <<>>, [], [Item]}}}, World),
    ?assertMatch({error, {absent, [_ | _]}}, ?W:reply(a, {retire, []}, Known)).

%% What somebody lacks he gets by comparison, so it works later.
one_who_lacks_something_is_named_test() ->
    Ready = ?W:settle(joined(?W:new(?NODES, #{}))),
    World0 = ?W:command(c, {update, up, increment, 0}, Ready),
    %% It reaches only one of them before its node ends.
    World1 = ?W:in_order(1, ?W:tick(10, World0)),
    World = ?W:in_order(20, declared(?W:restart(c, World1))),
    Answer = ?W:answers({retire, []}, ?W:in_order(30, ?W:command(a, {retire, []}, World))),
    ?assertMatch([{error, {behind, [_]}}], Answer),
    Later = asked(a, [], ?W:settle(World)),
    ?assertMatch([{ok, 1} | _], ?W:answers({retire, []}, Later)),
    ?assertEqual({ok, 1}, ?W:value(d, up, Later)).

%% What one has of a key that another one keeps with another type is nowhere else.
keys_of_two_types_keep_their_runs_test() ->
    Two = ?W:command(b, {declare, k, orset},
                     ?W:command(a, {declare, k, gcounter}, ?W:new([a, b], ?OPTIONS))),
    World0 = ?W:command(a, {update, k, increment, 0}, ?W:link(a, b, Two)),
    World = asked(a, [], ?W:settle(?W:restart(a, ?W:settle(World0)))),
    ?assertEqual([{error, {behind, [b]}}], ?W:answers({retire, []}, World)),
    ?assertEqual({{ok, 1}, {ok, []}}, {?W:value(a, k, World), ?W:value(b, k, World)}).

%% A version that knows nothing of it says no hello. Afterwards its messages are refused.
an_older_version_is_named_test() ->
    World0 = former_runs(1, ?W:settle(linked([{a, b}, {a, c}, {b, c}], ?W:new([a, b, c], #{})))),
    Older = ?W:event(a, {neighbour_up, older}, World0),
    ?assertEqual({error, {no_answer, [older]}}, ?W:reply(a, {retire, []}, Older)),
    ?assertEqual([{error, {no_answer, [older]}}], ?W:answers({retire, []}, asked(b, [], Older))),
    Retired = ?W:event(a, {neighbour_up, older}, asked(a, [], World0)),
    Deltas = {deltas, 1, <<>>, [], [{up, gcounter, #{{older, 1} => 5}}]},
    World = ?W:event(a, {message, older, {weft_crdt, 1, Deltas}}, Retired),
    ?assertEqual({ok, 1}, ?W:value(a, up, World)),
    ?assertMatch([{refused, older, {unknown_version, older}}], ?W:warnings(World)).

%% --- two at once, and one that ends -----------------------------------------------------------

%% Whatever is delivered when: at most one gets its way, or both after each other.
two_at_once_do_not_both_succeed_test_() ->
    {timeout, 60,
     fun() ->
         World0 = former_runs(2, ?W:settle(joined(?W:new(?NODES, ?OPTIONS)))),
         [begin
              World1 = ?W:command(b, {retire, []}, ?W:in_order(Count, ?W:command(a, {retire, []},
                                                                                 World0))),
              World = retired(d, ?W:settle(World1)),
              ?assertEqual({Count, 1}, {Count, length(roots(World))}),
              ?assertEqual([{ok, 2}], lists:usort([?W:value(Node, up, World) || Node <- ?NODES])),
              ?assertEqual([], ?W:warnings(World))
          end || Count <- lists:seq(0, 24)]
     end}.

%% What makes sure of that: who makes an attempt promises nothing, a promise is for one, and no
%% number is promised again, so a commit that was given up does nothing.
a_promise_is_for_one_attempt_test() ->
    World0 = former_runs(1, ?W:settle(joined(?W:new(?NODES, #{})))),
    {ok, Table} = weft_crdt_retired:next(#{c => 3}, [], weft_crdt_retired:new()),
    Prepare = {prepare, 7, Table, #{a => 1, b => 2, c => 5, d => 4}},
    Says = fun(From, To, Msg, World) ->
               ?W:event(To, {message, From, {weft_crdt, 2, {0, 0}, Msg}}, World)
           end,
    Attempt = Says(b, a, Prepare, ?W:forget(?W:command(a, {retire, []}, World0))),
    ?assertEqual([{refuse, 7, {busy, a}}], answers(a, b, Attempt)),
    Promised = Says(a, d, Prepare, ?W:forget(World0)),
    ?assertMatch([{promise, 7, _}], answers(d, a, Promised)),
    ?assertEqual([{refuse, 7, {busy, a}}], answers(d, b, Says(b, d, Prepare, Promised))),
    ?assertMatch([{promise, 7, _}], answers(d, b, Says(b, d, Prepare,
                                                       Says(a, d, {abort, 7}, Promised)))),
    Again = Says(a, d, Prepare, Says(a, d, {abort, 7}, Promised)),
    ?assertMatch([{promise, 7, _}], answers(d, a, Again)),
    Retired = fun(World) -> maps:get(retired, ?W:reply(d, info, World)) end,
    ?assertEqual(0, Retired(Says(a, d, {commit, 7}, Again))),
    ?assertEqual(0, Retired(Says(a, d, {commit, 6}, Promised))),
    ?assertEqual(0, Retired(Says(b, d, {commit, 7}, Promised))),
    ?assertEqual(1, Retired(Says(a, d, {commit, 7}, Promised))).

answers(From, To, World) ->
    [Answer || {F, T, {weft_crdt, 2, _, Answer}} <- ?W:sent(World), F =:= From, T =:= To,
               lists:member(element(1, Answer), [promise, refuse])].

%% At any step, with its file or without one.
the_asking_node_ends_test_() ->
    {timeout, 60,
     fun() ->
         World0 = former_runs(2, ?W:settle(joined(?W:new(?NODES, ?OPTIONS)))),
         [begin
              World1 = ?W:in_order(Count, ?W:command(Node, {retire, []}, World0)),
              World = retired(b, ?W:settle(declared(?W:restart(Node, World1)))),
              ?assertEqual({Node, Count, 1}, {Node, Count, length(roots(World))}),
              ?assertEqual([{ok, 2}], lists:usort([?W:value(N, up, World) || N <- ?NODES])),
              ?assertEqual([], ?W:warnings(World))
          end || Node <- [a, d], Count <- lists:seq(0, 24)]
     end}.

%% Also if only the asking node is left of the view when it has decided, and if nobody answers.
nobody_answers_test() ->
    World0 = former_runs(2, ?W:settle(joined(?W:new(?NODES, #{})))),
    Asked = ?W:forget(?W:command(a, {retire, []}, World0)),
    Lost = lists:foldl(fun(_, W) -> ?W:lose(0, W) end, Asked, lists:seq(1, 100)),
    ?assertMatch([{error, {no_answer, [b, c, d]}}],
                 ?W:answers({retire, []}, ?W:tick(5000, Lost))),
    Again = asked(b, [], ?W:settle(?W:tick(5000, Lost))),
    ?assertEqual({ok, 2}, hd(?W:answers({retire, []}, Again))).

a_promise_ends_by_itself_test() ->
    World0 = former_runs(2, ?W:settle(joined(?W:new(?NODES, #{})))),
    World1 = ?W:in_order(3, ?W:command(a, {retire, []}, World0)),
    Silent = lists:foldl(fun(_, W) -> ?W:lose(0, W) end, World1, lists:seq(1, 100)),
    ?assertEqual({error, {busy, a}}, ?W:reply(b, {retire, []}, Silent)),
    ?assertMatch({error, {busy, a}}, ?W:reply(b, {retire, []}, ?W:tick(14000, Silent))),
    ?assertEqual({ok, 2}, hd(?W:answers({retire, []}, asked(b, [], ?W:tick(16000, Silent))))).

%% --- who comes back, and who is new -----------------------------------------------------------

%% What it had told is there once, and what it had not told is not lost as long as its file is.
a_durable_store_that_was_said_to_be_gone_is_barred_test() ->
    World0 = ?W:settle(linked([{a, c}, {b, c}, {a, b}], ?W:new([a, b, c], ?OPTIONS))),
    Told = ?W:settle(counted(b, 3, World0)),
    Untold = counted(b, 4, ?W:cut(b, c, ?W:cut(a, b, Told))),
    Retired = asked(a, [b], ?W:depart(b, Untold)),
    ?assertMatch([{ok, _}], ?W:answers({retire, [b]}, Retired)),
    Back = ?W:settle(?W:link(b, c, ?W:link(a, b, ?W:arrive(b, Retired)))),
    ?assertMatch([{barred, retired, _}], ?W:warnings(Back)),
    ?assertMatch({error, {retired, _}}, ?W:reply(b, {retire, []}, Back)),
    ?assertMatch(#{barred := {retired, _}}, ?W:reply(b, info, Back)),
    %% What it would answer with `ok' would be lost with its file.
    ?assertMatch({error, {retired, _}}, ?W:reply(b, {update, up, increment, 0}, Back)),
    ?assertEqual([{ok, 3}, {ok, 7}, {ok, 3}], [?W:value(Node, up, Back) || Node <- [a, b, c]]),
    %% Without its file it is a new member.
    Empty = ?W:settle(?W:tear(b, 1000, Back)),
    ?assertEqual({ok, 3}, ?W:value(b, up, Empty)),
    ?assertEqual([{ok, 4}], lists:usort([?W:value(Node, up, ?W:settle(counted(b, 1, Empty)))
                                         || Node <- [a, b, c]])).

%% Whatever it did would be taken for what the retired run has done.
a_store_whose_clock_was_set_back_is_barred_test() ->
    World = ?W:settle(counted(a, 3, linked([{a, b}], ?W:new([a, b], ?OPTIONS)))),
    Retired = asked(a, [], ?W:settle(declared(?W:restart(a, World)))),
    ?assertEqual([{ok, 1}], ?W:answers({retire, []}, Retired)),
    Begun = fun(Run) ->
                weft_crdt_core:init(a, #{durable => true, incarnation => Run,
                                         kept => ?W:disk(a, Retired)})
            end,
    Update = {command, ref, {update, up, increment, 0}},
    {Barred, Effects} = Begun(1),
    ?assertMatch([{notice, {warning, {barred, retired, a}}} | _], Effects),
    ?assertMatch({_, [{reply, ref, {error, {retired, a}}}]},
                 weft_crdt_core:handle(Update, 0, Barred)),
    ?assertEqual({ok, 3}, weft_crdt_core:value(up, Barred)),
    {Later, _} = Begun(2),
    {Counted, _} = weft_crdt_core:handle(Update, 0, Later),
    ?assertEqual({ok, 4}, weft_crdt_core:value(up, Counted)).

%% One that had told everything goes on as before.
a_durable_store_that_lacks_nothing_comes_back_test() ->
    World0 = ?W:settle(linked([{a, c}, {b, c}, {a, b}], ?W:new([a, b, c], ?OPTIONS))),
    Retired = asked(a, [b], ?W:depart(b, ?W:settle(counted(b, 3, World0)))),
    Back = ?W:settle(?W:link(b, c, ?W:link(a, b, ?W:arrive(b, Retired)))),
    ?assertEqual([], ?W:warnings(Back)),
    ?assertEqual([{ok, 4}], lists:usort([?W:value(Node, up, ?W:settle(counted(b, 1, Back)))
                                         || Node <- [a, b, c]])),
    ?assertEqual(1, length(roots(Back))).

%% A node that ran all the time on the other side of a split.
a_running_store_that_was_said_to_be_gone_is_barred_test() ->
    World0 = ?W:settle(joined(?W:new(?NODES, #{}))),
    Told = ?W:settle(counted(d, 3, World0)),
    Split = counted(d, 4, lists:foldl(fun(N, W) -> ?W:cut(N, d, W) end, Told, [a, b, c])),
    Joined = ?W:settle(joined(asked(a, [d], Split))),
    ?assertMatch([{barred, retired, _}], ?W:warnings(Joined)),
    ?assertEqual([{ok, 3}, {ok, 3}, {ok, 3}, {ok, 7}],
                 [?W:value(Node, up, Joined) || Node <- ?NODES]),
    Empty = ?W:settle(declared(?W:restart(d, Joined))),
    ?assertEqual([{ok, 3}], lists:usort([?W:value(Node, up, Empty) || Node <- ?NODES])).

%% Each side has said that the other one is gone: nothing is counted twice.
two_sides_that_have_retired_each_other_stay_apart_test() ->
    Told = ?W:settle(counted(c, 2, counted(a, 1, ?W:settle(joined(?W:new(?NODES, #{})))))),
    Split = lists:foldl(fun({A, B}, W) -> ?W:cut(A, B, W) end, Told,
                        [{A, B} || A <- [a, b], B <- [c, d]]),
    World = ?W:settle(joined(asked(c, [a, b], asked(a, [c, d], Split)))),
    ?assertEqual([{ok, 3}], lists:usort([?W:value(Node, up, World) || Node <- ?NODES])),
    ?assertNotEqual([], ?W:warnings(World)).

%% A store that begins while others retire, whatever it has got: its value is never too high, does
%% not fall, and is right in the end.
a_store_that_begins_meanwhile_gets_all_test_() ->
    {timeout, 60,
     fun() ->
         World0 = former_runs(2, counted(b, 5, ?W:settle(linked([{a, b}, {a, c}, {b, c}],
                                                                ?W:new([a, b, c], #{}))))),
         [begin
              World1 = ?W:in_order(Before, ?W:link(b, e, declared(?W:arrive(e, World0)))),
              Cut = ?W:command(a, {retire, []}, ?W:cut(b, e, World1)),
              World2 = ?W:link(b, e, ?W:link(c, e, ?W:settle(0, Cut))),
              {Values, World} = lists:foldl(fun(_, {Vs, W}) ->
                                                {ok, V} = ?W:value(e, up, W),
                                                {[V | Vs], ?W:in_order(1, W)}
                                            end, {[], World2}, lists:seq(1, 40)),
              ?assertEqual(lists:sort(Values), lists:reverse(Values)),
              ?assert(hd(Values) =< 7),
              ?assertEqual({Before, {ok, 7}}, {Before, ?W:value(e, up, ?W:settle(World))}),
              ?assertEqual({Before, 1}, {Before, length(roots(?W:settle(World)))})
          end || Before <- lists:seq(0, 20)]
     end}.

%% Of a part of the counts nobody could tell later which part it was.
only_who_has_all_folds_test() ->
    {ok, Table} = weft_crdt_retired:next(#{a => 1}, [], weft_crdt_retired:new()),
    [All, Part, Nothing] = [weft_crdt_entries:learn_all([{up, gcounter, Counts}
                                                         || map_size(Counts) > 0],
                                                        weft_crdt_entries:new(10))
                            || Counts <- [#{{a, 1} => 3, {b, 1} => 4}, #{{a, 1} => 2, {b, 1} => 4},
                                          #{}]],
    Hash = weft_crdt_entries:ended(Table, All),
    ?assertEqual([true, false, false],
                 [element(1, weft_crdt_entries:retire(Table, Hash, Entries))
                  || Entries <- [All, Part, Nothing]]),
    {false, Kept} = weft_crdt_entries:retire(Table, Hash, Part),
    ?assertEqual({ok, gcounter, #{{a, 1} => 2, {b, 1} => 4}}, weft_crdt_entries:state(up, Kept)).

%% What a retired run has added stays until somebody removes it, also while a store that lacks
%% something can not fold.
elements_of_retired_runs_can_be_removed_test() ->
    Add = fun(E, W) -> ?W:command(c, {update, set, {add, E}, 0}, W) end,
    World0 = ?W:settle(lists:foldl(Add, ?W:settle(joined(?W:new(?NODES, #{}))), [1, 2, 3])),
    World1 = asked(a, [], ?W:settle(declared(?W:restart(c, World0)))),
    ?assertEqual([{ok, 1}], ?W:answers({retire, []}, World1)),
    World = ?W:settle(?W:command(c, {update, set, {remove, 2}, 0}, World1)),
    ?assertEqual([{ok, [1, 3]}], lists:usort([?W:value(Node, set, World) || Node <- ?NODES])),
    Empty = ?W:settle(?W:command(d, {update, set, {remove_all, [1, 3]}, 0}, World)),
    ?assertEqual([{ok, []}], lists:usort([?W:value(Node, set, Empty) || Node <- ?NODES])).

too_many_retired_nodes_are_refused_test() ->
    Nodes = maps:from_list([{list_to_atom("n" ++ integer_to_list(N)), 1}
                            || N <- lists:seq(1, 10000)]),
    {ok, Table} = weft_crdt_retired:next(Nodes, [], weft_crdt_retired:new()),
    ?assertEqual({error, {too_many_retired, 10000}},
                 weft_crdt_retired:next(#{one_more => 1}, [], Table)).

too_many_members_are_refused_test() ->
    Many = maps:from_list([{list_to_atom("n" ++ integer_to_list(N)), 1}
                           || N <- lists:seq(1, 10001)]),
    Hello = {weft_crdt, 2, {0, 0}, {hello, {b, 2}, Many}},
    World = ?W:event(a, {message, b, Hello}, linked([{a, b}], ?W:new([a, b], #{}))),
    ?assertEqual({error, {too_many_members, 10000}}, ?W:reply(a, {retire, []}, World)).

malformed_messages_are_refused_test_() ->
    {timeout, 1200, ?_assert(proper:quickcheck(refuses(), [{numtests, 5 * count()}, quiet]))}.

refuses() ->
    ?FORALL(Msgs, list(message()),
            begin
                World0 = linked([{a, b}], ?W:new([a, b], #{})),
                World = lists:foldl(fun(Msg, W) -> ?W:event(a, {message, b, Msg}, W) end, World0,
                                    Msgs),
                ?W:value(a, count, ?W:settle(2, World)) =/= error
            end).

message() ->
    Bad = ?W:bad(),
    Table = oneof([Bad, {range(0, 3), #{b => {range(0, 3), oneof([none, 1, Bad])}}}]),
    View = oneof([Bad, #{a => range(0, 3), b => range(0, 3)}]),
    Stamp = oneof([Bad, {0, 0}, {1, oneof([1, Bad])}]),
    {weft_crdt, 2, Stamp,
     oneof([Bad, {hello, oneof([Bad, {b, oneof([2, Bad])}]), oneof([Bad, #{Bad => Bad}])},
            {prepare, oneof([1, Bad]), Table, View}, {promise, oneof([1, Bad]), Bad},
            {refuse, oneof([1, Bad]), Bad}, {commit, oneof([1, Bad])},
            {committed, oneof([1, Bad])}, {abort, oneof([1, Bad])},
            {retired, Table, oneof([0, Bad])}])}.

%% --- worlds -----------------------------------------------------------------------------------

linked(Links, World) ->
    lists:foldl(fun({A, B}, W) -> ?W:link(A, B, W) end, declared(World), Links).

counted(Node, Times, World) ->
    lists:foldl(fun(_, W) -> ?W:command(Node, {update, up, increment, 0}, W) end, World,
                lists:seq(1, Times)).

%% So many runs of `c' that have counted and ended.
former_runs(Count, World) ->
    ?W:settle(lists:foldl(fun(_, W) ->
                              Told = ?W:settle(2, counted(c, 1, W)),
                              ?W:settle(2, declared(?W:restart(c, Told)))
                          end, World, lists:seq(1, Count))).

asked(Node, Gone, World) -> ?W:settle(?W:command(Node, {retire, Gone}, World)).

%% Stores that are equal, folded or not, begin a comparison with the same message.
roots(World) ->
    Later = ?W:tick(3000, ?W:forget(World)),
    lists:usort([Ranges || {_, _, Msg} <- ?W:sent(Later),
                           {ranges, Ranges} <- [element(tuple_size(Msg), Msg)]]).

%% For whom a store that is empty gets a count.
what_is_sent(Key, World) ->
    Sent = ?W:sent(?W:settle(3, ?W:link(a, z, ?W:arrive(z, ?W:forget(World))))),
    lists:usort([Actor || {a, z, Msg} <- Sent,
                          {deltas, _, _, Shared, Own} <- [element(tuple_size(Msg), Msg)],
                          {K, _, Counts} <- Shared ++ Own, K =:= Key, Actor <- maps:keys(Counts)]).
