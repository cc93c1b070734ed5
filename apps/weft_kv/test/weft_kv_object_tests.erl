%% SPDX-License-Identifier: Apache-2.0
%% @doc Siblings, contexts and the options of buckets.
-module(weft_kv_object_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OF_KEY, {bucket, <<"key">>}).

%% --- siblings ---------------------------------------------------------------------------------

a_write_that_has_seen_a_value_replaces_it_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    ?assertEqual([<<"2">>], weft_kv_object:values(put(<<"2">>, seen(One), b, One))).

a_write_that_has_not_seen_it_is_its_sibling_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    ?assertEqual([<<"1">>, <<"2">>], weft_kv_object:values(put(<<"2">>, #{}, b, One))),
    ?assertEqual([<<"1">>, <<"2">>], weft_kv_object:values(put(<<"2">>, #{}, a, One))).

%% With version vectors alone, the second write of one actor would cover the first one.
writes_of_one_actor_are_siblings_too_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    Two = put(<<"2">>, #{}, a, One),
    Three = put(<<"3">>, seen(One), a, Two),
    ?assertEqual([<<"2">>, <<"3">>], weft_kv_object:values(Three)).

%% The first replica was taken for silent, and the second one has the write from it by then.
a_write_that_is_there_is_not_done_again_test() ->
    Value = value(<<"1">>, 5),
    One = weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()),
    ?assertEqual(One, weft_kv_object:put(Value, #{}, <<"b">>, One)),
    Before = put(<<"0">>, #{}, c, weft_kv_object:new()),
    Both = weft_kv_object:merge(Before, One),
    ?assertEqual([<<"1">>], weft_kv_object:values(weft_kv_object:put(Value, seen(Before), <<"b">>,
                                                                     Both))),
    %% Of one who has seen it, it is another one.
    ?assertEqual(1, weft_kv_object:last(<<"b">>, weft_kv_object:put(Value, seen(One), <<"b">>,
                                                                    One))).

%% Two clients write the same bytes at the same time.
another_request_is_another_write_test() ->
    [First, Second] = [(value(<<"1">>, 5))#{request => Request} || Request <- [<<"x">>, <<"y">>]],
    One = weft_kv_object:put(First, #{}, <<"a">>, weft_kv_object:new()),
    Two = weft_kv_object:put(Second, #{}, <<"a">>, One),
    ?assertEqual([First, Second], weft_kv_object:siblings(Two)),
    ?assertEqual(Two, weft_kv_object:put(Second, #{}, <<"b">>, Two)),
    %% Who has seen the first one only deletes that.
    ?assertEqual([<<"1">>], weft_kv_object:values(put(deleted, seen(One), a, Two))).

a_deletion_that_has_not_seen_a_value_leaves_it_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    ?assertEqual([<<"1">>], weft_kv_object:values(put(deleted, #{}, b, One))),
    ?assertEqual([], weft_kv_object:values(put(deleted, seen(One), b, One))).

what_was_replaced_does_not_come_back_from_another_replica_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    Two = put(<<"2">>, seen(One), b, One),
    ?assertEqual(Two, weft_kv_object:merge(One, Two)),
    ?assertEqual(Two, weft_kv_object:merge(Two, One)).

the_last_one_by_the_clock_stays_when_asked_for_test() ->
    One = weft_kv_object:put(value(<<"1">>, 20), #{}, <<"a">>, weft_kv_object:new()),
    Both = weft_kv_object:put(value(<<"2">>, 10), #{}, <<"b">>, One),
    ?assertEqual([<<"1">>], weft_kv_object:values(weft_kv_object:latest(Both))).

%% The clock of the second writer is behind, so it depends on the order in which replicas hear of it
%% which values they drop.
of_two_values_that_replicas_have_dropped_the_later_one_stays_test() ->
    One = weft_kv_object:put(value(<<"1">>, 30), #{}, <<"a">>, weft_kv_object:new()),
    Two = weft_kv_object:put(value(<<"2">>, 10), seen(One), <<"a">>, One),
    Three = weft_kv_object:put(value(<<"3">>, 20), #{}, <<"b">>, weft_kv_object:new()),
    Here = last_stays(Two, last_stays(One, Three)),
    There = last_stays(Three, Two),
    ?assertEqual({[<<"2">>], [<<"3">>]},
                 {weft_kv_object:values(Here), weft_kv_object:values(There)}),
    ?assertEqual([<<"3">>], weft_kv_object:values(last_stays(Here, There))),
    ?assertEqual(last_stays(Here, There), last_stays(There, Here)).

last_stays(Other, Object) ->
    weft_kv_replica:requested({merge, Other}, <<>>, false, Object).

an_expired_value_is_as_good_as_deleted_test() ->
    Object = weft_kv_object:put((value(<<"1">>, 0))#{expires_ms := 100}, #{}, <<"a">>,
                                weft_kv_object:new()),
    ?assertEqual([<<"1">>], weft_kv_object:values(weft_kv_object:expire(99, Object))),
    ?assertEqual([], weft_kv_object:values(weft_kv_object:expire(100, Object))).

what_is_over_sheds_its_bytes_test() ->
    Value = (value(<<"1">>, 0))#{expires_ms := 100, content_type => <<"text/plain">>},
    One = weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()),
    Two = weft_kv_object:put(value(<<"2">>, 0), #{}, <<"b">>, One),
    ?assertEqual(Two, weft_kv_object:shed(99, Two)),
    Shed = weft_kv_object:shed(100, Two),
    ?assertEqual([#{value => deleted, written_ms => 0, expires_ms => 100}, value(<<"2">>, 0)],
                 weft_kv_object:siblings(Shed)),
    ?assertEqual([Shed, Shed], [weft_kv_object:merge(Two, Shed), weft_kv_object:merge(Shed, Two)]).

%% Its time counts from when it was over. That of a deletion from when it was done, and of one of an
%% earlier version from when that was over.
what_is_over_is_remembered_from_then_on_test() ->
    Of = fun(Value, ExpiresMs) ->
             weft_kv_object:put((value(Value, 10))#{expires_ms := ExpiresMs}, #{}, <<"a">>,
                                weft_kv_object:new())
         end,
    [?assertEqual({Ms, false, true}, {Ms, weft_kv_replica:is_waste(Ms + 49, 50, Object),
                                      weft_kv_replica:is_waste(Ms + 50, 50, Object)})
     || {Ms, Object} <- [{100, Of(<<"1">>, 100)},
                         {100, weft_kv_object:shed(100, Of(<<"1">>, 100))},
                         {10, Of(deleted, never)}, {100, Of(deleted, 100)}]].

%% --- against histories ------------------------------------------------------------------------

%% Each write is a number; its history is the set of all writes that it has seen. Whatever replicas
%% do, a value is there if it is known and no known write has seen it.
histories_test_() ->
    {timeout, 60, fun() ->
         ?assert(proper:quickcheck(histories(), [{numtests, 500}, {to_file, user}]))
     end}.

histories() ->
    ?FORALL(Steps, list(step()),
            begin
                Empty = {weft_kv_object:new(), []},
                Start = {#{a => Empty, b => Empty, c => Empty}, #{none => {#{}, []}}, 1},
                {Replicas, _, _} = lists:foldl(fun step/2, Start, Steps),
                lists:all(fun({Object, Model}) ->
                              lists:sort([Number || {Number, _} <- current(Model)])
                                  =:= lists:sort([binary_to_integer(V)
                                                  || V <- weft_kv_object:values(Object)])
                          end, maps:values(Replicas))
            end).

step() ->
    oneof([{read, oneof([a, b, c]), oneof([x, y])},
           {write, oneof([a, b, c]), oneof([x, y, none])},
           {merge, oneof([a, b, c]), oneof([a, b, c])}]).

step({read, At, Client}, {Replicas, Clients, Next}) ->
    {Object, Model} = maps:get(At, Replicas),
    {Replicas, Clients#{Client => {decoded(Object), [N || {N, _} <- Model]}}, Next};
step({write, At, Client}, {Replicas, Clients, Next}) ->
    {Object, Model} = maps:get(At, Replicas),
    {Seen, History} = maps:get(Client, Clients, {#{}, []}),
    %% Whatever a client has read some replica knows.
    New = weft_kv_object:replace(Seen, everywhere(Replicas),
                                 put(integer_to_binary(Next), Seen, At, Object)),
    Older = [{N, none} || N <- History, not lists:keymember(N, 1, Model)],
    {Replicas#{At := {New, [{Next, History} | Model ++ Older]}}, Clients, Next + 1};
step({merge, From, To}, {Replicas, Clients, Next}) ->
    {ObjectA, ModelA} = maps:get(From, Replicas),
    {ObjectB, ModelB} = maps:get(To, Replicas),
    Both = [Write || {_, History} = Write <- ModelA ++ ModelB, History =/= none],
    Older = [{N, none} || {N, none} <- ModelA ++ ModelB, not lists:keymember(N, 1, Both)],
    {Replicas#{To := {weft_kv_object:merge(ObjectA, ObjectB), lists:usort(Both ++ Older)}},
     Clients, Next}.

everywhere(Replicas) ->
    lists:foldl(fun({Object, _}, Sum) -> weft_kv_object:merge(Object, Sum) end,
                weft_kv_object:new(), maps:values(Replicas)).

current(Model) ->
    Seen = lists:append([History || {_, History} <- Model, History =/= none]),
    [Write || {Number, History} = Write <- Model, History =/= none,
              not lists:member(Number, Seen)].

merging_is_a_join_test_() ->
    {timeout, 60, fun() -> ?assert(proper:quickcheck(joins(), [{numtests, 300},
                                                                {to_file, user}])) end}.

joins() ->
    ?FORALL(Steps, list(step()),
            begin
                Empty = {weft_kv_object:new(), []},
                Start = {#{a => Empty, b => Empty, c => Empty}, #{}, 1},
                {Replicas, _, _} = lists:foldl(fun step/2, Start, Steps),
                [A, B, C] = [Object || {Object, _} <- maps:values(Replicas)],
                Merge = fun weft_kv_object:merge/2,
                Merge(A, B) =:= Merge(B, A) andalso Merge(A, A) =:= A
                    andalso Merge(Merge(A, B), C) =:= Merge(A, Merge(B, C))
                    andalso Merge(A, Merge(A, B)) =:= Merge(A, B)
            end).

%% Clocks of writers differ as they like. What was written has one value, on each replica, and the
%% same one when all have heard of each other.
one_value_stays_without_siblings_test_() ->
    {timeout, 60, fun() -> ?assert(proper:quickcheck(one_stays(), [{numtests, 2000},
                                                                   {to_file, user}])) end}.

one_stays() ->
    Names = [a, b, c],
    ?FORALL(Steps, ?SIZED(Size, resize(2 * Size, list(skewed()))),
            begin
                Start = {maps:from_keys(Names, weft_kv_object:new()), #{none => #{}}},
                {Replicas, _} = lists:foldl(fun skewed/2, Start, Steps),
                Pairs = [{merge, From, To} || From <- Names, To <- Names, From =/= To],
                {Merged, _} = lists:foldl(fun skewed/2, {Replicas, #{}}, Pairs ++ Pairs),
                lists:all(fun is_one_or_new/1, maps:values(Replicas) ++ maps:values(Merged))
                    andalso length(lists:usort(maps:values(Merged))) =:= 1
            end).

is_one_or_new({Known, Values}) -> map_size(Values) =:= min(1, map_size(Known)).

skewed() ->
    oneof([{read, oneof([a, b, c]), oneof([x, y])},
           {write, oneof([a, b, c]), oneof([x, y, none]), range(1, 9)},
           {merge, oneof([a, b, c]), oneof([a, b, c])}]).

skewed({read, At, Client}, {Replicas, Clients}) ->
    {Replicas, Clients#{Client => decoded(map_get(At, Replicas))}};
skewed({write, At, Client, Ms}, {Replicas, Clients}) ->
    Write = {write, value(<<"v">>, Ms), maps:get(Client, Clients, #{})},
    Actor = atom_to_binary(At),
    {Replicas#{At := weft_kv_replica:requested(Write, Actor, false, map_get(At, Replicas))},
     Clients};
skewed({merge, From, To}, {Replicas, Clients}) ->
    {Replicas#{To := last_stays(map_get(From, Replicas), map_get(To, Replicas))}, Clients}.

%% --- contexts ---------------------------------------------------------------------------------

a_context_that_was_damaged_is_refused_test() ->
    Object = put(<<"1">>, #{}, a, put(<<"2">>, #{}, b, weft_kv_object:new())),
    Context = weft_kv_object:context(?OF_KEY, Object),
    ?assertEqual({ok, #{<<"a">> => 1, <<"b">> => 1}}, weft_kv_object:decode(?OF_KEY, Context)),
    [begin
         <<Before:At/binary, Byte, After/binary>> = Context,
         [?assertEqual({error, bad_context}, weft_kv_object:decode(?OF_KEY, Worse))
          || Worse <- [<<Before/binary, (Byte bxor 1), After/binary>>, Before]]
     end || At <- lists:seq(0, byte_size(Context) - 1)],
    [?assertEqual({error, bad_context}, weft_kv_object:decode(?OF_KEY, Other))
     || Other <- [<<>>, an_atom, 7, earlier(<<0>>), earlier(<<1:16, $a, 0:64>>),
                  earlier(<<1:16, $a, (1 bsl 56 + 1):64>>), earlier(<<1:16, $a, -1:64>>)]],
    ?assertMatch({ok, _}, weft_kv_object:decode(?OF_KEY, earlier(<<1:16, $a, (1 bsl 56):64>>))).

%% The replica has written both keys, so the numbers of the one cover those of the other.
a_context_of_another_key_is_refused_test() ->
    First = put(<<"1">>, #{}, a, weft_kv_object:new()),
    Second = weft_kv_object:put(value(<<"2">>, 0), #{}, {<<"a">>, 1}, weft_kv_object:new()),
    ?assertEqual(2, weft_kv_object:last(<<"a">>, Second)),
    ?assertEqual([<<"3">>], weft_kv_object:values(put(<<"3">>, decoded(Second), a, First))),
    Context = weft_kv_object:context(?OF_KEY, Second),
    [?assertEqual({Other, {error, bad_context}}, {Other, weft_kv_object:decode(Other, Context)})
     || Other <- [{bucket, <<"other">>}, {other, <<"key">>}]].

%% Nodes of both run beside each other. What is theirs does not say of which key it is.
contexts_of_earlier_versions_are_taken_test() ->
    [?assertEqual({ok, #{<<"a">> => 7}},
                  weft_kv_object:decode(OfKey, earlier(<<1:16, $a, 7:64>>)))
     || OfKey <- [?OF_KEY, {other, <<"key">>}]].

%% They take the key for an actor, that of no value, and it gets into their objects.
contexts_are_taken_by_earlier_versions_test() ->
    Before = put(<<"1">>, #{}, a, weft_kv_object:new()),
    <<1, Sum:32, Bytes/binary>> = weft_kv_object:context(?OF_KEY, Before),
    ?assertEqual(Sum, erlang:crc32(Bytes)),
    <<0:16, Number:64, 1:16, $a, 1:64>> = Bytes,
    ?assert(Number > 0),
    Seen = #{<<>> => Number, <<"a">> => 1},
    After = by_an_earlier_version(Seen, put(<<"2">>, Seen, b, Before)),
    ?assertEqual([<<"2">>], weft_kv_object:values(After)),
    ?assertEqual({ok, #{<<"a">> => 1, <<"b">> => 1}},
                 weft_kv_object:decode(?OF_KEY, weft_kv_object:context(?OF_KEY, After))).

%% They believe all of a context.
by_an_earlier_version(Seen, Object) -> weft_kv_object:replace(Seen, {Seen, #{}}, Object).

earlier(Bytes) -> <<1, (erlang:crc32(Bytes)):32, Bytes/binary>>.

%% Each process of a partition that has written the key is one.
a_context_of_any_number_of_actors_is_taken_test() ->
    Known = maps:from_list([{integer_to_binary(N), N} || N <- lists:seq(1, 20000)]),
    ?assertEqual({ok, Known},
                 weft_kv_object:decode(?OF_KEY, weft_kv_object:context(?OF_KEY, {Known, #{}}))).

%% --- buckets ----------------------------------------------------------------------------------

words_become_numbers_test() ->
    ?assertMatch({ok, #{n := 3, r := 2, w := 2, pr := 0}}, weft_kv_bucket:check(#{})),
    ?assertMatch({ok, #{n := 5, r := 1, w := 5}},
                 weft_kv_bucket:check(#{n => 5, r => 1, w => all})).

absurd_options_are_named_test_() ->
    [?_assertMatch({error, Error}, weft_kv_bucket:check(Options))
     || {Options, Error} <-
            [{#{m => 1}, {unknown_option, m}},
             {#{n => 0}, {bad_option, {n, 0, {from, 1, to, 8}}}},
             {#{r => 4}, {bad_option, {r, 4, {from, 1, to, 3}}}},
             {#{n => 1, w => 2}, {bad_option, {w, 2, {from, 1, to, 1}}}},
             {#{pw => -1}, {bad_option, {pw, -1, {from, 0, to, 3}}}},
             {#{r => most}, {bad_option, {r, most, {from, 1, to, 3}}}},
             {#{siblings => 1}, {bad_option, {siblings, 1, {true, 'or', false}}}},
             {#{ttl_ms => 0},
              {bad_option, {ttl_ms, 0, {from, 1, to, 1000000000000000, 'or', infinity}}}},
             %% An archive would say that it is over.
             {#{ttl_ms => 1 bsl 63},
              {bad_option, {ttl_ms, 1 bsl 63,
                            {from, 1, to, 1000000000000000, 'or', infinity}}}}]].

a_request_may_not_change_what_belongs_to_the_bucket_test() ->
    {ok, Bucket} = weft_kv_bucket:check(#{}),
    ?assertMatch({ok, #{r := 1}}, weft_kv_bucket:options(#{r => 1}, Bucket)),
    ?assertEqual({error, {unknown_option, n}}, weft_kv_bucket:options(#{n => 1}, Bucket)),
    ?assertMatch({error, {bad_option, {w, 9, _}}}, weft_kv_bucket:options(#{w => 9}, Bucket)).

value(Value, Ms) -> #{value => Value, written_ms => Ms, expires_ms => never}.

put(Value, Seen, Actor, Object) ->
    weft_kv_object:put(value(Value, 0), Seen, atom_to_binary(Actor), Object).

seen(Object) -> decoded(Object).

decoded(Object) ->
    {ok, Seen} = weft_kv_object:decode(?OF_KEY, weft_kv_object:context(?OF_KEY, Object)),
    Seen.
