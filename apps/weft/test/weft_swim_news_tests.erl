%% SPDX-License-Identifier: Apache-2.0
%% @doc Every piece of news rides on its share of messages, least sent first, and on no more.
-module(weft_swim_news_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LIMIT, 3).

newer_news_of_a_member_takes_the_place_of_older_test() ->
    News = add([{alive, a, 1}, {alive, b, 1}, {dead, a, 1}], weft_swim_news:new()),
    ?assertMatch({[{dead, a, 1}, {alive, b, 1}], _}, weft_swim_news:take(?LIMIT, 1000, News)).

a_message_holds_no_more_than_its_bytes_test() ->
    Updates = [{alive, Node, 1} || Node <- [a, b, c]],
    Size = erlang:external_size({alive, a, 1}),
    News = add(Updates, weft_swim_news:new()),
    ?assertMatch({[_, _], _}, weft_swim_news:take(?LIMIT, 3 * Size - 1, News)),
    ?assertMatch({[_], _}, weft_swim_news:take(?LIMIT, 2 * Size - 1, News)).

%% The names of nodes may be long. What is larger than a message goes alone, and holds up nothing:
%% three pieces, each of which goes into as many messages as the limit says.
what_is_larger_than_a_message_goes_alone_test() ->
    Name = fun(Letter) -> list_to_atom(lists:duplicate(250, Letter)) end,
    Large = {suspect, Name($b), 1, Name($c)},
    All = add([{alive, a, 1}, Large, {alive, d, 1}], weft_swim_news:new()),
    {Taken, Left} = lists:mapfoldl(fun(_, News) -> weft_swim_news:take(?LIMIT, 200, News) end, All,
                                   lists:seq(1, 3 * ?LIMIT)),
    ?assert(weft_swim_news:is_empty(Left)),
    ?assertEqual(lists:sort(lists:append(lists:duplicate(?LIMIT, [{alive, a, 1}, Large,
                                                                  {alive, d, 1}]))),
                 lists:sort(lists:append(Taken))),
    ?assertEqual([[Large]], lists:usort([News || News <- Taken, lists:member(Large, News)])).

what_never_leaves_does_not_pile_up_test() ->
    News = add([{alive, a, N} || N <- lists:seq(1, 10000)], weft_swim_news:new()),
    ?assert(erts_debug:flat_size(News) < 1000),
    ?assertMatch({[{alive, a, 10000}], _}, weft_swim_news:take(?LIMIT, 1000, News)).

it_behaves_like_a_plain_list_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_model(), [{numtests, 1000}, {to_file, user}]))}.

%% The model: a list of {Update, Sent}. What is taken is a set of updates of it that were sent no
%% more often than any that stays behind.
prop_model() ->
    ?FORALL(Steps, list(step()),
            element(1, lists:foldl(fun check/2, {true, weft_swim_news:new(), []}, Steps))).

step() ->
    oneof([{add, {oneof([alive, dead]), oneof([a, b, c, d, e, f, g]), integer(1, 5)}},
           {take, integer(1, 4)}]).

check(_Step, {false, _, _} = Failed) ->
    Failed;
check({add, {_, Node, _} = Update}, {true, News, Model}) ->
    {true, add([Update], News),
     [{Update, 0} | [Piece || {{_, Other, _}, _} = Piece <- Model, Other =/= Node]]};
check({take, Count}, {true, News0, Model}) ->
    {Taken, News} = weft_swim_news:take(?LIMIT, Count * erlang:external_size({alive, a, 1}), News0),
    Sent = [{Update, maps:get(Update, maps:from_list(Model), unknown)} || Update <- Taken],
    Kept = [Piece || {Update, _} = Piece <- Model, not lists:member(Update, Taken)],
    After = Kept ++ [{Update, N + 1} || {Update, N} <- Sent, is_integer(N), N + 1 < ?LIMIT],
    {length(lists:usort(Taken)) =:= length(Taken)
         andalso not lists:keymember(unknown, 2, Sent)
         %% One of `dead' is a byte shorter, which makes no difference to a few.
         andalso length(Taken) =:= min(Count, length(Model))
         andalso lists:all(fun({_, N}) -> N >= lists:max([0 | [M || {_, M} <- Sent]]) end, Kept)
         andalso weft_swim_news:is_empty(News) =:= (After =:= [])
         andalso lists:all(fun(Node) -> weft_swim_news:about(Node, News)
                                            =:= lists:any(fun({{_, N, _}, _}) -> N =:= Node end,
                                                          After)
                           end, [a, b, c, d, e, f, g]),
     News, After}.

add(Updates, News) ->
    lists:foldl(fun(Update, N) -> weft_swim_news:add(element(2, Update), Update, N) end, News,
                Updates).
