%% SPDX-License-Identifier: Apache-2.0
%% @doc Hosts of a deployment that the benchmark runs on: the first two, for cells
%% (`weft_bench_hosts'), and what is the same for loads (`weft_papers_load_hosts'). They get the
%% code of the benchmark, in the directory `bench' of the deployment's own, and are left without it.
%% What is deployed there goes on, and takes its part of the host.
%%
%% Nodes are ruled by their standard input and output, over the program ssh. Their cookie is in a
%% file that only its owner can read; for cells it is made for the run.
-module(weft_papers_hosts).

-export([open/1, dir/1, code/1, prepare/2, close/3]).
-export_type([code/0, content/0]).

-define(ROOT, ".weft").

%% What a host gets: its cookie, and the code as a tarball.
-type content() :: #{dir := string(), cookie := iodata(), code := binary(), erl := string()}.
%% Directories of compiled code, and of sources, in the directory on the host; and all as a tarball.
-type code() :: #{paths := [string()], source := string() | undefined, tarball := binary()}.

%% @doc Opens the first two, for cells. The error is a text.
-spec open(File :: string()) ->
          {ok, weft_bench_hosts:hosts(), Close :: fun(() -> term())} | {error, string()}.
open(File) ->
    case weft_deploy_session:read(File, ?ROOT) of
        {ok, #{spec := #{hosts := [#{host := Near}, #{host := Far} | _], dir := Dir} = Spec}} ->
            opened([Near, Far], Spec, dir(Dir));
        {ok, _} ->
            {error, File ++ ": two hosts are needed that are reached by ssh, write them in "
                    "{hosts, [...]}"};
        {error, _Kind, Text} ->
            {error, Text}
    end.

%% @doc The directory of the benchmark in that of a deployment.
-spec dir(string()) -> string().
dir(Dir) -> filename:join(Dir, "bench").

opened(Names, #{epmd_port := Port, provider := Provider} = Spec, Dir) ->
    Cookie = binary:encode_hex(crypto:strong_rand_bytes(16)),
    #{paths := Paths, tarball := Code} = code(#{beams => [], source => undefined}),
    Content = #{dir => Dir, cookie => Cookie, code => Code, erl => erl(Spec)},
    Prepared = [{Name, prepared(Name, Provider, Content)} || Name <- Names],
    Close = fun() ->
                    [begin
                         _ = close(Connection, Dir, Port),
                         ok = weft_deploy_host:close(Connection)
                     end || {_, {ok, Connection}} <- Prepared]
            end,
    case [{Name, Text} || {Name, {error, Text}} <- Prepared] of
        [] ->
            Of = fun(Name) ->
                         #{address => Name, erl => erl(Spec),
                           code => [filename:join(Dir, Path) || Path <- Paths],
                           command => weft_deploy_host:on(Provider, Name, Dir, [epmd_port(Port)])}
                 end,
            [Near, Far] = [Of(Name) || Name <- Names],
            {ok, #{near => Near, far => Far, epmd_port => Port}, Close};
        [{Name, Text} | _] ->
            _ = Close(),
            {error, Name ++ ": " ++ Text}
    end.

prepared(Name, Provider, #{dir := Dir} = Content) ->
    case weft_deploy_host:open(Provider, Name, #{dir => Dir}) of
        {ok, Connection} ->
            case prepare(Connection, Content) of
                ok -> {ok, Connection};
                Error -> ok = weft_deploy_host:close(Connection), Error
            end;
        Error ->
            Error
    end.

erl(#{erl := default}) -> "erl";
erl(#{erl := Erl}) -> Erl.

epmd_port(Port) -> {"ERL_EPMD_PORT", integer_to_list(Port)}.

%% --- what a host gets ---------------------------------------------------------------------------

%% @doc Makes the directory anew, with what is to be in it. If that fails nothing of it stays. The
%% error is a text.
-spec prepare(weft_deploy_host:connection(), content()) -> ok | {error, string()}.
prepare(Connection, #{dir := Dir, cookie := Cookie, code := Code, erl := Erl}) ->
    Put = fun(Name, Content) ->
                  weft_deploy_host:put(Connection, filename:join(Dir, Name), Content)
          end,
    case weft_deploy_host:script(Connection, [weft_papers_sweep:made(Dir), has_erl(Erl)]) of
        {ok, _} ->
            case steps([fun() -> Put("code.tar.gz", Code) end,
                        fun() -> Put(".erlang.cookie", iolist_to_binary(Cookie)) end,
                        fun() -> weft_deploy_host:script(Connection, unpacked(Dir)) end]) of
                ok -> ok;
                {error, Text} ->
                    _ = weft_deploy_host:script(Connection, ["rm -rf ", quote(Dir), $\n]),
                    {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

steps([]) -> ok;
steps([Step | Steps]) ->
    case Step() of
        {error, Text} -> {error, Text};
        _ -> steps(Steps)
    end.

has_erl(Erl) ->
    ["command -v ", quote(Erl), " >/dev/null 2>&1 || {\n"
     "  rm -rf \"$dir\"; printf 'there is no program %s: name one in the file of the deployment, "
     "{erl, \"FILE\"}\\n' ", quote(Erl), "; exit 1; }\n"].

unpacked(Dir) ->
    ["set -e; umask 077; cd ", quote(Dir), "\ntar xzf code.tar.gz; rm code.tar.gz\n"
     "chmod 400 .erlang.cookie\n"].

%% @doc Ends what runs in the directory, as nodes do that were interrupted, and removes it, and that
%% of the deployment if nothing of it was there.
-spec close(weft_deploy_host:connection(), Dir :: string(),
            Epmd :: inet:port_number() | none) -> ok | {error, string()}.
close(Connection, Dir, Epmd) ->
    Own = ["(", weft_papers_sweep:script(Dir, Epmd), ")\n"
           "rmdir ", quote(filename:dirname(Dir)), " 2>/dev/null\nexit 0\n"],
    case weft_deploy_host:script(Connection, Own) of
        {ok, _} -> ok;
        {error, Text} -> {error, Text}
    end.

quote(Word) -> weft_deploy_shell:quote(Word).

%% --- the code -----------------------------------------------------------------------------------

%% @doc All code that is not OTP's, with more directories of beams, and one of sources.
-spec code(#{beams := [string()], source := string() | undefined}) -> code().
code(#{beams := Beams, source := Source}) ->
    Dirs = weft_bench_nodes:code_path() ++ Beams,
    Numbered = [{path(Number, Dir), Dir}
                || {Number, Dir} <- lists:zip(lists:seq(1, length(Dirs)), Dirs)],
    Files = [File || {Path, Dir} <- Numbered, File <- files(Path, "*.{beam,app}", Dir)]
        ++ [File || {Path, Dir} <- Numbered, filename:basename(Dir) =:= "ebin",
                    File <- files(headers(Path), "*.hrl", headers(Dir))]
        ++ [File || Source =/= undefined, File <- files("source", "*.{erl,hrl}", Source)],
    #{paths => [Path || {Path, _} <- Numbered], tarball => tarball(Files),
      source => case Source of undefined -> undefined; _ -> "source" end}.

%% So that an application is found by its name.
path(Number, Dir) ->
    filename:join(["lib", integer_to_list(Number), filename:basename(filename:dirname(Dir)),
                   filename:basename(Dir)]).

%% Of the application, for drivers from sources.
headers(Dir) -> filename:join(filename:dirname(Dir), "priv/include").

files(Path, Wildcard, Dir) ->
    [{filename:join(Path, File), Content}
     || File <- filelib:wildcard(Wildcard, Dir),
        {ok, Content} <- [file:read_file(filename:join(Dir, File))]].

tarball(Files) ->
    Temporary = filename:join(os:getenv("TMPDIR", "/tmp"),
                              lists:concat(["weft-bench-", os:getpid(), ".tar.gz"])),
    ok = erl_tar:create(Temporary, Files, [compressed]),
    {ok, Content} = file:read_file(Temporary),
    ok = file:delete(Temporary),
    Content.
