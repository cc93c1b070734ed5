%% SPDX-License-Identifier: Apache-2.0
%% @doc Where rooms and users are reached: a registered name on a known node. There is no global
%% directory; whoever speaks knows the node, as with a mail address.
-module(chat_address).

-export([room/2, user/2, label/1]).

-type name() :: atom().
-type address() :: {RegisteredName :: atom(), node()}.
-type rooms() :: #{Room :: name() => Home :: node()}.
-export_type([name/0, address/0, rooms/0]).

-spec room(name(), node()) -> address().
room(Room, Node) ->
    {registered("chat_room_", Room), Node}.

-spec user(name(), node()) -> address().
user(User, Node) ->
    {registered("chat_user_", User), Node}.

%% @doc The part of a node name before the `@', by which conversations name nodes.
-spec label(node()) -> binary().
label(Node) ->
    hd(binary:split(atom_to_binary(Node), <<"@">>)).

%% One atom per user or room name; names are atoms already, so this at most doubles their number.
registered(Prefix, Name) ->
    list_to_atom(Prefix ++ atom_to_list(Name)).
