%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: spawning on the other node.
-module(weft_conformance_spawn).

-include("weft_conformance.hrl").

-export([spawn_of_a_fun/1, spawn_of_a_function/1, spawn_link_is_linked/1,
         spawn_monitor_is_monitored/1, spawn_opt_with_monitor_and_link/1,
         spawn_opt_monitor_with_tag/1, spawn_opt_monitor_with_alias/1,
         spawn_opt_passes_process_options/1, spawn_opt_with_a_bad_option_is_badarg/1,
         spawn_request_replies_with_the_pid/1, spawn_request_with_reply_tag/1,
         spawn_request_without_reply/1, spawn_request_reply_error_only/1,
         spawn_request_with_a_bad_option_is_badarg/1, abandoned_spawn_request_gives_no_reply/1,
         spawn_request_to_an_unknown_node_is_noconnection/1,
         spawn_reply_comes_before_other_signals_of_the_child/1,
         spawn_of_an_undefined_module_is_undef/1, spawn_on_an_unknown_node_is_noconnection/1,
         spawn_with_large_arguments/1, spawn_inherits_the_group_leader/1,
         a_thousand_spawns/1, children_that_end_at_once/1, spawned_from_a_spawned_process/1]).

-define(NOBODY, 'nobody@127.0.0.1').
-define(LARGE_BYTES, 1_000_000).
-define(MANY, 1_000).

spawn_of_a_fun(#{b := B}) ->
    Near = self(),
    Far = spawn(B, fun() -> Near ! {i_am, self(), node()} end),
    ?expect({i_am, Far, B}).

spawn_of_a_function(#{b := B}) ->
    Far = spawn(B, erlang, send, [self(), {a, message}]),
    B = node(Far),
    ?expect({a, message}).

spawn_link_is_linked(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = spawn_link(B, erlang, exit, [boom]),
    ?expect({'EXIT', Far, boom}).

spawn_monitor_is_monitored(#{b := B}) ->
    {Far, Monitor} = spawn_monitor(B, erlang, exit, [boom]),
    ?expect({'DOWN', Monitor, process, Far, boom}).

spawn_opt_with_monitor_and_link(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = spawn_opt(B, erlang, exit, [boom], [monitor, link]),
    ?expect({'DOWN', Monitor, process, Far, boom}),
    ?expect({'EXIT', Far, boom}).

spawn_opt_monitor_with_tag(#{b := B}) ->
    {Far, Monitor} = spawn_opt(B, erlang, exit, [boom], [{monitor, [{tag, mine}]}]),
    ?expect({mine, Monitor, process, Far, boom}).

spawn_opt_monitor_with_alias(#{b := B}) ->
    {Far, Monitor} = weft_puppet:start(B, [{monitor, [{alias, demonitor}]}]),
    ok = weft_puppet:do(Far, fun() -> Monitor ! by_alias, ok end),
    ?expect(by_alias),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, Far, over}).

spawn_opt_passes_process_options(#{b := B}) ->
    Far = weft_puppet:start(B, [{priority, high}, {message_queue_data, off_heap},
                                {min_heap_size, 10_000}, {fullsweep_after, 7}]),
    Info = weft_puppet:do(Far, fun() ->
                                  process_info(self(), [priority, message_queue_data,
                                                        garbage_collection])
                          end),
    [{priority, high}, {message_queue_data, off_heap}, {garbage_collection, Collection}] = Info,
    7 = proplists:get_value(fullsweep_after, Collection).

spawn_opt_with_a_bad_option_is_badarg(#{b := B}) ->
    ?raises(error, badarg, spawn_opt(B, erlang, node, [], [not_an_option])).

spawn_request_replies_with_the_pid(#{b := B}) ->
    Request = spawn_request(B, erlang, send, [self(), hello]),
    Far = ?expect({spawn_reply, Request, ok, Pid}, Pid),
    B = node(Far),
    ?expect(hello).

spawn_request_with_reply_tag(#{b := B}) ->
    Request = spawn_request(B, erlang, node, [], [{reply_tag, {my, tag}}]),
    ?expect({{my, tag}, Request, ok, _}).

spawn_request_without_reply(#{b := B}) ->
    Request = spawn_request(B, erlang, send, [self(), hello], [{reply, no}]),
    ?expect(hello),
    ?refute({spawn_reply, Request, _, _}).

spawn_request_reply_error_only(#{b := B}) ->
    Request = spawn_request(B, erlang, send, [self(), hello], [{reply, error_only}]),
    ?expect(hello),
    ?refute({spawn_reply, Request, _, _}),
    Failing = spawn_request(?NOBODY, erlang, node, [], [{reply, error_only}]),
    ?expect({spawn_reply, Failing, error, noconnection}).

spawn_request_with_a_bad_option_is_badarg(#{b := B}) ->
    Request = spawn_request(B, erlang, node, [], [not_an_option]),
    ?expect({spawn_reply, Request, error, badopt}).

abandoned_spawn_request_gives_no_reply(#{b := B}) ->
    Near = self(),
    Request = spawn_request(B, fun() -> Near ! {child, self()} end, [monitor]),
    case spawn_request_abandon(Request) of
        true ->
            ok = weft_puppet:sync(weft_puppet:start(B)),
            ?expect({child, _}),
            ?refute({spawn_reply, Request, _, _}),
            ?refute({'DOWN', Request, _, _, _});
        false ->
            ?expect({spawn_reply, Request, ok, _})
    end.

spawn_request_to_an_unknown_node_is_noconnection(_) ->
    Request = spawn_request(?NOBODY, erlang, node, [], [monitor]),
    ?expect({spawn_reply, Request, error, noconnection}).

%% The promise of spawn_request/5: the reply is the first signal from the child. The child sends
%% under each kind of address, and dies.
spawn_reply_comes_before_other_signals_of_the_child(#{a := A, b := B}) ->
    register(conformance_parent, self()),
    Near = self(),
    Alias = alias(),
    Child = fun() ->
                    {conformance_parent, A} ! {first, self()},
                    Near ! {second, self()},
                    Alias ! {third, self()},
                    exit(early)
            end,
    [begin
         Request = spawn_request(B, Child, [monitor]),
         Far = next({spawn_reply, Request, ok}),
         {first, Far} = next(),
         {second, Far} = next(),
         {third, Far} = next(),
         {'DOWN', Request, process, Far, early} = next()
     end || _ <- lists:seq(1, 100)].

next({spawn_reply, Request, ok}) ->
    {spawn_reply, Request, ok, Pid} = next(),
    Pid.

next() ->
    ?expect(Message, Message).

spawn_of_an_undefined_module_is_undef(#{b := B}) ->
    {Far, Monitor} = spawn_monitor(B, conformance_no_such_module, f, [1]),
    ?expect({'DOWN', Monitor, process, Far, {undef, [{conformance_no_such_module, f, [1], _}]}}).

spawn_on_an_unknown_node_is_noconnection(_) ->
    process_flag(trap_exit, true),
    {Pid, Monitor} = spawn_monitor(?NOBODY, erlang, node, []),
    ?expect({'DOWN', Monitor, process, Pid, noconnection}),
    Linked = spawn_link(?NOBODY, erlang, node, []),
    ?expect({'EXIT', Linked, noconnection}).

spawn_with_large_arguments(#{b := B}) ->
    Bytes = rand:bytes(?LARGE_BYTES),
    Near = self(),
    spawn(B, fun() -> Near ! {hash, erlang:md5(Bytes)} end),
    Hash = ?expect({hash, H}, H),
    Hash = erlang:md5(Bytes).

spawn_inherits_the_group_leader(#{b := B}) ->
    Leader = group_leader(),
    Leader = weft_puppet:do(weft_puppet:start(B), fun() -> group_leader() end).

a_thousand_spawns(#{b := B}) ->
    Children = [spawn(B, erlang, send, [self(), {child, N}]) || N <- lists:seq(1, ?MANY)],
    [?expect({child, N}) || N <- lists:seq(1, ?MANY)],
    ?MANY = length(lists:usort(Children)).

children_that_end_at_once(#{b := B}) ->
    process_flag(trap_exit, true),
    Requests = [spawn_request(B, erlang, exit, [N], [link, monitor]) || N <- lists:seq(1, ?MANY)],
    [begin
         Far = ?expect({spawn_reply, Request, ok, Pid}, Pid),
         ?expect({'DOWN', Request, process, Far, N}),
         ?expect({'EXIT', Far, N})
     end || {N, Request} <- lists:zip(lists:seq(1, ?MANY), Requests)].

spawned_from_a_spawned_process(#{a := A, b := B}) ->
    Near = self(),
    spawn(B, fun() -> spawn(A, fun() -> spawn(B, fun() -> Near ! {deep, node()} end) end) end),
    ?expect({deep, B}).
