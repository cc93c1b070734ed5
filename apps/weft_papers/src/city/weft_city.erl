%% SPDX-License-Identifier: Apache-2.0
%% @doc The program City: a simulation (`weft_diasca') on all nodes of a cluster, after the one of
%% N. Chechina et al., "Evaluating Scalable Distributed Erlang for Scalability and Reliability",
%% IEEE TPDS 28(8), 2017, section 6.4. Any workload of the engine can be run.
%%
%% It is right if its hash is that of the same simulation without other nodes, which the caller may
%% give.
-module(weft_city).
-behaviour(weft_bench_program).

-export([plan/2, start/1, run/1, check/1, stop/1, hash/1]).

%% @doc The hash that a simulation has on this node alone.
-spec hash(map()) -> {ok, binary()} | {error, iodata()}.
hash(Options) ->
    case weft_diasca:run(map_get(workload, Options), options(Options)) of
        {ok, #{hash := Hash}} -> {ok, Hash};
        {error, Reason} -> {error, weft_diasca:format_error(Reason)}
    end.

options(Options) ->
    (maps:with([ticks, options, seed], Options))#{probes => none}.

%% @doc Options: `workload', and perhaps its `ticks', `options', `seed', and the `hash' it has to
%% have.
-spec plan(map(), [node(), ...]) -> {ok, map()} | {error, iodata()}.
plan(#{workload := Workload} = Options, Nodes) ->
    {ok, #{workload => Workload, hash => maps:get(hash, Options, any),
           options => (options(Options))#{nodes => Nodes}}}.

%% @private
start(Plan) -> Plan.

%% @private
run(#{workload := Workload, options := Options} = Plan) ->
    Plan#{outcome => weft_diasca:run(Workload, Options)}.

%% @private
check(#{outcome := {error, Reason}}) ->
    {error, weft_diasca:format_error(Reason)};
check(#{workload := Workload, outcome := {ok, #{hash := Hash} = Result}, hash := Expected})
  when Expected =:= any; Expected =:= Hash ->
    #{messages := Messages, diascas := Diascas, away := Away} = Result,
    {ok, (rate(Workload, Result))#{
           hash => Hash, program_messages => Messages, away => Away, diascas => Diascas,
           ticks => map_get(ticks, Result), acted => map_get(acted, Result),
           %% Without what it takes to load code and to start actors on all nodes.
           duration_s => map_get(wall_ms, Result) / 1000}};
check(#{outcome := {ok, #{hash := Hash}}, hash := Expected}) ->
    {error, ["the hash is ", Hash, ", and on one node it is ", Expected]}.

%% Each event of PHOLD that is handled is one message to the next actor.
rate(phold, #{messages := Messages, wall_ms := WallMs}) ->
    #{events_per_s => Messages * 1000 / max(1, WallMs)};
rate(_Workload, _Result) ->
    #{}.

%% @private
stop(_Plan) -> ok.
