%% SPDX-License-Identifier: Apache-2.0
%% @doc All links of this node: one process (`weft_link') for each peer, found here by node name.
%%
%% It is also the interface that the overlay uses: ask for a link, send to the same core on a
%% neighbour, get messages when links go up and down. A control message reaches the neighbour in
%% order while the link is up, or not at all; a core that needs more starts over at the next `up'.
%%
%% Links live below `weft_link_sup', and the table, with the subscribers in it, belongs to a
%% supervisor. So this process can end and be started again without effect on others. It reports
%% that a link has died, because the link cannot do so itself.
-module(weft_links).
-behaviour(gen_server).

-export([owner/0, start_link/0, ensure/1, lookup/1, up/1, is_neighbour/1, queued_bytes/1,
         wanted/1, all_wanted/0, is_released/1, list/0, peers/1, info/0, admitting/1, agree/2,
         subscribe/2, send/3, connect/1, disconnect/1, break/1, retry/1, hurry/1, reroute/2,
         admit/3, attach/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% If a neighbour does not take control messages for so long that this many bytes wait, beside what
%% a gateway may have waiting for it, the link is restarted; the queue must not grow further.
-define(CONTROL_BYTES_MAX, 67108864).
%% How long to wait while they are restarted. After so many times they do not run at all.
-define(NOT_RUNNING_MS, 100).
-define(TIMES, 30).
%% How long the news of the end of a link takes at most.
-define(NEWS_MS, 100).

-type core() :: atom().
-type key() :: node() | {anonymous, Incarnation :: non_neg_integer()}.
-export_type([core/0, key/0]).

-record(state, {subscribers = [] :: [{core(), pid()}],
                admitting = none :: core() | none,
                pids = #{} :: #{pid() => key()}}).

%% @doc The process that all links end with, if there is one now.
-spec owner() -> pid() | undefined.
owner() -> weft_link_table:owner().

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [],
                          [{spawn_opt, [{priority, weft_turn:priority(control)}]}]).

%% @doc The link process of a peer; started (but not dialled) if there is none. `not_running' for a
%% moment while the carrier, or this process, is started again.
-spec ensure(key()) -> {ok, pid()} | {error, not_running}.
ensure(Key) when is_atom(Key); element(1, Key) =:= anonymous ->
    case living(Key) of
        {ok, Pid} -> {ok, Pid};
        _EndedOrNone -> asked({ensure, Key})
    end.

%% One that has ended is in the table until the registry has heard of its end.
living(Key) ->
    case lookup(Key) of
        {ok, Pid} ->
            case is_process_alive(Pid) of
                true -> {ok, Pid};
                false -> {ended, Pid}
            end;
        error ->
            error
    end.

asked(Request) ->
    try gen_server:call(?MODULE, Request, infinity)
    catch exit:_NotRunning -> {error, not_running}
    end.

%% For requests that cannot be given up.
asked_again(Request, Times) ->
    case asked(Request) of
        {error, not_running} when Times > 1 ->
            receive after ?NOT_RUNNING_MS -> asked_again(Request, Times - 1) end;
        Answer ->
            Answer
    end.

-spec lookup(key()) -> {ok, pid()} | error.
lookup(Key) ->
    case read(Key) of
        {Pid, _} -> {ok, Pid};
        undefined -> error
    end.

%% @doc Is there a link to this node with at least one lane?
-spec up(node()) -> boolean().
up(Node) -> weft_link_table:is_up(Node).

%% @doc The same, and is the node a neighbour? (Always, unless a core decides about it.)
-spec is_neighbour(node()) -> boolean().
is_neighbour(Node) ->
    case read(Node) of
        {_Pid, #{lane := _, neighbour := IsNeighbour}} -> IsNeighbour;
        _ -> false
    end.

%% @doc Bytes that wait for the first lane to this node.
-spec queued_bytes(node()) -> non_neg_integer().
queued_bytes(Node) ->
    case read(Node) of
        {_Pid, #{lane := Lane}} -> weft_lane:queued_bytes(Lane);
        _ -> 0
    end.

%% @doc Does the overlay want a link to this node?
-spec wanted(node()) -> boolean().
wanted(Node) ->
    case read(Node) of
        {_Pid, #{wanted := Wanted}} -> Wanted;
        _ -> false
    end.

%% @doc The nodes to which it wants links.
-spec all_wanted() -> [node()].
all_wanted() -> [Node || {Node, _Link} <- list(), is_atom(Node), wanted(Node)].

%% @doc Did this node close the link to Node just now, because the overlay no longer wants it?
-spec is_released(node()) -> boolean().
is_released(Node) ->
    case read(Node) of
        {_Pid, #{is_released := IsReleased}} -> IsReleased;
        _ -> false
    end.

-spec list() -> [{key(), pid()}].
list() -> weft_link_table:list().

%% @doc To whom that process is the link; nobody if it has ended.
-spec peers(pid()) -> [key()].
peers(Link) -> weft_link_table:peers(Link).

%% @doc The state of each link: node, state, lanes, round trip, sessions, last error.
-spec info() -> [map()].
info() ->
    lists:append([try [weft_link:info(Pid)] catch exit:_ -> [] end || {_, Pid} <- list()]).

%% @doc From now on Pid gets {weft_link, up, Node, Info} when a link is up and the peer has a core
%% of that name too, {weft_link, down, Node, Reason}, and {weft_link, message, Node, Message};
%% first an `up' for every such link that there is. Waits a while for links to be running.
-spec subscribe(core(), pid()) -> ok | {error, not_running}.
subscribe(Core, Pid) when is_atom(Core), is_pid(Pid) ->
    asked_again({subscribe, Core, Pid}, ?TIMES).

%% @doc Makes a core the one that admits neighbours, or none. From now on other cores use a link
%% only while the admitting core accepts the node at its other end as a neighbour (`agree/2'); with
%% `none' all use all links. Links that are up stay in use until the admitting core says otherwise.
-spec admitting(core() | none) -> ok | {error, not_running}.
admitting(Admitting) when is_atom(Admitting) -> asked_again({admitting, Admitting}, ?TIMES).

%% @doc The admitting core accepts Node as a neighbour from now on, until the link goes down; or no
%% longer does.
-spec agree(node(), boolean()) -> ok.
agree(Node, IsAgreed) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:agree(Pid, IsAgreed);
        error -> ok
    end.

%% @doc Sends a term to the core of that name on a neighbour. A link at rest does not become one in
%% use by it: cores have timers where they wait for answers, and learn that a link is down.
-spec send(node(), core(), term()) -> ok | {error, not_connected}.
send(Node, Core, Message) ->
    case read(Node) of
        {_Pid, #{lane := Lane}} ->
            Packet = weft_wire:control(atom_to_binary(Core), term_to_binary(Message)),
            MaxBytes = ?CONTROL_BYTES_MAX + weft_config:get(relay_bytes_max),
            case weft_lane:queued_bytes(Lane) > MaxBytes of
                true -> break(Node), {error, not_connected};
                false -> sent(weft_lane:answer(Lane, Packet, iolist_size(Packet)))
            end;
        _ ->
            {error, not_connected}
    end.

sent({error, _}) -> {error, not_connected};
sent(_) -> ok.

%% @doc Keeps a link to Node up from now on, and brings up the distribution connection to it. Does
%% not wait. A failed attempt is reported to subscribers as `down'. If no link process could be
%% started, only the caller is told.
-spec connect(node()) -> ok.
connect(Node) when is_atom(Node) ->
    case ensure(Node) of
        {ok, Pid} ->
            weft_link:want(Pid, true);
        {error, Reason} ->
            _ = erlang:send_after(?NOT_RUNNING_MS, self(), {weft_link, down, Node, Reason}),
            ok
    end.

%% @doc No longer keeps the link up for its own sake. If this node dialled it and the topology is
%% partial, it is soon closed and its sessions go another way; otherwise they keep it.
-spec disconnect(node()) -> ok.
disconnect(Node) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:want(Pid, false);
        error -> ok
    end.

%% @doc Closes all lanes to Node; sessions that need the link bring it up again.
-spec break(node()) -> ok.
break(Node) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:break(Pid);
        error -> ok
    end.

%% @doc Tries a link that is down at once instead of after its pause.
-spec retry(node()) -> ok.
retry(Node) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:retry(Pid);
        error -> ok
    end.

%% @doc The same for a caller that needs the node now; see `weft_link:hurry/1'.
-spec hurry(node()) -> ok.
hurry(Node) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:hurry(Pid);
        error -> ok
    end.

%% @doc From now on Node is reached another way. A link that is up the old way is closed, and what
%% needs it brings it up again; what is missing is tried at once.
-spec reroute(node(), tunnel | network) -> ok.
reroute(Node, Way) ->
    case read(Node) of
        {Pid, #{lane := Lane}} ->
            case weft_transport:way(weft_lane:socket(Lane)) of
                Way -> weft_link:retry(Pid);
                _Other -> weft_link:break(Pid)
            end;
        {Pid, _Down} ->
            weft_link:retry(Pid);
        undefined ->
            ok
    end.

%% @doc May a peer of that name, not authenticated yet, go on (`weft_link_admission')? And the key
%% to prove itself with.
-spec admit(binary(), Incarnation :: non_neg_integer(), weft_hello:purpose()) ->
          {weft_hello:status(), binary()}.
admit(Name, Incarnation, Purpose) ->
    Node = existing_atom(Name),
    Claim = #{name => Name, incarnation => Incarnation, purpose => Purpose},
    Own = #{own_name => weft_identity:name(),
            is_cut => Node =/= undefined andalso weft_fault_table:is_cut(Node),
            now_us => erlang:monotonic_time(microsecond)},
    case weft_link_admission:decide(Claim, published(Node), Own) of
        {ok, cookie} -> {ok, cookie(Node)};
        {ok, {token, Token}} -> {ok, Token};
        superseded -> ok = doubt(Node), {superseded, <<>>};
        Refused -> {Refused, <<>>}
    end.

%% What is claimed is not proved yet.
doubt(Node) ->
    case lookup(Node) of
        {ok, Pid} -> weft_link:doubt(Pid);
        error -> ok
    end.

published(undefined) -> undefined;
published(Node) ->
    case read(Node) of
        {_Pid, Published} -> Published;
        undefined -> undefined
    end.

cookie(undefined) -> atom_to_binary(erlang:get_cookie());
cookie(Node) -> atom_to_binary(auth:get_cookie(Node)).

existing_atom(Name) ->
    try binary_to_existing_atom(Name) of
        '' -> undefined;
        Node -> Node
    catch
        error:_ -> undefined
    end.

%% @doc Gives an authenticated connection, owned by the caller, to the link of its peer.
-spec attach(weft_transport:socket(), weft_handshake:peer(), weft_hello:purpose()) ->
          ok | {error, term()}.
attach(Socket, #{node := Node, incarnation := Incarnation} = Peer, Purpose) ->
    Key = case Node of undefined -> {anonymous, Incarnation}; _ -> Node end,
    case ensure(Key) of
        {ok, Pid} -> weft_link:attach(Pid, Socket, Peer, Purpose);
        {error, Reason} -> {error, Reason}
    end.

read(Key) -> weft_link_table:read(Key).

%% @private
init([]) ->
    process_flag(trap_exit, true),
    ok = weft_turn:open(),
    {Subscribers, Admitting} = weft_link_table:subscribers(),
    _ = [monitor(process, Pid) || {_Core, Pid} <- Subscribers],
    {ok, #state{subscribers = Subscribers, admitting = Admitting, pids = found()}}.

remember(#state{subscribers = Subscribers, admitting = Admitting} = State) ->
    ok = weft_link_table:set_subscribers(Subscribers, Admitting),
    State.

%% The links that the process before this one has made. A link that it has not entered is unknown to
%% all others, and is killed.
found() ->
    Entered = list(),
    Unknown = weft_link_sup:links() -- [Pid || {_Key, Pid} <- Entered],
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Unknown),
    maps:from_list([begin _ = monitor(process, Pid), {Pid, Key} end || {Key, Pid} <- Entered]).

%% @private
handle_call({ensure, Key}, _From, State) ->
    case living(Key) of
        {ok, Pid} -> {reply, {ok, Pid}, State};
        {ended, Pid} -> started(Key, heard_of(Pid, Key, State));
        error -> started(Key, State)
    end;
handle_call({admitting, Admitting}, _From, #state{pids = Pids} = State) ->
    [weft_link:admitting(Link, Admitting) || Link <- maps:keys(Pids)],
    {reply, ok, remember(State#state{admitting = Admitting})};
handle_call({subscribe, Core, Pid}, _From, #state{subscribers = Subscribers} = State) ->
    case lists:member({Core, Pid}, Subscribers) of
        true -> {reply, ok, State};
        false -> {reply, ok, subscribed(Core, Pid, State)}
    end;
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% All links are monitored, so the news is here or on its way.
heard_of(Pid, Key, #state{pids = Pids} = State) ->
    Reason = receive {'DOWN', _Ref, process, Pid, Why} -> Why
             after ?NEWS_MS -> noproc
             end,
    link_ended(Pid, Key, Reason, State#state{pids = maps:remove(Pid, Pids)}).

started(Key, #state{subscribers = Subscribers, admitting = Admitting, pids = Pids} = State) ->
    case weft_link_sup:start_link_to(Key, Subscribers, Admitting) of
        {ok, Pid} ->
            ok = weft_link_table:enter(Key, Pid),
            _ = monitor(process, Pid),
            {reply, {ok, Pid}, State#state{pids = Pids#{Pid => Key}}};
        {error, Reason} ->
            {reply, {error, Reason}, State}
    end.

subscribed(Core, Pid, #state{subscribers = Subscribers, pids = Pids} = State) ->
    _ = monitor(process, Pid),
    [weft_link:subscribe(Link, Core, Pid) || Link <- maps:keys(Pids)],
    remember(State#state{subscribers = lists:keystore(Core, 1, Subscribers, {Core, Pid})}).

%% @private
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({'DOWN', _Ref, process, Pid, Reason}, #state{pids = Pids} = State) ->
    case maps:take(Pid, Pids) of
        {Key, Rest} -> {noreply, link_ended(Pid, Key, Reason, State#state{pids = Rest})};
        error -> {noreply, subscriber_ended(Pid, State)}
    end;
handle_info({'EXIT', Pid, _Reason} = Exit, State) ->
    ok = case weft_turn:is_witness(Pid) of
             true -> weft_turn:open();
             false -> weft_stray:message(Exit)
         end,
    {noreply, State};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

link_ended(Pid, Key, Reason, State) ->
    _ = [tell_down(Key, Published, State)
         || Published <- weft_link_table:take(Key, Pid), Reason =/= normal, is_atom(Key)],
    State.

%% A link that died could not report it. Cores that did not use the link get nothing.
tell_down(Node, Published, #state{subscribers = Subscribers, admitting = Admitting}) ->
    IsNeighbour = maps:get(neighbour, Published, true),
    lists:foreach(fun({Core, Pid}) ->
                          _ = (IsNeighbour orelse Core =:= Admitting)
                              andalso (Pid ! {weft_link, down, Node, link_process})
                  end, Subscribers).

subscriber_ended(Pid, #state{subscribers = Subscribers, pids = Pids} = State) ->
    [weft_link:unsubscribe(Link, Pid) || Link <- maps:keys(Pids)],
    remember(State#state{subscribers = lists:keydelete(Pid, 2, Subscribers)}).
