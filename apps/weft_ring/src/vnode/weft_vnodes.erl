%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts the processes of partitions, when somebody needs one that is not there. Callers come
%% here only after they found no process. Not here: requests for keys.
-module(weft_vnodes).
-behaviour(gen_server).

-export([start_link/1, start/2, waiting/0, queues/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(START_MS, 60000).
-define(WAITING_MS, 5000).

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

%% @doc How much waits in which processes of this node for other owners; 0 is left out.
-spec waiting() -> [{pid(), pos_integer() | unknown}].
waiting() ->
    [{Pid, Count} || {_, Pid, _, _} <- supervisor:which_children(weft_vnode_sup), is_pid(Pid),
                     Count <- [waiting(Pid)], Count =/= 0].

%% @doc How many partitions have a process on this node, and how many messages wait for the one for
%% which most do.
-spec queues() -> #{processes | longest := non_neg_integer()}.
queues() ->
    Pids = [Pid || {_, Pid, _, _} <- supervisor:which_children(weft_vnode_sup), is_pid(Pid)],
    Lengths = [Length || Pid <- Pids,
                         {message_queue_len, Length} <- [process_info(Pid, message_queue_len)]],
    #{processes => length(Lengths), longest => lists:max([0 | Lengths])}.

waiting(Pid) ->
    try gen_server:call(Pid, waiting, ?WAITING_MS)
    catch
        exit:{Ended, _} when Ended =:= noproc; Ended =:= normal -> 0;
        exit:_ -> unknown
    end.

%% @private
init(#{vnodes := Vnodes} = Config) ->
    process_flag(trap_exit, true),
    ok = weft_vnode_names:make([Module || {Module, _} <- Vnodes]),
    {ok, Config}.

%% @private
handle_call({start, Module, Partition, Role}, _From, #{vnodes := Vnodes} = Config) ->
    case {lists:keyfind(Module, 1, Vnodes), weft_ring_lookup:is_mine(weft_ring, Partition)} of
        {false, _} -> {reply, {error, no_vnode}, Config};
        {_, {error, Reason}} when Role =/= any; Reason =:= no_partition ->
            {reply, {error, Reason}, Config};
        {_, {ok, false}} when Role =:= primary ->
            {reply, {error, not_owner}, Config};
        {{Module, Options}, _} ->
            {reply, started(Module, Partition, Options, Config), Config}
    end;
handle_call(Request, _From, Config) ->
    {reply, weft_stray:call(Request), Config}.

started(Module, Partition, Options, Config) ->
    case weft_vnode_names:name(Module, Partition) of
        {ok, Name} -> child([Name, Module, Partition, Options, Config]);
        {error, Reason} -> {error, Reason}
    end.

child(Args) ->
    case supervisor:start_child(weft_vnode_sup, Args) of
        {ok, _} -> {ok, started};
        {error, {already_started, _}} -> {ok, started};
        {error, Reason} -> {error, {failed, Reason}}
    end.

%% @private
handle_cast(Request, Config) ->
    ok = weft_stray:message(Request),
    {noreply, Config}.

%% @private
handle_info(Message, Config) ->
    ok = weft_stray:message(Message),
    {noreply, Config}.

%% @private
terminate(_Reason, _Config) ->
    weft_vnode_names:forget().
