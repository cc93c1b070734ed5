%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of a recording: a directory with so many bytes at most, the oldest of which are
%% deleted for new ones. The name of a file has the time of its first entry.
%%
%% Only files of such names are counted and deleted; there may be others in the directory, whatever
%% they are called.
-module(weft_ops_recording_files).

-export([list/1, new/1, append/3]).
-export_type([writing/0]).

%% A file is at most this part of all.
-define(PARTS, 10).

%% current: the file that is written to. After an error another one is begun, as the end of the
%% former one may be cut off.
-type writing() :: #{dir := file:filename_all(), bytes_max := pos_integer(),
                     current := none | file:filename_all()}.

%% @doc All files with their sizes, the oldest first.
-spec list(file:filename_all()) ->
          {ok, [{file:filename_all(), non_neg_integer()}]} | {error, file:posix() | badarg}.
list(Dir) ->
    case file:list_dir_all(Dir) of
        {ok, Names} ->
            Paths = [filename:join(Dir, Name) || Name <- lists:sort(Names), is_recording(Name)],
            {ok, [{Path, filelib:file_size(Path)} || Path <- Paths]};
        {error, Reason} ->
            {error, Reason}
    end.

%% A name that is no text comes as a binary.
is_recording(Name) when is_list(Name) ->
    re:run(Name, "^weft-[0-9]{13}-[0-9]+\\.rec$", [unicode, {capture, none}, dollar_endonly])
        =:= match;
is_recording(_NoText) ->
    false.

-spec new(#{dir := file:filename_all(), bytes_max := pos_integer(), _ => _}) -> writing().
new(#{dir := Dir, bytes_max := BytesMax}) ->
    #{dir => Dir, bytes_max => BytesMax, current => none}.

%% @doc Writes a chunk that begins at that time. Makes the directory if it is not there. One that is
%% larger than all files may be is not written (`efbig').
-spec append(FromMs :: integer(), binary(), writing()) ->
          {ok, writing()} | {error, file:posix() | badarg | terminated, writing()}.
append(_FromMs, Chunk, #{bytes_max := BytesMax} = Writing) when byte_size(Chunk) > BytesMax ->
    {error, efbig, Writing};
append(FromMs, Chunk, #{dir := Dir} = Writing0) ->
    case filelib:ensure_dir(filename:join(Dir, "file")) of
        ok ->
            Writing = room(FromMs, byte_size(Chunk), Writing0),
            Path = path(FromMs, byte_size(Chunk), Writing),
            case file:write_file(Path, Chunk, [append, raw]) of
                ok -> {ok, Writing#{current := Path}};
                {error, Reason} ->
                    %% Nothing can be read of one that is new: a full disk gets no more of them.
                    _ = Path =/= map_get(current, Writing) andalso file:delete(Path),
                    {error, Reason, Writing#{current := none}}
            end;
        {error, Reason} ->
            {error, Reason, Writing0#{current := none}}
    end.

path(FromMs, _Size, #{dir := Dir, current := none}) ->
    fresh(Dir, FromMs, 0);
path(FromMs, Size, #{current := Path, bytes_max := BytesMax} = Writing) ->
    case filelib:file_size(Path) + Size > BytesMax div ?PARTS orelse is_later(Path, FromMs) of
        true -> path(FromMs, Size, Writing#{current := none});
        false -> Path
    end.

%% Never one that is there.
fresh(Dir, FromMs, Count) ->
    Name = lists:flatten(io_lib:format("weft-~13..0b-~b.rec", [FromMs, Count])),
    Path = filename:join(Dir, Name),
    case filelib:is_file(Path) of
        true -> fresh(Dir, FromMs, Count + 1);
        false -> Path
    end.

%% Deletes the oldest files until so many bytes more fit. Those of a time that is to come were
%% written before the clock was set back.
room(FromMs, Size, #{dir := Dir, bytes_max := BytesMax} = Writing) ->
    case list(Dir) of
        {ok, Files} ->
            Excess = lists:sum([Bytes || {_, Bytes} <- Files]) + Size - BytesMax,
            {Later, Earlier} = lists:partition(fun({Path, _}) -> is_later(Path, FromMs) end, Files),
            deleted(Later ++ Earlier, Excess, Writing);
        {error, _Reason} ->
            Writing
    end.

%% Names are of "weft-" and thirteen digits.
is_later(Path, FromMs) ->
    list_to_integer(string:slice(filename:basename(Path), 5, 13)) > FromMs.

deleted([{Path, Size} | Others], Excess, #{current := Current} = Writing) when Excess > 0 ->
    _ = file:delete(Path),
    deleted(Others, Excess - Size, case Path of
                                       Current -> Writing#{current := none};
                                       _ -> Writing
                                   end);
deleted(_Files, _Excess, Writing) ->
    Writing.
