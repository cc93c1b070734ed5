%% SPDX-License-Identifier: Apache-2.0
%% @doc The laws of all types, and what each of them means, against a model.
%%
%% A history is a list of steps of three actors: one makes an operation, or takes over all that
%% another one has. The model knows nothing of dots: it remembers for each operation which others
%% its actor had seen, and tells the value from that.
-module(weft_crdt_type_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ACTORS, [a, b, c]).

laws_test_() ->
    [holds(Type, Type, Law) || Type <- weft_crdt_type:names(), Law <- laws()]
        ++ [holds(Type, Type, {"the value is that of the model", fun model/2})
            || Type <- weft_crdt_type:names()]
        ++ [holds(ormap, field_of_two_types, Law)
            || Law <- [{"the type that is shown can be updated", fun shown/2} | laws()]].

laws() -> [{"merging is commutative, associative and idempotent", fun laws/2},
           {"deltas are states, in any order", fun deltas/2},
           {"a difference is what the other lacks", fun differences/2},
           {"what is sent arrives, and nothing else", fun packed/2}].

holds(Type, Operations, {Name, Property}) ->
    {atom_to_list(Operations) ++ " " ++ Name,
     {timeout, 1200, ?_assert(proper:quickcheck(Property(Type, steps(Operations)),
                                                [{numtests, count()}, quiet]))}}.

count() ->
    case os:getenv("FULL") of false -> 100; _ -> 5000 end.

%% --- laws -------------------------------------------------------------------------------------

laws(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL(Steps, SomeSteps,
            begin
                #{a := A, b := B, c := C} = states(Type, Steps),
                AB = M:merge(A, B),
                AB =:= M:merge(B, A) andalso M:merge(AB, C) =:= M:merge(A, M:merge(B, C))
                    andalso M:merge(A, A) =:= A andalso M:merge(AB, B) =:= AB
                    andalso M:merge(A, M:new()) =:= A
            end).

deltas(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL({Steps, Salt}, {SomeSteps, integer()},
            begin
                {States, Deltas} = run(Type, Steps),
                Shuffled = [D || {_, D} <- lists:sort([{erlang:phash2({Salt, I}), D}
                                                       || {I, D} <- enumerate(Deltas ++ Deltas)])],
                lists:foldl(fun M:merge/2, M:new(), Shuffled)
                    =:= lists:foldl(fun M:merge/2, M:new(), maps:values(States))
            end).

differences(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL(Steps, SomeSteps,
            begin
                #{a := A, b := B} = states(Type, Steps),
                Lacking = M:difference(A, B),
                {ok, Lacking} = M:difference_to_digest(A, M:digest(B), none_retired()),
                M:merge(B, Lacking) =:= M:merge(A, B)
                    andalso M:difference(Lacking, A) =:= M:new()
                    andalso M:difference(Lacking, M:merge(A, B)) =:= M:new()
                    andalso M:difference(A, M:new()) =:= A
            end).

packed(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL({Steps, Bad}, {SomeSteps, weft_crdt_world:bad()},
            begin
                #{a := A, b := B} = states(Type, Steps),
                {ok, A} =:= M:unpack(M:pack(A), none_retired())
                    andalso does_not_crash(M, Bad, B)
                    andalso does_not_crash(M, damaged(M:pack(A), Bad), B)
            end).

%% And what it no longer has gives way to the other type.
shown(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL(Steps, SomeSteps,
            begin
                #{a := State} = states(Type, Steps),
                case M:value(State) of
                    #{f := true} ->
                        {ok, Delta} = M:mutate({update, f, ew_flag, disable}, {a, 0}, State),
                        case M:value(M:merge(State, Delta)) of
                            #{f := Elements} -> is_list(Elements);
                            None -> None =:= #{}
                        end;
                    #{f := [Element | Elements]} ->
                        Remove = {update, f, orset, {remove, Element}},
                        {ok, Delta} = M:mutate(Remove, {a, 0}, State),
                        maps:get(f, M:value(M:merge(State, Delta)), []) =:= Elements;
                    None -> None =:= #{}
                end
            end).

does_not_crash(M, Term, State) ->
    case M:unpack(Term, none_retired()) of
        {ok, Other} -> _ = {M:merge(State, Other), M:value(Other), M:difference(Other, State)};
        error -> refused
    end,
    case M:difference_to_digest(State, Term, none_retired()) of
        {ok, _} -> true;
        error -> true
    end.

none_retired() -> weft_crdt_retired:new().

damaged(Packed, Bad) when is_map(Packed), map_size(Packed) > 0 ->
    Packed#{hd(maps:keys(Packed)) => Bad};
damaged({Us, _, _}, Bad) -> {Us, Bad};
damaged(_, Bad) -> [Bad].

%% --- models -----------------------------------------------------------------------------------

model(Type, SomeSteps) ->
    M = module(Type),
    ?FORALL(Steps, SomeSteps,
            begin
                #{a := State} = states(Type, Steps),
                Value = M:value(State),
                Expected = expected(Type, seen(Steps)),
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [Steps, Value, Expected]), Value =:= Expected)
            end).

%% What `a' has seen in the end: [{Id, What its actor had seen then, Actor, Operation}].
seen(Steps) ->
    None = maps:from_keys(?ACTORS, []),
    #{a := Seen} = lists:foldl(
                     fun({Id, {do, Actor, Operation}}, All) ->
                             Before = map_get(Actor, All),
                             This = {Id, [I || {I, _, _, _} <- Before], Actor, Operation},
                             All#{Actor := [This | Before]};
                        ({_, {take, Actor, Other}}, All) ->
                             All#{Actor := lists:ukeysort(1, map_get(Actor, All)
                                                          ++ map_get(Other, All))}
                     end, None, enumerate(Steps)),
    lists:ukeysort(1, Seen).

expected(gcounter, Seen) -> lists:sum([By || {_, _, _, {increment, By}} <- Seen]);
expected(pncounter, Seen) ->
    expected(gcounter, Seen) - lists:sum([By || {_, _, _, {decrement, By}} <- Seen]);
%% An add stays unless a removal has seen it.
expected(orset, Seen) ->
    lists:usort([E || {Id, _, _, {add, E}} <- Seen,
                      not lists:any(fun({_, Before, _, {remove, R}}) ->
                                            R =:= E andalso lists:member(Id, Before);
                                       (_) -> false
                                    end, Seen)]);
%% The longest history: how often the element changed sides on the way to each operation.
expected(clset, Seen) ->
    Elements = lists:usort([E || {_, _, _, {_, E}} <- Seen]),
    [E || E <- Elements, lengths(E, Seen) rem 2 =:= 1];
expected(lww_register, Seen) ->
    {_, Value} = lists:foldl(fun({Id, _, Actor, {set, V}}, Last) -> max({{Id, Actor}, V}, Last) end,
                             {{0, none}, undefined}, Seen),
    Value;
expected(mv_register, Seen) -> lists:usort([V || {set, V} <- last(Seen)]);
expected(ew_flag, Seen) ->
    lists:any(fun({Id, _, _, enable}) -> not is_seen(Id, Seen); (_) -> false end, Seen);
expected(dw_flag, Seen) -> last(Seen) =/= [] andalso not lists:member(disable, last(Seen));
expected(ormap, Seen) -> expected_map(Seen).

lengths(E, Seen) ->
    Lengths = lists:foldl(
                fun({Id, Before, _, {Operation, R}}, Known) when R =:= E ->
                        Was = lists:max([0 | [maps:get(I, Known, 0) || I <- Before]]),
                        Known#{Id => Was + turn(Operation, Was rem 2)};
                   (_, Known) -> Known
                end, #{}, Seen),
    lists:max([0 | maps:values(Lengths)]).

turn(add, 0) -> 1;
turn(remove, 1) -> 1;
turn(_, _) -> 0.

%% Operations that no other one has seen.
last(Seen) -> [Operation || {Id, _, _, Operation} <- Seen, not is_seen(Id, Seen)].

is_seen(Id, Seen) -> lists:any(fun({_, Before, _, _}) -> lists:member(Id, Before) end, Seen).

%% A field shows what its own operations make of it, without those that a removal has seen.
expected_map(Seen) ->
    Fields = [{tags, orset, []}, {name, mv_register, []}, {on, ew_flag, false}],
    maps:from_list([{Field, Value}
                    || {Field, Type, Empty} <- Fields,
                       Value <- [expected(Type, of_field(Field, Seen))], Value =/= Empty]).

of_field(Field, Seen) ->
    Removed = lists:append([Before || {_, Before, _, {remove, F}} <- Seen, F =:= Field]),
    [{Id, Before, Actor, Operation}
     || {Id, Before, Actor, {update, F, _, Operation}} <- Seen, F =:= Field,
        not lists:member(Id, Removed)].

%% --- histories --------------------------------------------------------------------------------

steps(Type) -> ?SIZED(Size, resize(Size, list(step(Type)))).

step(Type) ->
    frequency([{3, {do, oneof(?ACTORS), operation(Type)}},
               {2, {take, oneof(?ACTORS), oneof(?ACTORS)}}]).

operation(gcounter) -> {increment, range(0, 5)};
operation(pncounter) -> {oneof([increment, decrement]), range(0, 5)};
operation(Set) when Set =:= orset; Set =:= clset -> {oneof([add, remove]), range(1, 4)};
operation(Register) when Register =:= lww_register; Register =:= mv_register -> {set, range(1, 9)};
operation(Flag) when Flag =:= ew_flag; Flag =:= dw_flag -> oneof([enable, disable]);
operation(ormap) ->
    oneof([{update, tags, orset, operation(orset)}, {update, name, mv_register, {set, range(1, 9)}},
           {update, on, ew_flag, operation(ew_flag)}, {remove, oneof([tags, name, on])}]);
operation(field_of_two_types) ->
    frequency([{4, {update, f, orset, operation(orset)}}, {2, {update, f, ew_flag, enable}},
               {1, {update, f, ew_flag, disable}}, {1, {remove, f}}]).

states(Type, Steps) -> element(1, run(Type, Steps)).

run(Type, Steps) ->
    M = module(Type),
    lists:foldl(fun({NowUs, Step}, {States, Deltas}) ->
                    case Step of
                        {do, Actor, Operation} ->
                            State = map_get(Actor, States),
                            case M:mutate(Operation, {Actor, NowUs}, State) of
                                {ok, Delta} ->
                                    {States#{Actor := M:merge(State, Delta)}, [Delta | Deltas]};
                                {error, {type_of_field, f, _Shown}} -> {States, Deltas}
                            end;
                        {take, Actor, Other} ->
                            Both = M:merge(map_get(Actor, States), map_get(Other, States)),
                            {States#{Actor := Both}, Deltas}
                    end
                end, {maps:from_keys(?ACTORS, M:new()), []}, enumerate(Steps)).

enumerate(List) -> lists:zip(lists:seq(1, length(List)), List).

module(Type) ->
    {ok, M} = weft_crdt_type:module(Type),
    M.

%% --- what each means --------------------------------------------------------------------------

a_counter_in_a_map_counts_for_each_actor_test() ->
    M = weft_crdt_ormap,
    A = done(M, a, [{update, n, pncounter, {increment, 3}}, {update, n, pncounter, decrement}]),
    B = done(M, b, [{update, n, pncounter, increment}]),
    ?assertEqual(#{n => 3}, M:value(M:merge(A, B))),
    ?assertEqual(#{}, M:value(M:merge(B, done(M, a, [{remove, n}], M:merge(A, B))))).

maps_in_maps_test() ->
    M = weft_crdt_ormap,
    A = done(M, a, [{update, in, ormap, {update, x, lww_register, {set, 1}}}]),
    B = done(M, b, [{update, in, ormap, {remove, x}},
                    {update, in, ormap, {update, y, dw_flag, enable}}], A),
    ?assertEqual(#{in => #{x => 1}}, M:value(A)),
    ?assertEqual(#{in => #{y => true}}, M:value(M:merge(A, B))).

a_field_has_one_type_test() ->
    M = weft_crdt_ormap,
    A = done(M, a, [{update, f, orset, {add, 1}}]),
    B = done(M, b, [{update, f, ew_flag, enable}]),
    ?assertEqual({error, {type_of_field, f, orset}},
                 M:mutate({update, f, ew_flag, enable}, {a, 0}, A)),
    ?assertEqual({error, {no_type_of_field, clset}},
                 M:mutate({update, f, clset, {add, 1}}, {a, 0}, A)),
    Both = M:merge(A, B),
    ?assertEqual(#{f => true}, M:value(Both)),
    ?assertEqual({error, {type_of_field, f, ew_flag}},
                 M:mutate({update, f, orset, {add, 2}}, {a, 0}, Both)),
    Disabled = done(M, a, [{update, f, ew_flag, disable}], Both),
    ?assertEqual(#{f => [1]}, M:value(Disabled)),
    ?assertEqual(#{f => [1, 2]}, M:value(done(M, b, [{update, f, orset, {add, 2}}], Disabled))),
    ?assertEqual(#{}, M:value(done(M, a, [{remove, f}], Both))).

a_clock_that_was_set_back_does_not_hide_a_write_test() ->
    M = weft_crdt_lww_register,
    {ok, A} = M:mutate({set, new}, {a, 1000}, M:new()),
    {ok, B} = M:mutate({set, newer}, {b, 10}, A),
    ?assertEqual(newer, M:value(M:merge(A, B))).

numbers_that_are_equal_but_not_the_same_are_two_test() ->
    M = weft_crdt_orset,
    ?assertEqual(2, length(M:value(M:merge(done(M, a, [{add, 1}]), done(M, b, [{add, 1.0}]))))),
    R = weft_crdt_mv_register,
    ?assertEqual(2, length(R:value(R:merge(done(R, a, [{set, 1}]), done(R, b, [{set, 1.0}]))))).

wrong_operations_are_refused_test_() ->
    [?_assertEqual({Type, {error, bad_operation}},
                   {Type, (module(Type)):mutate(Operation, {a, 0}, (module(Type)):new())})
     || Type <- weft_crdt_type:names(),
        Operation <- [nonsense, {add_all, [a | b]}, {add_all, x}, {increment, -1}, {increment, x},
                      {decrement, 1.0}, {remove_all, [a | b]}, {set, 1, 2}]].

%% Nothing is left of what was removed but an interval.
a_set_that_was_emptied_is_small_test() ->
    M = weft_crdt_orset,
    Full = done(M, a, [{add, N} || N <- lists:seq(1, 1000)]),
    Empty = done(M, a, [{remove_all, lists:seq(1, 1000)}], Full),
    ?assertEqual([], M:value(Empty)),
    ?assert(erlang:external_size(M:pack(Empty)) < 50).

%% The cost of a delta does not grow with the state.
a_hundred_thousand_adds_leave_as_many_test_() ->
    {timeout, 60,
     fun() ->
         M = weft_crdt_orset,
         Numbers = lists:seq(1, 100000),
         State = lists:foldl(fun(N, Acc) ->
                                 {ok, Delta} = M:mutate({add, N}, {N rem 3, 0}, Acc),
                                 M:merge(Acc, Delta)
                             end, M:new(), Numbers),
         ?assertEqual(Numbers, M:value(State))
     end}.

%% Also where what arrives is looked at.
what_arrives_costs_what_is_new_test_() ->
    {timeout, 60,
     fun() ->
         M = weft_crdt_orset,
         {ok, Delta} = M:mutate({add, new}, {b, 0}, M:new()),
         Few = done(M, a, [{add_all, lists:seq(1, 100)}]),
         Many = done(M, a, [{add_all, lists:seq(1, 100000)}]),
         Crowded = all_of(M, [done(M, {Actor, 1}, [{add, x}]) || Actor <- lists:seq(1, 10000)]),
         Costs = [{reductions(fun() -> M:difference(Delta, State) end),
                   reductions(fun() -> M:merge(State, Delta) end)}
                  || State <- [Few, Many, Crowded]],
         Max = 20 * lists:max(tuple_to_list(hd(Costs))),
         ?assertEqual([], [Cost || {Difference, Merge} = Cost <- Costs,
                                   max(Difference, Merge) > Max])
     end}.

%% Once in a while a collection of garbage counts, too.
reductions(Fun) ->
    lists:min([begin
                   {reductions, Before} = process_info(self(), reductions),
                   _ = Fun(),
                   {reductions, After} = process_info(self(), reductions),
                   After - Before
               end || _ <- lists:seq(1, 5)]).

a_delta_of_a_counter_with_many_actors_is_small_test() ->
    M = weft_crdt_gcounter,
    State = maps:from_list([{{Actor, 1}, 7} || Actor <- lists:seq(1, 128)]),
    {ok, Delta} = M:mutate(increment, {{5, 1}, 0}, State),
    ?assert(erlang:external_size(Delta) * 10 =< erlang:external_size(State)).

%% As many runs as nobody has retired.
ten_thousand_actors_are_not_too_many_test_() ->
    [{atom_to_list(Type), {timeout, 60, fun() -> many_actors(module(Type), Operation) end}}
     || {Type, Operation} <- [{gcounter, increment}, {pncounter, decrement}, {orset, {add, x}},
                              {mv_register, {set, x}}, {ew_flag, enable}, {dw_flag, disable}]].

many_actors(M, Operation) ->
    By = fun(Actor) ->
             {ok, Delta} = M:mutate(Operation, {{Actor, 1}, 0}, M:new()),
             Delta
         end,
    State = all_of(M, [By(Actor) || Actor <- lists:seq(1, 10001)]),
    ?assertEqual(10001, length(M:actors(State))),
    ?assertEqual({ok, State}, M:unpack(M:pack(State), none_retired())),
    More = M:merge(State, By(0)),
    {ok, Lacking} = M:difference_to_digest(More, M:digest(State), none_retired()),
    ?assertEqual(More, M:merge(State, Lacking)).

all_of(_, [State]) -> State;
all_of(M, States) -> all_of(M, pairs(M, States)).

pairs(M, [A, B | States]) -> [M:merge(A, B) | pairs(M, States)];
pairs(_, States) -> States.

done(M, Actor, Operations) -> done(M, Actor, Operations, M:new()).

done(M, Actor, Operations, State0) ->
    lists:foldl(fun(Operation, State) ->
                    {ok, Delta} = M:mutate(Operation, {Actor, 0}, State),
                    M:merge(State, Delta)
                end, State0, Operations).

%% --- what is not sent, and not kept -----------------------------------------------------------

a_difference_has_nothing_that_the_other_copy_knows_test() ->
    Add = fun(Element, Set) ->
              {ok, Delta} = weft_crdt_orset:mutate({add, Element}, {{a, 1}, 0}, Set),
              weft_crdt_orset:merge(Set, Delta)
          end,
    Before = lists:foldl(Add, weft_crdt_orset:new(), lists:seq(1, 100)),
    ?assertEqual(#{{a, 1} => {[{101, 101}], #{101 => new}}},
                 weft_crdt_orset:pack(weft_crdt_orset:difference(Add(new, Before), Before))).

an_element_that_is_added_again_takes_no_more_room_test() ->
    Again = lists:foldl(fun(N, Set) ->
                            {ok, Delta} = weft_crdt_orset:mutate({add, x}, {{a, N rem 3}, 0}, Set),
                            weft_crdt_orset:merge(Set, Delta)
                        end, weft_crdt_orset:new(), lists:seq(1, 20)),
    ?assertMatch([_], weft_crdt_dots:live(Again)).

%% What a comparison of two sets brings is what both have, and of parts that are alike nothing is
%% sent. A version that knows of no sums sends all that it has.
sums_of_a_set_tell_what_it_lacks_test_() ->
    {timeout, 1200, ?_assert(proper:quickcheck(sums_tell(weft_crdt_clset),
                                               [{numtests, 5 * count()}, quiet]))}.

sums_tell(M) ->
    ?FORALL({Common, OnlyA, OnlyB}, {lengths(300), lengths(6), lengths(6)},
        begin
            [A, B] = [M:merge(Common, Only) || Only <- [OnlyA, OnlyB]],
            {ok, Lacking} = M:difference_to_digest(A, M:sums(B), none_retired()),
            {ok, Taken} = M:unpack(M:sums(B), none_retired()),
            M:merge(B, Lacking) =:= M:merge(A, B)
                andalso maps:with(maps:keys(Lacking), A) =:= Lacking
                andalso {ok, M:new()} =:= M:difference_to_digest(A, M:sums(A), none_retired())
                andalso M:difference(A, Taken) =:= A
        end).

lengths(Max) ->
    ?LET(Pairs, resize(Max, list({range(1, 200), range(1, 3)})), maps:from_list(Pairs)).

%% One part of some sixty.
of_a_large_set_that_differs_in_one_element_a_part_is_sent_test() ->
    M = weft_crdt_clset,
    B = done(M, b, [{add_all, lists:seq(1, 1000)}]),
    A = done(M, a, [{remove, 500}], B),
    ?assert(erlang:external_size(M:sums(B)) < 600),
    {ok, Lacking} = M:difference_to_digest(A, M:sums(B), none_retired()),
    ?assertMatch(#{500 := 2}, Lacking),
    ?assert(map_size(Lacking) < 60).

%% An element may look like sums, and what looks like sums may be damaged.
what_is_no_sums_is_taken_for_a_state_test() ->
    M = weft_crdt_clset,
    State = done(M, a, [{add, {sums, <<0:64>>}}]),
    ?assertEqual({ok, M:new()}, M:difference_to_digest(State, State, none_retired())),
    [?assertEqual({Sums, {ok, State}},
                  {Sums, M:difference_to_digest(State, #{{sums, Sums} => 1 bsl 64},
                                                none_retired())})
     || Sums <- [<<>>, <<1>>, <<1:63>>, <<1:72>>, none]].

%% Nothing could ever undo it.
a_state_whose_dots_were_never_seen_is_refused_test() ->
    Unpacked = fun(Live) ->
                   weft_crdt_orset:unpack(#{{a, 1} => {[{1, 2}], Live}}, none_retired())
               end,
    ?assertMatch({ok, _}, Unpacked(#{2 => x})),
    ?assertEqual(error, Unpacked(#{3 => x})).
