%% SPDX-License-Identifier: Apache-2.0
%% @doc The networks that workloads run on: loopback, and emulated links with a round trip, a rate,
%% a queue of about one round trip, loss, and ends with small buffers.
-module(weft_bench_link).

-export([loopback/0, emulated/3, with_buffers/2]).
-export_type([link/0]).

-type link() :: #{label := atom(), rtt_ms := number(), rate_mbit := number(),
                  loss_percent := number(), queue_bytes := non_neg_integer(),
                  buffer_bytes => pos_integer(),
                  hosts => weft_bench_hosts:hosts()}.

%% What a queue can hold even on a short link.
-define(QUEUE_BYTES_MIN, 500000).

-spec loopback() -> link().
loopback() ->
    #{label => loopback, rtt_ms => 0, rate_mbit => 0, loss_percent => 0, queue_bytes => 0}.

%% @doc A link that loses LossPercent of all packets, in each direction.
-spec emulated(RttMs :: pos_integer(), RateMbit :: pos_integer(), LossPercent :: number()) ->
          link().
emulated(RttMs, RateMbit, LossPercent) ->
    Link = #{rtt_ms => RttMs, rate_mbit => RateMbit, loss_percent => LossPercent,
             queue_bytes => max(?QUEUE_BYTES_MIN, RttMs * RateMbit * 125), label => undefined},
    Link#{label := label(Link)}.

%% @doc The link between ends whose kernels have no more than so many bytes for what one connection
%% has received. How much may be under way on it is somewhat less, as packets take more memory than
%% they have bytes.
-spec with_buffers(BufferBytes :: pos_integer(), link()) -> link().
with_buffers(BufferBytes, Link) ->
    Limited = Link#{buffer_bytes => BufferBytes},
    Limited#{label := label(Limited)}.

%% @doc The name of a link in results, without what does not limit: 20ms-400mbit-0.1% or
%% 20ms-400mbit-128KB.
-spec label(link()) -> atom().
label(#{rtt_ms := RttMs, rate_mbit := RateMbit, loss_percent := LossPercent} = Link) ->
    Loss = [io_lib:format("-~p%", [LossPercent]) || LossPercent > 0],
    Buffers = [io_lib:format("-~bKB", [Bytes div 1024]) || #{buffer_bytes := Bytes} <- [Link]],
    list_to_atom(lists:flatten([io_lib:format("~bms-~bmbit", [RttMs, RateMbit]), Loss, Buffers])).
