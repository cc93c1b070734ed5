%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands that begin and end a cluster (up, down), and how every command finds the
%% cluster and the nodes it is about.
-module(weft_cli_cluster).

-export([up/2, down/2, with_cluster/2, with_nodes/3]).

-define(DEFAULT_DIR, ".weft").

%% @doc weft up.
-spec up([], weft_argparse:given()) -> weft_cli:answer().
up([], Options) ->
    case input(Options) of
        {ok, Input} ->
            case weft_local_spec:new(Input) of
                {ok, Spec} -> start(Spec, Options);
                {error, Text} -> {usage, Text}
            end;
        {error, Text} ->
            {usage, Text}
    end.

start(#{name := Name, nodes := Nodes} = Spec, Options) ->
    Started = erlang:monotonic_time(millisecond),
    case weft_local:up(Spec, root(Options), progress(Options)) of
        {ok, #{dir := Dir, epmd_port := EpmdPort}} ->
            Ms = erlang:monotonic_time(millisecond) - Started,
            Json = #{name => unicode:characters_to_binary(Name), nodes => Nodes, ms => Ms,
                     dir => unicode:characters_to_binary(Dir), epmd_port => EpmdPort},
            Text = io_lib:format("~ts: ~ts up in ~.1f s (epmd port ~b, logs in ~ts)~n",
                                 [Name, weft_cli_table:plural(length(Nodes), "node"), Ms / 1000,
                                  EpmdPort, Dir]),
            {ok, Json, Text};
        {error, Text} ->
            {failed, Text}
    end.

%% One line that is written over on a terminal; nothing where output goes elsewhere.
progress(#{json := true}) ->
    fun(_) -> ok end;
progress(_Options) ->
    case weft_cli_terminal:is_terminal(output) of
        true -> fun show_progress/1;
        false -> fun(_) -> ok end
    end.

show_progress(#{nodes := N, of_nodes := OfN, routes := R, of_routes := OfR}) ->
    Done = N =:= OfN andalso R =:= OfR,
    Line = io_lib:format("starting: ~b of ~b nodes, ~b of ~b routes", [N, OfN, R, OfR]),
    io:put_chars(["\r\e[K", case Done of true -> ""; false -> Line end]).

%% --- what the options say ---------------------------------------------------------------------

input(Options) ->
    case file_input(Options) of
        {ok, FromFile} ->
            Merge = fun(Key, Value, Input) -> merge(Key, Value, Input) end,
            try {ok, maps:fold(Merge, FromFile, Options)}
            catch throw:{bad_option, Text} -> {error, Text}
            end;
        Error ->
            Error
    end.

file_input(#{file := File}) ->
    case file:consult(File) of
        {ok, Terms} -> weft_local_spec:of_file(Terms);
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end;
file_input(_Options) ->
    {ok, #{}}.

merge(groups, Text, Input) -> Input#{groups => ok(weft_local_spec:groups(Text))};
merge(links, Text, Input) -> Input#{links => ok(weft_local_spec:links(Text))};
merge(servers, Text, Input) -> Input#{servers => ok(weft_local_spec:servers(Text))};
merge(topology, Text, Input) -> Input#{topology => term(Text)};
merge(circuits, Text, Input) -> Input#{circuits => term(Text)};
merge(transport, Text, Input) -> Input#{transport => term(Text)};
merge(path, Dirs, Input) -> Input#{paths => maps:get(paths, Input, []) ++ [dir(D) || D <- Dirs]};
merge(set, Texts, Input) ->
    Input#{settings => maps:get(settings, Input, []) ++ [setting(Text) || Text <- Texts]};
merge(Key, Value, Input) when Key =:= nodes; Key =:= lanes; Key =:= name; Key =:= epmd_port ->
    Input#{Key => Value};
merge(_Other, _Value, Input) -> Input.

ok({ok, Value}) -> Value;
ok({error, Text}) -> throw({bad_option, Text}).

dir(Dir) ->
    case filelib:is_dir(Dir) of
        true -> filename:absname(Dir);
        false -> throw({bad_option, ["--path ", Dir, " is no directory"]})
    end.

setting(Text) ->
    case string:split(Text, "=") of
        [Key, Value] -> {list_to_atom(Key), term(Value)};
        [_] -> throw({bad_option, ["--set ", Text, ": write KEY=TERM"]})
    end.

term(Text) ->
    case erl_scan:string(Text ++ ".") of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Term} -> Term;
                {error, _} -> throw({bad_option, [Text, " is no Erlang term"]})
            end;
        {error, _, _} ->
            throw({bad_option, [Text, " is no Erlang term"]})
    end.

%% --- down -------------------------------------------------------------------------------------

%% @doc weft down.
-spec down([], weft_argparse:given()) -> weft_cli:answer().
down([], Options) ->
    case find(Options) of
        {ok, #{name := Name} = Cluster} ->
            Running = weft_local:running(Cluster),
            ok = weft_local:down(Cluster),
            {ok, #{name => unicode:characters_to_binary(Name), stopped => Running},
             [Name, ": ", weft_cli_table:plural(length(Running), "node"), " stopped\n"]};
        Error ->
            Error
    end.

%% --- which cluster, which nodes ---------------------------------------------------------------

%% @doc Finds the cluster that the options mean, gets ready to talk to it, and runs Fun with it. It
%% is a deployment only for commands that have the option `cluster'.
-spec with_cluster(weft_argparse:given(), fun((weft_cli_nodes:cluster()) -> weft_cli:answer())) ->
          weft_cli:answer().
with_cluster(#{cluster := File} = Options, Fun) ->
    weft_cli_nodes:with_deployment(File, Options, Fun);
with_cluster(Options, Fun) ->
    case find(Options) of
        {ok, Cluster} ->
            case weft_local_control:connect(Cluster) of
                ok -> Fun(Cluster);
                {error, Text} -> {failed, Text}
            end;
        Error ->
            Error
    end.

%% @doc The same with nodes by their short or full names.
-spec with_nodes(weft_argparse:given(), [string()],
                 fun((weft_cli_nodes:cluster(), [node()]) -> weft_cli:answer())) ->
          weft_cli:answer().
with_nodes(Options, Names, Fun) ->
    with_cluster(Options, fun(Cluster) -> named(Cluster, Names, Fun) end).

named(#{nodes := Nodes, name := ClusterName} = Cluster, Names, Fun) ->
    Found = [{Name, weft_cli_nodes:find(Cluster, Name)} || Name <- Names],
    case [{Name, Why} || {Name, {error, Why}} <- Found] of
        [] ->
            Fun(Cluster, [Node || {_, {ok, Node}} <- Found]);
        [{Stranger, unknown} | _] ->
            Known = [weft_local_spec:short(Node) || Node <- Nodes],
            {no_node, ["no node ", Stranger, " in the cluster ", ClusterName, ": it has ",
                       lists:join(" ", Known)]};
        [{Name, ambiguous} | _] ->
            {usage, [Name, " is on several hosts: write the whole name"]}
    end.

find(#{name := Name} = Options) ->
    case weft_local:find(root(Options), Name) of
        {ok, Cluster} -> {ok, Cluster};
        {error, _} -> {not_up, ["no cluster ", Name, " is up in ", root(Options)]}
    end;
find(Options) ->
    Root = root(Options),
    case [Cluster || Name <- weft_local_files:list(Root),
                     {ok, Cluster} <- [weft_local:find(Root, Name)]] of
        [Cluster] -> {ok, Cluster};
        [] -> {not_up, ["no cluster is up in ", Root, ": start one with weft up"]};
        Several ->
            case [Cluster || #{name := "local"} = Cluster <- Several] of
                [Local] -> {ok, Local};
                [] -> {usage, ["several clusters are up, say which by --name: ",
                               lists:join(", ", [Name || #{name := Name} <- Several])]}
            end
    end.

root(Options) -> maps:get(dir, Options, ?DEFAULT_DIR).
