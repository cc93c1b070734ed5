%% SPDX-License-Identifier: Apache-2.0
%% @doc The sending half of a session of `weft_node_links': a process that sends to one peer and
%% may wait for a busy connection, so that the driver need not.
%%
%% All messages of a session go through this one process, and are numbered (`weft_driver_order').
%% The number and the size of those that wait are bounded; a single message may be larger than the
%% bound. The process also monitors the peer, because to set up a monitor, or to remove one, may
%% wait for a busy connection as well.
-module(weft_node_outlet).

-behaviour(gen_server).

-export([open/4, send/3, pid/1, close/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([outlet/0]).

-define(WAITING_MAX, 50000).
-define(WAITING_BYTES_MAX, 67108864).

%% Counters: messages that wait, their bytes, and whether OnFull was called.
-define(MESSAGES, 1).
-define(BYTES, 2).
-define(FULL, 3).

%% Kept by drivers, so it holds no closure: that would be one of old code after a load.
-opaque outlet() :: {pid(), atomics:atomics_ref(), OnFull :: {module(), atom(), [term()]}}.

-record(sending, {to :: pid(),
                  number :: pos_integer(),
                  next = 1 :: pos_integer(),
                  waiting :: atomics:atomics_ref(),
                  monitor :: reference() | undefined}).

%% @doc An outlet, linked to the caller. It sends Welcome to the process To, and then each message
%% with the receiver's Number. The sender applies OnFull when too much waits. When To ends, or the
%% connection to it does, the outlet exits with {shutdown, {lost, To, Reason}}.
-spec open(To :: pid(), Number :: pos_integer(), Welcome :: term(),
           OnFull :: {module(), atom(), [term()]}) -> outlet().
open(To, Number, Welcome, OnFull) ->
    Waiting = atomics:new(3, []),
    {ok, Pid} = gen_server:start_link(?MODULE, {To, Number, Welcome, Waiting}, []),
    {Pid, Waiting, OnFull}.

%% @doc Sends a message to the driver To through the outlet.
-spec send(outlet(), To :: pid(), term()) -> ok | {error, not_connected}.
send({Pid, Waiting, {Module, Function, Arguments}}, To, Message) ->
    Bytes = erlang:external_size(Message),
    Before = atomics:add_get(Waiting, ?BYTES, Bytes) - Bytes,
    case atomics:add_get(Waiting, ?MESSAGES, 1) =< ?WAITING_MAX
        andalso Before =< ?WAITING_BYTES_MAX of
        true ->
            Pid ! {send, To, Message, Bytes},
            ok;
        false ->
            _ = atomics:exchange(Waiting, ?FULL, 1) =:= 0
                andalso apply(Module, Function, Arguments),
            {error, not_connected}
    end.

-spec pid(outlet()) -> pid().
pid({Pid, _Waiting, _OnFull}) -> Pid.

%% @doc Ends an outlet; messages that wait are not sent.
-spec close(outlet()) -> ok.
close({Pid, _Waiting, _OnFull}) ->
    unlink(Pid),
    exit(Pid, kill),
    ok.

%% @private
init({To, Number, Welcome, Waiting}) ->
    %% Setting up a monitor may wait, and the caller must not.
    {ok, #sending{to = To, number = Number, waiting = Waiting}, {continue, Welcome}}.

%% @private
handle_continue(Welcome, #sending{to = To} = Sending) ->
    %% A monitor would connect to a node that has been disconnected meanwhile.
    case lists:member(node(To), nodes(connected)) of
        true ->
            Monitor = monitor(process, To),
            _ = erlang:send(To, Welcome, [noconnect]),
            %% Most services say little.
            {noreply, Sending#sending{monitor = Monitor}, hibernate};
        false ->
            {stop, {shutdown, {lost, To, noconnection}}, Sending}
    end.

%% @private
handle_call(Request, _From, Sending) ->
    {reply, weft_stray:call(Request), Sending}.

%% @private
handle_cast(Request, Sending) ->
    ok = weft_stray:message(Request),
    {noreply, Sending}.

%% @private
handle_info({send, To, Message, Bytes}, #sending{number = Number, next = Next} = Sending) ->
    %% The loss of the connection is noticed by the monitor.
    _ = erlang:send(To, {weft_data, Number, Next, Message}, [noconnect]),
    atomics:sub(Sending#sending.waiting, ?MESSAGES, 1),
    atomics:sub(Sending#sending.waiting, ?BYTES, Bytes),
    {noreply, Sending#sending{next = Next + 1}};
handle_info({'DOWN', Monitor, process, To, Reason}, #sending{monitor = Monitor} = Sending) ->
    {stop, {shutdown, {lost, To, Reason}}, Sending};
handle_info(Message, Sending) ->
    ok = weft_stray:message(Message),
    {noreply, Sending}.
