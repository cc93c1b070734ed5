%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes of one kind that count themselves, so that there are only so many of them at a
%% time. A table has each of them while it is there, and no process is shared by them. Those that
%% have ended without leaving, as they were killed, are removed when the table seems full, at most
%% once a second.
-module(weft_kv_counted).

-export([new/2, enter/2, leave/2, count/1, is_full/1, is_over/1, make_room/2]).
-export_type([counted/0]).

-record(counted, {
    table :: ets:table(),
    max :: pos_integer(),
    %% When those that had ended were removed, in a monotonic millisecond.
    swept_ms :: atomics:atomics_ref()}).
-opaque counted() :: #counted{}.

-define(SWEEP_MS, 1000).

%% @doc There is none. The table ends with the calling process. If they are `in_order' of their
%% keys, room can be made.
-spec new(in_any_order | in_order, Max :: pos_integer()) -> counted().
new(Order, Max) ->
    SweptMs = atomics:new(1, [{signed, true}]),
    ok = atomics:put(SweptMs, 1, erlang:monotonic_time(millisecond) - ?SWEEP_MS),
    Type = case Order of in_any_order -> set; in_order -> ordered_set end,
    %% Each request asks for the size.
    Table = ets:new(?MODULE, [Type, public, {write_concurrency, true},
                              {decentralized_counters, false}]),
    #counted{table = Table, max = Max, swept_ms = SweptMs}.

%% @doc The calling process counts from now on, under a key that no other one has.
-spec enter(Key :: term(), counted()) -> ok.
enter(Key, #counted{table = Table}) ->
    noted(fun() -> ets:insert(Table, {Key, self()}) end).

%% @doc It does not count any more, if it did.
-spec leave(Key :: term(), counted()) -> ok.
leave(Key, #counted{table = Table}) ->
    noted(fun() -> ets:delete(Table, Key) end).

%% Of an application that was stopped meanwhile there is no table.
noted(Note) ->
    try
        _ = Note(),
        ok
    catch
        error:badarg -> ok
    end.

%% @doc How many there are. Some of them may have been killed.
-spec count(counted()) -> non_neg_integer().
count(#counted{table = Table}) ->
    case ets:info(Table, size) of
        undefined -> 0;
        Count -> Count
    end.

%% @doc Would one more be too many?
-spec is_full(counted()) -> boolean().
is_full(#counted{max = Max} = Counted) -> are(Max, Counted).

%% @doc Is one of them too many?
-spec is_over(counted()) -> boolean().
is_over(#counted{max = Max} = Counted) -> are(Max + 1, Counted).

are(AtLeast, Counted) ->
    count(Counted) >= AtLeast andalso not (sweep(Counted) andalso count(Counted) < AtLeast).

%% Whether those that have ended were removed now. Each look takes as long as there are processes.
sweep(#counted{table = Table, swept_ms = SweptMs}) ->
    NowMs = erlang:monotonic_time(millisecond),
    LastMs = atomics:get(SweptMs, 1),
    case NowMs - LastMs >= ?SWEEP_MS
        andalso atomics:compare_exchange(SweptMs, 1, LastMs, NowMs) of
        ok ->
            noted(fun() ->
                      [ets:delete(Table, Key) || {Key, Pid} <- ets:tab2list(Table),
                                                 not is_process_alive(Pid)]
                  end),
            true;
        _ -> false
    end.

%% @doc Those with the first keys do not count any more, until there are not too many. The fun is
%% called with each.
-spec make_room(fun((pid()) -> term()), counted()) -> ok.
make_room(Fun, Counted) ->
    case is_over(Counted) of
        true ->
            lists:foreach(Fun, first(Counted)),
            make_room(Fun, Counted);
        false -> ok
    end.

%% None if another caller has just taken it.
first(#counted{table = Table}) ->
    try [Pid || {_, Pid} <- ets:take(Table, ets:first(Table))]
    catch
        error:badarg -> []
    end.
