%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft migrate': what in the sources of a program will not scale, and what means
%% the same on weft. The work is done by `weft_migrate'; here are its words, files and exit codes.
-module(weft_cli_migrate).

-export([migrate/2]).

-define(REWRITE, [only, adaptors, channel, write, partial]).

%% @doc weft migrate scan|rewrite PATH [PATH...].
-spec migrate([string()], weft_argparse:given()) -> weft_cli:answer().
migrate(["scan" | [_ | _] = Paths], Options) -> scan(Paths, Options);
migrate(["rewrite" | [_ | _] = Paths], Options) -> rewrite(Paths, Options);
migrate(_Words, _Options) -> {usage, "write: weft migrate scan PATH..., or weft migrate rewrite "
                              "PATH..."}.

scan(Paths, Options) ->
    case weft_migrate:scan(Paths) of
        {ok, Report} ->
            case written([{File, Bytes} || {Name, Made} <- pages(Report),
                                           {ok, File} <- [maps:find(Name, Options)],
                                           Bytes <- [Made()]]) of
                ok -> scanned(Report);
                Error -> Error
            end;
        {error, Text} ->
            {usage, Text}
    end.

pages(Report) ->
    [{html, fun() -> weft_migrate_page:report(Report) end},
     {sarif, fun() -> [weft_json:encode(weft_migrate_sarif:report(Report)), $\n] end}].

written([]) ->
    ok;
written([{File, Bytes} | Files]) ->
    case file:write_file(File, Bytes) of
        ok -> written(Files);
        {error, Reason} -> {failed, ["cannot write ", File, ": ", file:format_error(Reason)]}
    end.

%% The exit code is 0 if there are notes at most.
scanned(#{files := Files, findings := Findings, failed := Failed} = Report) ->
    Json = #{files => Files, findings => [finding(Finding) || Finding <- Findings],
             failed => [#{file => unicode:characters_to_binary(File),
                          reason => unicode:characters_to_binary(Reason)}
                        || {File, Reason} <- Failed]},
    Warnings = [Id || #{id := Id} <- Findings, level(Id) =:= warning],
    {case {Warnings, Failed} of {[], []} -> ok; _ -> wanting end, Json,
     weft_migrate_terminal:report(Report)}.

finding(#{id := Id, file := File, inside := Inside} = Finding) ->
    Note = [{note, unicode:characters_to_binary(Text)} || {ok, Text} <- [maps:find(note, Finding)]],
    maps:merge(Finding#{level => level(Id), file := unicode:characters_to_binary(File),
                        inside := unicode:characters_to_binary(Inside)}, maps:from_list(Note)).

level(Id) -> maps:get(level, weft_migrate_catalogue:entry(Id)).

%% The exit code is 0 if nothing is left for people.
rewrite(_Paths, #{dry_run := true, write := true}) ->
    {usage, "--dry-run changes nothing, and --write does; leave one of them out"};
rewrite(Paths, Options) ->
    case weft_migrate:rewrite(Paths, maps:with(?REWRITE, Options)) of
        {ok, #{results := Results, failed := Failed} = Rewritten} ->
            Left = [Change || #{left := Changes} <- Results, Change <- Changes],
            {case {Left, Failed} of {[], []} -> ok; _ -> wanting end,
             weft_migrate_changes:json(Rewritten),
             weft_migrate_changes:report(Rewritten, maps:get(write, Options, false))};
        {error, Text} ->
            {usage, Text}
    end.
