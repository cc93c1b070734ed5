%% SPDX-License-Identifier: Apache-2.0
%% @doc Goes through all keys of a bucket: partition by partition, a page at a time, from as many
%% replicas as a read asks. While there is little in them, the first pages of some partitions are
%% asked for at the same time. So what is held at a time is bounded. Not here: which replicas are
%% asked and count (`weft_kv_coverage'), what is made of the objects, and pages for callers from
%% outside (`weft_kv_keys').
-module(weft_kv_fold).

-export([fold/4, page/3, complete/3, covered/2, live/1]).
-export_type([cursor/0]).

%% Behind this key of this partition; the empty key is before all others.
-type cursor() :: {Partition :: non_neg_integer(), After :: binary()}.

-define(PAUSE_MS, 50).
%% So many partitions at first, and at most.
-define(AT_A_TIME, 2).
-define(AT_A_TIME_MAX, 16).
%% Pages that are smaller together are little: the next ones take no longer if they are more.
-define(LITTLE_BYTES, 65536).

%% @doc See `weft_kv:fold/3'.
-spec fold(atom(), weft_kv_bucket:options(), fun((binary(), [binary()], Acc) -> Acc), Acc) ->
          {ok, Acc} | {error, term()}.
fold(Bucket, Options, Fun, Acc) ->
    partitions(0, ?AT_A_TIME, {Bucket, Options, Fun}, Acc).

%% A page of a partition that the ring does not have is the end.
partitions(First, AtATime, {Bucket, Options, _} = What, Acc0) ->
    Pages = weft_kv_crew:map(fun(Partition) -> page(Bucket, Options, {Partition, <<>>}) end,
                             lists:seq(First, First + AtATime - 1), AtATime),
    case pages(Pages, What, Acc0) of
        {next, Acc} -> partitions(First + AtATime, at_a_time(AtATime, Pages), What, Acc);
        Result -> Result
    end.

at_a_time(Before, Pages) ->
    case erlang:external_size(Pages) < ?LITTLE_BYTES of
        true -> min(?AT_A_TIME_MAX, 2 * Before);
        false -> 1
    end.

pages([], _What, Acc) ->
    {next, Acc};
pages([{ok, Objects, Next} | Pages], {Bucket, Options, Fun} = What, Acc0) ->
    Acc = lists:foldl(fun({Key, Object}, A) -> with(Key, Object, Fun, A) end, Acc0, Objects),
    case Next of
        done -> {ok, Acc};
        {_, <<>>} -> pages(Pages, What, Acc);
        _ -> pages([page(Bucket, Options, Next) | Pages], What, Acc)
    end;
pages([{error, Reason} | _], _What, _Acc) ->
    {error, Reason}.

with(Key, Object, Fun, Acc) ->
    case live(Object) of
        [] -> Acc;
        Values -> Fun(Key, Values, Acc)
    end.

%% @doc The values that are there now.
-spec live(weft_kv_object:object()) -> [binary()].
live(Object) ->
    Now = weft_kv_object:expire(erlang:system_time(millisecond), Object),
    lists:usort(weft_kv_object:values(Now)).

%% @doc Objects behind a cursor, those of deleted keys among them, and where to go on. A page may be
%% empty though others follow. All this takes no longer than `timeout_ms', as a read of a key does:
%% while nobody but moving partitions keeps the page from being read it is tried again.
-spec page(atom(), weft_kv_bucket:options(), cursor()) ->
          {ok, [{binary(), weft_kv_object:object()}], cursor() | done} | {error, term()}.
page(Bucket, Options, Cursor) ->
    DeadlineMs = deadline_ms(Options),
    tried(DeadlineMs, fun() ->
                          asked(in_turn, Options, {Bucket, Options, DeadlineMs}, Cursor)
                      end).

deadline_ms(#{timeout_ms := Ms}) -> erlang:monotonic_time(millisecond) + Ms.

tried(DeadlineMs, Once) ->
    case Once() of
        {error, {too_few, #{failed := Failed}}} = Error ->
            IsMoved = is_moved([Reason || {_, Reason} <- Failed]),
            case IsMoved andalso paused(DeadlineMs) of
                true -> tried(DeadlineMs, Once);
                false -> Error
            end;
        Result -> Result
    end.

%% Before another try, if that has some time: one without any would only tell that it had none.
paused(DeadlineMs) ->
    is_time(DeadlineMs) andalso receive after ?PAUSE_MS -> is_time(DeadlineMs) end.

is_time(DeadlineMs) -> erlang:monotonic_time(millisecond) + ?PAUSE_MS < DeadlineMs.

%% What others lack does not matter once the one that moves has answered.
is_moved(Reasons) ->
    Failed = lists:delete(incomplete, lists:usort(Reasons)),
    Failed =/= [] andalso lists:all(fun weft_kv_coordinator_core:is_moved/1, Failed).

%% @doc The same of all replicas that answer. There have to be as many owners among them as meet
%% each acknowledged write, wherever `w' of them have it.
-spec complete(atom(), weft_kv_bucket:options(), cursor()) ->
          {ok, [{binary(), weft_kv_object:object()}], cursor() | done} | {error, term()}.
complete(Bucket, Options, Cursor) ->
    asked(at_once, weft_kv_coverage:meeting(Options), {Bucket, Options, deadline_ms(Options)},
          Cursor).

asked(How, Needed, {_, #{n := N} = Options, _} = What, {Partition, _} = Cursor) ->
    with_places(Options, Cursor,
                fun(Places) ->
                    Ask = fun(Place, IsNeeded) -> said(What, Cursor, Place, IsNeeded) end,
                    case covered(weft_kv_coverage:new(How, Needed, N, Places), Ask) of
                        {ok, Done} -> together(Partition, Options, Done);
                        {error, Reason} -> {error, Reason}
                    end
                end).

with_places(#{n := N}, {Partition, _}, Fun) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {error, no_partition} -> {ok, [], done};
        {error, Reason} -> {error, Reason};
        {ok, _} ->
            case weft_ring_lookup:replicas(weft_ring, Partition, N) of
                {ok, Places} -> Fun(Places);
                {error, Reason} -> {error, Reason}
            end
    end.

%% One of an earlier version does not know whether it has forgotten something.
said({_, Options, _} = What, {_, After} = Cursor, Place, IsNeeded) ->
    Command = weft_kv_coverage:command(Place, After, Options, weft_kv_app:compares()),
    case ask(What, Cursor, Place, Command, IsNeeded) of
        {ok, {error, unknown_command}} -> ask(What, Cursor, Place, {page, After}, IsNeeded);
        Answer -> Answer
    end.

ask({Bucket, _, DeadlineMs}, {Partition, After}, Place, Command, IsNeeded) ->
    weft_vnode:ask(weft_kv_vnode, Place, {Partition, Bucket, After}, Command,
                   time_ms(IsNeeded, DeadlineMs - erlang:monotonic_time(millisecond))).

%% One that does not answer leaves time for another one, if that can answer in its place.
time_ms(true, LeftMs) -> max(1, LeftMs);
time_ms(false, LeftMs) -> max(1, LeftMs div 2).

%% @doc Asks as many replicas as are needed, each with whether there is no page without it.
-spec covered(weft_kv_coverage:state(),
              fun((weft_kv_coordinator_core:place(), IsNeeded :: boolean()) ->
                      {ok, term()} | {error, term()})) ->
          {ok, weft_kv_coverage:state()} | {error, term()}.
covered(Coverage, Ask) ->
    case weft_kv_coverage:next(Coverage) of
        {ask, [Place], Next} ->
            Answer = Ask(Place, weft_kv_coverage:are_needed(Next)),
            covered(weft_kv_coverage:heard(Place, Answer, Next), Ask);
        {ask, Places, Next} ->
            IsNeeded = weft_kv_coverage:are_needed(Next),
            Answers = weft_kv_crew:map(fun(Place) -> {Place, Ask(Place, IsNeeded)} end, Places),
            covered(lists:foldl(fun({Place, Answer}, C) ->
                                    weft_kv_coverage:heard(Place, Answer, C)
                                end, Next, Answers), Ask);
        ok -> {ok, Coverage};
        {error, Reason} -> {error, Reason}
    end.

together(Partition, #{siblings := Siblings}, Coverage) ->
    {Objects, Until} = weft_kv_coverage:page(Siblings, Coverage),
    {ok, Objects, case Until of
                      all -> {Partition + 1, <<>>};
                      Last -> {Partition, Last}
                  end}.
