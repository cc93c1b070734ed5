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

-export([way/1, cut/2, heal/1, connections/1]).

-type way() :: firewall | inside.
-type cut() :: {firewall, pid()} | {inside, weft_rabbitmq_brokers:brokers()}.
-export_type([way/0, cut/0]).

%% @doc How the network between these brokers can be cut here. To be asked before they connect: it
%% tries.
-spec way(weft_rabbitmq_brokers:brokers()) -> way().
way(Brokers) ->
    case reject(Brokers) of
        {ok, Rule} ->
            ok = weft_rabbitmq_process:stop(Rule),
            firewall;
        {error, _} ->
            inside
    end.

%% @doc Cuts until heal/1. A firewall rule also ends with this emulator.
-spec cut(way(), weft_rabbitmq_brokers:brokers()) -> cut().
cut(firewall, Brokers) ->
    {ok, Rule} = reject(Brokers),
    {firewall, Rule};
cut(inside, #{carrier := weft} = Brokers) ->
    inside("ok = weft_fault:cut(Node)", Brokers),
    {inside, Brokers};
cut(inside, #{carrier := stock} = Brokers) ->
    %% A cookie of this node's own, so that it fits from neither side. First everywhere, or what is
    %% disconnected here connects again from there.
    inside("true = erlang:set_cookie(Node, list_to_atom(\"cut \" ++ atom_to_list(node())))",
           Brokers),
    inside("erlang:disconnect_node(Node)", Brokers),
    {inside, Brokers}.

-spec heal(cut()) -> ok.
heal({firewall, Rule}) ->
    weft_rabbitmq_process:stop(Rule);
heal({inside, #{carrier := weft} = Brokers}) ->
    inside("ok = weft_fault:heal(Node)", Brokers);
heal({inside, #{carrier := stock} = Brokers}) ->
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
reject(Brokers) ->
    {Network, Ports} = weft_rabbitmq_brokers:network(Brokers),
    Rule = [" OUTPUT -s ", Network, " -d ", Network, " -p tcp -m multiport --ports ",
            lists:join(",", [integer_to_list(Port) || Port <- Ports]),
            " ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset"],
    Command = fun(Action) -> lists:flatten(["iptables -w 5 ", Action, Rule]) end,
    weft_rabbitmq_process:hold(Command("-I"), Command("-D")).

inside(Expression, Brokers) ->
    Nodes = weft_rabbitmq_brokers:all_nodes(Brokers),
    ForOthers = fun(N) ->
        Others = Nodes -- [lists:nth(N, Nodes)],
        io_lib:format("lists:foreach(fun(Node) -> ~s end, ~p), ok.", [Expression, Others])
    end,
    [ok, ok, ok] = weft_rabbitmq_brokers:eval_all(ForOthers, Brokers),
    ok.
