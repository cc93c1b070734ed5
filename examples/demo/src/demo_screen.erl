%% SPDX-License-Identifier: Apache-2.0
%% @doc What is seen while the demo runs: a block of lines that is drawn again and again on a
%% terminal, or a plain line now and then where output goes to a file. Events stay on either.
-module(demo_screen).

-export([new/1, show/2, event/3, leave/1]).
-export_type([screen/0, view/0]).

-opaque screen() :: #{terminal := boolean(), title := string(), drawn := non_neg_integer(),
                      next_ms := non_neg_integer()}.
%% connections: TCP. routes, circuits, resumes: only on weft. way: of one circuit, the nodes on it.
-type view() :: #{at_ms := non_neg_integer(), nodes := [{node(), up | down}],
                  connections := non_neg_integer(), full_mesh := pos_integer(),
                  sent := non_neg_integer(), delivered := non_neg_integer(),
                  per_second := non_neg_integer(), nodedowns := non_neg_integer(),
                  routes => non_neg_integer(), circuits => non_neg_integer(),
                  resumes => non_neg_integer(), way => unicode:chardata()}.

-define(PLAIN_EVERY_MS, 4000).

%% @doc A screen, with a title for what runs.
-spec new(string()) -> screen().
new(Title) ->
    Terminal = weft_cli_terminal:is_terminal(output),
    io:format("~n~ts~n", [Title]),
    #{terminal => Terminal, title => Title, drawn => 0, next_ms => 0}.

%% @doc Shows how things are now.
-spec show(view(), screen()) -> screen().
show(View, #{terminal := true} = Screen) ->
    Lines = block(View),
    io:put_chars([clear(Screen), [[Line, "\e[K\n"] || Line <- Lines]]),
    Screen#{drawn := length(Lines)};
show(#{at_ms := AtMs} = View, #{terminal := false, next_ms := NextMs} = Screen)
  when AtMs >= NextMs ->
    io:format("  ~ts  ~ts~n", [time(AtMs), lists:join("  ", plain(View))]),
    Screen#{next_ms := NextMs + ?PLAIN_EVERY_MS};
show(_View, Screen) ->
    Screen.

%% @doc Something happened; it stays on the screen.
-spec event(non_neg_integer(), unicode:chardata(), screen()) -> screen().
event(AtMs, Text, Screen) ->
    io:put_chars([clear(Screen), "  ", time(AtMs), "  ", bold(Text, Screen), $\n]),
    Screen#{drawn := 0}.

%% @doc Takes the block away; the events stay.
-spec leave(screen()) -> ok.
leave(Screen) ->
    io:put_chars(clear(Screen)).

clear(#{terminal := true, drawn := Drawn}) when Drawn > 0 ->
    io_lib:format("\e[~bA\e[J", [Drawn]);
clear(_Screen) ->
    "".

bold(Text, #{terminal := true}) -> ["\e[1m", Text, "\e[0m"];
bold(Text, _Screen) -> ["* ", Text].

time(AtMs) -> io_lib:format("~5.1f s", [AtMs / 1000]).

block(#{at_ms := AtMs} = View) ->
    ["", ["  ", time(AtMs)] | [["    ", Line] || Line <- lines(View)]].

lines(#{nodes := Nodes} = View) ->
    [["nodes        ", lists:join(" ", [mark(Node) || Node <- Nodes])],
     ["connections  ", connections(View)]]
        ++ [["routes       ", Text] || Text <- circuits(View)]
        ++ [["for example  ", Way] || #{way := Way} <- [View]]
        ++ [["messages     ", messages(View)], ["nodedowns    ", nodedowns(View)]].

plain(View) ->
    [messages(View), connections(View)] ++ circuits(View) ++ [nodedowns(View)]
        ++ [Way || #{way := Way} <- [View]].

mark({Node, up}) -> weft_local_spec:short(Node);
mark({Node, down}) -> ["[", weft_local_spec:short(Node), " down]"].

connections(#{connections := Connections, full_mesh := FullMesh}) ->
    io_lib:format("~b of ~b TCP", [Connections, FullMesh]).

circuits(#{routes := Routes, circuits := Circuits, resumes := Resumes}) ->
    [io_lib:format("~b routes, ~b circuits, ~b re-routed", [Routes, Circuits, Resumes])];
circuits(_View) ->
    [].

messages(#{sent := Sent, delivered := Delivered, per_second := PerSecond}) ->
    io_lib:format("~b said, ~b delivered, ~b/s", [Sent, Delivered, PerSecond]).

nodedowns(#{nodedowns := Nodedowns}) ->
    io_lib:format("~b nodedowns among survivors", [Nodedowns]).
