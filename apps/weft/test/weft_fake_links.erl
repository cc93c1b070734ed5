%% SPDX-License-Identifier: Apache-2.0
%% @doc Test double of the link layer: tells the process registered as `weft_fake_links_owner' what
%% it was asked for. The test plays the neighbours itself. Sends to gone@host fail.
-module(weft_fake_links).

-export([subscribe/2, send/3, connect/1, disconnect/1, break/1]).

subscribe(Core, Pid) -> tell({subscribed, Core, Pid}).

send('gone@host', _Core, _Message) -> {error, not_connected};
send(Node, Core, Message) -> tell({sent, Node, Core, Message}).

connect(Node) -> tell({connect, Node}).

disconnect(Node) -> tell({disconnect, Node}).

break(Node) -> tell({break, Node}).

tell(What) ->
    weft_fake_links_owner ! What,
    ok.
