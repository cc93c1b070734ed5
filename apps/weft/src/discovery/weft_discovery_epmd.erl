%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by asking the epmd of some hosts which nodes run there:
%% `{epmd, #{hosts => ["host1", "host2"], prefix => "app"}}'.
%%
%% All hosts are asked at once. Hosts that do not answer in time are left out; it is an error only
%% if none answers. `prefix' distinguishes the nodes of several clusters on the same hosts.
-module(weft_discovery_epmd).
-behaviour(weft_discovery).

-export([discover/1]).
-export([names/1]).

%% @doc See `weft_discovery'. Error: no host answers.
-spec discover(#{hosts := [string()], prefix := string(), timeout_ms := pos_integer(), _ => _}) ->
          {ok, [node()]} | {error, {no_answer, [string()]}}.
discover(#{hosts := Hosts, prefix := Prefix, timeout_ms := TimeoutMs}) ->
    Asked = [{Host, spawn_monitor(?MODULE, names, [Host])} || Host <- Hosts],
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    case [{Host, Names} || {Host, Asker} <- Asked, {ok, Names} <- [answer(Asker, Deadline)]] of
        [] -> {error, {no_answer, Hosts}};
        Answers -> {ok, weft_discovery_names:nodes(
                          [Name ++ "@" ++ Host || {Host, Names} <- Answers, {Name, _Port} <- Names,
                                                  lists:prefix(Prefix, Name)])}
    end.

%% @private The result is the reason of the end.
-spec names(string()) -> no_return().
names(Host) ->
    exit({names, net_adm:names(Host)}).

answer({Pid, Monitor}, Deadline) ->
    receive
        {'DOWN', Monitor, process, Pid, {names, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, Reason}
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        demonitor(Monitor, [flush]),
        exit(Pid, kill),
        {error, timeout}
    end.
