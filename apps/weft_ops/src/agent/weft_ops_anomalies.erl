%% SPDX-License-Identifier: Apache-2.0
%% @doc What is unusual in the last samples of nodes: conditions, each with the node it is about and
%% words for people. Pure. Whether somebody is told is decided by `weft_ops_alarms_core'.
%%
%% crosses_groups: nodes without a common group exchange much; bypasses_gateways: and do so over a
%% direct connection, which the groups are there to save (`weft_group:suggest/0' proposes others).
-module(weft_ops_anomalies).

-export([find/4, kinds/0, thresholds/0]).
-export_type([condition/0, kind/0, thresholds/0]).

-type kind() :: silent | unreachable | no_path | crosses_groups | bypasses_gateways | hot_gateway
              | lanes_unequal | queue_grows | senders_suspended | link_flaps | clock_skew | busy
              | no_answer.
%% What it is about, besides the node: a peer, or a group.
-type condition() :: #{kind := kind(), node := node(), about := term(),
                       severity := critical | warning | note, text := unicode:chardata()}.
-type thresholds() :: #{crossing_bytes_per_s := pos_integer(),
                        relayed_bytes_per_s := pos_integer(),
                        lane_bytes_per_s := pos_integer(), lanes_ratio := pos_integer(),
                        queued_bytes := pos_integer(), link_ups := pos_integer(),
                        clock_skew_ms := pos_integer(), wake_up_ms := pos_integer()}.

-spec kinds() -> [kind()].
kinds() ->
    [silent, unreachable, no_path, crosses_groups, bypasses_gateways, hot_gateway, lanes_unequal,
     queue_grows, senders_suspended, link_flaps, clock_skew, busy, no_answer].

%% @doc Those that hold if the configuration has no others.
-spec thresholds() -> thresholds().
thresholds() ->
    #{crossing_bytes_per_s => 100000, relayed_bytes_per_s => 50000000,
      lane_bytes_per_s => 10000000, lanes_ratio => 4, queued_bytes => 67108864, link_ups => 4,
      clock_skew_ms => 1000, wake_up_ms => 200}.

%% @doc Of the nodes of a duty: {Sample, SkewMs}, with how often links came up in the last minute
%% (`weft_ops_heard:states/3'), and how far its clock is ahead of the agent's; or
%% `silent' for one that should report and does not. Groups: all that are known. Told: of whom an
%% alarm says already that they are silent. They go on to be, also where others say more of them.
-spec find(#{node() => {weft_ops_sample:sample(), SkewMs :: integer()} | silent},
           #{weft_group:name() => [node()]}, thresholds(), Told :: [node()]) -> [condition()].
find(Nodes, Groups, Thresholds, Told) ->
    Unreachable = unreachable(Nodes),
    [condition(unreachable, critical, Node, Node,
               io_lib:format("no path to it from ~ts: neither a link nor a route leads there",
                             [some(From)]))
     || {Node, From} <- lists:sort(maps:to_list(Unreachable))]
        ++ lists:append([of_node(Node, What, Groups, Thresholds)
                         || {Node, What} <- lists:sort(maps:to_list(Nodes)),
                            What =/= silent orelse not is_map_key(Node, Unreachable)
                                orelse lists:member(Node, Told)]).

%% Members that cannot be reached, and from where: one condition, however many nodes miss them.
unreachable(Nodes) ->
    lists:foldl(fun({Node, From}, All) ->
                    maps:update_with(Node, fun(Others) -> Others ++ [From] end, [From], All)
                end, #{}, [{Node, From} || {From, {#{unreachable := Gone}, _}}
                                               <- lists:sort(maps:to_list(Nodes)), Node <- Gone]).

some(Nodes) when length(Nodes) > 3 ->
    io_lib:format("~b nodes, ~ts among them", [length(Nodes), some(lists:sublist(Nodes, 3))]);
some(Nodes) ->
    lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

of_node(Node, silent, _Groups, _Thresholds) ->
    [condition(silent, critical, Node, Node,
               "it does not report any more: it is down, cut off, or weft_ops was stopped there")];
of_node(Node, {Sample, SkewMs}, Groups, Thresholds) ->
    #{peers := Peers, links := Links} = Sample,
    paths(Sample) ++ stuck(Sample)
        ++ lists:append([crossing(Node, Peer, Groups, Sample, Thresholds)
                         ++ sending(Node, Peer, Thresholds) || Peer <- Peers])
        ++ lists:append([connection(Node, Link, Sample, Thresholds) || Link <- Links])
        ++ relaying(Sample, Thresholds) ++ skew(Node, SkewMs, Thresholds)
        ++ busy(Sample, Thresholds).

paths(#{node := Node, peers := Peers}) ->
    [condition(no_path, critical, Node, Other,
               io_lib:format("the session with ~ts looks for a path; weft:why(~0tp) says what is "
                             "missing", [Other, Other]))
     || #{node := Other, state := resuming} <- Peers].

stuck(#{node := Node, peers := Peers, links := Links}) ->
    [condition(no_answer, warning, Node, {What, Other},
               io_lib:format("the process of its ~w with ~ts does not answer", [What, Other]))
     || {What, Rows} <- [{session, Peers}, {link, Links}],
        #{node := Other, state := unknown} <- Rows].

%% A node without a group is nobody's business.
crossing(Node, #{node := Other, via := Via} = Peer, Groups, Sample,
         #{crossing_bytes_per_s := Limit}) ->
    Rate = per_s(maps:get(bytes_out, Peer) + maps:get(bytes_in, Peer), Sample),
    case Rate >= Limit andalso relation(Node, Other, Groups) of
        strangers when Via =:= Other ->
            [condition(bypasses_gateways, warning, Node, Other,
                       io_lib:format("~b bytes/s with ~ts, over a direct connection though they "
                                     "have no group in common; weft_group:suggest() proposes one",
                                     [Rate, Other]))];
        strangers ->
            [condition(crosses_groups, note, Node, Other,
                       io_lib:format("~b bytes/s with ~ts, through gateways; "
                                     "weft_group:suggest() proposes groups that save that",
                                     [Rate, Other]))];
        _ ->
            []
    end.

relation(Node, Other, Groups) ->
    case {groups(Node, Groups), groups(Other, Groups)} of
        {[_ | _] = Own, [_ | _] = Others} ->
            case Own -- (Own -- Others) of
                [] -> strangers;
                _ -> fellows
            end;
        _ ->
            free
    end.

groups(Node, Groups) ->
    [Name || {Name, Members} <- maps:to_list(Groups), lists:member(Node, Members)].

sending(Node, #{node := Other, queued_bytes := Queued, suspended := Suspended},
        #{queued_bytes := Limit}) ->
    [condition(queue_grows, warning, Node, Other,
               io_lib:format("~b bytes wait to be sent to ~ts", [Queued, Other]))
     || Queued >= Limit]
        ++ [condition(senders_suspended, warning, Node, Other,
                      io_lib:format("~b senders to ~ts are suspended: they send more than goes out",
                                    [Suspended, Other]))
            || Suspended > 0].

connection(Node, #{node := Other, ups := Ups, lanes := Lanes}, Sample,
           #{link_ups := UpsLimit} = Thresholds) ->
    [condition(link_flaps, warning, Node, Other,
               io_lib:format("the link to ~ts came up ~b times in a minute", [Other, Ups]))
     || Ups >= UpsLimit]
        ++ [condition(lanes_unequal, note, Node, Other,
                      io_lib:format("lanes to ~ts carry ~ts bytes/s",
                                    [Other, rates(Lanes, Sample)]))
            || are_unequal(Lanes, Sample, Thresholds)].

are_unequal([_, _ | _] = Lanes, Sample, #{lane_bytes_per_s := Limit, lanes_ratio := Ratio}) ->
    per_s(lists:max(Lanes), Sample) >= Limit andalso lists:max(Lanes) > Ratio * lists:min(Lanes);
are_unequal(_Lanes, _Sample, _Thresholds) ->
    false.

rates(Lanes, Sample) ->
    lists:join(", ", [integer_to_list(per_s(Bytes, Sample)) || Bytes <- Lanes]).

relaying(#{node := Node, relayed_bytes := Relayed, relayed_circuits := Circuits} = Sample,
         #{relayed_bytes_per_s := Limit}) ->
    Rate = per_s(Relayed, Sample),
    [condition(hot_gateway, warning, Node, Node,
               io_lib:format("it relays ~b bytes/s on ~b circuits; another gateway would take a "
                             "part of them", [Rate, Circuits]))
     || Rate >= Limit].

skew(Node, SkewMs, #{clock_skew_ms := Limit}) ->
    [condition(clock_skew, warning, Node, Node,
               io_lib:format("its clock is ~b ms ~ts that of its agent",
                             [abs(SkewMs), case SkewMs > 0 of true -> "ahead of";
                                               false -> "behind" end]))
     || abs(SkewMs) >= Limit].

busy(#{node := Node, machine := #{wake_up_us := WakeUpUs, run_queue := RunQueue}},
     #{wake_up_ms := Limit}) ->
    [condition(busy, warning, Node, Node,
               io_lib:format("processes are woken up to ~b ms late, ~b wait in run queues",
                             [WakeUpUs div 1000, RunQueue]))
     || WakeUpUs >= Limit * 1000].

condition(Kind, Severity, Node, About, Text) ->
    #{kind => Kind, severity => Severity, node => Node, about => About,
      text => unicode:characters_to_binary(Text)}.

per_s(Bytes, #{period_ms := PeriodMs}) -> Bytes * 1000 div PeriodMs.
