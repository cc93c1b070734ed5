%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on the nodes of `weft_fairness_SUITE': senders that send as fast as they may,
%% receivers that count and check the order, a caller that measures.
-module(weft_fairness_load).

-export([receivers/1, received/1, senders/3, sent/1, statuses/1, stop/1, kill/1, calls/2,
         calls_in_turn/3, hold/1, release/1, purge_beside/1, queued_bytes/0, binary_bytes/0,
         join/1]).
-export([can_be_asynchronous/0, send_asynchronously/3]).
-export([send_mixed/4, receiver_of_atoms/0, send_atoms/3, atoms_right/1]).
-export([echo/0, receiver/2, sender/5, holder/1, take_atoms/1, send_atoms/4]).

-define(STOP, {?MODULE, stop}).
-define(SENT, {?MODULE, sent}).

%% @doc Starts receivers; each takes numbered messages from one sender.
-spec receivers(pos_integer()) -> [pid()].
receivers(Count) ->
    persistent_term:erase(?STOP),
    [spawn(?MODULE, receiver, [0, 0]) || _ <- lists:seq(1, Count)].

%% @private A message out of order is the end of its receiver.
-spec receiver(non_neg_integer(), non_neg_integer()) -> no_return().
receiver(Count, Bytes) ->
    receive
        {Number, Binary} when Number =:= Count + 1 -> receiver(Number, Bytes + byte_size(Binary));
        {Number, _} -> exit({out_of_order, Number, Count});
        {count, From, Ref} -> From ! {Ref, {Count, Bytes}}, receiver(Count, Bytes)
    end.

%% @doc Starts a receiver for what `send_atoms/3' sends. A wrong atom is its end.
-spec receiver_of_atoms() -> pid().
receiver_of_atoms() ->
    spawn(?MODULE, take_atoms, [0]).

%% @private
-spec take_atoms(non_neg_integer()) -> no_return().
take_atoms(Count) ->
    receive
        {right, From, Ref} ->
            From ! {Ref, Count},
            take_atoms(Count);
        {Number, Atoms, _Fill} when Number =:= Count + 1 ->
            Texts = [atom_to_binary(Atom) || Atom <- Atoms],
            Texts = texts(Number),
            take_atoms(Number)
    end.

%% Ten of 5,000 atoms, others each time.
texts(Number) ->
    [<<"weft_test_", (integer_to_binary((Number * 7 + N * N * 31) rem 5000))/binary>>
     || N <- lists:seq(1, 10)].

%% @doc Sends Count messages of ten atoms and so many bytes.
-spec send_atoms(pid(), Bytes :: non_neg_integer(), Count :: pos_integer()) -> pid().
send_atoms(Receiver, Bytes, Count) ->
    spawn(?MODULE, send_atoms, [Receiver, binary:copy(<<7>>, Bytes), 1, Count]).

%% @private
-spec send_atoms(pid(), binary(), pos_integer(), pos_integer()) -> ok.
send_atoms(_Receiver, _Fill, Number, Count) when Number > Count ->
    ok;
send_atoms(Receiver, Fill, Number, Count) ->
    Receiver ! {Number, [binary_to_atom(Text) || Text <- texts(Number)], Fill},
    send_atoms(Receiver, Fill, Number + 1, Count).

%% @doc Sends Count messages of 150 bytes, each of number Every to the first receiver.
-spec send_mixed(pid(), pid(), Count :: pos_integer(), Every :: pos_integer()) -> ok.
send_mixed(First, Second, Count, Every) ->
    lists:foreach(fun(N) ->
                          Own = N div Every,
                          case N rem Every of
                              0 -> First ! {Own, binary:copy(<<7>>, 150)};
                              _ -> Second ! {N - Own, binary:copy(<<7>>, 150)}
                          end
                  end, lists:seq(1, Count)).

%% @doc How many messages have come, all of them right so far.
-spec atoms_right(pid()) -> [non_neg_integer()].
atoms_right(Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {right, self(), Ref},
    receive
        {Ref, Count} -> demonitor(Ref, [flush]), [Count];
        {'DOWN', Ref, _, _, Reason} -> error(Reason)
    end.

%% @doc Messages and bytes so far, per receiver.
-spec received([pid()]) -> [{non_neg_integer(), non_neg_integer()}].
received(Receivers) ->
    [begin
         Ref = monitor(process, Pid),
         Pid ! {count, self(), Ref},
         receive
             {Ref, Counts} -> demonitor(Ref, [flush]), Counts;
             {'DOWN', Ref, _, _, Reason} -> error(Reason)
         end
     end || Pid <- Receivers].

%% @doc Starts a sender of Count messages of so many bytes for each receiver.
-spec senders([pid()], Bytes :: pos_integer(), Count :: pos_integer() | infinity) -> [pid()].
senders(Receivers, Bytes, Count) ->
    Stop = counters:new(1, []),
    Sent = counters:new(length(Receivers), []),
    persistent_term:put(?STOP, Stop),
    persistent_term:put(?SENT, Sent),
    Payload = binary:copy(<<7>>, Bytes),
    [spawn(?MODULE, sender, [Receiver, Payload, Count, {Sent, Index}, Stop])
     || {Index, Receiver} <- lists:enumerate(Receivers)].

%% @private
-spec sender(pid(), binary(), pos_integer() | infinity,
             {counters:counters_ref(), pos_integer()}, counters:counters_ref()) -> ok.
sender(Receiver, Payload, Count, {Sent, Index} = Mine, Stop) ->
    Number = 1 + counters:get(Sent, Index),
    case Number > Count orelse counters:get(Stop, 1) > 0 of
        true ->
            ok;
        false ->
            %% A copy, so that what waits takes memory.
            Receiver ! {Number, binary:copy(Payload)},
            counters:add(Sent, Index, 1),
            sender(Receiver, Payload, Count, Mine, Stop)
    end.

%% @doc Does this release know the process flag `async_dist'?
-spec can_be_asynchronous() -> boolean().
can_be_asynchronous() ->
    try process_info(self(), async_dist) of
        {async_dist, _} -> true
    catch
        error:badarg -> false
    end.

%% @doc Returns when a process with that flag has sent Count messages of so many bytes.
-spec send_asynchronously(pid(), Bytes :: pos_integer(), Count :: pos_integer()) -> ok.
send_asynchronously(Receiver, Bytes, Count) ->
    Payload = binary:copy(<<7>>, Bytes),
    join([spawn(fun() ->
                        process_flag(async_dist, true),
                        [Receiver ! {Number, Payload} || Number <- lists:seq(1, Count)]
                end)]).

%% @doc Messages sent so far, by all.
-spec sent([pid()]) -> non_neg_integer().
sent(Senders) ->
    Sent = persistent_term:get(?SENT),
    lists:sum([counters:get(Sent, Index) || Index <- lists:seq(1, length(Senders))]).

-spec statuses([pid()]) -> [atom()].
statuses(Pids) ->
    [case process_info(Pid, status) of {status, Status} -> Status; undefined -> dead end
     || Pid <- Pids].

%% @doc Senders end with the message they are at; returns when they have.
-spec stop([pid()]) -> ok.
stop(Senders) ->
    counters:add(persistent_term:get(?STOP), 1, 1),
    join(Senders).

-spec kill([pid()]) -> ok.
kill(Senders) ->
    [exit(Pid, kill) || Pid <- Senders],
    join(Senders).

-spec join([pid()]) -> ok.
join(Pids) ->
    [begin
         Ref = monitor(process, Pid),
         receive {'DOWN', Ref, _, _, _} -> ok end
     end || Pid <- Pids],
    ok.

%% @doc Round trips of Count calls to a node, in microseconds, sorted.
-spec calls(node(), pos_integer()) -> [pos_integer()].
calls(Node, Count) ->
    Echo = spawn(Node, ?MODULE, echo, []),
    lists:sort([element(1, timer:tc(fun() -> call(Echo) end)) || _ <- lists:seq(1, Count)]).

%% @doc The same for a process that is pinned for Count calls, and not pinned for Count others, and
%% so on; the first call after each change does not count.
-spec calls_in_turn(node(), Rounds :: pos_integer(), Count :: pos_integer()) ->
          {Pinned :: [pos_integer()], Others :: [pos_integer()]}.
calls_in_turn(Node, Rounds, Count) ->
    Echo = spawn(Node, ?MODULE, echo, []),
    Calls = fun(Change) ->
                    ok = Change(),
                    ok = call(Echo),
                    [element(1, timer:tc(fun() -> call(Echo) end)) || _ <- lists:seq(1, Count)]
            end,
    {Pinned, Others} =
        lists:unzip([{Calls(fun() -> weft_pins:pin(self(), control) end),
                      Calls(fun() -> weft_pins:unpin(self()) end)} || _ <- lists:seq(1, Rounds)]),
    {lists:sort(lists:append(Pinned)), lists:sort(lists:append(Others))}.

call(Echo) ->
    Ref = make_ref(),
    Echo ! {self(), Ref},
    receive Ref -> ok end.

%% @private
-spec echo() -> no_return().
echo() ->
    receive {From, Ref} -> From ! Ref, echo() end.

%% @doc Suspends processes from another one, as a debugger would.
-spec hold([pid()]) -> pid().
hold(Pids) ->
    Caller = self(),
    Holder = spawn(?MODULE, holder, [fun() -> [true = erlang:suspend_process(Pid) || Pid <- Pids],
                                              Caller ! held end]),
    receive held -> Holder end.

%% @private
-spec holder(fun(() -> term())) -> ok.
holder(Hold) ->
    Hold(),
    receive release -> ok end.

%% @doc The end of the holder resumes them.
-spec release(pid()) -> ok.
release(Holder) ->
    Holder ! release,
    join([Holder]).

%% @doc Loads this module again and purges the old code, which the processes still run.
-spec purge_beside([pid()]) -> boolean().
purge_beside(_Pids) ->
    {module, ?MODULE} = code:load_file(?MODULE),
    code:soft_purge(?MODULE).

%% @doc Bytes that wait in the fair queues of all sessions.
-spec queued_bytes() -> non_neg_integer().
queued_bytes() ->
    lists:sum([Bytes || Session <- weft_sessions:list(),
                        #{queued_bytes := Bytes} <- [weft_session:info(Session)]]).

-spec binary_bytes() -> non_neg_integer().
binary_bytes() ->
    erlang:memory(binary).
