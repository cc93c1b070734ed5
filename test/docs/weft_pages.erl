%% SPDX-License-Identifier: Apache-2.0
%% @doc Blocks of pages for those who run them: which ones, with other words in the place of what is
%% the reader's (names of nodes, ports, directories), and what a configuration configures.
-module(weft_pages).

-export([blocks/2, block/3, replaced/2, quoted/1, environments/2, lines/2, console/1]).

%% @doc The blocks of a kind of a page, in order.
-spec blocks(Page :: string(), Kind :: [string()]) -> [string()].
blocks(Page, Kind) ->
    [Text || #{info := Info, text := Text} <-
                 weft_guide:blocks(filename:join(weft_guide:root(), Page)), Info =:= Kind].

%% @doc The only block of a kind that has these words.
-spec block(Page :: string(), Kind :: [string()], Words :: string()) -> string().
block(Page, Kind, Words) ->
    case [Text || Text <- blocks(Page, Kind), string:find(Text, Words) =/= nomatch] of
        [Text] -> Text;
        Found -> error({Page, Kind, Words, length(Found)})
    end.

%% @doc The text with other words.
-spec replaced(string(), [{string(), string()}]) -> string().
replaced(Text, Others) ->
    lists:foldl(fun({Shown, Here}, Of) -> lists:flatten(string:replace(Of, Shown, Here, all)) end,
                Text, Others).

%% @doc Other words for names of nodes as they stand in Erlang.
-spec quoted([{string(), node()}]) -> [{string(), string()}].
quoted(Names) ->
    [{"'" ++ Shown ++ "'", lists:flatten(io_lib:format("~p", [Node]))} || {Shown, Node} <- Names].

%% @doc The environments that a block of that kind says: a file, an entry of it, or keys of an
%% application (weft's own, if none is named). Of several values for one key each is one.
-spec environments(string(), Kind :: [string(), ...]) -> [[{atom(), [{atom(), term()}]}]].
environments(Text, ["erlang", "config"]) ->
    case terms(Text) of
        [Environment] when is_list(Environment) -> [Environment];
        [{App, [{_, _} | _] = Keys}] -> [[{App, Keys}]];
        Keys -> [[{weft, [Key]}] || Key <- Keys]
    end;
environments(Text, ["erlang", "config", App]) ->
    [[{list_to_atom(App), [Key]}] || Key <- terms(Text)].

%% Terms with and without dots: each ends where the next one begins.
terms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    Undotted = [Token || Token <- Tokens, element(1, Token) =/= dot],
    {ok, Forms} = erl_parse:parse_exprs(separated(Undotted, 0)),
    [erl_parse:normalise(Form) || Form <- Forms].

separated([{'}', _} = End, {'{', _} = Begin | Tokens], 1) ->
    [End, {',', 1} | separated([Begin | Tokens], 0)];
separated([Token | Tokens], Depth) ->
    [Token | separated(Tokens, Depth + deeper(element(1, Token)))];
separated([], 0) ->
    [{dot, 1}].

deeper(Open) when Open =:= '{'; Open =:= '['; Open =:= '('; Open =:= '<<' -> 1;
deeper(Close) when Close =:= '}'; Close =:= ']'; Close =:= ')'; Close =:= '>>' -> -1;
deeper(_) -> 0.

%% @doc What is to be evaluated where: all of a block at the first of the nodes, or, if its comments
%% say `on NODE', line by line. `Names' are the nodes as the page names them.
-spec lines(string(), [string(), ...]) -> [{[string()], string()}].
lines(Text, [First | _] = Names) ->
    case re:run(Text, "^[^%\n]*\\.\\s*% on ", [multiline]) of
        nomatch -> [{[First], Text}];
        {match, _} -> [{where(Line, Names), Line} || Line <- string:lexemes(Text, "\n")]
    end.

where(Line, [First | _] = Names) ->
    case re:run(Line, "% on (.*)$", [{capture, [1], list}]) of
        nomatch -> [First];
        {match, ["each node" ++ _]} -> Names;
        {match, [Said]} ->
            case re:run(Said, "[a-z0-9]+@[a-z0-9]+", [global, {capture, first, list}]) of
                nomatch -> [First];
                {match, Found} -> [Name || [Name] <- Found]
            end
    end.

%% @doc The commands after `$ ' and the expressions after prompts, each with what is shown below it.
-spec console(string()) -> [{command | expression, Where :: string(), string(), Shown :: string()}].
console(Text) ->
    lists:reverse(lists:foldl(fun shown/2, [], string:split(string:trim(Text), "\n", all))).

shown("$ " ++ Command, All) ->
    [{command, "", Command, ""} | All];
shown(Line, All) ->
    case re:run(Line, "^(?:\\(([a-z0-9]+)\\) )?[0-9]+> (.*)$", [{capture, [1, 2], list}]) of
        {match, [Where, Expression]} ->
            [{expression, Where, Expression, ""} | All];
        nomatch ->
            [{What, Where, Said, Shown} | Before] = All,
            [{What, Where, Said, string:trim(Shown ++ "\n" ++ Line)} | Before]
    end.
