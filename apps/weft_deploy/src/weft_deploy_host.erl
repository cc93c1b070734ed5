%% SPDX-License-Identifier: Apache-2.0
%% @doc A host that nodes run on: where scripts are run and files are put. What a provider is.
%%
%% A script is the input of a shell there, so it is on no command line. What it prints is at most
%% some megabytes; a script that takes longer than the time is given up.
-module(weft_deploy_host).

-export([open/3, close/1, run/3, script/2, put/3]).
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
