%% SPDX-License-Identifier: Apache-2.0
%% @doc Who says that a stream has ended is believed if it can know.
-module(weft_stream_end_tests).

-include_lib("eunit/include/eunit.hrl").

-define(END, weft_stream_end).
-define(PEER, peer@host).

%% --- what links say ---------------------------------------------------------------------------

the_peer_may_end_it_on_any_path_test() ->
    [?assertEqual({Reason, {ended, Reason}}, {Reason, closed(Link, Label, Reason, Known)})
     || Reason <- [ended, gone, refused, timed_out], {Link, Label} <- [{link, 1}, {other, any}],
        Known <- [on_path(), lost()]].

a_lost_path_ends_nothing_test() ->
    [?assertEqual({path_lost, Reason, lives}, closed(link, Label, Reason, on_path()))
     || Reason <- [broken, overload, no_route], Label <- [1, any]].

the_news_of_an_end_may_come_before_the_path_is_lost_test() ->
    ?assertEqual({path_lost, broken, died},
                 ?END:heard({closed, link, 1, broken, about(#{has_died => true})}, on_path())).

what_is_said_of_another_path_is_nothing_test() ->
    ?assertEqual([nothing, nothing],
                 [closed(Link, Label, broken, on_path()) || {Link, Label} <- [{link, 3},
                                                                              {other, 1}]]).

who_has_left_a_neighbour_may_be_reached_by_another_test() ->
    ?assertEqual(nothing, closed(link, any, departed, on_path())),
    ?assertEqual({ended, departed}, closed(link, any, departed, lost())).

a_refusal_is_the_end_of_the_attempt_that_it_concerns_test() ->
    {ok, Asked, _} = weft_path_search:handle({link, open, {ok, link, true}}, search(new)),
    {ok, Search, _} = weft_path_search:handle({opening, link, 1}, Asked),
    New = (new())#{search := Search},
    ?assertEqual([{failed, refused, false}, nothing],
                 [closed(link, Label, refused, New) || Label <- [1, 3]]),
    ?assertEqual({failed, no_route, true},
                 ?END:heard({closed, link, 1, no_route, about(#{may_be_found => true})}, New)).

%% --- what is said of the peer's node ----------------------------------------------------------

another_life_that_answers_ends_what_was_with_an_earlier_one_test() ->
    [?assertEqual({ended, gone}, ?END:heard({restarted, 8}, Known))
     || Known <- [on_path(), lost()]],
    ?assertEqual(nothing, ?END:heard({restarted, 7}, on_path())),
    ?assertEqual(nothing, ?END:heard({restarted, 8}, new())).

the_end_of_its_own_life_of_the_peer_is_believed_without_a_path_test() ->
    ?assertEqual([nothing, {ended, died}, nothing],
                 [?END:heard({died, ?PEER, Incarnation}, lost()) || Incarnation <- [6, 7, 8]]),
    ?assertEqual(nothing, ?END:heard({died, ?PEER, 7}, on_path())).

who_may_have_departed_gets_time_to_return_test() ->
    ?assertEqual([nothing, {may_return, ?PEER}],
                 [?END:heard({departed, ?PEER, Incarnation, witness}, lost())
                  || Incarnation <- [6, 7]]),
    ?assertEqual(nothing, ?END:heard({departed, ?PEER, 7, witness}, on_path())).

who_has_not_returned_in_time_has_ended_it_test() ->
    ?assertEqual({ended, departed}, ?END:heard({return_is_due, 5, false}, lost())),
    ?assertEqual(nothing, ?END:heard({return_is_due, 5, true}, lost())),
    %% There was a path meanwhile.
    ?assertEqual(nothing, ?END:heard({return_is_due, 4, false}, lost())),
    ?assertEqual(nothing, ?END:heard({return_is_due, 5, false}, on_path())).

%% --- what is on this node ---------------------------------------------------------------------

without_what_it_needs_it_cannot_go_on_test() ->
    [?assertEqual({ended, input_died}, ?END:heard({without, input_died}, Known))
     || Known <- [on_path(), lost()]],
    ?assertEqual({failed, input_died, true}, ?END:heard({without, input_died}, new())).

what_concerns_the_search_says_nothing_about_the_end_test() ->
    [?assertEqual(nothing, ?END:heard(Event, Known))
     || Event <- [{retry, 1}, {give_up, 1}, {available, link}],
        Known <- [on_path(), lost(), new()]].

%% --- small parts ------------------------------------------------------------------------------

closed(Link, Label, Reason, Known) ->
    ?END:heard({closed, Link, Label, Reason, about(#{})}, Known).

about(About) ->
    maps:merge(#{has_died => false, may_be_found => false, resume_timeout_ms => auto,
                 net_ticktime_ms => 60000}, About).

on_path() ->
    #{established => true, incarnation => 7, path => {link, 1}, search => search(found)}.

lost() -> (on_path())#{path := none, search := search(lost)}.

new() -> #{established => false, incarnation => undefined, path => none, search => search(new)}.

search(new) -> weft_path_search:new(initiator);
search(found) -> element(1, weft_path_search:found(link, 1, search(new)));
search(lost) -> weft_path_search:lost(5, search(found)).
