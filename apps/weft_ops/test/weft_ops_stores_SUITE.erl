%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node that has the ring, the store and data that merges reports of them, and what one
%% without them does not.
-module(weft_ops_stores_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([stores_are_reported_where_they_run/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [stores_are_reported_where_they_run].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

stores_are_reported_where_they_run(Config) ->
    Ref = node_with_all(Config),
    ?assertEqual([], of_stores(Ref)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_crdt]),
    %% Without a ring it has nothing to say.
    ?assertNot(lists:member("weft_ring_partitions", of_stores(Ref))),
    ok = call(Ref, weft_ring, create, []),
    weft_test_nodes:until(fun() ->
                              voting =:= call(Ref, weft_kv_strong_acceptor, status, [box, 1])
                          end),
    used(Ref),
    Expected = lists:sort([atom_to_list(Name)
                           || #{name := Name} <- weft_ops_stores_families:all()]),
    %% Partitions tell what they hold once a second, and a scrape may be of a second ago.
    until({"weft_kv_objects", ""}, "2", Ref),
    ?assertEqual(Expected, of_stores(Ref)),
    Values = scrape(Ref),
    [?assertEqual({Sample, Value}, {Sample, maps:get(Sample, Values, none)})
     || {Sample, Value} <- [{{"weft_kv_requests_total", "operation=\"put\""}, "3"},
                            {{"weft_kv_requests_total", "operation=\"get\""}, "2"},
                            {{"weft_kv_errors_total", "reason=\"caller\""}, "1"},
                            {{"weft_kv_hints", ""}, "0"},
                            {{"weft_kv_strong_replicas", "status=\"voting\""}, "2"},
                            {{"weft_ring_partitions", ""}, "8"},
                            {{"weft_ring_partitions_owned", ""}, "8"},
                            {{"weft_ring_members", "status=\"member\""}, "1"},
                            {{"weft_crdt_keys", ""}, "1"}]],
    ?assert(list_to_integer(maps:get({"weft_kv_file_bytes", ""}, Values)) > 0),
    lost(Ref, Config).

used(Ref) ->
    [{ok, _} = call(Ref, weft_kv, put, [Bucket, Key, <<"value">>])
     || {Bucket, Key} <- [{carts, <<"a">>}, {carts, <<"b">>}, {box, <<"c">>}]],
    {ok, _, _} = call(Ref, weft_kv, get, [carts, <<"a">>]),
    {error, bad_key} = call(Ref, weft_kv, get, [carts, <<>>]),
    ok = call(Ref, weft_crdt, declare, [visits, gcounter]).

%% The files of a strong bucket that was there before.
lost(Ref, Config) ->
    ok = call(Ref, application, stop, [weft_kv]),
    until({"weft_kv_hints", ""}, none, Ref),
    ok = file:del_dir_r(filename:join(?config(priv_dir, Config), "strong_box")),
    {ok, #{box := Box} = Buckets} = call(Ref, application, get_env, [weft_kv, buckets]),
    ok = call(Ref, application, set_env, [weft_kv, buckets,
                                          Buckets#{box := Box#{existing => true}}]),
    ok = call(Ref, application, start, [weft_kv]),
    until({"weft_kv_strong_replicas", "status=\"forgotten\""}, "2", Ref),
    ?assertMatch({error, {not_done, {no_quorum, #{failed := [{_, forgotten}]}}}},
                 call(Ref, weft_kv, get, [box, <<"c">>])).

%% --- the node ---------------------------------------------------------------------------------

node_with_all(Config) ->
    Args = weft_ops_test_args:args([weft_ring, weft_kv, weft_crdt]),
    Ref = weft_test_nodes:start(ops_stores, #{args => Args}, ?config(place, Config)),
    Dir = ?config(priv_dir, Config),
    Box = #{consistency => strong, n => 1, partitions => 2, dir => Dir,
            voters => [weft_test_nodes:name(Ref)]},
    [ok = call(Ref, application, set_env, [Application, Key, Value])
     || {Application, Key, Value} <-
            [{weft_ops, http, #{port => 0}}, {weft_ring, partitions, 8},
             {weft_ring, vnodes, [{weft_kv_vnode, #{dir => filename:join(Dir, "kv")}}]},
             {weft_kv, buckets, #{carts => #{n => 1}, box => Box}}]],
    {ok, _} = call(Ref, application, ensure_all_started, [weft_ops]),
    {ok, _} = application:ensure_all_started(inets),
    Ref.

until(Sample, Value, Ref) ->
    weft_test_nodes:until(fun() -> maps:get(Sample, scrape(Ref), none) =:= Value end, 20000).

of_stores(Ref) ->
    lists:usort([Name || {Name, _} <- maps:keys(scrape(Ref)),
                         re:run(Name, "^weft_(ring|kv|crdt)_") =/= nomatch]).

scrape(Ref) ->
    Url = lists:concat(["http://127.0.0.1:", call(Ref, weft_ops_http, port, []), "/metrics"]),
    {ok, {{_, 200, _}, _, Body}} = httpc:request(Url),
    {match, Lines} = re:run(Body, "^(\\w+)(?:\\{(.*)\\})? (\\S+)$",
                            [global, multiline, {capture, all_but_first, list}]),
    maps:from_list([{{Name, Labels}, Value} || [Name, Labels, Value] <- Lines]).

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 20000).
