%% SPDX-License-Identifier: Apache-2.0
%% @doc This node joins a cluster, or leaves it; a node that is gone for good is forgotten. Here is
%% the order of the steps; who is a member is decided by the topology.
%%
%% A node that leaves: nothing is relayed through it any more, what its sessions have accepted is
%% delivered (within a limit), distribution connections to members end, the topology tells the
%% others, and the links are closed. It goes on alone (`weft_alone_core') until it joins again or
%% the application is started again. Connections to nodes that are no members stay. A topology that
%% does not answer, which may be one of the user's, is ended: the node is alone all the same.
%%
%% Topologies whose members are written in the configuration (`static', `groups') are changed there
%% (`weft_topology_change'), not here.
-module(weft_membership_change).

-export([join/1, leave/1, forget/1]).
-export_type([leave_options/0]).

-define(JOIN_MS, 10000).
-define(DRAIN_MS, 5000).
-define(CLOSE_MS, 2000).
-define(POLL_MS, 20).
%% What a node takes at most to say whether it has left.
-define(ALONE_MS, 10000).
%% After that time the last error of a link is that of a dial that was made for this join.
-define(FIRST_DIAL_MS, 1000).
%% Reasons that do not pass by themselves.
-define(FINAL, [no_such_node, no_epmd, no_port, wrong_cookie, wrong_cluster, wrong_version,
                wrong_target, not_weft, same_name, superseded, stock_denied, cut, refused]).

-type leave_options() :: #{drain_ms => non_neg_integer()}.
-type result() :: ok | {error, string()}.

%% --- join -------------------------------------------------------------------------------------

%% @doc See `weft:join/1'.
-spec join(node()) -> result().
join(Node) -> weft_one_change:run(fun() -> join_now(Node) end).

join_now(Node) ->
    case {weft_topology_rules:node_names("weft:join", [Node]), weft_overlay:topology()} of
        {{error, Text}, _} -> failed("~ts", [Text]);
        {ok, none} -> no_topology();
        {ok, _} when Node =:= node() -> ok;
        {ok, {weft_alone_core, _}} -> joined_again(Node);
        {ok, {Module, _}} -> joined(Node, is_member(Node), weft_topology:finds_members(Module)
                                                       orelse weft_topology:tunnel(Module))
    end.

%% A topology of one's own starts with the members that it knew; one that has left knew none.
joined_again(Node) ->
    Term = weft_topology_change:current(),
    {ok, Module, Options} = weft_topology:parse(Term),
    ok = weft_overlay_sup:change(Module, Options),
    ok = weft_topology_change:takes_part_again(),
    join_now(Node).

joined(_Node, true, _How) ->
    ok;
joined(Node, false, true) ->
    ok = weft_discovery_poller:add(Node),
    ok = weft_links:connect(Node),
    ok = weft_links:hurry(Node),
    Joined = until_member(Node, [], fun() -> given_up(Node) end),
    ok = left_to_topology(Node),
    Joined;
joined(Node, false, {ok, _Tunnel}) ->
    until_member(Node, "it has not announced itself at the broker of this node, or has left its "
                       "cluster", fun() -> ok end);
joined(Node, false, _Written) ->
    case lists:member(Node, weft_overlay:members()) of
        true -> until_member(Node, [], fun() -> ok end);
        false -> failed("~ts is not among the members, which are written in the topology of this "
                        "node: change it on all nodes with weft:topology/1", [Node])
    end.

%% It may have become a member over others, and nobody would end a dial that is never answered.
left_to_topology(Node) ->
    case weft_links:up(Node) of
        true -> ok;
        false -> weft_overlay:release(Node)
    end.

until_member(Node, Reason, GiveUp) ->
    StartMs = now_ms(),
    Ended = until(fun() -> is_member(Node) orelse final_error(Node, StartMs) end, ?JOIN_MS),
    %% To look at a link may take seconds, in which the node may have become a member.
    case is_member(Node) orelse Ended of
        true -> ok;
        {final, Why} -> GiveUp(), failed("~ts: ~ts", [Node, weft_refusals:explain(Why)]);
        false -> Why = why_not(Node, Reason), GiveUp(), failed("~ts: ~ts", [Node, Why])
    end.

is_member(Node) ->
    lists:member(Node, weft_overlay:members()) andalso weft_overlay:has_route(Node).

final_error(Node, StartMs) ->
    case now_ms() - StartMs > ?FIRST_DIAL_MS andalso last_error(Node) of
        Why when is_atom(Why) -> lists:member(Why, ?FINAL) andalso {final, Why};
        {Why, _Claims} = Reason -> lists:member(Why, ?FINAL) andalso {final, Reason};
        _ -> false
    end.

last_error(Node) ->
    case weft_links:up(Node) orelse weft_links:lookup(Node) of
        {ok, Link} -> try maps:get(last_error, weft_link:info(Link)) catch exit:_ -> undefined end;
        _ -> undefined
    end.

why_not(Node, Reason) ->
    case {weft_links:up(Node), last_error(Node), Reason} of
        {true, _, _} -> "there is a link, but in ten seconds it became no member: is the "
                        "application weft started there, with the same kind of topology? Or has "
                        "it left its cluster? Then it has to join";
        {false, Why, []} -> ["not reached in ten seconds: " | weft_refusals:explain(Why)];
        {false, _, _} -> Reason
    end.

given_up(Node) ->
    ok = weft_discovery_poller:remove(Node),
    weft_overlay:release(Node).

%% --- leave ------------------------------------------------------------------------------------

%% @doc See `weft:leave/1'.
-spec leave(leave_options()) -> result().
leave(Options) -> weft_one_change:run(fun() -> leave_now(Options) end).

leave_now(Options) ->
    case {weft_overlay:topology(), Options} of
        {none, _} -> no_topology();
        {{weft_alone_core, _}, _} -> ok;
        {{Written, _}, _} when Written =:= weft_static_core; Written =:= weft_groups_core ->
            failed("the members are written in the topology: take this node out of it on the "
                   "others with weft:topology/1, then stop this node", []);
        {_, #{drain_ms := DrainMs}} when map_size(Options) =:= 1, is_integer(DrainMs),
                                         DrainMs >= 0 -> left(DrainMs);
        {_, None} when map_size(None) =:= 0 -> left(?DRAIN_MS);
        {_, _} -> failed("options of weft:leave are ~0tp: write #{drain_ms => Ms}", [Options])
    end.

left(DrainMs) ->
    Members = weft_overlay:members() -- [node()],
    Deadline = now_ms() + DrainMs,
    _ = weft_transit:close(),
    _ = until(fun() -> weft_transit:move(), weft_transit:circuits() =:= 0 end, DrainMs),
    ok = drained(Members, Deadline),
    ok = weft_overlay_sup:unreach_members(),
    ok = parted(Members),
    _ = disconnect(Members),
    Told = told(),
    ok = weft_overlay_sup:change(weft_alone_core, #{}),
    lists:foreach(fun weft_discovery_poller:remove/1, Members),
    ok = parted(Members),
    _ = until(fun() -> close(Members) end, ?CLOSE_MS),
    Told.

%% Links stay for a while, so that the others can be told, but no connection is made for their sake.
parted(Members) ->
    lists:foreach(fun(Node) ->
                          ok = weft_links:agree(Node, false),
                          ok = weft_links:disconnect(Node)
                  end, Members).

%% Nodes that had not yet heard of it may have begun to connect again. A connection can be ended
%% only when it is complete, and until then its session brings a link that is closed up again. The
%% answer is whether there was nothing left to close.
close(Members) ->
    _ = disconnect(Members),
    Peers = weft_sessions:distribution_peers(),
    Apart = [Node || Node <- Members, not lists:member(atom_to_binary(Node), Peers)],
    Up = lists:filter(fun weft_links:up/1, Apart),
    lists:foreach(fun weft_links:break/1, Up),
    {length(Apart), Up} =:= {length(Members), []}.

told() ->
    try weft_overlay:leave()
    catch exit:_NoAnswer ->
            failed("the topology of this node did not answer, and was ended. The node has left, "
                   "but the others were not told: call weft:leave(~0tp) on one of them", [node()])
    end.

disconnect(Members) ->
    [erlang:disconnect_node(Node) || Node <- nodes(connected), lists:member(Node, Members)].

%% What is sent later than this arrives after all that waits in the queues now, so an answer to it
%% shows that this has arrived.
drained(Members, Deadline) ->
    _ = until(fun() -> not lists:any(fun(Session) -> has_queued(Session, Members) end,
                                     weft_sessions:list()) end, left_ms(Deadline)),
    Connected = [Node || Node <- nodes(connected), lists:member(Node, Members)],
    _ = weft_ask:all(Connected, fun(Node) -> erpc:call(Node, erlang, node, []) end,
                     left_ms(Deadline)),
    ok.

left_ms(Deadline) -> max(0, Deadline - now_ms()).

has_queued(Session, Members) ->
    try weft_session:info(Session) of
        #{node := Node, queued_bytes := Bytes} -> Bytes > 0 andalso lists:member(Node, Members);
        _ -> false
    catch
        exit:_Ended -> false
    end.

%% --- forget -----------------------------------------------------------------------------------

%% @doc See `weft:leave/1'.
-spec forget(node()) -> result().
forget(Node) ->
    case {weft_overlay:topology(), lists:member(Node, nodes(connected))} of
        {none, _} -> no_topology();
        {_, false} -> forgotten(Node);
        {_, true} ->
            case has_left(Node) of
                true -> forgotten(Node);
                false -> failed("~ts is connected: call weft:leave() there", [Node])
            end
    end.

%% It is alone, and this node was not told and has connected again. Or the connection ends just now.
has_left(Node) ->
    try erpc:call(Node, weft_overlay, topology, [], ?ALONE_MS) of
        {Module, _Options} -> Module =:= weft_alone_core;
        none -> false
    catch
        error:{erpc, noconnection} -> true;
        error:{erpc, _NoAnswer} -> false;
        error:{exception, _Reason, _Stack} -> false
    end.

%% In this order, or the topology would no longer dial a seed when it is asked whether it knows it.
forgotten(Node) ->
    Answer = weft_overlay:forget(Node),
    ok = weft_discovery_poller:remove(Node),
    forgotten(Answer, Node).

forgotten(ok, Node) ->
    _ = erlang:disconnect_node(Node),
    ok;
forgotten({error, configured}, Node) ->
    failed("~ts is written in the topology: take it out on all nodes with weft:topology/1", [Node]);
forgotten({error, _UnknownMember}, Node) ->
    failed("~ts is no member that this node knows. (With peer_to_peer no node has a list of "
           "members: one that does not answer is forgotten by itself)", [Node]).

%% --- small parts ------------------------------------------------------------------------------

no_topology() ->
    failed("no topology runs on this node: configure one and start the application weft", []).

failed(Format, Arguments) ->
    {error, unicode:characters_to_list(io_lib:format(Format, Arguments))}.

%% The first value that is not false.
until(Condition, TimeoutMs) ->
    poll(Condition, now_ms() + TimeoutMs).

poll(Condition, Deadline) ->
    case Condition() of
        false ->
            case now_ms() < Deadline of
                true -> receive after ?POLL_MS -> poll(Condition, Deadline) end;
                false -> false
            end;
        Value -> Value
    end.

now_ms() -> erlang:monotonic_time(millisecond).
