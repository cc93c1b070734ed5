%% SPDX-License-Identifier: Apache-2.0
%% @doc Node names from text that came from a file, a name server or another node.
%%
%% Text that is no node name is left out. A name that is new to this VM becomes an atom, and atoms
%% are never freed. So when half of the atom table is in use, only names that exist as atoms are
%% taken.
-module(weft_discovery_names).

-export([is_name/1, nodes/1, words/1, read/1, own_name/0]).

-define(NAME_CHARACTERS_MAX, 255).

%% @doc Whether Text looks like name@host.
-spec is_name(string()) -> boolean().
is_name(Text) ->
    length(Text) =< ?NAME_CHARACTERS_MAX
        andalso match =:= re:run(Text, "^[A-Za-z0-9_.-]+@[A-Za-z0-9_.:-]+$",
                                 [{capture, none}, dollar_endonly]).

%% @doc The node names among the texts, in the same order.
-spec nodes([string()]) -> [node()].
nodes(Texts) ->
    lists:append([to_node(Text) || Text <- Texts, is_name(Text)]).

to_node(Text) ->
    try
        [list_to_existing_atom(Text)]
    catch
        error:badarg -> [list_to_atom(Text) || has_room()]
    end.

has_room() ->
    erlang:system_info(atom_count) < erlang:system_info(atom_limit) div 2.

%% @doc The words of a text: what stands between blanks, commas and ends of lines, without comments
%% (# to the end of a line).
-spec words(unicode:chardata()) -> [string()].
words(Text) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters) ->
            string:lexemes(re:replace(Characters, "#[^\n]*", "", [global, unicode, {return, list}]),
                           " ,;\t\r\n");
        _NotUnicode -> []
    end.

%% @doc The node names in a text of lines, and the lines that can not be read or have a word that is
%% no node name. The names on such lines are used all the same.
-spec read(binary()) -> {[node()], Wrong :: [{Line :: pos_integer(), Words :: [string()]}]}.
read(Text) ->
    Lines = [line(Line) || Line <- binary:split(Text, <<"\n">>, [global])],
    Numbered = lists:zip(lists:seq(1, length(Lines)), Lines),
    {?MODULE:nodes(lists:append(Lines)),
     [{Number, Bad} || {Number, Words} <- Numbered,
                       [_ | _] = Bad <- [[Word || Word <- Words, not is_name(Word)]]]}.

%% A line that is not UTF-8 is read byte by byte: the words around the bad one may be names.
line(Line) ->
    case unicode:characters_to_list(Line) of
        Characters when is_list(Characters) -> words(Characters);
        _NotUnicode -> words(unicode:characters_to_list(Line, latin1))
    end.

%% @doc What precedes the @ of the name of this node.
-spec own_name() -> string().
own_name() ->
    hd(string:split(atom_to_list(node()), "@")).
