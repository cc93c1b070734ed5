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
    ?assertEqual({ok, 299}, compared(Vnodes, 1000)),
    ?assertEqual({ok, 0}, compared(Vnodes, 1000)),
    [?assertEqual({N, [[integer_to_binary(N)], [integer_to_binary(N)]]},
                  {N, [values(N, V) || V <- Vnodes]}) || N <- [1, 250, 400]].

no_more_than_so_many_at_a_time_test() ->
    Vnodes = [vnode(lists:seq(1, 100)), vnode([])],
    ?assertEqual({ok, 30}, compared(Vnodes, 30)),
    ?assertEqual([{ok, 30}, {ok, 30}, {ok, 10}, {ok, 0}],
                 [compared(Vnodes, 30) || _ <- lists:seq(1, 4)]).

siblings_stay_siblings_test() ->
    [A, B] = Vnodes = [vnode([1]), vnode([])],
    _ = write(1, <<"other">>, B),
    ?assertEqual({ok, 1}, compared(Vnodes, 10)),
    ?assertEqual([[<<"1">>, <<"other">>], [<<"1">>, <<"other">>]],
                 [lists:sort(values(1, V)) || V <- [A, B]]).

%% A cache may have forgotten it.
caches_are_not_compared_test() ->
    Vnodes = [A, _] = [vnode([]), vnode([])],
    _ = write(1, <<"1">>, ?KIND#{evict => true}, A),
    ?assertEqual({ok, 0}, compared(Vnodes, 10)).

one_that_does_not_answer_is_an_error_test() ->
    ?assertEqual({error, away},
                 weft_kv_exchange:compare({3, 0, {0, 1}}, 10, fun(0, _, _) -> {ok, 1};
                                                                  (1, _, _) -> {error, away}
                                                               end)).

%% The tables change in place.
compared([A, B], KeysMax) ->
    weft_kv_exchange:compare({3, 0, {0, 1}}, KeysMax,
                             fun(P, Key, Command) ->
                                 asked(case P of 0 -> A; 1 -> B end, Key, Command)
                             end).

asked(Vnode, Key, Command) ->
    case weft_kv_vnode:command(Key, Command, Vnode) of
        {reply, Reply} -> {ok, Reply};
        {change, Change, Reply} ->
            {ok, _} = weft_kv_vnode:change(Key, Change, none, Vnode),
            {ok, Reply}
    end.

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

%% A full partition, for example.
a_repair_that_is_refused_is_an_error_test() ->
    Kind = #{n => 2, evict => false, siblings => true},
    Value = #{value => <<"1">>, written_ms => 0, expires_ms => never},
    Object = weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()),
    Key = {0, bucket, <<"key">>},
    Ask = fun(_, Key0, {read, _, _}) when Key0 =:= Key -> {ok, {ok, weft_kv_object:new()}};
             (_, _, {{merge, _}, _, _}) -> {ok, {error, full}};
             (Partition, _, {entropy, {root, 2}}) -> {ok, Partition};
             (0, _, {entropy, {segments, 2}}) -> {ok, [{5, 1}]};
             (0, _, {entropy, {{segment, 5}, 2}}) -> {ok, [{Key, 1, Kind}]};
             (1, _, {entropy, _}) -> {ok, []}
          end,
    Has = fun(0, _, {read, _, _}) -> {ok, {ok, Object}};
             (Partition, K, Command) -> Ask(Partition, K, Command)
          end,
    ?assertEqual({error, full}, weft_kv_exchange:compare({2, 0, {0, 1}}, 10, Has)).
