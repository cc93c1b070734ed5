%% SPDX-License-Identifier: Apache-2.0
%% @doc One node's share of a conversation: which rooms it opens, which users it starts, what
%% those say and how many deliveries each line is due to cause. Pure.
-module(chat_share).

-export([of_node/3]).

-type nodes() :: #{chat_script:label() => node()}.
-type share() :: #{rooms := chat_address:rooms(),
                   users := #{chat_address:name() => chat_address:rooms()},
                   cues := {LengthMs :: non_neg_integer(), [chat_replay:cue()]}}.
-export_type([nodes/0, share/0]).

%% @doc `rooms' are all rooms of the conversation with their homes, users and cues only those of
%% `Node'. Fails when the script names a node that `Nodes' does not know.
-spec of_node(node(), nodes(), chat_script:script()) ->
    {ok, share()} | {error, {no_node_for, chat_script:label()}}.
of_node(Node, Nodes, #{rooms := Rooms, members := Members, lines := Lines}) ->
    Labels = maps:values(Rooms) ++ [Label || {_Name, Label} <- maps:keys(Members)],
    case [Label || Label <- Labels, not is_map_key(Label, Nodes)] of
        [] ->
            Homes = maps:map(fun(_Room, Label) -> maps:get(Label, Nodes) end, Rooms),
            Local = [User || {_, Label} = User <- maps:keys(Members),
                             maps:get(Label, Nodes) =:= Node],
            Users = [{Name, maps:with(maps:get(User, Members), Homes)}
                     || {Name, _} = User <- Local],
            {ok, #{rooms => Homes,
                   users => maps:from_list(Users),
                   cues => {length_ms(Lines), cues(Lines, Local, Nodes, Members)}}};
        [Unknown | _] ->
            {error, {no_node_for, Unknown}}
    end.

length_ms([]) -> 0;
length_ms(Lines) -> element(1, lists:last(Lines)).

cues(Lines, Local, Nodes, Members) ->
    Count = fun(Room, Counts) -> maps:update_with(Room, fun(N) -> N + 1 end, 1, Counts) end,
    Sizes = lists:foldl(Count, #{}, lists:append(maps:values(Members))),
    Speakers = maps:from_keys(Local, here),
    [cue(Line, Nodes, Sizes) || {_, User, _, _} = Line <- Lines, is_map_key(User, Speakers)].

cue({AtMs, {Name, _}, {room, Room}, Text}, _Nodes, Sizes) ->
    {AtMs, Name, {room, Room}, Text, maps:get(Room, Sizes)};
cue({AtMs, {Name, _}, {direct, {To, Label}}, Text}, Nodes, _Sizes) ->
    {AtMs, Name, {direct, chat_address:user(To, maps:get(Label, Nodes))}, Text, 1}.
