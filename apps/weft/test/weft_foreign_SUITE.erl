%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that are no Erlang VMs, against nodes with groups and services. What comes first on
%% a connection they take for the answer, and who accepts accepts once.
-module(weft_foreign_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [call/4, name/1, node_name/1]).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([a_c_node_connects/1, a_c_node_accepts/1, a_java_node_connects/1, a_java_node_accepts/1,
         erl_call_gets_its_answer/1]).
%% Run on the nodes.
-export([echoed/2]).

-define(TIMES, 3).
-define(COOKIE, "weft_test").

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, with_groups}, {group, without_overlay}].

groups() ->
    Cases = [a_c_node_connects, a_c_node_accepts, a_java_node_connects, a_java_node_accepts,
             erl_call_gets_its_answer],
    [{with_groups, [], Cases}, {without_overlay, [], Cases}].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    weft_test_nodes:begin_suite([{c_node, c_node(Dir)}, {java_node, java_node(Dir)} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_group(with_groups, Config) ->
    Groups = #{one => [node_name(a), node_name(b)], two => [node_name(b), node_name(x)]},
    [{a, cluster(#{config => [{topology, {groups, Groups}}], args => ["-connect_all", "false"]},
                 Config)} | Config];
init_per_group(without_overlay, Config) ->
    [{a, cluster(#{}, Config)} | Config].

end_per_group(_Group, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

a_c_node_connects(Config) -> connects(c_node, Config).

a_c_node_accepts(Config) -> accepts(c_node, Config).

a_java_node_connects(Config) -> connects(java_node, Config).

a_java_node_accepts(Config) -> accepts(java_node, Config).

connects(Kind, Config) ->
    A = ?config(a, Config),
    for(Kind, fun(Start) ->
        [?assertEqual({0, atom_to_list(name(A)) ++ "\n"},
                      ended(Start(["call", lists:concat([Kind, N]), ?COOKIE, name(A)])))
         || N <- lists:seq(1, ?TIMES)]
    end, Config).

%% It is named by a message that nobody waits for, as in a program that was there before.
accepts(Kind, Config) ->
    A = ?config(a, Config),
    for(Kind, fun(Start) ->
        [begin
             Name = lists:concat([Kind, "_s", N]),
             Server = Start(["serve", Name, ?COOKIE]),
             "ready\n" = output(Server),
             ?assertEqual([1, [2], {3, "three"}],
                          call(A, ?MODULE, echoed, [node_name(Name), [1, [2], {3, "three"}]])),
             true = call(A, erlang, disconnect_node, [node_name(Name)]),
             ?assertEqual({0, ""}, ended(Server))
         end || N <- lists:seq(1, ?TIMES)]
    end, Config).

%% The program with what it needs, if it could be made.
for(Kind, Test, Config) ->
    case ?config(Kind, Config) of
        {error, Reason} ->
            {skip, Reason};
        {Program, First} ->
            _ = Test(fun(Arguments) ->
                             program(Program, First ++ [lists:concat([Argument])
                                                        || Argument <- Arguments], Config)
                     end),
            ok
    end.

erl_call_gets_its_answer(Config) ->
    A = ?config(a, Config),
    case filelib:wildcard(filename:join(code:root_dir(), "lib/erl_interface-*/bin/erl_call")) of
        [] ->
            {skip, "no erl_call here"};
        [ErlCall | _] ->
            [Short, _Host] = string:split(atom_to_list(name(A)), "@"),
            [?assertEqual({0, atom_to_list(name(A))},
                          ended(program(ErlCall, ["-c", ?COOKIE, "-sname", Short, "-a",
                                                  "erlang node []"], Config)))
             || _ <- lists:seq(1, ?TIMES)],
            ok
    end.

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Sends terms to a name on a node that nothing was said to before; what comes back.
echoed(Node, Terms) ->
    [{any, Node} ! {self(), Term} || Term <- Terms],
    [receive {echo, Echo} -> Echo after 10000 -> nothing end || _ <- Terms].

%% --- small parts ------------------------------------------------------------------------------

%% Node a, connected to b and x.
cluster(Options, Config) ->
    [A, _, X] = Nodes = [weft_test_nodes:start(Name, Options, ?config(place, Config))
                         || Name <- [a, b, x]],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> call(A, net_adm, ping, [name(X)]) =:= pong end, 60000),
    A.

program(Program, Arguments, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    open_port({spawn_executable, Program},
              [{args, Arguments}, exit_status, stderr_to_stdout,
               {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}]}]).

output(Port) ->
    receive {Port, {data, Data}} -> Data after 20000 -> ct:fail(no_output) end.

ended(Port) -> ended(Port, "").

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ended(Port, Output ++ Data);
        {Port, {exit_status, Status}} -> {Status, Output}
    after 30000 ->
        ct:fail({no_end, Output})
    end.

%% The program, made from its source with what belongs to this Erlang.
c_node(Dir) ->
    Usr = filename:join(code:root_dir(), "usr"),
    Include = filename:join(Usr, "include"),
    case {os:find_executable("cc"), filelib:is_file(filename:join(Include, "ei.h"))} of
        {false, _} ->
            {error, "no C compiler cc to make a C node with"};
        {_, false} ->
            {error, "no ei.h in " ++ Include ++ " (Debian's package erlang-dev)"};
        {Compiler, true} ->
            Program = filename:join(Dir, "c_node"),
            made(Compiler, ["-Wall", "-pthread", "-o", Program, source("c_node.c"), "-I", Include,
                            "-L", filename:join(Usr, "lib"), "-lei"], {Program, []})
    end.

%% The class, likewise, and what runs it.
java_node(Dir) ->
    Jar = case code:lib_dir(jinterface) of
              {error, bad_name} -> "";
              Lib -> filename:join([Lib, "priv", "OtpErlang.jar"])
          end,
    case {os:find_executable("javac"), os:find_executable("java"), filelib:is_file(Jar)} of
        {_, _, false} ->
            {error, "no jinterface to make a Java node with (Debian's package erlang-jinterface)"};
        {Compiler, Java, true} when is_list(Compiler), is_list(Java) ->
            made(Compiler, ["-Xlint:all", "-Werror", "-cp", Jar, "-d", Dir,
                            source("JavaNode.java")],
                 {Java, ["-XX:TieredStopAtLevel=1", "-cp", Jar ++ ":" ++ Dir, "JavaNode"]});
        _ ->
            {error, "no Java compiler javac to make a Java node with"}
    end.

made(Compiler, Arguments, Made) ->
    case ended(open_port({spawn_executable, Compiler},
                         [{args, Arguments}, exit_status, stderr_to_stdout])) of
        {0, _} -> Made;
        {_, Complaint} -> ct:fail({does_not_compile, Complaint})
    end.

source(File) ->
    Suite = proplists:get_value(source, module_info(compile)),
    filename:join([filename:dirname(Suite), "weft_foreign_SUITE_data", File]).
