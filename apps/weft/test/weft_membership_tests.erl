%% SPDX-License-Identifier: Apache-2.0
%% @doc Gossip about members among a few nodes, message by message: what becomes of a node that has
%% left. That all nodes agree in whole clusters is tested in the simulator.
-module(weft_membership_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(NEW, 'new@host').
-define(GONE, 'gone@host').
-define(KEPT_MS, 1000).

%% The nodes look for what is too old one after the other, as their timers fire.
all_forget_a_node_that_left_long_ago_test() ->
    Before = rounds(0, ?KEPT_MS div 2, one_has_left()),
    ?assertEqual([{ok, {1, left}}, {ok, {1, left}}], [known(Node, Before) || Node <- [?A, ?B]]),
    After = rounds(?KEPT_MS + 1, 3 * ?KEPT_MS, Before),
    ?assertEqual([error, error], [known(Node, After) || Node <- [?A, ?B]]).

%% Nobody gets it back from a node that was told later than all others.
a_node_that_comes_is_told_who_has_left_and_does_not_tell_it_again_test() ->
    Joined = linked(?NEW, ?A, 500, (one_has_left())#{?NEW => member(?NEW)}),
    ?assertEqual({ok, {1, left}}, known(?NEW, Joined)),
    Stale = said(?NEW, {delta, [{?GONE, 1, member}]}, 600, Joined),
    ?assertEqual({ok, {1, left}}, known(?NEW, Stale)),
    Forgotten = rounds(?KEPT_MS + 1, ?KEPT_MS + 400, maps:remove(?NEW, Stale)),
    Again = linked(?NEW, ?A, ?KEPT_MS + 401, Forgotten#{?NEW => map_get(?NEW, Stale)}),
    ?assertEqual([error, error, {ok, {1, left}}],
                 [known(Node, Again) || Node <- [?A, ?B, ?NEW]]).

%% The news that a node has left was lost on its way to one of the others.
who_still_takes_it_for_a_member_hears_of_it_test() ->
    Nodes = said(?B, {delta, [{?GONE, 1, member}]}, 0, linked(?A, ?B, 0, nodes_of([?A, ?B]))),
    Left = said_to_one(?A, {delta, [{?GONE, 1, left}]}, 0, Nodes),
    ?assertEqual({ok, {1, member}}, known(?B, Left)),
    ?assertEqual({ok, {1, left}}, known(?B, rounds(10, 10, Left))).

%% --- nodes and messages -----------------------------------------------------------------------

one_has_left() ->
    Joined = said(?A, {delta, [{?GONE, 1, member}]}, 0, linked(?A, ?B, 0, nodes_of([?A, ?B]))),
    ?assertEqual({ok, {1, member}}, known(?B, Joined)),
    said(?A, {delta, [{?GONE, 1, left}]}, 0, Joined).

nodes_of(Names) -> maps:from_list([{Name, member(Name)} || Name <- Names]).

member(Name) ->
    {Membership, _} = weft_membership:new(Name, #{kind => member, version => v, salt => ?MODULE},
                                          #{incarnation => 1, tombstone_ms => ?KEPT_MS}),
    Membership.

known(Node, Nodes) ->
    weft_member_table:get(?GONE, weft_membership:table(map_get(Node, Nodes))).

%% A link comes up, at both ends.
linked(One, Other, NowMs, Nodes) ->
    event(Other, {neighbour_up, One}, NowMs, event(One, {neighbour_up, Other}, NowMs, Nodes)).

%% Each node compares with another one, ten times in the time of a tombstone.
rounds(FromMs, ToMs, Nodes) ->
    lists:foldl(fun(Ms, All) ->
                        lists:foldl(fun({Nth, Node}, Some) ->
                                            event(Node, {timer, digest}, Ms + Nth, Some)
                                    end, All, numbered(lists:sort(maps:keys(All))))
                end, Nodes, lists:seq(FromMs, ToMs, ?KEPT_MS div 10)).

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

said(To, What, NowMs, Nodes) ->
    event(To, {message, ?GONE, {v, What}}, NowMs, Nodes).

%% What it would pass on is lost.
said_to_one(To, What, NowMs, Nodes) ->
    #{To := Membership} = event(To, {message, ?GONE, {v, What}}, NowMs, maps:with([To], Nodes)),
    Nodes#{To := Membership}.

%% Messages arrive at once; those to others are lost.
event(Node, Event, NowMs, Nodes) ->
    Others = lists:delete(Node, lists:sort(maps:keys(Nodes))),
    {_Changes, Effects, Membership} =
        weft_membership:handle(Event, #{linked => Others, listeners => Others}, NowMs,
                               map_get(Node, Nodes)),
    lists:foldl(fun({send, To, Message}, All) when is_map_key(To, All) ->
                        event(To, {message, Node, Message}, NowMs, All);
                   (_Effect, All) ->
                        All
                end, Nodes#{Node := Membership}, Effects).
