%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands that do something to nodes: cut, heal, join, leave, kill, restart, eval. Here
%% words become nodes and results become answers; the deeds are in `weft_local', and in `weft' on
%% the nodes.
-module(weft_cli_act).

-export([cut/2, heal/2, join/2, leave/2, kill/2, restart/2, eval/2]).

-define(EVAL_TIMEOUT_MS, infinity).
%% Longer than the node takes at most.
-define(MEMBERSHIP_MS, 30000).

%% @doc weft cut A B.
-spec cut([string()], weft_argparse:given()) -> weft_cli:answer().
cut(Names, Options) ->
    pair(Names, Options, fun weft_local:cut/3, cut, "cut").

%% @doc weft heal [A B].
-spec heal([string()], weft_argparse:given()) -> weft_cli:answer().
heal([], Options) ->
    weft_cli_cluster:with_cluster(
      Options,
      fun(Cluster) ->
              case weft_local:heal(Cluster) of
                  ok -> {ok, #{healed => all}, "all cuts are healed\n"};
                  {error, Text} -> {failed, Text}
              end
      end);
heal(Names, _Options) when length(Names) =/= 2 ->
    {usage, "write: weft heal [A B]"};
heal(Names, Options) ->
    pair(Names, Options, fun weft_local:heal/3, healed, "healed").

pair([Same, Same], _Options, _Do, _Key, _Word) ->
    {usage, "write two different nodes"};
pair(Names, Options, Do, Key, Word) ->
    weft_cli_cluster:with_nodes(
      Options, Names,
      fun(Cluster, [A, B]) ->
              case Do(Cluster, A, B) of
                  ok -> {ok, #{Key => [A, B]}, [lists:join(" - ", Names), ": ", Word, $\n]};
                  {error, Text} -> {failed, Text}
              end
      end).

%% @doc weft join A B.
-spec join([string()], weft_argparse:given()) -> weft_cli:answer().
join([A, B] = Names, Options) ->
    weft_cli_cluster:with_nodes(
      Options, Names,
      fun(_Cluster, [Node, Contact]) ->
              changed(Node, {weft, join, [Contact]}, #{joined => [Node, Contact]},
                      [A, ": joined the cluster of ", B, $\n])
      end).

%% @doc weft leave NODE.
-spec leave([string()], weft_argparse:given()) -> weft_cli:answer().
leave([Name], Options) ->
    weft_cli_cluster:with_nodes(
      Options, [Name],
      fun(_Cluster, [Node]) ->
              changed(Node, {weft, leave, []}, #{left => Node}, [Name, ": left, and is alone\n"])
      end).

changed(Node, Function, Json, Text) ->
    case weft_local_control:call(Node, Function, ?MEMBERSHIP_MS) of
        {ok, ok} -> {ok, Json, Text};
        {ok, {error, Reason}} -> {failed, [weft_local_spec:short(Node), ": ", Reason]};
        {not_running, Reason} -> {no_node, Reason};
        {error, Reason} -> {failed, [weft_local_spec:short(Node), ": ", Reason]}
    end.

%% @doc weft kill NODE.
-spec kill([string()], weft_argparse:given()) -> weft_cli:answer().
kill([Name], Options) ->
    weft_cli_cluster:with_nodes(
      Options, [Name],
      fun(Cluster, [Node]) ->
              case weft_local:kill(Cluster, Node) of
                  ok -> {ok, #{killed => Node}, [Name, ": killed\n"]};
                  {error, not_running} -> {no_node, [Name, " is not running"]};
                  {error, still_running} -> {failed, [Name, " could not be killed"]}
              end
      end).

%% @doc weft restart NODE.
-spec restart([string()], weft_argparse:given()) -> weft_cli:answer().
restart([Name], Options) ->
    weft_cli_cluster:with_nodes(
      Options, [Name],
      fun(Cluster, [Node]) ->
              case weft_local:restart(Cluster, Node) of
                  ok -> {ok, #{restarted => Node}, [Name, ": started again\n"]};
                  {error, Text} -> {failed, Text}
              end
      end).

%% @doc weft eval NODE EXPRESSION.
-spec eval([string()], weft_argparse:given()) -> weft_cli:answer().
eval([Name, Text], Options) ->
    case parse(Text) of
        {ok, Expressions} ->
            weft_cli_cluster:with_nodes(
              Options, [Name || Name =/= "all"],
              fun(Cluster, []) -> evaluated(weft_local:running(Cluster), Expressions);
                 (_Cluster, Nodes) -> evaluated(Nodes, Expressions)
              end);
        {error, Reason} ->
            {usage, Reason}
    end.

parse(Text) ->
    case erl_scan:string(string:trim(string:trim(Text), trailing, ".") ++ ".") of
        {ok, Tokens, _} ->
            case erl_parse:parse_exprs(Tokens) of
                {ok, Expressions} -> {ok, Expressions};
                {error, Error} -> no_erlang(Error)
            end;
        {error, Error, _} ->
            no_erlang(Error)
    end.

no_erlang({_Line, Module, Reason}) ->
    {error, ["not Erlang: ", Module:format_error(Reason)]}.

evaluated(Nodes, Expressions) ->
    Results = [{Node, value(Node, Expressions)} || Node <- Nodes],
    case [Error || {_, {Kind, _} = Error} <- Results, Kind =/= ok] of
        [] ->
            {ok, [#{node => Node, value => unicode:characters_to_binary(Value)}
                  || {Node, {ok, Value}} <- Results],
             [[prefix(Node, Nodes), Value, $\n] || {Node, {ok, Value}} <- Results]};
        [Error | _] ->
            Error
    end.

prefix(_Node, [_]) -> "";
prefix(Node, _Nodes) -> [weft_local_spec:short(Node), ": "].

value(Node, Expressions) ->
    Evaluate = {erl_eval, exprs, [Expressions, erl_eval:new_bindings()]},
    case weft_local_control:call(Node, Evaluate, ?EVAL_TIMEOUT_MS) of
        {ok, {value, Value, _Bindings}} -> {ok, io_lib:format("~tp", [Value])};
        {not_running, Text} -> {no_node, Text};
        {error, Text} -> {failed, [weft_local_spec:short(Node), ": ", Text]}
    end.
