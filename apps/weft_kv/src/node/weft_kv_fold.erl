%% SPDX-License-Identifier: Apache-2.0
%% @doc Goes through all keys of a bucket: partition by partition, a page at a time, from as many
%% replicas as a read asks. So what is held at a time is bounded.
-module(weft_kv_fold).

-export([fold/4]).

%% @doc See `weft_kv:fold/3'.
-spec fold(atom(), weft_kv_bucket:options(), fun((binary(), [binary()], Acc) -> Acc), Acc) ->
          {ok, Acc} | {error, term()}.
fold(Bucket, Options, Fun, Acc) ->
    case weft_ring_lookup:owners(weft_ring) of
        {error, Reason} -> {error, Reason};
        {ok, Owners} -> partitions([P || {P, _, _} <- Owners], {Bucket, Options, Fun}, Acc)
    end.

partitions([], _, Acc) ->
    {ok, Acc};
partitions([Partition | Partitions], {_, #{n := N}, _} = Context, Acc0) ->
    case weft_ring_lookup:replicas(weft_ring, Partition, N) of
        {error, Reason} -> {error, Reason};
        {ok, Places} ->
            case pages({Partition, Places, <<>>}, Context, Acc0) of
                {ok, Acc} -> partitions(Partitions, Context, Acc);
                {error, Reason} -> {error, Reason}
            end
    end.

pages({Partition, Places, After}, {Bucket, #{r := R, timeout_ms := Ms}, Fun} = Context, Acc0) ->
    Key = {Partition, Bucket, After},
    Answers = answers(R, Places, fun(Place) ->
                                     weft_vnode:ask(weft_kv_vnode, Place, Key, {page, After}, Ms)
                                 end),
    case length(Answers) < R of
        true ->
            {error, {too_few, #{needed => #{r => R}, answered => length(Answers), failed => []}}};
        false ->
            Until = until(Answers),
            Acc = lists:foldl(fun({K, Object}, A) -> with(K, Object, Fun, A) end, Acc0,
                              merged(Until, Answers)),
            case Until of
                all -> {ok, Acc};
                Last -> pages({Partition, Places, Last}, Context, Acc)
            end
    end.

answers(0, _, _) -> [];
answers(_, [], _) -> [];
answers(Wanted, [Place | Places], Ask) ->
    case Ask(Place) of
        {ok, Page} -> [Page | answers(Wanted - 1, Places, Ask)];
        {error, _} -> answers(Wanted, Places, Ask)
    end.

%% Up to here all pages go.
until(Pages) ->
    case [element(1, lists:last(Items)) || {Items, false} <- Pages] of
        [] -> all;
        Lasts -> lists:min(Lasts)
    end.

merged(Until, Pages) ->
    Objects = [Item || {Items, _} <- Pages, {Key, _} = Item <- Items,
                       Until =:= all orelse Key =< Until],
    lists:sort(maps:to_list(lists:foldl(fun({Key, Object}, All) ->
                                            maps:update_with(Key, fun(Other) ->
                                                weft_kv_object:merge(Object, Other)
                                            end, Object, All)
                                        end, #{}, Objects))).

with(Key, Object, Fun, Acc) ->
    Now = weft_kv_object:expire(erlang:system_time(millisecond), Object),
    case lists:usort(weft_kv_object:values(Now)) of
        [] -> Acc;
        Values -> Fun(Key, Values, Acc)
    end.
