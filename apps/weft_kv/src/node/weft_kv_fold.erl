%% SPDX-License-Identifier: Apache-2.0
%% @doc Goes through all keys of a bucket: partition by partition, a page at a time, from as many
%% replicas as a read asks. So what is held at a time is bounded. Not here: what is made of the
%% objects, and pages for callers from outside (`weft_kv_keys').
-module(weft_kv_fold).

-export([fold/4, page/3, complete/3, live/1]).
-export_type([cursor/0]).

%% Behind this key of this partition; the empty key is before all others.
-type cursor() :: {Partition :: non_neg_integer(), After :: binary()}.

-define(PAUSE_MS, 50).

%% @doc See `weft_kv:fold/3'.
-spec fold(atom(), weft_kv_bucket:options(), fun((binary(), [binary()], Acc) -> Acc), Acc) ->
          {ok, Acc} | {error, term()}.
fold(Bucket, Options, Fun, Acc) ->
    pages({0, <<>>}, Bucket, Options, Fun, Acc).

pages(Cursor, Bucket, Options, Fun, Acc0) ->
    case page(Bucket, Options, Cursor) of
        {ok, Objects, Next} ->
            Acc = lists:foldl(fun({Key, Object}, A) -> with(Key, Object, Fun, A) end, Acc0,
                              Objects),
            case Next of
                done -> {ok, Acc};
                _ -> pages(Next, Bucket, Options, Fun, Acc)
            end;
        {error, Reason} -> {error, Reason}
    end.

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
%% empty though others follow. While nobody but moving partitions keeps it from being read, it is
%% tried again within `timeout_ms', as a read of a key is.
-spec page(atom(), weft_kv_bucket:options(), cursor()) ->
          {ok, [{binary(), weft_kv_object:object()}], cursor() | done} | {error, term()}.
page(Bucket, #{timeout_ms := Ms} = Options, Cursor) ->
    tried(erlang:monotonic_time(millisecond) + Ms, fun() -> once(Bucket, Options, Cursor) end).

tried(DeadlineMs, Once) ->
    case Once() of
        {error, {too_few, #{failed := [_ | _] = Failed}}} = Error ->
            IsMoved = lists:all(fun({_, Reason}) -> weft_kv_coordinator_core:is_moved(Reason) end,
                                Failed),
            case IsMoved andalso erlang:monotonic_time(millisecond) < DeadlineMs of
                true -> receive after ?PAUSE_MS -> tried(DeadlineMs, Once) end;
                false -> Error
            end;
        Result -> Result
    end.

once(Bucket, #{r := R, timeout_ms := Ms} = Options, Cursor) ->
    with_places(Options, Cursor, fun(Places) ->
                                     Asked = asked(R, Places, ask(Bucket, Cursor, Ms)),
                                     together(Cursor, Options, Asked, {length(pages(Asked)), R})
                                 end).

%% @doc The same of all replicas that answer. There have to be as many owners among them as meet
%% each acknowledged write, wherever `w' of them have it.
-spec complete(atom(), weft_kv_bucket:options(), cursor()) ->
          {ok, [{binary(), weft_kv_object:object()}], cursor() | done} | {error, term()}.
complete(Bucket, #{n := N, r := R, w := W, timeout_ms := Ms} = Options, Cursor) ->
    with_places(Options, Cursor,
                fun(Places) ->
                    Ask = ask(Bucket, Cursor, Ms),
                    Asked = weft_kv_crew:map(fun(Place) -> {Place, Ask(Place)} end, Places),
                    Owners = length([Place || {{_, _, primary} = Place, {ok, _}} <- Asked]),
                    together(Cursor, Options, Asked, {Owners, max(R, N - W + 1)})
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

ask(Bucket, {Partition, After}, Ms) ->
    fun(Place) ->
        weft_vnode:ask(weft_kv_vnode, Place, {Partition, Bucket, After}, {page, After}, Ms)
    end.

together(_Cursor, _Options, Asked, {Answered, Needed}) when Answered < Needed ->
    {error, {too_few, #{needed => #{r => Needed}, answered => Answered,
                        failed => [{Node, Reason} || {{_, Node, _}, {error, Reason}} <- Asked]}}};
together({Partition, _}, #{siblings := Siblings}, Asked, _Enough) ->
    Pages = pages(Asked),
    Until = until(Pages),
    {ok, merged(Until, Siblings, Pages), case Until of
                                             all -> {Partition + 1, <<>>};
                                             Last -> {Partition, Last}
                                         end}.

pages(Asked) -> [Page || {_, {ok, Page}} <- Asked].

%% One after the other, until there are enough answers.
asked(0, _, _) -> [];
asked(_, [], _) -> [];
asked(Wanted, [Place | Places], Ask) ->
    case Ask(Place) of
        {ok, _} = Answer -> [{Place, Answer} | asked(Wanted - 1, Places, Ask)];
        {error, _} = Error -> [{Place, Error} | asked(Wanted, Places, Ask)]
    end.

%% Up to here all pages go.
until(Pages) ->
    case [element(1, lists:last(Items)) || {Items, false} <- Pages] of
        [] -> all;
        Lasts -> lists:min(Lasts)
    end.

merged(Until, Siblings, Pages) ->
    Objects = [Item || {Items, _} <- Pages, {Key, _} = Item <- Items,
                       Until =:= all orelse Key =< Until],
    lists:sort(maps:to_list(lists:foldl(fun({Key, Object}, All) ->
                                            maps:update_with(Key, fun(Other) ->
                                                weft_kv_object:merge(Object, Other, Siblings)
                                            end, Object, All)
                                        end, #{}, Objects))).
