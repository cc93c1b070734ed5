%% SPDX-License-Identifier: Apache-2.0
%% @doc Acknowledged messages of a label that their senders may still send again, by the process
%% that sends them. A part of `weft_causal'.
%%
%% If such a message is lost with its queue, its number is not given up yet: it comes once more,
%% unless its sender ends first. So a sender is monitored until it says that it has done with its
%% messages; its end comes as `{weft_sender_ended, reference(), process, pid(), term()}'. There is
%% an entry for each message that is being sent now, so this is bounded by the processes that send.
-module(weft_causal_open).

-export([new/0, opened/4, settled/3, ended/2, numbers/2]).
-export_type([open/0, place/0]).

%% Whom the message is for, and its number.
-type place() :: {weft_causal_core:participant(), pos_integer()}.
-opaque open() :: #{pid() => {Monitor :: reference(), #{place() => Queue :: pid()}}}.

-spec new() -> open().
new() -> #{}.

%% @doc A queue has the message of a process with that place.
-spec opened(pid(), place(), Queue :: pid(), open()) -> open().
opened(Pid, Place, Queue, Open) ->
    case Open of
        #{Pid := {Monitor, Places}} ->
            Open#{Pid := {Monitor, Places#{Place => Queue}}};
        #{} ->
            Monitor = monitor(process, Pid, [{tag, weft_sender_ended}]),
            Open#{Pid => {Monitor, #{Place => Queue}}}
    end.

%% @doc The process does not send its message with that place again. Returns the queue that had it
%% last; `none' if that is not known.
-spec settled(pid(), place(), open()) -> {Queue :: pid() | none, open()}.
settled(Pid, Place, Open) ->
    case Open of
        #{Pid := {Monitor, #{Place := Queue} = Places}} when map_size(Places) =:= 1 ->
            true = demonitor(Monitor, [flush]),
            {Queue, maps:remove(Pid, Open)};
        #{Pid := {Monitor, #{Place := Queue} = Places}} ->
            {Queue, Open#{Pid := {Monitor, maps:remove(Place, Places)}}};
        #{} ->
            {none, Open}
    end.

%% @doc The process has ended: what it does not send again, and the queues that had it last.
-spec ended(pid(), open()) -> {[{place(), Queue :: pid()}], open()}.
ended(Pid, Open) ->
    case maps:take(Pid, Open) of
        {{_, Places}, Left} -> {maps:to_list(Places), Left};
        error -> {[], Open}
    end.

%% @doc The numbers of all messages for a participant that may come again.
-spec numbers(weft_causal_core:participant(), open()) -> [pos_integer()].
numbers(To, Open) ->
    [Number || {_, Places} <- maps:values(Open), {Who, Number} <- maps:keys(Places), Who =:= To].
