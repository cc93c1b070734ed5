%% SPDX-License-Identifier: Apache-2.0
%% @doc The face of `global': the same calls with the same results, side by side with the original,
%% and what is different on purpose: locks under faults.
%%
%% The last cases have the same nodes.
-module(weft_global_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([names_are_as_those_of_global/1, locks_are_as_those_of_global/1,
         conflicts_are_resolved_by_the_function_given/1,
         a_change_is_known_everywhere_when_the_call_returns/1, of_many_at_once_one_gets_the_name/1,
         a_node_that_stands_still_is_waited_for_once/1, a_lock_is_of_one_at_a_time/1,
         a_lock_ends_with_its_process_or_node/1, a_storm_of_locks_is_bounded/1,
         who_never_gives_up_is_served_when_links_flap/1, nodes_that_a_lock_names_are_connected/1,
         a_strong_scope_keeps_names_and_locks/1]).
%% Run on the nodes.
-export([holder/0, locker/2, after_loss/1, overtaken/3, count/3, storm/3, patient/3, transcript/2,
         unknown_after/3, race/3, killed_while_it_waits/1]).
-export([start_link/1, init/1, handle_call/3, handle_cast/2]).

%% Of the lock of a process whose node is lost, in weft_locks_core.
-define(LEASE_MS, 5000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [conflicts_are_resolved_by_the_function_given, a_node_that_stands_still_is_waited_for_once,
     a_lock_ends_with_its_process_or_node,
     nodes_that_a_lock_names_are_connected,
     a_strong_scope_keeps_names_and_locks, names_are_as_those_of_global,
     a_change_is_known_everywhere_when_the_call_returns, of_many_at_once_one_gets_the_name,
     locks_are_as_those_of_global, a_lock_is_of_one_at_a_time,
     who_never_gives_up_is_served_when_links_flap, a_storm_of_locks_is_bounded].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

names_are_as_those_of_global(Config) ->
    [A, B | _] = synced(Config),
    Processes = [call(Node, ?MODULE, holder, []) || Node <- [A, A, B]],
    [One, Other] = [call(A, ?MODULE, transcript, [Module, {names, Processes}])
                    || Module <- [global, weft_global]],
    ?assertEqual(One, Other),
    %% Both wrote down something.
    ?assertMatch([{yes, _}, {no, _} | _], One).

locks_are_as_those_of_global(Config) ->
    [A | _] = synced(Config),
    [One, Other] = [call(A, ?MODULE, transcript, [Module, locks])
                    || Module <- [global, weft_global]],
    ?assertEqual(One, Other),
    ?assertMatch([true, true | _], One).

conflicts_are_resolved_by_the_function_given(Config) ->
    [A, B] = [node(Name, [], Config) || Name <- [a, b]],
    [begin
         Name = Resolve,
         [PidA, PidB] = [call(Node, ?MODULE, holder, []) || Node <- [A, B]],
         [yes = call(Node, weft_global, register_name, [Name, Pid, fun weft_global:Resolve/3])
          || {Node, Pid} <- [{A, PidA}, {B, PidB}]],
         until(fun() -> call(A, net_kernel, connect_node, [name(B)]) =:= true end),
         until(fun() -> whereis_name(A, Name) =:= whereis_name(B, Name) end),
         until(fun() -> alive([{A, PidA}, {B, PidB}]) =:= Alive end),
         until(fun() ->
                       Found = whereis_name(A, Name),
                       Found =:= whereis_name(B, Name)
                           andalso (Found =:= undefined) =:= (Resolve =:= notify_all_name)
               end),
         until(fun() -> are_apart(A, B) end)
     end || {Resolve, Alive} <- [{random_exit_name, 1}, {random_notify_name, 2},
                                 {notify_all_name, 2}]].

%% On either side: what ends later would be the connection of the next ones.
are_apart(A, B) ->
    _ = call(A, erlang, disconnect_node, [name(B)]),
    not is_connected(A, B) andalso not is_connected(B, A).

%% A program may register a process and then tell another node to send to the name.
a_change_is_known_everywhere_when_the_call_returns(Config) ->
    [A, B, C | _] = Nodes = shared(Config),
    Others = [name(Node) || Node <- Nodes, Node =/= A],
    [?assertEqual({What, []}, {What, call(A, ?MODULE, unknown_after, [What, 200, Others])})
     || What <- [register, re_register, unregister, via]],
    %% Also if it is a process of another node, or somebody else's name.
    Pid = call(B, ?MODULE, holder, []),
    yes = call(A, weft_global, register_name, [elsewhere, Pid]),
    [?assertEqual(Pid, whereis_name(Node, elsewhere)) || Node <- Nodes],
    ok = call(C, weft_global, unregister_name, [elsewhere]),
    [?assertEqual(undefined, whereis_name(Node, elsewhere)) || Node <- Nodes].

%% As under the lock of `global': the others get `no', and nothing happens to their processes.
of_many_at_once_one_gets_the_name(Config) ->
    Nodes = shared(Config),
    [begin
         AtMs = call(hd(Nodes), erlang, system_time, [millisecond]) + 50,
         Races = [call(Node, ?MODULE, race, [{at_once, Number}, AtMs, 3]) || Node <- Nodes],
         Won = [{Node, Result} || {Node, Race} <- lists:zip(Nodes, Races),
                                  Result <- call(Node, ?MODULE, transcript, [Race, value])],
         ?assertEqual(12, length(Won)),
         ?assertMatch([_], [yes || {_, {yes, _}} <- Won]),
         [Winner] = [Pid || {_, {yes, Pid}} <- Won],
         [?assertEqual(Winner, whereis_name(Node, {at_once, Number})) || Node <- Nodes],
         ?assertEqual(12, alive([{Node, Pid} || {Node, {_, Pid}} <- Won]))
     end || Number <- lists:seq(1, 20)].

%% For some seconds; not with each name, and not for ever. A scope that is killed while somebody
%% waits says no, but the name stays.
a_node_that_stands_still_is_waited_for_once(Config) ->
    [A, B] = mesh([a, b], [], Config),
    Register = fun(Name) ->
                       Pid = call(A, ?MODULE, holder, []),
                       timer:tc(fun() -> call(A, weft_global, register_name, [Name, Pid]) end)
               end,
    %% The nodes keep locks together now; names have sessions of their own.
    until(fun() -> call(A, ?MODULE, unknown_after, [register, 20, [name(B)]]) =:= [] end),
    ok = weft_test_nodes:pause(B),
    {FirstUs, yes} = Register(first),
    ?assert(FirstUs > 2500000),
    until(fun() -> {Us, yes} = Register(make_ref()), Us < 2000000 end),
    {_, yes} = Register(second),
    ok = weft_test_nodes:continue(B),
    until(fun() -> whereis_name(B, second) =/= undefined end),
    %% As soon as it has answered, it is waited for again.
    until(fun() -> call(A, ?MODULE, unknown_after, [register, 20, [name(B)]]) =:= [] end),
    ok = weft_test_nodes:pause(B),
    Caller = call(A, ?MODULE, killed_while_it_waits, [killed]),
    [{no, Pid}] = call(A, ?MODULE, transcript, [Caller, value]),
    ok = weft_test_nodes:continue(B),
    [until(fun() -> whereis_name(Node, killed) =:= Pid end) || Node <- [A, B]].

%% Whoever has the lock adds one to a number that all read and write: none is lost.
a_lock_is_of_one_at_a_time(Config) ->
    Nodes = [A | _] = shared(Config),
    Counter = call(A, ?MODULE, holder, []),
    Done = [call(Node, ?MODULE, count, [Counter, 25, N])
            || {N, Node} <- lists:zip(lists:seq(1, 4), Nodes), _ <- [1, 2]],
    [until(fun() -> not call(Node, erlang, is_process_alive, [Pid]) end, 60000)
     || {Node, Pid} <- lists:zip([N || N <- Nodes, _ <- [1, 2]], Done)],
    ?assertEqual(200, call(A, ?MODULE, transcript, [Counter, value])),
    [?assertMatch(#{locks := 0, waiting := 0}, call(Node, weft_global, info, []))
     || Node <- Nodes].

a_lock_ends_with_its_process_or_node(Config) ->
    [A, B] = mesh([a, b], [], Config),
    Lock = fun(Node, Retries) ->
                   call(Node, ?MODULE, transcript, [weft_global, {lock, {r, name(Node)}, Retries}])
           end,
    {true, Pid} = Lock(A, infinity),
    {false, _} = Lock(B, 0),
    true = call(A, erlang, exit, [Pid, kill]),
    {true, _} = Lock(B, infinity),
    KilledMs = erlang:monotonic_time(millisecond),
    weft_test_nodes:kill(B),
    %% Kept for the time of a lease, for the node might come back.
    {true, _} = Lock(A, infinity),
    ?assert(erlang:monotonic_time(millisecond) - KilledMs > ?LEASE_MS - 500).

%% As with `global'; RabbitMQ's nodes meet in this way. The third node is not there.
nodes_that_a_lock_names_are_connected(Config) ->
    [A, B] = [node(Name, [], Config) || Name <- [a, b]],
    [_, Host] = string:split(atom_to_list(name(A)), "@"),
    Nodes = [name(A), name(B), list_to_atom("nobody@" ++ Host)],
    Lock = fun(Node) ->
                   call(Node, ?MODULE, transcript,
                        [weft_global, {lock, {r, name(Node)}, 0, Nodes}])
           end,
    ?assertEqual([], call(A, erlang, nodes, [])),
    {true, _} = Lock(A),
    ?assertMatch({false, _}, Lock(B)),
    ?assertEqual([name(B)], call(A, erlang, nodes, [])).

%% Many more than can be served at once, while a node goes: all is over in the end, and nothing grew
%% without bound.
a_storm_of_locks_is_bounded(Config) ->
    Nodes = [A, B | _] = shared(Config),
    Storms = [{Node, call(Node, ?MODULE, storm, [200, 3, r])} || Node <- Nodes],
    weft_test_nodes:kill(B),
    Left = lists:keydelete(B, 1, Storms),
    is_bounded(4 * 200, loads(Left, erlang:monotonic_time(millisecond) + 120000)),
    %% (What a replica gave to a process of the lost node it keeps for the time of a lease.)
    [until(fun() -> element(1, load(Node)) =:= 0 end, 60000) || {Node, _} <- Left],
    until(fun() -> is_free(A) end, 60000).

%% Until all storms are over.
loads(Storms, DeadlineMs) ->
    Loads = [load(Node) || {Node, _} <- Storms],
    case [Node || {Node, Storm} <- Storms, call(Node, erlang, is_process_alive, [Storm])] of
        [] ->
            Loads;
        _ ->
            ?assert(erlang:monotonic_time(millisecond) < DeadlineMs),
            receive after 20 -> ok end, % pacing: of looks
            Loads ++ loads(Storms, DeadlineMs)
    end.

%% They live on afterwards, so a lock that somebody has without his knowing it would stay.
who_never_gives_up_is_served_when_links_flap(Config) ->
    Nodes = [A, B, C, D] = shared(Config),
    Storms = [{Node, call(Node, ?MODULE, patient, [40, 12, r])} || Node <- Nodes],
    Queues = [begin
                  ok = call(One, weft_fault, cut, [name(Other)]),
                  until(fun() -> not is_connected(One, Other) end),
                  ok = call(One, weft_fault, heal, []),
                  until(fun() -> call(One, net_kernel, connect_node, [name(Other)]) end),
                  [load(Node) || Node <- Nodes]
              end || {One, Other} <- [{A, B}, {C, D}, {B, C}, {A, D}, {A, C}, {B, D}]],
    [until(fun() -> not call(Node, erlang, is_process_alive, [Storm]) end, 120000)
     || {Node, Storm} <- Storms],
    [until(fun() -> is_free(Node) end, 60000) || Node <- Nodes],
    is_bounded(4 * 40, lists:append(Queues)).

%% What waits at a replica, and at its driver.
load(Node) ->
    {maps:get(waiting, call(Node, weft_global, info, [])), messages(Node)}.

%% One place for each process at a replica, however often it asked, and a few messages of each.
is_bounded(Processes, Loads) ->
    {Waiting, Messages} = lists:unzip(Loads),
    ct:pal("longest queue ~b, most messages ~b", [lists:max(Waiting), lists:max(Messages)]),
    ?assert(lists:max(Waiting) > 0),
    ?assert(lists:max(Waiting) =< Processes),
    ?assert(lists:max(Messages) =< 6 * Processes).

is_free(Node) ->
    maps:with([locks, waiting], call(Node, weft_global, info, [])) =:= #{locks => 0, waiting => 0}.

is_connected(Node, Other) ->
    lists:member(name(Other), call(Node, erlang, nodes, [])).

messages(Node) ->
    {message_queue_len, Length} =
        call(Node, erlang, process_info, [call(Node, erlang, whereis, [weft_locks]),
                                          message_queue_len]),
    Length.

a_strong_scope_keeps_names_and_locks(Config) ->
    Voters = [node_name(N) || N <- [a, b, c]],
    Scopes = #{global => #{kind => strong, voters => Voters}},
    Nodes = [A, B, C] = mesh([a, b, c], [{scopes, Scopes}], Config),
    Pid = call(A, ?MODULE, holder, []),
    %% Until there is a quorum, which may answer too late: each attempt has a name of its own.
    until(fun() -> call(A, weft_global, register_name, [make_ref(), Pid]) =:= yes end, 120000),
    yes = call(A, weft_global, register_name, [n, Pid]),
    [until(fun() -> whereis_name(Node, n) =:= Pid end, 60000) || Node <- Nodes],
    no = call(B, weft_global, register_name, [n, call(B, ?MODULE, holder, [])]),
    {true, Holder} = call(B, ?MODULE, transcript, [weft_global, {lock, {r, b}, infinity}]),
    {false, _} = call(C, ?MODULE, transcript, [weft_global, {lock, {r, c}, 0}]),
    ?assertEqual([n], [Name || Name <- call(A, weft_global, registered_names, []),
                               not is_reference(Name)]),
    true = call(B, erlang, exit, [Holder, kill]),
    {true, _} = call(C, ?MODULE, transcript, [weft_global, {lock, {r, c}, infinity}]),
    Names = [name(Node) || Node <- Nodes],
    %% Who releases a lock takes it from nobody who has got it meanwhile.
    Next = call(B, ?MODULE, holder, []),
    ok = call(A, ?MODULE, overtaken, [{late, a}, Names, Next]),
    ?assertEqual(Next, whereis_name(B, {weft_lock, late})),
    %% One process has a lock of its own, another one shares that of a node that is lost.
    Own = call(A, ?MODULE, locker, [{own, a}, Names]),
    _ = call(B, ?MODULE, locker, [{shared, team}, Names]),
    Sharer = call(A, ?MODULE, locker, [{shared, team}, Names]),
    %% Without a quorum nothing is given out, and what was is taken back.
    [weft_test_nodes:kill(Node) || Node <- [B, C]],
    no = call(A, weft_global, register_name, [m, Pid]),
    aborted = call(A, weft_global, trans, [{r2, a}, fun erlang:node/0, [name(A)], 0]),
    [?assertEqual({What, false}, {What, call(A, ?MODULE, after_loss, [Locker])})
     || {What, Locker} <- [{own, Own}, {shared, Sharer}]].

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc A process that keeps a number.
holder() -> spawn(fun() -> hold(0) end).

hold(Value) ->
    receive
        {get, From} -> From ! {value, Value}, hold(Value);
        {put, New} -> hold(New);
        {name_conflict, _, _} -> hold(Value);
        {global_name_conflict, _, _} -> hold(Value);
        {global_name_conflict, _} -> hold(Value);
        ping -> hold(Value)
    end.

%% @doc A process that has a lock and survives its loss. Then it asks for it again.
locker(Id, Nodes) ->
    Starter = self(),
    Pid = spawn(fun() ->
                        _ = process_flag(trap_exit, true),
                        true = weft_global:set_lock(Id, Nodes),
                        Starter ! {self(), has_it},
                        receive {'EXIT', _, {weft_lock_lost, _}} -> ok end,
                        Again = weft_global:set_lock(Id, [node()], 0),
                        receive {again, From} -> From ! {again, Again} end
                end),
    receive {Pid, has_it} -> Pid end.

after_loss(Locker) ->
    Locker ! {again, self()},
    receive {again, HasIt} -> HasIt after 50000 -> never_told end.

%% @doc Has a lock until another process has its name, and releases it then.
overtaken({Resource, _} = Id, Nodes, Next) ->
    true = weft_global:set_lock(Id, Nodes),
    yes = weft_global:re_register_name({weft_lock, Resource}, Next),
    true = weft_global:del_lock(Id, Nodes),
    ok.

value(Counter) ->
    Counter ! {get, self()},
    receive {value, Value} -> Value end.

%% @doc Adds one so many times; to read and to write are two steps.
count(Counter, Times, Requester) ->
    spawn(fun() ->
                  Id = {counter, {Requester, self()}},
                  [weft_global:trans(Id, fun() ->
                                                 Before = value(Counter),
                                                 erlang:yield(),
                                                 Counter ! {put, Before + 1}
                                         end) || _ <- lists:seq(1, Times)]
          end).

%% @doc So many processes want a lock at once, some give up.
storm(Count, Times, Resource) ->
    spawn(fun() ->
                  All = [spawn_monitor(fun() ->
                             [weft_global:trans({Resource, self()}, fun() -> ok end,
                                                weft_view:lookup(lock_homes), N rem 4)
                              || _ <- lists:seq(1, Times)]
                         end) || N <- lists:seq(1, Count)],
                  [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- All]
          end).

%% @doc So many processes want a lock so many times, however long it takes. They live on; the one
%% that is returned ends when all have had it.
patient(Count, Times, Resource) ->
    spawn(fun() ->
                  Main = self(),
                  All = [spawn(fun() ->
                             [weft_global:trans({Resource, self()}, fun() -> ok end)
                              || _ <- lists:seq(1, Times)],
                             Main ! {self(), done},
                             receive the_end -> ok end
                         end) || _ <- lists:seq(1, Count)],
                  [receive {Pid, done} -> ok end || Pid <- All]
          end).

%% @doc The changes of which another node did not know when the call had returned.
unknown_after(What, Times, Nodes) ->
    [{Number, Node, Found}
     || Number <- lists:seq(1, Times),
        Name <- [make_ref()],
        Expected <- [changed(What, Name)],
        Node <- Nodes,
        Found <- [erpc:call(Node, weft_global, whereis_name, [Name])],
        Found =/= Expected].

changed(register, Name) ->
    Pid = holder(),
    yes = weft_global:register_name(Name, Pid),
    Pid;
changed(re_register, Name) ->
    _ = changed(register, Name),
    Pid = holder(),
    yes = weft_global:re_register_name(Name, Pid),
    Pid;
changed(unregister, Name) ->
    _ = changed(register, Name),
    ok = weft_global:unregister_name(Name),
    undefined;
changed(via, Name) ->
    Caller = self(),
    %% Linked to a process that lives on.
    spawn(fun() ->
                  Caller ! {self(), start_link(Name)},
                  receive the_end -> ok end
          end),
    receive {_, {ok, Pid}} -> Pid end.

start_link(Name) -> gen_server:start_link({via, weft_global, Name}, ?MODULE, [], []).

init([]) -> {ok, none}.

handle_call(_Request, _From, State) -> {reply, ok, State}.

handle_cast(_Request, State) -> {noreply, State}.

%% @doc So many processes register themselves at that time. The process that is returned has the
%% results.
race(Name, AtMs, Count) ->
    spawn(fun() ->
                  Main = self(),
                  Racers = [spawn(fun() -> racer(Name, AtMs, Main) end)
                            || _ <- lists:seq(1, Count)],
                  hold([receive {Racer, Result} -> {Result, Racer} end || Racer <- Racers])
          end).

racer(Name, AtMs, Main) ->
    %% pacing: all of them begin at the same moment
    receive after max(0, AtMs - erlang:system_time(millisecond)) -> ok end,
    Main ! {self(), weft_global:register_name(Name, self())},
    hold(0).

%% @doc Registers a name, and kills the scope as soon as it knows it, while it still waits for
%% others. On one node, as the wait is short.
killed_while_it_waits(Name) ->
    Racers = race(Name, 0, 1),
    until(fun() -> weft_global:whereis_name(Name) =/= undefined end),
    true = exit(whereis(weft_names_global), kill),
    Racers.

%% @doc The results of a series of calls.
transcript(Counter, value) ->
    value(Counter);
transcript(Module, {lock, Id, Retries}) ->
    transcript(Module, {lock, Id, Retries, [node() | nodes()]});
transcript(Module, {lock, Id, Retries, Nodes}) ->
    Caller = self(),
    Pid = spawn(fun() ->
                        Caller ! {self(), Module:set_lock(Id, Nodes, Retries)},
                        receive the_end -> ok end
                end),
    receive {Pid, Result} -> {Result, Pid} end;
transcript(Module, locks) ->
    Nodes = [node() | nodes()],
    Other = fun(Fun) ->
                    Caller = self(),
                    Pid = spawn(fun() -> Caller ! {self(), Fun()} end),
                    receive {Pid, Result} -> Result end
            end,
    [Module:set_lock({r, me}), Module:set_lock({r, me}, Nodes),
     Module:set_lock({r, you}, Nodes, 0),
     Other(fun() -> Module:set_lock({r, you}, Nodes, 0) end),
     Other(fun() -> Module:set_lock({r, me}, Nodes, 0) end),
     Module:set_lock({r, you}, [], 0), Module:trans({r, you}, fun() -> 3 end, []),
     Module:del_lock({r, me}), Module:set_lock({r, you}, Nodes, 0),
     Module:del_lock({r, me}, Nodes), Module:set_lock({r, you}, Nodes, 0),
     Module:del_lock({r, you}), Module:del_lock({r, you}),
     Module:trans({r, me}, fun() -> Module:trans({r, me}, fun() -> 7 end) end),
     Module:trans({r, me}, fun() -> Other(fun() ->
                                        Module:trans({r, you}, fun() -> 1 end, Nodes, 0) end) end),
     try Module:trans({r, me}, fun() -> error(oops) end) catch error:oops -> caught end,
     Module:trans({r, you}, fun() -> 2 end, [node()], 0)];
transcript(Module, {names, [P1, P2, P3]}) ->
    Calls = [{register_name, [n, P1]}, {register_name, [n, P2]}, {register_name, [n, P1]},
             {whereis_name, [n]}, {send, [n, ping]}, {register_name, [far, P3]},
             {register_name, [second_name, P1]}, {re_register_name, [n, P3]},
             {whereis_name, [n]}, {whereis_name, [far]},
             {unregister_name, [n]}, {whereis_name, [n]}, {send, [n, ping]},
             {register_name, [{any, "term"}, P2, fun Module:notify_all_name/3]},
             {re_register_name, [new, P1]}, {unregister_name, [nobody]}],
    [{try erlang:apply(Module, Function, Args)
      catch exit:{badarg, What} -> {exit, What}
      end, lists:sort(Module:registered_names())} || {Function, Args} <- Calls].

%% --- small parts ------------------------------------------------------------------------------

alive(Processes) ->
    length([Pid || {Node, Pid} <- Processes, call(Node, erlang, is_process_alive, [Pid])]).

whereis_name(Node, Name) -> call(Node, weft_global, whereis_name, [Name]).

%% The shared nodes, while connections have not been cut: after that `global' itself may hang.
synced(Config) ->
    Nodes = shared(Config),
    [ok = call(Node, global, sync, []) || Node <- Nodes],
    Nodes.

%% Their connections can be cut, and are soon given up.
shared(Config) ->
    Env = [{faults, true}, {resume_timeout_ms, 500}, {link_timeout_ms, 1000}, {keepalive_ms, 200}],
    meshed([weft_test_nodes:lasting(node_name(Name), fun() -> node(Name, Env, Config) end)
            || Name <- [a, b, c, d]]).

mesh(Names, Env, Config) ->
    meshed([node(Name, Env, Config) || Name <- Names]).

meshed([First | Rest] = Nodes) ->
    [until(fun() -> call(First, net_kernel, connect_node, [name(Node)]) =:= true end)
     || Node <- Rest],
    [until(fun() -> length(call(Node, weft_view, lookup, [lock_homes])) =:= length(Nodes)
                        andalso length(call(Node, erlang, nodes, [])) =:= length(Rest) end, 30000)
     || Node <- Nodes],
    Nodes.

node(Name, Env, Config) ->
    Options = #{config => Env, args => ["-kernel", "prevent_overlapping_partitions", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

until(Condition) -> weft_test_nodes:until(Condition, 30000).

call(Node, Module, Function, Args) ->
    weft_test_nodes:call(Node, Module, Function, Args, 60000).
