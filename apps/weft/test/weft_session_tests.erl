%% SPDX-License-Identifier: Apache-2.0
-module(weft_session_tests).
-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of a tunnelled lane.
-export([room/1, send/2]).

-define(PEER, <<"peer@host">>).
-define(LABEL, 1).

%% A peer closes a session in its handshake and opens another one. To the kernel the first is
%% pending until it has ended.
who_was_closed_in_the_handshake_is_waited_for_test_() ->
    with_kernel(fun() ->
                        Closed = closed(begun(accept(?PEER))),
                        {Waiter, _} = Waiting = await_earlier(accept(?PEER)),
                        weft_test_nodes:until(fun() -> waits(Waiter) end),
                        exit(Closed, kill),
                        ?assertEqual(ok, returned(Waiting))
                end).

%% Its attempt lost to ours, and waits until ours takes its place.
who_was_refused_is_not_waited_for_test_() ->
    with_kernel(fun() ->
                        Session = accept(?PEER),
                        Session ! {weft_handshake, <<"snok">>},
                        {ok, "snok"} = weft_session:recv_handshake(Session, infinity),
                        _ = closed(begun(Session)),
                        ?assertEqual(ok, returned(await_earlier(accept(?PEER))))
                end).

%% That one would wait for others itself; the kernel does not know of it.
who_was_closed_before_the_handshake_is_not_waited_for_test_() ->
    with_kernel(fun() ->
                        Session = accept(?PEER),
                        Session ! {weft_path, closed, self(), ?LABEL, ended},
                        ?assertEqual(ok, returned(await_earlier(accept(?PEER))))
                end).

others_are_not_waited_for_test_() ->
    with_kernel(fun() ->
                        _ = begun(accept(?PEER)),
                        _ = closed(begun(accept(<<"other@host">>))),
                        ?assertEqual(ok, returned(await_earlier(accept(?PEER))))
                end).

%% To the kernel it would be pending, though it can only fail. So would be whoever connects.
who_was_closed_meanwhile_is_told_test_() ->
    with_kernel(fun() ->
                        Session = accept(?PEER),
                        Session ! {weft_handshake, <<"name">>},
                        Session ! {weft_path, closed, self(), ?LABEL, ended},
                        ?assertEqual(closed, returned(await_earlier(Session)))
                end).

%% The test takes the kernel's place, whom sessions offer themselves to.
with_kernel(Test) ->
    fun() ->
            ok = weft_identity:init(true),
            ok = weft_sessions:new_table(),
            {ok, Sessions} = weft_sessions:start_link(),
            true = register(net_kernel, self()),
            try Test()
            after
                [exit(Session, kill) || Session <- weft_sessions:list()],
                true = unregister(net_kernel),
                gen_server:stop(Sessions),
                ets:delete(weft_sessions)
            end
    end.

accept(Peer) ->
    Lane = weft_lane:new({tunnel, ?MODULE, none}, {<<>>, 0},
                         {weft_fault_table, lateness, ['peer@host']}),
    Id = crypto:strong_rand_bytes(16),
    {ok, Session} = weft_session:accept(Id, Peer, {self(), [Lane], ?LABEL}, own_process),
    Session.

%% Somebody waits for a packet of the handshake.
begun(Session) ->
    {Pid, _} = Waiting =
        spawn_monitor(fun() -> exit(weft_session:recv_handshake(Session, infinity)) end),
    weft_test_nodes:until(fun() -> {status, waiting} =:= process_info(Pid, status) end),
    put({begun, Session}, Waiting),
    Session.

closed(Session) ->
    Session ! {weft_path, closed, self(), ?LABEL, ended},
    {error, closed} = returned(erase({begun, Session})),
    Session.

await_earlier(Session) ->
    spawn_monitor(fun() -> exit(weft_session:await_earlier(Session)) end).

waits(Waiter) ->
    {current_function, {weft_session, await_end_of_handshake, 1}}
        =:= process_info(Waiter, current_function).

returned({Pid, Monitor}) ->
    receive {'DOWN', Monitor, process, Pid, Reason} -> Reason after 20000 -> waits end.

room(_Lane) -> {ok, 0}.

send(_Lane, _Packet) -> ok.
