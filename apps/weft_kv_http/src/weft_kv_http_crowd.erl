%% SPDX-License-Identifier: Apache-2.0
%% @doc So many requests run at a time. One more is answered at once, with 503 and when to come
%% back, and its connection is closed: a client that only waits does not know for what.
%%
%% This is a stream handler of cowboy, because it hears of the end of a request also when the client
%% is gone and the request's process was killed.
-module(weft_kv_http_crowd).
-behaviour(cowboy_stream).

-export([new/1]).
-export([init/3, data/4, info/3, terminate/3, early_error/5]).
-export_type([crowd/0]).

-record(crowd, {running :: counters:counters_ref(), max :: pos_integer()}).
-opaque crowd() :: #crowd{}.
%% With the state of the handler behind this one, if the request was let in.
-type state() :: {crowd(), none | {some, term()}}.

%% @doc Nobody is there yet. For the option `crowd' of the listener's protocol.
-spec new(pos_integer()) -> crowd().
new(Max) -> #crowd{running = counters:new(1, []), max = Max}.

%% @private
-spec init(cowboy_stream:streamid(), cowboy_req:req(), cowboy:opts()) ->
          {cowboy_stream:commands(), state()}.
init(StreamId, Request, #{crowd := #crowd{running = Running, max = Max} = Crowd} = Options) ->
    ok = counters:add(Running, 1, 1),
    case counters:get(Running, 1) > Max of
        true ->
            {Status, Headers, Body} =
                weft_kv_http_error:answer({busy, Max}, maps:get(path, Request)),
            {[{error_response, Status, Headers, iolist_to_binary(Body)}, stop], {Crowd, none}};
        false ->
            {Commands, Next} = cowboy_stream:init(StreamId, Request, Options),
            {Commands, {Crowd, {some, Next}}}
    end.

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
terminate(StreamId, Reason, {#crowd{running = Running}, Next}) ->
    ok = counters:sub(Running, 1, 1),
    case Next of
        none -> ok;
        {some, State} -> cowboy_stream:terminate(StreamId, Reason, State)
    end.

%% @private
-spec early_error(cowboy_stream:streamid(), cowboy_stream:reason(), cowboy_stream:partial_req(),
                  cowboy_stream:resp_command(), cowboy:opts()) -> cowboy_stream:resp_command().
early_error(StreamId, Reason, Request, Response, Options) ->
    cowboy_stream:early_error(StreamId, Reason, Request, Response, Options).
