%% SPDX-License-Identifier: Apache-2.0
%% @doc A network of several lanes for properties: each is a queue of items `{Sequence, _, _, _}';
%% those of different lanes overtake each other, can come twice, and are lost when the path breaks.
-module(weft_lanes_model).

-export([new/0, send/3, spread/3, take/2, peek/2, broken/2, oldest/1]).
-export_type([lanes/0]).

-type item() :: {Sequence :: pos_integer(), term(), term(), term()}.
-opaque lanes() :: #{pos_integer() => [item()]}.

-spec new() -> lanes().
new() -> #{}.

-spec send(item(), pos_integer(), lanes()) -> lanes().
send(Item, Lane, Lanes) ->
    Lanes#{Lane => maps:get(Lane, Lanes, []) ++ [Item]}.

%% @doc All of them, over so many lanes.
-spec spread([item()], Count :: pos_integer(), lanes()) -> lanes().
spread(Items, Count, Lanes) ->
    lists:foldl(fun({Sequence, _, _, _} = Item, Acc) -> send(Item, 1 + Sequence rem Count, Acc) end,
                Lanes, Items).

%% @doc The next item of a lane arrives.
-spec take(pos_integer(), lanes()) -> {item(), lanes()} | none.
take(Lane, Lanes) ->
    case Lanes of
        #{Lane := [Item | Rest]} -> {Item, Lanes#{Lane := Rest}};
        #{} -> none
    end.

%% @doc The same, and it will come again.
-spec peek(pos_integer(), lanes()) -> {item(), lanes()} | none.
peek(Lane, Lanes) ->
    case Lanes of
        #{Lane := [Item | _]} -> {Item, Lanes};
        #{} -> none
    end.

%% @doc A break loses what is under way; some of it may still arrive, late: where the bits say so.
-spec broken(binary(), lanes()) -> lanes().
broken(<<>>, _Lanes) -> #{};
broken(Random, Lanes) -> #{1 => lists:append([kept(Random, Items) || Items <- maps:values(Lanes)])}.

kept(Random, Items) ->
    [Item || {Index, Item} <- lists:zip(lists:seq(0, length(Items) - 1), Items),
             binary:at(Random, Index rem byte_size(Random)) band 1 =:= 1].

%% @doc The lane whose next item has the smallest number.
-spec oldest(lanes()) -> {ok, pos_integer()} | none.
oldest(Lanes) ->
    case lists:sort([{Sequence, Lane}
                     || {Lane, [{Sequence, _, _, _} | _]} <- maps:to_list(Lanes)]) of
        [] -> none;
        [{_, Lane} | _] -> {ok, Lane}
    end.
