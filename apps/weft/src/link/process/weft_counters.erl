%% SPDX-License-Identifier: Apache-2.0
%% @doc What this node has done since its carrier was started first: totals that only grow.
%%
%% Links and sessions have counters of their own, which end with them. A sum of those that live
%% falls when one ends, and is useless for rates. These do not belong to any process: none that ends
%% takes them along. They are read by tools (`weft:status/0').
%%
%% packets_*, bytes_*: of all streams; a payload that is repeated counts again, and ticks count, as
%% in `weft_session_counters'. resumes: a stream went on, on a new path. reroutes: by way of another
%% neighbour than before. repairs: on the same path, after it lost a lane. relayed_*: what passed
%% through for others. refusals: connections that were refused, or closed for what came over them. A
%% node that runs no carrier counts nothing.
-module(weft_counters).

-export([init/0, add/1, add/2, add/4, totals/0, slot/1, read/0, names/0]).
-export_type([name/0, totals/0, slot/0]).

%% On the way of each message: not calls.
-compile({inline, [index/1]}).

-type name() :: packets_in | packets_out | bytes_in | bytes_out | sessions_started | sessions_ended
              | resumes | repairs | links_up | links_down | lanes_opened | lanes_closed
              | dials_failed | relayed_packets | relayed_bytes | senders_suspended | refusals
              | reroutes.

-type totals() :: counters:counters_ref().
-type slot() :: pos_integer().

%% More than there are names: code of a later version may be loaded, and finds these.
-define(SLOTS, 64).

%% @doc Begins to count, unless this node does.
-spec init() -> ok.
init() ->
    case persistent_term:get(?MODULE, none) of
        none -> persistent_term:put(?MODULE, counters:new(?SLOTS, [write_concurrency]));
        _Counters -> ok
    end.

-spec add(name()) -> ok.
add(Name) -> add(Name, 1).

-spec add(name(), non_neg_integer()) -> ok.
add(Name, Count) ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        Counters -> counters:add(Counters, index(Name), Count)
    end.

%% @doc Adds to two of them.
-spec add(name(), non_neg_integer(), name(), non_neg_integer()) -> ok.
add(NameA, CountA, NameB, CountB) ->
    case persistent_term:get(?MODULE, none) of
        none ->
            ok;
        Counters ->
            counters:add(Counters, index(NameA), CountA),
            counters:add(Counters, index(NameB), CountB)
    end.

%% @doc For who counts each packet: where to add, and in which slot.
-spec totals() -> totals() | none.
totals() -> persistent_term:get(?MODULE, none).

-spec slot(name()) -> slot().
slot(Name) -> index(Name).

%% @doc All of them.
-spec read() -> #{name() => non_neg_integer()}.
read() ->
    Counters = persistent_term:get(?MODULE, none),
    maps:from_list([{Name, value(Name, Counters)} || Name <- names()]).

value(_Name, none) -> 0;
value(Name, Counters) -> counters:get(Counters, index(Name)).

-spec names() -> [name()].
names() ->
    [packets_in, packets_out, bytes_in, bytes_out, sessions_started, sessions_ended, resumes,
     repairs, links_up, links_down, lanes_opened, lanes_closed, dials_failed, relayed_packets,
     relayed_bytes, senders_suspended, refusals, reroutes].

index(packets_in) -> 1;
index(packets_out) -> 2;
index(bytes_in) -> 3;
index(bytes_out) -> 4;
index(sessions_started) -> 5;
index(sessions_ended) -> 6;
index(resumes) -> 7;
index(repairs) -> 8;
index(links_up) -> 9;
index(links_down) -> 10;
index(lanes_opened) -> 11;
index(lanes_closed) -> 12;
index(dials_failed) -> 13;
index(relayed_packets) -> 14;
index(relayed_bytes) -> 15;
index(senders_suspended) -> 16;
index(refusals) -> 17;
index(reroutes) -> 18.
