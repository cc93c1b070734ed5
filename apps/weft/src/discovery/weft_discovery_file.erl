%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by a file of node names, read anew each time: `{file, #{path => "nodes.txt"}}'.
%%
%% One name on each line, or several with blanks or commas between; # begins a comment.
-module(weft_discovery_file).
-behaviour(weft_discovery).

-export([discover/1]).

%% @doc See `weft_discovery'. Errors: those of `file:read_file/1'.
-spec discover(#{path := string(), _ => _}) -> {ok, [node()]} | {error, file:posix()}.
discover(#{path := Path}) ->
    case file:read_file(Path) of
        {ok, Text} -> {ok, weft_discovery_names:nodes(weft_discovery_names:words(Text))};
        {error, Reason} -> {error, Reason}
    end.
