%% SPDX-License-Identifier: Apache-2.0
%% @doc What the page makes of models and answers that the test gives it
%% (`weft_dashboard_page_frames'). Without a Chromium all of it is skipped.
-module(weft_dashboard_page_frames_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_dashboard_chromium, [command/3, evaluate/2, until/2, type/2, errors/1]).
-import(weft_dashboard_page_frames, [opened/2, patch/2, answer/3, a_while/1, json/1]).
-import(weft_dashboard_page_steps, [rows/2, rows_as_they_are/2, press/2, state/2, tab_to/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([numbers_have_two_digits_or_are_whole/1, a_group_may_have_any_name/1,
         what_can_not_be_read_is_told_and_the_next_model_is_shown/1,
         what_is_no_frame_ends_the_connection/1,
         a_server_that_closes_at_once_is_called_less_and_less/1,
         a_comment_stays_while_it_is_written/1,
         who_acknowledges_sees_which_agents_do_not_know/1, no_word_of_an_alarm_is_broken/1,
         no_path_is_asked_for_that_nobody_sees/1,
         who_leaves_a_view_and_comes_back_asks_once/1,
         why_a_recording_can_not_be_read_is_told_until_the_next_step/1,
         what_takes_too_long_does_not_end_the_replay/1,
         of_the_past_nothing_of_today_is_shown/1,
         while_a_recording_is_shown_nothing_is_broken/1]).

-define(FIRST, <<"n001@host">>).
-define(PROCESSES, "Busiest and largest processes, in a fifth of a second").

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [numbers_have_two_digits_or_are_whole, a_group_may_have_any_name,
     what_can_not_be_read_is_told_and_the_next_model_is_shown, what_is_no_frame_ends_the_connection,
     a_server_that_closes_at_once_is_called_less_and_less, a_comment_stays_while_it_is_written,
     who_acknowledges_sees_which_agents_do_not_know, no_word_of_an_alarm_is_broken,
     no_path_is_asked_for_that_nobody_sees, who_leaves_a_view_and_comes_back_asks_once,
     why_a_recording_can_not_be_read_is_told_until_the_next_step,
     what_takes_too_long_does_not_end_the_replay,
     of_the_past_nothing_of_today_is_shown, while_a_recording_is_shown_nothing_is_broken].

init_per_suite(Config) -> weft_dashboard_page_frames:begin_suite(Config).

end_per_suite(Config) -> weft_dashboard_page_frames:end_suite(Config).

%% --- what is in a model -------------------------------------------------------------------------

numbers_have_two_digits_or_are_whole(Config) ->
    Browser = opened("#from=n001@host", Config),
    [begin
         patch(#{nodes => #{?FIRST => #{memory_bytes => Bytes}}}, Browser),
         _ = until(["[...document.querySelectorAll('[aria-label=\"Chosen node\"] dd')]"
                    ".some(dd => dd.textContent === '", Text, "')"], Browser)
     end || {Bytes, Text} <- [{999, "999 B"}, {1040, "1 kB"}, {1500, "1.5 kB"}, {99400, "99 kB"},
                              {99500, "100 kB"}, {999400, "999 kB"}, {999500, "1 MB"},
                              {99999999, "100 MB"}, {123456789, "123 MB"},
                              {999600000000, "1 TB"}, {999600000000000, "1000 TB"}]],
    [begin
         patch(#{nodes => #{?FIRST => #{wake_up_us => Us}}}, Browser),
         _ = until(["[...document.querySelectorAll('[aria-label=\"Chosen node\"] dd')]"
                    ".some(dd => dd.textContent === '", Text, "')"], Browser)
     end || {Us, Text} <- [{999, "999 µs"}, {999.6, "1 ms"}, {999400, "999 ms"}, {999600, "1 s"}]],
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

who_acknowledges_sees_which_agents_do_not_know(Config) ->
    Browser = opened("#view=alarms", Config),
    Note = <<"these agents did not answer, and do not know it: of group east, node n003@host">>,
    answer("/api/acknowledge", #{done => true, note => Note}, Browser),
    Comment = "document.querySelector('[aria-label=\"what is done about busy n001@host\"]')",
    _ = until([Comment, " !== null"], Browser),
    _ = evaluate([Comment, ".focus()"], Browser),
    type("I look at it", Browser),
    press("Acknowledge", Browser),
    weft_dashboard_page_steps:with_token(Browser),
    _ = until(["document.querySelector('[aria-label=Alarms] [role=status]').textContent === "
               "'busy n001@host is acknowledged. But ", Note, "'"], Browser),
    ?assertEqual([], errors(Browser)).

%% In a window that is narrow for all columns of the table.
no_word_of_an_alarm_is_broken(Config) ->
    Browser = opened("#view=alarms", Config),
    patch(#{alarms => #{<<"busy n001@host">> => null,
                        <<"down n003@host">> => (alarm(<<"n003@host">>, critical))#{
                                                  kind := unreachable,
                                                  text := <<"nobody reaches it, and all miss it">>
                                                 }}}, Browser),
    until_severities([<<"critical">>], Browser),
    _ = command(<<"Emulation.setDeviceMetricsOverride">>,
                #{width => 900, height => 600, deviceScaleFactor => 1, mobile => false}, Browser),
    try
        ?assertEqual([], evaluate("inLines('[aria-label=Alarms] :is(th button, td:nth-child(2), "
                                  "td:nth-child(3), form button)')", Browser)),
        ?assertEqual([], errors(Browser))
    after
        _ = command(<<"Emulation.clearDeviceMetricsOverride">>, #{}, Browser)
    end.

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

%% Where none is shown there is nothing to stay in.
what_takes_too_long_does_not_end_the_replay(Config) ->
    Browser = opened("", Config),
    _ = evaluate("window.isLate = false; answers['/api/recording'] = (query) => "
                 "!query.has('at') ? { from_ms: 0, to_ms: 100000 } : isLate "
                 "? { error: 'this took too long', status: 504 } : past(query); 0", Browser),
    to_the_past("graph", Browser),
    _ = evaluate("isLate = true", Browser),
    press("Play", Browser),
    is_late(Browser),
    patch(#{nodes => #{?FIRST => #{state => silent}}}, Browser),
    a_while(Browser),
    ?assertEqual([<<"true">>, <<"1000">>],
                 evaluate(["[", past(), ", new URLSearchParams(location.hash.slice(1)).get('at')]"],
                          Browser)),
    _ = evaluate("isLate = false", Browser),
    press("Play", Browser),
    _ = until("/^recorded [^;]*:[1-5]1$/.test(document.getElementById('note').textContent)",
              Browser),
    press("Back to now", Browser),
    note(<<>>, Browser),
    _ = evaluate("isLate = true; location.hash = 'at=5000'", Browser),
    is_late(Browser),
    ?assertEqual(<<"false">>, evaluate(past(), Browser)),
    ?assertEqual([], errors(Browser)).

is_late(Browser) ->
    _ = until("document.getElementById('note').textContent.endsWith(' took too long; try again')",
              Browser).

past() -> "document.documentElement.dataset.past".

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

%% Neither with the mouse nor with the keyboard; nor what was asked before the recording was shown.
while_a_recording_is_shown_nothing_is_broken(Config) ->
    Undo = weft_dashboard_chromium:before("answers['/api/about'].chaos = true; "
                                          "answers['/api/recording'] = past; "
                                          "answers['/api/chaos'] = {};", ?config(browser, Config)),
    Browser = opened("#view=chaos", Config),
    _ = Undo(),
    _ = until(can_break("true"), Browser),
    press("Do it", Browser),
    _ = until("document.querySelector('dialog[open]') !== null", Browser),
    to_the_past("chaos", Browser),
    _ = until(can_break("false"), Browser),
    press("Yes, do it", Browser),
    weft_dashboard_page_steps:with_token(Browser),
    says_why("Nothing was done. A recording is shown", Browser),
    says_why("A recording is shown", Browser),
    ?assertEqual(0, evaluate("times('/api/chaos')", Browser)),
    %% Tab leads past it.
    _ = evaluate("window.reached = 0; document.addEventListener('focusin', ({ target }) => "
                 "{ if (target.matches('[aria-label=Chaos] *')) reached += 1; }); 0", Browser),
    [tab_to(Where, Browser) || Where <- ["e.textContent === 'Chaos'", "e.className === 'skip'"]],
    ?assertEqual(0, evaluate("reached", Browser)),
    %% The panel of a node beside the graph has no button for it then.
    _ = evaluate("location.hash = 'view=graph&from=n001@host&at=1000'", Browser),
    _ = until(["document.querySelector('[aria-label=\"Chosen node\"]').offsetParent !== null && ",
               kill(), ".offsetParent === null"], Browser),
    press("Back to now", Browser),
    _ = until([kill(), ".offsetParent !== null"], Browser),
    _ = evaluate("location.hash = 'view=chaos'", Browser),
    _ = until(can_break("true"), Browser),
    press("Do it", Browser),
    press("Yes, do it", Browser),
    _ = until("times('/api/chaos') === 1", Browser),
    ?assertEqual([], errors(Browser)).

can_break(IsSo) ->
    ["(document.querySelector('[aria-label=Chaos] button').matches(':enabled')) === ", IsSo].

kill() -> "document.querySelector('[aria-label=\"Chosen node\"] button.danger')".

says_why(Text, Browser) ->
    _ = until(["[...document.querySelectorAll('[aria-label=Chaos] [role=status]')]"
               ".some(p => p.textContent.startsWith('", Text, "'))"], Browser).

charts() -> "document.querySelector('[aria-label=Node] .charts').offsetParent !== null".

to_the_past(View, Browser) ->
    _ = evaluate(["location.hash = 'view=", View, "&node=n001@host&at=1000'"], Browser),
    _ = until("document.documentElement.dataset.past === 'true'", Browser).
