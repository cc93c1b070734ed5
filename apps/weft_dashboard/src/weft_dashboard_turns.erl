%% SPDX-License-Identifier: Apache-2.0
%% @doc What browsers ask, and what costs something, is done a few at a time; others wait for a
%% turn. All of it takes bounded time, and ends with the one who has asked.
-module(weft_dashboard_turns).

-export([in_time/2, in_turn/2, watched/2]).
-export([watch/2]).
-export_type([what/0]).

%% To read a recording, or to ask other nodes.
-type what() :: read | ask.

%% Who has a turn has one of these names.
-define(READERS, [weft_dashboard_reader_1, weft_dashboard_reader_2, weft_dashboard_reader_3,
                  weft_dashboard_reader_4]).
-define(ASKERS, [weft_dashboard_asker_1, weft_dashboard_asker_2, weft_dashboard_asker_3,
                 weft_dashboard_asker_4, weft_dashboard_asker_5, weft_dashboard_asker_6,
                 weft_dashboard_asker_7, weft_dashboard_asker_8]).

%% @doc What Fun returns within that time, in a process of its own.
-spec in_time(TimeoutMs :: pos_integer(), fun(() -> Answer)) -> {ok, Answer} | late.
in_time(TimeoutMs, Fun) ->
    Asker = self(),
    case weft_ask:all([asked], fun(asked) -> watched(Asker, Fun) end, TimeoutMs) of
        {[{asked, Answer}], []} -> {ok, Answer};
        {[], [asked]} -> late
    end.

%% @doc What Fun returns; if Asker ends before, this process does.
-spec watched(Asker :: pid(), fun(() -> Answer)) -> Answer.
watched(Asker, Fun) ->
    _ = spawn(?MODULE, watch, [Asker, self()]),
    Fun().

%% @private A browser that closes its connection ends who asked, and nobody waits for the worker.
-spec watch(Asker :: pid(), Worker :: pid()) -> true.
watch(Asker, Worker) ->
    [_, _] = [monitor(process, Pid) || Pid <- [Asker, Worker]],
    receive {'DOWN', _, process, _, _} -> exit(Worker, kill) end.

%% @doc What Fun returns, when this process has its turn. A name is given back by the end of who has
%% it: a process has one turn. There are no more who wait than connections.
-spec in_turn(what(), fun(() -> Answer)) -> Answer.
in_turn(What, Fun) ->
    Names = names(What),
    case lists:any(fun takes/1, Names) of
        true ->
            Fun();
        false ->
            Ends = [monitor(process, Name) || Name <- Names],
            receive {'DOWN', _, process, _, _} -> ok end,
            lists:foreach(fun(End) -> demonitor(End, [flush]) end, Ends),
            in_turn(What, Fun)
    end.

names(read) -> ?READERS;
names(ask) -> ?ASKERS.

takes(Name) ->
    try register(Name, self()) catch error:badarg -> false end.
