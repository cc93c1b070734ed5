%% SPDX-License-Identifier: Apache-2.0
%% @doc The page in a real browser (`weft_dashboard_chromium'), on five nodes in two groups with two
%% gateways. Without a Chromium all of it is skipped.
-module(weft_dashboard_page_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1]).
-import(weft_dashboard_nodes, [text/1]).
-import(weft_dashboard_chromium, [go/2, evaluate/2, until/2, key/2, type/2, before/2, errors/1]).
-import(weft_dashboard_page_steps, [open/3, model/1, get/2, rows/2, rows_as_they_are/2, rows_of/1,
                                    press/2, press_node/2, with_token/1, tab_to/2, focused/1,
                                    hops/0, passed/1, state/2, drawn/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([it_shows_what_the_model_says/1, the_path_between_two_nodes_that_are_pressed/1,
         nodes_are_hidden_and_shown_again/1, a_node_says_why_and_who_migrates/1,
         the_store_is_shown_where_it_runs/1, the_store_is_in_the_way_of_nobody/1,
         the_keyboard_is_enough/1,
         each_view_shows_something_and_nothing_is_refused/1,
         names_are_sorted_by_who_has_them/1,
         it_connects_again_without_a_reload/1, what_is_missed_is_asked_for_again/1,
         a_clock_that_is_ahead_hides_no_events/1,
         a_connection_that_says_nothing_is_given_up/1,
         a_large_cluster_opens_collapsed/1, a_large_cluster_is_settled_in_time/0,
         a_large_cluster_is_settled_in_time/1, a_recorded_cluster_is_settled_in_time/0,
         a_recorded_cluster_is_settled_in_time/1,
         nothing_is_in_the_way_of_anybody/1, a_gateway_is_killed_and_the_path_changes/1]).

-define(LEFT, [a, g, h]).
-define(RIGHT, [g, h, x, y]).
-define(STORES, "Ring and store of each node").
-define(CANVAS, "document.querySelector('canvas.graph')").

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [it_shows_what_the_model_says, the_path_between_two_nodes_that_are_pressed,
     nodes_are_hidden_and_shown_again, a_node_says_why_and_who_migrates,
     the_keyboard_is_enough,
     each_view_shows_something_and_nothing_is_refused, names_are_sorted_by_who_has_them,
     it_connects_again_without_a_reload, what_is_missed_is_asked_for_again,
     a_connection_that_says_nothing_is_given_up, a_clock_that_is_ahead_hides_no_events,
     a_large_cluster_opens_collapsed]
        ++ [Case || is_full(),
                    Case <- [a_large_cluster_is_settled_in_time,
                             a_recorded_cluster_is_settled_in_time,
                             nothing_is_in_the_way_of_anybody,
                             the_store_is_shown_where_it_runs,
                             the_store_is_in_the_way_of_nobody]]
        %% The last one: there is a gateway less afterwards.
        ++ [a_gateway_is_killed_and_the_path_changes].

is_full() -> os:getenv("FULL") =/= false.

init_per_suite(Config) ->
    Started = weft_test_nodes:begin_suite(Config),
    Options = #{dir => filename:join(?config(priv_dir, Config), "chromium"),
                lives_with => whereis(weft_test_nodes)},
    case weft_dashboard_chromium:start(Options) of
        {ok, Browser} ->
            [{nodes, nodes_with_dashboard(Started)}, {browser, Browser} | Started];
        {error, no_chromium} ->
            ok = weft_test_nodes:end_suite(Started),
            weft_test_missing:skip("chromium")
    end.

end_per_suite(Config) ->
    ok = weft_dashboard_chromium:stop(?config(browser, Config)),
    weft_test_nodes:end_suite(Config).

nodes_with_dashboard(Config) ->
    Nodes = maps:from_list([{Name, start(Name, Config)} || Name <- lists:usort(?LEFT ++ ?RIGHT)]),
    #{a := A} = Nodes,
    %% What is connected before all links are there may go a longer way for good.
    _ = [until(fun() -> length(call(Node, weft_overlay, neighbours, [])) =:= links_of(Name) end)
         || {Name, Node} <- maps:to_list(Nodes)],
    Port = weft_test_nodes:free_port(),
    ok = weft_dashboard_nodes:dashboard(A, [{port, Port}, {period_ms, 500}], Config),
    Nodes#{port => Port}.

links_of(Name) ->
    length(lists:usort(lists:append([Group || Group <- [?LEFT, ?RIGHT],
                                              lists:member(Name, Group)]))) - 1.

start(Name, Config) ->
    Groups = maps:from_list([{Group, [node_name(N) || N <- Names]}
                             || {Group, Names} <- [{left, ?LEFT}, {right, ?RIGHT}]]),
    weft_dashboard_nodes:start(Name, [{topology, {groups, Groups}}], Config).

init_per_testcase(_Case, Config) ->
    #{a := A, x := X} = Nodes = ?config(nodes, Config),
    until(fun() -> call(A, net_kernel, connect_node, [name(X)]) end),
    until(fun() -> up(model(Nodes)) =:= 5 end),
    open("", Nodes, ?config(browser, Config)),
    _ = errors(?config(browser, Config)),
    Config.

end_per_testcase(_Case, _Config) -> ok.

up(#{<<"nodes">> := Nodes}) ->
    length([up || #{<<"state">> := <<"up">>} <- maps:values(Nodes)]).

%% --- what it shows ------------------------------------------------------------------------------

it_shows_what_the_model_says(Config) ->
    {Nodes, Browser} = both(Config),
    #{<<"nodes">> := Known, <<"groups">> := Groups} = model(Nodes),
    ?assertEqual(lists:sort(maps:keys(Known)),
                 lists:sort(evaluate(?CANVAS ".picture.bodies()", Browser))),
    until(fun() -> states(model(Nodes)) =:= rows("Nodes", Browser) end),
    ?assertEqual(lists:sort([[Group, integer_to_binary(length(Members)), groups(Gateways)]
                             || {Group, #{<<"members">> := Members, <<"gateways">> := Gateways}}
                                    <- maps:to_list(Groups)]),
                 rows("Groups", Browser)),
    until(fun() -> links(model(Nodes)) =:= links(rows("Links", Browser)) end),
    %% Also that of a and x, which goes over a gateway: nodes tell of it with their next samples.
    until(fun() ->
                  Shown = sessions(rows("Sessions", Browser)),
                  sessions(model(Nodes)) =:= Shown
                      andalso lists:any(fun([_, Way]) -> Way =/= <<"direct">> end, Shown)
          end),
    Places = evaluate("JSON.stringify(" ?CANVAS ".picture.places())", Browser),
    open("?again", Nodes, Browser),
    ?assertEqual(Places, evaluate("JSON.stringify(" ?CANVAS ".picture.places())", Browser)).

%% A node that was late is silent for a while.
states(#{<<"nodes">> := Known}) ->
    lists:sort([[Node, State, groups(Its)]
                || {Node, #{<<"state">> := State, <<"groups">> := Its}} <- maps:to_list(Known)]).

groups(Names) -> iolist_to_binary(lists:join(", ", Names)).

links(#{<<"links">> := Links}) ->
    lists:usort([[pair(Key), <<"up">>]
                 || {Key, #{<<"state">> := <<"up">>}} <- maps:to_list(Links)]);
links(Rows) ->
    lists:sort([[Pair, State] || [Pair, State | _] <- Rows]).

sessions(#{<<"traffic">> := Traffic}) ->
    lists:usort([[pair(Key), way(lists:sort(binary:split(Key, <<" ">>)), Traffic)]
                 || Key <- maps:keys(Traffic)]);
sessions(Rows) ->
    lists:sort([[Pair, Way] || [Pair, _, Way | _] <- Rows]).

%% Each end knows its own neighbour on the way, and these may be two.
way([A, B], Traffic) ->
    Vias = [Via || Ends <- [[A, B], [B, A]],
                   {ok, #{<<"via">> := Via}}
                       <- [maps:find(iolist_to_binary(lists:join(<<" ">>, Ends)), Traffic)]],
    case Vias -- [A, B] of
        Vias -> iolist_to_binary(lists:join(<<", ">>, lists:uniq(Vias)));
        _ -> <<"direct">>
    end.

pair(Key) -> iolist_to_binary(lists:join(<<" – "/utf8>>, lists:sort(binary:split(Key, <<" ">>)))).

%% --- the path -----------------------------------------------------------------------------------

the_path_between_two_nodes_that_are_pressed(Config) ->
    {#{a := A, x := X} = Nodes, Browser} = both(Config),
    [press_node(text(Node), Browser) || Node <- [A, X]],
    _ = until([hops(), " === 2"], Browser),
    {200, #{<<"hops">> := Hops}} = get(["/api/path?from=", text(A), "&to=", text(X)], Nodes),
    ?assertEqual([iolist_to_binary([From, <<" – "/utf8>>, To])
                  || #{<<"from">> := From, <<"to">> := To} <- Hops],
                 [Pair || [_, Pair | _] <- rows_as_they_are("Hops of the path", Browser)]),
    [[_, _, Trip, Queue, Lanes], _] = rows_as_they_are("Hops of the path", Browser),
    ?assertMatch({match, _}, re:run(Trip, "^[0-9.]+ ..?s$", [unicode])),
    ?assertMatch({match, _}, re:run(Queue, "^[0-9.]+ ..?$")),
    ?assertMatch({match, _}, re:run(Lanes, "^0: [0-9.]+ ..? out, [0-9.]+ ..? in")),
    %% It is in the address, so it can be sent to somebody.
    Address = evaluate("location.hash", Browser),
    open(["?later", Address], Nodes, Browser),
    _ = until([hops(), " === 2"], Browser).

%% --- find, hide ---------------------------------------------------------------------------------

nodes_are_hidden_and_shown_again(Config) ->
    {#{x := X} = Nodes, Browser} = both(Config),
    press_node(text(X), Browser),
    press("Hide it", Browser),
    _ = until([bodies(), " === 4"], Browser),
    ?assertNot(lists:member(text(X), evaluate(?CANVAS ".picture.bodies()", Browser))),
    %% The address has it; a word that is the name of a group means those who are in no other.
    open(["?later", evaluate("location.hash", Browser)], Nodes, Browser),
    ?assertEqual(4, evaluate(bodies(), Browser)),
    _ = evaluate("document.getElementById('hide').focus()", Browser),
    type(" left", Browser),
    _ = until([bodies(), " === 3"], Browser),
    press("Show all", Browser),
    _ = until([bodies(), " === 5"], Browser),
    ?assertEqual([], errors(Browser)).

bodies() -> ?CANVAS ".picture.bodies().length".

%% --- keys ---------------------------------------------------------------------------------------

the_keyboard_is_enough(Config) ->
    {_, Browser} = both(Config),
    tab_to("e.tagName === 'CANVAS'", Browser),
    key(<<"ArrowDown">>, Browser),
    First = focused(Browser),
    key(<<"Enter">>, Browser),
    Others = [begin key(Key, Browser), focused(Browser) end
              || Key <- [<<"ArrowRight">>, <<"ArrowLeft">>, <<"ArrowDown">>, <<"ArrowUp">>]],
    ?assertMatch([_, _ | _], lists:usort([First | Others])),
    until(fun() ->
                  key(<<"ArrowRight">>, Browser),
                  key(<<"ArrowDown">>, Browser),
                  focused(Browser) =/= First
          end),
    key(<<"Enter">>, Browser),
    _ = until([hops(), " > 0"], Browser),
    key(<<"Escape">>, Browser),
    ?assertEqual(<<>>, evaluate("location.hash", Browser)),
    tab_to("e.textContent === 'Matrix'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.title === 'weft: Matrix'", Browser),
    tab_to("e.tagName === 'CANVAS'", Browser),
    [key(Key, Browser) || Key <- [<<"ArrowRight">>, <<"ArrowRight">>, <<"ArrowDown">>]],
    _ = until("document.querySelector('[aria-label=Cell] h2').textContent.includes('→')", Browser),
    ?assertEqual([], errors(Browser)).

%% --- the other views ----------------------------------------------------------------------------

each_view_shows_something_and_nothing_is_refused(Config) ->
    {#{a := A, x := X} = Nodes, Browser} = both(Config),
    ok = call(A, weft_ops, tell, [html, "<img id=html src=x onerror='window.html = 1'>"]),
    [begin
         open(["#view=", View, "&theme=", Theme], Nodes, Browser),
         _ = until(Condition, Browser)
     end || Theme <- ["light"] ++ ["dark" || is_full()], {View, Condition} <- views(text(X))],
    ?assertEqual([], errors(Browser)),
    %% An address may be written by anybody.
    open("#view=toString&by=toString&open=%2525", Nodes, Browser),
    ?assertEqual({<<"weft: Graph">>, []}, {evaluate("document.title", Browser), errors(Browser)}).

views(Node) ->
    [{"matrix", "document.querySelector('canvas.matrix').width > 100"},
     {["node&node=", Node], count("Busiest and largest processes, in a fifth of a second")},
     {"names", [count("Groups"), " && document.querySelector('[aria-label=\"Names and groups\"] "
                "[role=status]').textContent.includes('names')"]},
     {"store", ["document.querySelector('[aria-label=Store] [role=status]').textContent === "
                "'No node that answers has a ring or a store.'"]},
     {"alarms", "document.querySelector('[aria-label=Alarms]').innerText.length > 5"},
     %% Texts of nodes never become HTML.
     {"timeline", [rows_of("Events of the last hour, the newest first"),
                   ".some(r => r.textContent.includes('<img id=html')) && "
                   "document.getElementById('html') === null && window.html === undefined"]},
     {"chaos", "document.querySelector('[aria-label=Chaos] select').options.length === 5"}].

count(Caption) -> [rows_of(Caption), ".length > 0"].

a_node_says_why_and_who_migrates(Config) ->
    {#{a := A, x := X} = Nodes, Browser} = both(Config),
    open(["#view=node&node=", text(X), "&migrations=yes&why=", text(A)], Nodes, Browser),
    _ = until("document.querySelector('ul[aria-label=why]').textContent.includes('Path:')",
              Browser),
    _ = until("document.querySelectorAll('[aria-label=Node] .uplot canvas').length === 3", Browser),
    Caption = "Busiest and largest processes, in a fifth of a second",
    until(fun() -> lists:any(fun([_, _, _, _, _, Migrations | _]) ->
                                     re:run(Migrations, "^[0-9]", [{capture, none}]) =:= match
                             end, rows(Caption, Browser)) end),
    %% Nobody is traced any more.
    until(fun() -> lists:all(fun(Pid) -> lists:member(call(X, erlang, trace_info, [Pid, tracer]),
                                                      [{tracer, []}, undefined])
                             end, call(X, erlang, processes, [])) end),
    ?assertEqual([], errors(Browser)).

%% Of a strong name nobody but its replicas knows who has it, so it has no link to a node.
names_are_sorted_by_who_has_them(Config) ->
    {#{a := A} = Nodes, Browser} = both(Config),
    ok = call(A, weft_names, start_scope, [safe, #{kind => strong, voters => [name(A)],
                                                   lease_ms => 4000, partitions => 4}]),
    Pid = call(A, erlang, whereis, [init]),
    until(fun() -> call(A, weft_names, re_register, [{safe, sorted_1}, Pid]) =:= ok end),
    ok = call(A, weft_names, register, [{cluster, sorted_2}, Pid]),
    open("#view=names&find=sorted_", Nodes, Browser),
    Strong = [<<"sorted_1">>, <<"safe">>, <<"only its replicas know">>],
    Eventual = [<<"sorted_2">>, <<"cluster">>, text(A)],
    until(fun() -> rows_as_they_are("Names", Browser) =:= [Strong, Eventual] end),
    [begin
         press("Node", Browser),
         ?assertEqual({Expected, []}, {rows_as_they_are("Names", Browser), errors(Browser)})
     end || Expected <- [[Strong, Eventual], [Eventual, Strong], [Strong, Eventual]]],
    ok = call(A, weft_names, stop_scope, [safe]).

%% --- the store ----------------------------------------------------------------------------------

the_store_is_shown_where_it_runs(Config) ->
    {#{x := X, y := Y} = Nodes, Browser} = both(Config),
    weft_dashboard_nodes:with_store([X, Y], Config, fun() -> shows_store(X, Y, Nodes, Browser) end).

shows_store(X, Y, Nodes, Browser) ->
    [{ok, _} = call(X, weft_kv, put, [carts, <<N>>, <<"value">>]) || N <- lists:seq(1, 5)],
    {ok, _, _} = call(Y, weft_kv, get, [carts, <<1>>]),
    {error, bad_key} = call(Y, weft_kv, get, [carts, <<>>]),
    open("#view=store", Nodes, Browser),
    %% Partitions tell what they hold once a second, and the page asks again.
    until(fun() -> row(X, Browser) =:= stores(X) andalso row(Y, Browser) =:= stores(Y) end),
    ?assertMatch([_, <<"4">>, <<"0">>, <<"4">>, <<"0">>, <<"0">>, <<"5">> | _], row(X, Browser)),
    ?assertMatch([_, <<"4">>, <<"0">>, <<"0">>, <<"0">>, <<"2">>, <<"0">> | _], row(Y, Browser)),
    [Put] = [Took || [N, _, _, _, _, _, _, _, Took | _] <- rows(?STORES, Browser), N =:= text(X)],
    ?assertMatch({match, _}, re:run(Put, "^[0-9.]+ (µs|ms|s)$", [unicode])),
    says("Store", ["8 owned of 8, on 2 members; 0 to be moved", "0 running, 4 done, 0 failed",
                   "Gets2", "Puts5", "Errors1, 0 requests run", "Hints waiting0", "Keys5, "],
         Browser),
    open(["#view=node&node=", text(X)], Nodes, Browser),
    says("Ring and store", ["4 owned of 8", "Puts5", "Errors0"], Browser).

row(Node, Browser) ->
    lists:append([[N, Own, Going, Gone, Failed, Gets, Puts, Errors, Hints, Keys]
                  || [N, Own, Going, Gone, Failed, Gets, _, Puts, _, Errors, Hints, Keys | _]
                         <- rows(?STORES, Browser), N =:= text(Node)]).

stores(Node) ->
    #{ring := #{owned := Owned, handoffs := #{running := Running, done := Done, failed := Failed}},
      kv := #{requests := #{get := Gets, put := Puts}, errors := Errors, hints := Hints,
              objects := Keys}} = call(Node, weft_ops_stores, all, []),
    [text(Node) | [integer_to_binary(Count)
                   || Count <- [Owned, Running, Done, Failed, Gets, Puts,
                                lists:sum(maps:values(Errors)), Hints, Keys]]].

says(Section, Texts, Browser) ->
    [_ = until(["document.querySelector('[aria-label=\"", Section, "\"]')?.textContent"
                ".includes('", Text, "')"], Browser) || Text <- Texts].

%% --- large clusters -----------------------------------------------------------------------------

a_large_cluster_opens_collapsed(Config) ->
    {_, Browser} = both(Config),
    made_up(240, 8, Browser,
            fun(Nodes) ->
                    open("", Nodes, Browser),
                    ?assertEqual(<<"weft: Matrix">>, evaluate("document.title", Browser)),
                    ?assertEqual(<<"groups">>, evaluate("document.querySelectorAll('[aria-label="
                                                        "Matrix] select')[1].value", Browser)),
                    open("#view=graph", Nodes, Browser),
                    Bodies = evaluate(?CANVAS ".picture.bodies()", Browser),
                    ?assertEqual(8, length([Group || <<"group ", Group/binary>> <- Bodies])),
                    %% Two gateways between each and the next.
                    ?assertEqual(8 + 16, length(Bodies)),
                    is_full() andalso all_are_opened(240, Browser),
                    %% Its alarm is as old as the system's time.
                    open("#view=alarms", Nodes, Browser),
                    ?assertMatch([[_, _, _, _, <<Day:10/binary, " ", _:8/binary>>, _]]
                                   when Day =:= <<"1970-01-01">>; Day =:= <<"1969-12-31">>,
                                 rows("Alarms", Browser))
            end).

all_are_opened(Count, Browser) ->
    press("Open all", Browser),
    _ = until([?CANVAS ".picture.bodies().length === ", integer_to_list(Count)], Browser),
    ok.

made_up(Count, Groups, Browser, Fun) -> made_up(Count, Groups, [], Browser, Fun).

made_up(Count, Groups, Env, Browser, Fun) ->
    {Supervisor, Port} = weft_dashboard_made_up:start(Count, Groups, Env),
    try Fun(#{port => Port})
    after
        true = go("about:blank", Browser),
        weft_dashboard_made_up:stop(Supervisor)
    end.

%% How long until the graph stands still: the median of some openings, as now and then the machine
%% does something else. With 200 nodes no task of the page's thread takes more than 50 ms until the
%% second model is shown, in any of the openings, on a machine that does nothing else.
a_large_cluster_is_settled_in_time() -> [{timetrap, {minutes, 5}}].

a_large_cluster_is_settled_in_time(Config) ->
    {_, Browser} = both(Config),
    Undo = before(noted_tasks(), Browser),
    Opened = [{What, made_up(Count, Groups, Browser,
                             fun(Nodes) ->
                                     [opened(Address, Nodes, Browser) || _ <- lists:seq(1, Times)]
                             end)}
              || {Count, Groups, Address, Times} = What <-
                     [{200, 10, "", 10}, {200, 10, "#view=graph", 10},
                      {1000, 40, "#view=graph", 3}, {1000, 40, "#view=graph&open=all", 3}]],
    Undo(),
    in_time(Opened).

noted_tasks() ->
    "window.tasks = [0]; new PerformanceObserver((list) => tasks.push("
        "...list.getEntries().map((entry) => entry.duration)))"
        ".observe({ type: 'longtask', buffered: true });".

in_time(Opened) ->
    ct:pal("~p~nmedians of milliseconds: ~p",
           [Opened, [{What, median([Ms || {Ms, _} <- Runs])} || {What, Runs} <- Opened]]),
    [?assertEqual({What, true},
                  {What, median([Ms || {Ms, _} <- Runs]) =< settled_in_ms(Count)})
     || {{Count, _, "#view=graph" ++ _, _} = What, Runs} <- Opened],
    [?assertEqual({What, []}, {What, [TaskMs || {_, TaskMs} <- Runs, TaskMs > 50]})
     || {{200, _, _, _} = What, Runs} <- Opened].

settled_in_ms(200) -> 1000;
settled_in_ms(1000) -> 4000.

median(Numbers) -> lists:nth(length(Numbers) div 2 + 1, lists:sort(Numbers)).

%% The matrix, which opens first, has no places that settle.
opened(Address, Nodes, Browser) ->
    open(Address, Nodes, Browser),
    settled_since("performance.getEntriesByName('first-model')[0].startTime", Browser).

settled_since(Since, Browser) ->
    _ = until("performance.getEntriesByName('first-model')[0].startTime + 2500 < "
              "performance.now()", Browser),
    {evaluate(["(performance.getEntriesByName('settled')[0]?.startTime ?? 0) - ", Since], Browser),
     evaluate("Math.max(...tasks)", Browser)}.

%% The same of a recording, since the model has come; how long that took before is printed.
a_recorded_cluster_is_settled_in_time() -> [{timetrap, {minutes, 10}}].

a_recorded_cluster_is_settled_in_time(Config) ->
    {_, Browser} = both(Config),
    Undo = before(noted_tasks(), Browser),
    Opened = [{What, recorded(What, Config)}
              || What <- [{200, 10, "#view=graph&at=", 10}, {1000, 40, "#view=graph&at=", 3}]],
    Undo(),
    in_time(Opened).

recorded({Count, Groups, Address, Times}, Config) ->
    {_, Browser} = both(Config),
    Dir = filename:join(?config(priv_dir, Config), "recorded_" ++ integer_to_list(Count)),
    At = integer_to_list(weft_dashboard_made_up:record(Count, Groups, Dir)),
    made_up(Count, Groups, [{recording, Dir}], Browser,
            fun(Nodes) ->
                    [opened_as_recorded(Address ++ At, Nodes, Browser)
                     || _ <- lists:seq(1, Times)]
            end).

opened_as_recorded(Address, Nodes, Browser) ->
    Answer = "performance.getEntriesByType('resource')"
        ".find(({ name }) => name.includes('/api/recording?at='))",
    open(Address, Nodes, Browser),
    _ = until("document.documentElement.dataset.past === 'true' && "
              "performance.getEntriesByName('settled').length > 0", Browser),
    ct:log("the model came after ~p ms", [evaluate([Answer, ".duration"], Browser)]),
    settled_since([Answer, ".responseEnd"], Browser).

nothing_is_in_the_way_of_anybody(Config) ->
    {Nodes, Browser} = both(Config),
    case weft_dashboard_page_steps:axe() of
        {ok, Axe} ->
            [begin
                 open(["#view=", View, "&theme=", Theme], Nodes, Browser),
                 weft_dashboard_page_steps:hindrances(Axe, {View, Theme}, Browser)
             end || Theme <- ["light", "dark"],
                    View <- ["graph", "matrix", "node", "names", "store", "alarms", "timeline",
                             "chaos"]];
        Skip ->
            Skip
    end.

%% On all nodes together, and on the page of one. The log has pictures of it.
the_store_is_in_the_way_of_nobody(Config) ->
    {#{x := X, y := Y}, Browser} = both(Config),
    case weft_dashboard_page_steps:axe() of
        {ok, Axe} ->
            weft_dashboard_nodes:with_store(
              [X, Y], Config,
              fun() ->
                  _ = [{ok, _} = call(X, weft_kv, put, [carts, <<N>>, <<"value">>])
                       || N <- lists:seq(1, 5)],
                  [looked_at({Section, View, Theme}, Axe, Config)
                   || Theme <- ["light", "dark"],
                      {Section, View} <- [{"Store", "store"},
                                          {"Ring and store", ["node&node=", text(X)]}]],
                  ?assertEqual([], errors(Browser))
              end);
        Skip ->
            Skip
    end.

looked_at({Section, View, Theme} = What, Axe, Config) ->
    {Nodes, Browser} = both(Config),
    open(["#view=", View, "&theme=", Theme], Nodes, Browser),
    says(Section, ["Puts5"], Browser),
    _ = evaluate(["document.querySelector('[aria-label=\"", Section, "\"]').scrollIntoView();0"],
                 Browser),
    Picture = lists:flatten([string:replace(Section, " ", "_", all), $_, Theme, ".png"]),
    ok = weft_dashboard_chromium:screenshot(filename:join(?config(priv_dir, Config), Picture),
                                            Browser),
    weft_dashboard_page_steps:hindrances(Axe, What, Browser).

%% --- failures -----------------------------------------------------------------------------------

it_connects_again_without_a_reload(Config) ->
    {#{a := A} = Nodes, Browser} = both(Config),
    _ = evaluate("window.mark = 'still here'", Browser),
    ok = call(A, application, stop, [weft_dashboard]),
    _ = until("document.documentElement.dataset.connection !== 'live'", Browser),
    ok = call(A, application, start, [weft_dashboard]),
    _ = until("document.documentElement.dataset.connection === 'live'", Browser),
    ?assertEqual(<<"still here">>, evaluate("window.mark", Browser)),
    until(fun() -> rows("Nodes", Browser) =:= states(model(Nodes)) end).

%% The page does not get the second frame, though the server takes it for acknowledged.
what_is_missed_is_asked_for_again(Config) ->
    {Nodes, Browser} = both(Config),
    Undo = before("window.said = [];"
                  "window.WebSocket = class extends WebSocket {"
                  "  set onmessage(take) {"
                  "    let count = 0;"
                  "    super.onmessage = (event) => {"
                  "      const frame = JSON.parse(event.data);"
                  "      said.push(frame.type);"
                  "      if (++count !== 2) take(event);"
                  "      else super.send(JSON.stringify({ type: 'ack', number: frame.number }));"
                  "    };"
                  "  }"
                  "  send(text) { said.push(JSON.parse(text).type); super.send(text); }"
                  "};", Browser),
    open("", Nodes, Browser),
    _ = until("said.length >= 10", Browser),
    Undo(),
    ?assertEqual(<<"snapshot ack patch patch resend snapshot ack patch ack">>,
                 evaluate("said.slice(0, 9).join(' ')", Browser)),
    until(fun() -> rows("Nodes", Browser) =:= states(model(Nodes)) end).

%% As when a tunnel hangs. Twenty seconds pass fast there.
a_connection_that_says_nothing_is_given_up(Config) ->
    {Nodes, Browser} = both(Config),
    Undo = before("window.opened = 0;"
                  "const later = window.setTimeout;"
                  "window.setTimeout = (act, ms) => later(act, ms > 20000 ? 2000 : ms);"
                  "window.WebSocket = class extends WebSocket {"
                  "  set onmessage(take) {"
                  "    const isFirst = ++opened === 1;"
                  "    let count = 0;"
                  "    super.onmessage = (event) => {"
                  "      if (!isFirst || ++count <= 2) take(event);"
                  "    };"
                  "  }"
                  "};", Browser),
    open("", Nodes, Browser),
    Undo(),
    _ = until("opened === 2 && document.documentElement.dataset.connection === 'live'", Browser),
    ?assertEqual([], errors(Browser)).

%% Each answer has an event of a node whose clock is ahead by ten minutes. The next question is not
%% for what happens after that.
a_clock_that_is_ahead_hides_no_events(Config) ->
    {Nodes, Browser} = both(Config),
    Undo = before("window.asked = [];"
                  "const ask = window.fetch;"
                  "window.fetch = async (url, ...more) => {"
                  "  const answer = await ask(url, ...more);"
                  "  const since = /events.since=([0-9]+)/.exec(String(url));"
                  "  if (!since) return answer;"
                  "  asked.push(Number(since[1]));"
                  "  const said = await answer.json();"
                  "  said.events.push({ at_ms: Date.now() + 600000, kind: 'link_up',"
                  "                     node: 'ahead@nowhere', about: '', text: '' });"
                  "  return new Response(JSON.stringify(said));"
                  "};", Browser),
    open("#view=timeline", Nodes, Browser),
    _ = until("asked.length >= 2 && document.body.innerText.includes('ahead@nowhere')", Browser),
    ?assertEqual(true, evaluate("Math.max(...asked) <= Date.now()", Browser)),
    Undo().

a_gateway_is_killed_and_the_path_changes(Config) ->
    {#{a := A, x := X, g := G, h := H} = Nodes, Browser} = both(Config),
    open(["#from=", text(A), "&to=", text(X)], Nodes, Browser),
    _ = until([hops(), " === 2"], Browser),
    [Killed] = passed(Browser),
    %% The replay goes back to this moment, at which it must not be silent because it was late.
    until(fun() -> state(Killed, Browser) =:= [<<"up">>] end),
    BeforeMs = evaluate("Date.now()", Browser),
    [Other] = [text(Node) || Node <- [G, H]] -- [Killed],
    press_node(Killed, Browser),
    press("Kill this node", Browser),
    press("Yes, do it", Browser),
    with_token(Browser),
    _ = until(["document.body.innerText.includes('", Killed, " is killed')"], Browser),
    _ = evaluate(["location.hash = 'from=", text(A), "&to=", text(X), "'"], Browser),
    until(fun() -> passed(Browser) =:= [Other] end),
    until(fun() -> state(Killed, Browser) =:= [<<"silent">>] end),
    until(fun() -> pairs(model(Nodes)) =:= pairs(rows("Links", Browser)) end),
    it_is_in_the_timeline(Killed, Nodes, Browser),
    its_alarm_is_acknowledged(Killed, Nodes, Browser),
    it_is_replayed(Killed, BeforeMs, Config).

it_is_replayed(Killed, BeforeMs, Config) ->
    {#{a := A} = Nodes, Browser} = both(Config),
    ok = call(A, weft_ops_recorder, flush, []),
    AsBefore = ["#at=", integer_to_list(BeforeMs)],
    Undo = before(slow_layouts(), Browser),
    open(AsBefore, Nodes, Browser),
    Undo(),
    _ = until("document.documentElement.dataset.past === 'true'", Browser),
    ?assertEqual([<<"up">>], state(Killed, Browser)),
    %% Played on, it is killed again.
    _ = evaluate("document.querySelector('[aria-label=\"speed of the replay\"]').value = '1'",
                 Browser),
    press("Play", Browser),
    until(fun() -> state(Killed, Browser) =:= [<<"silent">>] end),
    ?assertEqual(<<"true">>, evaluate("document.documentElement.dataset.past", Browser)),
    %% The time that is shown stands still from then on.
    _ = until("[...document.querySelectorAll('button')].some(b => b.textContent === 'Play' || "
              "(b.textContent === 'Pause' && b.click()))", Browser),
    %% On the canvas too, as nothing else changes it now; and back.
    until(fun() -> stays_drawn(<<"silent">>, Killed, Browser) end),
    _ = evaluate(["location.hash = '", AsBefore, "'"], Browser),
    until(fun() -> stays_drawn(<<"up">>, Killed, Browser) end),
    ?assertEqual([<<"up">>], state(Killed, Browser)),
    press("Back to now", Browser),
    _ = until("document.documentElement.dataset.past === 'false'", Browser),
    ?assertEqual(undefined, evaluate("new URLSearchParams(location.hash.slice(1)).get('at') ?? "
                                     "undefined", Browser)),
    until(fun() -> state(Killed, Browser) =:= [<<"silent">>] end),
    until(fun() -> drawn(Killed, Browser) =:= <<"silent">> end).

%% It has no new layout if none of its links changed at that moment. If there is one, it may still
%% be on its way, and must not draw what was before.
stays_drawn(State, Node, Browser) ->
    Settled = evaluate("settled", Browser),
    receive after 500 -> ok end, % pacing: a layout takes hundreds of tasks
    drawn(Node, Browser) =:= State andalso evaluate("settled", Browser) =:= Settled.

%% A page whose layout takes hundreds of tasks, as time goes fast for it, and which counts the
%% layouts that were done.
slow_layouts() ->
    "const now = performance.now.bind(performance); let more = 0;"
    "performance.now = () => now() + (more += 20); window.settled = 0;"
    "document.addEventListener('settled', () => settled += 1);".

pairs(#{<<"links">> := Links}) -> lists:usort([pair(Key) || Key <- maps:keys(Links)]);
pairs(Rows) -> [Pair || [Pair | _] <- Rows].

it_is_in_the_timeline(Killed, Nodes, Browser) ->
    open("#view=timeline&kinds=nodes", Nodes, Browser),
    until(fun() -> [Node || [_, <<"silent">>, Node | _] <- rows("Events of the last hour, "
                                                                "the newest first", Browser),
                            Node =:= Killed] =/= [] end).

its_alarm_is_acknowledged(Killed, Nodes, Browser) ->
    open("#view=alarms", Nodes, Browser),
    _ = until(["(document.querySelector('input[aria-label*=\"unreachable ", Killed,
               "\"]') ?? { focus: () => 0 }).focus() === undefined"], Browser),
    type("it is only a test", Browser),
    key(<<"Enter">>, Browser),
    with_token(Browser),
    until(fun() -> [Care || [_, <<"unreachable">>, Node, _, _, Care] <- rows("Alarms", Browser),
                            Node =:= Killed] =:= [<<"it is only a test">>] end),
    [?assertMatch({match, _}, re:run(Since, "^\\d\\d:\\d\\d:\\d\\d$"))
     || [_, _, _, _, Since, _] <- rows("Alarms", Browser)].

%% --- steps --------------------------------------------------------------------------------------

both(Config) -> {?config(nodes, Config), ?config(browser, Config)}.
