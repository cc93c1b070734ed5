%% SPDX-License-Identifier: Apache-2.0
%% @doc The example of a topology that is not part of weft, as the guide shows it, in the simulator;
%% and bugs in such topologies, which have to be found. This module is the one with the bugs.
-module(weft_sim_own_topology_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3, validate/2, partial/2, neighbours/1]).

-define(NODES, 12).

the_guide_shows_the_example_that_is_tested_test() ->
    Page = read("docs/guide/topologies.md"),
    [_Licence, Header] = string:split(read("test/conformance/weft_chord_ring.erl"), "\n"),
    [_Doc, Code] = string:split(Header, "-module("),
    ?assert(length(string:lexemes(Code, "\n")) =< 60),
    ?assertNotEqual(nomatch, string:find(Page, "```erlang module\n-module(" ++ Code ++ "```\n")).

the_example_holds_in_the_simulator_test_() ->
    {timeout, 600, fun() ->
        [?assertMatch({Seed, #{violation := none}}, {Seed, run(weft_chord_ring, Seed, #{})})
         || Seed <- lists:seq(1, 5)]
    end}.

a_core_that_fails_is_found_test() ->
    ?assertMatch(#{violation := {_, weft_sim_own_topology_checker, "the core failed" ++ _}},
                 run(?MODULE, 1, #{bug => crash})).

links_that_are_not_dialled_again_are_found_test() ->
    ?assertMatch(#{violation := {_, weft_sim_own_topology_checker, "links that are wanted" ++ _}},
                 run(?MODULE, 1, #{bug => dials_once})).

%% --- a ring with a bug ------------------------------------------------------------------------

validate(_Self, _Options) -> ok.

partial(_Self, _Options) -> true.

init(Self, #{bug := Bug} = Options) ->
    {State, Effects} = weft_chord_ring:init(Self, maps:remove(bug, Options)),
    {{Bug, State}, Effects}.

handle({neighbour_down, _, _}, _NowMs, {crash, _}) -> error(oops);
handle({neighbour_down, _, _}, _NowMs, {dials_once, _} = State) -> {State, []};
handle(Event, NowMs, {Bug, State}) ->
    {Next, Effects} = weft_chord_ring:handle(Event, NowMs, State),
    {{Bug, Next}, Effects}.

neighbours({_Bug, State}) -> weft_chord_ring:neighbours(State).

%% --- helpers ----------------------------------------------------------------------------------

run(Module, Seed, Options) ->
    OptionsOf = fun(Nodes, _Node) -> Options#{nodes => Nodes, distances => [1, 2, 4]} end,
    weft_sim:run_own({Module, OptionsOf}, Seed, ?NODES).

read(Name) ->
    {ok, Text} = file:read_file(filename:join(root(), Name)),
    unicode:characters_to_list(Text).

root() -> hd(string:split(filename:absname(code:lib_dir(weft)), "/_build")).
