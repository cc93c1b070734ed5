%% SPDX-License-Identifier: Apache-2.0
%% @doc The page in a real browser, on 24 live nodes in three groups that four gateways join, while
%% the Instant Messenger runs on those that are no gateways. With FULL=1; what is cheap of it is in
%% weft_dashboard_page_SUITE, with five nodes.
%%
%% The cases are one story, in this order: the last but one kills a gateway, and then people end.
%% The last one compares all counters then.
-module(weft_dashboard_live_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4, call/5, until/1]).
-import(weft_dashboard_nodes, [text/1]).
-import(weft_dashboard_chromium, [evaluate/2, until/2, key/2, command/3, screenshot/2, errors/1]).
-import(weft_dashboard_page_steps, [open/3, model/1, get/2, rows/2, press/2, press_node/2,
                                    with_token/1, tab_to/2, focused/1, hops/0, passed/1,
                                    state/2, drawn/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([it_equals_the_status_of_the_nodes/1, the_path_of_two_nodes/1, with_keys_only/1,
         axe_finds_nothing_serious/1, it_connects_again/1, its_heap_does_not_grow/1,
         a_gateway_is_killed_and_replayed/1, all_counters_equal_the_status/1]).

-define(CANVAS, "document.querySelector('canvas.graph')").
-define(GROUPS, #{a => [a1, a2, a3, a4, a5, a6, a7, g1, g2],
                  b => [b1, b2, b3, b4, b5, b6, g1, g2, h1, h2],
                  c => [c1, c2, c3, c4, c5, c6, c7, h1, h2]}).
-define(GATEWAYS, [g1, g2, h1, h2]).
%% They talk until it is over; a message that nobody could deliver would be seen in the end.
-define(IM, #{routers => 2, servers => 6, client_nodes => 3, names => {weft, cluster},
              is_grouped => false, count => 60, scale => 0.02, warm_up_ms => 1000,
              run_ms => 960000}).
-define(CALL_MS, 1800000).
-define(EVENTS, "Events of the last hour, the newest first").
-define(HEAP_MS, 600000).
-define(HEAP_PERCENT, 10).

suite() -> [{timetrap, {minutes, 40}}].

all() ->
    [it_equals_the_status_of_the_nodes, the_path_of_two_nodes, with_keys_only,
     axe_finds_nothing_serious, it_connects_again, its_heap_does_not_grow,
     a_gateway_is_killed_and_replayed, all_counters_equal_the_status].

init_per_suite(Config) ->
    started(weft_test_nodes:begin_suite(Config)).

started(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "chromium"),
    case weft_dashboard_chromium:start(#{dir => Dir, lives_with => whereis(weft_test_nodes)}) of
        {ok, Browser} ->
            Nodes = maps:from_list([{Name, start(Name, Config)} || Name <- names()]),
            Port = weft_test_nodes:free_port(),
            ok = weft_dashboard_nodes:dashboard(map_get(a1, Nodes), [{port, Port}], Config),
            [{nodes, Nodes#{port => Port}}, {browser, Browser}, {talk, talk(Nodes)} | Config];
        {error, no_chromium} ->
            ok = weft_test_nodes:end_suite(Config),
            weft_test_missing:skip("chromium")
    end.

end_per_suite(Config) ->
    ok = weft_dashboard_chromium:stop(?config(browser, Config)),
    weft_test_nodes:end_suite(Config).

names() -> lists:usort(lists:append(maps:values(?GROUPS))).

start(Name, Config) ->
    Groups = maps:map(fun(_, Names) -> [node_name(N) || N <- Names] end, ?GROUPS),
    Code = [["-pa", weft_test_nodes:ebin(Module)]
            || Module <- [weft_im, weft_bench_program, weft_report_record]],
    weft_dashboard_nodes:start(Name, [{topology, {groups, Groups}}],
                               #{args => lists:append(Code) ++ ["+S", "1:1", "+sbwt", "none"],
                                 ops => [{sample_ms, 2000}], dashboard => Name =:= a1}, Config).

%% The Instant Messenger on all nodes but the gateways; it is asked for when all is done.
talk(Nodes) ->
    [First | _] = Talking = [map_get(Name, Nodes) || Name <- names() -- ?GATEWAYS],
    Test = whereis(weft_test_nodes),
    until(fun() -> length(call(First, weft_overlay, routes, [])) =:= length(names()) - 1 end),
    spawn(fun() ->
                  _ = monitor(process, Test),
                  Result = call(First, weft_bench_program, run,
                                [weft_im, ?IM, [weft_test_nodes:name(N) || N <- Talking], ?CALL_MS],
                                ?CALL_MS),
                  receive
                      {result, From} -> From ! {self(), Result};
                      {'DOWN', _, process, Test, _} -> ok
                  end
          end).

both(Config) -> {?config(nodes, Config), ?config(browser, Config)}.

%% --- the same as weft status --------------------------------------------------------------------

it_equals_the_status_of_the_nodes(Config) ->
    {#{a1 := A} = Nodes, Browser} = both(Config),
    open("#view=graph", Nodes, Browser),
    until(fun() -> length([up || [_, <<"up">>, _] <- rows("Nodes", Browser)]) =:= 24 end),
    ?assertEqual(lists:sort([[text(node_name(Name)), <<"up">>, groups_of(Name)]
                             || Name <- names()]), rows("Nodes", Browser)),
    ?assertEqual([[text(Group), integer_to_binary(length(Members)),
                   joined([text(node_name(N)) || N <- Members, lists:member(N, ?GATEWAYS)])]
                  || {Group, Members} <- lists:sort(maps:to_list(?GROUPS))],
                 rows("Groups", Browser)),
    %% It is drawn when the layout is done.
    until(fun() -> lists:sort([text(node_name(Name)) || Name <- names()])
                       =:= lists:sort(evaluate(?CANVAS ".picture.bodies()", Browser)) end),
    %% Each link, by the status of both of its ends.
    until(fun() -> [{Pair, <<"up">>} || Pair <- links(Nodes)]
                       =:= [{Pair, State} || [Pair, State | _] <- rows("Links", Browser)] end),
    %% People talk, and what the page says of a session grows with what its ends say.
    Peer = busiest(A),
    open(["#view=node&node=", text(A)], Nodes, Browser),
    until(fun() ->
                  Before = bytes_out(A, Peer),
                  Shown = [in_bytes(Out) || [With, _, _, Out | _] <- rows("Sessions", Browser),
                                            With =:= text(Peer)],
                  After = bytes_out(A, Peer),
                  %% Two digits are shown, of at most three seconds ago.
                  [Bytes || Bytes <- Shown, Bytes >= 0.9 * Before, Bytes =< 1.06 * After] =/= []
          end),
    ok = screenshot(filename:join(?config(priv_dir, Config), "node.png"), Browser),
    ?assertEqual([], errors(Browser)).

groups_of(Name) ->
    joined([text(Group) || {Group, Members} <- lists:sort(maps:to_list(?GROUPS)),
                           lists:member(Name, Members)]).

joined(Texts) -> iolist_to_binary(lists:join(", ", Texts)).

links(Nodes) ->
    lists:usort([pair(text(Node), text(Peer))
                 || #{node := Node} = At <- maps:values(maps:remove(port, Nodes)),
                    #{node := Peer, state := up} <- maps:get(links, call(At, weft, status, []))]).

pair(A, B) -> iolist_to_binary(lists:join(<<" – "/utf8>>, lists:sort([A, B]))).

sessions(At) -> maps:get(sessions, call(At, weft, status, [])).

busiest(At) ->
    {_, Peer} = lists:max([{Bytes, Peer} || #{node := Peer, bytes_out := Bytes} <- sessions(At)]),
    Peer.

bytes_out(At, Peer) ->
    [Bytes] = [Out || #{node := Node, bytes_out := Out} <- sessions(At), Node =:= Peer],
    Bytes.

in_bytes(Text) ->
    [Number, Unit] = binary:split(Text, <<" ">>),
    binary_to_number(Number) * map_get(Unit, #{<<"B">> => 1, <<"kB">> => 1.0e3, <<"MB">> => 1.0e6,
                                               <<"GB">> => 1.0e9}).

binary_to_number(Text) ->
    try binary_to_float(Text) catch error:badarg -> binary_to_integer(Text) end.

%% --- the path, keys, axe ------------------------------------------------------------------------

the_path_of_two_nodes(Config) ->
    {#{a1 := A, c7 := C} = Nodes, Browser} = both(Config),
    open("#view=graph", Nodes, Browser),
    [press_node(text(Node), Browser) || Node <- [A, C]],
    _ = until([hops(), " === 3"], Browser),
    [First, Second] = passed(Browser),
    ?assert(lists:member(First, [text(node_name(N)) || N <- [g1, g2]])),
    ?assert(lists:member(Second, [text(node_name(N)) || N <- [h1, h2]])),
    ok = screenshot(filename:join(?config(priv_dir, Config), "path.png"), Browser).

with_keys_only(Config) ->
    {Nodes, Browser} = both(Config),
    open("#view=graph", Nodes, Browser),
    tab_to("e.tagName === 'CANVAS'", Browser),
    key(<<"ArrowDown">>, Browser),
    First = focused(Browser),
    key(<<"Enter">>, Browser),
    until(fun() ->
                  key(<<"ArrowRight">>, Browser),
                  key(<<"ArrowDown">>, Browser),
                  focused(Browser) =/= First
          end),
    key(<<"Enter">>, Browser),
    _ = until([hops(), " > 0"], Browser),
    tab_to("e.textContent === 'Matrix'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.title === 'weft: Matrix'", Browser),
    tab_to("e.tagName === 'CANVAS'", Browser),
    [key(Key, Browser) || Key <- [<<"ArrowRight">>, <<"ArrowRight">>, <<"ArrowDown">>]],
    _ = until("document.querySelector('[aria-label=Cell] h2').textContent.includes('→')", Browser).

axe_finds_nothing_serious(Config) ->
    {#{a1 := A} = Nodes, Browser} = both(Config),
    case weft_dashboard_page_steps:axe() of
        {ok, Axe} ->
            [begin
                 open(["#view=", View, "&theme=", Theme], Nodes, Browser),
                 Caption =:= none orelse until(fun() -> rows(Caption, Browser) =/= [] end),
                 ok = screenshot(filename:join(?config(priv_dir, Config),
                                               hd(string:split(View, "&")) ++ Theme ++ ".png"),
                                 Browser),
                 weft_dashboard_page_steps:hindrances(Axe, {View, Theme}, Browser)
             end || Theme <- ["light", "dark"], {View, Caption} <- views(binary_to_list(text(A)))];
        Skip ->
            Skip
    end.

%% Each with a table in which there is something, perhaps a moment later.
views(Node) ->
    [{"graph", "Nodes"}, {"matrix", none}, {"node&node=" ++ Node, "Sessions"}, {"names", "Names"},
     {"alarms", none}, {"timeline", ?EVENTS}, {"chaos", none}].

it_connects_again(Config) ->
    {#{a1 := A} = Nodes, Browser} = both(Config),
    open("#view=graph", Nodes, Browser),
    _ = evaluate("window.mark = 'still here'", Browser),
    ok = call(A, application, stop, [weft_dashboard]),
    _ = until("document.documentElement.dataset.connection !== 'live'", Browser),
    ok = call(A, application, start, [weft_dashboard]),
    _ = until("document.documentElement.dataset.connection === 'live'", Browser),
    ?assertEqual(<<"still here">>, evaluate("window.mark", Browser)),
    %% Browsers tell of each connection that is refused.
    ?assertEqual([], [Error || Error <- errors(Browser),
                               maps:get(<<"source">>, Error, none) =/= <<"network">>]).

%% --- ten minutes --------------------------------------------------------------------------------

its_heap_does_not_grow(Config) ->
    {Nodes, Browser} = both(Config),
    open("#view=graph", Nodes, Browser),
    receive after ?HEAP_MS div 10 -> ok end, % pacing: what is kept for the charts is there then
    Before = heap_bytes(Browser),
    Looks = [begin
                 receive after ?HEAP_MS div 10 -> ok end, % pacing: the time itself is the subject
                 heap_bytes(Browser)
             end || _ <- lists:seq(1, 10)],
    ct:pal("heap before: ~b, then each minute ~p: ~.1f %",
           [Before, Looks, 100 * (lists:last(Looks) / Before - 1)]),
    ?assert(100 * (lists:last(Looks) / Before - 1) < ?HEAP_PERCENT),
    ?assertEqual([], errors(Browser)).

%% The least of some looks: now and then there is a second model, which has just come.
heap_bytes(Browser) ->
    lists:min([begin
                   receive after 370 -> ok end, % pacing: models come each second
                   used_bytes(Browser)
               end || _ <- lists:seq(1, 8)]).

used_bytes(Browser) ->
    _ = command(<<"HeapProfiler.collectGarbage">>, #{}, Browser),
    _ = command(<<"Performance.enable">>, #{}, Browser),
    #{<<"metrics">> := Metrics} = command(<<"Performance.getMetrics">>, #{}, Browser),
    [Bytes] = [Value || #{<<"name">> := <<"JSHeapUsedSize">>, <<"value">> := Value} <- Metrics],
    Bytes.

%% --- a gateway ----------------------------------------------------------------------------------

a_gateway_is_killed_and_replayed(Config) ->
    {#{a1 := A, c7 := C} = Nodes, Browser} = both(Config),
    Path = ["#view=graph&from=", text(A), "&to=", text(C)],
    open(Path, Nodes, Browser),
    _ = until([hops(), " === 3"], Browser),
    [Killed | _] = passed(Browser),
    BeforeMs = evaluate("Date.now()", Browser),
    press("Clear", Browser),
    press_node(Killed, Browser),
    press("Kill this node", Browser),
    press("Yes, do it", Browser),
    with_token(Browser),
    _ = until(["document.body.innerText.includes('", Killed, " is killed')"], Browser),
    _ = evaluate(["location.hash = '", tl(hd(Path)), tl(Path), "'"], Browser),
    until(fun() -> case passed(Browser) of [Now, _] -> Now =/= Killed; _ -> false end end),
    until(fun() -> state(Killed, Browser) =:= [<<"silent">>] end),
    ok = screenshot(filename:join(?config(priv_dir, Config), "killed.png"), Browser),
    %% Of all events the newest 200 are shown, and each session of the gateway has some.
    [begin
         open(["#view=timeline&kinds=", Kinds], Nodes, Browser),
         until(fun() -> lists:member(Kind, [What || [_, What | _] <- rows(?EVENTS, Browser)]) end)
     end || {Kinds, Kind} <- [{"nodes", <<"silent">>}, {"sessions", <<"rerouted">>},
                              {"said", <<"told">>}]],
    ok = call(A, weft_ops_recorder, flush, []),
    open(["#view=graph&at=", integer_to_list(BeforeMs)], Nodes, Browser),
    _ = until("document.documentElement.dataset.past === 'true'", Browser),
    ?assertEqual([<<"up">>], state(Killed, Browser)),
    press("Play", Browser),
    until(fun() -> state(Killed, Browser) =:= [<<"silent">>] end),
    until(fun() -> drawn(Killed, Browser) =:= <<"silent">> end),
    ok = screenshot(filename:join(?config(priv_dir, Config), "replayed.png"), Browser),
    ?assertEqual([], errors(Browser)),
    Talk = ?config(talk, Config),
    Talk ! {result, self()},
    Result = receive {Talk, Of} -> Of end,
    ct:pal("people: ~tp", [Result]),
    {ok, #{said := Said, heard := Heard, lost_messages := Lost}} = Result,
    ?assert(Said > 1000),
    ?assertEqual({Said, 0}, {Heard, Lost}).

%% --- when people have ended ---------------------------------------------------------------------

%% Nodes tell each other how they are, and are looked at. So what the dashboard has of each session
%% and of each lane is not less than it was in `weft status' just before, and not more than it is
%% there just after; what stood still meanwhile is the same to the byte. Then what the page shows of
%% each session, in two digits.
all_counters_equal_the_status(Config) ->
    {Nodes, Browser} = both(Config),
    #{<<"nodes">> := Known} = model(Nodes),
    Up = [At || At <- maps:values(maps:remove(port, Nodes)),
                #{<<"state">> := <<"up">>} <- [map_get(text(At), Known)]],
    ?assertEqual(length(names()) - 1, length(Up)),
    Names = [weft_test_nodes:name(At) || At <- Up],
    [until(fun() -> wrong(At, Names, Nodes) =:= [] end) || At <- Up],
    [begin
         open(["#view=node&node=", text(At)], Nodes, Browser),
         until(fun() -> is_shown(At, Names, Browser) end)
     end || At <- Up],
    ?assertEqual([], errors(Browser)).

wrong(At, Names, Nodes) ->
    Before = of_status(At, Names),
    Told = of_dashboard(At, Names, Nodes),
    After = of_status(At, Names),
    Keys = lists:usort(lists:append([maps:keys(Counters) || Counters <- [Before, Told, After]])),
    Wrong = [Row || Key <- Keys,
                    Row <- [{Key, maps:find(Key, Before), maps:find(Key, Told),
                             maps:find(Key, After)}],
                    not lies_between(Row)],
    Still = [Key || Key <- Keys, maps:find(Key, Before) =:= maps:find(Key, After)],
    ct:log("~ts: ~b sessions and lanes, ~b of them stood still, wrong: ~p",
           [text(At), length(Keys), length(Still), Wrong]),
    Wrong.

lies_between({_, {ok, {OutBefore, InBefore}}, {ok, {Out, In}}, {ok, {OutAfter, InAfter}}}) ->
    OutBefore =< Out andalso Out =< OutAfter andalso InBefore =< In andalso In =< InAfter;
lies_between(_OneHasNone) ->
    false.

%% Sessions as the command `weft status --json' has them, which is given what the node says.
of_status(At, Names) ->
    #{links := Links} = Status = call(At, weft, status, []),
    #{direct := Direct, circuits := Circuits} =
        weft_local_picture:of_statuses(#{nodes => Names, unknown => []},
                                       #{weft_test_nodes:name(At) => Status}),
    maps:from_list([{{session, text(Peer)}, {Out, In}}
                    || #{to := Peer, bytes_out := Out, bytes_in := In} <- Direct ++ Circuits]
                   ++ [{{lane, text(Peer), Index}, {Out, In}}
                       || #{node := Peer, lane_stats := Lanes} <- Links, lists:member(Peer, Names),
                          #{index := Index,
                            stat := #{send_oct := Out, recv_oct := In}} <- Lanes]).

of_dashboard(At, Names, Nodes) ->
    {200, #{<<"sessions">> := Sessions, <<"links">> := Links}} =
        get(["/api/node?name=", text(At)], Nodes),
    Known = [text(Name) || Name <- Names],
    maps:from_list([{{session, Peer}, {Out, In}}
                    || #{<<"node">> := Peer, <<"bytes_out">> := Out,
                         <<"bytes_in">> := In} <- Sessions, lists:member(Peer, Known)]
                   ++ [{{lane, Peer, Index}, {Out, In}}
                       || #{<<"node">> := Peer, <<"lanes">> := Lanes} <- Links,
                          lists:member(Peer, Known),
                          #{<<"index">> := Index, <<"bytes_out">> := Out,
                            <<"bytes_in">> := In} <- Lanes]).

is_shown(At, Names, Browser) ->
    Rows = [{{session, Peer}, {Out, In}} || [Peer, _, _, Out, In | _] <- rows("Sessions", Browser)],
    Counted = [{Key, Counts} || {{session, _} = Key, Counts} <- maps:to_list(of_status(At, Names))],
    Counted =/= [] andalso
        lists:all(fun({Key, {Out, In}}) ->
                          case lists:keyfind(Key, 1, Rows) of
                              {_, {OutText, InText}} ->
                                  is_of(OutText, Out) andalso is_of(InText, In);
                              false -> false
                          end
                  end, Counted).

%% Two digits, of at most three seconds ago.
is_of(Text, Bytes) -> in_bytes(Text) >= 0.9 * Bytes andalso in_bytes(Text) =< 1.06 * Bytes.
