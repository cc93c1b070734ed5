%% SPDX-License-Identifier: Apache-2.0
%% @doc Conversations as text, to be replayed. Pure. One statement a line:
%%
%% ```
%% % a comment
%% room market n03                      room `market' lives on node n03
%% member alice@n01 market harbour      alice of node n01 joins both
%% 0.120 alice@n01 #market: hello       0.120 s after the start alice says hello to the room
%% 0.350 alice@n01 bob@n02: hi bob      and writes to bob
%% '''
%%
%% Rooms and members stand before the lines that need them; times never go back. Names are
%% [a-z0-9_], at most 32 characters; nodes are named by what stands before the @ of the node name.
-module(chat_script).

-export([read/1, parse/1, format_error/1]).

-type label() :: binary().
-type user() :: {chat_address:name(), label()}.
-type target() :: {room, chat_address:name()} | {direct, user()}.
-type line() :: {AtMs :: non_neg_integer(), user(), target(), Text :: binary()}.
-type script() :: #{rooms := #{chat_address:name() => label()},
                    members := #{user() => [chat_address:name()]},
                    lines := [line()]}.
-type error() :: {LineNumber :: pos_integer(), Line :: binary(), Reason :: atom()}
               | {file, file:filename_all(), file:posix()}.
-export_type([script/0, line/0, user/0, target/0, label/0, error/0]).

%% Bounds what a file can ask for; names become atoms.
-define(MAX_NAMES, 10000).
-define(MAX_LINES, 1000000).
-define(NAME, "([a-z0-9_]{1,32})").
-define(USER, ?NAME "@" ?NAME).

-spec read(file:filename_all()) -> {ok, script()} | {error, error()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} -> parse(Text);
        {error, Reason} -> {error, {file, File, Reason}}
    end.

-spec parse(binary()) -> {ok, script()} | {error, error()}.
parse(Text) ->
    Empty = #{rooms => #{}, members => #{}, lines => []},
    Lines = binary:split(Text, [<<"\n">>, <<"\r\n">>], [global]),
    parse(Lines, 1, Empty).

-spec format_error(error()) -> string().
format_error({file, File, Reason}) ->
    lists:flatten(io_lib:format("cannot read ~ts: ~ts", [File, file:format_error(Reason)]));
format_error({Number, Line, Reason}) ->
    lists:flatten(io_lib:format("line ~b: ~ts: ~ts", [Number, explain(Reason), Line])).

explain(syntax) -> "not a comment, room, member or message";
explain(no_such_room) -> "no room of this name above";
explain(no_such_member) -> "no member of this name above";
explain(not_a_member) -> "the speaker is no member of the room";
explain(defined_twice) -> "defined already";
explain(time_goes_back) -> "earlier than the line above";
explain(too_many_names) -> "more than 10,000 rooms and members";
explain(too_many_lines) -> "more than 1,000,000 messages".

parse([], _Number, #{lines := Lines} = Script) ->
    {ok, Script#{lines := lists:reverse(Lines)}};
parse(_Lines, Number, _Script) when Number > ?MAX_LINES ->
    {error, {Number, <<>>, too_many_lines}};
parse([Line | Rest], Number, Script) ->
    try statement(Line, Script) of
        Next -> parse(Rest, Number + 1, Next)
    catch
        throw:Reason -> {error, {Number, Line, Reason}}
    end.

statement(<<>>, Script) ->
    Script;
statement(<<"%", _/binary>>, Script) ->
    Script;
statement(<<"room ", Rest/binary>>, Script) ->
    [Room, Label] = match(Rest, "^" ?NAME " " ?NAME "$"),
    define(rooms, name(Room), Label, Script);
statement(<<"member ", Rest/binary>>, Script) ->
    [User, Label, Rooms] = match(Rest, "^" ?USER "((?: [a-z0-9_]{1,32})*)$"),
    Joined = [room(Room, Script) || Room <- binary:split(Rooms, <<" ">>, [global, trim_all])],
    define(members, {name(User), Label}, Joined, Script);
statement(Line, #{lines := Lines} = Script) ->
    [Seconds, Ms, Name, Label, Target, Text] =
        match(Line, "^([0-9]{1,7})\\.([0-9]{3}) " ?USER " ([^ :]+): (.*)$"),
    At = binary_to_integer(Seconds) * 1000 + binary_to_integer(Ms),
    User = member(Name, Label, Script),
    _ = Lines =:= [] orelse At >= element(1, hd(Lines)) orelse throw(time_goes_back),
    Script#{lines := [{At, User, target(Target, User, Script), Text} | Lines]}.

target(<<"#", Name/binary>>, User, #{members := Members} = Script) ->
    Room = room(Name, Script),
    _ = lists:member(Room, maps:get(User, Members)) orelse throw(not_a_member),
    {room, Room};
target(Address, _User, Script) ->
    [Name, Label] = match(Address, "^" ?USER "$"),
    {direct, member(Name, Label, Script)}.

define(Kind, Key, Value, #{rooms := Rooms, members := Members} = Script) ->
    Defined = maps:get(Kind, Script),
    _ = is_map_key(Key, Defined) andalso throw(defined_twice),
    _ = maps:size(Rooms) + maps:size(Members) < ?MAX_NAMES orelse throw(too_many_names),
    Script#{Kind := Defined#{Key => Value}}.

room(Name, #{rooms := Rooms}) ->
    known(Name, fun(Room) -> is_map_key(Room, Rooms) end, no_such_room).

member(Name, Label, #{members := Members}) ->
    {known(Name, fun(User) -> is_map_key({User, Label}, Members) end, no_such_member), Label}.

%% A name used but never defined does not become an atom.
known(Name, IsDefined, Otherwise) ->
    try binary_to_existing_atom(Name) of
        Atom ->
            _ = IsDefined(Atom) orelse throw(Otherwise),
            Atom
    catch
        error:badarg -> throw(Otherwise)
    end.

name(Name) ->
    binary_to_atom(Name).

match(Subject, Pattern) ->
    case re:run(Subject, Pattern, [{capture, all_but_first, binary}]) of
        {match, Parts} -> Parts;
        nomatch -> throw(syntax)
    end.
