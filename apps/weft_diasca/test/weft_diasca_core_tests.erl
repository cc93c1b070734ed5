%% SPDX-License-Identifier: Apache-2.0
%% @doc The cores of the engine, run in any order of delivery, against a simple sequential oracle.
-module(weft_diasca_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([init/2, on_tick/2, on_message/4]).

%% --- any programs -----------------------------------------------------------------------------

any_program_does_what_the_oracle_says_in_any_order_of_delivery_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_oracle(), [{numtests, 150}, quiet]))}.

any_program_goes_on_from_any_checkpoint_to_the_same_hash_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_checkpoint(), [{numtests, 60}, quiet]))}.

any_program_that_is_stopped_goes_on_to_the_same_hash_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_stopped(), [{numtests, 100}, quiet]))}.

shuffled_programs_do_not_depend_on_delivery_either_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_shuffled(), [{numtests, 40}, quiet]))}.

prop_oracle() ->
    ?FORALL({Count, Fuel, Seed, Nodes, Chance},
            {range(1, 6), range(1, 6), integer(), range(1, 4), integer()},
            begin
                Settings = settings(Seed),
                {over, Result, _} = run(specs(Count, Fuel), Nodes, Settings, Chance),
                same(weft_diasca_oracle:run(specs(Count, Fuel), Settings), Result)
            end).

same(#{values := Values} = Oracle, #{probes := Probes} = Result) ->
    Told = [{Time, Id, Name, Value} || {Name, Series} <- maps:to_list(Probes),
                                       {Time, Id, Value} <- Series],
    Summed = [messages, dropped, actors],
    equals({exactly_sorted(Values), maps:with(Summed, Oracle)},
           {exactly_sorted(Told), maps:with(Summed, Result)}).

%% `lists:sort/1' leaves 0 and 0.0 in the order in which it finds them.
exactly_sorted(Told) ->
    [One || {_, One} <- lists:sort([{term_to_binary(One), One} || One <- Told])].

prop_checkpoint() ->
    ?FORALL({Count, Fuel, Seed, Nodes, Chance, Order},
            {range(1, 6), range(2, 6), integer(), range(1, 4), integer(),
             oneof([sorted, shuffled])},
            begin
                Settings = (settings(Seed))#{order := Order},
                {over, #{hash := Hash} = Whole, []} = run(specs(Count, Fuel), 2, Settings, 1),
                {over, #{hash := Hash}, Kept} =
                    run(specs(Count, Fuel), Nodes, Settings#{checkpoint_ticks := 1}, Chance),
                lists:all(fun(Checkpoint) ->
                                  {over, Again, _} =
                                      weft_diasca_world:continue(Checkpoint, places(5 - Nodes), #{},
                                                                 Chance),
                                  maps:remove(away, Whole) =:= maps:remove(away, Again)
                          end, Kept)
            end).

%% Who says that it was stopped has a checkpoint; a run that was not has the result of a whole one.
prop_stopped() ->
    ?FORALL({Count, Fuel, Seed, Nodes, Chance, Deliveries},
            {range(1, 6), range(1, 6), integer(), range(1, 4), integer(), range(0, 200)},
            begin
                Settings = (settings(Seed))#{checkpoint_ticks := stop},
                {over, Whole, []} = run(specs(Count, Fuel), 2, Settings, 1),
                Stopped = weft_diasca_world:stopped(Deliveries, specs(Count, Fuel), places(Nodes),
                                                    Settings, Chance),
                {over, Again, _} = case Stopped of
                                       {over, #{is_stopped := true}, [Checkpoint]} ->
                                           weft_diasca_world:continue(
                                             Checkpoint, places(5 - Nodes), #{}, Chance);
                                       _ -> Stopped
                                   end,
                equals(maps:remove(away, Whole), maps:remove(away, Again))
            end).

prop_shuffled() ->
    ?FORALL({Fuel, Seed, Nodes, Chance}, {range(2, 6), integer(), range(1, 4), integer()},
            begin
                Settings = (settings(Seed))#{order := shuffled},
                {over, #{hash := Hash}, _} = run(specs(4, Fuel), 1, Settings, 0),
                {over, #{hash := Other}, _} = run(specs(4, Fuel), Nodes, Settings, Chance),
                equals(Hash, Other)
            end).

specs(Count, Fuel) ->
    Known = lists:seq(1, Count),
    [{weft_diasca_anything, {Known, Fuel}, maps:from_list([{place, hint} || N rem 3 =:= 0])}
     || N <- Known].

run(Specs, Count, Settings, Chance) ->
    weft_diasca_world:run(Specs, places(Count), Settings, Chance).

places(Count) -> lists:sublist([a, b, c, d], Count).

settings(Seed) ->
    #{seed => Seed, ticks => 30, order => sorted, probes => all, checkpoint_ticks => never,
      actors_max => 1000, messages_max => 10000, diascas_max => 100, probes_max => 100000}.

%% Two values are in the checkpoint; of the next two none is kept, or there is no room for both.
a_run_that_goes_on_keeps_what_its_options_say_test() ->
    Specs = [actor({[{schedule, 1}, {schedule, 2}], [{probe, p, 1}, {probe, p, 2}]})],
    {over, #{hash := Hash, values := 4}, Kept} =
        run(Specs, 1, (settings(1))#{checkpoint_ticks := 1}, 1),
    On = fun(Settings) -> weft_diasca_world:continue(hd(Kept), places(1), Settings, 1) end,
    ?assertMatch({over, #{hash := Hash, values := 4, probes := #{p := [_, _, _, _]}}, []},
                 On(#{})),
    ?assertMatch({over, #{hash := Hash, values := 4, probes := #{p := [_, _]}}, []},
                 On(#{probes => none})),
    ?assertMatch({failed, {too_many_probes, 3}, []}, On(#{probes_max => 3})).

%% --- rules ------------------------------------------------------------------------------------

%% The actors here do what their arguments say.
init(Effects, _Context) -> {Effects, case Effects of {Now, _} -> Now; _ -> Effects end}.

on_tick({_, Later} = State, _Context) -> {State, Later};
on_tick(State, _Context) -> {State, [{probe, ticked, true}]}.

on_message(From, {do, Effects}, State, _Context) -> {State, [{probe, asked, From} | Effects]};
on_message(From, Message, State, #{diasca := Diasca}) ->
    {State, [{probe, heard, {Diasca, From, Message}}]}.

messages_are_read_by_content_and_then_by_sender_test() ->
    Sender = fun(Contents) -> [{send, 1, Content} || Content <- Contents] end,
    Specs = [actor([]), actor(Sender([b, a])), actor(Sender([c, a]))],
    [?assertEqual([{1, 2, a}, {1, 3, a}, {1, 2, b}, {1, 3, c}], heard(Specs, Chance))
     || Chance <- lists:seq(1, 20)].

heard(Specs, Chance) ->
    {over, #{probes := #{heard := Heard}}, _} = run(Specs, 2, settings(1), Chance),
    [Value || {{0, 1}, 1, Value} <- Heard].

a_reply_is_read_two_diascas_later_test() ->
    Specs = [actor([{send, 2, {do, [{send, 1, answer}]}}]), actor([])],
    ?assertMatch({over, #{probes := #{heard := [{{0, 2}, 1, {2, 2, answer}}]}, diascas := 3,
                          ticks := 1, messages := 2}, []}, run(Specs, 2, settings(1), 1)).

ticks_that_nobody_wants_are_passed_over_test() ->
    Specs = [actor([{schedule, 7}]), actor([{schedule, 29}, {schedule, 31}])],
    ?assertMatch({over, #{probes := #{ticked := [{{7, 0}, 1, true}, {{29, 0}, 2, true}]},
                          diascas := 3, tick := 29}, []}, run(Specs, 2, settings(1), 1)).

what_is_sent_to_a_removed_actor_is_dropped_and_counted_test() ->
    Specs = [actor({[{schedule, 1}], [{send, 2, late}]}), actor([terminate])],
    ?assertMatch({over, #{dropped := 1, messages := 0, actors := 1}, []},
                 run(Specs, 1, settings(1), 1)),
    Soon = [actor([{send, 2, late}]), actor([terminate])],
    ?assertMatch({over, #{dropped := 1, messages := 1}, []}, run(Soon, 2, settings(1), 1)).

actors_that_share_a_place_are_on_one_node_test() ->
    Specs = fun(Options) -> [{?MODULE, [{send, 5 - N, hello}], Options} || N <- [1, 2, 3, 4]] end,
    ?assertMatch({over, #{away := 0}, _}, run(Specs(#{place => city}), 3, settings(1), 1)),
    ?assertMatch({over, #{away := 4}, _}, run(Specs(#{}), 2, settings(1), 1)).

%% The watchdog begins anew with each, or one would have only the time that another one has left.
the_watchdog_is_told_of_all_that_takes_time_test() ->
    Specs = [actor({[{schedule, 1}], [{create, tag, ?MODULE, [], #{}}]})],
    ?assertEqual([creating, running, saving, running, creating, running, finishing],
                 weft_diasca_world:phases(Specs, places(2), (settings(1))#{checkpoint_ticks := 1},
                                          1)).

%% It was the square of their number.
many_effects_take_as_long_each_as_few_test_() ->
    [{atom_to_list(element(1, Effect)),
      fun() ->
              Few = reductions(lists:duplicate(4000, Effect)),
              ?assert(reductions(lists:duplicate(16000, Effect)) < 8 * Few)
      end} || Effect <- [{probe, name, 1}, {create, tag, ?MODULE, [], #{}}, {send, 1, hello}]].

reductions(Effects) ->
    {_, Actor} = weft_diasca_actor_core:handle(
                   {message, {0, 0}, 1, 1, {do, Effects}, me}, none,
                   weft_diasca_actor_core:new(1, {saved, #{module => ?MODULE, state => none,
                                                           place => turn, order => sorted,
                                                           agenda => []}})),
    Lookup = fun(1) -> {ok, me, here} end,
    {reductions, Before} = process_info(self(), reductions),
    {[_ | _], _} = weft_diasca_actor_core:handle({trigger, {0, 0}, []}, Lookup, Actor),
    {reductions, After} = process_info(self(), reductions),
    After - Before.

%% --- what ends a run --------------------------------------------------------------------------

an_actor_that_crashes_is_named_test() ->
    ?assertMatch({failed, {actor_failed, b, {0, 0}, 2, {?MODULE, error, {no_such_actor, 9}, _}}, _},
                 run([actor([]), actor([{send, 9, hello}])], 2, settings(1), 1)),
    ?assertMatch({failed, {actor_failed, a, {0, 0}, 1, {_, error, {no_effect, {schedule, 0}, at, _},
                                                        _}}, _},
                 run([actor([{schedule, 0}])], 1, settings(1), 1)),
    ?assertMatch({failed, {actor_failed, a, {0, 0}, 1,
                           {_, error, {no_effect, {create, tag, _, _, _}, at, _}, _}}, _},
                 run([actor([{create, tag, ?MODULE, [], #{near => 1}}])], 1, settings(1), 1)),
    ?assertMatch({failed, {actor_failed, a, {0, 0}, 1, {_, error, {not_plain, _}, _}}, _},
                 run([actor([{probe, who, self()}])], 1, settings(1), 1)).

%% What was on its way when a diasca began has arrived.
%% If the connection is back. If it is not, it may be why nothing arrives in a later diasca, too.
a_connection_that_was_lost_is_told_until_it_is_back_and_a_diasca_begins_test() ->
    Told = fun(Manager) ->
                   {[{root, {late, a, [], Lost}}], _} =
                       weft_diasca_manager_core:handle(who_is_late, Manager),
                   Lost
           end,
    Begin = {begin_diasca, {0, 0}, {0, []}, [], []},
    [?assertEqual(Lost, Told(manager_after(Events)))
     || {Lost, Events} <- [{[b, c], [{lost, c}, {lost, b}, {lost, c}]},
                           {[b], [{lost, b}, Begin, Begin]},
                           {[b], [{lost, b}, {up, b}]},
                           {[b], [{lost, b}, Begin, {up, b}]},
                           {[], [{lost, b}, {up, b}, Begin]},
                           {[c], [{lost, b}, {lost, c}, {up, b}, Begin]},
                           {[b], [{lost, b}, {up, b}, {lost, b}, Begin]},
                           {[], [{up, b}]}]].

manager_after(Events) ->
    lists:foldl(fun(Event, Manager) ->
                        {_, Next} = weft_diasca_manager_core:handle(Event, Manager),
                        Next
                end, weft_diasca_manager_core:new(a), Events).

limits_end_a_run_test() ->
    Endless = {do, []},
    Loop = lists:foldl(fun(_, Inner) -> {do, [{send, 1, Inner}]} end, Endless, lists:seq(1, 20)),
    Fails = fun(Specs, Key, Max) ->
                    {failed, Reason, _} = run(Specs, 1, (settings(1))#{Key := Max}, 1),
                    Reason
            end,
    ?assertEqual({too_many_diascas, 0, 10}, Fails([actor([{send, 1, Loop}])], diascas_max, 10)),
    ?assertEqual({too_many_messages, {0, 0}, 2},
                 Fails([actor([{send, 1, N} || N <- [1, 2, 3]])], messages_max, 2)),
    ?assertEqual({too_many_actors, a, 1}, Fails([actor([]), actor([])], actors_max, 1)),
    ?assertEqual({too_many_probes, 1},
                 Fails([actor([{probe, p, N} || N <- [1, 2]])], probes_max, 1)).

actor(Arguments) -> {?MODULE, Arguments, #{}}.

%% --- bytes and chance -------------------------------------------------------------------------

other_data_have_other_bytes_test() ->
    Data = [1, 1.0, -1, a, <<"a">>, "a", [], {}, #{}, [[]], {1}, [1], #{1 => 2}, {1, 2}, [1 | 2],
            [1, 2], 0.0, <<>>, '', #{1.0 => 2}],
    Bytes = [iolist_to_binary(weft_diasca_bytes:encode(Value)) || Value <- Data],
    ?assertEqual(length(Data), length(lists:usort(Bytes))).

%% Written down, so that another release of OTP or of weft is noticed.
chance_and_hash_stay_what_they_are_test() ->
    Random = weft_diasca_random:new({seed, 1}, 7),
    {First, Next} = weft_diasca_random:uniform(1000, Random),
    {Second, _} = weft_diasca_random:uniform(1000, Next),
    {over, #{hash := Hash}, _} = run(specs(4, 6), 2, settings(5), 1),
    ?assertEqual({925, 570, <<"d9d73b3e0e009ff8ecdfd6c27355851cb8e28f0f2b4b9a499dd6c9ba709a9f0b">>},
                 {First, Second, Hash}).
