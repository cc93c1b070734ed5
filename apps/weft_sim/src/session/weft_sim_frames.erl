%% SPDX-License-Identifier: Apache-2.0
%% @doc Frames of the distribution protocol for the simulator: as the VM gives them out, as far as
%% `weft_frame' and `weft_atom_cache' look at them, and with a note inside that the receiving end
%% checks.
-module(weft_sim_frames).

-export([whole/4, last/1, ordered/1, fragments/6, read/1]).
-export_type([note/0]).

%% Any term; comes out at the other end.
-type note() :: term().
-type atoms() :: [weft_sim_atoms:use()].

%% @doc A signal of one frame from the sender of that key, which refers to these atoms, with so many
%% bytes of payload.
-spec whole(weft_frame:key(), atoms(), note(), Bytes :: non_neg_integer()) -> iodata().
whole(Key, Atoms, Note, Bytes) ->
    [<<131, 68, (weft_sim_atoms:header(Atoms))/binary, (control(Key))/binary,
       (note(Atoms, Note))/binary>>, padding(Bytes)].

%% @doc A signal of no known sender that comes after all that was there before it: a DOWN from a
%% name.
-spec last(note()) -> iodata().
last(Note) ->
    [<<131, 68, 0, 104, 5, 97, 21, 119, 1, $n, (note([], Note))/binary>>].

%% @doc One that is also before all that follows: a control message that nobody knows.
-spec ordered(note()) -> iodata().
ordered(Note) ->
    [<<131, 68, 0, 104, 2, 97, 99, (note([], Note))/binary>>].

%% @doc A signal of as many fragments as there are notes, more than one. Sequence names it; the
%% first one refers to these atoms.
-spec fragments(weft_frame:key(), weft_frame:fragments(), atoms(), note(), [note(), ...],
                FragmentBytes :: pos_integer()) -> [iodata()].
fragments(Key, Sequence, Atoms, First, More, Bytes) ->
    Count = length(More),
    [[<<131, 69, Sequence:64, (Count + 1):64, (weft_sim_atoms:header(Atoms))/binary,
        (control(Key))/binary, (note(Atoms, First))/binary>>, padding(Bytes)]
     | [[<<131, 70, Sequence:64, Left:64, (note([], Note))/binary>>, padding(Bytes)]
        || {Left, Note} <- lists:zip(lists:seq(Count, 1, -1), More)]].

%% SEND_SENDER, by a process of a node with a short name.
control(Key) ->
    <<104, 3, 97, 22, 88, 119, 1, $s, Key:32, (Key bsr 32):32, 1:32>>.

note(Atoms, Note) ->
    Bin = term_to_binary({[{Slot, Text} || {Slot, Text, _} <- Atoms], Note}),
    <<(byte_size(Bin)):32, Bin/binary>>.

padding(Bytes) ->
    <<0:Bytes/unit:8>>.

%% @doc The notes of the frames of a payload, each with its frame behind its size in 32 bits: what
%% the frame's header says of atoms, what was meant, and the note.
-spec read(Payload :: binary()) ->
          [{[weft_sim_atoms:entry()], Meant :: [{non_neg_integer(), binary()}], note()}].
read(<<Size:32, Frame:Size/binary, Rest/binary>>) ->
    {Entries, Control} = behind_header(Frame),
    <<Length:32, Bin:Length/binary, _/binary>> = behind_control(Control),
    {Meant, Note} = binary_to_term(Bin),
    [{Entries, Meant, Note} | read(Rest)];
read(<<>>) ->
    [].

behind_header(<<131, 68, Header/binary>>) -> weft_sim_atoms:read(Header);
behind_header(<<131, 69, _:16/binary, Header/binary>>) -> weft_sim_atoms:read(Header);
behind_header(<<131, 70, _:16/binary, Note/binary>>) -> {[], Note}.

behind_control(<<104, 3, 97, 22, 88, 119, 1, $s, _:12/binary, Note/binary>>) -> Note;
behind_control(<<104, 5, 97, 21, 119, 1, $n, Note/binary>>) -> Note;
behind_control(<<104, 2, 97, 99, Note/binary>>) -> Note;
behind_control(Note) -> Note.
