%% SPDX-License-Identifier: Apache-2.0
%% @doc What the numbers of a run depend on besides the code: machine, system, flags, state of the
%% source. Written when the run starts, as `environment.csv'; what a system does not tell is empty.
-module(weft_bench_environment).

-export([gather/1, of_nodes/1, of_hosts/1, write/3, congestion_control/1]).
-export([commit_text/3, newer_sources/1]).

%% What a host says of the code, which is that of this machine, and of others.
-define(NOT_OF_HOSTS, ["date", "commit"]).

%% @doc Keys and values, in the order of the file, followed by those given.
-spec gather([{Key :: string(), Value :: string()}]) -> [{string(), string()}].
gather(Given) ->
    [{"date", calendar:system_time_to_rfc3339(erlang:system_time(second))},
     {"commit", commit()},
     {"otp_release", erlang:system_info(otp_release)},
     {"erts", erlang:system_info(version)},
     {"emulator", atom_to_list(erlang:system_info(emu_flavor))},
     {"kernel", command("uname -sr")},
     {"machine", command("uname -m")},
     {"processor", processor()},
     {"cores", integer_to_list(erlang:system_info(logical_processors_available))},
     {"memory_bytes", memory_bytes()},
     {"load_average", file("/proc/loadavg")},
     {"congestion_control_of_the_machine", file("/proc/sys/net/ipv4/tcp_congestion_control")},
     {"tcp_rmem", file("/proc/sys/net/ipv4/tcp_rmem")},
     {"tcp_wmem", file("/proc/sys/net/ipv4/tcp_wmem")}
     | Given].

%% @doc The flags of the nodes that are measured; who starts none has none. Those of few nodes and
%% those of many are told apart. What is assumed of them: a variant and a layout have the same ones
%% for all nodes, `weft_bench_nodes:flags/2'.
-spec of_nodes([{weft_bench_variant:variant(), weft_bench_nodes:layout()}]) ->
          [{Key :: string(), Value :: string()}].
of_nodes(Nodes) ->
    {Many, Few} = lists:partition(fun({_Variant, Layout}) -> is_tuple(Layout) end, Nodes),
    [{Key, lists:append(lists:join("; ", lists:usort([flags(Variant, Layout)
                                                      || {Variant, Layout} <- Of])))}
     || {Key, [_ | _] = Of} <- [{"flags_of_nodes", Few}, {"flags_of_clusters", Many}]].

flags(Variant, Layout) ->
    lists:append(lists:join(" ", weft_bench_nodes:flags(Variant, Layout))).

%% @doc What was gathered on several hosts, for one file: what they have in common once, and the
%% rest with the address of each.
-spec of_hosts([{Address :: string(), [{Key :: string(), Value :: string()}]}, ...]) ->
          [{string(), string()}].
of_hosts([{_, First} | _] = Hosts) ->
    lists:append([of_hosts(Key, Hosts) || {Key, _} <- First, not lists:member(Key, ?NOT_OF_HOSTS)]).

of_hosts(Key, Hosts) ->
    Values = [{Address, proplists:get_value(Key, Gathered, "")} || {Address, Gathered} <- Hosts],
    case lists:usort([Value || {_, Value} <- Values]) of
        [Value] -> [{Key, Value}];
        _ -> [{Key ++ " of " ++ Address, Value} || {Address, Value} <- Values]
    end.

%% @doc Writes them for a command with these options, which measures these nodes, to a directory
%% that is made.
-spec write(Dir :: file:filename(), Options :: #{atom() => term()},
            [{weft_bench_variant:variant(), weft_bench_nodes:layout()}]) -> ok.
write(Dir, Options, Nodes) ->
    ok = weft_report_file:directory(Dir),
    weft_report_record:write_environment(
      Dir, gather(of_nodes(Nodes)
                  ++ [{"congestion_control", congestion_control(Dir)}
                      | [{"option_" ++ atom_to_list(Key),
                          lists:flatten(io_lib:format("~0tp", [Value]))}
                         || {Key, Value} <- lists:sort(maps:to_list(Options)), Key =/= out]])).

%% @doc What the connections of nodes will have, which need not be that of the machine. Where there
%% is no place for nodes each measurement fails, and tells why.
-spec congestion_control(Dir :: file:filename()) -> string().
congestion_control(Dir) ->
    case weft_bench_place:with(weft_bench_link:loopback(), Dir,
                               fun weft_bench_place:congestion_control/1) of
        {error, Why} -> "unknown: " ++ Why;
        CongestionControl -> CongestionControl
    end.

%% It is that of the source: what runs may have been compiled of another one.
commit() ->
    case command("git rev-parse --short HEAD 2> /dev/null") of
        "" -> "";
        Commit ->
            commit_text(Commit, command("git status --porcelain --untracked-files=no 2> /dev/null"),
                        newer_sources(weft_bench_nodes:code_path()))
    end.

%% @private
-spec commit_text(Commit :: string(), Changes :: string(), Newer :: [file:filename()]) -> string().
commit_text(Commit, Changes, Newer) ->
    lists:concat([Commit,
                  case Changes of "" -> ""; _ -> " and changes" end,
                  case Newer of
                      [] -> "";
                      [One] -> "; compiled before " ++ filename:basename(One) ++ " was changed";
                      [_ | _] -> lists:concat(["; compiled before ", length(Newer),
                                               " files were changed"])
                  end]).

%% @private Sources that were changed after they were compiled to these directories: of a build that
%% has them beside it. Other directories of code, as of tests, have other sources.
-spec newer_sources([Dir :: file:filename()]) -> [Source :: file:filename()].
newer_sources(Ebins) ->
    [Source || Ebin <- Ebins, filename:basename(Ebin) =:= "ebin",
               Dir <- [filename:join(filename:dirname(Ebin), "src")],
               Name <- filelib:wildcard("**/*.erl", Dir),
               Source <- [filename:join(Dir, Name)],
               Beam <- [filename:join(Ebin, filename:basename(Name, ".erl") ++ ".beam")],
               filelib:last_modified(Source) > filelib:last_modified(Beam)].

processor() ->
    Name = re:run(file("/proc/cpuinfo"), "model name\\s*: (.*)",
                  [{capture, all_but_first, list}]),
    case Name of
        {match, [Model]} -> string:trim(Model);
        nomatch -> ""
    end.

memory_bytes() ->
    Found = re:run(file("/proc/meminfo"), "MemTotal:\\s+(\\d+) kB",
                   [{capture, all_but_first, list}]),
    case Found of
        {match, [Kilobytes]} -> integer_to_list(list_to_integer(Kilobytes) * 1024);
        nomatch -> ""
    end.

file(Path) ->
    case file:read_file(Path) of
        {ok, Text} -> string:trim(unicode:characters_to_list(Text));
        {error, _} -> ""
    end.

command(Command) ->
    string:trim(os:cmd(Command)).
