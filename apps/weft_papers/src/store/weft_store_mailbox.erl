%% SPDX-License-Identifier: Apache-2.0
%% @doc How many messages wait on a node for the one of its registered processes for which most
%% wait, looked at again and again. A process through which all requests go has a name; those of
%% single requests have none, and are not looked at.
-module(weft_store_mailbox).

-export([start/1, stop/1, of_all/1]).

-define(TOGETHER_MS, 100).

%% @doc Looks until it is stopped.
-spec start(EveryMs :: pos_integer()) -> pid().
start(EveryMs) ->
    spawn(fun() -> look(EveryMs, erlang:monotonic_time(millisecond), []) end).

look(EveryMs, StartMs, Seen) ->
    receive
        {stop, From, Ref} -> From ! {Ref, lists:reverse(Seen)}
    after EveryMs ->
        Longest = lists:max([0 | [Length || Name <- registered(),
                                            {message_queue_len, Length} <- [length_of(Name)]]]),
        look(EveryMs, StartMs, [{erlang:monotonic_time(millisecond) - StartMs, Longest} | Seen])
    end.

%% It may have ended just now.
length_of(Name) ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> process_info(Pid, message_queue_len);
        _ -> undefined
    end.

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
