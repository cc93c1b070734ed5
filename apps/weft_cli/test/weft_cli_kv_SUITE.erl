%% SPDX-License-Identifier: Apache-2.0
%% @doc `weft kv' with a node of its own that has the store: the commands of the guide as they are
%% written there, siblings, bytes that are no text, and mistakes. Usually commands run in one
%% emulator, but for those with pipes and files of a shell; with FULL=1 each has its own.
-module(weft_cli_kv_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, kv_as_the_guide_says/1]).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [kv_as_the_guide_says].

%% The command as a script, with the flags that its file has, from the code as it is compiled.
init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    Command = filename:join(Dir, "weft"),
    Paths = [weft_test_nodes:ebin(Module)
             || Module <- [weft_cli, weft_argparse, weft, weft_migrate_rule, weft_kv]],
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    ok = file:write_file(Command, [
        "#!/bin/sh\nexec '", Erl, "' -noinput +S 1:1 -pa ", lists:join($\s, Paths),
        " -epmd_module weft_cli_epmd -proto_dist weft_cli -setcookie weft_command",
        " -eval 'weft_cli:main(init:get_plain_arguments()).' -extra \"$@\" --dir '", Dir,
        "/clusters'\n"]),
    ok = file:change_mode(Command, 8#755),
    [{emulator, weft_cli_emulator:start()} || os:getenv("FULL") =:= false] ++ Config.

end_per_suite(Config) ->
    _ = shell("weft down", Config),
    [ok = weft_cli_emulator:stop(Emulator) || {emulator, Emulator} <- Config],
    ok.

%% The commands of docs/guide/kv.md, as they are written there, and what else can be said.
kv_as_the_guide_says(Config) ->
    {0, _} = run(["up", "-n", "1", "--path", weft_test_nodes:ebin(weft_ring),
                  "--path", weft_test_nodes:ebin(weft_kv)], Config),
    ?assertMatch({1, "weft: n01@127.0.0.1 does not run weft_kv" ++ _},
                 run(["kv", "info"], Config)),
    Dir = filename:join(?config(priv_dir, Config), "kv"),
    ok = filelib:ensure_path(Dir),
    {0, _} = run(["eval", "n01", store(Dir)], Config),
    {ok, Guide} = file:read_file(guide(filename:dirname(code:which(?MODULE)))),
    {match, Lines} = re:run(Guide, "^\\$ (weft kv .*)$",
                            [multiline, global, {capture, [1], list}]),
    ?assert(length(Lines) >= 8),
    Answers = [{Line, said(Line, Config)} || [Line] <- Lines],
    ?assertEqual([], [Answer || {_, [Code | _]} = Answer <- Answers, Code =/= $0, Code =/= $6]),
    kv_siblings(Config),
    kv_bytes(Dir, Config),
    kv_archives(Dir, Config),
    kv_mistakes(Config),
    ?assertMatch(#{<<"stopped">> := [_]}, json(["down"], Config)).

store(Dir) ->
    lists:flatten(io_lib:format(
        "application:set_env(weft_ring, dir, ~0p), application:set_env(weft_ring, partitions, 8), "
        "application:set_env(weft_ring, vnodes, [weft_kv_vnode]), "
        "application:set_env(weft_kv, buckets, #{carts => #{n => 1}, "
        "    pages => #{n => 1, siblings => false, evict => true}}), "
        "application:ensure_all_started(weft_kv), weft_ring:create()",
        [filename:join(Dir, "ring")])).

%% Both values are shown, and the context that is printed with them replaces both.
kv_siblings(Config) ->
    [{0, "written, context " ++ _} = run(["kv", "put", "carts", "eve", V], Config)
     || V <- ["one", "two"]],
    {6, Text} = run(["kv", "get", "carts", "eve"], Config),
    ?assertMatch({match, _}, re:run(Text, "^2 values, .*\none\ntwo\nWrite")),
    {match, [Context]} = re:run(Text, "--context ([A-Za-z0-9_-]+)", [{capture, [1], list}]),
    {6, Json} = run(["kv", "get", "carts", "eve", "--json"], Config),
    ContextText = list_to_binary(Context),
    ?assertMatch(#{<<"siblings">> := [#{<<"value">> := <<"one">>}, #{<<"value">> := <<"two">>}],
                   <<"context">> := ContextText}, json(Json)),
    {0, _} = run(["kv", "put", "carts", "eve", "three", "--context", Context], Config),
    ?assertEqual({0, "three"}, run(["kv", "get", "carts", "eve"], Config)),
    {0, "deleted" ++ _} = run(["kv", "delete", "carts", "eve"], Config),
    ?assertEqual({5, "weft: no such key\n"}, run(["kv", "get", "carts", "eve"], Config)).

%% Any bytes, also in a key.
kv_bytes(Dir, Config) ->
    [In, Out] = [filename:join(Dir, Name) || Name <- ["in", "out"]],
    Bytes = list_to_binary(lists:seq(0, 255)),
    ok = file:write_file(In, Bytes),
    {0, _} = run(["kv", "put", "pages", "%00%FF", "--encoded", "--file", In], Config),
    {0, _} = run(["kv", "get", "pages", "%00%FF", "--encoded", "--out", Out], Config),
    ?assertEqual({ok, Bytes}, file:read_file(Out)),
    "0" ++ _ = said("weft kv get pages %00%FF --encoded > " ++ Out ++ ".printed", Config),
    ?assertEqual({ok, Bytes}, file:read_file(Out ++ ".printed")),
    {0, _} = run(["kv", "put", "pages", "/other", "o"], Config),
    #{<<"keys">> := First, <<"next">> := Next} =
        json(["kv", "list", "pages", "--limit", "1"], Config),
    #{<<"keys">> := Rest} =
        json(["kv", "list", "pages", "--after", binary_to_list(Next)], Config),
    ?assert(lists:member(<<"%00%FF">>, First ++ Rest)),
    ?assertEqual(length(First ++ Rest), length(lists:usort(First ++ Rest))).

%% Through a pipe, too; and what is wrong with a file is said.
kv_archives(Dir, Config) ->
    [Whole, Half] = [filename:join(Dir, Name) || Name <- ["whole", "half"]],
    {0, _} = run(["kv", "put", "carts", "kept", "one"], Config),
    "0" ++ _ = said("weft kv export - > " ++ Whole, Config),
    {0, Text} = run(["kv", "import", Whole, "--check"], Config),
    ?assertMatch({match, _}, re:run(Text, "whole and not damaged, .*\n  carts +[0-9]+ keys\n")),
    {0, _} = run(["kv", "put", "carts", "kept", "two"], Config),
    "0" ++ _ = said("cat " ++ Whole ++ " | weft kv import -", Config),
    ?assertMatch(#{<<"siblings">> := [_, _]},
                 begin {6, Json} = run(["kv", "get", "carts", "kept", "--json"], Config),
                       json(Json) end),
    {ok, Bytes} = file:read_file(Whole),
    ok = file:write_file(Half, binary:part(Bytes, 0, byte_size(Bytes) div 2)),
    [?assertMatch({Words, {1, {match, _}}},
                  {Words, begin {Code, Why} = run(["kv" | Words], Config),
                                {Code, re:run(Why, Said)} end})
     || {Words, Said} <-
            [{["import", Half], "half: not whole: it ends at byte"},
             {["import", Whole, "--bucket", "carts", "--into", "no"], "the node has no bucket no"},
             {["export", Dir ++ "/none/file"], "no such file"}]],
    ?assertEqual([], filelib:wildcard(filename:join(Dir, "*.part"))).

kv_mistakes(Config) ->
    Kept = fun(Words, Said) ->
               {Code, Text} = run(["kv" | Words], Config),
               {Code, re:run(Text, Said, [{capture, none}])}
           end,
    [?assertEqual({Words, {Code, match}}, {Words, Kept(Words, Said)})
     || {Words, Code, Said} <-
            [{["get", "carts"], 2, "write: weft kv get BUCKET KEY"},
             {["gut", "carts", "k"], 2, "one of get, put, delete, list, info"},
             {["get", "cards", "k"], 1, "no bucket cards on .*: it has carts pages"},
             {["get", "carts", ""], 1, "keys have 1 to 4096 bytes"},
             {["put", "carts", "k", "v", "--context", "AAAA"], 1, "this is no context"},
             {["put", "carts", "k", "v", "--context", "?"], 2, "write the one that was printed"},
             {["put", "carts", "k", "--file", "/no/file"], 2, "no such file"},
             {["list", "carts", "--after", "AAAA"], 1, "this is no cursor"},
             {["get", "carts", "k", "--node", "n07"], 4, "no node n07"}]].

%% The exit code and all output.
run(Words, Config) ->
    case ?config(emulator, Config) of
        undefined ->
            Quoted = lists:append(lists:join(" ", ["'" ++ Word ++ "'" || Word <- Words])),
            [Code | Text] = shell("weft " ++ Quoted, Config),
            {Code - $0, Text};
        Emulator ->
            Dir = ?config(priv_dir, Config),
            All = Words ++ ["--dir", filename:join(Dir, "clusters")],
            {Code, Output} = weft_cli_emulator:run(Dir, All, Emulator),
            ct:log("~tp~n~b ~ts", [Words, Code, Output]),
            {Code, unicode:characters_to_list(Output)}
    end.

%% The same for a line as one writes it in a shell.
said(Line, Config) ->
    case ?config(emulator, Config) =:= undefined orelse re:run(Line, "[|<>] ") =/= nomatch of
        true -> shell(Line, Config);
        false ->
            Words = os:cmd("weft() { for word; do printf '%s\\n' \"$word\"; done; }; " ++ Line),
            {Code, Text} = run(string:split(string:trim(Words, trailing, "\n"), "\n", all), Config),
            [Code + $0 | Text]
    end.

shell(Line, Config) ->
    Dir = ?config(priv_dir, Config),
    Said = os:cmd("cd '" ++ Dir ++ "'; weft() { ./weft \"$@\"; }; "
                  "(" ++ Line ++ ") < /dev/null > said 2>&1; printf %s $?; cat said"),
    ct:log("~ts~n~ts", [Line, Said]),
    Said.

json(Words, Config) ->
    {0, Text} = run(Words ++ ["--json"], Config),
    json(Text).

json(Text) ->
    {ok, Json} = weft_json:decode(unicode:characters_to_binary(Text)),
    Json.

guide(Dir) ->
    File = filename:join(Dir, "docs/guide/kv.md"),
    case filelib:is_regular(File) of
        true -> File;
        false when Dir =/= "/" -> guide(filename:dirname(Dir))
    end.
