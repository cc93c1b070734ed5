%% SPDX-License-Identifier: Apache-2.0
%% @doc Many messages in one direction: runs on the nodes under test.
%%
%% Each sender has a sink on the other node. Senders send as fast as they are let, for a time or
%% a number of messages, and then a last message with their count. A sink that has got it reports
%% when, and whether it got as many. So the rate is that of messages that arrived, from the moment
%% the senders start to that of the last arrival: what was put into buffers does not count.
-module(weft_bench_flood).

-export([start_sinks/1, await_sinks/2, flood/4, send/3, payload/1, payload_bytes/1]).
-export_type([payload/0, limit/0]).

-type payload() :: {binary, Bytes :: non_neg_integer()} | {terms, Count :: pos_integer()}
                 | {map, Keys :: pos_integer()}.
-type limit() :: {duration_ms, pos_integer()} | {messages, pos_integer()}.

%% Small messages are sent in groups of so many between two looks at the clock.
-define(GROUP, 64).
-define(SMALL_BYTES, 4096).
%% One of the terms in external format, about: it has the names of the nodes in it.
-define(ITEM_BYTES, 128).
%% A key and its value in a map, the same.
-define(KEY_BYTES, 20).

%% @doc On the receiving node: starts Count sinks, and a process that hears their reports.
-spec start_sinks(pos_integer()) -> {Collector :: pid(), Sinks :: [pid()]}.
start_sinks(Count) ->
    Collector = spawn(fun() -> collect(Count, 0, 0, none) end),
    {Collector, [spawn(fun() -> sink(Collector, 0) end) || _ <- lists:seq(1, Count)]}.

sink(Collector, Got) ->
    receive
        {last, Sent} -> Collector ! {sink, os:perf_counter(microsecond), Got, Sent};
        _Message -> sink(Collector, Got + 1)
    end.

collect(0, LastUs, Total, Wrong) ->
    receive {result, From, Ref} -> From ! {Ref, {LastUs, Total, Wrong}} end;
collect(Missing, LastUs, Total, Wrong) ->
    receive
        {sink, AtUs, Sent, Sent} -> collect(Missing - 1, max(LastUs, AtUs), Total + Sent, Wrong);
        {sink, AtUs, Got, Sent} -> collect(Missing - 1, max(LastUs, AtUs), Total + Got, {Got, Sent})
    end.

%% @doc On the receiving node: waits until all sinks have all. When the last message came and how
%% many came.
-spec await_sinks(Collector :: pid(), TimeoutMs :: pos_integer()) ->
          {ok, LastUs :: integer(), Messages :: pos_integer()} | {error, term()}.
await_sinks(Collector, TimeoutMs) ->
    Ref = make_ref(),
    Collector ! {result, self(), Ref},
    receive
        {Ref, {LastUs, Total, none}} -> {ok, LastUs, Total};
        {Ref, {_, _, {Got, Sent}}} -> {error, {a_sink_got, Got, messages_of, Sent}}
    after TimeoutMs ->
        {error, {not_all_arrived_within_ms, TimeoutMs}}
    end.

%% @doc On the sending node: one sender per sink. Returns when the senders have handed over all they
%% will send; the time is that of their start.
-spec flood(weft_bench_variant:mode(), [pid()], payload(), limit()) -> StartUs :: integer().
flood(Mode, Sinks, Payload, Limit) ->
    Message = payload(Payload),
    Group = case payload_bytes(Payload) =< ?SMALL_BYTES of true -> ?GROUP; false -> 1 end,
    Senders = [spawn_monitor(fun() -> sender(Mode, Sink, Message, Group) end) || Sink <- Sinks],
    StartUs = os:perf_counter(microsecond),
    lists:foreach(fun({Pid, _}) -> Pid ! {go, until(Limit, StartUs)} end, Senders),
    lists:foreach(fun({Pid, Monitor}) ->
                      receive
                          {'DOWN', Monitor, process, Pid, normal} -> ok;
                          {'DOWN', Monitor, process, Pid, Why} -> error({sender_failed, Why})
                      end
                  end, Senders),
    StartUs.

until({duration_ms, DurationMs}, StartUs) -> {time_us, StartUs + DurationMs * 1000};
until({messages, Count}, _StartUs) -> {messages, Count}.

sender(Mode, Sink, Message, Group) ->
    receive
        {go, {time_us, EndUs}} ->
            send(Mode, Sink, {last, send_until(Mode, Sink, Message, Group, EndUs, 0)});
        {go, {messages, Count}} ->
            send_many(Mode, Sink, Message, Count),
            send(Mode, Sink, {last, Count})
    end.

send_until(Mode, Sink, Message, Group, EndUs, Sent) ->
    send_many(Mode, Sink, Message, Group),
    case os:perf_counter(microsecond) < EndUs of
        true -> send_until(Mode, Sink, Message, Group, EndUs, Sent + Group);
        false -> Sent + Group
    end.

send_many(_Mode, _Sink, _Message, 0) ->
    ok;
send_many(plain, Sink, Message, Left) ->
    Sink ! Message,
    send_many(plain, Sink, Message, Left - 1);
send_many({channel, Options} = Mode, Sink, Message, Left) ->
    ok = send_by_channel(Sink, Message, Options),
    send_many(Mode, Sink, Message, Left - 1).

%% @doc Sends one message in a mode.
-spec send(weft_bench_variant:mode(), pid(), term()) -> ok.
send(plain, To, Message) ->
    To ! Message,
    ok;
send({channel, Options}, To, Message) ->
    send_by_channel(To, Message, Options).

%% A channel gives up when it was full for long. These senders have all the time.
send_by_channel(To, Message, Options) ->
    case weft:send(To, Message, Options) of
        ok -> ok;
        {error, overloaded} -> send_by_channel(To, Message, Options)
    end.

%% @doc A message: random bytes, a list of records with atoms, text, a pid and a reference, or a map
%% of atoms to atoms, text and numbers.
-spec payload(payload()) -> term().
payload({binary, Bytes}) ->
    crypto:strong_rand_bytes(Bytes);
payload({terms, Count}) ->
    [{item, Number, a_status, <<"a short text">>, self(), make_ref(), #{weight => Number / 3}}
     || Number <- lists:seq(1, Count)];
payload({map, Keys}) ->
    maps:from_list([{list_to_atom("a_field_" ++ integer_to_list(Number)), value(Number rem 3)}
                    || Number <- lists:seq(1, Keys)]).

value(0) -> a_status;
value(1) -> <<"a text">>;
value(2) -> 70000.

%% @doc What a payload is counted as: the size of a binary, or about that of the terms' external
%% format.
-spec payload_bytes(payload()) -> non_neg_integer().
payload_bytes({binary, Bytes}) -> Bytes;
payload_bytes({terms, Count}) -> Count * ?ITEM_BYTES;
payload_bytes({map, Keys}) -> Keys * ?KEY_BYTES.
