%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of a profile: one HTML file that needs no network and no script. First what there
%% is to know about the recording itself, then concurrency, messages, and what ran, waited and
%% collected garbage most. Pure.
-module(weft_profile_page).

-export([page/2]).

-define(T, weft_report_html:tag).
-define(E, weft_report_html:text).
-define(PARTS, 200).
-define(ARROWS_ALL, 250).
-define(ARROWS_NEAR, 24).
-define(WIDTH, 1100).
-define(HEIGHT, 130).
-define(LEFT, 40).

%% @doc The page, with links to files beside it: their paths from there.
-spec page(weft_profile_recording:profile(), [file:filename()]) -> weft_report_html:html().
page(#{nodes := Sides, to := To} = Profile, Files) ->
    Summary = weft_profile_summary:summary(Profile),
    Title = io_lib:format("Profile of ~ts over ~.1f s", [subject(Sides), To / 1.0e9]),
    ["<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
     ?T(title, [], ?E(Title)), "\n<style>\n", style(), "</style></head>\n<body>\n",
     ?T(h1, [], ?E(Title)), links(Files), recording(Summary), concurrency(Profile),
     messages(Profile, Summary), processes(Summary), "\n</body></html>\n"].

links(Files) ->
    ?T(p, [], lists:join(" \xb7 ", [?T(a, [{href, File}], ?E(called(File))) || File <- Files])).

called("speedscope/" ++ _) -> "Open the trace in speedscope";
called("flame.svg") -> "Stacks";
called(File) -> File.

subject([#{node := Node}]) -> short(Node);
subject(Sides) -> integer_to_list(length(Sides)) ++ " nodes".

section(Title, Explained, Content) ->
    ?T(section, [], [?T(h2, [], ?E(Title)), ?T(p, [{class, "dim"}], ?E(Explained)), Content, "\n"]).

%% --- the recording ----------------------------------------------------------------------------

recording(#{nodes := Nodes, counts := Counts}) ->
    #{paired := Paired, not_received := NotReceived, not_sent := NotSent} = Counts,
    Cut = [[short(Node), " stopped before its time: ", reason(Ended)]
           || #{node := Node, ended := Ended} <- Nodes, Ended =/= time],
    [[?T(p, [{class, "warning"}], ?E(Text)) || Text <- Cut], sampled(Nodes),
     section("Nodes",
             "Busy is the mean number of schedulers that ran a traced process or port. Clocks of "
             "nodes are compared by messages; a time on one node may be wrong by its clock error.",
             table(
               ["Node", "Seconds", "Traced, ms", "Events", "Schedulers", "Busy", "Run queue, mean",
                "max", "GC, ms", "Migrations", "Clock error, µs"],
               [[short(Node), Ms / 1000, Traced, Events, Schedulers, Busy, Mean, Max, GcMs,
                 Migrations, ErrorUs]
                || #{node := Node, ms := Ms, traced_ms := Traced, events := Events,
                     schedulers := Schedulers, busy := Busy, queue_mean := Mean,
                     queue_max := Max, gc_ms := GcMs,
                     migrations := Migrations, clock_error_us := ErrorUs} <- Nodes])),
     ?T(p, [{class, "dim"}],
        ?E(io_lib:format("~b messages between these nodes have both ends in the recording; of ~b "
                         "only the sending was seen, of ~b only the arrival, and these are left "
                         "out. Answers of the runtime to remote spawns are never sent, and count "
                         "among the latter.", [Paired, NotReceived, NotSent])))].

sampled(Nodes) ->
    [?T(p, [], ?E(io_lib:format("~ts was traced for ~b ms of each ~b ms, ~b times: what is here of "
                                "slices, messages, collections and migrations is from that time "
                                "only. Run queues and stacks were looked at all of the time.",
                                [short(Node), Ms, EveryMs, Windows])))
     || #{node := Node, windows := Windows, sampled := #{window_ms := Ms, every_ms := EveryMs}}
            <- Nodes].

short(Node) -> weft_profile_recording:short(Node).

reason(events) -> "there were as many events as may be kept";
reason(rate) -> "there were more events per second than it was allowed to record";
reason(bytes) -> "what was recorded took as much memory as it may";
reason(waiting) -> "events came faster than they could be written down";
reason(stopped) -> "it was told to".

%% --- concurrency ------------------------------------------------------------------------------

concurrency(#{nodes := Sides, to := To}) ->
    section("Concurrency",
            "Dark: processes and ports that run. Light, on top of it: those that wait in run "
            "queues, as they were seen at regular times. The line is the number of schedulers: "
            "what is above it could run at once with more of them. Between the times that were "
            "traced lines are straight.",
            [?T(figure, [], [?T(figcaption, [], ?E(short(Node))), concurrency(Side, To)])
             || #{node := Node} = Side <- Sides]).

concurrency(#{schedulers := Schedulers} = Side, To) ->
    Points = case weft_profile_summary:concurrency(Side, To, ?PARTS) of
                 [] -> [{0, 0, 0}];
                 Some -> Some
             end,
    Highest = lists:max([Schedulers | [Running + Waiting || {_, Running, Waiting} <- Points]]),
    X = fun(Ns) -> ?LEFT + Ns / max(1, To) * (?WIDTH - ?LEFT - 8) end,
    Y = fun(Value) -> ?HEIGHT - 22 - Value / Highest * (?HEIGHT - 34) end,
    ?T(svg, [{viewBox, lists:concat(["0 0 ", ?WIDTH, " ", ?HEIGHT])}, {class, "chart"},
             {role, "img"}, {'aria-label', "running and waiting processes over time"}],
       [area("waits", [{X(Ns), Y(Running + Waiting)} || {Ns, Running, Waiting} <- Points], Y(0)),
        area("runs", [{X(Ns), Y(Running)} || {Ns, Running, _} <- Points], Y(0)),
        ?T(line, [{x1, ?LEFT}, {x2, ?WIDTH - 8}, {y1, Y(Schedulers)}, {y2, Y(Schedulers)},
                  {class, "limit"}]),
        [?T(text, [{x, ?LEFT - 6}, {y, Y(Value) + 4}, {class, "y"}], ?E(Text))
         || {Value, Text} <- [{0, "0"}, {Highest, number(Highest)}]],
        [?T(text, [{x, X(To * Part / 5)}, {y, ?HEIGHT - 6}, {class, "x"}],
            ?E(io_lib:format("~.2f s", [To * Part / 5.0e9]))) || Part <- [1, 2, 3, 4]]]).

number(Number) when is_integer(Number) -> integer_to_list(Number);
number(Number) -> io_lib:format("~.1f", [Number]).

area(Class, [{First, _} | _] = Points, Base) ->
    {Last, _} = lists:last(Points),
    ?T(polygon, [{class, Class},
                 {points, lists:join(" ", [io_lib:format("~.1f,~.1f", [float(X), float(Y)])
                                           || {X, Y} <- [{First, Base} | Points]
                                                  ++ [{Last, Base}]])}]).

%% --- messages ---------------------------------------------------------------------------------

messages(#{flows := []}, _Summary) ->
    section("Messages between nodes", "None of these nodes sent a message to another one of them.",
            []);
messages(#{flows := Flows, to := To} = Profile, #{messages := Rows, talks := Talks}) ->
    section("Messages between nodes",
            "From the moment of sending to that in which the receiver takes the message from the "
            "network; how long it then waits in the queue of the process is not in it.",
            [table(
               ["From", "To", "Messages", "Median, µs", "99 %, µs", "Longest, µs", "Way"],
               [[short(From), short(Other), Count, P50, P99, Max, way(Way)]
                || #{from := From, to := Other, count := Count, p50_us := P50, p99_us := P99,
                     max_us := Max, way := Way} <- Rows]),
             talks(Talks, length(Flows)),
             ?T(figure, [],
                [?T(figcaption, [], "Close up: the messages that are nearest to each other"),
                 weft_profile_timeline:picture(
                   weft_profile_timeline:busiest(Flows, ?ARROWS_NEAR), around, Profile)]),
             ?T(figure, [],
                [?T(figcaption, [], "The whole time; of many messages some"),
                 weft_profile_timeline:picture(
                   weft_profile_timeline:spread(Flows, ?ARROWS_ALL), {0, To}, Profile)])]).

talks(Talks, Of) ->
    Counts = [Count || #{count := Count} <- Talks],
    [?T(figure, [],
        [?T(figcaption, [],
            ?E(io_lib:format("Which processes talk to which: ~b of ~b messages. Left who sends, "
                             "right who receives; a wide line is many messages",
                             [lists:sum(Counts), Of]))),
         weft_profile_talks:picture(Talks)]),
     table(["Sender", "On", "Receiver", "On", "Messages", "Median, µs", "Kinds"],
           [[Process, short(From), Other, short(To), Count, P50,
             lists:join(", ", [Kind || #{kind := Kind} <- Kinds])]
            || #{from := From, from_process := Process, to := To, to_process := Other,
                 count := Count, p50_us := P50, kinds := Kinds} <- Talks])].

way([]) -> "not known";
way([_, _]) -> "direct";
way(Nodes) -> lists:join(" - ", [short(Node) || Node <- Nodes]).

%% --- processes --------------------------------------------------------------------------------

processes(#{running := Running, ports := Ports, waiting := Waiting, gc := Gc}) ->
    [section("What ran most",
             "Slices are how often a process was scheduled in, migrations how often on another "
             "scheduler than before.",
             table(
               ["Process", "Node", "Ran, ms", "Slices", "Migrations"],
               [[Process, short(Node), Ms, Slices, Migrations]
                || #{process := Process, node := Node, running_ms := Ms, slices := Slices,
                     migrations := Migrations} <- Running])),
     section("Ports that ran most",
             "Sockets, files and programs, with what owns them. A port is called by a process, "
             "within the time of that, or it has something of its own to do, such as input.",
             table(
               ["Port", "Node", "Ran, ms", "Slices", "Called"],
               [[Port, short(Node), Ms, Slices, Called]
                || #{port := Port, node := Node, running_ms := Ms, slices := Slices,
                     called := Called} <- Ports])),
     section("What waited most for a scheduler",
             "An estimate, from how often a process was seen in a run queue.",
             table(
               ["Process", "Node", "Waited, ms", "Times seen"],
               [[Process, short(Node), Ms, Seen]
                || #{process := Process, node := Node, waiting_ms := Ms, seen := Seen}
                       <- Waiting])),
     section("What collected garbage most", "Minor collections, and major ones.",
             table(
               ["Process", "Node", "GC, ms", "Minor", "Major"],
               [[Process, short(Node), Ms, Minor, Major]
                || #{process := Process, node := Node, gc_ms := Ms, minor := Minor,
                     major := Major} <- Gc]))].

%% A table of texts; a number is a cell of its own kind. The first cell of a row is its header.
table(Heads, Rows) ->
    ?T('div', [{class, "table"}],
        ?T(table, [], [?T(thead, [], ?T(tr, [], [?T(th, [{scope, "col"}], ?E(Head))
                                                    || Head <- Heads])),
                        ?T(tbody, [], [?T(tr, [], row(Row)) || Row <- Rows])])).

row([First | Rest]) ->
    [?T(th, [{scope, "row"}], ?E(cell(First))) | [data(Cell) || Cell <- Rest]].

data(Number) when is_number(Number) -> ?T(td, [{class, "number"}], cell(Number));
data(Text) -> ?T(td, [], ?E(Text)).

cell(Number) when is_integer(Number) -> integer_to_list(Number);
cell(Number) when is_float(Number) -> float_to_list(Number, [{decimals, 2}]);
cell(Text) -> Text.

style() ->
    ":root { color-scheme: light dark; --text: #1c1e21; --dim: #5b6168; --ground: #fff;\n"
    "  --line: #d8dbdf; --soft: #f4f5f6; --run: #0060a8; --wait: #e0a64a; --gc: #a8201a;\n"
    "  --flow: #b3400e; }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #e4e6e8; --dim: #a4aab1;\n"
    "  --ground: #17191c; --line: #3a3f45; --soft: #212429; --run: #62b4f0; --wait: #8a6a2a;\n"
    "  --gc: #ff8b80; --flow: #f2925f; } }\n"
    "body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground);\n"
    "  max-width: 82rem; margin: 0 auto; padding: 1.5rem; }\n"
    "h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; }\n"
    "p { max-width: 50rem; margin: .4rem 0; } .dim, figcaption { color: var(--dim); }\n"
    ".warning { border-left: 4px solid var(--flow); padding-left: .8rem; font-weight: 600; }\n"
    "figure { margin: .8rem 0; } .table { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left;\n"
    "  vertical-align: top; font-weight: normal; overflow-wrap: anywhere; }\n"
    "thead th { font-weight: 600; border-bottom: 2px solid var(--line); }\n"
    ".number { text-align: right; white-space: nowrap; }\n"
    ".chart { width: 100%; background: var(--soft); border-radius: 4px; display: block; }\n"
    ".chart text { font: 11px system-ui, sans-serif; fill: var(--dim); }\n"
    ".chart .heading { font-weight: 600; fill: var(--text); } .chart .y { text-anchor: end; }\n"
    ".chart .x { text-anchor: middle; } .grid { stroke: var(--line); stroke-width: .7; }\n"
    ".run, .runs { fill: var(--run); } .waits { fill: var(--wait); } .gc { fill: var(--gc); }\n"
    ".limit { stroke: var(--dim); stroke-dasharray: 4 3; }\n"
    ".flow { stroke: var(--flow); stroke-width: 1.2; fill: none; } .head { fill: var(--flow); }\n"
    ".talk { stroke: var(--flow); stroke-opacity: .6; fill: none; }\n".
