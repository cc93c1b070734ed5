%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries out a schedule: each step at its time, on the nodes it concerns; and a report of
%% what was done, what could not be done, and why.
%%
%% A step on a node that does not answer within four seconds is told as failed, and the schedule
%% goes on in time; so is a start of a node that crashes, or takes longer than a minute. What is
%% told as failed is not done later, when the node answers again. At the end, and when it is
%% stopped, all is healed that can be reached.
-module(weft_chaos_runner).
-behaviour(gen_server).

-export([start/2, run/2, stop/0, status/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([options/0, report/0]).

%% `start' should answer ok, {ok, _} or {error, _}; whatever else it does is told as a failure.
-type options() :: #{start => fun((node()) -> term()),
                     start_ms => pos_integer(),
                     progress => fun((unicode:chardata()) -> term())}.
%% Each step, when it was done, and what came of it.
-type report() :: #{done := [{AtMs :: integer(), weft_chaos_schedule:verb(), Answer :: term()}],
                    failed := [{AtMs :: integer(), weft_chaos_schedule:verb(), string()}]}.

%% There and back.
-define(STEP_MS, 2000).
%% How long a node may take to start, unless the option `start_ms' says so.
-define(START_MS, 60000).
%% What the end of a run may take: nodes that do not answer are waited for, to be woken and healed.
-define(END_MS, 10000).

-record(runner, {steps :: weft_chaos_schedule:schedule(),
                 nodes :: [node()],
                 options :: options(),
                 start_ms :: integer(),
                 end_ms :: integer(),
                 done = [] :: list(),
                 failed = [] :: list(),
                 %% Steps that wait for the answer of a node.
                 under_way = #{} :: #{reference() => {AtMs :: integer(), weft_chaos_schedule:verb(),
                                                     pid()}},
                 %% Pauses that may last still.
                 paused = [] :: [{node(), weft_chaos_agent:pause()}],
                 waiting = [] :: [gen_server:from()]}).

%% @doc Begins a schedule that was checked. The error is a text.
-spec start(weft_chaos_schedule:schedule(), options()) -> {ok, pid()} | {error, string()}.
start(Schedule, Options) -> start(Schedule, Options, []).

start(Schedule, Options, Waiting) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, {Schedule, Options, Waiting}, []) of
        {ok, Runner} -> {ok, Runner};
        {error, {already_started, _}} -> {error, "a schedule runs already on this node"}
    end.

%% @doc Carries out a schedule that was checked and waits for its end, at most as long as it and its
%% last step can take. A run that is not over then (what it tells its progress to may hang) is
%% ended, and healed.
-spec run(weft_chaos_schedule:schedule(), options()) -> {ok, report()} | {error, string()}.
run(Schedule, Options) ->
    %% A short schedule may be over before this process could ask for its report.
    Ref = make_ref(),
    case start(Schedule, Options, [{self(), Ref}]) of
        {ok, Runner} -> await(Runner, Ref, Schedule, Options);
        Error -> Error
    end.

%% Whoever has the report may start the next one at once. It is sent before the runner ends.
await(Runner, Ref, Schedule, Options) ->
    BoundMs = weft_chaos_schedule:length_ms(Schedule) + start_ms(Options) + 2 * ?STEP_MS + ?END_MS,
    Monitor = monitor(process, Runner),
    receive
        {Ref, Answer} ->
            receive {'DOWN', Monitor, process, _, _} -> Answer end;
        {'DOWN', Monitor, process, _, Reason} ->
            {error, text("it ended: ~0tP", [Reason, 10])}
    after BoundMs ->
        exit(Runner, kill),
        receive {'DOWN', Monitor, process, _, _} -> ok end,
        receive {Ref, _TooLate} -> ok after 0 -> ok end,
        ok = heal_nodes(weft_chaos_schedule:nodes(Schedule)),
        {error, text("it was not over after ~b ms, and was ended", [BoundMs])}
    end.

%% Whoever knows that it is over may start the next one at once.
gone(Runner) ->
    Monitor = monitor(process, Runner),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

start_ms(Options) -> maps:get(start_ms, Options, ?START_MS).

-spec stop() -> ok | {error, not_running}.
stop() ->
    case whereis(?MODULE) of
        undefined -> {error, not_running};
        Runner -> ok = gen_server:call(Runner, stop, infinity), gone(Runner)
    end.

-spec status() -> none | map().
status() ->
    case whereis(?MODULE) of
        undefined -> none;
        Runner ->
            try gen_server:call(Runner, status)
            catch
                %% It ended just now.
                exit:{Over, _} when Over =:= noproc; Over =:= normal -> none
            end
    end.

%% @private
init({Schedule, Options, Waiting}) ->
    Steps = weft_chaos_schedule:expand(Schedule),
    StartMs = now_ms(),
    self() ! next,
    {ok, #runner{steps = Steps, nodes = weft_chaos_schedule:nodes(Steps), options = Options,
                 start_ms = StartMs, end_ms = StartMs + weft_chaos_schedule:length_ms(Steps),
                 waiting = Waiting}}.

%% @private
handle_call(status, _From, #runner{steps = Steps, done = Done, failed = Failed} = Runner) ->
    {reply, #{elapsed_ms => now_ms() - Runner#runner.start_ms, done => length(Done),
              failed => length(Failed), to_come => length(Steps),
              next => case Steps of [] -> none; [Step | _] -> Step end}, Runner};
handle_call(stop, _From, Runner0) ->
    #runner{under_way = UnderWay} = Runner = known_pauses(Runner0),
    lists:foreach(fun({_, _, Pid}) -> exit(Pid, kill) end, maps:values(UnderWay)),
    ok = heal(Runner),
    {stop, normal, ok, answered(Runner)};
handle_call(Request, _From, Runner) ->
    {reply, weft_stray:call(Request), Runner}.

%% @private
handle_cast(Request, Runner) ->
    ok = weft_stray:message(Request),
    {noreply, Runner}.

%% @private
handle_info(next, #runner{steps = [{AtMs, Verb} = Step | Steps], start_ms = StartMs} = Runner) ->
    case StartMs + AtMs - now_ms() of
        LeftMs when LeftMs > 0 ->
            later(LeftMs, Runner);
        _ ->
            progress(weft_chaos_schedule:format(Step), Runner),
            self() ! next,
            {noreply, step(Verb, now_ms() - StartMs, Runner#runner{steps = Steps})}
    end;
handle_info(next, #runner{steps = [], end_ms = EndMs, under_way = UnderWay} = Runner) ->
    case EndMs - now_ms() of
        LeftMs when LeftMs > 0 ->
            later(LeftMs, Runner);
        _ when map_size(UnderWay) > 0 ->
            later(20, Runner);
        _ ->
            ok = heal(Runner),
            {stop, normal, answered(Runner)}
    end;
handle_info({answer, Ref, Answer}, Runner) ->
    {noreply, answer(Ref, Answer, Runner)};
handle_info({'DOWN', Ref, process, _, Reason}, Runner) ->
    {noreply, answer(Ref, {error, text("it crashed: ~0tP", [Reason, 20])}, Runner)};
handle_info({too_late, Ref}, #runner{under_way = UnderWay} = Runner) ->
    case UnderWay of
        #{Ref := {_, _, Pid}} ->
            exit(Pid, kill),
            {noreply, answer(Ref, {error, "it was not done in time, and was given up"}, Runner)};
        _ ->
            {noreply, Runner}
    end;
handle_info(Message, Runner) ->
    ok = weft_stray:message(Message),
    {noreply, Runner}.

%% @private A runner that crashes heals as well.
terminate(normal, _Runner) -> ok;
terminate(_Reason, Runner) -> heal(Runner).

later(Ms, Runner) ->
    _ = erlang:send_after(Ms, self(), next),
    {noreply, Runner}.

%% A node may be slow to answer, and a start may crash; other steps do not depend on it.
step(Verb, AtMs, #runner{under_way = UnderWay} = Runner) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                       receive {step, Own} -> Self ! {answer, Own, do(Verb, Runner)}
                                       end
                               end),
    Pid ! {step, Ref},
    _ = erlang:send_after(step_ms(Verb, Runner), Self, {too_late, Ref}),
    Runner#runner{under_way = UnderWay#{Ref => {AtMs, Verb, Pid}}}.

step_ms({start, _Node}, #runner{options = Options}) -> start_ms(Options);
step_ms(_Verb, _Runner) -> ?END_MS.

answer(Ref, Answer, #runner{under_way = UnderWay} = Runner) ->
    true = demonitor(Ref, [flush]),
    case maps:take(Ref, UnderWay) of
        {{AtMs, Verb, _}, Left} ->
            outcome(AtMs, Verb, Answer, paused(Verb, Answer, Runner#runner{under_way = Left}));
        error ->
            Runner
    end.

%% A pause can be ended early once its answer has come, so those that are under way are waited for.
known_pauses(#runner{under_way = UnderWay} = Runner) ->
    EndMs = now_ms() + 2 * ?STEP_MS,
    lists:foldl(fun(Ref, Acc) -> known_pause(Ref, EndMs, Acc) end, Runner,
                [Ref || {Ref, {_, {pause, _, _}, _}} <- maps:to_list(UnderWay)]).

%% A node that does not answer is waited for no longer than a step waits.
known_pause(Ref, EndMs, Runner) ->
    receive
        {answer, Ref, Answer} -> answer(Ref, Answer, Runner);
        {'DOWN', Ref, process, _, _} -> Runner
    after max(0, EndMs - now_ms()) ->
        Runner
    end.

paused({pause, Node, _}, {ok, Pause}, #runner{paused = Paused} = Runner) ->
    Runner#runner{paused = [{Node, Pause} | Paused]};
paused(_Verb, _Answer, Runner) ->
    Runner.

do(heal_all, Runner) ->
    ok = heal(Runner),
    {ok, done};
do({start, Node}, #runner{options = #{start := Start}}) ->
    case Start(Node) of
        ok -> {ok, done};
        {ok, Answer} -> {ok, Answer};
        {error, Reason} -> {error, text("~0tP", [Reason, 20])};
        Other -> {error, text("the fun `start' answers ok, {ok, _} or {error, _}; this was ~0tP",
                              [Other, 20])}
    end;
do({start, _Node}, _Runner) ->
    {error, "nobody has said how to start a node: give the option `start'"};
do({resume, Node} = Verb, Runner) ->
    ok = wake(Node, Runner),
    both([Node], Verb);
do(Verb, _Runner) ->
    both(sides(Verb), Verb).

%% A fault of a link is there if one side keeps it; both are asked, one may be out of reach.
sides({cut, A, B, _}) -> [A, B];
sides({cut_one_way, From, _To, _}) -> [From];
sides({delay, A, B, _, _, _}) -> [A, B];
sides({loss, A, B, _, _}) -> [A, B];
sides({heal, A, B}) -> [A, B];
sides({break, A, _}) -> [A];
sides(Verb) -> [element(2, Verb)].

both(Nodes, Verb) ->
    Answers = [{Node, ask(Node, Verb)} || Node <- Nodes],
    case lists:partition(fun({_, {Is, _}}) -> Is =:= ok end, Answers) of
        %% Each side slows down what it sends.
        {[{Slow, _}], [{Other, {error, Text}}]} when element(1, Verb) =:= delay;
                                                     element(1, Verb) =:= loss ->
            {error, text("only ~ts is slow, and ~ts is not: ~ts", [Slow, Other, Text])};
        {[{Healed, _}], [{Other, {error, Text}}]} when element(1, Verb) =:= heal ->
            {error, text("only ~ts is healed, and ~ts is not: ~ts", [Healed, Other, Text])};
        {[{_, Answer} | _], _} -> Answer;
        {[], [{_, Error} | _]} -> Error
    end.

%% By a process that ends when it has given up, or the step has. So a node that stands still
%% meanwhile knows, when it goes on, that it is too late: it asks back (`weft_chaos_agent').
ask(Node, Verb) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() -> Self ! {Ref, asked(Node, [Verb, self()])} end),
    receive {Ref, Answer} -> Answer end.

asked(Node, [Verb | _] = Arguments) ->
    try erpc:call(Node, weft_chaos_agent, do, Arguments, 2 * ?STEP_MS)
    catch
        error:{erpc, Reason} -> {error, text("~ts: ~0tp", [Node, Reason])};
        %% The version before does what it is asked for whenever it can.
        _:{exception, undef, [{weft_chaos_agent, do, [_, _], _} | _]} -> asked(Node, [Verb]);
        _:{exception, undef, _} -> {error, text("~ts has no application weft_chaos", [Node])};
        _:Reason -> {error, text("~ts: ~0tP", [Node, Reason, 20])}
    end.

outcome(AtMs, Verb, {ok, Answer}, #runner{done = Done} = Runner) ->
    Runner#runner{done = [{AtMs, Verb, Answer} | Done]};
outcome(AtMs, Verb, {error, Text}, #runner{failed = Failed} = Runner) ->
    progress(["          failed: ", Text], Runner),
    Runner#runner{failed = [{AtMs, Verb, Text} | Failed]}.

%% Whoever wants to hear of it may crash without harm to the schedule.
progress(Line, #runner{options = #{progress := Progress}}) ->
    try Progress(Line) catch _:_ -> ok end;
progress(_Line, _Runner) -> ok.

%% Whoever can be reached; the others heal themselves in time.
heal(#runner{nodes = Nodes, paused = Paused} = Runner) ->
    lists:foreach(fun(Node) -> wake(Node, Runner) end, lists:usort([Node || {Node, _} <- Paused])),
    heal_nodes(Nodes).

heal_nodes(Nodes) ->
    _ = erpc:multicall(Nodes, weft_chaos_agent, heal_all, [], ?STEP_MS),
    ok.

%% A node that stands still can be woken from its own machine only: by this node, or by another one
%% of the schedule that runs there.
wake(Node, #runner{nodes = Nodes, paused = Paused}) ->
    Here = [Other || Other <- [node() | Nodes -- [node(), Node]], host(Other) =:= host(Node)],
    {Drowsy, Awake} = lists:partition(fun(Other) -> lists:keymember(Other, 1, Paused) end, Here),
    lists:foreach(fun({_, Pause}) -> wake_by(Awake ++ Drowsy, Pause) end,
                  [Of || {Which, _} = Of <- Paused, Which =:= Node]).

wake_by([], _Pause) ->
    false;
wake_by([Helper | Others], Pause) ->
    try erpc:call(Helper, weft_chaos_agent, wake, [Pause], ?STEP_MS)
    catch _:_ -> wake_by(Others, Pause)
    end.

host(Node) -> lists:last(string:split(atom_to_list(Node), "@")).

answered(#runner{waiting = Waiting, done = Done, failed = Failed} = Runner) ->
    Report = #{done => lists:reverse(Done), failed => lists:reverse(Failed)},
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Report}) end, Waiting),
    Runner#runner{waiting = []}.

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

now_ms() -> erlang:monotonic_time(millisecond).
