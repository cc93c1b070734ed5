%% SPDX-License-Identifier: Apache-2.0
%% @doc Links of a service: the link module (`weft_driver') whose links are ordinary distribution
%% connections, so that a service runs wherever messages pass, with or without an overlay.
%%
%% One process for each driver, linked to it, registered as the driver's name and `_links'. A
%% neighbour is a node that is connected, hidden or not, and on which the driver of that name is
%% alive. The two processes greet each other first, and a driver that was started again is a new
%% neighbour. Connected programs that are no VMs are not greeted.
%%
%% A session of the two has a number on either side. `hello' tells the number of the sender. The
%% receiver opens an outlet (`weft_node_outlet'), which first sends `welcome' with both numbers. A
%% welcome with our number proves that the other side takes what we send: the neighbour is up when
%% our outlet is open, too. Data goes from outlet to driver and carries the receiver's number, so
%% data of an earlier session is dropped (`weft_driver_order'). A number is given up when a session
%% that was up under it ends. Of two numbers of a peer the greater one is valid.
%%
%% Messages arrive in order, or the session ends. If too much waits the session ends, and the
%% next one begins as soon as the connection takes a hello. Neither this process nor a sender ever
%% waits. `disconnect' does nothing, because distribution connections belong to all processes.
%%
%% Where distribution begins or ends while the driver runs, the node has another name from then on,
%% and the driver is told.
-module(weft_node_links).
-behaviour(gen_server).

-export([subscribe/2, subscribe/3, send/3, unknown/2, connect/1, disconnect/1, break/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% How long to wait for the answer that a node has no such service.
-define(PROBE_MS, 5000).

-type session_number() :: pos_integer().

-record(peer, {mine :: session_number(),
               theirs = none :: none | session_number(),
               pid = none :: none | pid(),
               outlet = none :: none | weft_node_outlet:outlet(),
               is_open = false :: boolean(),
               %% The driver there, once we are welcome.
               driver = none :: none | pid(),
               is_up = false :: boolean()}).

-record(links, {name :: atom(),
                driver :: pid(),
                %% By which outlets it sends (`weft_node_outlet').
                share :: shared | atom(),
                self :: node(),
                last = 0 :: non_neg_integer(),
                peers = #{} :: #{node() => #peer{}},
                %% The node whose data comes under one of our numbers.
                open = #{} :: #{session_number() => node()}}).

%% @doc Starts the links of the driver Name, which is the calling process. It gets
%% `{weft_link, up, Node, #{send := MFA, session := Number}}', `{weft_link, down, Node, Reason}',
%% `{weft_data, Number, Count, Message}', and `{weft_link, named, Self}'.
-spec subscribe(Name :: atom(), pid()) -> ok.
subscribe(Name, Driver) -> subscribe(Name, Driver, shared).

%% @doc The same; what it sends goes by the outlets that such drivers share, or by its own, of the
%% name of the driver (`weft_node_outlet').
-spec subscribe(Name :: atom(), pid(), Share :: shared | atom()) -> ok.
subscribe(Name, Driver, Share) when Driver =:= self() ->
    Registered = registered(Name),
    case gen_server:start_link({local, Registered}, ?MODULE, {Registered, Driver, Share}, []) of
        {ok, _Pid} ->
            ok;
        %% The process of a driver that was killed is about to end.
        {error, {already_started, Former}} ->
            Ref = monitor(process, Former),
            receive {'DOWN', Ref, process, Former, _} -> subscribe(Name, Driver, Share) end
    end.

registered(Driver) -> list_to_atom(atom_to_list(Driver) ++ "_links").

%% @doc Not used: to a neighbour that is up the driver sends by the function that came with `up'.
-spec send(node(), Name :: atom(), term()) -> {error, not_connected}.
send(_Node, _Driver, _Message) -> {error, not_connected}.

%% @doc The driver got data of a session that it does not know. If there is such a session, the
%% driver gets the data again after the news that the session is up.
-spec unknown(Name :: atom(), Data :: tuple()) -> ok.
unknown(Name, Data) ->
    registered(Name) ! Data,
    ok.

%% @doc Connects to a node, by a circuit if need be. Called by the driver; the answer is `up', or
%% `down' with the reason `connect_failed' or `no_service'.
-spec connect(node()) -> ok.
connect(Node) -> ask({connect, Node}).

%% @doc Does nothing: distribution connections belong to all processes.
-spec disconnect(node()) -> ok.
disconnect(_Node) -> ok.

%% @doc Ends the session with a node; a new one begins at once.
-spec break(node()) -> ok.
break(Node) -> ask({break, Node}).

ask(Request) ->
    {registered_name, Driver} = process_info(self(), registered_name),
    gen_server:cast(registered(Driver), Request).

%% @private
-spec init({atom(), pid(), shared | atom()}) -> {ok, #links{}}.
init({Name, Driver, Share}) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    {ok, lists:foldl(fun hello/2,
                     #links{name = Name, driver = Driver, share = Share, self = node()},
                     nodes(connected))}.

%% @private
-spec handle_call(term(), gen_server:from(), #links{}) -> {reply, {error, term()}, #links{}}.
handle_call(Request, _From, Links) ->
    {reply, weft_stray:call(Request), Links}.

%% @private
-spec handle_cast(term(), #links{}) -> {noreply, #links{}}.
handle_cast({connect, Node}, Links) ->
    _ = is_up(Node, Links) orelse Node =:= node() orelse probe(Node, Links),
    {noreply, Links};
handle_cast({failed, Node, Reason}, Links) ->
    _ = is_up(Node, Links) orelse tell({down, Node, Reason}, Links),
    {noreply, Links};
handle_cast({break, Node}, Links) ->
    {noreply, broken(Node, broken, Links)};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #links{}) -> {noreply, #links{}}.
handle_info({weft_data, Number, _, _} = Data, #links{open = Open, driver = Driver} = Links) ->
    _ = case Open of
            #{Number := _} -> Driver ! Data;
            #{} -> of_an_earlier_session
        end,
    {noreply, Links};
handle_info({weft_hello, Pid, Theirs}, Links) ->
    {noreply, greeted(Pid, Theirs, Links)};
handle_info({weft_welcome, Pid, Driver, Theirs, Mine}, Links) ->
    {noreply, welcome(Driver, Theirs, Mine, greeted(Pid, Theirs, Links))};
handle_info({Change, Node, _Info}, #links{self = Self, driver = Driver} = Links)
  when Change =:= nodeup, Node =:= node(); Change =:= nodedown, Node =:= Self ->
    Driver ! {weft_link, named, node()},
    {noreply, Links#links{self = node()}};
handle_info({nodeup, Node, _Info}, Links) ->
    {noreply, hello(Node, Links)};
handle_info({nodedown, Node, _Info}, #links{peers = Peers} = Links) ->
    case Peers of
        #{Node := #peer{pid = none}} -> {noreply, Links#links{peers = maps:remove(Node, Peers)}};
        #{} -> {noreply, Links}
    end;
handle_info({weft_outlet_open, Session}, Links) ->
    {noreply, lists:foldl(fun(Node, #links{peers = Peers} = L) ->
                              ready(Node, (map_get(Node, Peers))#peer{is_open = true}, L)
                          end, Links, of_session(Session, Links))};
handle_info({weft_outlet_lost, Session, Reason}, Links) ->
    {noreply, lists:foldl(fun(Node, L) -> lost(Node, Reason, L) end, Links,
                          of_session(Session, Links))};
%% An outlet that died has lost the messages that waited in it.
handle_info({'DOWN', Session, process, _Outlet, _Reason}, Links) ->
    {noreply, lists:foldl(fun(Node, L) -> broken(Node, outlet_died, L) end, Links,
                          of_session(Session, Links))};
%% A hello or a probe.
handle_info({'EXIT', _Pid, _Reason}, Links) ->
    {noreply, Links};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% --- sessions ---------------------------------------------------------------------------------

%% The node of a session that is open.
of_session(Session, #links{peers = Peers}) ->
    [Node || {Node, #peer{outlet = Outlet}} <- maps:to_list(Peers), Outlet =/= none,
             weft_node_outlet:reference(Outlet) =:= Session].

%% To send, even a hello, may wait for a busy connection, so another process does it.
hello(Node, Links0) ->
    {#peer{mine = Mine}, #links{name = Name} = Links} = peer(Node, Links0),
    Hello = {weft_hello, self(), Mine},
    _ = spawn_link(fun() ->
                           may_greet(Node) andalso erlang:send({Name, Node}, Hello, [noconnect])
                   end),
    Links.

%% Visible nodes are greeted by OTP itself, so they are VMs. Hidden ones may be other programs,
%% which would take the first message on a connection for the answer that they wait for. A node with
%% a session is a VM. So is one that can spawn: our VM knows that from the handshake, and to a node
%% that cannot it sends nothing. But the question would connect again to a node that has just been
%% disconnected. So it is not asked about nodes with a session, whose circuits come and go.
may_greet(Node) ->
    not lists:member(Node, nodes(hidden)) orelse has_session(Node) orelse can_spawn(Node).

%% Services run on the stock carrier as well.
has_session(Node) ->
    ets:whereis(weft_sessions) =/= undefined
        andalso weft_sessions:of_distribution(atom_to_binary(Node)) =/= [].

can_spawn(Node) ->
    Ref = spawn_request(Node, erlang, node, [], [{reply, yes}]),
    receive
        {spawn_reply, Ref, error, notsup} -> false;
        {spawn_reply, Ref, _, _} -> true
    end.

peer(Node, #links{peers = Peers, last = Last} = Links) ->
    case Peers of
        #{Node := Peer} ->
            {Peer, Links};
        #{} ->
            Peer = #peer{mine = Last + 1},
            {Peer, Links#links{last = Last + 1, peers = Peers#{Node => Peer}}}
    end.

%% A peer told its number. The process of an earlier one, or a lesser number of the same, is late.
greeted(Pid, Theirs, Links0) ->
    case peer(node(Pid), Links0) of
        {#peer{pid = Pid, theirs = Known}, Links} when Known =/= none, Theirs =< Known -> Links;
        {_, Links} -> opened(Pid, Theirs, ended(node(Pid), replaced, Links))
    end.

opened(Pid, Theirs, #links{name = Name, driver = Driver, share = Share, peers = Peers} = Links) ->
    Node = node(Pid),
    #{Node := #peer{mine = Mine} = Peer} = Peers,
    Outlet = weft_node_outlet:open(Share, Pid, Theirs,
                                   {weft_welcome, self(), Driver, Mine, Theirs},
                                   {gen_server, cast, [Name, {break, Node}]}),
    Links#links{peers = Peers#{Node => Peer#peer{theirs = Theirs, pid = Pid, outlet = Outlet}}}.

welcome(Driver, Theirs, Mine, #links{peers = Peers} = Links) ->
    Node = node(Driver),
    case Peers of
        #{Node := #peer{mine = Mine, theirs = Theirs, is_up = false} = Peer} ->
            ready(Node, Peer#peer{driver = Driver}, Links);
        #{} ->
            Links
    end.

ready(Node, #peer{mine = Mine, outlet = Outlet, is_open = true, driver = Driver} = Peer,
      #links{peers = Peers, open = Open} = Links) when Driver =/= none ->
    %% No closure: it would be one of old code after a load.
    Send = {weft_node_outlet, send, [Outlet, Driver]},
    tell({up, Node, #{send => Send, session => Mine}},
         Links#links{peers = Peers#{Node := Peer#peer{is_up = true}}, open = Open#{Mine => Node}});
ready(Node, Peer, #links{peers = Peers} = Links) ->
    Links#links{peers = Peers#{Node := Peer}}.

%% The peer is alive: it is greeted with the new number.
broken(Node, Reason, #links{peers = Peers} = Links) when is_map_key(Node, Peers) ->
    hello(Node, ended(Node, Reason, Links));
broken(_Node, _Reason, Links) ->
    Links.

%% If the node is connected in spite of it, or again, a hello finds out whether the service runs.
lost(Node, Reason, Links0) ->
    #links{peers = Peers} = Links = ended(Node, Reason, Links0),
    case lists:member(Node, nodes(connected)) of
        true -> hello(Node, Links);
        false -> Links#links{peers = maps:remove(Node, Peers)}
    end.

ended(Node, Reason, #links{peers = Peers} = Links) ->
    #{Node := #peer{mine = Mine, outlet = Outlet, is_up = IsUp}} = Peers,
    Outlet =:= none orelse weft_node_outlet:close(Outlet),
    case IsUp of
        false -> Links#links{peers = Peers#{Node := #peer{mine = Mine}}};
        true -> tell({down, Node, Reason}, renumbered(Node, Mine, Links))
    end.

renumbered(Node, Mine, #links{peers = Peers, open = Open, last = Last} = Links) ->
    Links#links{peers = Peers#{Node := #peer{mine = Last + 1}}, last = Last + 1,
                open = maps:remove(Mine, Open)}.

is_up(Node, #links{peers = Peers}) ->
    case Peers of
        #{Node := #peer{is_up = IsUp}} -> IsUp;
        #{} -> false
    end.

tell({What, Node, With}, #links{driver = Driver} = Links) ->
    Driver ! {weft_link, What, Node, With},
    Links.

%% --- connecting on demand ---------------------------------------------------------------------

%% When the connection is up, nodeup brings the hello; this only finds out if no service answers.
probe(Node, #links{name = Name}) ->
    Links = self(),
    spawn_link(fun() ->
                       case net_kernel:connect_node(Node) =:= true andalso service(Name, Node) of
                           true -> ok;
                           false -> gen_server:cast(Links, {failed, Node, connect_failed});
                           no_service -> gen_server:cast(Links, {failed, Node, no_service})
                       end
               end).

service(Name, Node) ->
    Ref = monitor(process, {Name, Node}),
    receive
        {'DOWN', Ref, process, _, noproc} -> no_service;
        {'DOWN', Ref, process, _, _} -> false
    after ?PROBE_MS ->
            demonitor(Ref, [flush]),
            true
    end.
