%% SPDX-License-Identifier: Apache-2.0
%% @doc A module named `*_core' is pure: it reaches no clock, no process, no table, no hidden random
%% state and no environment, neither itself nor through a module of this project that it calls.
%% Time, randomness and identity are its arguments, and what it wants done is an effect it returns.
-module(house_purity).

-export([rules/0, check/1]).

%% Modules with nothing pure in them that a protocol could want.
-define(IMPURE_MODULES,
        [application, atomics, code, counters, dets, disk_log, epmd, erl_epmd, erpc, error_logger,
         ets, file, gen, gen_event, gen_server, gen_statem, gen_tcp, gen_udp, global, inet, init,
         io, logger, mnesia, net_kernel, net_adm, os, persistent_term, pg, proc_lib, rpc, socket,
         ssl, supervisor, sys]).
-define(IMPURE_BIFS,
        ['!', 'receive', alias, bump_reductions, cancel_timer, date, demonitor,
         disconnect_node, dist_ctrl_get_data, dist_ctrl_put_data, display, erase, exit_signal, get,
         get_keys, halt, is_alive, link, localtime, make_ref, memory, monitor, monitor_node,
         monotonic_time, nodes, now, open_port, port_call, port_command, port_connect, port_control,
         process_flag, process_info, processes, put, read_timer, register, registered, self, send,
         send_after, send_nosuspend, spawn, spawn_link, spawn_monitor, spawn_opt, spawn_request,
         start_timer, statistics, system_flag, system_info, system_time, time, time_offset,
         timestamp, trace, unalias, unique_integer, universaltime, unlink, unregister, whereis,
         yield]).

-spec rules() -> [atom()].
rules() ->
    [purity].

-spec check(house_facts:facts()) -> [house:problem()].
check(#{modules := Modules}) ->
    Graph = maps:map(fun(_, #{calls := Calls}) -> Calls end, Modules),
    [P || {Module, #{file := File}} <- lists:sort(maps:to_list(Modules)), is_core(Module),
          P <- check_core(Module, File, Graph)].

is_core(Module) ->
    lists:suffix("_core", atom_to_list(Module)).

check_core(Module, File, Graph) ->
    [house:problem(purity, File, Line, atom_to_list(Module), text(Caller, Callee, Impure))
     || {Caller, Line, {To, _, _} = Callee} <- maps:get(Module, Graph),
        To =/= Module,
        Impure <- reaches([Callee], Graph, #{})].

text({Name, Arity}, Impure, Impure) ->
    io_lib:format("~w/~w calls ~s: take it as an argument, or return an effect",
                  [Name, Arity, show(Impure)]);
text({Name, Arity}, Callee, Impure) ->
    io_lib:format("~w/~w calls ~s, which reaches ~s: take it as an argument, or return an effect",
                  [Name, Arity, show(Callee), show(Impure)]).

show({M, F, A}) ->
    io_lib:format("~w:~w/~w", [M, F, A]).

%% The first impure function that is reachable, as a list of at most one.
reaches([], _, _) ->
    [];
reaches([{M, F, A} = Function | Rest], Graph, Seen) ->
    case {is_impure(Function), Graph, Seen} of
        {true, _, _} ->
            [Function];
        {false, #{M := Calls}, Seen} when not is_map_key(Function, Seen) ->
            Next = [Callee || {FA, _, Callee} <- Calls, FA =:= {F, A}],
            reaches(Next ++ Rest, Graph, Seen#{Function => true});
        _ ->
            reaches(Rest, Graph, Seen)
    end.

is_impure({erlang, node, 0}) -> true;
is_impure({erlang, exit, 2}) -> true;
is_impure({erlang, Name, _}) -> lists:member(Name, ?IMPURE_BIFS);
is_impure({rand, Name, Arity}) -> not is_pure_rand(atom_to_list(Name), Arity);
is_impure({crypto, Name, _}) -> lists:member(Name, [strong_rand_bytes, rand_uniform, rand_seed]);
is_impure({timer, Name, _}) -> not lists:member(Name, [seconds, minutes, hours, hms]);
is_impure({calendar, Name, _}) -> lists:member(Name, [local_time, universal_time]);
is_impure({filelib, Name, _}) -> Name =/= safe_relative_path;
is_impure({Module, _, _}) -> lists:member(Module, ?IMPURE_MODULES).

%% Functions of `rand' that take the state and give it back end in `_s', but for the generators.
is_pure_rand(Name, Arity) ->
    lists:suffix("_s", Name)
        orelse lists:prefix("mwc59", Name) orelse lists:prefix("exsp_", Name)
        orelse lists:prefix("splitmix64", Name) orelse {Name, Arity} =:= {"jump", 1}.
