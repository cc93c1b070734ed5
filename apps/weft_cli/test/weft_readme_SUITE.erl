%% SPDX-License-Identifier: Apache-2.0
%% @doc What README.md shows under "One minute, one machine" is done as it stands there, and answers
%% what is shown. Only the place is another one: a directory whose build is that of the tests, with
%% a home directory and an epmd of its own.
-module(weft_readme_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([two_shells/1, a_cluster_that_is_no_full_mesh/1]).

-define(ANSWER_MS, 60000).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [two_shells, a_cluster_that_is_no_full_mesh].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    Build = filename:join([Dir, "_build", "default"]),
    [ok = filelib:ensure_path(filename:join(Build, Name)) || Name <- ["lib", "bin"]],
    ok = file:make_symlink(filename:dirname(weft_test_nodes:ebin(weft_dist)),
                           filename:join([Build, "lib", "weft"])),
    ok = file:make_symlink(weft_cli_build:file(), filename:join([Build, "bin", "weft"])),
    weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% --- two shells -------------------------------------------------------------------------------

two_shells(Config) ->
    [First, Second] = lines(block(["sh"], "-proto_dist weft")),
    A = shell(First, "a", Config),
    try
        B = shell(Second, "b", Config),
        try
            [?assertEqual({Number, Shown, Shown}, {Number, Shown, said(A, Number, Typed, Shown)})
             || {Number, Typed, Shown} <- session(block(["erlang", "shell"], "net_adm:ping"))]
        after
            ended(B)
        end
    after
        ended(A)
    end.

%% The lines after prompts, each with what is shown below it.
session(Text) ->
    Here = lists:flatten(io_lib:format("~p", [weft_test_nodes:node_name(b)])),
    Named = lists:foldl(fun(Shown, Of) -> re:replace(Of, Shown, Here, [global, {return, list}]) end,
                        Text, ["'b@myhost'", "(?<!')b@myhost"]),
    answers(lines(Named), []).

answers([], All) -> lists:reverse(All);
answers([Line | Lines], All) ->
    case re:run(Line, "^([0-9]+)> (.*)$", [{capture, all_but_first, list}]) of
        {match, [Number, Typed]} -> answers(Lines, [{Number, Typed, ""} | All]);
        nomatch ->
            [{Number, Typed, Shown} | Before] = All,
            answers(Lines, [{Number, Typed, string:trim(Shown ++ "\n" ++ Line)} | Before])
    end.

%% What the shell says to a line. A binding is shown without its value.
said(Shell, Number, Typed, Shown) ->
    true = port_command(Shell, Typed ++ "\n"),
    Said = until_prompt(Shell, list_to_integer(Number) + 1, ""),
    case Shown of
        "" -> ?assertEqual(nomatch, string:find(Said, "exception")), "";
        _ -> Said
    end.

shell(Line, Name, Config) ->
    Shell = open_port({spawn_executable, os:find_executable("sh")},
                      [{args, ["-c", "exec " ++ Line]}, {cd, ?config(priv_dir, Config)},
                       {env, environment(Config)}, exit_status, stderr_to_stdout]),
    Greeting = until_prompt(Shell, 1, ""),
    ct:log("~ts: ~ts", [Name, Greeting]),
    Shell.

until_prompt(Shell, Number, Read) ->
    case re:run(Read, "^(.*?)\\([ab]@[^)]*\\)" ++ integer_to_list(Number) ++ "> $",
                [dotall, {capture, all_but_first, list}]) of
        %% From OTP 26 on the prompt is shown again after a line of the log.
        {match, [Said]} ->
            string:trim(re:replace(Said, "\\([ab]@[^)]*\\)[0-9]+>", "",
                                   [global, {return, list}]));
        nomatch ->
            receive
                {Shell, {data, Data}} -> until_prompt(Shell, Number, Read ++ Data);
                {Shell, {exit_status, Status}} -> ct:fail({shell_ended, Status, Read})
            after ?ANSWER_MS ->
                ct:fail({no_prompt, Number, Read})
            end
    end.

ended(Shell) ->
    case erlang:port_info(Shell, os_pid) of
        {os_pid, Pid} ->
            [] = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
            receive {Shell, {exit_status, _}} -> ok end;
        undefined ->
            ok
    end.

%% --- a cluster --------------------------------------------------------------------------------

a_cluster_that_is_no_full_mesh(Config) ->
    [Up, Trace, Down] = lines(block(["sh"], "weft up")),
    {match, [Path]} = re:run(Trace, "# (n[0-9 >n-]*[0-9])", [{capture, [1], list}]),
    Nodes = string:split(Path, " -> ", all),
    ?assertMatch([_, _, _ | _], Nodes),
    ?assertMatch({0, "local: 5 nodes up in " ++ _}, run(Up, Config)),
    try
        {0, Traced} = run(Trace, Config),
        {match, Hops} = re:run(Traced, "^ +[0-9]+ +(\\w+) - (\\w+) ",
                               [global, multiline, {capture, all_but_first, list}]),
        ?assertEqual(lists:zip(lists:droplast(Nodes), tl(Nodes)), [{A, B} || [A, B] <- Hops]),
        %% There may be ways to all nodes before all links are there.
        weft_test_nodes:until(fun() -> neighbours(hd(Nodes), Config) =:= ["n2", "n3"] end)
    after
        ?assertEqual({0, "local: 5 nodes stopped\n"}, run(Down, Config))
    end.

neighbours(Node, Config) ->
    {0, Status} = run("_build/default/bin/weft status", Config),
    case re:run(Status, "^" ++ Node ++ " .*  ((n[0-9] ?)+)$", [multiline, {capture, [1], list}]) of
        {match, [Neighbours]} -> string:lexemes(Neighbours, " ");
        nomatch -> []
    end.

run(Line, #{} = Place, Config) ->
    weft_guide:run(Line, {?config(priv_dir, Config), environment(Config)}, Place).

run(Line, Config) -> run(Line, ?config(place, Config), Config).

%% --- what README shows ------------------------------------------------------------------------

block(Kind, Words) ->
    [Text] = [Text || #{info := Info, text := Text} <-
                          weft_guide:blocks(filename:join(weft_guide:root(), "README.md")),
                      Info =:= Kind, string:find(Text, Words) =/= nomatch,
                      string:find(Text, "vm.args") =:= nomatch],
    Text.

lines(Text) -> string:lexemes(Text, "\n").

environment(Config) ->
    #{epmd := #{port := Port}} = ?config(place, Config),
    [{"HOME", ?config(priv_dir, Config)}, {"ERL_EPMD_PORT", integer_to_list(Port)},
     {"TERM", "dumb"}, {"ERL_LIBS", false}].
