%% SPDX-License-Identifier: Apache-2.0
%% @doc The token of a configuration, which requests have to have. Only a hash of it is kept, so it
%% is in no log.
-module(weft_http_token).

-export([parse/1, is_token/2]).
-export_type([token/0]).

-define(CHARACTERS_MIN, 16).

-type token() :: none | {sha256, binary()}.

%% @doc Takes `none', a string of at least 16 characters, or `{file, Path}' of a file that has it.
%% What was given is in none of the texts: it may be nearly the right one.
-spec parse(term()) -> {ok, token()} | {error, Text :: string()}.
parse(none) ->
    {ok, none};
parse({file, Path}) ->
    case io_lib:printable_unicode_list(Path) andalso file:read_file(Path) of
        {ok, Content} -> characters(string:trim(Content), text("in the file ~ts ", [Path]));
        {error, Reason} -> {error, text("the token can not be read from ~ts: ~ts",
                                        [Path, file:format_error(Reason)])};
        false -> {error, "token is {file, Path} with a path that is no string"}
    end;
parse(Token) when is_list(Token); is_binary(Token) ->
    characters(Token, "");
parse(_Value) ->
    {error, "token is no string: make it one, or {file, Path} of a file with it, or none"}.

characters(Token, Where) ->
    try unicode:characters_to_binary(Token) of
        Text when is_binary(Text) -> long_enough(Text, Where);
        _NoText -> {error, text("the token ~tsis no text", [Where])}
    catch error:badarg -> {error, text("the token ~tsis no text", [Where])}
    end.

long_enough(Text, Where) ->
    case {string:length(Text) >= ?CHARACTERS_MIN,
          re:run(Text, "^[!-~]+$", [{capture, none}, dollar_endonly])} of
        {true, match} -> {ok, {sha256, crypto:hash(sha256, Text)}};
        {true, nomatch} -> {error, text("the token ~tshas other signs than letters, digits and "
                                        "punctuation of ASCII", [Where])};
        {false, _} -> {error, text("the token ~tsis too short: make it at least ~b characters",
                                   [Where, ?CHARACTERS_MIN])}
    end.

%% @doc Is that the token? Takes the same time whatever is wrong with it.
-spec is_token(binary(), token()) -> boolean().
is_token(_Given, none) -> false;
is_token(Given, {sha256, Hash}) -> crypto:hash_equals(crypto:hash(sha256, Given), Hash).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
