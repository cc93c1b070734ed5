%% SPDX-License-Identifier: Apache-2.0
%% @doc What watches a node may fail, and the node does not notice: its disk for the recording is
%% full, browsers do not read, and its agent is killed again and again. Meanwhile it exchanges
%% numbered messages with another node, a hundred a second at most: none is lost, and none is late
%% by more than four and a half seconds, which is less than who asks weft_ops waits for an answer.
%% Beyond what a process is late on the two nodes that only waits for its own clock, as all are on a
%% busy machine, it is half a second.
%%
%% The agent, the recording and the dashboard are all on one of the two nodes, and weft_ops is
%% permanent there, as in a release: if it ended, so would the node.
-module(weft_dashboard_unnoticed_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).
-import(weft_dashboard_browser, [open/1, take/1, ack/2, say/2, close/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_full_disk/1, browsers_that_do_not_read/1, an_agent_that_is_killed/1]).
%% On the nodes.
-export([talk/1, echo/0, wait/1, kill/1, used/0]).

-define(OPS, [{sample_ms, 300}, {clear_ms, 600}, {grace_ms, #{default => 300}}]).
-define(DISK_KB, 256).
%% More than the disk has.
-define(FILLING, <<0:(8 * 1024 * 2 * ?DISK_KB)>>).
-define(EVERY_MS, 10).
-define(LATE_MS, 4500).
-define(LATER_THAN_ALL_MS, 500).
-define(BROWSERS, 4).
-define(FRAMES, 5).
-define(KILLS, 30).
-define(KILL_MS, 100).
%% Of each process that watches.
-define(BYTES_MAX, 20000000).
-define(QUEUE_MAX, 150).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [a_full_disk, browsers_that_do_not_read, an_agent_that_is_killed].

init_per_suite(Config) ->
    case os:cmd("unshare -m true 2>&1") of
        "" -> begun(weft_test_nodes:begin_suite(Config));
        Why -> {skip, "needs a small file system: " ++ Why}
    end.

begun(Config) ->
    [A, B] = Nodes = [start(Name, Config) || Name <- [a, b]],
    ok = call(A, application, stop, [weft_ops]),
    ok = call(A, application, start, [weft_ops, permanent]),
    ok = weft_dashboard_nodes:dashboard(A, [{port, 0}, {period_ms, 200}], Config),
    until(fun() -> reported(A) =:= [node_name(Name) || Name <- [a, b]] end),
    %% Who sends to a name that is not registered yet waits in vain.
    [begin
         true = is_pid(call(Node, erlang, spawn, [?MODULE, Name, Arguments])),
         until(fun() -> is_pid(call(Node, erlang, whereis, [Name])) end)
     end || {Node, Name, Arguments} <- [{A, wait, [wait]}, {B, wait, [wait]}, {B, echo, []},
                                       {A, talk, [name(B)]}]],
    [{nodes, Nodes}, {port, call(A, weft_dashboard, port, [])} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

start(Name, Config) ->
    Options = #{args => ["-pa", weft_test_nodes:ebin(?MODULE)], ops => ?OPS,
                dashboard => Name =:= a},
    Groups = #{g => [node_name(N) || N <- [a, b]]},
    weft_dashboard_nodes:start(Name, [{topology, {groups, Groups}}],
                               maps:merge(Options, around(Name, Config)), Config).

%% The small disk is mounted for this node only, and is gone with it.
around(a, Config) ->
    Dir = weft_dashboard_nodes:recording(Config),
    ok = filelib:ensure_path(Dir),
    Script = "mount -t tmpfs -o size=" ++ integer_to_list(?DISK_KB) ++ "k none \"$0\" && "
        "exec \"$@\"",
    #{around => {os:find_executable("unshare"), ["-m", "sh", "-c", Script, Dir]}};
around(b, _Config) ->
    #{}.

reported(Node) ->
    #{nodes := Nodes} = call(Node, weft_ops, picture, []),
    lists:sort([Of || {Of, #{}} <- maps:to_list(Nodes)]).

%% --- what fails ---------------------------------------------------------------------------------

%% What can not be written is lost, which is told, and it is written again when there is room.
a_full_disk(Config) ->
    [#{log := Log} = A, _] = ?config(nodes, Config),
    Dir = weft_dashboard_nodes:recording(Config),
    Filling = filename:join(Dir, "filling"),
    Recorder = call(A, erlang, whereis, [weft_ops_recorder]),
    unnoticed(fun() ->
        {error, enospc} = call(A, file, write_file, [Filling, ?FILLING]),
        until(fun() ->
                  ok = call(A, weft_ops_recorder, flush, []),
                  logged("nothing can be written to .*no space left on device", Log)
              end),
        ok = call(A, file, delete, [Filling]),
        until(fun() ->
                  ok = call(A, weft_ops_recorder, flush, []),
                  logged("it is written to .* again", Log)
              end)
    end, Config),
    ?assertMatch({ok, {_, _}}, call(A, weft_ops_recording, span, [Dir])),
    ?assertEqual(Recorder, call(A, erlang, whereis, [weft_ops_recorder])).

logged(Pattern, Log) ->
    {ok, Text} = file:read_file(Log),
    re:run(Text, Pattern, [{capture, none}, dotall]) =:= match.

%% Half of them ask for all again and again, too. Another browser gets each model.
browsers_that_do_not_read(Config) ->
    Port = ?config(port, Config),
    unnoticed(fun() ->
        Opened = [element(2, {ok, _} = open(Port)) || _ <- lists:seq(1, ?BROWSERS)],
        {ok, Quick} = open(Port),
        Last = lists:foldl(fun(_, Browser) -> followed(Opened, Browser) end, Quick,
                           lists:seq(1, ?FRAMES)),
        [A, _] = ?config(nodes, Config),
        #{browsers := Browsers} = call(A, ?MODULE, used, []),
        ?assertEqual(?BROWSERS + 1, length(Browsers)),
        ?assertEqual([], [Row || Row <- Browsers, is_large(Row)]),
        [ok = close(Browser) || Browser <- [Last | Opened]]
    end, Config).

followed(Opened, Browser) ->
    [ok = say(<<"{\"type\":\"resend\"}">>, Silent)
     || Silent <- lists:sublist(Opened, ?BROWSERS div 2)],
    #{has := {Number, _}} = Taken = take(Browser),
    ok = ack(Number, Taken),
    Taken.

%% More often than a supervisor bears.
an_agent_that_is_killed(Config) ->
    [A, B] = ?config(nodes, Config),
    unnoticed(fun() ->
        Kills = [begin
                     receive after ?KILL_MS -> ok end, % pacing: kills
                     call(A, ?MODULE, kill, [weft_ops_agent])
                 end || _ <- lists:seq(1, ?KILLS)],
        ?assert(length([killed || killed <- Kills]) > 5),
        until(fun() -> reported(A) =:= [name(Node) || Node <- [A, B]] end)
    end, Config).

%% --- who should notice ----------------------------------------------------------------------

%% The two nodes talk meanwhile, and each process that watches stays small.
unnoticed(Fails, Config) ->
    [A, B] = ?config(nodes, Config),
    _ = [call(Node, weft_test_nodes, ask, [wait, told]) || Node <- [A, B]],
    Before = call(A, weft_test_nodes, ask, [talk, told]),
    Fails(),
    #{count := Count, late_ms := LateMs} = call(A, weft_test_nodes, ask, [talk, told]),
    AllMs = [call(Node, weft_test_nodes, ask, [wait, told]) || Node <- [A, B]],
    Used = call(A, ?MODULE, used, []),
    ct:log("~b messages, late by ~b ms at most; who waits for the clock by ~w ms~n~p",
           [Count, LateMs, AllMs, Used]),
    ?assert(Count > map_get(count, Before)),
    ?assert(LateMs =< ?LATE_MS),
    ?assertMatch({true, _, _}, {LateMs =< ?LATER_THAN_ALL_MS + lists:sum(AllMs), LateMs, AllMs}),
    ?assertEqual([], [Row || Row <- lists:append(maps:values(Used)), is_large(Row)]),
    [#{resumes := 0, state := up, suspended := 0}] =
        [Session || #{node := Node} = Session <- maps:get(sessions, call(A, weft, status, [])),
                    Node =:= name(B)].

is_large({_Name, Bytes, Queue}) -> Bytes > ?BYTES_MAX orelse Queue > ?QUEUE_MAX.

%% --- on the nodes -------------------------------------------------------------------------------

%% @doc Sends numbers to that node and waits for each to come back. Tells how many there were, and
%% how much longer one took at most since it was asked before, with the pause between them, than the
%% pause.
talk(Node) ->
    true = register(talk, self()),
    talk(Node, 1, now_ms(), 0).

talk(Node, Number, SinceMs, LateMs) ->
    {echo, Node} ! {self(), Number},
    receive {echo, Came} when Came =:= Number -> ok end,
    BeforeMs = receive {told, From, Ref} ->
                       From ! {Ref, #{count => Number, late_ms => LateMs}},
                       0
               after ?EVERY_MS -> LateMs % pacing: a hundred messages a second
               end,
    NowMs = now_ms(),
    talk(Node, Number + 1, NowMs, max(BeforeMs, NowMs - SinceMs - ?EVERY_MS)).

%% @doc Waits as long again and again, and tells how much longer it took at most since it was asked
%% before.
wait(Name) ->
    true = register(Name, self()),
    wait(now_ms(), 0).

wait(SinceMs, LateMs) ->
    BeforeMs = receive {told, From, Ref} -> From ! {Ref, LateMs}, 0
               after ?EVERY_MS -> LateMs % pacing: as often as messages
               end,
    NowMs = now_ms(),
    wait(NowMs, max(BeforeMs, NowMs - SinceMs - ?EVERY_MS)).

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc Sends back what comes, if it is the next number.
echo() ->
    true = register(echo, self()),
    echo(1).

echo(Next) -> receive {From, Next} -> From ! {echo, Next}, echo(Next + 1) end.

%% @doc Kills that process, if there is one.
kill(Name) ->
    case whereis(Name) of
        undefined -> absent;
        Pid -> true = exit(Pid, kill), killed
    end.

%% @doc Names, memory and messages of the processes that watch, and of those of browsers.
used() ->
    Named = [weft_ops_agent, weft_ops_sampler, weft_ops_recorder, weft_ops_snapshot,
             weft_dashboard_model],
    {monitors, Monitors} = process_info(whereis(weft_dashboard_model), monitors),
    #{named => [Row || Name <- Named, Row <- row(Name, whereis(Name))],
      browsers => [Row || {process, Pid} <- Monitors, is_browser(Pid), Row <- row(browser, Pid)]}.

row(_Name, undefined) ->
    [];
row(Name, Pid) ->
    case process_info(Pid, [memory, message_queue_len]) of
        [{_, Bytes}, {_, Queue}] -> [{Name, Bytes, Queue}];
        undefined -> []
    end.

%% The process with the model also watches the one that takes a model.
is_browser(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> lists:keymember('$initial_call', 1, Dictionary);
        undefined -> false
    end.
