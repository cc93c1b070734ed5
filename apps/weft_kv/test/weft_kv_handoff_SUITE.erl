%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes join and leave while clients read and write: no key is lost, and no request has an
%% error. So it is in a store, and in the cache of the guide as it is written there. FULL=1: from
%% four nodes to eight and back, with more keys, three times in memory and three times on disk, and
%% how long requests take beside handoffs and without them.
%%
%% Each client writes keys of its own and reads those that were acknowledged. In the store half of
%% the clients are on its nodes, and the others on a node outside, with `weft_kv_client'. Before any
%% time is taken all nodes run, have loaded their code, are connected, and have asked to join. So
%% the times with and without handoffs are those of the same nodes, and between a commit and the end
%% of the last handoff there is nothing but what the commit has caused. In long all times are in a
%% file, of which the log has the name, and the machine in another one beside it.
-module(weft_kv_handoff_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([nodes_join_and_leave_under_load/1, nodes_join_and_leave_under_load_on_disk/1,
         a_cache_moves_under_load/1]).
-export([loaded/0, clients/2, phase/1, counts/0, stop/0, stop_at_once/0, check/1, lister/1,
         listed/0]).

-define(LOOK_MS, 200).
-define(CLIENT, things_client).
%% How many times as long the p99 of requests may be while partitions move: in the median of the
%% repetitions, and in each of them, as a machine may have other things to do.
-define(SLOWER_MEDIAN_MAX, 2).
-define(SLOWER_MAX, 4).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 3; _ -> 40 end}}].

all() ->
    [nodes_join_and_leave_under_load, a_cache_moves_under_load]
        ++ [nodes_join_and_leave_under_load_on_disk || is_long()].

is_long() -> os:getenv("FULL") =/= false.

init_per_suite(Config) ->
    _ = [ok = weft_report_record:write_environment(
                ?config(priv_dir, Config),
                weft_bench_environment:gather([]))
         || is_long()],
    weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

nodes_join_and_leave_under_load(Config) -> under_load(memory, Config).

nodes_join_and_leave_under_load_on_disk(Config) -> under_load(disk, Config).

under_load(Where, Config) ->
    #{repetitions := Repetitions} = Size = size_of_test(os:getenv("FULL")),
    Slower = [measured(Where, Repetition, Size, Config) || Repetition <- lists:seq(1, Repetitions)],
    [?assertMatch({_, _, _, Times} when Times =< ?SLOWER_MAX, {Where, Repetition, Phase, Times})
     || is_long(), {Repetition, Phases} <- lists:enumerate(Slower), {Phase, Times} <- Phases],
    [?assertMatch({_, _, Times} when Times =< ?SLOWER_MEDIAN_MAX,
                  {Where, Phase, weft_report_statistics:median(
                                   [proplists:get_value(Phase, Phases) || Phases <- Slower])})
     || is_long(), Phase <- [joining, leaving]].

%% How many times as long requests took as without handoffs, while nodes joined and while they left.
measured(Where, Repetition, #{stay := Stay, come := Come} = Size, Config) ->
    All = [A | _] = [start(Name, store(Where, Name, Config), Config) || Name <- Stay ++ Come],
    {Staying, Coming} = lists:split(length(Stay), All),
    ok = call(A, weft_ring, create, []),
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Ref <- tl(All)],
    ok = staged(A, tl(Staying), join),
    ok = committed(A, length(Staying)),
    ok = staged(A, Coming, join),
    weft_test_nodes:until(fun() -> lists:all(fun(Ref) -> is_connected(Ref, All) end, All) end),
    #{clients := Clients} = Size,
    Outside = weft_kv_test_outside:start(?CLIENT, #{args => weft_kv_test_args:args(?MODULE, [])},
                                         Staying, Config),
    Using = [Outside | Staying],
    ok = filled([{Outside, Size#{clients => Clients * length(Staying), through => ?CLIENT}}
                 | [{Ref, Size} || Ref <- Staying]]),
    Alone = during(alone, All, Using, fun() -> looked(A, Size) end),
    Joining = during(joining, All, Using, fun() -> committed(A, length(All)) end),
    ok = agreed(All),
    Together = during(together, All, Using, fun() -> looked(A, Size) end),
    ok = staged(A, Coming, leave),
    Leaving = during(leaving, All, Using, fun() -> committed(A, length(Staying)) end),
    ok = agreed(Staying),
    Said = [call(Ref, ?MODULE, stop, [], 120000) || Ref <- Using],
    ok = told({Where, Repetition}, [Alone, Joining, Together, Leaving], [A | Coming], Said, Config),
    ok = weft_test_nodes:stop_all(),
    _ = file:del_dir_r(dir(Config)),
    [{Phase, p99_us(Phase, Said) / p99_us(Beside, Said)}
     || {Phase, Beside} <- [{joining, alone}, {leaving, together}]].

store(Where, Name, Config) ->
    Dir = filename:join(dir(Config), atom_to_list(Name)),
    Files = case Where of
                memory -> [{weft_ring, vnodes, [weft_kv_vnode]}];
                disk -> [{weft_ring, dir, filename:join(Dir, "ring")},
                         {weft_ring, vnodes,
                          [{weft_kv_vnode, #{dir => filename:join(Dir, "kv")}}]}]
            end,
    [{weft_ring, partitions, 32}, {weft_ring, sync_ms, 300},
     {weft_kv, buckets, #{things => #{n => 3, nodes => 2, retries => 10}}} | Files].

dir(Config) -> filename:join(?config(priv_dir, Config), "disk").

%% Without `retries', and a read asks for one answer. Clients call on all nodes: on the one that
%% leaves until it has left. Then that one is ended, and is not missed.
a_cache_moves_under_load(Config) ->
    Size = #{bucket => pages, clients => 3, keys => 60, value_bytes => 100, pause_ms => 1,
             steady_ms => 400, through => store},
    All = [A, B, C] = [start(Name, cache_of_the_guide(Name, Config), Config) || Name <- [a, b, c]],
    ok = call(A, weft_ring, create, []),
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Ref <- [B, C]],
    ok = staged(A, [B], join),
    ok = committed(A, 2),
    weft_test_nodes:until(fun() -> lists:all(fun(Ref) -> is_connected(Ref, All) end, All) end),
    ok = staged(A, [C], join),
    ok = agreed(All),
    ok = filled([{Ref, Size} || Ref <- All]),
    ok = call(B, ?MODULE, lister, [first_keys(All, Size)]),
    Joining = during(joining, All, All, fun() -> committed(A, 3) end),
    ok = agreed(All),
    ?assertEqual([], lacking(C, first_keys(All, Size))),
    ok = staged(A, [C], leave),
    Leaving = during(leaving, All, All, fun() -> left(A, C) end),
    Lists = call(B, ?MODULE, listed, []),
    OfC = call(C, ?MODULE, stop_at_once, []),
    ok = weft_test_nodes:kill(C),
    Ended = during(ended, [A, B], [A, B], fun() -> looked(A, Size) end),
    Said = [call(A, ?MODULE, check, [OfC], 60000)
            | [call(Ref, ?MODULE, stop, [], 60000) || Ref <- [A, B]]],
    ct:pal("~p~n~p~n~b lists of all keys",
           [[Joining, Leaving, Ended],
            [{Phase, times(Phase, Said)} || Phase <- [joining, leaving, ended]], length(Lists)]),
    ?assertEqual([[]], lists:usort(Lists)),
    [?assertMatch(#{errors := [], lost := []}, One) || One <- Said],
    Keys = lists:append([Names || #{names := Names} <- Said]),
    [?assertEqual([], lacking(Ref, Keys)) || Ref <- [A, B]],
    [?assert(hd(times(Phase, Said)) > 0) || Phase <- [joining, leaving, ended]].

cache_of_the_guide(Name, Config) ->
    {ok, Tokens, _} = erl_scan:string(hd(weft_guide:page("kv.md", "erlang"))),
    {ok, [{weft_ring, Ring}, {weft_kv, Kv}]} = erl_parse:parse_term(Tokens),
    Dir = filename:join([?config(priv_dir, Config), "cache", atom_to_list(Name)]),
    [{weft_ring, Key, Value} || {Key, Value} <- lists:keyreplace(dir, 1, Ring, {dir, Dir})]
        ++ [{weft_kv, Key, Value} || {Key, Value} <- Kv].

%% What all clients had written before anything moved.
first_keys(Refs, #{clients := Clients, keys := Count}) ->
    [key(N, #{name => client_name(weft_test_nodes:name(Ref), Client)})
     || Ref <- Refs, Client <- lists:seq(1, Clients), N <- lists:seq(1, Count)].

lacking(Ref, Keys) -> call(Ref, weft_kv_test_copies, lacking, [pages, Keys]).

left(A, C) ->
    ok = committed(A, 2),
    weft_test_nodes:until(fun() ->
                              #{members := Members} = call(C, weft_ring, status, []),
                              maps:get(weft_test_nodes:name(C), Members) =:= gone
                          end).

filled(Users) ->
    [ok = call(Ref, ?MODULE, clients, [weft_test_nodes:name(Ref), Size]) || {Ref, Size} <- Users],
    weft_test_nodes:until(fun() -> lists:all(fun has_filled/1, Users) end, 300000).

has_filled({Ref, #{clients := Clients, keys := Keys}}) ->
    lists:sum(call(Ref, ?MODULE, counts, [])) >= Clients * Keys.

told({Where, Repetition}, Phases, Handing, Said, Config) ->
    [?assertMatch(#{errors := [], lost := []}, One) || One <- Said],
    Rows = [[Where, Repetition, Phase, LastedMs, ProcessorMs | times(Phase, Said)]
            || {Phase, LastedMs, ProcessorMs} <- Phases],
    File = filename:join(?config(priv_dir, Config), "times.csv"),
    Head = [[data, repetition, phase, lasted_ms, processor_ms, requests, p50_us, p99_us, p999_us,
             longest_us]
            || not filelib:is_regular(File)],
    Text = [[lists:join(",", [io_lib:format("~w", [Value]) || Value <- Row]), $\n]
            || Row <- Head ++ Rows],
    ok = file:write_file(File, Text, [append]),
    Moved = [call(Ref, weft_ring_server, handoffs, []) || Ref <- Handing],
    ct:pal("~b keys, none lost~nhandoffs: ~0p~n~ts:~n~ts",
           [length([Name || #{names := Names} <- Said, Name <- Names]), Moved, File, Text]),
    [?assert(maps:get(done, Handoffs) > 0) || Handoffs <- Moved],
    [?assert(lists:nth(6, Row) > 0) || Row <- Rows],
    ok.

p99_us(Phase, Said) -> lists:nth(3, times(Phase, Said)).

size_of_test(false) ->
    #{bucket => things, stay => [a, b], come => [c], clients => 1, keys => 100, value_bytes => 1000,
      pause_ms => 5, steady_ms => 200, through => store, repetitions => 1};
size_of_test(_Full) ->
    #{bucket => things, stay => [a, b, c, d], come => [e, f, g, h], clients => 1, keys => 1500,
      value_bytes => 10000, pause_ms => 20, steady_ms => 20000, through => store, repetitions => 3}.

%% What clients do from now on belongs to this phase, until it is over: how long that was, and for
%% how long all nodes had a processor, in milliseconds.
during(Phase, All, Staying, What) ->
    [ok = call(Ref, ?MODULE, phase, [Phase]) || Ref <- Staying],
    {SinceMs, BeforeMs} = {erlang:monotonic_time(millisecond), processor_ms(All)},
    ok = What(),
    LastedMs = erlang:monotonic_time(millisecond) - SinceMs,
    UsedMs = processor_ms(All) - BeforeMs,
    [ok = call(Ref, ?MODULE, phase, [between]) || Ref <- Staying],
    {Phase, LastedMs, UsedMs}.

%% A phase without handoffs is looked at as often as one with them.
looked(A, #{steady_ms := Ms}) ->
    looked_until(erlang:monotonic_time(millisecond) + Ms, A).

looked_until(EndMs, A) ->
    receive after ?LOOK_MS -> ok end, % pacing: a phase takes time
    #{moving := 0} = call(A, weft_ring, status, []),
    case erlang:monotonic_time(millisecond) >= EndMs of
        true -> ok;
        false -> looked_until(EndMs, A)
    end.

%% User and system time, which Linux counts in hundredths of a second (proc(5), stat); 0 elsewhere.
processor_ms(Refs) ->
    10 * lists:sum([ticks(file:read_file("/proc/" ++ Pid ++ "/stat")) || #{os_pid := Pid} <- Refs]).

ticks({ok, Stat}) ->
    [_, AfterName] = string:split(Stat, ") ", trailing),
    Fields = string:split(AfterName, " ", all),
    binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields));
ticks({error, _}) ->
    0.

%% The number of requests, and their p50, p99, p999 and longest time in microseconds.
times(Phase, Said) ->
    case lists:sort(lists:append([maps:get(Phase, Times, []) || #{times := Times} <- Said])) of
        [] -> [0, 0, 0, 0, 0];
        Us ->
            Count = length(Us),
            [Count | [lists:nth(max(1, ceil(Count * Part)), Us) || Part <- [0.5, 0.99, 0.999, 1]]]
    end.

%% --- clients, on the nodes --------------------------------------------------------------------

clients(Node, #{clients := Count} = Size) ->
    ok = persistent_term:put(?MODULE, before),
    lists:foreach(fun(N) ->
                      State = (maps:with([bucket, keys, value_bytes, pause_ms, through], Size))#{
                                name => client_name(Node, N), last => 0, errors => [], lost => [],
                                times => #{}},
                      true = register(named(N), spawn(fun() -> client(State) end))
                  end, lists:seq(1, Count)),
    persistent_term:put({?MODULE, count}, Count).

client_name(Node, N) -> iolist_to_binary(io_lib:format("~s ~b ", [Node, N])).

named(N) -> list_to_atom("client_" ++ integer_to_list(N)).

each() -> [named(N) || N <- lists:seq(1, persistent_term:get({?MODULE, count}))].

phase(Phase) -> persistent_term:put(?MODULE, Phase).

counts() -> [ask(Client, count) || Client <- each()].

%% The last thing that they do is to read all that they have written.
stop() -> said([ask(Client, check) || Client <- each()]).

%% Somebody else reads it.
stop_at_once() -> [ask(Client, state) || Client <- each()].

check(States) -> said([checked(State) || State <- States]).

checked(#{last := Last} = State) ->
    lists:foldl(fun(N, S) -> read(N, S) end, State, lists:seq(1, Last)).

said(All) ->
    Times = lists:foldl(fun(#{times := More}, Sum) ->
                            maps:fold(fun(Phase, Us, S) ->
                                          maps:update_with(Phase, fun(Old) -> Us ++ Old end, Us, S)
                                      end, Sum, More)
                        end, #{}, All),
    #{times => Times,
      names => [key(N, State) || #{last := Last} = State <- All, N <- lists:seq(1, Last)],
      errors => lists:append([Errors || #{errors := Errors} <- All]),
      lost => lists:append([Lost || #{lost := Lost} <- All])}.

%% Lists all keys, again and again: the errors, and what of these is not in it.
lister(Keys) ->
    true = register(lister, spawn(fun() -> listing(lists:sort(Keys), []) end)),
    ok.

listed() -> ask(lister, state).

listing(Keys, Found) ->
    receive {state, From, Ref} -> From ! {Ref, Found}
    after 0 ->
        listing(Keys, [case weft_kv:list(pages) of
                           {ok, Listed} -> ordsets:subtract(Keys, lists:sort(Listed));
                           Error -> Error
                       end | Found])
    end.

ask(Client, Question) ->
    Ref = make_ref(),
    Client ! {Question, self(), Ref},
    receive {Ref, Answer} -> Answer after 90000 -> error({no_answer, Client, Question}) end.

%% First it fills, without pauses.
client(#{last := Last, keys := Keys, pause_ms := PauseMs} = State) ->
    Pause = case Last < Keys of true -> 0; false -> PauseMs end,
    receive
        {count, From, Ref} ->
            From ! {Ref, Last},
            client(State);
        {check, From, Ref} -> From ! {Ref, checked(State)};
        {state, From, Ref} -> From ! {Ref, State}
    %% pacing: a client does other things, too
    after Pause ->
        case Last < Keys orelse Last rem 2 =:= rand:uniform(2) - 1 of
            true -> client(wrote(Last + 1, State));
            false -> client(read(rand:uniform(Last), State))
        end
    end.

wrote(N, #{bucket := Bucket, through := Through} = State) ->
    {Us, Result} = timer:tc(fun() -> put(Through, Bucket, key(N, State), value(N, State)) end),
    case Result of
        {ok, _} -> timed(Us, State#{last := N});
        {error, Reason} -> failed({put, Reason}, State)
    end.

read(N, #{bucket := Bucket, through := Through, lost := Lost} = State) ->
    Value = value(N, State),
    Key = key(N, State),
    case timer:tc(fun() -> get(Through, Bucket, Key) end) of
        {Us, {ok, Value, _}} -> timed(Us, State);
        {_, {error, Reason}} when Reason =/= not_found -> failed({get, Reason}, State);
        {_, Other} -> State#{lost := [{Key, Other} | Lost]}
    end.

put(store, Bucket, Key, Value) -> weft_kv:put(Bucket, Key, Value);
put(Client, Bucket, Key, Value) -> weft_kv_client:put(Client, Bucket, Key, Value).

get(store, Bucket, Key) -> weft_kv:get(Bucket, Key);
get(Client, Bucket, Key) -> weft_kv_client:get(Client, Bucket, Key).

failed(What, #{errors := Errors} = State) ->
    State#{errors := [{persistent_term:get(?MODULE), What} | Errors]}.

timed(Us, #{times := Times} = State) ->
    Phase = persistent_term:get(?MODULE),
    State#{times := Times#{Phase => [Us | maps:get(Phase, Times, [])]}}.

key(N, #{name := Name}) -> <<Name/binary, (integer_to_binary(N))/binary>>.

value(N, #{value_bytes := Bytes}) -> <<N:(8 * Bytes)>>.

%% --- nodes ------------------------------------------------------------------------------------

staged(A, Refs, Change) ->
    weft_test_nodes:until(
      fun() ->
          lists:all(fun(Ref) ->
                        Name = weft_test_nodes:name(Ref),
                        call(A, weft_ring, stage, [Name, Change]) =:= ok
                    end, Refs)
      end).

%% The plan is committed, and all has moved to that many owners.
committed(A, Owners) ->
    {ok, Plan} = call(A, weft_ring, plan, []),
    case call(A, weft_ring, commit, [Plan]) of
        ok -> moved(A, Owners, erlang:monotonic_time(millisecond) + 300000);
        %% Somebody else has just asked to join.
        {error, changed} -> committed(A, Owners)
    end.

moved(A, Owners, DeadlineMs) ->
    receive after ?LOOK_MS -> ok end, % pacing: of this very loop
    case call(A, weft_ring, status, []) of
        #{moving := 0, owned := Owned} when map_size(Owned) =:= Owners -> ok;
        #{} ->
            ?assert(erlang:monotonic_time(millisecond) < DeadlineMs),
            moved(A, Owners, DeadlineMs)
    end.

agreed(Refs) ->
    weft_test_nodes:until(fun() ->
                              1 =:= length(lists:usort([call(Ref, weft_ring, status, [])
                                                        || Ref <- Refs]))
                          end).

is_connected(Ref, All) ->
    Others = [weft_test_nodes:name(Other) || Other <- All, Other =/= Ref],
    Others -- call(Ref, erlang, nodes, []) =:= [].

start(Name, Keys, Config) ->
    Args = weft_kv_test_args:args(?MODULE, Keys),
    Ref = weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    ok = call(Ref, ?MODULE, loaded, []),
    Ref.

%% On the node. Or it would load its code in the midst of the first handoff.
loaded() ->
    lists:foreach(fun(Application) ->
                      {ok, Modules} = application:get_key(Application, modules),
                      ok = code:ensure_modules_loaded(Modules)
                  end, [weft, weft_ring, weft_kv]).

call(Ref, Module, Function, Arguments) -> call(Ref, Module, Function, Arguments, 30000).

call(Ref, Module, Function, Arguments, TimeoutMs) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, TimeoutMs).
