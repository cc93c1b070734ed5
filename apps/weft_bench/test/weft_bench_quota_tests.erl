%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_quota_tests).

-include_lib("eunit/include/eunit.hrl").

-define(V1, <<"tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
              "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
              "cgroup /no/such/cpu,cpuacct cgroup rw,relatime,cpuacct,cpu 0 0\n"
              "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n">>).
-define(V2, <<"cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n">>).
-define(OWN, <<"3:cpuset:/\n2:cpu,cpuacct:/mine\n0::/\n">>).

%% The controller counts; one for sets of processors is another. Where the own group is not mounted,
%% it is what is mounted.
where_groups_are_made_test_() ->
    [?_assertEqual({ok, {v1, "/no/such/cpu,cpuacct"}}, weft_bench_quota:hierarchy(?V1, ?OWN)),
     ?_assertEqual({ok, {v2, "/sys/fs/cgroup"}}, weft_bench_quota:hierarchy(?V2, <<"0::/a\n">>)),
     ?_assertEqual(none, weft_bench_quota:hierarchy(<<"tmpfs / tmpfs rw 0 0\n">>, <<>>)),
     ?_assertEqual(none, weft_bench_quota:hierarchy(<<>>, <<>>))].

the_own_group_is_above_test() ->
    Dir = filename:dirname(code:which(?MODULE)),
    Mounts = iolist_to_binary(["cgroup ", filename:dirname(Dir), " cgroup rw,cpu 0 0\n"]),
    Own = iolist_to_binary(["2:cpu:/", filename:basename(Dir), "\n"]),
    ?assertEqual({ok, {v1, Dir}}, weft_bench_quota:hierarchy(Mounts, Own)).

no_more_is_promised_than_there_is_test() ->
    Cores = erlang:system_info(logical_processors_available),
    ?assertEqual(ok, weft_bench_quota:is_enough(9, 10 * Cores)),
    {error, Text} = weft_bench_quota:is_enough(9, 10 * Cores + 1),
    ?assertNotEqual(nomatch, string:find(Text, lists:concat(["for ", 10 * Cores, " nodes"]))).

groups_of_runs_that_are_gone_are_removed_test() ->
    {ok, Mounts} = file:read_file("/proc/mounts"),
    {ok, Own} = file:read_file("/proc/self/cgroup"),
    case {weft_bench_quota:possible(), weft_bench_quota:hierarchy(Mounts, Own)} of
        {{ok, Version}, {ok, {Version, Base}}} ->
            Gone = filename:join(Base, "weft-bench-999999999-1"),
            ok = file:make_dir(Gone),
            {ok, Ours} = weft_bench_quota:limit(50, ""),
            ok = weft_bench_quota:remove_left_over(),
            ?assertNot(filelib:is_dir(Gone)),
            ?assertMatch([_], own_groups(Base)),
            ok = weft_bench_quota:remove([Ours]),
            ?assertEqual([], own_groups(Base));
        %% Not allowed here, which has a reason.
        {{error, Why}, _} ->
            ?assertMatch([_ | _], Why)
    end.

own_groups(Base) ->
    filelib:wildcard(filename:join(Base, lists:concat(["weft-bench-", os:getpid(), "-*"]))).
