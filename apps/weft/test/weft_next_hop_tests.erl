%% SPDX-License-Identifier: Apache-2.0
%% @doc Which connections nodes/0 does not show: those over a circuit to nodes that are no
%% neighbours, as far as that is known.
-module(weft_next_hop_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'peer@host').

hidden_test_() ->
    {foreach, fun tables/0, fun cleared/1,
     [{atom_to_list(Name), fun() -> Test() end}
      || {Name, Test} <- [{circuit, fun a_circuit_to_no_neighbour_is_hidden/0},
                          {neighbour, fun a_circuit_to_a_neighbour_is_not/0},
                          {early, fun before_the_topology_has_asked_nothing_is/0},
                          {direct, fun what_has_a_link_is_not/0},
                          {visible, fun with_visible_circuits_nothing_is/0}]]}.

a_circuit_to_no_neighbour_is_hidden() ->
    ?assert(weft_next_hop:is_hidden(?NODE)).

a_circuit_to_a_neighbour_is_not() ->
    ok = weft_link_table:publish(?NODE, #{wanted => true}),
    ?assertNot(weft_next_hop:is_hidden(?NODE)).

%% Routes may be known sooner, if a neighbour dials.
before_the_topology_has_asked_nothing_is() ->
    ok = weft_view:put(?MODULE, has_asked, false),
    ?assertNot(weft_next_hop:is_hidden(?NODE)),
    ok = weft_view:delete(?MODULE, has_asked),
    ?assertNot(weft_next_hop:is_hidden(?NODE)).

what_has_a_link_is_not() ->
    ok = weft_link_table:publish(?NODE, #{lane => lane, neighbour => true}),
    ?assertNot(weft_next_hop:is_hidden(?NODE)).

with_visible_circuits_nothing_is() ->
    ok = application:set_env(weft, circuits, visible),
    ?assertNot(weft_next_hop:is_hidden(?NODE)).

%% A partial topology that has asked, and a route to the node over another one.
tables() ->
    ok = weft_link_table:new(),
    ok = weft_link_table:enter(?NODE, self()),
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, Key, Value)
     || {Key, Value} <- [{partial, true}, {has_asked, true}, {{route, ?NODE}, {gateway@h, 1, 2}}]].

cleared(_) ->
    ok = application:unset_env(weft, circuits),
    ok = weft_view:clear(?MODULE),
    true = ets:delete(weft_links).
