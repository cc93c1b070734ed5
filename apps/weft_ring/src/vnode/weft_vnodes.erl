%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts the processes of partitions, when somebody needs one that is not there. Callers come
%% here only after they found no process. Not here: requests for keys.
%%
%% A partition with much on disk is not open for a while, and has it in memory several times
%% meanwhile. So some are opened at a time, as many as there are schedulers, but not more than
%% eight, and the others wait for their turn; those that are there already do not.
-module(weft_vnodes).
-behaviour(gen_server).

-export([start_link/1, start/2, start_stored/0, at_a_time/0, waiting/0, queues/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2,
         code_change/3, opened/1]).

-define(START_MS, 60000).
-define(WAITING_MS, 5000).
%% Also with one scheduler, one that hangs does not keep the next one from its turn.
-define(AT_A_TIME_MIN, 2).
%% More take memory and no less time: they read one disk.
-define(AT_A_TIME_MAX, 8).

-type which() :: {module(), Partition :: non_neg_integer()}.

-record(starting, {config :: map(),
                   %% Who waits for which partition, those among them that have no turn yet, and
                   %% those that are opened.
                   callers = #{} :: #{which() => [gen_server:from()]},
                   queue = queue:new() :: queue:queue(which()),
                   opening = #{} :: #{reference() => which()}}).

%% @doc With the vnodes of the configuration: `[{Module, Options}]', and what concerns all.
-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc The process of a partition is there; on another node if it is given.
-spec start({module(), non_neg_integer()}, node()) -> {ok, started} | {error, term()}.
start({Module, Partition}, Node) ->
    try gen_server:call({?MODULE, Node}, {start, Module, Partition, any}, ?START_MS)
    catch exit:{Reason, _} -> {error, Reason}
    end.

%% @doc The partitions of this node that have something on disk and no process. Each gets one, and
%% nobody waits for that. One that can not be opened is in the list of the next call, too.
-spec start_stored() -> [which()].
start_stored() -> start_missing(stored()).

%% The files are looked at here, and not where others wait for a start. Those of another ring, which
%% had more partitions, are nobody's.
stored() ->
    [{{Module, Partition}, process({Module, Partition})}
     || {Module, Options} <- gen_server:call(?MODULE, vnodes),
        Partition <- weft_vnode:stored(Module, Options),
        weft_ring_lookup:owner(weft_ring, Partition) =/= {error, no_partition}].

start_missing(Stored) ->
    Missing = [Which || {Which, none} <- Stored],
    lists:foreach(fun(Which) -> gen_server:cast(?MODULE, {start, Which}) end, Missing),
    Missing.

%% @doc How many partitions of this node are opened at the same time.
-spec at_a_time() -> pos_integer().
at_a_time() ->
    min(?AT_A_TIME_MAX, max(?AT_A_TIME_MIN, erlang:system_info(schedulers_online))).

%% @doc How much waits in which partitions of this node for other owners; 0 is left out. What is on
%% disk and has no process is started, and not known before that is there.
-spec waiting() -> [{pid(), pos_integer() | unknown} | {which(), unknown}].
waiting() ->
    Stored = stored(),
    Pids = [Pid || {_, Pid} <- Stored, is_pid(Pid)]
        ++ weft_vnode_sup:processes(),
    [{Which, unknown} || Which <- start_missing(Stored)]
        ++ [{Pid, Count} || Pid <- lists:usort(Pids), Count <- [waiting(Pid)], Count =/= 0].

%% @doc How many partitions have a process on this node, and how many messages wait for the one for
%% which most do.
-spec queues() -> #{processes | longest := non_neg_integer()}.
queues() ->
    Lengths = [Length || Pid <- weft_vnode_sup:processes(),
                         {message_queue_len, Length} <- [process_info(Pid, message_queue_len)]],
    #{processes => length(Lengths), longest => lists:max([0 | Lengths])}.

%% If it has ended, the next look finds what it has left.
waiting(Pid) ->
    try gen_server:call(Pid, waiting, ?WAITING_MS)
    catch exit:_ -> unknown
    end.

%% @private
init(#{vnodes := Vnodes} = Config) ->
    process_flag(trap_exit, true),
    ok = not_opened(),
    ok = weft_vnode_names:make([Module || {Module, _} <- Vnodes]),
    {ok, #starting{config = Config}}.

%% Those that were being opened when the process before this one ended: they have no name yet, and a
%% second process would open the same file.
not_opened() ->
    Pids = try weft_vnode_sup:processes()
           catch exit:_NotRunning -> []
           end,
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end,
                  [begin
                       true = exit(Pid, kill),
                       monitor(process, Pid)
                   end || Pid <- Pids, process_info(Pid, registered_name) =:= []]).

%% @private
handle_call({start, Module, Partition, Role}, From, Starting) ->
    case is_startable({Module, Partition}, Role, Starting) of
        ok -> {noreply, next(wanted({Module, Partition}, From, Starting))};
        is_there -> {reply, {ok, started}, Starting};
        {error, Reason} -> {reply, {error, Reason}, Starting}
    end;
handle_call(vnodes, _From, #starting{config = #{vnodes := Vnodes}} = Starting) ->
    {reply, Vnodes, Starting};
handle_call(Request, _From, Starting) ->
    {reply, weft_stray:call(Request), Starting}.

is_startable({Module, Partition} = Which, Role,
             #starting{config = #{vnodes := Vnodes}} = Starting) ->
    case {lists:keymember(Module, 1, Vnodes), weft_ring_lookup:is_mine(weft_ring, Partition)} of
        {false, _} -> {error, no_vnode};
        {_, {error, Reason}} when Role =/= any; Reason =:= no_partition -> {error, Reason};
        {_, {ok, false}} when Role =:= primary -> {error, not_owner};
        _ -> is_there(Which, Starting)
    end.

is_there(Which, #starting{callers = Callers}) ->
    case process(Which) of
        {error, Reason} -> {error, Reason};
        Pid when is_pid(Pid), not is_map_key(Which, Callers) -> is_there;
        _ -> ok
    end.

process({Module, Partition}) ->
    case weft_vnode_names:name(Module, Partition) of
        {ok, Name} ->
            case whereis(Name) of undefined -> none; Pid -> Pid end;
        {error, Reason} -> {error, Reason}
    end.

%% --- turns ------------------------------------------------------------------------------------

wanted(Which, From, #starting{callers = Callers, config = #{queue_max := Max}} = Starting) ->
    case Callers of
        #{Which := Waiting} when length(Waiting) >= Max ->
            gen_server:reply(From, {error, overload}),
            Starting;
        #{Which := Waiting} ->
            Starting#starting{callers = Callers#{Which := [From | Waiting]}};
        #{} -> queued(Which, [From], Starting)
    end.

queued(Which, Waiting, #starting{callers = Callers, queue = Queue} = Starting) ->
    Starting#starting{callers = Callers#{Which => Waiting}, queue = queue:in(Which, Queue)}.

next(#starting{opening = Opening, queue = Queue} = Starting) ->
    case map_size(Opening) < at_a_time() andalso queue:out(Queue) of
        {{value, Which}, Left} -> next(start_child(Which, Starting#starting{queue = Left}));
        _ -> Starting
    end.

start_child(Which, #starting{opening = Opening, config = Config} = Starting) ->
    case supervisor:start_child(weft_vnode_sup, child(Which, Config)) of
        {ok, Pid} ->
            {_, Ref} = spawn_monitor(?MODULE, opened, [Pid]),
            Starting#starting{opening = Opening#{Ref => Which}};
        {error, Reason} -> answer(Which, {error, {failed, Reason}}, Starting)
    end.

child({Module, Partition}, #{vnodes := Vnodes} = Config) ->
    {ok, Name} = weft_vnode_names:name(Module, Partition),
    [Name, Module, Partition, proplists:get_value(Module, Vnodes), Config].

%% @private
-spec opened(pid()) -> no_return().
opened(Pid) ->
    exit({opened, try gen_server:call(Pid, opened, infinity)
                  catch
                      %% It was open, and had nothing that would be missed.
                      exit:{normal, _} -> {ok, started};
                      exit:{noproc, _} -> {ok, started};
                      exit:{Reason, _} -> {error, {failed, Reason}}
                  end}).

answer(Which, Answer, #starting{callers = Callers} = Starting) ->
    {Waiting, Left} = maps:take(Which, Callers),
    lists:foreach(fun(From) -> gen_server:reply(From, Answer) end, lists:reverse(Waiting)),
    Starting#starting{callers = Left}.

%% @private
handle_cast({start, {_, _} = Which}, #starting{callers = Callers} = Starting) ->
    case not is_map_key(Which, Callers) andalso is_startable(Which, any, Starting) of
        ok -> {noreply, next(queued(Which, [], Starting))};
        _ -> {noreply, Starting}
    end;
handle_cast(Request, Starting) ->
    ok = weft_stray:message(Request),
    {noreply, Starting}.

%% @private
handle_info({'DOWN', Ref, process, _, Result}, #starting{opening = Opening} = Starting)
  when is_map_key(Ref, Opening) ->
    {Which, Left} = maps:take(Ref, Opening),
    Answer = case Result of
                 {opened, How} -> How;
                 Reason -> {error, {failed, Reason}}
             end,
    {noreply, next(answer(Which, Answer, Starting#starting{opening = Left}))};
handle_info(Message, Starting) ->
    ok = weft_stray:message(Message),
    {noreply, Starting}.

%% @private
terminate(_Reason, _Starting) ->
    weft_vnode_names:forget().

%% @private
%% The state of earlier code was the configuration.
code_change(_Version, #{vnodes := _} = Config, _Extra) -> {ok, #starting{config = Config}};
code_change(_Version, #starting{} = Starting, _Extra) -> {ok, Starting}.
