%% SPDX-License-Identifier: Apache-2.0
%% @doc A picture (SVG) of messages between nodes: a row for each process that takes part, below its
%% node, when it ran, and an arrow for each message from where it was sent to where it arrived.
%% Gateways between the nodes have a row with all that ran on them. Pure.
-module(weft_profile_timeline).

-export([picture/3, busiest/2, spread/2, fitting/1]).

-define(T, weft_report_html:tag).
-define(E, weft_report_html:text).
-define(WIDTH, 1100).
-define(LEFT, 270).
-define(RIGHT, 12).
-define(ROW, 24).
-define(HEAD, 20).
-define(TOP, 8).
-define(SLICES_MAX, 1500).
%% More processes of a node than that do not fit.
-define(ROWS_MAX, 8).
-define(LABEL_LETTERS, 38).

%% @doc The flows of the shortest time that has so many: close enough to see each arrow.
-spec busiest([weft_profile_flows:flow()], pos_integer()) -> [weft_profile_flows:flow()].
busiest(Flows, Count) when length(Flows) =< Count ->
    Flows;
busiest(Flows, Count) ->
    Sorted = list_to_tuple(lists:sort(fun(#{sent := A}, #{sent := B}) -> A =< B end, Flows)),
    Of = fun(N) -> element(N, Sorted) end,
    {_, First} = lists:min([{maps:get(sent, Of(N + Count - 1)) - maps:get(sent, Of(N)), N}
                            || N <- lists:seq(1, tuple_size(Sorted) - Count + 1)]),
    [Of(N) || N <- lists:seq(First, First + Count - 1)].

%% @doc At most so many flows of all, spread evenly.
-spec spread([weft_profile_flows:flow()], pos_integer()) -> [weft_profile_flows:flow()].
spread(Flows, Count) ->
    Step = max(1, ceil(length(Flows) / Count)),
    [Flow || {N, Flow} <- lists:zip(lists:seq(0, length(Flows) - 1), Flows), N rem Step =:= 0].

%% @doc The picture of some flows, between two times; `around' is shortly before the first and
%% after the last of them.
-spec picture([weft_profile_flows:flow()], around | {integer(), integer()},
              weft_profile_recording:profile()) -> weft_report_html:html().
picture(Flows, around, Profile) ->
    From = lists:min([Sent || #{sent := Sent} <- Flows]),
    To = lists:max([max(Sent, Received) || #{sent := Sent, received := Received} <- Flows]),
    Margin = max(1000, (To - From) div 20),
    picture(Flows, {From - Margin, To + Margin}, Profile);
picture(Flows, {From, To}, #{nodes := Sides, ways := Ways}) ->
    Rows = rows(Flows, Sides, Ways),
    {Placed, Bottom} = placed(Rows),
    Scale = {From, (?WIDTH - ?LEFT - ?RIGHT) / max(1, To - From)},
    At = maps:from_list([{Who, Y} || {Who, Y, _} <- Placed]),
    Height = Bottom + 30,
    ?T(svg, [{viewBox, lists:concat(["0 0 ", ?WIDTH, " ", Height])}, {class, "chart"},
             {role, "img"}, {'aria-label', "messages between nodes over time"}],
       [marker(), axis(From, To, Scale, Bottom),
        [row(Who, Y, Side, {From, To}, Scale) || {Who, Y, Side} <- Placed],
        [arrow(Flow, At, Scale) || Flow <- Flows]]).

marker() ->
    ?T(defs, [], ?T(marker, [{id, "head"}, {viewBox, "0 0 8 8"}, {refX, 7}, {refY, 4},
                             {markerWidth, 6}, {markerHeight, 6}, {orient, "auto"}],
                    ?T(path, [{d, "M0,0L8,4L0,8z"}, {class, "head"}]))).

%% --- rows -------------------------------------------------------------------------------------

%% [{node, side, [who]}]: processes, or `all' for a gateway.
rows(Flows, Sides, Ways) ->
    Ends = lists:append([[{From, A}, {To, B}] || #{from_node := From, from := A, to_node := To,
                                                   to := B} <- Flows]),
    Between = lists:usort(lists:append([maps:get({From, To}, Ways, [])
                                        || #{from_node := From, to_node := To} <- Flows])),
    [{Side, Rows} || #{node := Node} = Side <- Sides,
                     Rows <- [case most([Pid || {At, Pid} <- Ends, At =:= Node]) of
                                  [] -> [{Node, all} || lists:member(Node, Between)];
                                  Pids -> Pids
                              end], Rows =/= []].

most(Pids) ->
    Counts = lists:foldl(fun(Pid, Acc) -> Acc#{Pid => maps:get(Pid, Acc, 0) + 1} end, #{}, Pids),
    Sorted = lists:reverse(lists:keysort(2, maps:to_list(Counts))),
    lists:sort([Pid || {Pid, _} <- lists:sublist(Sorted, ?ROWS_MAX)]).

placed(Rows) ->
    lists:foldl(fun({#{node := Node} = Side, Of}, {Acc, Y}) ->
                        First = Y + ?HEAD,
                        Ys = [First + N * ?ROW || N <- lists:seq(0, length(Of) - 1)],
                        {Acc ++ [{{head, Node}, Y, Side}
                                 | [{Who, At, Side} || {Who, At} <- lists:zip(Of, Ys)]],
                         First + length(Of) * ?ROW + 4}
                end, {[], ?TOP}, Rows).

row({head, Node}, Y, #{}, _Span, _Scale) ->
    [?T(line, [{x1, 4}, {x2, ?WIDTH - ?RIGHT}, {y1, Y + 1}, {y2, Y + 1}, {class, "grid"}]),
     ?T(text, [{x, 6}, {y, Y + 14}, {class, "heading"}], ?E(atom_to_binary(Node)))];
row(Who, Y, Side, Span, Scale) ->
    [?T(text, [{x, ?LEFT - 8}, {y, Y + 15}, {class, "y"}], ?E(label(Who, Side))),
     ?T(line, [{x1, ?LEFT}, {x2, ?WIDTH - ?RIGHT}, {y1, Y + 11}, {y2, Y + 11}, {class, "grid"}]),
     [slice(Slice, Y, Span, Scale, Side) || Slice <- seen(Who, Span, Side)]].

label({_Node, all}, _Side) -> "all that ran on this gateway";
label(Pid, Side) -> fitting(weft_profile_recording:name(Pid, Side)).

%% @doc As much of the name of a process as there is room for; its end tells processes apart.
-spec fitting(binary()) -> unicode:chardata().
fitting(Name) ->
    case string:length(Name) of
        Long when Long > ?LABEL_LETTERS -> ["…", string:slice(Name, Long - ?LABEL_LETTERS + 1)];
        _ -> Name
    end.

%% Those of one process that are within the time. What is too near to see a gap is one bar.
seen(Who, {From, To}, #{history := #{slices := Slices}}) ->
    Seen = [Slice || #{pid := Pid, from := Start, to := End} = Slice <- Slices,
                     End >= From, Start =< To, Pid =:= Who orelse is_tuple(Who)],
    Sorted = lists:sort(fun(#{from := A}, #{from := B}) -> A =< B end, Seen),
    lists:sublist(joined(Sorted, (To - From) / (?WIDTH - ?LEFT)), ?SLICES_MAX).

joined([#{to := To} = Slice, #{from := From, to := End} | Rest], Gap) when From - To < Gap ->
    joined([Slice#{to := max(To, End), inside := [], joined => maps:get(joined, Slice, 1) + 1}
            | Rest], Gap);
joined([Slice | Rest], Gap) ->
    [Slice | joined(Rest, Gap)];
joined([], _Gap) ->
    [].

slice(#{from := Start, to := End, joined := Count}, Y, Span, Scale, _Side) ->
    Told = io_lib:format("~b slices in ~ts from ~ts", [Count, time(End - Start), time(Start)]),
    bar(Start, End, Y + 4, 14, "run", Told, Span, Scale);
slice(#{pid := Pid, mfa := Mfa, inside := Inside} = Slice, Y, Span, Scale, Side) ->
    #{from := Start, to := End} = Slice,
    Told = io_lib:format("~ts ran ~ts from ~ts", [weft_profile_recording:name(Pid, Side),
                                                  time(End - Start), time(Start)]),
    [bar(Start, End, Y + 4, 14, "run", [Told, function(Mfa)], Span, Scale)
     | [bar(A, B, Y + 6, 10, "gc", io_lib:format("~ts garbage collection ~ts", [Kind, time(B - A)]),
            Span, Scale) || {A, B, Kind} <- Inside, is_atom(Kind)]].

function(0) -> "";
function({M, F, A}) -> io_lib:format(" in ~ts:~ts/~b", [M, F, A]);
function(Command) -> io_lib:format(", ~ts", [Command]).

bar(Start, End, Y, Height, Class, Told, {From, To}, Scale) ->
    X = x(max(From, Start), Scale),
    ?T(rect, [{x, X}, {y, Y}, {width, max(0.8, x(min(To, End), Scale) - X)}, {height, Height},
              {class, Class}], ?T(title, [], ?E(Told))).

x(Ns, {From, Each}) -> ?LEFT + (Ns - From) * Each.

%% --- arrows -----------------------------------------------------------------------------------

%% One of the two may have no row.
arrow(#{from := From, to := To, sent := Sent, received := Received} = Flow, At, Scale) ->
    case At of
        #{From := Y, To := End} ->
            #{kind := Kind, from_node := Node, to_node := Other} = Flow,
            Told = io_lib:format("~ts, ~ts to ~ts: ~ts",
                                 [Kind, Node, Other, time(Received - Sent)]),
            Points = [{Sent, Y}] ++ [{Ns, maps:get({Gateway, all}, At)}
                                     || {Gateway, Ns} <- maps:get(hops, Flow, []),
                                        is_map_key({Gateway, all}, At)] ++ [{Received, End}],
            ?T(polyline, [{points, lists:join(" ", [point(Ns, Row, Scale) || {Ns, Row} <- Points])},
                          {class, "flow"}, {'marker-end', "url(#head)"}],
               ?T(title, [], ?E(Told)));
        #{} -> []
    end.

point(Ns, Y, Scale) -> io_lib:format("~.2f,~b", [float(x(Ns, Scale)), Y + 11]).

axis(From, To, Scale, Bottom) ->
    Step = step((To - From) / 5),
    Ticks = [Tick * Step || Tick <- lists:seq(ceil(From / Step), floor(To / Step))],
    [[?T(line, [{x1, x(Tick, Scale)}, {x2, x(Tick, Scale)}, {y1, ?TOP}, {y2, Bottom},
                {class, "grid"}]),
      ?T(text, [{x, min(x(Tick, Scale), ?WIDTH - 34)}, {y, Bottom + 16}, {class, "x"}],
         ?E(tick(Tick, Step)))]
     || Tick <- Ticks].

%% 1, 2 or 5 times a power of ten.
step(Rough) ->
    Power = math:pow(10, floor(math:log10(max(10, Rough)))),
    hd([trunc(Power * Factor) || Factor <- [1, 2, 5, 10], Power * Factor >= Rough]).

tick(Ns, Step) when Step >= 100000000 -> io_lib:format("~.1f s", [Ns / 1.0e9]);
tick(Ns, Step) when Step >= 1000000 -> io_lib:format("~b ms", [Ns div 1000000]);
tick(Ns, _Step) -> io_lib:format("~.2f ms", [Ns / 1.0e6]).

%% What would be rounded to 1000.0 us is 1.00 ms.
time(Ns) when abs(Ns) < 999950 -> io_lib:format("~.1f us", [Ns / 1000]);
time(Ns) -> io_lib:format("~.2f ms", [Ns / 1000000]).
