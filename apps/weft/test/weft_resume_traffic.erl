%% SPDX-License-Identifier: Apache-2.0
%% @doc Numbered messages between two nodes and an account of what arrived, for tests of sessions.
%% Runs on the nodes under test.
%%
%% send/2 sends to the receiver (expect/0) of the peer, at a rate; each message has a number and a
%% payload of random size. The receiver keeps account of what is lost, doubled or out of order. A
%% watcher (watch/1) keeps the DOWN, EXIT, nodeup and nodedown signals that the node saw. Whoever
%% is begun anew takes the place of the former one.
-module(weft_resume_traffic).

-export([expect/0, send/2, finish/0, account/0, watch/1, watch_nodes/0, stop/0]).
-export([kill_lanes/3, connect_at/2, reconnect/2, last_words/3, stop_ticks/0]).

-define(TICK_MS, 5).

%% Messages per second, size of payloads, how many messages in all.
-type options() :: #{rate := pos_integer(), bytes_max := non_neg_integer(),
                     seed := integer(), count => pos_integer() | infinity}.

%% @doc Starts the receiver of this node.
-spec expect() -> ok.
expect() ->
    Starter = self(),
    Ref = make_ref(),
    spawn(fun() ->
                  ok = take_name(weft_traffic_in),
                  Starter ! Ref,
                  receiving(#{next => 1, wrong => []})
          end),
    receive Ref -> ok end.

take_name(Name) ->
    lists:foreach(fun end_process/1, [Former || Former <- [whereis(Name)], is_pid(Former)]),
    true = register(Name, self()),
    ok.

%% @doc Begins to send to the peer.
-spec send(node(), options()) -> ok.
send(Peer, #{rate := Rate, bytes_max := BytesMax, seed := Seed} = Options) ->
    Count = maps:get(count, Options, infinity),
    spawn(fun() ->
                  ok = take_name(weft_traffic_out),
                  _ = rand:seed(exsss, Seed),
                  sending({weft_traffic_in, Peer}, now_ms(), {Rate, BytesMax, Count}, 0)
          end),
    ok.

sending(_To, _StartMs, {_Rate, _BytesMax, Count}, Sent) when Sent >= Count ->
    receive {finish, From, Ref} -> From ! {Ref, Sent} end;
sending(To, StartMs, {Rate, BytesMax, Count} = Plan, Sent) ->
    Due = min(Count, (now_ms() - StartMs) * Rate div 1000),
    Sent1 = send_up_to(To, BytesMax, Sent, min(Due, Sent + Rate)),
    receive
        {finish, From, Ref} -> From ! {Ref, Sent1}
    after ?TICK_MS ->
            sending(To, StartMs, Plan, Sent1)
    end.

send_up_to(_To, _BytesMax, Sent, Due) when Sent >= Due ->
    Sent;
send_up_to(To, BytesMax, Sent, Due) ->
    To ! {number, Sent + 1, binary:copy(<<Sent>>, rand:uniform(BytesMax + 1) - 1)},
    send_up_to(To, BytesMax, Sent + 1, Due).

%% @doc Ends sending. Returns how many messages were sent.
-spec finish() -> non_neg_integer().
finish() ->
    Monitor = monitor(process, weft_traffic_out),
    weft_traffic_out ! {finish, self(), Monitor},
    receive
        {Monitor, Sent} -> demonitor(Monitor, [flush]), Sent;
        {'DOWN', Monitor, _, _, Reason} -> erlang:error({sender, Reason})
    end.

%% @doc Ends what was started on this node; it may begin anew.
-spec stop() -> ok.
stop() ->
    Names = [weft_traffic_out, weft_traffic_in, weft_traffic_watch],
    lists:foreach(fun end_process/1, [Pid || Pid <- lists:map(fun whereis/1, Names), is_pid(Pid)]).

end_process(Pid) ->
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end.

receiving(#{next := Next, wrong := Wrong} = Account) ->
    receive
        {number, Next, _} ->
            receiving(Account#{next := Next + 1});
        {number, Other, _} ->
            receiving(Account#{next := max(Next, Other + 1),
                               wrong := lists:sublist([{expected, Next, got, Other} | Wrong], 10)});
        {account, From, Ref} ->
            From ! {Ref, #{received => Next - 1, wrong => Wrong}},
            receiving(Account);
        stop ->
            ok
    end.

%% @doc What has arrived: received (all numbers up to this one) and what came wrong.
-spec account() -> #{received := non_neg_integer(), wrong := list(), signals := list()}.
account() ->
    maps:merge(ask(weft_traffic_in),
               case whereis(weft_traffic_watch) of
                   undefined -> #{signals => []};
                   _ -> ask(weft_traffic_watch)
               end).

ask(Name) ->
    Monitor = monitor(process, Name),
    Name ! {account, self(), Monitor},
    receive
        {Monitor, Account} -> demonitor(Monitor, [flush]), Account;
        {'DOWN', Monitor, _, _, Reason} -> erlang:error({Name, Reason})
    end.

%% @doc Links and monitors a new process on the peer and watches the node.
-spec watch(node()) -> ok.
watch(Peer) ->
    Starter = self(),
    Ref = make_ref(),
    spawn(fun() ->
                  ok = take_name(weft_traffic_watch),
                  process_flag(trap_exit, true),
                  ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
                  Pid = spawn_link(Peer, timer, sleep, [infinity]),
                  _ = monitor(process, Pid),
                  _ = monitor(process, {weft_traffic_in, Peer}),
                  Starter ! Ref,
                  watching(Peer, [])
          end),
    receive Ref -> ok end.

%% @doc Watches nodes only, all of them.
-spec watch_nodes() -> ok.
watch_nodes() ->
    Starter = self(),
    Ref = make_ref(),
    spawn(fun() ->
                  ok = take_name(weft_traffic_watch),
                  ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
                  Starter ! Ref,
                  watching(any, [])
          end),
    receive Ref -> ok end.

watching(Peer, Signals) ->
    receive
        {account, From, Ref} -> From ! {Ref, #{signals => Signals}}, watching(Peer, Signals);
        {Node, Other, _} when Node =:= nodeup orelse Node =:= nodedown,
                            Peer =/= any, Other =/= Peer ->
            watching(Peer, Signals);
        Signal -> watching(Peer, Signals ++ [{now_ms(), Signal}])
    end.

%% @doc Ends connections of the link to a node from this side: by FIN (shutdown) or RST.
-spec kill_lanes(node(), fin | rst, all | one) -> Killed :: non_neg_integer().
kill_lanes(Peer, How, Which) ->
    Sockets = sockets(Peer),
    Victims = case {Which, Sockets} of
                  {one, [_ | _]} -> [lists:nth(rand:uniform(length(Sockets)), Sockets)];
                  _ -> Sockets
              end,
    length([kill_socket(How, Socket) || Socket <- Victims]).

sockets(Peer) ->
    case weft_links:lookup(Peer) of
        {ok, Link} ->
            {links, Linked} = process_info(Link, links),
            [Port || Port <- Linked, is_port(Port)];
        error ->
            []
    end.

kill_socket(fin, Socket) ->
    gen_tcp:shutdown(Socket, read_write);
kill_socket(rst, Socket) ->
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    gen_tcp:close(Socket).

%% @doc Connects to the peer at a given system time (nanoseconds of the machine's clock).
-spec connect_at(node(), integer()) -> boolean() | ignored.
connect_at(Peer, SystemTimeNs) ->
    wait_for(SystemTimeNs),
    net_kernel:connect_node(Peer).

%% @doc Ends the connection to the peer and makes it again, so many times: how often that failed.
-spec reconnect(node(), pos_integer()) -> Failed :: non_neg_integer().
reconnect(Peer, Times) ->
    length([failed || _ <- lists:seq(1, Times), not reconnect(Peer)]).

reconnect(Peer) ->
    true = erlang:monitor_node(Peer, true),
    _ = erlang:disconnect_node(Peer),
    receive {nodedown, Peer} -> net_kernel:connect_node(Peer) end.

wait_for(SystemTimeNs) ->
    case erlang:system_time(nanosecond) >= SystemTimeNs of
        true -> ok;
        false -> erlang:yield(), wait_for(SystemTimeNs)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc Sends the messages after First up to Last to the receiver of the peer, and disconnects from
%% it at once.
-spec last_words(node(), First :: non_neg_integer(), Last :: pos_integer()) -> true.
last_words(Peer, First, Last) ->
    Last = send_up_to({weft_traffic_in, Peer}, 0, First, Last),
    erlang:disconnect_node(Peer).

%% @doc Stops the processes of this node that tick for a connection, in their tracks.
-spec stop_ticks() -> Stopped :: non_neg_integer().
stop_ticks() ->
    Starter = self(),
    Ref = make_ref(),
    %% Who suspends a process has to live on.
    spawn(fun() ->
                  Tickers = [Pid || Pid <- processes(),
                                    {current_function, {dist_util, con_loop, _}}
                                        <- [process_info(Pid, current_function)]],
                  [true = erlang:suspend_process(Pid) || Pid <- Tickers],
                  Starter ! {Ref, length(Tickers)},
                  receive never -> ok end
          end),
    receive {Ref, Stopped} -> Stopped end.
