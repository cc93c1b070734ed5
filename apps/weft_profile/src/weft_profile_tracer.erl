%% SPDX-License-Identifier: Apache-2.0
%% @doc Records what a node does for some seconds: which process or port runs on which scheduler,
%% garbage collections, messages to and from other nodes. It is loaded on the node for the
%% recording, and so needs nothing but OTP and the two modules that come with it
%% (`weft_profile_switch', `weft_profile_sampler').
%%
%% Two processes. The guard sets the trace flags, watches the time and the owner (the process that
%% asked, here or on another node), and answers questions for the clock. The collector gets the
%% trace messages and counts them. Whatever ends the recording - the time, a limit, the end of the
%% owner or of its connection, the end of one of the two - the flags are removed at once. What was
%% recorded waits for as long as the owner lives: it may have to wait for other nodes first.
%%
%% It traces in windows: so many milliseconds (window_ms) of each so many (every_ms), as tracing is
%% what costs. Between them the flags are removed. The owner says when the first one begins, so that
%% all nodes have theirs at the same times. A window that has more events than the rate allows ends
%% early. Where a window is as long as the time between two, all of the time is one window.
%%
%% Limits, each of which ends the recording: events in all, events per second, bytes of what was
%% collected, trace messages that wait, and the time. Of messages between nodes only a hash, the
%% kind (an atom) and the ends are kept, nothing of their content.
-module(weft_profile_tracer).

-export([start/2, defaults/0, clock/1, go/2, stop/1, fetch/1, guards/0]).
-export([guard/2]).
-export_type([options/0, window/0, event/0, info/0, ended/0]).

-type options() :: #{ms => pos_integer(), events => pos_integer(), rate => pos_integer(),
                     bytes => pos_integer(), waiting => pos_integer(), sample_ms => pos_integer(),
                     window_ms => pos_integer(), every_ms => pos_integer(),
                     pids => all | pos_integer() | [pid()], gc => boolean(), procs => boolean(),
                     ports => boolean(),
                     %% Messages to and from these are recorded.
                     nodes => [node()]}.
%% Times are those of the node's own clock (erlang:monotonic_time/1) in nanoseconds. The scheduler
%% of a dirty one, or one that is not known, is 0. Key identifies a message, see message_key/1. A
%% port runs the command of a process, or what the runtime has for it, such as input (0).
-type event() :: {Ns :: integer(), in | out, pid() | port(), Scheduler :: non_neg_integer(),
                  mfa() | Command :: atom() | 0}
               | {integer(), gc_start | gc_end, pid(), non_neg_integer(), minor | major}
               | {integer(), send, pid(), non_neg_integer(), To :: term(), Key :: term(), atom()}
               | {integer(), 'receive', pid(), non_neg_integer(), Key :: term(), atom()}
               | {integer(), spawned, pid(), non_neg_integer(), mfa()}.
%% Its number, and when its tracing began and ended.
-type window() :: {non_neg_integer(), From :: integer(), To :: integer()}.
%% Why it ended: `time' is the usual reason, the others are limits, or `stopped' by the owner.
-type ended() :: time | events | rate | bytes | waiting | stopped.
-type info() :: #{ended := ended(), from_ns := integer(), to_ns := integer(),
                  events := non_neg_integer(), lost := non_neg_integer(), otp := string(),
                  schedulers := pos_integer(), sessions := boolean(),
                  window_ms := pos_integer(), every_ms := pos_integer(), windows := [window()],
                  names := #{pid() | port() => binary()}, samples := map()}.

-define(CHUNK, 5000).
-define(HEAP_BYTES_MIN, 16000000).
-define(ANSWER_MS, 15000).
%% So often the collector looks at its own size.
-define(LOOK_EVENTS, 256).
%% The rate is that of half seconds: a shorter burst is no reason to end.
-define(RATE_NS, 500000000).
-define(NAMES_MAX, 5000).

-define(IN_TIME(Why), (Why =:= time orelse Why =:= stopped)).

-record(c, {guard :: pid(), limits :: options(), switch :: weft_profile_switch:switch(),
            sampler :: pid(), from_ns :: integer(),
            open = none :: none | {Number :: non_neg_integer(), From :: integer()},
            windows = [] :: [window()],
            events = [] :: [event()], count = 0 :: non_neg_integer(), rate_ns :: integer(),
            rate = 0 :: non_neg_integer()}).

-define(IS_SAMPLED(Options), (map_get(window_ms, Options) < map_get(every_ms, Options))).

%% @doc The limits and options that hold if nothing else is said.
-spec defaults() -> options().
defaults() ->
    #{ms => 5000, events => 300000, rate => 150000, bytes => 128000000, waiting => 50000,
      sample_ms => 25, window_ms => 40, every_ms => 1000, pids => all, gc => true,
      procs => true, ports => true, nodes => []}.

%% @doc Starts recording on this node for Owner. It gets {weft_profile, Guard, ended, Why} when the
%% recording has ended. The error is a text.
-spec start(pid(), options()) -> {ok, Guard :: pid()} | {error, string()}.
start(Owner, Given) ->
    Options = maps:merge(defaults(), Given),
    {Guard, Monitor} = spawn_monitor(?MODULE, guard, [Owner, Options]),
    Guard ! {begin_for, self(), Monitor},
    receive
        {Monitor, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Guard, Reason} ->
            {error, lists:flatten(io_lib:format("the recording failed: ~0tp", [Reason]))}
    end.

%% @doc The node's clock, in nanoseconds.
-spec clock(pid()) -> integer().
clock(Guard) -> ask(Guard, clock).

%% @doc Begins to trace at that time of the node's clock, in nanoseconds, and ends when the time of
%% the recording is over.
-spec go(pid(), integer()) -> ok.
go(Guard, FirstNs) -> ask(Guard, {go, FirstNs}).

%% @doc Ends the recording before its time.
-spec stop(pid()) -> ok.
stop(Guard) -> ask(Guard, stop).

%% @doc The next part of what was recorded, oldest events first, once it has ended. After the last
%% part nothing is left on the node.
-spec fetch(pid()) -> {events, [event()]} | {done, info()}.
fetch(Guard) -> ask(Guard, fetch).

ask(Guard, What) ->
    Monitor = monitor(process, Guard),
    Guard ! {What, self(), Monitor},
    receive
        {Monitor, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Guard, Reason} -> exit({recording_lost, node(Guard), Reason})
    after ?ANSWER_MS ->
        demonitor(Monitor, [flush]),
        exit({recording_lost, node(Guard), no_answer})
    end.

%% @doc The guards of all recordings on this node, those included whose results are still here.
-spec guards() -> [pid()].
guards() ->
    [Pid || Pid <- processes(),
            {initial_call, {?MODULE, guard, 2}} <- [process_info(Pid, initial_call)]].

%% --- the guard --------------------------------------------------------------------------------

%% @private Above all others: it has to end the recording on a node that is busy.
-spec guard(pid(), options()) -> term().
guard(Owner, Options) ->
    process_flag(priority, max),
    process_flag(trap_exit, true),
    receive
        {begin_for, From, Ref} ->
            Watch = monitor(process, Owner),
            case weft_profile_switch:prepare() of
                {ok, Kind} ->
                    Collector = collector(Options),
                    {Switch, Sampler} = prepared(Kind, Collector, Options),
                    From ! {Ref, {ok, self()}},
                    guarding(#{owner => Owner, watch => Watch, collector => Collector,
                               sampler => Sampler, switch => Switch, options => Options});
                {error, Text} ->
                    From ! {Ref, {error, Text}}
            end
    end.

collector(#{bytes := Bytes} = Options) ->
    Guard = self(),
    %% Far above the limit that ends a recording in an orderly way: the last resort. It sorts what
    %% it
    %% has got in the end, and a collection counts twice.
    Heap = #{size => 4 * max(Bytes, ?HEAP_BYTES_MIN) div erlang:system_info(wordsize), kill => true,
             error_logger => false},
    spawn_opt(fun() -> collect_for(Guard, Options) end,
              [link, {priority, high}, {message_queue_data, off_heap}, {max_heap_size, Heap}]).

prepared(Kind, Collector, Options) ->
    Alone = weft_profile_switch:left_alone(),
    Sampler = spawn_link(weft_profile_sampler, run, [Options, [self(), Collector | Alone]]),
    Switch = weft_profile_switch:make(Kind, Collector, [self(), Sampler | Alone], Options),
    Collector ! {recording, Switch, Sampler},
    {Switch, Sampler}.

guarding(#{owner := Owner, watch := Watch, collector := Collector} = State) ->
    receive
        {clock, From, Ref} ->
            From ! {Ref, erlang:monotonic_time(nanosecond)},
            guarding(State);
        {{go, FirstNs}, From, Ref} ->
            From ! {Ref, ok},
            guarding(began(FirstNs, State));
        {open, Number} ->
            guarding(open(Number, State));
        {close, Number} ->
            ok = close(Number, State),
            guarding(State);
        time ->
            guarding(end_now(time, State));
        {stop, From, Ref} ->
            From ! {Ref, ok},
            guarding(end_now(stopped, State));
        {ended, Why} ->
            Owner ! {weft_profile, self(), ended, Why},
            %% A window may have been opened since the collector switched off.
            guarding(off(State));
        {fetch, _From, _Ref} = Fetch ->
            Collector ! Fetch,
            guarding(State);
        {'EXIT', Collector, _Reason} ->
            give_up(State);
        {'EXIT', _Sampler, normal} ->
            guarding(State);
        {'EXIT', _Sampler, _Reason} ->
            give_up(State);
        {'DOWN', Watch, process, _, _} ->
            give_up(State);
        _Stray ->
            guarding(State)
    end.

%% Windows begin at the same times on all nodes, however late the timers are.
began(FirstNs, #{options := #{ms := Ms}} = State) ->
    First = FirstNs div 1000000,
    at(First + Ms, time),
    at(First, {open, 0}),
    State#{first_ms => First}.

at(Ms, What) -> erlang:send_after(Ms, self(), What, [{abs, true}]).

open(_Number, #{ended := true} = State) ->
    State;
open(Number, #{options := #{window_ms := WindowMs, every_ms := EveryMs} = Options,
               first_ms := First, switch := Switch, collector := Collector} = State) ->
    FromNs = erlang:monotonic_time(nanosecond),
    Collector ! {window, Number, FromNs},
    ok = weft_profile_switch:on(Switch),
    _ = [at(First + Next * EveryMs + Ms, What)
         || ?IS_SAMPLED(Options),
            {Next, Ms, What} <- [{Number, WindowMs, {close, Number}},
                                 {Number + 1, 0, {open, Number + 1}}]],
    State.

close(_Number, #{ended := true}) ->
    ok;
close(Number, #{switch := Switch, collector := Collector}) ->
    ok = weft_profile_switch:pause(Switch),
    Collector ! {window_end, Number, erlang:monotonic_time(nanosecond)},
    ok.

end_now(Why, #{collector := Collector} = State) ->
    Off = off(State),
    Collector ! {ended, Why},
    Off.

give_up(#{collector := Collector, sampler := Sampler} = State) ->
    _ = off(State),
    exit(Collector, kill),
    exit(Sampler, kill).

%% Once: while its result waits here somebody else may trace.
off(#{ended := true} = State) ->
    State;
off(#{switch := Switch} = State) ->
    ok = weft_profile_switch:off(Switch),
    State#{ended => true}.

%% --- the collector ----------------------------------------------------------------------------

collect_for(Guard, Options) ->
    process_flag(trap_exit, true),
    Now = erlang:monotonic_time(nanosecond),
    receive
        {recording, Switch, Sampler} ->
            collect(#c{guard = Guard, limits = Options, switch = Switch, sampler = Sampler,
                       from_ns = Now, rate_ns = Now})
    end.

collect(#c{guard = Guard} = C) ->
    receive
        {trace_ts, Pid, What, A, Scheduler, Ns} -> event(What, Pid, A, none, Scheduler, Ns, C);
        {trace_ts, Pid, What, A, B, Scheduler, Ns} -> event(What, Pid, A, B, Scheduler, Ns, C);
        {window, Number, Ns} -> collect(window(Number, Ns, C));
        {window_end, Number, Ns} -> collect(window_end(Number, Ns, C));
        {ended, Why} -> ended(Why, C);
        {'EXIT', Guard, _Reason} -> weft_profile_switch:off(C#c.switch);
        _Other -> collect(C)
    end.

%% What was waiting for its first window has not begun before.
window(Number, Ns, #c{windows = []} = C) ->
    C#c{open = {Number, Ns}, from_ns = Ns, rate_ns = Ns, rate = 0};
window(Number, Ns, C) ->
    C#c{open = {Number, Ns}, rate_ns = Ns, rate = 0}.

window_end(Number, Ns, #c{open = {Number, FromNs}, windows = Windows} = C) ->
    C#c{open = none, windows = [{Number, FromNs, Ns} | Windows]};
window_end(_EndedEarly, _Ns, C) ->
    C.

event(What, Pid, A, B, Scheduler, Ns, C) ->
    case weft_profile_switch:event(What, Pid, A, B, Scheduler, Ns) of
        ignored -> collect(C);
        Event -> counted(Ns, C#c{events = [Event | C#c.events], count = C#c.count + 1})
    end.

counted(Ns, #c{count = Count, limits = #{events := Max} = Limits} = C) ->
    if
        Count >= Max -> limit(events, C);
        ?IS_SAMPLED(Limits) -> look(in_window(C#c{rate = C#c.rate + 1}));
        true -> in_half_second(Ns, C)
    end.

%% Too many: the rest of the window is not traced.
in_window(#c{open = {Number, _}, rate = Count,
             limits = #{rate := Rate, window_ms := WindowMs}} = C)
  when Count * 1000 > Rate * WindowMs ->
    ok = weft_profile_switch:pause(C#c.switch),
    window_end(Number, erlang:monotonic_time(nanosecond), C);
in_window(C) ->
    C.

in_half_second(Ns, #c{limits = #{rate := Rate}} = C) ->
    if
        Ns - C#c.rate_ns > ?RATE_NS -> look(C#c{rate_ns = Ns, rate = 1});
        C#c.rate * 2 > Rate -> limit(rate, C);
        true -> look(C#c{rate = C#c.rate + 1})
    end.

look(#c{count = Count, limits = #{bytes := Bytes, waiting := Waiting}} = C)
  when Count rem ?LOOK_EVENTS =:= 0 ->
    [{memory, Memory}, {message_queue_len, Length}] =
        process_info(self(), [memory, message_queue_len]),
    if
        Memory > Bytes -> limit(bytes, C);
        Length > Waiting -> limit(waiting, C);
        true -> collect(C)
    end;
look(C) ->
    collect(C).

limit(Why, #c{switch = Switch} = C) ->
    ok = weft_profile_switch:off(Switch),
    ended(Why, C).

%% What is under way belongs to the recording, unless a limit has ended it.
ended(Why, #c{guard = Guard, switch = Switch, sampler = Sampler} = C) ->
    Ref = weft_profile_switch:delivered(Switch),
    Closed = case C#c.open of
                 {Number, _} -> window_end(Number, erlang:monotonic_time(nanosecond), C);
                 none -> C
             end,
    {Rest, Lost} = rest(Ref, Why, Closed),
    Guard ! {ended, Why},
    To = erlang:monotonic_time(nanosecond),
    Events = lists:keysort(1, lists:reverse(Rest#c.events)),
    Info = (maps:with([window_ms, every_ms], C#c.limits))
        #{ended => Why, windows => lists:reverse(Rest#c.windows),
          from_ns => Rest#c.from_ns, to_ns => To, events => Rest#c.count,
             lost => Lost, otp => erlang:system_info(otp_release),
             schedulers => erlang:system_info(schedulers_online),
             sessions => weft_profile_switch:is_session(Switch),
             samples => weft_profile_sampler:result(Sampler), names => names(Events)},
    kept(Events, Info, Guard).

rest(Ref, Why, C) ->
    rest(Ref, Why, C, 0).

rest(Ref, Why, #c{limits = #{events := Max}} = C, Lost) ->
    receive
        {trace_delivered, _, Ref} -> {C, Lost};
        {trace_ts, Pid, What, A, Scheduler, Ns} when ?IN_TIME(Why), C#c.count < Max ->
            rest(Ref, Why, late(What, Pid, A, none, Scheduler, Ns, C), Lost);
        {trace_ts, Pid, What, A, B, Scheduler, Ns} when ?IN_TIME(Why), C#c.count < Max ->
            rest(Ref, Why, late(What, Pid, A, B, Scheduler, Ns, C), Lost);
        Trace when element(1, Trace) =:= trace_ts -> rest(Ref, Why, C, Lost + 1)
    after ?ANSWER_MS ->
        {C, Lost}
    end.

late(What, Pid, A, B, Scheduler, Ns, C) ->
    case weft_profile_switch:event(What, Pid, A, B, Scheduler, Ns) of
        ignored -> C;
        Event -> C#c{events = [Event | C#c.events], count = C#c.count + 1}
    end.

%% The last part ends the collector, and with it the guard.
kept(Events, Info, Guard) ->
    receive
        {fetch, From, Ref} when Events =:= [] ->
            From ! {Ref, {done, Info}};
        {fetch, From, Ref} ->
            {Part, Rest} = lists:split(min(?CHUNK, length(Events)), Events),
            From ! {Ref, {events, Part}},
            kept(Rest, Info, Guard);
        {'EXIT', Guard, _Reason} ->
            ok;
        _Late ->
            kept(Events, Info, Guard)
    end.

%% Those of processes first: a node may have thousands of sockets.
names(Events) ->
    {Ports, Pids} = lists:partition(fun is_port/1,
                                    lists:usort([element(3, Event) || Event <- Events])),
    maps:from_list([{Who, Name} || Who <- lists:sublist(Pids ++ Ports, ?NAMES_MAX),
                                   {ok, Name} <- [name(Who)]]).

%% A name, or else the function it began with; nothing for a process that has ended. A port has that
%% of its driver or program, and of its owner.
name(Port) when is_port(Port) ->
    case {erlang:port_info(Port, name), erlang:port_info(Port, connected)} of
        {{name, Name}, {connected, Owner}} when node(Owner) =:= node() ->
            case name(Owner) of
                {ok, Text} -> {ok, text("~ts of ~ts", [Name, Text])};
                error -> {ok, text("~ts", [Name])}
            end;
        _Closed -> error
    end;
name(Pid) ->
    case process_info(Pid, [registered_name, initial_call, current_stacktrace]) of
        [{_, Name}, _, _] when is_atom(Name), Name =/= [] -> {ok, text("~ts", [Name])};
        [{_, []}, {_, Initial}, {_, Stack}] -> {ok, function(Pid, Initial, Stack)};
        undefined -> error
    end.

%% Of a fun it is told where it is, that it was a fun says nothing.
function(Pid, {proc_lib, init_p, _}, _Stack) ->
    {M, F, A} = proc_lib:translate_initial_call(Pid),
    text("~ts:~ts/~b", [M, F, A]);
function(_Pid, {erlang, apply, _}, [_ | _] = Stack) ->
    {M, F, A, _} = lists:last(Stack),
    text("in ~ts:~ts/~b", [M, F, A]);
function(_Pid, {M, F, A}, _Stack) ->
    text("~ts:~ts/~b", [M, F, A]).

text(Format, Arguments) -> unicode:characters_to_binary(io_lib:format(Format, Arguments)).
