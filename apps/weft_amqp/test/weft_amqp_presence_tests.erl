%% SPDX-License-Identifier: Apache-2.0
%% The process that keeps the place at the broker, without a broker. One port takes connections and
%% says nothing, and the test says what they would; another one closes them, a third one is closed.
-module(weft_amqp_presence_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

-define(MS, 30000).

%% Peers that hear `bye' take the node for ended, and their connections with it. After a crash it is
%% at the broker again at once.
only_an_orderly_end_is_told_test_() ->
    {timeout, 120,
     [?_assertEqual({Reason, Told}, {Reason, with_client(fun() -> told_at_end(Reason) end)})
      || {Reason, Told} <- [{shutdown, [hello, bye]}, {{shutdown, stop}, [hello, bye]},
                            {crash, [hello]}]]}.

%% With several brokers troubles take turns, but each one is logged once until it is over.
each_trouble_is_logged_once_test_() ->
    {timeout, 120, fun() -> with_client(fun troubles_of_two_brokers/0) end}.

troubles_of_two_brokers() ->
    {ok, Closing} = listen(),
    Self = self(),
    _ = spawn_link(fun() -> close_all(Closing, Self) end),
    {ok, Closed} = listen(),
    {ok, ClosedPort} = inet:port(Closed),
    ok = gen_tcp:close(Closed),
    {ok, ClosingPort} = inet:port(Closing),
    Presence = started([ClosedPort, ClosingPort]),
    Events = [event(), event()],
    ?assertMatch([{{lost, _}, _}, {{lost, _}, _}], Events),
    ?assertEqual(2, length(lists:usort(Events))),
    %% Each time two connections are tried. The first of the second time is not the end of that.
    [receive accepted -> ok after ?MS -> error(nothing_accepted) end || _ <- lists:seq(1, 3)],
    _ = weft_amqp_presence:status(),
    ?assertEqual(nothing, receive {logged, _, _} = More -> More after 0 -> nothing end),
    stopped(Presence).

%% Is told again after it was over.
what_was_over_is_logged_again_test_() ->
    {timeout, 120, fun() -> with_client(fun lost_twice/0) end}.

lost_twice() ->
    Presence = at_silent_broker(),
    [begin
         Outbox = at_broker(Presence),
         ?assertMatch({up, _}, event()),
         true = exit(Outbox, kill),
         ?assertMatch({{lost, killed}, _}, event()),
         weft_test_nodes:until(fun() -> [] =:= [Module || Module <- [weft_amqp_inbox,
                                                                     weft_amqp_outbox],
                                                          connection(Module, Presence) =:= none]
                               end)
     end || _ <- [1, 2]],
    stopped(Presence).

%% The carrier of the node has started again, and with it the node has another number. What it says
%% comes back to itself: that is no later node of the same name.
the_own_announcement_is_no_other_node_test_() ->
    {timeout, 120, fun() -> with_client(fun an_echo_after_a_renewal/0) end}.

an_echo_after_a_renewal() ->
    Presence = at_silent_broker(),
    Outbox = connection(weft_amqp_outbox, Presence),
    Inbox = connection(weft_amqp_inbox, Presence),
    1 = erlang:trace(Outbox, true, ['receive']),
    Outbox = at_broker(Presence),
    Before = announcement(Outbox),
    ok = weft_identity:renew(),
    Presence ! {timeout, make_ref(), {announce, Inbox}},
    After = announcement(Outbox),
    [Presence ! {weft_amqp_inbox, Inbox, {announced, Encoded}} || Encoded <- [Before, After]],
    ?assertMatch(#{state := up, last_error := "none"}, weft_amqp_presence:status()),
    ?assertMatch({up, _}, event()),
    ?assertEqual(nothing, receive {logged, _, _} = More -> More after 0 -> nothing end),
    %% Another one, which is.
    {ok, Own} = weft_amqp_announce:decode(key(), After),
    #{incarnation := Incarnation} = Own,
    Later = weft_amqp_announce:encode(key(), Own#{incarnation := Incarnation + 1,
                                                  queue := <<"amq.gen-2">>}),
    Presence ! {weft_amqp_inbox, Inbox, {announced, iolist_to_binary(Later)}},
    ?assertMatch({{lost, {superseded, _}}, _}, event()),
    stopped(Presence).

%% --- helpers ----------------------------------------------------------------------------------

%% One that takes connections and says nothing.
at_silent_broker() ->
    {ok, Silent} = listen(),
    {ok, Port} = inet:port(Silent),
    started([Port]).

with_client(Test) ->
    {ok, _} = application:ensure_all_started(amqp_client),
    ok = weft_identity:init(true),
    ok = weft_amqp_lanes:new(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = nothing_is_left(),
    try Test()
    after
        ok = logger:remove_handler(?MODULE),
        true = ets:delete(weft_amqp_lanes)
    end.

%% Of another test.
nothing_is_left() ->
    receive _Any -> nothing_is_left() after 0 -> ok end.

listen() -> gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]).

close_all(Listen, Test) ->
    case gen_tcp:accept(Listen) of
        {ok, Socket} ->
            Test ! accepted,
            ok = gen_tcp:close(Socket),
            close_all(Listen, Test);
        {error, closed} ->
            ok
    end.

started(Ports) ->
    Urls = ["amqp://127.0.0.1:" ++ integer_to_list(Port) || Port <- Ports],
    {ok, Options} = weft_amqp_options:parse(#{broker => Urls}, <<"cluster">>),
    {ok, Presence} = weft_amqp_presence:start_link(Options),
    Presence.

stopped(Presence) ->
    unlink(Presence),
    %% The next one has its name.
    Monitor = monitor(process, Presence),
    [exit(Pid, kill) || Pid <- [Presence | connections(Presence)]],
    receive {'DOWN', Monitor, process, Presence, _} -> ok end.

%% What the node announces until it has ended. Its connections are still being opened, so what they
%% are to publish waits.
told_at_end(Reason) ->
    Presence = at_silent_broker(),
    unlink(Presence),
    Outbox = connection(weft_amqp_outbox, Presence),
    1 = erlang:trace(Outbox, true, ['receive']),
    Outbox = at_broker(Presence),
    Monitor = monitor(process, Presence),
    [Inbox, Outbox] = connections(Presence),
    _ = spawn(fun() -> sys:terminate(Presence, Reason) end),
    told(Outbox, Inbox, Monitor).

told(Outbox, Inbox, Monitor) ->
    receive
        {trace, Outbox, 'receive', {'$gen_cast', {publish, _Exchange, none, Message}}} ->
            {announce, Encoded} = weft_amqp_message:decode(iolist_to_binary(Message)),
            {ok, #{what := What}} = weft_amqp_announce:decode(key(), Encoded),
            [What | told(Outbox, Inbox, Monitor)];
        {trace, Outbox, 'receive', {system, _, {terminate, shutdown}}} ->
            [exit(Pid, kill) || Pid <- [Outbox, Inbox]],
            told(Outbox, Inbox, Monitor);
        {trace, Outbox, 'receive', _} ->
            told(Outbox, Inbox, Monitor);
        {'DOWN', Monitor, process, _, _} ->
            []
    after ?MS -> error(still_there)
    end.

announcement(Outbox) ->
    receive
        {trace, Outbox, 'receive', {'$gen_cast', {publish, _Exchange, none, Message}}} ->
            {announce, Encoded} = weft_amqp_message:decode(iolist_to_binary(Message)),
            Encoded
    after ?MS -> error(nothing_announced)
    end.

key() ->
    weft_amqp_announce:key(atom_to_binary(erlang:get_cookie()), weft_identity:cluster()).

event() ->
    receive {logged, What, Broker} -> {What, Broker}
    after ?MS -> error(nothing_logged)
    end.

%% What its connections say when they are up.
at_broker(Presence) ->
    Inbox = connection(weft_amqp_inbox, Presence),
    Outbox = connection(weft_amqp_outbox, Presence),
    Presence ! {weft_amqp_inbox, Inbox, {up, <<"amq.gen-1">>}},
    Presence ! {weft_amqp_outbox, Outbox, up},
    #{state := up} = weft_amqp_presence:status(),
    Outbox.

connection(Module, Presence) ->
    case [Pid || Pid <- connections(Presence), {Module, init, 1} =:= initial_call(Pid)] of
        [Pid] -> Pid;
        [] -> none
    end.

connections(Presence) ->
    case process_info(Presence, links) of
        {links, Links} -> [Pid || Pid <- Links, is_pid(Pid), Pid =/= self()];
        undefined -> []
    end.

initial_call(Pid) -> proc_lib:translate_initial_call(Pid).

%% @private A handler of logger.
log(#{msg := {report, #{weft_amqp := What, broker := Broker}}}, #{config := Test}) ->
    Test ! {logged, What, Broker};
log(_Other, _Config) ->
    ok.
