%% SPDX-License-Identifier: Apache-2.0
%% @doc Frames of pinned senders that wait to be sent as bypass payloads (`weft_fair_queue_core').
%%
%% A bypass payload may be delivered before payloads with lower numbers. This module has a FIFO for
%% each sender; the senders take turns. It takes only small frames and a bounded number of bytes of
%% each sender. A sender that has more waiting gets an ordinary queue.
%%
%% When a bypass payload is sent, `behind/3' says what must be delivered before it:
%% <ul>
%% <li>`last': the previous bypass payload of the same sender.</li>
%% <li>`all': all payloads that were sent before it. This is so if frames of the sender may be among
%%     them: after the process was pinned, after large messages, and after a frame that all senders
%%     have to wait for.</li>
%% <li>`defines': as `all', and the payload changes the atoms that the peer knows. Frames name atoms
%%     by number, so the peer must know the same atoms as if it had received all in order. Hence
%%     every bypass payload that is sent later must wait for this one.</li>
%% </ul>
-module(weft_bypass_queue).

-export([new/0, is_empty/1, holds/2, place/2, remove/2, begun/1, keep/2, take/1, behind/3,
         code_change/1]).
-export_type([bypass/0, behind/0]).

-define(SMALL_BYTES, 16384).
%% A sender with more bytes waiting than this gets a queue, and its turn by bytes.
-define(WAITING_MAX_BYTES, 262144).
-define(FULL_BYTES, 66560).

-type behind() :: last | all | defines.

-record(bypass, {fifos = #{} :: #{weft_frame:key() => weft_payload_fifo:fifo()},
                 turns = queue:new() :: queue:queue(weft_frame:key()),
                 %% Senders whose last payload was a bypass payload.
                 settled = #{} :: #{weft_frame:key() => []}}).
-opaque bypass() :: #bypass{}.

-spec new() -> bypass().
new() -> #bypass{}.

-spec is_empty(bypass()) -> boolean().
is_empty(#bypass{fifos = Fifos}) -> map_size(Fifos) =:= 0.

%% @doc Does a frame of the sender wait here? Then later frames of it must not pass that one.
-spec holds(weft_frame:sender(), bypass()) -> boolean().
holds(Key, #bypass{fifos = Fifos}) -> is_map_key(Key, Fifos).

%% @doc Takes a frame of a sender that has no queue, if it may bypass others.
-spec place(weft_fair_queue_core:frame(), bypass()) -> {ok, bypass()} | no.
place({Size, _, _, _, Part, _}, _Bypass) when Size >= ?SMALL_BYTES; Part =/= whole ->
    no;
place({Size, _, Key, _, _, _} = Frame, #bypass{fifos = Fifos, turns = Turns} = Bypass) ->
    case Fifos of
        #{Key := Fifo} ->
            case weft_payload_fifo:bytes(Fifo) + Size =< ?WAITING_MAX_BYTES of
                true -> {ok, Bypass#bypass{fifos = Fifos#{Key := append(Frame, Fifo)}}};
                false -> no
            end;
        _ ->
            Fifo = append(Frame, weft_payload_fifo:new(?FULL_BYTES)),
            {ok, Bypass#bypass{fifos = Fifos#{Key => Fifo}, turns = queue:in(Key, Turns)}}
    end.

append({Size, Data, _, _, Part, Stamp}, Fifo) ->
    weft_payload_fifo:add(Size, Data, Part, Stamp, Fifo).

%% @doc The sender gets a queue: takes out what waits here, for the queue to begin with.
-spec remove(weft_frame:key(), bypass()) -> {weft_payload_fifo:fifo() | none, bypass()}.
remove(Key, #bypass{fifos = Fifos0, turns = Turns, settled = Settled} = Bypass0) ->
    Bypass = Bypass0#bypass{settled = maps:remove(Key, Settled)},
    case maps:take(Key, Fifos0) of
        {Fifo, Fifos} -> {Fifo, Bypass#bypass{fifos = Fifos, turns = queue:delete(Key, Turns)}};
        error -> {none, Bypass}
    end.

%% @doc The number of the last payload in the FIFO of each sender.
-spec begun(bypass()) -> #{weft_frame:key() => pos_integer()}.
begun(#bypass{fifos = Fifos}) ->
    maps:map(fun(_, Fifo) -> weft_payload_fifo:begun(Fifo) end, Fifos).

%% @doc The next payload of all other senders has to wait for all payloads before it.
-spec keep([weft_frame:key()], bypass()) -> bypass().
keep(Keys, #bypass{settled = Settled} = Bypass) ->
    Bypass#bypass{settled = maps:with(Keys, Settled)}.

%% @doc The next payload, its sender, and its number among those of this sender.
-spec take(bypass()) -> {weft_frame:key(), pos_integer(), weft_payload_fifo:payload(), bypass()}.
take(#bypass{fifos = Fifos, turns = Turns0} = Bypass) ->
    {{value, Key}, Turns} = queue:out(Turns0),
    {Payload, Fifo} = weft_payload_fifo:take(maps:get(Key, Fifos)),
    {Key, weft_payload_fifo:taken(Fifo), Payload,
     case weft_payload_fifo:bytes(Fifo) of
         0 -> Bypass#bypass{fifos = maps:remove(Key, Fifos), turns = Turns};
         _ -> Bypass#bypass{fifos = Fifos#{Key := Fifo}, turns = queue:in(Key, Turns)}
     end}.

%% @doc What must be delivered before a payload that is sent now.
-spec behind(weft_frame:key(), Defines :: boolean(), bypass()) -> {behind(), bypass()}.
behind(Key, Defines, #bypass{settled = Settled} = Bypass) ->
    {case Settled of
         _ when Defines -> defines;
         #{Key := _} -> last;
         _ -> all
     end, Bypass#bypass{settled = Settled#{Key => []}}}.

%% @doc The queue as this version keeps it. Before, it had another tag.
-spec code_change(bypass() | Before :: tuple()) -> bypass().
code_change(Bypass) -> setelement(1, Bypass, bypass).
