%% SPDX-License-Identifier: Apache-2.0
%% @doc Where a worker of a load is: the operation under way, and from when on others are due. The
%% worker writes, whoever counts at the end reads, also of workers that hang or are gone.
-module(weft_load_progress).

-export([new/0, begun/4, ended/1, next_due/1, next_due/2, finished/1, under_way/1,
         fold_due/5]).
-export_type([progress/0]).

-opaque progress() :: atomics:atomics_ref().

%% Number of the operation under way, from 1; 0: none.
-define(OPERATION, 1).
-define(DUE_US, 2).
%% When the first operation that is not begun is due; 0: none is.
-define(NEXT_US, 3).

%% @doc No operation is under way or due.
-spec new() -> progress().
new() -> atomics:new(3, []).

%% @doc The operation with this number in the table of weights begins, which was due then; so is the
%% next one, `none' if it is due when this one is done.
-spec begun(pos_integer(), DueUs :: integer(), NextUs :: integer() | none, progress()) -> ok.
begun(Number, DueUs, NextUs, Progress) ->
    ok = next_due(NextUs, Progress),
    ok = atomics:put(Progress, ?DUE_US, DueUs),
    atomics:put(Progress, ?OPERATION, Number).

-spec ended(progress()) -> ok.
ended(Progress) -> atomics:put(Progress, ?OPERATION, 0).

-spec next_due(progress()) -> integer() | none.
next_due(Progress) ->
    case atomics:get(Progress, ?NEXT_US) of
        0 -> none;
        NextUs -> NextUs
    end.

-spec next_due(NextUs :: integer() | none, progress()) -> ok.
next_due(none, Progress) -> atomics:put(Progress, ?NEXT_US, 0);
next_due(NextUs, Progress) -> atomics:put(Progress, ?NEXT_US, NextUs).

%% @doc The worker has nothing more to do.
-spec finished(progress()) -> ok.
finished(Progress) ->
    ok = next_due(none, Progress),
    ended(Progress).

%% @doc The number of the operation under way and when it was due, if there is one.
-spec under_way(progress()) -> [{pos_integer(), DueUs :: integer()}].
under_way(Progress) ->
    case atomics:get(Progress, ?OPERATION) of
        0 -> [];
        Number -> [{Number, atomics:get(Progress, ?DUE_US)}]
    end.

%% @doc Over the times at which operations were due before this one that did not begin; there may be
%% many. Pauses between them are drawn here, from the same distribution as the worker's.
-spec fold_due(fun((DueUs :: integer(), Acc) -> Acc), Acc, UntilUs :: integer(),
               Rate :: max | number(), progress()) -> Acc.
fold_due(Fun, Acc, UntilUs, Rate, Progress) ->
    case next_due(Progress) of
        none -> Acc;
        NextUs -> fold_from(NextUs, Fun, Acc, UntilUs, Rate)
    end.

fold_from(DueUs, _Fun, Acc, UntilUs, _Rate) when DueUs >= UntilUs -> Acc;
fold_from(DueUs, Fun, Acc, UntilUs, Rate) ->
    fold_from(DueUs + weft_load_worker:pause_us(Rate), Fun, Fun(DueUs, Acc), UntilUs, Rate).
