%% SPDX-License-Identifier: Apache-2.0
%% @doc Traffic in the background of a measurement: senders that send without end, and sinks that
%% count what arrives. Runs on the nodes under test.
-module(weft_bench_streams).

-export([start_sinks/1, count/1, stop_sinks/1, start_senders/4, stop_senders/1]).

-define(MESSAGES, 1).
-define(BYTES, 2).

%% @doc On the receiving node: Count sinks, and a process that knows what they got.
-spec start_sinks(non_neg_integer()) -> {Counter :: pid(), Sinks :: [pid()]}.
start_sinks(Count) ->
    Counters = counters:new(2, [write_concurrency]),
    Sinks = [spawn(fun() -> sink(Counters) end) || _ <- lists:seq(1, Count)],
    {spawn(fun() -> counting(Counters, Sinks) end), Sinks}.

sink(Counters) ->
    receive
        Message ->
            counters:add(Counters, ?MESSAGES, 1),
            counters:add(Counters, ?BYTES, byte_size(Message)),
            sink(Counters)
    end.

counting(Counters, Sinks) ->
    receive
        {count, From, Ref} ->
            From ! {Ref, {os:perf_counter(microsecond), counters:get(Counters, ?MESSAGES),
                          counters:get(Counters, ?BYTES)}},
            counting(Counters, Sinks);
        {stop, From, Ref} ->
            [exit(Sink, kill) || Sink <- Sinks],
            From ! {Ref, ok}
    end.

%% @doc What arrived until now.
-spec count(Counter :: pid()) ->
          {AtUs :: integer(), Messages :: non_neg_integer(), Bytes :: non_neg_integer()}.
count(Counter) ->
    ask(Counter, count).

-spec stop_sinks(Counter :: pid()) -> ok.
stop_sinks(Counter) ->
    ask(Counter, stop).

ask(Counter, What) ->
    Ref = make_ref(),
    Counter ! {What, self(), Ref},
    receive {Ref, Answer} -> Answer end.

%% @doc On the sending node: a sender for each sink. They are ended by stop_senders/1, which tells
%% whether the connection was lost meanwhile: a rate does not show it. The same message again and
%% again is one binary, however many wait in a queue; where memory is looked at, each has to be
%% another one.
-spec start_senders(weft_bench_variant:mode(), [pid()], Bytes :: pos_integer(),
                    same_message | new_messages) -> pid().
start_senders(Mode, Sinks, Bytes, Which) ->
    spawn(fun() ->
              ok = weft_bench_nodedowns:watch(),
              Message = weft_bench_flood:payload({binary, Bytes}),
              Senders = [spawn(fun() -> send_forever(Which, Mode, Sink, Message) end)
                         || Sink <- Sinks],
              receive {stop, From, Ref} ->
                  [exit(Sender, kill) || Sender <- Senders],
                  From ! {Ref, case weft_bench_nodedowns:seen() of
                                   [] -> ok;
                                   Lost -> {error, {lost, Lost}}
                               end}
              end
          end).

send_forever(same_message, Mode, Sink, Message) ->
    weft_bench_flood:send(Mode, Sink, Message),
    send_forever(same_message, Mode, Sink, Message);
send_forever(new_messages, Mode, Sink, Message) ->
    weft_bench_flood:send(Mode, Sink, binary:copy(Message)),
    send_forever(new_messages, Mode, Sink, Message).

%% @doc The error has the nodes that were lost while they sent.
-spec stop_senders(pid()) -> ok | {error, {lost, [node(), ...]}}.
stop_senders(Pid) ->
    ask(Pid, stop).
