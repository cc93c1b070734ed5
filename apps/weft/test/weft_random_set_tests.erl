%% SPDX-License-Identifier: Apache-2.0
%% @doc A random set is a set, and draws each element equally often.
-module(weft_random_set_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

it_holds_what_a_plain_set_holds_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_set(), [{numtests, 500}, {to_file, user}]))}.

prop_set() ->
    ?FORALL({Steps, Count, Seed}, {list({oneof([add, delete]), integer(1, 20)}), integer(0, 25),
                                   integer()},
            begin
                Set = lists:foldl(fun({add, X}, S) -> weft_random_set:add(X, S);
                                     ({delete, X}, S) -> weft_random_set:delete(X, S)
                                  end, weft_random_set:new(), Steps),
                Model = lists:foldl(fun({add, X}, M) -> lists:usort([X | M]);
                                       ({delete, X}, M) -> M -- [X]
                                    end, [], Steps),
                {Chosen, _} = weft_random_set:choose(Count, fun(X) -> X rem 2 =:= 0 end, Set,
                                                     rand:seed_s(exsss, Seed)),
                Even = [X || X <- Model, X rem 2 =:= 0],
                weft_random_set:to_list(Set) =:= Model
                    andalso weft_random_set:size(Set) =:= length(Model)
                    andalso lists:all(fun(X) -> weft_random_set:is_member(X, Set)
                                                    =:= lists:member(X, Model)
                                      end, lists:seq(1, 20))
                    andalso length(Chosen) =:= min(Count, length(Even))
                    andalso Chosen -- Even =:= []
                    andalso length(lists:usort(Chosen)) =:= length(Chosen)
            end).

each_element_is_as_likely_as_another_test() ->
    %% One deleted from the middle, so that the last one has moved.
    All = lists:foldl(fun weft_random_set:add/2, weft_random_set:new(), lists:seq(1, 11)),
    Set = weft_random_set:delete(3, All),
    {Counts, _} = lists:foldl(
                    fun(_, {Counts0, Rand0}) ->
                        {Chosen, Rand} = weft_random_set:choose(2, fun(_) -> true end, Set, Rand0),
                        {lists:foldl(fun(X, C) ->
                                         maps:update_with(X, fun(N) -> N + 1 end, 1, C)
                                     end, Counts0, Chosen), Rand}
                    end, {#{}, rand:seed_s(exsss, 1)}, lists:seq(1, 10000)),
    ?assertEqual(10, map_size(Counts)),
    %% 2000 expected, standard deviation 40.
    [?assert(abs(Count - 2000) < 200) || Count <- maps:values(Counts)].
