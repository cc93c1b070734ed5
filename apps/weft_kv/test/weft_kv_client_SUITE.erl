%% SPDX-License-Identifier: Apache-2.0
%% @doc A program on a node outside of the ring uses the store while nodes of it die: what is asked
%% again, and what is not.
-module(weft_kv_client_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([all_operations_from_another_node/1, a_node_dies_with_requests/1,
         clients_have_no_errors_while_nodes_die_and_return/1, bad_options/1]).
-export([begin_client/1, first_asks/2, answers/1, work/1, rest/1, worked/0]).

-define(NAME, things_client).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [all_operations_from_another_node, a_node_dies_with_requests,
     clients_have_no_errors_while_nodes_die_and_return, bad_options].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

init_per_testcase(Case, Config) ->
    [{dir, filename:join(?config(priv_dir, Config), atom_to_list(Case))} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

all_operations_from_another_node(Config) ->
    {Store, Client} = store(Config),
    Do = fun(Function, Arguments) -> call(Client, weft_kv_client, Function, Arguments) end,
    {ok, First} = Do(put, [?NAME, things, <<"k">>, <<"a">>]),
    ?assertEqual({ok, <<"a">>, First}, Do(get, [?NAME, things, <<"k">>])),
    {ok, _} = Do(put, [?NAME, things, <<"k">>, <<"b">>, #{content_type => <<"text/plain">>}]),
    ?assertMatch({siblings, [<<"a">>, <<"b">>], _}, Do(get, [?NAME, things, <<"k">>])),
    {ok, Read, Context} = Do(read, [?NAME, things, <<"k">>, #{r => all}]),
    ?assertEqual([none, <<"text/plain">>], [maps:get(content_type, V, none) || V <- Read]),
    {ok, _} = Do(put, [?NAME, things, <<"k">>, <<"c">>, #{context => Context}]),
    {ok, _} = Do(update, [?NAME, things, <<"k">>, fun erlang:iolist_to_binary/1]),
    ?assertMatch({ok, <<"c">>, _}, Do(get, [?NAME, things, <<"k">>])),
    {ok, _} = Do(delete, [?NAME, things, <<"k">>]),
    ?assertEqual({error, not_found}, Do(get, [?NAME, things, <<"k">>])),
    ?assertEqual({error, unknown_bucket}, Do(get, [?NAME, nothing, <<"k">>])),
    ?assertMatch({error, {bad_option, {timeout_ms, 0, _}}},
                 Do(get, [?NAME, things, <<"k">>, #{timeout_ms => 0}])),
    strong(Do),
    Last = lists:last(Store),
    ok = weft_test_nodes:kill(Last),
    weft_test_nodes:until(fun() -> not is_linked(Client, Last) end),
    ?assertMatch({error, {too_few, _}},
                 Do(get, [?NAME, things, <<"k">>, #{pr => 3, retries => 0}])),
    ?assertMatch(#{repeated := 2}, Do(info, [?NAME])).

strong(Do) ->
    {ok, _} = Do(cas, [?NAME, locks, <<"l">>, not_found, <<"1">>]),
    ?assertEqual({error, {conflict, <<"1">>}},
                 Do(cas, [?NAME, locks, <<"l">>, not_found, <<"2">>])),
    {ok, _} = Do(update, [?NAME, locks, <<"l">>, fun([V]) -> <<V/binary, "+">> end]),
    ?assertMatch({ok, <<"1+">>, _}, Do(get, [?NAME, locks, <<"l">>])),
    {ok, _} = Do(delete, [?NAME, locks, <<"l">>]),
    ?assertEqual({error, not_found}, Do(get, [?NAME, locks, <<"l">>])).

%% Node a stands still with a request, and then dies. Nobody can know what it has done.
a_node_dies_with_requests(Config) ->
    {[A, B, C], Client} = store(Config),
    Do = fun(Function, Arguments) -> call(Client, weft_kv_client, Function, Arguments) end,
    [{ok, _} = Do(put, [?NAME, things, Key, <<"1">>]) || Key <- [<<"old">>, <<"gone">>]],
    {ok, _} = Do(put, [?NAME, locks, <<"old">>, <<"1">>]),
    ok = weft_test_nodes:pause(A),
    [ok = call(Client, ?MODULE, first_asks, [Number, Request])
     || {Number, Request} <-
            [{1, {get, [things, <<"old">>]}}, {2, {put, [things, <<"new">>, <<"1">>]}},
             {3, {delete, [things, <<"gone">>]}}, {4, {put, [pages, <<"new">>, <<"1">>]}},
             {5, {cas, [locks, <<"old">>, <<"1">>, <<"2">>]}}]],
    ok = weft_test_nodes:kill(A),
    Answers = call(Client, ?MODULE, answers, [5]),
    Unknown = {error, {unknown, {nodedown, weft_test_nodes:name(A)}}},
    ?assertMatch(#{1 := {ok, <<"1">>, _}, 2 := {ok, _}, 3 := {ok, _}, 4 := Unknown, 5 := Unknown},
                 Answers),
    ?assertMatch({ok, <<"1">>, _}, Do(get, [?NAME, things, <<"new">>])),
    ?assertEqual({error, not_found}, Do(get, [?NAME, things, <<"gone">>])),
    ?assertEqual({error, not_found}, Do(get, [?NAME, pages, <<"new">>])),
    %% Each of the five was sent once more at least, though nodes refused two of them.
    #{repeated := Repeated, failed := Failed} = Do(info, [?NAME]),
    ?assertMatch({true, 2}, {Repeated >= 5, Failed}),
    %% Without the store a node is no use, and says so.
    ok = call(B, application, stop, [weft_kv]),
    ?assertMatch({ok, <<"1">>, _}, Do(get, [?NAME, things, <<"new">>, #{r => 1}])),
    [ok = weft_test_nodes:kill(Ref) || Ref <- [B, C]],
    weft_test_nodes:until(fun() -> maps:get(connected, Do(info, [?NAME])) =:= [] end),
    ?assertMatch({error, {no_node, [_, _, _]}},
                 Do(put, [?NAME, things, <<"new">>, <<"1">>, #{timeout_ms => 300}])).

%% They get, put and update all the time, while one node after the other is killed and returns.
clients_have_no_errors_while_nodes_die_and_return(Config) ->
    {[_, B, C], Client} = store(Config),
    ok = call(Client, ?MODULE, work, [6]),
    Done = fun() -> call(Client, ?MODULE, worked, []) end,
    lists:foreach(fun({Name, Ref}) ->
                      more(Done, 100),
                      ok = weft_test_nodes:kill(Ref),
                      more(Done, 100),
                      New = store_node(Name, Config),
                      weft_test_nodes:until(fun() -> is_linked(Client, New) end),
                      more(Done, 100),
                      ok = call(Client, ?MODULE, rest, [true]),
                      weft_test_nodes:until(fun() -> has_all(New) end, 60000),
                      ok = call(Client, ?MODULE, rest, [false])
                  end, [{b, B}, {c, C}]),
    #{errors := Errors, done := Count} = Done(),
    #{repeated := Repeated} = Info = call(Client, weft_kv_client, info, [?NAME]),
    ct:pal("~b operations, ~p", [Count, Info]),
    ?assertEqual([], Errors),
    ?assert(Repeated > 0).

more(Done, More) ->
    #{done := Before} = Done(),
    weft_test_nodes:until(fun() -> maps:get(done, Done()) >= Before + More end).

is_linked(Client, Ref) ->
    #{connected := Nodes} = call(Client, weft_kv_client, info, [?NAME]),
    lists:member(weft_test_nodes:name(Ref), Nodes).

%% The node that has lost its copies has them again, or the next one would take the last.
has_all(New) ->
    #{alike := Alike, pairs := Pairs} = call(New, weft_kv_entropy, info, []),
    Pairs > 0 andalso Alike >= Pairs.

bad_options(_Config) ->
    [?assertEqual({error, Error}, weft_kv_client:start_link(?NAME, Options))
     || {Options, Error} <-
            [{#{}, {bad_option, {nodes, missing, distinct_nodes}}},
             {#{nodes => []}, {bad_option, {nodes, [], distinct_nodes}}},
             {#{nodes => [a, a]}, {bad_option, {nodes, [a, a], distinct_nodes}}},
             {#{nodes => [a], tries => 11}, {bad_option, {tries, 11, {from, 1, to, 10}}}},
             {#{nodes => [a], timeout => 1}, {unknown_option, timeout}}]],
    ?assertError({no_client, ?NAME}, weft_kv_client:get(?NAME, things, <<"k">>)).

%% --- nodes ------------------------------------------------------------------------------------

%% Three nodes of a store, and one that is a client of it.
store(Config) ->
    [A, B, C] = Refs = [store_node(Name, Config) || Name <- [a, b, c]],
    ok = call(A, weft_ring, create, []),
    Names = [weft_test_nodes:name(Ref) || Ref <- Refs],
    [ok = call(Ref, weft_ring, join, [hd(Names)]) || Ref <- [B, C]],
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Name) ->
                                            call(A, weft_ring, stage, [Name, join]) =:= ok
                                        end, tl(Names))
                          end),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    weft_test_nodes:until(fun() -> is_settled(Refs) end, 60000),
    Client = start(client, [], Config),
    ok = call(Client, ?MODULE, begin_client, [Names]),
    {Refs, Client}.

is_settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    #{moving := Moving, owned := Owned} = hd(Statuses),
    length(lists:usort(Statuses)) =:= 1 andalso Moving =:= 0
        andalso map_size(Owned) =:= length(Refs).

store_node(Name, Config) ->
    Dir = filename:join(?config(dir, Config), Name),
    Voters = [weft_test_nodes:node_name(Voter) || Voter <- [a, b, c]],
    Buckets = #{things => #{n => 3, nodes => 2, retries => 10},
                pages => #{n => 3, siblings => false},
                locks => #{consistency => strong, voters => Voters, partitions => 1,
                           dir => filename:join(Dir, "strong")}},
    Ref = start(Name, [{weft_ring, dir, filename:join(Dir, "ring")}, {weft_ring, partitions, 8},
                       {weft_ring, sync_ms, 300}, {weft_ring, vnodes, [weft_kv_vnode]},
                       {weft_kv, buckets, Buckets}, {weft_kv, entropy_ms, 10}], Config),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

start(Name, Keys, Config) ->
    Args = weft_kv_test_args:args(?MODULE, Keys),
    weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)).

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 30000).

%% --- on the node of the client ----------------------------------------------------------------

begin_client(Nodes) ->
    Self = self(),
    Pid = spawn(fun() ->
                    {ok, _} = weft_kv_client:start_link(?NAME, #{nodes => Nodes}),
                    persistent_term:put(?MODULE, ets:new(answers, [public])),
                    Self ! {self(), begun},
                    receive stop -> ok end
                end),
    receive {Pid, begun} -> ok end,
    weft_test_nodes:until(fun() -> length(maps:get(connected, weft_kv_client:info(?NAME)))
                                       =:= length(Nodes) end).

%% A process that begins with the first node asks, and waits for the answer when this returns.
first_asks(Number, {Function, Arguments}) ->
    Self = self(),
    Pid = spawn(fun() ->
                    Is = erlang:phash2(self(), 3) =:= 0,
                    Self ! {self(), Is},
                    [answered(Number, apply(weft_kv_client, Function, [?NAME | Arguments])) || Is]
                end),
    receive
        {Pid, false} -> first_asks(Number, {Function, Arguments});
        {Pid, true} ->
            weft_test_nodes:until(fun() ->
                                      {current_function, {erpc, call, 5}}
                                          =:= process_info(Pid, current_function)
                                  end)
    end.

answered(Number, Answer) -> ets:insert(persistent_term:get(?MODULE), {Number, Answer}).

answers(Count) ->
    Table = persistent_term:get(?MODULE),
    weft_test_nodes:until(fun() -> ets:info(Table, size) =:= Count end),
    maps:from_list(ets:tab2list(Table)).

work(Workers) ->
    _ = answered(done, 0),
    ok = rest(false),
    lists:foreach(fun(Worker) ->
                      spawn(fun() -> working(Worker, 3) end)
                  end, lists:seq(1, Workers)).

rest(Is) ->
    _ = answered(rest, Is),
    ok.

working(Worker, N) ->
    Table = persistent_term:get(?MODULE),
    receive after 2 -> ok end, % pacing: a worker does other things, too
    weft_test_nodes:until(fun() -> not ets:lookup_element(Table, rest, 2) end, 60000),
    Key = iolist_to_binary(io_lib:format("~b ~b", [Worker, N div 3])),
    case operation(N rem 3, Key) of
        {error, _} = Error -> ets:insert(Table, {{error, Worker, N}, Error});
        _ -> ets:update_counter(Table, done, 1)
    end,
    working(Worker, N + 1).

operation(0, Key) -> weft_kv_client:put(?NAME, things, Key, <<"1">>);
operation(1, Key) -> weft_kv_client:update(?NAME, things, Key, fun([_ | _]) -> <<"2">> end);
operation(2, Key) ->
    case weft_kv_client:get(?NAME, things, Key) of
        {error, not_found} -> found_later(Key);
        Answer -> Answer
    end.

%% Copies are in memory. If one of the two nodes that acknowledged the write was killed before the
%% third had it, reads that ask the other two nodes miss the last copy, until it is copied again.
found_later(Key) ->
    try
        weft_test_nodes:until(fun() ->
                                  {error, not_found} =/= weft_kv_client:get(?NAME, things, Key)
                              end)
    catch
        _:_ -> {error, lost}
    end.

worked() ->
    Table = persistent_term:get(?MODULE),
    #{done => ets:lookup_element(Table, done, 2),
      errors => [Entry || {{error, _, _}, _} = Entry <- ets:tab2list(Table)]}.
