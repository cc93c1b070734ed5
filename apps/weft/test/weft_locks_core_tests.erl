%% SPDX-License-Identifier: Apache-2.0
%% @doc Locks of one replica against their definition: one requester at a time, first come first
%% served, nothing left behind.
-module(weft_locks_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_locks_core).

property_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_locks(), [{numtests, 500}, quiet]))}.

%% The model: Resource => {Requester, Holders, Queue}; step for step the same answers as the core.
prop_locks() ->
    ?FORALL(Steps, ?SIZED(Size, resize(4 * Size, list(step()))),
            begin
                {Core, []} = drop_views(?CORE:init(a@x, #{})),
                {_, _, IsSame} = lists:foldl(fun both/2, {{Core, 1}, #{}, true}, Steps),
                IsSame
            end).

step() ->
    frequency([{5, {set, range(1, 2), range(1, 2), pid(), oneof([0, infinity])}},
               {4, {delete, range(1, 2), range(1, 2), pid()}}, {1, {gone, pid()}}]).

pid() -> ?LET(N, range(1, 4), pid(N)).

pid(N) -> weft_core_net:pid(b@x, N).

drop_views({Core, Effects}) ->
    {Core, [E || E <- Effects, element(1, E) =:= reply]}.

both(Step, {{Core0, Ref}, Model0, IsSame}) ->
    {Core, Effects} = drop_views(?CORE:handle(event(Step, Ref), 0, Core0)),
    {Model, Replies} = model(Step, Ref, Model0),
    Same = lists:sort([{R, Reply} || {reply, R, Reply} <- Effects]) =:= lists:sort(Replies),
    {{Core, Ref + 1}, Model, IsSame andalso Same}.

event({gone, Pid}, _Ref) -> {notice, {gone, Pid, killed}};
event({set, Resource, Requester, Pid, Wait}, Ref) ->
    {command, Ref, {set, Resource, Requester, {Pid, {Requester, Pid}}, Wait}};
event({delete, Resource, Requester, Pid}, Ref) ->
    {command, Ref, {delete, Resource, Requester, {Pid, {Requester, Pid}}}}.

model({set, Resource, Requester, Pid, Wait}, Ref, Model) ->
    case Model of
        #{Resource := {Requester, Holders, Queue}} ->
            {Model#{Resource := {Requester, lists:usort([Pid | Holders]), Queue}}, [{Ref, true}]};
        #{Resource := _} when Wait =:= 0 ->
            {Model, [{Ref, false}]};
        #{Resource := {Other, Holders, Queue}} ->
            {Model#{Resource := {Other, Holders, Queue ++ [{Ref, Requester, Pid}]}}, []};
        #{} ->
            {Model#{Resource => {Requester, [Pid], []}}, [{Ref, true}]}
    end;
model({delete, Resource, Requester, Pid}, Ref, Model) ->
    case Model of
        #{Resource := {Requester, Holders, Queue}} ->
            {Next, Replies} = next(Resource, {Requester, lists:delete(Pid, Holders), Queue}, Model),
            {Next, [{Ref, true} | Replies]};
        #{Resource := {Other, Holders, Queue}} ->
            {Its, Others} = lists:partition(fun({_, R, P}) -> {R, P} =:= {Requester, Pid} end,
                                            Queue),
            {Model#{Resource := {Other, Holders, Others}},
             [{Ref, true} | [{Waited, false} || {Waited, _, _} <- Its]]};
        #{} -> {Model, [{Ref, true}]}
    end;
model({gone, Pid}, _Ref, Model0) ->
    lists:foldl(fun(Resource, {Model, Replies}) ->
                    #{Resource := {Requester, Holders, Queue}} = Model,
                    Left = [W || {_, _, P} = W <- Queue, P =/= Pid],
                    {Next, More} = next(Resource, {Requester, [P || P <- Holders, P =/= Pid], Left},
                                        Model),
                    {Next, Replies ++ More}
                end, {Model0, []}, maps:keys(Model0)).

next(Resource, {_, [], []}, Model) ->
    {maps:remove(Resource, Model), []};
next(Resource, {_, [], [{_, Requester, _} | _] = Queue}, Model) ->
    {Its, Others} = lists:partition(fun({_, R, _}) -> R =:= Requester end, Queue),
    {Model#{Resource => {Requester, lists:usort([Pid || {_, _, Pid} <- Its]), Others}},
     [{Ref, true} || {Ref, _, _} <- Its]};
next(Resource, Lock, Model) ->
    {Model#{Resource => Lock}, []}.

%% --- one by one -------------------------------------------------------------------------------

run(Events, Options) ->
    {_, Effects} = lists:foldl(fun(Event, {Core0, Before}) ->
                                       {Core, Now} = ?CORE:handle(Event, 0, Core0),
                                       {Core, Before ++ Now}
                               end, ?CORE:init(a@x, Options), Events),
    Effects.

set(Ref, Requester, Wait) ->
    {command, Ref, {set, r, Requester, {pid(Requester), Ref}, Wait}}.

delete(Ref, Requester, Ask) -> {command, Ref, {delete, r, Requester, {pid(Requester), Ask}}}.

replies(Effects) -> [{Ref, Reply} || {reply, Ref, Reply} <- Effects].

who_waited_long_enough_is_told_so_test() ->
    Effects = run([set(a, 1, infinity), set(b, 2, 50), set(c, 3, infinity)], #{}),
    [{after_ms, 50, Timer}] = [E || {after_ms, _, _} = E <- Effects],
    ?assertEqual([{a, true}, {b, false}, {c, true}, {d, true}],
                 replies(run([set(a, 1, infinity), set(b, 2, 50), set(c, 3, infinity),
                              {timer, Timer}, delete(d, 1, a),
                              {timer, Timer}], #{}))).

the_line_is_bounded_test() ->
    Events = [set(N, N, infinity) || N <- lists:seq(1, 6)] ++ [{command, i, info}],
    ?assertEqual([{1, true}, {4, busy}, {5, busy}, {6, busy},
                  {i, #{locks => 1, waiting => 2, refused => 3}}],
                 replies(run(Events, #{waiting_max => 2}))).

%% A lost connection is no end: only if the node is away for the time of the lease.
a_lost_connection_keeps_the_lock_for_a_while_test() ->
    Before = [{neighbour_up, b@x}, set(a, 1, infinity), set(b, 2, infinity),
              {neighbour_down, b@x, noconnection}, {notice, {gone, pid(1), noconnection}},
              {notice, {gone, pid(2), noconnection}}],
    [{after_ms, 700, Lease}] = [E || {after_ms, _, _} = E <- run(Before, #{lease_ms => 700})],
    ?assertEqual([{a, true}], replies(run(Before, #{}))),
    Back = Before ++ [{neighbour_up, b@x}, {timer, Lease}],
    ?assertEqual([{a, true}], replies(run(Back, #{}))),
    ?assertEqual([{watch, pid(1)}, {watch, pid(2)}, {watch, pid(1)}],
                 [E || {watch, _} = E <- run(Back, #{})]),
    Away = Before ++ [{timer, Lease}, set(c, 3, 0)],
    ?assertEqual([{a, true}, {c, true}], replies(run(Away, #{}))).

%% Who asked knows that his call is lost, and asks again: there, or at another replica.
a_lost_connection_costs_the_place_in_line_test() ->
    Before = [set(a, 1, infinity), set(b, 2, infinity), set(c, 3, infinity),
              {notice, {gone, pid(2), noconnection}}],
    ?assertEqual({i, #{locks => 1, waiting => 1, refused => 0}},
                 lists:last(replies(run(Before ++ [{command, i, info}], #{})))),
    Given = [delete(d, 1, a), delete(e, 3, c)],
    ?assertEqual([{a, true}, {c, true}, {d, true}, {e, true}],
                 replies(run(Before ++ Given, #{}))),
    Again = Before ++ [set(f, 2, infinity) | Given],
    ?assertEqual([{a, true}, {c, true}, {d, true}, {f, true}, {e, true}],
                 replies(run(Again, #{}))).

a_late_deletion_ends_nothing_that_was_asked_later_test() ->
    Twice = [set(a, 1, infinity), set(b, 1, infinity), delete(c, 1, a), set(d, 2, 0)],
    ?assertEqual([{a, true}, {b, true}, {c, true}, {d, false}], replies(run(Twice, #{}))),
    %% Who has not got it yet leaves the queue.
    Left = [set(a, 1, infinity), set(b, 2, infinity), delete(c, 2, b), delete(d, 1, a),
            {command, i, info}],
    ?assertEqual([{a, true}, {b, false}, {c, true}, {d, true},
                  {i, #{locks => 0, waiting => 0, refused => 0}}], replies(run(Left, #{}))).

lock_nodes_are_those_that_are_up_test() ->
    Views = [V || {view, lock_homes, V} <- run([{neighbour_up, b@x}, {neighbour_up, 'A@x'},
                                                {neighbour_down, b@x, gone}], #{})],
    ?assertEqual([[a@x], [a@x, b@x], ['A@x', a@x, b@x], ['A@x', a@x]], Views).

nothing_is_left_when_all_is_over_test() ->
    Effects = run([set(N, N rem 3, infinity) || N <- lists:seq(1, 30)]
                  ++ [{notice, {gone, pid(N), killed}} || N <- [0, 1, 2]]
                  ++ [{command, i, info}], #{}),
    ?assertEqual({i, #{locks => 0, waiting => 0, refused => 0}}, lists:last(replies(Effects))).
