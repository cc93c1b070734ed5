%% SPDX-License-Identifier: Apache-2.0
%% @doc Releases locks at replicas that did not answer (`weft_global').
%%
%% A replica that comes back before its lease is over, or that was only suspended, believes that the
%% lock is held as long as the process lives that had it. So the release is repeated until the
%% replica answers, however long it is away, or until that process has ended: this the replica sees
%% by itself. One process on each node keeps the releases that are still to be told; for each
%% replica at most one further process tells them, in order. They are rows of `weft_view', too,
%% which outlive this process: after a restart it goes on with them. A caller that finds this full
%% tells the replica itself, which is slow, but so there are no more processes than users of locks.
%% If it remains full the caller gives up after a while.
-module(weft_global_late).
-behaviour(gen_server).

-export([child_spec/0, start_link/1, release/2, later/2, count/0, lock_nodes/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([tell_all/3, tell/2]).
-export_type([command/0, options/0]).

-define(LOCKS, weft_locks).
%% A replica that does not answer for so long is taken for dead.
-define(ANSWER_MS, 10000).
-define(PAUSE_MS, 500).
%% After so many attempts in a row that did not reach a replica, releases of processes that have
%% ended are given up.
-define(ATTEMPTS_MAX, 20).
-define(COUNT_MAX, 10000).

-type command() :: {delete, Resource :: term(), Requester :: term(), {pid(), Ask :: term()}}.
%% For tests: the replicas there are, and how one is told.
-type options() :: #{lock_nodes => fun(() -> [node()]),
                     tell => fun((node(), command()) -> boolean()),
                     pause_ms => pos_integer(), count_max => pos_integer()}.

%% What a replica is still to be told. The tag is that of earlier versions, because the process may
%% keep such records while this code is loaded.
-record(home, {commands = queue:new() :: queue:queue(command()),
               attempts = 0 :: non_neg_integer(),
               is_told = false :: boolean()}).
-record(late, {options :: options(),
               replicas = #{} :: #{node() => #home{}},
               tellers = #{} :: #{reference() => node()},
               count = 0 :: non_neg_integer()}).

-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, [#{}]}}.

-spec start_link(options()) -> {ok, pid()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc Tells a replica to release a lock; tells it later if it does not answer now.
-spec release(node(), command()) -> ok.
release(Replica, Command) ->
    case tell(Replica, Command) orelse later(Replica, Command) of
        full -> insist(Replica, Command, 1);
        _ -> ok
    end.

%% @doc Leaves it to this process, if there is room. One that is just being started again finds the
%% row, which is written first. Without a table the application is about to stop.
-spec later(node(), command()) -> ok | full.
later(Replica, Command) ->
    try
        ok = weft_view:put(?MODULE, row(Replica, Command), erlang:unique_integer([monotonic])),
        gen_server:call(?MODULE, {later, Replica, Command}, infinity)
    catch
        exit:_ItEnded -> ok;
        error:badarg -> ok
    end.

row(Replica, Command) -> {?MODULE, {Replica, Command}}.

%% @doc How many releases are still to be told.
-spec count() -> non_neg_integer().
count() ->
    gen_server:call(?MODULE, count).

insist(_Home, _Command, ?ATTEMPTS_MAX) ->
    ok;
insist(Replica, Command, Attempt) ->
    receive after ?PAUSE_MS -> ok end,
    IsTold = lists:member(Replica, lock_nodes()) andalso tell(Replica, Command),
    case IsTold orelse later(Replica, Command) of
        full -> insist(Replica, Command, Attempt + 1);
        _ -> ok
    end.

%% @private
-spec tell(node(), command()) -> term().
tell(Replica, Command) ->
    try weft_driver:command({?LOCKS, Replica}, Command, ?ANSWER_MS)
    catch exit:_ -> false
    end.

%% @doc The nodes that keep locks now (a view of `weft_locks_core').
-spec lock_nodes() -> [node()].
lock_nodes() ->
    case weft_view:lookup(lock_homes) of
        undefined -> [node()];
        Nodes -> Nodes
    end.

%% --- the process ------------------------------------------------------------------------------

%% @private
init(Options) ->
    Defaults = #{tell => fun ?MODULE:tell/2, pause_ms => ?PAUSE_MS, count_max => ?COUNT_MAX},
    Late = #late{options = maps:merge(Defaults, Options)},
    {ok, lists:foldl(fun({{Replica, Command}, _Number}, L) -> added(Replica, Command, L) end,
                     Late, lists:keysort(2, weft_view:all(?MODULE)))}.

%% @private
handle_call({later, Replica, Command}, _From,
            #late{count = Count, options = #{count_max := Max}} = Late) when Count >= Max ->
    ok = weft_view:delete(?MODULE, row(Replica, Command)),
    {reply, full, Late};
handle_call({later, Replica, Command}, _From, Late) ->
    {reply, ok, added(Replica, Command, Late)};
handle_call(count, _From, #late{count = Count} = Late) ->
    {reply, Count, Late};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, Late) ->
    ok = weft_stray:message(Request),
    {noreply, Late}.

%% @private
-spec handle_info(term(), #late{}) -> {noreply, #late{}}.
handle_info(attempt, #late{replicas = Replicas, options = Options} = Late0) ->
    LockNodes = maps:get(lock_nodes, Options, fun lock_nodes/0),
    Alive = LockNodes(),
    Late = lists:foldl(fun(Replica, L) -> attempt(Replica, lists:member(Replica, Alive), L) end,
                       Late0, maps:keys(Replicas)),
    _ = Late#late.replicas =/= #{} andalso pause(Late),
    {noreply, Late};
handle_info({'DOWN', Monitor, process, _Pid, Reason}, #late{tellers = Tellers} = Late)
  when is_map_key(Monitor, Tellers) ->
    {Replica, Rest} = maps:take(Monitor, Tellers),
    Told = case Reason of {told, Count} -> Count; _ -> 0 end,
    {noreply, told(Replica, Told, Late#late{tellers = Rest})};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

added(Replica, Command, #late{replicas = Replicas, count = Count} = Late) ->
    _ = Replicas =:= #{} andalso pause(Late),
    #home{commands = Commands} = Row = maps:get(Replica, Replicas, #home{}),
    Longer = Row#home{commands = queue:in(Command, Commands)},
    Late#late{replicas = Replicas#{Replica => Longer}, count = Count + 1}.

pause(#late{options = #{pause_ms := PauseMs}}) ->
    erlang:send_after(PauseMs, self(), attempt).

attempt(Replica, IsThere, #late{replicas = Replicas, tellers = Tellers} = Late) ->
    case Replicas of
        #{Replica := #home{is_told = true}} ->
            Late;
        #{Replica := #home{commands = Commands} = Row} when IsThere ->
            #late{options = #{tell := Tell}} = Late,
            {_Pid, Monitor} = spawn_monitor(?MODULE, tell_all,
                                            [Tell, Replica, queue:to_list(Commands)]),
            Late#late{replicas = Replicas#{Replica := Row#home{is_told = true}},
                      tellers = Tellers#{Monitor => Replica}};
        #{} ->
            told(Replica, 0, Late)
    end.

%% @private Stops at the first command that is not answered; the exit reason says how many were.
-spec tell_all(fun((node(), command()) -> boolean()), node(), [command()]) -> no_return().
tell_all(Tell, Replica, Commands) ->
    Told = lists:takewhile(fun(Command) -> Tell(Replica, Command) end, Commands),
    exit({told, length(Told)}).

told(Replica, Told, #late{replicas = Replicas, count = Count} = Late) ->
    #{Replica := #home{commands = Commands, attempts = Attempts} = Row} = Replicas,
    {Over, Left, Failed} = case {Told, Attempts + 1} of
                               {0, ?ATTEMPTS_MAX} -> ended(queue:to_list(Commands));
                               {0, InARow} -> {[], Commands, InARow};
                               _ -> answered(queue:split(Told, Commands))
                           end,
    lists:foreach(fun(Command) -> ok = weft_view:delete(?MODULE, row(Replica, Command)) end, Over),
    Fewer = case queue:is_empty(Left) of
                true -> maps:remove(Replica, Replicas);
                false -> Replicas#{Replica := Row#home{commands = Left, attempts = Failed,
                                                       is_told = false}}
            end,
    Late#late{replicas = Fewer, count = Count - length(Over)}.

answered({Told, Left}) ->
    {queue:to_list(Told), Left, 0}.

ended(Commands) ->
    {Live, Ended} = lists:partition(fun({delete, _, _, {Pid, _}}) -> is_process_alive(Pid) end,
                                    Commands),
    {Ended, queue:from_list(Live), 0}.
