%% SPDX-License-Identifier: Apache-2.0
%% @doc What in an Elixir source does not scale: looks for words, line by line, and knows no
%% structure. So what is built by macros is not found, and what stands in a text over several lines
%% is. Nothing is rewritten. Pure.
-module(weft_migrate_elixir).

-export([findings/2, places/1]).

%% A module that is kept or passed on: @registry :global, registry = :global, alias :global,
%% apply(:global, ...).
-define(KEPT(Name), "(?:@\\w+\\s+|(?<![=!<>~])=\\s*|\\balias\\s+|\\bimport\\s+):" Name
                    "\\b(?!\\s*\\.)|\\(\\s*:" Name "\\s*,").
-define(NAME, "\\{\\s*:global\\s*,|:via\\s*,\\s*:global\\b").

-define(WORDS, [{elixir_global, ":global\\.[a-z_]+|" ?NAME "|" ?KEPT("global")},
                {elixir_pg, ":pg2?\\.[a-z_]+|\\{\\s*:pg2?\\s*,\\s*:start|" ?KEPT("pg2?")},
                {elixir_nodes, "Node\\.list\\b"},
                {elixir_calls, ":(?:rpc|erpc)\\.multicall\\b"},
                {elixir_calls, "GenServer\\.(?:multi_call|abcast)\\b"}]).

%% Of which name, lock, scope or group they are is not understood.
-define(PLACES, [{names, ":global\\.(?!(?:set_lock|del_lock|trans)\\b)|" ?NAME "|" ?KEPT("global")},
                 {locks, ":global\\.(?:set_lock|del_lock|trans)\\b|" ?KEPT("global")},
                 {scopes, ":pg\\.|\\{\\s*:pg\\s*,\\s*:start|" ?KEPT("pg")},
                 {groups, ":pg2\\.|\\{\\s*:pg2\\s*,\\s*:start|" ?KEPT("pg2")}]).

-spec findings(file:filename_all(), binary()) -> [weft_migrate_scan:finding()].
findings(File, Bytes) ->
    lists:append([of_line(File, Number, Line, Code) || {Number, Line, Code} <- lines(Bytes)]).

of_line(File, Number, Line, Code) ->
    [#{id => Id, file => File, line => Number, column => column(Code, Byte), inside => "",
       text => string:trim(readable(Line))}
     || {Id, Pattern} <- ?WORDS,
        {match, Matches} <- [re:run(Code, Pattern, [global, {capture, first, index}])],
        [{Byte, _}] <- Matches].

%% @doc The lines that may be about a name or lock of `global', a scope of `pg' or a group of `pg2'.
-spec places(binary()) -> [{weft_migrate_names:kind(), Line :: pos_integer()}].
places(Bytes) ->
    [{Kind, Number} || {Number, _, Code} <- lines(Bytes), {Kind, Pattern} <- ?PLACES,
                       re:run(Code, Pattern) =/= nomatch].

lines(Bytes) ->
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    [{Number, Line, without_comment(Line)}
     || {Number, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)].

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
