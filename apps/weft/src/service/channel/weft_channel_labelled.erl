%% SPDX-License-Identifier: Apache-2.0
%% @doc The way of a message with a label into the queue of a channel.
%%
%% The participant of the label puts it in, together with its number in the order (`weft_causal').
%% So whoever is killed or refused on the way leaves no number that others wait for. What may take
%% long is done by the calling process: it starts the queue, and waits for room.
-module(weft_channel_labelled).

-export([put/5]).

-define(CLOSED_TRIES, 1000).

%% What is the same for all tries.
-record(put, {node :: node(),
              partition :: weft_channels:partition(),
              channel :: weft_channels:channel(),
              cost :: pos_integer(),
              item :: weft_channel_wire:item(),
              place :: none | weft_causal:place()}).

%% @doc Puts an item in. Place is `none', or what was returned when an acknowledged message was put
%% in before. Returns the process that has it now.
-spec put(node(), weft_channels:partition(), weft_channels:channel(), weft_channel_wire:item(),
          none | weft_causal:place()) ->
          {put, pid(), none | weft_causal:place()} | {error, overloaded | not_started | term()}.
put(Node, Partition, #{queue_bytes := Max} = Channel, Item0, Place) ->
    Item = stamped(Item0, Place),
    put(Max, ?CLOSED_TRIES, #put{node = Node, partition = Partition, channel = Channel,
                                 cost = weft_channel_entry:cost(Item), item = Item,
                                 place = Place}).

stamped(Item, none) -> Item;
stamped({Kind, To, Content, Ack, {Label, none}}, {_To, Stamp}) ->
    {Kind, To, Content, Ack, {Label, Stamp}}.

put(_Limit, 0, _Put) ->
    {error, overloaded};
put(Limit, Tries, #put{node = Node, partition = Partition, channel = Channel, cost = Cost,
                       item = Item} = Put) ->
    case weft_channel_entry:queue(Node, Partition, Channel) of
        {error, _} = Error ->
            Error;
        {Pid, _} = Queue ->
            case given({Queue, Limit, Cost, Item}, Put) of
                {ok, Place} -> {put, Pid, Place};
                full -> waited(weft_channel_entry:no_room(Pid, Cost, Channel), Tries, Put);
                closed -> again(Limit, Tries, Put);
                {error, _} = Error -> Error
            end
    end.

given({_, _, _, {_, _, _, _, {Label, none}}} = Gift, #put{node = Node, place = none}) ->
    weft_causal:put(Label, Node, Gift);
given(Gift, #put{place = Place}) ->
    case weft_causal:put_again(Place, Gift) of
        ok -> {ok, Place};
        FullOrClosed -> FullOrClosed
    end.

waited(go, Tries, Put) -> put(infinity, Tries, Put);
waited(gone, Tries, #put{channel = #{queue_bytes := Max}} = Put) -> again(Max, Tries, Put);
waited({error, _} = Error, _Tries, _Put) -> Error.

%% The process is about to end; the next one is started when its row has gone.
again(Limit, Tries, Put) ->
    erlang:yield(),
    put(Limit, Tries - 1, Put).
