%% SPDX-License-Identifier: Apache-2.0
%% @doc Transit: circuits of other nodes that pass through this one. It can be closed before the
%% node is stopped, so that nobody loses anything and nobody waits.
%%
%% In order: `close/0' retracts all routes through this node, and it opens no circuit for others any
%% more; circuits that pass go on. When the others have found ways around, `move/0' closes these
%% circuits, and their sessions resume by the other ways. When there are none (`circuits/0') the
%% node can be stopped. `open/0' takes all of it back.
%%
%% A node without another way around is to be left open: for those behind it nothing is to be found,
%% and their sessions would wait. Who closes has to look (weft_deploy does). Transit is open again
%% when the overlay of the node starts anew.
-module(weft_transit).

-export([close/0, move/0, open/0, circuits/0, is_open/0, next_link/1]).

%% @doc No route leads through this node any more.
-spec close() -> ok | {error, no_overlay}.
close() -> change(closed, false).

%% @doc Routes lead through it again.
-spec open() -> ok | {error, no_overlay}.
open() -> change(open, true).

change(State, IsOpen) ->
    case whereis(weft_router) of
        undefined ->
            {error, no_overlay};
        _ ->
            ok = weft_view:put(?MODULE, transit, State),
            weft_driver:notice(weft_router, {transit, IsOpen})
    end.

%% @doc Closes the circuits that pass. They may come back as long as transit is open.
-spec move() -> ok.
move() ->
    lists:foreach(fun({_Key, Link}) -> weft_link_handler:tell(Link, move_relays) end, links()).

%% @doc How many circuits pass; each counts at both of its links.
-spec circuits() -> non_neg_integer().
circuits() ->
    lists:sum([length(Circuits) || links() =/= [], #{above := #{circuits := Circuits}}
                                                      <- weft_links:info()]).

%% Without the carrier there are none.
links() ->
    case whereis(weft_carrier_sup) of
        undefined -> [];
        _ -> weft_links:list()
    end.

%% @doc May circuits of others be opened through this node?
-spec is_open() -> boolean().
is_open() -> weft_view:lookup(transit) =/= closed.

%% @doc The link towards the target of a circuit that is to pass, if it may.
-spec next_link(binary()) -> {ok, Name :: binary(), Link :: pid()} | error.
next_link(Target) ->
    case is_open() of
        true -> weft_next_hop:next_link(Target);
        false -> error
    end.
