%% SPDX-License-Identifier: Apache-2.0
%% @doc A source file as read: its bytes, and its forms with structure and tokens.
%%
%% The structure says what something is, the tokens say where. Both have lines and columns, which is
%% how they find each other. A form without a structure has the reason; the others are read all the
%% same.
-module(weft_migrate_source).

-export([read/1, of_bytes/2, in/2, unread/1, line/2]).
-export_type([source/0, form/0]).

-type form() :: #{at := {pos_integer(), pos_integer()}, byte := non_neg_integer(),
                  size := non_neg_integer(), tokens := [weft_migrate_tokens:token()],
                  tree := {ok, erl_syntax:syntaxTree()} | {error, Reason :: string()}}.
-type source() :: #{file := file:filename_all(), bytes := binary(),
                    encoding := weft_migrate_tokens:encoding(), forms := [form()],
                    program := weft_migrate_program:program()}.

-spec read(file:filename_all()) -> {ok, source()} | {error, string()}.
read(File) ->
    case file:read_file(File) of
        {ok, Bytes} -> {ok, of_bytes(File, Bytes)};
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

%% @doc The same from bytes. File is the name that is shown.
-spec of_bytes(file:filename_all(), binary()) -> source().
of_bytes(File, Bytes) ->
    {Encoding, Forms} = weft_migrate_tokens:forms(Bytes),
    #{file => File, bytes => Bytes, encoding => Encoding,
      forms => lists:append([form(Form) || Form <- Forms]),
      program => weft_migrate_program:of_bytes(Bytes)}.

%% @doc The same source, as a part of a program.
-spec in(source(), weft_migrate_program:program()) -> source().
in(#{program := Own} = Source, Program) ->
    Source#{program := weft_migrate_program:beside(Own, Program)}.

form(#{tokens := {ok, []}}) ->
    [];
form(#{tokens := {error, Reason}} = Form) ->
    [(maps:with([at, byte, size], Form))#{tokens => [], tree => {error, Reason}}];
form(#{tokens := {ok, Tokens}} = Form) ->
    case [Token || {Category, _, _, _, _} = Token <- Tokens,
                   Category =/= white_space, Category =/= comment] of
        %% epp_dodger reads no such attribute, and nothing in it runs.
        [{'-', _, _, _, _}, {atom, feature, _, _, _} | _] -> [];
        Code -> form(Form, Tokens, Code)
    end.

form(#{at := At, text := Text} = Form, Tokens, Code) ->
    Begins = case Code of [{_, _, First, _, _} | _] -> First; [] -> At end,
    Read = (maps:with([byte, size], Form))#{at => Begins, tokens => Code},
    case weft_migrate_form:parse(Text, At, []) of
        none -> [];
        {ok, Tree} -> [Read#{tree => {ok, Tree}}];
        {error, Reason} -> [again(Read, Text, At, Tokens, {error, Reason})]
    end.

%% `maybe' is a word of the language or an atom, as the file or the release of OTP has it. Macros
%% beside strings are parts of them, which epp_dodger does not know, and releases before OTP 27 do
%% not know the ~ of sigils: for it they are blank.
again(Read, Text, At, Tokens, Error) ->
    Blank = blank(Tokens, Text),
    case {weft_migrate_form:parse(Blank, At, []), weft_migrate_form:parse(Blank, At, ['maybe'])} of
        {{ok, Tree}, _} -> Read#{tree => {ok, Tree}};
        {_, {ok, Tree}} ->
            Read#{tree => {ok, Tree},
                  tokens => [word(Token) || Token <- maps:get(tokens, Read)]};
        _ -> Read#{tree => Error}
    end.

word({atom, 'maybe', At, Byte, Size}) -> {'maybe', 'maybe', At, Byte, Size};
word(Token) -> Token.

blank(Tokens, Text) ->
    Places = [At || {_, _, At, _, _} <- beside([Token || {Category, _, _, _, _} = Token <- Tokens,
                                                         Category =/= white_space,
                                                         Category =/= comment])],
    blank(Text, first(Tokens), lists:sort(Places)).

first([{_, _, At, _, _} | _]) -> At.

beside([{string, _, _, _, _} = String, {'?', _, _, _, _} = Mark, {_, _, _, _, _} = Name | Rest]) ->
    [Mark, Name | beside([String | Rest])];
beside([{'?', _, _, _, _} = Mark, Name, {string, _, _, _, _} = String | Rest]) ->
    [Mark, Name | beside([String | Rest])];
beside([{'~', _, _, _, _} = Mark, {string, _, _, _, _} = String | Rest]) ->
    [Mark | beside([String | Rest])];
beside([{'~', _, _, _, _} = Mark, Name, {string, _, _, _, _} = String | Rest]) ->
    [Mark, Name | beside([String | Rest])];
beside([_ | Rest]) -> beside(Rest);
beside([]) -> [].

%% Words at these places become as many blanks.
blank(Text, _, []) -> Text;
blank([], _, _) -> [];
blank([Character | Text], At, [At | Places]) ->
    {Word, Rest} = case lists:member(Character, "?~") of
                       true -> {[Character], Text};
                       false -> lists:splitwith(fun is_of_word/1, [Character | Text])
                   end,
    lists:duplicate(length(Word), $\s) ++ blank(Rest, moved(Word, At), Places);
blank([Character | Text], At, Places) ->
    [Character | blank(Text, moved([Character], At), Places)].

is_of_word(Character) ->
    Character >= $a andalso Character =< $z orelse Character >= $A andalso Character =< $Z
        orelse Character >= $0 andalso Character =< $9 orelse Character =:= $_
        orelse Character =:= $@.

moved([$\n], {Line, _}) -> {Line + 1, 1};
moved(Word, {Line, Column}) -> {Line, Column + length(Word)}.

%% @doc The forms that could not be read, and why.
-spec unread(source()) -> [{Line :: pos_integer(), Reason :: string()}].
unread(#{forms := Forms}) ->
    [{Line, Reason} || #{at := {Line, _}, tree := {error, Reason}} <- Forms].

%% @doc A line of the file, without white space around it.
-spec line(source(), pos_integer()) -> binary().
line(#{bytes := Bytes, encoding := Encoding}, Line) ->
    case lists:nthtail(Line - 1, binary:split(Bytes, <<"\n">>, [global])) of
        [Found | _] ->
            unicode:characters_to_binary(string:trim(unicode:characters_to_list(Found, Encoding)));
        [] -> <<>>
    end.
