%% SPDX-License-Identifier: Apache-2.0
%% @doc How many messages wait on a node for the one of its processes for which most wait, looked at
%% again and again. It may look at registered processes (`named') only, which are few: a process
%% through which all requests go has a name. Or at all of them, those of single requests, too. What
%% comes and goes between two looks is not seen.
-module(weft_store_mailbox).

-export([start/2, stop/1, of_all/1]).
-export_type([which/0]).

-type which() :: named | all.

-define(TOGETHER_MS, 100).

%% @doc Looks until it is stopped.
-spec start(which(), EveryMs :: pos_integer()) -> pid().
start(Which, EveryMs) ->
    spawn(fun() -> look(Which, EveryMs, erlang:monotonic_time(millisecond), []) end).

look(Which, EveryMs, StartMs, Seen) ->
    receive
        {stop, From, Ref} -> From ! {Ref, lists:reverse(Seen)}
    after EveryMs ->
        %% One that has ended just now has none.
        Longest = lists:max([0 | [Length || Pid <- pids(Which),
                                            {_, Length} <- [process_info(Pid,
                                                                         message_queue_len)]]]),
        look(Which, EveryMs, StartMs,
             [{erlang:monotonic_time(millisecond) - StartMs, Longest} | Seen])
    end.

pids(named) -> [Pid || Name <- registered(), Pid <- [whereis(Name)], is_pid(Pid)];
pids(all) -> processes().

%% @doc What was seen: milliseconds since the start, and messages.
-spec stop(pid()) -> [{AtMs :: non_neg_integer(), Messages :: non_neg_integer()}].
stop(Looking) ->
    Ref = make_ref(),
    Looking ! {stop, self(), Ref},
    receive {Ref, Seen} -> Seen after 10000 -> erlang:error(no_answer) end.

%% @doc What was seen on several nodes: the most on any of them, for each time of a look.
-spec of_all([[{AtMs :: non_neg_integer(), Messages :: non_neg_integer()}]]) ->
          [{AtMs :: non_neg_integer(), Messages :: non_neg_integer()}].
of_all(Nodes) ->
    Most = lists:foldl(fun({AtMs, Messages}, Seen) ->
                           maps:update_with(AtMs - AtMs rem ?TOGETHER_MS,
                                            fun(Before) -> max(Before, Messages) end, Messages,
                                            Seen)
                       end, #{}, lists:append(Nodes)),
    lists:sort(maps:to_list(Most)).
