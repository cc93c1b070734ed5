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
        ?SEARCH:handle({opening, link, 1}, first()),
    ?assertMatch({ok, _, [{drop, link, 1}, {find_link, open}]}, ?SEARCH:handle(Timer, Waiting)).

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
                 ?SEARCH:handle({opening, link, 1}, lost(Near))).

%% Nobody answers at all.
the_time_for_an_answer_is_bounded_test() ->
    {Waits, _} = lists:mapfoldl(fun(Label, Search) ->
                                        {ok, Waiting, [{after_ms, Ms, Timer}]} =
                                            ?SEARCH:handle({opening, link, Label}, Search),
                                        {ok, Asked, _} = ?SEARCH:handle(Timer, Waiting),
                                        {Ms, Asked}
                                end, lost(), [1, 3, 5, 7, 9, 11]),
    ?assertEqual([3000, 3000, 6000, 12000, 24000, 24000], Waits).

%% How long it takes until an attempt is answered before it is given up, which began with 0.
looked_for(TripMs, Search) -> looked_for(0, 1, TripMs, Search).

looked_for(NowMs, Attempt, TripMs, Search) when Attempt =< 10 ->
    {ok, Waiting, [{after_ms, Ms, Timer}]} = ?SEARCH:handle({opening, link, Attempt}, Search),
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
    {ok, Second, _} = ?SEARCH:handle({opening, link, 3}, first()),
    ?assertEqual([true, true, false, false, false],
                 [?SEARCH:concerns(Link, Label, Second)
                  || {Link, Label} <- [{link, 3}, {link, any}, {link, 1}, {other, 3},
                                       {other, any}]]).

%% The link has not said yet what label it is.
before_there_is_a_label_the_answer_has_none_test() ->
    ?assertEqual([true, false], [?SEARCH:concerns(link, Label, first()) || Label <- [any, 1]]).

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
%% that are replaced are dropped, so that there is one at a time.
who_looks_for_a_path_asks_again_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_asks_again(), [{numtests, 2000}, quiet]))}.

prop_asks_again() ->
    ?FORALL(Steps, list(step()),
            begin
                {Model, _} = lists:foldl(fun checked/2, begun(), Steps),
                is_map(Model)
            end).

step() ->
    oneof([{link(), opening}, {link(), accepted}, {link(), refused}, {link(), available},
           {link(), lost}, retry, earlier_retry]).

link() -> oneof([a, b]).

%% What is known of the search: is there a path, and which labels do links have.
begun() ->
    said(?SEARCH:first(0, ?SEARCH:new(initiator)),
         #{path => none, labels => [], next => 1, retry => none}).

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

taken({Link, opening}, {#{labels := [], next := Label} = Model, Search}) ->
    said(?SEARCH:handle({opening, Link, Label}, Search),
         Model#{labels := [{Link, Label}], next := Label + 1});
taken({Link, accepted}, {#{labels := [{Of, Label}]} = Model, Search}) ->
    ?assertEqual(Link =:= Of, ?SEARCH:concerns(Link, Label, Search)),
    case Link of
        Of -> said(?SEARCH:found(Link, 0, Search), Model#{path := Link, labels := []});
        _ -> {Model, Search}
    end;
taken({Link, refused}, {#{path := Path, labels := Labels} = Model, Search}) ->
    case ?SEARCH:concerns(Link, any, Search) of
        true when Path =:= none -> said(?SEARCH:failed(broken, true, 0, Search),
                                        Model#{labels := []});
        IsAbout -> ?assertEqual(IsAbout, Labels =:= [] orelse lists:keymember(Link, 1, Labels)),
                   {Model, Search}
    end;
taken({Link, available}, {Model, Search}) ->
    said(?SEARCH:handle({available, Link}, Search), Model);
taken({Link, lost}, {#{path := Link} = Model, Search}) ->
    said(?SEARCH:again(?AUTO, distribution, ?SEARCH:lost(0, Search)), Model#{path := none});
taken(retry, {#{retry := {retry, _} = Timer} = Model, Search}) ->
    said(?SEARCH:handle(Timer, Search), Model);
taken(earlier_retry, {#{retry := {retry, Token}} = Model, Search}) ->
    said(?SEARCH:handle({retry, Token - 1}, Search), Model);
taken(_Step, State) ->
    State.

said({ok, Search, Effects}, Model) -> said({Search, Effects}, Model);
said({Search, Effects}, Model) -> lists:foldl(fun carry_out/2, {Model, Search}, Effects).

%% There is a link at once, and it is up.
carry_out({find_link, open}, {Model, Search}) ->
    said(?SEARCH:handle({link, open, {ok, a, true}}, Search), Model);
carry_out({find_link, {move, Link}}, {Model, Search}) ->
    said(?SEARCH:handle({link, {move, Link}, {ok, Link, true}}, Search), Model);
carry_out({drop, Link, Label}, {#{labels := Labels} = Model, Search}) ->
    true = lists:member({Link, Label}, Labels),
    {Model#{labels := lists:delete({Link, Label}, Labels)}, Search};
carry_out({after_ms, _, {retry, _} = Timer}, {Model, Search}) ->
    {Model#{retry := Timer}, Search};
carry_out(_WatchOrOpen, State) ->
    State.

%% --- small parts ------------------------------------------------------------------------------

first() ->
    {Search, _} = ?SEARCH:first(0, ?SEARCH:new(initiator)),
    Search.

found(Search) -> found(0, Search).

found(NowUs, Search0) ->
    {Search, _} = ?SEARCH:found(link, NowUs, Search0),
    Search.

lost() -> lost(found(first())).

lost(Search) -> ?SEARCH:lost(0, Search).
