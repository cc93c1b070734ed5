%% SPDX-License-Identifier: Apache-2.0
%% @doc So many requests run at a time. One more is answered at once, with 503 and when to come
%% back, and its connection is closed: a client that only waits does not know for what.
%%
%% This is a stream handler of cowboy, because it hears of the end of a request also when the client
%% is gone and the request's process was killed. If the process of the connection is killed, nobody
%% hears of it. So each request is in a table with that process, and when there is no room those
%% are taken out whose process has ended.
-module(weft_kv_http_crowd).
-behaviour(cowboy_stream).

-export([new/1]).
-export([init/3, data/4, info/3, terminate/3, early_error/5]).
-export_type([crowd/0]).

-record(crowd, {running :: ets:table(), max :: pos_integer()}).
-opaque crowd() :: #crowd{}.
%% With the state of the handler behind this one, if the request was let in.
-type state() :: {crowd(), none | {some, term()}}.

%% @doc Nobody is there yet. For the option `crowd' of the listener's protocol, which is to end
%% before the caller does: the table is the caller's.
-spec new(pos_integer()) -> crowd().
new(Max) -> #crowd{running = ets:new(?MODULE, [public, {write_concurrency, true}]), max = Max}.

%% @private
-spec init(cowboy_stream:streamid(), cowboy_req:req(), cowboy:opts()) ->
          {cowboy_stream:commands(), state()}.
init(StreamId, Request, #{crowd := #crowd{max = Max} = Crowd} = Options) ->
    case enter(StreamId, Crowd) of
        false ->
            {Status, Headers, Body} =
                weft_kv_http_error:answer({busy, Max}, maps:get(path, Request)),
            {[{error_response, Status, Headers, iolist_to_binary(Body)}, stop], {Crowd, none}};
        true ->
            {Commands, Next} = cowboy_stream:init(StreamId, Request, Options),
            {Commands, {Crowd, {some, Next}}}
    end.

%% A connection may have the next request before it has ended the one before.
enter(StreamId, #crowd{running = Running} = Crowd) ->
    true = ets:insert(Running, {{self(), StreamId}}),
    has_room(Crowd) orelse without_dead(StreamId, Crowd).

without_dead(StreamId, #crowd{running = Running} = Crowd) ->
    [true = ets:delete(Running, Key) || {{Pid, _} = Key} <- ets:tab2list(Running),
                                        not is_process_alive(Pid)],
    has_room(Crowd) orelse not leave(StreamId, Crowd).

has_room(#crowd{running = Running, max = Max}) -> ets:info(Running, size) =< Max.

leave(StreamId, #crowd{running = Running}) -> ets:delete(Running, {self(), StreamId}).

%% @private
-spec data(cowboy_stream:streamid(), cowboy_stream:fin(), binary(), state()) ->
          {cowboy_stream:commands(), state()}.
data(_StreamId, _IsFin, _Data, {_, none} = State) ->
    {[], State};
data(StreamId, IsFin, Data, {Crowd, {some, Next0}}) ->
    {Commands, Next} = cowboy_stream:data(StreamId, IsFin, Data, Next0),
    {Commands, {Crowd, {some, Next}}}.

%% @private
-spec info(cowboy_stream:streamid(), term(), state()) -> {cowboy_stream:commands(), state()}.
info(_StreamId, _Info, {_, none} = State) ->
    {[], State};
info(StreamId, Info, {Crowd, {some, Next0}}) ->
    {Commands, Next} = cowboy_stream:info(StreamId, Info, Next0),
    {Commands, {Crowd, {some, Next}}}.

%% @private
-spec terminate(cowboy_stream:streamid(), cowboy_stream:reason(), state()) -> term().
terminate(_StreamId, _Reason, {_Crowd, none}) ->
    ok;
terminate(StreamId, Reason, {Crowd, {some, Next}}) ->
    true = leave(StreamId, Crowd),
    cowboy_stream:terminate(StreamId, Reason, Next).

%% @private
-spec early_error(cowboy_stream:streamid(), cowboy_stream:reason(), cowboy_stream:partial_req(),
                  cowboy_stream:resp_command(), cowboy:opts()) -> cowboy_stream:resp_command().
early_error(StreamId, Reason, Request, Response, Options) ->
    cowboy_stream:early_error(StreamId, Reason, Request, Response, Options).
