%% SPDX-License-Identifier: Apache-2.0
%% @doc Links like those of `weft_node_links', for services whose messages carry what users have
%% given them, of any size and number: what such a driver sends goes by outlets of its own
%% (`weft_node_outlet'), so that no other service waits behind it.
-module(weft_own_links).

-export([subscribe/2, send/3, unknown/2, connect/1, disconnect/1, break/1]).

%% @doc See `weft_node_links'.
-spec subscribe(Name :: atom(), pid()) -> ok.
subscribe(Name, Driver) -> weft_node_links:subscribe(Name, Driver, Name).

%% @doc See `weft_node_links'.
-spec send(node(), Name :: atom(), term()) -> {error, not_connected}.
send(Node, Name, Message) -> weft_node_links:send(Node, Name, Message).

%% @doc See `weft_node_links'.
-spec unknown(Name :: atom(), Data :: tuple()) -> ok.
unknown(Name, Data) -> weft_node_links:unknown(Name, Data).

%% @doc See `weft_node_links'.
-spec connect(node()) -> ok.
connect(Node) -> weft_node_links:connect(Node).

%% @doc See `weft_node_links'.
-spec disconnect(node()) -> ok.
disconnect(Node) -> weft_node_links:disconnect(Node).

%% @doc See `weft_node_links'.
-spec break(node()) -> ok.
break(Node) -> weft_node_links:break(Node).
