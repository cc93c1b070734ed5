%% SPDX-License-Identifier: Apache-2.0
%% @doc Data in partitions on real nodes: the counters of the guide, as they stand there. What is
%% lost or applied twice in a handoff is in their sum.
-module(weft_vnode_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([counters_move_while_they_count/1, commands_of_several_changes_move_whole/1,
         either_end_dies_in_the_midst/1, modules_are_given_together/1,
         who_waits_too_long_is_told/1]).
-export([count/3, overload/0, kill_partitions/2, kill_owned/1, count_each/1]).

-define(PARTITIONS, 8).
-define(KEYS, 400).
%% Additions of which it may be unknown whether they were made. Each of them widens what counts as
%% right; of most keys all is to be known.
-define(UNKNOWN_MAX, ?KEYS div 2).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 3; _ -> 20 end}}].

all() ->
    [commands_of_several_changes_move_whole, either_end_dies_in_the_midst,
     modules_are_given_together, who_waits_too_long_is_told]
        ++ [counters_move_while_they_count || os:getenv("FULL") =/= false].

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

%% A node joins, whose partitions are killed while they are filled; the first node leaves. What is
%% filled slowly is still there to be killed when this looks.
moved_while_they_count(Counters, Config) ->
    Slow = [{vnodes, [Counters]}, {handoff_pace_ms, 100}],
    [A, B] = Refs = [start(Name, Slow, Config) || Name <- [a, b]],
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
    ?assert(Unknown =< ?UNKNOWN_MAX, Unknown),
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
%% Some are killed for certain at first, and then by chance.
killed_until_settled(Counters, A, B, Killed) ->
    More = case Killed < 6 of
               true -> call(B, ?MODULE, kill_partitions,
                            [Counters, case Killed of 0 -> 1; _ -> 20 end]);
               false -> 0
           end,
    case call(A, weft_ring, status, []) of
        #{moving := 0} ->
            ct:pal("~b partitions killed", [Killed + More]),
            ?assert(Killed + More > 0);
        #{} ->
            receive after 10 -> ok end, % pacing: of looks
            killed_until_settled(Counters, A, B, Killed + More)
    end.

kill_partitions(Counters, OneIn) ->
    Owned = weft_ring:mine(),
    Killed = [exit(whereis(Name), kill)
              || P <- lists:seq(0, ?PARTITIONS - 1), not lists:member(P, Owned),
                 {ok, Name} <- [weft_vnode_names:name(Counters, P)], whereis(Name) =/= undefined,
                 rand:uniform(OneIn) =:= 1],
    length(Killed).

%% A handoff gives way to what else there is to do, and takes up to eight times as long for it.
settled(Refs, Owner) ->
    weft_test_nodes:until(fun() ->
                              Mine = call(Owner, weft_ring, mine, []),
                              length(Mine) =:= ?PARTITIONS
                                  andalso length(lists:usort([call(Ref, weft_ring, status, [])
                                                              || Ref <- Refs])) =:= 1
                          end, 90000).

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
            {error, Reason} ->
                counting(Counters, Rand, Added, case is_nothing_done(Reason) of
                                                    true -> Unknown;
                                                    false -> Unknown + 1
                                                end)
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

%% --- nodes that die ---------------------------------------------------------------------------

%% On disk. A node joins and another one leaves, and in the midst of that either end is killed, or
%% the processes of partitions that are handed over, or the link between them is cut. FULL=1: ten
%% times. SEED=<number> draws the same faults.
either_end_dies_in_the_midst(Config) ->
    _ = rand:seed(exsss, weft_test_nodes:seed()),
    Rounds = case os:getenv("FULL") of false -> 1; _ -> 10 end,
    [begin
         died_in_the_midst(Round, Config),
         ok = weft_test_nodes:stop_all()
     end || Round <- lists:seq(1, Rounds)],
    ok.

died_in_the_midst(Round, Config) ->
    Start = fun(Name) -> durable(Name, Round, Config) end,
    #{a := A} = Nodes0 = maps:from_list([{Name, Start(Name)} || Name <- [a, b, c]]),
    ok = call(A, weft_ring, create, []),
    ok = joined(b, Nodes0),
    owned_by([a, b], Nodes0),
    Pid = call(A, ?MODULE, count_each, [rand:uniform(1000)]),
    ok = joined(c, Nodes0),
    {Nodes1, Hit1} = faults(drawn(), {b, c}, Start, Nodes0),
    owned_by([a, b, c], Nodes1),
    ok = staged(A, maps:get(b, Nodes1), leave),
    {Nodes, Hit2} = faults(drawn(), {b, c}, Start, Nodes1),
    owned_by([a, c], Nodes),
    {Added, Unknown} = call(A, erlang, apply, [fun stop/1, [Pid]]),
    weft_test_nodes:until(fun() ->
                              element(1, call(A, weft_vnode_durable, all, [])) =:= ok
                          end),
    {ok, All} = call(A, weft_vnode_durable, all, []),
    ct:pal("~b faults hit a handoff; ~b added, ~b unknown",
           [Hit1 + Hit2, lists:sum(maps:values(Added)), lists:sum(maps:values(Unknown))]),
    ?assert(Hit1 + Hit2 > 0),
    ?assert(lists:sum(maps:values(Unknown)) =< ?UNKNOWN_MAX),
    ?assertEqual([], [{Key, Value, maps:get(Key, Added, 0), maps:get(Key, Unknown, 0)}
                      || {Key, Value} <- All,
                         Value < maps:get(Key, Added, 0)
                             orelse Value > maps:get(Key, Added, 0) + maps:get(Key, Unknown, 0)]),
    ?assertEqual([], maps:keys(Added) -- [Key || {Key, _} <- All]).

joined(Name, #{a := A} = Nodes) ->
    Ref = maps:get(Name, Nodes),
    ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]),
    weft_test_nodes:until(fun() -> changed(A, Ref, join) end).

owned_by(Names, #{a := A} = Nodes) ->
    Owners = lists:sort([weft_test_nodes:name(Ref)
                         || {_, Ref} <- maps:to_list(maps:with(Names, Nodes))]),
    weft_test_nodes:until(fun() ->
                              #{moving := Moving, owned := Owned} = call(A, weft_ring, status, []),
                              Moving =:= 0 andalso lists:sort(maps:keys(Owned)) =:= Owners
                          end, 90000).

drawn() ->
    [Fault || {_, Fault} <- lists:sort([{rand:uniform(), Fault}
                                        || Fault <- [kill_sender, kill_receiver, kill_partitions,
                                                     cut]])].

%% One after the other, each at any moment of what goes on, and how many of them hit something.
faults(Faults, Ends, Start, Nodes) ->
    lists:foldl(fun(Fault, {#{a := A} = Now, Hit}) ->
                    receive after rand:uniform(400) -> ok end, % pacing: any moment of a handoff
                    #{moving := Moving} = call(A, weft_ring, status, []),
                    {fault(Fault, Ends, Start, Now), Hit + min(1, Moving)}
                end, {Nodes, 0}, Faults).

fault(kill_sender, {Sender, _}, Start, Nodes) -> killed(Sender, Start, Nodes);
fault(kill_receiver, {_, Receiver}, Start, Nodes) -> killed(Receiver, Start, Nodes);
fault(kill_partitions, {Sender, _}, _Start, Nodes) ->
    ok = call(maps:get(Sender, Nodes), ?MODULE, kill_owned, [weft_vnode_durable]),
    Nodes;
fault(cut, {Sender, Receiver}, _Start, Nodes) ->
    #{Sender := One, Receiver := Other} = Nodes,
    ok = call(One, weft_fault, cut, [weft_test_nodes:name(Other)]),
    receive after 1500 -> ok end, % pacing: how long a fault lasts
    ok = call(One, weft_fault, heal, []),
    Nodes.

kill_owned(Module) ->
    _ = [exit(Pid, kill) || P <- weft_ring:mine(),
                            {ok, Name} <- [weft_vnode_names:name(Module, P)],
                            Pid <- [whereis(Name)], is_pid(Pid)],
    ok.

killed(Name, Start, Nodes) ->
    ok = weft_test_nodes:kill(maps:get(Name, Nodes)),
    Nodes#{Name := Start(Name)}.

%% How often each key was added to, and how often that is not known.
count_each(Seed) ->
    spawn(fun() -> counting_each(rand:seed_s(exsss, Seed), #{}, #{}) end).

counting_each(Rand0, Added, Unknown) ->
    {N, Rand} = rand:uniform_s(?KEYS, Rand0),
    Key = key(N),
    More = fun(Counts) -> maps:update_with(Key, fun(C) -> C + 1 end, 1, Counts) end,
    receive
        {stop, From, Ref} -> From ! {Ref, {Added, Unknown}}
    after 1 ->
        case weft_vnode_durable:add(Key, 1) of
            {ok, _} -> counting_each(Rand, More(Added), Unknown);
            {error, Reason} ->
                receive after 50 -> ok end, % pacing: a client that has an error waits a little
                counting_each(Rand, Added, case is_nothing_done(Reason) of
                                               true -> Unknown;
                                               false -> More(Unknown)
                                           end)
        end
    end.

%% As the guide says, and nobody was there to do anything if there was no vnode.
is_nothing_done(Reason) ->
    lists:member(Reason, [overload, not_owner, moved, no_ring, no_vnode]).

durable(Name, Round, Config) ->
    Dir = filename:join([?config(priv_dir, Config), "durable", integer_to_list(Round), Name]),
    start(Name, [{dir, filename:join(Dir, "ring")},
                 {vnodes, [{weft_vnode_durable, #{dir => filename:join(Dir, "data")}}]}],
          [{faults, true}, {resume_timeout_ms, 800}, {keepalive_ms, 200},
           {link_timeout_ms, 1500}], Config).

%% --- two modules ------------------------------------------------------------------------------

%% The next owner reads nothing of the second module for a while. The first one serves meanwhile.
%% Then the process of the ring of that owner dies.
modules_are_given_together(Config) ->
    [A, B] = Refs = [start(Name, [{vnodes, [my_counters, weft_vnode_pairs]}], Config)
                     || Name <- [a, b]],
    ok = call(A, weft_ring, create, []),
    Modules = [my_counters, weft_vnode_pairs],
    Add = fun(Module, Value) ->
              [{ok, Value} = call(A, Module, add, [key(N), 1]) || N <- lists:seq(1, ?KEYS)]
          end,
    _ = [Add(Module, 1) || Module <- Modules],
    ok = call(B, weft_ring, join, [weft_test_nodes:name(A)]),
    weft_test_nodes:until(fun() -> is_map(call(B, weft_ring, status, [])) end),
    Held = [Name || P <- lists:seq(0, ?PARTITIONS - 1),
                    {ok, Name} <- [call(B, weft_vnode_names, name, [weft_vnode_pairs, P])],
                    {ok, started} =:= call(B, weft_vnodes, start,
                                           [{weft_vnode_pairs, P}, weft_test_nodes:name(B)])],
    ?assertEqual(?PARTITIONS, length(Held)),
    _ = [ok = call(B, sys, suspend, [Name]) || Name <- Held],
    weft_test_nodes:until(fun() -> changed(A, B, join) end),
    %% There are two handoffs at a time.
    weft_test_nodes:until(fun() -> length([Name || Name <- Held, is_asked(B, Name)]) =:= 2 end),
    _ = Add(my_counters, 2),
    _ = [ok = call(B, sys, resume, [Name]) || Name <- Held],
    _ = [Add(Module, Value) || {Module, Value} <- [{my_counters, 3}, {weft_vnode_pairs, 2}]],
    the_ring_outlives_its_process(A, B),
    _ = [Add(Module, Value) || {Module, Value} <- [{my_counters, 4}, {weft_vnode_pairs, 3}]],
    ok = staged(A, B, leave),
    settled(Refs, A),
    ?assertEqual([{ok, 4 * ?KEYS}, {ok, 3 * ?KEYS}],
                 [call(A, Module, sum, []) || Module <- Modules]),
    ?assertEqual([], call(A, weft_vnode_pairs, uneven, [])).

%% By a former owner, for the handoff.
is_asked(Ref, Name) ->
    Pid = call(Ref, erlang, whereis, [Name]),
    {messages, Messages} = call(Ref, erlang, process_info, [Pid, messages]),
    [] =/= [asked || {weft_vnode, receiver, _, _} <- Messages].

%% Without a directory. The node has what it had, and hands it on.
the_ring_outlives_its_process(A, B) ->
    Half = ?PARTITIONS div 2,
    weft_test_nodes:until(fun() ->
                              [Half, Half] =:= [length(call(Ref, weft_ring, mine, []))
                                                || Ref <- [A, B]]
                                  andalso length(lists:usort([call(Ref, weft_ring, status, [])
                                                              || Ref <- [A, B]])) =:= 1
                          end),
    Seen = fun() ->
               {[{call(Ref, weft_ring, status, []), call(Ref, weft_ring, mine, [])}
                 || Ref <- [A, B]],
                lists:sort(call(B, supervisor, which_children, [weft_vnode_sup]))}
           end,
    Before = Seen(),
    Former = call(B, erlang, whereis, [weft_ring_server]),
    true = call(B, erlang, exit, [Former, kill]),
    weft_test_nodes:until(fun() ->
                              Now = call(B, erlang, whereis, [weft_ring_server]),
                              is_pid(Now) andalso Now =/= Former
                          end),
    ?assertEqual(Before, Seen()).

%% --- overload ---------------------------------------------------------------------------------

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
    %% Or more: each second it has something to do by itself.
    weft_test_nodes:until(fun() -> process_info(whereis(Name), message_queue_len)
                                       >= {message_queue_len, 10} end),
    ok = sys:resume(Name),
    [receive {'DOWN', Ref, process, _, Answer} -> Answer end || {_, Ref} <- Callers].

%% --- nodes ------------------------------------------------------------------------------------

key(N) -> integer_to_binary(N).

start(Name, Given, Config) -> start(Name, Given, [], Config).

start(Name, Given, Weft, Config) ->
    Others = [{partitions, ?PARTITIONS}, {n_val, 1}, {sync_ms, 300}, {handoff_items, 3},
              {handoff_pace_ms, 20}],
    Environment = Given ++ [Pair || {Key, _} = Pair <- Others, not lists:keymember(Key, 1, Given)],
    Args = lists:append([["-pa", Dir] || Dir <- [?config(example, Config)
                                                 | [weft_test_nodes:ebin(Module)
                                                    || Module <- [?MODULE, weft_ring,
                                                                  weft_test_nodes]]]])
        ++ lists:append([["-weft_ring", atom_to_list(Key), lists:flatten(io_lib:format("~p", [V]))]
                         || {Key, V} <- Environment]),
    Settings = #{args => Args ++ ["-kernel", "prevent_overlapping_partitions", "false"],
                 config => Weft},
    Ref = weft_test_nodes:start(Name, Settings, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_ring]),
    Ref.

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 20000).
