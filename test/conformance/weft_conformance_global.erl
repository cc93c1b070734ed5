%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: `global' over three nodes. It wants a full mesh of visible nodes.
-module(weft_conformance_global).

-include("weft_conformance.hrl").

-export([global_name_is_known_on_all_nodes/1, global_name_is_taken_once/1,
         global_name_ends_with_its_process/1, global_reregister_moves_a_name/1,
         global_send_and_via/1, global_trans_excludes_others/1, global_lock_is_refused_when_held/1,
         global_name_is_gone_with_its_node/1, global_name_conflict_after_a_split/1]).
-export([needs/0]).

needs() ->
    Own = #{own => true, visible => true},
    #{global_name_is_known_on_all_nodes => #{visible => true},
      global_name_is_taken_once => #{visible => true},
      global_name_ends_with_its_process => #{visible => true},
      global_reregister_moves_a_name => #{visible => true},
      global_send_and_via => #{visible => true},
      global_trans_excludes_others => #{visible => true},
      global_lock_is_refused_when_held => #{visible => true},
      global_name_is_gone_with_its_node => Own#{ends_b => true},
      global_name_conflict_after_a_split =>
          Own#{whole => true, args => ["-kernel", "prevent_overlapping_partitions", "false"]}}.

global_name_is_known_on_all_nodes(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Near = self(),
    yes = global:register_name(conformance_global, self()),
    [Near, Near, Near] =
        [erpc:call(Node, global, whereis_name, [conformance_global]) || Node <- [A, B, C]],
    true = lists:member(conformance_global, erpc:call(C, global, registered_names, [])),
    _ = global:unregister_name(conformance_global),
    [undefined, undefined, undefined] =
        [erpc:call(Node, global, whereis_name, [conformance_global]) || Node <- [A, B, C]].

global_name_is_taken_once(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Far = weft_puppet:start(B),
    yes = global:register_name(conformance_once, Far),
    no = global:register_name(conformance_once, self()),
    no = erpc:call(C, global, register_name, [conformance_once, self()]),
    Far = global:whereis_name(conformance_once),
    _ = global:unregister_name(conformance_once),
    ok.

global_name_ends_with_its_process(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Far = weft_puppet:start(B),
    yes = erpc:call(C, global, register_name, [conformance_mortal, Far]),
    Far = global:whereis_name(conformance_mortal),
    exit(Far, kill),
    [ok = weft_expect:until(fun() ->
        erpc:call(Node, global, whereis_name, [conformance_mortal]) =:= undefined
     end) || Node <- [A, B, C]].

global_reregister_moves_a_name(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Far = weft_puppet:start(B),
    yes = global:register_name(conformance_moving, self()),
    yes = global:re_register_name(conformance_moving, Far),
    Far = erpc:call(C, global, whereis_name, [conformance_moving]),
    _ = global:unregister_name(conformance_moving),
    ok.

global_send_and_via(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Far = weft_puppet:start(B),
    {ok, Server} = weft_puppet:do(Far, fun() ->
        gen_server:start_link({global, conformance_server}, weft_echo_server, [], [])
    end),
    {x, B} = gen_server:call({global, conformance_server}, {echo, x}),
    {y, B} = gen_server:call({via, global, conformance_server}, {echo, y}),
    Server = global:send(conformance_server, {add, 1}),
    [1] = gen_server:call({global, conformance_server}, casts),
    [1] = erpc:call(C, gen_server, call, [{global, conformance_server}, casts]),
    ?raises(exit, {badarg, {conformance_nobody, x}}, global:send(conformance_nobody, x)).

%% Each process reads, thinks and writes inside the lock: without exclusion increments get lost.
global_trans_excludes_others(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    Holder = weft_puppet:start(A),
    Table = weft_puppet:do(Holder, fun() -> ets:new(conformance, [public]) end),
    true = ets:insert(Table, {counter, 0}),
    Increment = fun() ->
                        [{counter, N}] = erpc:call(A, ets, lookup, [Table, counter]),
                        true = erpc:call(A, ets, insert, [Table, {counter, N + 1}]),
                        incremented
                end,
    Nodes = [A, B, C],
    Work = fun() ->
        [incremented = global:trans({conformance_lock, self()}, Increment, Nodes)
         || _ <- lists:seq(1, 5)]
    end,
    Workers = [spawn_monitor(Node, Work) || Node <- Nodes],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Workers],
    [{counter, 15}] = ets:lookup(Table, counter).

global_lock_is_refused_when_held(#{a := A, b := B, c := C}) ->
    ok = weft_expect:global_knows([A, B, C]),
    true = global:set_lock({conformance_held, me}, [A, B, C], 0),
    false = erpc:call(B, global, set_lock, [{conformance_held, other}, [A, B, C], 0]),
    true = global:del_lock({conformance_held, me}, [A, B, C]),
    true = erpc:call(B, global, set_lock, [{conformance_held, other}, [A, B], 0]),
    true = erpc:call(B, global, del_lock, [{conformance_held, other}, [A, B]]).

global_name_is_gone_with_its_node(#{a := A, b := B}) ->
    ok = weft_expect:global_knows([A, B]),
    Far = weft_puppet:start(B),
    yes = global:register_name(conformance_lost, Far),
    erpc:cast(B, erlang, halt, []),
    ok = weft_expect:until(fun() -> global:whereis_name(conformance_lost) =:= undefined end).

%% Both sides take the name while they are apart; on meeting one keeps it, everywhere.
%% Both take the name while they are apart. With visible circuits they are together again within
%% milliseconds, so one of the two may be refused: then there is no conflict, and one owner all the
%% same.
global_name_conflict_after_a_split(#{a := A, b := B}) ->
    ok = weft_expect:global_knows([A, B]),
    Near = self(),
    true = erlang:monitor_node(B, true),
    spawn(B, fun() -> take_name_when_apart(A, Near) end),
    ?expect(ready),
    true = erlang:disconnect_node(B),
    ?expect({nodedown, B}),
    Mine = spawn(fun() -> ?expect(never) end),
    _ = global:register_name(conformance_disputed, Mine),
    ?expect(taken_there),
    ok = weft_expect:until(fun() ->
        Here = global:whereis_name(conformance_disputed),
        is_pid(Here) andalso
            Here =:= erpc:call(B, global, whereis_name, [conformance_disputed])
    end).

take_name_when_apart(A, Owner) ->
    true = erlang:monitor_node(A, true),
    Owner ! ready,
    ?expect({nodedown, A}),
    _ = global:register_name(conformance_disputed, self()),
    ok = weft_expect:until(fun() -> net_kernel:connect_node(A) =:= true end),
    Owner ! taken_there,
    receive never -> ok after 60_000 -> ok end.
