%% SPDX-License-Identifier: Apache-2.0
%% @doc What `erlang_vm_dist_*' says of each connected node: its sockets, the processes of its
%% connection, and the queue before it.
%%
%% A weft peer with a direct link has the sockets of all lanes of that link. One behind a gateway
%% has none: the link to the gateway carries what is for others, too, so what its own session has
%% counted stands for the socket. While a session has no path it is neither, and a gap is better
%% than the numbers of the one between those of the other. A stock peer has one socket, which is
%% found by its address.
-module(weft_ops_peers).

-include_lib("kernel/include/net_address.hrl").

-export([all/1, sum/1]).
-export_type([peer/0, counted/0]).

-define(PROCESS, [memory, heap_size, min_heap_size, min_bin_vheap_size, stack_size,
                  total_heap_size, message_queue_len, reductions, status]).
-define(PORT, [input, output, memory, queue_size]).
%% What the process of a TLS connection was started as; its name differs between releases.
-define(TLS, [tls_connection, tls_client_connection, tls_server_connection]).

-type counted() :: #{atom() => integer()}.
%% inet: keys of `inet:getstat/1'; port: of `erlang:port_info/2'. Both may lack some, or all.
-type peer() :: #{node := node(), state := atom(), inet := counted(), port := counted(),
                  processes := [{dist | tls_connection | tls_sender, #{atom() => term()}}],
                  queue_bytes := integer() | undefined}.

%% @doc All nodes that are connected, or that the kernel is about to connect. Status is that of
%% `weft:status/0'.
-spec all(Status :: map()) -> [peer()].
all(#{sessions := Sessions, links := Links} = Status) ->
    Infos = infos(erlang:is_alive()),
    Sockets = sockets(),
    Named = maps:merge(unanswered(Status), by_node(Sessions)),
    Stock = [Node || {Node, _} <- Infos, not is_map_key(Node, Named)],
    Known = #{sessions => Named, links => by_node(Links), ports => link_ports(Sockets),
              addresses => case Stock of [] -> #{}; _ -> by_address(Sockets) end},
    [peer(Node, Info, Known) || {Node, Info} <- Infos].

infos(true) ->
    {ok, Infos} = net_kernel:nodes_info(),
    Infos;
infos(false) ->
    [].

%% A session whose process has not answered is no stock peer; by which way it goes is not known.
unanswered(Status) ->
    maps:from_list([{Node, #{node => Node, pid => Pid, next_hop => undefined}}
                    || #{what := session, node := Node, pid := Pid}
                           <- maps:get(unanswered, Status, [])]).

by_node(Rows) -> maps:from_list([{Node, Row} || #{node := Node} = Row <- Rows]).

peer(Node, Info, #{sessions := Sessions} = Known) ->
    {owner, Owner} = lists:keyfind(owner, 1, Info),
    Shared = #{node => Node, state => proplists:get_value(state, Info)},
    maps:merge(Shared, case Sessions of
                           #{Node := Session} -> of_session(Session, Owner, Known);
                           #{} -> of_stock(Node, Owner, address(Info), Known)
                       end).

%% --- weft peers ---------------------------------------------------------------------------------

of_session(#{node := Node, next_hop := Next} = Session, Owner, Known) ->
    {Inet, Port} = case Next of
                       Node -> of_link(Session, Known);
                       undefined -> {#{}, #{}};
                       _ -> {of_counters(Session), #{}}
                   end,
    #{inet => Inet, port => Port, processes => processes([{dist, maps:get(pid, Session, Owner)}]),
      queue_bytes => maps:get(queued_bytes, Session, undefined)}.

%% Lanes that a broker carries have no sockets of their own.
of_link(#{node := Node} = Session, #{links := Links} = Known) ->
    case [Stat || #{Node := #{lane_stats := Lanes}} <- [Links], #{stat := Stat} <- Lanes,
                  Stat =/= #{}] of
        [] -> {of_counters(Session), #{}};
        Stats -> {sum(Stats), of_ports(Node, Known)}
    end.

of_counters(Session) ->
    maps:from_list([{Name, maps:get(Key, Session)}
                    || {Name, Key} <- [{recv_oct, bytes_in}, {recv_cnt, packets_in},
                                       {send_oct, bytes_out}, {send_cnt, packets_out}],
                       is_map_key(Key, Session)]).

%% @doc One statistics of several sockets: sums, the largest of the largest, and averages that
%% count each packet once.
-spec sum([counted()]) -> counted().
sum(Stats) ->
    Sums = [{Key, lists:sum(values(Key, Stats))}
            || Key <- [recv_oct, recv_cnt, send_oct, send_cnt, send_pend]],
    Largest = [{Key, lists:max([0 | values(Key, Stats)])} || Key <- [recv_max, send_max]],
    Averages = [{Key, average(Key, Count, Stats)}
                || {Key, Count} <- [{recv_avg, recv_cnt}, {recv_dvi, recv_cnt},
                                    {send_avg, send_cnt}]],
    maps:from_list(Sums ++ Largest ++ Averages).

values(Key, Stats) -> [Value || #{Key := Value} <- Stats].

average(Key, Count, Stats) ->
    Pairs = [{Value, Times} || #{Key := Value, Count := Times} <- Stats],
    case lists:sum([Times || {_, Times} <- Pairs]) of
        0 -> 0;
        Total -> lists:sum([Value * Times || {Value, Times} <- Pairs]) div Total
    end.

of_ports(Node, #{ports := All}) ->
    Ports = maps:get(Node, All, []),
    maps:from_list([{Item, lists:sum([Value || Port <- Ports,
                                               {_, Value} <- [erlang:port_info(Port, Item)]])}
                    || Ports =/= [], Item <- ?PORT]).

%% The sockets of each link.
link_ports(Sockets) ->
    Nodes = maps:from_list([{Link, Node} || {Node, Link} <- link_processes()]),
    lists:foldl(fun({Node, Port}, Ports) ->
                        maps:update_with(Node, fun(Others) -> [Port | Others] end, [Port], Ports)
                end, #{}, [{Node, Port} || map_size(Nodes) > 0, {Port, Owner} <- Sockets,
                                           Node <- node_of(Owner, Nodes)]).

%% Without `-proto_dist weft' there is no table to read.
link_processes() ->
    case weft_links:owner() of
        undefined -> [];
        _ -> weft_links:list()
    end.

%% With TLS the socket belongs to the process of the connection, which watches whom it works for.
node_of(Owner, Nodes) ->
    case {Nodes, weft_config:get(transport)} of
        {#{Owner := Node}, _} -> [Node];
        {_, tls} -> [Node || {monitors, Watched} <- [process_info(Owner, monitors)],
                             {process, Pid} <- Watched, #{Pid := Node} <- [Nodes]];
        {_, tcp} -> []
    end.

%% --- stock peers --------------------------------------------------------------------------------

of_stock(Node, Owner, Address, #{addresses := Sockets}) ->
    {Ports, Others} = case Sockets of
                          #{Address := {Port, Owner}} -> {[Port], []};
                          #{Address := {Port, Connection}} -> {[Port], tls(Connection)};
                          #{} -> {[], []}
                      end,
    #{inet => maps:from_list([Pair || Port <- Ports, {ok, Stat} <- [inet:getstat(Port)],
                                      Pair <- Stat]),
      port => maps:from_list([Pair || Port <- Ports, Item <- ?PORT,
                                      {_, _} = Pair <- [erlang:port_info(Port, Item)]]),
      processes => processes([{dist, Owner} | Others]), queue_bytes => queue_bytes(Node)}.

by_address(Sockets) ->
    maps:from_list([{Address, Socket} || {Port, _} = Socket <- Sockets,
                                         {ok, Address} <- [inet:peername(Port)]]).

address(Info) ->
    case proplists:get_value(address, Info) of
        #net_address{address = Address} -> Address;
        _ -> undefined
    end.

tls(Connection) ->
    [{tls_connection, Connection} || began_as(Connection, ?TLS)]
        ++ [{tls_sender, Sender}
            || {links, [Sender | _]} <- [process_info(Connection, links)], is_pid(Sender),
               began_as(Sender, [tls_sender])].

began_as(Pid, Modules) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind('$initial_call', 1, Dictionary) of
                {_, {Module, init, 1}} -> lists:member(Module, Modules);
                _ -> false
            end;
        undefined ->
            false
    end.

%% As prometheus.erl has it: the kernel's table has the handle of the connection in this place.
queue_bytes(Node) ->
    try erlang:dist_get_stat(ets:lookup_element(sys_dist, Node, 3)) of
        {ok, _In, _Out, Bytes} -> Bytes
    catch
        error:_Ended -> undefined
    end.

%% --- processes and ports ------------------------------------------------------------------------

processes(Typed) ->
    [{Type, maps:from_list(Info)} || {Type, Pid} <- Typed,
                                     Info <- [process_info(Pid, ?PROCESS)], Info =/= undefined].

%% All TCP sockets of the node, with whom they belong to.
sockets() ->
    [{Port, Owner} || Port <- erlang:ports(), {name, "tcp_inet"} <- [erlang:port_info(Port, name)],
                      {connected, Owner} <- [erlang:port_info(Port, connected)]].
