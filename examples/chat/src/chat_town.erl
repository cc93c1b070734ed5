%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes the conversation of a town: three districts of nodes, a room per district, one room
%% per pair of districts, and a market for all. The same options give the same text, always.
%% `conversations/town.txt' is `chat_town:text(#{})'.
-module(chat_town).

-export([text/1, write/2]).

%% nodes: how many (at least 3), named n01, n02.. lines, seconds: size and length of the whole.
-type options() :: #{nodes => pos_integer(), users_per_node => pos_integer(),
                     lines => pos_integer(), seconds => pos_integer(), seed => integer()}.
-export_type([options/0]).

-define(DEFAULTS, #{nodes => 12, users_per_node => 3, lines => 1500, seconds => 40, seed => 7}).
-define(DISTRICTS, ["harbour", "hill", "mill"]).
-define(ROADS, [{"harbour_hill", ["harbour", "hill"]}, {"hill_mill", ["hill", "mill"]},
                {"mill_harbour", ["mill", "harbour"]}]).
-define(NAMES, {"ada", "ben", "cleo", "dan", "eve", "finn", "gus", "hana", "ida", "jon", "kim",
                "leo"}).
-define(TEXTS, {"good morning", "who has fresh bread?", "two for three", "not today", "deal!",
                "the ferry is late again", "see you at the bridge", "rain before noon, I say",
                "has anyone seen my cart?", "three crates of apples left", "say hello to yours",
                "the mill wheel turns again", "I will bring it over", "what does it cost?"}).

-spec write(file:filename_all(), options()) -> ok | {error, file:posix()}.
write(File, Options) ->
    file:write_file(File, text(Options)).

-spec text(options()) -> binary().
text(Options) ->
    #{nodes := Nodes, lines := Lines, seconds := Seconds, seed := Seed} = All =
        maps:merge(?DEFAULTS, Options),
    Users = users(All),
    Rand = rand:seed_s(exsss, Seed),
    {Times, Rand1} = times(Lines, Seconds * 1000, Rand),
    {Spoken, _} = lists:mapfoldl(fun(AtMs, R) -> line(AtMs, Users, R) end, Rand1, Times),
    iolist_to_binary(["% A town of ", integer_to_list(Nodes), " nodes; written by chat_town.\n",
                      rooms(Nodes), [member(User) || User <- Users], Spoken]).

users(#{nodes := Nodes, users_per_node := PerNode}) ->
    [#{name => name(Number, Index), label => label(Number),
       district => lists:nth(1 + (Number - 1) * 3 div Nodes, ?DISTRICTS)}
     || Number <- lists:seq(1, Nodes), Index <- lists:seq(1, PerNode)].

%% Users of different nodes have different names, for the reader's sake.
name(Number, Index) ->
    element(1 + (Number * 5 + Index * 3) rem tuple_size(?NAMES), ?NAMES)
        ++ "_" ++ integer_to_list(Number) ++ [$a + Index - 1].

label(Number) ->
    io_lib:format("n~2..0b", [Number]).

%% A district's room lives in the district, a road's room and the market where they fall.
rooms(Nodes) ->
    Homes = lists:zip(?DISTRICTS, [1, 1 + Nodes div 3, 1 + 2 * Nodes div 3])
        ++ lists:zip([Road || {Road, _} <- ?ROADS], [2, 1 + Nodes div 2, Nodes])
        ++ [{"market", Nodes - 1}],
    [["room ", Room, " ", label(Home), "\n"] || {Room, Home} <- Homes].

member(#{} = User) ->
    ["member ", address(User), [[" ", Room] || Room <- rooms_of(User)], "\n"].

%% Of each node the first user, "a", walks the roads between districts.
rooms_of(#{district := District, name := Name}) ->
    Roads = [Road || {Road, Ends} <- ?ROADS, lists:last(Name) =:= $a,
                     lists:member(District, Ends)],
    [District, "market" | Roads].

line(AtMs, Users, Rand) ->
    {User, Rand1} = pick(Users, Rand),
    {Target, Rand2} = target(User, Users, Rand1),
    {Text, Rand3} = pick(tuple_to_list(?TEXTS), Rand2),
    Time = io_lib:format("~b.~3..0b ", [AtMs div 1000, AtMs rem 1000]),
    {[Time, address(User), " ", Target, ": ", Text, "\n"], Rand3}.

%% 15 % to the market, 35 % to another room, half to a person anywhere.
target(User, Users, Rand) ->
    case rand:uniform_s(100, Rand) of
        {Percent, Rand1} when Percent =< 15 ->
            {"#market", Rand1};
        {Percent, Rand1} when Percent =< 50 ->
            {Room, Rand2} = pick(rooms_of(User) -- ["market"], Rand1),
            {["#", Room], Rand2};
        {_, Rand1} ->
            {Other, Rand2} = pick(Users -- [User], Rand1),
            {address(Other), Rand2}
    end.

times(Lines, LengthMs, Rand) ->
    {Times, Rand1} = lists:mapfoldl(fun(_, R) -> rand:uniform_s(LengthMs, R) end, Rand,
                                    lists:seq(1, Lines)),
    {lists:sort(Times), Rand1}.

pick(List, Rand) ->
    {Index, Rand1} = rand:uniform_s(length(List), Rand),
    {lists:nth(Index, List), Rand1}.

address(#{name := Name, label := Label}) ->
    [Name, "@", Label].
