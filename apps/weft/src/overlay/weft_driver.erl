%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs any core (`weft_core') on real links: the one interpreter of effects.
%%
%% Turns what the link layer, timers and callers say into events, and effects into calls of the link
%% layer, timers, replies, rows of `weft_view' and notices to subscribers and to the log. Decides
%% nothing itself and is never on the way of payload or of a read.
%%
%% Messages accepted: `{weft_link, up | down | message, ..}' of the link layer, own timers,
%% `{weft_notice, Driver, Notice}' of the drivers named in the option `listens_to', and the end of a
%% subscriber. Anything else crashes.
-module(weft_driver).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/3, command/2, command/3, notice/2, subscribe/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(driver, {
    name :: atom(),
    core :: module(),
    core_state :: term(),
    links :: module(),
    subscribers = #{} :: #{pid() => reference()}}).

%% @doc Starts the driver Name of CoreModule, registered under that name; cores of the same name on
%% different nodes talk to each other. Options are those of the core, and for the driver:
%% `link_module' (`weft_links'; the module of the link layer), `self' (`node()'), `listens_to' ([]:
%% drivers of this node whose notices become events). `seed' and `incarnation' get values when
%% absent.
-spec start_link(Name :: atom(), CoreModule :: module(), Options :: map()) ->
          {ok, pid()} | {error, term()}.
start_link(Name, CoreModule, Options) ->
    gen_server:start_link({local, Name}, ?MODULE, {Name, CoreModule, Options}, []).

%% @doc Gives the core a command and waits 5 seconds for its reply.
-spec command(Name :: atom(), Command :: term()) -> Reply :: term().
command(Name, Command) ->
    command(Name, Command, 5000).

%% @doc Gives the core a command and waits for its reply.
-spec command(Name :: atom(), Command :: term(), timeout()) -> Reply :: term().
command(Name, Command, TimeoutMs) ->
    gen_server:call(Name, {command, Command}, TimeoutMs).

%% @doc Tells the core something, for example `{link_cost, Node, Microseconds}'. Without effect when
%% no such driver runs.
-spec notice(Name :: atom(), Notice :: term()) -> ok.
notice(Name, Notice) ->
    gen_server:cast(Name, {notice, Notice}).

%% @doc From now on Pid gets `{weft_notice, Name, Notice}' for each notice of the core.
-spec subscribe(Name :: atom(), pid()) -> ok.
subscribe(Name, Pid) ->
    gen_server:call(Name, {subscribe, Pid}).

%% @private
-spec init({atom(), module(), map()}) -> {ok, #driver{}}.
init({Name, Core, Options0}) ->
    Links = maps:get(link_module, Options0, weft_links),
    Options = with_default(incarnation, fun weft_identity:incarnation/0,
                           with_default(seed, fun() -> {os:system_time(), make_ref()} end,
                                        Options0)),
    ok = weft_view:clear(Name),
    lists:foreach(fun(Other) -> ok = subscribe(Other, self()) end,
                  maps:get(listens_to, Options, [])),
    {CoreState, Effects} = Core:init(maps:get(self, Options, node()), Options),
    ok = Links:subscribe(Name, self()),
    Driver = #driver{name = Name, core = Core, core_state = CoreState, links = Links},
    {ok, perform(Effects, Driver)}.

with_default(Key, _Make, Options) when is_map_key(Key, Options) -> Options;
with_default(Key, Make, Options) -> Options#{Key => Make()}.

%% @private
-spec handle_call({command, term()} | {subscribe, pid()}, gen_server:from(), #driver{}) ->
          {noreply, #driver{}} | {reply, ok, #driver{}}.
handle_call({command, Command}, From, Driver) ->
    {noreply, event({command, From, Command}, Driver)};
handle_call({subscribe, Pid}, _From, #driver{subscribers = Subscribers} = Driver) ->
    {reply, ok, case Subscribers of
                    #{Pid := _} -> Driver;
                    #{} -> Driver#driver{subscribers = Subscribers#{Pid => monitor(process, Pid)}}
                end}.

%% @private
-spec handle_cast({notice, term()}, #driver{}) -> {noreply, #driver{}}.
handle_cast({notice, Notice}, Driver) ->
    {noreply, event({notice, Notice}, Driver)}.

%% @private
-spec handle_info(Info, #driver{}) -> {noreply, #driver{}}
      when Info :: {weft_link, up, node(), map()}
                 | {weft_link, down, node(), Reason :: term()}
                 | {weft_link, message, node(), Msg :: term()}
                 | {weft_timer, Timer :: term()}
                 | {weft_notice, Driver :: atom(), Notice :: term()}
                 | {'DOWN', reference(), process | port, pid() | port(), term()}.
handle_info({weft_link, message, Node, Msg}, Driver) ->
    {noreply, event({message, Node, Msg}, Driver)};
handle_info({weft_link, up, Node, _Info}, Driver) ->
    {noreply, event({neighbour_up, Node}, Driver)};
handle_info({weft_link, down, Node, Reason}, Driver) ->
    {noreply, event({neighbour_down, Node, Reason}, Driver)};
handle_info({weft_timer, Timer}, Driver) ->
    {noreply, event({timer, Timer}, Driver)};
handle_info({weft_notice, _Driver, Notice}, Driver) ->
    {noreply, event({notice, Notice}, Driver)};
%% A send to a busy socket may leave its monitor of the port behind (OTP 26 and later).
handle_info({'DOWN', _Ref, port, _Socket, _Reason}, Driver) ->
    {noreply, Driver};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #driver{subscribers = Subscribers} = Driver) ->
    {noreply, Driver#driver{subscribers = maps:remove(Pid, Subscribers)}}.

event(Event, #driver{core = Core, core_state = CoreState0} = Driver) ->
    {CoreState, Effects} = Core:handle(Event, erlang:monotonic_time(millisecond), CoreState0),
    perform(Effects, Driver#driver{core_state = CoreState}).

perform(Effects, Driver) ->
    lists:foreach(fun(Effect) -> perform_one(Effect, Driver) end, Effects),
    Driver.

%% A message to a node whose link is just lost is dropped; `down' is on its way to the core.
perform_one({send, To, Msg}, #driver{name = Name, links = Links}) ->
    case Links:send(To, Name, Msg) of
        ok -> ok;
        {error, not_connected} -> ok
    end;
perform_one({after_ms, Ms, Timer}, _Driver) ->
    _ = erlang:send_after(Ms, self(), {weft_timer, Timer}),
    ok;
perform_one({connect, Node}, #driver{links = Links}) ->
    ok = Links:connect(Node);
perform_one({disconnect, Node}, #driver{links = Links}) ->
    ok = Links:disconnect(Node);
perform_one({break, Node}, #driver{links = Links}) ->
    ok = Links:break(Node);
perform_one({view, Key, delete}, _Driver) ->
    weft_view:delete(Key);
perform_one({view, Key, Value}, #driver{name = Name}) ->
    weft_view:put(Name, Key, Value);
perform_one({reply, From, Reply}, _Driver) ->
    gen_server:reply(From, Reply);
perform_one({notice, Notice}, #driver{name = Name, subscribers = Subscribers}) ->
    log(Name, Notice),
    lists:foreach(fun(Pid) -> Pid ! {weft_notice, Name, Notice} end, maps:keys(Subscribers)).

log(Name, {warning, Notice}) -> ?LOG_WARNING(#{weft => Name, notice => Notice});
log(Name, Notice) -> ?LOG_DEBUG(#{weft => Name, notice => Notice}).
