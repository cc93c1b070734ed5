%% SPDX-License-Identifier: Apache-2.0
%% @doc What has yet to reach one neighbour: deltas by key, joined, of which one message at a time
%% is on its way. What the neighbour has acknowledged is gone from here, and so is what came from
%% it.
%%
%% A delta is `shared' if all other neighbours that this node serves get it too, so that the
%% receiver need not pass it on to them; and `own' if only this neighbour asked for it. When as many
%% keys wait as may, deltas of others are dropped, and the buffer is `behind': once it is empty, the
%% two stores have to be compared.
-module(weft_crdt_buffer).

-export([new/1, add/6, heard/5, next/2, acked/2, resend/2, tries/1, is_behind/1, caught_up/1,
         count/1]).
-export_type([buffer/0, kind/0, item/0]).

-define(TRIES_MAX, 6).

-type kind() :: shared | own.
-type item() :: {Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed()}.
-type waiting() :: #{Key :: term() => {weft_crdt_type:name(), weft_crdt_type:state(), kind()}}.

-record(buffer, {
    waiting = #{} :: waiting(),
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
add(Key, Type, Delta, Kind, Max, #buffer{waiting = Waiting} = Buffer) ->
    case Waiting of
        #{Key := Before} ->
            Buffer#buffer{waiting = Waiting#{Key := joined(Before, {Type, Delta, Kind})}};
        #{} when map_size(Waiting) >= Max ->
            Buffer#buffer{is_behind = true};
        #{} ->
            Buffer#buffer{waiting = Waiting#{Key => {Type, Delta, Kind}}}
    end.

joined({Type, A, KindA}, {_, B, KindB}) ->
    {ok, M} = weft_crdt_type:module(Type),
    %% `shared' only if both are: `own' is the lesser term.
    {Type, M:merge(A, B), min(KindA, KindB)}.

%% @doc The neighbour has sent this, so it need not get it.
-spec heard(Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed(),
            weft_crdt_retired:table(), buffer()) -> buffer().
heard(Key, Type, Packed, Table, #buffer{waiting = Waiting} = Buffer) ->
    case Waiting of
        #{Key := {Type, Delta, Kind}} ->
            {ok, M} = weft_crdt_type:module(Type),
            {ok, Has} = M:unpack(Packed, Table),
            Left = M:difference(Delta, Has),
            case Left =:= M:new() of
                true -> Buffer#buffer{waiting = maps:remove(Key, Waiting)};
                false -> Buffer#buffer{waiting = Waiting#{Key := {Type, Left, Kind}}}
            end;
        #{} -> Buffer
    end.

%% @doc The next message, if none is on its way and something waits: at least one item, and not much
%% more than so many bytes.
-spec next(Bytes :: pos_integer(), buffer()) ->
          {Seq :: integer(), Shared :: [item()], Own :: [item()], buffer()} | none.
next(Bytes, #buffer{waiting = Waiting, sent = none, seq = Seq0} = Buffer)
  when map_size(Waiting) > 0 ->
    Taken = taken(maps:next(maps:iterator(Waiting)), Bytes, []),
    Sent = maps:from_list([{Key, Value} || {Key, Value, _} <- Taken]),
    Items = fun(Wanted) -> [Item || {_, {_, _, Kind}, Item} <- Taken, Kind =:= Wanted] end,
    Seq = Seq0 + 1,
    {Seq, Items(shared), Items(own),
     Buffer#buffer{waiting = maps:without(maps:keys(Sent), Waiting), sent = {Seq, Sent},
                   seq = Seq}};
next(_, _) ->
    none.

taken(none, _, Taken) -> Taken;
taken(_, Bytes, Taken) when Bytes =< 0 -> Taken;
taken({Key, {Type, Delta, _} = Value, Rest}, Bytes, Taken) ->
    {ok, M} = weft_crdt_type:module(Type),
    Item = {Key, Type, M:pack(Delta)},
    taken(maps:next(Rest), Bytes - erlang:external_size(Item), [{Key, Value, Item} | Taken]).

%% @doc The neighbour has what the message with that number said.
-spec acked(Seq :: integer(), buffer()) -> buffer().
acked(Seq, #buffer{sent = {Seq, _}} = Buffer) -> Buffer#buffer{sent = none, tries = 0};
acked(_, Buffer) -> Buffer.

%% @doc Was the message with that number not acknowledged? Then all of it waits again, with what
%% came since. After some tries it is given up, and the stores have to be compared.
-spec resend(Seq :: integer(), buffer()) -> buffer() | no.
resend(Seq, #buffer{sent = {Seq, _}, tries = ?TRIES_MAX} = Buffer) ->
    Buffer#buffer{sent = none, waiting = #{}, tries = 0, is_behind = true};
resend(Seq, #buffer{sent = {Seq, Sent}, waiting = Waiting0, tries = Tries} = Buffer) ->
    Waiting = maps:fold(fun(Key, Value, W) ->
                            W#{Key => case W of
                                          #{Key := Since} -> joined(Value, Since);
                                          #{} -> Value
                                      end}
                        end, Waiting0, Sent),
    Buffer#buffer{sent = none, waiting = Waiting, tries = Tries + 1};
resend(_, _) ->
    no.

%% @doc How often the message that is on its way was sent before.
-spec tries(buffer()) -> non_neg_integer().
tries(#buffer{tries = Tries}) -> Tries.

%% @doc Whether something was dropped, and everything else has arrived.
-spec is_behind(buffer()) -> boolean().
is_behind(#buffer{is_behind = IsBehind, sent = Sent, waiting = Waiting}) ->
    IsBehind andalso Sent =:= none andalso map_size(Waiting) =:= 0.

%% @doc The stores are compared now.
-spec caught_up(buffer()) -> buffer().
caught_up(Buffer) -> Buffer#buffer{is_behind = false}.

%% @doc How many keys wait.
-spec count(buffer()) -> non_neg_integer().
count(#buffer{waiting = Waiting, sent = none}) -> map_size(Waiting);
count(#buffer{waiting = Waiting, sent = {_, Sent}}) -> map_size(Waiting) + map_size(Sent).
