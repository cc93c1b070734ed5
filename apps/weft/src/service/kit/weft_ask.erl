%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks many nodes at once and takes the answers that come in time. A node that is silent, for
%% whatever reason (a dial that takes long, a stopped node), does not delay the others.
-module(weft_ask).

-export([all/3, all/4]).
-export([answer/2]).

%% @doc Runs Ask(Node) in a process of its own for each node, or for whatever Ask takes. Returns the
%% results that came within the time, in the order of the nodes, and the nodes that did not return,
%% failed or are no nodes. Processes that still run are killed.
-spec all([Node], fun((Node) -> Result), TimeoutMs :: non_neg_integer()) ->
          {[{Node, Result}], Silent :: [Node]}.
all(Nodes, Ask, TimeoutMs) ->
    all(Nodes, Ask, TimeoutMs, TimeoutMs).

%% @doc The same, but once half of the nodes have answered it ends PatienceMs after the last answer:
%% a node that has not answered by then is likely to be stopped, and not slow.
-spec all([Node], fun((Node) -> Result), TimeoutMs :: non_neg_integer(),
          PatienceMs :: non_neg_integer()) -> {[{Node, Result}], Silent :: [Node]}.
all(Nodes, Ask, TimeoutMs, PatienceMs) ->
    {priority, Priority} = process_info(self(), priority),
    Asked = maps:from_list([{ask(Node, Ask, Priority), Node} || Node <- Nodes]),
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    Answers = collect(Asked, Deadline, PatienceMs, #{}),
    {[{Node, map_get(Node, Answers)} || Node <- Nodes, is_map_key(Node, Answers)],
     [Node || Node <- Nodes, not is_map_key(Node, Answers)]}.

%% Who is in a hurry on a busy node asks in a hurry.
ask(Node, Ask, Priority) ->
    spawn_opt(?MODULE, answer, [Ask, Node], [monitor, {priority, Priority}]).

%% @private An `error' would be logged as a crash.
-spec answer(fun((Node) -> term()), Node) -> no_return().
answer(Ask, Node) ->
    exit(try {answer, Ask(Node)}
         catch
             _:_ -> failed
         end).

collect(Asked, _Deadline, _PatienceMs, Answers) when map_size(Asked) =:= 0 ->
    Answers;
collect(Asked, Deadline, PatienceMs, Answers) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} when is_map_key({Pid, Ref}, Asked) ->
            {Node, Rest} = maps:take({Pid, Ref}, Asked),
            Known = answered(Node, Reason, Answers),
            collect(Rest, sooner(map_size(Known) >= map_size(Rest), Deadline, PatienceMs),
                    PatienceMs, Known)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        _ = [begin
                 true = demonitor(Ref, [flush]),
                 exit(Pid, kill)
             end || {Pid, Ref} <- maps:keys(Asked)],
        Answers
    end.

sooner(true, Deadline, PatienceMs) ->
    min(Deadline, erlang:monotonic_time(millisecond) + PatienceMs);
sooner(false, Deadline, _PatienceMs) ->
    Deadline.

answered(Node, {answer, Result}, Answers) -> Answers#{Node => Result};
answered(_Node, _Failed, Answers) -> Answers.
