%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a page of the guide as its reader does. A block of code that is marked `sh' is a
%% script; one that follows a line that begins with "The file" and has the name of a file in
%% backquotes is the content of that file; others are only shown.
-module(weft_guide).

-export([steps/1, run/3, says/3, root/0]).
-export_type([step/0, place/0]).

-define(COMMAND_MS, 300000).
-define(SAID_MS, 120000).

-type step() :: {file, file:filename(), string()} | {script, string()}.
%% Where scripts run, and what is in their environment.
-type place() :: {Dir :: file:filename(), [{string(), string() | false}]}.

%% @doc What a reader does, in order.
-spec steps(Page :: string()) -> [step()].
steps(Page) ->
    {ok, Text} = file:read_file(filename:join([root(), "docs/guide", Page])),
    steps(string:split(unicode:characters_to_list(Text), "\n", all), "").

steps([], _Before) -> [];
steps(["```" ++ Language | Lines], Before) ->
    {Block, ["```" | Rest]} = lists:splitwith(fun(Line) -> Line =/= "```" end, Lines),
    step(Before, Language, lists:append([Line ++ "\n" || Line <- Block])) ++ steps(Rest, "");
steps([Line | Lines], _Before) -> steps(Lines, Line).

step("The file `" ++ Name, _Language, Block) -> [{file, hd(string:split(Name, "`")), Block}];
step(_Before, "sh", Block) -> [{script, Block}];
step(_Before, _Language, _Block) -> [].

%% @doc The exit code and the output of a script. It ends at its first command that fails.
-spec run(string(), place(), #{epmd := #{port := inet:port_number(), _ => _}, _ => _}) ->
          {non_neg_integer(), string()}.
run(Script, {Dir, Environment}, #{epmd := #{port := EpmdPort}}) ->
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-ec", Script]}, {cd, Dir}, exit_status, stderr_to_stdout,
                      {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}, {"ERL_LIBS", false},
                             {"REBAR_BASE_DIR", false} | Environment]}]),
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

%% @doc Waits until a command succeeds and its output has the text: nodes that have just been
%% started find each other, and names, after a while.
-spec says(fun((string()) -> {non_neg_integer(), string()}), Command :: string(),
           Text :: string()) -> ok.
says(Run, Command, Text) ->
    weft_test_nodes:until(fun() ->
                                  {Status, Output} = Run(Command),
                                  Status =:= 0 andalso string:find(Output, Text) =/= nomatch
                          end, ?SAID_MS).

%% @doc The directory of the project.
-spec root() -> file:filename().
root() -> hd(string:split(code:lib_dir(weft), "/_build")).
