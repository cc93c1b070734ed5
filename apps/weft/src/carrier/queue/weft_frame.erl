%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds the sender of a frame of the distribution protocol.
%%
%% Frames of different senders may overtake each other, frames of one sender may not, so a fair
%% queue must know the sender. It is in the control message of the frame (ERTS User's Guide,
%% "Distribution Protocol"), after the header (see `weft_atom_cache'):
%%
%%   131,68,Atoms,Control,Message  or  112,131,Control,131,Message  a whole signal
%%   131,69,Sequence:64,Fragment:64,Atoms,Control,..                the first fragment of a signal
%%   131,70,Sequence:64,Fragment:64,..                              the rest; counts down to 1
%%
%% A sender is identified by its key, the numbers of its pid. Some signals have none: a `last' one
%% comes after all that was there before it (a DOWN from a process known by its name), and an
%% `ordered' one also comes before all that follows it. A frame that is not understood is `ordered',
%% which is always correct, but slow. Nothing is decoded that needs an atom, and malformed bytes are
%% no error.
-module(weft_frame).

-export([read/1, key/1, pid/2]).
-export_type([key/0, sender/0, part/0, fragments/0]).

%% Id and serial of a pid of this node, in one number.
-type key() :: non_neg_integer().
-type sender() :: key() | last | ordered.
%% Names the fragments of one signal; may be used again for a later one.
-type fragments() :: non_neg_integer().
-type part() :: {whole, sender()} | {first, fragments(), sender()}
              | {more, fragments()} | {final, fragments()}.

%% More than a control message needs up to the sender: two pids or references with long node names.
-define(HEAD_BYTES, 3072).

-define(SMALL_TUPLE, 104).
-define(SMALL_INTEGER, 97).
-define(NEW_PID, 88).
-define(SMALL_ATOM_UTF8, 119).
-define(CACHED_ATOM, 82).

%% Control messages by the place of their sender.
-define(IS_SECOND(Op), (Op =:= 1 orelse Op =:= 3 orelse Op =:= 4
                        orelse Op >= 6 andalso Op =< 8 orelse Op =:= 13 orelse Op =:= 16
                        orelse Op >= 18 andalso Op =< 28 orelse Op =:= 33 orelse Op =:= 34)).
-define(IS_THIRD(Op), (Op =:= 29 orelse Op =:= 30 orelse Op =:= 35 orelse Op =:= 36
                       orelse Op =:= 37)).
%% A reply to a spawn request is ordered with the signals of the child, its fifth element.
-define(IS_FIFTH(Op), (Op =:= 31 orelse Op =:= 32)).
%% The end of a monitored process may come from a name.
-define(IS_END(Op), (Op =:= 21 orelse Op =:= 28)).

%% @doc The sender of a frame, and whether the frame is a whole signal.
-spec read(iodata()) -> part().
read([<<131, 68, Count, _/binary>> = Header,
      <<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, ?NEW_PID, ?CACHED_ATOM, _, Id:32, Serial:32, _/binary>>
      | _]) when ?IS_SECOND(Op), byte_size(Header) =:= Count + Count div 2 + 4 ->
    {whole, key(Id, Serial)};
read([<<131, 68, 0, ?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, ?NEW_PID, ?SMALL_ATOM_UTF8, Length,
        _:Length/binary, Id:32, Serial:32, _/binary>> | _]) when ?IS_SECOND(Op) ->
    {whole, key(Id, Serial)};
read([<<131, 69, Sequence:64, Left:64, Count, _/binary>> = Header,
      <<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, ?NEW_PID, ?CACHED_ATOM, _, Id:32, Serial:32, _/binary>>
      | _]) when ?IS_SECOND(Op), byte_size(Header) =:= Count + Count div 2 + 20 ->
    first(Sequence, Left, key(Id, Serial));
read([<<131, 70, _/binary>> = Bin | _]) when byte_size(Bin) >= 18 ->
    frame(Bin);
read([<<131, Kind, _/binary>> = Bin | Pieces] = Data) when Kind =:= 68; Kind =:= 69 ->
    case weft_atom_cache:header_bytes(Bin) of
        none -> frame(head(Data));
        Bytes -> with_atoms(Bin, head([binary:part(Bin, Bytes, byte_size(Bin) - Bytes) | Pieces]))
    end;
read(Data) ->
    frame(head(Data)).

with_atoms(<<131, 69, Sequence:64, Left:64, _/binary>>, Control) ->
    first(Sequence, Left, control(Control));
with_atoms(_, Control) ->
    {whole, control(Control)}.

first(_Sequence, 1, Sender) -> {whole, Sender};
first(Sequence, _Left, Sender) -> {first, Sequence, Sender}.

frame(<<131, 68, 0, Control/binary>>) -> {whole, control(Control)};
frame(<<112, 131, Control/binary>>) -> {whole, control(Control)};
frame(<<131, 69, _:64, 1:64, 0, Control/binary>>) -> {whole, control(Control)};
frame(<<131, 69, Sequence:64, _:64, 0, Control/binary>>) -> {first, Sequence, control(Control)};
frame(<<131, 69, Sequence:64, _:64, _/binary>>) -> {first, Sequence, ordered};
frame(<<131, 70, Sequence:64, 1:64, _/binary>>) -> {final, Sequence};
frame(<<131, 70, Sequence:64, _:64, _/binary>>) -> {more, Sequence};
frame(_) -> {whole, ordered}.

%% The first bytes of a frame; its pieces may be cut anywhere.
head([Bin | _]) when is_binary(Bin), byte_size(Bin) >= ?HEAD_BYTES -> Bin;
head([Bin]) when is_binary(Bin) -> Bin;
head(Bin) when is_binary(Bin) -> Bin;
head(Pieces) -> head(Pieces, <<>>).

head([Bin | Pieces], Head) when is_binary(Bin), byte_size(Head) < ?HEAD_BYTES ->
    Part = binary:part(Bin, 0, min(byte_size(Bin), ?HEAD_BYTES)),
    head(Pieces, <<Head/binary, Part/binary>>);
head(_Pieces, Head) ->
    Head.

control(<<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, Elements/binary>>) when ?IS_END(Op) ->
    sender(Elements, last);
control(<<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, Elements/binary>>) when ?IS_SECOND(Op) ->
    sender(Elements, ordered);
control(<<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, Elements/binary>>) when ?IS_THIRD(Op) ->
    sender(skip(Elements), ordered);
control(<<?SMALL_TUPLE, _, ?SMALL_INTEGER, Op, Elements/binary>>) when ?IS_FIFTH(Op) ->
    sender(skip(skip(skip(Elements))), last);
control(_) ->
    ordered.

%% The key of the pid in front; Other if it is an atom; `ordered' if it is neither.
sender(<<?NEW_PID, Pid/binary>>, _Other) -> numbers(atom(Pid));
sender(<<103, Pid/binary>>, _Other) -> numbers(atom(Pid));
sender(Name, Other) ->
    case atom(Name) of
        odd -> ordered;
        _ -> Other
    end.

numbers(<<Id:32, Serial:32, _/binary>>) -> key(Id, Serial);
numbers(_) -> ordered.

%% What comes after an element. Before a sender there may be integers (32, 64 bits), pids and
%% references.
skip(<<?SMALL_INTEGER, _, Rest/binary>>) -> Rest;
skip(<<98, _:32, Rest/binary>>) -> Rest;
skip(<<110, Length, _, _:Length/binary, Rest/binary>>) -> Rest;
skip(<<?NEW_PID, Pid/binary>>) -> bytes(12, atom(Pid));
skip(<<103, Pid/binary>>) -> bytes(9, atom(Pid));
skip(<<90, Words:16, Ref/binary>>) -> bytes(4 + 4 * Words, atom(Ref));
skip(<<114, Words:16, Ref/binary>>) -> bytes(1 + 4 * Words, atom(Ref));
skip(_) -> odd.

bytes(Count, Bin) ->
    case Bin of
        <<_:Count/binary, Rest/binary>> -> Rest;
        _ -> odd
    end.

%% What comes after an atom, in one of its five encodings.
atom(<<?CACHED_ATOM, _, Rest/binary>>) ->
    Rest;
atom(<<Tag, Length, _:Length/binary, Rest/binary>>) when Tag =:= ?SMALL_ATOM_UTF8; Tag =:= 115 ->
    Rest;
atom(<<Tag, Length:16, _:Length/binary, Rest/binary>>) when Tag =:= 118; Tag =:= 100 ->
    Rest;
atom(_) ->
    odd.

key(Id, Serial) ->
    (Serial bsl 32) bor Id.

%% @doc The key under which the signals of a process of this node are queued.
-spec key(pid()) -> key().
key(Pid) ->
    numbers(behind_node(Pid)).

%% @doc The process with that key. LocalPid is any process of this node.
-spec pid(key(), LocalPid :: pid()) -> pid().
pid(Key, LocalPid) ->
    Bin = term_to_binary(LocalPid),
    NodeBytes = byte_size(Bin) - byte_size(behind_node(LocalPid)),
    <<Node:NodeBytes/binary, _:64, Creation/binary>> = Bin,
    binary_to_term(<<Node/binary, Key:32, (Key bsr 32):32, Creation/binary>>).

behind_node(Pid) ->
    <<131, ?NEW_PID, Name/binary>> = term_to_binary(Pid),
    atom(Name).
