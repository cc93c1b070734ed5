%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node does while something is measured, counted by its emulator: runs on that node.
%%
%% One counting at a time, since the second and third slow the node down:
%% ```
%% work     reductions by kind of process; what came in by sockets
%% calls    calls of each function of loaded code, by whatever process
%% turns    by kind of process: messages received, turns (scheduled in), garbage collections
%% memory   by kind of process, and what is not of processes; how many processes of each kind
%% '''
%% The kind of a process is its name, or the module that it began with or is in. What the witness of
%% `weft_turn' does is counted apart (`witness_turns' and others), and not in the sums: most of it
%% is because the counting makes processes wait.
-module(weft_bench_counts).

-export([start/1, stop/1]).
-export_type([counting/0, count/0]).

-type counting() :: work | calls | turns | memory.
%% What was counted, of whom, and how much.
-type count() :: {What :: atom(), Of :: binary(), number()}.
-opaque begun() :: {work | memory, map()} | calls | {turns, Tracer :: pid()}.
-export_type([begun/0]).

-define(EVERYTHING, {'_', '_', '_'}).
-define(WITNESS, <<"weft_turn">>).
-define(TURNS, ['receive', running, garbage_collection]).

%% @doc Begins to count.
-spec start(counting()) -> begun().
start(work) ->
    {work, snapshot()};
start(memory) ->
    {memory, memory()};
start(calls) ->
    _ = erlang:trace_pattern(?EVERYTHING, true, [local, call_count]),
    calls;
start(turns) ->
    Tracer = spawn_opt(fun() -> trace(#{}, #{}) end, [{priority, max}]),
    _ = erlang:trace(processes, true, [{tracer, Tracer} | ?TURNS]),
    {turns, Tracer}.

%% @doc Ends it: what was counted since.
-spec stop(begun()) -> [count()].
stop({work, Before}) ->
    work(Before, snapshot());
stop({memory, Before}) ->
    After = memory(),
    [{What, Of, maps:get(Key, After, 0) - maps:get(Key, Before, 0)}
     || {What, Of} = Key <- lists:usort(maps:keys(Before) ++ maps:keys(After))];
stop(calls) ->
    _ = erlang:trace_pattern(?EVERYTHING, pause, [local, call_count]),
    Counts = [Count || {Module, _File} <- code:all_loaded(), Count <- calls_of(Module)],
    _ = erlang:trace_pattern(?EVERYTHING, false, [local, call_count]),
    Counts;
stop({turns, Tracer}) ->
    _ = erlang:trace(processes, false, ?TURNS),
    Ref = erlang:trace_delivered(all),
    receive {trace_delivered, all, Ref} -> ok end,
    Tracer ! {result, self(), Ref},
    receive {Ref, Counts} -> [{apart(What, Of), Of, Count}
                              || {{What, Of}, Count} <- maps:to_list(Counts)] end.

apart(received, ?WITNESS) -> witness_received;
apart(turns, ?WITNESS) -> witness_turns;
apart(minor_collections, ?WITNESS) -> witness_minor_collections;
apart(major_collections, ?WITNESS) -> witness_major_collections;
apart(What, _Of) -> What.

%% ---- work ----

snapshot() ->
    {Total, _} = erlang:statistics(exact_reductions),
    #{packets := Packets, bytes := Bytes} = weft_bench_cluster:traffic(),
    #{total => Total, packets => Packets, bytes => Bytes,
      processes => maps:from_list([{Pid, {kind(Pid), Reductions}}
                                   || Pid <- processes(), Pid =/= self(),
                                      {reductions, Reductions}
                                          <- [process_info(Pid, reductions)]])}.

work(Before, After) ->
    Grown = fun(Key) -> map_get(Key, After) - map_get(Key, Before) end,
    Of = grown(map_get(processes, Before), map_get(processes, After)),
    Ended = Grown(total) - lists:sum([Reductions || {_, Reductions} <- Of]),
    [{reductions, Kind, Reductions} || {Kind, Reductions} <- Of]
        ++ [{reductions, <<"processes that ended">>, Ended},
            {received_bytes, <<"sockets">>, Grown(bytes)},
            {received_packets, <<"sockets">>, Grown(packets)}].

grown(Before, After) ->
    Add = fun(Pid, {Kind, Reductions}, Sums) ->
              {_, Had} = maps:get(Pid, Before, {Kind, 0}),
              add(Kind, Reductions - Had, Sums)
          end,
    maps:to_list(maps:fold(Add, #{}, After)).

add(_Key, 0, Sums) -> Sums;
add(Key, Count, Sums) -> maps:update_with(Key, fun(Sum) -> Sum + Count end, Count, Sums).

kind(Pid) ->
    case process_info(Pid, [registered_name, current_function]) of
        [{registered_name, Name}, _] when is_atom(Name) ->
            atom_to_binary(Name);
        [_, {current_function, {Current, _, _}}] ->
            case proc_lib:translate_initial_call(Pid) of
                {Began, _, _} when Began =/= proc_lib, Began =/= erlang -> atom_to_binary(Began);
                _ -> atom_to_binary(Current)
            end;
        _ ->
            <<"processes that ended">>
    end.

%% ---- memory ----

%% What processes take that is no memory of one of them is that of the emulator for all.
memory() ->
    Of = [{kind(Pid), Bytes} || Pid <- processes(), Pid =/= self(),
                                {memory, Bytes} <- [process_info(Pid, memory)]],
    Sums = lists:foldl(fun({Kind, Bytes}, Sums) ->
                           add({processes, Kind}, 1, add({memory_bytes, Kind}, Bytes, Sums))
                       end, #{}, Of),
    Types = [{Type, erlang:memory(Type)} || Type <- [ets, binary, atom, code]],
    Known = lists:sum([Bytes || {_, Bytes} <- Of ++ Types]),
    maps:merge(Sums, maps:from_list(
                       [{{memory_bytes, atom_to_binary(Type)}, Bytes} || {Type, Bytes} <- Types]
                       ++ [{{memory_bytes, <<"of the emulator">>},
                            erlang:memory(total) - Known}])).

%% ---- calls ----

calls_of(Module) ->
    Counted = [{Function, Count}
               || Function <- functions(Module),
                  {call_count, Count} <- [erlang:trace_info(Function, call_count)],
                  is_integer(Count), Count > 0],
    [{function_calls, name(Function), Count} || {Function, Count} <- Counted]
        ++ [{calls, atom_to_binary(Module), lists:sum([Count || {_, Count} <- Counted])}
            || Counted =/= []].

functions(Module) ->
    try [{Module, Name, Arity} || {Name, Arity} <- Module:module_info(functions)]
    catch error:undef -> []
    end.

name({Module, Name, Arity}) ->
    unicode:characters_to_binary(io_lib:format("~w:~w/~b", [Module, Name, Arity])).

%% ---- turns ----

trace(Counts, Kinds) ->
    receive
        {trace, Pid, 'receive', _} -> counted(received, Pid, Counts, Kinds);
        {trace, Pid, in, _} -> counted(turns, Pid, Counts, Kinds);
        {trace, Pid, gc_minor_start, _} -> counted(minor_collections, Pid, Counts, Kinds);
        {trace, Pid, gc_major_start, _} -> counted(major_collections, Pid, Counts, Kinds);
        {result, From, Ref} -> From ! {Ref, Counts};
        _Other -> trace(Counts, Kinds)
    end.

counted(What, Pid, Counts, Kinds) ->
    case Kinds of
        #{Pid := Kind} ->
            trace(add({What, Kind}, 1, Counts), Kinds);
        #{} ->
            Kind = kind(Pid),
            trace(add({What, Kind}, 1, Counts), Kinds#{Pid => Kind})
    end.
