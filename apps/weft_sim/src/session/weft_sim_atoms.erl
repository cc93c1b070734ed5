%% SPDX-License-Identifier: Apache-2.0
%% @doc The atom cache of a simulated VM, at both ends of a connection. A sender of frames refers to
%% atoms by slots, and tells a text where it defines one anew; the receiver has to find in its own
%% slots what was meant. The form of headers: ERTS User's Guide, "Distribution Header".
-module(weft_sim_atoms).

-export([refer/2, header/1, read/1, told/3]).
-export_type([slots/0, use/0, entry/0]).

-type slot() :: 0..2047.
-type slots() :: #{slot() => Text :: binary()}.
%% What a frame means, and whether it defines that.
-type use() :: {slot(), Text :: binary(), new | old}.
%% What its header says.
-type entry() :: {slot(), old | Text :: binary()}.

-define(SLOTS, {0, 7, 300}).
%% So many frames of a sender refer to what is there, before one defines another atom.
-define(NEW_EVERY, 50).

%% @doc What the frame of that number of a sender refers to.
-spec refer(Number :: pos_integer(), slots()) -> {[use()], slots()}.
refer(Number, Slots) ->
    Slot = element(1 + Number rem tuple_size(?SLOTS), ?SLOTS),
    case Slots of
        #{Slot := Text} when Number rem ?NEW_EVERY =/= 1 ->
            {[{Slot, Text, old}], Slots};
        #{} ->
            Text = integer_to_binary(erlang:phash2({Number, Slots})),
            {[{Slot, Text, new}], Slots#{Slot => Text}}
    end.

%% @doc The part of a frame that says so.
-spec header([use()]) -> binary().
header([]) ->
    <<0>>;
header([{Slot, _Text, old}]) ->
    <<1, (Slot div 256), Slot>>;
header([{Slot, Text, new}]) ->
    <<1, (8 + Slot div 256), Slot, (byte_size(Text)), Text/binary>>.

%% @doc What a header says that may have been written anew on the way, and what comes behind it.
-spec read(binary()) -> {[entry()], Rest :: binary()}.
read(<<0, Rest/binary>>) ->
    {[], Rest};
read(<<Count, References/binary>>) ->
    Bytes = Count div 2 + 1,
    <<Flags:Bytes/binary, Slots/binary>> = References,
    Halves = lists:append([[Byte rem 16, Byte div 16] || <<Byte>> <= Flags]),
    LengthBits = 8 + 8 * (lists:nth(Count + 1, Halves) rem 2),
    read(lists:sublist(Halves, Count), LengthBits, Slots, []).

read([], _LengthBits, Rest, Entries) ->
    {lists:reverse(Entries), Rest};
read([Half | Halves], LengthBits, <<Slot, Rest/binary>>, Entries) when Half < 8 ->
    read(Halves, LengthBits, Rest, [{256 * Half + Slot, old} | Entries]);
read([Half | Halves], LengthBits, <<Slot, References/binary>>, Entries) ->
    <<Length:LengthBits, Text:Length/binary, Rest/binary>> = References,
    read(Halves, LengthBits, Rest, [{256 * (Half - 8) + Slot, Text} | Entries]).

%% @doc A frame has come. What it means that is not found, and the slots from then on.
-spec told([entry()], Meant :: [{slot(), Text :: binary()}], slots()) ->
          {[{slot(), Meant :: binary(), Found :: binary() | none}], slots()}.
told(Entries, Meant, Slots0) ->
    Slots = maps:merge(Slots0, maps:from_list([Entry || {_, Text} = Entry <- Entries,
                                                        Text =/= old])),
    {[{Slot, Text, maps:get(Slot, Slots, none)}
      || {Slot, Text} <- Meant, maps:get(Slot, Slots, none) =/= Text], Slots}.
