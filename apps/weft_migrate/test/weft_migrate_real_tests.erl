%% SPDX-License-Identifier: Apache-2.0
%% @doc The sources of this project, and with FULL=1 those of the installed OTP too
%% (or below the directory WEFT_MIGRATE_SOURCES): each file is read, what is rewritten differs only
%% where an edit is, and a second run edits nothing.
-module(weft_migrate_real_tests).

-include_lib("eunit/include/eunit.hrl").

%% What changes between the old and the new text, and nothing else does.
-define(WORDS, "weft_global|weft_pg|weft_group|erpc").

real_sources_test_() ->
    {timeout, 3600, [{File, {timeout, 600, fun() -> ?assertEqual(ok, checked(File)) end}}
                     || File <- chosen()]}.

chosen() ->
    case os:getenv("FULL") of
        false -> files(["apps/weft/src/service", "apps/sd_erlang/src"]);
        _ -> files(["apps", os:getenv("WEFT_MIGRATE_SOURCES", code:lib_dir())])
    end.

files(Paths) ->
    {ok, Files} = weft_migrate_files:below(Paths),
    [File || File <- Files, lists:member(filename:extension(File), [".erl", ".hrl"])].

checked(File) ->
    {ok, Rules} = weft_migrate_rule:rules(weft_migrate_rule:names(), #{}),
    {ok, #{bytes := Bytes} = Source} = weft_migrate_source:read(File),
    {_, Forms} = weft_migrate_tokens:forms(Bytes),
    Bytes = iolist_to_binary([binary:part(Bytes, Byte, Size)
                              || #{byte := Byte, size := Size} <- Forms]),
    _ = weft_migrate_scan:findings(Source),
    {ok, #{bytes := After, rewritten := Rewritten}} = weft_migrate_rewrite:run(Source, Rules),
    {ok, #{bytes := After, rewritten := []}} =
        weft_migrate_rewrite:run(weft_migrate_source:of_bytes(File, After), Rules),
    case {Rewritten, Bytes =:= After} of
        {[], true} -> ok;
        {[_ | _], false} -> same_lines(lines(Bytes), lines(After));
        _ -> wrong
    end.

%% Lines that differ have a word of weft, others are the same byte for byte.
same_lines([Line | Before], [Line | After]) -> same_lines(Before, After);
same_lines([Old | Before], [New | After]) ->
    case re:run(New, ?WORDS) of
        {match, _} -> same_lines(Before, After);
        nomatch -> {differs, Old, New}
    end;
same_lines([], []) -> ok.

lines(Bytes) -> binary:split(Bytes, <<"\n">>, [global]).
