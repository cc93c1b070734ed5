%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of strong buckets: what a replica answers, when it votes, what a request makes of
%% answers, what may be configured, and one replica on a disk. What clients see of many of them is
%% in
%% `weft_sim_kv_tests'.
-module(weft_kv_strong_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, weft_kv_strong_acceptor_core).
-define(P, weft_kv_strong_proposer_core).
-define(NONE, {0, 0, <<>>}).
-define(FOUNDERS, {0, #{}}).
-define(NOTHING, {0, [], not_found}).

%% --- a replica --------------------------------------------------------------------------------

a_promise_is_kept_test() ->
    {Voter, [promised]} = asked([{prepare, <<"k">>, {0, 5, <<"x">>}}], voter()),
    ?assertMatch({_, [{refused, {0, 5, <<"x">>}}, {refused, {0, 5, <<"x">>}}, accepted]},
                 asked([{prepare, <<"k">>, {0, 5, <<"a">>}},
                        {accept, <<"k">>, {0, 4, <<"z">>}, content(1)},
                        {accept, <<"k">>, {0, 5, <<"x">>}, content(2)}], Voter)),
    %% Of another key nothing was promised.
    ?assertMatch({_, [accepted]}, asked([{accept, <<"l">>, {0, 1, <<"z">>}, content(1)}], Voter)).

what_was_accepted_is_told_test() ->
    {Voter, _} = asked([{accept, <<"k">>, {0, 5, <<"x">>}, content(1)}], voter()),
    Content = content(1),
    ?assertMatch({_, [{state, {0, 5, <<"x">>}, Content}, {promise, {0, 5, <<"x">>}, Content},
                      {state, {0, 5, <<"x">>}, Content}, {state, ?NONE, ?NOTHING}]},
                 raw([{read, <<"k">>}, {prepare, <<"k">>, {0, 6, <<"y">>}}, {read, <<"k">>},
                      {read, <<"other">>}], Voter)).

%% Nor what others say of it.
nothing_is_answered_before_it_is_on_disk_test() ->
    Prepare = {prepare, <<"k">>, {0, 5, <<"x">>}},
    {Voter, Effects} = ?A:handle({vote, 1, ?FOUNDERS, Prepare}, voter()),
    ?assertEqual([{append, {promised, <<"k">>, {0, 5, <<"x">>}}}], Effects),
    {Both, []} = ?A:handle({vote, 2, ?FOUNDERS, {read, <<"k">>}}, Voter),
    ?assertEqual(2, ?A:held(Both)),
    ?assertMatch({_, [{reply, 1, {error, {failed, enospc}}},
                      {reply, 2, {error, {failed, enospc}}}]},
                 ?A:handle({not_committed, enospc}, Both)),
    ?assertMatch({_, [{reply, 1, {promise, _, _}}, {reply, 2, {state, _, _}}]},
                 ?A:handle(committed, Both)),
    {Introduced, [{append, {known, b, <<"b">>}}]} = ?A:handle({introduce, 3, b, <<"b">>}, new()),
    ?assertMatch({_, [{reply, 3, welcome}]}, ?A:handle(committed, Introduced)).

%% It is on disk, or about to be. Another sync would take the time that a slow disk does not leave.
what_is_asked_once_more_is_not_written_again_test() ->
    [begin
         {First, [{append, _}]} = ?A:handle({vote, 1, ?FOUNDERS, Message}, voter()),
         {Both, []} = ?A:handle({vote, 2, ?FOUNDERS, Message}, First),
         {Done, [{reply, 1, Reply}, {reply, 2, Reply}]} = ?A:handle(committed, Both),
         ?assertMatch({_, []}, ?A:handle({vote, 3, ?FOUNDERS, Message}, Done)),
         ?assertMatch({_, [{reply, 1, {error, _}}, {reply, 2, {error, _}}]},
                      ?A:handle({not_committed, enospc}, Both))
     end || Message <- [{prepare, <<"k">>, {0, 5, <<"x">>}},
                        {accept, <<"k">>, {0, 5, <<"x">>}, content(1)}]],
    %% What was only promised under that ballot is not accepted.
    {Promised, _} = asked([{prepare, <<"k">>, {0, 5, <<"x">>}}], voter()),
    ?assertMatch({_, [{append, _}]},
                 ?A:handle({vote, 1, ?FOUNDERS, {accept, <<"k">>, {0, 5, <<"x">>}, content(1)}},
                           Promised)).

who_is_not_known_does_not_vote_test() ->
    New = new(),
    Vote = {vote, 1, ?FOUNDERS, {read, <<"k">>}},
    ?assertEqual({New, [{reply, 1, {error, founding}}]}, ?A:handle(Vote, New)),
    {One, []} = ?A:handle({introduced, b, welcome}, New),
    ?assertEqual(founding, ?A:status(One)),
    ?assertEqual({One, [{introduce, c, <<"mine">>}]}, ?A:handle(introduce, One)),
    {Two, [{append, founded}]} = ?A:handle({introduced, c, welcome}, One),
    ?assertEqual(voting, ?A:status(Two)),
    {Refused, [{append, forgotten}]} = ?A:handle({introduced, c, forgotten}, One),
    ?assertEqual(forgotten, ?A:status(Refused)),
    ?assertEqual({Refused, [{reply, 1, {error, forgotten}}]}, ?A:handle(Vote, Refused)).

%% It is not taken for the one that it was, by anybody who was told of that.
another_identity_is_not_welcome_test() ->
    {Known, _} = ?A:handle({introduce, 1, b, <<"first">>}, new()),
    Answer = fun(Node, Identity) ->
                 {Held, Effects} = ?A:handle({introduce, 2, Node, Identity}, Known),
                 {_, More} = ?A:handle(committed, Held),
                 {reply, 2, Reply} = lists:keyfind(2, 2, Effects ++ More),
                 Reply
             end,
    ?assertEqual([welcome, forgotten, welcome, {error, no_replica}],
                 [Answer(b, <<"first">>), Answer(b, <<"second">>), Answer(c, <<"second">>),
                  Answer(d, <<"first">>)]).

a_damaged_file_does_not_vote_test() ->
    {ok, State, _} = ?A:init((options())#{damaged := ["0.log.damaged.1"]}, ?A:entries(voter())),
    ?assertEqual(forgotten, ?A:status(State)).

%% Whether others are lost, too, or not: it was told that it has been there before.
a_lost_file_of_an_existing_bucket_does_not_vote_test() ->
    {ok, State, Effects} = ?A:init((options())#{existing := true}, []),
    ?assertEqual(forgotten, ?A:status(State)),
    Written = [Entry || {append, Entry} <- Effects],
    {ok, Again, []} = ?A:init(options(), Written),
    ?assertEqual(forgotten, ?A:status(Again)),
    {ok, Voter, []} = ?A:init((options())#{existing := true}, ?A:entries(voter())),
    ?assertEqual(voting, ?A:status(Voter)).

keys_are_listed_page_by_page_test() ->
    State = lists:foldl(fun(Key, S0) ->
                            Prepare = {prepare, Key, {0, 1, <<"x">>}},
                            {S, _} = ?A:handle({vote, 1, ?FOUNDERS, Prepare}, S0),
                            S
                        end, voter(), [<<"c">>, <<"a">>, <<"b">>]),
    Page = fun(After, Max) ->
               {Held, []} = ?A:handle({vote, 2, ?FOUNDERS, {keys, After, Max}}, State),
               {_, Replies} = ?A:handle(committed, Held),
               lists:last([Reply || {reply, 2, Reply} <- Replies])
           end,
    ?assertEqual({keys, [<<"a">>, <<"b">>], false}, Page(<<>>, 2)),
    ?assertEqual({keys, [<<"c">>], true}, Page(<<"b">>, 2)),
    ?assertEqual({keys, [<<"a">>, <<"b">>, <<"c">>], true}, Page(<<>>, 3)),
    ?assertEqual({keys, [], true}, Page(<<"c">>, 3)).

%% Or all pages together would take a time that grows with the square of the keys.
a_page_of_many_keys_costs_no_more_than_one_of_few_test() ->
    Cost = fun(Count) ->
               Entries = [{promised, <<N:32>>, {0, 1, <<"x">>}} || N <- lists:seq(1, Count)],
               {ok, State, []} = ?A:init(options(), ?A:entries(voter()) ++ Entries),
               Ask = {vote, 2, ?FOUNDERS, {keys, <<500:32>>, 100}},
               {reductions, Before} = process_info(self(), reductions),
               {Held, []} = ?A:handle(Ask, State),
               {reductions, After} = process_info(self(), reductions),
               {_, [{reply, 2, {keys, [<<501:32>> | _], false}}]} = ?A:handle(committed, Held),
               After - Before
           end,
    _ = Cost(1000), % loads what it calls
    ?assert(Cost(30000) < 4 * Cost(1000)).

%% Also when the damaged file was taken away, or all others have lost theirs since.
who_has_forgotten_does_not_vote_again_test() ->
    {ok, Damaged, More} = ?A:init((options())#{damaged := ["0.log.damaged.1"]},
                                  ?A:entries(voter())),
    {Told, Told1} = ?A:handle({introduced, b, forgotten}, new()),
    [begin
         ?assertEqual([{append, forgotten}], Effects),
         {ok, Again, []} = ?A:init(options(), Entries),
         ?assertEqual(forgotten, ?A:status(Again)),
         ?assertMatch({_, [{reply, 1, {error, forgotten}}]},
                      ?A:handle({vote, 1, ?FOUNDERS, {read, <<"k">>}}, Again))
     end || {State, Effects} <- [{Damaged, More}, {Told, Told1}],
            Entries <- [?A:entries(State),
                        ?A:entries(voter()) ++ [Entry || {append, Entry} <- Effects]]].

another_configuration_is_refused_test() ->
    ?assertEqual({error, {other_configuration, mine}},
                 ?A:init((options())#{configuration := yours}, ?A:entries(voter()))).

keys_are_limited_test() ->
    ?assertMatch({_, [accepted, {error, full}, accepted, {state, ?NONE, ?NOTHING}]},
                 raw([{accept, <<"k">>, {0, 1, <<"z">>}, content(1)},
                      {accept, <<"l">>, {0, 1, <<"z">>}, content(1)},
                      {accept, <<"k">>, {0, 2, <<"z">>}, content(1)}, {read, <<"l">>}],
                     begun((options())#{keys_max := 1}))),
    %% A promise may not be forgotten, so it takes a room, too.
    ?assertMatch({_, [{state, ?NONE, ?NOTHING}, {promise, _, _}, {error, full}]},
                 raw([{read, <<"k">>}, {prepare, <<"l">>, {0, 1, <<"z">>}},
                      {prepare, <<"k">>, {0, 1, <<"z">>}}],
                     begun((options())#{keys_max := 1}))).

%% Whatever was answered, a start from what was appended knows, and from what it says itself, too.
a_restart_forgets_nothing_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_a_restart_forgets_nothing(),
                                             [{numtests, 300}, {to_file, user}]))}.

prop_a_restart_forgets_nothing() ->
    ?FORALL(Messages, list(vote()),
            begin
                {ok, New, First} = ?A:init(options(), []),
                Events = [{introduced, b, welcome}, {introduce, 0, c, <<"c">>},
                          {introduced, c, welcome}] ++ [{vote, 0, ?FOUNDERS, M} || M <- Messages],
                {Last, Effects} = lists:foldl(fun(Event, {S0, E}) ->
                                                  {S, More} = ?A:handle(Event, S0),
                                                  {S, E ++ More}
                                              end, {New, First}, Events),
                {State, _} = ?A:handle(committed, Last),
                lists:all(fun(Entries) ->
                              {ok, State, []} =:= ?A:init((options())#{identity := <<"other">>},
                                                          Entries)
                                  orelse same(State, Entries)
                          end, [[Entry || {append, Entry} <- Effects], ?A:entries(State)])
            end).

%% `welcome' is not kept: it is of no use to one that votes.
same(State, Entries) ->
    {ok, Again, []} = ?A:init((options())#{identity := <<"other">>}, Entries),
    {?A:status(State), ?A:entries(State)} =:= {?A:status(Again), ?A:entries(Again)}.

vote() ->
    Key = oneof([<<"k">>, <<"l">>]),
    Ballot = {0, range(1, 4), oneof([<<"x">>, <<"y">>])},
    oneof([{read, Key}, {prepare, Key, Ballot},
           {accept, Key, Ballot, ?LET(N, range(1, 5), content(N))}]).

options() ->
    #{identity => <<"mine">>, self => a, others => [b, c], configuration => mine, keys_max => 10,
      damaged => [], existing => false}.

new() -> element(2, ?A:init(options(), [])).

voter() -> begun(options()).

begun(Options) ->
    {ok, New, _} = ?A:init(Options, []),
    {One, _} = ?A:handle({introduced, b, welcome}, New),
    {Voter, _} = ?A:handle({introduced, c, welcome}, One),
    Voter.

content(N) -> {N, [<<N>>], <<"value", N>>}.

asked(Messages, State) ->
    {New, Replies} = raw(Messages, State),
    {New, [case Reply of {promise, _, _} -> promised; _ -> Reply end || Reply <- Replies]}.

raw(Messages, State) ->
    lists:foldl(fun(Message, {S0, Replies}) ->
                    {S1, Effects} = ?A:handle({vote, ref, ?FOUNDERS, Message}, S0),
                    {S2, More} = ?A:handle(committed, S1),
                    {S2, Replies ++ [Reply || {reply, ref, Reply} <- Effects ++ More]}
                end, {State, []}, Messages).

%% --- a request --------------------------------------------------------------------------------

a_majority_that_says_the_same_is_a_read_test() ->
    {Read, Effects} = begin_request(get),
    ?assertEqual([a, b, c], [Node || {ask, Node, 1, ?FOUNDERS, {read, <<"k">>}} <- Effects]),
    {One, []} = reply(a, 1, {state, {0, 3, <<"x">>}, content(1)}, Read),
    {Two, []} = reply(b, 1, {state, {0, 2, <<"x">>}, content(2)}, One),
    ?assertMatch({_, [{answer, {ok, <<"value", 1>>}}]},
                 reply(c, 1, {state, {0, 3, <<"x">>}, content(1)}, Two)),
    %% No two are alike: the highest has to be brought to a majority first.
    {_, Prepares} = reply(c, 1, {state, ?NONE, ?NOTHING}, Two),
    ?assertEqual(3, length([P || {ask, _, 2, ?FOUNDERS, {prepare, _, _} = P} <- Prepares])).

the_highest_of_a_majority_is_written_back_test() ->
    {Put, _} = begin_request({cas, <<"value", 9>>, <<"new">>}),
    {One, []} = reply(a, 1, {promise, {0, 2, <<"x">>}, content(1)}, Put),
    {Two, Accepts} = reply(c, 1, {promise, {0, 3, <<"x">>}, content(2)}, One),
    Content = content(2),
    ?assertMatch([{accept, <<"k">>, {0, 7, <<"id">>}, Content} | _],
                 [M || {ask, _, 2, ?FOUNDERS, M} <- Accepts]),
    {Three, []} = reply(a, 2, accepted, Two),
    ?assertMatch({_, [{answer, {error, {conflict, <<"value", 2>>}}}]},
                 reply(b, 2, accepted, Three)).

%% Another request has found what the first try left, and more were written since.
its_own_write_is_not_repeated_test() ->
    {Again, Ballot} = retried(?NOTHING),
    Found = {2, [<<"z">>, <<"id">>], <<"later">>},
    {One, []} = reply(a, 4, {promise, {0, 8, <<"z">>}, Found}, Again),
    {Two, Accepts} = reply(b, 4, {promise, ?NONE, ?NOTHING}, One),
    ?assertMatch([{accept, <<"k">>, Ballot, Found} | _],
                 [M || {ask, _, 5, ?FOUNDERS, M} <- Accepts]),
    {Three, []} = reply(a, 5, accepted, Two),
    ?assertMatch({_, [{answer, ok}]}, reply(b, 5, accepted, Three)).

%% Whoever asks the third replica, where the first try may be, has to find a higher ballot.
a_conflict_after_a_first_try_is_written_test() ->
    {Again, Ballot} = retried({cas, <<"value", 1>>, <<"new">>}, content(1)),
    Found = content(0),
    {One, []} = reply(b, 4, {promise, {0, 1, <<"z">>}, Found}, Again),
    {Two, Accepts} = reply(c, 4, {promise, {0, 1, <<"z">>}, Found}, One),
    ?assertMatch([{accept, <<"k">>, Ballot, Found} | _],
                 [M || {ask, _, 5, ?FOUNDERS, M} <- Accepts]),
    {Three, []} = reply(b, 5, accepted, Two),
    ?assertMatch({_, [{answer, {error, {conflict, <<"value", 0>>}}}]},
                 reply(c, 5, accepted, Three)),
    %% Without one, it is so already.
    {Cas, _} = begin_request({cas, <<"value", 1>>, <<"new">>}),
    {Four, []} = reply(b, 1, {promise, {0, 1, <<"z">>}, Found}, Cas),
    ?assertMatch({_, [{answer, {error, {conflict, <<"value", 0>>}}}]},
                 reply(c, 1, {promise, {0, 1, <<"z">>}, Found}, Four)).

too_many_others_wrote_test() ->
    {Again, _} = retried(?NOTHING),
    {One, []} = reply(a, 4, {promise, {0, 8, <<"z">>}, {9, [], <<"later">>}}, Again),
    ?assertMatch({_, [{answer, {error, {unknown, contention}}}]},
                 reply(b, 4, {promise, ?NONE, ?NOTHING}, One)).

%% Its first ballot was refused by a majority after it was sent to be accepted.
retried(Content) -> retried({put, <<"new">>}, Content).

retried(Request, Content) ->
    {Put, _} = begin_request(Request),
    {One, []} = reply(a, 1, {promise, ?NONE, Content}, Put),
    {Two, _} = reply(b, 1, {promise, ?NONE, Content}, One),
    {Three, []} = reply(a, 2, {refused, {0, 8, <<"z">>}}, Two),
    {Four, [{after_ms, _, {phase, 3}}]} = reply(b, 2, {refused, {0, 8, <<"z">>}}, Three),
    {Again, Prepares} = ?P:handle({timer, {phase, 3}}, Four),
    [Ballot | _] = [B || {ask, _, 4, ?FOUNDERS, {prepare, _, B}} <- Prepares],
    ?assert(Ballot > {0, 8, <<"z">>}),
    {Again, Ballot}.

errors_tell_what_may_have_happened_test() ->
    {Put, _} = begin_request({put, <<"new">>}),
    {One, []} = reply(a, 1, {error, nodedown}, Put),
    ?assertMatch({_, [{answer, {error, {not_done, {no_quorum, #{needed := 2, answered := 0,
                                                                failed := [{a, nodedown},
                                                                           {b, founding}]}}}}}]},
                 reply(b, 1, {error, founding}, One)),
    ?assertMatch({_, [{answer, {error, {not_done, _}}}]}, ?P:handle({timer, deadline}, One)),
    {Two, []} = reply(b, 1, {promise, ?NONE, ?NOTHING}, One),
    {Three, _} = reply(c, 1, {promise, ?NONE, ?NOTHING}, Two),
    {Done, [{answer, {error, {unknown, _}}}]} = ?P:handle({timer, deadline}, Three),
    ?assertEqual({Done, []}, reply(c, 2, accepted, Done)).

answers_are_counted_once_and_late_ones_not_at_all_test() ->
    {Put, _} = begin_request({put, <<"new">>}),
    {One, []} = reply(a, 1, {promise, ?NONE, ?NOTHING}, Put),
    ?assertEqual({One, []}, reply(a, 1, {promise, ?NONE, ?NOTHING}, One)),
    {Two, _} = reply(b, 1, {promise, ?NONE, ?NOTHING}, One),
    ?assertEqual({Two, []}, reply(c, 1, {promise, {0, 9, <<"x">>}, content(1)}, Two)).

%% A sync takes longer than the time after which it asks again, and the answer still counts.
a_slow_disk_lets_a_write_through_test() ->
    {Put, _} = begin_request({put, <<"new">>}),
    {One, []} = reply(a, 1, {promise, ?NONE, ?NOTHING}, Put),
    Prepare = {prepare, <<"k">>, {0, 7, <<"id">>}},
    {Late, Again} = ?P:handle({timer, {phase, 1}}, One),
    ?assertMatch([{ask, b, 1, ?FOUNDERS, Prepare}, {ask, c, 1, ?FOUNDERS, Prepare},
                  {after_ms, _, {phase, 1}}], Again),
    {Two, [{ask, a, 2, ?FOUNDERS, Accept} | _]} = reply(c, 1, {promise, ?NONE, ?NOTHING}, Late),
    {Slow, Asks} = ?P:handle({timer, {phase, 2}}, Two),
    ?assertEqual([{Node, Accept} || Node <- [a, b, c]],
                 [{Node, Message} || {ask, Node, 2, ?FOUNDERS, Message} <- Asks]),
    {Three, []} = reply(b, 2, accepted, Slow),
    ?assertEqual({Three, []}, reply(b, 2, {refused, {0, 9, <<"z">>}}, Three)),
    ?assertMatch({_, [{answer, ok}]}, reply(a, 2, accepted, Three)).

who_has_failed_is_asked_again_test() ->
    {Put, _} = begin_request({put, <<"new">>}),
    {One, []} = reply(a, 1, {error, not_running}, Put),
    {Late, Asks} = ?P:handle({timer, {phase, 1}}, One),
    ?assertEqual([a, b, c], [Node || {ask, Node, 1, ?FOUNDERS, _} <- Asks]),
    {Two, []} = reply(a, 1, {error, not_running}, Late),
    {Three, []} = reply(a, 1, {promise, ?NONE, ?NOTHING}, Two),
    ?assertEqual({Three, []}, reply(a, 1, {error, timeout}, Three)),
    %% It does not count among those that have failed.
    {Four, []} = reply(b, 1, {error, nodedown}, Three),
    ?assertMatch({_, [{ask, a, 2, ?FOUNDERS, {accept, _, _, _}} | _]},
                 reply(c, 1, {promise, ?NONE, ?NOTHING}, Four)).

%% Those that do not say the same are not asked again: it is written.
a_read_does_not_wait_for_who_hangs_test() ->
    {Read, _} = begin_request(get),
    {One, []} = reply(a, 1, {state, {0, 3, <<"x">>}, content(1)}, Read),
    {_, Again} = ?P:handle({timer, {phase, 1}}, One),
    ?assertEqual([b, c], [Node || {ask, Node, 1, ?FOUNDERS, {read, <<"k">>}} <- Again]),
    {Two, []} = reply(b, 1, {state, {0, 2, <<"x">>}, content(2)}, One),
    {_, Prepares} = ?P:handle({timer, {phase, 1}}, Two),
    ?assertEqual([a, b, c], [Node || {ask, Node, 2, ?FOUNDERS, {prepare, _, _}} <- Prepares]).

begin_request(Request) ->
    ?P:init(Request, #{key => <<"k">>, id => <<"id">>, replicas => [a, b, c], members => ?FOUNDERS,
                       counter => 7, timeout_ms => 1000}).

reply(Node, Tag, Reply, State) -> ?P:handle({reply, Node, Tag, Reply}, State).

%% --- configuration ----------------------------------------------------------------------------

buckets_test_() ->
    Good = #{consistency => strong, voters => [b, a, c], dir => "x"},
    {ok, Checked} = weft_kv_bucket:check(Good),
    [?_assertMatch(#{voters := [a, b, c], n := 3, partitions := 16}, Checked),
     ?_assertMatch({ok, #{r := 2}}, weft_kv_bucket:check(#{consistency => eventual})),
     ?_assertMatch({ok, #{timeout_ms := 7}},
                   weft_kv_strong_bucket:options(#{timeout_ms => 7}, Checked))]
        ++ [?_assertEqual({error, Reason}, weft_kv_bucket:check(maps:merge(Good, More)))
            || {More, Reason} <-
                   [{#{consistency => strange},
                     {bad_option, {consistency, strange, {eventual, 'or', strong}}}},
                    {#{n => 2}, {bad_option, {n, 2, {one_of, [1, 3, 5, 7]}}}},
                    {#{n => 5}, {bad_option, {voters, [b, a, c], {at_least, 5}}}},
                    {#{voters => [a, a, b]}, {bad_option, {voters, [a, a, b], distinct_nodes}}},
                    {#{voters => [a, b, c | d]},
                     {bad_option, {voters, [a, b, c | d], distinct_nodes}}},
                    {#{w => 1}, {bad_option, {w, 1, not_in_strong_buckets}}},
                    {#{siblings => true}, {bad_option, {siblings, true, not_in_strong_buckets}}},
                    {#{ttl_ms => 5}, {bad_option, {ttl_ms, 5, not_in_strong_buckets}}},
                    {#{evict => true}, {bad_option, {evict, true, not_in_strong_buckets}}},
                    {#{dir => none}, {bad_option, {dir, none, directory}}},
                    {#{x => 1}, {unknown_option, x}}]]
        ++ [?_assertEqual({error, {missing, {Key, in_strong_buckets}}},
                          weft_kv_bucket:check(maps:remove(Key, Good))) || Key <- [dir, voters]]
        ++ [?_assertEqual({error, Reason}, weft_kv_strong_bucket:options(Given, Checked))
            || {Given, Reason} <- [{#{context => <<>>}, {unknown_option, context}},
                                   {#{timeout_ms => 0},
                                    {bad_option, {timeout_ms, 0, {from, 1}}}}]].

%% --- on a disk --------------------------------------------------------------------------------

%% A bucket with one replica: it has nobody to be known to.
on_disk_test_() ->
    {setup, fun bucket/0, fun clean/1,
     fun({_Dir, Options}) ->
         {timeout, 60, fun() -> on_disk(Options) end}
     end}.

on_disk(Options) ->
    Ask = fun(Request) ->
              weft_kv_strong_request:run(box, <<"k">>, Request, Options,
                                         weft_kv_admission:new(10))
          end,
    {ok, First} = started(Options),
    ?assertEqual({ok, not_found}, Ask(get)),
    ?assertEqual(ok, Ask({put, <<"a">>})),
    ?assertEqual(ok, Ask({cas, <<"a">>, <<"b">>})),
    ?assertEqual({error, {conflict, <<"b">>}}, Ask({cas, <<"a">>, <<"c">>})),
    %% What nobody knows ends nothing.
    First ! stray,
    ?assertMatch({error, _}, gen_server:call(First, stray)),
    ?assertMatch({error, {other_configuration, _}},
                 gen_server:call(First, {vote, 2, another, {read, <<"k">>}})),
    ended(First),
    ?assertMatch({error, {not_done, {no_quorum, #{failed := [{_, not_running}]}}}},
                 Ask({put, <<"c">>})),
    {ok, Second} = started(Options),
    ?assertEqual({ok, <<"b">>}, Ask(get)),
    ended(Second),
    ok = what_a_later_version_may_ask(Options),
    ok = what_another_version_has_written(Options),
    %% It may not be configured otherwise, nor be of another node.
    ?assertMatch({error, {strong_buckets_stay_as_they_were, _}},
                 started(Options#{partitions := 2})),
    %% What is behind the damage is forgotten, perhaps a promise.
    File = filename:join(weft_kv_strong_bucket:dir(box, Options), "0.log"),
    {ok, Bytes} = file:read_file(File),
    Half = byte_size(Bytes) div 2,
    <<Before:Half/binary, Byte, After/binary>> = Bytes,
    ok = file:write_file(File, [Before, Byte bxor 255, After]),
    {ok, Third} = started(Options),
    ?assertEqual(forgotten, weft_kv_strong_acceptor:status(box, 0)),
    ?assertMatch({error, {not_done, {no_quorum, #{failed := [{_, forgotten}]}}}}, Ask(get)),
    ended(Third),
    ok = nothing_aside(File),
    {ok, Fourth} = started(Options),
    ?assertEqual(forgotten, weft_kv_strong_acceptor:status(box, 0)),
    ended(Fourth).

%% At a higher priority all of them ask before the process of any request runs.
no_more_run_than_may_though_all_come_at_once_test_() ->
    {setup, fun bucket/0, fun clean/1,
     fun({_Dir, Options}) ->
         {timeout, 60, fun() -> all_come_at_once(Options) end}
     end}.

all_come_at_once(Options) ->
    {ok, Voter} = started(Options),
    ok = sys:suspend(Voter),
    Running = weft_kv_admission:new(5),
    Self = self(),
    Ask = fun() ->
              Self ! {self(), weft_kv_strong_request:run(box, <<"k">>, get, Options, Running)}
          end,
    Callers = [spawn_opt(Ask, [link, {priority, high}]) || _ <- lists:seq(1, 100)],
    %% Those that run wait for the replica.
    weft_test_nodes:until(fun() ->
        {messages, Messages} = process_info(Self, messages),
        length([refused || {_, {error, overload}} <- Messages]) >= 95 end),
    ok = sys:resume(Voter),
    Answers = [receive {Caller, Answer} -> Answer end || Caller <- Callers],
    ?assertEqual([{error, overload}, {ok, not_found}], lists:usort(Answers)),
    weft_test_nodes:until(fun() -> weft_kv_admission:count(Running) =:= 0 end),
    ended(Voter).

%% It is no reason to end.
what_a_later_version_may_ask(Options) ->
    {ok, Voter} = started(Options),
    Configuration = weft_kv_strong_bucket:configuration(box, Options),
    [?assertMatch({error, _}, gen_server:call(Voter, {vote, 2, Configuration, Asked}))
     || Asked <- [{?FOUNDERS, {what, <<"k">>}}, {?FOUNDERS, {prepare, <<"k">>, 1}},
                  {what, {read, <<"k">>}}, what]],
    ?assertMatch({error, _}, gen_server:call(Voter, {introduce, 2, Configuration, what})),
    ended(Voter).

%% What it has promised can not be read here, so it must not vote.
what_another_version_has_written(Options) ->
    Dir = weft_kv_strong_bucket:dir(box, Options),
    File = filename:join(Dir, "0.log"),
    {ok, Bytes} = file:read_file(File),
    {ok, Log0, _} = weft_kv_log:open(Dir, 0, weft_kv_strong),
    WithoutEpoch = {promised, <<"k">>, {1, <<"id">>}},
    {ok, Log} = weft_kv_log:commit(weft_kv_log:append(WithoutEpoch, Log0)),
    ok = weft_kv_log:close(Log),
    {ok, Written} = file:read_file(File),
    ?assertEqual({error, {written_by_another_version, File}}, started(Options)),
    ?assertEqual({ok, Written}, file:read_file(File)),
    file:write_file(File, Bytes).

nothing_aside(File) ->
    [_ | _] = Names = filelib:wildcard(File ++ ".damaged.*"),
    lists:foreach(fun(Name) -> ok = file:delete(Name) end, Names).

%% A second node of the same name would promise other things in the same file.
a_directory_is_of_one_node_test_() ->
    {setup, fun bucket/0, fun clean/1,
     fun({_Dir, Options}) ->
         ?_test(begin
                    Dir = weft_kv_strong_bucket:dir(box, Options),
                    {ok, Lock} = weft_directory_lock:start_link(Dir, weft_kv_strong),
                    Start = fun() -> weft_kv_strong_sup:start_link(#{box => Options}) end,
                    ?assertMatch({error, {shutdown, {failed_to_start_child, _,
                                                     {directory_in_use, _}}}},
                                 weft_test_trapping:run(Start)),
                    ok = gen_server:stop(Lock)
                end)
     end}.

%% Another node may have had the directory, and have promised something there, without a trace here.
what_ends_its_lock_starts_the_replica_again_test_() ->
    {setup, fun bucket/0, fun clean/1,
     fun({_Dir, Options}) ->
         {timeout, 30,
          fun() ->
              {ok, Sup} = weft_kv_strong_sup:start_link(#{box => Options}),
              Replica = whereis(weft_kv_strong_bucket:name(box, 0)),
              [Lock] = [Pid || {{lock, _}, Pid, _, _} <- supervisor:which_children(Sup)],
              exit(Lock, kill),
              weft_test_nodes:until(fun() ->
                                        Now = whereis(weft_kv_strong_bucket:name(box, 0)),
                                        is_pid(Now) andalso Now =/= Replica
                                    end),
              ?assertEqual(voting, weft_kv_strong_acceptor:status(box, 0)),
              %% It ends after its supervisor, and the next case has one of the same name.
              Ref = monitor(process, weft_kv_strong_bucket:name(box, 0)),
              ended(Sup),
              receive {'DOWN', Ref, process, _, _} -> ok end
          end}
     end}.

%% A long life does not make a long file.
%% All of them write the same, and would write their files anew at the same time.
replicas_take_turns_test() ->
    Nodes = [list_to_atom([C | "@h"]) || C <- "abcdefg"],
    {ok, Options} = weft_kv_bucket:check(#{consistency => strong, voters => Nodes, dir => "d"}),
    Turns = [[weft_kv_strong_bucket:turn(P, Node, Options)
              || Node <- weft_kv_strong_bucket:replicas(P, Options)] || P <- lists:seq(0, 15)],
    [begin
         ?assert(lists:all(fun(Turn) -> Turn >= 0 andalso Turn < 1 end, Of)),
         [First, Second, Third] = lists:sort(Of),
         [?assert(Gap > 0.33 andalso Gap < 0.34)
          || Gap <- [Second - First, Third - Second, 1 + First - Third]]
     end || Of <- Turns],
    ?assert(length(lists:usort([hd(Of) || Of <- Turns])) > 10).

the_file_is_written_anew_test_() ->
    {setup, fun bucket/0, fun clean/1,
     fun({_Dir, Options}) ->
         {timeout, 60, fun() -> written_anew(Options) end}
     end}.

written_anew(Options) ->
    {ok, Pid} = started(Options),
    Value = binary:copy(<<"v">>, 100000),
    Run = fun(Request) ->
              weft_kv_strong_request:run(box, <<"k">>, Request, Options,
                                         weft_kv_admission:new(10))
          end,
    [?assertEqual(ok, Run({put, <<Value/binary, N>>})) || N <- lists:seq(1, 30)],
    File = filename:join(weft_kv_strong_bucket:dir(box, Options), "0.log"),
    ?assert(filelib:file_size(File) < 2500000),
    ended(Pid),
    {ok, Again} = started(Options),
    ?assertEqual({ok, <<Value/binary, 30>>}, Run(get)),
    ended(Again).

bucket() ->
    Dir = filename:join(["/tmp", "weft_kv_strong_tests" ++ os:getpid()
                         ++ integer_to_list(erlang:unique_integer([positive]))]),
    {ok, Options} = weft_kv_bucket:check(#{consistency => strong, voters => [node()], n => 1,
                                           partitions => 1, dir => Dir, timeout_ms => 20000}),
    {Dir, Options}.

clean({Dir, _Options}) -> ok = file:del_dir_r(Dir).

started(Options) ->
    _ = process_flag(trap_exit, true),
    weft_kv_strong_acceptor:start_link(box, 0, Options).

ended(Pid) ->
    Ref = monitor(process, Pid),
    true = unlink(Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.
