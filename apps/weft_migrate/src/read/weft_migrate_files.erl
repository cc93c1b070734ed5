%% SPDX-License-Identifier: Apache-2.0
%% @doc The sources below some paths, and how files get other bytes: all of them or none.
%%
%% Directories that are made by a build, and those whose name begins with a full stop, are left out.
-module(weft_migrate_files).

-export([below/1, replace/1]).

-include_lib("kernel/include/file.hrl").

-define(BUILT, ["_build", "deps", "ebin", "node_modules"]).
-define(DEPTH_MAX, 32).
-define(BEGIN_BYTES, 4096).

%% @doc Scripts are sources with the extension .escript, or without one if they begin like a script
%% for `escript'. Files named are taken whatever their name is. Sorted, each once, by whatever links
%% it is reached.
-spec below([file:filename_all()]) -> {ok, [file:filename_all()]} | {error, string()}.
below(Paths) ->
    case [Path || Path <- Paths, not filelib:is_file(Path)] of
        [] -> some(once(lists:usort(lists:append([found(Path) || Path <- Paths])), #{}), Paths);
        [Missing | _] -> error_text("there is no ~ts; write files or directories", [Missing])
    end.

%% RabbitMQ has its own sources in a directory that is named deps.
some([], Paths) ->
    error_text("there is no source below ~ts; directories named ~ts are read only if they are "
               "named", [lists:join(", ", Paths), lists:join(", ", ?BUILT)]);
some(Files, _Paths) ->
    {ok, Files}.

error_text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

once([], _Seen) ->
    [];
once([File | Files], Seen) ->
    case identity(File) of
        Known when is_map_key(Known, Seen) -> once(Files, Seen);
        none -> [File | once(Files, Seen)];
        New -> [File | once(Files, Seen#{New => []})]
    end.

%% A file with several names of its own has one for each. Not every system has such numbers.
identity(File) ->
    case file:read_file_info(File) of
        {ok, #file_info{inode = Inode, links = Links, type = Type, major_device = Device}}
          when Inode > 0, Links =:= 1 orelse Type =:= directory -> {Device, Inode};
        _ -> none
    end.

found(Path) ->
    case filelib:is_dir(Path) of
        true -> in(Path, []);
        false -> [Path]
    end.

%% Above: the directories that this one is in. A link to one of these would have no end.
in(Dir, Above) ->
    Identity = identity(Dir),
    IsAgain = Identity =/= none andalso lists:member(Identity, Above),
    case not IsAgain andalso length(Above) < ?DEPTH_MAX andalso file:list_dir(Dir) of
        {ok, Names} -> lists:append([entry(filename:join(Dir, Name), Name, [Identity | Above])
                                     || [First | _] = Name <- Names, First =/= $.]);
        _ -> []
    end.

entry(File, Name, Above) ->
    case filelib:is_dir(File) of
        true -> case lists:member(Name, ?BUILT) of true -> []; false -> in(File, Above) end;
        false -> [File || is_source(filename:extension(Name), File)]
    end.

is_source("", File) ->
    case filelib:is_regular(File) andalso file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            Begin = file:read(Device, ?BEGIN_BYTES),
            ok = file:close(Device),
            is_script(Begin);
        _ -> false
    end;
is_source(Extension, _File) ->
    lists:member(Extension, [".erl", ".hrl", ".escript", ".ex", ".exs"]).

%% A script may be an archive, too.
is_script({ok, <<"#!", _/binary>> = Begin}) ->
    [Line | _] = binary:split(Begin, <<"\n">>),
    binary:match(Line, <<"escript">>) =/= nomatch andalso binary:match(Begin, <<0>>) =:= nomatch;
is_script(_) ->
    false.

%% @doc Gives files other bytes, in two steps: the new ones are all beside the old ones before the
%% first takes its place. So if one cannot be written, or is not any more what it was, none is, and
%% the answer says why. Whoever reads a file meanwhile has the old bytes or the new ones. Its mode
%% stays; a link stays a link.
-spec replace([{file:filename_all(), Before :: binary(), After :: binary()}]) ->
          ok | {none | some, [{file:filename_all(), Reason :: string()}]}.
replace(Files) ->
    Targets = [{File, target(File, ?DEPTH_MAX), Before, After} || {File, Before, After} <- Files],
    case failed([{File, prepared(Target, After)} || {File, Target, _, After} <- Targets]) of
        [] ->
            case failed([{File, as_before(Target, Before)} || {File, Target, Before, _} <- Targets])
            of
                [] -> moved(Targets);
                Changed -> none([Target || {_, Target, _, _} <- Targets], Changed)
            end;
        Failed ->
            none([Target || {File, Target, _, _} <- Targets,
                            not lists:keymember(File, 1, Failed)], Failed)
    end.

%% Somebody may have saved a file while others were read.
as_before(Target, Before) ->
    case file:read_file(Target) of
        {ok, Before} -> ok;
        {ok, _} -> {error, "it has changed since it was read"};
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

moved(Targets) ->
    case failed([{File, in_place(Target)} || {File, Target, _, _} <- Targets]) of
        [] -> ok;
        Failed -> {some, Failed}
    end.

none(Prepared, Failed) ->
    _ = [file:delete(new(Target)) || Target <- Prepared],
    {none, Failed}.

failed(Results) -> [{File, Reason} || {File, {error, Reason}} <- Results].

new(Target) -> [Target, ".weft_migrate"].

prepared(Target, Bytes) ->
    case file:write_file(new(Target), Bytes, [exclusive]) of
        ok -> cleaned(keep_mode(Target, new(Target)), Target);
        {error, eexist} ->
            {error, lists:flatten(io_lib:format("~ts exists; remove it", [new(Target)]))};
        Error -> cleaned(Error, Target)
    end.

in_place(Target) -> cleaned(file:rename(new(Target), Target), Target).

cleaned(ok, _Target) ->
    ok;
cleaned({error, Reason}, Target) ->
    _ = file:delete(new(Target)),
    {error, file:format_error(Reason)}.

keep_mode(From, To) ->
    case file:read_file_info(From) of
        {ok, #file_info{mode = Mode}} -> file:change_mode(To, Mode);
        Error -> Error
    end.

target(File, 0) ->
    File;
target(File, Depth) ->
    case file:read_link(File) of
        {ok, Link} -> target(filename:absname(Link, filename:dirname(File)), Depth - 1);
        {error, _} -> File
    end.
