%% SPDX-License-Identifier: Apache-2.0
%% @doc One run: the cluster comes up, the chat replays its conversation, the faults happen at their
%% times, and what the survivors have got is counted.
%%
%% The same for both carriers but for the cluster's specification; the chat does not know which one
%% it is on. All nodes are asked twice a second, through a hidden connection of this VM to each.
-module(demo_run).

-export([run/2]).
-export_type([plan/0, result/0]).

-type fault() :: kill | cut | heal.
%% victim, link: chosen as the busiest when their time comes, unless given.
-type plan() :: #{root := file:filename(), groups := #{atom() => [atom()]},
                  gateways := #{first := [atom()], second := [atom()]},
                  file := file:filename(), script := chat_script:script(),
                  faults := [{AtMs :: non_neg_integer(), fault()}],
                  victim => node(), link => {node(), node()}}.
%% reroutes_ms: how long sessions were without a path, by the fault before.
-type result() :: #{carrier := weft | stock, nodes := pos_integer(), victim := node(),
                    link := {node(), node()}, connections := non_neg_integer(),
                    full_mesh := pos_integer(), balance := demo_account:balance(),
                    nodedowns := non_neg_integer(), rooms_lost := non_neg_integer(),
                    all_said := boolean(), reroutes_ms := #{fault() => [non_neg_integer()]},
                    seconds := float(), samples := [map()]}.

-define(POLL_MS, 500).
-define(READY_TIMEOUT_MS, 30000).
%% Nothing has arrived for so long: nothing will.
-define(SETTLED_MS, 3000).
-define(SETTLE_TIMEOUT_MS, 30000).

-record(run, {plan :: plan(),
              cluster :: weft_local:cluster(),
              screen :: demo_screen:screen(),
              started_ms :: integer(),
              faults :: [{non_neg_integer(), fault()}],
              last_fault = none :: none | fault(),
              victim :: node() | undefined,
              link :: {node(), node()} | undefined,
              picture :: weft_local_picture:picture() | undefined,
              connections = 0 :: non_neg_integer(),
              seen = #{} :: #{{node(), node()} => non_neg_integer()},
              reroutes = [] :: [{fault() | none, non_neg_integer()}],
              delivered = [] :: [{integer(), non_neg_integer()}],
              samples = [] :: [map()]}).

%% @doc Runs the plan on a carrier. Whatever happens, no node is left behind.
-spec run(weft | stock, plan()) -> {ok, result()} | {error, unicode:chardata()}.
run(Carrier, #{root := Root, groups := Groups} = Plan) ->
    Screen = demo_screen:new(title(Carrier)),
    {ok, Spec} = weft_local_spec:new(#{name => atom_to_list(Carrier), carrier => Carrier,
                                       groups => Groups, paths => paths()}),
    case weft_local:up(Spec, Root, fun(_) -> ok end) of
        {ok, Cluster} ->
            try {ok, conversation(Plan, Cluster, Screen)}
            catch throw:{failed, Text} -> {error, Text}
            after weft_local:down(Cluster)
            end;
        {error, Text} ->
            {error, Text}
    end.

title(weft) -> "On weft: three groups, joined by gateways only";
title(stock) -> "The same on the stock carrier of OTP, every node connected to every other".

paths() ->
    [filename:absname(filename:dirname(code:which(Module))) || Module <- [chat, ?MODULE]].

%% --- the conversation -------------------------------------------------------------------------

conversation(#{file := File} = Plan, #{nodes := Nodes} = Cluster, Screen0) ->
    _ = everywhere(Nodes, {application, ensure_all_started, [chat]}),
    _ = everywhere(Nodes, {chat, open, [File, Nodes]}),
    await_ready(Nodes, now_ms() + ?READY_TIMEOUT_MS),
    _ = everywhere(Nodes, {demo_probe, start, []}),
    Screen = demo_screen:event(0, "all users are in their rooms, the conversation begins", Screen0),
    Run0 = #run{plan = Plan, cluster = Cluster, screen = Screen, started_ms = now_ms(),
                faults = maps:get(faults, Plan)},
    Run1 = poll(Run0),
    _ = everywhere(Nodes, {chat, play, [#{}]}),
    Run2 = play(Run1#run{started_ms = now_ms()}),
    Run = settle(Run2, now_ms() + ?SETTLE_TIMEOUT_MS),
    demo_screen:leave(Run#run.screen),
    result(Run).

everywhere(Nodes, Call) ->
    [case Result of
         {ok, {error, Reason}} -> throw({failed, io_lib:format("~ts: ~0tp", [Node, Reason])});
         {ok, Value} -> Value;
         {_, Text} -> throw({failed, io_lib:format("~ts: ~ts", [Node, Text])})
     end || {Node, Result} <- weft_local_control:all(Nodes, Call)].

await_ready(Nodes, Deadline) ->
    case lists:all(fun(Ready) -> Ready end, everywhere(Nodes, {chat, ready, []})) of
        true -> ok;
        false ->
            now_ms() < Deadline orelse throw({failed, "the users did not get into their rooms"}),
            receive after ?POLL_MS -> await_ready(Nodes, Deadline) end
    end.

%% Until every survivor has said all its lines. Faults happen at their times.
play(Run0) ->
    Run = poll(due_faults(Run0)),
    Statuses = everywhere(survivors(Run), {chat_replay, status, []}),
    case Run#run.faults =:= [] andalso not lists:any(fun(#{playing := P}) -> P end, Statuses) of
        true -> Run;
        false -> wait(Run), play(Run)
    end.

wait(#run{faults = [{AtMs, _} | _]} = Run) ->
    receive after max(0, min(?POLL_MS, AtMs - at_ms(Run))) -> ok end;
wait(_Run) ->
    receive after ?POLL_MS -> ok end.

settle(Run0, Deadline) ->
    wait(Run0),
    Run = poll(Run0),
    [{NowMs, Now} | _] = Delivered = Run#run.delivered,
    Since = [AtMs || {AtMs, Count} <- Delivered, Count =:= Now],
    case NowMs - lists:min(Since) >= ?SETTLED_MS orelse now_ms() > Deadline of
        true -> Run;
        false -> settle(Run, Deadline)
    end.

survivors(#run{cluster = #{nodes := Nodes}, victim = Victim}) ->
    lists:delete(Victim, Nodes).

%% --- faults -----------------------------------------------------------------------------------

due_faults(#run{faults = [{AtMs, Fault} | Faults]} = Run) ->
    case at_ms(Run) >= AtMs of
        true -> due_faults((fault(Fault, Run))#run{faults = Faults, last_fault = Fault});
        false -> Run
    end;
due_faults(Run) ->
    Run.

fault(kill, #run{plan = #{gateways := #{first := Gateways}} = Plan, picture = Picture} = Run) ->
    Candidates = [weft_local_spec:full(Gateway) || Gateway <- Gateways],
    Victim = given(victim, Plan, fun() -> demo_faults:busiest_gateway(Candidates, Picture) end),
    ok = demo_faults:kill(Run#run.cluster, Victim),
    event([weft_local_spec:short(Victim), " is killed, one of the two gateways between harbour "
           "and hill"], Run#run{victim = Victim});
fault(cut, #run{plan = #{gateways := #{first := First, second := Second}} = Plan,
                cluster = #{topology := Topology}, picture = Picture, victim = Victim} = Run) ->
    Gateways = [weft_local_spec:full(Gateway) || Gateway <- First ++ Second],
    Links = [{Gateway, Node} || Gateway <- Gateways -- [Victim],
                                Node <- weft_local_spec:neighbours(Gateway, Topology) -- Gateways],
    {A, B} = Link = given(link, Plan, fun() -> demo_faults:busiest_link(Links, Picture) end),
    ok = demo_faults:cut(Run#run.cluster, Link),
    event(["the link ", weft_local_spec:short(A), " - ", weft_local_spec:short(B), " is cut, the "
           "busiest of those between a gateway and a node behind it"],
          Run#run{link = Link});
fault(heal, #run{link = Link} = Run) ->
    ok = demo_faults:heal(Run#run.cluster, Link),
    event("the link is whole again", Run).

given(Key, Plan, Otherwise) ->
    case Plan of #{Key := Value} -> Value; #{} -> Otherwise() end.

event(Text, #run{screen = Screen} = Run) ->
    Run#run{screen = demo_screen:event(at_ms(Run), Text, Screen)}.

%% --- looking ----------------------------------------------------------------------------------

poll(#run{cluster = #{nodes := Nodes}} = Run0) ->
    Run1 = look(Run0),
    Tally = tally(Run1),
    #{delivered := Delivered, sent := Sent} = Tally,
    History = lists:sublist([{at_ms(Run1), Delivered} | Run1#run.delivered], 60),
    View0 = #{at_ms => at_ms(Run1), connections => connections(Run1), full_mesh => mesh(Nodes),
              nodes => [{Node, state(Node, Run1)} || Node <- Nodes], sent => Sent,
              delivered => Delivered, per_second => per_second(History),
              nodedowns => nodedowns(Run1)},
    View = maps:merge(View0, circuits(Run1)),
    Sample = maps:without([nodes, way, full_mesh], View),
    Run1#run{screen = demo_screen:show(View, Run1#run.screen), delivered = History,
             connections = max(Run1#run.connections, maps:get(connections, View)),
             samples = [Sample | Run1#run.samples]}.

look(#run{cluster = #{carrier := weft} = Cluster} = Run) ->
    {_Seen, Picture} = weft_cli_nodes:picture(Cluster),
    reroutes(Run#run{picture = Picture}, Run#run.picture =:= undefined);
look(Run) ->
    Run.

state(Node, #run{victim = Node}) -> down;
state(_Node, _Run) -> up.

mesh(Nodes) -> length(Nodes) * (length(Nodes) - 1) div 2.

connections(#run{cluster = #{carrier := weft}, picture = Picture}) ->
    #{tcp_connections := #{used := Used}} = Picture,
    Used;
connections(#run{cluster = #{carrier := stock, nodes := Nodes}} = Run) ->
    Peers = lists:append(everywhere(survivors(Run), {demo_probe, connections, []})),
    length([Peer || Peer <- Peers, lists:member(Peer, Nodes)]) div 2.

circuits(#run{cluster = #{carrier := stock}}) ->
    #{};
circuits(#run{picture = #{circuits := Circuits, nodes := Nodes}, reroutes = Reroutes}) ->
    Longest = [{length(Hops), From, Hops} || #{from := From, hops := [_ | _] = Hops} <- Circuits],
    Way = case lists:sort(Longest) of
              [] -> #{};
              Sorted ->
                  {_, _, Hops} = lists:last(Sorted),
                  #{way => lists:join(" - ", [weft_local_spec:short(Hop) || Hop <- Hops])}
          end,
    Way#{circuits => length(Circuits), resumes => length(Reroutes),
         routes => lists:sum([Routes || #{routes := Routes} <- Nodes])}.

%% Copies per second, over the last two seconds or so.
per_second([{NowMs, Now} | _] = History) ->
    {ThenMs, Then} = lists:nth(min(length(History), 5), History),
    case NowMs - ThenMs of
        0 -> 0;
        PassedMs -> max(0, (Now - Then) * 1000 div PassedMs)
    end.

tally(Run) ->
    Counters = everywhere(survivors(Run), {chat, counters, []}),
    lists:foldl(fun(Tally, Sum) ->
                        maps:map(fun(Key, Count) -> Count + maps:get(Key, Tally) end, Sum)
                end, hd(Counters), tl(Counters)).

nodedowns(Run) ->
    Survivors = survivors(Run),
    length([Node || Nodes <- everywhere(Survivors, {demo_probe, nodedowns, []}),
                    Node <- Nodes, lists:member(Node, Survivors)]).

%% Sessions between survivors that went on by another way since the last look. What they did before
%% the first look is of no interest.
reroutes(Run, true) ->
    Run#run{seen = maps:from_list([{Pair, Resumes} || {Pair, Resumes, _} <- resumes(Run)])};
reroutes(#run{seen = Seen, last_fault = Fault} = Run, false) ->
    Now = resumes(Run),
    New = [LastMs || {Pair, Resumes, LastMs} <- Now, is_integer(LastMs),
                     Resumes > maps:get(Pair, Seen, 0)],
    Run1 = Run#run{seen = maps:from_list([{Pair, Resumes} || {Pair, Resumes, _} <- Now]),
                   reroutes = [{Fault, Ms} || Ms <- New] ++ Run#run.reroutes},
    case New of
        [] -> Run1;
        _ -> event(io_lib:format("~b sessions went on by another way, after at most ~b ms",
                                 [length(New), lists:max(New)]), Run1)
    end.

resumes(#run{picture = #{circuits := Circuits, direct := Direct}} = Run) ->
    Survivors = survivors(Run),
    [{{From, To}, Resumes, LastMs}
     || #{from := From, to := To, resumes := Resumes, last_resume_ms := LastMs}
            <- Circuits ++ Direct,
        lists:member(From, Survivors), lists:member(To, Survivors)].

%% --- the result -------------------------------------------------------------------------------

result(#run{cluster = #{nodes := Nodes, carrier := Carrier}, plan = #{script := Script},
            victim = Victim, link = Link} = Run) ->
    Survivors = survivors(Run),
    Tally = tally(Run),
    Labels = maps:from_list([{chat_address:label(Node), Node} || Node <- Survivors]),
    Due = {demo_account:lines(Script, Labels), demo_account:streams(Script, Labels)},
    Reports = everywhere(Survivors, {chat, report, []}),
    #{carrier => Carrier, nodes => length(Nodes), victim => Victim, link => Link,
      connections => Run#run.connections, full_mesh => mesh(Nodes),
      balance => demo_account:balance(Due, ledgers(Script, Labels),
                                      #{tally => Tally, strangers => users_of(Victim, Script)}),
      nodedowns => nodedowns(Run), rooms_lost => maps:get(rooms_lost, Tally),
      all_said => lists:all(fun(#{replay := #{planned := P, spoken := S}}) -> P =:= S end, Reports),
      reroutes_ms => by_fault(Run#run.reroutes), seconds => at_ms(Run) / 1000,
      samples => lists:reverse(Run#run.samples)}.

by_fault(Reroutes) ->
    maps:from_list([{Fault, lists:sort([Ms || {F, Ms} <- Reroutes, F =:= Fault])}
                    || Fault <- [kill, cut, heal]]).

ledgers(#{members := Members}, Labels) ->
    Users = [{Name, maps:get(Label, Labels)} || {Name, Label} <- maps:keys(Members),
                                                is_map_key(Label, Labels)],
    maps:from_list([{User, chat_user:ledger(chat_address:user(Name, Node))}
                    || {Name, Node} = User <- Users]).

users_of(Node, #{members := Members}) ->
    [{Name, Node} || {Name, Label} <- maps:keys(Members), Label =:= chat_address:label(Node)].

at_ms(#run{started_ms = StartedMs}) -> now_ms() - StartedMs.

now_ms() -> erlang:monotonic_time(millisecond).
