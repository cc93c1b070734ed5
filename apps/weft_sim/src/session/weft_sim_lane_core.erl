%% SPDX-License-Identifier: Apache-2.0
%% @doc A lane in the simulator: one connection of a link, with a rate and a buffer before it.
%%
%% A node of the simulated world with two neighbours, so that the verbs for nodes and links are
%% faults of lanes: a cut or a crash loses the lane and what is on it, a pause makes it half dead.
%% It carries `{packet, Bytes, Msg}' from one end to the other as `{carried, Msg}', in order,
%% `bytes_per_ms' at a time, and tells the sender with `{sent, Bytes}' what has left the buffer.
%% While both ends have it they were told so by `lane_up'. An end that is lost takes the other one
%% along.
-module(weft_sim_lane_core).
-behaviour(weft_core).

-export([init/2, handle/3]).

-record(lane, {ends :: {node(), node()},
               bytes_per_ms :: pos_integer(),
               present = [] :: [node()],
               %% Counts the times it was up: timers of an earlier time mean nothing.
               time = 0 :: non_neg_integer(),
               %% Per receiver: what is under way, and when all of it will have left.
               buffers = #{} :: #{node() => {queue:queue(packet()), FreeMs :: float()}}}).
-type packet() :: {Bytes :: non_neg_integer(), Msg :: term()}.

%% @doc Options: `ends', `bytes_per_ms'.
-spec init(node(), map()) -> {#lane{}, weft_core:effects()}.
init(_Self, #{ends := Ends, bytes_per_ms := BytesPerMs}) ->
    {#lane{ends = Ends, bytes_per_ms = BytesPerMs}, []}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #lane{}) -> {#lane{}, weft_core:effects()}.
handle({neighbour_up, Node}, _NowMs, #lane{present = Present, time = Time} = Lane0) ->
    Lane = Lane0#lane{present = lists:usort([Node | Present])},
    case is_up(Lane) of
        true -> {Lane#lane{time = Time + 1, buffers = #{}},
                 [{send, End, lane_up} || End <- Lane#lane.present]};
        false -> {Lane, []}
    end;
handle({neighbour_down, Node, _}, _NowMs, #lane{present = Present, time = Time} = Lane) ->
    case lists:member(Node, Present) of
        true ->
            Left = lists:delete(Node, Present),
            {Lane#lane{present = [], time = Time + 1, buffers = #{}},
             [{break, Other} || Other <- Left]};
        false ->
            {Lane, []}
    end;
handle({message, From, {packet, Bytes, Msg}}, NowMs, Lane) ->
    case is_up(Lane) of
        true -> take(other(From, Lane), Bytes, Msg, NowMs, Lane);
        false -> {Lane, []}
    end;
handle({timer, {out, Time, To}}, _NowMs, #lane{time = Time} = Lane) ->
    out(To, Lane);
handle(_Stale, _NowMs, Lane) ->
    {Lane, []}.

is_up(#lane{present = Present}) -> length(Present) =:= 2.

other(A, #lane{ends = {A, B}}) -> B;
other(B, #lane{ends = {A, B}}) -> A.

take(To, Bytes, Msg, NowMs, #lane{buffers = Buffers, bytes_per_ms = BytesPerMs,
                                  time = Time} = Lane) ->
    {Queue, FreeMs} = maps:get(To, Buffers, {queue:new(), 0.0}),
    OutMs = max(FreeMs, float(NowMs)) + Bytes / BytesPerMs,
    {Lane#lane{buffers = Buffers#{To => {queue:in({Bytes, Msg}, Queue), OutMs}}},
     [{after_ms, ceil(OutMs - NowMs), {out, Time, To}}]}.

out(To, #lane{buffers = Buffers} = Lane) ->
    #{To := {Queue0, FreeMs}} = Buffers,
    {{value, {Bytes, Msg}}, Queue} = queue:out(Queue0),
    {Lane#lane{buffers = Buffers#{To := {Queue, FreeMs}}},
     [{send, To, {carried, Msg}}, {send, other(To, Lane), {sent, Bytes}}]}.
