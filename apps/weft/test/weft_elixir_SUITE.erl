%% SPDX-License-Identifier: Apache-2.0
%% @doc The guide about Elixir as its reader has it: every command of its shell blocks, in a copy of
%% the example, in order, with what the last ones print.
-module(weft_elixir_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([the_commands_of_the_guide_work/1]).

-define(GUIDE, "docs/guide/elixir.md").
-define(COMMAND_MS, 300000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [the_commands_of_the_guide_work].

init_per_suite(Config) ->
    case [Program || Program <- ["mix", "rebar3"], os:find_executable(Program) =:= false] of
        [] -> weft_test_nodes:begin_suite(Config);
        [Program | _] -> {skip, "there is no " ++ Program ++ " here"}
    end.

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

the_commands_of_the_guide_work(Config) ->
    Dir = copied(?config(priv_dir, Config)),
    [Make, Exports, Start, Ask, Stop] = shell_blocks(),
    Run = fun(Commands) -> run(Exports ++ Commands, Dir, Config) end,
    {0, Made} = Run(Make),
    ?assertMatch({match, _}, re:run(Made, "3 tests, 0 failures")),
    try
        ?assertMatch({0, _}, Run(Start)),
        [Ping, User, Whereis, Why] = string:lexemes(Ask, "\n"),
        says(Ping, ":pong", Run),
        says(User, "", Run),
        says(Whereis, ":\"c@127.0.0.1\"", Run),
        says(Why, "b@127.0.0.1", Run)
    after
        [Run(Command) || Command <- string:lexemes(Stop, "\n")]
    end.

%% Nodes that have just been started find each other, and names, after a while.
says(Command, Text, Run) ->
    weft_test_nodes:until(fun() ->
                                  {Status, Output} = Run(Command),
                                  Status =:= 0 andalso string:find(Output, Text) =/= nomatch
                          end, ?COMMAND_MS).

%% A place like the repository, as far as the example needs it.
copied(Dir) ->
    Example = filename:join(Dir, "examples/elixir"),
    Commands = [["mkdir -p ", Dir, "/examples ", Dir, "/apps/weft"],
                ["cp -r ", root(), "/examples/elixir ", Dir, "/examples"],
                ["cp -r ", root(), "/apps/weft/src ", Dir, "/apps/weft"],
                ["rm -rf ", Example, "/_build"]],
    [] = [Said || Command <- Commands, Said <- [os:cmd(lists:flatten(Command))], Said =/= ""],
    Example.

shell_blocks() ->
    {ok, Text} = file:read_file(filename:join(root(), ?GUIDE)),
    {match, Blocks} = re:run(Text, "^```sh\n(.*?)^```$",
                             [global, multiline, dotall, {capture, all_but_first, list}]),
    [Block || [Block] <- Blocks].

root() -> hd(string:split(code:lib_dir(weft), "/_build")).

%% Exit code and output of a script.
run(Script, Dir, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-ec", Script]}, {cd, Dir}, exit_status, stderr_to_stdout,
                      {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}, {"ERL_LIBS", false},
                             {"REBAR_BASE_DIR", false}, {"HOME", Dir},
                             {"MIX_REBAR3", os:find_executable("rebar3")}]}]),
    ended(Port, []).

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ended(Port, [Output, Data]);
        {Port, {exit_status, Status}} ->
            Said = lists:flatten(Output),
            ct:pal("~ts", [Said]),
            {Status, Said}
    after ?COMMAND_MS ->
        ct:fail({still_running, lists:flatten(Output)})
    end.
