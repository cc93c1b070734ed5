%% SPDX-License-Identifier: Apache-2.0
%% @doc What one message costs, counted: `bin/bench costs'. Where a benchmark says that a carrier
%% is slower, this says what it does more: function calls, reductions, garbage collections, messages
%% between processes, system calls, context switches, copying.
%%
%% Each cell (`weft_bench_costs_cell') is done several times by the same nodes, with one counting
%% each time, since countings slow nodes down; then by the nodes of the next variant. Everything is
%% divided by the number of messages (calls, nodes that joined, connections, seconds of a node at
%% rest) of that time. Processor time is counted without any other counting but the cheap ones of
%% the emulator. Of connections only memory and processes are counted, on the first node.
%%
%% Writes DIR/costs.csv, each row as soon as it is known: the cell, the variant, the repetition, the
%% node (sender, receiver, gateway; all nodes of a cluster as one), what was counted, of what
%% (a kind of process or of context switch, a module, a system call), and how much for one unit.
%% DIR/totals.csv has the medians of the repetitions, of all nodes together: of each thing that was
%% counted, and of all of them. DIR also has environment.csv.
-module(weft_bench_costs).

-export([command/0, main/1, totals/1]).
-export_type([row/0]).

%% Totals have no repetition and no node.
-type row() :: #{cell := atom(), variant := atom(), unit := atom(), what := atom(),
                 'of' := binary(), value := number(),
                 repetition => pos_integer(), node => atom()}.

-define(COLUMNS, [cell, variant, repetition, unit, node, what, 'of', value]).
-define(TOTALS, [cell, variant, unit, what, 'of', value]).
-define(ALL, <<"all">>).
-define(FOR_MS, 2000).
-define(REPETITIONS, 3).
-define(COUNT_MS, 120000).
%% What has less than this part of a kind of count is written as one row.
-define(PART_MIN, 0.004).
%% What the table has, in its order, and how that is put.
-define(TOLD, [{processor_us, "processor time, us"}, {units_per_s, "done in a second"},
               {calls, "function calls"}, {reductions, "reductions"},
               {received, "messages to processes"}, {turns, "turns of processes"},
               {witness_received, "messages to weft_turn"}, {witness_turns, "turns of weft_turn"},
               {minor_collections, "garbage collections, minor"},
               {major_collections, "garbage collections, major"}, {system_calls, "system calls"},
               {switches, "context switches"}, {received_packets, "packets received"},
               {received_bytes, "bytes received"}, {memory_bytes, "memory, bytes"},
               {processes, "processes"}, {instructions, "instructions"},
               {cache_misses, "cache misses"}]).

%% @doc 0: counted, 2: not.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench costs").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    Cells = weft_bench_costs_cell:names(),
    #{help => "what one message costs: function calls, system calls and others",
      arguments =>
          [#{name => only, long => "-only", type => {list, {atom, Cells}}, default => Cells,
             value => "CELL,CELL",
             help => ["some of ", lists:join(", ", [atom_to_list(Name) || Name <- Cells])]},
           #{name => for_ms, long => "-for_ms", type => {integer, [{min, 100}]},
             default => ?FOR_MS, value => "MS", help => "for so long each time"},
           #{name => repetitions, long => "-repetitions", type => {integer, [{min, 1}]},
             default => ?REPETITIONS, value => "N", help => "so often, with new nodes"}
           | weft_bench_arguments:common("where the results go", "costs")],
      handler => fun(Options) -> weft_bench_arguments:recorded(Options, fun run/1) end}.

run(#{only := Only, repetitions := Repetitions, out := Dir} = Options) ->
    File = filename:join(Dir, "costs.csv"),
    ok = weft_bench_environment:write(Dir, Options,
                                      [{Variant, Layout}
                                       || Name <- Only,
                                          #{variants := Variants, layout := Layout}
                                              <- [weft_bench_costs_cell:cell(Name)],
                                          Variant <- Variants]),
    HasPerf = has_perf(),
    Measure = fun(Write) ->
                  [Write(Row) || Name <- Only, Repetition <- lists:seq(1, Repetitions),
                                 Variant <- rotated(Repetition, Name),
                                 Row <- rows(Name, Variant, Repetition, HasPerf, Options)]
              end,
    Totals = totals(weft_report_file:rows(File, weft_report_csv:line(?COLUMNS),
                                          fun(Row) -> line(?COLUMNS, Row) end, Measure)),
    ok = weft_report_file:write(filename:join(Dir, "totals.csv"),
                                [weft_report_csv:line(?TOTALS)
                                 | [line(?TOTALS, Row) || Row <- Totals]]),
    io:format("~ts~nfile: ~ts~n", [[told(Name, Totals) || Name <- Only], File]).

has_perf() ->
    case weft_bench_perf:possible() of
        ok -> true;
        {error, Why} ->
            io:format(standard_error, "system calls and parts are left out: ~ts~n", [Why]),
            false
    end.

rotated(Repetition, Name) ->
    #{variants := Variants} = weft_bench_costs_cell:cell(Name),
    {Front, Back} = lists:split(Repetition rem length(Variants), Variants),
    Back ++ Front.

%% ---- counting ----

rows(Name, Variant, Repetition, HasPerf, Options) ->
    io:format("~ts  ~ts  #~b~n", [Name, Variant, Repetition]),
    #{unit := Unit} = Cell = weft_bench_costs_cell:cell(Name),
    Passes = case Cell of
                 #{only := Counting} -> [Counting];
                 #{} -> [work, calls, turns] ++ [Pass || HasPerf, Pass <- [system_calls, parts]]
             end,
    Counts = case Cell of
                 #{once := true} ->
                     lists:append([passes(Name, Variant, [Pass], Options) || Pass <- Passes]);
                 #{} ->
                     passes(Name, Variant, Passes, Options)
             end,
    [#{cell => Name, variant => Variant, repetition => Repetition, unit => Unit, node => Node,
       what => What, 'of' => Of, value => Value} || {Node, What, Of, Value} <- Counts].

passes(Name, Variant, Passes, #{out := Dir, for_ms := ForMs}) ->
    #{layout := Layout} = Cell = weft_bench_costs_cell:cell(Name),
    weft_bench_cluster:with_layout(
      Variant, Layout, Dir,
      fun(Nodes) ->
          Work = weft_bench_costs_cell:prepare(Name, Nodes, ForMs),
          _ = maps:is_key(once, Cell) orelse Work(),
          lists:append([pass(Pass, Work, Nodes, Dir) || Pass <- Passes])
      end).

pass(work, Work, Nodes, _Dir) ->
    {{Units, Outside}, Counts} = on_nodes(work, fun() -> outside(Work, Nodes) end, Nodes),
    per_unit(Units, Outside ++ Counts);
pass(memory, Work, Nodes, _Dir) ->
    First = hd(lists:sort(weft_bench_nodes:roles(Nodes))),
    Begun = call(Nodes, First, start, [memory]),
    Units = Work(),
    per_unit(Units, [{First, What, Of, Count} || {What, Of, Count} <- call(Nodes, First, stop,
                                                                           [Begun])]);
pass(Counting, Work, Nodes, _Dir) when Counting =:= calls; Counting =:= turns ->
    {Units, Counts} = on_nodes(Counting, Work, Nodes),
    per_unit(Units, Counts);
pass(system_calls, Work, Nodes, Dir) ->
    per_side(Nodes, Work, fun weft_bench_perf:counted/3, filename:join(Dir, "perf.txt"));
pass(parts, Work, Nodes, Dir) ->
    per_side(Nodes, Work, fun weft_bench_perf:sampled/3, filename:join(Dir, "perf.data")).

%% From outside, between the countings of the nodes, which take time too.
outside(Work, Nodes) ->
    Look = fun(Role) ->
               [{processor_us, ?ALL, weft_bench_idle:cpu_us(Nodes, [Role])}
                | [{switches, atom_to_binary(Kind), weft_bench_idle:switches(Kind, Nodes, [Role])}
                   || Kind <- [voluntary, nonvoluntary]]]
           end,
    Before = [{Role, Look(Role)} || Role <- weft_bench_nodes:roles(Nodes)],
    StartUs = os:perf_counter(microsecond),
    Units = Work(),
    ElapsedUs = os:perf_counter(microsecond) - StartUs,
    {Units, [{a, units_per_s, ?ALL, Units * Units * 1.0e6 / ElapsedUs}
             | [{Role, What, Of, Now - Was}
                || {Role, Looked} <- Before,
                   {{What, Of, Was}, {What, Of, Now}} <- lists:zip(Looked, Look(Role))]]}.

%% By the emulator of each node, on all at the same time.
on_nodes(Counting, Work, Nodes) ->
    Begun = [{Role, call(Nodes, Role, start, [Counting])} || Role <- weft_bench_nodes:roles(Nodes)],
    Result = Work(),
    {Result, [{Role, What, Of, Count} || {Role, Of1} <- Begun,
                                        {What, Of, Count} <- call(Nodes, Role, stop, [Of1])]}.

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, weft_bench_counts, Function, {Arguments, ?COUNT_MS}).

%% From outside, of all nodes as one.
per_side(Nodes, Work, Count, File) ->
    OsPids = [weft_bench_nodes:os_pid(Nodes, Role) || Role <- weft_bench_nodes:roles(Nodes)],
    {Units, Counts} = Count(OsPids, File, Work),
    per_unit(Units, [{all, What, Of, Value} || {What, Of, Value} <- Counts]).

%% Nodes of a cluster are equal, and counted as one. What is little is counted together.
per_unit(Units, Counts) ->
    Sided = [{{side(Role), What}, Of, Value} || {Role, What, Of, Value} <- Counts],
    Totals = summed([{Key, Value} || {Key, _Of, Value} <- Sided]),
    Sums = summed([{{Key, written_of(Of, Value, map_get(Key, Totals))}, Value}
                   || {{Key, Of}, Value}
                          <- maps:to_list(summed([{{Key, Of}, Value}
                                                  || {Key, Of, Value} <- Sided]))]),
    [{Side, What, Of, Sum / Units}
     || {{{Side, What}, Of}, Sum} <- lists:sort(maps:to_list(Sums))].

written_of(_Of, Value, Total) when Value < ?PART_MIN * Total -> <<"others, little">>;
written_of(Of, _Value, _Total) -> Of.

summed(Values) ->
    maps:map(fun(_Key, All) -> lists:sum(All) end, grouped(Values)).

grouped(Values) ->
    lists:foldl(fun({Key, Value}, Groups) ->
                    maps:update_with(Key, fun(All) -> [Value | All] end, [Value], Groups)
                end, #{}, Values).

side(a) -> sender;
side(b) -> receiver;
side(g) -> gateway;
side(_) -> all.

%% ---- what comes of it ----

line(Columns, Row) -> weft_report_csv:line([map_get(Column, Row) || Column <- Columns]).

%% @doc Medians of the repetitions. What is not said of a node or a thing in one of them was 0.
-spec totals([row()]) -> [row()].
totals(Rows) ->
    Sums = summed([{Key, Value} || Row <- Rows, {Key, Value} <- keyed(Row)]),
    Repetitions = grouped(lists:usort([{Cell, Repetition} || #{cell := Cell,
                                                               repetition := Repetition} <- Rows])),
    Values = grouped([{Key, Value} || {{Key, _Repetition}, Value} <- maps:to_list(Sums)]),
    [#{cell => Cell, variant => Variant, unit => Unit, what => What, 'of' => Of,
       value => median(Told, length(map_get(Cell, Repetitions)))}
     || {{Cell, Variant, Unit, What, Of}, Told} <- lists:sort(maps:to_list(Values))].

keyed(#{cell := Cell, variant := Variant, unit := Unit, what := What, 'of' := Of,
        repetition := Repetition, value := Value}) ->
    [{{{Cell, Variant, Unit, What, Part}, Repetition}, Value}
     || Part <- case {What, Of} of
                    {function_calls, _} -> [];
                    %% It has its sum already.
                    {system_calls, _} -> [Of];
                    {_, ?ALL} -> [Of];
                    _ -> [Of, ?ALL]
                end].

median(Values, Repetitions) ->
    weft_report_statistics:median(Values ++ lists:duplicate(Repetitions - length(Values), 0)).

told(Name, Totals) ->
    #{variants := Variants, unit := Unit} = weft_bench_costs_cell:cell(Name),
    Of = maps:from_list([{{Variant, What, Part}, Value}
                         || #{cell := Cell, variant := Variant, what := What, 'of' := Part,
                              value := Value} <- Totals, Cell =:= Name]),
    Line = fun(Words, What, Part) ->
               told_line(Words, [maps:get({Variant, What, Part}, Of, none) || Variant <- Variants])
           end,
    [io_lib:format("~n~ts, for one ~ts: ~ts~n",
                   [Name, Unit, lists:join(" | ", [atom_to_list(V) || V <- Variants])]),
     [Line(Words, What, ?ALL) || {What, Words} <- ?TOLD],
     [Line(["us in ", Part], processor_us_of, Part)
      || Part <- lists:usort([P || {_, processor_us_of, P} <- maps:keys(Of), P =/= ?ALL])]].

told_line(Words, Values) ->
    case lists:usort(Values) of
        [none] -> "";
        _ -> io_lib:format("  ~-32ts~ts~n", [unicode:characters_to_list([Words]),
                                             lists:join(" | ", [text(Value) || Value <- Values])])
    end.

text(none) -> "";
text(Value) when Value >= 100 -> io_lib:format("~b", [round(Value)]);
text(Value) -> io_lib:format("~.2f", [float(Value)]).
