%% SPDX-License-Identifier: Apache-2.0
%% @doc A host that nodes run on: where scripts are run and files are put. What a provider is.
%%
%% A script is the input of a shell there, so it is on no command line. What it prints is at most
%% some megabytes; a script that takes longer than the time is given up. A command is a program that
%% goes on, and whose input and output are those of a program here.
-module(weft_deploy_host).

-export([open/3, close/1, run/3, script/2, put/3, can_command/1, on/4, command/3]).
-export_type([connection/0]).

-opaque connection() :: {module(), term()}.

-callback open(Host :: string(), Options :: map()) -> {ok, term()} | {error, iodata()}.
-callback close(term()) -> ok.
-callback run(term(), Script :: iodata(), timeout()) ->
    {ok, Status :: non_neg_integer(), Output :: binary()} | {error, iodata()}.
-callback put(term(), File :: string(), binary()) -> ok | {error, iodata()}.

-define(SCRIPT_MS, 60000).

%% @doc Gets ready to work on that host.
-spec open(weft_deploy_spec:provider(), Host :: string(), Options :: map()) ->
          {ok, connection()} | {error, string()}.
open(local, Host, Options) -> open(weft_deploy_local, Host, Options, #{});
open({ssh, Ssh}, Host, Options) -> open(weft_deploy_ssh, Host, Options, Ssh).

open(Module, Host, Options, Own) ->
    case Module:open(Host, maps:merge(Options, Own)) of
        {ok, Connection} -> {ok, {Module, Connection}};
        {error, Text} -> {error, text(Text)}
    end.

-spec close(connection()) -> ok.
close({Module, Connection}) -> Module:close(Connection).

%% @doc What the script printed; its exit status is to be 0.
-spec script(connection(), iodata()) -> {ok, binary()} | {error, string()}.
script(Connection, Script) -> run(Connection, Script, ?SCRIPT_MS).

-spec run(connection(), iodata(), timeout()) -> {ok, binary()} | {error, string()}.
run({Module, Connection}, Script, TimeoutMs) ->
    case Module:run(Connection, unicode:characters_to_binary(Script), TimeoutMs) of
        {ok, 0, Output} -> {ok, Output};
        {ok, Status, Output} ->
            {error, text(io_lib:format("a command ended with status ~b: ~ts",
                                       [Status, last(Output)]))};
        {error, Text} -> {error, text(Text)}
    end.

last(Output) ->
    Printable = [C || <<C>> <= Output, C =:= $\n orelse C >= $\s],
    string:trim(lists:nthtail(max(0, length(Printable) - 400), Printable)).

%% @doc Writes a file to a directory that is there, and that others can not read.
-spec put(connection(), string(), binary()) -> ok | {error, string()}.
put({Module, Connection}, File, Content) ->
    case Module:put(Connection, File, Content) of
        ok -> ok;
        {error, Text} -> {error, text(Text)}
    end.

text(Text) -> lists:flatten(io_lib:format("~ts", [Text])).

%% --- commands -----------------------------------------------------------------------------------

%% @doc Whether commands can be run on hosts from here.
-spec can_command(weft_deploy_spec:provider()) -> ok | {error, string()}.
can_command(local) -> ok;
can_command({ssh, _}) ->
    case os:find_executable("ssh") of
        false -> {error, "there is no program ssh on this machine (Debian package openssh-client)"};
        _ -> ok
    end.

%% @doc How a command is run on a host, with its home in that directory.
-spec on(weft_deploy_spec:provider(), Host :: string(), Dir :: string(),
         [{Name :: string(), Value :: string()}]) ->
          fun(([string(), ...]) -> {string(), [string()]}).
on(Provider, Name, Dir, Variables) ->
    Environment = ["env" | [Key ++ "=" ++ Value || {Key, Value} <- [{"HOME", Dir},
                                                                    {"ERL_CRASH_DUMP_BYTES", "0"}
                                                                    | Variables]]],
    fun(Command) -> command(Provider, Name, Environment ++ Command) end.

%% @private The program and arguments that run a command on a host; more words may follow. The shell
%% of the host takes the words apart again, so each is quoted.
-spec command(weft_deploy_spec:provider(), Host :: string(), [string(), ...]) ->
          {string(), [string()]}.
command(local, _Name, [Program | Arguments]) ->
    {os:find_executable(Program), Arguments};
command({ssh, #{keys := Keys, user := User, port := Port}}, Name, Command) ->
    Words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
             "-o", "UserKnownHostsFile=" ++ Keys ++ "/known_hosts", "-p", integer_to_list(Port)]
        ++ lists:append([["-i", Key] || Key <- filelib:wildcard(Keys ++ "/id_*"),
                                        filename:extension(Key) =/= ".pub"])
        ++ lists:append([["-l", User] || User =/= ""]) ++ [Name],
    Quoted = lists:join($\s, [weft_deploy_shell:quote(Word) || Word <- Words]),
    Script = ["q=; for w; do q=\"$q '$(printf %s \"$w\" | sed \"s/'/'\\\\\\\\''/g\")'\"; done\n"
              "exec ", Quoted, " \"$q\"\n"],
    {"/bin/sh", ["-c", unicode:characters_to_list(Script), "sh" | Command]}.
