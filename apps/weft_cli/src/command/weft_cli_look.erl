%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands that only look: status, trace, why. What they show comes from
%% `weft_local_picture' and `weft_status'; here it gets its words and columns.
-module(weft_cli_look).

-export([status/2, trace/2, why/2]).

-import(weft_cli_table, [plural/2, bytes/1, milliseconds/1]).
-import(weft_local_spec, [short/1]).

%% --- status -----------------------------------------------------------------------------------

%% @doc weft status.
-spec status([], weft_argparse:given()) -> weft_cli:answer().
status([], Options) ->
    weft_cli_cluster:with_cluster(
      Options,
      fun(#{name := Name, dir := Dir, topology := Topology} = Cluster) ->
              {Seen, Picture} = weft_cli_nodes:picture(Cluster),
              Json = Picture#{name => unicode:characters_to_binary(Name),
                              dir => unicode:characters_to_binary(Dir),
                              topology => unicode:characters_to_binary(shape(Topology))},
              {weft_cli_nodes:outcome(Seen), maps:merge(Json, weft_cli_nodes:lost_json(Seen)),
               [status_text(Seen, Picture), lost(Seen)]}
      end).

lost(#{lost := []}) -> [];
lost(Seen) -> [$\n, weft_cli_nodes:lost_text(Seen)].

status_text(#{name := Name, topology := Topology},
            #{nodes := Nodes, links := #{used := Links, full_mesh := FullMesh},
              tcp_connections := #{used := Connections},
              sessions := Sessions, resumes := Resumes, reroutes := Reroutes, circuits := Circuits,
              broadcast := Broadcast, groups := Groups, scopes := Scopes}) ->
    Up = [Node || #{running := true} = Node <- Nodes],
    [io_lib:format("~ts: ~b of ~ts up, topology ~ts~n",
                   [Name, length(Up), plural(length(Nodes), "node"), shape(Topology)]),
     io_lib:format("~ts of ~ts, ~b links would be a full mesh~n",
                   [plural(Links, "link"), plural(Connections, "TCP connection"), FullMesh]),
     io_lib:format("~ts, ~ts among them, ~ts, ~ts~n",
                   [plural(Sessions, "session"), plural(length(Circuits), "circuit"),
                    plural(Resumes, "resume"), plural(Reroutes, "re-route")]),
     broadcast_text(Broadcast), $\n,
     weft_cli_table:format([["node", "pid", "sessions", "relays", "relayed", "names", "neighbours"]
                            | [node_cells(Node) || Node <- Nodes]]),
     [[$\n, weft_cli_table:format([["group", "members", "gateways"]
                                   | [group_cells(Group) || Group <- Groups]])]
      || Groups =/= []],
     [[$\n, weft_cli_table:format([["scope", "kind", "nodes", "names"]
                                   | [scope_cells(Scope) || Scope <- Scopes]])]
      || lists:any(fun is_used/1, Scopes)],
     [[$\n, weft_cli_table:format([["circuit", "state", "out", "in", "resumes", "re-routes",
                                    "last resume"]
                                   | [circuit_cells(Circuit) || Circuit <- Circuits]])]
      || Circuits =/= []]].

%% Nothing where nobody ever made a broadcast. A link of the tree is seen from both ends.
broadcast_text(#{received := Received, eager := Eager, lazy := Lazy, grafts_out := Grafts,
                 prunes_out := Prunes, duplicates := Duplicates, missing := Missing,
                 missed := Missed}) when Received > 0 ->
    io_lib:format("~ts received, ~b more than once; ends of links: ~b eager, ~b lazy; ~ts, ~ts; "
                  "~b missing, ~b missed~n",
                  [plural(Received, "broadcast"), Duplicates, Eager, Lazy, plural(Grafts, "graft"),
                   plural(Prunes, "prune"), Missing, Missed]);
broadcast_text(_None) ->
    [].

shape(undefined) -> "none";
shape({groups, Groups}) -> io_lib:format("groups (~ts)", [lists:join(", ", names(Groups))]);
shape({Shape, _Options}) -> atom_to_list(Shape);
shape(Shape) -> io_lib:format("~0tp", [Shape]).

names(Groups) -> [atom_to_list(Name) || Name <- lists:sort(maps:keys(Groups))].

node_cells(#{node := Node, running := undefined}) ->
    [short(Node), "not known"];
node_cells(#{node := Node, running := false}) ->
    [short(Node), "down"];
node_cells(#{node := Node, os_pid := OsPid, sessions := Sessions, relayed_circuits := Relays,
             relayed_bytes := RelayedBytes, names := Names, neighbours := Neighbours,
             cuts := Cuts}) ->
    [short(Node), integer_to_list(OsPid), integer_to_list(Sessions), integer_to_list(Relays),
     bytes(RelayedBytes), integer_to_list(Names),
     [lists:join(" ", [short(N) || N <- lists:sort(Neighbours)]),
      [[" (cut: ", lists:join(" ", [short(N) || N <- Cuts]), ")"] || Cuts =/= []]]].

group_cells(#{name := Name, members := Members, gateways := Gateways}) ->
    [Name, lists:join(" ", [short(Node) || Node <- Members]),
     lists:join("; ", [[To, ": ", lists:join(" ", [short(Node) || Node <- Nodes])]
                       || #{to := To, nodes := Nodes} <- Gateways])].

%% The scopes that are always there tell nothing as long as they are empty.
is_used(#{kind := Kind, names := Names}) -> Kind =:= strong orelse Names > 0.

scope_cells(#{scope := Scope, kind := Kind, nodes := Nodes, names := Names}) ->
    [Scope, atom_to_list(Kind), integer_to_list(Nodes), integer_to_list(Names)].

circuit_cells(#{from := From, to := To, hops := Hops, state := State, resumes := Resumes,
                reroutes := Reroutes, bytes_out := Out, bytes_in := In,
                last_resume_ms := LastMs}) ->
    Way = case Hops of
              [] -> [short(From), " ? ", short(To)];
              _ -> lists:join(" - ", [short(Hop) || Hop <- Hops])
          end,
    [Way, atom_to_list(State), bytes(Out), bytes(In), integer_to_list(Resumes),
     integer_to_list(Reroutes),
     case LastMs of undefined -> "-"; _ -> io_lib:format("~b ms", [LastMs]) end].

%% --- trace ------------------------------------------------------------------------------------

%% @doc weft trace A B.
-spec trace([string()], weft_argparse:given()) -> weft_cli:answer().
trace(Names, Options) ->
    weft_cli_cluster:with_nodes(
      Options, Names,
      fun(Cluster, [A, B]) ->
              {Seen, Statuses} = weft_cli_nodes:seen(Cluster),
              case weft_cli_nodes:absent(Seen, A) of
                  [] -> traced(A, B, weft_local_picture:way(A, B, Statuses), Cluster);
                  [Why | _] -> {no_node, Why}
              end
      end).

traced(A, B, {ok, Hops}, Cluster) ->
    EndToEnd = case weft_cli_nodes:call(Cluster, A, {weft_trace, round_trip_us, [B]}) of
                   {ok, {ok, Us}} -> Us;
                   _ -> undefined
               end,
    {ok, #{from => A, to => B, hops => Hops, end_to_end_us => EndToEnd},
     [io_lib:format("~ts -> ~ts: ~ts, ~ts~n",
                    [short(A), short(B), plural(length(Hops), "link"), by(Hops)]),
      weft_cli_table:format([hop_cells(Number, Hop) || {Number, Hop} <- number(Hops)]
                            ++ [["", "end to end", end_to_end(EndToEnd)]])]};
traced(A, B, {error, Reason, SoFar}, _Cluster) ->
    {failed, [io_lib:format("~ts -> ~ts: ~ts~n", [short(A), short(B), reason(Reason)]),
              [weft_cli_table:format([hop_cells(Number, Hop) || {Number, Hop} <- number(SoFar)])
               || SoFar =/= []]]}.

number(Hops) -> lists:zip(lists:seq(1, length(Hops)), Hops).

by(Hops) ->
    case [route || #{by := route} <- Hops] of
        [] -> "the way their session goes";
        _ -> "the way the routes say"
    end.

hop_cells(Number, #{from := From, to := To, rtt_us := RttUs}) ->
    [io_lib:format("~4b", [Number]), [short(From), " - ", short(To)], milliseconds(RttUs)].

end_to_end(undefined) -> "not connected, nothing to measure";
end_to_end(Us) -> milliseconds(Us).

reason(no_route) -> "no way; the last node that was asked knows no route";
reason(too_long) -> "the way is too long";
reason({link_down, Node}) -> ["the link to ", short(Node), " is down"];
reason({loop, Node}) -> ["the way comes back to ", short(Node), ", the routes are changing"];
reason({no_answer, Node}) -> [short(Node), " does not answer"].

%% --- why --------------------------------------------------------------------------------------

%% @doc weft why A B.
-spec why([string()], weft_argparse:given()) -> weft_cli:answer().
why(Names, Options) ->
    weft_cli_cluster:with_nodes(
      Options, Names,
      fun(Cluster, [A, B]) ->
              {Seen, Statuses} = weft_cli_nodes:seen(Cluster),
              Way = session_way(A, weft_local_picture:way(A, B, Statuses)),
              case weft_cli_nodes:call(Cluster, A, {weft_status, why, [B, Way]}) of
                  {ok, Why} -> reasons(Why, weft_cli_nodes:absent(Seen, B));
                  {not_running, Text} -> {no_node, hd(weft_cli_nodes:absent(Seen, A) ++ [Text])};
                  {error, Text} -> {failed, Text}
              end
      end).

%% A way that only the routes know is not the one of the session.
session_way(From, {ok, Hops}) ->
    case [route || #{by := route} <- Hops] of
        [] -> [From | [To || #{to := To} <- Hops]];
        _ -> unknown
    end;
session_way(_From, {error, _Reason, _SoFar}) ->
    unknown.

reasons(#{text := Lines} = Why, More) ->
    Text = [unicode:characters_to_binary(Line) || Line <- Lines ++ More],
    Json = (maps:with([from, to, connected, next_hop], Why))
        #{text => Text, link => texts(maps:get(link, Why)),
          session => texts(maps:get(session, Why))},
    {ok, Json, [[Line, $\n] || Line <- Text]}.

texts(undefined) -> undefined;
texts(#{last_error := LastError} = Row) ->
    (maps:without([circuits, lane_stats, pid], Row))
        #{last_error => unicode:characters_to_binary(LastError)}.
