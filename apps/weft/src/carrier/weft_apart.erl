%% SPDX-License-Identifier: Apache-2.0
%% @doc What pinned senders have waiting that travels apart from all else (`weft_fair_queue_core').
%%
%% A FIFO for each sender, served by turns. Only small frames, and not a flood: with more a sender
%% has a queue like others.
%%
%% The receiver gives out a payload that travels apart as soon as the last one of its sender that
%% did has been given out (`last'). It is behind `all' that went out before it if its sender may
%% have frames in there: after a pin, after large messages, after a frame that all have to wait for.
%% The VM that receives it must know the same atoms as if it had waited for its turn, so all that
%% travel apart are behind what has changed these; what itself changes them comes in its turn,
%% behind all (`defines').
-module(weft_apart).

-export([new/0, is_empty/1, holds/2, place/2, remove/2, begun/1, keep/2, take/1, behind/3]).
-export_type([apart/0, behind/0]).

-define(SMALL_BYTES, 16384).
%% More than that has its turn by bytes.
-define(WAITING_MAX_BYTES, 262144).
-define(FULL_BYTES, 66560).

-type behind() :: last | all | defines.

-record(apart, {fifos = #{} :: #{weft_frame:key() => weft_payload_fifo:fifo()},
                turns = queue:new() :: queue:queue(weft_frame:key()),
                %% Senders whose last payload travelled apart.
                settled = #{} :: #{weft_frame:key() => []}}).
-opaque apart() :: #apart{}.

-spec new() -> apart().
new() -> #apart{}.

-spec is_empty(apart()) -> boolean().
is_empty(#apart{fifos = Fifos}) -> map_size(Fifos) =:= 0.

%% @doc Does something of the sender wait here? Then later frames of it must not pass it.
-spec holds(weft_frame:sender(), apart()) -> boolean().
holds(Key, #apart{fifos = Fifos}) -> is_map_key(Key, Fifos).

%% @doc Takes a frame of a sender that has no queue, if it may travel apart.
-spec place(weft_fair_queue_core:frame(), apart()) -> {ok, apart()} | no.
place({Size, _, _, _, Part, _}, _Apart) when Size >= ?SMALL_BYTES; Part =/= whole ->
    no;
place({Size, _, Key, _, _, _} = Frame, #apart{fifos = Fifos, turns = Turns} = Apart) ->
    case Fifos of
        #{Key := Fifo} ->
            case weft_payload_fifo:bytes(Fifo) + Size =< ?WAITING_MAX_BYTES of
                true -> {ok, Apart#apart{fifos = Fifos#{Key := append(Frame, Fifo)}}};
                false -> no
            end;
        _ ->
            Fifo = append(Frame, weft_payload_fifo:new(?FULL_BYTES)),
            {ok, Apart#apart{fifos = Fifos#{Key => Fifo}, turns = queue:in(Key, Turns)}}
    end.

append({Size, Data, _, _, Part, Stamp}, Fifo) ->
    weft_payload_fifo:add(Size, Data, Part, Stamp, Fifo).

%% @doc The sender goes on with a queue: what of it waits here, to begin the queue with.
-spec remove(weft_frame:key(), apart()) -> {weft_payload_fifo:fifo() | none, apart()}.
remove(Key, #apart{fifos = Fifos0, turns = Turns, settled = Settled} = Apart0) ->
    Apart = Apart0#apart{settled = maps:remove(Key, Settled)},
    case maps:take(Key, Fifos0) of
        {Fifo, Fifos} -> {Fifo, Apart#apart{fifos = Fifos, turns = queue:delete(Key, Turns)}};
        error -> {none, Apart}
    end.

%% @doc The number of the last payload of each sender.
-spec begun(apart()) -> #{weft_frame:key() => pos_integer()}.
begun(#apart{fifos = Fifos}) ->
    maps:map(fun(_, Fifo) -> weft_payload_fifo:begun(Fifo) end, Fifos).

%% @doc What others than these send next is behind all.
-spec keep([weft_frame:key()], apart()) -> apart().
keep(Keys, #apart{settled = Settled} = Apart) -> Apart#apart{settled = maps:with(Keys, Settled)}.

%% @doc The next payload, whose it is, and its number there.
-spec take(apart()) -> {weft_frame:key(), pos_integer(), weft_payload_fifo:payload(), apart()}.
take(#apart{fifos = Fifos, turns = Turns0} = Apart) ->
    {{value, Key}, Turns} = queue:out(Turns0),
    {Payload, Fifo} = weft_payload_fifo:take(maps:get(Key, Fifos)),
    {Key, weft_payload_fifo:taken(Fifo), Payload,
     case weft_payload_fifo:bytes(Fifo) of
         0 -> Apart#apart{fifos = maps:remove(Key, Fifos), turns = Turns};
         _ -> Apart#apart{fifos = Fifos#{Key := Fifo}, turns = queue:in(Key, Turns)}
     end}.

%% @doc What a payload that goes out now is behind.
-spec behind(weft_frame:key(), Defines :: boolean(), apart()) -> {behind(), apart()}.
behind(Key, Defines, #apart{settled = Settled} = Apart) ->
    {case Settled of
         _ when Defines -> defines;
         #{Key := _} -> last;
         _ -> all
     end, Apart#apart{settled = Settled#{Key => []}}}.
