%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests under way: numbers, messages, times, and commands that wait.
-module(weft_names_strong_requests_tests).

-include_lib("eunit/include/eunit.hrl").

-define(REQUESTS, weft_names_strong_requests).

messages_are_not_too_large_and_tell_the_oldest_test() ->
    {Ids, R1} = lists:mapfoldl(fun(N, R) -> ?REQUESTS:add(write(N), R) end, ?REQUESTS:new(),
                               lists:seq(1, 450)),
    {Read, R2} = ?REQUESTS:add(request(x, {read, {name, x}}), R1),
    {Oldest, Messages, R3} = ?REQUESTS:send(0, tl(Ids) ++ [Read], 100, R2),
    ?assertEqual(hd(Ids), Oldest),
    ?assertEqual([write, write, write, read], [Kind || {Kind, _} <- Messages]),
    ?assertEqual(tl(Ids) ++ [Read], [Id || {_, List} <- Messages, {Id, _} <- List]),
    ?assert(lists:all(fun({_, List}) -> length(List) =< 200 end, Messages)),
    ?assertEqual(tl(Ids), ?REQUESTS:registers(0, R3)),
    %% What was not carried out may be asked again.
    ?assertEqual([], ?REQUESTS:registers(0, ?REQUESTS:not_carried_out(Ids, R3))).

times_test() ->
    {Id, R1} = ?REQUESTS:add(write(x), ?REQUESTS:new()),
    ?assert(?REQUESTS:is_late(0, 0, R1)),
    {_, _, R2} = ?REQUESTS:send(0, [Id], 100, R1),
    ?assertEqual([false, true], [?REQUESTS:is_late(0, Ms, R2) || Ms <- [99, 100]]),
    ?assertEqual([[], [Id]], [?REQUESTS:over(0, Ms, R2) || Ms <- [4999, 5000]]),
    R3 = ?REQUESTS:remove(Id, R2),
    ?assertEqual({none, [], false},
                 {?REQUESTS:find(Id, R3), ?REQUESTS:ids(0, R3), ?REQUESTS:is_late(0, 9999, R3)}).

commands_wait_in_a_queue_and_count_test() ->
    {Id, R1} = ?REQUESTS:add(write(x), ?REQUESTS:new()),
    R2 = lists:foldl(fun(N, R) -> ?REQUESTS:wait({N, from, 0}, x, R) end, R1, [1, 2, 3]),
    ?assertEqual(4, ?REQUESTS:count(R2)),
    %% A request in place of another keeps those who wait.
    {_, R3} = ?REQUESTS:add(write(x), ?REQUESTS:remove(Id, R2)),
    {Waiting, R4} = ?REQUESTS:free(x, R3),
    ?assertEqual([1, 2, 3], [N || {N, from, 0} <- queue:to_list(Waiting)]),
    ?assertEqual({1, false}, {?REQUESTS:count(R4), ?REQUESTS:is_busy(x, R4)}).

write(Name) -> request(Name, {register, Name, pid, meta, 0}).

request(Name, Wire) -> ?REQUESTS:request({Name, 0}, Wire, from, exit, {0, 5000}).
