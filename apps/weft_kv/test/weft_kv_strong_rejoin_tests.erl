%% SPDX-License-Identifier: Apache-2.0
%% @doc How a replica of a strong bucket that has lost its file votes again: what the others do,
%% what requests make of it, and what the candidate does. What clients see of it is in
%% `weft_sim_kv_tests', and on real disks in `weft_kv_strong_SUITE'.
-module(weft_kv_strong_rejoin_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, weft_kv_strong_acceptor_core).
-define(P, weft_kv_strong_proposer_core).
-define(R, weft_kv_strong_rejoin_core).
-define(M, weft_kv_strong_members).
-define(NONE, {0, 0, <<>>}).
-define(NOTHING, {0, [], not_found}).
-define(FOUNDERS, {0, #{}}).
-define(FIRST, {1, #{b => <<"new">>}}).
%% As a pattern.
-define(THE_FIRST, {1, #{b := <<"new">>}}).

%% --- the others -------------------------------------------------------------------------------

later_members_are_taken_over_before_the_answer_test() ->
    Ask = {vote, 1, ?FIRST, {registers, first}},
    {Held, Effects} = ?A:handle(Ask, voter()),
    ?assertEqual([{append, {members, ?FIRST}}], Effects),
    {Told, [{reply, 1, {registers, [], true}}]} = ?A:handle(committed, Held),
    %% Nothing is done for earlier ones any more, nor after a start from what was appended.
    [{_, [{reply, 2, {error, {members, ?THE_FIRST}}}]} = ?A:handle(committed, Asked)
     || State <- [Told, started(?A:entries(Told)),
                  started(?A:entries(voter()) ++ [E || {append, E} <- Effects])],
        Message <- [{read, <<"k">>}, {prepare, <<"k">>, {0, 9, <<"x">>}},
                    {accept, <<"k">>, {0, 9, <<"x">>}, content(1)}],
        {Asked, []} <- [?A:handle({vote, 2, ?FOUNDERS, Message}, State)]].

who_was_replaced_does_not_vote_test() ->
    Members = {1, #{a => <<"another">>}},
    {Held, Effects} = ?A:handle({vote, 1, Members, {read, <<"k">>}}, voter()),
    ?assertEqual(forgotten, ?A:status(Held)),
    ?assertMatch({_, [{reply, 1, {error, forgotten}}]}, ?A:handle(committed, Held)),
    Again = started(?A:entries(voter()) ++ [E || {append, E} <- Effects]),
    ?assertEqual(forgotten, ?A:status(Again)),
    %% Its own identity among them is no reason.
    {Mine, _} = ?A:handle({vote, 1, {1, #{a => <<"mine">>}}, {read, <<"k">>}}, voter()),
    ?assertEqual(voting, ?A:status(Mine)).

%% Founders know each other by what they were told, which who came later was not.
nobody_is_new_to_who_has_later_members_test() ->
    {Later, _} = ?A:handle({vote, 1, ?FIRST, {read, <<"k">>}}, voter()),
    {Ready, _} = ?A:handle(committed, Later),
    {Held, []} = ?A:handle({introduce, 2, c, <<"c">>}, Ready),
    ?assertMatch({_, [{reply, 2, forgotten}]}, ?A:handle(committed, Held)),
    {Candidate, _} = ?A:handle({candidate, <<"new">>}, forgotten()),
    {Held2, []} = ?A:handle({introduce, 3, c, <<"c">>}, Candidate),
    ?assertMatch({_, [{reply, 3, forgotten}]}, ?A:handle(committed, Held2)).

%% A replica with as many keys as it may have can be lost, too.
members_are_chosen_by_full_replicas_test() ->
    {ok, New, _} = ?A:init((options())#{others := [], keys_max := 1}, []),
    Replies = [begin
                   {Asked, Effects} = ?A:handle({vote, 1, ?FOUNDERS, Message}, State),
                   {_, More} = ?A:handle(committed, Asked),
                   lists:keyfind(reply, 1, Effects ++ More)
               end || {Full, _} <- [?A:handle({vote, 0, ?FOUNDERS,
                                               {prepare, <<"k">>, {0, 1, <<"x">>}}}, New)],
                      {State, _} <- [?A:handle(committed, Full)],
                      Message <- [{prepare, <<"l">>, {0, 1, <<"x">>}},
                                  {prepare, ?M:key(), {0, 1, <<"x">>}},
                                  {accept, ?M:key(), {0, 1, <<"x">>}, {1, [], ?FIRST}}]],
    ?assertEqual([{reply, 1, {error, full}}, {reply, 1, {promise, ?NONE, ?NOTHING}},
                  {reply, 1, accepted}], Replies).

registers_are_told_page_by_page_test() ->
    Large = binary:copy(<<"v">>, 600000),
    Keys = [<<"a">>, <<"b">>, <<"c">>],
    Voter = lists:foldl(fun(Key, S0) ->
                            Accept = {accept, Key, {0, 1, <<"x">>}, {1, [], Large}},
                            {S1, _} = ?A:handle({vote, 1, ?FOUNDERS, Accept}, S0),
                            {S, _} = ?A:handle(committed, S1),
                            S
                        end, voter(), Keys),
    {Promised, _} = ?A:handle({vote, 1, ?FOUNDERS, {prepare, <<"d">>, {0, 1, <<"x">>}}}, Voter),
    {Ready, _} = ?A:handle(committed, Promised),
    Page = fun(After) ->
               {Held, []} = ?A:handle({vote, 2, ?FOUNDERS, {registers, After}}, Ready),
               {_, [{reply, 2, {registers, Registers, IsLast}}]} = ?A:handle(committed, Held),
               {[Key || {Key, {0, 1, <<"x">>}, {1, [], _}} <- Registers], IsLast}
           end,
    ?assertEqual({[<<"a">>, <<"b">>], false}, Page(first)),
    ?assertEqual({[<<"c">>], true}, Page(<<"b">>)).

%% --- requests ---------------------------------------------------------------------------------

what_earlier_members_accepted_is_no_read_test() ->
    {Read, _} = request(get, ?FIRST),
    {One, []} = reply(a, 1, {state, {0, 3, <<"x">>}, content(1)}, Read),
    {Two, []} = reply(b, 1, {state, {0, 3, <<"x">>}, content(1)}, One),
    {Three, Prepares} = reply(c, 1, {state, ?NONE, ?NOTHING}, Two),
    ?assertEqual([{1, 7, <<"id">>}], lists:usort([B || {ask, _, 2, ?THE_FIRST, {prepare, _, B}}
                                                           <- Prepares])),
    %% It is written again, by these members, before it is told.
    {Four, []} = reply(a, 2, {promise, {0, 3, <<"x">>}, content(1)}, Three),
    {Five, Accepts} = reply(b, 2, {promise, {0, 3, <<"x">>}, content(1)}, Four),
    ?assertEqual([a, b, c], [Node || {ask, Node, 3, ?THE_FIRST, {accept, _, {1, 7, _}, _}}
                                         <- Accepts]),
    {Six, []} = reply(a, 3, accepted, Five),
    ?assertMatch({_, [{answer, {ok, <<"value", 1>>}}]}, reply(c, 3, accepted, Six)),
    %% What was never written is not.
    {Seven, []} = reply(a, 1, {state, ?NONE, ?NOTHING}, Read),
    ?assertMatch({_, [{answer, {ok, not_found}}]}, reply(b, 1, {state, ?NONE, ?NOTHING}, Seven)).

later_members_are_asked_test() ->
    [begin
         {Begun, _} = request(Request, ?FOUNDERS),
         {One, []} = reply(a, 1, First, Begun),
         {Two, Effects} = reply(b, 1, {error, {members, ?FIRST}}, One),
         ?assertEqual([{learned, ?FIRST}], [E || {learned, _} = E <- Effects]),
         ?assertEqual([a, b, c], [Node || {ask, Node, 2, ?THE_FIRST, _} <- Effects]),
         %% The first answer does not count any more.
         ?assertMatch({_, []}, reply(c, 2, Second, Two))
     end || {Request, First, Second} <-
                [{get, {state, ?NONE, ?NOTHING}, {state, ?NONE, ?NOTHING}},
                 {{put, <<"v">>}, {promise, ?NONE, ?NOTHING}, {promise, ?NONE, ?NOTHING}}]].

request(Request, Members) ->
    ?P:init(Request, #{key => <<"k">>, id => <<"id">>, replicas => [a, b, c], members => Members,
                       counter => 7, timeout_ms => 1000}).

reply(Node, Tag, Reply, State) -> ?P:handle({reply, Node, Tag, Reply}, State).

%% --- the candidate ----------------------------------------------------------------------------

a_candidate_has_only_what_it_was_filled_with_test() ->
    {Accepted, _} = ?A:handle({vote, 1, ?FOUNDERS, {accept, <<"k">>, {0, 5, <<"x">>}, content(1)}},
                              voter()),
    Files = ["0.log.damaged.1"],
    {ok, Damaged, _} = ?A:init((options())#{damaged := Files}, ?A:entries(Accepted)),
    ?assertEqual({forgotten, none}, {?A:status(Damaged), ?A:candidate(Damaged)}),
    {Candidate, [{append, {candidate, <<"new">>, Files}}]} =
        ?A:handle({candidate, <<"new">>}, Damaged),
    ?assertEqual({forgotten, {ok, <<"new">>}}, {?A:status(Candidate), ?A:candidate(Candidate)}),
    ?assertEqual([], [E || {accepted, _, _, _} = E <- ?A:entries(Candidate)]),
    Members = {1, #{a => <<"new">>}},
    Registers = [{<<"k">>, {0, 4, <<"x">>}, content(2)}, {<<"l">>, {0, 1, <<"x">>}, content(3)}],
    Filled = filled([{members, Members}, {registers, 1, Registers},
                     %% Another one knows less of one key, and more of the other.
                     {registers, 1, [{<<"k">>, {0, 3, <<"x">>}, content(4)},
                                     {<<"l">>, {0, 2, <<"x">>}, content(5)}]},
                     {filled, 1}], Candidate),
    [begin
         ?assertEqual(voting, ?A:status(State)),
         ?assertEqual([{accepted, <<"k">>, {0, 4, <<"x">>}, content(2)},
                       {accepted, <<"l">>, {0, 2, <<"x">>}, content(5)}],
                      [E || {accepted, _, _, _} = E <- ?A:entries(State)])
     end || State <- [Filled, begun(Files, ?A:entries(Filled))]],
    %% The file that was put aside before is made good. Another one is not.
    ?assertEqual(forgotten, ?A:status(begun(Files ++ ["0.log.damaged.2"], ?A:entries(Filled)))).

of_other_members_nothing_is_taken_test() ->
    {Candidate, _} = ?A:handle({candidate, <<"new">>}, forgotten()),
    Joined = filled([{members, {2, #{a => <<"new">>}}}], Candidate),
    [?assertEqual({Joined, [{reply, fill, {error, other_members}}]},
                  ?A:handle({fill, fill, Step}, Joined))
     || Step <- [{registers, 1, []}, {filled, 1}, {filled, 3}]],
    ?assertMatch({_, [{reply, fill, {error, no_candidate}}]},
                 ?A:handle({fill, fill, {filled, 0}}, voter())).

filled(Steps, State) ->
    lists:foldl(fun(Step, S0) ->
                    {S1, _} = ?A:handle({fill, fill, Step}, S0),
                    {S, [{reply, fill, ok}]} = ?A:handle(committed, S1),
                    S
                end, State, Steps).

%% First the members choose it, then a majority of the partition tells all that it has.
it_is_chosen_and_filled_test() ->
    Members = {3, #{c => <<"c">>, a => <<"mine">>}},
    {Asks, [{register, get}]} = rejoin([b, c]),
    {Chooses, [{register, {cas, {2, #{c := <<"c">>}}, Members}}]} =
        ?R:handle({registered, {ok, {2, #{c => <<"c">>}}}}, Asks),
    {Joins, [{fill, {members, Members}}]} = ?R:handle({registered, ok}, Chooses),
    {First, [{ask, b, 1, Members, {registers, first}}, _]} = ?R:handle({stored, ok}, Joins),
    Page = [register(<<"k">>)],
    {Stores, [{fill, {registers, 3, Page}}]} =
        ?R:handle({reply, b, 1, {registers, Page, false}}, First),
    %% Requests come between two pages.
    {Rests, [{after_ms, 10, {rest, 2}}]} = ?R:handle({stored, ok}, Stores),
    ?assertEqual({Rests, []}, ?R:handle({timer, {asked, 1}}, Rests)),
    {Second, [{ask, b, 3, Members, {registers, <<"k">>}}, _]} =
        ?R:handle({timer, {rest, 2}}, Rests),
    ?assertEqual({Second, []}, ?R:handle({reply, b, 1, {registers, Page, true}}, Second)),
    {Last, [{fill, {registers, 3, []}}]} = ?R:handle({reply, b, 3, {registers, [], true}}, Second),
    {Other, [{ask, c, 5, Members, {registers, first}}, _]} = stored_and_rested(Last),
    {Done, [{fill, {registers, 3, []}}]} = ?R:handle({reply, c, 5, {registers, [], true}}, Other),
    {Finishes, [{fill, {filled, 3}}]} = ?R:handle({stored, ok}, Done),
    ?assertMatch({_, [done]}, ?R:handle({stored, ok}, Finishes)).

it_begins_anew_with_other_members_test() ->
    {Asks, _} = rejoin([b, c]),
    Mine = {1, #{a => <<"mine">>}},
    %% Chosen before, by a candidate that did not come to its end.
    {Joins, [{fill, {members, Mine}}]} = ?R:handle({registered, {ok, Mine}}, Asks),
    {First, _} = ?R:handle({stored, ok}, Joins),
    {Again, [{register, get}]} =
        ?R:handle({reply, b, 1, {error, {members, {2, #{a => <<"mine">>, c => <<"c">>}}}}}, First),
    {_, [{register, {cas, not_found, Mine}}]} = ?R:handle({registered, {ok, not_found}}, Again),
    %% Another candidate was first.
    {Chooses, _} = ?R:handle({registered, {ok, not_found}}, Again),
    ?assertMatch({_, [{register, {cas, {1, _}, {2, #{a := <<"mine">>, b := <<"b">>}}}}]},
                 ?R:handle({registered, {error, {conflict, {1, #{b => <<"b">>}}}}}, Chooses)).

it_waits_for_a_majority_test() ->
    {Asks, _} = rejoin([b, c, d, e]),
    Mine = {1, #{a => <<"mine">>}},
    {Joins, _} = ?R:handle({registered, {ok, Mine}}, Asks),
    {First, _} = ?R:handle({stored, ok}, Joins),
    {B, [{ask, c, 2, _, _} | _]} = ?R:handle({reply, b, 1, {error, forgotten}}, First),
    {C, [{ask, d, 3, _, _} | _]} = ?R:handle({timer, {asked, 2}}, B),
    {D0, _} = ?R:handle({reply, d, 3, {registers, [], true}}, C),
    {D, [{ask, e, 5, _, _} | _]} = stored_and_rested(D0),
    {E0, _} = ?R:handle({reply, e, 5, {registers, [], true}}, D),
    %% Two of five are none.
    {Waits, [{after_ms, FirstMs, {wait, Tag}}]} = stored_and_rested(E0),
    {Again, [{register, get}]} = ?R:handle({timer, {wait, Tag}}, Waits),
    {_, [{after_ms, SecondMs, _}]} = ?R:handle({registered, {error, {not_done, why}}}, Again),
    ?assertEqual({100, 200}, {FirstMs, SecondMs}).

stored_and_rested(Stores) ->
    {Rests, [{after_ms, 10, Timer}]} = ?R:handle({stored, ok}, Stores),
    ?R:handle({timer, Timer}, Rests).

register(Key) -> {Key, {0, 1, <<"x">>}, content(1)}.

rejoin(Others) ->
    ?R:init(#{self => a, identity => <<"mine">>, others => Others, timeout_ms => 1000,
              pause_ms => 100, rest_ms => 10}).

%% --- replicas ---------------------------------------------------------------------------------

options() ->
    #{identity => <<"mine">>, self => a, others => [b, c], configuration => mine, keys_max => 10,
      damaged => [], existing => false}.

voter() ->
    {ok, New, _} = ?A:init(options(), []),
    {Met, _} = ?A:handle({introduce, 0, b, <<"b">>}, New),
    {Told, _} = ?A:handle(committed, Met),
    {One, _} = ?A:handle({introduced, b, welcome}, Told),
    {Voter, _} = ?A:handle({introduced, c, welcome}, One),
    Voter.

forgotten() ->
    {ok, State, _} = ?A:init((options())#{existing := true}, []),
    State.

started(Entries) -> begun([], Entries).

begun(Damaged, Entries) ->
    {ok, State, _} = ?A:init((options())#{identity := <<"fresh">>, damaged := Damaged}, Entries),
    State.

content(N) -> {N, [<<N>>], <<"value", N>>}.
