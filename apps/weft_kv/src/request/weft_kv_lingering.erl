%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests whose callers have their answers, and which wait for the replicas that have not
%% answered yet. A replica that hangs keeps each of them until its time is over. So they do not
%% count as requests that run, but for themselves, and there are only so many.
%%
%% If there would be one more, the one that has waited longest is told to give up, by the message
%% `give_up', and does at once what it does when its time is over. The oldest, as it most likely
%% waits for a replica that hangs: those of a new one mostly answer within a moment, and if new ones
%% gave up, reads would repair nothing at all while one node hangs. The process that would be too
%% many finds the oldest one itself, in a table, so no process is shared.
%%
%% Nothing is lost by it that a caller was told of. A write was sent to all its replicas before.
%% That one of them does not have it is not known to anybody, now as at the end of the time: a later
%% read or a comparison finds that out. Only what was written twice is taken back by the one that
%% waits. So those that may have to do that give up when there are no others left.
-module(weft_kv_lingering).

-export([new/1, begun/2, ended/2, count/1]).
-export_type([lingering/0, place/0]).

-opaque lingering() :: weft_kv_counted:counted().
-opaque place() :: {MayBeTwice :: boolean(), SinceNative :: integer(), pid()}.

%% @doc There is none. The table ends with the calling process.
-spec new(Max :: pos_integer()) -> lingering().
new(Max) -> weft_kv_counted:new(in_order, Max).

%% @doc The calling process waits from now on. `MayBeTwice': also to take something back.
-spec begun(MayBeTwice :: boolean(), lingering()) -> place().
begun(MayBeTwice, Lingering) ->
    Place = {MayBeTwice, erlang:monotonic_time(), self()},
    ok = weft_kv_counted:enter(Place, Lingering),
    ok = weft_kv_counted:make_room(fun(Pid) -> Pid ! give_up end, Lingering),
    Place.

%% @doc It does not wait any more.
-spec ended(place(), lingering()) -> ok.
ended(Place, Lingering) -> weft_kv_counted:leave(Place, Lingering).

%% @doc How many wait. Some of them may have been killed.
-spec count(lingering()) -> non_neg_integer().
count(Lingering) -> weft_kv_counted:count(Lingering).
