%% SPDX-License-Identifier: Apache-2.0
%% @doc A process inside each broker that notes every loss of another broker, as any application
%% there would see it: net_kernel:monitor_nodes/1.
-module(weft_rabbitmq_watch).

-export([start/1, nodedowns/1]).

%% @doc Begins to watch. Returns when all watchers are at work.
-spec start(weft_rabbitmq_brokers:brokers()) -> ok.
start(Brokers) ->
    Watch =
        "Self = self(),"
        "spawn(fun() ->"
        "  true = register(weft_rabbitmq_watch, self()),"
        "  ok = net_kernel:monitor_nodes(true),"
        "  Self ! watching,"
        "  (fun Loop(Downs) ->"
        "     receive"
        "       {nodedown, Node} -> Loop([Node | Downs]);"
        "       {nodeup, _} -> Loop(Downs);"
        "       {tell, To} -> To ! {nodedowns, Downs}, Loop(Downs)"
        "     end"
        "   end)([])"
        " end),"
        "receive watching -> ok after 5000 -> timeout end.",
    [ok, ok, ok] = weft_rabbitmq_brokers:eval_all(fun(_) -> Watch end, Brokers),
    ok.

%% @doc All losses of one broker seen by another one, since start/1.
-spec nodedowns(weft_rabbitmq_brokers:brokers()) -> [{Lost :: node(), SeenBy :: node()}].
nodedowns(Brokers) ->
    Ask = "weft_rabbitmq_watch ! {tell, self()},"
          "receive {nodedowns, Downs} -> Downs after 5000 -> timeout end.",
    All = weft_rabbitmq_brokers:all_nodes(Brokers),
    Answers = lists:zip(All, weft_rabbitmq_brokers:eval_all(fun(_) -> Ask end, Brokers)),
    [{Lost, SeenBy} || {SeenBy, Downs} <- Answers, Lost <- Downs, lists:member(Lost, All)].
