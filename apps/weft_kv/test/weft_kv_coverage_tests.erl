%% SPDX-License-Identifier: Apache-2.0
%% @doc Which replicas are asked for a page of keys, when there is one, and what is in it. That
%% lists miss nothing that is left anywhere is in `weft_kv_recall_tests'.
-module(weft_kv_coverage_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OWNERS, [{P, P, primary} || P <- [0, 1, 2]]).
-define(WITH_ANOTHER, [{0, 0, primary}, {1, 1, primary}, {2, 2, fallback}]).

%% One after the other, as far as there are needed.
no_more_are_asked_than_are_needed_test() ->
    ?assertEqual({[0, 1], ok}, asked(in_turn, #{}, ?OWNERS, [ok, ok, ok])),
    ?assertEqual({[0, 1, 2], ok}, asked(in_turn, #{}, ?OWNERS, [ok, timeout, ok])),
    ?assertEqual({[0], ok}, asked(in_turn, #{r => 1}, ?OWNERS, [ok, ok, ok])),
    ?assertEqual({[0, 1, 2], ok}, asked(at_once, #{}, ?OWNERS, [ok, ok, ok])).

%% Nobody else could answer in their place, so they may take all the time.
who_can_not_be_done_without_leaves_no_time_test() ->
    Two = lists:sublist(?OWNERS, 2),
    [?assertEqual({Given, Places, Says, IsNeeded},
                  {Given, Places, Says, needed(Given, Places, Says)})
     || {Given, Places, Says, IsNeeded} <-
            [{#{}, Two, [ok, ok], [true, true]},
             {#{r => 1}, Two, [timeout, ok], [false, true]},
             {#{}, ?OWNERS, [ok, timeout, ok], [false, false, true]},
             {#{}, ?OWNERS, [timeout, ok, ok], [false, true, true]},
             {#{}, ?OWNERS, [incomplete, ok, ok], [false, true, true]},
             {#{pr => 2}, ?WITH_ANOTHER, [ok, ok, ok], [true, true]}]].

needed(Given, Places, Says) ->
    Self = self(),
    Answers = maps:from_list(lists:zip(Places, Says)),
    Ask = fun(Place, IsNeeded) ->
              Self ! {asked, IsNeeded},
              answer(map_get(Place, Answers))
          end,
    {ok, _} = weft_kv_fold:covered(weft_kv_coverage:new(in_turn, bucket(Given), 3, Places), Ask),
    asked_so_far().

asked_so_far() ->
    receive {asked, IsNeeded} -> [IsNeeded | asked_so_far()] after 0 -> [] end.

nobody_is_asked_in_vain_test() ->
    ?assertMatch({[0, 1], {too_few, #{answered := 0, failed := [{0, timeout}, {1, timeout}]}}},
                 asked(in_turn, #{}, ?OWNERS, [timeout, timeout, ok])).

%% Who stands in has what came while it did so. The owners have more.
owners_are_asked_first_test() ->
    ?assertEqual({[0, 1], ok}, asked(in_turn, #{}, [{2, 2, fallback}, {0, 0, primary},
                                                    {1, 1, primary}], [ok, ok, ok])).

%% The next one is asked in its place.
who_has_forgotten_does_not_count_test() ->
    ?assertEqual({[0, 1, 2], ok}, asked(in_turn, #{}, ?OWNERS, [incomplete, ok, ok])),
    ?assertEqual({[0, 1, 2], {too_few, #{needed => #{r => 2, pr => 0}, answered => 1,
                                         failed => [{2, timeout}, {0, incomplete}]}}},
                 asked(in_turn, #{}, ?OWNERS, [incomplete, ok, timeout])),
    ?assertEqual({[0, 1, 2], {too_few, #{needed => #{r => 2, pr => 0, owners => 2}, answered => 1,
                                         failed => [{2, timeout}, {0, incomplete}]}}},
                 asked(at_once, #{}, ?OWNERS, [incomplete, ok, timeout])).

%% So it is in a new ring.
all_owners_together_count_test() ->
    [?assertEqual({[0, 1, 2], ok}, asked(How, #{}, ?OWNERS, [incomplete, incomplete, incomplete]))
     || How <- [in_turn, at_once]].

%% Whoever is away may have more: that matters to those who ask for owners.
all_that_are_there_count_but_not_as_owners_test() ->
    Says = [incomplete, incomplete, ok],
    [begin
         ?assertEqual({[0, 1, 2], ok}, asked(How, #{}, ?WITH_ANOTHER, Says)),
         ?assertMatch({Asked, {too_few, _}}, asked(How, #{pr => 1}, ?WITH_ANOTHER, Says)),
         %% It is not known to be away.
         ?assertMatch({[0, 1, 2], {too_few, _}},
                      asked(How, #{}, ?OWNERS, [incomplete, incomplete, timeout]))
     end || {How, Asked} <- [{in_turn, [0, 1]}, {at_once, [0, 1, 2]}]].

as_many_owners_are_needed_as_a_read_needs_test() ->
    ?assertEqual({[0, 1, 2], ok}, asked(in_turn, #{r => 3, pr => 2}, ?WITH_ANOTHER,
                                        [ok, ok, ok])),
    ?assertMatch({[0, 1], {too_few, #{needed := #{r := 2, pr := 2}}}},
                 asked(in_turn, #{pr => 2}, ?WITH_ANOTHER, [ok, timeout, ok])).

%% Of an export: they meet each write, wherever it is.
as_many_owners_are_needed_as_meet_each_write_test() ->
    ?assertMatch({[0, 1, 2], {too_few, #{needed := #{owners := 2}}}},
                 asked(at_once, #{}, ?WITH_ANOTHER, [ok, timeout, ok])),
    [?assertEqual({Given, #{r => Needed, pr => 0, owners => Needed}},
                  {Given, weft_kv_coverage:meeting(bucket(Given))})
     || {Given, Needed} <- [{#{}, 2}, {#{w => 1}, 3}, {#{r => 1, w => 3}, 1},
                            {#{r => 3, w => 3}, 3}]].

%% --- what is asked, and answered --------------------------------------------------------------

only_owners_that_are_compared_are_asked_what_they_lack_test() ->
    [Owner, _, Other] = ?WITH_ANOTHER,
    Ask = fun(Place, Given, IsCompared) ->
              weft_kv_coverage:command(Place, <<"k">>, bucket(Given), IsCompared)
          end,
    ?assertEqual({page, <<"k">>, 3}, Ask(Owner, #{}, true)),
    [?assertEqual({page, <<"k">>}, Ask(Place, Given, IsCompared))
     || {Place, Given, IsCompared} <- [{Owner, #{}, false}, {Other, #{}, true},
                                       {Owner, #{evict => true}, true}]].

%% Who does not know the question counts, as ever.
an_answer_of_an_earlier_version_counts_test() ->
    [Place | _] = ?OWNERS,
    {ask, [Place], State} =
        weft_kv_coverage:next(weft_kv_coverage:new(in_turn, bucket(#{r => 1}), 3, ?OWNERS)),
    ?assertEqual(ok, weft_kv_coverage:next(weft_kv_coverage:heard(Place, {ok, {[], true}}, State))),
    ?assertMatch({ask, [_], _},
                 weft_kv_coverage:next(weft_kv_coverage:heard(Place, {ok, {error, later}}, State))).

%% What it has is heard though it does not count.
a_page_goes_as_far_as_the_shortest_answer_test() ->
    Objects = [{Key, object(Value)} || {Key, Value} <- [{<<"a">>, <<"1">>}, {<<"b">>, <<"2">>},
                                                        {<<"c">>, <<"3">>}]],
    [A, B, C] = Objects,
    {_, ok, State} = covered(in_turn, #{}, ?OWNERS,
                             [{ok, {incomplete, {[A, B], false}}}, {ok, {ok, {[C], true}}},
                              {ok, {ok, {[A, C], true}}}]),
    ?assertEqual({[A, B], <<"b">>}, weft_kv_coverage:page(true, State)).

%% --- helpers ----------------------------------------------------------------------------------

asked(How, Given, Places, Says) ->
    {Asked, Answer, _} = covered(How, Given, Places,
                                 [answer(What) || What <- Says]),
    {lists:sort(Asked), Answer}.

answer(timeout) -> {error, timeout};
answer(What) -> {ok, {What, {[], true}}}.

covered(How, Given, Places, Answers) ->
    Needed = case How of
                 in_turn -> bucket(Given);
                 at_once -> weft_kv_coverage:meeting(bucket(Given))
             end,
    covered(weft_kv_coverage:new(How, Needed, 3, Places),
            maps:from_list(lists:zip(Places, Answers)), []).

covered(State, Answers, Asked) ->
    case weft_kv_coverage:next(State) of
        {ask, Places, Next} ->
            covered(lists:foldl(fun(Place, S) ->
                                    weft_kv_coverage:heard(Place, map_get(Place, Answers), S)
                                end, Next, Places), Answers, Asked ++ [P || {P, _, _} <- Places]);
        ok -> {Asked, ok, State};
        {error, Reason} -> {Asked, Reason, State}
    end.

bucket(Given) ->
    {ok, Options} = weft_kv_bucket:check(Given),
    Options.

object(Value) ->
    weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{}, Value,
                       weft_kv_object:new()).
