%% SPDX-License-Identifier: Apache-2.0
%% @doc Follows the way from one node to another, link by link, by what each node on it says of
%% itself (`weft_status').
%%
%% If a session runs between the two, this is the circuit that it really uses: each gateway knows
%% over which link and under which label the circuit goes on. Otherwise it is the way of the present
%% routes. Tracing opens no connection between the ends. The caller provides the function that asks
%% a node.
-module(weft_trace).

-export([walk/3, ask/1, round_trip_us/1]).
-export_type([hop/0, result/0]).

%% One link of the way. rtt_us: its last measured round trip, in microseconds. by: whether the
%% session's circuit leads here, or only a route says so.
-type hop() :: #{from := node(), to := node(), rtt_us := pos_integer() | undefined,
                 by := session | route}.
-type reason() :: no_route | too_long | {link_down, node()} | {loop, node()} | {no_answer, node()}.
-type result() :: {ok, [hop()]} | {error, reason(), SoFar :: [hop()]}.
-type ask() :: fun((node()) -> {ok, weft_status:status()} | error).

%% No way is longer: the hop limit of a circuit is one byte.
-define(HOPS_MAX, 255).
-define(ASK_TIMEOUT_MS, 5000).
%% A node answers also if one of its links or sessions does not, which it waits for so long.
-define(STATUS_MS, 2000).

%% @doc The way From -> To. Errors: no route at a node, a link on the way that is down, a node that
%% does not answer, a way that comes back to a node (routes are changing) or does not end.
-spec walk(node(), node(), ask()) -> result().
walk(From, To, Ask) -> walk(From, To, start, Ask, []).

walk(To, To, _Came, _Ask, Hops) ->
    {ok, lists:reverse(Hops)};
walk(_Node, _To, _Came, _Ask, Hops) when length(Hops) >= ?HOPS_MAX ->
    {error, too_long, lists:reverse(Hops)};
walk(Node, To, Came, Ask, Hops) ->
    case Ask(Node) of
        {ok, Status} -> step(next(To, Came, Status), Node, To, Status, Ask, Hops);
        error -> {error, {no_answer, Node}, lists:reverse(Hops)}
    end.

step(no_route, _Node, _To, _Status, _Ask, Hops) ->
    {error, no_route, lists:reverse(Hops)};
step({By, Next, Label}, Node, To, Status, Ask, Hops) ->
    case {up(Next, Status), [Next || #{from := Seen} <- Hops, Seen =:= Next]} of
        {[], _} ->
            {error, {link_down, Next}, lists:reverse(Hops)};
        {_, [_ | _]} ->
            {error, {loop, Next}, lists:reverse(Hops)};
        {[RttUs | _], []} ->
            Hop = #{from => Node, to => Next, rtt_us => RttUs, by => By},
            walk(Next, To, {Node, Label}, Ask, [Hop | Hops])
    end.

%% The round trip of the link to that neighbour, unless it is down: of one whose process did not
%% answer nothing else is known.
up(Node, #{links := Links} = Status) ->
    [RttUs || #{node := N, state := up, rtt_us := RttUs} <- Links, N =:= Node]
        ++ [undefined || #{what := link, node := N} <- maps:get(unanswered, Status, []),
                         N =:= Node].

%% Where a node sends, or relays, frames for To; and the label of the circuit on that link.
next(To, start, #{sessions := Sessions} = Status) ->
    case [{Next, Label} || #{node := N, next_hop := Next, label := Label} <- Sessions,
                           N =:= To, Next =/= undefined] of
        [{Next, Label} | _] -> {session, Next, Label};
        [] -> by_route(To, Status)
    end;
next(To, {_From, none}, Status) ->
    by_route(To, Status);
next(To, {From, Label}, #{links := Links} = Status) ->
    case [{Next, NextLabel} || #{node := N, circuits := Circuits} <- Links, N =:= From,
                               #{label := L, next_hop := Next, next_label := NextLabel} <- Circuits,
                               L =:= Label, Next =/= undefined] of
        [{Next, NextLabel}] -> {session, Next, NextLabel};
        [] -> by_route(To, Status)
    end.

%% The order of `weft_next_hop:choose/1'.
by_route(To, #{routes := Routes, topology := Topology} = Status) ->
    case {up(To, Status), Routes} of
        {[_ | _], _} -> {route, To, none};
        {[], #{To := #{next_hop := Next}}} -> {route, Next, none};
        {[], #{}} when Topology =:= undefined -> {route, To, none};
        {[], #{}} -> no_route
    end.

%% @doc Asks a node for its status by the distribution. A link or session of it that does not answer
%% is missing then, and the rest arrives in time.
-spec ask(node()) -> {ok, weft_status:status()} | error.
ask(Node) ->
    try {ok, erpc:call(Node, weft_status, status, [?STATUS_MS], ?ASK_TIMEOUT_MS)}
    catch error:{erpc, _} -> error
    end.

%% @doc The time from here to Node and back by the distribution, only if it is connected already.
-spec round_trip_us(node()) -> {ok, pos_integer()} | error.
round_trip_us(Node) ->
    try
        true = lists:member(Node, nodes(connected)),
        {Us, Node} = timer:tc(erpc, call, [Node, erlang, node, [], ?ASK_TIMEOUT_MS]),
        {ok, max(1, Us)}
    catch
        error:_ -> error
    end.
