%% SPDX-License-Identifier: Apache-2.0
-module(weft_im_script_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, weft_im_script).

scripts(Count) ->
    [?M:new(1, {<<"a">>, <<"b">>, Number}, 1) || Number <- lists:seq(1, Count)].

lines(Scripts) ->
    [?M:line(Index, Script) || Script <- Scripts, Index <- lists:seq(1, ?M:steps(Script))].

%% Uniform: all values are there, the mean is in the middle.
lengths_are_those_of_the_paper_test() ->
    Steps = [?M:steps(Script) || Script <- scripts(800)],
    is_uniform(13, 60, Steps),
    Lines = lines(scripts(60)),
    is_uniform(1, 75, [byte_size(Text) || {Text, _} <- Lines]),
    is_uniform(1, 20, [Ms div 1000 || {_, Ms} <- Lines]),
    is_uniform($a, $z, lists:append([binary_to_list(Text) || {Text, _} <- Lines])).

is_uniform(From, To, Values) ->
    ?assertEqual(lists:seq(From, To), lists:usort(Values)),
    Mean = lists:sum(Values) / length(Values),
    %% Six standard errors.
    Error = 6 * (To - From + 1) / math:sqrt(12 * length(Values)),
    ?assert(abs(Mean - (From + To) / 2) < Error, {Mean, From, To}).

both_ends_draw_the_same_test() ->
    Conversation = {<<"a">>, <<"b">>, 7},
    ?assertEqual(?M:new(1, Conversation, 0.5), ?M:new(1, Conversation, 0.5)),
    ?assertNotEqual(?M:new(1, Conversation, 0.5), ?M:new(2, Conversation, 0.5)),
    ?assertNotEqual(?M:new(1, Conversation, 0.5), ?M:new(1, {<<"b">>, <<"a">>, 7}, 0.5)).

scale_is_of_typing_alone_test() ->
    Conversation = {<<"a">>, <<"b">>, 7},
    [Slow, Fast] = [?M:new(1, Conversation, Scale) || Scale <- [1, 0.01]],
    ?assertEqual(lines([Fast]), [{Text, Ms div 100} || {Text, Ms} <- lines([Slow])]).

turns_are_numbered_test() ->
    ?assertEqual([{a, 1}, {b, 1}, {a, 2}, {b, 2}, {a, 3}],
                 [{?M:speaker(Index), ?M:number(Index)} || Index <- lists:seq(1, 5)]),
    ?assertEqual(lists:seq(1, 60), [?M:index(?M:speaker(Index), ?M:number(Index))
                                    || Index <- lists:seq(1, 60)]).

partners_are_others_test_() ->
    ?_assert(proper:quickcheck(
               ?FORALL({Seed, Count, K}, {integer(), integer(2, 50), nat()},
                       begin
                           Partners = [?M:partner(Seed, Client, K, Count)
                                       || Client <- lists:seq(1, Count)],
                           lists:all(fun({Client, Partner}) ->
                                         Partner =/= Client andalso Partner >= 1
                                             andalso Partner =< Count
                                     end, lists:zip(lists:seq(1, Count), Partners))
                       end), [{to_file, user}])).

all_are_partners_test() ->
    ?assertEqual([1, 2, 4, 5], lists:usort([?M:partner(1, 3, K, 5) || K <- lists:seq(1, 100)])).

pauses_are_typing_times_test() ->
    Pauses = [?M:pause_ms(1, {<<"a">>, <<"b">>, Number}, 0.5) || Number <- lists:seq(1, 2000)],
    is_uniform(1, 20, [PauseMs div 500 || PauseMs <- Pauses]).
