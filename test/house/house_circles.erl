%% SPDX-License-Identifier: Apache-2.0
%% @doc No module of apps/weft needs itself by way of others: then each can be read, tested and
%% changed with only those below it in mind. One needs another if it calls it, names one of its
%% functions in a fun, or implements its behaviour; drawn from the compiled code. What is called by
%% way of a variable (a handler, a child of a supervisor) is not seen, and is not meant.
-module(house_circles).

-export([rules/0, check/1]).

-define(LIBRARY, weft).

-spec rules() -> [atom()].
rules() ->
    [circle].

%% @doc One problem for each set of modules that need each other; it counts as many as there are.
-spec check(house_facts:facts()) -> [house:problem()].
check(#{modules := Modules}) ->
    Library = maps:filter(fun(_, #{app := App}) -> App =:= ?LIBRARY end, Modules),
    Graph = digraph:new(),
    _ = [digraph:add_vertex(Graph, Module) || Module <- maps:keys(Library)],
    _ = [digraph:add_edge(Graph, Module, Other) || {Module, Facts} <- maps:to_list(Library),
                                                   Other <- needs(Facts), Other =/= Module],
    Problems = [problem(lists:sort(Circle), Graph, Library)
                || Circle <- digraph_utils:cyclic_strong_components(Graph)],
    true = digraph:delete(Graph),
    lists:sort(Problems).

needs(#{calls := Calls, behaviours := Behaviours}) ->
    lists:usort(Behaviours ++ [Module || {_, _, {Module, _, _}} <- Calls]).

problem([First | _] = Circle, Graph, Library) ->
    #{First := #{file := File}} = Library,
    Way = digraph:get_short_cycle(Graph, First),
    Problem = house:problem(circle, File, 1, joined(", ", Circle),
                            ["break the circle of ", joined(", ", Circle), ", for example ",
                             joined(" -> ", Way)]),
    Problem#{value := length(Circle)}.

joined(Separator, Modules) ->
    lists:flatten(lists:join(Separator, [atom_to_list(Module) || Module <- Modules])).
