%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries out a schedule: each step at its time, on the nodes it concerns; and a report of
%% what was done, what could not be done, and why.
%%
%% A step on a node that does not answer within two seconds is told as failed, and the schedule goes
%% on in time. At the end, and when it is stopped, all is healed that can be reached.
-module(weft_chaos_runner).
-behaviour(gen_server).

-export([start/2, await/1, stop/0, status/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([options/0, report/0]).

-type options() :: #{start => fun((node()) -> ok | {error, term()}),
                     progress => fun((unicode:chardata()) -> term())}.
%% Each step, when it was done, and what came of it.
-type report() :: #{done := [{AtMs :: integer(), weft_chaos_schedule:verb(), Answer :: term()}],
                    failed := [{AtMs :: integer(), weft_chaos_schedule:verb(), string()}]}.

-define(STEP_MS, 2000).

-record(runner, {steps :: weft_chaos_schedule:schedule(),
                 nodes :: [node()],
                 options :: options(),
                 start_ms :: integer(),
                 end_ms :: integer(),
                 done = [] :: list(),
                 failed = [] :: list(),
                 %% Steps that wait for the answer of a node.
                 under_way = #{} :: #{reference() => {integer(), weft_chaos_schedule:verb()}},
                 waiting = [] :: [gen_server:from()]}).

%% @doc Begins a schedule that was checked. The error is a text.
-spec start(weft_chaos_schedule:schedule(), options()) -> {ok, pid()} | {error, string()}.
start(Schedule, Options) ->
    case gen_server:start({local, ?MODULE}, ?MODULE, {Schedule, Options}, []) of
        {ok, Runner} -> {ok, Runner};
        {error, {already_started, _}} -> {error, "a schedule runs already on this node"}
    end.

%% @doc Waits for the end.
-spec await(pid()) -> {ok, report()} | {error, string()}.
await(Runner) ->
    try gen_server:call(Runner, await, infinity)
    catch exit:{Reason, _} -> {error, lists:flatten(io_lib:format("it ended: ~0tP", [Reason, 10]))}
    end.

-spec stop() -> ok | {error, not_running}.
stop() ->
    case whereis(?MODULE) of
        undefined -> {error, not_running};
        Runner -> gen_server:call(Runner, stop, infinity)
    end.

-spec status() -> none | map().
status() ->
    case whereis(?MODULE) of
        undefined -> none;
        Runner -> gen_server:call(Runner, status)
    end.

%% @private
init({Schedule, Options}) ->
    Steps = weft_chaos_schedule:expand(Schedule),
    StartMs = now_ms(),
    self() ! next,
    {ok, #runner{steps = Steps, nodes = weft_chaos_schedule:nodes(Steps), options = Options,
                 start_ms = StartMs, end_ms = StartMs + weft_chaos_schedule:length_ms(Steps)}}.

%% @private
handle_call(await, From, #runner{waiting = Waiting} = Runner) ->
    {noreply, Runner#runner{waiting = [From | Waiting]}};
handle_call(status, _From, #runner{steps = Steps, done = Done, failed = Failed} = Runner) ->
    {reply, #{elapsed_ms => now_ms() - Runner#runner.start_ms, done => length(Done),
              failed => length(Failed), to_come => length(Steps),
              next => case Steps of [] -> none; [Step | _] -> Step end}, Runner};
handle_call(stop, _From, Runner) ->
    ok = heal(Runner),
    {stop, normal, ok, answered(Runner)}.

%% @private
handle_cast(Request, Runner) ->
    {stop, {unexpected_cast, Request}, Runner}.

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
handle_info({answer, Ref, Answer}, #runner{under_way = UnderWay} = Runner) ->
    {{AtMs, Verb}, Left} = maps:take(Ref, UnderWay),
    {noreply, outcome(AtMs, Verb, Answer, Runner#runner{under_way = Left})}.

later(Ms, Runner) ->
    _ = erlang:send_after(Ms, self(), next),
    {noreply, Runner}.

%% A node may be slow to answer; other steps do not wait for it.
step(Verb, AtMs, #runner{under_way = UnderWay} = Runner) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() -> Self ! {answer, Ref, do(Verb, Runner)} end),
    Runner#runner{under_way = UnderWay#{Ref => {AtMs, Verb}}}.

do(heal_all, Runner) ->
    ok = heal(Runner),
    {ok, done};
do({start, Node}, #runner{options = #{start := Start}}) ->
    case Start(Node) of
        ok -> {ok, done};
        {error, Reason} -> {error, lists:flatten(io_lib:format("~0tP", [Reason, 20]))}
    end;
do({start, _Node}, _Runner) ->
    {error, "nobody has said how to start a node: give the option `start'"};
do(Verb, _Runner) ->
    both(sides(Verb), Verb).

%% A cut or a delay is there if one side keeps it; both are asked, one may be out of reach.
sides({cut, A, B, _}) -> [A, B];
sides({delay, A, B, _, _, _}) -> [A, B];
sides({break, A, _}) -> [A];
sides(Verb) -> [element(2, Verb)].

both(Nodes, Verb) ->
    Answers = [ask(Node, Verb) || Node <- Nodes],
    case [Answer || {ok, _} = Answer <- Answers] of
        [Answer | _] -> Answer;
        [] -> hd(Answers)
    end.

ask(Node, Verb) ->
    try erpc:call(Node, weft_chaos_agent, do, [Verb], ?STEP_MS)
    catch
        error:{erpc, Reason} -> {error, lists:flatten(io_lib:format("~ts: ~0tp", [Node, Reason]))};
        _:{exception, undef, _} ->
            {error, lists:flatten(io_lib:format("~ts has no application weft_chaos", [Node]))};
        _:Reason -> {error, lists:flatten(io_lib:format("~ts: ~0tP", [Node, Reason, 20]))}
    end.

outcome(AtMs, Verb, {ok, Answer}, #runner{done = Done} = Runner) ->
    Runner#runner{done = [{AtMs, Verb, Answer} | Done]};
outcome(AtMs, Verb, {error, Text}, #runner{failed = Failed} = Runner) ->
    progress(["          failed: ", Text], Runner),
    Runner#runner{failed = [{AtMs, Verb, Text} | Failed]}.

progress(Line, #runner{options = #{progress := Progress}}) -> Progress(Line);
progress(_Line, _Runner) -> ok.

%% Whoever can be reached; the others heal themselves in time.
heal(#runner{nodes = Nodes}) ->
    _ = erpc:multicall(Nodes, weft_chaos_agent, heal_all, [], ?STEP_MS),
    ok.

answered(#runner{waiting = Waiting, done = Done, failed = Failed} = Runner) ->
    Report = #{done => lists:reverse(Done), failed => lists:reverse(Failed)},
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Report}) end, Waiting),
    Runner#runner{waiting = []}.

now_ms() -> erlang:monotonic_time(millisecond).
