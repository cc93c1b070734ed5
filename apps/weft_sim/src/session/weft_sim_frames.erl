%% SPDX-License-Identifier: Apache-2.0
%% @doc Frames of the distribution protocol for the simulator: as the VM gives them out, as far as
%% `weft_frame' looks at them, and with a note inside that the receiving end checks.
-module(weft_sim_frames).

-export([whole/3, last/1, ordered/1, fragments/5, notes/1]).
-export_type([note/0]).

%% Any term; comes out at the other end.
-type note() :: term().

%% @doc A signal of one frame from the sender of that key, with so many bytes of payload.
-spec whole(weft_frame:key(), note(), Bytes :: non_neg_integer()) -> iodata().
whole(Key, Note, Bytes) ->
    [<<131, 68, 0, (control(Key))/binary, (note(Note))/binary>>, padding(Bytes)].

%% @doc A signal of no known sender that comes after all that was there before it: a DOWN from a
%% name.
-spec last(note()) -> iodata().
last(Note) ->
    [<<131, 68, 0, 104, 5, 97, 21, 119, 1, $n, (note(Note))/binary>>].

%% @doc One that is also before all that follows: a control message that nobody knows.
-spec ordered(note()) -> iodata().
ordered(Note) ->
    [<<131, 68, 0, 104, 2, 97, 99, (note(Note))/binary>>].

%% @doc A signal of as many fragments as there are notes, more than one. Sequence names it.
-spec fragments(weft_frame:key(), weft_frame:fragments(), note(), [note(), ...],
                FragmentBytes :: pos_integer()) -> [iodata()].
fragments(Key, Sequence, First, More, Bytes) ->
    Count = length(More),
    [[<<131, 69, Sequence:64, (Count + 1):64, 0, (control(Key))/binary, (note(First))/binary>>,
      padding(Bytes)]
     | [[<<131, 70, Sequence:64, Left:64, (note(Note))/binary>>, padding(Bytes)]
        || {Left, Note} <- lists:zip(lists:seq(Count, 1, -1), More)]].

%% SEND_SENDER, by a process of a node with a short name.
control(Key) ->
    <<104, 3, 97, 22, 88, 119, 1, $s, Key:32, (Key bsr 32):32, 1:32>>.

note(Note) ->
    Bin = term_to_binary(Note),
    <<(byte_size(Bin)):32, Bin/binary>>.

padding(Bytes) ->
    <<0:Bytes/unit:8>>.

%% @doc The notes of the frames of a payload, each with its frame behind its size in 32 bits.
-spec notes(Payload :: binary()) -> [note()].
notes(<<Size:32, Frame:Size/binary, Rest/binary>>) ->
    <<Length:32, Note:Length/binary, _/binary>> = behind_control(Frame),
    [binary_to_term(Note) | notes(Rest)];
notes(<<>>) ->
    [].

behind_control(<<131, 68, 0, 104, 3, 97, 22, 88, 119, 1, $s, _:12/binary, Note/binary>>) -> Note;
behind_control(<<131, 68, 0, 104, 5, 97, 21, 119, 1, $n, Note/binary>>) -> Note;
behind_control(<<131, 68, 0, 104, 2, 97, 99, Note/binary>>) -> Note;
behind_control(<<131, 69, _:16/binary, 0, 104, 3, 97, 22, 88, 119, 1, $s, _:12/binary,
                 Note/binary>>) -> Note;
behind_control(<<131, 70, _:16/binary, Note/binary>>) -> Note.
