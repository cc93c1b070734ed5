%% SPDX-License-Identifier: Apache-2.0
%% @doc Models of clusters that there are not, so small that a test knows each of their numbers.
-module(weft_dashboard_small).

-export([model/0, many/1, chain/0, row/0, node_in/1]).

%% @doc Nodes a, b and g are one group, g, x and y another one. The link of b and g is down; a talks
%% with b, and over g with x.
model() ->
    #{at_ms => 0, node => <<"a@h">>, source => live, alarms => #{}, agents => #{},
      nodes => #{<<"a@h">> => node_in([left]), <<"b@h">> => node_in([left]),
                 <<"g@h">> => node_in([left, right]), <<"x@h">> => node_in([right]),
                 <<"y@h">> => node_in([right])},
      groups => #{left => group([<<"a@h">>, <<"b@h">>, <<"g@h">>], [<<"g@h">>]),
                  right => group([<<"g@h">>, <<"x@h">>, <<"y@h">>], [<<"g@h">>])},
      links => both(#{{a, b} => link_up(100), {a, g} => link_up(200), {g, x} => link_up(400),
                      {x, y} => link_up(100),
                      {b, g} => #{state => down, queued_bytes => 0, lanes => [], ups => 1,
                                  last_error => closed}},
                    #{<<"b@h g@h">> => #{queued_bytes => 7}}),
      traffic => both(#{{a, b} => session(<<"b@h">>), {a, x} => session(<<"g@h">>)},
                      #{<<"a@h b@h">> => #{bytes_out => 2000},
                        <<"b@h a@h">> => #{bytes_in => 2000, via => <<"a@h">>},
                        <<"a@h x@h">> => #{bytes_out => 18000, bytes_in => 6000, queued_bytes => 5,
                                           resumes => 3, reroutes => 1},
                        <<"x@h a@h">> => #{bytes_out => 6000, bytes_in => 18000}})}.

%% @doc As many nodes, in one group; they have no links.
many(Count) ->
    Names = [<<"n", (integer_to_binary(Number))/binary, "@h">> || Number <- lists:seq(1, Count)],
    (model())#{nodes => maps:from_list([{Name, node_in([left])} || Name <- Names]),
               groups => #{left => group(Names, [])},
               links => #{}, traffic => #{}}.

%% @doc Nodes a, g, h and p in a row, each in a group with the next one; a talks with p.
chain() ->
    (maps:merge(model(), grouped(#{left => [a, g], middle => [g, h], right => [h, p]})))#{
      links => both(#{{a, g} => link_up(100), {g, h} => link_up(100), {h, p} => link_up(100)}, #{}),
      traffic => both(#{{a, p} => session(<<"g@h">>)}, #{<<"p@h a@h">> => #{via => <<"h@h">>}})}.

%% @doc The same with one node more in the row: a, g, h, i and p. Those between pass on what a sends
%% to p. Beside h are y, which passes on little, and z, which does not, and gets much by lanes.
row() ->
    #{nodes := Nodes} = Grouped = grouped(#{row_1 => [a, g], row_2 => [g, h], row_3 => [h, i],
                                            row_4 => [i, p], side => [h, y, z]}),
    (maps:merge(model(), Grouped))#{
      nodes => maps:merge(Nodes, maps:from_list(
                                   [{Name, (maps:get(Name, Nodes))#{relayed_bytes => Bytes}}
                                    || {Name, Bytes} <- [{<<"g@h">>, 18000}, {<<"h@h">>, 18000},
                                                         {<<"i@h">>, 18000}, {<<"y@h">>, 500}]])),
      links => both(maps:from_list([{Pair, (link_up(100))#{lanes => [Bytes]}}
                                    || {Pair, Bytes} <- [{{a, g}, 9500}, {{g, h}, 9500},
                                                         {{h, i}, 9500}, {{i, p}, 9500},
                                                         {{h, y}, 40}, {{h, z}, 90000}]]), #{}),
      traffic => both(#{{a, p} => session(<<"g@h">>)},
                      #{<<"a@h p@h">> => #{bytes_out => 18000},
                        <<"p@h a@h">> => #{bytes_in => 18000, via => <<"i@h">>}})}.

%% Nodes in several groups are gateways.
grouped(Groups) ->
    Nodes = lists:usort(lists:append(maps:values(Groups))),
    Gateways = [Node || Node <- Nodes, length(groups_of(Node, Groups)) > 1],
    #{nodes => maps:from_list([{named(Node), node_in(groups_of(Node, Groups))} || Node <- Nodes]),
      groups => maps:map(fun(_, Its) ->
                             group([named(Node) || Node <- Its],
                                   [named(Node) || Node <- Its, lists:member(Node, Gateways)])
                         end, Groups)}.

groups_of(Node, Groups) ->
    [Group || {Group, Nodes} <- maps:to_list(Groups), lists:member(Node, Nodes)].

%% @doc A node in these groups, which does nothing.
node_in(Groups) ->
    #{state => up, groups => Groups, uptime_ms => 1000, memory_bytes => 1, processes => 1,
      run_queue => 0, wake_up_us => 0, relayed_bytes => 0, relayed_circuits => 0, unreachable => [],
      bytes_out => 0, bytes_in => 0, queued_bytes => 0, suspended => 0, at_ms => 0,
      period_ms => 2000}.

group(Members, Gateways) -> #{members => Members, gateways => Gateways}.

link_up(RttUs) ->
    #{state => up, rtt_us => RttUs, queued_bytes => 0, lanes => [], ups => 0, last_error => none}.

session(Via) ->
    #{state => up, via => Via, bytes_out => 0, bytes_in => 0, queued_bytes => 0, suspended => 0,
      resumes => 0, reroutes => 0}.

%% The rows of both ends of each pair, but for what one end says otherwise.
both(Pairs, Otherwise) ->
    Rows = [{<<(named(From))/binary, " ", (named(To))/binary>>, Row}
            || {{A, B}, Row} <- maps:to_list(Pairs), {From, To} <- [{A, B}, {B, A}]],
    maps:from_list([{Key, maps:merge(Row, maps:get(Key, Otherwise, #{}))} || {Key, Row} <- Rows]).

named(Node) -> <<(atom_to_binary(Node))/binary, "@h">>.
