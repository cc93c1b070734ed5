%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of one partition. It carries out commands on its data (`weft_vnode_data') one
%% after the other, and runs the cores of handoffs, at either end.
%%
%% If more than `queue_max' messages wait here, commands are answered with `overload' and not
%% looked at. A partition that was handed over refuses commands (`moved'). It drops its data and
%% ends some time after the ring has another owner for it: other nodes may hear of that later, and
%% who asks a process that ends can not know that nothing was done. If the plan was changed and it
%% is to stay, it goes on. With `commit/1' answers are held until nothing more waits here, or there
%% are many, and then all changes are committed together. Who is handed over to is told apart by its
%% process: when that ends, the handoff waits for the next one.
-module(weft_vnode_process).
-behaviour(gen_server).

-export([start_link/5]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2,
         format_status/1]).

-define(TICK_MS, 1000).
%% So long a partition that has another owner refuses what is asked here.
-define(REFUSE_MS, 1000).
%% How many answers wait for one commit.
-define(HELD_MAX, 200).
%% A handoff that has not got further in this time holds up no others.
-define(STALLED_MS, 60000).
%% In place of the data, until they are open, and if they can not be opened.
-define(NOT_OPEN(Why), {?MODULE, not_open, Why}).
%% So long a partition that can not be opened says so, before another process may try it.
-define(FAILED_MS, 1000).

-record(sending, {core :: weft_ring_handoff_sender_core:state(),
                  transfer :: weft_ring_table:transfer(),
                  waiter :: none | gen_server:from(), % `none' when it is ready
                  waiting :: reference(),
                  courier :: pid(),
                  %% Tells timers of this handoff from those of an earlier one.
                  timers :: reference(),
                  peer :: none | reference()}).

-record(vnode, {name :: atom(),
                module :: module(),
                partition :: non_neg_integer(),
                data = ?NOT_OPEN(yet) :: ?NOT_OPEN(term()) | weft_vnode_data:data(),
                config :: map(),
                sending = none :: none | #sending{},
                receiving = none :: none | weft_ring_handoff_receiver_core:state(),
                %% It was handed over like this.
                given = false :: false | weft_ring_table:transfer(),
                %% A change of the command that is carried out.
                failed = none :: none | {error, term()},
                %% Answers that wait for a commit.
                held = [] :: [{gen_server:from(), term()}]}).

%% @doc The process gets its name when its data are open. Until then, callers wait in `weft_vnodes',
%% where there is a limit. If they can not be opened, it says so under its name for a second.
-spec start_link(atom(), module(), non_neg_integer(), term(), map()) -> gen_server:start_ret().
start_link(Name, Module, Partition, Options, Config) ->
    gen_server:start_link(?MODULE, {Name, Module, Partition, Options, Config}, []).

%% @private
init({Name, Module, Partition, Options, Config}) ->
    process_flag(trap_exit, true),
    Vnode = #vnode{name = Name, module = Module, partition = Partition, config = Config},
    {ok, Vnode, {continue, {open, Options}}}.

%% Whoever starts partitions does not wait for the disk of each.
%% @private
handle_continue({open, Options}, Vnode) ->
    weft_redact:run(fun() -> opened(Options, Vnode) end).

opened(Options, #vnode{name = Name, module = Module, partition = Partition} = Vnode) ->
    Opened = case weft_ring_server:opened(Partition) of
                 ok -> Module:init(Partition, Options);
                 Busy -> Busy
             end,
    %% What was read of a file, and made of it, may be large, and is not needed any more.
    true = erlang:garbage_collect(),
    true = register(Name, self()),
    case Opened of
        {ok, Of} -> {noreply, with_data(Of, weft_vnode_notes:fresh(), Vnode)};
        {ok, Of, Kept} -> {noreply, with_data(Of, Kept, Vnode)};
        {error, Reason} ->
            logger:error("~ts can not be opened: ~0tP", [Name, Reason, 20]),
            _ = erlang:send_after(?FAILED_MS, self(), ended),
            {noreply, Vnode#vnode{data = ?NOT_OPEN(Reason)}}
    end.

with_data(Of, Kept, #vnode{name = Name, module = Module} = Vnode) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    anew(Vnode#vnode{data = weft_vnode_data:new(Name, Module, Of, Kept)}).

%% @private
handle_call(waiting, _From, #vnode{data = ?NOT_OPEN(_)} = Vnode) ->
    {reply, unknown, Vnode};
handle_call(_Request, _From, #vnode{data = ?NOT_OPEN(Reason)} = Vnode) ->
    {reply, {error, {failed, Reason}}, Vnode};
handle_call(Request, From, Vnode) ->
    weft_redact:run(fun() -> settled(asked(Request, From, Vnode)) end).

asked({command, Role, Key, Command}, From, Vnode) ->
    case refused(Role, Vnode) of
        {error, Reason} -> {reply, {error, Reason}, Vnode};
        ok -> command(From, Key, Command, Vnode)
    end;
asked({cover, Question}, _From, #vnode{data = Data} = Vnode) ->
    case refused(primary, Vnode) of
        {error, Reason} -> {reply, {error, Reason}, Vnode};
        ok -> {reply, {ok, weft_vnode_data:cover(Question, Data)}, Vnode}
    end;
asked(opened, _From, Vnode) ->
    {reply, {ok, started}, Vnode};
asked(waiting, _From, #vnode{data = Data} = Vnode) ->
    Waiting = weft_vnode_data:waiting(Data),
    {reply, Waiting + case promised(Vnode) of none -> 0; _ -> 1 end, Vnode};
asked({Step, Transfer}, {Caller, _} = From, #vnode{sending = none} = Vnode)
  when Step =:= hand_over orelse Step =:= catch_up, node(Caller) =:= node() ->
    {noreply, hand_over(Step, Transfer, From, Vnode)};
asked({finish, Transfer}, {Caller, _} = From,
      #vnode{sending = #sending{transfer = Transfer, waiter = none} = Sending} = Vnode)
  when node(Caller) =:= node() ->
    {noreply, sender(finish, Vnode#vnode{sending = Sending#sending{waiter = From}})};
asked({Step, _}, _From, Vnode) when Step =:= hand_over; Step =:= catch_up; Step =:= finish ->
    {reply, {error, busy}, Vnode};
asked(Request, _From, Vnode) ->
    {reply, weft_stray:call(Request), Vnode}.

%% @private
handle_cast(Request, Vnode) ->
    ok = weft_stray:message(Request),
    settled({noreply, Vnode}).

%% @private
handle_info(ended, #vnode{data = ?NOT_OPEN(_)} = Vnode) ->
    {stop, normal, Vnode};
handle_info(_Message, #vnode{data = ?NOT_OPEN(_)} = Vnode) ->
    {noreply, Vnode};
handle_info(Message, Vnode) ->
    weft_redact:run(fun() -> settled(told(Message, Vnode)) end).

told({weft_vnode, receiver, Sender, Msg}, Vnode) when is_pid(Sender) ->
    {noreply, received(Sender, Msg, Vnode)};
told({weft_vnode, sender, Msg}, Vnode) ->
    {noreply, sender({message, Msg}, Vnode)};
told({handoff, Timers, {timer, Timer}}, #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    {noreply, sender({timer, Timer}, Vnode)};
told({handoff, Timers, reconnect}, #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    {noreply, reconnect(Vnode)};
told({handoff, Timers, {look, Before}}, #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    {noreply, looked(Before, Vnode)};
told({handoff, Timers, {started, {ok, started}}},
     #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    {noreply, sender(link_up, watch(Vnode))};
told({handoff, Timers, {started, {error, _}}},
     #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    {noreply, later(Vnode)};
told({handoff, _Outdated, _}, Vnode) ->
    {noreply, Vnode};
told({'DOWN', Ref, process, _, _}, #vnode{sending = #sending{waiting = Ref}} = Vnode) ->
    {noreply, unsent(sender(cancel, Vnode))};
told({'DOWN', Ref, process, _, _}, #vnode{sending = #sending{peer = Ref}} = Vnode) ->
    {noreply, later(sender(link_down, Vnode))};
told({'DOWN', _Outdated, process, _, _}, Vnode) ->
    {noreply, Vnode};
told({not_given, Transfer}, #vnode{given = Transfer} = Vnode) ->
    {noreply, anew(Vnode#vnode{given = false})};
told({over, Transfer}, #vnode{given = Transfer} = Vnode) ->
    over(Vnode);
told({Outdated, _}, Vnode) when Outdated =:= not_given; Outdated =:= over ->
    {noreply, Vnode};
told(tick, #vnode{data = Data} = Vnode) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    %% What is asked at rest may end the data, and may not be asked in the midst of something. And
    %% what need not be on disk at once is to be there some time.
    tick(case weft_vnode_data:commits(Data) of true -> committed(Vnode); false -> Vnode end);
told({'EXIT', _Port, normal}, Vnode) ->
    {noreply, Vnode};
told(Message, Vnode) ->
    ok = weft_stray:message(Message),
    {noreply, Vnode}.

%% @private
terminate(_Reason, #vnode{data = ?NOT_OPEN(_)}) ->
    ok;
terminate(Reason, #vnode{data = Data}) ->
    weft_vnode_data:terminate(Reason, Data).

%% What users have stored is not for logs.
%% @private
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(#{state := #vnode{name = Name}} = Status) -> weft_redact:status(Status, Name);
format_status(Status) -> weft_redact:status(Status, not_shown).

%% --- commands ---------------------------------------------------------------------------------

refused(Role, #vnode{config = #{queue_max := Max}} = Vnode) ->
    case process_info(self(), message_queue_len) of
        {message_queue_len, Waiting} when Waiting > Max -> {error, overload};
        _ -> whose(Role, Vnode)
    end.

whose(_, #vnode{given = {_, _, _}}) -> {error, moved};
whose(fallback, _) -> ok;
whose(primary, #vnode{partition = Partition}) ->
    case weft_ring_lookup:is_mine(weft_ring, Partition) of
        {ok, true} -> ok;
        {ok, false} -> {error, not_owner};
        {error, Reason} -> {error, Reason}
    end.

command(From, Key, Command, #vnode{data = Data} = Vnode) ->
    To = {From, weft_vnode_data:is_held(Key, Command, Data)},
    {noreply, case weft_vnode_data:command(Key, Command, Data) of
                  {reply, Reply} -> answer_to(To, {ok, Reply}, Vnode);
                  {change, Change, Reply} -> changes([{Key, Change}], To, Reply, Vnode);
                  {changes, Changes, Reply} -> changes(Changes, To, Reply, Vnode)
              end}.

%% There is one answer: after the last change, or after the first one that failed.
changes([], To, Reply, Vnode) ->
    answer_to(To, {ok, Reply}, Vnode);
changes([{Key, Change} | Changes], To, Reply, Vnode0) ->
    case changed(Key, Change, Vnode0) of
        #vnode{failed = none} = Vnode -> changes(Changes, To, Reply, Vnode);
        #vnode{failed = Error} = Vnode -> answer_to(To, Error, Vnode#vnode{failed = none})
    end.

changed(Key, Change, #vnode{sending = none} = Vnode) ->
    change(Key, Change, none, Vnode);
changed(Key, Change, Vnode) ->
    sender({update, command, Key, Change}, Vnode).

change(Key, Change, Note, #vnode{data = Data} = Vnode) ->
    case weft_vnode_data:change(Key, Change, Note, Data) of
        {ok, New} -> Vnode#vnode{data = New};
        {error, Reason} -> Vnode#vnode{failed = {error, {failed, Reason}}}
    end.

answer_to({From, true}, Answer, #vnode{held = Held} = Vnode) ->
    Vnode#vnode{held = [{From, Answer} | Held]};
answer_to({From, false}, Answer, Vnode) ->
    gen_server:reply(From, Answer),
    Vnode.

settled({noreply, #vnode{held = [_ | _] = Held} = Vnode}) ->
    case process_info(self(), message_queue_len) of
        {message_queue_len, Waiting} when Waiting > 0, length(Held) < ?HELD_MAX ->
            {noreply, Vnode};
        _ -> {noreply, committed(Vnode)}
    end;
settled({reply, Reply, #vnode{held = [_ | _]} = Vnode}) -> % it may be the last for a while
    {reply, Reply, committed(Vnode)};
settled({stop, Reason, #vnode{held = [_ | _]} = Vnode}) ->
    {stop, Reason, committed(Vnode)};
settled(Other) ->
    Other.

committed(#vnode{data = Data, held = Held} = Vnode) ->
    {Result, New} = weft_vnode_data:commit(Data),
    lists:foreach(fun({From, Answer}) ->
                      gen_server:reply(From, case Result of
                                                 ok -> Answer;
                                                 {error, Reason} -> {error, {failed, Reason}}
                                             end)
                  end, lists:reverse(Held)),
    Vnode#vnode{data = New, held = []}.

anew(#vnode{data = Data} = Vnode) -> Vnode#vnode{data = weft_vnode_data:anew(Data)}.

%% --- to the next owner ------------------------------------------------------------------------

%% Since it was handed over to somebody else, who may get it again, there may have been changes that
%% are in no log.
hand_over(Step, Transfer, From, #vnode{given = Other} = Vnode)
  when Other =/= false, Other =/= Transfer ->
    hand_over(Step, Transfer, From, anew(Vnode#vnode{given = false}));
hand_over(Step, {_, _, To} = Transfer, {Caller, _} = From,
          #vnode{name = Name, data = Data, config = Config} = Vnode) ->
    {Core, Effects} = weft_vnode_handoff:sender(Step, Transfer, weft_vnode_data:log(Data), Config),
    Courier = weft_vnode_handoff:carried_by(none, {Name, To}, map_get(channel, Config)),
    Sending = #sending{core = Core, transfer = Transfer, waiter = From, courier = Courier,
                       waiting = monitor(process, Caller), timers = make_ref(), peer = none},
    perform(Effects, watch(look_later(none, Vnode#vnode{sending = Sending, given = false}))).

look_later(Next, #vnode{config = Config, sending = #sending{timers = Timers}} = Vnode) ->
    Ms = maps:get(stalled_ms, Config, ?STALLED_MS),
    _ = erlang:send_after(Ms, self(), {handoff, Timers, {look, Next}}),
    Vnode.

%% When it is ready it waits for other modules, and not for the other node.
looked(_Before, #vnode{sending = #sending{waiter = none}} = Vnode) ->
    look_later(none, Vnode);
looked(Before, #vnode{sending = #sending{core = Core, transfer = Transfer}} = Vnode) ->
    {Is, Next} = weft_vnode_handoff:looked(Before,
                                           weft_ring_handoff_sender_core:acknowledged(Core)),
    _ = Is =:= moves orelse weft_ring_server:stalled(Transfer),
    look_later(Next, Vnode).

watch(#vnode{name = Name, sending = #sending{transfer = {_, _, To}} = Sending} = Vnode) ->
    Vnode#vnode{sending = Sending#sending{peer = monitor(process, {Name, To})}}.

later(#vnode{sending = #sending{timers = Timers}} = Vnode) ->
    _ = erlang:send_after(?TICK_MS div 4, self(), {handoff, Timers, reconnect}),
    Vnode.

reconnect(#vnode{module = Module, partition = Partition,
                 sending = #sending{timers = Timers, transfer = {_, _, To}}} = Vnode) ->
    ok = weft_vnode_handoff:reach({Module, Partition}, To, Timers),
    Vnode.

sender(_Event, #vnode{sending = none} = Vnode) ->
    Vnode;
sender(Event, #vnode{sending = #sending{core = Core0} = Sending} = Vnode) ->
    {Core, Effects} = weft_ring_handoff_sender_core:handle(
                        Event, erlang:monotonic_time(millisecond), Core0),
    perform(Effects, Vnode#vnode{sending = Sending#sending{core = Core}}).

perform(Effects, Vnode) ->
    lists:foldl(fun effect/2, Vnode, Effects).

effect({send, Msg}, #vnode{name = Name, config = #{channel := Channel},
                           sending = #sending{courier = Before, transfer = {_, _, To}} = Sending}
                    = Vnode) ->
    Courier = weft_vnode_handoff:carried_by(Before, {Name, To}, Channel),
    ok = weft_vnode_handoff:carry(Courier, Msg),
    Vnode#vnode{sending = Sending#sending{courier = Courier}};
effect({read, Cursor, Max}, #vnode{data = Data} = Vnode) ->
    {Items, Next} = weft_vnode_data:items(Cursor, Max, Data),
    sender({batch, Items, Next}, Vnode);
effect({apply, command, Key, Change, none}, Vnode) ->
    change(Key, Change, none, Vnode);
effect({apply, command, Key, Change, Number}, Vnode) ->
    change(Key, Change, {log, Number, Key, Change}, Vnode);
effect({What, _Number} = Note, #vnode{data = Data} = Vnode)
  when What =:= truncate; What =:= reset ->
    Vnode#vnode{data = weft_vnode_data:note(Note, Data)};
effect({refuse, command, Reason}, Vnode) ->
    Vnode#vnode{failed = {error, Reason}};
effect({after_ms, Ms, Timer}, #vnode{sending = #sending{timers = Timers}} = Vnode) ->
    _ = erlang:send_after(Ms, self(), {handoff, Timers, {timer, Timer}}),
    Vnode;
effect({failed, Reason}, Vnode) ->
    anew(answered({error, Reason}, Vnode));
effect(ready, #vnode{sending = #sending{waiter = From} = Sending} = Vnode) ->
    gen_server:reply(From, ok),
    Vnode#vnode{sending = Sending#sending{waiter = none}};
effect(done, #vnode{sending = #sending{transfer = Transfer}} = Vnode) ->
    answered(ok, Vnode#vnode{given = Transfer}).

answered(Answer, #vnode{sending = #sending{waiter = From}} = Vnode) ->
    _ = From =:= none orelse gen_server:reply(From, Answer),
    unsent(Vnode).

unsent(#vnode{sending = #sending{waiting = Waiting, peer = Peer, courier = Courier}} = Vnode) ->
    true = demonitor(Waiting, [flush]),
    true = Peer =:= none orelse demonitor(Peer, [flush]),
    Courier ! stop,
    Vnode#vnode{sending = none}.

%% --- from the former owner --------------------------------------------------------------------

received(Sender, Msg, #vnode{partition = Partition} = Vnode) ->
    case weft_ring_lookup:may_take(weft_ring, Partition) of
        ok -> receiver(Sender, Msg, Vnode);
        {error, Reason} ->
            answer(Sender, weft_ring_handoff_receiver_core:refuse(Msg, Reason), Vnode)
    end.

receiver(Sender, Msg, #vnode{receiving = none, data = Data} = Vnode) ->
    Core = weft_vnode_handoff:receiver(weft_vnode_data:mark(Data)),
    receiver(Sender, Msg, Vnode#vnode{receiving = Core});
receiver(Sender, Msg, #vnode{receiving = Core0} = Vnode) ->
    {Core, Effects} = weft_ring_handoff_receiver_core:handle({message, Msg}, Core0),
    %% What comes from another owner is not what was given away.
    answer(Sender, Effects, Vnode#vnode{receiving = Core, given = false}).

answer(Sender, Effects, Vnode) ->
    lists:foldl(fun(Effect, V) -> taken(Effect, Sender, V) end, Vnode, Effects).

taken({send, Msg}, Sender, Vnode) ->
    _ = erlang:send(Sender, {weft_vnode, sender, Msg}, [nosuspend]),
    Vnode;
taken({clear, Mark}, _, #vnode{data = Data} = Vnode) ->
    Vnode#vnode{data = weft_vnode_data:clear(Mark, Data)};
taken({items, Items, Mark}, _, #vnode{data = Data} = Vnode) ->
    Vnode#vnode{data = weft_vnode_data:take(Items, Mark, Data)};
taken({update, Key, Change, Mark}, _, #vnode{data = Data} = Vnode) ->
    Vnode#vnode{data = weft_vnode_data:update(Key, Change, Mark, Data)}.

%% --- at rest ----------------------------------------------------------------------------------

tick(#vnode{given = {_, _, _} = Transfer, partition = Partition} = Vnode) ->
    case {weft_ring_lookup:owner(weft_ring, Partition), weft_vnode_plan:planned(Partition)} of
        {{ok, Owner}, _} when Owner =/= node() ->
            _ = erlang:send_after(?REFUSE_MS, self(), {over, Transfer}),
            {noreply, Vnode};
        %% Nobody else has it or shall have it.
        {{ok, _}, Planned} when Planned =:= node() ->
            {noreply, anew(Vnode#vnode{given = false})};
        _ -> {noreply, Vnode}
    end;
%% The ring does not want this handoff any more, and will say so.
tick(#vnode{sending = Sending} = Vnode) when Sending =/= none ->
    case whose(primary, Vnode) of
        ok -> at_rest(Vnode);
        {error, _} -> {noreply, Vnode}
    end;
tick(#vnode{data = Data, partition = Partition} = Vnode) ->
    case weft_vnode_data:cancels(Data) andalso weft_vnode_plan:is_of_others(Partition) of
        true -> at_rest(unpromised(promised(Vnode), Vnode));
        false -> at_rest(Vnode)
    end.

over(#vnode{name = Name, partition = Partition, data = Data} = Vnode) ->
    case weft_vnode_plan:is_another_owner(Partition) andalso weft_vnode_data:drop(Data) of
        false -> {noreply, Vnode};
        {ok, Dropped} -> {stop, normal, Vnode#vnode{data = Dropped}};
        %% The next process would take what is left for what the owner lacks. It is tried again.
        {error, Reason} ->
            logger:warning("~ts can not be dropped yet: ~0tP", [Name, Reason, 20]),
            {noreply, Vnode}
    end.

%% All is here, so its owner may be about to give it to this node: that is asked first.
unpromised(none, Vnode) ->
    cancelled(Vnode);
unpromised(Transfer, Vnode) ->
    ok = weft_ring_server:promised(Transfer),
    Vnode.

promised(#vnode{data = Data}) -> weft_vnode_plan:promised(weft_vnode_data:mark(Data)).

%% The sender may not know of it yet. What it still brings is refused (no such session), so it can
%% not take for complete here what is not: it begins anew.
cancelled(#vnode{data = Data} = Vnode) ->
    Vnode#vnode{data = weft_vnode_data:cancelled(Data), receiving = none}.

at_rest(#vnode{data = Data, sending = Sending} = Vnode) ->
    case {weft_vnode_data:tick(Data), Sending} of
        {{stop, New}, none} -> {stop, normal, Vnode#vnode{data = New}};
        {{_, New}, _} -> {noreply, Vnode#vnode{data = New}}
    end.
