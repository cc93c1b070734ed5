%% SPDX-License-Identifier: Apache-2.0
%% @doc The sessions that have asked a link for a circuit and wait until it comes up, and what they
%% hear when the neighbour ends or cannot be dialled meanwhile.
%%
%% That they have asked is remembered, not what for: when the link comes up a session may have found
%% another path, and lost it again, so that it has to ask for something else, or for nothing.
%%
%% A session that asks again has changed its mind: the target that it named last counts.
%%
%% Not here: which sessions are told what (`weft_switch_core'), and what they do then
%% (`weft_path_search').
-module(weft_pending_circuits).

-export([add/3, drop/2, is_pending/2, sessions/1, split/2, dial_failed/3]).
-export_type([pending/0]).

-type session() :: term().
-type pending() :: [{session(), Target :: binary()}].

%% @doc A session waits for the link, to reach the node of that name.
-spec add(session(), Target :: binary(), pending()) -> pending().
add(Session, Target, Pending) -> lists:keystore(Session, 1, Pending, {Session, Target}).

%% @doc A session does not wait any more.
-spec drop(session(), pending()) -> pending().
drop(Session, Pending) -> lists:keydelete(Session, 1, Pending).

%% @doc Does that session wait?
-spec is_pending(session(), pending()) -> boolean().
is_pending(Session, Pending) -> lists:keymember(Session, 1, Pending).

%% @doc All of them, in the order in which they began to wait.
-spec sessions(pending()) -> [session()].
sessions(Pending) -> [Session || {Session, _Target} <- Pending].

%% @doc The neighbour of that name has ended, or it is another incarnation of its node that is there
%% now. Returns the sessions with it that wait, and what waits for nodes behind it, which may be
%% alive.
-spec split(Name :: binary(), pending()) -> {With :: [session()], Behind :: pending()}.
split(Name, Pending) ->
    {With, Behind} = lists:partition(fun({_, Target}) -> Target =:= Name end, Pending),
    {sessions(With), Behind}.

%% @doc The neighbour of that name cannot be dialled. Returns why each circuit cannot be opened: the
%% reason says nothing about nodes that are reached over the neighbour.
-spec dial_failed(Reason :: term(), Name :: binary(), pending()) ->
          [{session(), Why :: {dial, term()} | broken}].
dial_failed(Reason, Name, Pending) ->
    [{Session, case Target of Name -> {dial, Reason}; _ -> broken end}
     || {Session, Target} <- Pending].
