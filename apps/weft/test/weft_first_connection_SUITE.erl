%% SPDX-License-Identifier: Apache-2.0
%% @doc The first connection of a node finds its code loaded.
-module(weft_first_connection_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([tcp/1, tls/1, a_missing_file_is_no_matter/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [tcp, tls, a_missing_file_is_no_matter].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

tcp(Config) ->
    nothing_is_loaded(tcp, [], Config).

tls(Config) ->
    Dir = ?config(priv_dir, Config),
    Options = weft_interop_certificates:options(Dir, ours, [ours]),
    nothing_is_loaded(tls, [{transport, tls}, {tls_options, Options}], Config).

%% The node that dials and the one that is dialled, with small and large messages both ways.
nothing_is_loaded(Transport, Options, Config) ->
    Nodes = [A, B] = [start(Name, Options, Config) || Name <- [a, b]],
    [weft_test_nodes:until(fun() -> weft_preload:modules(Transport) -- loaded(Node) =:= [] end)
     || Node <- Nodes],
    Before = [loaded(Node) || Node <- Nodes],
    true = weft_test_nodes:call(A, net_kernel, connect_node, [weft_test_nodes:name(B)]),
    [Bytes = byte_size(weft_test_nodes:call(From, erpc, call, [weft_test_nodes:name(To), binary,
                                                               copy, [<<1>>, Bytes]]))
     || {From, To} <- [{A, B}, {B, A}], Bytes <- [10, 1000000]],
    New = [lists:sort(loaded(Node)) -- Loaded || {Node, Loaded} <- lists:zip(Nodes, Before)],
    ?assertEqual([[], []], New).

%% A file is missing that only some connections need: the node boots, and loads all others.
a_missing_file_is_no_matter(Config) ->
    Ebin = weft_test_nodes:ebin(weft_dist),
    Copy = filename:join(?config(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Copy),
    [{ok, _} = file:copy(File, filename:join(Copy, filename:basename(File)))
     || File <- filelib:wildcard(filename:join(Ebin, "*.beam")),
        filename:basename(File) =/= "weft_tunnel.beam"],
    Args = ["-pa", Copy, "-proto_dist", "weft"],
    Node = weft_test_nodes:start(a, #{carrier => stock, args => Args}, ?config(place, Config)),
    Expected = weft_preload:modules(tcp) -- [weft_tunnel],
    weft_test_nodes:until(fun() -> Expected -- loaded(Node) =:= [] end),
    ?assertNot(lists:member(weft_tunnel, loaded(Node))).

start(Name, Options, Config) ->
    weft_test_nodes:start(Name, #{config => Options, long => "127.0.0.1"}, ?config(place, Config)).

loaded(Node) ->
    [Module || {Module, _File} <- weft_test_nodes:call(Node, code, all_loaded, [])].
