%% SPDX-License-Identifier: Apache-2.0
%% @doc Packets of the distribution handshake, for the process of `dist_util', which receives them
%% as from a passive socket: packets that have come wait for it, or it waits for the next packet.
%%
%% If the peer ends the session during the handshake, the stream is closed and the session stays, as
%% with a closed socket: a receiver gets {error, closed}, and a process that waits to be replaced
%% (simultaneous connects) is not disturbed.
-module(weft_handshake_stream).

-export([new/0, arrived/2, recv/3, timeout/2, close/1, is_closed/1, is_to_end/1]).
-export_type([stream/0]).

%% The status of an attempt that lost to the peer's own (ERTS User's Guide, distribution protocol).
-define(NOK, <<"snok">>).

-record(stream, {packets = queue:new() :: queue:queue(binary()),
                 receiver :: {gen_server:from(), reference() | undefined} | undefined,
                 closed = false :: boolean(),
                 %% The peer has told this node to wait for the peer's own attempt.
                 refused = false :: boolean()}).
-opaque stream() :: #stream{}.

-spec new() -> stream().
new() -> #stream{}.

%% @doc A packet came.
-spec arrived(binary(), stream()) -> stream().
arrived(Packet, Stream) ->
    deliver(Packet, Stream#stream{refused = Packet =:= ?NOK}).

deliver(Packet, #stream{receiver = undefined, packets = Packets} = Stream) ->
    Stream#stream{packets = queue:in(Packet, Packets)};
deliver(Packet, Stream) ->
    answer({ok, binary_to_list(Packet)}, Stream).

%% @doc From asks for the next packet; a timeout comes to the caller as {recv_timeout, From}.
-spec recv(gen_server:from(), timeout(), stream()) -> stream().
recv(From, TimeoutMs, #stream{packets = Packets0, closed = Closed} = Stream) ->
    case {queue:out(Packets0), Closed} of
        {{{value, Packet}, Packets}, _} ->
            gen_server:reply(From, {ok, binary_to_list(Packet)}),
            Stream#stream{packets = Packets};
        {{empty, _}, true} ->
            gen_server:reply(From, {error, closed}),
            Stream;
        {{empty, _}, false} ->
            Stream#stream{receiver = {From, timer(From, TimeoutMs)}}
    end.

timer(_From, infinity) -> undefined;
timer(From, TimeoutMs) -> erlang:send_after(TimeoutMs, self(), {recv_timeout, From}).

-spec timeout(gen_server:from(), stream()) -> stream().
timeout(From, #stream{receiver = {From, _}} = Stream) -> answer({error, timeout}, Stream);
timeout(_Old, Stream) -> Stream.

%% @doc No more packets will come.
-spec close(stream()) -> stream().
close(Stream) -> answer({error, closed}, Stream#stream{closed = true}).

-spec is_closed(stream()) -> boolean().
is_closed(#stream{closed = Closed}) -> Closed.

%% @doc Is it closed, so that its process will end by itself? Not if that waits to be replaced.
-spec is_to_end(stream()) -> boolean().
is_to_end(#stream{closed = Closed, refused = Refused}) -> Closed andalso not Refused.

answer(_Result, #stream{receiver = undefined} = Stream) ->
    Stream;
answer(Result, #stream{receiver = {From, Timer}} = Stream) ->
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    gen_server:reply(From, Result),
    Stream#stream{receiver = undefined}.
