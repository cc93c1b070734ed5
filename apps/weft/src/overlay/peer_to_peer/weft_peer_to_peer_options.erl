%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of the topology `peer_to_peer': defaults and checks. The modules that use an
%% option explain it: `weft_peer_to_peer_core' and those that it names.
-module(weft_peer_to_peer_options).

-export([with_defaults/1, validate/1]).

-define(PUBLIC, [seeds, active, passive, shuffle_ms, probe_ms, optimise, optimise_ms,
                 unbiased]).

%% @doc Adds the defaults of options that are absent. The sizes and walks are those of the paper for
%% 10,000 nodes.
-spec with_defaults(weft_core:options()) -> weft_core:options().
with_defaults(#{seeds := discovered} = Options) ->
    with_defaults(Options#{seeds := []});
with_defaults(Options) ->
    maps:merge(#{seeds => [], active => 5, passive => 30, join_walk => 6, passive_walk => 3,
                 shuffle_active => 3, shuffle_passive => 4, shuffle_walk => 6, shuffle_ms => 10000,
                 mix_from => 3, mix_rounds => 5, probe_ms => 60000, attempt_ms => 5000,
                 retry_min_ms => 100, retry_max_ms => 5000, linger_ms => 500,
                 optimise => none, optimise_ms => 10000, unbiased => 1}, Options).

%% @doc Checks the options of a configuration. Errors: unknown option, no or malformed seeds,
%% numbers out of range.
-spec validate(map()) -> ok | {error, iolist()}.
validate(Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("peer_to_peer", Options, ?PUBLIC) end,
       fun() -> seeds(maps:get(seeds, Options, [])) end,
       fun() -> number(active, 2, 100, Options) end,
       fun() -> number(passive, maps:get(active, Options, 5), 10000, Options) end,
       fun() -> number(shuffle_ms, 100, 3600000, Options) end,
       fun() -> number(probe_ms, 100, 86400000, Options) end,
       fun() -> optimise(maps:get(optimise, Options, none)) end,
       fun() -> number(optimise_ms, 100, 86400000, Options) end,
       fun() -> number(unbiased, 0, maps:get(active, Options, 5) - 1, Options) end]).

optimise(What) when What =:= none; What =:= rtt ->
    ok;
optimise(Other) ->
    {error, io_lib:format("optimise of the peer_to_peer topology is ~0tp: write rtt, for "
                          "neighbours with short round trips, or none", [Other])}.

seeds(discovered) ->
    ok;
seeds([]) ->
    {error, "topology peer_to_peer needs seeds, nodes to join by: write {peer_to_peer, #{seeds => "
            "['name@host', ...]}}, the same on every node, or seeds => discovered if the key "
            "discovery of weft says where to look for nodes"};
seeds(Seeds) ->
    weft_topology_rules:node_names("seeds of the peer_to_peer topology", Seeds).

number(Key, Min, Max, Options) ->
    case Options of
        #{Key := Value} when not is_integer(Value); Value < Min; Value > Max ->
            {error, io_lib:format("~s of the peer_to_peer topology is ~0tp: write a whole number "
                                  "from ~b to ~b", [Key, Value, Min, Max])};
        #{} ->
            ok
    end.
