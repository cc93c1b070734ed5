%% SPDX-License-Identifier: Apache-2.0
%% @doc Strong names on real nodes: what they promise while links are cut and nodes are killed or
%% stopped, and histories of users among such faults, checked for linearizability.
%%
%% All cases have the same nodes, and each begins without names. Histories come first, as they end
%% on the nodes of the other cases; voters change last.
%%
%% Histories are drawn from a seed, which is printed; SEED=<number> repeats the faults of a run.
%% FULL=1 makes 30 of them, with more faults.
-module(weft_names_strong_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_name_has_one_owner_and_growing_tokens/1, processes_are_called_by_name/1,
         a_minority_refuses_and_loses/1, a_name_said_to_be_free_is_free/1,
         names_of_a_killed_node_are_free_after_its_lease/1,
         a_stopped_node_does_not_own_what_others_took/1, a_suspended_host_holds_nothing/1,
         voters_come_and_go/1,
         all_voters_die_one_after_another/1, a_restarted_driver_owns_nothing/1,
         bad_options_stop_the_scope/1, histories_are_linearizable/1]).
%% Run on the nodes.
-export([hold/2, hold/3, init/1, handle_call/3, handle_cast/2]).

-define(SCOPE, accounts).
%% As by default: a voter that starts again takes seconds of a busy machine.
-define(LEASE_MS, 8000).
-define(NAMES, [one, two, three]).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 12; _ -> 60 end}}].

all() ->
    [histories_are_linearizable, bad_options_stop_the_scope,
     a_name_has_one_owner_and_growing_tokens, processes_are_called_by_name,
     a_minority_refuses_and_loses, a_name_said_to_be_free_is_free,
     a_stopped_node_does_not_own_what_others_took, a_suspended_host_holds_nothing,
     a_restarted_driver_owns_nothing, names_of_a_killed_node_are_free_after_its_lease,
     all_voters_die_one_after_another, voters_come_and_go].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

a_name_has_one_owner_and_growing_tokens(Config) ->
    [A, B, C, D] = shared(Config),
    {Pid, {ok, Token}} = hold(A, x),
    [?assertMatch({_, {error, {taken, Pid}}}, hold(Node, x)) || Node <- [A, B, D]],
    [begin
         ?assertEqual({ok, Pid, Token, undefined}, read(Node, x)),
         ?assertEqual(Pid, call(Node, weft_names, whereis_name, [{?SCOPE, x}]))
     end || Node <- [A, B, C, D]],
    ?assertEqual({ok, Token}, strong(A, held, [x])),
    ?assertEqual(undefined, strong(B, held, [x])),
    %% Anybody may take it away; then the next one has a greater token.
    ok = call(D, weft_names, unregister_name, [{?SCOPE, x}]),
    ?assertEqual(undefined, read(C, x)),
    {Next, {ok, Greater}} = hold(D, x),
    ?assert(Greater > Token),
    %% A process that ends gives its names back.
    {_, {ok, _}} = hold(D, y),
    ?assertEqual({ok, [x, y]}, sorted(strong(B, all, [5000]))),
    true = call(D, erlang, exit, [Next, kill]),
    until(fun() -> read(A, x) =:= undefined end),
    ok = call(B, weft_names, re_register, [{?SCOPE, y}, Pid]),
    ?assertMatch({ok, Pid, _, _}, read(C, y)).

processes_are_called_by_name(Config) ->
    [A, B, C, _] = shared(Config),
    Via = {via, weft_names, {?SCOPE, server}},
    {ok, Pid} = call(A, gen_server, start, [Via, ?MODULE, server, []]),
    ?assertEqual({error, {already_started, Pid}},
                 call(B, gen_server, start, [Via, ?MODULE, server, []])),
    [?assertEqual({called, ping}, call(Node, gen_server, call, [Via, ping]))
     || Node <- [A, B, C]].

a_minority_refuses_and_loses(Config) ->
    [A, B, C, D] = shared(Config),
    {Pid, {ok, _}} = hold(C, x),
    Down = monitored(C, Pid),
    ok = cut(C, [A, B, D]),
    Started = erlang:monotonic_time(millisecond),
    ?assertMatch({_, {error, no_quorum}}, hold(C, y, #{timeout_ms => 1000})),
    ?assert(erlang:monotonic_time(millisecond) - Started < 20000),
    %% The majority gives the name to somebody else, but not before the owner is told.
    until(fun() -> element(1, element(2, hold(A, x))) =:= ok end, 60000),
    GivenUs = os:perf_counter(microsecond),
    {Reason, ToldUs} = call(C, ?MODULE, hold, [told, Down]),
    ?assertEqual({weft_names_lost, ?SCOPE, x}, Reason),
    ?assert(ToldUs < GivenUs, ToldUs - GivenUs),
    ?assertEqual(undefined, strong(C, held, [x])),
    ?assertEqual(undefined, call(C, weft_names, whereis_name, [{?SCOPE, x}])),
    ok = healed([A, B, C, D]),
    until(fun() -> element(1, element(2, hold(C, y))) =:= ok end, 60000).

%% Whatever its owner believes, and whoever asks.
a_name_said_to_be_free_is_free(Config) ->
    [A, B, C, D] = shared(Config),
    {Pid, {ok, Token}} = hold(D, x),
    %% Its node and the one that asks do not see each other, but the replicas see both.
    ok = cut(D, [A]),
    ok = cut(A, [D]),
    until(fun() -> unregistered(A, x) end, 60000),
    ?assertEqual(undefined, strong(D, held, [x])),
    ok = healed([A, B, C, D]),
    %% Cut off from everybody until its lease has ended, and back before the replicas know that.
    {_, {ok, Later}} = hold(D, y),
    ok = cut(D, [A, B, C]),
    until(fun() -> strong(D, is_held, [y, Later]) =:= false end, 60000),
    ok = healed([A, B, C, D]),
    until(fun() -> unregistered(B, y) end, 60000),
    until(fun() -> element(1, element(2, hold(C, y))) =:= ok end, 60000),
    %% What is not there any more can be given back from anywhere.
    until(fun() -> ok =:= strong(B, release, [x, {Pid, Token}]) end, 60000).

%% The time may be over before a lease is; then nothing is said. If something is it is so.
unregistered(Node, Name) ->
    case call(Node, weft_names, unregister, [{?SCOPE, Name}], 60000) of
        ok ->
            until(fun() -> is_confirmed_free(read(Node, Name)) end, 60000),
            true;
        {error, Reason} ->
            ct:pal("~w: ~p", [Name, Reason]),
            false
    end.

is_confirmed_free({error, _}) -> false;
is_confirmed_free(Read) -> undefined =:= Read orelse ct:fail("it is not free: ~p", [Read]).

names_of_a_killed_node_are_free_after_its_lease(Config) ->
    [A, B, C, D] = shared(Config),
    {ok, Count} = call(D, ?MODULE, hold, [many, 200], 120000),
    ?assertEqual({ok, Count}, counted(strong(A, all, [5000]))),
    {_, {ok, Token}} = hold(D, x),
    KilledMs = erlang:monotonic_time(millisecond),
    ok = weft_test_nodes:kill(D),
    until(fun() -> {ok, 0} =:= counted(strong(B, all, [5000])) end, 60000),
    %% A part of the lease was over: it is renewed in each quarter of its time.
    ?assert(erlang:monotonic_time(millisecond) - KilledMs > ?LEASE_MS div 2),
    {_, {ok, Greater}} = hold(C, x),
    ?assert(Greater > Token).

a_stopped_node_does_not_own_what_others_took(Config) ->
    [A, B, C, D] = shared(Config),
    {Pid, {ok, Token}} = hold(D, x),
    Down = monitored(D, Pid),
    ok = weft_test_nodes:pause(D),
    until(fun() -> element(1, element(2, hold(A, x))) =:= ok end, 60000),
    ok = weft_test_nodes:continue(D),
    %% At once, by its clock, and not only when its process has caught up.
    ?assertEqual(false, strong(D, is_held, [x, Token])),
    ?assertEqual({weft_names_lost, ?SCOPE, x}, call(D, ?MODULE, hold, [reason, Down])),
    {ok, Other, _, _} = read(B, x),
    until(fun() -> match =:= same(read(D, x), Other) end, 30000),
    ?assertMatch({ok, Other, _, _}, read(C, x)).

%% Its monotonic clock says that no time has passed.
a_suspended_host_holds_nothing(Config) ->
    [A, B | _] = shared(Config),
    {Pid, {ok, Token}} = hold(A, x),
    Down = monitored(A, Pid),
    ?assertEqual(true, strong(A, is_held, [x, Token])),
    ok = call(A, weft_suspension, stood_still, [3600000]),
    ?assertEqual(false, strong(A, is_held, [x, Token])),
    ?assertEqual({weft_names_lost, ?SCOPE, x}, call(A, ?MODULE, hold, [reason, Down])),
    until(fun() -> element(1, element(2, hold(B, x))) =:= ok end, 60000).

voters_come_and_go(Config) ->
    [A, B, C, D] = shared(Config),
    [E] = booted([e], [a, b, c], Config),
    ok = connected([E], [A, B, C, D]),
    until(fun() -> {ok, []} =:= strong(E, all, [5000]) end, 90000),
    Held = [{Name, hold(Node, Name)} || {Name, Node} <- [{x, A}, {y, D}, {z, E}]],
    Voters = [name(Node) || Node <- [C, D, E]],
    ok = strong(A, voters, [Voters]),
    until(fun() -> [] =:= [N || N <- [A, B], leads(N) > 0]
                       andalso lists:all(fun(N) -> leads(N) > 0 end, [C, D, E])
          end, 120000),
    [begin
         Expected = {ok, Pid, Token, undefined},
         until(fun() -> read(B, Name) =:= Expected end, 30000)
     end || {Name, {Pid, {ok, Token}}} <- Held],
    %% Those that are no voters any more are not needed.
    ok = weft_test_nodes:kill(B),
    {_, {ok, _}} = hold(A, w),
    ok = weft_test_nodes:kill(C),
    until(fun() -> element(1, element(2, hold(D, v))) =:= ok end, 60000).

%% Each is back before the next one dies, with an empty memory.
all_voters_die_one_after_another(Config) ->
    [_, _, _, D] = Nodes = shared(Config),
    {Pid, {ok, Token}} = hold(D, x),
    [_, _, _] = lists:foldl(fun(Name, [Old | Rest]) ->
                    ok = weft_test_nodes:kill(Old),
                    [New] = booted([Name], [a, b, c], Config),
                    ok = connected([New], [D | Rest] -- [Old]),
                    until(fun() -> is_member_again(New, Rest) end, 90000),
                    Rest ++ [New]
                end, lists:sublist(Nodes, 3), [a, b, c]),
    ?assertEqual({ok, Pid, Token, undefined}, read(D, x)),
    ?assertEqual({ok, Token}, strong(D, held, [x])),
    ok = weft_test_nodes:share_all().

a_restarted_driver_owns_nothing(Config) ->
    [A, B, C, _] = shared(Config),
    {Pid, {ok, _}} = hold(A, x),
    Down = monitored(A, Pid),
    true = call(A, erlang, exit, [call(A, erlang, whereis, [handle()]), kill]),
    ?assertEqual({weft_names_lost, ?SCOPE, x}, call(A, ?MODULE, hold, [reason, Down])),
    until(fun() -> element(1, element(2, hold(B, x))) =:= ok end, 60000),
    until(fun() -> element(1, element(2, hold(C, y))) =:= ok end, 60000).

bad_options_stop_the_scope(Config) ->
    [A | _] = shared(Config),
    [begin
         {error, Text} = call(A, weft_names, start_scope, [another, Options#{kind => strong}]),
         ?assertMatch({match, _}, re:run(Text, Expected))
     end || {Options, Expected} <- [{#{}, "voters are missing"},
                                    {#{voters => [a], replicas => 4}, "1, 3, 5 or 7"}]].

%% --- histories --------------------------------------------------------------------------------

histories_are_linearizable(Config) ->
    Seed = weft_test_nodes:seed(),
    {Count, Faults} = case os:getenv("FULL") of false -> {1, 3}; _ -> {30, 5} end,
    _ = rand:seed(exsss, Seed),
    Operations = [history(N, Faults, Config) || N <- lists:seq(1, Count)],
    %% Those of the last one are the nodes of other cases.
    ok = weft_test_nodes:share_all(),
    ct:pal("operations of each history: ~w", [Operations]),
    ?assert(lists:min(Operations) > 20).

history(N, Faults, Config) ->
    Dir = filename:join(?config(priv_dir, Config), "history_" ++ integer_to_list(N)),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    ok = weft_test_nodes:stop_all(),
    Nodes = started([a, b, c, d], [a, b, c], Config),
    [ok = users(Node, Dir) || Node <- Nodes],
    {Left, Crashes} = lists:foldl(fun(_, Acc) -> fault(Acc, Dir, Config) end, {Nodes, []},
                                  lists:seq(1, Faults)),
    ok = healed(Left),
    %% They end among working replicas: the last answers are not all unknown.
    until(fun() -> lists:all(fun is_served/1, Left) end, 90000),
    [ok = call(Node, weft_names_strong_users, stop, []) || Node <- Left],
    checked(weft_names_strong_users:events(Dir), Crashes).

users(Node, Dir) -> call(Node, weft_names_strong_users, start, [handle(), ?NAMES, Dir, 2]).

checked(Events, Crashes) ->
    Seen = lists:foldl(fun({Us, Node, Event}, Acc) ->
                           weft_sim_name_history:notice(Node, names, {history, Event}, Us, Acc)
                       end, weft_sim_name_history:new(), Events),
    PartitionOf = fun(Name) -> weft_names_strong_placement:partition(Name, 4) end,
    Histories = weft_sim_name_history:histories(Seen, #{crashes => Crashes,
                                                        partition_of => PartitionOf}),
    maps:foreach(fun(Name, History) ->
        case weft_sim_linearizability:check(History, weft_sim_name_model, none) of
            ok -> ok;
            {error, Where} ->
                ct:fail("~0p is not linearizable: ~0p~n~p", [Name, Where, lists:sort(History)])
        end
    end, Histories),
    length([ok || {_, _, {return, _, {ok, _}}} <- Events]).

%% One fault, for a time around a lease, and then a while without.
fault({Nodes, Crashes}, Dir, Config) ->
    Kind = pick([cut, cut, partition, pause, kill, break]),
    Node = pick(Nodes),
    ct:pal("~w of ~w", [Kind, name(Node)]),
    Result = fault(Kind, Node, Nodes, Crashes, Dir, Config),
    ok = lasting(rand:uniform(2000)),
    Result.

fault(cut, Node, Nodes, Crashes, _Dir, _Config) ->
    ok = cut(Node, [pick(Nodes -- [Node])]),
    ok = lasting(1000 + rand:uniform(?LEASE_MS - 1000)),
    ok = healed(Nodes),
    {Nodes, Crashes};
fault(partition, Node, Nodes, Crashes, _Dir, _Config) ->
    ok = cut(Node, Nodes -- [Node]),
    ok = lasting(1000 + rand:uniform(?LEASE_MS)),
    ok = healed(Nodes),
    {Nodes, Crashes};
fault(break, Node, Nodes, Crashes, _Dir, _Config) ->
    [ok = call(Node, weft_fault, break, [name(Other)]) || Other <- Nodes -- [Node]],
    {Nodes, Crashes};
fault(pause, Node, Nodes, Crashes, _Dir, _Config) ->
    ok = weft_test_nodes:pause(Node),
    ok = lasting(500 + rand:uniform(?LEASE_MS)),
    ok = weft_test_nodes:continue(Node),
    {Nodes, Crashes};
fault(kill, Node, Nodes, Crashes, Dir, Config) ->
    ok = weft_test_nodes:kill(Node),
    %% What it asked until now is of its former incarnation. Only its next one ends a lease early.
    Us = weft_names_strong_users:now_us(),
    [Name, _Host] = string:lexemes(atom_to_list(name(Node)), "@"),
    [New] = booted([list_to_atom(Name)], [a, b, c], Config),
    ok = connected([New], Nodes -- [Node]),
    ok = users(New, Dir),
    {[New | Nodes -- [Node]], [{Us, name(Node)} | Crashes]}.

%% The time of a fault is what is under test here.
lasting(Ms) -> receive after Ms -> ok end. % pacing: how long a fault lasts

is_served(Node) ->
    case read(Node, one) of
        {error, _} -> false;
        _ -> true
    end.

%% --- nodes ------------------------------------------------------------------------------------

%% Nodes that know each other, when the scope answers.
started(Names, Voters, Config) ->
    Nodes = booted(Names, Voters, Config),
    ok = connected(Nodes, Nodes),
    until(fun() -> lists:all(fun(Node) -> {ok, []} =:= strong(Node, all, [5000]) end, Nodes) end,
          90000),
    Nodes.

%% The nodes a to d, of which three are voters, without any name.
shared(Config) ->
    Nodes = [weft_test_nodes:lasting(node_name(Name),
                                     fun() -> hd(booted([Name], [a, b, c], Config)) end)
             || Name <- [a, b, c, d]],
    ok = healed(Nodes),
    until(fun() -> lists:all(fun is_emptied/1, Nodes) end, 90000),
    Nodes.

is_emptied(Node) ->
    case strong(Node, all, [5000]) of
        {ok, []} ->
            true;
        {ok, Names} ->
            _ = [call(Node, weft_names, unregister, [{?SCOPE, Name}], 60000) || Name <- Names],
            false;
        {error, _} ->
            false
    end.

booted(Names, Voters, Config) ->
    Full = [node_name(Voter) || Voter <- Voters],
    Scope = #{kind => strong, voters => Full, lease_ms => ?LEASE_MS, partitions => 4},
    Options = #{config => [{scopes, #{?SCOPE => Scope}}, {faults, true},
                           {resume_timeout_ms, 800}, {keepalive_ms, 200}, {link_timeout_ms, 1500}],
                args => ["-kernel", "prevent_overlapping_partitions", "false", "-pa",
                         weft_test_nodes:ebin(weft_sim_name_model)]},
    Nodes = [weft_test_nodes:start(Name, Options, ?config(place, Config)) || Name <- Names],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    Nodes.

connected(Some, Others) ->
    _ = [call(Node, net_kernel, connect_node, [name(Other)])
         || Node <- Some, Other <- Others, Node =/= Other],
    ok.

cut(Node, Others) ->
    [ok = call(Node, weft_fault, cut, [name(Other)]) || Other <- Others],
    ok.

healed(Nodes) ->
    [ok = call(Node, weft_fault, heal, []) || Node <- Nodes],
    connected(Nodes, Nodes).

call(Node, Module, Function, Args, TimeoutMs) ->
    weft_test_nodes:call(Node, Module, Function, Args, TimeoutMs).

strong(Node, Function, Args) -> call(Node, weft_names_strong, Function, [handle() | Args], 60000).

handle() -> weft_names_strong:handle(?SCOPE).

read(Node, Name) -> strong(Node, read, [Name, 5000]).

hold(Node, Name, Options) when is_map(Node) -> call(Node, ?MODULE, hold, [{Name, Options}, self]).

leads(Node) -> maps:get(leads, strong(Node, info, []), 0).

%% All of Nodes know New, in its present incarnation, as a member of each partition.
is_member_again(New, Nodes) ->
    case [strong(Node, status, []) || Node <- [New | Nodes]] of
        [#{incarnation := Incarnation} | _] = All ->
            lists:all(fun(#{partitions := Partitions}) ->
                          map_size(Partitions) =:= 4
                              andalso lists:all(fun(#{members := Members}) ->
                                                    lists:member({name(New), Incarnation}, Members)
                                                end, maps:values(Partitions));
                         ({error, _}) -> false
                      end, All);
        _ -> false
    end.

monitored(Node, Pid) -> call(Node, ?MODULE, hold, [watch, Pid]).

sorted({ok, List}) -> {ok, lists:sort(List)}.

counted({ok, List}) -> {ok, length(List)};
counted(Error) -> Error.

same({ok, Pid, _, _}, Pid) -> match;
same(_, _) -> differs.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% --- on the nodes -----------------------------------------------------------------------------

%% A process that stays, and what became of its request for a name; others are helpers of cases.
hold(Node, Name) when is_map(Node) ->
    hold(Node, Name, #{});
hold({Name, Options}, self) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    {Pid, weft_names_strong:acquire(handle(), Name, Pid, Options)};
hold(many, Count) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    Results = [weft_names_strong:acquire(handle(), {many, N}, Pid, #{})
               || N <- lists:seq(1, Count)],
    {ok, length([ok || {ok, _} <- Results])};
hold(watch, Pid) ->
    spawn(fun() ->
              Monitor = monitor(process, Pid),
              receive
                  {'DOWN', Monitor, process, Pid, Reason} ->
                      ToldUs = os:perf_counter(microsecond),
                      receive {ask, From} -> From ! {told, Reason, ToldUs} end
              end
          end);
hold(reason, Watcher) ->
    {Reason, _ToldUs} = hold(told, Watcher),
    Reason;
hold(told, Watcher) ->
    Watcher ! {ask, self()},
    receive {told, Reason, ToldUs} -> {Reason, ToldUs} after 20000 -> {no_answer, never} end.

%% @private
init(server) -> {ok, []}.

%% @private
handle_call(Request, _From, State) -> {reply, {called, Request}, State}.

%% @private
handle_cast(_Request, State) -> {noreply, State}.
