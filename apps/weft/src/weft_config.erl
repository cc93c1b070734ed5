%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a node: application environment of `weft', with defaults and checks.
%%
%% Every key has a type, a default and a meaning, all in `schema/0'; an unknown key or a value of
%% the wrong type is an error that names the key and what it expects. Values are read when a link,
%% session or overlay starts, not on the data path.
%%
%% The carrier starts with the kernel, before any other application, so `load/0' makes the
%% environment of `weft' (sys.config, `-weft key value') available that early.
-module(weft_config).

-export([load/0, get/1, idle_keepalive_ms/0, net_ticktime_ms/0, check/0, check/1, schema/0]).
-export_type([key/0]).

-type key() :: cluster_name | transport | tls_options | family | lanes | window_bytes
             | queue_bytes | resume_timeout_ms | keepalive_ms | idle_keepalive_ms
             | link_timeout_ms | link_idle_ms
             | handshake_timeout_ms | pending_handshakes_max | plain_nodes | ports | topology
             | circuits | discovery | discovery_interval_ms | hop_limit | relay_circuits_max
             | relay_bytes_max | channels | pins | broadcast | groups | groups_file | group_names
             | attributes
             | scopes | partition_policy | partition_nodes | partition_grace_ms
             | pause_applications | faults.

%% As often as the kernel ticks a connection with net_ticktime at its default.
-define(WATCHED_KEEPALIVE_MS, 15000).
%% A broker would have to carry the pings of all pairs, and tells at once that a peer is gone if
%% something is sent to it.
-define(BROKER_KEEPALIVE_MS, 5000).

%% @doc All keys: {Key, Default, Check, What the value must be}.
-spec schema() -> [{key(), term(), fun((term()) -> boolean()), string()}].
schema() ->
    [{cluster_name, "default", fun is_name/1, "a string of 1 to 255 bytes"},
     {transport, tcp, one_of([tcp, tls]), "tcp or tls"},
     {tls_options, [], fun is_list/1, "a list of ssl options"},
     {family, inet, one_of([inet, inet6]), "inet or inet6"},
     {lanes, 1, between(1, 64), "an integer from 1 to 64"},
     {window_bytes, 16777216, between(65536, 1073741824), "bytes, from 65536 to 1073741824"},
     {queue_bytes, 134217728, between(65536, 1 bsl 40), "bytes, from 65536"},
     {resume_timeout_ms, auto, fun is_resume_timeout/1,
      "auto, or milliseconds, from 0 to 86400000"},
     {keepalive_ms, 1000, between(50, 600000), "milliseconds, from 50 to 600000"},
     {idle_keepalive_ms, auto, fun is_idle_keepalive/1,
      "auto, or milliseconds, from 0 to 3600000"},
     {link_timeout_ms, 5000, between(100, 3600000),
      "milliseconds, from 100 to 3600000, and more than keepalive_ms"},
     {link_idle_ms, 60000, between(100, 86400000), "milliseconds, from 100 to 86400000"},
     {handshake_timeout_ms, 5000, between(100, 60000), "milliseconds, from 100 to 60000"},
     {pending_handshakes_max, 1024, between(1, 65536), "an integer from 1 to 65536"},
     {plain_nodes, allow, one_of([allow, deny]), "allow or deny"},
     {ports, #{}, fun is_ports/1, "a map from node name (a string, without host) to port, "
      "with the key default for all others"},
     {topology, undefined, fun(_) -> true end, "a topology, for example full_mesh"},
     {circuits, hidden, one_of([hidden, visible]), "hidden or visible"},
     {discovery, [], fun is_list/1, "a list of sources, for example [{dns, #{name => \"app\"}}]"},
     {discovery_interval_ms, 5000, between(100, 3600000), "milliseconds, from 100 to 3600000"},
     {hop_limit, 8, between(1, 255), "an integer from 1 to 255"},
     {relay_circuits_max, 4096, between(0, 1000000), "an integer from 0 to 1000000"},
     {relay_bytes_max, 67108864, between(65536, 1 bsl 40), "bytes, from 65536"},
     {faults, false, fun is_boolean/1, "true or false"}
    | services()].

services() ->
    [{channels, #{}, fun(_) -> true end, "a map from names to maps of options"},
     {pins, #{}, fun(_) -> true end, "a map from registered names to channels"},
     {broadcast, #{}, fun(_) -> true end, "a map of options"},
     {groups, #{}, fun is_groups/1, "a map from group names (but undefined, no_group, all, cluster "
      "and weft_bridge) to lists of nodes"},
     {groups_file, undefined, fun(Path) -> Path =:= undefined orelse is_name(Path) end,
      "the path of a file"},
     {group_names, #{}, fun is_map/1, "a map of options of a scope of names"},
     {attributes, #{}, fun is_map/1, "a map from names of attributes to what they are"},
     {scopes, #{}, fun is_map/1, "a map from scopes of names to maps of options"},
     {partition_policy, stay, fun is_partition_policy/1,
      "stay, pause_minority or {callback, {Module, Function}}"},
     {partition_nodes, [], fun is_atoms/1, "a list of nodes"},
     {partition_grace_ms, 1000, between(0, 3600000), "milliseconds, from 0 to 3600000"},
     {pause_applications, [], fun is_atoms/1, "a list of applications"}].

%% @doc Loads the application description so that its environment can be read before it is started.
-spec load() -> ok.
load() ->
    case application:load(weft) of
        ok -> ok;
        {error, {already_loaded, weft}} -> ok;
        {error, _NoAppFile} -> ok
    end.

%% @doc The value of a key, or its default.
-spec get(key()) -> term().
get(Key) ->
    case application:get_env(weft, Key) of
        {ok, Value} -> Value;
        undefined -> default(Key)
    end.

%% Links ask for several keys each second, and to make the whole schema for each would cost more
%% than all else that they do. An upgrade of this module may have brought a new key.
default(Key) ->
    case persistent_term:get(?MODULE, none) of
        #{Key := Default} ->
            Default;
        _ ->
            Defaults = maps:from_list([{Name, Default} || {Name, Default, _, _} <- schema()]),
            persistent_term:put(?MODULE, Defaults),
            map_get(Key, Defaults)
    end.

%% @doc How often a lane is pinged on which nothing else is sent, if that is less often than
%% keepalive_ms. With `auto', which is the default, that depends on who else watches the peers.
-spec idle_keepalive_ms() -> non_neg_integer().
idle_keepalive_ms() ->
    case {?MODULE:get(idle_keepalive_ms), ?MODULE:get(topology)} of
        {auto, {full_mesh, #{detector := swim}}} -> ?WATCHED_KEEPALIVE_MS;
        {auto, {pubsub, _}} -> ?BROKER_KEEPALIVE_MS;
        {auto, _} -> 0;
        {Ms, _} -> Ms
    end.

%% @doc How long the kernel waits for a silent node, about (`net_ticktime' of kernel(6)).
-spec net_ticktime_ms() -> pos_integer().
net_ticktime_ms() ->
    1000 * application:get_env(kernel, net_ticktime, 60).

%% @doc Checks the whole environment. The text says which key is wrong and what it must be.
-spec check() -> ok | {error, string()}.
check() ->
    check(application:get_all_env(weft)).

%% @doc The same for a given list of keys and values.
-spec check([{atom(), term()}]) -> ok | {error, string()}.
check(Env) ->
    case lists:append([check_key(Key, Value) || {Key, Value} <- Env, Key =/= included_applications])
        ++ check_relations(Env) of
        [] -> ok;
        Errors -> {error, lists:flatten(lists:join("; ", Errors))}
    end.

check_key(Key, Value) ->
    case lists:keyfind(Key, 1, schema()) of
        {Key, _Default, Check, Expected} ->
            case Check(Value) of
                true -> [];
                false -> [io_lib:format("weft: ~s is ~0p, it must be ~s", [Key, Value, Expected])]
            end;
        false ->
            [io_lib:format("weft: unknown option ~0p~s", [Key, nearest(Key)])]
    end.

check_relations(Env) ->
    check_timeouts(Env)
        ++ weft_channel_options:check(proplists:get_value(channels, Env, default(channels)),
                                      proplists:get_value(pins, Env, default(pins)))
        ++ weft_broadcast_options:check(proplists:get_value(broadcast, Env, default(broadcast))).

check_timeouts(Env) ->
    Keepalive = proplists:get_value(keepalive_ms, Env, default(keepalive_ms)),
    Timeout = proplists:get_value(link_timeout_ms, Env, default(link_timeout_ms)),
    case is_integer(Keepalive) andalso is_integer(Timeout) andalso Timeout =< Keepalive of
        true -> [io_lib:format("weft: link_timeout_ms (~b) must be more than keepalive_ms (~b)",
                               [Timeout, Keepalive])];
        false -> []
    end.

nearest(Key) ->
    Name = lists:flatten(io_lib:format("~0p", [Key])),
    Known = [atom_to_list(K) || {K, _, _, _} <- schema()],
    case lists:min([{different_letters(Name, K), K} || K <- Known]) of
        {Different, Likely} when Different =< 3 -> ", did you mean " ++ Likely ++ "?";
        _ -> ". Known: " ++ lists:join(" ", Known)
    end.

different_letters(A, B) ->
    length(A -- B) + length(B -- A).

one_of(Allowed) ->
    fun(Value) -> lists:member(Value, Allowed) end.

between(Min, Max) ->
    fun(Value) -> is_integer(Value) andalso Value >= Min andalso Value =< Max end.

is_partition_policy({callback, {Module, Function}}) -> is_atom(Module) andalso is_atom(Function);
is_partition_policy(Policy) -> Policy =:= stay orelse Policy =:= pause_minority.

is_atoms(List) -> is_list(List) andalso lists:all(fun is_atom/1, List).

is_resume_timeout(auto) -> true;
is_resume_timeout(Ms) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< 86400000.

is_idle_keepalive(auto) -> true;
is_idle_keepalive(Ms) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< 3600000.

is_name(Value) ->
    try unicode:characters_to_binary(Value) of
        Bin when is_binary(Bin) -> byte_size(Bin) >= 1 andalso byte_size(Bin) =< 255;
        _ -> false
    catch
        error:_ -> false
    end.

is_groups(Groups) ->
    is_map(Groups)
        andalso maps:with([undefined, no_group, all, cluster, weft_bridge], Groups) =:= #{}
        andalso lists:all(fun(Nodes) -> is_list(Nodes) andalso lists:all(fun is_atom/1, Nodes) end,
                          maps:values(Groups)).

is_ports(Ports) when is_map(Ports) ->
    lists:all(fun({Name, Port}) ->
                      (Name =:= default orelse is_name(Name))
                          andalso is_integer(Port) andalso Port > 0 andalso Port < 65536
              end, maps:to_list(Ports));
is_ports(_) ->
    false.
