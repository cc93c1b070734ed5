%% SPDX-License-Identifier: Apache-2.0
%% @doc Recordings that were never made: of two or three nodes whose processes take turns, call each
%% other and collect garbage, beside a port, each with a clock of its own. Their pids are of this
%% node, which is the same to all that looks at them.
-module(weft_profile_sample).

-export([parts/1, events/0]).

%% @doc Recordings, and for how long each message was under way; from a seed.
-spec parts(integer()) -> [weft_profile_recording:part()].
parts(Seed) ->
    _ = rand:seed(exsss, Seed),
    Nodes = lists:sublist([node(), a@host, b@host], 2 + rand:uniform(2) - 1),
    Aheads = [{Node, rand:uniform(2000000000000) - 1000000000000} || Node <- Nodes],
    Pids = [{Node, [pid(N * 100 + K) || K <- lists:seq(1, 4)]}
            || {N, Node} <- lists:zip(lists:seq(1, length(Nodes)), Nodes)],
    Messages = [message(K, Nodes, Pids) || K <- lists:seq(1, 60)],
    [part(Node, Ahead, proplists:get_value(Node, Pids), Messages) || {Node, Ahead} <- Aheads].

pid(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

%% Many of them are equal. They are addressed by name, as all pids are of this node.
message(K, Nodes, Pids) ->
    [From, To] = lists:sublist([N || {_, N} <- lists:sort([{rand:uniform(), N} || N <- Nodes])], 2),
    Sent = K * 1000000 + rand:uniform(500000),
    To1 = proplists:get_value(To, Pids),
    #{from => From, to => To, by => hd(proplists:get_value(From, Pids)), at => hd(To1),
      sent => Sent, received => Sent + 20000 + rand:uniform(400000), key => rand:uniform(5)}.

part(Node, Ahead, Pids, Messages) ->
    Ran = lists:append([ran(Pid, 1 + N rem 2, N * 1000)
                        || {N, Pid} <- lists:zip(lists:seq(1, length(Pids)), Pids)])
        ++ port_ran(),
    Sent = [{Ns, send, By, 1, {server, To}, Key, call}
            || #{from := From, by := By, to := To, sent := Ns, key := Key} <- Messages,
               From =:= Node],
    Received = [{Ns, 'receive', At, 1, Key, call}
                || #{to := To, at := At, received := Ns, key := Key} <- Messages, To =:= Node],
    Events = lists:keysort(1, [setelement(1, Event, element(1, Event) + Ahead)
                               || Event <- Ran ++ Sent ++ Received]),
    #{node => Node, clock => clock(Ahead), events => Events,
      info => #{ended => time, window_ms => 1000, every_ms => 1000,
                windows => [{0, Ahead, Ahead + 100000000}],
                from_ns => Ahead, to_ns => Ahead + 100000000,
                events => length(Events), lost => 0, otp => "25", schedulers => 2,
                sessions => false,
                names => #{hd(Pids) => <<"server">>, port() => <<"tcp_inet of server">>},
                samples => #{every_ns => 10000000, looks => 10, share => 1.0,
                             queues => [{Ahead + 10000000 * N, N rem 3, 5} || N <- lists:seq(0, 9)],
                             states => #{hd(Pids) => {3, 4}},
                             stacks => [{[{m, f, 1}, {m, g, 2}], 3}, {[{m, f, 1}], 2}]}}}.

ran(Pid, Scheduler, Offset) ->
    lists:append([[{At, in, Pid, Scheduler, {m, f, 1}}, {At + 50, gc_start, Pid, Scheduler, minor},
                   {At + 70, gc_end, Pid, Scheduler, minor},
                   {At + 900, out, Pid, Scheduler, {m, g, 2}}]
                  || K <- lists:seq(1, 20), At <- [K * 4000000 + Offset]]).

port() -> list_to_port("#Port<0.7>").

%% Every other time the first process has called it.
port_ran() ->
    lists:append([[{K * 4000000 + At, in, port(), Scheduler, Command},
                   {K * 4000000 + At + 300, out, port(), Scheduler, Command}]
                  || K <- lists:seq(1, 10),
                     {At, Scheduler, Command} <- [case K rem 2 of
                                                      0 -> {10000, 1, 0};
                                                      1 -> {1200, 2, command}
                                                  end]]).

%% Round trips of different lengths, of which the answer takes any part.
clock(Ahead) ->
    weft_profile_clock:estimate(
      [begin
           Trip = 10000 + rand:uniform(300000),
           {At, At + rand:uniform(Trip) + Ahead, At + Trip}
       end || At <- [N * 1000000 || N <- lists:seq(1, 10)]]).

%% @doc Events in any order and of any kind, as a recording that has lost some might have.
-spec events() -> proper_types:type().
events() ->
    proper_types:list(event()).

event() ->
    Pid = proper_types:oneof([port() | [pid(N) || N <- [101, 102, 103]]]),
    Time = proper_types:integer(0, 1000),
    Scheduler = proper_types:integer(0, 2),
    proper_types:oneof(
      [{Time, proper_types:oneof([in, out]), Pid, Scheduler,
        proper_types:oneof([{m, f, 1}, command, 0])},
       {Time, proper_types:oneof([gc_start, gc_end]), Pid, Scheduler, minor},
       {Time, spawned, Pid, Scheduler, {m, f, 0}}]).
