%% SPDX-License-Identifier: Apache-2.0
%% @doc The Instant Messenger with all of its processes on one node; see also weft_im_SUITE.
-module(weft_im_tests).

-include_lib("eunit/include/eunit.hrl").

-define(RUN_MS, 60000).
-define(DEADLINE_MS, 30000).

options() ->
    #{names => local, routers => 1, servers => 3, client_nodes => 1, count => 12, scale => 0.001,
      warm_up_ms => 50, run_ms => 400, resend_ms => 50, ping_ms => 400}.

run(Options) ->
    weft_bench_program:run(weft_im, maps:merge(options(), Options), lists:duplicate(20, node()),
                           ?RUN_MS).

each_message_is_heard_once_test_() ->
    {timeout, 60,
     fun() ->
         {ok, #{said := Said} = Result} = run(#{}),
         ?assertMatch(#{heard := Said, delivered := Said, given_up := 0, logged_out := [],
                        lost_messages := 0}, Result),
         ?assert(Said > 50),
         ?assertEqual([], left())
     end}.

two_routers_test_() ->
    {timeout, 60,
     fun() ->
         {ok, #{said := Said}} = run(#{routers => 2, servers => 2, client_nodes => 2}),
         ?assert(Said > 50),
         ?assertEqual([], left())
     end}.

%% Sessions stand still now and then, for longer than clients wait: what they have comes in more
%% than one copy, through more than one session.
messages_sent_again_are_heard_once_test_() ->
    {timeout, 60,
     fun() ->
         {Result, Pauses} = run_with_pauses(#{resend_ms => 4, run_ms => 1000}, 30),
         {ok, #{said := Said}} = Result,
         ?assertMatch({ok, #{heard := Said, delivered := Said, given_up := 0}}, Result),
         ?assert(Said > 100),
         ?assert(Pauses > 5),
         ?assertEqual([], left())
     end}.

%% They stand still for longer than a client tries, and no server is to blame. A client tries to log
%% in for as long, which has to be enough for that. It has to be less than three times `resend_ms':
%% after that a client asks for another session, which does not stand still.
messages_given_up_are_lost_test_() ->
    {timeout, 60,
     fun() ->
         {Result, _} = run_with_pauses(#{resend_ms => 200, give_up_ms => 400, run_ms => 3000}, 900),
         {ok, #{given_up := GivenUp}} = Result,
         ?assertMatch({ok, #{lost_messages := GivenUp, servers_lost := []}}, Result),
         ?assert(GivenUp > 0),
         ?assertEqual([], left())
     end}.

run_with_pauses(Options, PauseMs) ->
    {Pauser, Monitor} = spawn_monitor(fun() -> pause(PauseMs, 0) end),
    Result = run(Options),
    Pauser ! stop,
    {Result, receive {'DOWN', Monitor, process, Pauser, {pauses, Count}} -> Count end}.

pause(PauseMs, Pauses) ->
    Held = [Pid || Pid <- weft_im_killer:victims(chat_session), is_held(Pid)],
    receive
        stop -> exit({pauses, Pauses})
    after PauseMs -> % pacing: as long as they stand still
        lists:foreach(fun go_on/1, Held),
        pause(PauseMs, Pauses + length(Held))
    end.

is_held(Pid) ->
    try erlang:suspend_process(Pid) catch error:badarg -> false end.

%% It may have ended.
go_on(Pid) ->
    try erlang:resume_process(Pid) catch error:badarg -> true end.

%% Of all kinds, one after the other, and as fast as they come back.
messages_survive_kills_test_() ->
    {timeout, 120,
     fun() ->
         Kinds = [router, router_supervisor, server, notes, client_db, chat_db, client_monitor,
                  chat_session],
         EndMs = erlang:monotonic_time(millisecond) + 2500,
         {Killer, Monitor} = spawn_monitor(fun() -> kill(Kinds, EndMs, 0) end),
         Result = run(#{run_ms => 3000}),
         Killer ! stop,
         Kills = receive {'DOWN', Monitor, process, Killer, {kills, Count}} -> Count end,
         ?assertMatch({ok, #{given_up := 0, lost_messages := 0, logged_out := []}}, Result),
         {ok, #{said := Said, heard := Said}} = Result,
         ?assert(Said > 100),
         ?assert(Kills > 20),
         ?assertEqual([], left())
     end}.

%% Until half a second before all talk is over: what ends a service must not be killed meanwhile.
kill(Kinds, EndMs, Kills) ->
    receive
        stop -> exit({kills, Kills})
    after 40 -> % pacing: a kill now and then
        case erlang:monotonic_time(millisecond) < EndMs of
            true ->
                Kind = lists:nth(1 + Kills rem length(Kinds), Kinds),
                kill(Kinds, EndMs, Kills + weft_im_killer:kill_one(Kind, 7 * Kills));
            false ->
                receive stop -> exit({kills, Kills}) end
        end
    end.

left() ->
    [Name || Name <- registered(), lists:prefix("weft_im_", atom_to_list(Name))]
        ++ [Pid || Pid <- processes(), {dictionary, Of} <- [process_info(Pid, dictionary)],
                   lists:keymember(weft_im, 1, Of)].

%% ---- one service, by hand ----

with_service(Test) ->
    {timeout, 60,
     fun() ->
         {ok, Service} = weft_im_plan:new((options())#{run => erlang:unique_integer([positive])},
                                          lists:duplicate(20, node())),
         process_flag(trap_exit, true),
         Region = weft_im_region:start_link(Service, 1),
         ?assertEqual([], ask(Region, {names, []})),
         try Test(Service, Region) after ok = ask(Region, stop) end,
         ?assertEqual([], left())
     end}.

ask(Region, Request) ->
    ok = weft_im_region:ask([Region], Request),
    [Answer] = weft_im_region:answers([Region], ?DEADLINE_MS),
    Answer.

event(Client) ->
    receive {im, Client, Event} -> Event after ?DEADLINE_MS -> error({no_event, Client}) end.

logged_in(Service, Name) ->
    Client = weft_im_client:start_link(Service, Name),
    ?assertEqual(logged_in, event(Client)),
    Client.

names_are_registered_again_test_() ->
    with_service(
      fun(Service, Region) ->
          Names = weft_im_plan:names(1, Service),
          ?assertEqual(2 + 3 * 6, length(Names)),
          [begin
               Pid = weft_im_names:whereis(Service, Name),
               exit(Pid, kill),
               ?assert(is_pid(another(Service, Name, Pid)))
           end || Name <- Names],
          ?assertEqual([], ask(Region, {names, []}))
      end).

another(Service, Name, Pid) ->
    ok = weft_test_nodes:until(fun() ->
                                   Now = weft_im_names:whereis(Service, Name),
                                   is_pid(Now) andalso Now =/= Pid
                               end, ?DEADLINE_MS),
    weft_im_names:whereis(Service, Name).

killed_databases_have_all_rows_again_test_() ->
    with_service(
      fun(Service, Region) ->
          Clients = [logged_in(Service, weft_im_traffic:name(N)) || N <- lists:seq(1, 10)],
          Rows = fun(Server, Copy) ->
                     {ok, List} = weft_im_database:rows(Service, {client_db, Server, Copy}, 5000),
                     List
                 end,
          Before = [Rows(Server, main) || Server <- [1, 2, 3]],
          ?assertEqual(10, length(lists:append(Before))),
          [begin
               Pid = weft_im_names:whereis(Service, {client_db, Server, Copy}),
               exit(Pid, kill),
               _ = another(Service, {client_db, Server, Copy}, Pid),
               ?assertEqual(Before, [Rows(S, main) || S <- [1, 2, 3]])
           end || Server <- [1, 2, 3], Copy <- [main, replica]],
          ?assertEqual([], ask(Region, {copies, []})),
          ?assertEqual(Before, [Rows(Server, replica) || Server <- [1, 2, 3]]),
          lists:foreach(fun weft_im_client:leave/1, Clients)
      end).

second_login_is_refused_test_() ->
    with_service(
      fun(Service, _Region) ->
          First = logged_in(Service, <<"ann">>),
          Second = weft_im_client:start_link(Service, <<"ann">>),
          ?assertEqual({logged_out, client_already_logged_in}, event(Second)),
          ok = weft_im_client:leave(First),
          ok = login_again(Service, <<"ann">>)
      end).

%% The monitor of the one who left takes a moment to go.
login_again(Service, Name) ->
    Client = weft_im_client:start_link(Service, Name),
    case event(Client) of
        logged_in -> weft_im_client:leave(Client);
        {logged_out, client_already_logged_in} -> login_again(Service, Name)
    end.

who_is_silent_is_logged_out_test_() ->
    with_service(
      fun(Service, _Region) ->
          First = logged_in(Service, <<"ann">>),
          unlink(First),
          exit(First, kill),
          ok = login_again(Service, <<"ann">>)
      end).

unknown_client_is_told_test_() ->
    with_service(
      fun(Service, _Region) ->
          Ann = logged_in(Service, <<"ann">>),
          Conversation = {<<"ann">>, <<"nobody">>, 1},
          ok = weft_im_client:say(Ann, Conversation, <<"hello">>),
          ?assertEqual({given_up, Conversation, {no_client, <<"nobody">>}}, event(Ann)),
          ok = weft_im_client:leave(Ann)
      end).

%% A copy that comes after all is said is acknowledged, and nothing else.
late_copies_are_not_heard_test_() ->
    with_service(
      fun(Service, _Region) ->
          [Ann, Bob] = [logged_in(Service, Name) || Name <- [<<"ann">>, <<"bob">>]],
          Conversation = {<<"ann">>, <<"bob">>, 1},
          ok = weft_im_client:say(Ann, Conversation, <<"hello">>),
          ?assertEqual({heard, Conversation, 1, <<"hello">>}, event(Bob)),
          ok = weft_im_client:done(Bob, Conversation),
          Bob ! {said, Conversation, {message, 1, 0, <<"hello">>}, self()},
          receive {from, Bob, Said} -> ?assertEqual({heard, 1}, Said)
          after ?DEADLINE_MS -> error(not_acknowledged)
          end,
          ok = weft_im_client:say(Ann, {<<"ann">>, <<"bob">>, 2}, <<"again">>),
          ?assertEqual({heard, {<<"ann">>, <<"bob">>, 2}, 1, <<"again">>}, event(Bob)),
          lists:foreach(fun weft_im_client:leave/1, [Ann, Bob])
      end).

%% Who logs in again is a new process, and hears what comes next.
conversation_outlives_a_login_test_() ->
    with_service(
      fun(Service, _Region) ->
          Ann = logged_in(Service, <<"ann">>),
          Conversation = {<<"ann">>, <<"bob">>, 1},
          Bob = logged_in(Service, <<"bob">>),
          ok = weft_im_client:say(Ann, Conversation, <<"hello">>),
          ?assertEqual({heard, Conversation, 1, <<"hello">>}, event(Bob)),
          ?assertMatch({delivered, Conversation, 1, _}, event(Ann)),
          unlink(Bob),
          exit(Bob, kill),
          ok = weft_im_client:say(Ann, Conversation, <<"again">>),
          Other = bob_again(Service),
          ?assertEqual({heard, Conversation, 2, <<"again">>}, event(Other)),
          ?assertMatch({delivered, Conversation, 2, _}, event(Ann)),
          lists:foreach(fun weft_im_client:leave/1, [Ann, Other])
      end).

bob_again(Service) ->
    Bob = weft_im_client:start_link(Service, <<"bob">>),
    case event(Bob) of
        logged_in -> Bob;
        {logged_out, client_already_logged_in} -> bob_again(Service)
    end.

%% A slow warm-up is not what is measured, neither before the mark nor when it is acknowledged after
%% that; what is said in time and acknowledged late is.
the_warm_up_is_not_timed_test_() ->
    with_service(
      fun(Service, _Region) ->
          Settings = #{first => 1, step => 1, count => 2, seed => 1, scale => 1},
          People = spawn_link(weft_im_traffic, init, [Service, Settings, self(), ?DEADLINE_MS]),
          receive {ready, People} -> ok end,
          {links, Linked} = process_info(People, links),
          [Client, _] = [Pid || Pid <- Linked, Pid =/= self()],
          Delivered = fun(LatencyUs) ->
                          Conversation = {<<"tc1">>, <<"tc2">>, 0},
                          People ! {im, Client, {delivered, Conversation, 1, LatencyUs}}
                      end,
          Delivered(3000000),
          People ! mark,
          Delivered(2000000),
          Delivered(0),
          People ! finish,
          Delivered(0),
          People ! report,
          #{latencies := Latencies, delivered := Count} = receive {books, People, Books} -> Books
                                                          end,
          ?assertEqual({4, 2, 0}, {Count, weft_load_histogram:count(Latencies),
                                   weft_load_histogram:max(Latencies)}),
          unlink(People),
          exit(People, kill)
      end).

too_much_at_once_is_told_test_() ->
    with_service(
      fun(Service, _Region) ->
          Ann = logged_in(Service, <<"ann">>),
          Conversation = {<<"ann">>, <<"nobody">>, 1},
          true = erlang:suspend_process(Ann),
          [ok = weft_im_client:say(Ann, Conversation, <<"hello">>) || _ <- lists:seq(1, 102)],
          true = erlang:resume_process(Ann),
          ?assertEqual({given_up, Conversation, too_much}, event(Ann)),
          ok = weft_im_client:leave(Ann)
      end).

bad_options_are_told_test_() ->
    [?_assertMatch({Part, {match, _}}, {Part, re:run(text(Options), Part)})
     || {Options, Part} <- [{#{servers => 1}, "needs a second server"},
                            {#{is_grouped => true, routers => 2, servers => 1}, "second server"},
                            {#{routers => 3, servers => 8}, "20 nodes, and 30 are needed"},
                            {#{routers => 0}, "routers is 0"},
                            {#{count => 1}, "two at least"},
                            {#{scale => 0}, "scale is 0"},
                            {#{scale => 2}, "at most 1"},
                            {#{run_ms => x}, "run_ms is x"},
                            {#{client_nodes => 0}, "client_nodes is 0"},
                            {#{resend_ms => 0}, "resend_ms is 0"}]].

text(Options) ->
    {error, Text} = run(Options),
    Text.
