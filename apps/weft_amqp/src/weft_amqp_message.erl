%% SPDX-License-Identifier: Apache-2.0
%% @doc What weft puts into messages at the broker, byte by byte; pure.
%%
%% Each begins with the version of this format and a kind. Most belong to a lane, which its dialer
%% has named by 16 random bytes:
%% <ul>
%% <li>`open': a new lane; the name of the queue that the dialer reads.</li>
%% <li>`plain': bytes of the handshake, numbered. None at all: the sender has hung up.</li>
%% <li>`sealed': all that follows, numbered and encrypted (`weft_amqp_seal').</li>
%% </ul>
%% What a sealed message is: `part' of a packet, the `last' (or only) one, `credit' for what was
%% taken in, or `close'. `announce' belongs to no lane (`weft_amqp_announce').
%%
%% Anybody who may use the broker may write anything: `decode/1' never fails and makes no atoms.
-module(weft_amqp_message).

-export([open/2, plain/3, sealed_head/3, sealed/3, announce/1, decode/1]).
-export_type([id/0, frame/0, content/0, head/0]).

-define(VERSION, 1).
-define(OPEN, 0).
-define(PLAIN, 1).
-define(SEALED, 2).
-define(ANNOUNCE, 3).
%% The longest names of a node and a queue, and what else is in it.
-define(ANNOUNCEMENT_BYTES_MAX, 1536).

-type id() :: <<_:128>>.
-type content() :: part | last | credit | close.
%% The part of a sealed message that is authenticated and not encrypted.
-type head() :: binary().
-type frame() :: {open, Queue :: binary()} | {plain, pos_integer(), binary()}
               | {sealed, pos_integer(), content(), {head(), Tag :: <<_:128>>, binary()}}.

%% @doc Names the queue by which the dialer of lane Id is reached.
-spec open(id(), binary()) -> binary().
open(Id, Queue) -> <<?VERSION, ?OPEN, Id:16/binary, Queue/binary>>.

-spec plain(id(), pos_integer(), iodata()) -> iodata().
plain(Id, Number, Bytes) -> [<<?VERSION, ?PLAIN, Id:16/binary, Number:64>>, Bytes].

-spec sealed_head(id(), pos_integer(), content()) -> head().
sealed_head(Id, Number, Content) ->
    <<?VERSION, ?SEALED, Id:16/binary, Number:64, (content_code(Content))>>.

-spec sealed(head(), <<_:128>>, binary()) -> iodata().
sealed(Head, Tag, Cipher) -> [Head, Tag, Cipher].

-spec announce(iodata()) -> iodata().
announce(Announcement) -> [<<?VERSION, ?ANNOUNCE>>, Announcement].

-spec decode(binary()) -> {lane, id(), frame()} | {announce, binary()} | error.
decode(<<?VERSION, ?SEALED, Id:16/binary, Number:64, Code, Tag:16/binary, Cipher/binary>> = Message)
  when Code =< 3, Number > 0 ->
    {lane, Id, {sealed, Number, content(Code), {binary:part(Message, 0, 27), Tag, Cipher}}};
decode(<<?VERSION, ?PLAIN, Id:16/binary, Number:64, Bytes/binary>>) when Number > 0 ->
    {lane, Id, {plain, Number, Bytes}};
decode(<<?VERSION, ?OPEN, Id:16/binary, Queue/binary>>)
  when byte_size(Queue) > 0, byte_size(Queue) =< 255 ->
    {lane, Id, {open, Queue}};
decode(<<?VERSION, ?ANNOUNCE, Announcement/binary>>)
  when byte_size(Announcement) =< ?ANNOUNCEMENT_BYTES_MAX ->
    {announce, Announcement};
decode(_) ->
    error.

content_code(part) -> 0;
content_code(last) -> 1;
content_code(credit) -> 2;
content_code(close) -> 3.

content(0) -> part;
content(1) -> last;
content(2) -> credit;
content(3) -> close.
