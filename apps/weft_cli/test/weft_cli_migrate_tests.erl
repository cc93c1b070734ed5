%% SPDX-License-Identifier: Apache-2.0
%% @doc What docs/guide/migrate.md shows is what the commands in it do, run in the order of the
%% guide in a copy of the program that it is about.
-module(weft_cli_migrate_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SHOP, "apps/weft_migrate/test/weft_migrate_data/shop").

the_guide_says_what_is_so_test_() ->
    Blocks = weft_guide:page("migrate.md", "console"),
    {setup, fun in_a_copy/0, fun({Dir, Before}) ->
                                     ok = file:set_cwd(Before),
                                     ok = file:del_dir_r(Dir)
                             end,
     fun(_) ->
             [_, _ | _] = Commands = lists:append([block(lists:droplast(B)) || B <- Blocks]),
             {inorder, [{Words, ?_assertEqual(Expected, answer(Words))}
                        || {Words, Expected} <- Commands]}
     end}.

in_a_copy() ->
    {ok, Before} = file:get_cwd(),
    Dir = string:trim(os:cmd("mktemp -d")),
    "" = os:cmd(lists:concat(["cp -r ", filename:join(Before, ?SHOP), "/. ", Dir])),
    true = code:set_path([filename:absname(Path) || Path <- code:get_path()]),
    ok = file:set_cwd(Dir),
    {Dir, Before}.

%% What the guide says of its adaptor.
the_adaptor_of_the_guide_does_what_is_said_test_() ->
    [Adaptor] = weft_guide:page("migrate.md", "erlang module"),
    [?_assertEqual(After, by(Adaptor, Before))
     || {Before, After} <-
            [{<<"till:open(main)">>, <<"register:open(main, now)">>},
             {<<"{ok, R} = till:pay(main, 5), R">>, <<"{booked, R} = register:book(5, main), R">>},
             {<<"case till:pay(main, 5) of error -> no; {ok, _} -> yes end">>,
              <<"case register:book(5, main) of refused -> no; {booked, _} -> yes end">>},
             {<<"till:pay(main, 5), ok">>, <<"register:book(5, main), ok">>},
             {<<"X = till:pay(main, f()), X">>,
              <<"X = case register:book(f(), main) of {booked, Receipt} -> {ok, Receipt}; "
                "refused -> error end, X">>},
             {<<"till:pay(g(), f())">>, <<"till:pay(g(), f())">>}]].

by(Adaptor, Before) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    Source = filename:join(Dir, "source.erl"),
    File = filename:join(Dir, "till_adaptor.erl"),
    ok = file:write_file(File, Adaptor),
    ok = file:write_file(Source, ["f() -> ", Before, ".\n"]),
    {_, _, _} = weft_cli_migrate:migrate(["rewrite", Source], #{adaptors => [File], write => true}),
    {ok, <<"f() -> ", After/binary>>} = file:read_file(Source),
    ok = file:del_dir_r(Dir),
    binary:part(After, 0, byte_size(After) - 2).

%% The lines that begin with a dollar, and what is printed after each.
block(Block) ->
    [command(Command) || Command <- string:split([$\n | Block], "\n$ weft ", all),
                         string:trim(Command) =/= ""].

command(Command) ->
    [Words | Output] = string:split(lists:flatten(Command), "\n"),
    {Words, lists:flatten([Output, [$\n || Output =/= [], Output =/= [""]]])}.

answer(Line) ->
    {ok, Given, _, Command} = weft_argparse:parse(string:lexemes(Line, " "),
                                                  weft_cli_commands:command(), "weft"),
    #{handler := {weft_cli_migrate, migrate}, arguments := _} = Command,
    {What, Rest} = maps:take(what, Given),
    {Paths, Options} = maps:take(paths, Rest),
    {Kind, _Json, Text} = weft_cli_migrate:migrate([What | Paths], Options),
    ?assert(lists:member(Kind, [ok, wanting])),
    unicode:characters_to_list(Text).

%% ---- the file that users have ----

%% Rules of weft are read from the object code in the file, those of a user from a source.
the_file_scans_and_rewrites_test_() ->
    {timeout, 120, fun() ->
                           Dir = string:trim(os:cmd("mktemp -d")),
                           try by_file(weft_cli_build:file(), Dir)
                           after ok = file:del_dir_r(Dir)
                           end
                   end}.

by_file(Command, Dir) ->
    Before = "f() -> till:open(main), pg:join(a, self()).\n",
    Source = filename:join(Dir, "source.erl"),
    [Adaptor] = weft_guide:page("migrate.md", "erlang module"),
    ok = file:write_file(filename:join(Dir, "till_adaptor.erl"), Adaptor),
    ok = file:write_file(Source, Before),
    Run = fun(Words) -> run([Command, " migrate ", Words], Dir) end,
    ?assertEqual({0, "note: pg (1)"}, first_line(Run("scan source.erl"))),
    {0, Diff} = Run("rewrite source.erl --dry-run"),
    ?assertMatch({match, _}, re:run(Diff, "^\\+f\\(\\) -> till:open\\(main\\), weft_pg:join",
                                    [multiline])),
    ?assertMatch({2, _}, Run("rewrite source.erl --dry-run --write")),
    ?assertEqual({ok, list_to_binary(Before)}, file:read_file(Source)),
    ?assertMatch({0, "written source.erl\n" ++ _},
                 Run("rewrite source.erl --adaptor till_adaptor.erl --write")),
    ?assertEqual({ok, <<"f() -> register:open(main, now), weft_pg:join(a, self()).\n">>},
                 file:read_file(Source)).

first_line({Status, Output}) -> {Status, hd(string:split(Output, "\n"))}.

run(Line, Dir) ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", lists:flatten(Line)]}, {cd, Dir}, exit_status,
                      stderr_to_stdout]),
    ended(Port, []).

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ended(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, lists:flatten(Output)}
    end.

%% ---- errors and answers ----

nothing_is_changed_and_changed_makes_no_sense_test() ->
    ?assertMatch({usage, "--dry-run" ++ _},
                 weft_cli_migrate:migrate(["rewrite", ?SHOP], #{dry_run => true, write => true})).

words_that_make_no_sense_are_refused_test_() ->
    [?_assertMatch({usage, _}, weft_cli_migrate:migrate(Words, #{}))
     || Words <- [["scan"], ["rewrite"], ["look", "."], ["scan", "/no/such"],
                  ["rewrite", "/no/such"]]].

a_report_that_cannot_be_written_is_an_error_test() ->
    ?assertMatch({failed, _}, weft_cli_migrate:migrate(["scan", filename:join(?SHOP, "src")],
                                                       #{html => "/no/such/place.html"})).

the_json_can_be_encoded_test() ->
    {wanting, Json, _} = weft_cli_migrate:migrate(["scan", ?SHOP], #{}),
    {ok, #{<<"findings">> := [#{<<"level">> := _, <<"line">> := _} | _]}} =
        weft_json:decode(iolist_to_binary(weft_json:encode(Json))).

the_json_of_a_rewrite_can_be_encoded_test() ->
    {wanting, Json, _} = weft_cli_migrate:migrate(["rewrite", ?SHOP], #{}),
    {ok, #{<<"results">> := [#{<<"left">> := [#{<<"reason">> := _} | _],
                               <<"rewritten">> := [#{<<"line">> := _} | _]} | _]}} =
        weft_json:decode(iolist_to_binary(weft_json:encode(Json))).

an_adaptor_that_is_not_there_is_refused_test() ->
    ?assertMatch({usage, "/no/such" ++ _},
                 weft_cli_migrate:migrate(["rewrite", ?SHOP], #{adaptors => ["/no/such"]})).

notes_are_no_reason_to_fail_test() ->
    ?assertMatch({ok, _, _}, weft_cli_migrate:migrate(["scan", ?SHOP ++ "/src/shop_sup.erl"],
                                                      #{})).
