%% SPDX-License-Identifier: Apache-2.0
%% @doc Has an emulator on a host talk to the nodes there (`weft_deploy_control'). So the command
%% itself needs no connection to the nodes, and none of their cookies on a command line.
-module(weft_deploy_ask).

-export([ask/4, results/1]).
-export_type([result/0]).

-type result() :: {Node :: string(), ok | bad, Ms :: non_neg_integer(), Text :: string()}.

%% Beyond the time that the request itself has: to start an emulator on a busy host.
-define(START_MS, 60000).

%% @doc The results that were told. WithinMs is how long the request may take by itself.
-spec ask(weft_deploy_host:connection(), #{dir := string(), erl := string(),
                                           epmd_port := inet:port_number(), host := string(),
                                           _ => _},
          Request :: map(), WithinMs :: non_neg_integer()) -> {ok, [result()]} | {error, string()}.
ask(Connection, #{dir := Dir, erl := Erl, epmd_port := Port, host := Host}, Request, WithinMs) ->
    Unique = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Beam = Dir ++ "/control/" ++ atom_to_list(weft_deploy_control) ++ ".beam",
    File = Dir ++ "/control/" ++ Unique,
    {_, Code, _} = code:get_object_code(weft_deploy_control),
    Text = unicode:characters_to_binary(io_lib:format("%% coding: utf-8~n~0tp.~n", [Request])),
    Q = fun weft_deploy_shell:quote/1,
    Script = ["cd ", Q(Dir), " || exit 1\nHOME=", Q(Dir), "; export HOME\n"
              "ERL_EPMD_PORT=", integer_to_list(Port), "; export ERL_EPMD_PORT\n"
              "exec ", Q(Erl), " -noinput -hidden -dist_listen false -start_epmd false",
              " -connect_all false -kernel prevent_overlapping_partitions false",
              " +S 1:1 +A 1 +sbwt none -pa ", Q(Dir ++ "/control"), " ", name(Host), " ",
              Q("weft_deploy_" ++ Unique ++ "@" ++ Host),
              " -run weft_deploy_control main ", Q(File), " < /dev/null\n"],
    case put_all(Connection, [{Beam, Code}, {File, Text}]) of
        ok ->
            case weft_deploy_host:run(Connection, Script, WithinMs + ?START_MS) of
                {ok, Output} -> {ok, results(Output)};
                Error -> Error
            end;
        Error ->
            Error
    end.

name(Host) ->
    case lists:member($., Host) of true -> "-name"; false -> "-sname" end.

put_all(_Connection, []) -> ok;
put_all(Connection, [{File, Content} | Files]) ->
    case weft_deploy_host:put(Connection, File, Content) of
        ok -> put_all(Connection, Files);
        Error -> Error
    end.

%% @doc Reads what `weft_deploy_control' has printed; other lines are passed over.
-spec results(binary()) -> [result()].
results(Output) ->
    [{binary_to_list(Node), case State of <<"ok">> -> ok; _ -> bad end, number(Ms),
      lists:flatten(io_lib:format("~ts", [Text]))}
     || Line <- binary:split(Output, <<"\n">>, [global]),
        [<<"weft">>, Node, State, Ms, Text] <- [binary:split(Line, <<"\t">>, [global])]].

number(Text) ->
    case string:to_integer(Text) of
        {Number, _} when is_integer(Number) -> Number;
        {error, _} -> 0
    end.
