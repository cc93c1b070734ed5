%% SPDX-License-Identifier: Apache-2.0
%% @doc Two ends of a link and what the cores there hear of it, whatever crosses on the way. The
%% lanes are this module (a tunnel), so that packets arrive when the test says so.
-module(weft_link_cores_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The tunnel.
-export([room/1, try_send/2]).

-define(CORES, weft_link_cores).

%% What this end has to say is in the mailbox of the test.
room(_End) -> {ok, 1000000}.

try_send(End, Packet) -> self() ! {packet, End, iolist_to_binary(Packet)}, ok.

-record(ends, {cores = #{} :: #{a | b => weft_link_cores:cores()},
               lanes = #{} :: #{a | b => weft_lane:lane()},
               %% Packets on the way to an end, the oldest first.
               under_way = #{a => [], b => []} :: #{a | b => [binary()]},
               agreed = #{a => false, b => false} :: #{a | b => boolean()},
               %% The lane of messages is lost, and this end does not know it yet.
               unaware = none :: none | a | b,
               heard = #{a => [], b => []} :: #{a | b => [term()]}}).

without_an_admitting_core_cores_are_up_when_both_ends_have_them_test() ->
    Ends = settle(linked(none)),
    ?assertEqual([up, up], [last_heard(End, Ends) || End <- [a, b]]),
    ?assertEqual([true, true], [?CORES:is_used(Cores) || Cores <- maps:values(Ends#ends.cores)]).

with_an_admitting_core_only_it_is_up_until_both_ends_agree_test() ->
    Ends0 = settle(linked(topology)),
    ?assertEqual([none, none], [last_heard(End, Ends0) || End <- [a, b]]),
    ?assertEqual([false, false], [?CORES:is_used(Cores) || Cores <- maps:values(Ends0#ends.cores)]),
    Ends1 = settle(agree(a, true, Ends0)),
    ?assertEqual([none, none], [last_heard(End, Ends1) || End <- [a, b]]),
    Ends2 = settle(agree(b, true, Ends1)),
    ?assertEqual([up, up], [last_heard(End, Ends2) || End <- [a, b]]),
    Ends3 = settle(agree(b, false, Ends2)),
    ?assertEqual([{down, parted}, {down, parted}], [last_heard(End, Ends3) || End <- [a, b]]).

an_admitting_core_that_starts_again_has_agreed_to_nothing_test() ->
    Ends0 = settle(agree(b, true, agree(a, true, linked(topology)))),
    Ends1 = settle(on(a, fun(Cores, Up) -> ?CORES:subscribe(topology, self(), Up, Cores) end,
                      Ends0)),
    ?assertEqual([{down, parted}, {down, parted}], [last_heard(End, Ends1) || End <- [a, b]]).

the_end_of_a_core_is_told_to_the_peer_test() ->
    Ends0 = settle(linked(none)),
    Ends1 = settle(on(a, fun(Cores, Up) -> ?CORES:unsubscribe(pid(a, router), Up, Cores) end,
                      Ends0)),
    ?assertEqual({down, parted}, last_heard(b, Ends1)),
    Again = fun(Cores, Up) -> ?CORES:subscribe(router, pid(a, router), Up, Cores) end,
    Ends2 = settle(on(a, Again, Ends1)),
    ?assertEqual(up, last_heard(b, Ends2)).

what_was_agreed_is_over_with_the_link_test() ->
    #ends{cores = #{a := Cores}} = settle(agree(b, true, agree(a, true, linked(topology)))),
    Down = ?CORES:link_down(closed, Cores),
    ?assertNot(?CORES:is_neighbour(Down)),
    receive {a, router, {weft_link, down, _, closed}} -> ok after 5000 -> error(not_told) end,
    flush().

a_link_that_is_up_stays_in_use_when_an_admitting_core_comes_test() ->
    Ends0 = settle(linked(none)),
    Decide = fun(Cores, Up) -> ?CORES:admitting(topology, Up, Cores) end,
    Ends1 = settle(on(b, Decide, on(a, Decide, Ends0))),
    ?assertEqual([up, up], [last_heard(End, Ends1) || End <- [a, b]]),
    Ends2 = settle(agree(a, false, Ends1)),
    ?assertEqual([{down, parted}, {down, parted}], [last_heard(End, Ends2) || End <- [a, b]]).

what_was_lost_with_a_lane_is_said_anew_test() ->
    [begin
         Ends = settle(lose(End, settle(linked(none)))),
         ?assertEqual([up, up], [last_heard(E, Ends) || E <- [a, b]]),
         [?assert(lists:member({down, closed}, Heard))
          || Heard <- maps:values(Ends#ends.heard)]
     end || End <- [a, b]],
    %% Also if it was the announcement.
    Ends1 = settle(lose(a, linked(none))),
    ?assertEqual([up, up], [last_heard(E, Ends1) || E <- [a, b]]).

both_ends_see_the_same_in_the_end_test_() ->
    {timeout, 120, fun() -> ?assert(proper:quickcheck(prop_same(), [quiet, {numtests, 1000}])) end}.

prop_same() ->
    ?FORALL(Steps, list(oneof([{agree, oneof([a, b]), boolean()}, {deliver, oneof([a, b])},
                               {send, oneof([a, b])}, {start_again, oneof([a, b])},
                               {lose, oneof([a, b])}])),
            begin
                flush(),
                #ends{agreed = Agreed} = Ends =
                    settle(lists:foldl(fun step/2, linked(topology), Steps)),
                Up = lists:all(fun(IsAgreed) -> IsAgreed end, maps:values(Agreed)),
                ?WHENFAIL(io:format("~p~n", [Ends]),
                          [Up, Up] =:= [last_heard(End, Ends) =:= up || End <- [a, b]]
                              andalso lists:all(fun is_in_order/1, maps:values(Ends#ends.heard)))
            end).

step({agree, End, IsAgreed}, Ends) -> agree(End, IsAgreed, Ends);
step({deliver, End}, Ends) -> deliver(End, Ends);
step({lose, End}, Ends) -> lose(End, Ends);
step({start_again, End}, Ends) ->
    on(End, fun(Cores, Up) -> ?CORES:subscribe(router, pid(End, router), Up, Cores) end, Ends);
%% As a core does: only while its link is up.
step({send, End}, #ends{lanes = Lanes} = Ends) ->
    case last_heard(End, Ends) of
        up -> _ = weft_lane:send(maps:get(End, Lanes), hello(), 1), collect(Ends);
        _ -> Ends
    end.

hello() -> weft_wire:control(<<"router">>, term_to_binary(hello)).

%% Newest first: no message before an up, no message after a down.
is_in_order(Heard) ->
    {_, IsInOrder} = lists:foldr(fun(hello, {State, Ok}) -> {State, Ok andalso State =:= up};
                                    (up, {_, Ok}) -> {up, Ok};
                                    ({down, _}, {_, Ok}) -> {down, Ok}
                                 end, {down, true}, Heard),
    IsInOrder.

%% --- two ends ---------------------------------------------------------------------------------

linked(Admitting) ->
    Ends = lists:foldl(fun(End, #ends{cores = Cores, lanes = Lanes} = Acc) ->
                           Local = [{topology, pid(End, topology)}, {router, pid(End, router)}],
                           Lane = weft_lane:new({tunnel, ?MODULE, End}, {<<>>, 0},
                                                {weft_fault_table, lateness, [other(End)]}),
                           Acc#ends{cores = Cores#{End => ?CORES:new(other(End), Local, Admitting)},
                                    lanes = Lanes#{End => Lane}}
                       end, #ends{}, [a, b]),
    lists:foldl(fun(End, #ends{cores = Cores, lanes = Lanes} = Acc) ->
                    ok = ?CORES:link_up(maps:get(End, Lanes), maps:get(End, Cores)),
                    collect(Acc)
                end, Ends, [a, b]).

other(a) -> b;
other(b) -> a.

%% Stands for a core: passes all on to the test, and says whose it is.
pid(End, Core) ->
    Test = self(),
    Key = {?MODULE, End, Core},
    case get(Key) of
        undefined ->
            Pid = spawn_link(fun() -> pass_on(Test, End, Core) end),
            put(Key, Pid),
            Pid;
        Pid ->
            Pid
    end.

pass_on(Test, End, Core) ->
    receive
        {sync, Ref} -> Test ! Ref;
        Message -> Test ! {End, Core, Message}
    end,
    pass_on(Test, End, Core).

agree(End, IsAgreed, #ends{agreed = Agreed} = Ends) ->
    on(End, fun(Cores, Up) -> ?CORES:agree(IsAgreed, Up, Cores) end,
       Ends#ends{agreed = Agreed#{End := IsAgreed}}).

on(End, Fun, #ends{cores = Cores, lanes = Lanes} = Ends) ->
    collect(Ends#ends{cores = Cores#{End := Fun(maps:get(End, Cores), {maps:get(End, Lanes), 1})}}).

deliver(End, #ends{under_way = UnderWay, cores = Cores} = Ends) ->
    case UnderWay of
        #{End := [Packet | Rest]} ->
            {control, Core, Payload} = weft_wire:decode(Packet),
            {ok, Changed} = ?CORES:control(Core, Payload, 1, maps:get(End, Cores)),
            collect(Ends#ends{cores = Cores#{End := Changed},
                              under_way = UnderWay#{End := Rest}});
        #{End := []} ->
            Ends
    end.

%% The lane of messages is lost with what is under way. That end notices, the other one does later;
%% until then what it says is lost.
lose(End, #ends{unaware = none} = Ends) ->
    moved(End, Ends#ends{under_way = #{a => [], b => []}, unaware = other(End)});
lose(_End, #ends{unaware = Unaware} = Ends) ->
    moved(Unaware, Ends#ends{unaware = none}).

moved(End, Ends) ->
    on(End, fun(Cores, Up) -> ok = ?CORES:moved(closed, Up, Cores), Cores end, Ends).

settle(#ends{unaware = Unaware} = Ends) when Unaware =/= none -> settle(lose(Unaware, Ends));
settle(#ends{under_way = #{a := [], b := []}} = Ends) -> Ends;
settle(Ends) -> settle(deliver(b, deliver(a, Ends))).

%% Takes what was sent, and what the cores have heard, out of the mailbox.
collect(Ends) ->
    _ = [begin
             Ref = make_ref(),
             pid(End, router) ! {sync, Ref},
             receive Ref -> ok end
         end || End <- [a, b]],
    taken(Ends).

taken(#ends{under_way = UnderWay, heard = Heard} = Ends) ->
    receive
        {packet, From, _Lost} when From =:= Ends#ends.unaware ->
            taken(Ends);
        {packet, From, Packet} ->
            To = other(From),
            taken(Ends#ends{under_way = UnderWay#{To := maps:get(To, UnderWay) ++ [Packet]}});
        {End, router, {weft_link, What, _, With}} ->
            New = case What of up -> up; down -> {down, With}; message -> With end,
            taken(Ends#ends{heard = Heard#{End := [New | maps:get(End, Heard)]}});
        {_, topology, _} ->
            taken(Ends)
    after 0 -> Ends
    end.

last_heard(End, #ends{heard = Heard}) ->
    case [What || What <- maps:get(End, Heard), What =/= hello] of
        [Last | _] -> Last;
        [] -> none
    end.

flush() ->
    receive {_, _, _} -> flush() after 0 -> ok end.
