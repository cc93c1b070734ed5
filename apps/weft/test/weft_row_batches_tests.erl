%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node tells another one at the beginning of a session, in batches: how much of it is
%% on its way, changes of rows in between, and nodes of earlier versions.
-module(weft_row_batches_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, weft_core_net).
-define(CORE, weft_names_eventual_core).
-define(ROWS, weft_own_rows_core).
-define(BATCH_BYTES, 4194304).
-define(MIB, 1048576).

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, 300}, quiet]))}}
     || {Name, Property} <- [{"one batch is on its way, and all is told", prop_told()},
                             {"an earlier version is told the same", prop_told_to_earlier()}]].

%% --- any schedule -----------------------------------------------------------------------------

%% Rows of any size, some of which fill a batch, change while they are told.
step() ->
    frequency([{6, {put, key(), oneof([0, 1, 2, 5])}}, {4, {delete, key()}},
               {12, {deliver, oneof([ab, ba])}}, {4, {fire, oneof([a@x, b@x])}},
               {1, {cut, oneof([broken, noconnection])}}, {3, heal}, {1, crash}]).

key() -> range(1, 8).

prop_told() ->
    ?FORALL(Steps, ?SIZED(Size, resize(10 * Size, list(step()))),
            begin
                Net = lists:foldl(fun told_step/2, pair(), Steps),
                End = ?N:settle(Net),
                shown(a@x, End) =:= shown(b@x, End)
            end).

pair() -> ?N:new(?CORE, [a@x, b@x], #{scope => s}).

told_step({put, Key, Mib}, Net) ->
    ?N:command(a@x, {re_register, Key, ?N:pid(a@x, Key), ?N:large(Mib * ?MIB), 1, -1}, Net);
told_step({delete, Key}, Net) -> ?N:command(a@x, {unregister, Key}, Net);
told_step({deliver, ab}, Net) -> bounded(?N:deliver(a@x, b@x, Net));
told_step({deliver, ba}, Net) -> bounded(?N:deliver(b@x, a@x, Net));
told_step({fire, Node}, Net) -> ?N:fire(Node, Net);
told_step({cut, Reason}, Net) -> ?N:cut(a@x, b@x, Reason, Net);
told_step(heal, Net) -> bounded(?N:heal(a@x, b@x, Net));
told_step(crash, Net) -> ?N:crash(b@x, Net).

%% Of questions and answers about batches there is one.
bounded(Net) ->
    Open = [Batch || {1, asked, {batch, _} = Batch} <- ?N:queued(a@x, b@x, Net)]
        ++ [Batch || {1, heard, {batch, _} = Batch} <- ?N:queued(b@x, a@x, Net)],
    ?assertMatch({_, true}, {Open, length(Open) =< 1}),
    Net.

shown(Node, Net) -> maps:map(fun(_, {Pid, Meta, _, _}) -> {Pid, Meta} end, ?N:views(Node, Net)).

%% --- what an earlier version does with it -----------------------------------------------------

-record(earlier, {rows = #{}, told = #{}, seq = 0}).

%% In an earlier version a change did not come before all rows had been told. It answers questions
%% about whatever Seq, or none.
prop_told_to_earlier() ->
    Step = frequency([{6, {put, key(), oneof([0, 1, 2, 5])}}, {4, {delete, key()}}, {6, deliver},
                      {4, flush}]),
    ?FORALL({Steps, Answers}, {list(Step), boolean()},
            begin
                Rows0 = lists:foldl(fun(Key, R) -> put_row(Key, ?N:large(2 * ?MIB), R) end,
                                    ?ROWS:new(), lists:seq(1, 8)),
                {[], Rows, Effects} = ?ROWS:up(b@x, Rows0),
                %% What it knew in a session before.
                Known = #earlier{rows = #{stale => 1, 1 => old}},
                Run0 = {Rows, sent(Effects), Known, Answers},
                Run = lists:foldl(fun earlier_step/2, hears(Run0), Steps ++ [flush]),
                {End, [], #earlier{rows = Told, seq = Seq}, _} = delivered_all(Run),
                {Told, Seq} =:= {own(End), ?ROWS:seq(End)}
            end).

hears({_, _, _, true} = Run) ->
    lists:foldl(fun from_earlier/2, Run, [{1, all}, {1, hears}, {1, complete, 0}]);
hears({_, _, _, false} = Run) ->
    lists:foldl(fun from_earlier/2, Run, [{1, all}, {1, complete, 0}]).

put_row(Key, Value, Rows0) ->
    {_, Rows, _} = ?ROWS:put(Key, Value, Rows0),
    Rows.

own(Rows) ->
    maps:from_list([{Key, Value} || Key <- lists:seq(1, 8),
                                    {ok, Value} <- [?ROWS:find(Key, Rows)]]).

sent(Effects) -> [Msg || {send, b@x, Msg} <- Effects].

earlier_step({put, Key, Mib}, Run) ->
    setelement(1, Run, put_row(Key, ?N:large(Mib * ?MIB), element(1, Run)));
earlier_step({delete, Key}, {Rows0, Queue, Earlier, Answers}) ->
    {_, Rows, _} = ?ROWS:delete(Key, Rows0),
    {Rows, Queue, Earlier, Answers};
earlier_step(flush, {Rows0, Queue, Earlier, Answers}) ->
    {[], Rows, Effects} = ?ROWS:timer(rows_flush, Rows0),
    {Rows, Queue ++ sent(Effects), Earlier, Answers};
earlier_step(deliver, {_, [], _, _} = Run) -> Run;
earlier_step(deliver, {Rows, [{1, asked, What} | Queue], Earlier, true}) ->
    from_earlier({1, heard, What}, {Rows, Queue, Earlier, true});
earlier_step(deliver, {Rows, [Msg | Queue], Earlier, Answers}) ->
    {Rows, Queue, earlier(Msg, Earlier), Answers}.

from_earlier(Msg, {Rows0, Queue, Earlier, Answers}) ->
    {[], Rows, Effects} = ?ROWS:message(b@x, Msg, Rows0),
    {Rows, Queue ++ sent(Effects), Earlier, Answers}.

delivered_all({_, [], _, _} = Run) -> Run;
delivered_all(Run) -> delivered_all(earlier_step(deliver, Run)).

earlier({1, all}, Earlier) ->
    Earlier#earlier{told = #{}, seq = 0};
earlier({1, rows, Pairs}, #earlier{rows = Rows, told = Told} = Earlier) when is_map(Told) ->
    New = maps:from_list(Pairs),
    Earlier#earlier{rows = maps:merge(Rows, New), told = maps:merge(Told, New)};
earlier({1, complete, Seq}, #earlier{rows = Rows, told = Told} = Earlier) when is_map(Told) ->
    Earlier#earlier{rows = maps:with(maps:keys(Told), Rows), told = all, seq = Seq};
earlier({1, changes, Seq, Changes}, #earlier{told = Told} = Earlier) ->
    %% Who waits for a change is answered by its number.
    true = Told =:= all orelse Seq =:= 0,
    Rows = lists:foldl(fun({Key, {put, Value}}, R) -> R#{Key => Value};
                          ({Key, delete}, R) -> maps:remove(Key, R)
                       end, Earlier#earlier.rows, Changes),
    Earlier#earlier{rows = Rows, seq = Seq};
earlier({1, What, _}, Earlier) when What =:= asked; What =:= heard; What =:= new -> Earlier;
earlier({1, hears}, Earlier) -> Earlier.

%% --- one by one -------------------------------------------------------------------------------

registered(Numbers, Mib, Net) ->
    lists:foldl(fun(Number, N) ->
                        ?N:command(b@x, {re_register, Number, ?N:pid(b@x, Number),
                                         ?N:large(Mib * ?MIB), Number, -1}, N)
                end, Net, Numbers).

%% b@x has so many large names, and has begun to tell them.
telling(Numbers) -> ?N:heal(a@x, b@x, ?N:fire(b@x, registered(Numbers, 3, pair()))).

%% The messages that wait arrive, those that follow from them do not.
delivered(From, To, Net) ->
    lists:foldl(fun(_, N) -> ?N:deliver(From, To, N) end, Net, ?N:queued(From, To, Net)).

names(Node, Net) -> lists:sort(maps:keys(?N:views(Node, Net))).

%% A hundred megabytes: all of them are there in the end, and few of them were on their way.
rows_wait_for_the_batch_before_test() ->
    Net0 = ?N:heal(a@x, b@x, ?N:fire(b@x, registered(lists:seq(1, 100), 1, pair()))),
    {Sizes, Net} = batches(Net0, []),
    ?assertEqual(lists:seq(1, 100), names(a@x, Net)),
    ?assert(length(Sizes) >= 20),
    ?assert(lists:max(Sizes) < ?BATCH_BYTES + 2 * ?MIB).

batches(Net, Sizes) ->
    case ?N:queued(b@x, a@x, Net) of
        [] -> {Sizes, Net};
        Queued ->
            Next = delivered(a@x, b@x, delivered(b@x, a@x, Net)),
            batches(Next, [erlang:external_size(Queued) | Sizes])
    end.

%% As many as fit into one batch are told without a question.
a_few_rows_take_no_round_trip_test() ->
    Net = ?N:heal(a@x, b@x, ?N:fire(b@x, registered(lists:seq(1, 3), 1, pair()))),
    ?assertEqual([], [What || {1, asked, What} <- ?N:queued(b@x, a@x, Net)]),
    ?assertEqual([1, 2, 3], names(a@x, delivered(b@x, a@x, Net))).

%% 25,000 members are three batches.
many_small_rows_are_told_in_batches_test() ->
    Join = fun(Number, N) -> ?N:command(a@x, {join, Number, [?N:pid(a@x, 1)]}, N) end,
    Net0 = lists:foldl(Join, ?N:new(weft_pg_core, [a@x, b@x], #{}), lists:seq(1, 25000)),
    Net = ?N:heal(a@x, b@x, ?N:fire(a@x, Net0)),
    ?assertEqual(10000, length(names(b@x, delivered(a@x, b@x, Net)))),
    ?assertEqual(25000, length(names(b@x, ?N:settle(Net)))).

%% Its batch has not been sent. The node knew it from a session before.
a_row_that_is_deleted_meanwhile_is_not_told_test() ->
    Known = ?N:settle(registered(lists:seq(1, 6), 3, pair())),
    Begun = ?N:heal(a@x, b@x, ?N:cut(a@x, b@x, broken, Known)),
    [Last | _] = lists:seq(1, 6) -- told(?N:queued(b@x, a@x, Begun)),
    %% The first timer is that of the session that was lost.
    Deleted = ?N:fire(b@x, ?N:fire(b@x, ?N:command(b@x, {unregister, Last}, Begun))),
    AtOnce = delivered(b@x, a@x, Deleted),
    ?assertEqual(lists:seq(1, 6) -- [Last], names(a@x, AtOnce)),
    ?assertEqual(lists:seq(1, 6) -- [Last], names(a@x, ?N:settle(AtOnce))).

told(Messages) -> [Key || {1, rows, Rows} <- Messages, {Key, _} <- Rows].

%% It is no row of those that there were at the beginning, and is not taken for one that is gone.
a_row_that_is_new_meanwhile_stays_test() ->
    Begun = telling(lists:seq(1, 6)),
    New = delivered(b@x, a@x, ?N:fire(b@x, registered([7], 0, Begun))),
    ?assert(lists:member(7, names(a@x, New))),
    ?assertEqual(lists:seq(1, 7), names(a@x, ?N:settle(New))).

%% Not before all rows have been told has a change arrived with all before it.
who_waits_for_a_change_waits_for_all_rows_test() ->
    Begun = telling(lists:seq(1, 6)),
    [{_, {ok, Seq}} | _] = ?N:replies(Begun),
    Waits = ?N:command(a@x, await, {await, b@x, Seq}, Begun),
    Changed = ?N:fire(b@x, ?N:command(b@x, {unregister, 1}, Waits)),
    First = delivered(b@x, a@x, Changed),
    ?assertNot(lists:keymember(await, 1, ?N:replies(First))),
    ?assert(lists:keymember(await, 1, ?N:replies(?N:settle(First)))).

%% Its batch was sent before. The change waits to be sent when the last batch could be.
a_change_has_arrived_when_it_is_shown_test() ->
    Begun = telling([1, 2, 3]),
    Changed = ?N:command(b@x, changed, {unregister, 1}, Begun),
    {changed, {ok, Seq}} = lists:keyfind(changed, 1, ?N:replies(Changed)),
    Waits = ?N:command(a@x, await, {await, b@x, Seq}, Changed),
    First = delivered(b@x, a@x, Waits),
    ?assertEqual([1, 2], names(a@x, First)),
    ?assertNot(lists:keymember(await, 1, ?N:replies(First))),
    {_, Complete} = batches(delivered(a@x, b@x, First), []),
    ?assertEqual([2, 3], names(a@x, Complete)),
    ?assert(lists:keymember(await, 1, ?N:replies(Complete))).

%% --- who waits until others have heard ---------------------------------------------------------

waiting(Conflict) ->
    Apart = ?N:new(?CORE, [a@x, b@x], #{scope => s, wait => all, conflict => Conflict}),
    ?N:heal(a@x, b@x, ?N:fire(b@x, registered(lists:seq(1, 6), 3, Apart))).

%% The one who waits here was answered before the other node was told all, if at all.
who_is_answered_has_been_told_before_test() ->
    Net = ?N:command(b@x, new, {register, 7, ?N:pid(b@x, 7), m, 7}, waiting(oldest)),
    Asked = ?N:fire(b@x, ?N:fire(b@x, Net)),
    ?assertEqual(lists:seq(1, 7), names(a@x, until_answered(new, Asked))).

until_answered(Ref, Net) ->
    case lists:keymember(Ref, 1, ?N:replies(Net)) of
        true -> Net;
        false -> until_answered(Ref, ?N:deliver(b@x, a@x, ?N:deliver(a@x, b@x, Net)))
    end.

%% The name is in a batch that has not been sent when b@x hears of the other claim. The claim is
%% the better one, but the function wants that of b@x. Who has not been answered is told by that.
who_is_answered_knows_what_the_other_had_test() ->
    Begun = waiting(fun of_b/3),
    [Last | _] = lists:seq(1, 6) -- told(?N:queued(b@x, a@x, Begun)),
    Claim = {register, Last, ?N:pid(a@x, 1), meta, 0},
    Asked = ?N:fire(a@x, ?N:fire(a@x, ?N:command(a@x, claim, Claim, Begun))),
    Net = ?N:settle_but(rows_tick, Asked),
    ?assertEqual({claim, {error, {taken, ?N:pid(b@x, Last)}}},
                 lists:keyfind(claim, 1, ?N:replies(Net))),
    ?assert(lists:member(?N:pid(a@x, 1), ?N:alive(Net))),
    ?assertEqual(shown(a@x, Net), shown(b@x, Net)).

of_b(_Via, {Pid, _, _}, _) when node(Pid) =:= b@x -> Pid;
of_b(_Via, _, {Pid, _, _}) -> Pid.

%% Two register a name while one is told what the other one has: nobody's function is called.
who_register_at_once_meanwhile_have_no_conflict_test_() ->
    [fun() ->
             Begun = delivered(a@x, b@x, waiting(fun of_nobody/3)),
             Both = lists:foldl(fun({Node, Us}, N) ->
                                        Claim = {register, n, ?N:pid(Node, 9), m, Us},
                                        ?N:command(Node, Node, Claim, N)
                                end, Begun, [{First, 1}, {Second, 2}]),
             Net = ?N:settle_but(rows_tick, Both),
             ?assertMatch({ok, _}, proplists:get_value(First, ?N:replies(Net))),
             ?assertMatch({error, {taken, _}}, proplists:get_value(Second, ?N:replies(Net))),
             ?assertEqual(lists:seq(1, 6) ++ [n], names(a@x, Net))
     end || {First, Second} <- [{a@x, b@x}, {b@x, a@x}]].

of_nobody(_Via, _, _) -> none.

%% --- sessions ---------------------------------------------------------------------------------

%% The receiver starts again when it has half of them; an answer to an earlier question is none.
a_session_that_begins_anew_begins_with_the_first_batch_test() ->
    Half = delivered(a@x, b@x, delivered(b@x, a@x, telling(lists:seq(1, 6)))),
    Crashed = ?N:settle(?N:crash(a@x, Half)),
    ?assertEqual(lists:seq(1, 6), names(a@x, Crashed)),
    Rows0 = lists:foldl(fun(Key, R) -> put_row(Key, ?N:large(5 * ?MIB), R) end, ?ROWS:new(),
                        lists:seq(1, 8)),
    {[], Rows1, _} = ?ROWS:up(b@x, Rows0),
    {[], Rows, [_ | _]} = ?ROWS:message(b@x, {1, heard, {batch, 1}}, Rows1),
    ?assertMatch({[], Rows, []}, ?ROWS:message(b@x, {1, heard, {batch, 1}}, Rows)).
