%% SPDX-License-Identifier: Apache-2.0
%% @doc The table at the end of the demo, its data as JSON, and whether all that weft promises held.
%% Pure.
-module(demo_report).

-export([text/2, json/2, broken_promises/1]).

-type result() :: demo_run:result().

%% @doc The table: weft and stock, side by side.
-spec text(result(), result()) -> unicode:chardata().
text(#{victim := Victim, link := {A, B}} = Weft, Stock) ->
    Rows = [["", "weft", "stock"] | rows(Weft, Stock)],
    [weft_cli_table:format([["  " ++ lists:flatten(Name) | Cells] || [Name | Cells] <- Rows]), $\n,
     caption(weft_local_spec:short(Victim), weft_local_spec:short(A), weft_local_spec:short(B))].

rows(#{balance := WeftBalance} = Weft, #{balance := StockBalance} = Stock) ->
    [["TCP connections (at most), of a full mesh", connections(Weft), connections(Stock)]]
        ++ [[Name, number(maps:get(Key, WeftBalance)), number(maps:get(Key, StockBalance))]
            || {Name, Key} <- [{"messages said by survivors", lines},
                               {"copies due to survivors", due},
                               {"copies delivered", delivered},
                               {"copies delivered in order", in_order},
                               {"copies lost", lost}, {"copies doubled", doubled}]]
        ++ [["nodedowns among survivors", number(maps:get(nodedowns, Weft)),
             number(maps:get(nodedowns, Stock))],
            ["rooms lost by survivors", number(maps:get(rooms_lost, Weft)),
             number(maps:get(rooms_lost, Stock))]]
        ++ [[Name, times(maps:get(Fault, maps:get(reroutes_ms, Weft))), "-"]
            || {Name, Fault} <- [{"re-routes after the kill", kill},
                                 {"re-routes after the cut", cut}]].

connections(#{connections := Used, full_mesh := FullMesh}) ->
    io_lib:format("~b of ~b", [Used, FullMesh]).

number(Number) -> integer_to_list(Number).

times([]) -> "none";
times(Times) ->
    io_lib:format("~b, median ~b ms, worst ~b ms",
                  [length(Times), median(Times), lists:last(Times)]).

median(Sorted) -> lists:nth((length(Sorted) + 1) div 2, Sorted).

caption(Victim, A, B) ->
    ["  Faults: the gateway ", Victim, " is killed (SIGKILL); the link ", A, " - ", B,
     " is cut for 3 s. Both are\n"
     "  those that most circuits went through; the same two on both carriers.\n"
     "  Survivors are the 11 other nodes. What users of ", Victim, " said or should have heard\n"
     "  is not counted; it is the home of no room. A message to a room is due to each member.\n"
     "  weft cuts a link by weft_fault: connections are closed and refused. On the stock carrier\n"
     "  the TCP connection of the two nodes is closed and their cookies for each other changed\n"
     "  for 3 s; all else is as OTP has it by default, prevent_overlapping_partitions among it,\n"
     "  by which nodes that hear of a lost connection drop theirs too.\n"].

%% @doc The same and all samples, for weft_json.
-spec json(result(), result()) -> weft_json:json().
json(Weft, Stock) ->
    #{weft => plain(Weft), stock => plain(Stock),
      broken_promises => [unicode:characters_to_binary(Text) || Text <- broken_promises(Weft)]}.

plain(#{link := {A, B}} = Result) ->
    Result#{link := [A, B]}.

%% @doc What did not hold on weft; nothing, if all is well.
-spec broken_promises(result()) -> [unicode:chardata()].
broken_promises(#{balance := Balance, nodedowns := Nodedowns, rooms_lost := RoomsLost,
                  connections := Used, full_mesh := FullMesh, all_said := AllSaid,
                  reroutes_ms := #{kill := AfterKill, cut := AfterCut}}) ->
    #{due := Due, delivered := Delivered, in_order := InOrder, doubled := Doubled,
      wrong_streams := WrongStreams} = Balance,
    [Text || {false, Text} <-
                 [{AllSaid, "not every survivor said all its lines"},
                  {Due > 0, "nothing was said"},
                  {Delivered =:= Due, "delivered is not what was due"},
                  {InOrder =:= Due, "not all was delivered in order"},
                  {Doubled =:= 0, "something was delivered twice"},
                  {WrongStreams =:= 0, "a stream between two users is not complete"},
                  {Nodedowns =:= 0, "a survivor saw a nodedown of a survivor"},
                  {RoomsLost =:= 0, "a survivor lost a room"},
                  {Used < FullMesh, "no TCP connection was saved"},
                  {AfterKill =/= [], "no session was on the killed gateway: nothing was proved"},
                  {AfterCut =/= [], "no session was on the cut link: nothing was proved"}]].
