%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft profile': what nodes of a cluster do for some seconds. Recording and files
%% are those of `weft_profile'; here are only its words. Nodes of a deployment are recorded by an
%% emulator on the host of one of them.
-module(weft_cli_profile).

-export([profile/2]).

%% Beyond the time of the recording: to begin, to end, and to fetch it.
-define(GRACE_MS, 120000).

%% @doc weft profile NODE [NODE...], weft profile --group GROUP.
-spec profile([string()], weft_argparse:given()) -> weft_cli:answer().
profile([], Options) when not is_map_key(group, Options) ->
    {usage, "write: weft profile NODE [NODE...], or weft profile --group GROUP"};
profile(_Names, #{pids := Pids}) when Pids < 1 ->
    {usage, "--pids is 1 or more"};
profile(Names, #{continuous := true} = Options) ->
    profile(Names, (maps:remove(continuous, Options))#{window_ms => 1000, every_ms => 1000});
profile(Names, Options) ->
    Default = filename:join(maps:get(dir, Options, ".weft"),
                            "profile-" ++ integer_to_list(os:system_time(second))),
    Dir = filename:absname(maps:get(out, Options, Default)),
    weft_cli_cluster:with_nodes(
      Options, Names,
      fun(Cluster, Nodes) ->
              case members(Cluster, Options) of
                  {ok, Members} ->
                      run(lists:usort(Nodes ++ Members),
                          (maps:with([seconds, pids, window_ms, every_ms], Options))#{dir => Dir},
                          recorder(Cluster));
                  Error ->
                      Error
              end
      end).

members(Cluster, #{group := Group}) ->
    {_Seen, #{groups := Groups}} = weft_cli_nodes:picture(Cluster),
    case [Members || #{name := Name, members := Members} <- Groups,
                     Name =:= unicode:characters_to_binary(Group)] of
        [Members] ->
            {ok, Members};
        [] ->
            {no_node, ["no group ", Group, " in this cluster: it has ",
                       case [Name || #{name := Name} <- Groups] of
                           [] -> "none";
                           Names -> lists:join(" ", Names)
                       end]}
    end;
members(_Cluster, _NoGroup) ->
    {ok, []}.

recorder(#{reach := Reach} = Cluster) ->
    #{nodes := All, unknown := Unknown} = weft_cli_nodes:lost(Cluster),
    fun(Nodes, Options) ->
            case [Node || Node <- All -- Unknown, lists:member(Node, Nodes)] of
                [Node | _] -> recorded(Node, Nodes, Options, Reach);
                [] -> {error, "the hosts of these nodes can not be reached"}
            end
    end;
recorder(_Local) ->
    fun weft_profile:record/2.

recorded(Node, Nodes, Options, Reach) ->
    _ = application:load(weft_profile),
    {ok, Modules} = application:get_key(weft_profile, modules),
    Given = Options#{code => weft_profile_collect:code()},
    TimeoutMs = 1000 * max(0, maps:get(seconds, Options, 0)) + ?GRACE_MS,
    case weft_deploy_reach:beside(Node, Modules, {weft_profile, record, [Nodes, Given]}, TimeoutMs,
                                  Reach) of
        {ok, Recorded} -> Recorded;
        {error, Text} -> {error, Text}
    end.

run(Nodes, Options, Record) ->
    case weft_profile:run(Nodes, Options, Record) of
        {ok, Result} -> answer(Result);
        {error, Text} -> {failed, Text}
    end.

answer(#{files := Files, failed := Failed, left_out := LeftOut, summary := Summary}) ->
    #{nodes := Nodes, counts := Counts, messages := Messages} = Summary,
    Names = [unicode:characters_to_binary(File) || File <- Files],
    {ok, Summary#{files => Names, left_out => LeftOut,
                  failed => [#{node => Node, reason => unicode:characters_to_binary(Text)}
                             || {Node, Text} <- Failed]},
     [weft_cli_table:format([["NODE", "EVENTS", "BUSY", "RUN QUEUE", "ENDED"]
                             | [node_cells(Node) || Node <- Nodes]]),
      $\n, [io_lib:format("traced for ~b ms of each ~b ms\n", [Ms, EveryMs])
            || #{sampled := #{window_ms := Ms, every_ms := EveryMs}} <- lists:sublist(Nodes, 1)],
      messages(Messages, Counts),
      [[Text, $\n] || {_, Text} <- Failed],
      [io_lib:format("~b events did not fit into the trace~n", [LeftOut]) || LeftOut > 0],
      [[Name, $\n] || Name <- Names]]}.

node_cells(#{node := Node, events := Events, busy := Busy, queue_mean := Queue, ended := Ended}) ->
    [weft_local_spec:short(Node), integer_to_list(Events), io_lib:format("~.2f", [Busy]),
     io_lib:format("~.1f", [Queue]), ended(Ended)].

ended(time) -> "in time";
ended(Limit) -> ["early: ", limit(Limit)].

limit(events) -> "too many events";
limit(rate) -> "too many events per second";
limit(bytes) -> "too much memory";
limit(waiting) -> "more events than could be written down";
limit(stopped) -> "stopped".

messages(Rows, #{paired := Paired}) ->
    [weft_cli_table:plural(Paired, "message"), " between these nodes\n",
     weft_cli_table:format([[weft_local_spec:short(From), " -> ", weft_local_spec:short(To),
                             integer_to_list(Count),
                             io_lib:format("median ~.1f us", [float(P50)]), way(Way)]
                            || #{from := From, to := To, count := Count, p50_us := P50,
                                 way := Way} <- Rows])].

way([_, _ | _] = Way) when length(Way) > 2 ->
    ["by way of ", lists:join(" ", [weft_local_spec:short(Node)
                                    || Node <- lists:droplast(tl(Way))])];
way(_Direct) -> "".
