%% SPDX-License-Identifier: Apache-2.0
%% @doc Files of results. What can not be written, because the disk is full or the directory not
%% ours, ends the command with a text that says so (`weft_bench_cli'); what was written stays.
-module(weft_report_file).

-export([directory/1, write/2, open/2, append/3, rows/4, not_written/2]).

%% @doc Makes a directory.
-spec directory(file:filename()) -> ok.
directory(Dir) ->
    checked(Dir, filelib:ensure_dir(filename:join(Dir, "x"))).

%% @doc Writes a file.
-spec write(file:filename(), iodata()) -> ok.
write(File, Content) ->
    checked(File, file:write_file(File, Content)).

%% @doc Makes a file to append to, with its first line.
-spec open(file:filename(), iodata()) -> file:io_device().
open(File, FirstLine) ->
    case file:open(File, [write, raw, binary]) of
        {ok, Device} ->
            ok = append(File, Device, FirstLine),
            Device;
        {error, Reason} ->
            not_written(File, Reason)
    end.

%% @doc Appends to a file.
-spec append(file:filename(), file:io_device(), iodata()) -> ok.
append(File, Device, Lines) ->
    checked(File, file:write(Device, Lines)).

%% @doc Makes a file, in a directory that is made, with its first line and one for each row that is
%% given to the function for writing, at once; that returns the row. The result is that of Measure.
-spec rows(file:filename(), FirstLine :: iodata(), Line :: fun((Row) -> iodata()),
           Measure :: fun((fun((Row) -> Row)) -> Result)) -> Result.
rows(File, FirstLine, Line, Measure) ->
    ok = directory(filename:dirname(File)),
    Device = open(File, FirstLine),
    try Measure(fun(Row) -> ok = append(File, Device, Line(Row)), Row end)
    after file:close(Device)
    end.

checked(_File, ok) -> ok;
checked(File, {error, Reason}) -> not_written(File, Reason).

%% @doc Ends the command.
-spec not_written(file:filename(), file:posix() | badarg | terminated | system_limit) ->
          no_return().
not_written(File, Reason) ->
    throw({results, lists:flatten(io_lib:format("~ts: ~ts. What was measured before is kept.",
                                                [File, file:format_error(Reason)]))}).
