%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings hints to the owner of their partition, in batches, and tells the partition here what
%% was brought. What is not brought is tried again with the next tick of the partition. Not here:
%% which objects are hints (`weft_kv_vnode').
-module(weft_kv_hints).

-export([next/3, start/3, bring/4]).
-export_type([hints/0, start/0, ask/0]).

-type hints() :: #{weft_kv_table:key() => true}.

-type start() :: fun((Partition :: non_neg_integer(), Owner :: node(), [[weft_kv_copy:item()]]) ->
                         pid()).
-type ask() :: fun((weft_vnode:place(), weft_kv_table:key(), Command :: term()) ->
                       {ok, Answer :: term()} | {error, term()}).

-define(ASK_MS, 5000).
-define(HINTS_MAX, 100).

%% @doc Some of these, in batches of not many more bytes than so many, and the hints without what
%% was forgotten meanwhile: that needs no owner. They begin anywhere: those that an owner refuses,
%% as it is full, may not keep the others here.
-spec next(hints(), BytesMax :: pos_integer(), weft_kv_table:table()) ->
          {[[weft_kv_copy:item()]], hints()}.
next(Hints, BytesMax, Table) ->
    Keys = some(maps:keys(Hints)),
    Batches = batches(Keys, BytesMax, Table),
    Left = maps:without([Key || Batch <- Batches, {Key, none} <- Batch], Hints),
    {[[Item || {_, {_, _}} = Item <- Batch] || Batch <- Batches], Left}.

some([]) ->
    [];
some(Keys) ->
    {Before, From} = lists:split(rand:uniform(length(Keys)) - 1, Keys),
    lists:sublist(From ++ Before, ?HINTS_MAX).

batches([], _, _) -> [];
batches(Keys, BytesMax, Table) ->
    Batch = weft_kv_table:batch(Keys, BytesMax, Table),
    [Batch | batches(lists:nthtail(length(Batch), Keys), BytesMax, Table)].

%% @doc In a process of its own. What users have stored is not for logs.
-spec start(Partition :: non_neg_integer(), Owner :: node(), [[weft_kv_copy:item()]]) -> pid().
start(Partition, Owner, Batches) ->
    Ask = fun(Place, Key, Command) ->
              weft_vnode:ask(weft_kv_vnode, Place, Key, Command, ?ASK_MS)
          end,
    spawn(weft_redact, run, [fun() -> bring(Partition, Owner, Batches, Ask) end]).

%% @doc Ends when the owner does not take a batch.
-spec bring(Partition :: non_neg_integer(), Owner :: node(), [[weft_kv_copy:item()]], ask()) -> ok.
bring(Partition, Owner, Batches, Ask) ->
    case [Item || [Item | _] <- Batches] of
        [{Key, {_, #{n := N}}} | _] ->
            case Ask({Partition, Owner, primary}, Key, {entropy, {segments, N}}) of
                {ok, Segments} ->
                    brought(Batches, weft_kv_copy:way(Segments), {Partition, Owner}, Ask);
                {error, _} -> ok
            end;
        [] -> ok
    end.

brought([], _, _, _) ->
    ok;
brought([Batch | Batches], Way, {Partition, Owner} = To, Ask) ->
    AskOwner = fun(P, Key, Command) -> Ask({P, Owner, primary}, Key, Command) end,
    case weft_kv_copy:write(Way, Partition, Batch, AskOwner) of
        {ok, _} ->
            ok = forget(Batch, Partition, Ask),
            brought(Batches, Way, To, Ask);
        {error, _} -> ok
    end.

%% If that is not heard, it is brought once more.
forget([], _, _) -> ok;
forget([{Key, _} | _] = Batch, Partition, Ask) ->
    _ = Ask({Partition, node(), fallback}, Key, {brought, Batch}),
    ok.
