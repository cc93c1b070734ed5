%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is at the broker: what nodes have announced, and when it expires; pure.
%%
%% Every node announces itself again and again; one that was not heard for `?INTERVALS' of its own
%% intervals is forgotten. While this node is not at the broker, or that is blocked, nothing can be
%% heard, so nothing expires. Of announcements of one name the latest start of the node counts, and
%% of these the latest stamp. A `bye' is remembered for as long, so that what was under way does not
%% bring the node back.
%%
%% The interval grows with the number of nodes, so that what the broker has to carry grows with
%% that number and not with its square.
-module(weft_amqp_presence_core).

-export([new/2, own/3, heard/3, expire/2, restart/2, nodes/1, interval_ms/2]).
-export_type([presence/0, effect/0]).

-define(INTERVALS, 6).
-define(NODES_MAX, 10000).
-define(INTERVAL_PER_NODE_MS, 100).

-record(entry, {incarnation :: non_neg_integer(), stamp :: non_neg_integer(),
                queue :: binary() | gone, interval_ms :: non_neg_integer(), heard_ms :: integer()}).

-record(presence, {name :: binary(), incarnation :: non_neg_integer(),
                   entries = #{} :: #{binary() => #entry{}}}).

-opaque presence() :: #presence{}.
%% moved: a node is reached by that queue from now on. gone: it has said bye. lost: it was not heard
%% for too long. hello: it wants to hear of this one. superseded, older: another start of a node
%% with our name is alive.
-type effect() :: {moved, Name :: binary(), Queue :: binary()}
                | {gone, Name :: binary()} | {lost, Name :: binary()}
                | {hello, Queue :: binary()} | superseded | older.

-spec new(Name :: binary(), Incarnation :: non_neg_integer()) -> presence().
new(Name, Incarnation) ->
    #presence{name = Name, incarnation = Incarnation}.

%% @doc What this node is called now, and its start, which is another one when the carrier has had
%% to be restarted.
-spec own(Name :: binary(), Incarnation :: non_neg_integer(), presence()) -> presence().
own(Name, Incarnation, Presence) ->
    Presence#presence{name = Name, incarnation = Incarnation}.

%% @doc An announcement came, from a node of the cluster.
-spec heard(weft_amqp_announce:announcement(), NowMs :: integer(), presence()) ->
          {[effect()], presence()}.
heard(#{name := Name, incarnation := Other, what := What},  _NowMs,
      #presence{name = Name, incarnation = Own} = Presence) ->
    {if What =:= bye; Other =:= Own -> [];
        Other > Own -> [superseded];
        true -> [older]
     end, Presence};
heard(#{name := Name, incarnation := Incarnation, stamp := Stamp} = Announcement, NowMs,
      #presence{entries = Entries} = Presence) ->
    case Entries of
        #{Name := #entry{incarnation = Known, stamp = Last}}
          when {Incarnation, Stamp} =< {Known, Last} ->
            {[], Presence};
        #{Name := Entry} ->
            entered(Announcement, Entry, NowMs, Presence);
        #{} when map_size(Entries) < ?NODES_MAX ->
            entered(Announcement, none, NowMs, Presence);
        #{} ->
            {[], Presence}
    end.

entered(#{name := Name, incarnation := Incarnation, stamp := Stamp, what := What, queue := Queue,
          interval_ms := IntervalMs}, Before, NowMs, #presence{entries = Entries} = Presence) ->
    Entry = #entry{incarnation = Incarnation, stamp = Stamp, heard_ms = NowMs,
                   interval_ms = IntervalMs, queue = case What of bye -> gone; _ -> Queue end},
    {[{hello, Queue} || What =:= hello] ++ changed(Name, Before, Entry),
     Presence#presence{entries = Entries#{Name => Entry}}}.

changed(_Name, #entry{queue = Queue}, #entry{queue = Queue}) -> [];
changed(_Name, none, #entry{queue = gone}) -> [];
changed(Name, _, #entry{queue = gone}) -> [{gone, Name}];
changed(Name, _, #entry{queue = Queue}) -> [{moved, Name, Queue}].

%% @doc Forgets whom nothing was heard of for too long.
-spec expire(NowMs :: integer(), presence()) -> {[effect()], presence()}.
expire(NowMs, #presence{entries = Entries} = Presence) ->
    {Old, Fresh} = lists:partition(
                     fun({_, #entry{heard_ms = HeardMs, interval_ms = IntervalMs}}) ->
                             NowMs - HeardMs > ?INTERVALS * IntervalMs
                     end, maps:to_list(Entries)),
    {[{lost, Name} || {Name, _} <- lists:sort(Old)],
     Presence#presence{entries = maps:from_list(Fresh)}}.

%% @doc This node could not hear anybody up to now.
-spec restart(NowMs :: integer(), presence()) -> presence().
restart(NowMs, #presence{entries = Entries} = Presence) ->
    Presence#presence{entries = maps:map(fun(_, E) -> E#entry{heard_ms = NowMs} end, Entries)}.

%% @doc The names of the others that are there, in order.
-spec nodes(presence()) -> [binary()].
nodes(#presence{entries = Entries}) ->
    lists:sort([Name || {Name, #entry{queue = Queue}} <- maps:to_list(Entries), Queue =/= gone]).

%% @doc How often this node should announce itself.
-spec interval_ms(ConfiguredMs :: pos_integer(), presence()) -> pos_integer().
interval_ms(ConfiguredMs, #presence{entries = Entries}) ->
    max(ConfiguredMs, ?INTERVAL_PER_NODE_MS * map_size(Entries)).
