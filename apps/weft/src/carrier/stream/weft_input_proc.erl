%% SPDX-License-Identifier: Apache-2.0
%% @doc The process that delivers the input of a session over a circuit (see `weft_input').
%% It starts and ends with its session.
-module(weft_input_proc).
-behaviour(gen_server).

-export([start_link/3, connected/2, finish/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% @doc Called by the session itself, so the two are linked.
-spec start_link(pid(), weft_session_counters:counters(), pos_integer()) -> {ok, pid()}.
start_link(Session, Counters, WindowBytes) ->
    gen_server:start_link(?MODULE, {Session, Counters, WindowBytes},
                          [{spawn_opt, [{priority, weft_turn:priority(data)},
                                        {message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @doc The VM has a handle for the connection.
-spec connected(pid(), erlang:dist_handle()) -> ok.
connected(Input, Handle) ->
    Input ! {weft_input, connected, Handle},
    ok.

%% @doc The process ends when it has delivered what has come so far.
-spec finish(pid()) -> ok.
finish(Input) ->
    Input ! {weft_input, finish},
    ok.

%% @private
init({Session, Counters, WindowBytes}) ->
    {ok, weft_input:new(Session, Counters, WindowBytes)}.

%% @private
handle_call(Request, _From, Input) ->
    {reply, weft_stray:call(Request), Input}.

%% @private
handle_cast(Request, Input) ->
    ok = weft_stray:message(Request),
    {noreply, Input}.

%% @private
-spec handle_info(term(), weft_input:input()) ->
          {noreply, weft_input:input()} | {stop, normal, weft_input:input()}.
handle_info({weft_packet, _, From, Lane, Label, {data, _, Sequence, Kind, Payload}}, Input) ->
    BeganUs = weft_turn:begins(),
    case weft_input:data(Sequence, Kind, Payload, Lane, Label, Input) of
        {ok, Input1} ->
            ok = weft_turn:worked(BeganUs),
            {noreply, Input1};
        overflow ->
            %% The peer hears of it, and repeats on another path.
            ok = weft_link_handler:tell(From, {drop, Label}),
            weft_input:session(Input) ! {weft_path, closed, From, Label, overload},
            {noreply, Input}
    end;
handle_info({weft_packet, _, _From, Lane, Label, {tick, _}}, Input) ->
    {noreply, weft_input:tick(Lane, Label, 5, Input)};
handle_info({weft_packet, _, _From, Lane, Label, {times, _}}, Input) ->
    {noreply, weft_input:times(Lane, Label, Input)};
handle_info({weft_packet, _, From, _Lane, Label, {close, _, Reason}}, Input) ->
    weft_input:session(Input) ! {weft_path, closed, From, Label, Reason},
    {noreply, Input};
handle_info({weft_input, connected, Handle}, Input) ->
    {noreply, weft_input:connected(Handle, Input)};
handle_info({weft_input, finish}, Input) ->
    {stop, normal, Input};
%% From OTP 26 on a send to a busy socket may leave its monitor of the port behind.
handle_info({'DOWN', _Ref, port, _Socket, _Reason}, Input) ->
    {noreply, Input};
handle_info(Message, Input) ->
    ok = weft_stray:message(Message),
    {noreply, Input}.
