%% SPDX-License-Identifier: Apache-2.0
%% @doc What `weft_ring_core' sends to other nodes about its ring, as effects. Pure. A message of an
%% older or newer version of the protocol has another number than 1. Not here: when what is sent.
-module(weft_ring_messages).

-export([greeting/2, all/2, news/3, lacking/3]).

%% @doc Which ring this node has, and whether it is the same.
-spec greeting(node(), weft_ring_table:ring()) -> weft_core:effect().
greeting(To, Ring) ->
    {send, To, {ring, 1, {hash, weft_ring_table:id(Ring), weft_ring_table:hash(Ring)}}}.

%% @doc The whole ring. The other node answers with what this one lacks.
-spec all(node(), weft_ring_table:ring()) -> weft_core:effect().
all(To, Ring) ->
    {send, To, {ring, 1, {all, weft_ring_table:id(Ring), weft_ring_table:registers(Ring)}}}.

%% @doc A part of the ring.
-spec news(node(), weft_ring_table:registers(), weft_ring_table:ring()) -> weft_core:effect().
news(To, Registers, Ring) ->
    {send, To, {ring, 1, {news, weft_ring_table:id(Ring), Registers}}}.

%% @doc What a node lacks that has Theirs, which was the whole ring there.
-spec lacking(node(), Theirs :: weft_ring_table:ring(), none | weft_ring_table:ring()) ->
          weft_core:effects().
lacking(To, {Id, _} = Theirs, {Id, _} = Ring) ->
    case weft_ring_table:difference(Ring, Theirs) of
        Lacking when map_size(Lacking) =:= 0 -> [];
        Lacking -> [news(To, Lacking, Ring)]
    end;
lacking(_, _, _) ->
    [].
