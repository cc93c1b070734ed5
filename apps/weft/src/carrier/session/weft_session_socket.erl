%% SPDX-License-Identifier: Apache-2.0
%% @doc What the kernel, and programs, ask about the socket of a connection, answered for the stream
%% of a session: about the lane that it uses now.
%%
%% An address is named only if there is one for all of the connection: if the link to that node has
%% one lane only, and the stream goes by this link.
-module(weft_session_socket).

-export([setopts/2, getopts/2, peername/2]).

%% @doc Sets options, without those that decide how packets are read.
-spec setopts(list(), weft_stream:stream()) -> ok | {error, term()}.
setopts(Options, Stream) ->
    with_socket(fun(Socket) -> weft_transport:user_setopts(Socket, Options) end, Stream).

-spec getopts(list(), weft_stream:stream()) -> {ok, list()} | {error, term()}.
getopts(Options, Stream) ->
    with_socket(fun(Socket) -> weft_transport:getopts(Socket, Options) end, Stream).

%% @doc The address at the other end, which leads to Node and to nobody else.
-spec peername(node(), weft_stream:stream()) ->
          {ok, {inet:ip_address(), inet:port_number()}} | {error, circuit | lanes | term()}.
peername(Node, Stream) ->
    peername(Node, weft_config:get(lanes), Stream).

peername(Node, 1, Stream) ->
    #{link := Link} = weft_stream:info(Stream),
    case weft_links:lookup(Node) of
        {ok, Link} -> with_socket(fun weft_transport:peername/1, Stream);
        _Other -> {error, circuit}
    end;
peername(_Node, _Lanes, _Stream) ->
    {error, lanes}.

with_socket(Fun, Stream) ->
    case weft_stream:socket(Stream) of
        {ok, Socket} -> Fun(Socket);
        Error -> Error
    end.
