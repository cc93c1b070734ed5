%% SPDX-License-Identifier: Apache-2.0
%% @doc Who talks to whom, between nodes and between groups, made of the last samples of nodes.
%% Pure.
%%
%% Each pair of nodes is told by its sender; by its receiver if the sender has not reported. Between
%% groups each byte counts once: within a group if both nodes are in one, else from the first group
%% of the one to the first of the other. Nodes in no group are together under `none'. What nodes
%% relay for others is not theirs.
-module(weft_ops_traffic).

-export([of_samples/2]).
-export_type([traffic/0]).

%% via: the neighbour that it leaves by; the receiver itself over a direct connection, undefined if
%% only the receiver has told. Both lists are sorted, the most first; without those that are silent.
-type between_nodes() :: #{from := node(), to := node(), via := node() | undefined,
                           bytes_per_s := pos_integer()}.
-type between_groups() :: #{from := weft_group:name() | none, to := weft_group:name() | none,
                            bytes_per_s := pos_integer(), pairs := pos_integer()}.
-type traffic() :: #{nodes := [between_nodes()], groups := [between_groups()]}.

%% @doc What these samples tell. Groups: all that are known.
-spec of_samples(#{node() => weft_ops_sample:sample() | silent},
                 #{weft_group:name() => [node()]}) -> traffic().
of_samples(Samples, Groups) ->
    Told = [{Node, Sample} || {Node, #{peers := _} = Sample} <- maps:to_list(Samples)],
    Received = maps:from_list([{{Peer, Node}, row(Peer, Node, undefined, In, Sample)}
                               || {Node, #{peers := Peers} = Sample} <- Told,
                                  #{node := Peer, bytes_in := In} <- Peers]),
    Sent = maps:from_list([{{Node, Peer}, row(Node, Peer, Via, Out, Sample)}
                           || {Node, #{peers := Peers} = Sample} <- Told,
                              #{node := Peer, via := Via, bytes_out := Out} <- Peers]),
    Rows = [Row || #{bytes_per_s := Rate} = Row <- maps:values(maps:merge(Received, Sent)),
                   Rate > 0],
    #{nodes => most_first(Rows), groups => most_first(between(Rows, Groups))}.

row(From, To, Via, Bytes, #{period_ms := PeriodMs}) ->
    #{from => From, to => To, via => Via, bytes_per_s => Bytes * 1000 div PeriodMs}.

between(Rows, Groups) ->
    Own = maps:fold(fun(Name, Nodes, All) ->
                        lists:foldl(fun(Node, Acc) ->
                                        Acc#{Node => lists:sort([Name | maps:get(Node, Acc, [])])}
                                    end, All, Nodes)
                    end, #{}, Groups),
    maps:values(lists:foldl(fun(#{from := A, to := B, bytes_per_s := Rate}, Sums) ->
                                add(ends(maps:get(A, Own, []), maps:get(B, Own, [])), Rate, Sums)
                            end, #{}, Rows)).

ends(OfA, OfB) ->
    case [Name || Name <- OfA, lists:member(Name, OfB)] of
        [Common | _] -> {Common, Common};
        [] -> {first(OfA), first(OfB)}
    end.

first([Name | _]) -> Name;
first([]) -> none.

add({From, To} = Ends, Rate, Sums) ->
    #{bytes_per_s := Sum, pairs := Pairs} = Row =
        maps:get(Ends, Sums, #{from => From, to => To, bytes_per_s => 0, pairs => 0}),
    Sums#{Ends => Row#{bytes_per_s := Sum + Rate, pairs := Pairs + 1}}.

most_first(Rows) ->
    lists:sort(fun(#{bytes_per_s := A, from := F, to := T}, #{bytes_per_s := B, from := G,
                                                              to := U}) ->
                       {-A, F, T} =< {-B, G, U}
               end, Rows).
