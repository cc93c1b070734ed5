%% SPDX-License-Identifier: Apache-2.0
%% @doc The directory of a local cluster, which others can not enter:
%% ```
%%   .weft/NAME/cluster          what is needed to control it (a term; with the cookie: mode 600)
%%              sys.config       configuration of every node
%%              lib/weft/ebin    the code of weft as it was when the cluster started
%%              tls/             certificates, if the transport is tls
%%              n01/log          what the node printed, and log.1 what before
%%              n01/pid          its process id, while it should run
%%              n01/command      the command line that started it
%%              epmd/...         the same for the cluster's own epmd
%% '''
%% It only knows files; processes are the business of `weft_local'.
-module(weft_local_files).

-export([create/1, load/2, list/1, pid/2, set_pid/3, clear_pid/2, log/2, prepare/3,
         code_paths/1, log_tail/3]).
-export_type([member/0]).

%% A node by its short name, or epmd.
-type member() :: string().
-type cluster() :: #{dir := file:filename(), _ => _}.

%% @doc Makes the directory, in place of one that an earlier cluster of the name left. Another
%% directory stays as it is, also if it has some file `cluster'.
-spec create(cluster()) -> ok | {error, iolist()}.
create(#{dir := Dir} = Cluster) ->
    case filelib:is_file(Dir) andalso read(Dir) =:= {error, not_found} of
        true ->
            {error, [Dir, " exists and is no cluster of weft: choose another --name or --dir"]};
        false ->
            _ = file:del_dir_r(Dir),
            case weft_deploy_private:directory(Dir) of
                ok -> fill(Dir, Cluster);
                {error, Reason} -> {error, ["can not make the directory ", Dir, ": ",
                                            file:format_error(Reason), "; choose another --dir"]}
            end
    end.

fill(Dir, #{settings := Settings, kernel := Kernel} = Cluster) ->
    ok = weft_deploy_private:write(filename:join(Dir, "cluster"),
                                   unicode:characters_to_binary(term(Cluster)), 8#600),
    write(Dir, "sys.config", term([{kernel, Kernel}, {weft, Settings}])),
    create_certificates(Dir, Settings),
    copy_code(filename:join(Dir, "lib/weft/ebin")).

create_certificates(Dir, Settings) ->
    Tls = filename:join(Dir, "tls"),
    Needed = lists:keyfind(tls_options, 1, Settings) =:= {tls_options, weft_local_tls:options(Tls)},
    [ok = weft_local_tls:create(Tls) || Needed],
    ok.

term(Term) ->
    io_lib:format("%% coding: utf-8~n~tp.~n", [Term]).

write(Dir, Name, Text) ->
    File = filename:join(Dir, Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, unicode:characters_to_binary(Text)).

%% The command may be one file with all its code inside, which nodes can not load from.
copy_code(Ebin) ->
    ok = load_weft(),
    {ok, Modules} = application:get_key(weft, modules),
    {ok, Keys} = application:get_all_key(weft),
    write(Ebin, "weft.app", term({application, weft, Keys})),
    lists:foreach(fun(Module) ->
                          {Module, Beam, _} = code:get_object_code(Module),
                          ok = file:write_file(filename:join(Ebin, atom_to_list(Module) ++ ".beam"),
                                               Beam)
                  end, Modules).

load_weft() ->
    case application:load(weft) of
        ok -> ok;
        {error, {already_loaded, weft}} -> ok
    end.

%% @doc What create/1 has written of a cluster.
-spec load(Root :: file:filename(), Name :: string()) -> {ok, cluster()} | {error, not_found}.
load(Root, Name) ->
    read(filename:absname(filename:join(Root, Name))).

%% A directory may have been moved since.
read(Dir) ->
    case file:consult(filename:join(Dir, "cluster")) of
        {ok, [#{dir := _, name := _, id := _, nodes := _, cookie := _, kernel := _} = Cluster]} ->
            {ok, Cluster#{dir := Dir}};
        _ ->
            {error, not_found}
    end.

%% @doc The names of all clusters below Root.
-spec list(Root :: file:filename()) -> [string()].
list(Root) ->
    [filename:basename(filename:dirname(File))
     || File <- lists:sort(filelib:wildcard(filename:join([Root, "*", "cluster"])))].

%% @doc The directories that the nodes load code from, weft's first.
-spec code_paths(cluster()) -> [file:filename()].
code_paths(#{dir := Dir, paths := Paths}) ->
    [filename:join(Dir, "lib/weft/ebin") | Paths].

%% @doc Notes the command line; returns the log file.
-spec prepare(cluster(), member(), [string()]) -> file:filename().
prepare(#{dir := Dir} = Cluster, Member, Command) ->
    Line = lists:join($\s, [quote(Word) || Word <- Command]),
    write(Dir, filename:join(Member, "command"), [Line, $\n]),
    log(Cluster, Member).

quote(Word) ->
    case re:run(Word, "^[A-Za-z0-9_@%+=:,./-]+$", [{capture, none}, dollar_endonly]) of
        match -> Word;
        nomatch -> weft_deploy_shell:quote(Word)
    end.

-spec log(cluster(), member()) -> file:filename().
log(#{dir := Dir}, Member) -> filename:join([Dir, Member, "log"]).

%% @doc The last lines of a member's log.
-spec log_tail(cluster(), member(), pos_integer()) -> [binary()].
log_tail(Cluster, Member, Count) ->
    case file:read_file(log(Cluster, Member)) of
        {ok, Text} ->
            Lines = binary:split(Text, <<"\n">>, [global, trim]),
            lists:nthtail(max(0, length(Lines) - Count), Lines);
        {error, _} ->
            []
    end.

-spec pid(cluster(), member()) -> {ok, pos_integer()} | error.
pid(#{dir := Dir}, Member) ->
    case file:read_file(filename:join([Dir, Member, "pid"])) of
        {ok, Text} -> {ok, binary_to_integer(string:trim(Text))};
        {error, _} -> error
    end.

-spec set_pid(cluster(), member(), pos_integer()) -> ok.
set_pid(#{dir := Dir}, Member, OsPid) ->
    write(Dir, filename:join(Member, "pid"), [integer_to_list(OsPid), $\n]).

-spec clear_pid(cluster(), member()) -> ok.
clear_pid(#{dir := Dir}, Member) ->
    _ = file:delete(filename:join([Dir, Member, "pid"])),
    ok.
