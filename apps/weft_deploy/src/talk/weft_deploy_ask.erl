%% SPDX-License-Identifier: Apache-2.0
%% @doc Has an emulator on a host talk to the nodes there (`weft_deploy_control'). So the command
%% itself needs no connection to the nodes, and none of their cookies on a command line.
%%
%% Nodes with weft are asked by a weft node, which has the code of one of them: they may refuse
%% others, or use TLS.
-module(weft_deploy_ask).

-export([ask/4, named/3, results/1]).
-export_type([result/0, place/0]).

-type result() :: {Node :: string(), ok | bad, Ms :: non_neg_integer(), Text :: string()}.
-type place() :: #{dir := string(), erl := string(), epmd_port := inet:port_number(),
                   host := string(), carrier := weft | stock}.

%% Beyond the time that the request itself has: to start an emulator on a busy host.
-define(START_MS, 60000).

%% @doc The results that were told. WithinMs is how long the request may take by itself.
-spec ask(weft_deploy_host:connection(), place(), #{nodes := [node(), ...], _ => _},
          WithinMs :: non_neg_integer()) -> {ok, [result()]} | {error, string()}.
ask(Connection, #{dir := Dir, host := Host} = Place, Request, WithinMs) ->
    Unique = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Beam = Dir ++ "/control/" ++ atom_to_list(weft_deploy_control) ++ ".beam",
    File = Dir ++ "/control/" ++ Unique,
    {_, Code, _} = code:get_object_code(weft_deploy_control),
    Named = named("weft_deploy_" ++ Unique, Host, Request#{dir => Dir}),
    Text = unicode:characters_to_binary(io_lib:format("%% coding: utf-8~n~0tp.~n", [Named])),
    case put_all(Connection, [{Beam, Code}, {File, Text}]) of
        ok ->
            Script = script(Place, Request, File),
            case weft_deploy_host:run(Connection, Script, WithinMs + ?START_MS) of
                {ok, Output} -> {ok, results(Output)};
                Error -> Error
            end;
        Error ->
            Error
    end.

%% @doc A request with the name of the node on that host that is to do it.
-spec named(Name :: string(), Host :: string(), map()) -> map().
named(Name, Host, Request) ->
    Request#{name => list_to_atom(Name ++ "@" ++ Host),
             domain => case lists:member($., Host) of true -> longnames; false -> shortnames end}.

script(#{dir := Dir, erl := Erl, epmd_port := Port, carrier := Carrier},
       #{nodes := Nodes}, File) ->
    Q = fun weft_deploy_shell:quote/1,
    ["cd ", Q(Dir), " || exit 1\nHOME=", Q(Dir), "; export HOME\n"
     "ERL_EPMD_PORT=", integer_to_list(Port), "; export ERL_EPMD_PORT\n",
     [["i=; for n in", [[$\s, Q(atom_to_list(Node))] || Node <- Nodes], "; do\n"
       "  [ -f \"nodes/$n/id\" ] && read -r i < \"nodes/$n/id\" && break; done\n"
       "ERL_LIBS=", Q(Dir ++ "/releases/"), "\"${i%-*}/lib\"; export ERL_LIBS\n"]
      || Carrier =:= weft],
     "exec ", Q(Erl), " -noinput -start_epmd false",
     [" -proto_dist weft" || Carrier =:= weft],
     " -connect_all false -kernel prevent_overlapping_partitions false",
     " +S 1:1 +A 1 +sbwt none -pa ", Q(Dir ++ "/control"),
     " -run weft_deploy_control main ", Q(File), " < /dev/null\n"].

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
