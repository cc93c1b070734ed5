%% SPDX-License-Identifier: Apache-2.0
%% @doc The flame graph of a profile: a picture (SVG) of the stacks that were seen, each as wide as
%% it was seen often, its callers below it. Pure.
-module(weft_profile_flame).

-export([folded/1, picture/1]).

-define(T, weft_report_html:tag).
-define(E, weft_report_html:text).
-define(WIDTH, 1200).
-define(ROW, 18).
-define(TOP, 34).
%% Narrower than that nothing is to be seen.
-define(NARROWEST, 0.4).
-define(LETTER, 6.6).

%% A frame by what it is: how often it was seen, and what is above it.
-type tree() :: #{binary() => {Count :: pos_integer(), tree()}}.

%% @doc The stacks of all nodes, below each the node: outermost first, with how often it was seen.
-spec folded(weft_profile_recording:profile()) -> [{[binary(), ...], pos_integer()}].
folded(#{nodes := Sides}) ->
    [{[atom_to_binary(Node) | [function(Mfa) || Mfa <- Stack]], Count}
     || #{node := Node, samples := #{stacks := Stacks}} <- Sides, {Stack, Count} <- Stacks].

function({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A])).

%% @doc The picture.
-spec picture([{[binary(), ...], pos_integer()}]) -> weft_report_html:html().
picture(Folded) ->
    Tree = lists:foldl(fun({Stack, Count}, Acc) -> add(Stack, Count, Acc) end, #{}, Folded),
    All = lists:sum([Count || {_, Count} <- Folded]),
    Rows = depth(Tree),
    Height = ?TOP + max(1, Rows) * ?ROW + 10,
    ?T(svg, [{xmlns, "http://www.w3.org/2000/svg"}, {viewBox, box(Height)}, {width, ?WIDTH},
             {height, Height}, {'font-family', "system-ui, sans-serif"}, {'font-size', 11}],
       [?T(rect, [{width, ?WIDTH}, {height, Height}, {fill, "#ffffff"}]),
        ?T(text, [{x, 8}, {y, 20}, {'font-size', 14}, {fill, "#1c1e21"}], title(All)),
        frames(Tree, 0.0, 0, ?WIDTH / max(1, All), Height - 6, All)]).

box(Height) -> lists:concat(["0 0 ", ?WIDTH, " ", Height]).

title(0) -> "Stacks of running and runnable processes: none were seen";
title(All) -> ["Stacks of running and runnable processes, ", integer_to_list(All), " times seen"].

-spec add([binary()], pos_integer(), tree()) -> tree().
add([], _Count, Tree) ->
    Tree;
add([Frame | Above], Count, Tree) ->
    {Seen, Inner} = maps:get(Frame, Tree, {0, #{}}),
    Tree#{Frame => {Seen + Count, add(Above, Count, Inner)}}.

depth(Tree) when map_size(Tree) =:= 0 -> 0;
depth(Tree) -> 1 + lists:max([depth(Inner) || {_, {_, Inner}} <- maps:to_list(Tree)]).

%% The callers are below.
frames(Tree, Left, Level, Each, Bottom, All) ->
    {Drawn, _} = lists:mapfoldl(
                   fun({Frame, {Count, Inner}}, X) ->
                           Width = Count * Each,
                           {[[frame(Frame, Count, X, Width, Level, Bottom, All),
                              frames(Inner, X, Level + 1, Each, Bottom, All)]
                             || Width >= ?NARROWEST], X + Width}
                   end, Left, lists:sort(maps:to_list(Tree))),
    Drawn.

frame(Frame, Count, X, Width, Level, Bottom, All) ->
    Y = Bottom - (Level + 1) * ?ROW,
    Told = [Frame, io_lib:format(": ~b times, ~.1f %", [Count, 100 * Count / All])],
    ?T(g, [], [?T(title, [], ?E(Told)),
               ?T(rect, [{x, X}, {y, Y}, {width, Width}, {height, ?ROW - 1}, {rx, 2},
                         {fill, colour(Frame)}]),
               [?T(text, [{x, X + 4}, {y, Y + 12.5}, {fill, "#1c1e21"}],
                   ?E(short(Frame, Width))) || Width > 40]]).

short(Frame, Width) ->
    Letters = trunc((Width - 8) / ?LETTER),
    case string:length(Frame) =< Letters of
        true -> Frame;
        false -> [string:slice(Frame, 0, max(1, Letters - 1)), "…"]
    end.

%% Functions of a module have the same colour.
colour(Frame) ->
    [Module | _] = string:split(Frame, ":"),
    lists:concat(["hsl(", 10 + erlang:phash2(Module, 50), ",", 75 + erlang:phash2(Frame, 20),
                  "%,", 66 + erlang:phash2({Frame}, 10), "%)"]).
