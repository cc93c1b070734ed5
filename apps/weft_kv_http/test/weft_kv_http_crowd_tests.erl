%% SPDX-License-Identifier: Apache-2.0
%% @doc The places for requests, as cowboy asks for them and gives them back. Here each request has
%% a process that stands for that of its connection.
-module(weft_kv_http_crowd_tests).

-include_lib("eunit/include/eunit.hrl").

one_too_many_is_refused_until_one_has_ended_test() ->
    Crowd = weft_kv_http_crowd:new(2),
    [First, _Second] = [entered(Crowd) || _ <- [1, 2]],
    ?assertEqual(503, refused(Crowd)),
    %% Who is refused has no place.
    ?assertEqual(503, refused(Crowd)),
    ended(First, terminated),
    _ = entered(Crowd),
    ?assertEqual(503, refused(Crowd)).

%% Then cowboy says nothing of the end of the request.
one_whose_connection_was_killed_has_ended_test() ->
    Crowd = weft_kv_http_crowd:new(2),
    [Killed, _Alive] = [entered(Crowd) || _ <- [1, 2]],
    ended(Killed, killed),
    _ = entered(Crowd),
    ?assertEqual(503, refused(Crowd)).

%% By HTTP/1.1 the next request may begin before the one before has ended.
each_request_of_a_connection_counts_test() ->
    Crowd = weft_kv_http_crowd:new(2),
    {[], One} = begin_request(1, Crowd),
    {[], Two} = begin_request(2, Crowd),
    ?assertEqual(503, refused(Crowd)),
    weft_kv_http_crowd:terminate(1, normal, One),
    {[], Three} = begin_request(3, Crowd),
    ?assertEqual(503, refused(Crowd)),
    [weft_kv_http_crowd:terminate(Id, normal, State) || {Id, State} <- [{2, Two}, {3, Three}]].

begin_request(StreamId, Crowd) ->
    weft_kv_http_crowd:init(StreamId, #{path => <<"/buckets">>},
                            #{crowd => Crowd, stream_handlers => []}).

entered(Crowd) ->
    Test = self(),
    Connection = spawn_link(fun() ->
                                    {Commands, State} = begin_request(1, Crowd),
                                    Test ! {began, self(), Commands},
                                    receive stop -> ok end,
                                    _ = weft_kv_http_crowd:terminate(1, normal, State),
                                    Test ! {ended, self()},
                                    receive stop -> ok end
                            end),
    receive {began, Connection, Commands} -> ?assertEqual([], Commands) end,
    Connection.

refused(Crowd) ->
    {[{error_response, Status, _, _}, stop], State} = begin_request(refused, Crowd),
    weft_kv_http_crowd:terminate(refused, normal, State),
    Status.

ended(Connection, terminated) ->
    Connection ! stop,
    receive {ended, Connection} -> ok end;
ended(Connection, killed) ->
    true = unlink(Connection),
    Ref = monitor(process, Connection),
    true = exit(Connection, kill),
    receive {'DOWN', Ref, process, Connection, killed} -> ok end.
