%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft doctor': the report of `weft_doctor' about a cluster, asked from here, so
%% that it does not matter whether the nodes reach each other.
-module(weft_cli_doctor).

-export([doctor/2]).

%% @doc weft doctor.
-spec doctor([], weft_argparse:given()) -> weft_cli:answer().
doctor([], Options) ->
    weft_cli_cluster:with_cluster(
      Options, fun(#{name := Name, nodes := Nodes}) ->
                       answer(Name, weft_doctor:report(Nodes))
               end).

answer(Name, #{findings := Findings} = Report) ->
    Json = Report#{name => unicode:characters_to_binary(Name),
                   findings => [json(Finding) || Finding <- Findings]},
    {outcome(Report), Json, [Name, ": ", weft_doctor:text(Report)]}.

outcome(#{errors := 0, warnings := 0}) -> ok;
outcome(#{}) -> wanting.

json(#{found := Found, why := Why, advice := Advice} = Finding) ->
    Finding#{found => unicode:characters_to_binary(Found),
             why => unicode:characters_to_binary(Why),
             advice => unicode:characters_to_binary(Advice)}.
