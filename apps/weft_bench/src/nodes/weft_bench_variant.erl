%% SPDX-License-Identifier: Apache-2.0
%% @doc What is compared: carriers, lanes, a gateway, channels. A variant is the arguments of its
%% nodes and the way in which a workload sends; all else is the same for all of them.
%%
%% ```
%% stock         inet_tcp, the carrier of OTP
%% stock_tls     inet_tls, that over TLS
%% weft_1 _4 _8  weft, unchanged code, with so many TCP lanes per link
%% weft_tls_1 _4 the same over TLS
%% weft_gateway  weft, all messages pass a node between sender and receiver
%% stock_relay   inet_tcp, what passes a node in between does so by a process of the workload there
%% channel       weft, explicit channels: default for messages, control for calls, bulk for streams
%% channel_8     the same with a parallelism of 8
%% '''
%% For clusters (`weft_bench_cluster'), where `stock' has the connections that are used:
%% ```
%% stock_mesh    inet_tcp, each node connected with each other, as OTP does by default
%% weft_mesh     the same over weft, full mesh
%% weft_swim     the same, failures are detected by SWIM
%% weft_groups   weft, links inside of the groups of the cluster only
%% weft_peers    weft, peer to peer
%% '''
-module(weft_bench_variant).

-export([all/0, of_clusters/0, arguments/2, cluster_topology/2, is_weft/1, is_tls/1,
         has_gateway/1, connects_all/1, mode/2, available/1]).
-export_type([variant/0, mode/0, purpose/0]).

-type variant() :: stock | stock_tls | weft_1 | weft_4 | weft_8 | weft_tls_1 | weft_tls_4
                 | weft_gateway | stock_relay | channel | channel_8
                 | stock_mesh | weft_mesh | weft_swim | weft_groups | weft_peers.
%% How to send: `!', or weft:send/3 with these options.
-type mode() :: plain | {channel, Options :: map()}.
-type purpose() :: message | call | stream.
%% For TLS where the files of a certificate are; for a gateway the links; for a cluster its shape.
-type context() :: #{tls := file:filename() | none, links := [{node(), node()}],
                     shape := weft_bench_cluster:named() | none, _ => _}.

%% @doc All variants, in the order of reports.
-spec all() -> [variant()].
all() ->
    weft_report_record:variants().

%% @doc Those that a cluster of equal nodes can be: without a gateway, and with messages sent as
%% always.
-spec of_clusters() -> [variant()].
of_clusters() ->
    [Variant || Variant <- all(), not has_gateway(Variant), mode(Variant, message) =:= plain].

-spec is_weft(variant()) -> boolean().
is_weft(Variant) ->
    not lists:member(Variant, [stock, stock_relay, stock_tls, stock_mesh]).

-spec is_tls(variant()) -> boolean().
is_tls(Variant) ->
    lists:member(Variant, [stock_tls, weft_tls_1, weft_tls_4]).

%% @doc Do the kernels of all nodes connect with each other, which `global' needs?
-spec connects_all(variant()) -> boolean().
connects_all(Variant) ->
    lists:member(Variant, [stock_mesh, weft_mesh, weft_swim]).

%% @doc Is there a node between sender and receiver?
-spec has_gateway(variant()) -> boolean().
has_gateway(Variant) ->
    Variant =:= weft_gateway orelse Variant =:= stock_relay.

%% @doc Arguments of erl that make the variant.
-spec arguments(variant(), context()) -> [string()].
arguments(stock, _) -> [];
arguments(stock_relay, _) -> [];
arguments(stock_tls, #{tls := Dir}) ->
    ["-proto_dist", "inet_tls", "-ssl_dist_optfile", weft_bench_tls:options_file(Dir)];
arguments(weft_1, _) -> weft(1);
arguments(weft_4, _) -> weft(4);
arguments(weft_8, _) -> weft(8);
arguments(weft_tls_1, Context) -> weft(1) ++ tls(Context);
arguments(weft_tls_4, Context) -> weft(4) ++ tls(Context);
arguments(weft_gateway, #{links := Links}) ->
    weft(1) ++ topology({static, #{links => Links}});
arguments(stock_mesh, _) -> [];
arguments(channel, _) -> weft(1);
arguments(channel_8, _) -> weft(1) ++ ["-weft", "channels", term(channels(8))];
arguments(OfClusters, #{shape := Shape}) ->
    weft(1) ++ topology(cluster_topology(OfClusters, Shape)).

%% @doc The topology that the variant has in a cluster of that shape, if it has one.
-spec cluster_topology(variant(), weft_bench_cluster:named()) -> none | {atom(), term()}.
cluster_topology(weft_mesh, #{seeds := Seeds}) -> {full_mesh, #{seeds => Seeds}};
cluster_topology(weft_swim, #{seeds := Seeds}) ->
    {full_mesh, #{seeds => Seeds, detector => swim}};
cluster_topology(weft_groups, #{groups := Groups}) -> {groups, Groups};
cluster_topology(weft_peers, #{seeds := Seeds}) -> {peer_to_peer, #{seeds => Seeds}};
cluster_topology(_Variant, _Shape) -> none.

weft(Lanes) ->
    ["-proto_dist", "weft", "-weft", "lanes", integer_to_list(Lanes)].

topology(Topology) ->
    ["-weft", "topology", term(Topology)].

tls(#{tls := Dir}) ->
    ["-weft", "transport", "tls", "-weft", "tls_options", term(weft_bench_tls:options(Dir))].

channels(Parallelism) ->
    #{default => #{class => default, parallelism => Parallelism},
      bulk => #{class => bulk, parallelism => Parallelism}}.

term(Term) ->
    lists:flatten(io_lib:format("~0p", [Term])).

%% @doc How the variant sends for a purpose.
-spec mode(variant(), purpose()) -> mode().
mode(Variant, Purpose) when Variant =:= channel; Variant =:= channel_8 ->
    {channel, #{channel => case Purpose of
                               message -> default;
                               call -> control;
                               stream -> bulk
                           end}};
mode(_Variant, _Purpose) ->
    plain.

%% @doc Can the variant be run with this build of weft? If not, why.
-spec available(variant()) -> ok | {error, string()}.
available(Variant) ->
    {module, weft} = code:ensure_loaded(weft),
    case mode(Variant, message) of
        {channel, _} ->
            case erlang:function_exported(weft, send, 3) of
                true -> ok;
                false -> {error, "this weft has no channels"}
            end;
        plain ->
            ok
    end.
