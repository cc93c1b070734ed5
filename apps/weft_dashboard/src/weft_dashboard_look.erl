%% SPDX-License-Identifier: Apache-2.0
%% @doc Closer looks at nodes, when a browser asks for one: the path between two nodes, what a node
%% does, which names it knows. Nodes are asked by `erpc' and in bounded time.
%%
%% A node that has no `weft_dashboard_node' is given its code, and that which it calls.
-module(weft_dashboard_look).

-export([path/1, why/1, node/2, names/1, in_time/2]).

-define(PATH_MS, 8000).
-define(NODE_MS, 6000).
-define(CALL_MS, 3000).
%% As why/1 asks each link and session, and how long these have for their answers.
-define(WHY_MAX, 3).
-define(WHY_MS, 1000).
-define(GIVEN, [weft_dashboard_node, weft_dashboard_migrations]).

%% --- the path ---------------------------------------------------------------------------------

%% @doc The way from one node to the other, link by link, as `weft_trace' finds it, and the session
%% between the two.
-spec path([node()]) -> weft_dashboard_api:answer().
path([From, To]) ->
    in_time(?PATH_MS, fun() -> walked(From, To, weft_trace:walk(From, To, fun weft_trace:ask/1))
                      end).

walked(From, To, {ok, Hops}) ->
    {200, (described(From, To, Hops))#{end_to_end_us => end_to_end_us(From, To)}};
walked(From, To, {error, Reason, SoFar}) ->
    {200, (described(From, To, SoFar))#{error => reason(Reason)}}.

%% Only if the two are connected.
end_to_end_us(From, To) ->
    try erpc:call(From, weft_trace, round_trip_us, [To], ?CALL_MS) of
        {ok, Us} -> Us;
        error -> undefined
    catch
        error:{erpc, _} -> undefined
    end.

described(From, To, Hops) ->
    {Answers, _Silent} = weft_ask:all(lists:usort([From | [Node || #{from := Node} <- Hops]]),
                                      fun weft_trace:ask/1, ?CALL_MS),
    Statuses = maps:from_list([{Node, Status} || {Node, {ok, Status}} <- Answers]),
    #{from => From, to => To, hops => [hop(Hop, Statuses) || Hop <- Hops],
      session => session(To, maps:get(From, Statuses, none))}.

hop(#{from := From, to := To} = Hop, Statuses) ->
    case [Link || #{From := #{links := Links}} <- [Statuses], #{node := N} = Link <- Links,
                  N =:= To] of
        [Link] -> maps:merge(link_row(Link), Hop);
        [] -> Hop
    end.

link_row(#{lane_stats := Lanes, last_error := LastError} = Link) ->
    (maps:with([node, state, rtt_us, queued_bytes, relayed_bytes, ups], Link))
        #{lanes => [lane(Lane) || Lane <- Lanes], last_error => text(LastError)}.

lane(#{class := Class, index := Index, queued_bytes := QueuedBytes, stat := Stat}) ->
    #{class => Class, index => Index, queued_bytes => QueuedBytes,
      bytes_out => maps:get(send_oct, Stat, 0), bytes_in => maps:get(recv_oct, Stat, 0)}.

session(To, #{sessions := Sessions}) ->
    case [Session || #{node := N} = Session <- Sessions, N =:= To] of
        [Session | _] -> session_row(Session);
        [] -> undefined
    end;
session(_To, none) ->
    undefined.

session_row(#{last_error := LastError} = Session) ->
    (maps:without([pid], Session))#{last_error := text(LastError)}.

reason(no_route) -> <<"no way: the last node that was asked knows no route">>;
reason(too_long) -> <<"the way is too long">>;
reason({link_down, Node}) -> text(["the link to ", atom_to_list(Node), " is down"]);
reason({loop, Node}) -> text(["the way comes back to ", atom_to_list(Node),
                              ", the routes are changing"]);
reason({no_answer, Node}) -> text([atom_to_list(Node), " does not answer"]).

%% --- a node -----------------------------------------------------------------------------------

%% @doc What a node does: schedulers, memory, the busiest processes, links, sessions, and why
%% members can not be reached from it; if wanted, how often processes migrate between schedulers.
-spec node(node(), weft_dashboard_node:wanted()) -> weft_dashboard_api:answer().
node(Node, Wanted) ->
    in_time(?NODE_MS, fun() -> looked(Node, there(Node, look, [Wanted])) end).

looked(_Node, {error, Text}) ->
    {504, #{error => Text}};
looked(Node, {ok, busy}) ->
    {503, #{error => text(["others look at ", atom_to_list(Node), " now: ask again"])}};
looked(Node, {ok, Look}) ->
    Links = [link_row(Link) || Link <- maps:get(links, Look)],
    Sessions = [session_row(Session) || Session <- maps:get(sessions, Look)],
    Unreachable = maps:get(unreachable, Look),
    {200, Look#{node => Node, links := Links, sessions := Sessions,
                why => [#{node => Peer, text => reasons(Node, Peer)}
                        || Peer <- lists:sublist(Unreachable, ?WHY_MAX)]}}.

%% @doc Why the first node is connected with the second one as it is, or is not (`weft:why/1').
-spec why([node()]) -> weft_dashboard_api:answer().
why([Node, Peer]) ->
    in_time(?NODE_MS, fun() -> explained(Node, Peer) end).

explained(Node, Peer) ->
    try {200, #{from => Node, to => Peer, text => reasons(Node, Peer)}}
    catch
        error:{erpc, _} -> {504, #{error => no_answer(Node)}}
    end.

reasons(Node, Peer) ->
    #{text := Lines} = try erpc:call(Node, weft_status, why, [Peer, unknown, ?WHY_MS], ?CALL_MS)
                       catch
                           %% One of the version before.
                           error:{exception, undef, _} ->
                               erpc:call(Node, weft_status, why, [Peer], ?CALL_MS)
                       end,
    [text(Line) || Line <- Lines].

%% --- names ------------------------------------------------------------------------------------

%% @doc The names that the first of these nodes knows that answers.
-spec names([node()]) -> weft_dashboard_api:answer().
names(Nodes) ->
    in_time(?NODE_MS, fun() -> first(Nodes, {503, #{error => <<"no node answers">>}}) end).

first([], Answer) ->
    Answer;
first([Node | Others], _Before) ->
    case there(Node, names, []) of
        {ok, Names} -> {200, Names#{node => Node}};
        {error, Text} -> first(Others, {504, #{error => Text}})
    end.

%% --- asking -----------------------------------------------------------------------------------

%% @doc Whatever is asked of other nodes, a browser gets its answer. It may have to wait for a turn
%% within that time.
-spec in_time(TimeoutMs :: pos_integer(), fun(() -> weft_dashboard_api:answer())) ->
          weft_dashboard_api:answer().
in_time(TimeoutMs, Fun) ->
    InTurn = fun() -> weft_dashboard_turns:in_turn(ask, Fun) end,
    case weft_dashboard_turns:in_time(TimeoutMs, InTurn) of
        {ok, Answer} -> Answer;
        late -> {504, #{error => <<"the nodes did not answer in time">>}}
    end.

there(Node, Function, Arguments) ->
    case call(Node, Function, Arguments) of
        undef -> given(Node, Function, Arguments, ?GIVEN);
        Answer -> Answer
    end.

call(Node, Function, Arguments) ->
    try {ok, erpc:call(Node, weft_dashboard_node, Function, Arguments, ?CALL_MS)}
    catch
        error:{exception, undef, _} -> undef;
        error:{erpc, _} -> {error, no_answer(Node)}
    end.

no_answer(Node) -> <<(atom_to_binary(Node))/binary, " does not answer">>.

given(Node, Function, Arguments, []) ->
    call(Node, Function, Arguments);
given(Node, Function, Arguments, [Module | Others]) ->
    {Module, Code, File} = code:get_object_code(Module),
    case erpc:call(Node, code, load_binary, [Module, File, Code], ?CALL_MS) of
        {module, Module} -> given(Node, Function, Arguments, Others);
        {error, _} -> {error, <<(atom_to_binary(Node))/binary, " can not load the code for a "
                                "closer look: its OTP is older">>}
    end.

text(Text) -> unicode:characters_to_binary(Text).
