%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants, once settled: who was told of the end of a node, and was not started again
%% since, knows of it; and all nodes of a component know of the same ends.
%%
%% Option: `forgotten' (false): time enough has passed for all of them to know of none. Needs the
%% observer `weft_sim_answers'.
-module(weft_sim_obituary_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the two ends of each live link, and each node with what it was told.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Known = maps:map(fun(Name, _Linked) -> known(Name, World) end,
                     weft_sim_peers:linked(World)),
    case maps:get(forgotten, Options, false) of
        true -> first([{Name, News} || {Name, [_ | _] = News} <- maps:to_list(Known)],
                      "~0tp still knows of ~0tp");
        false -> all_known(Known, World)
    end.

all_known(Known, World) ->
    case first([{Name, Told -- News} || {Name, News} <- maps:to_list(Known),
                                        Told <- [told(Name, World)], Told -- News =/= []],
               "~0tp was told of ~0tp and does not know it") of
        ok -> first([{Name, map_get(Name, Known), Linked, map_get(Linked, Known)}
                     || {Name, Others} <- maps:to_list(weft_sim_peers:linked(World)),
                        Linked <- Others, map_get(Name, Known) =/= map_get(Linked, Known)],
                    "~0tp knows of ~0tp, and its neighbour ~0tp of ~0tp");
        Violation -> Violation
    end.

told(Name, World) ->
    #{Name := [Present | _]} = weft_sim_answers:lives(obituary, weft_sim_world:observed(World)),
    lists:usort([News || {told, _, News} <- Present]).

known(Name, World) ->
    lists:sort([News || {died, _, _} = News <- maps:keys(weft_sim_world:views(Name, World))]).

first([], _Format) -> ok;
first([First | _], Format) -> {violation, io_lib:format(Format, tuple_to_list(First))}.
