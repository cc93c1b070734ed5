%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes for the suites of the dashboard: with agents, which node `a' records, and with what is
%% needed to break things. Not the dashboard itself, which each suite starts as it wants it.
-module(weft_dashboard_nodes).

-include_lib("common_test/include/ct.hrl").

-import(weft_test_nodes, [call/4]).

-export([start/3, start/4, dashboard/3, with_store/3, recording/1, token/0, text/1]).

-define(OPS, [{sample_ms, 300}, {clear_ms, 600},
              {grace_ms, #{default => 300, unreachable => 300}}]).

%% @doc Starts a node with these settings of weft. Node a is for the dashboard.
start(Name, Settings, Config) ->
    start(Name, Settings, #{args => [], ops => ?OPS, dashboard => Name =:= a}, Config).

%% @doc The same with more arguments of the emulator, other settings of weft_ops, another node for
%% the dashboard; and `around', if something runs the emulator.
start(Name, Settings, #{args := Args, ops := Ops, dashboard := IsDashboard} = Options, Config) ->
    Modules = [weft_chaos | [weft_dashboard || IsDashboard]],
    How = (maps:with([around], Options))#{config => Settings,
                                          args => ["-connect_all", "false", "-kernel",
                                                   "prevent_overlapping_partitions", "false"
                                                   | weft_ops_test_args:args(Modules) ++ Args]},
    Node = weft_test_nodes:start(Name, How, ?config(place, Config)),
    Records = [{recording, #{dir => recording(Config)}} || IsDashboard],
    [ok = call(Node, application, set_env, [weft_ops, Key, Value])
     || {Key, Value} <- Records ++ Ops],
    ok = call(Node, application, set_env, [weft_chaos, enabled, true]),
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]),
    Node.

%% @doc Starts the dashboard on a node, which may act and knows the recording.
dashboard(Node, Env, Config) ->
    [ok = call(Node, application, set_env, [weft_dashboard, Key, Value])
     || {Key, Value} <- [{recording, recording(Config)}, {token, token()}, {chaos, true} | Env]],
    {ok, _} = call(Node, application, ensure_all_started, [weft_dashboard]),
    ok.

%% @doc Has a ring and a store of these two nodes while the function runs. The second one joins, so
%% the first one has handed over half of its partitions.
with_store([First, Second] = Nodes, Config, Fun) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Dir = filename:join(?config(priv_dir, Config), "store_" ++ Unique),
    [store(Node, filename:join(Dir, binary_to_list(text(Node)))) || Node <- Nodes],
    try
        ok = call(First, weft_ring, create, []),
        ok = call(Second, weft_ring, join, [weft_test_nodes:name(First)]),
        weft_test_nodes:until(fun() -> staged(First, weft_test_nodes:name(Second)) end),
        {ok, Plan} = call(First, weft_ring, plan, []),
        ok = call(First, weft_ring, commit, [Plan]),
        weft_test_nodes:until(fun() -> lists:all(fun is_settled/1, Nodes) end),
        Fun()
    after
        [ok = call(Node, application, stop, [Application])
         || Node <- Nodes, Application <- [weft_kv, weft_ring]]
    end.

store(Node, Dir) ->
    [true = call(Node, code, add_pathz, [weft_test_nodes:ebin(Module)])
     || Module <- [weft_ring, weft_kv]],
    [ok = call(Node, application, set_env, [Application, Key, Value])
     || {Application, Key, Value} <-
            [{weft_ring, partitions, 8}, {weft_ring, dir, filename:join(Dir, "ring")},
             {weft_ring, vnodes, [{weft_kv_vnode, #{dir => filename:join(Dir, "kv")}}]},
             {weft_kv, buckets, #{carts => #{n => 1}}}]],
    {ok, _} = call(Node, application, ensure_all_started, [weft_kv]).

staged(Node, Joining) -> call(Node, weft_ring, stage, [Joining, join]) =:= ok.

is_settled(Node) ->
    case call(Node, weft_ring, counts, []) of
        #{owned := 4, moving := 0} -> true;
        _ -> false
    end.

recording(Config) -> filename:join(?config(priv_dir, Config), "recording").

token() -> "correct-horse-battery".

%% @doc A node, or an atom, as the page has it.
text(#{node := Node}) -> atom_to_binary(Node);
text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) -> Text.
