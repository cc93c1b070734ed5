%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a partition whose changes are committed together. There is no ring here, so
%% it is asked in place of an owner.
-module(weft_vnode_process_tests).
-behaviour(weft_vnode).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2, commit/1, is_held/3,
         tick/1, cancelled/2]).

-define(NAME, weft_vnode_process_tests_partition).

%% Commands that wait at the same time are committed at once.
many_commands_share_a_commit_test() ->
    with_partition([], fun() ->
        Answers = together([{command, fallback, key, add} || _ <- lists:seq(1, 20)]),
        ?assertEqual([{ok, N} || N <- lists:seq(1, 20)], lists:sort(Answers)),
        ?assertEqual({ok, {20, 1}}, ask(read))
    end).

%% Nobody waits for the next message.
answers_do_not_wait_for_a_message_that_does_not_come_test() ->
    with_partition([], fun() ->
        Last = {command, primary, key, add},
        ?assertEqual([{ok, 1}, {error, no_ring}],
                     together([{command, fallback, key, add}, Last])),
        ?assertEqual({ok, {1, 1}}, ask(read))
    end).

%% Neither is it kept from answering by a disk that is full.
what_needs_no_disk_does_not_wait_for_it_test() ->
    with_partition([full], fun() ->
        ?assertEqual([{error, {failed, full}}, {ok, 2}, {ok, {2, 0}}],
                     [ask(Command) || Command <- [add, add_now, read_now]])
    end).

%% What no answer waits for is on disk a second later.
all_is_committed_now_and_then_test() ->
    with_partition([], fun() ->
        {ok, 1} = ask(add_now),
        ?NAME ! tick,
        ?assertEqual({ok, {1, 1}}, ask(read_now))
    end).

%% At rest the data may be ended, so who waits has an answer before, and nobody is asked after.
nothing_is_asked_of_data_that_ended_at_rest_test() ->
    Pid = opened([ends], #{queue_max => 100}),
    true = unlink(Pid),
    ok = sys:suspend(?NAME),
    Asked = [begin
                 {_, Ref} = spawn_monitor(fun() ->
                                              exit(try gen_server:call(Pid, add())
                                                   catch exit:{Reason, _} -> Reason end)
                                          end),
                 weft_test_nodes:until(fun() ->
                     process_info(Pid, message_queue_len) =:= {message_queue_len, Number} end),
                 _ = [Pid ! tick || Number =:= 1],
                 Ref
             end || Number <- [1, 3]],
    ok = sys:resume(?NAME),
    ?assertEqual([{ok, 1}, normal],
                 [receive {'DOWN', Ref, process, _, Answer} -> Answer end || Ref <- Asked]).

add() -> {command, fallback, key, add}.

%% One answer and one commit for all of them.
a_command_may_change_several_keys_test() ->
    with_partition([], fun() ->
        ?assertEqual({ok, 5}, ask({add_all, 5})),
        ?assertEqual({ok, {5, 1}}, ask(read)),
        ?assertEqual({ok, 5}, ask({add_all, 0}))
    end).

%% One answer, which is the error, and nothing after it is done.
a_command_ends_with_the_first_change_that_fails_test() ->
    with_partition([], fun() ->
        %% As `weft_vnode:send/5' does it, which gets whatever comes.
        ?NAME ! {'$gen_call', {self(), each}, {command, fallback, key, {each, [add, fail, add]}}},
        ?assertMatch({ok, {1, _}}, ask(read)),
        ?assertEqual({error, {failed, asked_to}}, receive {each, Answer} -> Answer end),
        ?assertEqual(nothing, receive {each, Second} -> Second after 0 -> nothing end),
        ?assertEqual({error, {failed, asked_to}}, ask({each, [fail]})),
        ?assertEqual({ok, done}, ask({each, [add]}))
    end).

what_is_not_committed_is_an_error_for_all_test() ->
    with_partition([full], fun() ->
        ?assertEqual([{error, {failed, full}}, {error, {failed, full}}],
                     together([{command, fallback, key, add}, {command, fallback, key, read}]))
    end).

stray_messages_end_nothing_test() ->
    with_partition([], fun() ->
        Level = maps:get(level, logger:get_primary_config()),
        ok = logger:set_primary_config(level, critical),
        ?NAME ! what,
        ok = gen_server:cast(?NAME, what),
        ?assertMatch({error, _}, gen_server:call(?NAME, what)),
        ok = logger:set_primary_config(level, Level),
        ?assertMatch({ok, _}, ask(read))
    end).

what_is_stored_is_not_logged_test() ->
    with_partition([secret], fun() ->
        {status, _, _, Status} = sys:get_status(?NAME),
        ?assertEqual(nomatch, string:find(io_lib:format("~p", [Status]), "secret"))
    end).

%% Who has not heard of the next owner yet is refused, and so knows that nothing was done. To a
%% process that has ended it would have been sent in vain.
what_was_handed_over_is_refused_for_a_while_test_() ->
    {spawn, fun handed_over/0}.

handed_over() ->
    try
        {Refusing, Over} = refusing([]),
        ?assertMatch({reply, {error, moved}, _},
                     weft_vnode_process:handle_call({command, primary, key, read},
                                                    {self(), asked}, Refusing)),
        ?assertMatch({noreply, _}, weft_vnode_process:handle_info({over, another}, Refusing)),
        ?assertMatch({stop, normal, _}, weft_vnode_process:handle_info(Over, Refusing)),
        %% It has come back meanwhile.
        ok = weft_ring_lookup:publish_owners(weft_ring, [node() || _ <- lists:seq(1, 8)]),
        ?assertMatch({noreply, _}, weft_vnode_process:handle_info(Over, Refusing))
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% What it leaves on its disk the next process would take for what the owner lacks.
what_was_handed_over_stays_until_it_can_be_dropped_test_() ->
    {spawn, fun can_not_be_dropped/0}.

can_not_be_dropped() ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, error),
    try
        {Refusing, Over} = refusing([stuck]),
        {noreply, Stuck} = weft_vnode_process:handle_info(Over, Refusing),
        ?assertMatch({reply, {error, moved}, _},
                     weft_vnode_process:handle_call({command, primary, key, read},
                                                    {self(), asked}, Stuck)),
        {noreply, Ticked} = weft_vnode_process:handle_info(tick, Stuck),
        Again = receive {over, _} = Message -> Message after 10000 -> error(not_again) end,
        _ = put(stuck, no),
        ?assertMatch({stop, normal, _}, weft_vnode_process:handle_info(Again, Ticked))
    after
        ok = logger:set_primary_config(level, Level),
        weft_ring_lookup:withdraw(weft_ring)
    end.

%% One that was handed over, and the message that ends it.
refusing(Options) ->
    ok = weft_ring_lookup:publish_owners(weft_ring, [node() || _ <- lists:seq(1, 8)]),
    Config = #{queue_max => 100, handoff_pace_ms => 0, handoff_items => 10, channel => bulk},
    {ok, New, {continue, Open}} = weft_vnode_process:init({?NAME, ?MODULE, 0, Options, Config}),
    {noreply, Owner} = weft_vnode_process:handle_continue(Open, New),
    HandOver = {hand_over, {0, 1, node()}},
    {noreply, Sender} = weft_vnode_process:handle_call(HandOver, {self(), done}, Owner),
    Receiver = weft_ring_handoff_receiver_core:init(none, #{incarnation => 1}),
    Given = received(Receiver, Sender),
    ok = weft_ring_lookup:publish_owners(weft_ring, ['x@nowhere' || _ <- lists:seq(1, 8)]),
    {noreply, Refusing} = weft_vnode_process:handle_info(tick, Given),
    {Refusing, receive {over, _} = Over -> Over after 10000 -> error(never_over) end}.

%% It may have handed the partition over, and will be removed with all that it has.
a_node_that_has_forgotten_the_ring_is_no_owner_test() ->
    try
        %% It may be in the ring, and not have heard of that.
        ?assertEqual({{error, no_ring}, {ok, {0, 0}}, no_ring}, roles()),
        %% Owned by another one, by this one, and by this one as far as the others know.
        ok = weft_ring_lookup:publish_owners(weft_ring, ['x@nowhere' || _ <- lists:seq(1, 8)]),
        ?assertEqual({{error, not_owner}, {ok, {0, 0}}, none}, roles()),
        ok = weft_ring_lookup:forgotten(weft_ring, true),
        ?assertEqual({{error, not_owner}, {ok, {0, 0}}, forgotten}, roles()),
        ok = weft_ring_lookup:publish_owners(weft_ring, [node() || _ <- lists:seq(1, 8)]),
        ?assertEqual({{error, not_owner}, {ok, {0, 0}}, owner}, roles()),
        ok = weft_ring_lookup:forgotten(weft_ring, false),
        ?assertEqual({{ok, {0, 0}}, {ok, {0, 0}}, owner}, roles())
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% Its plan may be for a node that leaves by a commit that the owner has not heard of.
a_node_that_leaves_takes_nothing_test() ->
    Version = {2, node()},
    Ring = weft_ring_table:create({'x@nowhere', 1}, here, 8, 3),
    try
        [begin
             Node = weft_ring_table:set_member(node(), Status, {{location, here}, Version}, Ring),
             ok = weft_ring_lookup:publish(weft_ring, Node),
             ?assertMatch({_, _, Why}, roles())
         end || {Status, Why} <- [{member, none}, {leaving, leaves}, {gone, leaves},
                                  {joining, none}]]
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% A handoff may have had all from a former process, and be about to give it away.
what_is_handed_over_is_opened_when_the_ring_has_heard_of_it_test() ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    weft_ring_server = ets:new(weft_ring_server, [named_table]),
    true = ets:insert(weft_ring_server, {0}),
    true = register(weft_ring_server, self()),
    try
        [begin
             {ok, Pid} = weft_vnode_process:start_link(?NAME, ?MODULE, 0, [], #{queue_max => 100}),
             From = receive {'$gen_call', F, {opened, 0}} -> F after 4000 -> error(not_asked) end,
             ?assertEqual(undefined, whereis(?NAME)),
             gen_server:reply(From, Said),
             ?assertEqual(Answer, gen_server:call(Pid, opened)),
             true = unlink(Pid),
             ok = gen_server:stop(Pid)
         end || {Said, Answer} <- [{ok, {ok, started}},
                                   {{error, ring_is_busy}, {error, {failed, ring_is_busy}}}]]
    after
        true = unregister(weft_ring_server),
        true = ets:delete(weft_ring_server),
        ok = logger:set_primary_config(level, Level)
    end.

%% All of a partition has come, and by now another node shall have it. Its owner may be about to
%% give it to this node all the same, and then there is nothing else.
what_may_still_be_given_is_kept_test() ->
    Ring0 = weft_ring_table:create({'x@nowhere', 1}, here, 8, 3),
    Ring = weft_ring_table:set_plan({2, 'x@nowhere'}, [], lists:duplicate(8, 'y@nowhere'), Ring0),
    {Baton, 'x@nowhere'} = weft_ring_table:holder(0, Ring),
    Transfer = {0, Baton, node()},
    Server = ring_server(Ring),
    try
        ok = weft_ring_lookup:publish(weft_ring, Ring),
        with_partition([], fun() ->
            ok = brought(Transfer),
            ?NAME ! tick,
            ?assertEqual(Transfer, receive
                                       {'$gen_cast', {promised, Asked}} -> Asked
                                   after 5000 -> none
                                   end),
            ?assertMatch({{ok, {0, _}}, 1}, {ask(read), gen_server:call(?NAME, waiting)}),
            Server ! {ring, weft_ring_table:give(0, Baton, 'x@nowhere', Ring)},
            ?NAME ! tick,
            ?assertMatch({{ok, {cancelled, _}}, 0}, {ask(read), gen_server:call(?NAME, waiting)})
        end)
    after
        ok = ended(Server),
        weft_ring_lookup:withdraw(weft_ring)
    end.

%% In place of the server of the ring.
ring_server(Ring) ->
    Test = self(),
    Server = spawn_link(fun() -> true = register(weft_ring_server, self()), ring(Test, Ring) end),
    weft_test_nodes:until(fun() -> whereis(weft_ring_server) =:= Server end),
    Server.

ended(Server) ->
    true = unlink(Server),
    exit(Server, kill),
    weft_test_nodes:until(fun() -> whereis(weft_ring_server) =:= undefined end).

ring(Test, Ring) ->
    receive
        {'$gen_call', From, {command, ring}} -> gen_server:reply(From, Ring), ring(Test, Ring);
        {ring, Other} -> ring(Test, Other);
        Message -> Test ! Message, ring(Test, Ring)
    end.

brought(Transfer) ->
    ?NAME ! {weft_vnode, receiver, self(), {handoff, 1, {start, {Transfer, 1}, asked}}},
    Session = receive {weft_vnode, sender, {handoff, 1, {resume, asked, S, start, 0}}} -> S end,
    ?NAME ! {weft_vnode, receiver, self(), {handoff, 1, {items, Session, 1, [], done, 0}}},
    receive {weft_vnode, sender, {handoff, 1, {ack, Session, 1, 0}}} -> ok end.

%% What the partition answers as an owner and in place of one, and why it takes nothing from one.
roles() ->
    with_partition([], fun() ->
        ?NAME ! {weft_vnode, receiver, self(), {handoff, 1, {start, {{0, 1, node()}, 1}, asked}}},
        Why = receive
                  {weft_vnode, sender, {handoff, 1, {refuse, asked, Reason}}} -> Reason;
                  {weft_vnode, sender, {handoff, 1, {resume, asked, _, _, _}}} -> none
              end,
        {gen_server:call(?NAME, {command, primary, key, read}), ask(read), Why}
    end).

%% Or what others send to that node would wait behind the items.
a_handoff_goes_over_its_own_channel_test() ->
    Config = #{queue_max => 100, handoff_pace_ms => 0, handoff_items => 10, channel => moves},
    Pid = opened([], Config),
    Caller = spawn(fun() -> handed_over(Pid) end),
    try
        ok = traced(Pid),
        Caller ! go,
        receive
            {trace, _Courier, call, {weft, send, [To, {weft_vnode, receiver, Pid, _}, Channel]}} ->
                ?assertEqual({{?NAME, node()}, moves}, {To, Channel})
        after 10000 -> error(nothing_sent)
        end
    after
        _ = erlang:trace_pattern({weft, send, 3}, false, []),
        exit(Caller, kill),
        true = unlink(Pid),
        gen_server:stop(Pid)
    end.

%% What it had to send is sent again, by another one. The next owner is a process that says nothing,
%% so the handoff does not end meanwhile.
a_handoff_goes_on_without_its_courier_test_() ->
    {timeout, 30, fun() ->
        Config = #{queue_max => 100, handoff_pace_ms => 0, handoff_items => 10, channel => moves},
        Pid = opened([], Config),
        true = unregister(?NAME),
        true = register(?NAME, self()),
        Caller = spawn(fun() -> handed_over(Pid) end),
        Carrying = fun(Before) ->
                       receive
                           {trace, Courier, call, {weft, send, [_, {_, receiver, Pid, _}, _]}}
                             when Courier =/= Before -> Courier
                       after 10000 -> error(nothing_sent)
                       end
                   end,
        try
            ok = traced(Pid),
            Caller ! go,
            First = Carrying(none),
            true = exit(First, kill),
            ?assert(is_pid(Carrying(First)))
        after
            _ = erlang:trace_pattern({weft, send, 3}, false, []),
            true = unregister(?NAME),
            exit(Caller, kill),
            true = unlink(Pid),
            gen_server:stop(Pid)
        end
    end}.

%% The next owner is a process that says nothing. Others get their turn.
a_handoff_of_which_nothing_is_heard_is_said_to_be_stalled_test() ->
    Config = #{queue_max => 100, handoff_pace_ms => 0, handoff_items => 10, channel => moves,
               stalled_ms => 20},
    Pid = opened([], Config),
    true = unregister(?NAME),
    true = register(?NAME, self()),
    Server = ring_server(none),
    Caller = spawn(fun() -> handed_over(Pid) end),
    try
        Caller ! go,
        ?assertEqual({0, 1, node()}, receive {'$gen_cast', {stalled, Transfer}} -> Transfer
                                     after 4000 -> never
                                     end)
    after
        true = unregister(?NAME),
        exit(Caller, kill),
        true = unlink(Pid),
        gen_server:stop(Pid),
        ended(Server)
    end.

%% Once, until more is acknowledged.
that_a_handoff_is_stalled_is_said_once_test() ->
    Looks = [{s, 1}, {s, 2}, {s, 2}, {s, 2}, {s, 3}, none, none],
    {Said, _} = lists:mapfoldl(fun looked/2, none, Looks),
    ?assertEqual([moves, moves, stalled, moves, moves, moves, stalled], Said).

looked(Acknowledged, Before) ->
    weft_vnode_handoff:looked(Before, Acknowledged).

%% It is sent again meanwhile, and would be more each time.
little_waits_for_a_channel_that_is_full_test() ->
    Courier = spawn(fun() -> receive stop -> ok end end),
    [ok = weft_vnode_handoff:carry(Courier, {handoff, 1, N}) || N <- lists:seq(1, 1000)],
    ?assertEqual({message_queue_len, 300}, process_info(Courier, message_queue_len)),
    exit(Courier, kill).

%% As soon as it is traced.
handed_over(Pid) ->
    receive go -> gen_server:call(Pid, {hand_over, {0, 1, node()}}, infinity) end.

%% A module that is not loaded has no function of which calls could be traced.
traced(Pid) ->
    {module, weft} = code:ensure_loaded(weft),
    1 = erlang:trace(Pid, true, [call, set_on_spawn]),
    1 = erlang:trace_pattern({weft, send, 3}, true, []),
    ok.

%% The next owner takes all there is.
received(Receiver0, Sender) ->
    receive
        {weft_vnode, receiver, _, Msg} ->
            {Receiver, Effects} = weft_ring_handoff_receiver_core:handle({message, Msg}, Receiver0),
            received(Receiver, lists:foldl(fun answered/2, Sender, Effects));
        {done, ok} -> Sender
    after 10000 -> error(not_handed_over)
    end.

answered({send, Msg}, Sender) ->
    {noreply, Next} = weft_vnode_process:handle_info({weft_vnode, sender, Msg}, Sender),
    Next;
answered(_, Sender) ->
    Sender.

%% It is asked for all of this before it looks at the first.
together(Requests) ->
    %% Quickly, as a partition has something to do by itself each second.
    ok = sys:suspend(?NAME),
    Asked = [gen_server:send_request(?NAME, Request) || Request <- Requests],
    ok = sys:resume(?NAME),
    [begin
         {reply, Answer} = gen_server:receive_response(Id, infinity),
         Answer
     end || Id <- Asked].

ask(Command) -> gen_server:call(?NAME, {command, fallback, key, Command}).

with_partition(Options, Fun) ->
    Pid = opened(Options, #{queue_max => 100}),
    try Fun()
    after
        true = unlink(Pid),
        gen_server:stop(Pid)
    end.

%% It has its name then.
opened(Options, Config) ->
    {ok, Pid} = weft_vnode_process:start_link(?NAME, ?MODULE, 0, Options, Config),
    {ok, started} = gen_server:call(Pid, opened),
    Pid.

%% --- a counter, which notes what was committed as well ----------------------------------------

init(0, Options) -> {ok, {0, [0], Options}}.

command(key, Add, {Count, _, _}) when Add =:= add; Add =:= add_now -> {change, add, Count + 1};
command(key, {add_all, Times}, {Count, _, _}) ->
    {changes, [{key, add} || _ <- lists:seq(1, Times)], Count + Times};
command(key, {each, Changes}, _) -> {changes, [{key, Change} || Change <- Changes], done};
command(key, Read, {Count, Commits, _}) when Read =:= read; Read =:= read_now ->
    {reply, {Count, length(Commits) - 1}}.

is_held(key, Command, _) -> Command =/= add_now andalso Command =/= read_now.

tick({_, _, [ends]} = State) -> {stop, State};
tick(State) -> {ok, State}.

change(key, fail, none, _) -> {error, asked_to};
change(key, add, none, {Count, Commits, Options}) -> {ok, {Count + 1, Commits, Options}}.

commit({_, _, [hangs]}) -> receive never -> ok end;
commit({_, _, [full]} = State) -> {error, full, State};
commit({Count, [Count | _], _} = State) -> {ok, State};
commit({Count, Commits, Options}) -> {ok, {Count, [Count | Commits], Options}}.

items(_, _, _) -> {[], done}.
take(_, _, State) -> {ok, State}.
clear(none, {_, _, [stuck]} = State) ->
    case get(stuck) of no -> {ok, State}; undefined -> {error, eacces} end;
clear(_, State) -> {ok, State}.
cover(_, State) -> State.
cancelled(_, {_, Commits, Options}) -> {ok, {cancelled, Commits, Options}}.
