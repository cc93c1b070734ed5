%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft doctor': the report of `weft_doctor'. The nodes of a local cluster, and
%% those of a deployment, are asked from here, so it does not matter whether they reach each other.
%% Of another cluster one node is known, which asks the others. With --config it is what nodes are
%% configured to be, before they run.
-module(weft_cli_doctor).

-export([doctor/2]).

%% A node asks the others for at most 5 s.
-define(TIMEOUT_MS, 10000).

%% @doc weft doctor.
-spec doctor([], weft_argparse:given()) -> weft_cli:answer().
doctor([], #{node := _, cluster := _}) ->
    {usage, "--node is one of any cluster, --cluster the file of a deployment: give one"};
doctor([], #{config := _, node := _}) ->
    {usage, "--config is about nodes before they run, --node one that runs: give one"};
doctor([], #{config := _, cluster := _}) ->
    {usage, "--config is about nodes before they run, --cluster about those that do: give one"};
doctor([], #{config := File} = Options) ->
    case weft_cli_configured:read(File, maps:get(vm_args, Options, none)) of
        {ok, Name, Nodes} -> answer(Name, weft_doctor:configured(Nodes));
        {error, Text} -> {usage, Text}
    end;
doctor([], #{vm_args := _}) ->
    {usage, "--vm-args belongs to a sys.config: name that by --config"};
doctor([], #{node := Name} = Options) ->
    weft_cli_node:with_node(Name, Options, fun by_node/1);
doctor([], Options) ->
    weft_cli_cluster:with_cluster(Options, fun by_command/1).

%% A host that is lost is no finding about nodes, but nothing that may be passed over.
by_command(#{name := Name, nodes := Nodes} = Cluster) ->
    Lost = weft_cli_nodes:lost(Cluster),
    Report = weft_doctor:report(Nodes, weft_cli_nodes:caller(Cluster)),
    {Outcome, Json, Text} = answer(Name, Report),
    {case Lost of #{lost := []} -> Outcome; #{} -> wanting end,
     maps:merge(Json, weft_cli_nodes:lost_json(Lost)), [weft_cli_nodes:lost_text(Lost), Text]}.

%% The node examines the members that it knows.
by_node(Node) ->
    case weft_local_control:call(Node, {weft_doctor, report, []}, ?TIMEOUT_MS) of
        {ok, Report} -> answer(atom_to_list(Node), Report);
        {not_running, _} -> {no_node, unreachable(Node)};
        {error, Text} -> {failed, [atom_to_list(Node), ": ", explain(string:trim(Text))]}
    end.

unreachable(Node) ->
    [atom_to_list(Node), " can not be reached as by a stock node: is it running, is that its "
     "cookie, does the epmd on its host know it? With transport tls or stock_nodes deny call "
     "weft_doctor:examine() in a shell of a node"].

explain(Text) ->
    case string:equal(Text, "undef") of
        true -> "it has no weft, or one without weft_doctor; name a node that has";
        false -> Text
    end.

answer(Name, #{findings := Findings} = Report) ->
    Json = Report#{name => unicode:characters_to_binary(Name),
                   findings => [json(Finding) || Finding <- Findings]},
    {outcome(Report), Json, [Name, ": ", weft_doctor:text(Report)]}.

outcome(#{errors := 0, warnings := 0}) -> ok;
outcome(#{}) -> wanting.

json(#{found := Found, why := Why, advice := Advice} = Finding) ->
    Finding#{found => unicode:characters_to_binary(Found),
             why => unicode:characters_to_binary(Why),
             advice => unicode:characters_to_binary(Advice)}.
