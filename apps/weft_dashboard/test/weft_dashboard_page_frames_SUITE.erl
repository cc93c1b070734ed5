%% SPDX-License-Identifier: Apache-2.0
%% @doc The page in a real browser, where the test says what the server sends and answers: what no
%% server does, or none when a test needs it. weft_dashboard_page_frames_SUITE_data/server.js stands
%% between the two. Without a Chromium all of it is skipped.
-module(weft_dashboard_page_frames_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_dashboard_chromium, [evaluate/2, until/2, type/2, errors/1]).
-import(weft_dashboard_page_steps, [rows/2, rows_as_they_are/2, press/2, state/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([numbers_have_two_digits_or_are_whole/1, a_group_may_have_any_name/1,
         what_can_not_be_read_is_told_and_the_next_model_is_shown/1,
         what_is_no_frame_ends_the_connection/1,
         a_server_that_closes_at_once_is_called_less_and_less/1,
         a_comment_stays_while_it_is_written/1, no_path_is_asked_for_that_nobody_sees/1,
         who_leaves_a_view_and_comes_back_asks_once/1,
         why_a_recording_can_not_be_read_is_told_until_the_next_step/1,
         of_the_past_nothing_of_today_is_shown/1]).

-define(FIRST, <<"n001@host">>).
-define(PROCESSES, "Busiest and largest processes, in a fifth of a second").

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [numbers_have_two_digits_or_are_whole, a_group_may_have_any_name,
     what_can_not_be_read_is_told_and_the_next_model_is_shown, what_is_no_frame_ends_the_connection,
     a_server_that_closes_at_once_is_called_less_and_less, a_comment_stays_while_it_is_written,
     no_path_is_asked_for_that_nobody_sees, who_leaves_a_view_and_comes_back_asks_once,
     why_a_recording_can_not_be_read_is_told_until_the_next_step,
     of_the_past_nothing_of_today_is_shown].

init_per_suite(Config) ->
    Started = weft_test_nodes:begin_suite(Config),
    Options = #{dir => filename:join(?config(priv_dir, Config), "chromium"),
                lives_with => whereis(weft_test_nodes)},
    case weft_dashboard_chromium:start(Options) of
        {ok, Browser} ->
            {ok, Script} = file:read_file(filename:join(?config(data_dir, Config), "server.js")),
            _Undo = weft_dashboard_chromium:before(Script, Browser),
            {Keeper, Port} = served(),
            [{browser, Browser}, {keeper, Keeper}, {port, Port} | Started];
        {error, no_chromium} ->
            ok = weft_test_nodes:end_suite(Started),
            {skip, "there is no chromium"}
    end.

end_per_suite(Config) ->
    ok = weft_dashboard_chromium:stop(?config(browser, Config)),
    Ref = monitor(process, ?config(keeper, Config)),
    ?config(keeper, Config) ! stop,
    receive {'DOWN', Ref, _, _, _} -> ok end,
    weft_test_nodes:end_suite(Config).

%% Twelve nodes in three groups, which are not there. Their server ends with the process that has
%% started it.
served() ->
    Suite = self(),
    {Keeper, Ref} =
        spawn_monitor(fun() ->
                              {Supervisor, Port} = weft_dashboard_made_up:start(12, 3),
                              Suite ! {self(), Port},
                              receive stop -> weft_dashboard_made_up:stop(Supervisor) end
                      end),
    receive
        {Keeper, Port} -> demonitor(Ref, [flush]), {Keeper, Port};
        {'DOWN', Ref, _, _, Reason} -> error({not_served, Reason})
    end.

%% --- what is in a model -------------------------------------------------------------------------

numbers_have_two_digits_or_are_whole(Config) ->
    Browser = opened("#from=n001@host", Config),
    [begin
         patch(#{nodes => #{?FIRST => #{memory_bytes => Bytes}}}, Browser),
         _ = until(["[...document.querySelectorAll('[aria-label=\"Chosen node\"] dd')]"
                    ".some(dd => dd.textContent === '", Text, "')"], Browser)
     end || {Bytes, Text} <- [{999, "999 B"}, {1040, "1 kB"}, {1500, "1.5 kB"}, {99400, "99 kB"},
                              {99500, "100 kB"}, {99999999, "100 MB"}, {123456789, "123 MB"}]],
    ?assertEqual([], errors(Browser)).

%% Such a key is another thing in JavaScript than in JSON.
a_group_may_have_any_name(Config) ->
    Browser = opened("", Config),
    [begin
         Group = #{Name => #{members => [?FIRST, <<"n002@host">>], gateways => []}},
         patch(#{groups => Group}, Browser),
         until_group(Name, [[Name, <<"2">>, <<>>]], Browser),
         patch(#{groups => #{Name => #{members => [?FIRST], gateways => [?FIRST]}}}, Browser),
         until_group(Name, [[Name, <<"1">>, ?FIRST]], Browser),
         patch(#{groups => #{Name => null}}, Browser),
         until_group(Name, [], Browser)
     end || Name <- [<<"__proto__">>, <<"constructor">>, <<"toString">>]],
    ?assertEqual([], errors(Browser)).

until_group(Name, Rows, Browser) ->
    weft_test_nodes:until(fun() ->
                                  [Row || [Group | _] = Row <- rows("Groups", Browser),
                                          Group =:= Name] =:= Rows
                          end).

%% --- what can not be read -----------------------------------------------------------------------

what_can_not_be_read_is_told_and_the_next_model_is_shown(Config) ->
    Browser = opened(["#from=", ?FIRST], Config),
    Unreadable = "document.documentElement.dataset.connection === 'unreadable' && "
        "document.getElementById('connection').textContent.includes('can not be read')",
    [begin
         patch(#{nodes => #{?FIRST => #{unreachable => [], state => up}}}, Browser),
         until_state(<<"up">>, Browser),
         patch(Bad, Browser),
         _ = until(Unreadable, Browser),
         _ = evaluate("patch(JSON.stringify({ nodes: model.nodes, groups: model.groups }))",
                      Browser),
         patch(#{nodes => #{?FIRST => #{state => silent}}}, Browser),
         _ = until("document.documentElement.dataset.connection === 'live'", Browser),
         until_state(<<"silent">>, Browser)
     end || Bad <- [#{nodes => null},                             % there is no cluster in it
                    #{nodes => #{?FIRST => #{unreachable => 7}}}, % a view can not show it
                    #{nodes => 7, groups => null}]],
    ?assertEqual([], errors(Browser)).

until_state(State, Browser) ->
    weft_test_nodes:until(fun() -> state(?FIRST, Browser) =:= [State] end).

what_is_no_frame_ends_the_connection(Config) ->
    Browser = opened("", Config),
    _ = evaluate("socket.give('{\"type\":')", Browser),
    ?assertEqual(<<"not connected, trying again: what came is no frame">>,
                 evaluate("document.getElementById('connection').textContent", Browser)),
    _ = until("opened === 2 && document.documentElement.dataset.connection === 'live'", Browser),
    ?assertEqual([], errors(Browser)).

%% --- the connection -----------------------------------------------------------------------------

a_server_that_closes_at_once_is_called_less_and_less(Config) ->
    Browser = opened("", Config),
    _ = evaluate("isClosing = true; socket.lose(); 0", Browser),
    _ = until("waits.length >= 8", Browser),
    ?assertEqual([], [{Expected, Ms}
                      || {Expected, Ms} <- lists:zip([300, 600, 1200, 2400, 4800, 8000, 8000, 8000],
                                                     evaluate("waits.slice(0, 8)", Browser)),
                         Ms < 0.74 * Expected orelse Ms > 1.26 * Expected]),
    %% After a connection that has lasted the first wait is short again.
    _ = evaluate("isClosing = false; 0", Browser),
    _ = until("socket.isOpen", Browser),
    ?assert(evaluate("aheadMs += 11000; socket.lose(); waits.at(-1)", Browser) < 400),
    _ = until("socket.isOpen", Browser),
    ?assertEqual([], errors(Browser)).

%% --- what is written, what is asked -------------------------------------------------------------

a_comment_stays_while_it_is_written(Config) ->
    Browser = opened("#view=alarms", Config),
    Comment = "document.querySelector('[aria-label=\"what is done about busy n001@host\"]')",
    _ = until([Comment, " !== null"], Browser),
    _ = evaluate([Comment, ".focus()"], Browser),
    type("half ", Browser),
    patch(#{alarms => #{<<"down n003@host">> => alarm(<<"n003@host">>, critical),
                        <<"odd n004@host">> => alarm(<<"n004@host">>, note)}}, Browser),
    until_severities([<<"critical">>, <<"warning">>, <<"note">>], Browser),
    type("done", Browser),
    press("Severity", Browser),
    until_severities([<<"note">>, <<"warning">>, <<"critical">>], Browser),
    type(" to", Browser),
    patch(#{alarms => #{<<"odd n004@host">> => null}}, Browser),
    until_severities([<<"warning">>, <<"critical">>], Browser),
    type("day", Browser),
    ?assertEqual(<<"half done today">>, evaluate([Comment, ".value"], Browser)),
    ?assertEqual([], errors(Browser)).

alarm(Node, Severity) ->
    #{kind => odd, node => Node, about => Node, severity => Severity, text => <<"odd">>,
      at_ms => 0}.

until_severities(Severities, Browser) ->
    weft_test_nodes:until(fun() ->
                                  Rows = rows_as_they_are("Alarms", Browser),
                                  [Severity || [Severity | _] <- Rows] =:= Severities
                          end).

no_path_is_asked_for_that_nobody_sees(Config) ->
    Browser = opened("", Config),
    Chosen = "#from=n001@host&to=n002@host",
    answer("/api/path", path(), Browser),
    _ = evaluate(["location.hash = '", Chosen, "'"], Browser),
    _ = until("times('/api/path') >= 3", Browser),
    _ = evaluate(["location.hash = '", Chosen, "&view=matrix'"], Browser),
    _ = until("document.title === 'weft: Matrix'", Browser),
    Asked = evaluate("times('/api/path')", Browser),
    a_while(Browser),
    ?assertEqual(Asked, evaluate("times('/api/path')", Browser)),
    _ = evaluate(["location.hash = '", Chosen, "'"], Browser),
    _ = until(["times('/api/path') >= ", integer_to_list(Asked + 2)], Browser),
    ?assertMatch([[<<"1">>, <<"n001@host – n002@host"/utf8>>, <<"100 µs"/utf8>> | _]],
                 rows("Hops of the path", Browser)),
    %% Who comes back without a choice sees no path.
    _ = evaluate("location.hash = 'view=matrix'", Browser),
    _ = until("document.title === 'weft: Matrix'", Browser),
    _ = evaluate("location.hash = 'view=graph'", Browser),
    _ = until("document.title === 'weft: Graph'", Browser),
    ?assertEqual([], rows("Hops of the path", Browser)),
    ?assertEqual([], errors(Browser)).

%% In which what is asked again and again is asked five times.
a_while(Browser) -> _ = evaluate("new Promise((done) => later(done, 500)).then(() => 0)", Browser).

%% Each answer is late, so the one to what was asked before comes when the view is shown again.
who_leaves_a_view_and_comes_back_asks_once(Config) ->
    Browser = opened("#view=alarms", Config),
    answer("/api/stores", #{at_ms => 1, nodes => []}, Browser),
    [begin
         _ = evaluate(["window.held = []; answers['", Path, "'] = () => "
                       "new Promise((done) => held.push(done)); 0"], Browser),
         [begin
              _ = evaluate(["location.hash = '", Address, "'"], Browser),
              _ = until(["held.length === ", integer_to_list(Asked)], Browser),
              _ = evaluate("location.hash = 'view=alarms'", Browser),
              _ = until("document.title === 'weft: Alarms'", Browser)
          end || Asked <- [1, 2]],
         %% One comes while nobody sees it, one when the next question has been asked.
         _ = evaluate(["held[1](", json(Answer), "); 0"], Browser),
         a_while(Browser),
         ?assertEqual({Path, 2}, {Path, evaluate("held.length", Browser)}),
         _ = evaluate(["location.hash = '", Address, "'"], Browser),
         _ = until("held.length === 3", Browser),
         _ = evaluate(["held[0](", json(Answer), "); held[2](", json(Answer), "); 0"], Browser),
         _ = until("held.length > 3", Browser),
         a_while(Browser),
         ?assertEqual({Path, 4}, {Path, evaluate("held.length", Browser)})
     end || {Address, Path, Answer} <-
                [{"from=n001@host&to=n002@host&view=graph", "/api/path", path()},
                 {"view=node&node=n001@host", "/api/node", closer_look()}]],
    ?assertEqual([], errors(Browser)).

path() ->
    #{hops => [#{from => ?FIRST, to => <<"n002@host">>, rtt_us => 100, queued_bytes => 0,
                 lanes => []}]}.

closer_look() ->
    #{schedulers => [0.5], schedulers_online => 1, run_queues => [0], why => [], links => [],
      sessions => [], processes => [#{pid => <<"<0.1.0>">>, name => <<"today">>, reductions => 1,
                                      memory_bytes => 1, messages => 0, current => <<"f/0">>}]}.

%% --- the past -----------------------------------------------------------------------------------

why_a_recording_can_not_be_read_is_told_until_the_next_step(Config) ->
    Browser = opened("", Config),
    answer("/api/recording", #{error => <<"the disk is gone">>}, Browser),
    _ = evaluate("location.hash = 'at=1000'", Browser),
    note(<<"the disk is gone">>, Browser),
    [begin
         patch(#{nodes => #{?FIRST => #{state => State}}}, Browser),
         weft_test_nodes:until(fun() -> state(?FIRST, Browser) =:= [State] end),
         note(<<"the disk is gone">>, Browser)
     end || State <- [<<"silent">>, <<"up">>]],
    _ = evaluate("location.hash = 'seek=n002'", Browser),
    note(<<>>, Browser),
    %% While a recording is shown that can not be read on.
    _ = evaluate("answers['/api/recording'] = (query) => (query.has('at') ? past(query) "
                 ": { error: 'the disk is gone' }); location.hash = 'at=1000'", Browser),
    _ = until("document.documentElement.dataset.past === 'true'", Browser),
    press("Play", Browser),
    _ = until("document.getElementById('note').textContent.endsWith(': the disk is gone')",
              Browser),
    press("Back to now", Browser),
    note(<<>>, Browser),
    ?assertEqual([], errors(Browser)).

note(Text, Browser) ->
    _ = until(["document.getElementById('note').textContent === '", Text, "'"], Browser).

of_the_past_nothing_of_today_is_shown(Config) ->
    Browser = opened("#view=names", Config),
    _ = evaluate("answers['/api/recording'] = past; 0", Browser),
    answer("/api/stores", #{at_ms => 1, nodes => []}, Browser),
    answer("/api/node", closer_look(), Browser),
    answer("/api/names",
           #{node => ?FIRST, count => 1, more => 0,
             groups => [#{name => now, members => [<<"n002@host">>]}],
             scopes => [#{scope => cluster, kind => eventual, count => 1,
                          names => [#{name => today, node => ?FIRST}]}]}, Browser),
    press("Ask again", Browser),
    Groups = fun(Name) -> fun() -> [[Name]] =:= [[G || [G | _] <- rows("Groups", Browser)]] end end,
    Today = fun() -> [Name || [Name | _] <- rows("Names", Browser)] =:= [<<"today">>] end,
    weft_test_nodes:until(Today),
    to_the_past("names", Browser),
    ?assertEqual([[<<"then">>, <<"1">>, ?FIRST]], rows("Groups", Browser)),
    ?assertEqual({[], []}, {rows("Names", Browser), rows("Scopes", Browser)}),
    press("Back to now", Browser),
    weft_test_nodes:until(Today),
    weft_test_nodes:until(Groups(<<"now">>)),
    %% A node has its figures of then.
    _ = evaluate("location.hash = 'view=node&node=n001@host'", Browser),
    weft_test_nodes:until(fun() -> rows(?PROCESSES, Browser) =/= [] end),
    ?assertEqual(true, evaluate(charts(), Browser)),
    to_the_past("node", Browser),
    ?assertEqual({[], false}, {rows(?PROCESSES, Browser), evaluate(charts(), Browser)}),
    %% What is wrong today can be acknowledged, what was wrong can not.
    _ = evaluate("location.hash = 'view=alarms'", Browser),
    _ = until("document.querySelectorAll('[aria-label=Alarms] form').length === 1", Browser),
    to_the_past("alarms", Browser),
    ?assertMatch([[_, _, _, _, _, <<"–"/utf8>>]], rows("Alarms", Browser)),
    ?assertEqual([], errors(Browser)).

charts() -> "document.querySelector('[aria-label=Node] .charts').offsetParent !== null".

to_the_past(View, Browser) ->
    _ = evaluate(["location.hash = 'view=", View, "&node=n001@host&at=1000'"], Browser),
    _ = until("document.documentElement.dataset.past === 'true'", Browser).

%% --- steps --------------------------------------------------------------------------------------

opened(Address, Config) ->
    Browser = ?config(browser, Config),
    ok = weft_dashboard_page_steps:open(Address, maps:from_list(Config), Browser),
    _ = errors(Browser),
    Browser.

patch(Patch, Browser) ->
    _ = evaluate(["patch(", json(iolist_to_binary(json(Patch))), ")"], Browser).

answer(Path, Answer, Browser) ->
    _ = evaluate(["answers['", Path, "'] = ", json(Answer), "; 0"], Browser).

json(Term) -> weft_json:encode(Term).
