%% SPDX-License-Identifier: Apache-2.0
%% @doc A program on a node outside of the ring uses the store: which nodes it asks, and, while
%% nodes die, what is asked again and what is not.
-module(weft_kv_client_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([all_operations_from_another_node/1, nodes_with_a_replica_are_asked/1,
         a_node_dies_with_requests/1, clients_have_no_errors_while_nodes_die_and_return/1,
         bad_options/1]).
-export([begin_client/2, first_asks/3, answers/1, work/1, rest/1, worked/0]).

-define(NAME, things_client).
-define(PARTITIONS, 8).
%% Of a request of a client. No node is asked again because a busy machine has held it up.
-define(TIMEOUT_MS, 20000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [bad_options | shared()] ++ [a_node_dies_with_requests, nodes_with_a_replica_are_asked].

%% These leave their store and its client to the next one.
shared() -> [all_operations_from_another_node, clients_have_no_errors_while_nodes_die_and_return].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(Case, Config) ->
    case {lists:member(Case, shared()), ?config(tc_status, Config)} of
        {true, ok} -> ok;
        _ -> weft_test_nodes:stop_all()
    end.

all_operations_from_another_node(Config) ->
    {_, Client} = store(Config),
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
    strong(Do).

strong(Do) ->
    {ok, _} = Do(cas, [?NAME, locks, <<"l">>, not_found, <<"1">>]),
    ?assertEqual({error, {conflict, <<"1">>}},
                 Do(cas, [?NAME, locks, <<"l">>, not_found, <<"2">>])),
    {ok, _} = Do(update, [?NAME, locks, <<"l">>, fun([V]) -> <<V/binary, "+">> end]),
    ?assertMatch({ok, <<"1+">>, _}, Do(get, [?NAME, locks, <<"l">>])),
    {ok, _} = Do(delete, [?NAME, locks, <<"l">>]),
    ?assertEqual({error, not_found}, Do(get, [?NAME, locks, <<"l">>])).

%% The client was told two nodes of four. It finds the others, and one that comes later.
nodes_with_a_replica_are_asked(Config) ->
    {[A, _, _, D] = Four, Client} = store([a, b, c, d], [a, b], new_dir(Config), Config),
    Keys = [integer_to_binary(Number) || Number <- lists:seq(1, 32)],
    Put = fun(Name) -> [{ok, _} = call(Client, weft_kv_client, put, [Name, things, Key, <<"1">>])
                        || Key <- Keys]
          end,
    Firsts = fun() -> frequencies([hd(replicas(Key, A)) || Key <- Keys]) end,
    ?assertEqual(Firsts(), asked(put, Four, fun() -> Put(?NAME) end)),
    %% Each process that reads has a choice of its own.
    Get = fun() -> [{ok, <<"1">>, _} = call(Client, weft_kv_client, get, [?NAME, things, <<"1">>])
                    || _ <- lists:seq(1, 40)]
          end,
    ?assertEqual(lists:usort(replicas(<<"1">>, A)), maps:keys(asked(get, Four, Get))),
    E = store_node(e, filename:dirname(dir(A)), Config),
    grown(A, [E], Four ++ [E]),
    weft_test_nodes:until(fun() ->
                              knows(Client, Four ++ [E])
                                  andalso lists:all(fun(Key) ->
                                                        replicas(Key, A) =:= known(Key, Client)
                                                    end, Keys)
                          end),
    Now = Firsts(),
    ?assert(is_map_key(weft_test_nodes:name(E), Now)),
    ?assertEqual(Now, asked(put, Four ++ [E], fun() -> Put(?NAME) end)),
    ok = weft_test_nodes:kill(D),
    weft_test_nodes:until(fun() -> not is_linked(Client, D) end),
    _ = Put(?NAME),
    #{requests := Requests, to_replica := Requests} = call(Client, weft_kv_client, info, [?NAME]),
    %% One that is to keep to its nodes.
    Named = [weft_test_nodes:node_name(Name) || Name <- [a, b]],
    ok = call(Client, ?MODULE, begin_client, [kept, #{nodes => Named, discover => false,
                                                      timeout_ms => ?TIMEOUT_MS}]),
    Info = fun() -> call(Client, weft_kv_client, info, [kept]) end,
    weft_test_nodes:until(fun() -> maps:get(partitions, Info()) =:= ?PARTITIONS end),
    _ = Put(kept),
    ?assertMatch(#{nodes := Named, connected := Named, requests := 32}, Info()).

%% How many requests of this kind each node did meanwhile, as it counts them.
asked(Kind, Refs, Do) ->
    Counts = fun() ->
                 [begin
                      #{requests := #{Kind := Count}} = call(Ref, weft_kv_stats, read, []),
                      Count
                  end || Ref <- Refs]
             end,
    Before = Counts(),
    _ = Do(),
    maps:from_list([{weft_test_nodes:name(Ref), After - Count}
                    || {Ref, After, Count} <- lists:zip3(Refs, Counts(), Before), After > Count]).

frequencies(Nodes) ->
    maps:from_list([{Node, length([N || N <- Nodes, N =:= Node])} || Node <- lists:usort(Nodes)]).

%% As the node of the store sees it, and as the client does.
replicas(Key, Ref) ->
    {ok, Places} = call(Ref, weft_ring, primaries, [{<<"things">>, Key}, 3]),
    lists:uniq([Node || {_, Node, _} <- Places]).

known(Key, Client) ->
    #{copies := Copies} = call(Client, weft_kv_client_links, config, [?NAME]),
    call(Client, weft_kv_client_ring, replicas, [?NAME, Copies, things, Key]).

%% Node a stands still with a request, and then dies. Nobody can know what it has done.
a_node_dies_with_requests(Config) ->
    {[A, B, C], Client} = store(Config),
    Do = fun(Function, Arguments) -> call(Client, weft_kv_client, Function, Arguments) end,
    [Old, New, Gone] = [key(Word, things, A) || Word <- ["old", "new", "gone"]],
    Page = key("new", pages, A),
    [{ok, _} = Do(put, [?NAME, things, Key, <<"1">>]) || Key <- [Old, Gone]],
    {ok, _} = Do(put, [?NAME, locks, <<"old">>, <<"1">>]),
    ok = weft_test_nodes:pause(A),
    [ok = call(Client, ?MODULE, first_asks, [weft_test_nodes:name(A), Number, Request])
     || {Number, Request} <-
            [{1, {get, [things, Old]}}, {2, {put, [things, New, <<"1">>]}},
             {3, {delete, [things, Gone]}}, {4, {put, [pages, Page, <<"1">>]}},
             {5, {cas, [locks, <<"old">>, <<"1">>, <<"2">>]}}]],
    #{repeated := RepeatedBefore, failed := FailedBefore} = Do(info, [?NAME]),
    ok = weft_test_nodes:kill(A),
    Answers = call(Client, ?MODULE, answers, [5]),
    Unknown = {error, {unknown, {nodedown, weft_test_nodes:name(A)}}},
    ?assertMatch(#{1 := {ok, <<"1">>, _}, 2 := {ok, _}, 3 := {ok, _}, 4 := Unknown, 5 := Unknown},
                 Answers),
    ?assertMatch({ok, <<"1">>, _}, Do(get, [?NAME, things, New])),
    ?assertEqual({error, not_found}, Do(get, [?NAME, things, Gone])),
    ?assertEqual({error, not_found}, Do(get, [?NAME, pages, Page])),
    %% Each of the five was sent once more at least, though nodes refused two of them.
    #{repeated := Repeated, failed := Failed} = Do(info, [?NAME]),
    ?assertMatch({true, 2}, {Repeated - RepeatedBefore >= 5, Failed - FailedBefore}),
    %% Both of the others say that there are too few.
    ?assertMatch({error, {too_few, _}}, Do(get, [?NAME, things, New, #{pr => 3, retries => 0}])),
    ?assertEqual(Repeated + 2, map_get(repeated, Do(info, [?NAME]))),
    %% Without the store a node is no use, and says so.
    ok = call(B, application, stop, [weft_kv]),
    ?assertMatch({ok, <<"1">>, _}, Do(get, [?NAME, things, New, #{r => 1}])),
    [ok = weft_test_nodes:kill(Ref) || Ref <- [B, C]],
    weft_test_nodes:until(fun() -> maps:get(connected, Do(info, [?NAME])) =:= [] end),
    ?assertMatch({error, {no_node, [_, _, _]}},
                 Do(put, [?NAME, things, New, <<"1">>, #{timeout_ms => 300}])).

%% A key whose writes go to this node first, as its replica there is the first one.
key(Word, Bucket, Ref) ->
    {Node, InBytes} = {weft_test_nodes:name(Ref), atom_to_binary(Bucket)},
    hd([Key || Number <- lists:seq(1, 1000),
               Key <- [iolist_to_binary([Word, " ", integer_to_list(Number)])],
               {ok, [{_, First, _}]} <- [call(Ref, weft_ring, primaries, [{InBytes, Key}, 1])],
               First =:= Node]).

%% They get, put and update all the time, while one node after the other is killed and returns.
clients_have_no_errors_while_nodes_die_and_return(Config) ->
    {[_, B, C], Client} = store(Config),
    #{repeated := RepeatedBefore} = call(Client, weft_kv_client, info, [?NAME]),
    ok = call(Client, ?MODULE, work, [6]),
    Done = fun() -> call(Client, ?MODULE, worked, []) end,
    lists:foreach(fun({Name, Ref}) ->
                      more(Done, 100),
                      Dir = dir(Ref),
                      ok = weft_test_nodes:kill(Ref),
                      more(Done, 100),
                      New = store_node(Name, filename:dirname(Dir), Config),
                      weft_test_nodes:until(fun() -> is_linked(Client, New) end),
                      more(Done, 100),
                      ok = call(Client, ?MODULE, rest, [true]),
                      weft_test_nodes:until(fun() -> has_all(New) end, 60000),
                      ok = call(Client, ?MODULE, rest, [false])
                  end, [{b, B}, {c, C}]),
    #{errors := Errors, done := Count} = Done(),
    ok = call(Client, ?MODULE, rest, [for_good]),
    #{repeated := Repeated} = Info = call(Client, weft_kv_client, info, [?NAME]),
    ct:pal("~b operations, ~p", [Count, Info]),
    ?assertEqual([], Errors),
    ?assert(Repeated > RepeatedBefore).

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
             {#{nodes => [a | b]}, {bad_option, {nodes, [a | b], distinct_nodes}}},
             {#{nodes => [a], tries => 11}, {bad_option, {tries, 11, {from, 1, to, 10}}}},
              {#{nodes => [a], discover => no},
              {bad_option, {discover, no, {true, 'or', false}}}},
             {#{nodes => [a], timeout => 1}, {unknown_option, timeout}}]],
    ?assertError({no_client, ?NAME}, weft_kv_client:get(?NAME, things, <<"k">>)),
    %% And of each request; nobody is asked.
    {ok, _} = weft_kv_client:start_link(?NAME, #{nodes => [node()]}),
    Get = fun(Given) -> weft_kv_client:get(?NAME, things, <<"k">>, Given) end,
    Update = fun(Given) ->
                 weft_kv_client:update(?NAME, things, <<"k">>, fun(_) -> <<>> end, Given)
             end,
    [?assertEqual({error, {bad_option, {timeout_ms, Wrong, {from, 1}}}},
                  Request(#{timeout_ms => Wrong}))
     || Wrong <- [infinity, 0, -1, 1.5], Request <- [Get, Update]],
    ?assertMatch(#{requests := 0}, weft_kv_client:info(?NAME)),
    ok = weft_kv_client:stop(?NAME).

%% --- nodes ------------------------------------------------------------------------------------

%% Three nodes of a store, and one that is a client of it: those of the case before, if it has left
%% them.
store(Config) ->
    Names = [a, b, c],
    Start = fun() ->
                {Refs, Client} = store(Names, Names, new_dir(Config), Config),
                [Client | Refs]
            end,
    [Client | Refs] = weft_test_nodes:shared([client | Names], Start),
    {Refs, Client}.

new_dir(Config) ->
    filename:join(?config(priv_dir, Config), integer_to_list(erlang:unique_integer([positive]))).

%% The client is told some of the nodes. The first three vote.
store(Names, Told, Dir, Config) ->
    [First | Others] = Refs = [store_node(Name, Dir, Config) || Name <- Names],
    ok = call(First, weft_ring, create, []),
    grown(First, Others, Refs),
    Client = start(client, [], Config),
    ok = call(Client, ?MODULE, begin_client,
              [?NAME, #{nodes => [weft_test_nodes:node_name(Name) || Name <- Told],
                        timeout_ms => ?TIMEOUT_MS}]),
    weft_test_nodes:until(fun() -> knows(Client, Refs) end),
    weft_test_nodes:until(fun() -> lists:all(fun is_voting/1, lists:sublist(Refs, 3)) end),
    {Refs, Client}.

is_voting(Ref) -> voting =:= call(Ref, weft_kv_strong_acceptor, status, [locks, 0]).

grown(First, New, Refs) ->
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(First)]) || Ref <- New],
    [weft_test_nodes:until(fun() ->
                               ok =:= call(First, weft_ring, stage,
                                           [weft_test_nodes:name(Ref), join])
                           end) || Ref <- New],
    {ok, Plan} = call(First, weft_ring, plan, []),
    ok = call(First, weft_ring, commit, [Plan]),
    weft_test_nodes:until(fun() -> is_settled(Refs) end, 60000).

%% The client is connected to all, and knows the ring.
knows(Client, Refs) ->
    #{connected := Connected, partitions := Count} = call(Client, weft_kv_client, info, [?NAME]),
    Count =:= ?PARTITIONS
        andalso lists:sort(Connected) =:= lists:sort([weft_test_nodes:name(Ref) || Ref <- Refs]).

is_settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    #{moving := Moving, owned := Owned} = hd(Statuses),
    length(lists:usort(Statuses)) =:= 1 andalso Moving =:= 0
        andalso map_size(Owned) =:= length(Refs).

%% Where a node has its files.
dir(Ref) ->
    {ok, Ring} = call(Ref, application, get_env, [weft_ring, dir]),
    filename:dirname(Ring).

store_node(Name, DirOfAll, Config) ->
    Dir = filename:join(DirOfAll, Name),
    Voters = [weft_test_nodes:node_name(Voter) || Voter <- [a, b, c]],
    Buckets = #{things => #{n => 3, nodes => 2, retries => 10},
                pages => #{n => 3, siblings => false},
                locks => #{consistency => strong, voters => Voters, partitions => 1,
                           dir => filename:join(Dir, "strong")}},
    Ref = start(Name, [{weft_ring, dir, filename:join(Dir, "ring")},
                       {weft_ring, partitions, ?PARTITIONS}, {weft_ring, sync_ms, 300},
                       {weft_ring, vnodes, [weft_kv_vnode]},
                       {weft_kv, buckets, Buckets}, {weft_kv, entropy_ms, 10}], Config),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

start(Name, Keys, Config) ->
    Args = weft_kv_test_args:args(?MODULE, Keys),
    weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)).

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 30000).

%% --- on the node of the client ----------------------------------------------------------------

begin_client(Name, Options) ->
    Self = self(),
    Pid = spawn(fun() ->
                    {ok, _} = weft_kv_client:start_link(Name, Options),
                    persistent_term:put(?MODULE, ets:new(answers, [public])),
                    Self ! {self(), begun},
                    receive stop -> ok end
                end),
    receive {Pid, begun} -> ok end.

%% A process that begins with this node asks, and waits for the answer when this returns.
first_asks(Node, Number, {Function, [Bucket, Key | _] = Arguments}) ->
    Self = self(),
    Kind = case lists:member(Function, [get, delete]) of true -> read; false -> write end,
    Pid = spawn(fun() ->
                    #{nodes := Nodes, copies := Copies} = weft_kv_client_links:config(?NAME),
                    Replicas = weft_kv_client_ring:replicas(?NAME, Copies, Bucket, Key),
                    Order = weft_kv_client_core:order(Kind, Replicas, [Nodes],
                                                      erlang:phash2(self())),
                    Self ! {self(), hd(Order) =:= Node},
                    [answered(Number, apply(weft_kv_client, Function, [?NAME | Arguments]))
                     || hd(Order) =:= Node]
                end),
    receive
        {Pid, false} -> first_asks(Node, Number, {Function, Arguments});
        {Pid, true} ->
            weft_test_nodes:until(fun() ->
                                      {current_function, {erpc, call, 5}}
                                          =:= process_info(Pid, current_function)
                                  end)
    end.

answered(Number, Answer) -> ets:insert(persistent_term:get(?MODULE), {Number, Answer}).

answers(Count) ->
    Answers = fun() ->
                  [Answer || {Number, _} = Answer <- ets:tab2list(persistent_term:get(?MODULE)),
                             is_integer(Number)]
              end,
    weft_test_nodes:until(fun() -> length(Answers()) =:= Count end),
    maps:from_list(Answers()).

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
    weft_test_nodes:until(fun() -> ets:lookup_element(Table, rest, 2) =/= true end, 60000),
    ets:lookup_element(Table, rest, 2) =:= for_good orelse works(Worker, N, Table).

works(Worker, N, Table) ->
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
