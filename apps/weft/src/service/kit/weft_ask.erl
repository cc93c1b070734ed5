%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks many nodes at once and takes the answers that come in time. A node that is silent, for
%% whatever reason (a dial that takes long, a stopped node), does not delay the others.
-module(weft_ask).

-export([all/3, all/4, first/5]).
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
    asked(Nodes, Ask, fun(_Result) -> false end, TimeoutMs, PatienceMs).

%% @doc The first result for which IsEnough holds, or `none' if no node gives such a one within the
%% time. It does not wait for the others; if it has to, it ends as all/4 does.
-spec first([Node], fun((Node) -> Result), IsEnough :: fun((Result) -> boolean()),
            TimeoutMs :: non_neg_integer(), PatienceMs :: non_neg_integer()) ->
          {ok, Result} | none.
first(Nodes, Ask, IsEnough, TimeoutMs, PatienceMs) ->
    {Answers, _Silent} = asked(Nodes, Ask, IsEnough, TimeoutMs, PatienceMs),
    case [Result || {_, Result} <- Answers, IsEnough(Result)] of
        [Result | _] -> {ok, Result};
        [] -> none
    end.

asked(Nodes, Ask, IsEnough, TimeoutMs, PatienceMs) ->
    {priority, Priority} = process_info(self(), priority),
    Asked = maps:from_list([{ask(Node, Ask, Priority), Node} || Node <- Nodes]),
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    Answers = collect(Asked, IsEnough, Deadline, PatienceMs, #{}),
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

collect(Asked, _IsEnough, _Deadline, _PatienceMs, Answers) when map_size(Asked) =:= 0 ->
    Answers;
collect(Asked, IsEnough, Deadline, PatienceMs, Answers) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} when is_map_key({Pid, Ref}, Asked) ->
            {Node, Rest} = maps:take({Pid, Ref}, Asked),
            Known = answered(Node, Reason, Answers),
            case is_enough(Reason, IsEnough) of
                true ->
                    ok = stop(Rest),
                    Known;
                false ->
                    Sooner = sooner(map_size(Known) >= map_size(Rest), Deadline, PatienceMs),
                    collect(Rest, IsEnough, Sooner, PatienceMs, Known)
            end
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        ok = stop(Asked),
        Answers
    end.

stop(Asked) ->
    lists:foreach(fun({Pid, Ref}) ->
                      true = demonitor(Ref, [flush]),
                      exit(Pid, kill)
                  end, maps:keys(Asked)).

is_enough({answer, Result}, IsEnough) -> IsEnough(Result);
is_enough(_Failed, _IsEnough) -> false.

sooner(true, Deadline, PatienceMs) ->
    min(Deadline, erlang:monotonic_time(millisecond) + PatienceMs);
sooner(false, Deadline, _PatienceMs) ->
    Deadline.

answered(Node, {answer, Result}, Answers) -> Answers#{Node => Result};
answered(_Node, _Failed, Answers) -> Answers.
