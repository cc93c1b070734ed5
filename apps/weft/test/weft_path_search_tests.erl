%% SPDX-License-Identifier: Apache-2.0
%% @doc Who looks for a path asks again and again, but not at once, and knows when it is over.
-module(weft_path_search_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SEARCH, weft_path_search).
-define(OPEN_TIMEOUT_MS, 3000).
-define(AUTO, #{resume_timeout_ms => auto, net_ticktime_ms => 60000}).

%% --- who asks ---------------------------------------------------------------------------------

the_end_that_began_the_stream_asks_test() ->
    ?assertMatch({_, [{find_link, open}]}, ?SEARCH:first(0, ?SEARCH:new(initiator))).

the_end_that_was_reached_waits_test() ->
    ?assertMatch({_, []}, ?SEARCH:again(?AUTO, distribution, lost(found(?SEARCH:new(acceptor))))).

after_a_stop_nobody_asks_test() ->
    Stopped = ?SEARCH:stop(lost(found(?SEARCH:new(initiator)))),
    ?assertMatch({_, []}, ?SEARCH:again(?AUTO, distribution, Stopped)),
    ?assertMatch({_, []}, ?SEARCH:first(0, ?SEARCH:stop(?SEARCH:new(initiator)))).

%% --- an attempt -------------------------------------------------------------------------------

the_link_that_leads_to_the_peer_opens_a_circuit_test() ->
    ?assertMatch({ok, _, [{watch, link}, {open, link, new}, {after_ms, ?OPEN_TIMEOUT_MS, _}]},
                 ?SEARCH:handle({link, open, {ok, link, true}}, first())),
    ?assertMatch({ok, _, [{watch, link}, {open, link, resume}, {after_ms, ?OPEN_TIMEOUT_MS, _}]},
                 ?SEARCH:handle({link, open, {ok, link, true}}, lost())).

who_resumes_does_not_wait_long_for_a_link_that_is_down_test() ->
    Down = {link, open, {ok, link, false}},
    ?assertMatch({ok, _, [_, _, {after_ms, ?OPEN_TIMEOUT_MS, _}]}, ?SEARCH:handle(Down, first())),
    ?assertMatch({ok, _, [_, _, {after_ms, 10, _}]}, ?SEARCH:handle(Down, lost())).

an_attempt_without_an_answer_is_dropped_and_another_one_made_test() ->
    {ok, Waiting, [{after_ms, ?OPEN_TIMEOUT_MS, Timer}]} =
        ?SEARCH:handle({opening, link, 1}, asked(first())),
    ?assertMatch({ok, _, [{drop, link, 1}, {find_link, open}]}, ?SEARCH:handle(Timer, Waiting)).

%% By then another one was asked, or this one again. Nobody waits for that circuit.
a_label_that_is_named_late_is_dropped_test() ->
    Elsewhere = asked(other, asked(first())),
    ?assertEqual({ok, Elsewhere, [{drop, link, 1}]},
                 ?SEARCH:handle({opening, link, 1}, Elsewhere)),
    Found = found(asked(first())),
    ?assertEqual({ok, Found, [{drop, link, 1}]}, ?SEARCH:handle({opening, link, 1}, Found)),
    {ok, Twice, _} = ?SEARCH:handle({opening, link, 1}, asked(asked(first()))),
    ?assertMatch({ok, _, [{drop, link, 1}, {after_ms, _, _}]},
                 ?SEARCH:handle({opening, link, 3}, Twice)).

%% The link that it had asked first was down. Meanwhile it has begun over another one, with an
%% incarnation of the peer that may be over: who begins again would be served by the next one.
who_has_begun_elsewhere_does_not_begin_when_the_first_link_comes_up_test() ->
    Waiting = asked(link, false, first()),
    ?assertMatch({ok, _, [{find_link, open}]}, ?SEARCH:handle({up, link}, Waiting)),
    Found = found(other, 0, asked(other, Waiting)),
    ?assertEqual({ok, Found, [{find_link, {move, link}}]}, ?SEARCH:handle({up, link}, Found)),
    ?assertMatch({ok, _, [_, {open, link, resume}, _]},
                 ?SEARCH:handle({link, open, {ok, link, true}}, lost(Found))).

%% The path is lost again and again. The first time, attempts without an answer are made until one
%% has the time of a round trip, which takes a multiple of that. From then on it is known.
however_long_the_round_trip_is_a_path_is_found_test() ->
    [begin
         {FirstMs, Known} = looked_for(TripMs, first()),
         ?assert(FirstMs =< 3 * TripMs + 2 * ?OPEN_TIMEOUT_MS),
         ?assertMatch({TripMs, _}, looked_for(TripMs, lost(Known))),
         {_, Again} = looked_for(TripMs, lost(Known)),
         ?assertMatch({TripMs, _}, looked_for(TripMs, lost(Again)))
     end || TripMs <- lists:seq(1, 20000, 97)].

%% A long wait is for a long way: where a path is found at once, the next attempt does not wait.
a_shorter_round_trip_is_noticed_test() ->
    {_, Far} = looked_for(10000, first()),
    {10, Near} = looked_for(10, lost(Far)),
    ?assertMatch({ok, _, [{after_ms, ?OPEN_TIMEOUT_MS, _}]},
                 ?SEARCH:handle({opening, link, 1}, asked(lost(Near)))).

%% Nobody answers at all.
the_time_for_an_answer_is_bounded_test() ->
    {Waits, _} = lists:mapfoldl(fun(Label, Search) ->
                                        {ok, Waiting, [{after_ms, Ms, Timer}]} =
                                            ?SEARCH:handle({opening, link, Label}, asked(Search)),
                                        {ok, Asked, _} = ?SEARCH:handle(Timer, Waiting),
                                        {Ms, Asked}
                                end, lost(), [1, 3, 5, 7, 9, 11]),
    ?assertEqual([3000, 3000, 6000, 12000, 24000, 24000], Waits).

%% How long it takes until an attempt is answered before it is given up, which began with 0.
looked_for(TripMs, Search) -> looked_for(0, 1, TripMs, Search).

looked_for(NowMs, Attempt, TripMs, Search) when Attempt =< 10 ->
    {ok, Waiting, [{after_ms, Ms, Timer}]} =
        ?SEARCH:handle({opening, link, Attempt}, asked(Search)),
    case Ms > TripMs of
        true ->
            {NowMs + TripMs, found(1000 * (NowMs + TripMs), Waiting)};
        false ->
            {ok, Asked, [{drop, link, Attempt}, {find_link, open}]} =
                ?SEARCH:handle(Timer, Waiting),
            looked_for(NowMs + Ms, Attempt + 1, TripMs, Asked)
    end.

only_the_last_timer_counts_test() ->
    {ok, Opened, [_, _, {after_ms, _, Earlier}]} =
        ?SEARCH:handle({link, open, {ok, link, true}}, first()),
    {ok, Waiting, _} = ?SEARCH:handle({opening, link, 1}, Opened),
    ?assertEqual({ok, Waiting, []}, ?SEARCH:handle(Earlier, Waiting)).

an_answer_concerns_the_present_attempt_only_test() ->
    {ok, Second, _} = ?SEARCH:handle({opening, link, 3}, asked(first())),
    ?assertEqual([true, true, false, false, false],
                 [?SEARCH:concerns(Link, Label, Second)
                  || {Link, Label} <- [{link, 3}, {link, any}, {link, 1}, {other, 3},
                                       {other, any}]]).

%% The link has not said yet what label it is.
before_there_is_a_label_the_answer_has_none_test() ->
    ?assertEqual([true, false, false],
                 [?SEARCH:concerns(Link, Label, asked(first()))
                  || {Link, Label} <- [{link, any}, {link, 1}, {other, any}]]).

%% --- refusals ---------------------------------------------------------------------------------

who_waits_for_the_first_path_is_told_what_does_not_pass_test() ->
    [?assertMatch({{failed, Reason}, _, []}, ?SEARCH:failed(Reason, true, 0, first()))
     || Reason <- [gone, refused, departed, {dial, econnrefused}]].

what_passes_is_tried_again_after_a_pause_test() ->
    [?assertMatch({ok, _, [{after_ms, 10, _}]}, ?SEARCH:failed(Reason, true, 0, first()))
     || Reason <- [broken, {dial, simultaneous}, {dial, overload}, {link_process, killed}]].

a_route_that_may_turn_up_is_waited_for_a_moment_test() ->
    LimitUs = 1000 * ?SEARCH:route_timeout_ms(),
    ?assertMatch({ok, _, _}, ?SEARCH:failed(no_route, true, LimitUs - 1, first())),
    ?assertMatch({{failed, no_route}, _, _}, ?SEARCH:failed(no_route, true, LimitUs, first())),
    ?assertMatch({{failed, no_route}, _, _}, ?SEARCH:failed(no_route, false, 0, first())).

after_a_path_was_lost_no_refusal_ends_the_search_test() ->
    [?assertMatch({ok, _, [{after_ms, 10, _}]}, ?SEARCH:failed(Reason, false, 0, lost()))
     || Reason <- [gone, refused, no_route, {dial, econnrefused}]].

%% As where too much waits at a gateway, or too many circuits pass it.
an_overload_that_may_pass_is_waited_for_a_moment_test() ->
    LimitUs = 1000 * ?SEARCH:route_timeout_ms(),
    ?assertMatch({ok, _, [{after_ms, 10, _}]},
                 ?SEARCH:failed(overload, true, LimitUs - 1, first())),
    ?assertMatch({{failed, overload}, _, []}, ?SEARCH:failed(overload, true, LimitUs, first())).

without_a_link_the_first_failure_is_said_as_soon_as_somebody_waits_test() ->
    NoLink = {link, open, {error, no_route}},
    ?assertMatch({ok, _, [{again, no_route}]}, ?SEARCH:handle(NoLink, first())),
    ?assertMatch({ok, _, [{after_ms, 10, _}]}, ?SEARCH:handle(NoLink, lost())).

pauses_become_longer_until_a_path_is_found_test() ->
    {Pauses, Search} = lists:mapfoldl(fun(_, Search0) ->
                                          {ok, Search1, [{after_ms, Ms, _}]} =
                                              ?SEARCH:failed(broken, true, 0, Search0),
                                          {Ms, Search1}
                                      end, lost(), lists:seq(1, 7)),
    ?assertEqual([10, 20, 40, 80, 160, 250, 250], Pauses),
    ?assertMatch({ok, _, [{after_ms, 10, _}]},
                 ?SEARCH:failed(broken, true, 0, lost(found(Search)))).

%% --- a path, and a better one -----------------------------------------------------------------

timers_of_a_search_that_has_found_a_path_are_nothing_test() ->
    {Search, Effects} = ?SEARCH:again(?AUTO, {channel, <<"c">>, 0}, lost()),
    {ok, Paused, More} = ?SEARCH:failed(broken, true, 0, Search),
    Timers = [Timer || {after_ms, _, Timer} <- Effects ++ More],
    ?assertMatch([{give_up, _}, {retry, _}], Timers),
    Found = found(Paused),
    [?assertEqual({ok, Now, []}, ?SEARCH:handle(Timer, Now))
     || Timer <- Timers, Now <- [Found, lost(Found)]].

a_better_path_is_asked_for_where_there_is_one_test() ->
    Found = found(first()),
    {ok, Found, [{find_link, Move}]} = ?SEARCH:handle({available, other}, Found),
    ?assertMatch({ok, _, [{find_link, open}]},
                 ?SEARCH:handle({link, Move, {ok, other, true}}, Found)),
    [?assertEqual({ok, Found, []}, ?SEARCH:handle({link, Move, Answer}, Found))
     || Answer <- [{ok, other, false}, {ok, link, true}, {error, no_route}]],
    [?assertEqual({ok, Search, []}, ?SEARCH:handle({available, Link}, Search))
     || {Link, Search} <- [{link, Found}, {other, lost(Found)}, {other, first()},
                           {other, found(?SEARCH:new(acceptor))}]].

%% The news that it has come up may have been too early, when there was no path yet.
who_asks_looks_at_the_link_to_the_peer_when_there_is_a_path_test() ->
    [?assertMatch({_, [find_direct]}, ?SEARCH:found(link, 0, Search))
     || Search <- [first(), lost(), found(first())]],
    [?assertMatch({_, []}, ?SEARCH:found(link, 0, Search))
     || Search <- [?SEARCH:new(acceptor), ?SEARCH:stop(lost())]].

%% The path that there is goes on.
a_better_path_that_is_not_found_is_not_looked_for_again_test() ->
    {ok, Asked, [{open, other, resume}, {after_ms, _, Timer}]} =
        ?SEARCH:handle({link, open, {ok, other, true}}, found(first())),
    ?assertEqual({ok, Asked, []}, ?SEARCH:handle(Timer, Asked)).

it_is_known_how_long_a_search_took_test() ->
    ?assertEqual(undefined, ?SEARCH:last_ms(found(7000, first()))),
    Lost = ?SEARCH:lost(10000, found(7000, first())),
    ?assertEqual(5, ?SEARCH:last_ms(found(15999, Lost))).

%% --- giving up --------------------------------------------------------------------------------

the_ticks_of_the_kernel_decide_about_a_connection_test() ->
    ?assertMatch({_, [{find_link, open}]}, ?SEARCH:again(?AUTO, distribution, lost())).

a_channel_is_given_up_after_the_time_of_the_ticks_test() ->
    ?assertMatch({_, [{after_ms, 60000, {give_up, _}}, {find_link, open}]},
                 ?SEARCH:again(?AUTO, {channel, <<"c">>, 0}, lost())).

a_time_that_was_set_takes_the_place_of_the_ticks_test() ->
    {Search, [{keep_alive, true}, {after_ms, 5, Timer}, {find_link, open}]} =
        ?SEARCH:again(?AUTO#{resume_timeout_ms := 5}, distribution, lost()),
    ?assertMatch({ended, _, []}, ?SEARCH:handle(Timer, Search)).

who_has_left_may_return_within_the_same_search_test() ->
    Lost = ?SEARCH:lost(7, found(first())),
    ?assertMatch([{after_ms, 500, {return_is_due, peer, 7}}], ?SEARCH:await_return(peer, Lost)),
    ?assertEqual([true, false, false],
                 [?SEARCH:is_lost_since(7, Search)
                  || Search <- [Lost, found(Lost), ?SEARCH:lost(8, found(Lost))]]).

%% It ended with the time of the last search.
a_search_of_an_earlier_version_goes_on_test() ->
    Now = lost(),
    Before = list_to_tuple(lists:sublist(tuple_to_list(Now), 9)),
    ?assertEqual([Now, Now], [?SEARCH:code_change(Search) || Search <- [Before, Now]]).

%% --- whatever happens -------------------------------------------------------------------------

%% Nobody waits for ever: while the search goes on, its last timer makes another attempt. Attempts
%% that are replaced are dropped, so that there is one at a time. Who had a path never begins again.
who_looks_for_a_path_asks_again_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_asks_again(), [{numtests, 3000}, quiet]))}.

prop_asks_again() ->
    ?FORALL(Steps, list(step()),
            begin
                {Model, _} = lists:foldl(fun checked/2, begun(), Steps),
                is_map(Model)
            end).

step() ->
    oneof([{link(), leads}, {link(), goes_up}, {link(), goes_down}, {link(), opening},
           {link(), accepted}, {link(), refused}, {link(), lost}, retry, earlier_retry]).

link() -> oneof([a, b]).

%% What is known of the search: is there a path, was there ever one, and which labels do links have.
%% Which link leads to the peer, and which ones are up. Those that were asked and have not named a
%% label yet, as often as they were asked, and those that are to say when they come up.
begun() ->
    said(?SEARCH:first(0, ?SEARCH:new(initiator)),
         #{path => none, had_path => false, labels => [], next => 1, retry => none, leads => a,
           up => [a], asked => [], waiting => []}).

checked(Step, State0) ->
    {#{path := Path, labels := Labels} = Model, Search} = taken(Step, State0),
    true = length(Labels) =< 1,
    case Path of
        none ->
            {ok, _, Effects} = ?SEARCH:handle(maps:get(retry, Model), Search),
            true = lists:member({find_link, open}, Effects);
        _ ->
            ok
    end,
    {Model, Search}.

taken({Link, leads}, {Model, Search}) ->
    {Model#{leads := Link}, Search};
taken({Link, goes_up}, {#{up := Up, waiting := Waiting} = Model, Search}) ->
    Event = case lists:member(Link, Waiting) of true -> up; false -> available end,
    said(?SEARCH:handle({Event, Link}, Search),
         Model#{up := [Link | Up], waiting := lists:delete(Link, Waiting)});
taken({Link, goes_down}, {#{labels := []} = Model, Search}) ->
    {went_down(Link, Model), Search};
taken({Link, opening}, {#{asked := Asked, labels := Labels, next := Label} = Model, Search}) ->
    case lists:member(Link, Asked) of
        true -> said(?SEARCH:handle({opening, Link, Label}, Search),
                     Model#{asked := lists:delete(Link, Asked), next := Label + 1,
                            labels := [{Link, Label} | Labels]});
        false -> {Model, Search}
    end;
taken({Link, accepted}, {#{labels := [{Of, Label}]} = Model, Search}) ->
    ?assertEqual(Link =:= Of, ?SEARCH:concerns(Link, Label, Search)),
    case Link of
        Of -> said(?SEARCH:found(Link, 0, Search),
                   Model#{path := Link, had_path := true, labels := []});
        _ -> {Model, Search}
    end;
taken({Link, refused}, {#{path := none, labels := [{Link, Label}]} = Model, Search}) ->
    ?assert(?SEARCH:concerns(Link, Label, Search)),
    ?assert(?SEARCH:concerns(Link, any, Search)),
    said(?SEARCH:failed(broken, true, 0, Search), Model#{labels := []});
taken({Link, lost}, {#{path := Link} = Model, Search}) ->
    said(?SEARCH:again(?AUTO, distribution, ?SEARCH:lost(0, Search)), Model#{path := none});
taken(retry, {#{retry := {retry, _} = Timer} = Model, Search}) ->
    said(?SEARCH:handle(Timer, Search), Model);
taken(earlier_retry, {#{retry := {retry, Token}} = Model, Search}) ->
    said(?SEARCH:handle({retry, Token - 1}, Search), Model);
taken(_Step, State) ->
    State.

%% What it was asked for at the last moment waits, too.
went_down(Link, #{up := Up, asked := Asked, waiting := Waiting} = Model) ->
    {Late, Others} = lists:partition(fun(Of) -> Of =:= Link end, Asked),
    Model#{up := lists:delete(Link, Up), asked := Others,
           waiting := lists:usort(Late ++ Waiting)}.

said({ok, Search, Effects}, Model) -> said({Search, Effects}, Model);
said({Search, Effects}, Model) -> lists:foldl(fun carry_out/2, {Model, Search}, Effects).

carry_out({find_link, What}, {#{leads := Link, up := Up} = Model, Search}) ->
    said(?SEARCH:handle({link, What, {ok, Link, lists:member(Link, Up)}}, Search), Model);
carry_out({open, Link, Mode}, {#{up := Up, asked := Asked, waiting := Waiting} = Model, Search}) ->
    ?assertEqual(maps:get(had_path, Model), Mode =:= resume),
    {case lists:member(Link, Up) of
         true -> Model#{asked := [Link | Asked]};
         false -> Model#{waiting := lists:usort([Link | Waiting])}
     end, Search};
carry_out({drop, Link, Label}, {#{labels := Labels} = Model, Search}) ->
    true = lists:member({Link, Label}, Labels),
    {Model#{labels := lists:delete({Link, Label}, Labels)}, Search};
carry_out({after_ms, _, {retry, _} = Timer}, {Model, Search}) ->
    {Model#{retry := Timer}, Search};
carry_out(_Watch, State) ->
    State.

%% --- small parts ------------------------------------------------------------------------------

first() ->
    {Search, _} = ?SEARCH:first(0, ?SEARCH:new(initiator)),
    Search.

asked(Search) -> asked(link, Search).

asked(Link, Search) -> asked(Link, true, Search).

asked(Link, IsUp, Search) ->
    {ok, Asked, _} = ?SEARCH:handle({link, open, {ok, Link, IsUp}}, Search),
    Asked.

found(Search) -> found(0, Search).

found(NowUs, Search) -> found(link, NowUs, Search).

found(Link, NowUs, Search0) ->
    {Search, _} = ?SEARCH:found(Link, NowUs, Search0),
    Search.

lost() -> lost(found(first())).

lost(Search) -> ?SEARCH:lost(0, Search).
