%% SPDX-License-Identifier: Apache-2.0
%% @doc A collector of prometheus.erl: weft's own families. In the default registry, or in any other
%% that it is put in, those of the node; in the registries of `weft_ops_detailed' those of a
%% request.
%%
%% prometheus.erl finds collectors by their behaviour, and may use this one while the application
%% does not run. Then it reports nothing.
-module(weft_ops_collector).
-behaviour(prometheus_collector).

-export([collect_mf/2, deregister_cleanup/1, report/3]).

%% @private
-spec collect_mf(atom(), fun((term()) -> term())) -> ok.
collect_mf(Registry, Callback) ->
    case weft_ops_snapshot:take() of
        {ok, Snapshot} -> report(families(weft_ops_detailed:request(Registry)), Snapshot, Callback);
        not_running -> ok
    end.

families(none) -> weft_ops_families:all();
families(Request) -> weft_ops_detailed:families(Request).

%% @private
-spec deregister_cleanup(atom()) -> ok.
deregister_cleanup(_Registry) -> ok.

%% @doc Gives Callback those of the families that have values.
-spec report([weft_ops_family:family()], weft_ops_snapshot:snapshot(), fun((term()) -> term())) ->
          ok.
report(Families, Snapshot, Callback) ->
    lists:foreach(fun(Family) ->
                          case weft_ops_family:samples(Family, Snapshot) of
                              {ok, []} -> ok;
                              {ok, Samples} -> _ = Callback(model(Family, Samples));
                              failed -> weft_ops_snapshot:failed(families)
                          end
                  end, Families).

model(#{name := Name, type := Type, help := Help}, Samples) ->
    prometheus_model_helpers:create_mf(Name, Help, Type, Samples).
