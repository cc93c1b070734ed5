%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench costs' counts on a node and from outside; whole runs of it are in
%% weft_bench_costs_SUITE.
-module(weft_bench_counts_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MESSAGES, 7).

%% The witness runs mostly because of the counting. Where there is one already it is not asked for
%% anything here.
what_the_witness_does_is_counted_apart_test() ->
    Names = [Name || Name <- [weft_turn, ?MODULE], whereis(Name) =:= undefined],
    Counted = counted([echo(Name) || Name <- Names]),
    [?assert(maps:get({What, atom_to_binary(Name)}, Counted, 0) >= ?MESSAGES)
     || {What, Name} <- [{witness_received, weft_turn}, {witness_turns, weft_turn},
                         {received, ?MODULE}, {turns, ?MODULE}], lists:member(Name, Names)],
    ?assertEqual([], [What || {What, <<"weft_turn">>} <- maps:keys(Counted),
                              string:prefix(atom_to_list(What), "witness_") =:= nomatch]).

%% Of processes that were not there before, and of all that the emulator has.
memory_is_counted_by_kind_of_process_test() ->
    Self = self(),
    Before = erlang:memory(total),
    Begun = weft_bench_counts:start(memory),
    Pids = [spawn(fun() -> Self ! {self(), there}, receive stop -> ok end end)
            || _ <- lists:seq(1, 3)],
    [receive {Pid, there} -> ok end || Pid <- Pids],
    Table = ets:new(?MODULE, []),
    true = ets:insert(Table, {lists:seq(1, 100000)}),
    Counts = weft_bench_counts:stop(Begun),
    Grown = erlang:memory(total) - Before,
    [exit(Pid, kill) || Pid <- Pids],
    true = ets:delete(Table),
    Of = maps:from_list([{{What, Whose}, Count} || {What, Whose, Count} <- Counts]),
    ?assertEqual(3, maps:get({processes, <<?MODULE_STRING>>}, Of)),
    ?assert(maps:get({memory_bytes, <<?MODULE_STRING>>}, Of) > 3000),
    ?assert(maps:get({memory_bytes, <<"ets">>}, Of) > 1000000),
    Sum = lists:sum([Bytes || {memory_bytes, _, Bytes} <- Counts]),
    ?assert(Sum > 1000000 andalso Sum < Grown + 10000000).

echo(Name) ->
    Pid = spawn(fun Echo() -> receive {From, ping} -> From ! {self(), pong}, Echo() end end),
    true = register(Name, Pid),
    Pid.

counted(Pids) ->
    Begun = weft_bench_counts:start(turns),
    [begin Pid ! {self(), ping}, receive {Pid, pong} -> ok end end
     || Pid <- Pids, _ <- lists:seq(1, ?MESSAGES)],
    Counts = weft_bench_counts:stop(Begun),
    [exit(Pid, kill) || Pid <- Pids],
    maps:from_list([{{What, Of}, Count} || {What, Of, Count} <- Counts]).

%% Both kinds, which are in the sum.
all_context_switches_are_counted_test() ->
    Status = <<"Threads:\t1\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\n">>,
    ?assertEqual([150, 3], [weft_bench_idle:switches_in(Status, Kind)
                            || Kind <- [voluntary, nonvoluntary]]),
    Row = fun(Kind, Value) ->
              #{cell => call, variant => stock, repetition => 1, unit => call, node => sender,
                what => switches, 'of' => Kind, value => Value}
          end,
    ?assertEqual([{<<"all">>, 153}, {<<"nonvoluntary">>, 3}, {<<"voluntary">>, 150}],
                 [{Of, round(Value)}
                  || #{'of' := Of, value := Value}
                         <- weft_bench_costs:totals([Row(<<"voluntary">>, 150),
                                                     Row(<<"nonvoluntary">>, 3)])]).
