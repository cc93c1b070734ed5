%% SPDX-License-Identifier: Apache-2.0
%% @doc A proposal of groups: who is in which, by whom they are joined, and the words.
-module(weft_group_proposal_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LEFT, ['a@h', 'b@h', 'c@h', 'd@h']).
-define(RIGHT, ['e@h', 'f@h', 'g@h', 'h@h']).

communities_become_groups_that_share_two_gateways_test() ->
    #{groups := Groups, links := Links, modularity := Q} =
        weft_group_proposal:make(maps:merge(talk(), #{{'b@h', 'f@h'} => 3000,
                                                      {'c@h', 'f@h'} => 10})),
    ?assertEqual(#{group1 => ?LEFT ++ ['f@h'], group2 => ['b@h' | ?RIGHT]}, Groups),
    %% All pairs of eight, and of two groups of five with one pair in common.
    ?assertEqual(#{full_mesh => 28, proposed => 19}, Links),
    ?assert(Q > 0.45).

groups_that_never_talk_to_each_other_are_joined_all_the_same_test() ->
    #{groups := #{group1 := Nodes1, group2 := Nodes2}} = weft_group_proposal:make(talk()),
    ?assertEqual(2, length([Node || Node <- Nodes1, lists:member(Node, Nodes2)])).

it_says_why_test() ->
    #{why := [Left, Right, Joint]} = weft_group_proposal:make((talk())#{{'b@h', 'f@h'} => 3000}),
    ?assertEqual("group1: a@h, b@h, c@h, d@h. 100 % of what they send and get stays among them "
                 "(6.0 MB of 6.0 MB)", Left),
    ?assertNotEqual(nomatch, string:find(Right, "group2: e@h")),
    ?assertEqual("group1 and group2 share the gateways b@h and f@h: on each side the node that "
                 "exchanges most with the other side (3.0 kB between the groups)", Joint).

%% Of what is rounded to a thousand, too.
bytes_have_a_unit_that_fits_test() ->
    [begin
         #{why := Why} = weft_group_proposal:make((talk())#{{'b@h', 'f@h'} => Bytes}),
         ?assertNotEqual(nomatch, string:find(lists:last(Why), "(" ++ Text ++ " between"))
     end || {Bytes, Text} <- [{999, "999 bytes"}, {999.6, "1.0 kB"}, {999900, "999.9 kB"},
                              {999960, "1.0 MB"}]].

it_says_that_there_is_nothing_to_gain_test() ->
    #{groups := Groups, why := Why, links := Links} = weft_group_proposal:make(clique(?LEFT)),
    ?assertEqual(#{group1 => ?LEFT}, Groups),
    ?assertEqual(#{full_mesh => 6, proposed => 6}, Links),
    ?assertNotEqual(nomatch, string:find(lists:last(Why), "save nothing")),
    ?assertMatch(#{groups := None, why := []} when None =:= #{}, weft_group_proposal:make(#{})).

talk() -> maps:merge(clique(?LEFT), clique(?RIGHT)).

clique(Nodes) ->
    maps:from_list([{{A, B}, 1000000} || A <- Nodes, B <- Nodes, A < B]).
