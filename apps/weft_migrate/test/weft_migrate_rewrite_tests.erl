%% SPDX-License-Identifier: Apache-2.0
%% @doc What each rule makes of the file NAME.before in the test data is NAME.after; what it leaves,
%% with the reason, is NAME.left.
-module(weft_migrate_rewrite_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DATA, "apps/weft_migrate/test/weft_migrate_data/rules").

each_rule_has_its_files_test_() ->
    [{atom_to_list(Name), fun() -> as_in_files(Name, rules(Name)) end}
     || Name <- [channel | weft_migrate_rule:names()]].

rules(channel) -> {ok, Rules} = weft_migrate_rule:rules([], #{channel => bulk}), Rules;
rules(Name) -> {ok, Rules} = weft_migrate_rule:rules([Name], #{}), Rules.

as_in_files(Name, Rules) ->
    {ok, #{bytes := Bytes, left := Left, rewritten := [_ | _]}} =
        run(read(Name, ".before"), Rules),
    ?assertEqual(lines(read(Name, ".after")), lines(Bytes)),
    {ok, Expected} = file:consult(filename:join(?DATA, lists:concat([Name, ".left"]))),
    ?assertEqual(Expected, lists:sort([{Line, Reason}
                                       || #{line := Line, reason := Reason} <- Left])).

read(Name, Extension) ->
    {ok, Bytes} = file:read_file(filename:join(?DATA, lists:concat([Name, Extension]))),
    Bytes.

lines(Bytes) -> binary:split(Bytes, <<"\n">>, [global]).

run(Bytes, Rules) -> weft_migrate_rewrite:run(weft_migrate_source:of_bytes("f.erl", Bytes), Rules).

all_rules() ->
    {ok, Rules} = weft_migrate_rule:rules(weft_migrate_rule:names(), #{}),
    Rules.

a_second_run_changes_nothing_test_() ->
    [{atom_to_list(Name),
      ?_assertMatch({ok, #{bytes := After, rewritten := []}},
                    run(After, rules(Name)))}
     || Name <- [channel | weft_migrate_rule:names()], After <- [read(Name, ".after")]].

a_macro_of_its_own_is_not_that_of_assert_test() ->
    Source = <<"-module(m).\n-define(assertEqual(A, B), ok).\n"
               "f() -> ?assertEqual(1, pg:join(a, b)).\n">>,
    ?assertMatch({ok, #{bytes := Source, left := [#{reason := "it is in a macro"}]}},
                 run(Source, rules(pg))).

%% ---- adaptors ----

%% The functions that adaptors call exist, with these arguments: they are compiled and run here.
an_adaptor_has_only_functions_of_the_old_module_test() ->
    [?assertEqual([], [Function || Function <- exports(Adaptor),
                                   not lists:member(Function, exports(Old))])
     || {Adaptor, Old} <- [{weft_migrate_global, global}, {weft_migrate_pg, pg},
                           {weft_migrate_s_group, s_group},
                           {weft_migrate_global_group, global_group}],
        has(Old)].

%% pg:monitor/1 and others came with OTP 25.1.
has(pg) -> lists:member({monitor_scope, 0}, exports(pg));
has(_) -> true.

exports(Module) -> Module:module_info(exports) -- [{module_info, 0}, {module_info, 1}].

each_function_of_an_adaptor_is_a_rule_test() ->
    [begin
         #{rules := Rules} = weft_migrate_adaptor:of_module(Adaptor),
         ?assertEqual(lists:sort(exports(Adaptor)), lists:sort(maps:keys(Rules)))
     end || Adaptor <- [weft_migrate_global, weft_migrate_pg, weft_migrate_pg2,
                        weft_migrate_s_group, weft_migrate_global_group]].

what_an_adaptor_calls_exists_test() ->
    [begin
         {Module, Beam, _} = code:get_object_code(Module),
         {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(Beam, [imports]),
         ?assertEqual([], [Call || {M, F, A} = Call <- Imports, M =/= erlang,
                                   not lists:member({F, A}, M:module_info(exports))])
     end || Module <- [weft_migrate_global, weft_migrate_pg, weft_migrate_pg2,
                       weft_migrate_s_group, weft_migrate_global_group]].

%% What OTP's global_group answers on a node that is in no group, and on one that is in a group of
%% two. Here the groups are told to weft as a driver does it.
nodes_of_global_group_are_those_of_weft_test() ->
    ok = weft_view:new(),
    ?assertEqual(global_group:own_nodes(), weft_migrate_global_group:own_nodes()),
    %% On a partial topology nodes() lacks the members behind others.
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, {member, Node}, Node) || Node <- [node(), 'n2@127.0.0.1']],
    ?assertEqual(lists:sort([node(), 'n2@127.0.0.1']), weft_migrate_global_group:own_nodes()),
    ok = weft_view:clear(?MODULE),
    %% On a partial topology nodes() lacks the members behind others.
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, {member, Node}, Node) || Node <- [node(), 'n2@127.0.0.1']],
    ?assertEqual(lists:sort([node(), 'n2@127.0.0.1']), weft_migrate_global_group:own_nodes()),
    ok = weft_view:clear(?MODULE),
    [ok = weft_view:put(?MODULE, {group, Name}, Nodes)
     || {Name, Nodes} <- [{one, [node(), 'b@h']}, {other, ['c@h']}]],
    InGroup = weft_migrate_global_group:own_nodes(),
    ok = weft_view:clear(?MODULE),
    ?assertEqual(lists:sort([node(), 'b@h']), lists:sort(InGroup)).

%% What pg2:create answered, whatever the group.
a_group_need_not_be_created_test() ->
    ?assertEqual(ok, weft_migrate_pg2:create({a, 1})).

an_adaptor_of_ones_own_is_used_test() ->
    ?assertEqual(
       <<"f(A) -> shop:sell(now, A, 1), shop:sell(now, b(% x\n), c()), old:buy(d()), "
         "case shop:ask(1) of {yes, V} -> V; no -> 0 end.\n">>,
       rewritten_by("-module(a).\n-migrates(old).\n"
                    "sell(What, Count) -> shop:sell(now, What, Count).\n"
                    "buy(What) -> {What, What}.\n"
                    "ask(What) -> case shop:ask(What) of {yes, Price} -> {ok, Price};"
                    " no -> error end.\n",
                    <<"f(A) -> old:sell(A, 1), old:sell(b(% x\n), c()), old:buy(d()), "
                      "case old:ask(1) of {ok, V} -> V; error -> 0 end.\n">>)).

rewritten_by(Adaptor, Bytes) ->
    {ok, Rules} = with_file(Adaptor, fun(File) ->
                                             weft_migrate_rule:rules([], #{adaptors => [File]})
                                     end),
    {ok, #{bytes := After}} = run(Bytes, Rules),
    After.

with_file(Text, Fun) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    File = filename:join(Dir, "a.erl"),
    ok = file:write_file(File, Text),
    try Fun(File) after file:del_dir_r(Dir) end.

%% b() may not be called if a() says so, or several times.
what_is_evaluated_later_or_again_is_a_word_test() ->
    Adaptor = "-module(a).\n-migrates(old).\n"
        "choose(A, B) -> case new:has(A) of true -> 1; false -> new:get(B) end.\n"
        "each(X, List) -> [new:put(X, Each) || Each <- List].\n"
        "two(A, B) -> {new:get({A, 1}), new:put(A, B)}.\n",
    [?assertEqual(After, rewritten_by(Adaptor, Before))
     || {Before, After} <-
            [{<<"f() -> old:choose(a(), b()).\n">>, <<"f() -> old:choose(a(), b()).\n">>},
             {<<"f(B) -> old:choose(a(), B).\n">>,
              <<"f(B) -> case new:has(a()) of true -> 1; false -> new:get(B) end.\n">>},
             {<<"f() -> old:each(a(), [1]).\n">>, <<"f() -> old:each(a(), [1]).\n">>},
             {<<"f(X, L) -> old:each(X, L).\n">>,
              <<"f(X, L) -> [ new:put(X, Each) || Each <- L ].\n">>},
             {<<"f() -> old:two(a(), b()).\n">>, <<"f() -> old:two(a(), b()).\n">>},
             {<<"f(A) -> old:two(A, b()).\n">>,
              <<"f(A) -> {new:get({A, 1}), new:put(A, b())}.\n">>}]].

a_wrong_adaptor_is_an_error_that_names_it_test_() ->
    [?_assertMatch({error, [_ | _]},
                   with_file(Text, fun(File) ->
                                           weft_migrate_rule:rules([], #{adaptors => [File]})
                                   end))
     || Text <- ["-module(a).\nf(X) -> X.\n", "-module(a).\n-migrates(b).\nf(X -> X.\n"]]
    ++ [?_assertMatch({error, "/no/such: no such file" ++ _},
                      weft_migrate_rule:rules([], #{adaptors => ["/no/such"]}))].

functions_that_are_no_rule_are_left_test() ->
    ?assertEqual(<<"f(X) -> old:a(X), old:b(X), new:c(X).\n">>,
                 rewritten_by("-module(a).\n-migrates(old).\n"
                              "a(x) -> new:a(x).\nb(X) when X > 1 -> new:b(X).\n"
                              "c(X) -> new:c(X).\n",
                              <<"f(X) -> old:a(X), old:b(X), old:c(X).\n">>)).

%% ---- files ----

the_old_module_itself_stays_test() ->
    Bytes = <<"-module(pg).\nf() -> pg:join(a, b).\n">>,
    ?assertMatch({ok, #{bytes := Bytes}}, run(Bytes, all_rules())).

%% It answers others, who ask with {global, Name}.
a_file_that_says_what_names_mean_keeps_them_test() ->
    Bytes = <<"f(N) -> global:whereis_name(N).\n"
              "g({global, N}) -> global:send(N, x);\ng({a, N}) -> global:set_lock(N).\n">>,
    {ok, #{bytes := After, left := [_, _]}} = run(Bytes, all_rules()),
    ?assertEqual(binary:replace(Bytes, <<"global:set_lock">>, <<"weft_global:set_lock">>), After).

keys_of_tables_are_no_names_test() ->
    Bytes = <<"f() -> ets:insert(t, {{global, x}, 0}), g({global, x}), g({global, y}).\n">>,
    ?assertMatch({ok, #{bytes := Bytes, left := [_]}}, run(Bytes, all_rules())).

a_form_that_cannot_be_read_is_left_test() ->
    ?assertMatch({ok, #{bytes := <<"f() -> ) pg:x().\ng() -> weft_pg:which_groups().\n">>,
                        left := [#{line := 1, reason := "its form could not be read"}]}},
                 run(<<"f() -> ) pg:x().\ng() -> pg:which_groups().\n">>, all_rules())).

%% A function and its arguments beside a variable, as where a module is computed.
calls_of_other_rules_are_no_names_test() ->
    ?assertMatch({ok, #{bytes := <<"f(N, M) -> erpc:multicall(N, M, get_members, [a]), ok.\n">>,
                        left := []}},
                 run(<<"f(N, M) -> rpc:multicall(N, M, get_members, [a]), ok.\n">>, all_rules())).

latin1_stays_latin1_test() ->
    ?assertMatch({ok, #{bytes := <<"%% coding: latin-1\n"
                                   "f() -> {\"\xe4\", weft_global:send(a, b)}.\n">>}},
                 run(<<"%% coding: latin-1\nf() -> {\"\xe4\", global:send(a, b)}.\n">>,
                     all_rules())).

%% A pattern is written anew, in the bytes of the file, unless there is a comment in it.
a_pattern_keeps_its_characters_and_comments_test() ->
    Before = fun(Pattern) ->
                     iolist_to_binary(["f(G) -> case s_group:delete_s_group(G) of ok -> a; ",
                                       Pattern, " -> b end.\n"])
             end,
    Latin1 = <<"{error, \"\xe4\"}">>,
    [?assertMatch({{ok, #{rewritten := [_]}}, {_, _}},
                  {Result, binary:match(maps:get(bytes, element(2, Result)), Pattern)})
     || {Coding, Pattern} <- [{"%% coding: latin-1\n", Latin1}, {"", Latin1},
                              {"", <<"{error, \"", "ä"/utf8, "\"}">>}],
        Result <- [run(<<(list_to_binary(Coding))/binary, (Before(Pattern))/binary>>,
                       rules(s_group))]],
    {ok, #{bytes := Whole}} = run(Before("{error, % why\n _}"), rules(s_group)),
    ?assertMatch({_, _}, binary:match(Whole, <<"% why">>)).

files_are_written_only_when_asked_test() ->
    with_file(
      "f() -> global:register_name(a, b).\n",
      fun(File) ->
              ok = file:change_mode(File, 8#640),
              Link = filename:join(filename:dirname(File), "link.erl"),
              ok = file:make_symlink("a.erl", Link),
              {ok, #{results := [_]}} = weft_migrate:rewrite([Link], #{}),
              ?assertEqual({ok, <<"f() -> global:register_name(a, b).\n">>}, file:read_file(File)),
              {ok, #{results := [_]}} = weft_migrate:rewrite([Link], #{only => [pg, global],
                                                                       write => true}),
              ?assertEqual({ok, <<"f() -> weft_global:register_name(a, b).\n">>},
                           file:read_file(File)),
              ?assertMatch({ok, _}, file:read_link(Link)),
              ?assertEqual("640", string:trim(os:cmd("stat -c %a " ++ File))),
              ?assertEqual(["a.erl", "link.erl"],
                           filelib:wildcard("*", filename:dirname(File)))
      end).

a_file_that_cannot_be_written_is_told_and_stays_test() ->
    with_file(
      "f() -> global:register_name(a, b).\n",
      fun(File) ->
              ok = file:write_file(File ++ ".weft_migrate", "mine"),
              {ok, #{failed := [{File, Reason}]}} = weft_migrate:rewrite([File],
                                                                         #{write => true}),
              ?assertMatch({match, _}, re:run(Reason, "weft_migrate exists; remove it")),
              ?assertEqual({ok, <<"f() -> global:register_name(a, b).\n">>}, file:read_file(File)),
              ?assertEqual({ok, <<"mine">>}, file:read_file(File ++ ".weft_migrate"))
      end).

%% Half a program would register names where the other half does not look.
if_one_file_cannot_be_written_none_is_test() ->
    with_file(
      "f() -> global:register_name(a, b).\n",
      fun(File) ->
              Other = filename:join(filename:dirname(File), "b.erl"),
              ok = file:write_file(Other, "g() -> global:whereis_name(a).\n"),
              ok = file:write_file(Other ++ ".weft_migrate", "mine"),
              {ok, #{results := [], failed := Failed}} =
                  weft_migrate:rewrite([filename:dirname(File)], #{write => true}),
              ?assertEqual([File, Other], [Path || {Path, _} <- Failed]),
              ?assertEqual("it is not written, since " ++ Other ++ " cannot be",
                           proplists:get_value(File, Failed)),
              ?assertEqual({ok, <<"f() -> global:register_name(a, b).\n">>}, file:read_file(File)),
              ?assertEqual(["a.erl", "b.erl", "b.erl.weft_migrate"],
                           filelib:wildcard("*", filename:dirname(File)))
      end).

%% As an editor does that saves a file while others are read.
what_was_changed_meanwhile_stays_test() ->
    with_file(
      "saved",
      fun(File) ->
              Other = filename:join(filename:dirname(File), "b.erl"),
              ok = file:write_file(Other, "old"),
              ?assertEqual({none, [{File, "it has changed since it was read"}]},
                           weft_migrate_files:replace([{Other, <<"old">>, <<"new">>},
                                                       {File, <<"old">>, <<"new">>}])),
              ?assertEqual([{"a.erl", {ok, <<"saved">>}}, {"b.erl", {ok, <<"old">>}}],
                           [{Name, file:read_file(filename:join(filename:dirname(File), Name))}
                            || Name <- filelib:wildcard("*", filename:dirname(File))])
      end).

%% What is decided of a text is done to this text only.
what_was_changed_after_the_first_look_stays_test() ->
    Old = <<"-module(a).\nf() -> global:whereis_name(a).\n">>,
    Saved = <<"-module(a).\nf() -> global:register_name(a, self()), global:whereis_name(a).\n">>,
    {ok, Rules} = weft_migrate_rule:rules(weft_migrate_rule:names(), #{}),
    with_file(
      Saved,
      fun(File) ->
              Rewrite = fun(Text) ->
                            weft_migrate:rewrite([{File, {ok, Text}}], Rules,
                                                 #{write => true, partial => true})
                        end,
              ?assertMatch(#{results := [], failed := [{File, "it has changed since it was read"}]},
                           Rewrite(Old)),
              ?assertEqual({ok, Saved}, file:read_file(File)),
              ?assertMatch(#{results := [_], failed := []}, Rewrite(Saved)),
              ?assertNotEqual({ok, Saved}, file:read_file(File))
      end).

%% By links a file has many names, and a directory may be in itself.
each_file_is_found_once_test_() ->
    {timeout, 60,
     fun() ->
             with_file(
               "f() -> ok.\n",
               fun(File) ->
                       Dir = filename:dirname(File),
                       [ok = file:make_symlink(To, filename:join(Dir, Name))
                        || {Name, To} <- [{"here", "."}, {"again", "."}, {"b.erl", "a.erl"}]],
                       ?assertEqual({ok, [File]}, weft_migrate_files:below([Dir])),
                       ?assertEqual({ok, [File]}, weft_migrate_files:below([Dir, File])),
                       ok = file:make_link(File, filename:join(Dir, "c.erl")),
                       {ok, Two} = weft_migrate_files:below([Dir]),
                       ?assertEqual(["a.erl", "b.erl", "c.erl"],
                                    [filename:basename(Found) || Found <- Two])
               end)
     end}.

%% Also without an extension, but not those of other languages, and no archives.
scripts_are_sources_test() ->
    with_file(
      "f() -> ok.\n",
      fun(File) ->
              Dir = filename:dirname(File),
              [ok = file:write_file(filename:join(Dir, Name), Text)
               || {Name, Text} <- [{"b.escript", "#!/usr/bin/env escript\n"},
                                   {"c", "#!/usr/bin/env escript\nmain(_) -> ok.\n"},
                                   {"d", "#!/bin/sh\nescript c\n"}, {"e", "#!"}, {"f", ""},
                                   {"g", <<"#!/usr/bin/env escript\nPK", 3, 4, 0, 0>>},
                                   {"h.txt", "#!/usr/bin/env escript\n"}]],
              {ok, Found} = weft_migrate_files:below([Dir]),
              ?assertEqual(["a.erl", "b.escript", "c"],
                           [filename:basename(Path) || Path <- Found])
      end).

%% ---- diff ----

a_diff_can_be_applied_by_patch_test_() ->
    {timeout, 60,
     [?_assertEqual(After, patched(Before, After))
      || {Before, After} <-
             [{<<"a\nb\nc\n">>, <<"a\nB\nc\n">>},
              {<<"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n">>, <<"x\n2\n3\n4\n5\n6\n7\n8\n9\n10\ny\n">>},
              {<<"a\nb\nc">>, <<"a\nb\nC">>}, {<<"a\nb\nc\nd\n">>, <<"a\nx\nd\n">>},
              {<<"a">>, <<"a\nb\n">>}]]}.

patched(Before, After) ->
    with_file(Before,
              fun(File) ->
                      Diff = weft_migrate_diff:unified(File, Before, After),
                      ok = file:write_file(File ++ ".diff", unicode:characters_to_binary(Diff)),
                      _ = os:cmd("patch -s -p0 " ++ File ++ " < " ++ File ++ ".diff"),
                      {ok, Patched} = file:read_file(File),
                      Patched
              end).

nothing_differs_in_the_same_test() ->
    ?assertEqual([], weft_migrate_diff:unified("f", <<"a\n">>, <<"a\n">>)).
