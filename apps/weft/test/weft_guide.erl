%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads the blocks of code of a page, and runs a page of the guide as its reader does. A block
%% of the kind `sh' is a script; one that follows a line that begins with "The file" and has the
%% name
%% of a file in backquotes is the content of that file; others are only shown.
-module(weft_guide).

-export([blocks/1, page/2, steps/1, run/3, says/3, root/0]).
-export_type([block/0, step/0, place/0]).

-define(COMMAND_MS, 300000).
-define(SAID_MS, 120000).

%% The words after the backquotes, the text, and the lines where it begins and that is before it.
-type block() :: #{info := [string()], text := string(), line := pos_integer(),
                   before := string()}.
-type step() :: {file, file:filename(), string()} | {script, string()}.
%% Where scripts run, and what is in their environment.
-type place() :: {Dir :: file:filename(), [{string(), string() | false}]}.

%% @doc The blocks of code in a file.
-spec blocks(file:filename()) -> [block()].
blocks(File) ->
    {ok, Text} = file:read_file(File),
    blocks(string:split(unicode:characters_to_list(Text), "\n", all), "", 1).

blocks([], _Before, _Line) -> [];
blocks(["```" ++ Info | Lines], Before, Line) ->
    {Block, ["```" | Rest]} = lists:splitwith(fun(Of) -> Of =/= "```" end, Lines),
    [#{info => string:lexemes(Info, " "), text => lists:append([Of ++ "\n" || Of <- Block]),
       line => Line, before => Before} | blocks(Rest, "", Line + length(Block) + 2)];
blocks([Before | Lines], _Before, Line) -> blocks(Lines, Before, Line + 1).

%% @doc The texts of those blocks of a page of the guide that are of a kind (`"erlang"' has all
%% kinds
%% of Erlang).
-spec page(Page :: string(), Kind :: string()) -> [string()].
page(Page, Kind) ->
    [Text || #{info := [First | _] = Info, text := Text} <- blocks(file(Page)),
             First =:= Kind orelse lists:flatten(lists:join(" ", Info)) =:= Kind].

file(Page) -> filename:join([root(), "docs/guide", Page]).

%% @doc What a reader does, in order.
-spec steps(Page :: string()) -> [step()].
steps(Page) ->
    lists:append([step(Before, Info, Text)
                  || #{info := Info, text := Text, before := Before} <- blocks(file(Page))]).

step("The file `" ++ Name, _Info, Block) -> [{file, hd(string:split(Name, "`")), Block}];
step(_Before, ["sh"], Block) -> [{script, Block}];
step(_Before, _Info, _Block) -> [].

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
root() -> hd(string:split(filename:absname(code:lib_dir(weft)), "/_build")).
