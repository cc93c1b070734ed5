#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% Sources of foreign programs, compiled before and after `weft migrate rewrite'
%% (docs/guide/migrate.md):
%%
%%   test/migrate/compiled.escript [--partial] [-I DIR] [-D NAME] SOURCES
%%
%% SOURCES stay as they are: a copy is rewritten. ERL_LIBS says where libraries are. It prints what
%% was compared, and what differs; the exit code is 1 if something does that should not. -v names
%% the sources that cannot be compiled before either, with the first error of each.
-mode(compile).

main(Words) ->
    Base = filename:absname(os:getenv("REBAR_BASE_DIR", "_build")),
    Work = filename:join(Base, "migrate"),
    Code = filename:join(Work, "runner"),
    ok = filelib:ensure_path(Code),
    [{ok, _} = compile:file(File, [{outdir, Code}, report])
     || File <- ["apps/weft_migrate/test/weft_migrate_bytes.erl"
                 | filelib:wildcard("test/migrate/weft_migrate_*.erl")],
        not lists:suffix("_tests.erl", File)],
    true = code:add_patha(Code),
    ok = code:add_pathsa([filename:join([Base, "default/lib", App, "ebin"])
                          || App <- ["weft_migrate", "weft"]]),
    #{sources := Sources} = Options = options(Words, #{partial => false, details => false,
                                                       include => [], define => []}),
    report(weft_migrate_compiled:run(
             Sources, #{work => filename:join(Work, filename:basename(Sources)),
                        partial => maps:get(partial, Options),
                        build => maps:with([include, define], Options)}), Options).

options(["--partial" | Words], Options) ->
    options(Words, Options#{partial := true});
options(["-v" | Words], Options) ->
    options(Words, Options#{details := true});
options(["-I", Dir | Words], #{include := Dirs} = Options) ->
    options(Words, Options#{include := Dirs ++ [filename:absname(Dir)]});
options(["-D", Name | Words], #{define := Names} = Options) ->
    options(Words, Options#{define := [list_to_atom(Name) | Names]});
options([Sources], Options) ->
    Options#{sources => filename:absname(Sources)};
options(_, _) ->
    io:format(standard_error, "usage: compiled.escript [--partial] [-v] [-I DIR] [-D NAME] "
              "SOURCES~n", []),
    halt(2).

report(#{problems := Problems, errors := Errors, changed := Changed} = Outcome, Options) ->
    [io:format("~-10s ~w~n", [Key, maps:get(Key, Outcome)])
     || Key <- [files, scanned, findings, sources, compiled, warnings, rewritten, left]],
    [io:format("~w of ~ts/~w -> ~w, in modules: ~w~n", [Old, Function, Arity, New, Count])
     || {{{Old, Function, Arity}, {New, _, _}}, Count} <- lists:sort(maps:to_list(Changed))],
    [io:format("not compiled: ~ts: ~ts~n", [File, Error])
     || maps:get(details, Options), {File, Error} <- Errors],
    [io:format("problem: ~ts~n", [Problem]) || Problem <- Problems],
    halt(case Problems of [] -> 0; _ -> 1 end).
