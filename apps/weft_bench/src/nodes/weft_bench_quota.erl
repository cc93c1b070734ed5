%% SPDX-License-Identifier: Apache-2.0
%% @doc A share of a core for each node, so that many nodes of one machine are like as many small
%% hosts: what they can do together grows with their number, as long as the machine has it.
%%
%% A node gets a control group of its own (cgroups(7)) with a bandwidth limit of the scheduler:
%% version 1 with the controller `cpu' (cpu.cfs_quota_us), or version 2 (cpu.max). This needs root,
%% and a container may refuse it. Version 2 wants groups below one without processes, so they are
%% made at its top. A group is named by the emulator that has made it, and goes with the nodes, or
%% is removed by a later run.
%%
%% Nodes start and connect without a limit, which comes before they are measured: a node that boots
%% wants a core for a fifth of a second.
-module(weft_bench_quota).

-export([possible/0, hierarchy/2, is_enough/2, limit/2, counters/1, since/2, remove/1,
         remove_left_over/0, remove_own/0]).
-export_type([percent/0, group/0, hierarchy/0, counters/0]).

%% Of a core.
-type percent() :: number().
-type hierarchy() :: {v1 | v2, Dir :: file:filename()}.
-opaque group() :: {v1 | v2, Dir :: file:filename()}.
%% Of all groups together. A period counts where a node wanted to run; it was throttled where it
%% wanted more than its quota.
-type counters() :: #{periods := non_neg_integer(), throttled := non_neg_integer()}.

%% The shorter the period, the shorter a node stands still. The kernel wants a quota of at least a
%% millisecond, and looks at what runs each few milliseconds.
-define(QUOTA_MIN_US, 2000).
-define(PERIOD_MIN_US, 10000).
-define(PERIOD_MAX_US, 100000).
%% What of the machine may be promised to nodes: the rest is for who measures.
-define(PROMISED_MAX, 0.9).
-define(REMOVE_MS, 2000).
-define(PAUSE_MS, 20).

%% @doc Can nodes have quotas here? One is made, so nothing is guessed. The error is a text.
-spec possible() -> {ok, Version :: v1 | v2} | {error, string()}.
possible() ->
    ok = remove_left_over(),
    case limit(100, "") of
        {ok, {Version, _} = Group} ->
            ok = remove([Group]),
            {ok, Version};
        {error, Text} ->
            {error, Text}
    end.

%% @doc Where groups are made, from the texts of /proc/mounts and /proc/self/cgroup.
-spec hierarchy(Mounts :: binary(), Own :: binary()) -> {ok, hierarchy()} | none.
hierarchy(Mounts, Own) ->
    Lines = [binary:split(Line, <<" ">>, [global]) || Line <- lines(Mounts)],
    V1 = [Dir || [_, Dir, <<"cgroup">>, Options | _] <- Lines,
                 lists:member(<<"cpu">>, binary:split(Options, <<",">>, [global]))],
    V2 = [Dir || [_, Dir, <<"cgroup2">> | _] <- Lines],
    case {V1, V2} of
        {[Dir | _], _} -> {ok, {v1, below(binary_to_list(Dir), own_path(Own))}};
        {[], [Dir | _]} -> {ok, {v2, binary_to_list(Dir)}};
        {[], []} -> none
    end.

lines(Text) -> binary:split(Text, <<"\n">>, [global, trim_all]).

%% The group of this process for the controller.
own_path(Own) ->
    hd([binary_to_list(Path)
        || Line <- lines(Own), [_, Controllers, Path] <- [binary:split(Line, <<":">>, [global])],
           lists:member(<<"cpu">>, binary:split(Controllers, <<",">>, [global]))] ++ [""]).

%% In a container that group may be what is mounted.
below(Dir, Path) ->
    Own = filename:join(Dir, string:trim(Path, leading, "/")),
    case filelib:is_dir(Own) of
        true -> Own;
        false -> Dir
    end.

%% @doc Has the machine so much for so many nodes? If not, the error says how many can have it.
-spec is_enough(percent(), Nodes :: pos_integer()) -> ok | {error, string()}.
is_enough(Percent, Nodes) ->
    Cores = erlang:system_info(logical_processors_available),
    case trunc(?PROMISED_MAX * Cores * 100 / Percent) of
        Most when Nodes =< Most -> ok;
        Most -> {error, lists:flatten(io_lib:format(
                          "~b nodes with ~p % of a core each: this machine of ~b cores has that "
                          "for ~b nodes", [Nodes, Percent, Cores, Most]))}
    end.

%% @doc Makes a group with a quota, and puts a process of the operating system into it, with all its
%% threads; none if there is no number. The error is a text.
-spec limit(percent(), OsPid :: string()) -> {ok, group()} | {error, string()}.
limit(Percent, OsPid) ->
    case hierarchy(read("/proc/mounts"), read("/proc/self/cgroup")) of
        {ok, {Version, Base}} ->
            Name = lists:concat(["weft-bench-", os:getpid(), "-",
                                 erlang:unique_integer([positive])]),
            limit(Percent, OsPid, {Version, filename:join(Base, Name)});
        none ->
            {error, "there are no control groups for processor time here"}
    end.

limit(Percent, OsPid, {Version, Dir} = Group) ->
    try
        ok = enabled(Version, filename:dirname(Dir)),
        ok = done(Dir, file:make_dir(Dir)),
        ok = written(Dir, settings(Version, Percent) ++ [{"cgroup.procs", OsPid} || OsPid =/= ""]),
        {ok, Group}
    catch
        throw:{quota, Text} ->
            ok = remove([Group]),
            {error, Text}
    end.

enabled(v1, _Base) -> ok;
enabled(v2, Base) ->
    case binary:match(read(filename:join(Base, "cgroup.subtree_control")), <<"cpu ">>) of
        nomatch -> written(Base, [{"cgroup.subtree_control", "+cpu"}]);
        _ -> ok
    end.

settings(Version, Percent) ->
    PeriodUs = min(?PERIOD_MAX_US, max(?PERIOD_MIN_US, round(?QUOTA_MIN_US * 100 / Percent))),
    [Period, Quota] = [integer_to_list(Us) || Us <- [PeriodUs, round(PeriodUs * Percent / 100)]],
    case Version of
        v1 -> [{"cpu.cfs_period_us", Period}, {"cpu.cfs_quota_us", Quota}];
        v2 -> [{"cpu.max", [Quota, " ", Period]}]
    end.

written(Dir, Files) ->
    lists:foreach(fun({Name, Text}) ->
                          File = filename:join(Dir, Name),
                          ok = done(File, file:write_file(File, Text))
                  end, Files).

done(_File, ok) -> ok;
done(File, {error, Reason}) ->
    throw({quota, lists:flatten(io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]))}).

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.

%% @doc What the scheduler has counted for these groups.
-spec counters([group()]) -> counters().
counters(Groups) ->
    Stats = [[list_to_tuple(binary:split(Line, <<" ">>))
              || Line <- lines(read(filename:join(Dir, "cpu.stat")))] || {_, Dir} <- Groups],
    Sum = fun(Name) -> lists:sum([binary_to_integer(proplists:get_value(Name, Stat, <<"0">>))
                                  || Stat <- Stats])
          end,
    #{periods => Sum(<<"nr_periods">>), throttled => Sum(<<"nr_throttled">>)}.

%% @doc What has been counted between the two.
-spec since(Before :: counters(), Now :: counters()) -> counters().
since(Before, Now) ->
    maps:map(fun(Key, Count) -> Count - maps:get(Key, Before) end, Now).

%% @doc Removes groups whose processes have been killed; the kernel may still be busy with these.
-spec remove([group()]) -> ok.
remove(Groups) ->
    EndMs = erlang:monotonic_time(millisecond) + ?REMOVE_MS,
    lists:foreach(fun({_, Dir}) -> remove_dir(Dir, EndMs) end, Groups).

remove_dir(Dir, EndMs) ->
    case file:del_dir(Dir) of
        {error, ebusy} ->
            case erlang:monotonic_time(millisecond) < EndMs of
                true -> receive after ?PAUSE_MS -> remove_dir(Dir, EndMs) end;
                false -> ok
            end;
        _ ->
            ok
    end.

%% @doc Removes the groups of this emulator, when who has made them is gone.
-spec remove_own() -> ok.
remove_own() -> remove_of(fun(OsPid) -> OsPid =:= os:getpid() end).

%% @doc Removes the groups of runs that were ended without a chance to do that.
-spec remove_left_over() -> ok.
remove_left_over() ->
    remove_of(fun(OsPid) ->
                  OsPid =/= os:getpid() andalso not filelib:is_dir("/proc/" ++ OsPid)
              end).

remove_of(IsMeant) ->
    case hierarchy(read("/proc/mounts"), read("/proc/self/cgroup")) of
        {ok, {Version, Base}} ->
            Groups = [{Version, Dir}
                      || Dir <- filelib:wildcard(filename:join(Base, "weft-bench-*-*")),
                         ["weft", "bench", OsPid, _] <- [string:split(filename:basename(Dir), "-",
                                                                      all)],
                         IsMeant(OsPid)],
            lists:foreach(fun kill_members/1, Groups),
            remove(Groups);
        none ->
            ok
    end.

kill_members({_, Dir}) ->
    OsPids = [binary_to_list(Line) || Line <- lines(read(filename:join(Dir, "cgroup.procs")))],
    _ = OsPids =:= [] orelse os:cmd(lists:join(" ", ["kill -KILL" | OsPids])),
    ok.
