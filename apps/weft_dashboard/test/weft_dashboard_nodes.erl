%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes for the suites of the dashboard: with agents, which node `a' records, and with what is
%% needed to break things. Not the dashboard itself, which each suite starts as it wants it.
-module(weft_dashboard_nodes).

-include_lib("common_test/include/ct.hrl").

-import(weft_test_nodes, [call/4]).

-export([start/3, start/4, dashboard/3, recording/1, token/0, text/1]).

-define(APPS, [prometheus, quantile_estimator, ddskerl, cowboy, cowlib, ranch]).
-define(OPS, [{sample_ms, 300}, {clear_ms, 600},
              {grace_ms, #{default => 300, unreachable => 300}}]).

%% @doc Starts a node with these settings of weft. Node a is for the dashboard.
start(Name, Settings, Config) ->
    start(Name, Settings, #{args => [], ops => ?OPS, dashboard => Name =:= a}, Config).

%% @doc The same with more arguments of the emulator, other settings of weft_ops, another node for
%% the dashboard.
start(Name, Settings, #{args := Args, ops := Ops, dashboard := IsDashboard}, Config) ->
    Modules = [weft_ops_app, weft_json, weft_chaos] ++ [weft_dashboard || IsDashboard],
    Node = weft_test_nodes:start(Name, #{config => Settings,
                                         args => ["-connect_all", "false", "-kernel",
                                                  "prevent_overlapping_partitions", "false"
                                                  | paths(Modules) ++ Args]},
                                 ?config(place, Config)),
    Records = [{recording, #{dir => recording(Config)}} || IsDashboard],
    [ok = call(Node, application, set_env, [weft_ops, Key, Value])
     || {Key, Value} <- Records ++ Ops],
    ok = call(Node, application, set_env, [weft_chaos, enabled, true]),
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]),
    Node.

paths(Modules) ->
    lists:append([["-pa", Dir] || Dir <- [weft_test_nodes:ebin(M) || M <- Modules]
                                             ++ [filename:join(Dir, "ebin")
                                                 || App <- ?APPS, Dir <- [code:lib_dir(App)],
                                                    is_list(Dir)]]).

%% @doc Starts the dashboard on a node, which may act and knows the recording.
dashboard(Node, Env, Config) ->
    [ok = call(Node, application, set_env, [weft_dashboard, Key, Value])
     || {Key, Value} <- [{recording, recording(Config)}, {token, token()}, {chaos, true} | Env]],
    {ok, _} = call(Node, application, ensure_all_started, [weft_dashboard]),
    ok.

recording(Config) -> filename:join(?config(priv_dir, Config), "recording").

token() -> "correct-horse-battery".

%% @doc A node, or an atom, as the page has it.
text(#{node := Node}) -> atom_to_binary(Node);
text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) -> Text.
