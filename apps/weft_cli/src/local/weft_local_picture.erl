%% SPDX-License-Identifier: Apache-2.0
%% @doc One picture of a whole cluster, put together from what each node says of itself
%% (`weft_status'): who runs, which links there are, which sessions, and by which ways they go.
%% Pure.
%%
%% The nodes are asked at the same time, not at the same instant: while sessions look for a new way
%% the picture may show halves. Its terms are ready for `weft_json'.
-module(weft_local_picture).

-export([of_statuses/2, way/3]).
-export_type([picture/0, statuses/0, circuit/0, group/0, scope/0]).

-type statuses() :: #{node() => weft_status:status()}.
%% hops: the nodes on the way, both ends included; [] while there is none.
-type circuit() :: #{from := node(), to := node(), hops := [node()],
                     state := up | resuming | handshake, resumes := non_neg_integer(),
                     reroutes := non_neg_integer(),
                     last_resume_ms := non_neg_integer() | undefined,
                     bytes_out := non_neg_integer(), bytes_in := non_neg_integer(),
                     unacked_bytes := non_neg_integer()}.
%% `gateways': the nodes that it shares with other groups, for each of them.
-type group() :: #{name := binary(), members := [node()],
                   gateways := [#{to := binary(), nodes := [node()]}]}.
%% `full_mesh': how many there would be if all nodes were neighbours; of TCP connections, with one
%% for each pair, as stock distribution has it. A link has as many connections as it has lanes.
%% `names': of all nodes together.
-type scope() :: #{scope := binary(), kind := eventual | strong, nodes := pos_integer(),
                   names := non_neg_integer()}.
-type picture() :: #{nodes := [map()],
                     links := #{used := non_neg_integer(), full_mesh := non_neg_integer()},
                     tcp_connections := #{used := non_neg_integer(),
                                          full_mesh := non_neg_integer()},
                     sessions := non_neg_integer(), resumes := non_neg_integer(),
                     reroutes := non_neg_integer(),
                     broadcast := #{atom() => non_neg_integer()},
                     groups := [group()], scopes := [scope()],
                     circuits := [circuit()], direct := [circuit()]}.

%% `broadcast': the counts of all nodes together, see `weft_broadcast:info/0'; links are counted at
%% both ends.

%% @doc The picture that these answers give.
-spec of_statuses(#{nodes := [node()], unknown := [node()], _ => _}, statuses()) -> picture().
of_statuses(#{nodes := Nodes, unknown := Unknown}, Statuses) ->
    FullMesh = length(Nodes) * (length(Nodes) - 1) div 2,
    Links = links(Nodes, Statuses),
    Sessions = [session(Node, Session, Statuses)
                || {Node, #{sessions := Sessions}} <- lists:sort(maps:to_list(Statuses)),
                   #{node := Peer} = Session <- Sessions, begins(Node, Session, Statuses),
                   lists:member(Peer, Nodes)],
    #{nodes => [node_row(Node, Nodes, Unknown, Statuses) || Node <- Nodes],
      links => #{used => length([up || Lanes <- Links, Lanes > 0]), full_mesh => FullMesh},
      tcp_connections => #{used => lists:sum(Links), full_mesh => FullMesh},
      sessions => length(Sessions),
      resumes => lists:sum([Resumes || #{resumes := Resumes} <- Sessions]),
      reroutes => lists:sum([Reroutes || #{reroutes := Reroutes} <- Sessions]),
      broadcast => lists:foldl(fun add/2, #{}, [broadcast(Status)
                                                || Status <- maps:values(Statuses)]),
      groups => groups(Statuses), scopes => scopes(Statuses),
      circuits => [Session || #{hops := Hops} = Session <- Sessions, length(Hops) =/= 2],
      direct => [Session || #{hops := [_, _]} = Session <- Sessions]}.

%% Without what is no count: who has subscribed to what.
broadcast(#{broadcast := Broadcast}) ->
    Tree = maps:get(tree, Broadcast, #{}),
    maps:merge(Tree, maps:without([tree, subscribers], Broadcast)).

add(Counts, Sums) ->
    maps:fold(fun(Key, Count, Acc) -> Acc#{Key => Count + maps:get(Key, Acc, 0)} end, Sums, Counts).

%% While a group changes nodes may know different members; then one of them is believed.
groups(Statuses) ->
    Known = lists:foldl(fun(#{groups := Groups}, Acc) -> maps:merge(Acc, Groups) end, #{},
                        maps:values(Statuses)),
    [#{name => text(Name), members => Members,
       gateways => [#{to => text(Other), nodes => Shared}
                    || {Other, Nodes} <- lists:sort(maps:to_list(Known)), Other =/= Name,
                       [_ | _] = Shared <- [[N || N <- Nodes, lists:member(N, Members)]]]}
     || {Name, Members} <- lists:sort(maps:to_list(Known))].

scopes(Statuses) ->
    All = [{Scope, Info} || #{names := Scopes} <- maps:values(Statuses),
                            {Scope, Info} <- maps:to_list(Scopes)],
    [#{scope => scope_text(Scope), kind => Kind, nodes => length(Infos),
       names => lists:sum([own_names(Info) || Info <- Infos])}
     || Scope <- lists:usort([S || {S, _} <- All]),
        Infos <- [[Info || {S, Info} <- All, S =:= Scope]],
        #{kind := Kind} <- [hd(Infos)]].

scope_text({group, Group}) -> <<"group ", (text(Group))/binary>>;
scope_text(Scope) -> text(Scope).

%% The name of a group is any term.
text(Name) when is_atom(Name) -> atom_to_binary(Name);
text(Name) -> unicode:characters_to_binary(io_lib:format("~0tp", [Name])).

%% Each node counts those of its own processes.
own_names(Info) -> maps:get(own, Info, maps:get(owned, Info, 0)).

%% A session is counted at the node that began it; at the other one if that is gone.
begins(_Node, #{role := initiator}, _Statuses) -> true;
begins(_Node, #{role := acceptor, node := Peer}, Statuses) -> not is_map_key(Peer, Statuses).

session(Node, #{node := Peer} = Session, Statuses) ->
    Hops = case way(Node, Peer, Statuses) of
               {ok, Way} -> [Node | [To || #{to := To} <- Way]];
               {error, _, _} -> []
           end,
    (maps:with([state, resumes, last_resume_ms, bytes_out, bytes_in, unacked_bytes], Session))
        #{from => Node, to => Peer, hops => Hops, reroutes => maps:get(reroutes, Session, 0)}.

%% @doc The way between two nodes, as these answers tell it.
-spec way(node(), node(), statuses()) -> weft_trace:result().
way(From, To, Statuses) ->
    weft_trace:walk(From, To, fun(Node) -> maps:find(Node, Statuses) end).

%% The lanes of each link. It is seen from two sides, which may differ for a moment.
links(Nodes, Statuses) ->
    Lanes = [{{min(Node, Peer), max(Node, Peer)}, Count}
             || {Node, #{links := Links}} <- maps:to_list(Statuses),
                #{node := Peer, lanes := Count} <- Links, lists:member(Peer, Nodes)],
    Pairs = lists:foldl(fun({Pair, Count}, Map) ->
                                maps:update_with(Pair, fun(C) -> max(C, Count) end, Count, Map)
                        end, #{}, Lanes),
    maps:values(Pairs).

%% What is no node of the cluster (the command itself, for one) is left out.
node_row(Node, Nodes, Unknown, Statuses) ->
    case Statuses of
        #{Node := #{os_pid := OsPid, uptime_ms := UptimeMs, links := AllLinks, names := Names,
                    sessions := Sessions, cuts := Cuts, routes := Routes} = Status} ->
            Links = [Link || #{node := Peer} = Link <- AllLinks, lists:member(Peer, Nodes)],
            Relayed = [Circuit || #{circuits := Circuits} <- Links, Circuit <- Circuits],
            #{node => Node, running => true, os_pid => list_to_integer(OsPid),
              uptime_ms => UptimeMs, neighbours => [P || #{node := P, state := up} <- Links],
              links => [link_row(Link) || Link <- Links],
              sessions => length([Peer || #{node := Peer} <- Sessions, lists:member(Peer, Nodes)]),
              routes => map_size(Routes), cuts => Cuts, broadcast => broadcast(Status),
              names => lists:sum([own_names(Info) || Info <- maps:values(Names)]),
              groups => [text(Group) || Group <- maps:get(own_groups, Status)],
              %% A circuit that passes through is known to the link it comes by and to the other.
              relayed_circuits => length(Relayed) div 2,
              relayed_bytes => relayed_bytes(Status, Links)};
        #{} ->
            #{node => Node, running => case lists:member(Node, Unknown) of
                                           true -> undefined;
                                           false -> false
                                       end}
    end.

%% The node counts this itself: what a link has relayed is gone when it ends.
relayed_bytes(#{counters := #{relayed_bytes := Bytes}}, _Links) -> Bytes;
relayed_bytes(_OfAnEarlierVersion, Links) ->
    lists:sum([Bytes || #{relayed_bytes := Bytes} <- Links]).

link_row(#{last_error := LastError} = Link) ->
    (maps:with([node, state, lanes, rtt_us, queued_bytes, relayed_bytes, ups], Link))
        #{last_error => unicode:characters_to_binary(LastError)}.
