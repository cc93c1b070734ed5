%% SPDX-License-Identifier: Apache-2.0
%% @doc Stamps of messages that no queue has yet, by the process that sends them. A part of
%% `weft_causal'.
%%
%% A process that waits for room may be killed, and can not say any more that its message was not
%% sent. So it is monitored from the stamp until it says what has become of the message; its end
%% comes as `{weft_sender_ended, reference(), process, pid(), term()}'. There is an entry for each
%% message that is being sent now, so this is bounded by the processes that send.
-module(weft_causal_open).

-export([new/0, opened/4, settled/4, ended/2]).
-export_type([open/0]).

-opaque open() :: #{pid() => {Monitor :: reference(),
                              #{{node(), pos_integer()} => weft_causal_core:stamp()}}}.

-spec new() -> open().
new() -> #{}.

%% @doc A process has got the stamp for a message to that node.
-spec opened(pid(), node(), weft_causal_core:stamp(), open()) -> open().
opened(Pid, Node, {_, Number, _} = Stamp, Open) ->
    case Open of
        #{Pid := {Monitor, Stamps}} ->
            Open#{Pid := {Monitor, Stamps#{{Node, Number} => Stamp}}};
        #{} ->
            Monitor = monitor(process, Pid, [{tag, weft_sender_ended}]),
            Open#{Pid => {Monitor, #{{Node, Number} => Stamp}}}
    end.

%% @doc The message with that number is in a queue, or its sender has said that it was not sent.
-spec settled(pid(), node(), pos_integer(), open()) -> open().
settled(Pid, Node, Number, Open) ->
    case Open of
        #{Pid := {Monitor, Stamps}} ->
            case maps:remove({Node, Number}, Stamps) of
                Left when map_size(Left) =:= 0 ->
                    true = demonitor(Monitor, [flush]),
                    maps:remove(Pid, Open);
                Left ->
                    Open#{Pid := {Monitor, Left}}
            end;
        #{} -> Open
    end.

%% @doc The process has ended: what it has not sent, the first one first.
-spec ended(pid(), open()) -> {[{node(), weft_causal_core:stamp()}], open()}.
ended(Pid, Open) ->
    case maps:take(Pid, Open) of
        {{_, Stamps}, Left} ->
            {[{Node, Stamp} || {{Node, _}, Stamp} <- lists:sort(maps:to_list(Stamps))], Left};
        error -> {[], Open}
    end.
