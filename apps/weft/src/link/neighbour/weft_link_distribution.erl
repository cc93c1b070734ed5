%% SPDX-License-Identifier: Apache-2.0
%% @doc The distribution connection that a link between neighbours carries: when the kernel is asked
%% to make it.
%%
%% With an overlay neighbours see each other, so the connection is made as soon as the link is up,
%% by the end that dialled it: of two attempts that cross one is for nothing. But two nodes that
%% agreed to be neighbours often part at once, so in this case it is made at the second tick. A
%% connection that is missing later is made at a tick, too, by an end that wants the link: an
%% attempt may have failed, because it crossed another or the link broke. A link that neither end
%% wants is about to be closed, and its connection has ended for good.
-module(weft_link_distribution).

-export([at_once/3, at_tick/3]).

%% @doc The link is up, or what may use it has changed.
-spec at_once(weft_links:key(), weft_handshake:peer(), weft_link_cores:cores()) -> ok.
at_once(Key, #{role := Role}, Cores) ->
    _ = Role =:= dialer andalso weft_link_cores:is_neighbour_anyway(Cores) andalso connect(Key),
    ok.

%% @doc Was the link wanted and used at the tick before, and is it now?
-spec at_tick(weft_links:key(), WasUsed :: boolean(), IsUsed :: boolean()) -> ok.
at_tick(Key, WasUsed, IsUsed) ->
    _ = WasUsed andalso IsUsed andalso not lists:member(Key, nodes(connected))
        andalso connect(Key),
    ok.

connect(Key) ->
    is_atom(Key) andalso spawn_opt(fun() -> net_kernel:connect_node(Key) end,
                                   [{priority, weft_turn:priority(control)}]).
