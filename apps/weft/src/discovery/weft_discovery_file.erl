%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by a file of node names, read anew each time: `{file, #{path => "nodes.txt"}}'.
%%
%% One name on each line, or several with blanks or commas between; # begins a comment. A word that
%% is no node name is reported with the number of its line; the other names are used.
-module(weft_discovery_file).
-behaviour(weft_discovery).

-export([discover/1]).

%% @doc See `weft_discovery'. Errors: those of `file:read_file/1'.
-spec discover(#{path := string(), _ => _}) ->
          {ok, [node()]} | {ok, [node()], {no_node_names, map()}} | {error, file:posix()}.
discover(#{path := Path}) ->
    case file:read_file(Path) of
        {ok, Text} -> read(Path, weft_discovery_names:read(Text));
        {error, Reason} -> {error, Reason}
    end.

read(_Path, {Nodes, []}) ->
    {ok, Nodes};
read(Path, {Nodes, [{Line, Words} | _] = Wrong}) ->
    {ok, Nodes, {no_node_names, #{file => Path, line => Line, words => Words,
                                  wrong_lines => length(Wrong)}}}.
