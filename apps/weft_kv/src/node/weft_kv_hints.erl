%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings hints to the owner of their partition, in batches, and tells the partition here what
%% was brought. What is not brought is tried again with the next tick of the partition. Not here:
%% which objects are hints (`weft_kv_vnode').
-module(weft_kv_hints).

-export([bring/3]).

-define(ASK_MS, 5000).

%% @doc In a process of its own; ends when the owner does not take a batch.
-spec bring(Partition :: non_neg_integer(), Owner :: node(), [[weft_kv_copy:item()]]) -> ok.
bring(Partition, Owner, Batches) ->
    Ask = fun(P, Key, Command) ->
              weft_vnode:ask(weft_kv_vnode, {P, Owner, primary}, Key, Command, ?ASK_MS)
          end,
    case [Item || [Item | _] <- Batches] of
        [{Key, {_, #{n := N}}} | _] ->
            case Ask(Partition, Key, {entropy, {segments, N}}) of
                {ok, Segments} -> brought(Batches, weft_kv_copy:way(Segments), Partition, Ask);
                {error, _} -> ok
            end;
        [] -> ok
    end.

brought([], _, _, _) ->
    ok;
brought([Batch | Batches], Way, Partition, Ask) ->
    case weft_kv_copy:write(Way, Partition, Batch, Ask) of
        {ok, _} ->
            ok = forget(Batch, Partition),
            brought(Batches, Way, Partition, Ask);
        {error, _} -> ok
    end.

%% If that is not heard, it is brought once more.
forget([], _) -> ok;
forget([{Key, _} | _] = Batch, Partition) ->
    _ = weft_vnode:ask(weft_kv_vnode, {Partition, node(), fallback}, Key, {brought, Batch},
                       ?ASK_MS),
    ok.
