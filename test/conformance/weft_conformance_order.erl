%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: the order of signals between two processes, under load.
%% Two signals from one process to another never overtake each other, whatever addresses are used
%% and however large they are. weft_signal_order_SUITE looks for the same with random programs.
-module(weft_conformance_order).

-include("weft_conformance.hrl").

-export([a_thousand_messages_of_mixed_sizes_between_16_pairs/1,
         messages_come_before_the_down_of_their_sender/1,
         messages_come_before_the_down_of_a_named_sender/1,
         messages_come_before_the_exit_of_their_sender/1,
         name_pid_and_alias_are_one_order/1, exit_signals_and_messages_are_one_order/1,
         reply_to_an_alias_comes_before_a_later_event/1, last_reply_comes_before_a_named_down/1,
         monitor_then_message_gives_the_real_reason/1, link_then_message_gives_the_real_reason/1,
         unlink_comes_before_a_later_exit/1, spawn_then_message_by_name/1,
         erpc_storm_of_2000_calls_by_16_processes/1, results_of_killed_erpc_calls_do_not_mix/1]).
-export([needs/0]).

-define(ROUNDS, 100).
-define(FRAGMENT_BYTES, 30_000).

needs() ->
    #{a_thousand_messages_of_mixed_sizes_between_16_pairs => #{time_ms => 60_000},
      erpc_storm_of_2000_calls_by_16_processes => #{time_ms => 60_000}}.

a_thousand_messages_of_mixed_sizes_between_16_pairs(#{b := B}) ->
    Pairs = [spawn_monitor(fun() -> send_in_order(B, 1_000) end) || _ <- lists:seq(1, 16)],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Pairs].

send_in_order(B, Count) ->
    Near = self(),
    {Far, Monitor} = spawn_monitor(B, fun() -> receive_in_order(1, Count), Near ! done end),
    [Far ! {N, payload(rand:uniform(20))} || N <- lists:seq(1, Count)],
    ?expect(done),
    ?expect({'DOWN', Monitor, process, Far, normal}).

payload(1) -> <<0:(8 * 200_000)>>;
payload(2) -> lists:duplicate(10_000, a);
payload(_) -> x.

receive_in_order(N, Count) when N > Count ->
    ok;
receive_in_order(N, Count) ->
    N = ?expect({Got, _}, Got),
    receive_in_order(N + 1, Count).

messages_come_before_the_down_of_their_sender(#{b := B}) ->
    Near = self(),
    [begin
         {Far, Monitor} = spawn_monitor(B, fun() -> ten_messages(Near), exit(sent) end),
         ?expect({'DOWN', Monitor, process, Far, sent}),
         ok = ten_are_here(Far)
     end || _ <- lists:seq(1, ?ROUNDS)].

messages_come_before_the_down_of_a_named_sender(#{b := B}) ->
    Near = self(),
    [begin
         Far = weft_puppet:start(B),
         true = weft_puppet:do(Far, fun() -> register(conformance_last_words, self()) end),
         Monitor = monitor(process, {conformance_last_words, B}),
         weft_puppet:tell(Far, fun() -> ten_messages(Near), exit(sent) end),
         ?expect({'DOWN', Monitor, process, {conformance_last_words, B}, sent}),
         ok = ten_are_here(Far)
     end || _ <- lists:seq(1, ?ROUNDS)].

messages_come_before_the_exit_of_their_sender(#{b := B}) ->
    process_flag(trap_exit, true),
    Near = self(),
    [begin
         Far = spawn_link(B, fun() -> ten_messages(Near), exit(sent) end),
         ?expect({'EXIT', Far, sent}),
         ok = ten_are_here(Far)
     end || _ <- lists:seq(1, ?ROUNDS)].

ten_messages(To) ->
    [To ! {self(), N, <<0:(8 * (N rem 5) * ?FRAGMENT_BYTES)>>} || N <- lists:seq(1, 10)].

ten_are_here(From) ->
    Here = fun Here() -> receive {From, N, _} -> [N | Here()] after 0 -> [] end end,
    case Here() of
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] -> ok;
        Numbers -> erlang:error({overtaken, #{here_at_the_end => Numbers}})
    end.

name_pid_and_alias_are_one_order(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = weft_puppet:do(Far, fun() -> register(conformance_addressed, self()), alias() end),
    Addresses = {Far, {conformance_addressed, B}, Alias},
    Numbers = lists:seq(1, 500),
    [element(rand:uniform(3), Addresses) ! {N, payload(rand:uniform(40))} || N <- Numbers],
    Numbers = weft_puppet:do(Far, fun() -> [?expect({N, _}, N) || _ <- Numbers] end).

exit_signals_and_messages_are_one_order(#{b := B}) ->
    Far = weft_puppet:start(B),
    false = weft_puppet:do(Far, fun() -> process_flag(trap_exit, true) end),
    Numbers = lists:seq(1, 500),
    [case rand:uniform(3) of
         1 -> exit(Far, {number, N, payload(rand:uniform(20))});
         _ -> Far ! {'EXIT', self(), {number, N, payload(rand:uniform(20))}}
     end || N <- Numbers],
    Next = fun() -> ?expect({'EXIT', _, {number, N, _}}, N) end,
    Numbers = weft_puppet:do(Far, fun() -> [Next() || _ <- Numbers] end).

reply_to_an_alias_comes_before_a_later_event(#{b := B}) ->
    Near = self(),
    Far = weft_puppet:start(B),
    [begin
         Alias = monitor(process, Far, [{alias, reply_demonitor}]),
         weft_puppet:tell(Far, fun() ->
                                       Alias ! {reply, <<0:(8 * (N rem 4) * ?FRAGMENT_BYTES)>>},
                                       Near ! event
                               end),
         reply = ?expect(Message, kind(Message)),
         event = ?expect(Message, kind(Message))
     end || N <- lists:seq(1, ?ROUNDS)].

kind({reply, _}) -> reply;
kind(event) -> event.

%% A server which replies and stops at once: the reply must be first, though the DOWN of a name
%% names no pid.
last_reply_comes_before_a_named_down(#{b := B}) ->
    [begin
         {ok, _} = erpc:call(B, fun() -> weft_echo_server:start(conformance_stops) end),
         Monitor = monitor(process, {conformance_stops, B}),
         Request = gen_server:send_request({conformance_stops, B}, {stop, normal}),
         ?expect({'DOWN', Monitor, process, {conformance_stops, B}, normal}),
         {reply, stopping} = gen_server:wait_response(Request, 0)
     end || _ <- lists:seq(1, ?ROUNDS)].

monitor_then_message_gives_the_real_reason(#{b := B}) ->
    [begin
         Far = spawn(B, fun() -> ?expect({exit_with, Reason}, exit(Reason)) end),
         Monitor = monitor(process, Far),
         Far ! {exit_with, N},
         ?expect({'DOWN', Monitor, process, Far, N})
     end || N <- lists:seq(1, ?ROUNDS)].

link_then_message_gives_the_real_reason(#{b := B}) ->
    process_flag(trap_exit, true),
    [begin
         Far = spawn(B, fun() -> ?expect({exit_with, Reason}, exit(Reason)) end),
         true = link(Far),
         Far ! {exit_with, N},
         ?expect({'EXIT', Far, N})
     end || N <- lists:seq(1, ?ROUNDS)].

%% The far process unlinks, says so, and ends: nothing of the link may be left by then.
unlink_comes_before_a_later_exit(#{b := B}) ->
    Near = self(),
    [begin
         {Far, Monitor} = spawn_opt(B, fun() -> unlink(Near), exit(boom) end, [link, monitor]),
         ?expect({'DOWN', Monitor, process, Far, boom})
     end || _ <- lists:seq(1, ?ROUNDS)].

spawn_then_message_by_name(#{a := A, b := B}) ->
    Near = self(),
    register(conformance_parent, self()),
    [begin
         Far = spawn(B, fun() -> {conformance_parent, A} ! {one, N}, Near ! {two, N} end),
         true = is_pid(Far),
         {one, N} = ?expect({Which, N}, {Which, N}),
         {two, N} = ?expect({Which, N}, {Which, N})
     end || N <- lists:seq(1, ?ROUNDS)].

erpc_storm_of_2000_calls_by_16_processes(#{b := B}) ->
    Call = fun(N) -> N = erpc:call(B, erlang, abs, [-N], ?DEADLINE_MS) end,
    Calls = fun() -> [Call(N) || N <- lists:seq(1, 125)] end,
    Callers = [spawn_monitor(Calls) || _ <- lists:seq(1, 16)],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Callers].

%% Calls that time out leave late results behind, which must not reach later calls.
results_of_killed_erpc_calls_do_not_mix(#{b := B}) ->
    [begin
         %% pacing: answers come before, at and after the timeout
         Late = fun() -> receive after N rem 3 -> {late, N} end end,
         try erpc:call(B, Late, 1) of
             {late, N} -> ok
         catch
             error:{erpc, timeout} -> ok
         end,
         N = erpc:call(B, erlang, abs, [-N])
     end || N <- lists:seq(1, ?ROUNDS)],
    ?refute(_).
