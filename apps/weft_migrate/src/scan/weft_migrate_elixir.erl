%% SPDX-License-Identifier: Apache-2.0
%% @doc What in an Elixir source does not scale: looks for words, line by line, and knows no
%% structure. So what is built by macros is not found, and what stands in a text over several lines
%% is. Nothing is rewritten. Pure.
-module(weft_migrate_elixir).

-export([findings/2, names/1]).

-define(WORDS, [{elixir_global, ":global\\.[a-z_]+"},
                {elixir_global, "\\{\\s*:global\\s*,"},
                {elixir_pg, ":pg2?\\.[a-z_]+"},
                {elixir_nodes, "Node\\.list\\b"},
                {elixir_calls, ":(?:rpc|erpc)\\.multicall\\b"},
                {elixir_calls, "GenServer\\.(?:multi_call|abcast)\\b"}]).

%% Locks have nothing to do with names.
-define(NAMES, ":global\\.(?!(?:set_lock|del_lock|trans)\\b)|[{(]\\s*:global\\s*,").

-spec findings(file:filename_all(), binary()) -> [weft_migrate_scan:finding()].
findings(File, Bytes) ->
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    lists:append([of_line(File, Number, Line)
                  || {Number, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)]).

of_line(File, Number, Line) ->
    Code = without_comment(Line),
    [#{id => Id, file => File, line => Number, column => column(Code, Byte), inside => "",
       text => string:trim(readable(Line))}
     || {Id, Pattern} <- ?WORDS,
        {match, Matches} <- [re:run(Code, Pattern, [global, {capture, first, index}])],
        [{Byte, _}] <- Matches].

%% @doc The lines where a name of `global' is meant.
-spec names(binary()) -> [Line :: pos_integer()].
names(Bytes) ->
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    [Number || {Number, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines),
               re:run(without_comment(Line), ?NAMES) =/= nomatch].

without_comment(Line) ->
    case re:run(Line, "^((?:[^#\"]|\"(?:[^\"\\\\]|\\\\.)*\")*)(?:#|$)", [{capture, [1], binary}]) of
        {match, [Code]} -> Code;
        nomatch -> Line
    end.

column(Code, Byte) ->
    string:length(readable(binary:part(Code, 0, Byte))) + 1.

readable(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> Text;
        _NoUtf8 -> unicode:characters_to_binary(Bytes, latin1)
    end.
