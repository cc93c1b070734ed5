%% SPDX-License-Identifier: Apache-2.0
%% @doc Does a link have to dial now? A link or a lane may be missing, or it is to be known whether
%% the node of the peer has ended; and an attempt may be under way, or have to wait for a pause.
%%
%% Functions on the state of a link, for its process, which hears what became of an attempt. What is
%% missing is decided by `weft_link_demand', how long pauses are by `weft_link_dial'.
-module(weft_link_need).

-export([need/1, find_out/1, wanted/2, pause/2, cancel_pause/1, retry_later/1, head_start/1,
         crossed/1]).

-include("weft_link_state.hrl").

%% The side that did not dial the lost lane gives the other this much time to dial again.
-define(HEAD_START_MS, 200).

%% @doc Dials if there is a reason to and none is under way or pausing.
-spec need(weft_link_state:link()) -> weft_link_state:link().
need(#link{key = Key, dial = Dial} = Link) ->
    case weft_link_dial:may_start(Dial) andalso missing(Link) of
        false -> Link;
        What ->
            IsUp = fun() -> weft_link_table:is_up(Key) end,
            weft_link_state:publish(Link#link{dial = weft_link_dial:start(Key, What, IsUp, Dial)})
    end.

missing(#link{key = Key, dial = Dial, peer = Peer, demand = Demand, lanes = Lanes} = Link) ->
    InDoubt = Peer =/= undefined andalso weft_link_dial:is_in_doubt(Link#link.last_error, Dial),
    weft_link_peer:can_be_dialled(Key, Peer)
        andalso weft_link_demand:missing(Demand, InDoubt, weft_link_state:above(Link), Peer, Lanes).

%% @doc The link was lost, and nothing has wanted it since: epmd is asked whether the peer may have
%% ended.
-spec find_out(weft_link_state:link()) -> weft_link_state:link().
find_out(#link{key = Key, peer = Peer, dial = Dial} = Link) ->
    case Peer =/= undefined andalso not weft_link_state:is_up(Link)
        andalso weft_link_dial:may_start(Dial)
        andalso weft_link_peer:can_be_dialled(Key, Peer) of
        true -> Link#link{dial = weft_link_dial:look_up(Key, Dial)};
        false -> Link
    end.

%% @doc The overlay wants the link, or no longer.
-spec wanted(boolean(), weft_link_state:link()) -> weft_link_state:link().
wanted(true, #link{is_released = true} = Link) ->
    wanted(true, cancel_pause(Link#link{is_released = false}));
wanted(Wanted, #link{demand = Demand} = Link) ->
    Link#link{demand = weft_link_demand:want(Wanted, Demand)}.

%% @doc The next attempt waits for so long.
-spec pause(PauseMs :: non_neg_integer(), weft_link_state:link()) -> weft_link_state:link().
pause(PauseMs, #link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:pause(PauseMs, Dial)}.

%% @doc The next attempt waits for nothing.
-spec cancel_pause(weft_link_state:link()) -> weft_link_state:link().
cancel_pause(#link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:cancel_pause(Dial)}.

%% @doc An attempt was in vain: the next one waits, longer each time.
-spec retry_later(weft_link_state:link()) -> weft_link_state:link().
retry_later(#link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:retry_later(Dial)}.

%% @doc After a loss the side that dialled goes first.
-spec head_start(weft_link_state:link()) -> weft_link_state:link().
head_start(#link{peer = #{role := listener}} = Link) -> pause(?HEAD_START_MS, Link);
head_start(Link) -> Link.

%% @doc Both have dialled: the peer's own call is about to arrive.
-spec crossed(weft_link_state:link()) -> weft_link_state:link().
crossed(Link) -> pause(?HEAD_START_MS, Link).
