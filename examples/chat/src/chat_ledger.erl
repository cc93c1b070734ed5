%% SPDX-License-Identifier: Apache-2.0
%% @doc What one user received, by sender and place, to tell "in order, exactly once" from
%% anything else. Pure.
%%
%% Senders number their messages 1, 2, 3.. separately for each place (a room, or direct to one
%% person) and carry the time of their start as epoch, so a restarted sender begins a new row.
%% A number above the next one opens a gap; a number inside a gap closes it late (out of order);
%% any other number below the next one is a duplicate.
-module(chat_ledger).

-export([new/0, receive_one/4, joined/4, gaps/1, next/3, missing/3]).

-type sender() :: {chat_address:name(), node()}.
-type epoch() :: integer().
-type place() :: direct | {room, chat_address:name()}.
-type row() :: #{epoch := epoch(), next := pos_integer(), missing := [range()]}.
-type range() :: {First :: pos_integer(), Last :: pos_integer()}.
-type verdict() :: in_order | {gap, Missed :: pos_integer()} | late | duplicate.
-opaque ledger() :: #{{sender(), place()} => row()}.
-export_type([ledger/0, sender/0, epoch/0, place/0, verdict/0]).

-spec new() -> ledger().
new() ->
    #{}.

%% @doc Enters message number `Seq'.
-spec receive_one({sender(), epoch()}, place(), pos_integer(), ledger()) -> {verdict(), ledger()}.
receive_one({Sender, Epoch}, Place, Seq, Ledger) ->
    Key = {Sender, Place},
    {Verdict, Row} = enter(Seq, row(Key, Epoch, Ledger)),
    {Verdict, Ledger#{Key => Row}}.

%% @doc The place says that `Sender' had reached number `Seq' when we joined. For a sender we know
%% already the numbers in between are missed (returned); otherwise counting starts after `Seq'.
-spec joined({sender(), epoch()}, place(), non_neg_integer(), ledger()) ->
    {Missed :: non_neg_integer(), ledger()}.
joined({Sender, Epoch}, Place, Seq, Ledger) ->
    Key = {Sender, Place},
    case Ledger of
        #{Key := #{epoch := Epoch, next := Next} = Row} when Seq >= Next ->
            {Seq - Next + 1, Ledger#{Key := skip_to(Seq + 1, Row)}};
        #{Key := #{epoch := Epoch}} ->
            {0, Ledger};
        #{} ->
            {0, Ledger#{Key => #{epoch => Epoch, next => Seq + 1, missing => []}}}
    end.

%% @doc Number of messages known to be missing.
-spec gaps(ledger()) -> non_neg_integer().
gaps(Ledger) ->
    lists:sum([Last - First + 1
               || #{missing := Missing} <- maps:values(Ledger), {First, Last} <- Missing]).

%% @doc The number expected next from a sender (1 when it was never heard).
-spec next(sender(), place(), ledger()) -> pos_integer().
next(Sender, Place, Ledger) ->
    maps:get(next, maps:get({Sender, Place}, Ledger, #{next => 1})).

%% @doc How many of a sender's messages below the next one never came.
-spec missing(sender(), place(), ledger()) -> non_neg_integer().
missing(Sender, Place, Ledger) ->
    gaps(maps:with([{Sender, Place}], Ledger)).

row(Key, Epoch, Ledger) ->
    case Ledger of
        #{Key := #{epoch := Epoch} = Row} -> Row;
        #{} -> #{epoch => Epoch, next => 1, missing => []}
    end.

enter(Next, #{next := Next} = Row) ->
    {in_order, Row#{next := Next + 1}};
enter(Seq, #{next := Next} = Row) when Seq > Next ->
    Skipped = skip_to(Seq, Row),
    {{gap, Seq - Next}, Skipped#{next := Seq + 1}};
enter(Seq, #{missing := Missing} = Row) ->
    case lists:splitwith(fun({First, Last}) -> Seq < First orelse Seq > Last end, Missing) of
        {_, []} -> {duplicate, Row};
        {Above, [Range | Below]} -> {late, Row#{missing := Above ++ punch(Seq, Range) ++ Below}}
    end.

%% Everything from the next number to `To - 1' is missing.
skip_to(To, #{next := Next, missing := Missing} = Row) ->
    Row#{next := To, missing := [{Next, To - 1} | Missing]}.

punch(Seq, {First, Last}) ->
    [{A, B} || {A, B} <- [{Seq + 1, Last}, {First, Seq - 1}], A =< B].
