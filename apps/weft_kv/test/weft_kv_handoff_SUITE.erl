%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes join and leave while clients read and write: no key is lost, and no request that may
%% be tried again (`retries') has an error. FULL=1: from four nodes to eight and back, with more
%% keys, and how long requests take beside handoffs and without them.
%%
%% Each client writes keys of its own and reads those that were acknowledged. All nodes run from the
%% start, so that what they cost is in both times that are compared. In long it is done twice, with
%% handoffs as fast as they are by default and slower ones (`handoff_pace_ms').
-module(weft_kv_handoff_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([nodes_join_and_leave_under_load/1]).
-export([clients/2, phase/1, counts/0, stop/0]).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 3; _ -> 20 end}}].

all() -> [nodes_join_and_leave_under_load].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

nodes_join_and_leave_under_load(Config) ->
    #{paces_ms := Paces} = Size = size_of_test(os:getenv("FULL")),
    lists:foreach(fun(PaceMs) ->
                      round(PaceMs, Size, Config),
                      ok = weft_test_nodes:stop_all()
                  end, Paces).

round(PaceMs, #{stay := Stay, come := Come} = Size, Config) ->
    Staying = [A | _] = [start(Name, PaceMs, Config) || Name <- Stay],
    Coming = [start(Name, PaceMs, Config) || Name <- Come],
    ok = call(A, weft_ring, create, []),
    changed(A, tl(Staying), Staying, join),
    #{clients := Clients, keys := Keys} = Size,
    [ok = call(Ref, ?MODULE, clients, [weft_test_nodes:name(Ref), Size]) || Ref <- Staying],
    weft_test_nodes:until(fun() -> lists:min(written(Staying)) >= Clients * Keys end, 300000),
    Phases = [during(alone, Staying, Size),
              during(joining, Staying, fun() -> changed(A, Coming, Staying ++ Coming, join) end),
              during(together, Staying, Size),
              during(leaving, Staying, fun() -> changed(A, Coming, Staying, leave) end)],
    Said = [call(Ref, ?MODULE, stop, [], 120000) || Ref <- Staying],
    Errors = lists:append([Errors || #{errors := Errors} <- Said]),
    ?assertEqual([], Errors),
    ?assertEqual([], lists:append([Lost || #{lost := Lost} <- Said])),
    Moved = [call(Ref, weft_ring_server, handoffs, []) || Ref <- Staying],
    Times = [{Phase, (times(Phase, Said))#{lasted_ms => Ms}} || {Phase, Ms} <- Phases],
    ct:pal("handoff_pace_ms ~b: ~b keys, none lost, ~b requests without an error~n"
           "handoffs: ~0p~n~p",
           [PaceMs, lists:sum([Count || #{keys := Count} <- Said]),
            lists:sum([Count || {_, #{requests := Count}} <- Times]), Moved, Times]),
    ?assert(lists:sum([Done || #{done := Done} <- Moved]) > 0),
    [?assert(Count > 0) || {_, #{requests := Count}} <- Times].

size_of_test(false) ->
    #{stay => [a, b], come => [c], clients => 2, keys => 100, value_bytes => 1000,
      pause_ms => 5, steady_ms => 200, paces_ms => [10]};
size_of_test(_Full) ->
    #{stay => [a, b, c, d], come => [e, f, g, h], clients => 2, keys => 1500,
      value_bytes => 10000, pause_ms => 20, steady_ms => 15000, paces_ms => [10, 50]}.

%% What clients do from now on belongs to this phase, until it is over.
during(Phase, Staying, What) ->
    [ok = call(Ref, ?MODULE, phase, [Phase]) || Ref <- Staying],
    SinceMs = erlang:monotonic_time(millisecond),
    ok = case What of
             #{steady_ms := Ms} -> receive after Ms -> ok end; % pacing: a phase takes time
             _ -> What()
         end,
    LastedMs = erlang:monotonic_time(millisecond) - SinceMs,
    [ok = call(Ref, ?MODULE, phase, [between]) || Ref <- Staying],
    {Phase, LastedMs}.

%% In microseconds.
times(Phase, Said) ->
    Us = lists:sort(lists:append([maps:get(Phase, Times, []) || #{times := Times} <- Said])),
    Count = length(Us),
    At = fun(Part) -> lists:nth(max(1, ceil(Count * Part)), Us) end,
    case Count of
        0 -> #{requests => 0};
        _ -> #{requests => Count, p50 => At(0.5), p99 => At(0.99), p999 => At(0.999),
               longest => lists:last(Us)}
    end.

written(Refs) -> [lists:sum(call(Ref, ?MODULE, counts, [])) || Ref <- Refs].

%% --- clients, on the nodes --------------------------------------------------------------------

clients(Node, #{clients := Count, keys := Keys, value_bytes := Bytes, pause_ms := PauseMs}) ->
    ok = persistent_term:put(?MODULE, before),
    lists:foreach(fun(N) ->
                      Name = iolist_to_binary(io_lib:format("~s ~b ", [Node, N])),
                      State = #{name => Name, keys => Keys, value_bytes => Bytes,
                                pause_ms => PauseMs, last => 0, errors => [], lost => [],
                                times => #{}},
                      true = register(named(N), spawn(fun() -> client(State) end))
                  end, lists:seq(1, Count)),
    persistent_term:put({?MODULE, count}, Count).

named(N) -> list_to_atom("client_" ++ integer_to_list(N)).

each() -> [named(N) || N <- lists:seq(1, persistent_term:get({?MODULE, count}))].

phase(Phase) -> persistent_term:put(?MODULE, Phase).

counts() -> [ask(Client, count) || Client <- each()].

%% The last thing that they do is to read all that they have written.
stop() ->
    All = [ask(Client, stop) || Client <- each()],
    Times = lists:foldl(fun(#{times := More}, Sum) ->
                            maps:fold(fun(Phase, Us, S) ->
                                          maps:update_with(Phase, fun(Old) -> Us ++ Old end, Us, S)
                                      end, Sum, More)
                        end, #{}, All),
    #{times => Times, keys => lists:sum([Last || #{last := Last} <- All]),
      errors => lists:append([Errors || #{errors := Errors} <- All]),
      lost => lists:append([Lost || #{lost := Lost} <- All])}.

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
        {stop, From, Ref} ->
            From ! {Ref, lists:foldl(fun(N, S) -> read(N, S) end, State, lists:seq(1, Last))}
    %% pacing: a client does other things, too
    after Pause ->
        case Last < Keys orelse Last rem 2 =:= rand:uniform(2) - 1 of
            true -> client(wrote(Last + 1, State));
            false -> client(read(rand:uniform(Last), State))
        end
    end.

wrote(N, State) ->
    {Us, Result} = timer:tc(fun() -> weft_kv:put(things, key(N, State), value(N, State)) end),
    case Result of
        {ok, _} -> timed(Us, State#{last := N});
        {error, Reason} -> failed({put, Reason}, State)
    end.

read(N, #{lost := Lost} = State) ->
    Value = value(N, State),
    Key = key(N, State),
    case timer:tc(fun() -> weft_kv:get(things, Key) end) of
        {Us, {ok, Value, _}} -> timed(Us, State);
        {_, {error, Reason}} when Reason =/= not_found -> failed({get, Reason}, State);
        {_, Other} -> State#{lost := [{Key, Other} | Lost]}
    end.

failed(What, #{errors := Errors} = State) ->
    State#{errors := [{persistent_term:get(?MODULE), What} | Errors]}.

timed(Us, #{times := Times} = State) ->
    Phase = persistent_term:get(?MODULE),
    State#{times := Times#{Phase => [Us | maps:get(Phase, Times, [])]}}.

key(N, #{name := Name}) -> <<Name/binary, (integer_to_binary(N))/binary>>.

value(N, #{value_bytes := Bytes}) -> <<N:(8 * Bytes)>>.

%% --- nodes ------------------------------------------------------------------------------------

changed(A, Others, Members, Change) ->
    Names = [weft_test_nodes:name(Ref) || Ref <- Others],
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Change =:= join, Ref <- Others],
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Name) ->
                                            call(A, weft_ring, stage, [Name, Change]) =:= ok
                                        end, Names)
                          end),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    weft_test_nodes:until(fun() -> settled(Members) end, 300000).

settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    length(lists:usort(Statuses)) =:= 1 andalso maps:get(moving, hd(Statuses)) =:= 0
        andalso length(Refs) =:= map_size(maps:get(owned, hd(Statuses))).

start(Name, PaceMs, Config) ->
    Bucket = #{n => 3, nodes => 2, retries => 10},
    Keys = [{weft_ring, partitions, 32}, {weft_ring, sync_ms, 300},
            {weft_ring, handoff_pace_ms, PaceMs},
            {weft_ring, vnodes, [weft_kv_vnode]}, {weft_kv, buckets, #{things => Bucket}}],
    Args = lists:append([["-pa", weft_test_nodes:ebin(Module)]
                         || Module <- [?MODULE, weft_ring, weft_kv]])
        ++ ["-kernel", "prevent_overlapping_partitions", "false"]
        ++ lists:append([["-" ++ atom_to_list(App), atom_to_list(Key),
                          lists:flatten(io_lib:format("~0p", [Value]))]
                         || {App, Key, Value} <- Keys]),
    Ref = weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

call(Ref, Module, Function, Arguments) -> call(Ref, Module, Function, Arguments, 30000).

call(Ref, Module, Function, Arguments, TimeoutMs) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, TimeoutMs).
