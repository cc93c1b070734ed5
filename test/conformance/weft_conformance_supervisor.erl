%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: supervisors used from afar, and supervision trees over nodes.
-module(weft_conformance_supervisor).
-behaviour(supervisor).

-include("weft_conformance.hrl").

-export([start_child_and_which_children/1, terminate_restart_and_delete_child/1,
         far_child_is_restarted_on_its_node/1, far_child_that_ends_too_often_ends_its_supervisor/1,
         supervisor_end_ends_far_children/1, far_supervisor_ends_with_its_ancestor/1,
         child_linked_to_a_far_partner_is_restarted/1, one_for_all_over_two_nodes/1]).
-export([init/1, start_far_server/2]).

start_child_and_which_children(#{b := B}) ->
    Far = far_supervisor(B),
    {ok, Child} = supervisor:start_child(Far, server_spec(one, B)),
    B = node(Child),
    {error, {already_started, Child}} = supervisor:start_child(Far, server_spec(one, B)),
    [{one, Child, worker, [weft_echo_server]}] = supervisor:which_children(Far),
    [{specs, 1}, {active, 1}, {supervisors, 0}, {workers, 1}] = supervisor:count_children(Far),
    {hello, B} = gen_server:call(Child, {echo, hello}).

terminate_restart_and_delete_child(#{b := B}) ->
    Far = far_supervisor(B),
    {ok, Child} = supervisor:start_child(Far, server_spec(one, B)),
    Monitor = monitor(process, Child),
    ok = supervisor:terminate_child(Far, one),
    ?expect({'DOWN', Monitor, process, Child, shutdown}),
    [{one, undefined, worker, _}] = supervisor:which_children(Far),
    {ok, Again} = supervisor:restart_child(Far, one),
    false = Again =:= Child,
    ok = supervisor:terminate_child(Far, one),
    ok = supervisor:delete_child(Far, one),
    {error, not_found} = supervisor:delete_child(Far, one).

%% The supervisor is here, its child is there: the link that tells of the end crosses nodes.
far_child_is_restarted_on_its_node(#{b := B}) ->
    Near = near_supervisor(#{intensity => 5}),
    {ok, Child} = supervisor:start_child(Near, server_spec(one, B)),
    exit(Child, kill),
    Second = await_restart(Near, one, Child),
    B = node(Second),
    {hello, B} = gen_server:call(Second, {echo, hello}),
    gen_server:cast(Second, {release, nobody_waits}),
    B = node(await_restart(Near, one, Second)).

far_child_that_ends_too_often_ends_its_supervisor(#{b := B}) ->
    Near = near_supervisor(#{intensity => 0}),
    {ok, Child} = supervisor:start_child(Near, server_spec(one, B)),
    exit(Child, kill),
    ?expect({'EXIT', Near, shutdown}).

supervisor_end_ends_far_children(#{b := B}) ->
    Near = near_supervisor(#{}),
    Children = [element(2, supervisor:start_child(Near, server_spec(Id, B))) || Id <- [x, y, z]],
    Monitors = [{Child, monitor(process, Child)} || Child <- Children],
    unlink(Near),
    exit(Near, shutdown),
    [?expect({'DOWN', Monitor, process, Child, shutdown}) || {Child, Monitor} <- Monitors].

%% The tree: a process here, linked to one there, which is the parent of the supervisor.
far_supervisor_ends_with_its_ancestor(#{b := B}) ->
    {Parent, Far} = far_tree(B),
    {ok, Child} = supervisor:start_child(Far, server_spec(one, B)),
    Monitors = [{Pid, monitor(process, Pid)} || Pid <- [Child, Far]],
    spawn(fun() -> link(Parent), exit(shutdown) end),
    [?expect({'DOWN', Monitor, process, Pid, shutdown}) || {Pid, Monitor} <- Monitors].

child_linked_to_a_far_partner_is_restarted(#{a := A, b := B}) ->
    Near = near_supervisor(#{intensity => 5}),
    {ok, Child} = supervisor:start_child(Near, server_spec(one, A)),
    Partner = spawn(B, fun() -> link(Child), ?expect(go), exit(partner_left) end),
    ok = weft_expect:until(fun() -> lists:member(Partner, links(Child)) end),
    Partner ! go,
    A = node(await_restart(Near, one, Child)).

one_for_all_over_two_nodes(#{a := A, b := B}) ->
    Near = near_supervisor(#{strategy => one_for_all, intensity => 5}),
    {ok, Here} = supervisor:start_child(Near, server_spec(here, A)),
    {ok, There} = supervisor:start_child(Near, server_spec(there, B)),
    exit(There, kill),
    A = node(await_restart(Near, here, Here)),
    B = node(await_restart(Near, there, There)).

%% ---- supervisors and children ----

%% @private
init(Flags) ->
    {ok, {maps:merge(#{strategy => one_for_one, intensity => 1, period => 5}, Flags), []}}.

%% @private Starts an echo server on Node, linked to the caller, which is a supervisor.
start_far_server(Node, Name) ->
    Parent = self(),
    Pid = proc_lib:spawn_link(Node, fun() -> become_server(Parent, Name) end),
    ?expect({ack, Pid, Result}, Result).

become_server(Parent, Name) ->
    true = register(Name, self()),
    {ok, State} = weft_echo_server:init([]),
    proc_lib:init_ack(Parent, {ok, self()}),
    gen_server:enter_loop(weft_echo_server, [], State).

near_supervisor(Flags) ->
    process_flag(trap_exit, true),
    {ok, Near} = supervisor:start_link(?MODULE, Flags),
    Near.

far_supervisor(Node) ->
    {_Parent, Far} = far_tree(Node),
    Far.

%% The puppet is the parent of the supervisor and takes it along when the case ends.
far_tree(Node) ->
    Parent = weft_puppet:start(Node),
    {ok, Far} = weft_puppet:do(Parent, fun() -> supervisor:start_link(?MODULE, #{}) end),
    {Parent, Far}.

server_spec(Id, Node) ->
    Name = list_to_atom("conformance_child_" ++ integer_to_list(erlang:unique_integer([positive]))),
    #{id => Id, start => {?MODULE, start_far_server, [Node, Name]}, restart => permanent,
      shutdown => 5_000, modules => [weft_echo_server]}.

await_restart(Supervisor, Id, Before) ->
    ok = weft_expect:until(fun() -> restarted(Supervisor, Id, Before) end),
    {Id, Child, _, _} = lists:keyfind(Id, 1, supervisor:which_children(Supervisor)),
    Child.

restarted(Supervisor, Id, Before) ->
    {Id, Child, _, _} = lists:keyfind(Id, 1, supervisor:which_children(Supervisor)),
    is_pid(Child) andalso Child =/= Before.

links(Pid) ->
    element(2, erpc:call(node(Pid), erlang, process_info, [Pid, links])).
