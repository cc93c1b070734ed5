%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of the failure detector `weft_swim_core': names, defaults, limits.
%%
%% The defaults are those that memberlist (github.com/hashicorp/memberlist, DefaultLANConfig) uses
%% in local networks. Detection of a crash takes about one probe interval, and then the suspicion:
%% `suspicion_multiplier * log10(members) * probe_interval_ms' once enough members have confirmed
%% it, up to `suspicion_max_multiplier' times that if nobody does.
-module(weft_swim_options).

-export([complete/1, check/1, keys/0]).
-export_type([options/0]).

-type options() :: #{probe_interval_ms := pos_integer(), probe_timeout_ms := pos_integer(),
                     indirect_probes := non_neg_integer(), gossip_interval_ms := pos_integer(),
                     gossip_nodes := pos_integer(), gossip_bytes := pos_integer(),
                     retransmit_multiplier := pos_integer(),
                     suspicion_multiplier := pos_integer(),
                     suspicion_max_multiplier := pos_integer(), health_max := pos_integer(),
                     sync_interval_ms := pos_integer(), sync_gap_ms := non_neg_integer(),
                     sync_entries := pos_integer(), join_interval_ms := pos_integer(),
                     leave_timeout_ms := non_neg_integer(), dead_ms := pos_integer(),
                     dead_max := pos_integer(), members_max := pos_integer(),
                     relays_max := pos_integer(),
                     lifeguard := [health | suspicion | buddy]}.

-define(DAY_MS, 86400000).

%% {Key, Default, Smallest, Largest}. The meanings:
%% probe_interval_ms: in this time one member is probed. probe_timeout_ms: how long to wait for a
%%   direct answer; less than the interval. indirect_probes: so many others are asked after that.
%% gossip_interval_ms, gossip_nodes: while there is news, so many neighbours get it that often.
%% gossip_bytes: news in one message; a single piece, of some 50 bytes and the names of one or two
%%   nodes, may be more. retransmit_multiplier: times log10(members), rounded up, is how often a
%%   node passes on a piece of news.
%% health_max: a node in bad health probes up to so many times more slowly.
%% sync_interval_ms: how often tables are compared. sync_gap_ms: pause between two whole tables that
%%   a node sends without being asked. sync_entries: of a table in one message.
%% join_interval_ms: a node that knows no other node asks its seeds that often.
%% leave_timeout_ms: the longest time that a node takes to tell that it leaves.
%% dead_ms, dead_max: failed and departed members are remembered so long, and so many of them.
%% members_max: entries of the table. relays_max: probes in progress for others.
numbers() ->
    [{probe_interval_ms, 1000, 10, 600000}, {probe_timeout_ms, 500, 5, 600000},
     {indirect_probes, 3, 0, 100}, {gossip_interval_ms, 200, 5, 600000},
     {gossip_nodes, 3, 1, 100}, {gossip_bytes, 1400, 200, 1048576},
     {retransmit_multiplier, 4, 1, 100}, {suspicion_multiplier, 4, 1, 1000},
     {suspicion_max_multiplier, 6, 1, 1000}, {health_max, 8, 1, 1000},
     {sync_interval_ms, 30000, 100, ?DAY_MS}, {sync_gap_ms, 1000, 0, ?DAY_MS},
     {sync_entries, 1000, 1, 100000}, {join_interval_ms, 1000, 10, 600000},
     {leave_timeout_ms, 5000, 0, 600000}, {dead_ms, ?DAY_MS, 1000, 365 * ?DAY_MS},
     {dead_max, 1000, 1, 1000000}, {members_max, 10000, 1, 1000000},
     {relays_max, 1000, 1, 1000000}].

-define(LIFEGUARD, [health, suspicion, buddy]).

%% @doc The names of all options.
-spec keys() -> [atom()].
keys() ->
    [lifeguard | [Key || {Key, _, _, _} <- numbers()]].

%% @doc Adds the defaults of options that are absent.
-spec complete(map()) -> options().
complete(Options) ->
    Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- numbers()]),
    maps:merge(Defaults#{lifeguard => ?LIFEGUARD}, maps:with(keys(), Options)).

%% @doc Checks the options that are there; the caller checks for unknown keys.
-spec check(map()) -> ok | {error, iolist()}.
check(Options) ->
    weft_topology_rules:first_error(
      [fun() -> number(Row, Options) end || Row <- numbers()]
      ++ [fun() -> lifeguard(maps:get(lifeguard, Options, ?LIFEGUARD)) end,
          fun() -> relation(complete(Options)) end]).

number({Key, _Default, Smallest, Largest}, Options) ->
    case Options of
        #{Key := Value} when is_integer(Value), Value >= Smallest, Value =< Largest -> ok;
        #{Key := Value} ->
            {error, io_lib:format("~s is ~0tp: write an integer from ~b to ~b",
                                  [Key, Value, Smallest, Largest])};
        #{} -> ok
    end.

lifeguard(Parts) when is_list(Parts) ->
    case Parts -- ?LIFEGUARD of
        [] -> ok;
        [Part | _] ->
            {error, io_lib:format("lifeguard has no part ~0tp: write a list of some of ~0tp, or "
                                  "[] for plain SWIM", [Part, ?LIFEGUARD])}
    end;
lifeguard(Other) ->
    {error, io_lib:format("lifeguard is ~0tp: write a list of some of ~0tp, or [] for plain SWIM",
                          [Other, ?LIFEGUARD])}.

relation(#{probe_timeout_ms := TimeoutMs, probe_interval_ms := IntervalMs})
  when TimeoutMs >= IntervalMs ->
    {error, io_lib:format("probe_timeout_ms (~b) must be less than probe_interval_ms (~b), so that "
                          "there is time left to ask others", [TimeoutMs, IntervalMs])};
relation(_Options) ->
    ok.
