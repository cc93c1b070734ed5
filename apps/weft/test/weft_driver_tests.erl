%% SPDX-License-Identifier: Apache-2.0
%% @doc The driver turns everything that reaches it into events and every effect into a deed.
-module(weft_driver_tests).

-include_lib("eunit/include/eunit.hrl").

-export([clear/1, keep/2, hear_once/2]).

-define(PEER, 'b@host').
-define(NAME, weft_driver_under_test).

%% Links, driver and test share one process, so that the test sees what the links are asked for.
with_driver(Test) ->
    with_driver(#{}, Test).

with_driver(More, Test) ->
    Pid = start(More),
    try Test(Pid) after stop() end.

start(More) ->
    true = register(weft_fake_links_owner, self()),
    ok = weft_view:new(),
    {ok, Pid} = weft_driver:start_link(?NAME, weft_echo_core, maps:merge(options(), More)),
    ok = weft_driver:subscribe(?NAME, self()),
    Pid.

options() ->
    #{link_module => weft_fake_links, self => 'a@host', incarnation => 1}.

%% Some tests end the driver or start it again.
stop() ->
    case whereis(?NAME) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end,
    true = ets:delete(weft_view),
    unregister(weft_fake_links_owner),
    flush().

it_subscribes_to_the_links_of_its_name_test() ->
    with_driver(fun it_subscribes_to_the_links_of_its_name/1).

it_subscribes_to_the_links_of_its_name(Pid) ->
    expect({subscribed, ?NAME, Pid}).

news_of_links_timers_and_notices_become_events_test() ->
    with_driver(fun news_of_links_timers_and_notices_become_events/1).

news_of_links_timers_and_notices_become_events(Pid) ->
    Pid ! {weft_link, up, ?PEER, #{}},
    expect_event({neighbour_up, ?PEER}),
    Pid ! {weft_link, message, ?PEER, hello},
    expect_event({message, ?PEER, hello}),
    Pid ! {weft_link, down, ?PEER, timeout},
    expect_event({neighbour_down, ?PEER, timeout}),
    ok = weft_driver:notice(?NAME, {link_cost, ?PEER, 3}),
    expect_event({notice, {link_cost, ?PEER, 3}}),
    done = perform([{after_ms, 1, tick}]),
    expect_event({timer, tick}).

messages_of_a_session_come_to_the_driver_itself_test() ->
    with_driver(fun messages_of_a_session_come_to_the_driver_itself/1).

%% Those that are here before the word that the session is up go back, and come again.
messages_of_a_session_come_to_the_driver_itself(Pid) ->
    First = {weft_data, 9, 1, one},
    Pid ! First,
    expect({unknown, ?NAME, First}),
    Pid ! {weft_link, up, ?PEER, #{session => 9}},
    expect_event({neighbour_up, ?PEER}),
    Pid ! {weft_data, 9, 2, two},
    Pid ! First,
    expect_event({message, ?PEER, one}),
    expect_event({message, ?PEER, two}),
    Pid ! {weft_link, down, ?PEER, broken},
    expect_event({neighbour_down, ?PEER, broken}),
    Pid ! {weft_data, 9, 3, three},
    expect({unknown, ?NAME, {weft_data, 9, 3, three}}).

effects_reach_the_link_layer_test() ->
    with_driver(fun effects_reach_the_link_layer/1).

effects_reach_the_link_layer(_Pid) ->
    done = perform([{send, ?PEER, hello}, {connect, ?PEER}, {disconnect, ?PEER},
                    {break, ?PEER}, {neighbour, ?PEER, true}]),
    expect({sent, ?PEER, ?NAME, hello}),
    expect({connect, ?PEER}),
    expect({disconnect, ?PEER}),
    expect({break, ?PEER}),
    expect({agree, ?PEER, true}).

messages_of_neighbours_over_the_limit_are_dropped_and_counted_test() ->
    with_driver(#{mailbox_max => 5},
                fun messages_of_neighbours_over_the_limit_are_dropped_and_counted/1).

%% Of ten that wait the first four have more than five behind them.
messages_of_neighbours_over_the_limit_are_dropped_and_counted(Pid) ->
    ok = sys:suspend(Pid),
    [Pid ! {weft_link, message, ?PEER, N} || N <- lists:seq(1, 10)],
    ok = sys:resume(Pid),
    [expect_event({message, ?PEER, N}) || N <- lists:seq(5, 10)],
    ?assertEqual(4, weft_driver:drops(?NAME)).

a_message_to_a_lost_neighbour_is_dropped_test() ->
    with_driver(fun a_message_to_a_lost_neighbour_is_dropped/1).

a_message_to_a_lost_neighbour_is_dropped(_Pid) ->
    done = perform([{send, 'gone@host', hello}]).

views_are_readable_until_deleted_test() ->
    with_driver(fun views_are_readable_until_deleted/1).

views_are_readable_until_deleted(_Pid) ->
    done = perform([{view, {route, ?PEER}, 1}, {view, {member, ?PEER}, 2}]),
    ?assertEqual(1, weft_view:lookup({route, ?PEER})),
    ?assertEqual([{?PEER, 2}], weft_view:all(member)),
    done = perform([{view, {route, ?PEER}, delete}]),
    ?assertEqual(undefined, weft_view:lookup({route, ?PEER})),
    ?assertEqual([{{member, ?PEER}, 2}], weft_view:all()).

what_can_not_be_kept_has_not_happened_test() ->
    with_driver(#{view_module => ?MODULE}, fun what_can_not_be_kept_has_not_happened/1).

what_can_not_be_kept_has_not_happened(Pid) ->
    done = perform([{notice, told}, {view, one, 1}, {view, two, 2}]),
    expect({kept, [{one, 1}, {two, 2}]}),
    expect({weft_notice, ?NAME, told}),
    State = sys:get_state(Pid),
    Change = {perform, [{notice, told}, {view, one, full}], [?PEER]},
    ?assertEqual({error, {not_written, full}}, weft_driver:command(?NAME, Change)),
    expect_nothing(),
    ?assertEqual(State, sys:get_state(Pid)).

%% In place of the table of views: a file.
clear(?NAME) -> ok.

keep(?NAME, [{one, full}]) -> {error, full};
keep(?NAME, Views) ->
    weft_fake_links_owner ! {kept, Views},
    ok.

a_restarted_driver_removes_only_its_own_old_views_test() ->
    with_driver(fun a_restarted_driver_removes_only_its_own_old_views/1).

a_restarted_driver_removes_only_its_own_old_views(Pid) ->
    ok = weft_view:put(another_driver, {member, x}, 1),
    done = perform([{view, {route, ?PEER}, 1}]),
    gen_server:stop(Pid),
    {ok, Again} = weft_driver:start_link(?NAME, weft_echo_core, options()),
    unlink(Again),
    ?assertEqual([{{member, x}, 1}], weft_view:all()).

a_driver_listens_to_another_one_test() ->
    with_driver(fun a_driver_listens_to_another_one/1).

a_driver_listens_to_another_one(_Pid) ->
    {ok, Listener} = weft_driver:start_link(weft_listening_driver, weft_echo_core,
                                            (options())#{listens_to => [?NAME]}),
    ok = weft_driver:subscribe(weft_listening_driver, self()),
    done = perform([{notice, news}]),
    expect({weft_notice, weft_listening_driver, {seen, {notice, news}}}),
    gen_server:stop(Listener).

who_has_a_name_that_is_told_hears_test() ->
    with_driver(#{tells => [weft_told_by_name]}, fun who_has_a_name_that_is_told_hears/1).

%% Nobody has the name at first; then one process after the other, as of one that is started again.
who_has_a_name_that_is_told_hears(_Pid) ->
    done = perform([{notice, too_early}]),
    [begin
         {Told, Ref} = spawn_monitor(?MODULE, hear_once, [self(), weft_told_by_name]),
         expect({Told, ready}),
         done = perform([{notice, Number}]),
         expect({Told, {weft_notice, ?NAME, Number}}),
         receive {'DOWN', Ref, process, Told, normal} -> ok end
     end || Number <- [1, 2]].

%% What is told under a name that is its own until then.
hear_once(Test, Name) ->
    true = register(Name, self()),
    Test ! {self(), ready},
    receive Message -> Test ! {self(), Message} end.

a_subscriber_that_ends_is_forgotten_test() ->
    with_driver(fun a_subscriber_that_ends_is_forgotten/1).

a_subscriber_that_ends_is_forgotten(Pid) ->
    {Subscriber, Ref} = spawn_monitor(fun() -> ok = weft_driver:subscribe(?NAME, self()) end),
    receive {'DOWN', Ref, process, Subscriber, normal} -> ok end,
    %% The driver may hear of the end later than this process.
    weft_test_nodes:until(fun() ->
                                  Driver = sys:get_state(Pid),
                                  [self()] =:= maps:keys(element(tuple_size(Driver), Driver))
                          end).

a_new_core_takes_the_place_of_the_former_test_() ->
    {timeout, 60, fun() -> with_driver(fun a_new_core_takes_the_place_of_the_former/1) end}.

%% What only the former wanted is given up after a while; stale timers reach nobody.
a_new_core_takes_the_place_of_the_former(Pid) ->
    Pid ! {weft_link, up, ?PEER, #{}},
    expect_event({neighbour_up, ?PEER}),
    done = perform([{connect, 'kept@host'}, {connect, 'gone@host'}, {after_ms, 100, stale},
                    {view, old, 1}, {view, both, 1}]),
    ok = weft_driver:change(?NAME, weft_echo_core,
                            #{neighbours => ['kept@host'], incarnation => 1,
                              effects => [{view, both, 2}, {after_ms, 200, fresh}]}),
    expect_event({neighbour_up, ?PEER}),
    %% It may have been due before the change; then the former core told it before this.
    receive {weft_notice, ?NAME, {seen, {timer, stale}}} -> ok after 0 -> ok end,
    ?assertEqual([{both, 2}], weft_view:all()),
    expect_event({timer, fresh}),
    expect({disconnect, 'gone@host'}),
    receive {disconnect, _} = Wrong -> error(Wrong) after 0 -> ok end,
    %% Had the stale timer reached the new core, it would have told before the fresh one.
    receive {weft_notice, ?NAME, {seen, {timer, stale}}} -> error(stale) after 0 -> ok end.

what_its_core_wants_is_not_released_test() ->
    with_driver(#{neighbours => [?PEER]}, fun what_its_core_wants_is_not_released/1).

what_its_core_wants_is_not_released(_Pid) ->
    ok = weft_driver:release(?NAME, ?PEER),
    ok = weft_driver:release(?NAME, 'other@host'),
    expect({disconnect, 'other@host'}),
    receive {disconnect, _} = Wrong -> error(Wrong) after 0 -> ok end.

what_is_not_for_it_changes_nothing_test() ->
    with_driver(fun what_is_not_for_it_changes_nothing/1).

what_is_not_for_it_changes_nothing(Pid) ->
    ok = logger:add_primary_filter(quiet, {fun(_, _) -> stop end, []}),
    Pid ! nonsense,
    ok = gen_server:cast(Pid, nonsense),
    ?assertEqual({error, {unknown_request, nonsense}}, gen_server:call(Pid, nonsense)),
    ok = logger:remove_primary_filter(quiet),
    expect_nothing().

expect_nothing() ->
    receive {weft_notice, ?NAME, Notice} -> error({unexpected, Notice}) after 0 -> ok end.

perform(Effects) ->
    weft_driver:command(?NAME, {perform, Effects}).

expect_event(Event) ->
    expect({weft_notice, ?NAME, {seen, Event}}).

expect(Message) ->
    receive Message -> ok
    after 30000 -> error({missing, Message, process_info(self(), messages)})
    end.

flush() ->
    receive _ -> flush() after 0 -> ok end.

%% It decides about links and routes; what users have it compute is no more urgent than they are.
a_driver_has_the_priority_that_it_is_given_test() ->
    Of = fun(More) -> with_driver(More, fun(Pid) -> process_info(Pid, priority) end) end,
    ?assertEqual([{priority, high}, {priority, normal}], [Of(#{}), Of(#{priority => normal})]).

%% What users have stored is not for logs; of other cores the state is what helps to find an error.
a_private_core_is_not_shown_test() ->
    Shown = fun(More) ->
                with_driver(More, fun(Pid) -> lists:flatten(io_lib:format("~p",
                                                                          [sys:get_status(Pid)]))
                                  end)
            end,
    ?assertEqual(nomatch, string:find(Shown(#{private => true}), "weft_echo_core")),
    ?assertNotEqual(nomatch, string:find(Shown(#{}), "weft_echo_core")).
