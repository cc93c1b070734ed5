%% SPDX-License-Identifier: Apache-2.0
%% @doc A process that runs once in the cluster, as long as there is a quorum of a strong scope. It
%% is started on every node that may run it, runs on the node that holds its name, and moves when
%% that ends.
%%
%% Put child_spec/3 under a supervisor of each such node. This process competes for the name. If it
%% wins, it calls the start function (which links, like `start_link'), and hands the name over to
%% the child: `{via, weft_names, {Scope, Name}}' reaches it. If the node loses the lease, the child
%% is killed (there is no time to let it end in good order, because another node is about to start
%% one), and this process competes again. If the child ends by itself, this process ends with the
%% same reason; its supervisor decides what follows, and another node may win meanwhile.
%%
%% Two children may overlap only if one is stopped together with its whole node (SIGSTOP, a
%% suspended machine) and runs on for an instant before it is killed. An action that must not happen
%% twice even then should carry the token (token/1), which is greater for each holder.
%%
%% Not here: handing state over.
-module(weft_singleton).
-behaviour(gen_server).

-export([start_link/3, child_spec/3, token/1, status/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([name/0, options/0]).

-define(RETRY_MS, 1000).
-define(SHUTDOWN_MS, 5000).
-define(ASK_MS, 5000).

-type name() :: {weft_names:scope(), Name :: term()}.
-type options() :: #{retry_ms => pos_integer(), shutdown_ms => pos_integer()}.
%% `retry_ms' (1000): how often a node that waits looks whether the name is free. It looks at once
%% when the holder ends, but not when the connection to it is lost. `shutdown_ms' (5000): how long
%% the child may take to end in good order when this process is stopped.

-record(singleton, {
    name :: name(),
    handle :: weft_names_strong:handle(),
    start :: {module(), atom(), [term()]},
    options :: options(),
    state = asking :: waiting | asking | running,
    child = none :: none | pid(),
    token = none :: none | pos_integer(),
    %% The process that asks for the name on behalf of this one, or while this one waits, when it
    %% asks again; and the monitor of the holder.
    helper = none :: none | {Monitor :: reference(), Question :: reference()}
                   | {timer, reference()},
    holder = none :: none | reference()}).

%% @doc Starts the competitor of this node. The scope must be a strong one.
-spec start_link(name(), {module(), atom(), [term()]}, options()) -> gen_server:start_ret().
start_link({_Scope, _Name} = Name, {_M, _F, _A} = Start, Options) ->
    gen_server:start_link(?MODULE, {Name, Start, Options}, []).

-spec child_spec(name(), {module(), atom(), [term()]}, options()) -> supervisor:child_spec().
child_spec(Name, Start, Options) ->
    #{id => {?MODULE, Name}, start => {?MODULE, start_link, [Name, Start, Options]},
      shutdown => maps:get(shutdown_ms, Options, ?SHUTDOWN_MS) + 1000, type => worker}.

%% @doc The token by which this node holds the singleton now.
-spec token(name()) -> {ok, pos_integer()} | undefined.
token({Scope, Name}) ->
    weft_names_strong:held(weft_names_strong:handle(Scope), Name).

%% @doc The state of a node's competitor, and the child if it runs here.
-spec status(pid()) -> #{state := waiting | asking | running, child := pid() | none}.
status(Pid) ->
    gen_server:call(Pid, status).

%% @private
-spec init({name(), {module(), atom(), [term()]}, options()}) -> {ok, #singleton{}}.
init({{Scope, _} = Name, Start, Options}) ->
    process_flag(trap_exit, true),
    {ok, ask(#singleton{name = Name, handle = weft_names_strong:handle(Scope), start = Start,
                        options = Options})}.

%% @private
-spec handle_call(term(), gen_server:from(), #singleton{}) -> {reply, map(), #singleton{}}.
handle_call(status, _From, #singleton{state = State, child = Child} = Singleton) ->
    {reply, #{state => State, child => Child}, Singleton};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #singleton{}) -> {noreply, #singleton{}}.
handle_cast(Request, Singleton) ->
    ok = weft_stray:message(Request),
    {noreply, Singleton}.

%% @private
-spec handle_info(term(), #singleton{}) -> {noreply, #singleton{}} | {stop, term(), #singleton{}}.
handle_info({asked, Ref, Answer}, #singleton{helper = {_, Ref}} = Singleton) ->
    answered(Answer, Singleton#singleton{helper = none});
handle_info({'DOWN', Ref, process, _, _Crash}, #singleton{helper = {Ref, _}} = Singleton) ->
    {noreply, wait(Singleton#singleton{helper = none})};
%% The replicas have the name until the lease ends, or until the holder's node gives it back; who is
%% asked meanwhile says `taken' again.
handle_info({'DOWN', Ref, process, _, Reason}, #singleton{holder = Ref} = Singleton)
  when Reason =:= noconnection; Reason =:= noproc ->
    {noreply, Singleton#singleton{holder = none}};
handle_info({'DOWN', Ref, process, _, _Reason}, #singleton{holder = Ref} = Singleton) ->
    {noreply, ask(Singleton#singleton{holder = none})};
handle_info({'DOWN', _Former, process, _, _Reason}, Singleton) ->
    {noreply, Singleton};
handle_info({timeout, Timer, retry}, #singleton{helper = {timer, Timer}} = Singleton) ->
    {noreply, ask(Singleton)};
handle_info({timeout, _Former, retry}, Singleton) ->
    {noreply, Singleton};
%% Earlier code has started a timer with this message.
handle_info(retry, #singleton{state = waiting} = Singleton) ->
    {noreply, ask(Singleton)};
handle_info(retry, Singleton) ->
    {noreply, Singleton};
%% The lease was lost before the name was handed over to the child.
handle_info({weft_names_lost, _Scope, _Name, Token}, #singleton{token = Token} = Singleton) ->
    {noreply, wait(killed(Singleton))};
handle_info({weft_names_lost, _Scope, _Name, _Earlier}, Singleton) ->
    {noreply, Singleton};
handle_info({'EXIT', Child, Reason}, #singleton{child = Child} = Singleton) ->
    #singleton{handle = Handle, name = {_, Name}, token = Token} = Singleton,
    Ended = Singleton#singleton{child = none, token = none},
    case Reason =:= killed andalso not weft_names_strong:is_held(Handle, Name, Token) of
        true -> {noreply, wait(Ended)};
        false -> {stop, Reason, Ended}
    end;
handle_info({'EXIT', _Other, Reason}, Singleton) ->
    {stop, Reason, Singleton};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
-spec terminate(term(), #singleton{}) -> ok.
terminate(_Reason, #singleton{child = none}) ->
    ok;
terminate(_Reason, #singleton{child = Child, options = Options}) ->
    Monitor = monitor(process, Child),
    exit(Child, shutdown),
    receive
        {'DOWN', Monitor, process, Child, _} -> ok
    after maps:get(shutdown_ms, Options, ?SHUTDOWN_MS) ->
        exit(Child, kill),
        receive {'DOWN', Monitor, process, Child, _} -> ok end
    end.

%% --- competing --------------------------------------------------------------------------------

%% A helper asks, so that this process can be stopped meanwhile.
ask(#singleton{helper = {timer, Timer}} = Singleton) ->
    _ = erlang:cancel_timer(Timer),
    ask(Singleton#singleton{helper = none});
ask(#singleton{helper = none, handle = Handle, name = {_, Name}} = Singleton) ->
    Self = self(),
    Question = make_ref(),
    {_, Monitor} = spawn_monitor(fun() ->
        Answer = weft_names_strong:acquire(Handle, Name, Self, #{on_lost => tell,
                                                                 timeout_ms => ?ASK_MS}),
        Self ! {asked, Question, Answer}
    end),
    Singleton#singleton{state = asking, helper = {Monitor, Question}};
ask(Singleton) ->
    Singleton.

answered({ok, Token}, Singleton) ->
    run((unwatched(Singleton))#singleton{token = Token});
%% The name was registered for this process after all, when the caller had given up.
answered({error, {taken, Self}}, #singleton{handle = Handle, name = {_, Name}} = Singleton)
  when Self =:= self() ->
    case weft_names_strong:held(Handle, Name) of
        {ok, Token} -> answered({ok, Token}, Singleton);
        undefined -> {noreply, wait(unwatched(Singleton))}
    end;
answered({error, {taken, Holder}}, Singleton) ->
    {noreply, wait(watch(Holder, Singleton))};
answered({error, _}, Singleton) ->
    {noreply, wait(Singleton)}.

wait(#singleton{options = Options} = Singleton) ->
    RetryMs = maps:get(retry_ms, Options, ?RETRY_MS),
    Timer = erlang:start_timer(RetryMs div 2 + rand:uniform(RetryMs), self(), retry),
    Singleton#singleton{state = waiting, helper = {timer, Timer}}.

watch(Holder, Singleton) ->
    (unwatched(Singleton))#singleton{holder = monitor(process, Holder)}.

%% The former holder may live on without the name, and its end is no reason to ask again.
unwatched(#singleton{holder = none} = Singleton) ->
    Singleton;
unwatched(#singleton{holder = Former} = Singleton) ->
    demonitor(Former, [flush]),
    Singleton#singleton{holder = none}.

run(#singleton{start = {M, F, A}, handle = Handle, name = {_, Name}, token = Token} = Singleton) ->
    case apply(M, F, A) of
        {ok, Child} ->
            Running = Singleton#singleton{state = running, child = Child},
            case weft_names_strong:hand_over(Handle, Name, {Child, Token}, kill) of
                {ok, New} -> {noreply, Running#singleton{token = New}};
                {error, _} -> {noreply, wait(killed(Running))}
            end;
        ignore ->
            {stop, normal, Singleton};
        {error, Reason} ->
            {stop, Reason, Singleton}
    end.

%% Without the name nothing may run here. If the name is still held it is released.
killed(#singleton{child = Child, handle = Handle, name = {_, Name}, token = Token} = Singleton) ->
    is_pid(Child) andalso ended(Child),
    _ = spawn(weft_names_strong, release, [Handle, Name, {self(), Token}]),
    Singleton#singleton{child = none, token = none}.

ended(Child) ->
    exit(Child, kill),
    receive {'EXIT', Child, _} -> true end.
