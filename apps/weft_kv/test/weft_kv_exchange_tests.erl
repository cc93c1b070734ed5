%% SPDX-License-Identifier: Apache-2.0
%% @doc Two replicas are compared, and each gets what it lacks.
-module(weft_kv_exchange_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => true}).

%% Keys of partition P are in P, P + 1 and P + 2, so there are three pairs for each partition.
each_two_replicas_of_a_key_are_compared_once_test() ->
    Size = 8,
    Pairs = weft_kv_exchange:pairs(lists:seq(0, Size - 1), Size, [3]),
    Wanted = [{3, P, {(P + A) rem Size, (P + B) rem Size}} || P <- lists:seq(0, Size - 1),
                                                             {A, B} <- [{0, 1}, {0, 2}, {1, 2}]],
    ?assertEqual(lists:sort(Wanted), lists:sort(Pairs)),
    ?assertEqual([], weft_kv_exchange:pairs([0, 1], Size, [1])).

what_one_has_the_other_gets_test() ->
    Vnodes = [vnode(lists:seq(1, 300)), vnode(lists:seq(200, 400))],
    ?assertEqual({done, 299}, compared(Vnodes)),
    ?assertEqual({done, 0}, compared(Vnodes)),
    [?assertEqual({N, [[integer_to_binary(N)], [integer_to_binary(N)]]},
                  {N, [values(N, V) || V <- Vnodes]}) || N <- [1, 250, 400]].

%% Each key is read once and merged once, in few questions, and the one that has nothing is read
%% nothing from.
an_empty_replica_gets_all_in_batches_test() ->
    Vnodes = [vnode(lists:seq(1, 2500)), vnode([])],
    {Result, Asked} = noted(Vnodes),
    ?assertEqual({done, 2500}, Result),
    ?assertEqual(objects(hd(Vnodes)), objects(lists:last(Vnodes))),
    Of = fun(Partition, What) -> length([x || {P, W} <- Asked, P =:= Partition, W =:= What]) end,
    ?assertEqual({25, 0, 0, 25}, {Of(0, objects), Of(1, objects), Of(0, merge_all),
                                  Of(1, merge_all)}),
    %% Root, segments, and a page of at most a thousand keys of which some are in no segment.
    ?assertEqual({1, 1, 3}, {Of(0, root), Of(0, segments), Of(0, entries)}),
    ?assertEqual([], [W || {_, W} <- Asked, W =:= read orelse W =:= merge]).

one_key_that_differs_is_all_that_is_copied_test() ->
    [A, B] = Vnodes = [vnode(lists:seq(1, 1200)), vnode(lists:seq(1, 1200))],
    _ = write(700, <<"other">>, B),
    {Result, Asked} = noted(Vnodes),
    ?assertEqual({done, 1}, Result),
    ?assertEqual([{0, objects}, {1, objects}],
                 lists:sort([Each || {_, objects} = Each <- Asked])),
    ?assertEqual([[<<"700">>, <<"other">>], [<<"700">>, <<"other">>]],
                 [lists:sort(values(700, V)) || V <- [A, B]]),
    ?assertEqual(objects(A), objects(B)).

%% At most about 64 KB in an answer, and all of it in the end.
values_that_exceed_a_batch_come_in_several_test() ->
    Vnodes = [A, B] = [vnode([]), vnode([])],
    [write(N, binary:copy(<<N>>, 20000), ?KIND, A) || N <- lists:seq(1, 50)],
    {Result, Asked} = noted(Vnodes),
    ?assertEqual({done, 50}, Result),
    ?assertEqual(objects(A), objects(B)),
    %% Four in each: the fourth is the one with which it is too much.
    ?assertEqual(13, length([x || {0, objects} <- Asked])).

one_value_near_the_maximum_is_a_batch_of_its_own_test() ->
    Vnodes = [A, B] = [vnode([1, 3]), vnode([])],
    _ = write(2, binary:copy(<<"x">>, 1048576), ?KIND, A),
    ?assertEqual({done, 3}, compared(Vnodes)),
    ?assertEqual(objects(A), objects(B)).

%% So the pages of the two end at different keys.
replicas_of_which_one_has_more_are_compared_page_by_page_test() ->
    Vnodes = [A, B] = [vnode(lists:seq(1, 3000)), vnode(lists:seq(1, 3000, 2))],
    ?assertEqual({done, 1500}, compared(Vnodes)),
    ?assertEqual(objects(A), objects(B)),
    More = [vnode(lists:seq(1, 3000, 3)), vnode(lists:seq(1, 2500))],
    ?assertEqual({done, 1666 + 166}, compared(More)),
    ?assertEqual(objects(hd(More)), objects(lists:last(More))).

%% What one replica has seen replaced is not brought back by the other one.
a_key_that_was_deleted_on_one_side_is_deleted_on_both_test() ->
    Vnodes = [A, B] = [vnode(lists:seq(1, 10)), vnode(lists:seq(1, 10))],
    {ok, {ok, {Seen, _}}} = asked(A, key(5), {read, ?KIND, primary}),
    Deleted = #{value => deleted, written_ms => 0, expires_ms => never},
    _ = asked(B, key(5), {{write, Deleted, Seen}, ?KIND, primary}),
    ?assertEqual({done, 1}, compared(Vnodes)),
    ?assertEqual([[], []], [values(5, V) || V <- [A, B]]),
    ?assertEqual(objects(A), objects(B)).

%% Between the answer with the object and the merge, at either replica.
what_is_written_meanwhile_is_merged_test_() ->
    [fun() ->
         Vnodes = [vnode(lists:seq(1, 30)), vnode(Others)],
         Late = lists:nth(Where + 1, Vnodes),
         Write = fun(_, {merge_all, _}) ->
                         {ok, {ok, _}} = asked(Late, key(7), {{merge, object(<<"late">>, <<"c">>)},
                                                              ?KIND, primary}),
                         ok;
                    (_, _) -> ok
                 end,
         {done, _} = compared(Vnodes, batches, Write),
         ?assertEqual([<<"7">>, <<"late">>], lists:sort(values(7, Late))),
         %% The next comparison brings it to the other one, too.
         {done, _} = compared(Vnodes),
         ?assertEqual([[<<"7">>, <<"late">>], [<<"7">>, <<"late">>]],
                      [lists:sort(values(7, V)) || V <- Vnodes])
     end || Where <- [0, 1], Others <- [[], lists:seq(8, 40)]].

%% Keys vanish between the page and the batch: what is over is forgotten.
what_is_forgotten_meanwhile_is_left_out_test() ->
    [A, B] = [vnode(lists:seq(1, 250)), vnode([])],
    Gone = [{key(N), none} || N <- lists:seq(1, 150)],
    Ask = fun(0, Key, {objects, Keys}) ->
                  {ok, Found} = asked(A, Key, {objects, Keys}),
                  {ok, [case lists:member({K, none}, Gone) of true -> {K, none}; false -> Each end
                        || {K, _} = Each <- Found]};
             (P, Key, Command) -> asked(case P of 0 -> A; 1 -> B end, Key, Command)
          end,
    ?assertEqual({done, 100}, all(weft_kv_exchange:new({3, 0, {0, 1}}), Ask)).

%% Each replica looks at some of its objects at a time, so one has forgotten what the other one has.
what_is_over_is_not_brought_back_test() ->
    Left = lists:foldl(fun(_, [A0, B0]) ->
                           A = ticked(A0),
                           {done, _} = compared([A, B0]),
                           B = ticked(B0),
                           {done, _} = compared([A, B]),
                           [A, B]
                       end, [deleted(1200), deleted(1200)], lists:seq(1, 4)),
    ?assertEqual([[], []], [objects(V) || V <- Left]).

deleted(Count) ->
    Vnode = vnode([]),
    Object = weft_kv_object:put(#{value => deleted, written_ms => 0, expires_ms => never}, #{},
                                <<"a">>, weft_kv_object:new()),
    [merge(N, Object, ?KIND, Vnode) || N <- lists:seq(1, Count)],
    Vnode.

ticked(Vnode) ->
    {_, New} = weft_kv_vnode:tick(Vnode),
    New.

siblings_stay_siblings_test() ->
    [A, B] = Vnodes = [vnode([1]), vnode([])],
    _ = write(1, <<"other">>, B),
    ?assertEqual({done, 2}, compared(Vnodes)),
    ?assertEqual([[<<"1">>, <<"other">>], [<<"1">>, <<"other">>]],
                 [lists:sort(values(1, V)) || V <- [A, B]]).

%% A cache may have forgotten it.
caches_are_not_compared_test() ->
    Vnodes = [A, B] = [vnode([1]), vnode([])],
    _ = write(2, <<"1">>, ?KIND#{evict => true}, A),
    _ = write(3, <<"1">>, ?KIND#{n => 2}, A),
    ?assertEqual({done, 1}, compared(Vnodes)),
    ?assertEqual([key(1)], [Key || {Key, _} <- objects(B)]).

%% Keys of other partitions are in the same table.
only_keys_of_the_partition_are_copied_test() ->
    Vnodes = [A, B] = [vnode([1]), vnode([])],
    [{ok, _} = asked(A, {Partition, bucket, <<"1">>},
                     {{merge, object(<<"1">>, <<"a">>)}, ?KIND, primary}) || Partition <- [1, 63]],
    ?assertEqual({done, 1}, compared(Vnodes)),
    ?assertEqual([key(1)], [Key || {Key, _} <- objects(B)]).

%% --- other versions ---------------------------------------------------------------------------

%% It does not know batches, and would end with a command that it does not know.
one_of_an_earlier_version_is_asked_key_by_key_test_() ->
    [fun() ->
         Vnodes = [vnode(lists:seq(1, 120)), vnode(lists:seq(100, 150))],
         {Result, Asked} = noted(Vnodes, Old),
         ?assertEqual({done, 129}, Result),
         ?assertEqual(objects(hd(Vnodes)), objects(lists:last(Vnodes))),
         ?assertEqual([], [W || {_, W} <- Asked, lists:member(W, [entries, objects, merge_all])])
     end || Old <- [[0], [1], [0, 1]]].

%% One of an earlier version compares with this one: what is said of batches is no segment.
what_is_announced_is_overlooked_by_earlier_versions_test() ->
    {ok, New} = asked(vnode([1]), {0, '', <<>>}, {entropy, {segments, 3}}),
    ?assertMatch([_], [Segment || {Segment, _} <- New]),
    ?assertEqual(batches, weft_kv_copy:way(New)),
    ?assertEqual(keys, weft_kv_copy:way([{Segment, Hash} || {Segment, Hash} <- New])).

%% --- errors -----------------------------------------------------------------------------------

one_that_does_not_answer_is_an_error_test() ->
    ?assertEqual({error, away},
                 all(weft_kv_exchange:new({3, 0, {0, 1}}), fun(0, _, _) -> {ok, 1};
                                                              (1, _, _) -> {error, away}
                                                           end)).

%% At any question. What was done is not undone, and the rest is done the next time.
one_that_stops_in_the_middle_is_an_error_and_nothing_is_lost_test_() ->
    {timeout, 60,
     fun() ->
         {_, Asked} = noted([vnode(lists:seq(1, 250)), vnode([251])]),
         [begin
              Vnodes = [A, B] = [vnode(lists:seq(1, 250)), vnode([251])],
              Counter = counters:new(1, []),
              Stop = fun(_, _) ->
                         ok = counters:add(Counter, 1, 1),
                         case counters:get(Counter, 1) > Questions of
                             true -> {error, away};
                             false -> ok
                         end
                     end,
              ?assertEqual({error, away}, compared(Vnodes, batches, Stop)),
              ?assertMatch({done, _}, compared(Vnodes)),
              ?assertEqual(objects(A), objects(B)),
              ?assertEqual(251, length(objects(A)))
          end || Questions <- lists:seq(0, length(Asked) - 1)]
     end}.

%% A full partition, for example.
a_repair_that_is_refused_is_an_error_test_() ->
    [fun() ->
         {ok, Full} = weft_kv_vnode:init(1, #{bytes_max => 0}),
         ?assertEqual({error, full}, compared([vnode(lists:seq(1, 5)), Full], Way, fun nothing/2))
     end || Way <- [batches, keys]].

what_a_later_version_asks_is_refused_test() ->
    [?assertEqual({Command, {ok, {error, unknown_command}}},
                  {Command, asked(vnode([1]), key(1), Command)})
     || Command <- [{entropy, {digest, 3}}, something, {objects, [], 2}, {brought, {#{}, #{}}},
                    {{swap, 1}, ?KIND, primary}]].

%% --- helpers ----------------------------------------------------------------------------------

compared(Vnodes) -> compared(Vnodes, batches, fun nothing/2).

nothing(_Partition, _Command) -> ok.

%% What was asked of whom.
noted(Vnodes) -> noted(Vnodes, []).

noted(Vnodes, Old) ->
    Self = self(),
    Ref = make_ref(),
    Result = compared(Vnodes, Old, fun(Partition, Command) ->
                                       Self ! {Ref, {Partition, what(Command)}},
                                       ok
                                   end),
    {Result, heard(Ref)}.

heard(Ref) ->
    receive {Ref, Asked} -> [Asked | heard(Ref)] after 0 -> [] end.

what({entropy, {What, _}}) when is_atom(What) -> What;
what({entropy, {What, _}}) -> element(1, What);
what({{merge, _}, _, _}) -> merge;
what(Command) -> element(1, Command).

%% The tables change in place. Before each question something may happen.
compared(Vnodes, batches, Before) -> compared(Vnodes, [], Before);
compared(Vnodes, keys, Before) -> compared(Vnodes, [0, 1], Before);
compared([A, B], Old, Before) ->
    Ask = fun(Partition, Key, Command) ->
              case Before(Partition, Command) of
                  ok ->
                      Vnode = case Partition of 0 -> A; 1 -> B end,
                      said(lists:member(Partition, Old), asked(Vnode, Key, Command));
                  {error, Reason} -> {error, Reason}
              end
          end,
    all(weft_kv_exchange:new({3, 0, {0, 1}}), Ask).

said(true, {ok, Segments}) when is_list(Segments) ->
    {ok, [Each || Each <- Segments, element(1, Each) =/= knows]};
said(_, Answer) -> Answer.

all(Exchange, Ask) ->
    case weft_kv_exchange:step(Exchange, Ask) of
        {more, Next} -> all(Next, Ask);
        Result -> Result
    end.

asked(Vnode, Key, Command) ->
    case weft_kv_vnode:command(Key, Command, Vnode) of
        {reply, Reply} -> {ok, Reply};
        {change, Change, Reply} -> changed(Vnode, [{Key, Change}], Reply);
        {changes, Changes, Reply} -> changed(Vnode, Changes, Reply)
    end.

changed(Vnode, Changes, Reply) ->
    [{ok, _} = weft_kv_vnode:change(Key, Change, none, Vnode) || {Key, Change} <- Changes],
    {ok, Reply}.

objects(Vnode) -> weft_kv_test_copies:objects(Vnode).

vnode(Numbers) ->
    {ok, Vnode} = weft_kv_vnode:init(0, #{}),
    [write(N, integer_to_binary(N), Vnode) || N <- Numbers],
    Vnode.

%% By the same actor for the same key, as if it had been copied.
write(N, <<"other">> = Value, Vnode) -> merge(N, object(Value, <<"b">>), ?KIND, Vnode);
write(N, Value, Vnode) -> write(N, Value, ?KIND, Vnode).

write(N, Value, Kind, Vnode) -> merge(N, object(Value, <<"a">>), Kind, Vnode).

merge(N, Object, Kind, Vnode) -> asked(Vnode, key(N), {{merge, Object}, Kind, primary}).

object(Value, Actor) ->
    weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{}, Actor,
                       weft_kv_object:new()).

values(N, Vnode) ->
    {ok, {ok, Object}} = asked(Vnode, key(N), {read, ?KIND, primary}),
    weft_kv_object:values(Object).

key(N) -> {0, bucket, integer_to_binary(N)}.
