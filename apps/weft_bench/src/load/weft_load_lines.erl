%% SPDX-License-Identifier: Apache-2.0
%% @doc Keys from the lines of a file: of N workers each takes every Nth line, beginning with the
%% one of its own number. The file is open in the worker that calls the generator.
-module(weft_load_lines).

-export([generator/4]).

-define(READ_AHEAD_BYTES, 65536).

%% @doc The lines, without their ends, as binaries. At the end of the file it begins anew, or throws
%% `{stop, empty_keygen}'. Throws `{config, Text}' if there is no line to be had.
-spec generator(file:filename(), IsRepeated :: boolean(), Id :: pos_integer(),
                Workers :: pos_integer()) -> weft_load_generator:generator().
generator(File, IsRepeated, Id, Workers) ->
    Device = open(File),
    ok = begun(File, Device),
    Place = {?MODULE, make_ref()},
    fun() ->
            Skipped = case put(Place, begun) of
                          undefined -> Id - 1;
                          begun -> Workers - 1
                      end,
            lists:foreach(fun(_) -> line(Device, IsRepeated) end, lists:seq(1, Skipped)),
            line(Device, IsRepeated)
    end.

open(File) ->
    try file:open(File, [read, raw, binary, {read_ahead, ?READ_AHEAD_BYTES}]) of
        {ok, Device} -> Device;
        {error, Reason} -> fail(File, file:format_error(Reason))
    catch
        error:_ -> fail(File, "this is no file name")
    end.

%% With a line in it, reading it again and again comes to an end.
begun(File, Device) ->
    case file:read_line(Device) of
        {ok, _} -> first(Device);
        eof -> fail(File, "it has no lines");
        {error, Reason} -> fail(File, file:format_error(Reason))
    end.

first(Device) ->
    {ok, 0} = file:position(Device, 0),
    ok.

-spec fail(term(), string()) -> no_return().
fail(File, Why) ->
    throw({config, io_lib:format("file_line_bin: ~0tp: ~ts", [File, Why])}).

line(Device, IsRepeated) ->
    case file:read_line(Device) of
        {ok, Line} ->
            unended(Line);
        eof when IsRepeated ->
            ok = first(Device),
            line(Device, IsRepeated);
        eof ->
            throw({stop, empty_keygen})
    end.

%% The last line may have no end.
unended(Line) ->
    case byte_size(Line) - 1 of
        Bytes when binary_part(Line, Bytes, 1) =:= <<"\n">> -> binary:part(Line, 0, Bytes);
        _ -> Line
    end.
