%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `call', `erpc' and `rpc': gen_server:call, erpc:call and rpc:call from one process
%% and from many, each with its monitors and spawned processes: how long one takes and how many are
%% done in a second. Channels have a call of their own (weft:call/4), and nothing for erpc and rpc.
%% Workload `call_paused': a message and its answer, again and again with a pause of 1 ms between:
%% so the nodes and the connection are at rest when it begins.
-module(weft_bench_calls).
-behaviour(weft_bench_workload).
-behaviour(gen_server).

-export([cells/1, run/2]).
-export([start_server/0, run_callers/5, echo/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(SIZE_BYTES, 100).
-define(CALL_MS, 10000).
-define(PAUSE_MS, 1).

%% @private
cells(quick) ->
    [cell(Kind, 1, 300, [stock, weft_1]) || Kind <- [call, erpc]];
cells(full) ->
    [cell(Kind, Callers, 700, variants(Kind))
     || Kind <- [call, erpc, rpc], Callers <- [1, 16, 128]]
        ++ [cell(call, 256, 700, [stock, weft_1, channel]),
            cell(call_paused, 1, 1500, [stock, weft_1])].

variants(call) -> [stock, weft_1, weft_4, weft_gateway, channel, stock_tls, weft_tls_1];
variants(_) -> [stock, weft_1, weft_4, weft_gateway, stock_tls, weft_tls_1].

cell(Kind, Callers, DurationMs, Variants) ->
    #{suite => j, workload => Kind, size_bytes => ?SIZE_BYTES, pairs => Callers, streams => 0,
      link => weft_bench_link:loopback(), layout => pair, variants => Variants,
      cost_ms => DurationMs * 5 div 4 + 100, with => #{duration_ms => DurationMs}}.

%% @private
run(#{workload := call_paused, with := #{duration_ms := DurationMs}}, Nodes) ->
    Echo = weft_bench_nodes:call(Nodes, b, weft_bench_computing, start_echo, {[], ?CALL_MS}),
    Calls = fun(ForMs) ->
                    weft_bench_nodes:call(Nodes, a, weft_bench_computing, calls,
                                          {[Echo, ForMs, ?CALL_MS, ?PAUSE_MS], ?CALL_MS + ForMs})
            end,
    {ok, weft_bench_workload:warmed_up(fun() -> Calls(DurationMs div 5) end,
                                       fun() -> maps:to_list(Calls(DurationMs)) end)};
run(#{workload := Kind, pairs := Callers, with := #{duration_ms := DurationMs}}, Nodes) ->
    Mode = weft_bench_workload:mode(Nodes, call),
    Server = weft_bench_nodes:call(Nodes, b, ?MODULE, start_server, {[], ?CALL_MS}),
    Run = fun(ForMs) ->
                  weft_bench_nodes:call(Nodes, a, ?MODULE, run_callers,
                                        {[Kind, Mode, Server, Callers, ForMs], ?CALL_MS + ForMs})
          end,
    Measure = fun() ->
                  CpuUs = weft_bench_nodes:cpu_us(Nodes),
                  {ElapsedUs, #{calls := Calls} = Latencies} = Run(DurationMs),
                  [{calls_per_s, Calls * 1.0e6 / ElapsedUs} | maps:to_list(Latencies)]
                      ++ weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Calls)
              end,
    {ok, weft_bench_workload:warmed_up(fun() -> Run(DurationMs div 5) end, Measure)}.

%% @doc On the receiving node.
-spec start_server() -> pid().
start_server() ->
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Server.

%% @doc On the calling node: how long all of it took, and the latencies.
-spec run_callers(call | erpc | rpc, weft_bench_variant:mode(), Server :: pid(),
                  Callers :: pos_integer(), DurationMs :: pos_integer()) ->
          {ElapsedUs :: pos_integer(), #{atom() => number()}}.
run_callers(Kind, Mode, Server, Callers, DurationMs) ->
    Argument = weft_bench_flood:payload({binary, ?SIZE_BYTES}),
    Call = caller(Kind, Mode, Server, Argument),
    weft_bench_workers:run(Callers, DurationMs, {fun(_) -> none end,
                                                 fun(none) -> Argument = Call(), none end}).

caller(call, plain, Server, Argument) ->
    fun() -> gen_server:call(Server, Argument, ?CALL_MS) end;
caller(call, {channel, Options}, Server, Argument) ->
    fun() -> weft:call(Server, Argument, ?CALL_MS, Options) end;
caller(erpc, plain, Server, Argument) ->
    fun() -> erpc:call(node(Server), ?MODULE, echo, [Argument], ?CALL_MS) end;
caller(rpc, plain, Server, Argument) ->
    fun() -> rpc:call(node(Server), ?MODULE, echo, [Argument], ?CALL_MS) end.

%% @doc What erpc and rpc call.
-spec echo(Term) -> Term.
echo(Term) -> Term.

%% @private
init([]) -> {ok, none}.

%% @private
handle_call(Request, _From, State) -> {reply, Request, State}.

%% @private
handle_cast(_Request, State) -> {noreply, State}.
