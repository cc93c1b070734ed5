%% SPDX-License-Identifier: Apache-2.0
%% @doc Which lane of a link is to be dialled next; pure.
%%
%% Lanes of the link itself are brought up by the side that dialled it, as many as are configured.
%% The first one is not dialled again while others are up: another one takes its place. Lanes of
%% channels are brought up by the side that uses them, so a channel used by both sides may have its
%% lanes twice.
-module(weft_lane_plan).

-export([missing/4]).

%% The last index that a lane may have (`weft_hello').
-define(INDEX_MAX, 63).

%% @doc Given the role in which this side brought the link up, the keys of the lanes there are, the
%% number of the link's own lanes that there should be, and the lanes that channels want.
-spec missing(dialer | listener, Present :: [weft_lane:key()], Own :: pos_integer(),
              Wanted :: [weft_lane:key()]) -> weft_hello:purpose() | none.
missing(Role, Present, Own, Wanted) ->
    case own(Role, Present, Own) ++ (Wanted -- Present) of
        [{Class, Index} | _] -> {lane, Class, Index};
        [] -> none
    end.

own(listener, _Present, _Own) ->
    [];
own(dialer, Present, Own) ->
    Indices = [Index || {<<>>, Index} <- Present],
    Count = length(Indices),
    case Count < Own of
        true -> [{<<>>, Index} || Index <- lists:seq(1, min(Count + 1, ?INDEX_MAX)) -- Indices];
        false -> []
    end.
