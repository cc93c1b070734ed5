%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_ring_core' on a node. No request for a key comes here: keys are looked up in
%% `weft_ring_lookup'.
%%
%% The servers of a ring know each other by greeting: each greets the nodes of its ring that it has
%% not heard of, which makes a distribution connection if there is none, over whatever topology.
%% Then they watch each other; who is watched is a neighbour for the core.
%%
%% The ring is on disk before anybody hears of it. What can not be written (a full disk) has not
%% happened: a command is answered with the reason, and what others said they say again. So it is
%% while the directory may be another node's (`weft_directory_lock:is_held/2').
%%
%% Each handoff runs in a process of its own, which calls the function of the configuration
%% (`handoff') and succeeds when that returns `ok'. It ends with the process of this module, as
%% nobody would hear of it. Without such a function, a partition has nothing that would have to be
%% handed over.
-module(weft_ring_server).
-behaviour(gen_server).

-export([start_link/1, command/1, promised/1, stalled/1, opened/1, mine/0, handoffs/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, hand_over/3, ended_with/2, settle/0]).

-define(CALL_MS, 15000).
-define(SETTLE_MS, 1000).

-record(server, {core :: weft_ring_core:state(),
                 dir :: none | file:filename(),
                 kept :: weft_ring_file:kept(),
                 handoff :: none | {module(), atom()},
                 sync_ms :: pos_integer(),
                 peers = #{} :: #{node() => {pid(), reference()}},
                 %% Looks whether something waits here for other owners.
                 settling = none :: none | {pid(), reference()},
                 transfers = #{} :: #{reference() => {pid(), weft_ring_table:transfer()}},
                 done = 0 :: non_neg_integer(),
                 failed = 0 :: non_neg_integer()}).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc A command of `weft_ring_core', and its answer.
-spec command(term()) -> term().
command(Command) ->
    call({command, Command}).

%% @doc The owner is asked whether it still gives a partition to this node like this. Where no ring
%% runs, nothing happens.
-spec promised(weft_ring_table:transfer()) -> ok.
promised(Transfer) ->
    gen_server:cast(?MODULE, {promised, Transfer}).

%% @doc The next owner of a partition of this node acknowledges nothing any more.
-spec stalled(weft_ring_table:transfer()) -> ok.
stalled(Transfer) ->
    gen_server:cast(?MODULE, {stalled, Transfer}).

%% @doc A process of a partition of this node is opened. If the partition is being handed over, that
%% begins anew: a former process may have given all of it, and what is written from now on would be
%% lost. Otherwise nobody is asked, so a ring that is busy holds up nothing.
-spec opened(non_neg_integer()) -> ok | {error, ring_is_busy}.
opened(Partition) ->
    try ets:member(?MODULE, Partition)
            andalso gen_server:call(?MODULE, {opened, Partition}, ?CALL_MS) of
        false -> ok;
        Answer -> Answer
    catch
        exit:{timeout, _} -> {error, ring_is_busy};
        %% Handoffs end with the server.
        exit:_NotRunning -> ok;
        error:badarg -> ok
    end.

%% @doc What this node takes itself for the owner of.
-spec mine() -> [non_neg_integer()] | {error, not_running}.
mine() ->
    call(mine).

%% @doc Handoffs from this node: that run, that succeeded, and that failed and were tried again.
-spec handoffs() -> #{running | done | failed := non_neg_integer()} | {error, not_running}.
handoffs() ->
    call(handoffs).

call(Request) ->
    try gen_server:call(?MODULE, Request, ?CALL_MS)
    catch exit:{noproc, _} -> {error, not_running}
    end.

%% @private
init(#{dir := Dir} = Config) ->
    case weft_ring_file:read(Dir) of
        {ok, Kept} ->
            Options = maps:merge(maps:without([dir, handoff], Config), Kept),
            {Core, Effects} = weft_ring_core:init(node(), Options#{
                                settle => maps:get(vnodes, Config, []) =/= [],
                                incarnation => erlang:system_time(microsecond),
                                seed => erlang:unique_integer()}),
            {ok, perform(Effects, #server{core = Core, dir = Dir, kept = Kept,
                                          handoff = maps:get(handoff, Config),
                                          sync_ms = maps:get(sync_ms, Config)})};
        {error, Reason} -> {stop, {ring_file, Reason}}
    end.

%% @private
handle_call({command, Command}, From, Server) ->
    {noreply, event({command, From, Command}, Server)};
handle_call({opened, Partition}, _From, #server{transfers = Transfers} = Server) ->
    {reply, ok, lists:foldl(fun(Transfer, S) -> start(Transfer, cancel(Transfer, S)) end, Server,
                            [T || {_, {P, _, _} = T} <- maps:values(Transfers), P =:= Partition])};
handle_call(mine, _From, #server{core = Core} = Server) ->
    {reply, weft_ring_core:mine(Core), Server};
handle_call(handoffs, _From, #server{transfers = Running, done = Done, failed = Failed} = Server) ->
    {reply, #{running => map_size(Running), done => Done, failed => Failed}, Server};
handle_call(Request, _From, Server) ->
    {reply, weft_stray:call(Request), Server}.

%% @private
handle_cast({promised, Transfer}, Server) ->
    {noreply, event({command, none, {promised, Transfer}}, Server)};
handle_cast({stalled, {Partition, _, To} = Transfer}, Server) ->
    logger:warning("weft_ring: ~ts acknowledges nothing of partition ~w, which is handed over to "
                   "it. That goes on, and other handoffs do not wait for it", [To, Partition]),
    {noreply, event({command, none, {handoff, stalled, Transfer}}, Server)};
handle_cast(Request, Server) ->
    ok = weft_stray:message(Request),
    {noreply, Server}.

%% @private
handle_info({weft_ring, message, Node, Msg}, #server{peers = Peers} = Server)
  when is_map_key(Node, Peers) ->
    {noreply, event({message, Node, Msg}, Server)};
handle_info({weft_ring, message, _Unknown, _Msg}, Server) ->
    {noreply, Server};
handle_info({weft_ring, hello, Pid}, Server) when is_pid(Pid) ->
    {noreply, hello(node(Pid), Pid, Server)};
handle_info({timer, sync}, Server) ->
    {noreply, event({timer, sync}, greet(Server))};
handle_info({handed, Transfer}, Server) ->
    {noreply, event({command, none, {handoff, done, Transfer}}, Server)};
handle_info(settle, #server{settling = none} = Server) ->
    {noreply, Server#server{settling = spawn_monitor(?MODULE, settle, [])}};
handle_info({'DOWN', Ref, process, Pid, Reason}, #server{settling = {Pid, Ref}} = Server) ->
    {noreply, looked(Reason, Server#server{settling = none})};
handle_info({'DOWN', Ref, process, Pid, Reason}, #server{transfers = Transfers} = Server)
  when is_pid(Pid) ->
    case maps:take(Ref, Transfers) of
        {{Pid, Transfer}, Left} ->
            {noreply, unmarked(Transfer, ended(Reason, Transfer, Server#server{transfers = Left}))};
        error ->
            {noreply, gone(node(Pid), Pid, Server)}
    end;
handle_info(Message, Server) ->
    ok = weft_stray:message(Message),
    {noreply, Server}.

%% --- other servers ----------------------------------------------------------------------------

greet(#server{core = Core, peers = Peers} = Server) ->
    Nodes = case weft_ring_core:ring(Core) of
                none -> [];
                Ring -> [N || {N, _} <- weft_ring_table:members([joining, member, leaving], Ring)]
            end,
    lists:foreach(fun hello/1, Nodes -- [node() | maps:keys(Peers)]),
    Server.

%% A process of its own waits for the connection.
hello(Node) ->
    Self = self(),
    spawn(fun() -> {?MODULE, Node} ! {weft_ring, hello, Self} end).

hello(Node, _, Server) when Node =:= node() ->
    Server;
hello(Node, Pid, #server{peers = Peers} = Server0) ->
    case Peers of
        #{Node := {Pid, _}} -> Server0;
        #{} ->
            #server{peers = Others} = Server = forget(Node, Server0),
            _ = erlang:send(Pid, {weft_ring, hello, self()}, [nosuspend, noconnect]),
            Known = Others#{Node => {Pid, monitor(process, Pid)}},
            event({neighbour_up, Node}, Server#server{peers = Known})
    end.

gone(Node, Pid, #server{peers = Peers} = Server) ->
    case Peers of
        #{Node := {Pid, _}} -> forget(Node, Server);
        #{} -> Server
    end.

forget(Node, #server{peers = Peers} = Server) ->
    case maps:take(Node, Peers) of
        {{_, Ref}, Left} ->
            true = demonitor(Ref, [flush]),
            event({neighbour_down, Node, gone}, Server#server{peers = Left});
        error -> Server
    end.

%% --- the core ---------------------------------------------------------------------------------

event(Event, #server{core = Core0} = Server) ->
    {Core, Effects} = weft_ring_core:handle(Event, erlang:monotonic_time(millisecond), Core0),
    case kept(Effects, Server) of
        {ok, Kept} -> perform(Effects, Kept#server{core = Core});
        {error, Reason} ->
            logger:error("weft_ring: the ring can not be written: ~0tp", [Reason]),
            unwritten(Event, Effects, {error, {not_written, Reason}}, Server)
    end.

kept(Effects, #server{dir = Dir, kept = Kept0} = Server) ->
    case maps:merge(Kept0, maps:from_list([{Key, Value} || {view, Key, Value} <- Effects,
                                                           Key =/= mine])) of
        Kept0 -> {ok, Server};
        Kept ->
            case is_held(Dir) andalso weft_ring_file:write(Dir, Kept) of
                false -> {error, directory_not_held};
                {error, Reason} -> {error, Reason};
                Written -> written(Written, is_held(Dir), Kept, Server)
            end
    end.

%% The next process goes on with what is there then.
written(_, false, _, _) ->
    exit(directory_not_held);
written(ok, true, Kept, Server) ->
    {ok, Server#server{kept = Kept}};
%% As it has not happened, the next start may not find it either.
written({unsynced, Reason}, true, _, #server{dir = Dir, kept = Kept0}) ->
    _ = weft_ring_file:write(Dir, Kept0),
    {error, Reason}.

is_held(Dir) -> weft_directory_lock:is_held(Dir, weft_ring).

%% Time goes on, and a handoff that is over was in vain.
unwritten({command, none, {handoff, done, Transfer}}, _, _, Server) ->
    event({command, none, {handoff, failed, Transfer}}, Server);
unwritten({command, From, _}, _, Error, Server) ->
    effect({reply, From, Error}, Server);
unwritten(_, Effects, _, Server) ->
    perform([Effect || {after_ms, _, _} = Effect <- Effects], Server).

perform(Effects, Server) ->
    lists:foldl(fun effect/2, Server, Effects).

effect({send, To, Msg}, #server{peers = Peers} = Server) ->
    _ = case Peers of
            #{To := {Pid, _}} ->
                erlang:send(Pid, {weft_ring, message, node(), Msg}, [nosuspend, noconnect]);
            #{} -> hello(To)
        end,
    Server;
effect({view, mine, _}, Server) ->
    Server;
effect({view, ring, Ring}, Server) ->
    ok = weft_ring_lookup:publish(weft_ring, Ring),
    Server;
effect({view, asked, _}, Server) ->
    Server;
effect({view, forgotten, Forgotten}, Server) ->
    ok = weft_ring_lookup:forgotten(weft_ring, Forgotten),
    Server;
effect({after_ms, Ms, Timer}, Server) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    Server;
effect({reply, none, _}, Server) ->
    Server;
effect({reply, From, Reply}, Server) ->
    gen_server:reply(From, Reply),
    Server;
effect({notice, {handoff, start, Transfer}}, Server) ->
    start(Transfer, Server);
effect({notice, {handoff, cancel, Transfer}}, Server) ->
    cancel(Transfer, Server);
effect({notice, leave}, Server) ->
    self() ! settle,
    Server;
effect({notice, {unanswered, Via}}, Server) ->
    logger:warning("weft_ring: ~ts has not answered yet that this node wants to join its ring. Is "
                   "that its name, can it be reached, and has it a ring? It is asked again", [Via]),
    Server;
effect({notice, {warning, Warning}}, Server) ->
    logger:warning("weft_ring: ~0tp", [Warning]),
    Server.

%% --- leaving ----------------------------------------------------------------------------------

%% @private
-spec settle() -> no_return().
settle() ->
    exit({waiting, weft_vnodes:waiting()}).

looked({waiting, []}, Server) ->
    event({command, none, {leave, ready}}, Server);
looked(Waiting, Server) ->
    logger:warning("weft_ring: this node leaves as soon as other nodes have what waits here for "
                   "them: ~0tP. For those that do not come back, call "
                   "weft_ring:stage(Node, remove), and commit the plan",
                   [Waiting, 50]),
    _ = erlang:send_after(?SETTLE_MS, self(), settle),
    Server.

%% --- handoffs ---------------------------------------------------------------------------------

start(Transfer, #server{handoff = none} = Server) ->
    self() ! {handed, Transfer},
    Server;
start({Partition, _, _} = Transfer,
      #server{handoff = {Module, Function}, transfers = Transfers} = Server) ->
    true = ets:insert(marks(), {Partition}),
    {Pid, Ref} = spawn_monitor(?MODULE, hand_over, [Module, Function, Transfer]),
    _ = spawn(?MODULE, ended_with, [self(), Pid]),
    Server#server{transfers = Transfers#{Ref => {Pid, Transfer}}}.

%% Which partitions are being handed over, for their processes. A server that was started by earlier
%% code has no table.
marks() ->
    case ets:whereis(?MODULE) of
        undefined -> ets:new(?MODULE, [named_table]);
        Table -> Table
    end.

%% Not before the ring has another owner.
unmarked({Partition, _, _}, #server{transfers = Transfers} = Server) ->
    _ = lists:keymember(Partition, 1, [T || {_, T} <- maps:values(Transfers)])
        orelse ets:delete(marks(), Partition),
    Server.

%% @private
-spec hand_over(module(), atom(), weft_ring_table:transfer()) -> no_return().
hand_over(Module, Function, Transfer) ->
    exit({handoff, Module:Function(Transfer)}).

%% @private
-spec ended_with(Server :: pid(), Handoff :: pid()) -> true.
ended_with(Server, Handoff) ->
    _ = [monitor(process, Pid) || Pid <- [Server, Handoff]],
    receive {'DOWN', _, process, _, _} -> exit(Handoff, kill) end.

cancel(Transfer, #server{transfers = Transfers} = Server) ->
    {Ended, Left} = lists:partition(fun({_, {_, T}}) -> T =:= Transfer end,
                                    maps:to_list(Transfers)),
    lists:foreach(fun({Ref, {Pid, _}}) ->
                      true = demonitor(Ref, [flush]),
                      exit(Pid, kill)
                  end, Ended),
    unmarked(Transfer, Server#server{transfers = maps:from_list(Left)}).

ended({handoff, ok}, Transfer, #server{done = Done} = Server) ->
    event({command, none, {handoff, done, Transfer}}, Server#server{done = Done + 1});
%% One of those to a node is enough, until they are tried again.
ended(Reason, {Partition, _, To} = Transfer, #server{core = Core, failed = Failed} = Server) ->
    _ = weft_ring_core:has_failed(To, Core)
        orelse logger:warning("weft_ring: the handoff of partition ~w to ~ts has failed: ~0tP",
                              [Partition, To, Reason, 20]),
    event({command, none, {handoff, failed, Transfer}}, Server#server{failed = Failed + 1}).
