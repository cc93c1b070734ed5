%% SPDX-License-Identifier: Apache-2.0
%% @doc Looks at a node at regular times: how much waits in run queues, how many ports there are,
%% and what processes do that run or wait for a scheduler (their state and their stack).
%%
%% At each time it looks at a bounded number of processes, in turns, and it keeps a bounded number
%% of different stacks. A process that runs answers when it is scheduled out, and not in the middle
%% of a function; a stack has at most as many entries as the node keeps (8, if it is not told
%% otherwise). Runs on the node that is looked at, and needs nothing but OTP.
-module(weft_profile_sampler).

-export([run/2, result/1]).
-export_type([samples/0]).

%% queues: {time in ns, runnable, ports}. stacks: outermost function first, with how often it was
%% seen. states: how often a process was seen running, and waiting for a scheduler.
-type samples() :: #{every_ns := pos_integer(), queues := [{integer(), integer(), integer()}],
                     stacks := [{Stack :: [mfa()], Count :: pos_integer()}],
                     states := #{pid() => {Running :: integer(), Runnable :: integer()}},
                     looks := non_neg_integer(), share := float()}.

-define(PROCESSES, 100).
-define(STACKS_MAX, 5000).
-define(STATES_MAX, 5000).
-define(QUEUES_MAX, 20000).
-define(ANSWER_MS, 5000).

%% Timers of all processes expire at the same times, a millisecond apart.
-define(TICK_US, 1000).

-record(s, {every_ms :: pos_integer(), began_ns :: integer(),
            untraced :: [pid()], todo = [] :: [pid()],
            queues = [] :: list(), stacks = #{} :: map(), states = #{} :: map(),
            looks = 0 :: non_neg_integer(), seen = 0 :: non_neg_integer(),
            there = 0 :: non_neg_integer()}).

%% @doc Looks until it is asked for its result. Untraced processes are not looked at.
-spec run(weft_profile_tracer:options(), [pid()]) -> ok.
run(#{sample_ms := EveryMs}, Untraced) ->
    _ = erlang:send_after(EveryMs, self(), look),
    loop(#s{every_ms = EveryMs, began_ns = erlang:monotonic_time(nanosecond),
            untraced = [self() | Untraced]}).

%% @doc What it has seen; it ends.
-spec result(pid()) -> samples() | #{}.
result(Sampler) ->
    Monitor = monitor(process, Sampler),
    Sampler ! {result, self(), Monitor},
    receive
        {Monitor, Result} -> demonitor(Monitor, [flush]), Result;
        {'DOWN', Monitor, process, Sampler, _} -> #{}
    after ?ANSWER_MS ->
        #{}
    end.

loop(#s{every_ms = EveryMs} = S) ->
    receive
        {result, From, Ref} ->
            From ! {Ref, samples(S)},
            ok;
        look ->
            %% What was late is not made up for, that would be a burst.
            _ = erlang:send_after(EveryMs, self(), look),
            ok = until(erlang:monotonic_time(microsecond) + rand:uniform(?TICK_US)),
            loop(look(S))
    end.

%% At the time of a timer others have just been woken, too: who looks then sees a crowd that is gone
%% a moment later. So it lets others run until some time between two ticks, and once more after that
%% if the operating system had something else to do meanwhile: what it sees has waited for longer
%% than a turn of the run queue.
until(Us) ->
    Early = erlang:monotonic_time(microsecond) < Us,
    true = erlang:yield(),
    case Early of
        true -> until(Us);
        false -> ok
    end.

%% On a busy node samples are further apart than they should be.
samples(#s{began_ns = BeganNs, looks = Looks, there = There} = S) ->
    #{every_ns => (erlang:monotonic_time(nanosecond) - BeganNs) div max(1, Looks),
      queues => lists:reverse(S#s.queues),
      stacks => maps:to_list(S#s.stacks), states => S#s.states, looks => S#s.looks,
      share => case There of 0 -> 1.0; _ -> S#s.seen / There end}.

look(#s{looks = Looks} = S) ->
    Queue = {erlang:monotonic_time(nanosecond), erlang:statistics(total_run_queue_lengths),
             erlang:system_info(port_count)},
    Queues = case Looks < ?QUEUES_MAX of
                 true -> [Queue | S#s.queues];
                 false -> S#s.queues
             end,
    processes(S#s{looks = Looks + 1, queues = Queues}).

processes(#s{todo = []} = S) ->
    processes_of(S#s{todo = erlang:processes() -- S#s.untraced});
processes(S) ->
    processes_of(S).

processes_of(#s{todo = Todo} = S) ->
    {Now, Later} = lists:split(min(?PROCESSES, length(Todo)), Todo),
    Seen = lists:foldl(fun process/2, S#s{todo = Later}, Now),
    Seen#s{seen = Seen#s.seen + length(Now),
           there = Seen#s.there + max(length(Now), others(S))}.

others(#s{untraced = Untraced}) ->
    erlang:system_info(process_count) - length(Untraced).

process(Pid, S) ->
    case process_info(Pid, status) of
        {status, Status} when Status =:= running; Status =:= garbage_collecting ->
            stack(Pid, state(Pid, {1, 0}, S));
        {status, runnable} ->
            stack(Pid, state(Pid, {0, 1}, S));
        _ ->
            S
    end.

state(Pid, {Running, Runnable}, #s{states = States} = S) ->
    case States of
        #{Pid := {R, Q}} -> S#s{states = States#{Pid := {R + Running, Q + Runnable}}};
        #{} when map_size(States) < ?STATES_MAX ->
            S#s{states = States#{Pid => {Running, Runnable}}};
        #{} -> S
    end.

stack(Pid, #s{stacks = Stacks} = S) ->
    case process_info(Pid, current_stacktrace) of
        {current_stacktrace, [_ | _] = Trace} ->
            Stack = lists:reverse([{M, F, A} || {M, F, A, _} <- Trace]),
            case Stacks of
                #{Stack := Count} -> S#s{stacks = Stacks#{Stack := Count + 1}};
                #{} when map_size(Stacks) < ?STACKS_MAX -> S#s{stacks = Stacks#{Stack => 1}};
                #{} -> S
            end;
        _ ->
            S
    end.
