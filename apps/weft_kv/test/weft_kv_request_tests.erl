%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests that are tried again, with a store of one node, which is this one. Its partition is
%% full, and so refuses writes, until something is deleted. What may be tried again is tested with
%% `weft_kv_coordinator_core'. And a replica that carries out late what it was asked.
-module(weft_kv_request_tests).

-include_lib("eunit/include/eunit.hrl").

%% One fills a partition; what is left of those that cases have deleted does not.
-define(VALUE, <<0:80000>>).
%% The limit of the application, where none is given.
-define(REQUESTS_MAX, 10000).
%% Less than a test may take.
-define(SOON_MS, 20000).
%% That of the bucket `one', and of `box', which is strong.
-define(TIMEOUT_MS, 20000).
%% What the first half of a request takes at least, where that is looked at.
-define(SLOW_MS, 30).

on_one_node_test_() ->
    {setup,
     fun() ->
         Buckets = #{one => #{n => 1, timeout_ms => ?TIMEOUT_MS}, three => #{n => 3},
                     box => #{consistency => strong, n => 1, voters => [node()], partitions => 1,
                              dir => filename:join(weft_kv_one_node:dir(?MODULE), "strong"),
                              timeout_ms => ?TIMEOUT_MS}},
         weft_kv_one_node:started(?MODULE, #{bytes_max => 5000}, Buckets)
     end,
     fun weft_kv_one_node:stopped/1,
     fun(_) -> [{timeout, 60, Test} || Test <- [fun what_a_replica_does_late_is_not_there_twice/0,
                                                fun what_only_one_replica_knows_is_replaced/0,
                                                fun who_makes_up_a_context_replaces_nothing_later/0,
                                                fun an_error_is_told_after_the_last_try/0,
                                                fun a_write_is_tried_until_there_is_room/0,
                                                fun what_a_later_try_did_not_do_hides_nothing/0,
                                                fun a_replica_that_ends_is_not_waited_for/0,
                                                fun one_that_ends_without_a_look_is_asked_again/0,
                                                fun no_more_run_than_may_though_all_come_at_once/0,
                                                fun who_was_killed_does_not_stay_counted/0,
                                                fun one_that_hangs_takes_no_room_from_others/0,
                                                fun what_reads_before_it_writes_has_one_time/0,
                                                fun a_strong_update_has_one_time/0,
                                                fun what_moves_is_tried_again_within_the_timeout/0]]
     end}.

%% It was held up only, and carries out what it was asked when others had done that in its place.
what_a_replica_does_late_is_not_there_twice() ->
    Key = <<"late">>,
    {error, not_found} = weft_kv:get(three, Key),
    {ok, Partition} = weft_ring:partition({<<"three">>, Key}),
    {ok, Vnode} = weft_vnode_names:name(weft_kv_vnode, Partition),
    weft_test_nodes:until(fun() -> is_pid(whereis(Vnode)) end),
    ok = sys:suspend(Vnode),
    {ok, _} = weft_kv:put(three, Key, <<"1">>),
    {ok, <<"1">>, _} = weft_kv:get(three, Key),
    {ok, _} = weft_kv:delete(three, Key),
    ok = sys:resume(Vnode),
    Place = {Partition, node(), primary},
    Read = {read, #{n => 3, evict => false, siblings => true}, primary},
    weft_test_nodes:until(fun() ->
        {ok, {ok, Object}} = weft_vnode:ask(weft_kv_vnode, Place, {Partition, three, Key}, Read,
                                            5000),
        weft_kv_object:siblings(Object) =/= [] andalso weft_kv_object:values(Object) =:= [] end),
    ?assertEqual({error, not_found}, weft_kv:get(three, Key)).

%% The replica that takes a write does not know what its client has read from the last one.
what_only_one_replica_knows_is_replaced() ->
    [begin
         Value = #{value => <<"1">>, written_ms => 0, expires_ms => never},
         Object = weft_kv_object:put(Value, #{}, <<"former">>, weft_kv_object:new()),
         {_, _, Last} = places(Key),
         {ok, {ok, Object}} = merged(Last, Key, Object),
         Context = weft_kv_object:context({three, Key}, Object),
         {ok, _} = Write(Key, #{context => Context}),
         {ok, Found, _} = weft_kv:values(three, Key, #{r => all}),
         ?assertEqual(Left, Found)
     end || {Key, Left, Write} <-
                [{<<"deleted">>, [], fun(Key, Given) -> weft_kv:delete(three, Key, Given) end},
                 {<<"put">>, [<<"2">>],
                  fun(Key, Given) -> weft_kv:put(three, Key, <<"2">>, Given) end}]].

%% It names all that the replicas may ever write.
who_makes_up_a_context_replaces_nothing_later() ->
    Key = <<"made up">>,
    {First, Second, Last} = places(Key),
    {ok, Before} = weft_kv:put(three, Key, <<"1">>),
    {ok, Seen} = weft_kv_object:decode({three, Key}, Before),
    All = maps:from_list([{actor(Place), 1 bsl 56} || Place <- [First, Second, Last]]),
    ?assertEqual([], maps:keys(Seen) -- maps:keys(All)),
    Made = weft_kv_object:context({three, Key}, {All, #{}}),
    {ok, After} = weft_kv:put(three, Key, <<"2">>, #{context => Made}),
    {ok, Known} = weft_kv_object:decode({three, Key}, After),
    ?assert(lists:max(maps:values(Known)) < 100),
    {ok, _} = weft_kv:put(three, Key, <<"3">>),
    ?assertMatch({ok, [<<"2">>, <<"3">>], _}, weft_kv:values(three, Key, #{r => all})).

%% What the partition calls itself is seen in what it has written.
actor({Partition, _, _} = Place) ->
    Other = <<"of ", (integer_to_binary(Partition))/binary>>,
    Value = #{value => <<"any">>, written_ms => 0, expires_ms => never},
    {ok, {ok, Object}} = asked(Place, Other, {write, Value, #{}}),
    {ok, Vector} = weft_kv_object:decode(any, weft_kv_object:context(any, Object)),
    hd(maps:keys(Vector)).

places(Key) ->
    {ok, Partition} = weft_ring:partition({<<"three">>, Key}),
    {ok, Places} = weft_ring_lookup:replicas(weft_ring, Partition, 3),
    list_to_tuple(Places).

merged(Place, Key, Object) -> asked(Place, Key, {merge, Object}).

asked({_, _, Role} = Place, Key, Request) ->
    {ok, Partition} = weft_ring:partition({<<"three">>, Key}),
    weft_vnode:ask(weft_kv_vnode, Place, {Partition, three, Key},
                   {Request, #{n => 3, evict => false, siblings => true}, Role}, 5000).

an_error_is_told_after_the_last_try() ->
    {First, Second} = same_partition(),
    {ok, _} = weft_kv:put(one, First, ?VALUE),
    Put = fun(Options) ->
              timer:tc(fun() -> weft_kv:put(one, Second, ?VALUE, Options) end)
          end,
    {_, AtOnce} = Put(#{}),
    ?assertMatch({error, {too_few, #{failed := [{_, full}]}}}, AtOnce),
    {ThreeUs, Three} = Put(#{retries => 3}),
    ?assertEqual(AtOnce, Three),
    %% Pauses of at least 10, 20 and 40 ms.
    ?assert(ThreeUs >= 70000),
    weft_test_nodes:until(fun() ->
        is_told_in_time(AtOnce, Put(#{retries => 10, timeout_ms => 1000})) end),
    ?assertMatch({error, {bad_option, {retries, 11, {from, 0, to, 10}}}},
                 element(2, Put(#{retries => 11}))),
    {ok, _} = weft_kv:delete(one, First).

%% The pauses of all ten tries take longer than this. One that was held up has no answer.
is_told_in_time(Error, {Us, Error}) -> Us < 1500000;
is_told_in_time(_, {_, {error, timeout}}) -> false;
is_told_in_time(_, {_, {error, {too_few, #{failed := [{_, timeout}]}}}}) -> false.

%% All tries are over within a second or two, in which a busy machine may not get to make room.
a_write_is_tried_until_there_is_room() ->
    {First, Second} = same_partition(),
    weft_test_nodes:until(fun() -> room_comes_after_a_try(First, Second) end),
    ?assertMatch({ok, ?VALUE, _}, weft_kv:get(one, Second)),
    {ok, _} = weft_kv:delete(one, Second).

room_comes_after_a_try(First, Second) ->
    stored(First),
    Self = self(),
    Writer = spawn_link(fun() ->
                            Self ! {self(), weft_kv:put(one, Second, ?VALUE, #{retries => 10})}
                        end),
    %% pacing: it is to be refused at least once before there is room
    receive {Writer, {ok, _} = TooEarly} -> erlang:error(TooEarly) after 60 -> ok end,
    {ok, _} = weft_kv:delete(one, First),
    receive {Writer, Answer} -> element(1, Answer) =:= ok end.

stored(Key) ->
    weft_test_nodes:until(fun() -> element(1, weft_kv:put(one, Key, ?VALUE)) =:= ok end).

%% `overload' says that nothing was done. After another error that is not known any more.
what_a_later_try_did_not_do_hides_nothing() ->
    {First, Second} = same_partition(),
    stored(First),
    weft_test_nodes:until(fun() -> is_first_error_told(Second) end),
    {ok, _} = weft_kv:delete(one, First).

%% On a busy machine the first try may come too late, and be refused itself.
is_first_error_told(Key) ->
    Self = self(),
    Writer = spawn_link(fun() ->
                            Self ! {self(), weft_kv:put(one, Key, ?VALUE, #{retries => 10})}
                        end),
    %% pacing: its first try is over before this node refuses all
    receive {Writer, {ok, _} = TooEarly} -> erlang:error(TooEarly) after 60 -> ok end,
    Occupied = weft_kv_test_requests:occupied(?REQUESTS_MAX),
    IsTold = receive
                 {Writer, {error, {too_few, _}}} -> true;
                 {Writer, {error, overload}} -> false
             end,
    ?assertEqual({error, overload}, weft_kv:put(one, Key, ?VALUE, #{retries => 10})),
    ok = weft_kv_test_requests:freed(Occupied),
    IsTold.

%% With `timeout_ms' of twenty seconds.
a_replica_that_ends_is_not_waited_for() ->
    {Key, Vnode} = with_vnode(),
    ok = sys:suspend(Vnode),
    Ended = fun() -> exit(whereis(Vnode), kill) end,
    {Us, Answer} = asked_before(Ended, fun() -> weft_kv:get(one, Key) end, Vnode),
    ?assertMatch({error, {too_few, #{failed := [{_, {unknown, killed}}]}}}, Answer),
    ?assert(Us < 10000000),
    ?assertEqual({error, not_found}, weft_kv:get(one, Key)).

one_that_ends_without_a_look_is_asked_again() ->
    {Key, Vnode} = with_vnode(),
    Ended = fun() -> ok = sys:terminate(Vnode, normal) end,
    ok = sys:suspend(Vnode),
    Put = fun() -> weft_kv:put(one, Key, ?VALUE) end,
    ?assertMatch({_, {ok, _}}, asked_before(Ended, Put, Vnode)),
    {ok, _} = weft_kv:delete(one, Key).

%% A partition that stands still for a while makes the reading slow.
what_reads_before_it_writes_has_one_time() ->
    {Key, Vnode} = with_vnode(),
    {ok, _} = weft_kv_client:start_link(?MODULE, #{nodes => [node()], tries => 1}),
    Update = fun([]) -> <<"1">> end,
    [begin
         ok = sys:suspend(Vnode),
         Goes = fun() ->
                    ok = while_time_goes_on(),
                    ok = sys:resume(Vnode)
                end,
         {{_, {ok, _}}, Times} =
             times(Part, fun(Traced) ->
                             asked_before(Goes, fun() -> Traced(Request) end, Vnode)
                         end),
         ?assertMatch([_, LeftMs] when LeftMs > 0, Times),
         ?assert(lists:last(Times) =< TimeoutMs - ?SLOW_MS)
     end || {TimeoutMs, Part, Request} <-
                [{?TIMEOUT_MS, {weft_kv_request, run, 4},
                  fun() -> weft_kv:update(one, Key, Update) end},
                 {10000, {weft_kv_request, run, 4},
                  fun() -> weft_kv:delete(one, Key, #{timeout_ms => 10000}) end},
                 {10000, {erpc, call, 5},
                  fun() ->
                      weft_kv_client:update(?MODULE, one, Key, Update, #{timeout_ms => 10000})
                  end},
                 {5000, {erpc, call, 5}, fun() -> weft_kv_client:delete(?MODULE, one, Key) end}]],
    ok = weft_kv_client:stop(?MODULE).

%% The function is slow, and counts.
a_strong_update_has_one_time() ->
    weft_test_nodes:until(fun() -> weft_kv_strong_acceptor:status(box, 0) =:= voting end),
    Self = self(),
    Update = fun([]) ->
                 ok = while_time_goes_on(),
                 <<"1">>
             end,
    Request = fun() -> weft_kv:update(box, <<"slow">>, Update) end,
    {{ok, _}, [_, LeftMs]} =
        times({weft_kv_strong_request, run, 5},
              fun(Traced) ->
                  Caller = spawn_link(fun() -> Self ! {self(), Traced(Request)} end),
                  receive {Caller, Answer} -> Answer end
              end),
    ?assert(LeftMs > 0 andalso LeftMs =< ?TIMEOUT_MS - ?SLOW_MS).

while_time_goes_on() ->
    UntilMs = erlang:monotonic_time(millisecond) + ?SLOW_MS,
    weft_test_nodes:until(fun() -> erlang:monotonic_time(millisecond) >= UntilMs end).

%% The result, and the time that was given to each part of the request: to each call of this
%% function by the process that it is `Traced' in, which is another one.
times({Module, _, _} = Part, Do) ->
    Self = self(),
    Traced = fun(Request) ->
                 1 = erlang:trace(self(), true, [call, {tracer, Self}]),
                 try Request() after erlang:trace(self(), false, [call]) end
             end,
    {module, Module} = code:ensure_loaded(Module),
    1 = erlang:trace_pattern(Part, true, []),
    try
        Result = Do(Traced),
        Delivered = erlang:trace_delivered(all),
        receive {trace_delivered, all, Delivered} -> ok end,
        {Result, times()}
    after 1 = erlang:trace_pattern(Part, false, [])
    end.

times() ->
    receive
        {trace, _, call, {erpc, call, Arguments}} -> [lists:last(Arguments) | times()];
        {trace, _, call, {_, run, Arguments}} ->
            #{timeout_ms := Ms} = lists:nth(length(Arguments) - 1, Arguments),
            [Ms | times()]
    after 0 -> []
    end.

%% Without `retries': that a partition is on its way is no failure. In its place there is somebody
%% who refuses, as one does that was handed over.
what_moves_is_tried_again_within_the_timeout() ->
    {Key, Vnode} = with_vnode(),
    Self = self(),
    Refusing = spawn_link(fun() ->
                              ok = weft_kv_one_node:in_place_of(Vnode),
                              Self ! {self(), there},
                              refusing(0)
                          end),
    receive {Refusing, there} -> ok end,
    {LateUs, Late} = timer:tc(fun() -> weft_kv:put(one, Key, ?VALUE, #{timeout_ms => 6000}) end),
    ?assertMatch({error, _}, Late),
    ?assert(LateUs >= 2000000),
    Tries = refused(Refusing),
    ?assert(Tries > 1),
    Caller = spawn_link(fun() -> Self ! {self(), weft_kv:put(one, Key, ?VALUE)} end),
    weft_test_nodes:until(fun() -> refused(Refusing) > Tries + 1 end),
    Refusing ! stop,
    ?assertMatch({ok, _}, receive {Caller, Answer} -> Answer end),
    ?assertMatch({ok, ?VALUE, _}, weft_kv:get(one, Key)),
    {ok, _} = weft_kv:delete(one, Key).

%% At a higher priority all of them ask before the process of any request runs.
no_more_run_than_may_though_all_come_at_once() ->
    {Key, Vnode} = with_vnode(),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:running() =:= 0 end),
    ok = sys:suspend(Vnode),
    Occupied = weft_kv_test_requests:occupied(?REQUESTS_MAX - 5),
    Self = self(),
    %% On one scheduler all of them look how many run before the first one that they start does.
    Schedulers = erlang:system_flag(schedulers_online, 1),
    Callers = [spawn_opt(fun() -> Self ! {self(), weft_kv:get(one, Key)} end,
                         [link, {priority, high}]) || _ <- lists:seq(1, 100)],
    true = erlang:yield(),
    1 = erlang:system_flag(schedulers_online, Schedulers),
    %% Those that run wait for the partition.
    weft_test_nodes:until(fun() ->
        {messages, Messages} = process_info(Self, messages),
        length([refused || {_, {error, overload}} <- Messages]) >= 95 end, ?SOON_MS),
    ok = sys:resume(Vnode),
    Answers = [receive {Caller, Answer} -> Answer end || Caller <- Callers],
    ?assertEqual([{error, not_found}, {error, overload}], lists:usort(Answers)),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:running() =:= ?REQUESTS_MAX - 5 end),
    ok = weft_kv_test_requests:freed(Occupied).

%% Neither the process of a request nor its caller could say that it has ended.
who_was_killed_does_not_stay_counted() ->
    {Key, _} = same_partition(),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:running() =:= 0 end),
    Occupied = weft_kv_test_requests:occupied(?REQUESTS_MAX),
    ?assertEqual({error, overload}, weft_kv:get(one, Key)),
    lists:foreach(fun({Caller, Request}) ->
                      true = exit(Caller, kill),
                      true = exit(Request, kill)
                  end, Occupied),
    weft_test_nodes:until(fun() -> weft_kv:get(one, Key) =:= {error, not_found} end, ?SOON_MS),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:running() =:= 0 end).

%% Whoever waits only for a replica that hangs has given its caller the answer, and makes room. It
%% is room for one.
one_that_hangs_takes_no_room_from_others() ->
    Key = <<"hangs">>,
    {ok, _} = weft_kv:put(three, Key, <<"1">>, #{w => 3}),
    {ok, [_, _, {Last, _, _}]} = weft_ring:primaries({<<"three">>, Key}, 3),
    {ok, Vnode} = weft_vnode_names:name(weft_kv_vnode, Last),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:running() =:= 0 end),
    ok = sys:suspend(Vnode),
    Before = weft_kv_test_requests:lingering(),
    Occupied = weft_kv_test_requests:occupied(?REQUESTS_MAX - 1),
    [?assertMatch({ok, <<"1">>, _}, weft_kv:get(three, Key)) || _ <- lists:seq(1, 50)],
    ?assertEqual(?REQUESTS_MAX - 1, weft_kv_test_requests:running()),
    %% The last one may have its answer and not be counted yet.
    weft_test_nodes:until(fun() -> weft_kv_test_requests:lingering() >= Before + 50 end),
    ok = weft_kv_test_requests:freed(Occupied),
    ok = sys:resume(Vnode),
    weft_test_nodes:until(fun() -> weft_kv_test_requests:lingering() =:= 0 end).

refusing(Count) ->
    receive
        {'$gen_call', From, {command, primary, _, _}} ->
            gen_server:reply(From, {error, moved}),
            refusing(Count + 1);
        {count, From} ->
            From ! {self(), Count},
            refusing(Count);
        stop -> ok
    end.

refused(Refusing) ->
    Refusing ! {count, self()},
    receive {Refusing, Count} -> Count end.

%% The request waits at the partition. Its tag says that the coordinator itself sent it.
asked_before(Ended, Request, Vnode) ->
    Self = self(),
    Caller = spawn_link(fun() -> Self ! {self(), timer:tc(Request)} end),
    weft_test_nodes:until(fun() ->
        {messages, Messages} = process_info(whereis(Vnode), messages),
        [place || {'$gen_call', {_, {_, _, primary}}, _} <- Messages] =:= [place] end),
    Ended(),
    receive {Caller, Answer} -> Answer end.

with_vnode() ->
    {Key, _} = same_partition(),
    with_vnode(Key).

with_vnode(Key) ->
    {ok, Vnode} = weft_vnode_names:name(weft_kv_vnode, partition(Key)),
    weft_test_nodes:until(fun() ->
        _ = weft_kv:get(one, Key),
        weft_vnode_watch:find({Vnode, node()}) =/= unknown end),
    {Key, Vnode}.

%% Two keys of which there was nothing yet.
same_partition() ->
    [First | Others] = [<<(erlang:unique_integer([positive])):64>> || _ <- lists:seq(1, 100)],
    [Second | _] = [Key || Key <- Others, partition(Key) =:= partition(First)],
    {First, Second}.

partition(Key) ->
    {ok, Partition} = weft_ring:partition({<<"one">>, Key}),
    Partition.
