%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench orbit': the program Orbit once, in a space and with generators of the user
%% (`weft_orbit_own'), on a master and groups of equal size. Cells of the benchmark measure it with
%% repetitions.
-module(weft_orbit_command).

-export([command/0, main/1]).

-define(GATEWAYS, 2).

%% @doc Exit status: 0 computed, 1 it failed, 2 bad arguments.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench orbit").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "the program Orbit once, with a space and generators of yours",
      details => ["Finds all numbers below the space that the generators reach from 0. The "
                  "functions 1 to 5",
                  "are those of the paper; an own module, and what is printed: "
                  "docs/guide/workloads.md"],
      arguments =>
          [count(space, "-space", 20000, "numbers from 0 to N - 1", []),
           #{name => generators, long => "-generators", type => {custom, fun generators/1},
             value => "LIST|FILE", default => #{generators => [1, 2], modules => []},
             help => "of the functions 1 to 5, as 1,2,4, or a module of Erlang (default 1,2)"},
           count(nodes, "-nodes", 7, "a master, and groups of equal size",
                 [{max, weft_papers_program:nodes_max()}]),
           count(groups, "-groups", 2, "so many", []),
           #{name => grouped, long => "-grouped", type => boolean,
             help => "vertices for another group pass gateways of the program"},
           count(workers, "-workers", 2, "on each node but the master's", []),
           #{name => gateways, long => "-gateways", type => {integer, [{min, 1}]}, value => "N",
             help => ["of each group, with --grouped (default ", integer_to_list(?GATEWAYS), ")"]}
           | weft_papers_program:arguments(stock)],
      handler => fun given/1}.

count(Name, Long, Default, Help, Limits) ->
    #{name => Name, long => Long, type => {integer, [{min, 1} | Limits]}, value => "N",
      default => Default, help => [Help, " (default ", integer_to_list(Default), ")"]}.

generators(Text) ->
    case re:run(Text, "^[0-9,]+$") of
        {match, _} -> #{generators => numbers(Text), modules => []};
        nomatch -> own(Text, filelib:is_regular(Text))
    end.

numbers(Text) ->
    Words = string:lexemes(Text, ","),
    case lists:usort([list_to_integer(Word) || Word <- Words]) of
        [_ | _] = Numbers when length(Numbers) =:= length(Words) ->
            Numbers -- weft_orbit_generators:all() =:= [] orelse throw(wanted()),
            Numbers;
        _ ->
            throw(wanted())
    end.

wanted() ->
    "different numbers from 1 to 5 with commas, as 1,2,4, or a file with a module of Erlang, which "
    "ends in .erl".

own(File, false) -> throw([wanted(), "; there is no file ", File]);
own(File, true) ->
    case weft_orbit_own:read(File) of
        {ok, Own} -> Own;
        {error, Text} -> throw(["a module with generators; ", Text])
    end.

given(#{gateways := _} = Given) when not is_map_key(grouped, Given) ->
    weft_bench_arguments:status({error, "--gateways is for --grouped, which is missing"});
given(#{nodes := Count, groups := Groups} = Given) ->
    case Count > Groups andalso (Count - 1) rem Groups of
        0 -> run(Given, weft_orbit_workload:groups(Groups, (Count - 1) div Groups));
        _ ->
            Text = io_lib:format("--nodes ~b --groups ~b: a master and groups of equal size are 1 "
                                 "and ~b times as many nodes as a group has, ~b for groups of 3",
                                 [Count, Groups, Groups, 1 + 3 * Groups]),
            weft_bench_arguments:status({error, Text})
    end.

run(#{nodes := Count, generators := #{modules := Modules}} = Given, [_ | Groups] = All) ->
    Options = fun(Names) -> options(Given, Groups, list_to_tuple(Names)) end,
    weft_papers_program:lines(
      values(weft_papers_program:run(weft_orbit, Options, weft_bench_cluster:shape(Count, All),
                                     Modules, Given))).

options(#{generators := #{generators := Generators}} = Given, Groups, Names) ->
    Options = (maps:with([space, workers], Given))#{generators => Generators},
    case Given of
        #{grouped := true} ->
            Options#{gateways => maps:get(gateways, Given, ?GATEWAYS),
                     groups => [[element(Number, Names) || Number <- Group] || Group <- Groups]};
        #{} ->
            Options
    end.

values({ok, Result}) ->
    {ok, [{atom_to_list(Key), map_get(Key, Result)}
          || Key <- [size, sum, duration_s, program_messages, connections_max, connections_mean,
                     received_packets, received_bytes]]};
values({error, _} = Error) ->
    Error.
