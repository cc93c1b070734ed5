%% SPDX-License-Identifier: Apache-2.0
%% @doc The circuits that are to be opened by a link when it comes up: one for each session that
%% waits, and what becomes of it when the neighbour ends or cannot be dialled meanwhile.
%%
%% A session that asks again has changed its mind: what it asked for last counts.
%%
%% Not here: which sessions are told what, and how a circuit is opened (`weft_switch_core').
-module(weft_pending_circuits).

-export([add/4, drop/2, is_pending/2, to_open/1, split/2, dial_failed/3]).
-export_type([pending/0]).

-type session() :: term().
-type input() :: term().
-type pending() :: [{session(), input(), weft_wire:open()}].

%% @doc A session waits for the link.
-spec add(session(), input(), weft_wire:open(), pending()) -> pending().
add(Session, Input, Open, Pending) ->
    lists:keystore(Session, 1, Pending, {Session, Input, Open}).

%% @doc A session does not wait any more.
-spec drop(session(), pending()) -> pending().
drop(Session, Pending) -> lists:keydelete(Session, 1, Pending).

%% @doc Does that session wait?
-spec is_pending(session(), pending()) -> boolean().
is_pending(Session, Pending) -> lists:keymember(Session, 1, Pending).

%% @doc All of them, in the order in which they are opened: the latest first.
-spec to_open(pending()) -> pending().
to_open(Pending) -> lists:reverse(Pending).

%% @doc The neighbour of that name has ended, or it is another incarnation of its node that is there
%% now. Returns the sessions with it that wait, and the circuits to nodes behind it, which may be
%% alive.
-spec split(Name :: binary(), pending()) -> {With :: [session()], Behind :: pending()}.
split(Name, Pending) ->
    {With, Behind} = lists:partition(fun({_, _, #{target := Target}}) -> Target =:= Name end,
                                     Pending),
    {[Session || {Session, _, _} <- With], Behind}.

%% @doc The neighbour of that name cannot be dialled. Returns why each circuit cannot be opened: the
%% reason says nothing about nodes that are reached over the neighbour.
-spec dial_failed(Reason :: term(), Name :: binary(), pending()) ->
          [{session(), Why :: {dial, term()} | broken}].
dial_failed(Reason, Name, Pending) ->
    [{Session, case Target of Name -> {dial, Reason}; _ -> broken end}
     || {Session, _, #{target := Target}} <- Pending].
