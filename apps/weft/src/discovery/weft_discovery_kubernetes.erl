%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by a headless service of Kubernetes, which is a name of the cluster's DNS:
%% `{kubernetes, #{service => "web", namespace => "default"}}'.
%%
%% `by => hostname' (the default) is for a StatefulSet: SRV records name the pods, and nodes are
%% called like `app@web-0.web.default.svc.cluster.local'. `by => ip' takes the addresses of the
%% pods: `app@10.42.0.7'. Set `publishNotReadyAddresses: true' in the service, or pods that wait
%% for each other to become ready never meet.
-module(weft_discovery_kubernetes).
-behaviour(weft_discovery).

-export([discover/1]).

%% @doc See `weft_discovery'. Errors: see `weft_discovery_dns:discover/1'.
-spec discover(map()) -> {ok, [node()]} | {error, term()}.
discover(Options) ->
    weft_discovery_dns:discover(dns_options(Options)).

%% @doc The same as options of `weft_discovery_dns'.
-spec dns_options(#{service := string(), namespace := string(), domain := string(),
                    by := hostname | ip, _ => _}) -> map().
dns_options(#{service := Service, namespace := Namespace, domain := Domain, by := By} = Options) ->
    (maps:with([node, nameservers, timeout_ms], Options))#{
        name => lists:append([Service, ".", Namespace, ".svc.", Domain]),
        type => case By of hostname -> srv; ip -> a end}.
