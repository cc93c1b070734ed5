%% SPDX-License-Identifier: Apache-2.0
%% @doc The Instant Messenger on real nodes: each message once, over all carriers and in both forms,
%% while processes are killed; and what happens when a node is.
-module(weft_im_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_bench_test_cluster, [connections/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([distributed_form_on_all_carriers/1, grouped_form_needs_no_other_connections/1,
         killed_node_is_given_up/1, people_talk_in_terminals/1]).
-export([killed_and_back/2, servers/0]).

-define(RUN_MS, 60000).
-define(CALL_MS, 60000).
-define(PROMPT_MS, 30000).
-define(KILL_EVERY_MS, 100).

suite() -> [{timetrap, {seconds, 240}}].

all() ->
    [grouped_form_needs_no_other_connections, people_talk_in_terminals]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [killed_node_is_given_up, distributed_form_on_all_carriers]].

init_per_suite(Config) ->
    weft_bench_test_cluster:begin_suite(weft_test_nodes:begin_suite(Config)).

end_per_suite(Config) ->
    ok = weft_bench_test_cluster:end_suite(Config),
    weft_test_nodes:end_suite(Config).

%% Two routers, with two servers and a node of clients each: eight nodes.
size() -> #{routers => 2, servers => 2, client_nodes => 1}.

options(Names, IsGrouped) ->
    (size())#{names => Names, is_grouped => IsGrouped, count => 24, scale => 0.005,
              warm_up_ms => 100, run_ms => 1200, resend_ms => 200, ping_ms => 1000}.

shape(Size) ->
    weft_bench_cluster:shape(weft_im_plan:needed(Size), weft_im_plan:groups(Size)).

%% The long form: on the carriers that have a full mesh or something like it.
distributed_form_on_all_carriers(Config) ->
    [with_nodes(Variant, size(), Config,
                fun(Nodes) ->
                    survives_kills(options(Names, false), Nodes),
                    names_are_registered_again(options(Names, false), Nodes)
                end)
     || {Variant, Names} <- [{weft_mesh, {weft, cluster}}, {stock_mesh, global},
                             {weft_peers, {weft, cluster}}]].

%% A router has the other one, two servers and a node of clients; these have each other.
grouped_form_needs_no_other_connections(Config) ->
    Connections = lists:duplicate(2, 4) ++ lists:duplicate(6, 3),
    _ = os:getenv("FULL") =/= false
        andalso with_nodes(stock, size(), Config,
                           fun(Nodes) ->
                               survives_kills(options(local, true), Nodes),
                               ?assertEqual(lists:sum(Connections), lists:sum(connections(Nodes)))
                           end),
    with_nodes(weft_groups, size(), Config,
               fun(Nodes) ->
                   survives_kills(options({weft, groups}, true), Nodes),
                   ?assertEqual(lists:sum(Connections), lists:sum(connections(Nodes))),
                   %% The distributed form goes over the same links.
                   os:getenv("FULL") =/= false
                       andalso survives_kills(options({weft, cluster}, false), Nodes),
                   names_are_registered_again(options({weft, cluster}, false), Nodes),
                   ?assertEqual(lists:sum(Connections), lists:sum(connections(Nodes)))
               end).

survives_kills(Options, Nodes) ->
    How = #{period_ms => ?KILL_EVERY_MS, what => all, seed => 1},
    {Result, Kills} = weft_im_killer:during(Nodes, Options, How, fun() -> im(Options, Nodes) end),
    ct:pal("~p with ~p: ~p, ~b killed", [weft_bench_nodes:variant(Nodes),
                                         maps:get(names, Options), Result, Kills]),
    ?assertMatch({ok, #{given_up := 0, logged_out := [], lost_messages := 0}}, Result),
    {ok, #{said := Said, heard := Said}} = Result,
    ?assert(Said > 100),
    ?assert(Kills > 2).

names_are_registered_again(Options, Nodes) ->
    Arguments = [Options#{routers := 1}, weft_bench_cluster:nodes(Nodes)],
    ?assertEqual(2 + 2 * 6, weft_bench_nodes:call(Nodes, {n, 1}, ?MODULE, killed_and_back,
                                                  {Arguments, ?CALL_MS})).

%% On the node of the router: kills whoever has a name, one after the other; how many came back.
killed_and_back(Options, Nodes) ->
    {ok, Service} = weft_im_plan:new(Options#{run => 1}, Nodes),
    Region = weft_im_region:start_link(Service, 1),
    Ask = fun(Request) ->
              ok = weft_im_region:ask([Region], Request),
              hd(weft_im_region:answers([Region], ?CALL_MS))
          end,
    [] = Ask({names, []}),
    Names = weft_im_plan:names(1, Service),
    Back = [begin
                Pid = weft_im_names:whereis(Service, Name),
                exit(Pid, kill),
                ok = comes_back(Service, Name, Pid)
            end || Name <- Names],
    [] = Ask({names, []}),
    [] = Ask({copies, []}),
    ok = Ask(stop),
    length(Back).

comes_back(Service, Name, Pid) ->
    weft_test_nodes:until(fun() ->
                              Now = weft_im_names:whereis(Service, Name),
                              is_pid(Now) andalso Now =/= Pid
                          end, ?CALL_MS).

%% Its clients are told; all others go on, and lose nothing: there is time to open other sessions.
killed_node_is_given_up(Config) ->
    Size = #{routers => 1, servers => 3, client_nodes => 1},
    with_nodes(stock, Size, Config,
               fun(Nodes) ->
                   Self = self(),
                   Options = maps:merge((options(local, true))#{run_ms => 2500, ping_ms => 300,
                                                                give_up_ms => 10000}, Size),
                   spawn_link(fun() -> Self ! {result, im(Options, Nodes)} end),
                   has_server({n, 4}, Nodes),
                   _ = os:cmd("kill -KILL " ++ weft_bench_nodes:os_pid(Nodes, {n, 4})),
                   receive {result, Result} -> given_up(Result)
                   after 2 * ?RUN_MS -> error(not_done)
                   end
               end).

given_up(Result) ->
    ct:pal("~p", [Result]),
    ?assertMatch({ok, #{servers_lost := [3], logged_out := [_ | _], lost_messages := 0}}, Result),
    {ok, #{logged_out := Out, said := Said, delivered := Delivered}} = Result,
    Service = #{servers => {1, 2, 3}},
    ?assertEqual(lists:sort([{N, {server_lost, 3}}
                             || N <- lists:seq(1, 24),
                                weft_im_plan:server_of(weft_im_traffic:name(N), Service) =:= 3]),
                 lists:sort(Out)),
    ?assert(Delivered > Said div 2).

%% Once clients are logged in it is worth to be killed.
has_server(Role, Nodes) ->
    weft_test_nodes:until(fun() ->
                              0 < weft_bench_nodes:call(Nodes, Role, ?MODULE, servers,
                                                        {[], ?CALL_MS})
                          end, ?RUN_MS).

%% On a node: how many sessions it has.
servers() ->
    length(weft_im_killer:victims(chat_session)).

%% ---- terminals ----

%% The programs are run as people run them, so not in a network of their own: epmd is the suite's.
people_talk_in_terminals(Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Serve = program("im", ["-noinput"], ["serve", "--servers", "2"], EpmdPort),
    try
        ok = reads(Serve, "serves, with 2 servers"),
        [Ann, Bob] = [logged_in(Name, EpmdPort) || Name <- ["ann", "bob"]],
        write(Ann, "@bob\n@eve\n"),
        ok = reads(Ann, "bob is here\neve is not here\n"),
        write(Ann, "@bob hello\n"),
        ok = reads(Bob, "ann: hello\n"),
        ok = reads(Ann, "(bob has it)"),
        write(Bob, "@ann hi\nand how are you?\n"),
        ok = reads(Ann, "bob: hi\nbob: and how are you?\n"),
        write(Ann, "@eve hello\n"),
        ok = reads(Ann, "not delivered to eve: nobody with this name"),
        Second = terminal("ann", EpmdPort),
        ok = reads(Second, "with this name is logged in already"),
        ?assertEqual(1, status(Second)),
        write(Ann, "/quit\n"),
        ok = reads(Ann, "bye"),
        ?assertEqual(0, status(Ann)),
        Again = logged_in("ann", EpmdPort),
        write(Bob, "@ann still here?\n"),
        ok = reads(Again, "bob: still here?\n"),
        write(Again, "@bob yes\n"),
        ok = reads(Bob, "ann: yes\n"),
        write(Again, "/quit\n"),
        ?assertEqual(0, status(Again)),
        write(Bob, "/quit\n"),
        ?assertEqual(0, status(Bob))
    after
        end_of(Serve)
    end.

logged_in(Name, EpmdPort) ->
    Terminal = terminal(Name, EpmdPort),
    ok = reads(Terminal, "hello " ++ Name),
    Terminal.

terminal(Name, EpmdPort) ->
    program("im_" ++ Name ++ integer_to_list(erlang:unique_integer([positive])),
            ["-noshell", "-hidden", "-connect_all", "false"], [Name], EpmdPort).

program(Node, Flags, Words, EpmdPort) ->
    Directories = [filename:absname(filename:dirname(code:which(Of)))
                   || Of <- [weft, weft_im, weft_bench_program, weft_argparse]],
    open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
              [{args, Flags ++ ["-sname", Node, "-setcookie", "weft_im", "-proto_dist", "weft",
                                "-pa"] ++ Directories
                ++ ["-eval", "weft_im_command:run(init:get_plain_arguments()).", "-extra" | Words]},
               {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}]},
               exit_status, binary, stderr_to_stdout]).

write(Port, Text) ->
    true = port_command(Port, Text).

%% Until the program has written this; what it wrote is over then.
reads(Port, Text) ->
    reads(Port, Text, <<>>).

reads(Port, Text, Before) ->
    case string:find(Before, Text) of
        nomatch ->
            receive
                {Port, {data, Data}} -> reads(Port, Text, <<Before/binary, Data/binary>>)
            after ?PROMPT_MS -> {error, Text, Before}
            end;
        _ -> ok
    end.

status(Port) ->
    receive {Port, {exit_status, Status}} -> Status after ?PROMPT_MS -> none end.

%% Its servers end with it.
end_of(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, OsPid} ->
            _ = os:cmd("kill -TERM " ++ integer_to_list(OsPid)),
            ?assertNotEqual(none, status(Port));
        undefined -> ok
    end.

im(Options, Nodes) ->
    weft_bench_test_cluster:run(weft_im, Options, weft_bench_cluster:nodes(Nodes), Nodes, ?RUN_MS).

with_nodes(Variant, Size, Config, Test) ->
    weft_bench_test_cluster:with_nodes(Variant, shape(Size), Config, Test).
