%% SPDX-License-Identifier: Apache-2.0
%% @doc The account tells right from wrong: everything arrived, something lost, doubled, late, and
%% what the dead said does not count.
-module(demo_account_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONVERSATION,
        <<"room market n1\n"
          "member ada@n1 market\nmember ben@n2 market\nmember cleo@n3 market\n"
          "0.000 ada@n1 #market: one\n"
          "0.100 ben@n2 ada@n1: two\n"
          "0.200 ben@n2 cleo@n3: to the dead\n"
          "0.300 cleo@n3 #market: from the dead\n"
          "0.400 ada@n1 #market: three\n">>).
-define(LABELS, #{<<"n1">> => n1, <<"n2">> => n2}).
-define(ADA, {ada, n1}).
-define(BEN, {ben, n2}).
-define(CLEO, {cleo, n3}).
-define(MARKET, {room, market}).

script() ->
    {ok, Script} = chat_script:parse(?CONVERSATION),
    Script.

due() -> {demo_account:lines(script(), ?LABELS), demo_account:streams(script(), ?LABELS)}.

%% A ledger after these arrivals, given as {sender, place, numbers}.
ledger(Arrivals) ->
    lists:foldl(fun({Sender, Place, Seq}, Ledger) ->
                        {_, Next} = chat_ledger:receive_one({Sender, 1}, Place, Seq, Ledger),
                        Next
                end, chat_ledger:new(),
                [{Sender, Place, Seq} || {Sender, Place, Seqs} <- Arrivals, Seq <- Seqs]).

balance(ToAda, ToBen, Tally) ->
    Counts = maps:merge(#{duplicates => 0, out_of_order => 0}, Tally),
    demo_account:balance(due(), #{?ADA => ledger(ToAda), ?BEN => ledger(ToBen)},
                         #{tally => Counts, strangers => [?CLEO]}).

streams_are_between_survivors_test() ->
    ?assertEqual({4, #{{?ADA, ?ADA, ?MARKET} => 2, {?ADA, ?BEN, ?MARKET} => 2,
                       {?BEN, ?ADA, direct} => 1}}, due()).

all_arrived_test() ->
    ?assertEqual(#{lines => 4, due => 5, delivered => 5, in_order => 5, lost => 0, doubled => 0,
                   late => 0, wrong_streams => 0},
                 balance([{?ADA, ?MARKET, [1, 2]}, {?BEN, direct, [1]}], [{?ADA, ?MARKET, [1, 2]}],
                         #{delivered => 5})).

what_the_dead_said_does_not_count_test() ->
    Heard = [{?ADA, ?MARKET, [1, 2]}, {?CLEO, ?MARKET, [1]}],
    ?assertMatch(#{delivered := 5, lost := 0, wrong_streams := 0},
                 balance([{?BEN, direct, [1]} | Heard], Heard, #{delivered => 7})).

a_lost_copy_is_seen_test() ->
    ?assertMatch(#{delivered := 4, lost := 1, wrong_streams := 1},
                 balance([{?ADA, ?MARKET, [1, 2]}, {?BEN, direct, [1]}], [{?ADA, ?MARKET, [2]}],
                         #{delivered => 4})),
    ?assertMatch(#{delivered := 4, lost := 1, wrong_streams := 1},
                 balance([{?ADA, ?MARKET, [1, 2]}], [{?ADA, ?MARKET, [1, 2]}], #{delivered => 4})).

late_and_doubled_are_seen_test() ->
    ?assertMatch(#{delivered := 5, in_order := 4, late := 1, doubled := 2},
                 balance([{?ADA, ?MARKET, [2, 1]}, {?BEN, direct, [1]}], [{?ADA, ?MARKET, [1, 2]}],
                         #{delivered => 5, out_of_order => 1, duplicates => 2})).
