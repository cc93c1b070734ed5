%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs cells and writes down what they return, line by line.
%%
%% Cells on the same network and with the same layout of nodes are a stage. A stage sets up its
%% network once; if it can not, all of its measurements have failed. Each repetition has new nodes
%% for every variant, and goes through the cells: in each, one variant after the other, beginning
%% with another one each time. So what disturbs the machine for a while disturbs all variants, and a
%% state that a connection happens to be in lasts for one repetition.
%%
%% A measurement that fails, or after which the connection does not come to rest, costs the nodes of
%% its variant, and the next one gets new nodes.
-module(weft_bench_runner).

-export([run/1, expected_ms/2, why_not/4, stopped_before/3]).
-export_type([plan/0]).

-type plan() :: #{run := string(), dir := file:filename(), build_dir := file:filename(),
                  cells := [weft_bench_workload:cell()], repetitions := pos_integer(),
                  terminal := boolean(), limit_ms := pos_integer() | infinity,
                  quota := weft_bench_quota:percent() | none}.

-record(state, {plan :: plan(), file :: file:io_device(),
                progress :: weft_bench_progress:progress(),
                deadline :: integer() | infinity, last = "" :: iodata(),
                failed = 0 :: non_neg_integer(),
                nodes = #{} :: #{weft_bench_variant:variant() => weft_bench_nodes:nodes()}}).

-define(BOOT_COST_MS, 1200).
-define(SETTLE_MS, 20000).
%% A connection is at rest when a small call takes at most its round trip and this.
-define(REST_US, 5000).

%% @doc Runs a plan. The numbers are in the files that weft_report_record describes; if they can not
%% be written that is a `throw' of weft_report_file.
-spec run(plan()) -> {ok, Failed :: non_neg_integer()}.
run(#{dir := Dir, build_dir := BuildDir, cells := Cells, quota := Quota} = Plan) ->
    File = weft_report_file:open(weft_report_record:results_file(Dir), weft_report_record:header()),
    {Possible, Impossible} = lists:partition(fun({_, _, Why}) -> Why =:= ok end,
                                             possible(Cells, BuildDir, Quota)),
    Todo = todo(Cells, Possible),
    Progress = weft_bench_progress:new(maps:get(terminal, Plan),
                                       [Cost || {_, _, Cost}
                                             <- measurements(Todo, maps:get(repetitions, Plan))]),
    State = #state{plan = Plan, file = File, progress = Progress, deadline = deadline(Plan)},
    write_skipped(Impossible, State),
    #state{progress = Finished, failed = Failed} = lists:foldl(fun stage/2, State, stages(Todo)),
    ok = weft_bench_progress:finish(Finished),
    ok = file:close(File),
    {ok, Failed}.

%% @doc How long so many repetitions are expected to take, by what the cells say they cost.
-spec expected_ms([weft_bench_workload:cell()], Repetitions :: pos_integer()) -> non_neg_integer().
expected_ms(Cells, Repetitions) ->
    lists:sum([CostMs || {_, _, CostMs} <- measurements(Cells, Repetitions)]).

deadline(#{limit_ms := infinity}) -> infinity;
deadline(#{limit_ms := LimitMs}) -> erlang:monotonic_time(millisecond) + LimitMs.

%% ---- what there is to do ----

possible(Cells, BuildDir, Quota) ->
    Emulation = weft_bench_place:can_emulate(BuildDir),
    [{Cell, Variant, why_not(Cell, Variant, Quota, Emulation)}
     || #{variants := Variants} = Cell <- Cells, Variant <- Variants].

%% @private Can a cell be measured, with such a quota for each of its nodes, and if links can be
%% emulated or not? Hosts have links of their own.
-spec why_not(weft_bench_workload:cell(), weft_bench_variant:variant(),
              weft_bench_quota:percent() | none, Emulation :: ok | {error, string()}) ->
          ok | {error, string()}.
why_not(#{layout := Layout} = Cell, Variant, Quota, Emulation) when Quota =/= none ->
    case weft_bench_quota:is_enough(Quota, length(weft_bench_nodes:roles(Variant, Layout))) of
        ok -> why_not(Cell, Variant, none, Emulation);
        Error -> Error
    end;
why_not(#{link := #{label := Label} = Link}, _Variant, none, {error, Text})
  when Label =/= loopback, not is_map_key(hosts, Link) ->
    {error, Text};
why_not(_Cell, Variant, none, _Emulation) ->
    weft_bench_variant:available(Variant).

todo(Cells, Possible) ->
    [Cell#{variants := Variants}
     || Cell <- Cells,
        Variants <- [[Variant || {Of, Variant, ok} <- Possible, Of =:= Cell]], Variants =/= []].

write_skipped(Impossible, #state{progress = Progress} = State) ->
    [write(Cell, Variant, 1, [{skipped, 0}], Text, State)
     || {Cell, Variant, {error, Text}} <- Impossible],
    [weft_bench_progress:note(Progress, io_lib:format("skipped: ~0p, ~ts", [Variants, Text]))
     || {Text, Variants} <- by_reason(Impossible)],
    ok.

by_reason(Impossible) ->
    Reasons = lists:usort([Text || {_, _, {error, Text}} <- Impossible]),
    [{Reason, lists:usort([Variant || {_, Variant, {error, Text}} <- Impossible, Text =:= Reason])}
     || Reason <- Reasons].

%% In the order in which the first cell of each comes.
stages([]) ->
    [];
stages([#{link := Link, layout := Layout} | _] = Cells) ->
    {Stage, Rest} = lists:partition(fun(#{link := L, layout := O}) -> {L, O} =:= {Link, Layout} end,
                                    Cells),
    [Stage | stages(Rest)].

measurements(Cells, Repetitions) ->
    [{Cell, Variant, CostMs + ?BOOT_COST_MS div 4}
     || #{variants := Variants, cost_ms := CostMs} = Cell <- Cells,
        _ <- lists:seq(1, repetitions(Cell, Repetitions)), Variant <- Variants].

repetitions(Cell, Repetitions) ->
    min(Repetitions, maps:get(repetitions_max, Cell, Repetitions)).

%% ---- a stage ----

stage([#{link := Link} | _] = Cells, #state{plan = #{build_dir := BuildDir} = Plan} = State) ->
    case weft_bench_place:start(Link, BuildDir) of
        {ok, Place} ->
            Last = lists:max([repetitions(Cell, maps:get(repetitions, Plan)) || Cell <- Cells]),
            try
                stop_nodes(lists:foldl(fun(Repetition, Before) ->
                                           repetition(Repetition, Cells, Place, Before)
                                       end, State, lists:seq(1, Last)))
            after
                weft_bench_place:stop(Place)
            end;
        {error, Text} ->
            not_set_up(Cells, Text, State)
    end.

%% What is not possible at all was left out before: here something went wrong.
not_set_up([#{link := #{label := Label}} | _] = Cells, Text, State) ->
    #state{plan = #{repetitions := Repetitions}, progress = Progress, failed = Failed} = State,
    Lost = [{Cell, Variant, Repetition}
            || #{variants := Variants} = Cell <- Cells, Variant <- Variants,
               Repetition <- lists:seq(1, repetitions(Cell, Repetitions))],
    weft_bench_progress:note(Progress, io_lib:format("failed: all ~b measurements on ~s: ~ts",
                                                     [length(Lost), Label, Text])),
    lists:foreach(fun({Cell, Variant, Repetition}) ->
                          write(Cell, Variant, Repetition, [{failed, 0}], Text, State)
                  end, Lost),
    Done = lists:foldl(fun({_, _, CostMs}, Before) -> weft_bench_progress:done(Before, CostMs) end,
                       Progress, measurements(Cells, Repetitions)),
    State#state{failed = Failed + length(Lost), progress = Done}.

repetition(Repetition, Cells, Place, #state{plan = Plan} = State) ->
    lists:foldl(fun({Index, Cell}, Before) ->
                    Variants = rotate(Repetition + Index, maps:get(variants, Cell)),
                    lists:foldl(fun(Variant, S) -> measure(Cell, Variant, Repetition, Place, S) end,
                                Before, Variants)
                end, stop_nodes(State),
                [{Index, Cell} || {Index, Cell} <- lists:zip(lists:seq(1, length(Cells)), Cells),
                                  Repetition =< repetitions(Cell, maps:get(repetitions, Plan))]).

rotate(By, Variants) ->
    {Front, Back} = lists:split(By rem length(Variants), Variants),
    Back ++ Front.

stop_nodes(#state{nodes = All} = State) ->
    [weft_bench_nodes:stop(Nodes) || Nodes <- maps:values(All)],
    State#state{nodes = #{}}.

%% ---- one measurement ----

measure(#{cost_ms := CostMs} = Cell, Variant, Repetition, Place, State) ->
    #state{progress = Progress, last = Last} = State,
    After = case is_time_left(CostMs, State) of
                true ->
                    Text = io_lib:format("~ts  ~s  #~b", [weft_bench_workload:title(Cell), Variant,
                                                         Repetition]),
                    Shown = weft_bench_progress:next(Progress, Text, Last),
                    measure_now(Cell, Variant, Repetition, Place, State#state{progress = Shown});
                false ->
                    Why = "no time was left in this run",
                    write(Cell, Variant, Repetition, [{skipped, 0}], Why, State),
                    State
            end,
    #state{progress = ProgressAfter} = After,
    After#state{progress = weft_bench_progress:done(ProgressAfter, CostMs + ?BOOT_COST_MS div 4)}.

is_time_left(_CostMs, #state{deadline = infinity}) ->
    true;
is_time_left(CostMs, #state{deadline = Deadline}) ->
    erlang:monotonic_time(millisecond) + CostMs < Deadline.

measure_now(#{module := Module, layout := Layout} = Cell, Variant, Repetition, Place, State) ->
    #state{plan = #{dir := Dir, quota := Quota}} = State,
    case nodes(Variant, Layout, Place, without_used_nodes(Cell, Variant, State)) of
        {ok, Nodes, Started} ->
            Of = Cell#{dir => Dir, quota => Quota, repetition => Repetition},
            Run = fun() -> Module:run(Of, Nodes) end,
            try weft_bench_sharing:measured(Layout, Quota, Nodes, Run) of
                {{ok, Values}, Sharing} ->
                    write(Cell, Variant, Repetition, shared(Values, Sharing), "", Started),
                    settle(Cell, Nodes, Started#state{last = headline(Values)});
                {{skipped, Why}, _Sharing} ->
                    write(Cell, Variant, Repetition, [{skipped, 0}], Why, Started),
                    Started
            catch
                Class:Reason:Stack ->
                    failed(Cell, Variant, Repetition, {Class, Reason, hd(Stack ++ [none])}, Started)
            end;
        {error, Text} ->
            failed(Cell, Variant, Repetition, Text, State)
    end.

%% A workload that knows better which time was measured tells it itself.
shared(Values, Sharing) ->
    Values ++ [Shared || {Metric, _} = Shared <- Sharing, not lists:keymember(Metric, 1, Values)].

without_used_nodes(Cell, Variant, #state{nodes = All} = State) ->
    lists:foldl(fun replace_nodes/2, State, stopped_before(Cell, Variant, maps:keys(All))).

%% @private Of the variants that have nodes: those whose nodes end before a variant is measured.
%% Many nodes that have nothing to do are not nothing, and those of a cluster are to have the
%% machine as `weft_bench_sharing' says.
-spec stopped_before(weft_bench_workload:cell(), weft_bench_variant:variant(),
                     [weft_bench_variant:variant()]) -> [weft_bench_variant:variant()].
stopped_before(#{fresh := true, layout := {_Many, _}}, _Variant, WithNodes) -> WithNodes;
stopped_before(#{fresh := true}, Variant, WithNodes) -> [V || V <- WithNodes, V =:= Variant];
stopped_before(_Cell, _Variant, _WithNodes) -> [].

nodes(Variant, Layout, Place, #state{nodes = All, plan = Plan} = State) ->
    case All of
        #{Variant := Nodes} ->
            {ok, Nodes, State};
        #{} ->
            #{dir := Dir, quota := Quota} = Plan,
            Context = #{place => Place, log_dir => filename:join(Dir, "logs"), quota => Quota},
            case weft_bench_nodes:start(Variant, Layout, Context) of
                {ok, Nodes} -> {ok, Nodes, State#state{nodes = All#{Variant => Nodes}}};
                Error -> Error
            end
    end.

failed(Cell, Variant, Repetition, Why, #state{progress = Progress, failed = Failed} = State) ->
    Text = weft_bench_error:text("~0tp", [Why]),
    weft_bench_progress:note(Progress, io_lib:format("failed: ~ts, ~s: ~ts",
                                                     [weft_bench_workload:title(Cell), Variant,
                                                      Text])),
    write(Cell, Variant, Repetition, [{failed, 0}], Text, State),
    replace_nodes(Variant, State#state{failed = Failed + 1}).

replace_nodes(Variant, #state{nodes = All} = State) ->
    case maps:take(Variant, All) of
        {Nodes, Others} ->
            ok = weft_bench_nodes:stop(Nodes),
            State#state{nodes = Others};
        error ->
            State
    end.

%% What one measurement left on its way must not be in the way of the next.
settle(#{link := #{rtt_ms := RttMs}}, Nodes, #state{progress = Progress} = State) ->
    case lists:member(b, weft_bench_nodes:roles(Nodes)) andalso is_at_rest(RttMs, Nodes) of
        {error, Why} ->
            Variant = weft_bench_nodes:variant(Nodes),
            weft_bench_progress:note(Progress, io_lib:format("~s gets new nodes: ~0p",
                                                             [Variant, Why])),
            replace_nodes(Variant, State);
        _ ->
            State
    end.

is_at_rest(RttMs, Nodes) ->
    try
        Echo = weft_bench_nodes:call(Nodes, b, weft_bench_ping, start_echo, {[], ?SETTLE_MS}),
        weft_bench_nodes:call(Nodes, a, weft_bench_ping, settle,
                              {[Echo, RttMs * 1000 + ?REST_US, ?SETTLE_MS], ?SETTLE_MS * 2})
    catch
        _:Reason -> {error, Reason}
    end.

%% ---- results ----

write(Cell, Variant, Repetition, Values, Note, State) ->
    #state{file = File, plan = #{run := Run, dir := Dir}} = State,
    Lines = [weft_report_record:line(row(Cell, Variant, Repetition, Value, Note, Run))
             || Value <- Values],
    case file:write(File, Lines) of
        ok ->
            ok;
        {error, Reason} ->
            _ = stop_nodes(State),
            weft_report_file:not_written(weft_report_record:results_file(Dir), Reason)
    end.

row(Cell, Variant, Repetition, {Metric, Value}, Note, Run) ->
    row(Cell, Variant, Repetition, {Metric, Value, 0}, Note, Run);
row(Cell, Variant, Repetition, {Metric, Value, AtMs}, Note, Run) ->
    #{suite := Suite, workload := Workload, size_bytes := SizeBytes, pairs := Pairs,
      streams := Streams, link := Link} = Cell,
    #{label := Label, rtt_ms := RttMs, rate_mbit := RateMbit, loss_percent := Loss} = Link,
    {Metric, Unit, _, _} = lists:keyfind(Metric, 1, weft_report_record:metrics()),
    #{run => Run, suite => Suite, workload => Workload, variant => Variant,
      size_bytes => SizeBytes, pairs => Pairs, streams => Streams, link => Label,
      rtt_ms => RttMs, rate_mbit => RateMbit, loss_percent => Loss, repetition => Repetition,
      metric => Metric, unit => Unit, value => Value, at_ms => AtMs, note => Note}.

%% The first number of a measurement, for the progress line.
headline([Value | _]) ->
    {_, Unit, _, _} = lists:keyfind(element(1, Value), 1, weft_report_record:metrics()),
    io_lib:format("~s ~.4g ~s", [element(1, Value), float(element(2, Value)), Unit]).
