%% SPDX-License-Identifier: Apache-2.0
%% @doc How a command reaches one node of a cluster that was not started by `weft up': by its full
%% name and the cookie of that cluster. Clusters of this command are found by `weft_cli_cluster'.
-module(weft_cli_node).

-export([with_node/3]).

%% @doc Gets ready to talk to the node of this name, and runs Fun with it.
-spec with_node(string(), weft_argparse:given(), fun((node()) -> weft_cli:answer())) ->
          weft_cli:answer().
with_node(Name, Options, Fun) ->
    case {is_node_name(Name), cookie(Options)} of
        {false, _} -> {usage, [Name, " is no node: write NAME@HOST"]};
        {true, {error, Text}} -> {failed, Text};
        {true, {ok, Cookie}} ->
            Node = list_to_atom(Name),
            case weft_local_control:connect(Node, Cookie) of
                ok -> Fun(Node);
                {error, Text} -> {failed, Text}
            end
    end.

is_node_name(Name) ->
    case string:split(Name, "@", all) of
        [[_ | _], [_ | _]] -> true;
        _ -> false
    end.

%% The file that the node itself has, if it is not said which.
cookie(Options) ->
    Home = os:getenv("HOME", "/"),
    File = maps:get(cookie_file, Options, filename:join(Home, ".erlang.cookie")),
    case file:read_file(File) of
        {ok, Text} -> {ok, binary_to_atom(string:trim(Text))};
        {error, Reason} -> {error, ["no cookie: ", File, ": ", file:format_error(Reason),
                                    "; name the file by --cookie-file"]}
    end.
