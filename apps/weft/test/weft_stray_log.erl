%% SPDX-License-Identifier: Apache-2.0
%% @doc A logger handler that keeps which process logged what, until it is asked.
-module(weft_stray_log).

-export([start/0, log/2, taken/0]).

%% @doc Begins to keep what is logged from `warning' on.
-spec start() -> ok.
start() ->
    Starter = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                       ?MODULE = ets:new(?MODULE, [named_table, public, bag]),
                                       Starter ! self(),
                                       receive after infinity -> ok end
                               end),
    receive
        Pid -> demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Pid, Reason} -> erlang:error(Reason)
    end,
    logger:add_handler(?MODULE, ?MODULE, #{level => warning}).

%% @doc What has been logged since the last time: the process, and whether it was told of a stray
%% `call' or `message', or of something else.
-spec taken() -> [{pid(), call | message | {other, term()}}].
taken() ->
    Lines = ets:tab2list(?MODULE),
    lists:foreach(fun(Line) -> ets:delete_object(?MODULE, Line) end, Lines),
    [{Pid, Kind} || {_, Pid, Kind} <- Lines].

%% @private
-spec log(logger:log_event(), map()) -> ok.
log(#{msg := Message, meta := #{pid := Pid}}, _Config) ->
    true = ets:insert(?MODULE, {erlang:unique_integer(), Pid, kind(Message)}),
    ok.

kind({report, #{what := stray, kind := Kind}}) -> Kind;
kind(Other) -> {other, Other}.
