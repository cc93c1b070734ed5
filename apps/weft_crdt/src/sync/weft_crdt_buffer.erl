%% SPDX-License-Identifier: Apache-2.0
%% @doc What has yet to reach one neighbour: deltas by key, joined, of which one message at a time
%% is on its way. What the neighbour has acknowledged is gone from here, and so is what came from
%% it.
%%
%% A delta is `shared' if all other neighbours that this node serves get it too, so that the
%% receiver need not pass it on to them; and `own' if only this neighbour asked for it.
%%
%% Keys wait in two turns. A key that begins to wait comes into the second one, which has its turn
%% when all of the first one is on its way. So a key that changes all the time does not hold up
%% others, wherever it is in the order of the map.
%%
%% What was sent is not sent again before it is known that it did not arrive, by the answer to a
%% question that was sent behind it: an acknowledgement of a later number.
%%
%% When as many keys wait as may, deltas of others are dropped, and the buffer is `behind': once it
%% is empty, the two stores have to be compared.
-module(weft_crdt_buffer).

-export([new/1, add/6, offer/5, heard/5, next/2, acked/2, late/2, tries/1, is_behind/1,
         caught_up/1, count/1]).
-export_type([buffer/0, kind/0, item/0]).

%% With times as `weft_crdt_sending' has them by default: half an hour.
-define(TRIES_MAX, 64).

-type kind() :: shared | own.
-type item() :: {Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed()}.
-type waiting() :: #{Key :: term() => {weft_crdt_type:name(), weft_crdt_type:state(), kind()}}.

-record(buffer, {
    %% The first turn and the second one. Earlier code had one map.
    waiting = {#{}, #{}} :: {waiting(), waiting()} | waiting(),
    sent = none :: none | {Seq :: integer(), waiting()},
    seq :: integer(),
    tries = 0 :: non_neg_integer(),
    is_behind = false :: boolean()}).

-opaque buffer() :: #buffer{}.

%% @doc Nothing waits. The first number is one that no earlier buffer for this neighbour had.
-spec new(Seq :: integer()) -> buffer().
new(Seq) -> #buffer{seq = Seq}.

%% @doc One more delta. Max: how many keys may wait.
-spec add(Key :: term(), weft_crdt_type:name(), weft_crdt_type:state(), kind(),
          Max :: pos_integer(), buffer()) -> buffer().
add(Key, Type, Delta, Kind, Max, Buffer) ->
    Change = {Type, Delta, Kind},
    case turns(Buffer) of
        {#{Key := Before} = First, Second} ->
            Buffer#buffer{waiting = {First#{Key := joined(Before, Change)}, Second}};
        {First, #{Key := Before} = Second} ->
            Buffer#buffer{waiting = {First, Second#{Key := joined(Before, Change)}}};
        {First, Second} when map_size(First) + map_size(Second) >= Max ->
            Buffer#buffer{is_behind = true};
        {First, Second} ->
            Buffer#buffer{waiting = {First, Second#{Key => Change}}}
    end.

turns(#buffer{waiting = {First, Second}}) -> {First, Second};
turns(#buffer{waiting = Waiting}) -> {Waiting, #{}}.

joined({Type, A, KindA}, {_, B, KindB}) ->
    {ok, M} = weft_crdt_type:module(Type),
    %% `shared' only if both are: `own' is the lesser term.
    {Type, M:merge(A, B), min(KindA, KindB)}.

%% @doc One more delta, which a comparison has found, for this neighbour only. What is on its way
%% already need not wait, too: the neighbour has compared what it had before.
-spec offer(Key :: term(), weft_crdt_type:name(), weft_crdt_type:state(), Max :: pos_integer(),
            buffer()) -> buffer().
offer(Key, Type, Delta, Max, #buffer{sent = {_, Sent}} = Buffer) when is_map_key(Key, Sent) ->
    {ok, M} = weft_crdt_type:module(Type),
    {Type, Before, _} = map_get(Key, Sent),
    Left = M:difference(Delta, Before),
    case Left =:= M:new() of
        true -> Buffer;
        false -> add(Key, Type, Left, own, Max, Buffer)
    end;
offer(Key, Type, Delta, Max, Buffer) ->
    add(Key, Type, Delta, own, Max, Buffer).

%% @doc The neighbour has sent this, so it need not get it.
-spec heard(Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed(),
            weft_crdt_retired:table(), buffer()) -> buffer().
heard(Key, Type, Packed, Table, Buffer) ->
    {First, Second} = turns(Buffer),
    Buffer#buffer{waiting = {without(Key, Type, Packed, Table, First),
                             without(Key, Type, Packed, Table, Second)}}.

without(Key, Type, Packed, Table, Waiting) ->
    case Waiting of
        #{Key := {Type, Delta, Kind}} ->
            {ok, M} = weft_crdt_type:module(Type),
            {ok, Has} = M:unpack(Packed, Table),
            Left = M:difference(Delta, Has),
            case Left =:= M:new() of
                true -> maps:remove(Key, Waiting);
                false -> Waiting#{Key := {Type, Left, Kind}}
            end;
        #{} -> Waiting
    end.

%% @doc The next message, if none is on its way and something waits: at least one item, and not much
%% more than so many bytes, unless the first one has more.
-spec next(MaxBytes :: pos_integer(), buffer()) ->
          {Seq :: integer(), Shared :: [item()], Own :: [item()], buffer()} | none.
next(Max, #buffer{sent = none, seq = Seq0} = Buffer) ->
    {First, Second} = turned(turns(Buffer)),
    {Left, OfFirst} = taken(maps:next(maps:iterator(First)), Max, []),
    case taken(maps:next(maps:iterator(Second)), Left, OfFirst) of
        {_, []} -> none;
        {_, Taken} ->
            Sent = maps:from_list([{Key, Value} || {Key, Value, _} <- Taken]),
            Items = fun(Wanted) -> [Item || {_, {_, _, Kind}, Item} <- Taken, Kind =:= Wanted] end,
            Rest = fun(Turn) -> maps:without(maps:keys(Sent), Turn) end,
            Seq = Seq0 + 1,
            {Seq, Items(shared), Items(own),
             Buffer#buffer{waiting = {Rest(First), Rest(Second)}, sent = {Seq, Sent}, seq = Seq}}
    end;
next(_, _) ->
    none.

turned({First, Second}) when map_size(First) =:= 0 -> {Second, #{}};
turned(Turns) -> Turns.

taken(none, Bytes, Taken) -> {Bytes, Taken};
taken(_, Bytes, Taken) when Bytes =< 0 -> {Bytes, Taken};
taken({Key, {Type, Delta, _} = Value, Rest}, Bytes, Taken) ->
    {ok, M} = weft_crdt_type:module(Type),
    Item = {Key, Type, M:pack(Delta)},
    taken(maps:next(Rest), Bytes - erlang:external_size(Item), [{Key, Value, Item} | Taken]).

%% @doc The neighbour has what the message with that number said. If that was a question, it lacks
%% the message before it: all of it waits again, with what came since.
-spec acked(Seq :: term(), buffer()) -> buffer().
acked(Seq, #buffer{sent = {Seq, _}} = Buffer) ->
    Buffer#buffer{sent = none, tries = 0};
acked(Later, #buffer{sent = {Seq, Sent}, seq = Last} = Buffer)
  when is_integer(Later), Later > Seq, Later =< Last ->
    {First, Second} = turns(Buffer),
    Keys = maps:keys(Sent),
    Again = together(together(Sent, maps:with(Keys, Second)), First),
    Buffer#buffer{sent = none, waiting = {Again, maps:without(Keys, Second)}};
acked(_, Buffer) ->
    Buffer.

%% @doc Is the message with that number not acknowledged yet? Then this is the number of a question
%% to send behind it. After many in vain all that waits is given up, and the stores have to be
%% compared.
-spec late(Seq :: integer(), buffer()) ->
          {ask, Question :: integer(), buffer()} | {given_up, buffer()} | no.
late(Seq, #buffer{sent = {Seq, _}, tries = ?TRIES_MAX} = Buffer) ->
    {given_up, Buffer#buffer{sent = none, waiting = {#{}, #{}}, tries = 0, is_behind = true}};
late(Seq, #buffer{sent = {Seq, _}, seq = Last, tries = Tries} = Buffer) ->
    {ask, Last + 1, Buffer#buffer{seq = Last + 1, tries = Tries + 1}};
late(_, _) ->
    no.

together(Changes, Since) ->
    maps:merge_with(fun(_, Before, More) -> joined(Before, More) end, Changes, Since).

%% @doc How often time was over since something was acknowledged.
-spec tries(buffer()) -> non_neg_integer().
tries(#buffer{tries = Tries}) -> Tries.

%% @doc Whether something was dropped, and everything else has arrived.
-spec is_behind(buffer()) -> boolean().
is_behind(#buffer{is_behind = IsBehind} = Buffer) -> IsBehind andalso count(Buffer) =:= 0.

%% @doc The stores are compared now.
-spec caught_up(buffer()) -> buffer().
caught_up(Buffer) -> Buffer#buffer{is_behind = false}.

%% @doc How many keys wait.
-spec count(buffer()) -> non_neg_integer().
count(#buffer{sent = Sent} = Buffer) ->
    {First, Second} = turns(Buffer),
    map_size(First) + map_size(Second) + case Sent of
                                             none -> 0;
                                             {_, Keys} -> map_size(Keys)
                                         end.
