%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes talk to which: the pairs with most messages between nodes, and a picture
%% (SVG) of them, with those that send on the left and those that receive on the right. Pure.
-module(weft_profile_talks).

-export([rows/2, picture/1]).
-export_type([row/0]).

%% Of a pair: how many messages, from the most frequent kind on which, and the median of their
%% times.
-type row() :: #{from := node(), from_process := binary(), to := node(), to_process := binary(),
                 count := pos_integer(), p50_us := float(),
                 kinds := [#{kind := binary(), count := pos_integer()}, ...]}.

-define(T, weft_report_html:tag).
-define(E, weft_report_html:text).
%% No more pairs than that, and no more kinds of a pair.
-define(PAIRS_MAX, 15).
-define(KINDS_MAX, 5).
-define(WIDTH, 1100).
%% Where lines begin and end.
-define(FROM, 430).
-define(TO, 670).
-define(ROW, 22).
-define(TOP, 14).
-define(STROKE_MAX, 9).

%% @doc The pairs of processes with most messages, those with more of them first.
-spec rows([weft_profile_flows:flow()], [weft_profile_recording:side()]) -> [row()].
rows(Flows, Sides) ->
    Names = maps:from_list([{Node, Side} || #{node := Node} = Side <- Sides]),
    Pairs = maps:groups_from_list(fun(#{from_node := Node, from := From, to_node := Other,
                                        to := To}) -> {Node, From, Other, To} end, Flows),
    [row(Pair, Of, Names)
     || {_, Pair, Of} <- most([{length(Of), Pair, Of} || {Pair, Of} <- maps:to_list(Pairs)],
                              ?PAIRS_MAX)].

most(Counted, Max) ->
    lists:sublist(lists:sort(fun(A, B) -> element(1, A) >= element(1, B) end, Counted), Max).

row({Node, From, Other, To}, Flows, Names) ->
    Name = fun(Pid, At) -> weft_profile_recording:name(Pid, map_get(At, Names)) end,
    #{from => Node, from_process => Name(From, Node), to => Other, to_process => Name(To, Other),
      count => length(Flows), p50_us => median_us(Flows), kinds => kinds(Flows)}.

median_us(Flows) ->
    Times = lists:sort([Received - Sent || #{sent := Sent, received := Received} <- Flows]),
    lists:nth(ceil(length(Times) / 2), Times) / 1000.

kinds(Flows) ->
    Kinds = maps:groups_from_list(fun(#{kind := Kind}) -> Kind end, Flows),
    [#{kind => atom_to_binary(Kind), count => Count}
     || {Count, Kind} <- most([{length(Of), Kind} || {Kind, Of} <- maps:to_list(Kinds)],
                              ?KINDS_MAX)].

%% @doc The picture of some pairs: a line is as wide as there are many messages.
-spec picture([row(), ...]) -> weft_report_html:html().
picture(Rows) ->
    Senders = placed([{Node, Process} || #{from := Node, from_process := Process} <- Rows]),
    Receivers = placed([{Node, Process} || #{to := Node, to_process := Process} <- Rows]),
    Height = 2 * ?TOP + ?ROW * (max(length(Senders), length(Receivers)) - 1),
    Most = lists:max([Count || #{count := Count} <- Rows]),
    ?T(svg, [{viewBox, lists:concat(["0 0 ", ?WIDTH, " ", Height])}, {class, "chart"},
             {role, "img"}, {'aria-label', "which processes send messages to which"}],
       [[line(Row, Senders, Receivers, Most) || Row <- Rows],
        [label(Who, ?FROM - 8, Y, [{class, "y"}]) || {Who, Y} <- Senders],
        [label(Who, ?TO + 8, Y, []) || {Who, Y} <- Receivers]]).

%% Each once, in order.
placed(Ends) ->
    Each = lists:uniq(Ends),
    lists:zip(Each, [?TOP + N * ?ROW || N <- lists:seq(0, length(Each) - 1)]).

line(#{from := Node, from_process := From, to := Other, to_process := To, count := Count},
     Senders, Receivers, Most) ->
    {_, Y} = lists:keyfind({Node, From}, 1, Senders),
    {_, End} = lists:keyfind({Other, To}, 1, Receivers),
    Middle = (?FROM + ?TO) div 2,
    ?T(path, [{d, lists:concat(["M", ?FROM, ",", Y, "C", Middle, ",", Y, " ", Middle, ",", End,
                                " ", ?TO, ",", End])},
              {class, "talk"}, {'stroke-width', max(1.0, ?STROKE_MAX * Count / Most)}],
       ?T(title, [], ?E(io_lib:format("~ts on ~ts to ~ts on ~ts: ~b", [From, Node, To, Other,
                                                                      Count])))).

label({Node, Process}, X, Y, Attributes) ->
    ?T(text, [{x, X}, {y, Y + 4} | Attributes],
       ?E([weft_profile_recording:short(Node), " ", weft_profile_timeline:fitting(Process)])).
