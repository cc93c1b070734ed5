%% SPDX-License-Identifier: Apache-2.0
%% @doc Two hosts of somebody's own, on which cells that need two nodes run instead of on this
%% machine. Who has them opens and closes them (`weft_bench_cli', `hosts' of more()); here is what
%% the benchmark has to know of them.
%%
%% The sending node is on the one that is near. The receiving one is on the one that is far, and so
%% is a gateway.
-module(weft_bench_hosts).

-export([cells/1, on/2, environment/1]).
-export_type([hosts/0, host/0]).

-type hosts() :: #{near := host(), far := host(), epmd_port := inet:port_number()}.
%% `command': the program and arguments that run a command there, and are its input and output.
%% `code': directories of compiled code. The cookie is in the home directory that commands have.
-type host() :: #{address := string(), erl := string(), code := [string()],
                  command := fun(([string(), ...]) -> {string(), [string()]})}.

-define(GATHER_MS, 30000).

%% @doc Those cells that can run there, with the variants that can: no emulated links, no clusters,
%% no signals to nodes, and no certificates, which are files of this machine.
-spec cells([weft_bench_workload:cell()]) -> [weft_bench_workload:cell()].
cells(Cells) ->
    [Cell#{variants := Left}
     || #{layout := pair, link := #{label := loopback}, variants := Variants} = Cell <- Cells,
        not maps:get(only_here, Cell, false),
        [_ | _] = Left <- [[Variant || Variant <- Variants,
                                       not weft_bench_variant:is_tls(Variant)]]].

%% @doc The same cells, on these hosts.
-spec on(hosts(), [weft_bench_workload:cell()]) -> [weft_bench_workload:cell()].
on(Hosts, Cells) ->
    [Cell#{link := link(Hosts, Link)} || #{link := Link} = Cell <- Cells].

link(Hosts, Link) -> Link#{label := hosts, hosts => Hosts}.

%% @doc What numbers depend on there (`weft_bench_environment'), told by a node on each host, and
%% which hosts these are. Connections have the congestion control of their host.
-spec environment(hosts()) -> {ok, [{Key :: string(), Value :: string()}]} | {error, string()}.
environment(Hosts) ->
    weft_bench_place:with(link(Hosts, weft_bench_link:loopback()), "",
                          fun(Place) -> gathered(Hosts, Place) end).

gathered(#{near := #{address := Near}, far := #{address := Far}}, Place) ->
    case weft_bench_nodes:start(stock, pair, #{place => Place, log_dir => ""}) of
        {ok, Nodes} ->
            try
                {ok, [{"hosts", lists:concat(["1: ", Near, ", 2: ", Far])}
                      | weft_bench_environment:of_hosts([{Near, gathered_by(a, Nodes)},
                                                         {Far, gathered_by(b, Nodes)}])]}
            after
                weft_bench_nodes:stop(Nodes)
            end;
        {error, Text} ->
            {error, Text}
    end.

gathered_by(Role, Nodes) ->
    Gathered = weft_bench_nodes:call(Nodes, Role, weft_bench_environment, gather,
                                     {[[]], ?GATHER_MS}),
    [{"congestion_control", Control}
     || {"congestion_control_of_the_machine", Control} <- Gathered] ++ Gathered.
