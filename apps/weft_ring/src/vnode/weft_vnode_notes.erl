%% SPDX-License-Identifier: Apache-2.0
%% @doc What a partition has to remember of handoffs, and the notes by which that changes. Pure. A
%% module that keeps its data on disk writes each note together with the change that it came with.
-module(weft_vnode_notes).

-export([fresh/0, next_attempt/2, in_order/1, add/2]).
-export_type([note/0, kept/0]).

-type kept() :: #{mark := weft_ring_handoff_receiver_core:mark(),
                  log := weft_ring_handoff_sender_core:log()}.
-type note() :: none
              | {mark, weft_ring_handoff_receiver_core:mark()}
              | {log, Number :: pos_integer(), Key :: term(), Change :: term()}
              | {truncate, Number :: non_neg_integer()}
              | {reset, Attempt :: pos_integer()}.

%% @doc For a partition that remembers nothing else.
-spec fresh() -> kept().
fresh() ->
    #{mark => none, log => {1, 0, []}}.

%% @doc The attempt that comes next. What a receiver has by then is not enough if nothing was logged
%% in between, so this is more than any attempt of an earlier process, even a forgotten one.
-spec next_attempt(Now :: integer(), kept()) -> pos_integer().
next_attempt(Now, #{log := {Attempt, _, _}}) -> max(Now, Attempt + 1);
next_attempt(Now, #{log := none}) -> max(Now, 1).

%% @doc The log with its entries as they were made.
-spec in_order(weft_ring_handoff_sender_core:log()) -> weft_ring_handoff_sender_core:log().
in_order(none) -> none;
in_order({Attempt, Last, Entries}) -> {Attempt, Last, lists:sort(Entries)}.

%% @doc What is remembered with this note, too.
-spec add(note(), kept()) -> kept().
add(none, Kept) ->
    Kept;
add({mark, Mark}, Kept) ->
    Kept#{mark := Mark};
add({log, Number, Key, Change}, #{log := {Attempt, _, Entries}} = Kept) ->
    Kept#{log := {Attempt, Number, [{Number, Key, Change} | Entries]}};
add({truncate, Number}, #{log := {Attempt, Last, Entries}} = Kept) ->
    Kept#{log := {Attempt, Last, [E || {N, _, _} = E <- Entries, N > Number]}};
add({reset, Attempt}, #{log := none} = Kept) ->
    Kept#{log := {Attempt, 0, []}};
add({reset, Attempt}, #{log := {_, Last, _}} = Kept) ->
    Kept#{log := {Attempt, Last, []}}.
