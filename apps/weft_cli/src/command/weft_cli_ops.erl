%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands `weft alarms' and `weft events': what the agents of weft_ops know. One node on
%% which it runs is asked, which asks the agents. `weft watch' shows it in a line.
-module(weft_cli_ops).

-export([alarms/2, events/2, known/1, line/1]).
-export_type([known/0]).

%% Nothing, if nobody can be asked.
-type known() :: #{alarms => [map()], silent => [Duty :: binary()]}.

%% That node asks the agents for 5 s.
-define(TIMEOUT_MS, 15000).
-define(MINUTE_MS, 60000).
%% That a line names.
-define(WORST_MAX, 3).

%% @doc weft alarms.
-spec alarms([], weft_argparse:given()) -> weft_cli:answer().
alarms([], Options) ->
    asked({weft_ops, picture, []}, fun raised/1, Options).

%% @doc weft events.
-spec events([], weft_argparse:given()) -> weft_cli:answer().
events([], #{minutes := Minutes} = Options) ->
    SinceMs = erlang:system_time(millisecond) - Minutes * ?MINUTE_MS,
    asked({weft_ops, events, [SinceMs]}, fun happened/1, Options).

%% @doc What `weft alarms --json' says of that cluster.
-spec known(weft_cli_nodes:cluster()) -> known().
known(Cluster) ->
    case cluster_asked(Cluster, {weft_ops, picture, []}, fun raised/1) of
        {ok, Known, _Text} -> Known;
        _Nobody -> #{}
    end.

%% @doc The same in one line, with the worst alarms; none if nobody can be asked.
-spec line(known()) -> unicode:chardata().
line(#{alarms := Alarms, silent := Silent}) ->
    {Worst, Others} = lists:split(min(?WORST_MAX, length(Alarms)), by_severity(Alarms)),
    [case Alarms of
         [] -> "no alarms";
         _ -> [weft_cli_table:plural(length(Alarms), "alarm"), ": ",
               lists:join(", ", [[atom_to_list(Severity), " ", atom_to_list(Kind), " ",
                                  weft_local_spec:short(Node)]
                                 || #{severity := Severity, kind := Kind, node := Node} <- Worst]),
               [io_lib:format(" and ~b more", [length(Others)]) || Others =/= []],
               " (weft alarms)"]
     end,
     [["; no agent answered for ", lists:join(", ", Silent)] || Silent =/= []], $\n];
line(#{}) ->
    [].

%% Those of one severity stay in order.
by_severity(Alarms) ->
    lists:append([[Alarm || #{severity := Is} = Alarm <- Alarms, Is =:= Severity]
                  || Severity <- [critical, warning, note]]).

%% --- a node on which weft_ops runs --------------------------------------------------------------

asked(_Function, _Answer, #{node := _, cluster := _}) ->
    {usage, "--node is one of any cluster, --cluster the file of a deployment: give one"};
asked(Function, Answer, #{node := Name} = Options) ->
    weft_cli_node:with_node(Name, Options, fun(Node) ->
                                               first([Node], Function, Answer, fun erpc:call/5)
                                           end);
asked(Function, Answer, Options) ->
    weft_cli_cluster:with_cluster(Options,
                                  fun(Cluster) -> cluster_asked(Cluster, Function, Answer) end).

cluster_asked(#{nodes := Nodes} = Cluster, Function, Answer) ->
    #{unknown := Unknown} = weft_cli_nodes:lost(Cluster),
    first(Nodes -- Unknown, Function, Answer, weft_cli_nodes:caller(Cluster)).

%% An answer of a node without an agent would be that all is well.
first(Nodes, Function, Answer, Call) ->
    Agents = weft_local_control:all(Nodes, {erlang, whereis, [weft_ops_agent]}, Call),
    case {[Node || {Node, {ok, Agent}} <- Agents, Agent =/= undefined],
          [Node || {Node, {ok, undefined}} <- Agents]} of
        {[Node | _], _} ->
            said(weft_local_control:call(Node, Function, ?TIMEOUT_MS, Call), Node, Answer);
        {[], []} ->
            {no_node, ["no node can be asked" | [[": ", Text] || {_, {_, Text}} <-
                                                                     lists:sublist(Agents, 1)]]};
        {[], _} ->
            {failed, "weft_ops runs on no node that answers: put it on the code path and start it "
                     "(docs/guide/alarms.md)"}
    end.

said({ok, Value}, _Node, Answer) -> Answer(Value);
said({not_running, Text}, _Node, _Answer) -> {no_node, Text};
said({error, Text}, Node, _Answer) -> {failed, [atom_to_list(Node), ": ", Text]}.

%% --- answers ------------------------------------------------------------------------------------

%% What agents have raised that do not answer is not among the alarms.
raised(#{alarms := Alarms, agents := Agents}) ->
    Silent = [Duty || {Duty, none} <- lists:sort(maps:to_list(Agents))],
    {ok, #{alarms => [alarm(Alarm) || Alarm <- Alarms],
           silent => [unicode:characters_to_binary(duty(Duty)) || Duty <- Silent]},
     [case Alarms of
          [] -> "no alarms\n";
          _ -> weft_cli_table:format([["since", "severity", "kind", "node", "what"]
                                      | [alarm_cells(alarm(Alarm)) || Alarm <- Alarms]])
      end,
      [["no agent answered for: ", lists:join(", ", [duty(Duty) || Duty <- Silent]), $\n]
       || Silent =/= []]]}.

duty({group, Name}) -> ["group ", printed(Name)];
duty({node, Node}) -> ["node ", atom_to_list(Node)].

alarm(#{id := {Kind, Node, About}, severity := Severity, text := Text,
        acknowledged := Said} = Alarm) ->
    #{kind => Kind, node => Node, about => printed(About), severity => Severity, text => Text,
      at_ms => maps:get(at_ms, Alarm, undefined),
      comment => case Said of
                     #{comment := Comment} -> Comment;
                     no -> undefined
                 end}.

alarm_cells(#{kind := Kind, node := Node, severity := Severity, text := Text, at_ms := AtMs,
              comment := Comment}) ->
    [time(AtMs), atom_to_list(Severity), atom_to_list(Kind), atom_to_list(Node),
     [Text, [[" (", Comment, ")"] || Comment =/= undefined]]].

happened(Events) ->
    {ok, #{events => [Event#{about := printed(About)} || #{about := About} = Event <- Events]},
     case Events of
         [] -> "no events\n";
         _ -> weft_cli_table:format([["at", "kind", "node", "what"]
                                     | [event_cells(Event) || Event <- Events]])
     end}.

event_cells(#{at_ms := AtMs, kind := Kind, node := Node, text := Text}) ->
    [time(AtMs), atom_to_list(Kind), atom_to_list(Node), Text].

time(undefined) -> "-";
time(AtMs) -> calendar:system_time_to_rfc3339(AtMs div 1000).

printed(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
printed(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).
