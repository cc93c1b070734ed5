%% SPDX-License-Identifier: Apache-2.0
%% @doc Whoever is asked tells the same numbers: `weft:status/0', metrics, the dashboard, and the
%% commands `weft status' and `weft why', of a session over one link of two lanes and of one by way
%% of a gateway. And the numbers are what a program has sent.
%%
%% The dashboard is on a node of its own, so that what it asks does not go over these sessions.
%%
%% What a message adds: its payload, a head of the distribution protocol that is the same for all
%% messages of one kind once their atoms have been sent, and a length of four bytes. A tick has five
%% bytes. So the bytes of a payload are exact, and the head is found with an empty payload.
-module(weft_cli_truth_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_program_is_counted_to_the_byte/1, all_tell_the_same/1,
         the_dashboard_leaves_nothing_out/1, commands_ask_the_agents/1, a_log_has_a_bound/1]).
%% On the nodes.
-export([begun/0, counted/1, totals/0, hear/0, ask/3, flood/3]).

-define(LIBRARIES, [prometheus, quantile_estimator, ddskerl, cowboy, cowlib, ranch]).
-define(MODULES, [weft_ops_app, weft_dashboard, weft_http_host, weft_json, ?MODULE]).
-define(LINKS, "n01-n02,n01-n03,n02-n03,n02-n04").
-define(DASHBOARD, 'n03@127.0.0.1').
-define(DIRECT, {'n01@127.0.0.1', 'n02@127.0.0.1'}).
%% By way of n02.
-define(CIRCUIT, {'n01@127.0.0.1', 'n04@127.0.0.1'}).
-define(COUNTED, [bytes_out, bytes_in, packets_out, packets_in]).
-define(TICK_BYTES, 5).
%% More than the head of a message from a pid to a name needs.
-define(HEAD_BYTES_MAX, 200).
-define(SAMPLE_MS, 1000).
-define(LOOK_MS, 100).
%% Models that are apart by no more have each sample that is there for twice as long: what a node
%% said for one may be as old as the model before.
-define(APART_MS, 400).
-define(WAIT_MS, 60000).
-define(LOG_BYTES_MAX, 10000000).
%% No tick of the kernel while something is counted.
-define(TICKTIME_S, 3600).

suite() -> [{timetrap, {minutes, 4}}].

all() ->
    [a_program_is_counted_to_the_byte, all_tell_the_same, the_dashboard_leaves_nothing_out,
     commands_ask_the_agents, a_log_has_a_bound].

init_per_suite(Config0) ->
    {ok, _} = application:ensure_all_started(inets),
    Config = [{emulator, weft_cli_emulator:start()},
              {root, filename:join(?config(priv_dir, Config0), "clusters")} | Config0],
    {0, _} = weft(["up", "--links", ?LINKS, "--lanes", "2" | paths()], Config),
    try known_to_the_dashboard([{ports, connected(Config)} | Config])
    catch Class:Reason:Stack ->
        ok = end_per_suite(Config),
        erlang:raise(Class, Reason, Stack)
    end.

connected(Config) ->
    Ports = maps:from_list([{Node, evaluated(Node, "begun()", Config)} || Node <- nodes_of()]),
    [pong = evaluated(From, "net_adm", io_lib:format("ping(~0tp)", [To]), Config)
     || {From, Tos} <- [{element(1, ?DIRECT), [To || {_, To} <- ways()]},
                        {?DASHBOARD, nodes_of() -- [?DASHBOARD]}], To <- Tos],
    Ports.

%% It is asked about nodes only after they have reported to their agents.
known_to_the_dashboard(Config) ->
    Names = lists:sort([atom_to_binary(Node) || Node <- nodes_of()]),
    until(fun() ->
              #{<<"nodes">> := Nodes} = looked("model", Config),
              lists:sort(maps:keys(Nodes)) =:= Names
          end, ?WAIT_MS),
    Config.

end_per_suite(Config) ->
    {0, _} = weft(["down"], Config),
    ok = weft_cli_emulator:stop(?config(emulator, Config)).

nodes_of() -> [?DASHBOARD | lists:usort([Node || {A, B} <- ways(), Node <- [A, B]])].

ways() -> [?DIRECT, ?CIRCUIT].

paths() ->
    Dirs = [weft_test_nodes:ebin(Module) || Module <- ?MODULES]
        ++ [filename:join(Dir, "ebin") || App <- ?LIBRARIES, Dir <- [code:lib_dir(App)],
                                          is_list(Dir)],
    lists:append([["--path", Dir] || Dir <- Dirs]).

%% --- logs ---------------------------------------------------------------------------------------

%% A node goes on in an empty file, and what was in it is beside it.
a_log_has_a_bound(Config) ->
    Node = ?DASHBOARD,
    Log = filename:join([?config(root, Config), "local", short(Node), "log"]),
    ok = lengthen(Log, ?LOG_BYTES_MAX + 1),
    until(fun() -> filelib:file_size(Log) < ?LOG_BYTES_MAX end, ?WAIT_MS),
    ?assertEqual(?LOG_BYTES_MAX, filelib:file_size(Log ++ ".1")),
    ok = evaluated(Node, "io", "put_chars(user, \"still printed\")", Config),
    until(fun() -> {ok, Text} = file:read_file(Log), Text =:= <<"still printed">> end, ?WAIT_MS).

%% What it has not is read as zeros.
lengthen(File, Bytes) ->
    {ok, Opened} = file:open(File, [read, write, raw]),
    {ok, Bytes} = file:position(Opened, Bytes),
    ok = file:truncate(Opened),
    file:close(Opened).

%% --- what a program has sent --------------------------------------------------------------------

%% Nothing else goes over these sessions meanwhile: every ten seconds each node compares what it
%% knows of groups with that of another one.
a_program_is_counted_to_the_byte(Config) ->
    [ok = evaluated(Node, "sys", "suspend(weft_groups)", Config) || Node <- nodes_of()],
    try [program(Way, Config) || Way <- ways()]
    after
        [ok = evaluated(Node, "sys", "resume(weft_groups)", Config) || Node <- nodes_of()]
    end.

program({From, To} = Way, Config) ->
    %% Atoms are sent in full only once.
    _ = added({ask, 5, 0}, Way, Config),
    {Head, Answer} = asked(1, 0, Way, Config),
    ?assert(0 < Answer andalso Answer < Head andalso Head < ?HEAD_BYTES_MAX),
    [?assertEqual({Way, Count, Bytes, {Count * (Head + Bytes), Count * Answer}},
                  {Way, Count, Bytes, asked(Count, Bytes, Way, Config)})
     || {Count, Bytes} <- [{100, 0}, {200, 1}, {300, 1000}, {40, 30000}]],
    %% Many together are fewer payloads, with the same bytes.
    {Sent, Received} = added({flood, 2000, 100}, Way, Config),
    ct:log("~ts to ~ts: ~p, ~p", [From, To, Sent, Received]),
    ?assertEqual({2000 * (Head + 100), 2000 * Answer},
                 {map_get(bytes_out, Sent), map_get(bytes_out, Received)}),
    ?assert(map_get(packets_out, Sent) =< 2000),
    ?assertEqual({map_get(bytes_out, Sent), map_get(bytes_out, Received)},
                 {without_ticks(Received, in, map_get(packets_out, Sent)),
                  without_ticks(Sent, in, map_get(packets_out, Received))}).

%% One after another, each a payload of its own: bytes of these and of the answers, without ticks.
%% Both ends say the same.
asked(Count, Bytes, Way, Config) ->
    {Here, There} = added({ask, Count, Bytes}, Way, Config),
    Asked = without_ticks(Here, out, Count),
    Answered = without_ticks(There, out, Count),
    ?assertEqual({Asked, Answered},
                 {without_ticks(There, in, Count), without_ticks(Here, in, Count)}),
    {Asked, Answered}.

%% What is no payload is a tick. One that tries a new lane, or asks for an acknowledgement, is
%% counted by who reads it only.
without_ticks(#{bytes_out := Bytes, packets_out := Packets}, out, Count) ->
    without_ticks(Bytes, Packets - Count);
without_ticks(#{bytes_in := Bytes, packets_in := Packets}, in, Count) ->
    without_ticks(Bytes, Packets - Count).

without_ticks(Bytes, Ticks) ->
    ?assert(Ticks >= 0),
    Bytes - ?TICK_BYTES * Ticks.

%% What both ends have counted more after it.
added({What, Count, Bytes}, {From, To}, Config) ->
    Ends = fun() -> {session(From, To, Config), session(To, From, Config)} end,
    {FromBefore, ToBefore} = Ends(),
    done = evaluated(From, io_lib:format("~s(~b, ~b, ~0tp)", [What, Count, Bytes, To]), Config),
    {FromAfter, ToAfter} = Ends(),
    {more(FromBefore, FromAfter), more(ToBefore, ToAfter)}.

more(Before, After) -> maps:map(fun(Key, Count) -> Count - map_get(Key, Before) end, After).

%% --- who tells it -------------------------------------------------------------------------------

all_tell_the_same(Config) ->
    [added({flood, 100, 1000}, Way, Config) || Way <- ways()],
    [begin
         sessions_alike(From, To, Config),
         totals_alike(From, Config),
         path_alike(From, To, Config)
     end || {A, B} <- ways(), {From, To} <- [{A, B}, {B, A}]],
    links_alike(?DIRECT, Config).

sessions_alike(From, To, Config) ->
    still(fun() -> session(From, To, Config) end,
          fun(Session) ->
                  [{detailed_metrics, detailed(From, To, Config), Session},
                   {node_of_dashboard, of_node(From, To, Config), Session},
                   {weft_why, why(From, To, Config), Session}]
                      ++ [{weft_status, Row, maps:with([bytes_out, bytes_in], Session)}
                          || Row <- listed(From, To, Config)]
                      %% A circuit has no socket of its own.
                      ++ [{distribution_metrics, distribution(From, To, Config), Session}
                          || lists:member(?CIRCUIT, [{From, To}, {To, From}])]
          end).

totals_alike(Node, Config) ->
    still(fun() -> evaluated(Node, "totals()", Config) end,
          fun(Totals) -> [{metrics, sums(Node, Config), Totals}] end).

%% Each lane, and both together as exporters of sockets have them.
links_alike({From, To}, Config) ->
    still(fun() -> map_get(lanes, status(From, To, Config)) end,
          fun(Lanes) ->
                  ?assertEqual(2, length(Lanes)),
                  Sum = fun(Key) -> lists:sum([map_get(Key, Lane) || Lane <- Lanes]) end,
                  [{detailed_metrics, lanes_of_metrics(Lanes, From, To, Config), Lanes},
                   {node_of_dashboard, lanes_of_node(From, To, Config), Lanes},
                   {distribution_metrics,
                    maps:with([bytes_out, bytes_in], distribution(From, To, Config)),
                    #{bytes_out => Sum(bytes_out), bytes_in => Sum(bytes_in)}}]
          end).

%% For a path the dashboard measures the round trip, which is sent over the session itself, after it
%% has asked what is counted.
path_alike(From, To, Config) ->
    until(fun() ->
              #{session := Session, lanes := Lanes} = status(From, To, Config),
              #{<<"session">> := Row, <<"hops">> := Hops} =
                  looked(["path?from=", atom_to_list(From), "&to=", atom_to_list(To)], Config),
              Told = {known(?COUNTED, Row), [lanes_of(Hop) || length(Hops) =:= 1, Hop <- Hops]},
              ct:log("~p~n~p", [{Session, Lanes}, Told]),
              Told =:= {Session, [Lanes || Lanes =/= []]}
          end, ?WAIT_MS).

%% What others tell is what is counted, at a time at which that is the same before and afterwards.
%% Metrics may be a second old, so that it is looked for until it is so.
still(Count, Tell) ->
    until(fun() ->
              Before = Count(),
              Differ = [Told || {_Who, Is, Should} = Told <- Tell(Before), Is =/= Should],
              ct:log("~p~ndiffer: ~p", [Before, Differ]),
              Differ =:= [] andalso Count() =:= Before
          end, ?WAIT_MS).

%% --- status -----------------------------------------------------------------------------------

session(From, To, Config) -> map_get(session, status(From, To, Config)).

status(From, To, Config) ->
    evaluated(From, io_lib:format("counted(~0tp)", [To]), Config).

%% --- commands ---------------------------------------------------------------------------------

%% A session is listed once, as the node sees it that began it.
listed(From, To, Config) ->
    {0, Text} = weft(["status", "--json"], Config),
    {ok, #{<<"direct">> := Direct, <<"circuits">> := Circuits}} = weft_json:decode(Text),
    Ends = [atom_to_binary(From), atom_to_binary(To)],
    [#{<<"from">> := Begun} = Row] =
        [Row || #{<<"from">> := A, <<"to">> := B} = Row <- Direct ++ Circuits,
                lists:sort([A, B]) =:= lists:sort(Ends)],
    [known([bytes_out, bytes_in], Row) || Begun =:= hd(Ends)].

why(From, To, Config) ->
    {0, Text} = weft(["why", short(From), short(To), "--json"], Config),
    {ok, #{<<"session">> := Session, <<"text">> := Lines}} = weft_json:decode(Text),
    #{bytes_out := Out, bytes_in := In} = Counted = known(?COUNTED, Session),
    Words = io_lib:format("So far ~b bytes out, ~b in.", [Out, In]),
    ?assertMatch({_, [_]}, {Lines, [Line || Line <- Lines, string:find(Line, Words) =/= nomatch]}),
    Counted.

%% --- metrics ----------------------------------------------------------------------------------

detailed(From, To, Config) ->
    Text = scrape(From, "/metrics/detailed?family=session", Config),
    maps:from_list([{Key, value(["weft_detailed_session_", Name, "_total"], peer(To), Text)}
                    || {Key, Name} <- [{bytes_out, "sent_bytes"}, {bytes_in, "received_bytes"},
                                       {packets_out, "sent_packets"},
                                       {packets_in, "received_packets"}]]).

sums(Node, Config) ->
    Text = scrape(Node, "/metrics", Config),
    maps:from_list([{Key, value(["weft_stream_", Name, "_total"], "", Text)}
                    || {Key, Name} <- [{bytes_out, "sent_bytes"}, {bytes_in, "received_bytes"},
                                       {packets_out, "packets_sent"},
                                       {packets_in, "packets_received"}]]).

distribution(From, To, Config) ->
    Text = scrape(From, "/metrics", Config),
    maps:from_list([{Key, value(["erlang_vm_dist_", Name], peer(To), Text)}
                    || {Key, Name} <- [{bytes_out, "send_bytes"}, {bytes_in, "recv_bytes"},
                                       {packets_out, "send_cnt"}, {packets_in, "recv_cnt"}]]).

lanes_of_metrics(Lanes, From, To, Config) ->
    Text = scrape(From, "/metrics/detailed?family=lane", Config),
    [#{index => Index, bytes_out => of_lane("sent", Index, To, Text),
       bytes_in => of_lane("received", Index, To, Text)} || #{index := Index} <- Lanes].

of_lane(Way, Index, To, Text) ->
    value(["weft_detailed_lane_", Way, "_bytes_total"],
          io_lib:format("~ts,lane=\"~b\",class=\"distribution\"", [peer(To), Index]), Text).

peer(Node) -> io_lib:format("peer=\"~ts\"", [Node]).

scrape(Node, Path, Config) ->
    #{Node := #{metrics := Port}} = ?config(ports, Config),
    Url = lists:concat(["http://127.0.0.1:", Port, Path]),
    {ok, {{_, 200, _}, _, Body}} = httpc:request(get, {Url, []}, [], [{body_format, binary}]),
    Body.

%% Of a series that is there once.
value(Name, Labels, Text) ->
    Series = iolist_to_binary([Name, case Labels of "" -> ""; _ -> [${, Labels, $}] end, $\s]),
    [Value] = [binary_to_integer(binary:part(Line, byte_size(Series),
                                             byte_size(Line) - byte_size(Series)))
               || Line <- binary:split(Text, <<"\n">>, [global]),
                  string:prefix(Line, Series) =/= nomatch],
    Value.

%% --- the dashboard ----------------------------------------------------------------------------

of_node(From, To, Config) ->
    #{<<"sessions">> := Sessions} = looked(["node?name=", atom_to_list(From)], Config),
    [Session] = [Row || #{<<"node">> := Node} = Row <- Sessions, Node =:= atom_to_binary(To)],
    known(?COUNTED, Session).

lanes_of_node(From, To, Config) ->
    #{<<"links">> := Links} = looked(["node?name=", atom_to_list(From)], Config),
    [Link] = [Row || #{<<"node">> := Node} = Row <- Links, Node =:= atom_to_binary(To)],
    lanes_of(Link).

lanes_of(#{<<"lanes">> := Lanes}) ->
    lists:sort([known([index, bytes_out, bytes_in], Lane) || Lane <- Lanes]).

looked(Question, Config) ->
    #{?DASHBOARD := #{dashboard := Port}} = ?config(ports, Config),
    {200, Answer} = weft_dashboard_browser:json(
                      weft_dashboard_browser:request(Port, ["/api/", Question])),
    Answer.

known(Keys, Json) -> maps:from_list([{Key, map_get(atom_to_binary(Key), Json)} || Key <- Keys]).

%% --- the model of the dashboard -----------------------------------------------------------------

%% It says what was sent in each sample. All of them together are what was counted.
the_dashboard_leaves_nothing_out(Config) ->
    [samples_alike(Way, Config) || Way <- ways()].

samples_alike(Way, Config) ->
    until(fun() -> are_samples_alike(Way, Config) end, ?WAIT_MS).

%% Where somebody was late, a sample that was not seen says nothing.
are_samples_alike(Way, Config) ->
    Began = #{samples => #{}, at_ms => erlang:system_time(millisecond), apart_ms => 0},
    Watcher = spawn_link(fun() -> watch(Way, Config, Began) end),
    Seen = fun() -> map_get(samples, weft_test_nodes:ask(Watcher, seen)) end,
    {Before, BeforeMs} = at_rest(Way, Seen, Config),
    [added({What, 200, 1000}, Way, Config) || What <- [ask, flood]],
    {After, _} = at_rest(Way, Seen, Config),
    #{samples := All, apart_ms := ApartMs} = weft_test_nodes:ask(Watcher, seen),
    Samples = maps:filter(fun(AtMs, _) -> AtMs > BeforeMs end, All),
    ct:log("models are apart by ~b ms at most: ~p", [ApartMs, Samples]),
    ok = weft_test_nodes:ask(Watcher, stop),
    Gaps = gaps(BeforeMs, lists:sort(maps:to_list(Samples))),
    case Gaps =/= [] andalso was_late(ApartMs, maps:values(Samples)) of
        true ->
            false;
        false ->
            ?assertEqual([], Gaps),
            Sum = fun(Key) -> lists:sum([map_get(Key, One) || One <- maps:values(Samples)]) end,
            ?assertEqual(more(Before, After),
                         #{bytes_out => Sum(bytes_out), bytes_in => Sum(bytes_in)}),
            true
    end.

%% The model, or the node: of a sample that was late the next one covers less.
was_late(ApartMs, Samples) ->
    ApartMs > ?APART_MS
        orelse lists:any(fun(#{period_ms := Ms}) -> Ms < 2 * ?APART_MS end, Samples).

%% The samples of a node as they come, each once, about a session with another node. And when the
%% last model was taken, and how long after the one before at most.
watch({From, To} = Way, Config, #{samples := Samples, at_ms := BeforeMs, apart_ms := ApartMs}) ->
    #{<<"at_ms">> := ModelMs, <<"nodes">> := Nodes, <<"traffic">> := Traffic} =
        looked("model", Config),
    Pair = <<(atom_to_binary(From))/binary, " ", (atom_to_binary(To))/binary>>,
    More = case {maps:get(atom_to_binary(From), Nodes, none), Traffic} of
               {#{<<"at_ms">> := AtMs, <<"period_ms">> := PeriodMs}, #{Pair := Row}} ->
                   #{AtMs => (known([bytes_out, bytes_in], Row))#{period_ms => PeriodMs}};
               {_NotYet, _} -> #{}
           end,
    Now = #{samples => maps:merge(Samples, More), at_ms => ModelMs,
            apart_ms => max(ApartMs, ModelMs - BeforeMs)},
    receive
        {seen, Test, Ref} -> Test ! {Ref, Now}, watch(Way, Config, Now);
        {stop, Test, Ref} -> Test ! {Ref, ok}
    after ?LOOK_MS -> watch(Way, Config, Now) % pacing: of looks
    end.

%% A whole sample after that time is one in which nothing was sent.
rests(SinceMs, Seen) ->
    [] =/= [AtMs || {AtMs, #{period_ms := PeriodMs, bytes_out := 0, bytes_in := 0}}
                        <- maps:to_list(Seen), AtMs - PeriodMs > SinceMs].

%% What is counted while nothing is sent, and the end of a sample in that time.
at_rest({From, To} = Way, Seen, Config) ->
    Counted = maps:with([bytes_out, bytes_in], session(From, To, Config)),
    SinceMs = erlang:system_time(millisecond),
    ok = until(fun() -> rests(SinceMs, Seen()) end, ?WAIT_MS),
    AtMs = lists:max(maps:keys(Seen())),
    case maps:with([bytes_out, bytes_in], session(From, To, Config)) of
        Counted -> {Counted, AtMs};
        _ -> at_rest(Way, Seen, Config)
    end.

%% Between the ends of two samples there is the time that the second one covers.
gaps(BeforeMs, [{AtMs, #{period_ms := PeriodMs}} | Later]) ->
    [{BeforeMs, AtMs} || abs(AtMs - PeriodMs - BeforeMs) > ?SAMPLE_MS div 4] ++ gaps(AtMs, Later);
gaps(_BeforeMs, []) ->
    [].

%% --- agents -------------------------------------------------------------------------------------

%% They tell the same as people and as programs read it.
commands_ask_the_agents(Config) ->
    ok = evaluated(?DASHBOARD, "weft_ops", "tell(deployment, \"version 2\")", Config),
    until(fun() -> told(Config) =:= [<<"version 2">>] end, ?WAIT_MS),
    {0, Events} = weft(["events", "--minutes", "5"], Config),
    ?assertMatch({match, _}, re:run(Events, ["told +", atom_to_list(?DASHBOARD), " +version 2\n"])),
    {0, Alarms} = weft(["alarms", "--json"], Config),
    {ok, #{<<"alarms">> := Rows}} = weft_json:decode(Alarms),
    [?assertMatch(#{<<"kind">> := <<_, _/binary>>, <<"severity">> := _, <<"text">> := _,
                    <<"at_ms">> := AtMs, <<"comment">> := null} when is_integer(AtMs), Row)
     || Row <- Rows],
    {0, Text} = weft(["alarms"], Config),
    ?assertMatch({match, _}, re:run(Text, "^(no alarms\n|since +severity +kind +node +what\n)")),
    watch_does_not_wait_for_agents(Config).

%% The first sample may be there before they have answered.
watch_does_not_wait_for_agents(Config) ->
    Watched = fun(Count) ->
                  {0, Lines} = weft(["watch", "--interval", "0.3", "--count", Count, "--json"],
                                    Config),
                  {ok, Last} = weft_json:decode(lists:last(string:lexemes(Lines, "\n"))),
                  Last
              end,
    until(fun() ->
              #{<<"alarms">> := Alarms, <<"silent">> := Silent} = Watched("3"),
              is_list(Alarms) andalso Silent =:= []
          end, ?WAIT_MS),
    until(fun() ->
              {0, Text} = weft(["watch", "--interval", "0.3", "--count", "3"], Config),
              re:run(Text, "^(no alarms$|[0-9]+ alarms?: )", [multiline]) =/= nomatch
          end, ?WAIT_MS),
    [ok = evaluated(Node, "sys", "suspend(weft_ops_agent)", Config) || Node <- nodes_of()],
    try until(fun() -> #{<<"alarms">> := Alarms} = Watched("1"), Alarms =:= null end, ?WAIT_MS)
    after
        [ok = evaluated(Node, "sys", "resume(weft_ops_agent)", Config) || Node <- nodes_of()]
    end.

told(Config) ->
    {0, Text} = weft(["events", "--json"], Config),
    {ok, #{<<"events">> := Events}} = weft_json:decode(Text),
    [Said || #{<<"kind">> := <<"told">>, <<"about">> := <<"deployment">>,
               <<"text">> := Said} <- Events].

%% --- on the nodes -------------------------------------------------------------------------------

%% @doc Begins what tells numbers, and says on which ports.
begun() ->
    change_initiated = net_kernel:set_net_ticktime(?TICKTIME_S, 0),
    [ok = application:set_env(Application, Key, Value)
     || {Application, Key, Value} <- [{weft_ops, http, #{port => 0}},
                                      {weft_ops, sample_ms, ?SAMPLE_MS},
                                      {weft_dashboard, port, 0},
                                      {weft_dashboard, period_ms, 200},
                                      %% It starts quickly so, as the guide says.
                                      {prometheus, collectors, [default]},
                                      {prometheus, instrumenters, []}]],
    %% Each is its own agent, and reports to no other node: that would be counted.
    ok = weft_group:configure(maps:from_list([{{own, Node}, [Node]} || Node <- nodes_of()])),
    {ok, _} = application:ensure_all_started(weft_ops),
    true = register(hears, spawn(?MODULE, hear, [])),
    maps:merge(#{metrics => weft_ops_http:port()}, dashboard(node())).

dashboard(?DASHBOARD) ->
    {ok, _} = application:ensure_all_started(weft_dashboard),
    #{dashboard => weft_dashboard:port()};
dashboard(_Other) ->
    #{}.

%% @doc What the session with a node, and the lanes to it if there is a link, have counted.
counted(Peer) ->
    #{sessions := Sessions, links := Links} = weft:status(),
    [Session] = [Row || #{node := Node} = Row <- Sessions, Node =:= Peer],
    #{session => maps:with(?COUNTED, Session),
      lanes => lists:sort([#{index => Index, bytes_out => Out, bytes_in => In}
                           || #{node := Node, lane_stats := Lanes} <- Links, Node =:= Peer,
                              #{index := Index, stat := #{send_oct := Out,
                                                          recv_oct := In}} <- Lanes])}.

%% @doc What the node has counted.
totals() -> maps:with(?COUNTED, map_get(counters, weft:status())).

%% @doc Answers each message.
hear() -> receive {From, _Payload} -> From ! heard, hear() end.

%% @doc Sends so many messages with so many bytes, each after the answer to the one before.
ask(Count, Bytes, Node) ->
    Payload = binary:copy(<<0>>, Bytes),
    lists:foreach(fun(_) ->
                      {hears, Node} ! {self(), Payload},
                      receive heard -> ok end
                  end, lists:seq(1, Count)),
    done.

%% @doc The same all at once.
flood(Count, Bytes, Node) ->
    Payload = binary:copy(<<0>>, Bytes),
    lists:foreach(fun(_) -> {hears, Node} ! {self(), Payload} end, lists:seq(1, Count)),
    lists:foreach(fun(_) -> receive heard -> ok end end, lists:seq(1, Count)),
    done.

%% --- steps --------------------------------------------------------------------------------------

weft(Words, Config) ->
    {Code, Output} = weft_cli_emulator:run(?config(priv_dir, Config),
                                           Words ++ ["--dir", ?config(root, Config)],
                                           ?config(emulator, Config)),
    Code =:= 0 orelse ct:log("weft ~ts~n~ts(~b)", [lists:join($\s, Words), Output, Code]),
    {Code, Output}.

%% What a function gives on a node.
evaluated(Node, Call, Config) -> evaluated(Node, ?MODULE_STRING, Call, Config).

evaluated(Node, Module, Call, Config) ->
    {0, Text} = weft(["eval", short(Node), lists:flatten([Module, $:, Call])], Config),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Value} = erl_parse:parse_term(Tokens),
    Value.

short(Node) -> hd(string:split(atom_to_list(Node), "@")).
