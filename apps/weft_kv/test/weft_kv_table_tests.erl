%% SPDX-License-Identifier: Apache-2.0
%% @doc What a table counts of its objects is what they are.
-module(weft_kv_table_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Who looks for objects that are over looks only if there may be some.
those_that_can_end_are_counted_test() ->
    Property =
        ?FORALL(Steps, list(step()),
            begin
                Table = weft_kv_table:new(),
                lists:foreach(fun(Step) -> done(Step, Table) end, Steps),
                {Items, done} = weft_kv_table:page(start, {infinity, infinity}, Table),
                Ending = [Key || {Key, {Object, _}} <- Items, can_end(Object)],
                weft_kv_table:ending(Table) =:= length(Ending)
                    andalso weft_kv_table:count(Table) =:= length(Items)
                    andalso (Items =/= [] orelse weft_kv_table:bytes(Table) =:= 0)
            end),
    ?assert(proper:quickcheck(Property, [{numtests, 500}, quiet])).

%% At some time all of its values are deleted or over.
can_end({_, Values}) ->
    [] =:= [Value || #{value := Value, expires_ms := never} <- maps:values(Values),
                     Value =/= deleted].

%% As `n' was when each was written. What may be dropped, or has one copy only, has none to compare.
the_numbers_of_replicas_are_known_test() ->
    Table = weft_kv_table:new(),
    Store = fun(Key, N, Evict) ->
                ok = weft_kv_table:store({1, things, Key}, object([{<<"v">>, never}]),
                                         #{n => N, evict => Evict, siblings => true}, Table)
            end,
    ?assertEqual([], weft_kv_table:ns(Table)),
    [Store(<<Key>>, N, Evict) || {Key, N, Evict} <- [{1, 5, false}, {2, 2, false}, {3, 5, false},
                                                     {4, 3, true}, {5, 1, false}]],
    ?assertEqual([2, 5], weft_kv_table:ns(Table)),
    Store(<<1>>, 2, false),
    ?assertEqual([2, 5], weft_kv_table:ns(Table)),
    ok = weft_kv_table:remove({1, things, <<3>>}, Table),
    ?assertEqual([2], weft_kv_table:ns(Table)).

step() ->
    frequency([{8, {store, key(), list({oneof([deleted, <<"v">>]), oneof([never, 1])}),
                    boolean()}},
               {4, {remove, key()}}, {1, evict}, {1, clear}]).

key() -> {range(0, 1), things, oneof([<<"a">>, <<"b">>, <<"c">>])}.

done({store, Key, Values, Evict}, Table) ->
    ok = weft_kv_table:store(Key, object(Values), #{n => 3, evict => Evict, siblings => true},
                             Table);
done({remove, Key}, Table) -> ok = weft_kv_table:remove(Key, Table);
done(evict, Table) -> weft_kv_table:evict(weft_kv_table:bytes(Table) div 2, Table);
done(clear, Table) -> ok = weft_kv_table:clear(Table).

object(Values) ->
    lists:foldl(fun({Value, ExpiresMs}, Object) ->
                    weft_kv_object:put(#{value => Value, written_ms => 0,
                                         expires_ms => ExpiresMs}, #{}, <<"actor">>, Object)
                end, weft_kv_object:new(), Values).
