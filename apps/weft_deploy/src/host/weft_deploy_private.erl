%% SPDX-License-Identifier: Apache-2.0
%% @doc Directories and files of this machine that only their owner can read, also while they are
%% made.
%%
%% Who opens a file before others are kept out of it reads what is written to it later. So a file is
%% written in a new directory beside its place, which others can not enter, gets its mode there, and
%% is moved. A directory that others have opened while it was empty lets them reach nothing in it.
-module(weft_deploy_private).

-export([directory/1, write/3]).

%% @doc Makes the directory, and those above it; only the former is closed to others. One that is
%% there is closed to them, too.
-spec directory(file:filename()) -> ok | {error, file:posix() | badarg}.
directory(Dir) ->
    case filelib:ensure_path(Dir) of
        ok -> file:change_mode(Dir, 8#700);
        Error -> Error
    end.

%% @doc Writes a file as a whole, in place of one that is there, with that mode. The directory of
%% the file is there already.
-spec write(file:filename(), iodata(), Mode :: 8#400 | 8#600) ->
          ok | {error, file:posix() | badarg | terminated | system_limit}.
write(File, Content, Mode) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Dir = lists:flatten([File, ".new-", os:getpid(), "-", Unique]),
    New = filename:join(Dir, "content"),
    Result = steps([fun() -> file:make_dir(Dir) end,
                    fun() -> file:change_mode(Dir, 8#700) end,
                    fun() -> file:write_file(New, Content, [exclusive]) end,
                    fun() -> file:change_mode(New, Mode) end,
                    fun() -> file:rename(New, File) end]),
    _ = file:del_dir_r(Dir),
    Result.

steps([]) -> ok;
steps([Step | Steps]) ->
    case Step() of
        ok -> steps(Steps);
        Error -> Error
    end.
