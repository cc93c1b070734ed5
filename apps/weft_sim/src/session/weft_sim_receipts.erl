%% SPDX-License-Identifier: Apache-2.0
%% @doc What arrives at the other end of a simulated session, held against what was promised: the
%% frames of each sender (`weft_sim_senders') once and in the order sent, signals without sender
%% after what they come after, nothing of another session, and the atoms that were meant; and how
%% long messages of senders that are watched took.
-module(weft_sim_receipts).

-export([new/3, arrived/3, counts/1, slowest_ms/1]).
-export_type([receipts/0]).

-record(receipts, {session :: term(),
                   counts = #{} :: #{term() => pos_integer()},
                   atoms = #{} :: weft_sim_atoms:slots(),
                   watched :: [weft_frame:key()],
                   since_ms :: non_neg_integer(),
                   slowest_ms = 0 :: non_neg_integer()}).
-opaque receipts() :: #receipts{}.

%% @doc Of that session. Messages of these senders are timed if due at SinceMs or later.
-spec new(Session :: term(), Watched :: [weft_frame:key()], SinceMs :: non_neg_integer()) ->
          receipts().
new(Session, Watched, SinceMs) ->
    #receipts{session = Session, watched = Watched, since_ms = SinceMs}.

%% @doc A payload has been delivered. What is wrong with it, if anything.
-spec arrived(Payload :: binary(), NowMs :: integer(), receipts()) -> {[term()], receipts()}.
arrived(Payload, NowMs, Receipts0) ->
    lists:foldl(fun({Entries, Meant, Note}, {Wrong, #receipts{atoms = Atoms0} = Receipts}) ->
                    {Unknown, Atoms} = weft_sim_atoms:told(Entries, Meant, Atoms0),
                    {More, Next} = note(Note, NowMs, Receipts#receipts{atoms = Atoms}),
                    {Wrong ++ [{atom, Atom, Note} || Atom <- Unknown] ++ More, Next}
                end, {[], Receipts0}, weft_sim_frames:read(Payload)).

note({Session, Key, Number, DueMs, Before}, NowMs,
     #receipts{session = Session, counts = Counts} = Receipts) ->
    Last = maps:get(Key, Counts, 0),
    {[{Key, Number, after_number, Last} || Number =/= Last + 1]
     ++ [{signal, Number, Before, Counts} || not is_in_place(Before, Counts)],
     timed(Key, DueMs, NowMs, ordered(Before, NowMs,
                                      Receipts#receipts{counts = Counts#{Key => Number}}))};
note({Other, Key, Number, _DueMs, _Before}, _NowMs, Receipts) ->
    {[{Key, Number, of_session, Other}], Receipts}.

is_in_place(none, _Counts) ->
    true;
is_in_place({exactly, Before}, Counts) ->
    Before =:= Counts;
is_in_place({at_least, Before}, Counts) ->
    lists:all(fun({Key, Number}) -> maps:get(Key, Counts, 0) >= Number end, maps:to_list(Before)).

%% What was due before a signal came that holds up all others has waited for it, and with it for all
%% that was queued before: as promised, and as long as the path was lost.
ordered({exactly, _}, NowMs, #receipts{since_ms = SinceMs} = Receipts) ->
    Receipts#receipts{since_ms = max(SinceMs, NowMs)};
ordered(_NotHeldUp, _NowMs, Receipts) ->
    Receipts.

timed(Key, DueMs, NowMs, #receipts{watched = Watched, since_ms = SinceMs,
                                   slowest_ms = Slowest} = Receipts) ->
    case DueMs >= SinceMs andalso lists:member(Key, Watched) of
        true -> Receipts#receipts{slowest_ms = max(Slowest, NowMs - DueMs)};
        false -> Receipts
    end.

%% @doc How many frames of each sender have come.
-spec counts(receipts()) -> #{term() => pos_integer()}.
counts(#receipts{counts = Counts}) -> Counts.

%% @doc How long the slowest watched message took.
-spec slowest_ms(receipts()) -> non_neg_integer().
slowest_ms(#receipts{slowest_ms = Ms}) -> Ms.
