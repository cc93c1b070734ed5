%% SPDX-License-Identifier: Apache-2.0
%% @doc One hash for each workload on 1, 2, 4 and 8 nodes, with 1 to 4 schedulers, on stock
%% distribution and on each topology; the same while a gateway is killed, where there is one that
%% does not take part; and after a node that takes part was killed, from a checkpoint.
%%
%% Stock, a full mesh (with and without SWIM) and pubsub have no gateways: what is sent goes to its
%% node, or by the broker. On a random overlay (peer_to_peer) a gateway is whatever node relays, so
%% it may happen that all who do take part; then nothing is killed, which is counted.
%%
%% It takes about a quarter of an hour, so it runs with FULL=1 only; weft_diasca_SUITE has a part.
-module(weft_diasca_topologies_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([stock/1, full_mesh/1, swim/1, static/1, groups/1, clients_and_servers/1, peer_to_peer/1,
         pubsub/1, own_topology/1]).

%% Those that take part, or the first of them; the others are there and relay.
-define(PARTNERS, [p1, p2, p3, p4, p5, p6, p7, p8]).
-define(GATEWAYS, [g1, g2]).
-define(SIZES, [1, 2, 4, 8]).
-define(SCHEDULERS, [1, 2, 3, 4]).
%% Of a workload: all of the soda machines, twenty minutes of a city.
-define(TICKS, 240).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [stock, full_mesh, swim, static, groups, clients_and_servers, peer_to_peer, pubsub,
     own_topology].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- topologies -------------------------------------------------------------------------------

stock(Config) -> all_to_all(fun(_) -> #{carrier => stock} end, Config).

full_mesh(Config) ->
    all_to_all(fun(_) -> weft({full_mesh, #{seeds => [node_name(p1)]}}) end, Config).

swim(Config) ->
    all_to_all(fun(_) -> weft({full_mesh, #{seeds => [node_name(p1)], detector => swim}}) end,
               Config).

%% Each partner is linked with both gateways, and with nobody else.
static(Config) ->
    Links = [{node_name(Partner), node_name(Gateway)}
             || Partner <- ?PARTNERS, Gateway <- ?GATEWAYS],
    0 = through_gateways(fun(_) -> weft({static, #{links => Links}}) end, ?GATEWAYS, Config).

groups(Config) ->
    Numbered = lists:zip(lists:seq(1, length(?PARTNERS)), ?PARTNERS),
    Group = fun(Rest) -> [node_name(Name) || {N, Name} <- Numbered, N rem 2 =:= Rest]
                             ++ [node_name(Gateway) || Gateway <- ?GATEWAYS] end,
    Groups = {groups, #{left => Group(1), right => Group(0)}},
    0 = through_gateways(fun(_) -> weft(Groups) end, ?GATEWAYS, Config).

%% Each client has a link with one server, and gets another when that one is killed.
clients_and_servers(Config) ->
    Servers = [node_name(Gateway) || Gateway <- ?GATEWAYS],
    Role = fun(Name) -> case lists:member(Name, ?GATEWAYS) of
                            true -> server;
                            false -> client
                        end
           end,
    0 = through_gateways(fun(Name) ->
                                 weft({client_server, #{role => Role(Name), servers => Servers}})
                         end, ?GATEWAYS, Config).

peer_to_peer(Config) ->
    Gateways = ?GATEWAYS ++ [g3, g4],
    Topology = {peer_to_peer, #{seeds => [node_name(p1), node_name(g1)], active => 3}},
    NotKilled = through_gateways(fun(_) -> weft(Topology) end, Gateways, Config),
    ct:pal("~b runs in which all who relay took part", [NotKilled]),
    ?assert(NotKilled < length(disturbances()) div 2).

%% A ring: the way from p1 to p2 is by g1, or by all others.
own_topology(Config) ->
    [First | Others] = ?PARTNERS,
    Ring = [node_name(Name) || Name <- [First, g1 | Others] ++ [g2]],
    Topology = {weft_chord_ring, #{nodes => Ring, distances => [1]}},
    Args = ["-pa", weft_test_nodes:ebin(weft_chord_ring)],
    0 = through_gateways(fun(_) -> (weft(Topology))#{args => Args} end, ?GATEWAYS, Config).

pubsub(Config) ->
    case weft_amqp_test_broker:is_installed() of
        false ->
            {skip, "no RabbitMQ here (Debian package rabbitmq-server)"};
        true ->
            #{epmd := #{port := EpmdPort}} = ?config(place, Config),
            Dir = filename:join(?config(priv_dir, Config), "broker"),
            Keeper = weft_amqp_test_keeper:start([weft_amqp_test_broker:new(Dir, EpmdPort)]),
            try by_broker(weft_amqp_test_keeper:url(Keeper), Config)
            after weft_amqp_test_keeper:stop(Keeper)
            end
    end.

by_broker(Url, Config) ->
    Topology = {pubsub, #{broker => Url, announce_ms => 1000}},
    %% By a broker only time tells that a node was killed.
    Args = ["-kernel", "net_ticktime", "12"]
        ++ lists:append([["-pa", Dir] || Dir <- [weft_test_nodes:ebin(weft_amqp)
                                                 | weft_amqp_test_broker:client_dirs()]]),
    all_to_all(fun(_) -> (weft(Topology))#{args => Args} end, Config).

weft(Topology) -> #{config => [{topology, Topology}]}.

%% --- what is done on each ---------------------------------------------------------------------

all_to_all(Settings, Config) ->
    Refs = started(?PARTNERS, Settings, Config),
    one_hash(Refs),
    a_partner_is_killed(Refs, Settings, Config).

%% How often there was no gateway to kill.
through_gateways(Settings, Gateways, Config) ->
    Refs = started(?PARTNERS ++ Gateways, Settings, Config),
    one_hash(lists:sublist(Refs, length(?PARTNERS))),
    {Last, NotKilled} = lists:foldl(fun(Run, {Running, Count}) ->
                                            case a_gateway_is_killed(Run, Running) of
                                                none -> {Running, Count + 1};
                                                Killed -> {again(Killed, Running, Settings, Config),
                                                           Count}
                                            end
                                    end, {Refs, 0}, disturbances()),
    a_partner_is_killed(Last, Settings, Config),
    NotKilled.

one_hash([Ref | _] = Partners) ->
    [begin
         weft_diasca_nodes:schedulers(Partners, Count),
         weft_diasca_nodes:one_hash(Ref, weft_diasca_nodes:workloads(?TICKS),
                                    [lists:sublist(names(Partners), Size) || Size <- ?SIZES],
                                    {schedulers, Count})
     end || Count <- ?SCHEDULERS],
    %% What is near each other in a larger city is on one node, and it comes to the same.
    City = fun(IsNear) -> {city, #{probes => none, ticks => 60,
                                   options => #{scale => small, districts => IsNear}}} end,
    weft_diasca_nodes:one_hash(Ref, [City(true), City(false)], [names(Partners)]).

%% A single node needs no gateway.
disturbances() ->
    [{Workload, Size, Count} || Count <- ?SCHEDULERS, Size <- ?SIZES, Size > 1,
                                Workload <- weft_diasca_nodes:endless()].

%% Which it was.
a_gateway_is_killed({{Name, _} = Workload, Size, Count}, [Ref | _] = Refs) ->
    weft_diasca_nodes:until_all_reach([Ref], Refs),
    weft_diasca_nodes:schedulers(Refs, Count),
    {Some, Others} = lists:split(Size, Refs),
    case relay(Ref, names(Some), Others) of
        none ->
            none;
        Killed ->
            ct:pal("~p on ~b nodes with ~b schedulers, without ~p",
                   [Name, Size, Count, weft_test_nodes:name(Killed)]),
            weft_diasca_nodes:disturbed(Ref, Workload, names(Some),
                                        fun() -> ok = weft_test_nodes:kill(Killed) end),
            Killed
    end.

%% One that relays between the node that runs it and another that takes part.
relay(Ref, Some, Others) ->
    Ways = [weft_test_nodes:call(Ref, weft, trace, [Name]) || Name <- tl(Some)],
    Relaying = [Node || {ok, Way} <- Ways, #{to := Node} <- lists:droplast(Way)],
    case [Other || Other <- Others, lists:member(weft_test_nodes:name(Other), Relaying)] of
        [] -> none;
        [Relay | _] -> Relay
    end.

a_partner_is_killed(Refs, Settings, Config) ->
    lists:foldl(
      fun(Workload, [Ref | _] = Running) ->
              weft_diasca_nodes:until_all_reach([Ref], Running),
              Three = lists:sublist(Running, 3),
              Killed = lists:last(Three),
              weft_diasca_nodes:continued(Three, Workload, ?config(priv_dir, Config),
                                          fun() -> ok = weft_test_nodes:kill(Killed) end),
              again(Killed, Running, Settings, Config)
      end, Refs, weft_diasca_nodes:endless()).

%% --- nodes ------------------------------------------------------------------------------------

node_name(Short) -> weft_test_nodes:node_name(Short).

names(Refs) -> [weft_test_nodes:name(Ref) || Ref <- Refs].

started(Names, Settings, Config) ->
    Refs = [start(Name, Settings, Config) || Name <- Names],
    weft_diasca_nodes:until_all_reach([hd(Refs)], Refs),
    Refs.

%% The nodes with another of its name in its place.
again(Killed, Refs, Settings, Config) ->
    [Short, _Host] = string:split(atom_to_list(weft_test_nodes:name(Killed)), "@"),
    Again = start(list_to_existing_atom(Short), Settings, Config),
    [case Ref of Killed -> Again; _ -> Ref end || Ref <- Refs].

start(Name, Settings, Config) ->
    weft_diasca_nodes:start(Name, Settings(Name), ?config(place, Config)).
