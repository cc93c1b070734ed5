%% SPDX-License-Identifier: Apache-2.0
%% @doc The program Orbit: all numbers that a set of functions reaches from 0, computed on many
%% nodes (N. Chechina et al., "Evaluating Scalable Distributed Erlang for Scalability and
%% Reliability", IEEE TPDS 28(8), 2017, sections 4.1, 5.2.1).
%%
%% Distributed: the workers of all nodes send vertices to each other. Grouped: the nodes are cut
%% into groups, vertices leave a group through gateways on its first node, and no node talks to
%% nodes of other groups but these. Nodes are connected, and have loaded the code, before anything
%% is timed. The run is over when all credit is back (`weft_orbit_credit').
%%
%% Each vertex is received once for each edge that leads to it, and the first one once more: so many
%% vertices are received as 1 + size of the orbit x generators, which check/1 holds against the
%% count.
-module(weft_orbit).
-behaviour(weft_bench_program).

-export([plan/2, start/1, run/1, check/1, stop/1]).

-record(state, {plan :: weft_orbit_plan:plan(), is_grouped :: boolean(),
                %% The workers, or one submaster for each group.
                processes :: [pid()], credits = 0 :: non_neg_integer()}).

%% @doc Options: those of `weft_orbit_plan:new/2'.
-spec plan(map(), [node(), ...]) -> {ok, weft_orbit_plan:plan()} | {error, iodata()}.
plan(Options, Nodes) ->
    weft_orbit_plan:new(Options, Nodes).

%% @private
start(Plan) ->
    process_flag(trap_exit, true),
    {module, _} = code:ensure_loaded(weft_orbit_credit),
    started(Plan).

started(#{gateways := 0, groups := [Group]} = Plan) ->
    #{workers := PerNode, group_of := GroupOf} = Plan,
    #{nodes := Nodes} = Group,
    Workers = [weft_orbit_worker:start(Node, Plan, self())
               || Node <- Nodes, _ <- lists:seq(1, PerNode)],
    Routes = {routes, weft_orbit_routes:new(Group, Workers, GroupOf, #{})},
    lists:foreach(fun(Worker) -> Worker ! Routes end, Workers),
    lists:foreach(fun ready/1, Workers),
    #state{plan = Plan, is_grouped = false, processes = Workers};
started(#{groups := Groups} = Plan) ->
    Submasters = [weft_orbit_submaster:start(Group, Plan, self()) || Group <- Groups],
    Gateways = maps:from_list([gateways(Submaster) || Submaster <- Submasters]),
    lists:foreach(fun(Submaster) -> Submaster ! {gateways, Gateways} end, Submasters),
    lists:foreach(fun ready/1, Submasters),
    #state{plan = Plan, is_grouped = true, processes = Submasters}.

gateways(Submaster) ->
    receive
        {gateways, Submaster, Number, Gateways} -> {Number, list_to_tuple(Gateways)};
        {'EXIT', Pid, Why} -> weft_bench_program:lost(Pid, Why)
    end.

ready(Process) ->
    receive
        {ready, Process} -> ok;
        {'EXIT', Pid, Why} -> weft_bench_program:lost(Pid, Why)
    end.

%% @private
run(#state{plan = Plan} = State) ->
    Slot = weft_orbit_plan:slot(0, Plan),
    _ = send_first(weft_orbit_plan:owner(Slot, Plan), {vertex, 0, Slot, weft_orbit_credit:one()},
                   State),
    State#state{credits = recover(weft_orbit_credit:zero(), 0)}.

send_first(Worker, Message, #state{is_grouped = false, processes = Workers}) ->
    lists:nth(Worker, Workers) ! Message;
send_first(Worker, Message, #state{processes = Submasters, plan = #{group_of := GroupOf}}) ->
    lists:nth(element(Worker, GroupOf), Submasters) ! {first, Worker, Message}.

recover(Credit, Count) ->
    case weft_orbit_credit:is_one(Credit) of
        true -> Count;
        false ->
            receive
                {credit, Returned} -> recover(weft_orbit_credit:merge(Returned, Credit), Count + 1);
                {'EXIT', Pid, Why} -> weft_bench_program:lost(Pid, Why)
            end
    end.

%% @private
check(#state{processes = Processes, plan = Plan} = State) ->
    lists:foreach(fun(Process) -> Process ! {report, self()} end, Processes),
    Answers = [report(Process) || Process <- Processes],
    Reports = lists:append([Reports || {Reports, _} <- Answers]),
    Forwarded = lists:sum([Sent || {_, Sent} <- Answers]),
    #{generators := Generators, slots := Slots} = Plan,
    #{size := Size, received := Received} = Result = result(Reports),
    case 1 + Size * length(Generators) of
        Received ->
            {ok, Result#{program_messages => messages(Result, State) + Forwarded,
                         slots => Slots}};
        Expected ->
            {error, io_lib:format("~b vertices were received, and not 1 + ~b x ~b = ~b",
                                  [Received, Size, length(Generators), Expected])}
    end.

%% Credit goes to the master by way of the submaster, if there is one.
messages(#{sent := Sent, returned := Returned}, #state{is_grouped = false}) -> Sent + Returned;
messages(#{sent := Sent, returned := Returned}, #state{credits = Credits}) ->
    Sent + Returned + Credits.

report(Process) ->
    receive
        {report, Process, Report} -> {[Report], 0};
        {report, Process, Reports, Forwarded} -> {Reports, Forwarded};
        {'EXIT', Pid, Why} when Why =/= normal -> weft_bench_program:lost(Pid, Why)
    end.

result(Reports) ->
    Sum = fun(Key) -> lists:sum([map_get(Key, Report) || Report <- Reports]) end,
    Max = fun(Key) -> lists:max([map_get(Key, Report) || Report <- Reports]) end,
    maps:from_list([{Key, Sum(Key)}
                    || Key <- [size, sum, received, returned, sent, used_slots]]
                   ++ [{Key, Max(Key)} || Key <- [deepest, fullest_slot]]).

%% @doc Nothing is left to stop: who has reported has ended.
-spec stop(#state{}) -> ok.
stop(#state{}) -> ok.
