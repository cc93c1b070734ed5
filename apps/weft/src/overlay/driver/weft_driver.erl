%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs any core (`weft_core') on real links. It is the one interpreter of effects outside the
%% simulator.
%%
%% It turns what the link layer, timers and callers say into events. It turns effects into calls of
%% the link layer, timers, replies, rows of `weft_view' and notices to subscribers and to the log.
%% It decides nothing itself. Neither payload of sessions and channels nor a read passes through it;
%% broadcasts do. It serves all nodes, so no session may suspend it (`weft_never_stopped').
%%
%% The core can be replaced while the driver runs (`change/3'). The new core starts from its
%% options, hears of the links that are up, and its views replace those of the core before. After a
%% while the driver disconnects the nodes that the core before asked for and the new one does not
%% want.
%%
%% Where distribution begins after the driver, the node has its name from then on. A core without
%% `named/2' can not go on then: the driver ends, for its supervisor to start it again.
%%
%% Messages accepted: `{weft_link, up | down | message | named, ..}' of links, `{weft_data, ..}' of
%% drivers on other nodes, own timers, `{weft_notice, Driver, Notice}' of the drivers named in the
%% option `listens_to', and the end of a subscriber. Others are logged and dropped (`weft_stray').
-module(weft_driver).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/3, change/3, command/2, command/3, notice/2, release/2, subscribe/2, drops/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).

%% Time for a new core to ask for its links before those of the core before are given up.
-define(HANDOVER_MS, 3000).

-record(driver, {
    name :: atom(),
    self :: weft_core:node_id(),
    %% Number of the core among those of this driver: timers of an earlier core are stale.
    generation = 1 :: pos_integer(),
    %% Neighbours with a link, and nodes that a core asked to be connected to.
    up = #{} :: #{weft_core:node_id() => Info :: map()},
    asked = #{} :: #{weft_core:node_id() => []},
    core :: module(),
    core_state :: term(),
    links :: module(),
    views :: module(),
    clock = monotonic :: monotonic | module(),
    watched = #{} :: #{pid() => reference()},
    %% Messages that drivers on other nodes send directly to this process.
    order = weft_driver_order:new() :: weft_driver_order:order(),
    %% While more messages than this wait, those of neighbours are dropped; and how many were
    %% dropped.
    mailbox_max :: pos_integer() | infinity,
    drops = 0 :: non_neg_integer(),
    %% The core holds what users have stored, which is not for logs.
    private = false :: boolean(),
    %% Processes, monitored, and names: whoever has the name when there is something to tell.
    subscribers = #{} :: #{pid() => reference(), Name :: atom() => registered}}).

%% @doc Starts the driver Name of CoreModule, registered under that name. Cores of the same name on
%% different nodes talk to each other. Options are those of the core, and for the driver:
%% <ul>
%% <li>`link_module' (`weft_links'): the module of the link layer. If its `up' brings a function
%%     `send', messages go by that. If it brings a `session', messages of that session come directly
%%     to the driver; those of unknown sessions are returned by `unknown/2' of that module.</li>
%% <li>`view_module' (`weft_view'): keeps what is to be read. If it has a function `keep/2', that
%%     gets the views of an event, before anything else becomes of the event. It may answer
%%     `{error, Reason}'. Then the event has not happened: a command is answered with `{error,
%%     {not_written, Reason}}', and of what another event brought only timers are set.</li>
%% <li>`self' (`node()'), `clock' (a module with now_ms/0 instead of the monotonic clock).</li>
%% <li>`listens_to' ([]): drivers of this node whose notices become events; `tells' ([]): names of
%%     processes that get the notices of this driver. Each notice goes to the process that has the
%%     name then, so it may be started again, or later than the driver.</li>
%% <li>`mailbox_max' (infinity): how many messages may wait before those of neighbours are dropped;
%%     for cores whose protocol tolerates the loss.</li>
%% <li>`asked' ([]): nodes that a driver before this one asked to be connected to. Those that the
%%     core, a topology, does not want are disconnected as after `change/3'.</li>
%% <li>`priority' (that of processes that decide about links and routes, see `weft_turn'): of the
%%     process. `normal' for a core that computes what users have given it.</li>
%% <li>`private' (false): crash reports show neither the state nor messages (`weft_redact').</li>
%% </ul>
%% `seed' and `incarnation' get values when absent.
-spec start_link(Name :: atom(), CoreModule :: module(), Options :: map()) ->
          {ok, pid()} | {error, term()}.
start_link(Name, CoreModule, Options) ->
    gen_server:start_link({local, Name}, ?MODULE, {Name, CoreModule, Options},
                          [{spawn_opt, [{priority, maps:get(priority, Options,
                                                            weft_turn:priority(control))}]}]).

%% @doc Replaces the core. Both are topologies (`weft_topology': it can tell which nodes it wants).
-spec change(Name :: atom(), CoreModule :: module(), Options :: map()) -> ok.
change(Name, CoreModule, Options) ->
    gen_server:call(Name, {change, CoreModule, Options}).

%% @doc Gives the core a command and waits 5 seconds for its reply.
-spec command(Name :: atom() | {atom(), node()}, Command :: term()) -> Reply :: term().
command(Name, Command) ->
    command(Name, Command, 5000).

%% @doc Gives the core a command and waits for its reply.
-spec command(Name :: atom() | {atom(), node()}, Command :: term(), timeout()) -> Reply :: term().
command(Name, Command, TimeoutMs) ->
    gen_server:call(Name, {command, Command}, TimeoutMs).

%% @doc Tells the core something, for example `{link_cost, Node, Microseconds}'. Without effect when
%% no such driver runs.
-spec notice(Name :: atom(), Notice :: term()) -> ok.
notice(Name, Notice) ->
    gen_server:cast(Name, {notice, Notice}).

%% @doc Disconnects a node that was connected for a reason outside of the core, unless the core, a
%% topology, wants it. Without effect when no such driver runs.
-spec release(Name :: atom(), weft_core:node_id()) -> ok.
release(Name, Node) ->
    gen_server:cast(Name, {release, Node}).

%% @doc From now on Pid gets `{weft_notice, Name, Notice}' for each notice of the core.
-spec subscribe(Name :: atom(), pid()) -> ok.
subscribe(Name, Pid) ->
    gen_server:call(Name, {subscribe, Pid}).

%% @doc How many messages of neighbours were dropped; see `mailbox_max'.
-spec drops(Name :: atom()) -> non_neg_integer().
drops(Name) ->
    gen_server:call(Name, drops).

%% @private
-spec init({atom(), module(), map()}) -> {ok, #driver{}}.
init({Name, Core, #{private := true} = Options}) ->
    weft_redact:run(fun() -> started(Name, Core, Options) end);
init({Name, Core, Options}) ->
    started(Name, Core, Options).

started(Name, Core, Options0) ->
    ok = weft_never_stopped:enter(),
    Links = maps:get(link_module, Options0, weft_links),
    Self = maps:get(self, Options0, node()),
    Options = complete(Options0),
    Views = maps:get(view_module, Options0, weft_view),
    ok = Views:clear(Name),
    lists:foreach(fun(Other) -> ok = subscribe(Other, self()) end,
                  maps:get(listens_to, Options, [])),
    {CoreState, Effects} = Core:init(Self, Options),
    ok = Links:subscribe(Name, self()),
    Told = maps:from_list([{Other, registered} || Other <- maps:get(tells, Options, [])]),
    Driver = #driver{name = Name, self = Self, core = Core, core_state = CoreState, links = Links,
                     views = Views, clock = maps:get(clock, Options, monotonic),
                     mailbox_max = maps:get(mailbox_max, Options, infinity),
                     private = maps:get(private, Options, false),
                     asked = maps:from_list([{Node, []} || Node <- maps:get(asked, Options, [])]),
                     subscribers = Told},
    ok = handover_later(Driver),
    {ok, perform(Effects, Driver)}.

complete(Options) ->
    with_default(incarnation, fun weft_identity:incarnation/0,
                 with_default(seed, fun() -> {os:system_time(), make_ref()} end, Options)).

with_default(Key, _Make, Options) when is_map_key(Key, Options) -> Options;
with_default(Key, Make, Options) -> Options#{Key => Make()}.

%% @private
-spec handle_call(term(), gen_server:from(), #driver{}) ->
          {noreply, #driver{}} | {reply, ok | non_neg_integer(), #driver{}}.
handle_call({change, Core, Options}, _From, Driver) ->
    {reply, ok, changed(Core, complete(Options), Driver)};
handle_call({command, Command}, From, Driver) ->
    {noreply, event({command, From, Command}, Driver)};
handle_call(drops, _From, #driver{drops = Drops} = Driver) ->
    {reply, Drops, Driver};
handle_call({subscribe, Pid}, _From, #driver{subscribers = Subscribers} = Driver) ->
    {reply, ok, case Subscribers of
                    #{Pid := _} -> Driver;
                    #{} -> Driver#driver{subscribers = Subscribers#{Pid => monitor(process, Pid)}}
                end};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #driver{}) -> {noreply, #driver{}}.
handle_cast({notice, Notice}, Driver) ->
    {noreply, event({notice, Notice}, Driver)};
handle_cast({release, Node}, Driver) ->
    {noreply, handover([Node], Driver)};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #driver{}) ->
          {noreply, #driver{}} | {stop, {shutdown, {named, node()}}, #driver{}}.
handle_info({weft_data, Session, Number, Msg} = Data,
            #driver{name = Name, links = Links, order = Order0} = Driver) ->
    case weft_driver_order:arrived(Session, Number, Msg, Order0) of
        {Node, Messages, Order} ->
            {noreply, lists:foldl(fun(M, D) -> message(Node, M, D) end,
                                  Driver#driver{order = Order}, Messages)};
        unknown ->
            ok = Links:unknown(Name, Data),
            {noreply, Driver}
    end;
handle_info({weft_link, message, Node, Msg}, Driver) ->
    {noreply, message(Node, Msg, Driver)};
handle_info({weft_link, up, Node, Info}, #driver{up = Up, order = Order0} = Driver) ->
    Order = case Info of
                #{session := Session} -> weft_driver_order:up(Session, Node, Order0);
                #{} -> Order0
            end,
    {noreply, event({neighbour_up, Node}, Driver#driver{up = Up#{Node => Info}, order = Order})};
handle_info({weft_link, down, Node, Reason}, #driver{up = Up, order = Order} = Driver) ->
    {noreply, event({neighbour_down, Node, Reason},
                    Driver#driver{up = maps:remove(Node, Up),
                                  order = weft_driver_order:down(Node, Order)})};
handle_info({weft_link, named, Self}, Driver) ->
    named(Self, Driver);
handle_info({weft_timer, Generation, Timer}, #driver{generation = Generation} = Driver) ->
    {noreply, event({timer, Timer}, Driver)};
handle_info({weft_handover, Generation, Nodes}, #driver{generation = Generation} = Driver) ->
    {noreply, handover(Nodes, Driver)};
handle_info({OfAFormerCore, _Generation, _}, Driver)
  when OfAFormerCore =:= weft_timer; OfAFormerCore =:= weft_handover ->
    {noreply, Driver};
handle_info({weft_notice, _Driver, Notice}, Driver) ->
    {noreply, event({notice, Notice}, Driver)};
%% A send to a busy socket may leave its monitor of the port behind (OTP 26 and later).
handle_info({'DOWN', _Ref, port, _Socket, _Reason}, Driver) ->
    {noreply, Driver};
handle_info({'DOWN', Ref, process, Pid, Reason}, #driver{watched = Watched} = Driver) ->
    case maps:take(Pid, Watched) of
        {Ref, Rest} ->
            {noreply, event({notice, {gone, Pid, Reason}}, Driver#driver{watched = Rest})};
        _ASubscriber ->
            Subscribers = maps:remove(Pid, Driver#driver.subscribers),
            {noreply, Driver#driver{subscribers = Subscribers}}
    end;
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(#{state := #driver{private = true, name = Name}} = Status) ->
    weft_redact:status(Status, Name);
format_status(Status) ->
    Status.

named(Self, #driver{self = Self} = Driver) ->
    {noreply, Driver};
named(Self, #driver{core = Core, core_state = CoreState0} = Driver) ->
    case erlang:function_exported(Core, named, 2) of
        true ->
            {CoreState, Effects} = Core:named(Self, CoreState0),
            {noreply, perform(Effects, Driver#driver{self = Self, core_state = CoreState})};
        false ->
            {stop, {shutdown, {named, Self}}, Driver}
    end.

message(Node, Msg, #driver{drops = Drops} = Driver) ->
    case has_room(Driver) of
        true -> event({message, Node, Msg}, Driver);
        false -> Driver#driver{drops = Drops + 1}
    end.

has_room(#driver{mailbox_max = infinity}) ->
    true;
has_room(#driver{mailbox_max = Max}) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    Waiting =< Max.

changed(Core, Options, #driver{name = Name, self = Self, up = Up, asked = Asked,
                               views = Views} = Driver0) ->
    Generation = Driver0#driver.generation + 1,
    {CoreState, Effects} = Core:init(Self, Options),
    New = [Key || {view, Key, Value} <- Effects, Value =/= delete],
    lists:foreach(fun(Key) -> Views:delete(Name, Key) end, Views:keys(Name) -- New),
    Driver = perform(Effects, Driver0#driver{core = Core, core_state = CoreState,
                                             generation = Generation}),
    ok = handover_later(Driver#driver{asked = Asked}),
    lists:foldl(fun(Node, D) -> event({neighbour_up, Node}, D) end, Driver,
                lists:sort(maps:keys(Up))).

handover_later(#driver{asked = Asked}) when map_size(Asked) =:= 0 ->
    ok;
handover_later(#driver{asked = Asked, generation = Generation}) ->
    _ = erlang:send_after(?HANDOVER_MS, self(),
                          {weft_handover, Generation, lists:sort(maps:keys(Asked))}),
    ok.

handover(Nodes, #driver{core = Core, core_state = CoreState} = Driver) ->
    perform([{disconnect, Node} || Node <- Nodes -- Core:neighbours(CoreState)], Driver).

event(Event, #driver{private = true} = Driver) ->
    weft_redact:run(fun() -> handled(Event, Driver) end);
event(Event, Driver) ->
    handled(Event, Driver).

handled(Event, #driver{core = Core, core_state = CoreState0, clock = Clock} = Driver) ->
    {CoreState, Effects} = Core:handle(Event, now_ms(Clock), CoreState0),
    case kept(Effects, Driver) of
        {ok, Left} -> perform(Left, Driver#driver{core_state = CoreState});
        {error, Reason} -> perform(not_written(Event, Effects, Reason), Driver)
    end.

%% What is left to do when the views are kept.
kept(Effects, #driver{name = Name, views = Module}) ->
    case erlang:function_exported(Module, keep, 2)
        andalso lists:partition(fun is_view/1, Effects) of
        false -> {ok, Effects};
        {[], _} -> {ok, Effects};
        {Views, Left} ->
            case Module:keep(Name, [{Key, Value} || {view, Key, Value} <- Views]) of
                ok -> {ok, Left};
                {error, Reason} -> {error, Reason}
            end
    end.

is_view(Effect) -> element(1, Effect) =:= view.

not_written({command, From, _}, _Effects, Reason) ->
    [{reply, From, {error, {not_written, Reason}}}];
not_written(_Event, Effects, _Reason) ->
    [Effect || {after_ms, _, _} = Effect <- Effects].

now_ms(monotonic) -> erlang:monotonic_time(millisecond);
now_ms(Clock) -> Clock:now_ms().

perform(Effects, Driver) ->
    lists:foldl(fun(Effect, D) ->
                        _ = perform_one(Effect, D),
                        remembered(Effect, D)
                end, Driver, Effects).

remembered({connect, Node}, #driver{asked = Asked} = Driver) ->
    Driver#driver{asked = Asked#{Node => []}};
remembered({disconnect, Node}, #driver{asked = Asked} = Driver) ->
    Driver#driver{asked = maps:remove(Node, Asked)};
remembered({watch, Pid}, #driver{watched = Watched} = Driver) when not is_map_key(Pid, Watched) ->
    Driver#driver{watched = Watched#{Pid => monitor(process, Pid)}};
remembered({unwatch, Pid}, #driver{watched = Watched} = Driver) ->
    Driver#driver{watched = maps:remove(Pid, Watched)};
remembered(_Effect, Driver) ->
    Driver.

%% A message to a node whose link has just been lost is dropped; `down' is on its way to the core.
perform_one({send, To, Msg}, #driver{up = Up, name = Name, links = Links}) ->
    case Up of
        #{To := #{send := {Module, Send, Arguments}}} -> apply(Module, Send, Arguments ++ [Msg]);
        #{} -> Links:send(To, Name, Msg)
    end;
%% The event comes after the messages that wait now. A timer of the system would take a millisecond
%% or more.
perform_one({after_ms, 0, Timer}, #driver{generation = Generation}) ->
    self() ! {weft_timer, Generation, Timer},
    ok;
perform_one({after_ms, Ms, Timer}, #driver{generation = Generation}) ->
    _ = erlang:send_after(Ms, self(), {weft_timer, Generation, Timer}),
    ok;
perform_one({connect, Node}, #driver{links = Links}) ->
    ok = Links:connect(Node);
perform_one({disconnect, Node}, #driver{links = Links}) ->
    ok = Links:disconnect(Node);
perform_one({break, Node}, #driver{links = Links}) ->
    ok = Links:break(Node);
perform_one({neighbour, Node, IsNeighbour}, #driver{links = Links}) ->
    ok = Links:agree(Node, IsNeighbour);
perform_one({view, Key, delete}, #driver{name = Name, views = Views}) ->
    Views:delete(Name, Key);
perform_one({view, Key, Value}, #driver{name = Name, views = Views}) ->
    Views:put(Name, Key, Value);
perform_one({watch, _Pid}, _Driver) ->
    ok;
perform_one({unwatch, Pid}, #driver{watched = Watched}) ->
    case Watched of
        #{Pid := Ref} -> demonitor(Ref, [flush]);
        #{} -> ok
    end;
%% If the connection's buffer is full the message is dropped: messages that wait for one node must
%% not stop this process.
perform_one({tell, Pid, Msg}, _Driver) ->
    erlang:send(Pid, Msg, [nosuspend]);
perform_one({exit, Pid, Reason}, _Driver) ->
    exit(Pid, Reason);
perform_one({reply, From, Reply}, _Driver) ->
    gen_server:reply(From, Reply);
perform_one({notice, Notice}, #driver{name = Name, subscribers = Subscribers}) ->
    log(Name, Notice),
    lists:foreach(fun(Pid) -> Pid ! {weft_notice, Name, Notice} end,
                  lists:append([processes(Subscriber) || Subscriber <- maps:keys(Subscribers)])).

%% Nobody while the one that has the name is started again.
processes(Pid) when is_pid(Pid) -> [Pid];
processes(Name) -> [Pid || Pid <- [whereis(Name)], is_pid(Pid)].

log(Name, {warning, Notice}) -> ?LOG_WARNING(#{weft => Name, notice => Notice});
log(Name, Notice) -> ?LOG_DEBUG(#{weft => Name, notice => Notice}).
