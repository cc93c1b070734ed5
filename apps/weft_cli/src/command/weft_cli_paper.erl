%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft paper': figures of papers, measured again on this machine.
%%
%% They are measured by the application weft_papers, which is no part of this command and need not
%% be there: it runs in an emulator of its own, from the libraries beside the command (as they are
%% in the build of the checkout) or in ERL_LIBS, and its output is passed on.
-module(weft_cli_paper).

-export([paper/2]).

-define(PAPERS, "weft_papers/ebin/weft_papers_cli.beam").
%% A line of its list: what to call a figure, how long it takes, and where it is from.
-define(FIGURE, "^(\\S+) +(\\d+) min +(.*)$").
-define(PARTS, [unicode, {capture, all_but_first, list}]).
%% The emulator does not read its input, whose end is that of the command: it is interrupted then.
-define(SCRIPT, "exec 3<&0; \"$@\" < /dev/null 3<&- & p=$!; "
                "{ cat <&3; kill -TERM $p; } > /dev/null 2>&1 & c=$!; "
                "wait $p; s=$?; kill $c 2> /dev/null; exit $s").

%% @doc weft paper [LIST].
-spec paper([string()], weft_argparse:given()) -> weft_cli:answer().
paper(Figures, Options) ->
    Places = places(),
    case {[Lib || Lib <- Places, filelib:is_regular(filename:join(Lib, ?PAPERS))], Figures} of
        {[], _} -> {failed, absent(Places)};
        {[Lib | _], []} -> listed(Lib, Options);
        {[Lib | _], [List]} -> measured(Lib, List, Options)
    end.

%% The file may be found by a link from a directory of the PATH.
places() ->
    Script = filename:absname(escript:script_name()),
    File = case file:read_link_all(Script) of
               {ok, Target} -> filename:absname(Target, filename:dirname(Script));
               {error, _} -> Script
           end,
    [filename:join(filename:dirname(filename:dirname(File)), "lib")
     | string:lexemes(os:getenv("ERL_LIBS", ""), ":")].

absent(Places) ->
    ["figures are measured by the application weft_papers, which is not in ",
     lists:join(" nor in ", Places), ". In a checkout of weft, write: make compile, and then "
     "_build/default/bin/weft paper. Elsewhere name the directory with it in ERL_LIBS."].

listed(Lib, Options) ->
    case papers(Lib, [], fun(_Text) -> ok end) of
        {0, Output} ->
            Figures = [#{id => unicode:characters_to_binary(Id),
                         minutes => list_to_integer(Minutes),
                         where => unicode:characters_to_binary(Where)}
                       || Line <- string:lexemes(Output, "\n"),
                          {match, [Id, Minutes, Where]} <- [re:run(Line, ?FIGURE, ?PARTS)]],
            {ok, #{figures => Figures}, [Output || not is_map_key(json, Options)]};
        {Status, _} ->
            {failed, ended(Status)}
    end.

measured(Lib, List, Options) ->
    Default = filename:join(maps:get(dir, Options, ".weft"),
                            "paper-" ++ integer_to_list(os:system_time(second))),
    Dir = filename:absname(maps:get(out, Options, Default)),
    Page = filename:join(Dir, "paper.html"),
    Device = case Options of #{json := true} -> standard_error; #{} -> standard_io end,
    Given = [["--quick"] || is_map_key(quick, Options)]
        ++ [["--repetitions", integer_to_list(Count)]
            || #{repetitions := Count} <- [Options]]
        ++ [["--minutes", integer_to_list(Minutes)] || #{minutes := Minutes} <- [Options]],
    case papers(Lib, [List, "--out", Dir | lists:append(Given)],
               fun(Text) -> io:put_chars(Device, Text) end) of
        {0, _} -> {ok, #{page => unicode:characters_to_binary(Page)}, ""};
        {1, _} -> {failed, ["not all figures were measured; those that were are in ", Page]};
        {2, _} -> {usage, "why is said above. Without a word weft paper tells which figures there "
                   "are."};
        {Status, _} -> {failed, [ended(Status), "; what was measured before is in ", Dir]}
    end.

%% Crashed or interrupted, for example, or killed as memory was short.
ended(Status) -> io_lib:format("weft_papers ended with status ~b", [Status]).

%% What it says is shown as it comes.
papers(Lib, Words, Show) ->
    Paths = lists:append([["-pa", Ebin] || Ebin <- filelib:wildcard(filename:join(Lib, "*/ebin"))]),
    Arguments = ["-noinput" | Paths]
        ++ ["-eval", "weft_papers_cli:run(init:get_plain_arguments()).", "-extra", "paper" | Words],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", ?SCRIPT, "sh", os:find_executable("erl") | Arguments]},
                      exit_status, binary, use_stdio, hide]),
    follow(Port, Show, []).

follow(Port, Show, Output) ->
    receive
        {Port, {data, Text}} ->
            _ = Show(Text),
            follow(Port, Show, [Text | Output]);
        {Port, {exit_status, Status}} ->
            {Status, unicode:characters_to_list(lists:reverse(Output))}
    end.
