%% SPDX-License-Identifier: Apache-2.0
%% @doc What had to arrive, against what did. Pure.
%%
%% Only what survivors said to survivors counts: whoever was on the killed node is gone with it, as
%% speaker and as listener. A stream is what one user said to another in one place (a room, or
%% directly); its messages are numbered 1, 2, 3 .. by the chat, and the conversation file tells how
%% many there must be.
-module(demo_account).

-export([streams/2, lines/2, balance/3]).
-export_type([streams/0, balance/0]).

-type user() :: {chat_address:name(), node()}.
-type stream() :: {From :: user(), To :: user(), chat_ledger:place()}.
-type streams() :: #{stream() => Count :: pos_integer()}.
%% lines: said by survivors. due: copies that these cause for survivors. wrong_streams: streams
%% whose last number is not the one due, or with numbers missing.
-type balance() :: #{lines := non_neg_integer(), due := non_neg_integer(),
                     delivered := integer(), in_order := integer(), lost := integer(),
                     doubled := non_neg_integer(), late := non_neg_integer(),
                     wrong_streams := non_neg_integer()}.

%% @doc The streams between users of Nodes (by label) that a conversation must cause.
-spec streams(chat_script:script(), #{chat_script:label() => node()}) -> streams().
streams(#{lines := Lines, members := Members}, Nodes) ->
    Streams = [{user(From, Nodes), user(To, Nodes), place(Target)}
               || {_AtMs, From, Target, _Text} <- Lines, lives(From, Nodes),
                  To <- listeners(Target, Members), lives(To, Nodes)],
    lists:foldl(fun(Stream, Counts) ->
                        maps:update_with(Stream, fun(C) -> C + 1 end, 1, Counts)
                end, #{}, Streams).

%% @doc How many messages users of Nodes say.
-spec lines(chat_script:script(), #{chat_script:label() => node()}) -> non_neg_integer().
lines(#{lines := Lines}, Nodes) ->
    length([From || {_AtMs, From, _Target, _Text} <- Lines, lives(From, Nodes)]).

lives({_Name, Label}, Nodes) -> is_map_key(Label, Nodes).

user({Name, Label}, Nodes) -> {Name, maps:get(Label, Nodes)}.

listeners({room, Room}, Members) ->
    [User || {User, Rooms} <- maps:to_list(Members), lists:member(Room, Rooms)];
listeners({direct, User}, _Members) ->
    [User].

place({room, Room}) -> {room, Room};
place({direct, _User}) -> direct.

%% @doc Compares. Ledgers: of each surviving user. Tally: sums of chat_tally over the survivors;
%% it counts messages from the killed node too, which the ledgers can tell apart.
-spec balance({Lines :: non_neg_integer(), streams()}, #{user() => chat_ledger:ledger()},
              #{tally := #{atom() => integer()}, strangers := [user()]}) -> balance().
balance({Lines, Streams}, Ledgers, #{tally := Tally, strangers := Strangers}) ->
    Due = lists:sum(maps:values(Streams)),
    FromStrangers = lists:sum([received(Stranger, Place, Ledger)
                               || Ledger <- maps:values(Ledgers), Stranger <- Strangers,
                                  Place <- places(Streams)]),
    #{delivered := AllDelivered, duplicates := Doubled, out_of_order := Late} = Tally,
    Delivered = AllDelivered - FromStrangers,
    #{lines => Lines, due => Due, delivered => Delivered, in_order => Delivered - Late,
      lost => Due - Delivered, doubled => Doubled, late => Late,
      wrong_streams => length([S || {S, Count} <- maps:to_list(Streams),
                                    not is_right(S, Count, Ledgers)])}.

places(Streams) ->
    lists:usort([Place || {_From, _To, Place} <- maps:keys(Streams)]).

received(Sender, Place, Ledger) ->
    chat_ledger:next(Sender, Place, Ledger) - 1 - chat_ledger:missing(Sender, Place, Ledger).

is_right({From, To, Place}, Count, Ledgers) ->
    case Ledgers of
        #{To := Ledger} -> received(From, Place, Ledger) =:= Count;
        #{} -> false
    end.
