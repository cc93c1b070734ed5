%% SPDX-License-Identifier: Apache-2.0
%% @doc A node that has left: nothing makes it dial, or take somebody for a neighbour or a member.
-module(weft_alone_core_tests).

-include_lib("eunit/include/eunit.hrl").

it_is_the_only_member_and_wants_nobody_test() ->
    {State, Effects} = weft_alone_core:init('a@host', #{known => ['b@host']}),
    ?assertEqual([{view, {member, 'a@host'}, left}], Effects),
    ?assertEqual([], weft_alone_core:neighbours(State)),
    [?assertEqual({Event, {State, Expected}}, {Event, weft_alone_core:handle(Event, 1, State)})
     || {Event, Expected} <- [{{neighbour_up, 'b@host'}, [{neighbour, 'b@host', false}]},
                              {{neighbour_down, 'b@host', closed}, []},
                              {{message, 'b@host', {{full_mesh, 1}, {pull, []}}}, []},
                              {{notice, {seeds, ['b@host']}}, []},
                              {{timer, late}, []},
                              {{command, ref, leave}, [{reply, ref, ok}]},
                              {{command, ref, {forget, 'b@host'}},
                               [{reply, ref, {error, unknown_member}}]}]].

it_cannot_be_configured_test() ->
    {error, Text} = weft_topology:parse({weft_alone_core, #{}}),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), "no topology")).
