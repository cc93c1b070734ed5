%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on each node of `weft_chaos_inside_SUITE': numbered messages to every other node
%% over the distribution and over a channel, links and monitors, a name, a membership and a
%% subscription; and the list of the processes of weft, by kind.
-module(weft_chaos_inside).

-export([start/2, stop/0, events/0, again/0, seen/0, broadcast/1, kinds/0, victims/1, received/0]).

-define(SCOPE, chaos).
-define(GROUP, chaos).
%% A message on the channel comes with one of so many others.
-define(CHANNEL_EVERY, 3).

-type event() :: {dist | channel, Peer :: node(), What :: term()}.
-type victims() :: #{dist := [node()] | all, channel := [node()] | all}.

%% @doc Begins, with a message to each peer every PeriodMs.
-spec start([node()], PeriodMs :: pos_integer()) -> ok.
start(Peers, PeriodMs) ->
    Starter = self(),
    {Pid, Ref} = spawn_monitor(fun() -> begin_all(Peers, PeriodMs, Starter) end),
    receive
        {Pid, ready} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Reason} -> erlang:error(Reason)
    end.

begin_all(Peers, PeriodMs, Starter) ->
    true = register(chaos_in, self()),
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    Senders = maps:from_list([{Peer, spawn_link(fun() -> sending(Peer, PeriodMs, 1, {1, 1}) end)}
                              || Peer <- Peers]),
    Starter ! {self(), ready},
    in(#{events => [], next => #{}, broadcasts => [], senders => Senders,
         watched => maps:from_list([{watch(Peer), Peer} || Peer <- Peers])}).

%% One process for each peer: nobody waits for another.
sending(Peer, PeriodMs, Round, {Next, NextOfChannel}) ->
    {chaos_in, Peer} ! {number, dist, node(), Next},
    Numbers = case Round rem ?CHANNEL_EVERY of
                  0 -> {Next + 1, NextOfChannel + sent(Peer, NextOfChannel)};
                  _ -> {Next + 1, NextOfChannel}
              end,
    receive
        {stop, From} -> From ! {self(), Numbers}
    after PeriodMs -> sending(Peer, PeriodMs, Round + 1, Numbers)
    end.

%% Without the application there are no channels.
sent(Peer, Number) ->
    try weft:send({chaos_in, Peer}, {number, channel, node(), Number}, bulk) of
        ok -> 1;
        {error, _} -> 0
    catch
        error:_ -> 0
    end.

%% A process there, with a link and a monitor.
watch(Peer) ->
    Pid = spawn_link(Peer, timer, sleep, [infinity]),
    monitor(process, Pid).

in(#{next := Next, events := Events, watched := Watched} = State) ->
    receive
        {number, Way, From, Number} ->
            Expected = maps:get({Way, From}, Next, 1),
            Gap = [{Way, From, {expected, Expected, got, Number}} || Number =/= Expected],
            in(State#{next := Next#{{Way, From} => Number + 1}, events := Gap ++ Events});
        {nodedown, Node, _} ->
            in(State#{events := [{dist, Node, nodedown} | Events]});
        {'DOWN', Ref, process, _Pid, Reason} when is_map_key(Ref, Watched) ->
            {Peer, Others} = maps:take(Ref, Watched),
            in(State#{events := [{dist, Peer, Reason} | Events],
                      watched := Others#{watch(Peer) => Peer}});
        {'EXIT', Pid, Reason} when node(Pid) =/= node() ->
            in(State#{events := [{dist, node(Pid), {link, Reason}} | Events]});
        {weft_broadcast, _, _, Id} ->
            in(heard(Id, State));
        {ask, From, Ref, What} ->
            {Answer, Asked} = answer(What, State),
            From ! {Ref, Answer},
            in(Asked);
        _Other ->
            in(State)
    end.

heard(Id, #{broadcasts := Ids} = State) -> State#{broadcasts := lists:sublist([Id | Ids], 100)}.

answer(events, #{events := Events} = State) -> {lists:reverse(Events), State#{events := []}};
answer(received, #{next := Next} = State) -> {Next, State};
answer({has_heard, Id}, #{broadcasts := Ids} = State) -> {lists:member(Id, Ids), State};
answer(senders, #{senders := Senders} = State) -> {Senders, State}.

ask(What) ->
    Ref = monitor(process, chaos_in),
    chaos_in ! {ask, self(), Ref, What},
    receive
        {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, _, _, Reason} -> erlang:error(Reason)
    end.

%% @doc Ends sending: the number of the next message to each peer, and on the channel.
-spec stop() -> #{node() => {pos_integer(), pos_integer()}}.
stop() ->
    maps:map(fun(_Peer, Sender) ->
                     Sender ! {stop, self()},
                     receive {Sender, Numbers} -> Numbers end
             end, ask(senders)).

%% @doc The number of the message that is expected next of each peer.
-spec received() -> #{{dist | channel, node()} => pos_integer()}.
received() -> ask(received).

%% @doc What was lost or has ended since the last time.
-spec events() -> [event()].
events() -> ask(events).

%% @doc What a user of the services does after an end of them: registers, joins, subscribes.
-spec again() -> ok.
again() ->
    try
        _ = application:ensure_all_started(weft),
        Pid = whereis(chaos_in),
        _ = weft_names:register({?SCOPE, node()}, Pid),
        _ = lists:member(Pid, weft_pg:get_local_members(?GROUP)) orelse weft_pg:join(?GROUP, Pid),
        _ = weft_broadcast:subscribe(?SCOPE, Pid),
        ok
    catch
        _:_NotYet -> ok
    end.

%% @doc The nodes that this one knows by each service.
-spec seen() -> #{routes | names | members | groups => [node()] | not_yet}.
seen() ->
    maps:map(fun(_, See) -> try lists:sort(See()) catch _:_ -> not_yet end end,
             #{routes => fun() -> [node() | [Node || {Node, _} <- weft_overlay:routes()]] end,
               names => fun() -> weft_names:names(?SCOPE) end,
               members => fun() -> [node(Pid) || Pid <- weft_pg:get_members(?GROUP)] end,
               groups => fun() -> lists:usort(lists:append(maps:values(weft_group:groups()))) end}).

%% @doc With an atom or so: broadcasts it. With {heard, Id}: has it been heard here?
-spec broadcast({heard, term()} | term()) -> boolean().
broadcast({heard, Id}) ->
    ask({has_heard, Id});
broadcast(Id) ->
    try weft_broadcast:broadcast(?SCOPE, Id) of
        ok -> true;
        _ -> false
    catch
        _:_NotYet -> false
    end.

%% --- processes --------------------------------------------------------------------------------

%% @doc All processes of weft on this node, by registered name or by what they began with.
-spec kinds() -> #{term() => [pid()]}.
kinds() ->
    {ok, Modules} = application:get_key(weft, modules),
    lists:foldl(fun(Pid, Kinds) ->
                        case kind(Pid, Modules) of
                            none -> Kinds;
                            Kind -> maps:update_with(Kind, fun(Pids) -> [Pid | Pids] end, [Pid],
                                                     Kinds)
                        end
                end, #{}, processes()).

kind(Pid, Modules) ->
    Call = case process_info(Pid, initial_call) of
               {initial_call, {proc_lib, _, _}} -> proc_lib:translate_initial_call(Pid);
               {initial_call, Plain} -> Plain;
               undefined -> {none, none, 0}
           end,
    case {lists:member(element(1, Call), [supervisor | Modules]), registered_name(Pid)} of
        {true, none} when element(1, Call) =/= supervisor -> Call;
        {true, Name} -> weft_name(Name, Call);
        {false, _} -> none
    end.

registered_name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> none
    end.

weft_name(Name, Call) ->
    case {element(1, Call), Name} of
        {supervisor, none} -> none;
        {supervisor, _} ->
            case lists:prefix("weft_", atom_to_list(Name)) of true -> Name; false -> none end;
        _ -> Name
    end.

%% @doc The nodes whose connection, or channels, with this one end with the process.
-spec victims(pid()) -> victims().
victims(Pid) ->
    case registered_name(Pid) of
        Name when Name =:= weft_link_sup; Name =:= weft_carrier_sup ->
            #{dist => all, channel => all};
        Name when Name =:= weft_channel_sup; Name =:= weft_channel_workers; Name =:= weft_sup ->
            #{dist => [], channel => all};
        _ ->
            Rows = [{Peer, Kind} || {_, Session, Input, Peer, Kind} <- ets:tab2list(weft_sessions),
                                    Session =:= Pid orelse Input =:= Pid
                                        orelse lists:member(Session, linked(Pid))],
            Dist = [binary_to_atom(Peer) || {Peer, distribution} <- Rows],
            #{dist => Dist, channel => Dist ++ [binary_to_atom(Peer) || {Peer, {channel, _, _}}
                                                                            <- Rows]}
    end.

linked(Pid) ->
    case process_info(Pid, links) of
        {links, Linked} -> Linked;
        undefined -> []
    end.
