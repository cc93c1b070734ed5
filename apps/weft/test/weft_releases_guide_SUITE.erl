%% SPDX-License-Identifier: Apache-2.0
%% @doc The guides about releases and about Elixir as their readers have them: every command and
%% every file, in order, with what the last commands print. The log has the time of each command;
%% what all of it takes on a machine with nothing, `bin/matrix guide' measures.
%% All of it compiles weft anew, so it runs with FULL=1 only; weft_release_SUITE has releases of its
%% own that do not.
-module(weft_releases_guide_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_release_by_rebar3/1, a_release_by_mix/1, the_example_in_elixir/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [a_release_by_rebar3, a_release_by_mix, the_example_in_elixir].

init_per_suite(Config) ->
    _ = [committed(?config(priv_dir, Config)) || os:find_executable("git") =/= false],
    weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

a_release_by_rebar3(Config) ->
    needs(["git", "rebar3"], fun() ->
        {Files, [Begin, Make, Ask, Stop]} = chapter("shop/", steps("start.md")),
        Run = run(Config),
        {0, _} = Run(Begin),
        written(Files, Config),
        try
            ?assertMatch({0, _}, Run(Make)),
            ?assertMatch([_, _, _, "[apples]", _], answered(Ask, Run))
        after
            stop(Stop, Run)
        end
    end).

a_release_by_mix(Config) ->
    needs(["git", "mix", "rebar3"], fun() ->
        {Files, [Begin, Make, Ask, Stop]} = chapter("stall/", steps("start.md")),
        Run = run(Config),
        {0, _} = Run(Begin),
        written(Files, Config),
        try
            ?assertMatch({0, _}, Run(Make)),
            ?assertMatch([_, _, _, "[:apples]"], answered(Ask, Run))
        after
            stop(Stop, Run)
        end
    end).

the_example_in_elixir(Config) ->
    needs(["mix", "rebar3"], fun() ->
        Dir = copied(?config(priv_dir, Config)),
        [Make, Exports, Start, Ask, Stop] = [Script || {script, Script} <- steps("elixir.md")],
        Run = fun(Commands) ->
                      weft_guide:run(lists:flatten([Exports, Commands]), {Dir, environment(Config)},
                                     ?config(place, Config))
              end,
        {0, Made} = Run(Make),
        ?assertMatch({match, _}, re:run(Made, "[1-9][0-9]* tests, 0 failures")),
        try
            ?assertMatch({0, _}, Run(Start)),
            ?assertMatch([":pong", _, _, _], answered(Ask, Run))
        after
            stop(Stop, Run)
        end
    end).

%% --- small parts ------------------------------------------------------------------------------

needs(Programs, Test) ->
    case [Program || Program <- Programs, os:find_executable(Program) =:= false] of
        [] -> Test();
        [Program | _] -> {skip, "there is no " ++ Program ++ " here"}
    end.

steps(Page) -> weft_guide:steps(Page).

%% What the page shows behind commands, after each of them has printed it. Before them are lines
%% that say where they run.
answered(Block, Run) ->
    {Before, Commands} = lists:partition(fun(Line) ->
                                                 lists:member(hd(string:split(Line, " ")),
                                                              ["cd", "export"])
                                         end, string:lexemes(Block, "\n")),
    [begin
         {Command, Text} = case string:split(Line, "   # ") of
                               [Shown, Printed] -> {Shown, Printed};
                               [Shown] -> {Shown, ""}
                           end,
         weft_guide:says(Run, lists:join("\n", Before ++ [Command]), Text),
         Text
     end || Line <- Commands].

%% The files below a directory, and the scripts that are about it.
chapter(Dir, Steps) ->
    {[{Name, Text} || {file, Name, Text} <- Steps, lists:prefix(Dir, Name)],
     [Script || {script, Script} <- Steps,
                string:find(Script, " " ++ lists:droplast(Dir)) =/= nomatch]}.

%% The address of the repository is that of one which has what is tested here.
written(Files, Config) ->
    Repository = filename:join(?config(priv_dir, Config), "repository"),
    [ok = file:write_file(filename:join(?config(priv_dir, Config), Name),
                          string:replace(Text, "<this repository>", "file://" ++ Repository))
     || {Name, Text} <- Files].

committed(Dir) ->
    weft_sources(filename:join(Dir, "repository/apps/weft")),
    Said = os:cmd("cd " ++ Dir ++ "/repository && git init -q . && git checkout -q -b main"
                  " && git add -A && git -c user.name=x -c user.email=x commit -q -m x"
                  " && echo done"),
    "done" = lists:last(string:lexemes(Said, "\n")).

weft_sources(Dir) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    [] = os:cmd("cp -r " ++ weft_guide:root() ++ "/apps/weft/src " ++ Dir).

run(Config) ->
    fun(Script) ->
            weft_guide:run(lists:flatten(Script), {?config(priv_dir, Config), environment(Config)},
                           ?config(place, Config))
    end.

environment(Config) ->
    [{"HOME", ?config(priv_dir, Config)}, {"MIX_REBAR3", os:find_executable("rebar3")}].

%% One by one, as a node that does not run is no reason to leave the other.
stop(Script, Run) ->
    {Before, Stops} = lists:splitwith(fun(Line) -> string:find(Line, " stop") =:= nomatch end,
                                      string:lexemes(Script, "\n")),
    [Run(lists:join("\n", Before ++ [Stop])) || Stop <- Stops].

%% A place like the repository, as far as the example needs it.
copied(Dir) ->
    Example = filename:join(Dir, "examples/elixir"),
    weft_sources(filename:join(Dir, "apps/weft")),
    ok = filelib:ensure_dir(Example),
    [] = os:cmd("cp -r " ++ weft_guide:root() ++ "/examples/elixir " ++ Example
                ++ " && rm -rf " ++ Example ++ "/_build"),
    Example.
