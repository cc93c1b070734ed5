%% SPDX-License-Identifier: Apache-2.0
%% @doc A bucket gets a smaller `n', and later its former one again: what comes of the copies that
%% are too many meanwhile. The partitions are those of a ring on this node.
-module(weft_kv_left_over_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIZE, 8).
-define(KINDS(N), #{n => N, evict => false, siblings => true}).

%% Replicas 1 and 2 have forgotten the deletion. The third one has never heard of it.
a_deleted_value_does_not_come_back_test() ->
    [?assertEqual({Way, []},
                  {Way, in_ring(fun() ->
                                    ok = written(1, <<"old">>, 3, [0, 1, 2]),
                                    ok = moved(2),
                                    ok = deleted(1, 2, [0, 1]),
                                    ok = forgotten(),
                                    Again(),
                                    read(1, [0, 1, 2])
                                end)})
     || {Way, Again} <- [{larger_n, fun() -> ok end},
                         {another_bucket, fun() -> compared(3) end}]].

%% What the test above is about: with the copy it does.
a_deleted_value_comes_back_with_a_copy_that_is_left_over_test() ->
    ?assertEqual([<<"old">>],
                 in_ring(fun() ->
                             ok = written(1, <<"old">>, 3, [0, 1, 2]),
                             ok = deleted(1, 2, [0, 1]),
                             ok = forgotten(),
                             ok = compared(3),
                             read(1, [0])
                         end)).

%% Each value was acknowledged by two of three. Afterwards both of the two that are left have it,
%% are compared with each other, and the third one has nothing.
nothing_is_lost_test_() ->
    {timeout, 60, fun() ->
        ?assert(proper:quickcheck(nothing_is_lost(), [{to_file, user}, {numtests, 60}]))
    end}.

nothing_is_lost() ->
    ?FORALL(Writes, list({range(1, 30), oneof([[0, 1], [0, 2], [1, 2], [0, 1, 2]]), boolean()}),
            in_ring(fun() ->
                        [begin
                             ok = written(Key, integer_to_binary(Nth), 3, Places),
                             _ = IsDeleted andalso deleted(Key, 3, Places)
                         end || {Nth, {Key, Places, IsDeleted}} <- lists:enumerate(Writes)],
                        Keys = lists:usort([Key || {Key, _, _} <- Writes]),
                        Before = [read(Key, [0, 1, 2]) || Key <- Keys],
                        ok = moved(2),
                        equals([[], Before, Before],
                               [keys(2) | [[read(Key, [P]) || Key <- Keys] || P <- [0, 1]]])
                    end)).

%% A node has not been told of the smaller `n', or does not answer.
what_others_may_ask_for_stays_test() ->
    in_ring(fun() ->
                ok = written(1, <<"1">>, 3, [0, 1, 2]),
                ok = round({2, false}, fun(bucket, 2) -> false end, fun asked/3),
                ?assertEqual({[key(1)], [3]}, {keys(2), ns(0)})
            end).

%% It is full, away, or of an earlier version.
what_a_replica_does_not_take_stays_test() ->
    [in_ring(fun() ->
                 ok = written(1, <<"1">>, 3, [0, 2]),
                 ok = round({2, false}, fun agreed/2,
                            fun({1, _, primary}, _, {adopt, _}) -> Answer;
                               (Place, Key, Command) -> asked(Place, Key, Command)
                            end),
                 ?assertEqual({Answer, [key(1)]}, {Answer, keys(2)}),
                 ok = moved(2),
                 ?assertEqual({[<<"1">>], []}, {read(1, [1]), keys(2)})
             end)
     || Answer <- [{ok, {error, full}}, {error, timeout}, {ok, {error, unknown_command}}]].

%% After a partition is handed over, for example, with what others have written to it.
what_is_written_meanwhile_stays_until_it_is_brought_test() ->
    in_ring(fun() ->
                ok = written(1, <<"1">>, 3, [0, 1, 2]),
                ok = round({2, false}, fun agreed/2,
                           fun(Place, Key, {drop, _} = Drop) ->
                                   _ = is_first() andalso written(1, <<"2">>, 3, [2]),
                                   asked(Place, Key, Drop);
                              (Place, Key, Command) -> asked(Place, Key, Command)
                           end),
                ?assertEqual({[<<"1">>, <<"2">>], [], []}, {read(1, [1]), keys(2), not_compared()})
            end).

is_first() -> put(was_written, true) =:= undefined.

%% Also where they had all of it before.
what_is_brought_is_compared_with_the_others_test() ->
    in_ring(fun() ->
                ok = written(1, <<"1">>, 3, [0, 1, 2]),
                ok = moved(2),
                ?assertEqual([], not_compared())
            end).

%% A write that comes later, with the former `n' again, has to be new to those who have the value.
a_write_after_that_is_new_to_the_others_test() ->
    in_ring(fun() ->
                ok = written(1, <<"1">>, 3, [2, 0, 1]),
                ok = moved(2),
                ok = written(1, <<"2">>, 3, [2, 0, 1]),
                ?assertEqual([<<"1">>, <<"2">>], read(1, [0]))
            end).

%% A cache forgets a deletion after seconds. So nobody may get an old value from this.
a_cache_only_drops_test() ->
    in_ring(fun() ->
                Kind = (?KINDS(3))#{evict := true},
                ok = written(1, <<"1">>, Kind, [2]),
                ok = round({2, true}, fun agreed/2, fun asked/3),
                ?assertEqual([[], [], []], [keys(P) || P <- [0, 1, 2]])
            end).

%% More than a batch, in several partitions, and those of other buckets and other keys stay.
all_of_it_goes_in_batches_test() ->
    in_ring(fun() ->
                Big = binary:copy(<<"x">>, 30000),
                [ok = written(N, Big, 3, [0, 1, 2]) || N <- lists:seq(1, 9)],
                Other = {{2, bucket, <<"other">>}, {0, another, <<"1">>}},
                [{ok, _} = asked(place(2), Key, {{merge, object(<<"1">>)}, ?KINDS(3), primary})
                 || Key <- tuple_to_list(Other)],
                ok = moved(2),
                ?assertEqual(lists:sort(tuple_to_list(Other)), lists:sort(keys(2))),
                ?assertEqual([9, 9], [length(keys(P)) || P <- [0, 1]])
            end).

%% The nodes are not asked anew for each batch, but for each partition: others may have joined.
all_nodes_are_asked_once_for_a_partition_test() ->
    in_ring(fun() ->
                Big = binary:copy(<<"x">>, 30000),
                [ok = written(N, Big, 3, [0, 1, 2]) || N <- lists:seq(1, 9)],
                Merge = {{merge, object(Big)}, ?KINDS(3), primary},
                [{ok, _} = asked(place(P), {1, bucket, <<N>>}, Merge)
                 || P <- [1, 2, 3], N <- lists:seq(1, 9)],
                Self = self(),
                ok = round({2, false}, fun(bucket, 2) -> Self ! asked, true end,
                           fun(Place, Key, Command) ->
                               _ = element(1, Command) =:= drop andalso (Self ! dropped),
                               asked(Place, Key, Command)
                           end),
                ?assertEqual([[], []], [[Key || {KeyPartition, _, _} = Key <- keys(P),
                                                KeyPartition =:= P - 2] || P <- [2, 3]]),
                ?assertMatch([2, Batches] when Batches > 4,
                             [length(heard(What)) || What <- [asked, dropped]])
            end).

heard(What) -> receive What -> [What | heard(What)] after 0 -> [] end.

%% With a ring of as many partitions as copies none is too many.
a_small_ring_has_none_test() ->
    in_ring(fun() ->
                Ask = fun(_, _, {left_over, Which}) -> self() ! {which, Which}, {ok, []} end,
                _ = weft_kv_left_over:step({[1], 2, #{bucket => {2, false}}}, fun agreed/2, Ask),
                ?assertEqual([], receive {which, Which} -> Which end)
            end).

%% The process itself, with processes of partitions: as long as this node asks for three copies
%% nothing is dropped, and it goes on without a ring.
the_process_drops_what_nobody_asks_for_test() ->
    ok = weft_vnode_names:make([weft_kv_vnode]),
    Ring = weft_ring_table:create({node(), 1}, here, ?SIZE, 3),
    Server = spawn_link(fun() -> ring_server(Ring) end),
    true = register(weft_ring_server, Server),
    Partitions = [begin
                      {ok, Name} = weft_vnode_names:name(weft_kv_vnode, P),
                      {ok, Pid} = weft_vnode_process:start_link(Name, weft_kv_vnode, P, [],
                                                                #{queue_max => 100}),
                      {ok, started} = gen_server:call(Pid, opened),
                      Pid
                  end || P <- [0, 1, 2]],
    {ok, Pid} = weft_kv_left_over:start_link(#{buckets => buckets(2)}),
    Bytes = fun() -> [gen_server:call(P, {cover, bytes}) || P <- Partitions] end,
    try
        ok = gone_round(Pid),
        ok = weft_ring_lookup:publish(weft_ring, Ring),
        ok = persistent_term:put(weft_kv_app, #{buckets => buckets(3)}),
        [{ok, {ok, _}} = weft_vnode:ask(weft_kv_vnode, place(P), key(1),
                                        {{merge, object(<<"1">>)}, ?KINDS(3), primary}, 5000)
         || P <- [0, 1, 2]],
        ok = gone_round(Pid),
        ?assertMatch([{ok, Some}, {ok, Some}, {ok, Some}] when Some > 0, Bytes()),
        ok = persistent_term:put(weft_kv_app, #{buckets => buckets(2)}),
        ok = gone_round(Pid),
        ?assertMatch([{ok, Some}, {ok, Some}, {ok, 0}] when Some > 0, Bytes())
    after
        [begin true = unlink(P), ok = gen_server:stop(P) end || P <- [Pid | Partitions]],
        true = unlink(Server),
        Ref = monitor(process, Server),
        exit(Server, kill),
        receive {'DOWN', Ref, process, _, _} -> ok end,
        _ = persistent_term:erase(weft_kv_app),
        weft_ring_lookup:withdraw(weft_ring),
        weft_vnode_names:forget()
    end.

buckets(N) -> #{bucket => #{n => N, evict => false}, strong => #{n => 3, consistency => strong}}.

ring_server(Ring) ->
    receive {'$gen_call', From, {command, ring}} ->
        gen_server:reply(From, Ring),
        ring_server(Ring)
    end.

gone_round(Pid) ->
    Pid ! round,
    weft_test_nodes:until(fun() ->
                              {left_over, _, {Left, _, _}} = sys:get_state(Pid),
                              Left =:= []
                          end).

%% --- a ring -----------------------------------------------------------------------------------

in_ring(Fun) ->
    ok = weft_ring_lookup:publish_owners(weft_ring, lists:duplicate(?SIZE, node())),
    _ = erase(was_written),
    try
        [begin
             {ok, Vnode} = weft_kv_vnode:init(Partition, #{grace_ms => 0}),
             put({vnode, Partition}, Vnode)
         end || Partition <- lists:seq(0, ?SIZE - 1)],
        Fun()
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% The bucket has this `n' from now on, and a round goes by.
moved(N) -> round({N, false}, fun agreed/2, fun asked/3).

agreed(bucket, _N) -> true.

round(Bucket, IsAgreed, Ask) ->
    Round = {lists:seq(0, ?SIZE - 1), ?SIZE, #{bucket => Bucket}},
    rounded(weft_kv_left_over:step(Round, IsAgreed, Ask), IsAgreed, Ask).

rounded(done, _, _) -> ok;
rounded({more, Round}, IsAgreed, Ask) ->
    rounded(weft_kv_left_over:step(Round, IsAgreed, Ask), IsAgreed, Ask).

asked({Partition, _, primary}, Key, Command) ->
    case weft_kv_vnode:command(Key, Command, get({vnode, Partition})) of
        {reply, Reply} -> {ok, Reply};
        {change, Change, Reply} -> changed(Partition, [{Key, Change}], Reply);
        {changes, Changes, Reply} -> changed(Partition, Changes, Reply)
    end.

changed(Partition, Changes, Reply) ->
    [begin
         {ok, Vnode} = weft_kv_vnode:change(Key, Change, none, get({vnode, Partition})),
         put({vnode, Partition}, Vnode)
     end || {Key, Change} <- Changes],
    {ok, Reply}.

place(Partition) -> {Partition, node(), primary}.

%% A write that has seen nothing, by the first of these.
written(N, Value, Copies, Places) when is_integer(Copies) ->
    written(N, Value, ?KINDS(Copies), Places);
written(N, Value, Kind, Places) ->
    request({write, value(Value), #{}}, N, Kind, Places).

%% Of what the first of these has.
deleted(N, Copies, [First | _] = Places) ->
    {ok, {ok, {Seen, _}}} = asked(place(First), key(N), {read, ?KINDS(Copies), primary}),
    request({write, value(deleted), Seen}, N, ?KINDS(Copies), Places).

request(Write, N, Kind, [First | Others]) ->
    {ok, {ok, Object}} = asked(place(First), key(N), {Write, Kind, primary}),
    [{ok, {ok, _}} = asked(place(P), key(N), {{merge, Object}, Kind, primary}) || P <- Others],
    ok.

%% Each time is another one, or it were the same write.
value(Value) ->
    #{value => Value, written_ms => erlang:unique_integer([monotonic]) - (1 bsl 62),
      expires_ms => never}.

object(Value) -> weft_kv_object:put(value(Value), #{}, <<"a">>, weft_kv_object:new()).

%% What was deleted, by all replicas.
forgotten() ->
    lists:foreach(fun(P) ->
                      {_, Vnode} = weft_kv_vnode:tick(get({vnode, P})),
                      put({vnode, P}, Vnode)
                  end, [0, 1, 2]).

compared(N) ->
    Ask = fun(P, Key, Command) -> asked(place(P), Key, Command) end,
    lists:foreach(fun(Pair) -> ok = exchanged(weft_kv_exchange:new({N, 0, Pair}), Ask) end,
                  [{0, 1}, {0, 2}, {1, 2}]).

exchanged(Exchange, Ask) ->
    case weft_kv_exchange:step(Exchange, Ask) of
        {more, Next} -> exchanged(Next, Ask);
        {done, _} -> ok
    end.

read(N, Places) ->
    Objects = [begin
                   {ok, {ok, Object}} = asked(place(P), key(N), {read, ?KINDS(3), primary}),
                   Object
               end || P <- Places],
    lists:sort(weft_kv_object:values(lists:foldl(fun weft_kv_object:merge/2, weft_kv_object:new(),
                                                 Objects))).

keys(Partition) -> [Key || {Key, _} <- objects(Partition)].

ns(Partition) -> lists:usort([N || {_, {_, #{n := N}}} <- objects(Partition)]).

objects(Partition) -> weft_kv_test_copies:objects(get({vnode, Partition})).

%% What the two that are left have with another `n'.
not_compared() -> lists:usort(ns(0) ++ ns(1)) -- [2].

key(N) -> {0, bucket, integer_to_binary(N)}.
