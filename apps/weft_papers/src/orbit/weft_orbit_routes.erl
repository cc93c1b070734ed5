%% SPDX-License-Identifier: Apache-2.0
%% @doc Where a process of an orbit sends a vertex: to its owner, if that is in the own group (in
%% the distributed form all are); otherwise a worker sends it to its gateway, and a gateway to one
%% of those of the owner's group. So a vertex takes one hop within a group, and three between two.
-module(weft_orbit_routes).

-export([new/4, next/2, open/1]).
-export_type([routes/0, gateways/0]).

-type gateways() :: #{Group :: pos_integer() => tuple()}.
%% What workers and gateways run once they are ready.
-define(MODULES, [weft_orbit_plan, weft_orbit_credit, weft_orbit_generators]).

-opaque routes() :: {weft_orbit_plan:group(), Workers :: tuple(), GroupOf :: tuple(),
                     Gateway :: pid() | gateways()}.

%% @doc The routes in a group: its workers in order, the group of every worker, and where all else
%% goes: one gateway (for a worker) or those of all groups (for a gateway).
-spec new(weft_orbit_plan:group(), Workers :: [pid()], GroupOf :: tuple(),
          pid() | gateways()) -> routes().
new(Group, Workers, GroupOf, Gateways) ->
    {Group, list_to_tuple(Workers), GroupOf, Gateways}.

-spec next(weft_orbit_plan:worker(), routes()) -> pid().
next(Worker, {#{number := Own, first := First}, Workers, GroupOf, Gateways}) ->
    case element(Worker, GroupOf) of
        Own -> element(Worker - First + 1, Workers);
        _ when is_pid(Gateways) -> Gateways;
        Other ->
            Of = map_get(Other, Gateways),
            element(Worker rem tuple_size(Of) + 1, Of)
    end.

%% @doc Connects this node with all that are next on some way, and loads the code that runs here
%% after that, so that neither is timed.
-spec open(routes()) -> ok.
open({_, Workers, _, Gateways}) ->
    ok = code:ensure_modules_loaded(?MODULES),
    Others = case Gateways of
                 Gateway when is_pid(Gateway) -> [Gateway];
                 _ -> lists:append([tuple_to_list(Of) || Of <- maps:values(Gateways)])
             end,
    Nodes = lists:usort([node(Pid) || Pid <- tuple_to_list(Workers) ++ Others]),
    lists:foreach(fun net_kernel:connect_node/1, Nodes -- [node()]).
