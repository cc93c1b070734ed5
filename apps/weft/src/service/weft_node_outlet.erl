%% SPDX-License-Identifier: Apache-2.0
%% @doc The sending half of a session of `weft_node_links': a process that sends to one peer and
%% may wait for a busy connection, so that the driver need not.
%%
%% All of a session goes through this one process, and is counted (`weft_driver_order'). What waits
%% is bounded by number; the pieces a core sends are small (64 KiB and less). It also watches the
%% peer: to set up a monitor, or to take one back, may wait for a busy connection as well.
-module(weft_node_outlet).

-export([open/4, send/3, pid/1, close/1]).
-export([init/4]).
-export_type([outlet/0]).

-define(WAITING_MAX, 50000).

-opaque outlet() :: {pid(), atomics:atomics_ref(), OnFull :: fun(() -> ok)}.

%% @doc An outlet, linked to the caller. It says Welcome to the process To, and then sends each
%% message with the receiver's Number. OnFull is called by the sender when too much waits. When To
%% ends, or the connection to it does, the outlet exits with {shutdown, {lost, To, Reason}}.
-spec open(To :: pid(), Number :: pos_integer(), Welcome :: term(), OnFull :: fun(() -> ok)) ->
          outlet().
open(To, Number, Welcome, OnFull) ->
    Waiting = atomics:new(1, []),
    Pid = proc_lib:spawn_link(?MODULE, init, [To, Number, Welcome, Waiting]),
    {Pid, Waiting, OnFull}.

%% @doc Has a message sent to the driver To.
-spec send(outlet(), To :: pid(), term()) -> ok | {error, not_connected}.
send({Pid, Waiting, OnFull}, To, Message) ->
    case atomics:add_get(Waiting, 1, 1) of
        Count when Count =< ?WAITING_MAX ->
            Pid ! {send, To, Message},
            ok;
        Count ->
            Count =:= ?WAITING_MAX + 1 andalso OnFull(),
            {error, not_connected}
    end.

-spec pid(outlet()) -> pid().
pid({Pid, _Waiting, _OnFull}) -> Pid.

%% @doc Ends an outlet; what waits is not sent.
-spec close(outlet()) -> ok.
close({Pid, _Waiting, _OnFull}) ->
    unlink(Pid),
    exit(Pid, kill),
    ok.

%% @private
-spec init(To :: pid(), pos_integer(), term(), atomics:atomics_ref()) -> no_return().
init(To, Number, Welcome, Waiting) ->
    %% A monitor would connect to a node that has been disconnected meanwhile.
    lists:member(node(To), nodes(connected)) orelse exit({shutdown, {lost, To, noconnection}}),
    Monitor = monitor(process, To),
    _ = erlang:send(To, Welcome, [noconnect]),
    loop(Number, 1, Monitor, Waiting).

loop(Number, Next, Monitor, Waiting) ->
    receive
        {send, To, Message} ->
            %% Of a connection that is lost the monitor tells.
            _ = erlang:send(To, {weft_data, Number, Next, Message}, [noconnect]),
            atomics:sub(Waiting, 1, 1),
            loop(Number, Next + 1, Monitor, Waiting);
        {'DOWN', Monitor, process, To, Reason} ->
            exit({shutdown, {lost, To, Reason}})
    end.
