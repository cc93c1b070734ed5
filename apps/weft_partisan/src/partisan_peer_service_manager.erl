%% SPDX-License-Identifier: Apache-2.0
%% @doc What `partisan_peer_service:manager/0' names: programs for Partisan ask it who they are, and
%% the older ones send with it.
-module(partisan_peer_service_manager).

-export([myself/0, mynode/0, members/0, join/1, leave/0, forward_message/3, forward_message/5,
         cast_message/3, cast_message/5]).

-spec myself() -> partisan:node_spec().
myself() -> partisan:node_spec().

-spec mynode() -> node().
mynode() -> node().

-spec members() -> {ok, [node()]}.
members() -> partisan_peer_service:members().

-spec join(node() | string() | partisan:node_spec()) -> ok | {error, term()}.
join(Node) -> partisan_peer_service:join(Node).

-spec leave() -> ok | {error, term()}.
leave() -> partisan_peer_service:leave().

-spec forward_message(node() | partisan:node_spec(), atom() | pid(), term()) ->
          ok | {error, term()}.
forward_message(Node, Ref, Message) -> forward_message(Node, undefined, Ref, Message, #{}).

%% @doc Of Partisan 2 to 4, where the channel was an argument.
-spec forward_message(node() | partisan:node_spec(), Channel :: atom(), atom() | pid(), term(),
                      weft_partisan_options:options()) -> ok | {error, term()}.
forward_message(Node, Channel, Ref, Message, Options) when is_list(Options) ->
    forward_message(Node, Channel, Ref, Message, maps:from_list(Options));
forward_message(Node, Channel, Ref, Message, #{} = Options) ->
    partisan:forward_message(partisan_peer_service:name(Node), Ref, Message,
                             Options#{channel => Channel}).

-spec cast_message(node() | partisan:node_spec(), atom() | pid(), term()) -> ok.
cast_message(Node, Ref, Request) -> cast_message(Node, undefined, Ref, Request, #{}).

-spec cast_message(node() | partisan:node_spec(), Channel :: atom(), atom() | pid(), term(),
                   weft_partisan_options:options()) -> ok.
cast_message(Node, Channel, Ref, Request, Options) ->
    _ = forward_message(Node, Channel, Ref, {'$gen_cast', Request}, Options),
    ok.
