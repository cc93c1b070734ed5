%% SPDX-License-Identifier: Apache-2.0
%% @doc The comments in the source are documentation that the shell can show (`bin/docs').
-module(weft_docs_tests).

-include_lib("eunit/include/eunit.hrl").

%% What users call.
-define(MODULES, [weft, weft_names, weft_pg, weft_global, weft_singleton, weft_group, weft_place,
                  weft_attributes, weft_discovery, weft_fault, weft_doctor, weft_transit,
                  weft_channel, weft_overlay]).

docs_test_() ->
    {setup, fun documented/0, fun(Dir) -> ok = file:del_dir_r(Dir) end,
     fun(Dir) ->
         [{atom_to_list(Module), ?_assertEqual({described, []}, undocumented(Module, Dir))}
          || Module <- ?MODULES]
     end}.

an_application_that_is_not_there_is_named_test_() ->
    {timeout, 60,
     ?_assertMatch({match, _}, re:run(os:cmd("bin/docs nothing"), "no application apps/nothing"))}.

%% Of all modules with FULL=1; usually of these, and the command only for a small application.
documented() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    App = case os:getenv("FULL") of false -> "weft_chaos"; _ -> "weft" end,
    Said = os:cmd("REBAR_BASE_DIR=" ++ Dir ++ " bin/docs " ++ App),
    ?assertMatch({match, _}, re:run(Said, "index.html")),
    ?assert(filelib:is_regular(filename:join([Dir, "docs", App, "index.html"]))),
    App =:= "weft" orelse made_here(filename:join(Dir, "default/lib/weft/doc")),
    Dir.

%% As bin/docs makes them.
made_here(Dir) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Files = [File || Module <- ?MODULES,
                     File <- filelib:wildcard(lists:concat(["apps/weft/src/**/", Module, ".erl"]))],
    ok = edoc:files(Files, [{preprocess, true}, {includes, ["apps/weft/include", "apps"]},
                            {dir, Dir}, {doclet, edoc_doclet_chunks},
                            {layout, edoc_layout_chunks}]).

%% Functions without a word, of a module that says what it is. Callbacks are private or hidden.
undocumented(Module, Dir) ->
    Chunk = filename:join([Dir, "default/lib/weft/doc/chunks", atom_to_list(Module) ++ ".chunk"]),
    {ok, Binary} = file:read_file(Chunk),
    {docs_v1, _, _, _, ModuleDoc, _, Entries} = binary_to_term(Binary),
    {case ModuleDoc of #{} -> described; _ -> no_word end,
     [{Name, Arity} || {{function, Name, Arity}, _, _, none, _} <- Entries]}.
