%% SPDX-License-Identifier: Apache-2.0
%% @doc Browsers that do not read, on real sockets: each costs little, or holds up its own process
%% until that is sent away. Others, and the process with the model, do not notice.
-module(weft_dashboard_slow_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_browser, [open/1, take/1, ack/2, say/2, close/1]).

%% A model of so many nodes has half of a megabyte, as a term and as text.
-define(NODES, 100).
-define(GROUPS, 4).
-define(SLOW, 3).
-define(FRAMES, 3).
%% One that waits for a frame to be taken.
-define(WAITING_BYTES_MAX, 500000).
%% One that is held up has the text of a frame, and what it was made of. A model comes each second,
%% what a browser says in at most a hundred messages, and a send is given up after half a minute.
-define(HELD_UP_BYTES_MAX, 40000000).
-define(QUEUE_MAX, 150).
-define(WAIT_MS, 50000).
-define(CLOSED_MS, 60000).

%% They get one frame, and no other before they have acknowledged this one.
who_reads_nothing_costs_little_test_() ->
    {timeout, 60, fun() ->
        with_slow(fun(_Sockets, Slow, Port) ->
            until(fun() -> lists:all(fun(Pid) -> bytes(Pid) =< ?WAITING_BYTES_MAX end, Slow) end),
            ok = read(?FRAMES, Port),
            [?assertMatch({Bytes, Queue} when Bytes =< ?WAITING_BYTES_MAX andalso Queue =< 2,
                          {bytes(Pid), queue(Pid)}) || Pid <- Slow]
        end)
    end}.

%% A process that has a message does not hibernate: what it has made is garbage until it does.
after_each_frame_and_each_model_it_hibernates_test() ->
    {Supervisor, _Port} = weft_dashboard_made_up:start(4, 1),
    {ok, _} = weft_dashboard_model:current(),
    {cowboy_websocket, request, New, _} = weft_dashboard_live:init(request, []),
    Changed = fun(Live) -> weft_dashboard_live:websocket_info(weft_dashboard_changed, Live) end,
    {[{text, _}], Told, hibernate} = Changed(New),
    ?assertEqual({[], Told, hibernate}, Changed(Told)),
    weft_dashboard_made_up:stop(Supervisor).

%% They ask for all of it again and again, and do not read it.
who_asks_and_does_not_read_holds_up_itself_test_() ->
    {timeout, 60, fun() ->
        with_slow(fun(Sockets, Slow, Port) ->
            held_up(Sockets, Slow),
            ok = read(?FRAMES, Port),
            [?assertMatch({Bytes, Queue} when Bytes =< ?HELD_UP_BYTES_MAX
                                              andalso Queue =< ?QUEUE_MAX,
                          {bytes(Pid), queue(Pid)}) || Pid <- Slow],
            ?assert(queue(whereis(weft_dashboard_model)) =< 2 * ?SLOW)
        end)
    end}.

and_is_sent_away_test_() ->
    [{timeout, 180, fun() ->
          with_slow(fun(Sockets, Slow, _Port) ->
              held_up(Sockets, Slow),
              weft_test_nodes:until(fun() -> browsers() -- Slow =:= browsers() end, ?CLOSED_MS)
          end)
      end} || os:getenv("FULL") =/= false].

%% --- those that do not read ---------------------------------------------------------------------

%% Their sockets, and the processes that serve them.
with_slow(Fun) ->
    {Supervisor, Port} = weft_dashboard_made_up:start(?NODES, ?GROUPS),
    try
        Sockets = [slow(Port) || _ <- lists:seq(1, ?SLOW)],
        until(fun() -> length(browsers()) =:= ?SLOW end),
        Fun(Sockets, browsers(), Port),
        lists:foreach(fun gen_tcp:close/1, Sockets)
    after weft_dashboard_made_up:stop(Supervisor)
    end.

%% The system keeps little of what is not read.
slow(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {recbuf, 2048}]),
    ok = gen_tcp:send(Socket, ["GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n"
                               "upgrade: websocket\r\nsec-websocket-version: 13\r\n"
                               "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"]),
    Socket.

%% Asks until each of them waits for its socket.
held_up(Sockets, Slow) ->
    until(fun() ->
              [ok = say(<<"{\"type\":\"resend\"}">>, #{socket => Socket}) || Socket <- Sockets],
              lists:all(fun is_held_up/1, Slow) orelse
                  receive after 500 -> false end % pacing: it answers once a second at most
          end).

is_held_up(Pid) ->
    {current_stacktrace, Stack} = process_info(Pid, current_stacktrace),
    [] =/= [send || {prim_inet, _, _, _} <- Stack].

%% --- steps ------------------------------------------------------------------------------------

%% The process with the model watches those that serve browsers.
browsers() ->
    {monitors, Monitors} = process_info(whereis(weft_dashboard_model), monitors),
    [Pid || {process, Pid} <- Monitors, is_browser(Pid)].

%% It also watches the one that takes a model, which is no process of proc_lib.
is_browser(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> is_map_key('$initial_call', maps:from_list(Dictionary));
        undefined -> false
    end.

%% Another browser gets so many models.
read(Frames, Port) ->
    {ok, Browser} = open(Port),
    close(lists:foldl(fun(_, Open) ->
                              #{has := {Number, _}} = Taken = take(Open),
                              ok = ack(Number, Taken),
                              Taken
                      end, Browser, lists:seq(1, Frames))).

bytes(Pid) -> element(2, process_info(Pid, memory)).

queue(Pid) -> element(2, process_info(Pid, message_queue_len)).

until(Condition) -> weft_test_nodes:until(Condition, ?WAIT_MS).
