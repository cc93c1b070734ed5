%% SPDX-License-Identifier: Apache-2.0
%% @doc Singletons and the partition policy on real nodes.
%%
%% All cases have the same nodes; each begins with a singleton of its own.
-module(weft_singleton_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([it_runs_once_and_moves_when_its_node_dies/1, it_is_stopped_before_another_one_starts/1,
         it_is_stopped_where_the_host_was_suspended/1, it_ends_in_good_order/1,
         who_runs_outlives_who_had_the_name/1,
         the_policy_is_told_and_followed/1]).
%% Run on the nodes.
-export([compete/2, stop/0, stop_all/0, start_child/1, child/2, outlives/1, policy_callback/2]).

-define(SCOPE, accounts).
-define(NAME, {?SCOPE, only}).
-define(LEASE_MS, 4000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [the_policy_is_told_and_followed, it_is_stopped_before_another_one_starts,
     it_is_stopped_where_the_host_was_suspended, it_ends_in_good_order,
     who_runs_outlives_who_had_the_name, it_runs_once_and_moves_when_its_node_dies].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

it_runs_once_and_moves_when_its_node_dies(Config) ->
    {Nodes, File} = competing(shared(Config), once, Config),
    First = runs_at(Nodes),
    Pid = whereis_at(First),
    [?assertEqual(Pid, whereis_at(Node)) || Node <- Nodes],
    {ok, Token} = call(First, weft_singleton, token, [?NAME]),
    ok = weft_test_nodes:kill(First),
    Rest = Nodes -- [First],
    until(fun() -> runs_at(Rest) =/= none end),
    Next = runs_at(Rest),
    {ok, Greater} = call(Next, weft_singleton, token, [?NAME]),
    ?assert(Greater > Token),
    until(fun() -> length(signs_of_life(File)) =:= 2 end).

it_is_stopped_before_another_one_starts(Config) ->
    {Nodes, File} = competing(shared(Config), cut, Config),
    First = runs_at(Nodes),
    Rest = Nodes -- [First],
    [ok = call(First, weft_fault, cut, [name(Node)]) || Node <- Rest],
    until(fun() -> runs_at(Rest) =/= none end),
    ?assertEqual(none, runs_at([First])),
    ok = call(First, weft_fault, heal, []),
    [{_, End1}, {Begin2, _}] = signs_of_life(File),
    ?assert(End1 < Begin2).

%% By that host's own monotonic clock the lease is as good as before.
it_is_stopped_where_the_host_was_suspended(Config) ->
    {Nodes, _File} = competing(shared(Config), suspended, Config),
    First = runs_at(Nodes),
    Pid = whereis_at(First),
    ok = call(First, weft_suspension, stood_still, [3600000]),
    ?assertEqual(undefined, call(First, weft_singleton, token, [?NAME])),
    until(fun() -> not call(First, erlang, is_process_alive, [Pid]) end),
    until(fun() -> runs_at(Nodes) =/= none end).

it_ends_in_good_order(Config) ->
    {Nodes, File} = competing(shared(Config), order, Config),
    First = runs_at(Nodes),
    StoppedMs = erlang:monotonic_time(millisecond),
    ok = call(First, ?MODULE, stop, []),
    until(fun() -> runs_at(Nodes -- [First]) =/= none end),
    %% At once, without waiting for the end of a lease: of that a quarter at most is over.
    ?assert(erlang:monotonic_time(millisecond) - StoppedMs < ?LEASE_MS * 3 div 4),
    until(fun() -> length(signs_of_life(File)) =:= 2 end).

%% A process that has given the name up is watched no longer, and its end changes nothing.
who_runs_outlives_who_had_the_name(Config) ->
    {[A | _], File} = competing(shared(Config), outlives, Config),
    {IsWatched, Before, After} = call(A, ?MODULE, outlives, [File]),
    ?assertNot(IsWatched),
    ?assertMatch(#{state := running, child := Child} when is_pid(Child), Before),
    ?assertEqual(Before, After).

the_policy_is_told_and_followed(Config) ->
    File = filename:join(?config(priv_dir, Config), "policy"),
    {[A, B, C], _} = competing(shared(Config), policy, Config),
    true = call(C, os, putenv, ["POLICY_FILE", File]),
    until(fun() -> side(C) =:= majority end),
    [ok = call(C, weft_fault, cut, [name(Node)]) || Node <- [A, B]],
    until(fun() -> side(C) =:= minority end),
    until(fun() -> {ok, <<"minority 2">>} =:= file:read_file(File) end),
    #{partition := #{policy := {callback, _}, side := minority, reachable := [_],
                     unreachable := [_, _]}} = call(C, weft, status, []),
    until(fun() -> side(A) =:= majority end),
    ok = call(C, weft_fault, heal, []),
    _ = [call(C, net_kernel, connect_node, [name(Node)]) || Node <- [A, B]],
    until(fun() -> side(C) =:= majority end).

%% --- helpers ----------------------------------------------------------------------------------

competing(Nodes, Name, Config) ->
    File = filename:join(?config(priv_dir, Config), atom_to_list(Name)),
    [ok = call(Node, ?MODULE, compete, [first, File]) || Node <- Nodes],
    until(fun() -> runs_at(Nodes) =/= none end),
    {Nodes, File}.

%% Nothing of the case before competes any more.
shared(Config) ->
    Nodes = [weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Config) end)
             || Name <- [a, b, c]],
    [ok = call(Node, weft_fault, heal, []) || Node <- Nodes],
    [ok = call(Node, ?MODULE, stop_all, []) || Node <- Nodes],
    connected(Nodes),
    Handle = weft_names_strong:handle(?SCOPE),
    until(fun() -> [] =:= [Node || Node <- Nodes,
                                   {ok, []} =/= call(Node, weft_names_strong, all, [Handle, 5000])]
          end),
    Nodes.

start(Name, Config) ->
    Voters = [node_name(Voter) || Voter <- [a, b, c]],
    Scope = #{kind => strong, voters => Voters, lease_ms => ?LEASE_MS, partitions => 4},
    Options = #{config => [{scopes, #{?SCOPE => Scope}}, {faults, true}, {resume_timeout_ms, 800},
                           {keepalive_ms, 200}, {link_timeout_ms, 1500}, {partition_grace_ms, 200},
                           {partition_policy, {callback, {?MODULE, policy_callback}}}],
                args => ["-kernel", "prevent_overlapping_partitions", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

connected(Nodes) ->
    _ = [call(Node, net_kernel, connect_node, [name(Voter)]) || Node <- Nodes, Voter <- Nodes],
    ok.

runs_at(Nodes) ->
    case [Node || Node <- Nodes, {ok, _} <- [call(Node, weft_singleton, token, [?NAME])],
                  #{state := running} <- [call(Node, weft_singleton, status,
                                               [call(Node, erlang, whereis, [first])])]] of
        [Node] -> Node;
        [] -> none
    end.

whereis_at(Node) -> call(Node, weft_names, whereis_name, [?NAME]).

side(Node) -> call(Node, weft_partition, side, []).

%% From the first to the last sign of life of each child, in order.
signs_of_life(File) ->
    Signs = lists:append([[{Child, Us} || <<Us:64>> <= Bytes]
                          || Child <- filelib:wildcard(File ++ "-*"),
                             {ok, Bytes} <- [file:read_file(Child)]]),
    lists:sort([{lists:min(Us), lists:max(Us)}
                || Child <- lists:usort([C || {C, _} <- Signs]),
                   Us <- [[U || {C, U} <- Signs, C =:= Child]]]).

until(Condition) -> weft_test_nodes:until(Condition, 60000).

%% --- on the nodes -----------------------------------------------------------------------------

compete(Registered, File) ->
    Caller = self(),
    Keeper = spawn(fun() ->
                       process_flag(trap_exit, true),
                       {ok, Pid} = weft_singleton:start_link(?NAME, {?MODULE, start_child, [File]},
                                                             #{retry_ms => 200}),
                       true = register(Registered, Pid),
                       Caller ! {self(), ok},
                       receive
                           {stop, From} ->
                               exit(Pid, shutdown),
                               receive {'EXIT', Pid, shutdown} -> From ! {self(), ok} end
                       end
                   end),
    true = register(keeper, Keeper),
    receive {Keeper, ok} -> ok end.

%% Whatever competes here, however it is.
stop_all() ->
    _ = [begin
             Monitor = monitor(process, Pid),
             exit(Pid, kill),
             receive {'DOWN', Monitor, _, _, _} -> ok end
         end || Name <- [keeper, first], Pid <- [whereis(Name)], is_pid(Pid)],
    ok.

stop() ->
    keeper ! {stop, self()},
    receive {_, ok} -> ok after 20000 -> timeout end.

%% It has given a first sign before anybody can end it.
start_child(File) ->
    Child = spawn_link(?MODULE, child, [File, self()]),
    receive {alive, Child} -> {ok, Child} end.

%% The status of who runs, before and after the end of who had the name before.
outlives(File) ->
    Handle = weft_names_strong:handle(?SCOPE),
    Holder = spawn(fun() -> receive the_end -> ok end end),
    {ok, Token} = weft_names_strong:acquire(Handle, other, Holder, #{on_lost => tell,
                                                                    timeout_ms => 20000}),
    {ok, Pid} = weft_singleton:start_link({?SCOPE, other}, {?MODULE, start_child, [File]},
                                          #{retry_ms => 200}),
    until(fun() -> is_watched_by(Pid, Holder) end),
    ok = weft_names_strong:release(Handle, other, {Holder, Token}),
    until(fun() -> maps:get(state, weft_singleton:status(Pid)) =:= running end),
    IsWatched = is_watched_by(Pid, Holder),
    Before = weft_singleton:status(Pid),
    Monitor = monitor(process, Holder),
    Holder ! the_end,
    receive {'DOWN', Monitor, process, Holder, _} -> ok end,
    After = weft_singleton:status(Pid),
    unlink(Pid),
    exit(Pid, shutdown),
    {IsWatched, Before, After}.

is_watched_by(Pid, Holder) ->
    {monitored_by, Watchers} = process_info(Holder, monitored_by),
    lists:member(Pid, Watchers).

%% Shows every few milliseconds that it lives.
child(File, Parent) ->
    Own = lists:concat([File, "-", node(), "-", os:getpid(), "-",
                        erlang:unique_integer([positive])]),
    {ok, Out} = file:open(Own, [write, raw, binary]),
    ok = sign(Out),
    Parent ! {alive, self()},
    signs(Out, monitor(process, Parent)).

signs(Out, Parent) ->
    ok = sign(Out),
    receive {'DOWN', Parent, process, _, _} -> ok
    after 2 -> signs(Out, Parent)
    end.

sign(Out) -> file:write(Out, <<(os:perf_counter(microsecond)):64>>).

policy_callback(Side, #{unreachable := Unreachable}) ->
    case os:getenv("POLICY_FILE") of
        false -> ok;
        File -> ok = file:write_file(File, io_lib:format("~s ~w", [Side, length(Unreachable)]))
    end.
