%% SPDX-License-Identifier: Apache-2.0
%% @doc All rows of this node for another one with which a session begins, batch by batch. Part of
%% `weft_own_rows_core', called in place.
%%
%% After each batch but the last one the other node is asked, and gets the next batch when it has
%% answered. So no more than one batch is on its way or waits to be sent, however many rows there
%% are. Nothing else waits for the answer, so it has no deadline but the end of the session.
%%
%% Which rows there are is fixed at the beginning; what is told of a row is what it is when its
%% batch is sent. A row that was deleted meanwhile is left out, and one that is new is told as a
%% change (`changes/1').
%%
%% The question is the one that nodes of earlier versions answer, too, in whose words a Seq is any
%% term. A change tells a row as the batches do, for a node takes those rows for all that there are
%% when it is told that they are complete. Before it goes the news that these are changes.
-module(weft_row_batches).

-export([new/1, next/2, is_answer/2, pieces/1, first/2, changes/1, asked/1, asked/2]).
-export_type([batches/0, message/0]).

%% Rows in one message, and what a batch has at the most: rows, or bytes with the last row beyond.
-define(PIECE, 200).
-define(BATCH, 10000).
-define(BATCH_BYTES, 4194304).

-record(batches, {untold :: [Key :: term()],
                  sent = 0 :: non_neg_integer(),
                  asked = none :: none | {ok, Seq :: non_neg_integer()}}).

-opaque batches() :: #batches{}.
-type message() :: {1, rows, [{Key :: term(), Value :: term()}]}
                 | {1, new, [Key :: term()]}
                 | {1, changes, 0, [{Key :: term(), delete}]}
                 | {1, asked, {batch, pos_integer()}}.

%% @doc Nothing has been told yet.
-spec new(Own :: #{Key :: term() => Value :: term()}) -> batches().
new(Own) -> #batches{untold = maps:keys(Own)}.

%% @doc The next batch, with the question that goes after it; or the last one.
-spec next(Own :: #{Key :: term() => Value :: term()}, batches()) ->
          {more, [message()], batches()} | {last, [message()]}.
next(Own, #batches{untold = Untold, sent = Sent} = Batches) ->
    case batch(Untold, Own, 0, 0, []) of
        {Rows, []} ->
            {last, rows(Rows)};
        {Rows, Rest} ->
            {more, rows(Rows) ++ [{1, asked, {batch, Sent + 1}}],
             Batches#batches{untold = Rest, sent = Sent + 1}}
    end.

batch([Key | Rest], Own, Count, Bytes, Rows) when Count < ?BATCH, Bytes < ?BATCH_BYTES ->
    case Own of
        #{Key := Value} ->
            Row = {Key, Value},
            batch(Rest, Own, Count + 1, Bytes + erlang:external_size(Row), [Row | Rows]);
        #{} ->
            batch(Rest, Own, Count, Bytes, Rows)
    end;
batch(Rest, _Own, _Count, _Bytes, Rows) ->
    {lists:reverse(Rows), Rest}.

rows(Rows) -> [{1, rows, Piece} || Piece <- pieces(Rows)].

%% @doc Is it the answer after the batch that was sent last?
-spec is_answer(pos_integer(), batches()) -> boolean().
is_answer(Number, #batches{sent = Sent}) -> Number =:= Sent.

%% @doc A list in lists that are short enough for one message.
-spec pieces([Item]) -> [[Item]].
pieces([]) -> [];
pieces(List) ->
    {Piece, Rest} = first(?PIECE, List),
    [Piece | pieces(Rest)].

%% @doc So many of a list, and the others, which are not counted: they may be many.
-spec first(Count :: non_neg_integer(), [Item]) -> {[Item], [Item]}.
first(0, Rest) -> {[], Rest};
first(_, []) -> {[], []};
first(Count, [One | Rest]) ->
    {Others, After} = first(Count - 1, Rest),
    {[One | Others], After}.

%% @doc Changes for a node that has not been told all rows yet. No number: not before all is told
%% has a change arrived with those before it.
-spec changes([{Key :: term(), {put, Value :: term()} | delete}]) -> [message()].
changes(Changes) ->
    {Deleted, Put} = lists:partition(fun({_, Change}) -> Change =:= delete end, Changes),
    Pieces = pieces([{Key, Value} || {Key, {put, Value}} <- Put]),
    lists:append([[{1, new, [Key || {Key, _} <- Piece]}, {1, rows, Piece}] || Piece <- Pieces])
        ++ [{1, changes, 0, Piece} || Piece <- pieces(Deleted)].

%% @doc The other node asked what has to be answered when it has been told all.
-spec asked(Seq :: non_neg_integer(), batches()) -> batches().
asked(Seq, Batches) -> Batches#batches{asked = {ok, Seq}}.

%% @doc What it asked last.
-spec asked(batches()) -> none | {ok, Seq :: non_neg_integer()}.
asked(#batches{asked = Asked}) -> Asked.
