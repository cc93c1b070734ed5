%% SPDX-License-Identifier: Apache-2.0
%% @doc The data of one partition, by a module of the behaviour `weft_vnode', and what is remembered
%% of handoffs beside them (`weft_vnode_notes'): a note goes to both, with the change that it came
%% with.
%%
%% What can not be written, the other end of a handoff may not take for written. So the calling
%% process ends where a change with a note fails, or a note alone. The next process of the partition
%% goes on with what is.
-module(weft_vnode_data).

-export([new/4, log/1, mark/1]).
-export([command/3, cover/2, change/4, is_held/3, commits/1, commit/1]).
-export([items/3, note/2, anew/1]).
-export([clear/2, take/3, update/4, cancels/1, cancelled/1]).
-export([waiting/1, drop/1, tick/1, terminate/2]).
-export_type([data/0]).

-record(data, {name :: atom(), module :: module(), of_module :: term(),
               kept :: weft_vnode_notes:kept()}).
-opaque data() :: #data{}.

%% @doc Of what the module has opened. The name is that of the partition, for its log.
-spec new(atom(), module(), OfModule :: term(), weft_vnode_notes:kept()) -> data().
new(Name, Module, OfModule, Kept) ->
    #data{name = Name, module = Module, of_module = OfModule, kept = Kept}.

%% @doc What was changed while it was handed over.
-spec log(data()) -> weft_ring_handoff_sender_core:log().
log(#data{kept = #{log := Log}}) -> Log.

%% @doc How far it came here from a former owner.
-spec mark(data()) -> weft_ring_handoff_receiver_core:mark().
mark(#data{kept = #{mark := Mark}}) -> Mark.

%% --- commands ---------------------------------------------------------------------------------

%% @doc See `weft_vnode'.
-spec command(Key :: term(), Command :: term(), data()) ->
          {reply, term()} | {change, Change :: term(), Reply :: term()}
        | {changes, [{Key :: term(), Change :: term()}], Reply :: term()}.
command(Key, Command, #data{module = Module, of_module = Of}) -> Module:command(Key, Command, Of).

%% @doc See `weft_vnode'.
-spec cover(Question :: term(), data()) -> term().
cover(Question, #data{module = Module, of_module = Of}) -> Module:cover(Question, Of).

%% @doc A change that failed at its owner is the caller's to know. Where it is repeated, with a
%% note, it must not fail.
-spec change(Key :: term(), Change :: term(), weft_vnode_notes:note(), data()) ->
          {ok, data()} | {error, term()}.
change(Key, Change, Note, #data{module = Module, of_module = Of} = Data) ->
    case {Module:change(Key, Change, Note, Of), Note} of
        {{error, Reason}, none} -> {error, Reason};
        {Done, _} -> {ok, noted(Note, written(Done, Data))}
    end.

%% @doc Does the answer to this command wait for a commit?
-spec is_held(Key :: term(), Command :: term(), data()) -> boolean().
is_held(Key, Command, #data{module = Module, of_module = Of}) ->
    weft_vnode_optional:is_held(Module, Key, Command, Of).

%% @doc Does any?
-spec commits(data()) -> boolean().
commits(#data{module = Module}) -> weft_vnode_optional:commits(Module).

%% @doc The data after a commit, whether it succeeded or not.
-spec commit(data()) -> {ok | {error, term()}, data()}.
commit(#data{module = Module, of_module = Of} = Data) ->
    case Module:commit(Of) of
        {ok, New} -> {ok, Data#data{of_module = New}};
        {error, Reason, New} -> {{error, Reason}, Data#data{of_module = New}}
    end.

%% --- to the next owner ------------------------------------------------------------------------

%% @doc See `weft_vnode'.
-spec items(Cursor :: term(), Max :: pos_integer(), data()) -> {Items :: list(), Next :: term()}.
items(Cursor, Max, #data{module = Module, of_module = Of}) -> Module:items(Cursor, Max, Of).

%% @doc With a note that comes with no change.
-spec note(weft_vnode_notes:note(), data()) -> data().
note(Note, #data{module = Module, of_module = Of} = Data) ->
    noted(Note, written(weft_vnode_optional:note(Module, Note, Of), Data)).

%% @doc From here on there is no log, so a handoff that was under way has to begin anew.
-spec anew(data()) -> data().
anew(#data{kept = Kept} = Data) ->
    note({reset, weft_vnode_notes:next_attempt(erlang:system_time(microsecond), Kept)}, Data).

%% --- from the former owner --------------------------------------------------------------------

%% @doc What was here is dropped, as all comes anew.
-spec clear(weft_ring_handoff_receiver_core:mark(), data()) -> data().
clear(Mark, #data{module = Module, of_module = Of} = Data) ->
    noted({mark, Mark}, written(Module:clear({mark, Mark}, Of), Data)).

%% @doc When this returns they are on disk, if the module commits: the other end hears of it then.
-spec take(Items :: list(), weft_ring_handoff_receiver_core:mark(), data()) -> data().
take(Items, Mark, #data{module = Module, of_module = Of} = Data) ->
    on_disk(noted({mark, Mark}, written(Module:take(Items, {mark, Mark}, Of), Data))).

%% @doc The same of a change that its owner has made.
-spec update(Key :: term(), Change :: term(), weft_ring_handoff_receiver_core:mark(), data()) ->
          data().
update(Key, Change, Mark, Data) ->
    {ok, New} = change(Key, Change, {mark, Mark}, Data),
    on_disk(New).

%% @doc Is there something here of a handoff that could be cancelled?
-spec cancels(data()) -> boolean().
cancels(#data{module = Module} = Data) ->
    mark(Data) =/= none andalso erlang:function_exported(Module, cancelled, 2).

%% @doc Without what a handoff has brought that is cancelled.
-spec cancelled(data()) -> data().
cancelled(#data{module = Module, of_module = Of} = Data) ->
    Note = {mark, none},
    noted(Note, written(Module:cancelled(Note, Of), Data)).

%% --- at rest ----------------------------------------------------------------------------------

%% @doc How much waits for another owner.
-spec waiting(data()) -> non_neg_integer().
waiting(#data{module = Module, of_module = Of}) -> weft_vnode_optional:waiting(Module, Of).

%% @doc Another node has all of it.
-spec drop(data()) -> {ok, data()} | {error, term()}.
drop(#data{module = Module, of_module = Of} = Data) ->
    case Module:clear(none, Of) of
        {ok, Cleared} -> {ok, Data#data{of_module = Cleared}};
        {error, Reason} -> {error, Reason}
    end.

%% @doc A second later. With `stop' nothing needs the process any more.
-spec tick(data()) -> {ok | stop, data()}.
tick(#data{module = Module, of_module = Of} = Data) ->
    {Whether, New} = weft_vnode_optional:tick(Module, Of),
    {Whether, Data#data{of_module = New}}.

%% @doc The process of these data ends.
-spec terminate(Reason :: term(), data()) -> term().
terminate(Reason, #data{module = Module, of_module = Of}) ->
    weft_vnode_optional:terminate(Module, Reason, Of).

%% --- notes ------------------------------------------------------------------------------------

noted(Note, #data{kept = Kept} = Data) ->
    Data#data{kept = weft_vnode_notes:add(Note, Kept)}.

on_disk(Data) ->
    case commits(Data) andalso commit(Data) of
        false -> Data;
        {ok, New} -> New;
        {{error, Reason}, _} -> not_written(Reason, Data)
    end.

written({ok, Of}, Data) -> Data#data{of_module = Of};
written({error, Reason}, Data) -> not_written(Reason, Data).

-spec not_written(term(), data()) -> no_return().
not_written(Reason, #data{name = Name}) ->
    logger:error("~ts can not be written, and ends: ~0tP", [Name, Reason, 20]),
    exit(not_written).
