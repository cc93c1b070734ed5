%% SPDX-License-Identifier: Apache-2.0
%% @doc Data in partitions on real nodes: the counters of the guide, as they stand there. What is
%% lost or applied twice in a handoff is in their sum.
-module(weft_vnode_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([counters_move_while_they_count/1, commands_of_several_changes_move_whole/1,
         who_waits_too_long_is_told/1]).
-export([count/3, overload/0, kill_partitions/1]).

-define(PARTITIONS, 8).
-define(KEYS, 400).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [counters_move_while_they_count, commands_of_several_changes_move_whole,
          who_waits_too_long_is_told].

init_per_suite(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "guide"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Source = filename:join(Dir, "my_counters.erl"),
    ok = file:write_file(Source, example()),
    {ok, my_counters} = compile:file(Source, [{outdir, Dir}, return_errors]),
    [{example, Dir} | weft_test_nodes:begin_suite(Config)].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% The block of the guide that is a module.
example() ->
    ["-module(my_counters)" ++ _ = Block] = weft_guide:page("ring.md", "erlang module"),
    ?assert(length(string:split(Block, "\n", all)) =< 61),
    Block.

counters_move_while_they_count(Config) ->
    _ = moved_while_they_count(my_counters, Config),
    ok.

%% What is not known to be added may have been added in part: a partition ended in the midst.
commands_of_several_changes_move_whole(Config) ->
    {B, Unknown} = moved_while_they_count(weft_vnode_pairs, Config),
    Uneven = call(B, weft_vnode_pairs, uneven, []),
    ?assert(length(Uneven) =< Unknown, {Uneven, Unknown}).

%% A node joins, whose partitions are killed while they are filled; the first node leaves.
moved_while_they_count(Counters, Config) ->
    [A, B] = Refs = [start(Name, [{vnodes, [Counters]}], Config) || Name <- [a, b]],
    ok = call(A, weft_ring, create, []),
    [{ok, 1} = call(A, Counters, add, [key(N), 1]) || N <- lists:seq(1, ?KEYS)],
    ok = call(B, weft_ring, join, [weft_test_nodes:name(A)]),
    Counting = [weft_test_nodes:call(Ref, ?MODULE, count, [Counters, self_of(Ref), Seed])
                || {Ref, Seed} <- lists:zip(Refs, [1, 2])],
    weft_test_nodes:until(fun() -> changed(A, B, join) end),
    killed_until_settled(Counters, A, B, 0),
    ok = staged(A, A, leave),
    settled(Refs, B),
    {Added, Unknown} = added(lists:zip(Refs, Counting)),
    ct:pal("~b added, ~b unknown", [Added, Unknown]),
    ?assert(Added > ?KEYS div 10),
    on_its_channel(A, B),
    {ok, Sum} = call(B, Counters, sum, []),
    ?assert(Sum >= ?KEYS + Added andalso Sum =< ?KEYS + Added + Unknown,
            {Sum, Added, Unknown}),
    ?assertEqual({ok, Sum}, call(A, Counters, sum, [])),
    weft_test_nodes:until(fun() ->
                              call(A, supervisor, which_children, [weft_vnode_sup]) =:= []
                          end),
    {B, Unknown}.

%% All that A had went to B, at most three items in a message, and not as ordinary messages do.
on_its_channel(A, B) ->
    Counted = fun(Ref) ->
                  #{bulk := #{counters := Counters}} = call(Ref, weft_channel, info, []),
                  Counters
              end,
    #{messages_out := Out, plain := 0} = Counted(A),
    #{messages_in := In} = Counted(B),
    ct:pal("~b messages of handoffs sent, ~b received", [Out, In]),
    ?assert(Out >= ?KEYS div 3),
    ?assert(In >= ?KEYS div 3).

changed(A, B, Change) ->
    call(A, weft_ring, stage, [weft_test_nodes:name(B), Change]) =:= ok andalso begin
        {ok, Plan} = call(A, weft_ring, plan, []),
        ok =:= call(A, weft_ring, commit, [Plan])
    end.

staged(A, B, Change) -> true = changed(A, B, Change), ok.

%% B may be killed only where it owns nothing yet: what is in memory ends with its process.
killed_until_settled(Counters, A, B, Killed) ->
    More = case Killed < 6 of
               true -> call(B, ?MODULE, kill_partitions, [Counters]);
               false -> 0
           end,
    case call(A, weft_ring, status, []) of
        #{moving := 0} ->
            ct:pal("~b partitions killed", [Killed + More]),
            ?assert(Killed + More > 0);
        #{} -> killed_until_settled(Counters, A, B, Killed + More)
    end.

kill_partitions(Counters) ->
    Owned = weft_ring:mine(),
    Killed = [exit(whereis(Name), kill)
              || P <- lists:seq(0, ?PARTITIONS - 1), not lists:member(P, Owned),
                 {ok, Name} <- [weft_vnode_names:name(Counters, P)], whereis(Name) =/= undefined,
                 rand:uniform(20) =:= 1],
    length(Killed).

settled(Refs, Owner) ->
    weft_test_nodes:until(fun() ->
                              Mine = call(Owner, weft_ring, mine, []),
                              length(Mine) =:= ?PARTITIONS
                                  andalso length(lists:usort([call(Ref, weft_ring, status, [])
                                                              || Ref <- Refs])) =:= 1
                          end).

%% Adds until it is told to stop.
count(Counters, Name, Seed) ->
    spawn(fun() ->
              true = register(Name, self()),
              counting(Counters, rand:seed_s(exsss, Seed), 0, 0)
          end).

counting(Counters, Rand0, Added, Unknown) ->
    {N, Rand} = rand:uniform_s(?KEYS, Rand0),
    receive
        {stop, From, Ref} -> From ! {Ref, {Added, Unknown}}
    after 1 ->
        case Counters:add(key(N), 1) of
            {ok, _} -> counting(Counters, Rand, Added + 1, Unknown);
            {error, _} -> counting(Counters, Rand, Added, Unknown + 1)
        end
    end.

added(Counting) ->
    Sums = [call(Ref, erlang, apply, [fun stop/1, [Pid]]) || {Ref, Pid} <- Counting],
    {lists:sum([Added || {Added, _} <- Sums]), lists:sum([Unknown || {_, Unknown} <- Sums])}.

stop(Pid) ->
    Ref = make_ref(),
    Pid ! {stop, self(), Ref},
    receive {Ref, Sums} -> Sums after 10000 -> error(timeout) end.

self_of(_Ref) -> counting_here.

who_waits_too_long_is_told(Config) ->
    A = start(a, [{queue_max, 3}, {vnodes, [my_counters]}], Config),
    ?assertEqual({error, no_ring}, call(A, my_counters, add, [<<"k">>, 1])),
    ok = call(A, weft_ring, create, []),
    {ok, 1} = call(A, my_counters, add, [<<"k">>, 1]),
    Answers = call(A, ?MODULE, overload, []),
    Told = length([overload || {error, overload} <- Answers]),
    ?assertEqual(10, Told + length([ok || {ok, _} <- Answers])),
    ?assert(Told > 3),
    ?assertEqual({ok, 1 + 10 - Told}, call(A, my_counters, value, [<<"k">>])),
    ?assertEqual({error, no_vnode}, call(A, weft_vnode, call, [lists, <<"k">>, any, 100])).

%% Ten callers wait for a partition that stands still.
overload() ->
    {ok, Partition} = weft_ring:partition(<<"k">>),
    {ok, Name} = weft_vnode_names:name(my_counters, Partition),
    ok = sys:suspend(Name),
    Callers = [spawn_monitor(fun() -> exit(my_counters:add(<<"k">>, 1)) end)
               || _ <- lists:seq(1, 10)],
    weft_test_nodes:until(fun() -> process_info(whereis(Name), message_queue_len)
                                       =:= {message_queue_len, 10} end),
    ok = sys:resume(Name),
    [receive {'DOWN', Ref, process, _, Answer} -> Answer end || {_, Ref} <- Callers].

%% --- nodes ------------------------------------------------------------------------------------

key(N) -> integer_to_binary(N).

start(Name, Given, Config) ->
    Environment = Given ++ [{partitions, ?PARTITIONS}, {n_val, 1}, {sync_ms, 300},
                            {handoff_items, 3}, {handoff_pace_ms, 20}],
    Args = lists:append([["-pa", Dir] || Dir <- [?config(example, Config)
                                                 | [weft_test_nodes:ebin(Module)
                                                    || Module <- [?MODULE, weft_ring,
                                                                  weft_test_nodes]]]])
        ++ lists:append([["-weft_ring", atom_to_list(Key), lists:flatten(io_lib:format("~p", [V]))]
                         || {Key, V} <- Environment]),
    Ref = weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_ring]),
    Ref.

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 20000).
