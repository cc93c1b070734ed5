%% SPDX-License-Identifier: Apache-2.0
%% @doc The first two hosts of a deployment, for the benchmark (`weft_bench_hosts'). They get the
%% code of the benchmark, in the directory `bench' of the deployment's own, and are left without it.
%% What is deployed there goes on, and takes its part of the host.
%%
%% Nodes are ruled by their standard input and output, over the program ssh. Their cookie is made
%% for the run, and is in a file that only its owner can read.
-module(weft_papers_hosts).

-export([open/1, command/3]).

-define(ROOT, ".weft").

%% @doc Opens them. The error is a text.
-spec open(File :: string()) ->
          {ok, weft_bench_hosts:hosts(), Close :: fun(() -> term())} | {error, string()}.
open(File) ->
    case weft_deploy_session:read(File, ?ROOT) of
        {ok, #{spec := #{hosts := [#{host := Near}, #{host := Far} | _], dir := Dir} = Spec}} ->
            opened([Near, Far], Spec, filename:join(Dir, "bench"));
        {ok, _} ->
            {error, File ++ ": two hosts are needed that are reached by ssh, write them in "
                    "{hosts, [...]}"};
        {error, _Kind, Text} ->
            {error, Text}
    end.

opened(Names, #{epmd_port := Port} = Spec, Dir) ->
    Cookie = binary:encode_hex(crypto:strong_rand_bytes(16)),
    {Dirs, Code} = code(),
    Prepared = [{Name, prepared(Name, Spec, Dir, Cookie, Code)} || Name <- Names],
    Close = fun() -> [ok = closed(Connection, Dir, Port) || {_, {ok, Connection}} <- Prepared] end,
    case [{Name, Text} || {Name, {error, Text}} <- Prepared] of
        [] ->
            [Near, Far] = [host(Name, Spec, Dir, Dirs) || Name <- Names],
            {ok, #{near => Near, far => Far, epmd_port => Port}, Close};
        [{Name, Text} | _] ->
            _ = Close(),
            {error, Name ++ ": " ++ Text}
    end.

prepared(Name, #{provider := Provider}, Dir, Cookie, Code) ->
    case weft_deploy_host:open(Provider, Name, #{dir => Dir}) of
        {ok, Connection} ->
            case steps([fun() -> weft_deploy_host:script(Connection, made(Dir)) end,
                        fun() -> weft_deploy_host:put(Connection, Dir ++ "/code.tar.gz", Code) end,
                        fun() -> weft_deploy_host:script(Connection, unpacked(Dir, Cookie)) end]) of
                ok -> {ok, Connection};
                Error -> ok = weft_deploy_host:close(Connection), Error
            end;
        Error ->
            Error
    end.

steps([]) -> ok;
steps([Step | Steps]) ->
    case Step() of
        {error, Text} -> {error, Text};
        _ -> steps(Steps)
    end.

made(Dir) -> ["umask 077; mkdir -p ", quote(Dir), "\n"].

unpacked(Dir, Cookie) ->
    ["set -e; umask 077; cd ", quote(Dir), "\ntar xzf code.tar.gz; rm code.tar.gz\n"
     "rm -f .erlang.cookie; printf '%s' ", Cookie, " > .erlang.cookie; chmod 400 .erlang.cookie\n"].

%% Nodes are left there if the run was interrupted.
closed(Connection, Dir, Port) ->
    _ = weft_deploy_host:script(Connection, weft_papers_sweep:script(Dir, Port)),
    weft_deploy_host:close(Connection).

quote(Word) -> weft_deploy_shell:quote(Word).

%% --- the code -----------------------------------------------------------------------------------

%% Directories in the tarball, and the tarball.
code() ->
    Dirs = weft_bench_nodes:code_path(),
    Numbered = [{filename:join("lib", integer_to_list(Number)), Dir}
                || {Number, Dir} <- lists:zip(lists:seq(1, length(Dirs)), Dirs)],
    Files = [{filename:join(Name, File), Content}
             || {Name, Dir} <- Numbered, File <- filelib:wildcard("*.{beam,app}", Dir),
                {ok, Content} <- [file:read_file(filename:join(Dir, File))]],
    Temporary = filename:join(os:getenv("TMPDIR", "/tmp"),
                              lists:concat(["weft-bench-", os:getpid(), ".tar.gz"])),
    ok = erl_tar:create(Temporary, Files, [compressed]),
    {ok, Content} = file:read_file(Temporary),
    ok = file:delete(Temporary),
    {[Name || {Name, _} <- Numbered], Content}.

%% --- a host
%% ---------------------------------------------------------------------------------------

host(Name, #{provider := Provider, epmd_port := Port} = Spec, Dir, Dirs) ->
    Environment = ["env", "HOME=" ++ Dir, "ERL_EPMD_PORT=" ++ integer_to_list(Port),
                   "ERL_CRASH_DUMP_BYTES=0"],
    #{address => Name, erl => erl(Spec), code => [filename:join(Dir, Sub) || Sub <- Dirs],
      command => fun(Command) -> command(Provider, Name, Environment ++ Command) end}.

erl(#{erl := default}) -> "erl";
erl(#{erl := Erl}) -> Erl.

%% @private The program and arguments that run a command on a host; more words may follow. The shell
%% of the host takes the words apart again, so each is quoted.
-spec command(weft_deploy_spec:provider(), Host :: string(), [string(), ...]) ->
          {string(), [string()]}.
command({ssh, #{keys := Keys, user := User, port := Port}}, Name, Command) ->
    Words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
             "-o", "UserKnownHostsFile=" ++ Keys ++ "/known_hosts", "-p", integer_to_list(Port)]
        ++ lists:append([["-i", Key] || Key <- filelib:wildcard(Keys ++ "/id_*"),
                                        filename:extension(Key) =/= ".pub"])
        ++ lists:append([["-l", User] || User =/= ""]) ++ [Name],
    Script = ["q=; for w; do q=\"$q '$(printf %s \"$w\" | sed \"s/'/'\\\\\\\\''/g\")'\"; done\n"
              "exec ", lists:join($\s, [quote(Word) || Word <- Words]), " \"$q\"\n"],
    {"/bin/sh", ["-c", unicode:characters_to_list(Script), "sh" | Command]}.
