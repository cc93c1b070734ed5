%% SPDX-License-Identifier: Apache-2.0
%% @doc A collector of prometheus.erl: `erlang_vm_dist_*' of each connected node, in place of
%% `prometheus_vm_dist_collector'. It follows that one's setting, `vm_dist_collector_metrics' of
%% prometheus: a list of names without the prefix, or all.
%%
%% With more peers than `dist_peers_max' it reports nothing: see `weft_dist_peers_left_out'.
-module(weft_ops_dist_collector).
-behaviour(prometheus_collector).

-export([collect_mf/2, deregister_cleanup/1]).

%% @private
-spec collect_mf(atom(), fun((term()) -> term())) -> ok.
collect_mf(_Registry, Callback) ->
    case weft_ops_snapshot:take() of
        {ok, #{peers := Peers, dist_peers_max := Max} = Snapshot} when length(Peers) =< Max ->
            weft_ops_collector:report(wanted(), Snapshot, Callback);
        _ ->
            ok
    end.

wanted() ->
    case application:get_env(prometheus, vm_dist_collector_metrics, all) of
        all -> weft_ops_dist_families:all();
        Names -> [Family || #{name := Name} = Family <- weft_ops_dist_families:all(),
                            lists:member(Name, prefixed(Names))]
    end.

prefixed(Names) -> [list_to_atom("erlang_vm_dist_" ++ atom_to_list(Name)) || Name <- Names].

%% @private
-spec deregister_cleanup(atom()) -> ok.
deregister_cleanup(_Registry) -> ok.
