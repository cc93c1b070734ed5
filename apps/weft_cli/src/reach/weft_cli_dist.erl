%% SPDX-License-Identifier: Apache-2.0
%% @doc The command's own carrier (`-proto_dist weft_cli'): decides when a node is called, not when
%% the VM starts, whether to be a stock node or a weft node.
%%
%% Stock is the rule: weft serves stock nodes, and they are no part of the overlay. But TLS is
%% spoken with weft nodes only. Only calls out are made (dist_listen is false), so what serves
%% incoming connections is not here.
-module(weft_cli_dist).

-export([use/1, childspecs/0, address/0, select/1, is_node_name/1, setup/5, close/1]).

-define(CARRIERS, #{tcp => inet_tcp_dist, tls => weft_dist}).

%% @doc From now on nodes are called over this transport. To be said before distribution starts.
-spec use(tcp | tls) -> ok.
use(Transport) ->
    application:set_env(weft_cli, carrier, maps:get(Transport, ?CARRIERS)).

carrier() ->
    {ok, Carrier} = application:get_env(weft_cli, carrier),
    Carrier.

-spec childspecs() -> {ok, [supervisor:child_spec()]}.
childspecs() ->
    case carrier() of
        weft_dist -> weft_dist:childspecs();
        inet_tcp_dist -> {ok, []}
    end.

-spec address() -> term().
address() -> (carrier()):address().

-spec select(node()) -> boolean().
select(Node) -> (carrier()):select(Node).

-spec is_node_name(node()) -> boolean().
is_node_name(Node) -> (carrier()):is_node_name(Node).

-spec setup(node(), normal | hidden, node(), longnames | shortnames, non_neg_integer()) -> pid().
setup(Node, Type, MyNode, LongOrShortNames, SetupTime) ->
    (carrier()):setup(Node, Type, MyNode, LongOrShortNames, SetupTime).

-spec close(term()) -> ok.
close(Listen) -> (carrier()):close(Listen).
