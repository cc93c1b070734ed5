%% SPDX-License-Identifier: Apache-2.0
%% @doc Which places of one lock are told to name different nodes, and which are not.
-module(weft_migrate_locks_tests).

-include_lib("eunit/include/eunit.hrl").

places_of_one_lock_that_differ_are_told_test() ->
    ?assertEqual([{"one.erl", 2, "two.erl:1 has [node()]"}, {"two.erl", 1, "one.erl:2 has Nodes"}],
                 told([{"one.erl", "a(Nodes) ->\n global:set_lock({table, self()}, Nodes)."},
                       {"two.erl", "b() -> global:del_lock({table, self()}, [node()])."}])),
    ?assertMatch([{_, 1, "one.erl:2 has all nodes"}, {_, 2, "one.erl:1 has [n1, n2]"}],
                 lists:sort(told("a(F) -> global:trans({?LOCK, self()}, F, [n1,\tn2]),\n"
                                 "global:trans({?LOCK, self()}, F)."))),
    ?assertMatch([_, _], told("a(F, N) -> global:trans({{a, 1}, x}, F, N, 3),"
                              "global:set_lock({{a, 1}, y}, [N], 0).")).

equal_and_unknown_ones_are_not_told_test_() ->
    [{Code, ?_assertEqual([], told(["a(F, N, T) -> ", Code, "."]))}
     || Code <- ["global:set_lock({a, x}, N), global:del_lock({a, x}, N)",
                 "global:set_lock({a, x}, [node() | nodes()]), global:del_lock({a, x})",
                 "global:set_lock({a, x}, [node()]), global:set_lock({b, x}, N)",
                 "global:set_lock({T, x}, [node()]), global:set_lock({T, x}, N)",
                 "global:set_lock({?L(T), x}, [node()]), global:set_lock({?L(T), x}, N)",
                 "global:set_lock(N, [node()]), global:set_lock(N, T)",
                 "other:set_lock({a, x}, [node()]), other:set_lock({a, x}, N)"]].

%% In the report of a whole program, which rewriting does not heed.
a_scan_has_them_test() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    File = filename:join(Dir, "one.erl"),
    Code = "-module(one).\na(F) -> global:trans({a, x}, F, [n1]), global:trans({a, y}, F, [n2]).\n",
    ok = file:write_file(File, Code),
    {ok, #{findings := Findings} = Report} = weft_migrate:scan([Dir]),
    ?assertEqual(2, length([one || #{id := global_locks_differ} <- Findings])),
    Shown = unicode:characters_to_list(weft_migrate_terminal:report(Report)),
    ?assertNotEqual(nomatch, string:find(Shown, "one lock of global, different nodes (2)")),
    {ok, #{results := [#{rewritten := Rewritten}]}} = weft_migrate:rewrite([Dir], #{}),
    ?assertEqual(2, length(Rewritten)),
    ok = file:del_dir_r(Dir).

told([{_, _} | _] = Files) ->
    Places = [weft_migrate_locks:places(source(File, Code)) || {File, Code} <- Files],
    [{File, Line, Note} || #{id := global_locks_differ, file := File, line := Line, note := Note}
                               <- weft_migrate_locks:differing(lists:append(Places))];
told(Code) ->
    told([{"one.erl", Code}]).

source(File, Code) ->
    Bytes = iolist_to_binary([Code, "\n"]),
    weft_migrate_source:in(weft_migrate_source:of_bytes(File, Bytes),
                           weft_migrate_program:of_bytes(Bytes)).
