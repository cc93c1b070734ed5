%% SPDX-License-Identifier: Apache-2.0
%% @doc The curves of a large peer-to-peer cluster (`weft_sim_curves') as a page with plots that
%% needs nothing else, and the numbers behind them as comma-separated values beside it.
-module(weft_sim_report).

-export([print/1, write/3, file/0]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
-define(NODES, 1000).
-define(SEED, 1).

%% @doc Simulates, writes, and says where; misses no limit, since the tables have the limits.
-spec print(quick | full) -> [].
print(_Size) ->
    io:format("~nPlots of a peer-to-peer cluster of ~b nodes~n", [?NODES]),
    ok = write(file(), ?NODES, ?SEED),
    io:format("Plots are in ~ts, their numbers beside it~n", [file()]),
    [].

%% @doc The page; the numbers are written to the same name with `.csv'.
-spec write(file:filename(), NodeCount :: pos_integer(), Seed :: integer()) -> ok.
write(File, NodeCount, Seed) ->
    Curves = weft_sim_curves:run(NodeCount, Seed),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(filename:rootname(File) ++ ".csv", csv(Curves)),
    Page = weft_report_html:page("Peer to peer, simulated", weft_report_html:style(),
                                 [header(NodeCount, Seed), charts(Curves)]),
    ok = file:write_file(File, Page).

%% @doc Where the page is written.
-spec file() -> file:filename().
file() ->
    filename:join(os:getenv("REBAR_BASE_DIR", "_build"), "sim/report.html").

csv(Curves) ->
    [weft_report_csv:line(["plot", "curve", "x", "y"])
     | [weft_report_csv:line([Plot, Curve, X, Y]) || {Plot, Curve, Points} <- Curves,
                                                     {X, Y} <- Points]].

header(NodeCount, Seed) ->
    ?E(header, [], [?E(h1, [], ?T("Peer to peer, simulated")),
                    ?E(p, [{class, "dim"}],
                       ?T(io_lib:format("HyParView and Plumtree, ~b nodes, seed ~b, in virtual "
                                        "time. Numbers: report.csv", [NodeCount, Seed])))]).

charts(Curves) ->
    ?E('div', [{class, "charts"}],
       [figure(Plot, [{Curve, Points} || {Of, Curve, Points} <- Curves, Of =:= Plot])
        || Plot <- [convergence, neighbours, degrees, paths, last_hop, redundancy, reliability,
                    crash_ms, recovery, recovery_ms]]).

figure(Plot, Curves) ->
    {Title, Description, XLabel, YLabel} = words(Plot),
    Numbered = lists:enumerate(Curves),
    ?E(figure, [],
       [weft_report_svg:chart(
          #{title => Title, description => Description, x_label => XLabel, y_label => YLabel,
            x => linear, y => linear, y_text => fun text/1,
            series => [#{name => name(Curve), class => class(N), shape => N - 1,
                         points => [{X, Y, Y, Y, text(Y)} || {X, Y} <- Points]}
                       || {N, {Curve, Points}} <- Numbered]}),
        ?E(p, [{class, "legend"}],
           [?E(span, [], [weft_report_svg:marker(class(N), N - 1), " ", ?T(name(Curve))])
            || length(Curves) > 1, {N, {Curve, _}} <- Numbered]),
        ?E(figcaption, [], ?T(Description)), "\n"]).

words(convergence) ->
    {"Coming together", "Share of the nodes that are in the largest connected part, and that have "
     "all five neighbours, as both ends see it.", "seconds since the first node", "% of nodes"};
words(neighbours) ->
    {"Neighbours over time", "Mean number of neighbours.", "seconds since the first node", ""};
words(degrees) ->
    {"Neighbours per node", "Share of the nodes with each number of neighbours, at the end.",
     "neighbours", "% of nodes"};
words(paths) ->
    {"Paths", "Share of the shortest paths with each number of links, at the end.", "links",
     "% of paths"};
words(last_hop) ->
    {"Hops to the last node", "Each broadcast: over how many hops the last node gets it. One node "
     "sends all, or each is sent by another.", "broadcast", "hops"};
words(redundancy) ->
    {"Redundancy", "Each broadcast: full messages over those needed, less one. The first finds the "
     "tree.", "broadcast", ""};
words(reliability) ->
    {"Right after a crash", "Share of the living nodes that a broadcast reaches, of those sent "
     "from the moment of the crash on: mean, and the worst.", "% of nodes crashed", "% reached"};
words(crash_ms) ->
    {"Right after a crash: time", "Mean time until the last node has it. What the tree does not "
     "bring comes with the next comparison with a neighbour.", "% of nodes crashed", "ms"};
words(recovery_ms) ->
    {"Recovery: time", "Mean time until the last node has it, by when it was sent.",
     "shuffle cycles since the crash", "ms"};
words(recovery) ->
    {"Recovery", "Mean share of the living nodes that broadcasts reach, by when they were sent.",
     "shuffle cycles since the crash", "% reached"}.

name(Curve) -> lists:flatten(string:replace(atom_to_list(Curve), "_", " ", all)).

class(N) -> "s" ++ integer_to_list(N).

text(Value) when Value == round(Value) -> integer_to_list(round(Value));
text(Value) -> io_lib:format("~.2f", [Value]).
