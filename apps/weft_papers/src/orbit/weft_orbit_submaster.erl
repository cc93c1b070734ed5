%% SPDX-License-Identifier: Apache-2.0
%% @doc The head of a group in a grouped orbit: starts its workers and, on its own node, the
%% gateways, hands credit on to the master, and gathers reports.
%%
%% Messages: tells the master {gateways, Self, GroupNumber, [pid()]}; waits for {gateways, All} with
%% those of all groups, and answers {ready, Self}; {first, Worker, Message} is handed to a worker;
%% {report, From} is answered with {report, Self, [Report]} once all workers have reported.
-module(weft_orbit_submaster).

-export([start/3, init/3, gateway/2]).

%% @doc Starts it on the head of the group, linked to the caller, who is the master.
-spec start(weft_orbit_plan:group(), weft_orbit_plan:plan(), Master :: pid()) -> pid().
start(#{head := Head} = Group, Plan, Master) ->
    weft_bench_program:spawn_link(Head, ?MODULE, init, [Group, Plan, Master]).

%% @private
-spec init(weft_orbit_plan:group(), weft_orbit_plan:plan(), Master :: pid()) -> ok.
init(#{number := Number, nodes := Nodes} = Group, Plan, Master) ->
    #{workers := PerNode, gateways := Count, group_of := GroupOf} = Plan,
    Workers = [weft_orbit_worker:start(Node, Plan, self())
               || Node <- Nodes, _ <- lists:seq(1, PerNode)],
    Gateways = [spawn_opt(?MODULE, gateway, [Plan, self()], [link, {priority, high}])
                || _ <- lists:seq(1, Count)],
    Master ! {gateways, self(), Number, Gateways},
    receive
        {gateways, All} ->
            Routes = fun(Of) -> {routes, weft_orbit_routes:new(Group, Workers, GroupOf, Of)} end,
            lists:foreach(fun(Gateway) -> Gateway ! Routes(All) end, Gateways),
            lists:foreach(fun({Worker, Gateway}) -> Worker ! Routes(Gateway) end,
                          dealt(Workers, Gateways, Gateways)),
            [receive {ready, Pid} -> ok end || Pid <- Workers ++ Gateways],
            Master ! {ready, self()},
            loop(Group, Workers, Gateways, Master)
    end.

dealt([], _, _) -> [];
dealt(Workers, [], All) -> dealt(Workers, All, All);
dealt([Worker | Workers], [Gateway | Gateways], All) ->
    [{Worker, Gateway} | dealt(Workers, Gateways, All)].

loop(#{first := First} = Group, Workers, Gateways, Master) ->
    receive
        {credit, _} = Credit ->
            Master ! Credit,
            loop(Group, Workers, Gateways, Master);
        {first, Worker, Message} ->
            lists:nth(Worker - First + 1, Workers) ! Message,
            loop(Group, Workers, Gateways, Master);
        {report, From} ->
            From ! {report, self(), gather(Workers), lists:sum(gather(Gateways))},
            ok
    end.

gather(Processes) ->
    lists:foreach(fun(Process) -> Process ! {report, self()} end, Processes),
    [receive {report, Process, Report} -> Report end || Process <- Processes].

%% @private
-spec gateway(weft_orbit_plan:plan(), Home :: pid()) -> ok.
gateway(Plan, Home) ->
    receive
        {routes, Routes} ->
            ok = weft_orbit_routes:open(Routes),
            Home ! {ready, self()},
            gateway(Plan, Routes, 0)
    end.

gateway(Plan, Routes, Sent) ->
    receive
        {vertex, _X, Slot, _Part} = Message ->
            weft_orbit_routes:next(weft_orbit_plan:owner(Slot, Plan), Routes) ! Message,
            gateway(Plan, Routes, Sent + 1);
        {report, From} ->
            From ! {report, self(), Sent},
            ok
    end.
