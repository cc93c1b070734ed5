%% SPDX-License-Identifier: Apache-2.0
%% @doc The dashboard on real nodes, as a browser has it: a chain of three, of which only the first
%% has the dashboard. The browser is `weft_dashboard_browser'.
-module(weft_dashboard_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).
-import(weft_dashboard_nodes, [text/1]).
-import(weft_dashboard_browser, [request/2, request/4, json/1, open/1, open/2, say/2, frame/1,
                                 take/1, ack/2, close/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([the_model_is_what_the_nodes_say/1, a_browser_follows/1,
         a_session_that_is_stuck_hides_no_node/1, looks_at_a_node_follow_each_other/1,
         what_happened_is_told/1,
         a_recorded_time_is_a_model/1, wrong_times_are_refused/1]).
-export([nothing_is_done_without_the_token/1, what_failed_is_not_done_later/1,
         foreign_pages_are_refused/1,
         no_file_elsewhere_is_served/1, what_is_not_understood_ends_a_websocket/1,
         there_are_so_many_browsers_at_most/1, odd_arguments_end_no_process/1]).

-define(TOKEN, "correct-horse-battery").
-define(DASHBOARD, [{port, 0}, {period_ms, 200}, {browsers_max, 4},
                    {origins, ["https://weft.example.org"]}]).

suite() -> [{timetrap, {minutes, 1}}].

all() ->
    [the_model_is_what_the_nodes_say, a_browser_follows, a_session_that_is_stuck_hides_no_node,
     looks_at_a_node_follow_each_other, what_happened_is_told, a_recorded_time_is_a_model,
     wrong_times_are_refused,
     nothing_is_done_without_the_token, what_failed_is_not_done_later, foreign_pages_are_refused,
     no_file_elsewhere_is_served, what_is_not_understood_ends_a_websocket,
     there_are_so_many_browsers_at_most, odd_arguments_end_no_process].

init_per_suite(Config) ->
    Started = weft_test_nodes:begin_suite(Config),
    Nodes = [start(Name, Started) || Name <- [a, g, b]],
    [A | _] = Nodes,
    ok = weft_dashboard_nodes:dashboard(A, ?DASHBOARD, Started),
    [{nodes, Nodes}, {port, call(A, weft_dashboard, port, [])} | Started].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

start(Name, Config) ->
    [A, G, B] = [node_name(N) || N <- [a, g, b]],
    Shape = {static, #{links => [{A, G}, {G, B}]}},
    weft_dashboard_nodes:start(Name, [{topology, Shape}, {tuning, #{faults => true}}], Config).

%% --- the model ----------------------------------------------------------------------------------

the_model_is_what_the_nodes_say(Config) ->
    [A, _, B] = Nodes = ?config(nodes, Config),
    until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    Up = lists:sort([{text(name(Node)), <<"up">>} || Node <- Nodes]),
    until(fun() -> states(Config) =:= Up end),
    until(fun() -> links(model(Config)) =:= links_of(Nodes) end),
    until(fun() -> sessions(model(Config)) =:= sessions_of(Nodes) end),
    #{<<"agents">> := Agents, <<"node">> := Server, <<"source">> := <<"live">>} = model(Config),
    ?assertEqual(3, map_size(Agents)),
    ?assertEqual(text(name(A)), Server).

states(Config) ->
    #{<<"nodes">> := Nodes} = model(Config),
    lists:sort([{Node, State} || {Node, #{<<"state">> := State}} <- maps:to_list(Nodes)]).

links(#{<<"links">> := Links}) ->
    lists:sort([{Pair, State} || {Pair, #{<<"state">> := State}} <- maps:to_list(Links)]).

links_of(Nodes) ->
    lists:sort([{pair(Node, Peer), text(State)}
                || Node <- Nodes, #{links := Links} <- [call(Node, weft, status, [])],
                   #{node := Peer, state := State} <- Links]).

sessions(#{<<"traffic">> := Traffic}) ->
    lists:sort([{Pair, Via} || {Pair, #{<<"via">> := Via}} <- maps:to_list(Traffic)]).

sessions_of(Nodes) ->
    lists:sort([{pair(Node, Peer), text(Via)}
                || Node <- Nodes, #{sessions := Sessions} <- [call(Node, weft, status, [])],
                   #{node := Peer, next_hop := Via} <- Sessions]).

pair(Node, Peer) -> <<(text(name(Node)))/binary, " ", (text(Peer))/binary>>.

a_browser_follows(Config) ->
    {ok, Opened} = open(?config(port, Config)),
    #{has := {First, _}} = Browser = take(Opened),
    ok = ack(First, Browser),
    #{has := {Second, Model}} = Later = take(Browser),
    ?assert(Second > First),
    ?assert(maps:get(<<"at_ms">>, Model) > 0),
    ok = close(Later).

%% Of node b, with its neighbour: that with the node of the dashboard is another one.
a_session_that_is_stuck_hides_no_node(Config) ->
    [A, G, B] = ?config(nodes, Config),
    until(fun() -> call(B, net_kernel, connect_node, [name(G)]) end),
    [Stuck] = [Pid || #{node := Peer, pid := Pid} <- maps:get(sessions, call(B, weft, status, [])),
                      Peer =:= name(G)],
    [Of, To, End] = [binary_to_list(text(name(Node))) || Node <- [B, G, A]],
    until(fun() -> element(1, get(Config, ["/api/node?name=", Of])) =:= 200 end),
    ok = call(B, sys, suspend, [Stuck]),
    Looks = [get(Config, Path) || Path <- [["/api/node?name=", Of],
                                           ["/api/why?from=", Of, "&to=", To],
                                           ["/api/path?from=", Of, "&to=", End]]],
    ok = call(B, sys, resume, [Stuck]),
    [{200, #{<<"sessions">> := Sessions}}, {200, #{<<"text">> := [First | Why]}},
     {200, #{<<"hops">> := Hops} = Path}] = Looks,
    ?assertEqual(iolist_to_binary([Of, " and ", To, " are connected."]), First),
    ?assertMatch([_], [Line || <<"Session: its process does not answer", _/binary>> = Line <- Why]),
    ?assertEqual([text(name(A))], [With || #{<<"node">> := With} <- Sessions]),
    ?assertEqual([text(name(G)), text(name(A))], [Next || #{<<"to">> := Next} <- Hops]),
    ?assertNot(is_map_key(<<"error">>, Path)).

%% Whoever has the name on the node looks at it.
looks_at_a_node_follow_each_other(Config) ->
    [_, _, B] = ?config(nodes, Config),
    Path = ["/api/node?name=", text(name(B))],
    Other = call(B, erlang, spawn, [timer, sleep, [infinity]]),
    until(fun() -> call(B, erlang, whereis, [weft_dashboard_node]) =:= undefined end),
    true = call(B, erlang, register, [weft_dashboard_node, Other]),
    ?assertMatch({503, #{<<"error">> := <<"others look at ", _/binary>>}}, get(Config, Path)),
    true = call(B, erlang, exit, [Other, kill]),
    until(fun() -> element(1, get(Config, Path)) =:= 200 end).

%% --- the past -----------------------------------------------------------------------------------

what_happened_is_told(Config) ->
    [A | _] = ?config(nodes, Config),
    ?assertMatch({200, #{<<"acts">> := true, <<"chaos">> := true, <<"events">> := true,
                         <<"recording">> := true}}, get(Config, "/api/about")),
    ok = call(A, weft_ops, tell, [{why, 1}, "somebody did that"]),
    Self = text(name(A)),
    until(fun() -> [Event || #{<<"kind">> := <<"told">>, <<"node">> := Node, <<"at_ms">> := _,
                               <<"about">> := <<"{why,1}">>,
                               <<"text">> := <<"somebody did that">>} = Event <- events(Config),
                             Node =:= Self] =/= [] end),
    {200, #{<<"events">> := Later}} = get(Config, "/api/events?since=999999999999999"),
    ?assertEqual([], Later).

a_recorded_time_is_a_model(Config) ->
    [A | _] = Nodes = ?config(nodes, Config),
    Names = lists:sort([text(name(Node)) || Node <- Nodes]),
    %% Each node is heard of in its own time.
    until(fun() ->
                  ok = call(A, weft_ops_recorder, flush, []),
                  Names =:= recorded(Config)
          end),
    ?assertMatch({404, #{<<"error">> := _}}, get(Config, "/api/recording?at=1")).

%% The nodes at the end of the recording; none if nothing was recorded yet.
recorded(Config) ->
    case get(Config, "/api/recording") of
        {200, #{<<"to_ms">> := null}} ->
            none;
        {200, #{<<"from_ms">> := FromMs, <<"to_ms">> := ToMs}} ->
            ?assert(FromMs =< ToMs),
            {200, Then} = get(Config, ["/api/recording?at=", integer_to_list(ToMs)]),
            ?assertMatch(#{<<"source">> := <<"recording">>, <<"at_ms">> := ToMs}, Then),
            lists:sort(maps:keys(maps:get(<<"nodes">>, Then)))
    end.

wrong_times_are_refused(Config) ->
    [?assertMatch({400, #{<<"error">> := <<"say milliseconds", _/binary>>}},
                  get(Config, ["/api/", Question, Wrong]))
     || Question <- ["events?since=", "recording?at="],
        Wrong <- ["", "x", "-1", "1.5", "%00", "1%0A", "9999999999999999"]].

events(Config) ->
    {200, #{<<"events">> := Events, <<"more">> := 0}} = get(Config, "/api/events?since=0"),
    Events.

%% --- who may do what --------------------------------------------------------------------------

nothing_is_done_without_the_token(Config) ->
    [A, _, B] = ?config(nodes, Config),
    Kill = kill(B),
    Break = iolist_to_binary(weft_json:encode(#{action => break_link, from => name(A),
                                                to => node_name(g)})),
    Json = {"content-type", "application/json"},
    Right = {"authorization", "Bearer " ?TOKEN},
    ?assertMatch({401, _}, post("/api/chaos", [Json], Kill, Config)),
    ?assertMatch({401, _}, post("/api/acknowledge", [Json], <<"{}">>, Config)),
    [?assertMatch({403, #{<<"error">> := _}},
                  post("/api/chaos", [Json, {"authorization", Wrong}], Kill, Config))
     || Wrong <- ["Bearer correct-horse-batterz", "Bearer ", "Basic " ?TOKEN, ?TOKEN]],
    %% A form of another page could send this.
    ?assertMatch({415, _}, post("/api/chaos", [Right], Kill, Config)),
    ?assertMatch({413, _}, post("/api/chaos", [Json, Right], binary:copy(<<" ">>, 5000), Config)),
    [?assertMatch({400, _}, post("/api/chaos", [Json, Right], Wrong, Config))
     || Wrong <- [<<>>, <<"[1]">>, <<"{\"action\":\"kill_node\",\"node\":\"no@body\"}">>,
                  <<"{\"action\":1}">>]],
    ?assertMatch({404, _}, post("/api/acknowledge", [Json, Right],
                                <<"{\"id\":\"no alarm\",\"comment\":\"x\"}">>, Config)),
    ?assertMatch({405, _}, json(request(?config(port, Config), {"PUT", "/api/model"}, [], <<>>))),
    %% All of that did nothing, and the token does.
    ?assertEqual(pong, call(A, net_adm, ping, [name(B)])),
    ?assertMatch({200, #{<<"done">> := true}}, post("/api/chaos", [Json, Right], Break, Config)).

kill(Node) -> iolist_to_binary(weft_json:encode(#{action => kill_node, node => name(Node)})).

%% A node gets what it was asked for while it stood still when it goes on.
what_failed_is_not_done_later(Config) ->
    [_, _, B] = ?config(nodes, Config),
    ok = weft_test_nodes:pause(B),
    Answer = post("/api/chaos", [{"content-type", "application/json"},
                                 {"authorization", "Bearer " ?TOKEN}], kill(B), Config),
    ok = weft_test_nodes:continue(B),
    ?assertMatch({_, #{<<"error">> := <<"no answer from", _/binary>>}}, Answer),
    ?assertEqual(name(B), call(B, erlang, node, [])),
    receive after 500 -> ok end, % pacing: a kill comes some time after it was asked for
    ?assertEqual(name(B), call(B, erlang, node, [])).

post(Path, Headers, Body, Config) ->
    json(request(?config(port, Config), {"POST", Path}, Headers, Body)).

foreign_pages_are_refused(Config) ->
    Port = ?config(port, Config),
    Own = "http://127.0.0.1:" ++ integer_to_list(Port),
    Get = fun(Headers) -> element(1, request(Port, {"GET", "/api/model"}, Headers, <<>>)) end,
    [?assertEqual({Header, Status}, {Header, Get([Header])})
     || {Header, Status} <- [{{"origin", "http://evil.example"}, 403}, {{"origin", "null"}, 403},
                             {{"origin", Own ++ "0"}, 403}, {{"origin", Own}, 200},
                             {{"origin", "https://weft.example.org"}, 200},
                             {{"host", "evil.example"}, 403}, {{"host", "weft.example.org"}, 200},
                             {{"host", "localhost"}, 200}]],
    ?assertMatch({refused, {403, _, _}}, open(Port, [{"origin", "http://evil.example"}])),
    %% For pictures and links browsers send no origin.
    Fetch = fun(Path, Site, Dest) ->
                element(1, request(Port, {"GET", Path}, [{"sec-fetch-site", Site},
                                                         {"sec-fetch-dest", Dest}], <<>>))
            end,
    [?assertEqual({Asked, Status}, {Asked, Fetch(Path, Site, Dest)})
     || {{Path, Site, Dest} = Asked, Status} <-
            [{{"/api/model", "cross-site", "image"}, 403}, {{"/", "cross-site", "iframe"}, 403},
             {{"/api/model", "same-site", "script"}, 403},
             {{"/api/model", "cross-site", "document"}, 403},
             {{"/", "cross-site", "document"}, 200}, {{"/api/model", "none", "document"}, 200},
             {{"/api/model", "same-origin", "empty"}, 200}]],
    {200, Headers, _} = request(Port, "/"),
    ?assertMatch(#{<<"content-security-policy">> := <<"default-src 'self'", _/binary>>,
                   <<"x-content-type-options">> := <<"nosniff">>}, Headers).

no_file_elsewhere_is_served(Config) ->
    [?assertMatch({Path, {Status, _, _}} when Status >= 400,
                  {Path, request(?config(port, Config), Path)})
     || Path <- ["/../../ebin/weft_dashboard.app", "/%2e%2e/%2e%2e/ebin/weft_dashboard.app",
                 "/..%2f..%2febin%2fweft_dashboard.app", "//etc/passwd", "/%2fetc%2fpasswd",
                 "/app.js%00.html", "/..%5c..%5cebin", "/"
                 "%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd"]].

what_is_not_understood_ends_a_websocket(Config) ->
    [begin
         {ok, Browser} = open(?config(port, Config)),
         ok = say(Said, Browser),
         ?assertEqual({Code, Said}, {closed(Browser), Said}),
         ok = close(Browser)
     end || {Said, Code} <- [{<<"no json">>, 1008}, {<<"{\"type\":\"ack\"}">>, 1008},
                             {{binary, <<1, 2>>}, 1008}, {binary:copy(<<" ">>, 5000), 1009}]],
    ?assertEqual(ok, a_browser_follows(Config)).

closed(Browser) ->
    case frame(Browser) of
        {text, _} -> closed(Browser);
        {close, Code} -> Code
    end.

%% Four are configured. Those of other cases may be about to leave: if all four of these are there,
%% there are no others.
there_are_so_many_browsers_at_most(Config) ->
    Port = ?config(port, Config),
    until(fun() ->
                  Opened = [element(2, open(Port)) || _ <- [1, 2, 3, 4]],
                  AreThere = lists:all(fun is_there/1, Opened),
                  {ok, Fifth} = open(Port),
                  _ = AreThere andalso
                      ?assertMatch({{text, #{<<"type">> := <<"error">>}}, {close, 1013}},
                                   {frame(Fifth), frame(Fifth)}),
                  [ok = close(Browser) || Browser <- [Fifth | Opened]],
                  AreThere
          end),
    until(fun() ->
                  {ok, Browser} = open(Port),
                  IsThere = is_there(Browser),
                  ok = close(Browser),
                  IsThere
          end).

%% Its first frame has the model.
is_there(Browser) ->
    case frame(Browser) of
        {text, #{<<"type">> := Type}} -> Type =:= <<"snapshot">>;
        _Refused -> false
    end.

%% Nor do messages that nobody asked for, with agents and the dashboard there.
odd_arguments_end_no_process(Config) ->
    [A | _] = ?config(nodes, Config),
    ?assertEqual([], call(A, weft_odd_input, calls, [[weft_ops, weft_status, weft_fault]])),
    ?assertEqual([], call(A, weft_odd_input, strays, [])),
    #{<<"source">> := <<"live">>} = model(Config).

%% --- steps --------------------------------------------------------------------------------------

model(Config) ->
    {200, Model} = get(Config, "/api/model"),
    Model.

get(Config, Path) -> json(request(?config(port, Config), Path)).
