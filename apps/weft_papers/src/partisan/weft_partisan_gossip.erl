%% SPDX-License-Identifier: Apache-2.0
%% @doc Background traffic of three nodes beside requests: each sends objects of 1 MB to the others
%% by turns, and a process takes and counts what comes. In channels it has a channel of its own.
%%
%% A flood is more than emulated links can carry: a process sends an object 20 ms after the one
%% before has gone, so where it has to wait less is sent. Paced gossip is a tenth of what the
%% slowest link can carry: each object goes when it is due, in a process of its own, so that as much
%% arrives however long each has to wait.
-module(weft_partisan_gossip).

-export([begun/2, received_bytes/2, ended/2]).
-export([start_sink/0, received/1, start_gossip/4]).
-export_type([gossip/0, pace/0]).

-opaque gossip() :: #{sinks := [{weft_bench_nodes:role(), pid()}],
                      senders := [{weft_bench_nodes:role(), pid()}]}.

-type pace() :: flood | paced.

-define(ROLES, [a, b, c]).
-define(BYTES, 1048576).
-define(FLOOD_MS, 20).
-define(PACED_MS, 200).
-define(CALL_MS, 90000).
-define(PATIENCE_MS, 30000).

%% @doc It begins on all three nodes.
-spec begun(pace(), weft_bench_nodes:nodes()) -> gossip().
begun(Pace, Nodes) ->
    Sinks = [{Role, call(Nodes, Role, ?MODULE, start_sink, [])} || Role <- ?ROLES],
    Mode = weft_bench_workload:mode(Nodes, stream),
    #{sinks => Sinks,
      senders => [{Role, call(Nodes, Role, ?MODULE, start_gossip,
                              [Pace, Mode, [Sink || {Other, Sink} <- Sinks, Other =/= Role],
                               ?BYTES])}
                  || Role <- ?ROLES]}.

%% @doc How much of it has arrived so far.
-spec received_bytes(gossip(), weft_bench_nodes:nodes()) -> non_neg_integer().
received_bytes(#{sinks := Sinks}, Nodes) ->
    ?BYTES * lists:sum([call(Nodes, Role, ?MODULE, received, [Sink]) || {Role, Sink} <- Sinks]).

%% @doc The next cell may have the same nodes.
-spec ended(gossip(), weft_bench_nodes:nodes()) -> ok.
ended(#{sinks := Sinks, senders := Senders}, Nodes) ->
    lists:foreach(fun({Role, Pid}) -> call(Nodes, Role, erlang, send, [Pid, stop]) end, Senders),
    lists:foreach(fun({Role, Sink}) ->
                      ok = call(Nodes, Role, weft_partisan_ring, stop, [[Sink]])
                  end, Sinks).

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).

%% ---- on the nodes ----

%% @private
-spec start_sink() -> pid().
start_sink() ->
    spawn(fun() -> sink(0) end).

sink(Count) ->
    receive
        {count, From, Ref} -> From ! {Ref, Count}, sink(Count);
        _Object -> sink(Count + 1)
    end.

%% @private How many objects a sink of this node got.
-spec received(Sink :: pid()) -> non_neg_integer().
received(Sink) ->
    Ref = make_ref(),
    Sink ! {count, self(), Ref},
    receive {Ref, Count} -> Count after ?PATIENCE_MS -> exit(no_answer) end.

%% @private Until the node ends or the process gets `stop'.
-spec start_gossip(pace(), weft_bench_variant:mode(), Sinks :: [pid()],
                   SizeBytes :: pos_integer()) -> pid().
start_gossip(flood, Mode, Sinks, SizeBytes) ->
    Object = object(SizeBytes),
    spawn(fun() -> flood(Mode, Sinks, Object) end);
start_gossip(paced, Mode, Sinks, SizeBytes) ->
    Object = object(SizeBytes),
    spawn(fun() ->
              {ok, _} = timer:send_interval(?PACED_MS, due),
              paced(Mode, Sinks, Object)
          end).

object(SizeBytes) -> weft_bench_flood:payload({binary, SizeBytes}).

flood(Mode, [Sink | Sinks], Object) ->
    receive
        stop -> ok
    after ?FLOOD_MS ->
        weft_bench_flood:send(Mode, Sink, Object),
        flood(Mode, Sinks ++ [Sink], Object)
    end.

paced(Mode, [Sink | Sinks], Object) ->
    receive
        stop ->
            ok;
        due ->
            _ = spawn(fun() -> weft_bench_flood:send(Mode, Sink, Object) end),
            paced(Mode, Sinks ++ [Sink], Object)
    end.
