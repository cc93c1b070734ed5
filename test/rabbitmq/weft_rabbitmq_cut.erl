%% SPDX-License-Identifier: Apache-2.0
%% @doc Cuts the network between all brokers: connections between them are killed, new ones
%% refused, until it is healed. Clients and rabbitmqctl are not concerned.
%%
%% firewall: iptables answers every packet of distribution connections between the brokers'
%%   addresses by a TCP reset, in both directions, as a firewall does that lost its state. (Mere
%%   loss of packets for seconds is no test: TCP repairs it.) The same for all carriers.
%% inside: where iptables is missing or forbidden. weft is told to cut (`weft_fault'), the stock
%%   carrier to disconnect and, by a changed cookie, to refuse.
-module(weft_rabbitmq_cut).

-export([way/1, cut/2, heal/2, connections/1]).

-type way() :: firewall | inside.
-export_type([way/0]).

-define(COMMAND_MS, 10000).

%% @doc How the network between these brokers can be cut here. To be asked before they connect: it
%% tries.
-spec way(weft_rabbitmq_brokers:brokers()) -> way().
way(Brokers) ->
    case os:find_executable("iptables") =/= false andalso iptables("-I", Brokers) of
        {0, _} ->
            ok = heal(firewall, Brokers),
            firewall;
        _ ->
            inside
    end.

-spec cut(way(), weft_rabbitmq_brokers:brokers()) -> ok.
cut(firewall, Brokers) ->
    {0, _} = iptables("-I", Brokers),
    ok;
cut(inside, #{carrier := weft} = Brokers) ->
    inside("ok = weft_fault:cut(Node)", Brokers);
cut(inside, #{carrier := stock} = Brokers) ->
    inside("true = erlang:set_cookie(Node, cut), erlang:disconnect_node(Node)", Brokers).

%% @doc Ends the cut; does nothing if there is none.
-spec heal(way(), weft_rabbitmq_brokers:brokers()) -> ok.
heal(firewall, Brokers) ->
    case iptables("-D", Brokers) of
        {0, _} -> heal(firewall, Brokers);
        {1, _} -> ok
    end;
heal(inside, #{carrier := weft} = Brokers) ->
    inside("ok = weft_fault:heal(Node)", Brokers);
heal(inside, #{carrier := stock} = Brokers) ->
    inside("true = erlang:set_cookie(Node, erlang:get_cookie())", Brokers).

%% @doc Number of established TCP connections between brokers. (Each has two ends here.)
-spec connections(weft_rabbitmq_brokers:brokers()) -> non_neg_integer().
connections(Brokers) ->
    {_, Ports} = weft_rabbitmq_brokers:network(Brokers),
    {ok, Table} = file:read_file("/proc/net/tcp"),
    %% Index, local and remote address, state 1: established. 127.0.7.1 is written 0107007F.
    Ends = case re:run(Table, ": ..07007F:(....) ..07007F:(....) 01 ",
                       [global, {capture, all_but_first, list}]) of
        {match, Matches} -> Matches;
        nomatch -> []
    end,
    InUse = [[list_to_integer(Port, 16) || Port <- Both] || Both <- Ends],
    length([Both || Both <- InUse, Both -- Ports =/= Both]) div 2.

%% One rule for all brokers: what goes from their network to itself, from or to the ports of the
%% distribution, but for the resets, which are to arrive.
iptables(Action, Brokers) ->
    {Network, Ports} = weft_rabbitmq_brokers:network(Brokers),
    Args = ["-w", "5", Action, "OUTPUT", "-s", Network, "-d", Network, "-p", "tcp",
            "-m", "multiport", "--ports",
            lists:append(lists:join(",", [integer_to_list(Port) || Port <- Ports])),
            "!", "--tcp-flags", "RST", "RST", "-j", "REJECT", "--reject-with", "tcp-reset"],
    Command = #{command => os:find_executable("iptables"), args => Args},
    weft_rabbitmq_process:run(Command, ?COMMAND_MS).

inside(Expression, Brokers) ->
    Nodes = weft_rabbitmq_brokers:all_nodes(Brokers),
    ForOthers = fun(N) ->
        Others = Nodes -- [lists:nth(N, Nodes)],
        io_lib:format("lists:foreach(fun(Node) -> ~s end, ~p), ok.", [Expression, Others])
    end,
    [ok, ok, ok] = weft_rabbitmq_brokers:eval_all(ForOthers, Brokers),
    ok.
