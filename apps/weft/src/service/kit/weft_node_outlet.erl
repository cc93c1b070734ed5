%% SPDX-License-Identifier: Apache-2.0
%% @doc The sending half of sessions of `weft_node_links': a process that sends to one peer and may
%% wait for a busy connection, so that the drivers need not.
%%
%% Drivers whose messages are small share one for each peer (`shared'); others have one of their own
%% (the name of the driver). All messages of a session go through one process, and are numbered
%% (`weft_driver_order'). Sessions take turns, a message each, so none waits for all that another
%% one has to say; but what the process has sent already is in front of all, as the carrier takes it
%% for one sender. The number and the size of the messages of a session that wait are bounded. A
%% single message may be larger than the bound; it counts for half of it, and what is being sent
%% does not wait. If what follows a large message ended the session, the receiver would drop the
%% large one, and its sender would begin again with the same. Nothing is sent on a session before
%% the process has opened it, so that while it waits for the connection no more than one session of
%% a driver waits in it. The process also monitors the peers of its sessions, because to set up a
%% monitor, or to remove one, may wait for a busy connection as well.
%%
%% The first session starts it, and it ends some time after the last one. Its row in the table shows
%% it to the drivers; who finds that it has died opens another one.
-module(weft_node_outlet).
-behaviour(gen_server).

-export([new_table/0, open/5, send/3, reference/1, close/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).
-export_type([outlet/0]).

-define(WAITING_MAX, 50000).
-define(WAITING_BYTES_MAX, 67108864).
-define(MESSAGE_BYTES_MAX, 33554432).
%% How long it is there without a session: another one often follows at once. And who started it may
%% have died before it opened one.
-define(LINGER_MS, 1000).

%% Counters of a session: messages that wait, their bytes, and whether OnFull was called.
-define(MESSAGES, 1).
-define(BYTES, 2).
-define(FULL, 3).

-type key() :: {node(), shared | Driver :: atom()}.

%% A session, as its owner sees it: the owner's monitor of the process is its name. Kept by drivers,
%% so it holds no closure: that would be one of old code after a load.
-record(outlet, {pid :: pid(),
                 session :: reference(),
                 waiting :: atomics:atomics_ref(),
                 on_full :: {module(), atom(), [term()]}}).

-opaque outlet() :: #outlet{}.

-record(session, {to :: pid(),
                  number :: pos_integer(),
                  next = 1 :: pos_integer(),
                  waiting :: atomics:atomics_ref(),
                  messages = queue:new() :: queue:queue({To :: pid(), term(), Bytes :: integer()}),
                  owner :: pid(),
                  %% Of the owner, and of the peer.
                  monitors :: {reference(), reference()}}).

-record(sending, {key :: key(),
                  sessions = #{} :: #{reference() => #session{}},
                  %% The sessions with messages that wait, in the order of their turns.
                  turns = queue:new() :: queue:queue(reference())}).

%% @doc Creates the table of these processes, which ends with the caller.
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, set, {read_concurrency, true}]),
    ok.

%% @doc Opens a session to the process To; the caller owns it, and gets `{weft_outlet_open,
%% reference()}' when it is open. Welcome goes first, and then each message with the receiver's
%% Number. The sender applies OnFull when too much waits. When To ends, or the connection to it
%% does, the session is over and the owner gets `{weft_outlet_lost, reference(), Reason}'. When the
%% outlet dies the owner gets `DOWN' with that reference.
-spec open(shared | Driver :: atom(), To :: pid(), Number :: pos_integer(), Welcome :: term(),
           OnFull :: {module(), atom(), [term()]}) -> outlet().
open(Share, To, Number, Welcome, OnFull) ->
    Pid = process({node(To), Share}),
    Session = monitor(process, Pid),
    Waiting = atomics:new(3, []),
    ok = gen_server:cast(Pid, {open, Session, self(), To, Number, Welcome, Waiting}),
    #outlet{pid = Pid, session = Session, waiting = Waiting, on_full = OnFull}.

process(Key) ->
    case ets:lookup(?MODULE, Key) of
        [{Key, Pid} = Row] ->
            case is_process_alive(Pid) of
                true -> Pid;
                false -> true = ets:delete_object(?MODULE, Row), process(Key)
            end;
        [] ->
            case gen_server:start(?MODULE, Key, []) of
                {ok, Pid} -> Pid;
                ignore -> process(Key)
            end
    end.

%% @doc Sends a message to the driver To through the outlet.
-spec send(outlet(), To :: pid(), term()) -> ok | {error, not_connected}.
send(#outlet{pid = Pid, session = Session, waiting = Waiting} = Outlet, To, Message) ->
    Bytes = min(erlang:external_size(Message), ?MESSAGE_BYTES_MAX),
    Before = atomics:add_get(Waiting, ?BYTES, Bytes) - Bytes,
    case atomics:add_get(Waiting, ?MESSAGES, 1) =< ?WAITING_MAX
        andalso Before =< ?WAITING_BYTES_MAX of
        true ->
            Pid ! {send, Session, To, Message, Bytes},
            ok;
        false ->
            {Module, Function, Arguments} = Outlet#outlet.on_full,
            _ = atomics:exchange(Waiting, ?FULL, 1) =:= 0
                andalso apply(Module, Function, Arguments),
            {error, not_connected}
    end.

%% @doc What names the session in messages to its owner.
-spec reference(outlet()) -> reference().
reference(#outlet{session = Session}) -> Session.

%% @doc Ends a session; messages that wait are not sent. Called by its owner.
-spec close(outlet()) -> ok.
close(#outlet{pid = Pid, session = Session}) ->
    true = demonitor(Session, [flush]),
    gen_server:cast(Pid, {close, Session}).

%% --- the process ------------------------------------------------------------------------------

%% @private
init(Key) ->
    case ets:insert_new(?MODULE, {Key, self()}) of
        true -> {ok, #sending{key = Key}, ?LINGER_MS};
        false -> ignore
    end.

%% @private
handle_call(Request, From, Sending) ->
    gen_server:reply(From, weft_stray:call(Request)),
    goes_on(Sending).

%% @private
handle_cast({open, Session, Owner, To, Number, Welcome, Waiting}, Sending) ->
    %% A monitor would connect to a node that has been disconnected meanwhile.
    case lists:member(node(To), nodes(connected)) of
        true ->
            Monitors = {monitor(process, Owner), monitor(process, To)},
            %% Before the welcome: this process may have to wait when that is on its way, and what
            %% is sent in answer to it is dropped as long as the owner does not know.
            Owner ! {weft_outlet_open, Session},
            _ = erlang:send(To, Welcome, [noconnect]),
            Opened = #session{to = To, number = Number, waiting = Waiting, owner = Owner,
                              monitors = Monitors},
            opened(Sending#sending{sessions = (Sending#sending.sessions)#{Session => Opened}});
        false ->
            ok = lost(Owner, Session, noconnection),
            goes_on(Sending)
    end;
handle_cast({close, Session}, Sending) ->
    goes_on(closed(Session, Sending));
handle_cast(Request, Sending) ->
    ok = weft_stray:message(Request),
    goes_on(Sending).

%% @private
handle_info({send, Session, To, Message, Bytes}, #sending{sessions = Sessions} = Sending) ->
    case Sessions of
        #{Session := #session{messages = Messages} = Open} ->
            Queued = Open#session{messages = queue:in({To, Message, Bytes}, Messages)},
            Kept = Sending#sending{sessions = Sessions#{Session := Queued}},
            {noreply, case queue:is_empty(Messages) of
                          true -> takes_turns(Session, Kept);
                          false -> Kept
                      end};
        #{} ->
            goes_on(Sending)
    end;
handle_info(turn, #sending{turns = Turns} = Sending) ->
    goes_on(turn(queue:out(Turns), Sending));
handle_info({'DOWN', Monitor, process, Pid, Reason}, #sending{sessions = Sessions} = Sending) ->
    goes_on(lists:foldl(fun(Session, S) -> down(Session, Pid, Reason, S) end, Sending,
                        [Session || {Session, #session{monitors = {Owner, To}}}
                                        <- maps:to_list(Sessions),
                                    Monitor =:= Owner orelse Monitor =:= To]));
handle_info(timeout, #sending{sessions = Sessions} = Sending) when map_size(Sessions) =:= 0 ->
    {stop, normal, Sending};
handle_info(Message, Sending) ->
    ok = weft_stray:message(Message),
    goes_on(Sending).

%% @private
terminate(_Reason, #sending{key = Key}) ->
    try
        true = ets:delete_object(?MODULE, {Key, self()}),
        ok
    catch
        error:badarg -> the_application_has_stopped
    end.

%% @private Messages of drivers may be what users have stored.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> weft_redact:status(Status, ?MODULE).

goes_on(#sending{sessions = Sessions} = Sending) when map_size(Sessions) =:= 0 ->
    {noreply, Sending, ?LINGER_MS};
goes_on(Sending) ->
    {noreply, Sending}.

%% Most services say little.
opened(#sending{turns = Turns} = Sending) ->
    case queue:is_empty(Turns) of
        true -> {noreply, Sending, hibernate};
        false -> {noreply, Sending}
    end.

%% What has arrived meanwhile is queued before the turn comes, so that each session gets its own.
takes_turns(Session, #sending{turns = Turns} = Sending) ->
    _ = queue:is_empty(Turns) andalso (self() ! turn),
    Sending#sending{turns = queue:in(Session, Turns)}.

turn({empty, _}, Sending) ->
    Sending;
turn({{value, Session}, Turns}, #sending{sessions = Sessions} = Sending) ->
    case Sessions of
        #{Session := Open0} ->
            #session{messages = Left} = Open = sent(Open0),
            next([Session || not queue:is_empty(Left)], Turns,
                 Sending#sending{sessions = Sessions#{Session := Open}});
        #{} ->
            next([], Turns, Sending)
    end.

next(Again, Turns0, Sending) ->
    Turns = lists:foldl(fun queue:in/2, Turns0, Again),
    _ = queue:is_empty(Turns) orelse (self() ! turn),
    Sending#sending{turns = Turns}.

sent(#session{number = Number, next = Next, messages = Messages, waiting = Waiting} = Open) ->
    {{value, {To, Message, Bytes}}, Left} = queue:out(Messages),
    ok = atomics:sub(Waiting, ?MESSAGES, 1),
    ok = atomics:sub(Waiting, ?BYTES, Bytes),
    %% The loss of the connection is noticed by the monitor.
    _ = erlang:send(To, {weft_data, Number, Next, Message}, [noconnect]),
    Open#session{next = Next + 1, messages = Left}.

%% --- the end of a session ---------------------------------------------------------------------

%% Its owner needs no news of its own end.
down(Session, Pid, Reason, #sending{sessions = Sessions} = Sending) ->
    case Sessions of
        #{Session := #session{to = Pid, owner = Owner}} -> ok = lost(Owner, Session, Reason);
        #{} -> ok
    end,
    closed(Session, Sending).

lost(Owner, Session, Reason) ->
    Owner ! {weft_outlet_lost, Session, Reason},
    ok.

closed(Session, #sending{sessions = Sessions} = Sending) ->
    case maps:take(Session, Sessions) of
        {#session{monitors = {Owner, To}}, Left} ->
            true = demonitor(Owner, [flush]),
            true = demonitor(To, [flush]),
            Sending#sending{sessions = Left};
        error ->
            Sending
    end.
