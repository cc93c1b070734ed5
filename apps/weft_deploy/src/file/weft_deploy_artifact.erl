%% SPDX-License-Identifier: Apache-2.0
%% @doc What is uploaded to hosts: a release as a tarball, or one that is made of directories of
%% compiled code. Either way it has `lib/APPLICATION/ebin'.
%%
%% The version of what has none given comes from its content: the same code is the same version.
%% To directories weft's own code is added, as this command has it; a release brings its own.
-module(weft_deploy_artifact).

-export([own_code/0, version/2, named/2, content/2]).
-export_type([files/0]).

-include_lib("kernel/include/file.hrl").

%% Of a program also the file itself, which says that it may be executed.
-type files() :: [{Name :: string(), Content :: binary()}
                  | {Name :: string(), Content :: binary(), Program :: file:filename()}].

-define(BYTES_MAX, 1 bsl 30).

%% @doc The version of a family. Own is what own_code/0 has found.
-spec version(weft_deploy_spec:family(), files()) -> {ok, string()} | {error, string()}.
version(#{version := derived, release := none} = Family, Own) ->
    case files(Family, Own) of
        {ok, Files} -> {ok, "code-" ++ hash(term_to_binary(lists:sort(anywhere(Files))))};
        Error -> Error
    end;
version(#{version := derived} = Family, Own) ->
    case content(Family, Own) of
        {ok, Content} -> {ok, base(Family) ++ "-" ++ hash(Content)};
        Error -> Error
    end;
version(#{name := Name, version := Version}, _Own) ->
    {ok, named(Name, Version)}.

%% @doc What a release of a family is called when the file gives its version.
-spec named(Family :: atom(), Version :: string()) -> string().
named(Family, Version) -> atom_to_list(Family) ++ "-" ++ Version.

anywhere(Files) ->
    [case File of {Name, Content, _Program} -> {Name, Content, program}; Plain -> Plain end
     || File <- Files].

base(#{release := File}) ->
    re:replace(filename:basename(filename:basename(File, ".gz"), ".tar"), "[^A-Za-z0-9._-]", "_",
               [global, {return, list}]).

hash(Content) ->
    <<Start:6/binary, _/binary>> = crypto:hash(sha256, Content),
    string:lowercase(binary_to_list(binary:encode_hex(Start))).

%% @doc The tarball.
-spec content(weft_deploy_spec:family(), files()) -> {ok, binary()} | {error, string()}.
content(#{release := none} = Family, Own) ->
    case files(Family, Own) of
        {ok, Files} -> packed(Files);
        Error -> Error
    end;
content(#{name := Name, release := File}, _Own) ->
    case {filelib:file_size(File), file:read_file(File)} of
        {Size, _} when Size > ?BYTES_MAX ->
            {error, lists:concat(["release ", File, " of family ", Name, " is larger than 1 GB"])};
        {_, {ok, <<16#1f, 16#8b, _/binary>> = Content}} -> {ok, Content};
        {_, {ok, _}} ->
            {error, lists:concat(["release ", File, " of family ", Name,
                                  " is no tarball made by gzip: write the name of a .tar.gz"])};
        {_, {error, Reason}} ->
            {error, lists:concat(["release ", File, " of family ", Name, ": ",
                                  file:format_error(Reason)])}
    end.

packed(Files) ->
    Temporary = filename:join(os:getenv("TMPDIR", "/tmp"),
                              lists:concat(["weft-deploy-", os:getpid(), "-",
                                            erlang:unique_integer([positive]), ".tar.gz"])),
    Result = case packed(Files, Temporary) of
                 ok -> file:read_file(Temporary);
                 Error -> Error
             end,
    _ = file:delete(Temporary),
    case Result of
        {ok, Content} -> {ok, Content};
        {error, Reason} -> {error, lists:flatten(io_lib:format("can not pack ~ts: ~0tp",
                                                               [Temporary, Reason]))}
    end.

packed(Files, Name) ->
    case erl_tar:open(Name, [write, compressed]) of
        {ok, Tar} ->
            Added = [add(File, Tar) || File <- Files],
            Closed = erl_tar:close(Tar),
            hd([Error || {error, _} = Error <- Added] ++ [Closed]);
        Error ->
            Error
    end.

%% Root would give a program to whoever has it here.
add({Name, Content}, Tar) -> erl_tar:add(Tar, Content, Name, []);
add({Name, _Content, Program}, Tar) ->
    erl_tar:add(Tar, Program, Name, [dereference, {uid, 0}, {gid, 0}]).

files(#{paths := Paths} = Family, Own) ->
    case [Path || Path <- Paths, not filelib:is_dir(Path)] of
        [] -> {ok, Own ++ lists:append([directory(Path) || Path <- Paths])};
        [Path | _] -> {error, lists:concat(["family ", maps:get(name, Family), ": ", Path,
                                            " is no directory"])}
    end.

%% A directory of code is that of an application, if it has one, or one of its own.
directory(Path) ->
    Name = case filelib:wildcard("*.app", Path) of
               [App | _] -> filename:rootname(App);
               [] -> "code-" ++ hash(unicode:characters_to_binary(filename:absname(Path)))
           end,
    [{filename:join(["lib", Name, "ebin", File]), Content}
     || File <- lists:sort(filelib:wildcard("*.{beam,app}", Path)),
        {ok, Content} <- [file:read_file(filename:join(Path, File))]]
        ++ privates(filename:join(filename:dirname(Path), "priv"), Name).

privates(Priv, Name) ->
    [private(filename:join(["lib", Name, "priv", File]), Content, filename:join(Priv, File))
     || File <- lists:sort(filelib:wildcard("**", Priv)),
        {ok, Content} <- [file:read_file(filename:join(Priv, File))]].

private(Name, Content, File) ->
    case file:read_file_info(File) of
        {ok, #file_info{mode = Mode}} when Mode band 8#100 =/= 0 -> {Name, Content, File};
        _ -> {Name, Content}
    end.

%% @doc The files of weft itself, as this command has it. It may be one file with all its code
%% inside, which is read once.
-spec own_code() -> files().
own_code() ->
    _ = application:load(weft),
    {ok, Modules} = application:get_key(weft, modules),
    {ok, Keys} = application:get_all_key(weft),
    App = unicode:characters_to_binary(io_lib:format("~tp.~n", [{application, weft, Keys}])),
    Beams = [atom_to_list(Module) ++ ".beam" || Module <- lists:sort(Modules)],
    [{"lib/weft/ebin/weft.app", App}
     | [{"lib/weft/ebin/" ++ Beam, Content} || {Beam, Content} <- beams(Beams)]].

beams(Beams) ->
    Dir = filename:dirname(code:where_is_file("weft.app")),
    case filelib:is_dir(Dir) of
        true -> [{Beam, Content} || Beam <- Beams,
                                    {ok, Content} <- [file:read_file(filename:join(Dir, Beam))]];
        false -> in_archive(Beams, sections())
    end.

sections() ->
    {ok, Sections} = escript:extract(escript:script_name(), []),
    Sections.

in_archive(Beams, Sections) ->
    {ok, Files} = zip:extract(proplists:get_value(archive, Sections), [memory]),
    [{Beam, Content} || {Name, Content} <- lists:sort(Files),
                        Beam <- [filename:basename(Name)],
                        lists:suffix("weft/ebin/" ++ Beam, Name), lists:member(Beam, Beams)].
