%% SPDX-License-Identifier: Apache-2.0
%% @doc The sources of this project, and with FULL=1 those of the installed OTP too
%% (or below the directory WEFT_MIGRATE_SOURCES): each file is read, what is rewritten differs byte
%% by byte only where an edit is, and a second run edits nothing.
-module(weft_migrate_real_tests).

-include_lib("eunit/include/eunit.hrl").

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
    {ok, #{bytes := After, rewritten := Rewritten} = Result} =
        weft_migrate_rewrite:run(Source, Rules),
    {ok, #{bytes := After, rewritten := []}} =
        weft_migrate_rewrite:run(weft_migrate_source:of_bytes(File, After), Rules),
    case {Rewritten, Bytes =:= After} of
        {[], true} -> ok;
        {[_ | _], false} -> problems(weft_migrate_bytes:problems(Result));
        _ -> wrong
    end.

problems([]) -> ok;
problems(Problems) -> Problems.

%% ---- what would be found ----

bytes_that_differ_are_found_test_() ->
    {ok, Rules} = weft_migrate_rule:rules([pg], #{}),
    Bytes = <<"%% \xe4\n\nf() ->\r\n  pg:join(a, b).\t% c\ng() -> ok.\n">>,
    {ok, #{bytes := After, edits := [{_, 2, <<"weft_pg">>} = Edit]} = Result} =
        weft_migrate_rewrite:run(weft_migrate_source:of_bytes("f.erl", Bytes), Rules),
    Swapped = fun(Old, New) -> Result#{bytes := binary:replace(After, Old, New)} end,
    [{Title, ?_assertEqual(Count, length(weft_migrate_bytes:problems(Changed)))}
     || {Title, Changed, Count} <-
            [{"nothing", Result, 0},
             {"a comment", Swapped(<<"\xe4">>, <<"\xc3\xa4">>), 1},
             {"white space", Swapped(<<"\r\n">>, <<"\n">>), 1},
             {"the end", Swapped(<<"ok.\n">>, <<"ok.">>), 1},
             {"another edit", Swapped(<<"weft_pg">>, <<"weft_qg">>), 1},
             {"an edit that is not told", Result#{edits := []}, 1},
             {"a place that is not told", Result#{rewritten := []}, 1},
             {"an edit of another form",
              Result#{edits := [Edit, {byte_size(Bytes) - 4, 2, <<"ko">>}],
                      bytes := binary:replace(After, <<"ok">>, <<"ko">>)}, 1}]].
