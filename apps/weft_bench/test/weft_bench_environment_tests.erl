%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_environment_tests).

-include_lib("eunit/include/eunit.hrl").

what_hosts_have_in_common_is_there_once_test() ->
    Of = fun(Cores) -> [{"date", "today"}, {"commit", "none"}, {"otp_release", "25"},
                        {"cores", Cores}]
         end,
    ?assertEqual([{"otp_release", "25"}, {"cores of h1", "2"}, {"cores of h2", "64"}],
                 weft_bench_environment:of_hosts([{"h1", Of("2")}, {"h2", Of("64")}])),
    ?assertEqual([{"otp_release", "25"}, {"cores", "2"}],
                 weft_bench_environment:of_hosts([{"h1", Of("2")}, {"h2", Of("2")}])).

%% Numbers of a build that is older than the source are not those of its commit.
what_was_compiled_before_it_was_changed_is_told_test() ->
    ?assertEqual(["abc", "abc and changes", "abc; compiled before m.erl was changed",
                  "abc and changes; compiled before 2 files were changed"],
                 [weft_bench_environment:commit_text("abc", Changes, Newer)
                  || {Changes, Newer} <- [{"", []}, {" M x", []}, {"", ["src/x/m.erl"]},
                                          {" M x", ["m.erl", "n.erl"]}]]),
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Files = [{"src/old.erl", 1}, {"ebin/old.beam", 2}, {"src/deep/new.erl", 3},
             {"ebin/new.beam", 2}, {"src/not_yet.erl", 1}],
    try
        [begin
             File = filename:join(Dir, Name),
             ok = filelib:ensure_dir(File),
             ok = file:write_file(File, ""),
             ok = file:change_time(File, {{2000, 1, Day}, {0, 0, 0}})
         end || {Name, Day} <- Files],
        ?assertEqual([filename:join([Dir, "src", Name]) || Name <- ["deep/new.erl", "not_yet.erl"]],
                     lists:sort(weft_bench_environment:newer_sources(
                                  [filename:join(Dir, Of) || Of <- ["ebin", "no/ebin", "test"]])))
    after
        file:del_dir_r(Dir)
    end.

%% Those of few nodes, and those of clusters. Kernels of a mesh connect with all others.
only_flags_that_nodes_have_are_told_test() ->
    ?assertEqual([], [Key || {"flags" ++ _ = Key, _} <- weft_bench_environment:gather([])]),
    {ok, Load} = weft_load_config:check([{driver, none}]),
    ?assertEqual([], [Key || {"flags" ++ _ = Key, _} <- weft_load_files:environment(Load)]),
    Cluster = {cluster, weft_bench_cluster:shape(9, [])},
    Told = fun(Layout) -> lists:append(lists:join(" ", weft_bench_nodes:flags(stock, Layout))) end,
    ?assertEqual([], weft_bench_environment:of_nodes([])),
    ?assertEqual([{"flags_of_nodes", Told(pair)}],
                 weft_bench_environment:of_nodes([{stock, pair}, {weft_1, pair}, {stock, alone}])),
    ?assertEqual([{"flags_of_nodes", Told(pair)}, {"flags_of_clusters", Told(Cluster)}],
                 weft_bench_environment:of_nodes([{stock, pair}, {stock, Cluster}])),
    [{"flags_of_clusters", Mesh}] = weft_bench_environment:of_nodes([{stock_mesh, Cluster}]),
    ?assertEqual(Told(Cluster), Mesh ++ " -connect_all false"),
    ?assertEqual([{"flags_of_clusters", Mesh ++ "; " ++ Told(Cluster)}],
                 weft_bench_environment:of_nodes([{stock, Cluster}, {weft_mesh, Cluster}])).
