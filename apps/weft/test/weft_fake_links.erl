%% SPDX-License-Identifier: Apache-2.0
%% @doc Test double of the link layer: tells the process registered as `weft_fake_links_owner' what
%% it was asked for. The test plays the neighbours itself. Sends to gone@host fail.
-module(weft_fake_links).

-export([subscribe/2, admitting/1, send/3, unknown/2, connect/1, disconnect/1, break/1, agree/2]).

subscribe(Core, Pid) -> tell({subscribed, Core, Pid}).

admitting(Core) -> tell({admitting, Core}).

send('gone@host', _Core, _Message) -> {error, not_connected};
send(Node, Core, Message) -> tell({sent, Node, Core, Message}).

unknown(Name, Data) -> tell({unknown, Name, Data}).

connect(Node) -> tell({connect, Node}).

disconnect(Node) -> tell({disconnect, Node}).

break(Node) -> tell({break, Node}).

agree(Node, IsNeighbour) -> tell({agree, Node, IsNeighbour}).

tell(What) ->
    weft_fake_links_owner ! What,
    ok.
