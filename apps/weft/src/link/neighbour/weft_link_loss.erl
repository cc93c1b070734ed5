%% SPDX-License-Identifier: Apache-2.0
%% @doc What becomes of a link when lanes of it are lost, and when it is known that the node of its
%% peer has ended: who is told, what is closed, and in which order others see that.
%%
%% Functions on the state of a link, for its process, which hears of the loss. What a loss says
%% about the node of the peer is decided by `weft_link_peer'; whether the link dials then is in
%% `weft_link_need'.
-module(weft_link_loss).

-export([lose/3, lose_all/2, drop_lane/3, drop_all/2, drop_published/2, moved/3, concluded/2,
         told/2]).

-import(weft_link_state, [publish/1, up/1, control_lane/1]).
-import(weft_link_need, [need/1, head_start/1]).

-include("weft_link_state.hrl").

%% Of `weft_link_peer'.
-type conclusion() :: nothing | superseded | {restarted, Now :: non_neg_integer()} | died
                    | may_have_departed | departed.

%% A peer that can not be dialled dials again at once, if it is alive.
-define(RETURN_MS, 1000).
%% If nothing has wanted the link by then, epmd is asked whether the peer may have ended. Once more,
%% as epmd may be late, and an attempt under way at the first time, which proves nothing.
-define(FIND_OUT_MS, [300, 3000]).
%% The lane for control messages is lost: when a peer ends it takes all lanes along, one by one.
-define(MOVE_MS, 20).

%% @doc The connection of a lane is lost: the lane goes, or with the last one the link.
-spec lose(weft_transport:socket(), Reason :: term(), weft_link_state:link()) ->
          weft_link_state:link().
lose(Socket, Reason, #link{lanes = Lanes} = Link) when is_map_key(Socket, Lanes) ->
    case map_size(Lanes) of
        1 -> concluded(weft_link_peer:lost(Reason, Link#link.peer),
                       lose_all(broken, find_out_later(Link#link{last_error = Reason})));
        _ -> need(drop_lane(weft_link_lanes:lane(Socket, Lanes), Reason, Link))
    end;
lose(_Socket, _Reason, Link) ->
    Link.

%% Others may wait for the news that a node has ended, and who had a link with it finds out, also if
%% the link is not wanted here: two nodes may be about to part, or to be neighbours, and have no
%% others yet. If its name is still known, most likely the peer needs no link any more.
find_out_later(#link{ups = Ups} = Link) ->
    lists:foreach(fun(Ms) -> erlang:send_after(Ms, self(), {find_out, Ups}) end, ?FIND_OUT_MS),
    Link.

%% @doc What this side knows about the node of its peer now, see `weft_link_peer'.
-spec concluded(conclusion(), weft_link_state:link()) -> weft_link_state:link().
concluded(Nothing, Link) when Nothing =:= nothing; Nothing =:= superseded ->
    Link;
concluded({restarted, _Now} = Restarted, Link) ->
    (drop_all(Restarted, told(died, Link)))#link{peer = undefined};
concluded(died, Link) ->
    (lose_all(gone, told(died, Link)))#link{peer = undefined};
concluded(may_have_departed, #link{ups = Ups} = Link) ->
    _ = erlang:send_after(?RETURN_MS, self(), {return_is_due, Ups}),
    Link;
concluded(departed, Link) ->
    down_above(departed, told(departed, Link)).

%% @doc The handler hears that the node of the peer has ended, or may have.
-spec told(died | departed, weft_link_state:link()) -> weft_link_state:link().
told(How, #link{key = Key, peer = #{incarnation := Incarnation}, handler = Handler} = Link) ->
    ok = Handler:peer_ended(How, Key, Incarnation),
    Link.

%% @doc One of several lanes goes, or the only one for which another one is about to come.
-spec drop_lane(weft_lane:lane(), Reason :: term(), weft_link_state:link()) ->
          weft_link_state:link().
drop_lane(Lane, Reason, #link{lanes = Lanes, handler = Handler, above = Above} = Link) ->
    weft_lane:abort(Lane),
    Dropped = Link#link{lanes = weft_link_lanes:remove(Lane, Lanes), last_error = Reason,
                        above = Handler:lane_down(Lane, Above)},
    case control_lane(Link) of
        Lane -> move_later(Reason, publish(Dropped));
        _Another -> Dropped
    end.

move_later(Reason, Link) ->
    _ = erlang:send_after(?MOVE_MS, self(), {moved, control_lane(Link), Reason}),
    Link.

%% @doc Control messages go by another lane from now on. It may be lost by now, too.
-spec moved(weft_lane:lane() | none, Reason :: term(), weft_link_state:link()) ->
          weft_link_state:link().
moved(Lane, Reason, #link{cores = Cores} = Link) ->
    _ = control_lane(Link) =:= Lane andalso weft_link_cores:moved(Reason, up(Link), Cores),
    Link.

%% @doc All lanes go, and if the link is still needed it comes up again.
-spec lose_all(Reason :: term(), weft_link_state:link()) -> weft_link_state:link().
lose_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
lose_all(Reason, Link) -> need(head_start(drop_published(Reason, Link))).

%% @doc All lanes go. Published first, because sessions that are told of the loss look for another
%% way at once.
-spec drop_published(Reason :: term(), weft_link_state:link()) -> weft_link_state:link().
drop_published(Reason, Link) ->
    _ = publish(Link#link{lanes = #{}}),
    drop_all(Reason, Link).

%% @doc All lanes go, and others do not see it yet: another lane is about to come, or nothing is
%% needed any more.
-spec drop_all(Reason :: term(), weft_link_state:link()) -> weft_link_state:link().
drop_all(Reason, #link{lanes = Lanes} = Link) when map_size(Lanes) =:= 0 ->
    down_above(Reason, Link);
drop_all(Reason, #link{lanes = Lanes, cores = Cores, demand = Demand} = Link) ->
    ok = weft_link_lanes:abort(Lanes),
    down_above(Reason, Link#link{lanes = #{}, idle_since_ms = now_ms(),
                                 demand = weft_link_demand:stay(Demand),
                                 cores = weft_link_cores:link_down(Link#link.last_error, Cores)}).

down_above(Reason, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:link_down(Reason, Above)}.

now_ms() -> erlang:monotonic_time(millisecond).
