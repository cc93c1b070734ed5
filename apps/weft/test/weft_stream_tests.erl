%% SPDX-License-Identifier: Apache-2.0
%% @doc A stream as a value: what it writes to which lane after lanes and paths were lost, and whose
%% word ends it.
-module(weft_stream_tests).

-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of tunnelled lanes: what is written comes to the test as a message.
-export([room/1, try_send/2]).

-define(PEER, <<"peer@host">>).
-define(LABEL, 1).

streams_test_() ->
    {foreach, fun prepared/0, fun cleared/1,
     [{atom_to_list(Name), fun() -> Test() end}
      || {Name, Test} <- [{on_a_lost_lane, fun what_was_on_a_lost_lane_is_repeated/0},
                          {after_a_break, fun what_the_peer_lacks_is_repeated_after_a_break/0},
                          {in_order, fun what_is_repeated_goes_first/0},
                          {given_up, fun a_timer_of_an_earlier_break_is_nothing/0},
                          {over, fun a_session_without_a_path_is_given_up/0},
                          {news, fun news_of_another_incarnation_are_nothing/0},
                          {incarnation, fun another_incarnation_ends_those_of_an_earlier_one/0},
                          {began, fun who_answers_for_a_stream_is_who_began_it/0},
                          {with_a_path, fun news_are_nothing_where_there_is_a_path/0},
                          {unheard, fun an_acknowledgement_is_no_word_of_the_ticker/0},
                          {ticks, fun a_tick_counts_with_and_without_a_path/0},
                          {another_way, fun another_neighbour_is_counted/0},
                          {direct, fun a_link_that_came_up_during_an_attempt_is_taken/0},
                          {once, fun a_stream_is_accepted_once/0},
                          {at_rest, fun ticks_pass_by_a_stream_at_rest/0},
                          {in_use, fun a_stream_that_waits_is_not_at_rest/0},
                          {times, fun times_are_asked_for_where_the_way_is_long/0},
                          {moved, fun whatever_happens_ends_a_rest/0},
                          {before, fun a_stream_of_the_version_before_goes_on/0}]]}.

prepared() ->
    ok = weft_identity:init(true),
    ok = weft_sessions:new_table().

cleared(ok) ->
    ok = application:unset_env(weft, resume_timeout_ms),
    true = ets:delete(weft_sessions).

what_was_on_a_lost_lane_is_repeated() ->
    {Stream0, _} = pushed(3, stream([1, 2])),
    {ok, Stream} = weft_stream:handle({weft_path, lanes, self(), ?LABEL, [lane(2)]}, Stream0),
    ?assertEqual({[{2, 1}, {2, 2}, {2, 3}], #{repairs => 1, resumes => 0}}, repeated(Stream)).

what_the_peer_lacks_is_repeated_after_a_break() ->
    {Stream0, _} = pushed(3, stream([1])),
    {ok, Stream1} = weft_stream:handle({weft_ack, 1}, Stream0),
    {ok, Stream} = found_again(2, 1, broken(Stream1)),
    ?assertEqual({[{2, 2}, {2, 3}], #{repairs => 0, resumes => 1}}, repeated(Stream)).

what_is_repeated_goes_first() ->
    {Stream0, _} = pushed(3, stream([1])),
    {ok, Stream1} = found_again(2, 0, broken(Stream0)),
    {Stream, New} = pushed(1, Stream1),
    ?assertEqual([], New),
    ?assertMatch({[{2, 1}, {2, 2}, {2, 3}, {2, 4}], _}, repeated(Stream)).

a_timer_of_an_earlier_break_is_nothing() ->
    ok = application:set_env(weft, resume_timeout_ms, 1),
    Broken = broken(stream([1])),
    GiveUp = receive {weft_stream, {give_up, _}} = Message -> Message end,
    {ok, Found} = found_again(2, 0, Broken),
    ?assertMatch({ok, _}, weft_stream:handle(GiveUp, Found)),
    ok = application:set_env(weft, resume_timeout_ms, 60000),
    ?assertMatch({ok, _}, weft_stream:handle(GiveUp, broken(Found))).

a_session_without_a_path_is_given_up() ->
    ok = application:set_env(weft, resume_timeout_ms, 1),
    Broken = broken(stream([1])),
    receive
        {weft_stream, {give_up, _}} = GiveUp ->
            ?assertMatch({ended, _}, weft_stream:handle(GiveUp, Broken))
    end.

news_of_another_incarnation_are_nothing() ->
    {ok, Stream} = weft_stream:handle({weft_path, incarnation, 7}, stream([1])),
    Died = fun(Incarnation) ->
               {Outcome, _} = weft_stream:handle({weft_stream, {died, 'peer@host', Incarnation}},
                                                 broken(Stream)),
               Outcome
           end,
    ?assertEqual([ok, ended, ok], [Died(Incarnation) || Incarnation <- [6, 7, 8]]).

%% A link that comes up again reaches another incarnation of the peer. A stream may be with that one
%% by another way, or may not have begun; a peer of before may not say which incarnation it is.
another_incarnation_ends_those_of_an_earlier_one() ->
    Answers = fun(Stream) ->
                  {Outcome, _} = weft_stream:handle({weft_path, restarted, 7}, Stream),
                  Outcome
              end,
    With = fun(Incarnation) ->
               {ok, Stream} = weft_stream:handle({weft_path, incarnation, Incarnation},
                                                 stream([1])),
               Stream
           end,
    ?assertEqual([ended, ok, ended], [Answers(With(Incarnation)) || Incarnation <- [6, 7, 8]]),
    ?assertEqual([ended, ok], [Answers(broken(With(Incarnation))) || Incarnation <- [6, 7]]),
    ?assertEqual(ended, Answers(stream([1]))),
    ?assertEqual(ok, Answers(weft_stream:initiator(distribution, 'peer@host',
                                                   weft_session_counters:new(), self()))).

%% On whichever path it says so. A peer of before says nothing.
who_answers_for_a_stream_is_who_began_it() ->
    {ok, Begun} = weft_stream:handle({weft_path, incarnation, 7}, stream([1])),
    ?assertEqual([ok, ended, ended],
                 [element(1, weft_stream:handle({weft_path, incarnation, Now}, Begun))
                  || Now <- [7, 6, 8]]),
    ?assertMatch({ended, _}, weft_stream:handle({weft_path, incarnation, 8}, broken(Begun))),
    Asks = weft_stream:initiator(distribution, 'peer@host', weft_session_counters:new(), self()),
    {ok, Told} = weft_stream:handle({weft_path, incarnation, 7}, Asks),
    ?assertMatch({ok, _}, weft_stream:handle({weft_path, incarnation, 8}, Told)).

news_are_nothing_where_there_is_a_path() ->
    {ok, Stream} = weft_stream:handle({weft_path, incarnation, 7}, stream([1])),
    ?assertMatch({ok, _}, weft_stream:handle({weft_stream, {died, 'peer@host', 7}}, Stream)).

%% Its link answers, also where the node itself stands still.
an_acknowledgement_is_no_word_of_the_ticker() ->
    Counters = weft_session_counters:new(),
    {Stream, _} = pushed(1, stream([1], Counters)),
    {ok, Read, _, _} = weft_session_counters:getstat(Counters),
    {ok, _} = weft_stream:handle({weft_ack, 1}, Stream),
    ?assertMatch({ok, Read, _, _}, weft_session_counters:getstat(Counters)).

%% The ticker takes a tick for written: it would not send the next one otherwise.
a_tick_counts_with_and_without_a_path() ->
    Counters = weft_session_counters:new(),
    Stream = weft_stream:tick(stream([1], Counters)),
    ?assertMatch({ok, 0, 1, _}, weft_session_counters:getstat(Counters)),
    _ = weft_stream:tick(broken(Stream)),
    ?assertMatch({ok, 0, 2, _}, weft_session_counters:getstat(Counters)).

%% A link that has come up again is the same one; the neighbour stays if its process is another one.
another_neighbour_is_counted() ->
    ok = weft_link_table:new(),
    [A, B, C] = [spawn_link(fun() -> receive stop -> ok end end) || _ <- [a, b, c]],
    [ok = weft_link_table:enter(Key, Link) || {Key, Link} <- [{a@h, A}, {b@h, B}]],
    {ok, Stream0} = weft_stream:acceptor(distribution, crypto:strong_rand_bytes(16), ?PEER,
                                         {A, [lane(1)], ?LABEL}, weft_session_counters:new(),
                                         self()),
    Move = fun(Link, Stream) ->
               {ok, Moved} = weft_stream:handle({weft_path, reattached, Link, [lane(1)], 7, 0},
                                                Stream),
               Moved
           end,
    Reroutes = fun(Stream) -> maps:get(reroutes, weft_stream:info(Stream)) end,
    Stream1 = Move(A, Stream0),
    ?assertEqual(0, Reroutes(Stream1)),
    Stream2 = Move(B, Stream1),
    ?assertEqual(1, Reroutes(Stream2)),
    [_] = weft_link_table:take(b@h, B),
    ok = weft_link_table:enter(b@h, C),
    ?assertEqual(1, Reroutes(Move(C, Stream2))),
    [begin unlink(Link), exit(Link, kill) end || Link <- [A, B, C]],
    true = ets:delete(weft_links).

%% When the link said so, the stream had no path that could be replaced by a better one.
a_link_that_came_up_during_an_attempt_is_taken() ->
    ok = weft_link_table:new(),
    Gateway = link_to(gateway@h),
    Direct = link_to('peer@host'),
    Stream0 = weft_stream:initiator(distribution, 'peer@host', weft_session_counters:new(), self()),
    {ok, Asked} = weft_stream:handle({weft_path, link, open, {ok, Gateway, true}}, Stream0),
    receive {told, Gateway, {open, _, _, #{mode := new}}} -> ok
    after 30000 -> error(not_asked)
    end,
    {ok, Stream1} = weft_stream:handle({weft_path, opening, Gateway, ?LABEL}, Asked),
    {ok, Stream2} = weft_stream:handle({weft_path, available, Direct}, Stream1),
    ok = weft_link_table:publish('peer@host', #{lane => lane(1), neighbour => true}),
    {connected, Stream} = weft_stream:handle({weft_path, accepted, Gateway, [lane(2)], ?LABEL, 0},
                                             Stream2),
    ?assertMatch(#{link := Gateway}, weft_stream:info(Stream)),
    receive {told, Direct, {open, _, _, #{mode := resume}}} -> ok
    after 30000 -> error(not_opened)
    end,
    [begin unlink(Link), exit(Link, kill) end || Link <- [Gateway, Direct]],
    true = ets:delete(weft_links).

%% A process in the place of a link, which passes on what it is told.
link_to(Node) ->
    Test = self(),
    Link = spawn_link(fun() ->
                              receive {weft_handler, Message} -> Test ! {told, self(), Message} end,
                              receive stop -> ok end
                      end),
    ok = weft_link_table:enter(Node, Link),
    Link.

%% The peer opens it again when nothing has answered yet.
a_stream_is_accepted_once() ->
    Id = crypto:strong_rand_bytes(16),
    ?assertMatch({ok, _}, accepted(Id, [1], weft_session_counters:new())),
    ?assertEqual({error, taken}, accepted(Id, [2], weft_session_counters:new())),
    Self = self(),
    ?assertMatch({ok, Self, _Input, ?PEER}, weft_sessions:find(Id)).

%% Each counts as written, and after something else was written the stream itself is asked.
ticks_pass_by_a_stream_at_rest() ->
    Counters = weft_session_counters:new(),
    Stream0 = stream([1, 2], Counters),
    Tick = fun() -> weft_stream:tick_at_rest(self(), Counters) end,
    ?assertNot(Tick()),
    ?assert(weft_stream:rest(weft_stream:tick(Stream0))),
    ?assertEqual([{1, ?LABEL}], ticks()),
    ?assertEqual([true, true], [Tick(), Tick()]),
    ?assertEqual([{1, ?LABEL}, {1, ?LABEL}], ticks()),
    ?assertMatch({ok, _, 3, _}, weft_session_counters:getstat(Counters)),
    {Stream1, _} = pushed(1, Stream0),
    ?assertNot(Tick()),
    {ok, Stream} = weft_stream:handle({weft_ack, 1}, Stream1),
    ?assert(weft_stream:rest(Stream)),
    ?assert(Tick()).

a_stream_that_waits_is_not_at_rest() ->
    {Pushed, _} = pushed(1, stream([1])),
    Broken = broken(stream([1])),
    {ok, Found} = found_again(2, 0, broken(Pushed)),
    ?assertEqual([false, false, false], [weft_stream:rest(S) || S <- [Pushed, Broken, Found]]),
    %% A lane is reserved for what may overtake others, until it was not used for a while.
    Bypass = weft_stream:push({bypass, key, last}, [<<1>>], 1, stream([1, 2])),
    {ok, Acked} = weft_stream:handle({weft_ack, 1}, Bypass),
    Once = weft_stream:spare(Acked),
    ?assertEqual([false, false, true], [weft_stream:rest(S) || S <- [Acked, Once,
                                                                     weft_stream:spare(Once)]]).

%% On each lane, and once. They acknowledge as well as those without.
times_are_asked_for_where_the_way_is_long() ->
    {Stream0, _} = pushed(64, stream([1, 2])),
    ok = let_pass_us(1000),
    {ok, Stream1} = weft_stream:handle({weft_ack, 64}, Stream0),
    ?assertEqual([{1, ?LABEL}, {2, ?LABEL}], of_kind(times)),
    {Stream2, _} = pushed(64, Stream1),
    ok = let_pass_us(1000),
    {ok, Stream} = weft_stream:handle({weft_ack, 128, 7}, Stream2),
    ?assertEqual([], of_kind(times)),
    ?assertMatch(#{unacked_bytes := 0}, weft_stream:info(Stream)).

let_pass_us(Us) -> not_before(erlang:monotonic_time(microsecond) + Us).

not_before(AtUs) ->
    case erlang:monotonic_time(microsecond) of
        NowUs when NowUs < AtUs -> not_before(AtUs);
        _ -> ok
    end.

whatever_happens_ends_a_rest() ->
    Counters = weft_session_counters:new(),
    Rest = fun(Lanes) ->
               Stream = stream(Lanes, Counters),
               ?assert(weft_stream:rest(Stream)),
               Stream
           end,
    [begin
         _ = weft_stream:handle(Message, Rest([1, 2])),
         ?assertEqual({Message, false}, {Message, weft_stream:tick_at_rest(self(), Counters)})
     end || Message <- [{weft_path, closed, self(), any, broken},
                        {weft_path, lanes, self(), ?LABEL, [lane(2)]},
                        {weft_path, reattached, self(), [lane(2)], ?LABEL + 2, 0}]].

%% Its tables are gone before anybody hears of its end.
a_carrier_that_was_killed_ends_a_stream_test() ->
    ok = weft_identity:init(true),
    Carrier = carrier(),
    Stream = stream([1]),
    exit(Carrier, kill),
    Down = receive {'DOWN', _, process, Carrier, _} = Message -> Message end,
    ?assertMatch({ended, _}, weft_stream:handle(Down, Stream)).

carrier() ->
    Test = self(),
    Carrier = spawn(fun() ->
                        ok = weft_sessions:new_table(),
                        ok = weft_link_table:new(),
                        Test ! {tables, self()},
                        receive stop -> ok end
                    end),
    receive {tables, Carrier} -> Carrier end.

a_stream_of_the_version_before_goes_on() ->
    ok = application:set_env(weft, resume_timeout_ms, 1),
    {Pushed, _} = pushed(3, stream([1])),
    Found = weft_stream:code_change(weft_hot_load:before(Pushed, #{last_token => 3})),
    ?assertEqual(weft_stream:info(Pushed), weft_stream:info(Found)),
    ?assertEqual(Found, weft_stream:code_change(Found)),
    ?assertMatch({ok, _}, weft_stream:handle({weft_stream, {give_up, 3}}, Found)),
    Broken = broken(Found),
    ok = receive {weft_stream, {give_up, 4}} -> ok end,
    Lost = weft_stream:code_change(weft_hot_load:before(Broken, #{give_up => 4, lost_us => 7})),
    ?assertMatch({ended, _}, weft_stream:handle({weft_stream, {give_up, 4}}, Lost)),
    ?assertMatch({ended, _}, weft_stream:handle({weft_stream, {return_is_due, 'peer@host', 7}},
                                                Lost)),
    {ok, Resumed} = found_again(2, 1, Lost),
    ?assertMatch({[{2, 2}, {2, 3}], #{resumes := 1}}, repeated(Resumed)).

%% --- a stream and its lanes -------------------------------------------------------------------

stream(Lanes) -> stream(Lanes, weft_session_counters:new()).

stream(Lanes, Counters) ->
    {ok, Stream} = accepted(crypto:strong_rand_bytes(16), Lanes, Counters),
    _ = written(),
    Stream.

accepted(Id, Lanes, Counters) ->
    weft_stream:acceptor(distribution, Id, ?PEER, {self(), [lane(Index) || Index <- Lanes], ?LABEL},
                         Counters, self()).

%% The same lane whenever it is asked for.
lane(Index) ->
    case get({lane, Index}) of
        undefined ->
            Lane = weft_lane:new({tunnel, ?MODULE, {self(), Index}}, {<<>>, Index},
                                 {weft_fault_table, lateness, ['peer@host']}),
            put({lane, Index}, Lane),
            Lane;
        Lane -> Lane
    end.

broken(Stream0) ->
    {ok, Stream} = weft_stream:handle({weft_path, closed, self(), any, broken}, Stream0),
    Stream.

found_again(Index, Received, Stream) ->
    Found = weft_stream:handle({weft_path, reattached, self(), [lane(Index)], ?LABEL + 2, Received},
                               Stream),
    _ = written(),
    Found.

pushed(Count, Stream0) ->
    Stream = lists:foldl(fun(N, S) -> weft_stream:push(frames, [<<N>>], 1, S) end, Stream0,
                         lists:seq(1, Count)),
    {Stream, written()}.

repeated(Stream0) ->
    _ = written(),
    Stream = flushed(Stream0),
    {written(), maps:with([repairs, resumes], weft_stream:info(Stream))}.

flushed(Stream) ->
    case weft_stream:flush(Stream) of
        {ok, Next} -> flushed(Next);
        none -> Stream
    end.

%% The ticks that were written: on which lane, and under which label.
ticks() -> of_kind(tick).

of_kind(Kind) ->
    receive
        {wrote, Index, Packet} ->
            case weft_wire:decode(iolist_to_binary(Packet)) of
                {Kind, Label} -> [{Index, Label} | of_kind(Kind)];
                _ -> of_kind(Kind)
            end
    after 0 -> []
    end.

%% The payloads that were written: on which lane, and their numbers.
written() ->
    receive
        {wrote, Index, Packet} ->
            case weft_wire:decode(iolist_to_binary(Packet)) of
                {data, _Label, Sequence, _Kind, _Payload} -> [{Index, Sequence} | written()];
                _ -> written()
            end
    after 0 -> []
    end.

room(_Lane) -> {ok, 1000000}.

try_send({Test, Index}, Packet) ->
    Test ! {wrote, Index, Packet},
    ok.
