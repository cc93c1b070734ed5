%% SPDX-License-Identifier: Apache-2.0
%% @doc The page in a real browser, where the test says what the server sends and answers: what no
%% server does, or none when a test needs it. weft_dashboard_page_frames_SUITE_data/server.js stands
%% between the two. Without a Chromium all of it is skipped.
-module(weft_dashboard_page_frames_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_dashboard_chromium, [evaluate/2, until/2, key/2, type/2, errors/1]).
-import(weft_dashboard_page_steps, [rows/2, rows_as_they_are/2, press/2, state/2, tab_to/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([numbers_have_two_digits_or_are_whole/1, a_group_may_have_any_name/1,
         what_can_not_be_read_is_told_and_the_next_model_is_shown/1,
         what_is_no_frame_ends_the_connection/1,
         a_server_that_closes_at_once_is_called_less_and_less/1,
         a_comment_stays_while_it_is_written/1, no_path_is_asked_for_that_nobody_sees/1,
         who_leaves_a_view_and_comes_back_asks_once/1,
         why_a_recording_can_not_be_read_is_told_until_the_next_step/1,
         what_takes_too_long_does_not_end_the_replay/1,
         of_the_past_nothing_of_today_is_shown/1,
         while_a_recording_is_shown_nothing_is_broken/1]).
-export([a_cell_of_the_matrix_has_what_is_known_of_its_pair/1,
         the_colours_of_the_matrix_say_what_is_far_from_the_mean/1,
         the_keys_lead_through_the_matrix/1,
         the_graph_shows_what_goes_where/1,
         a_circuit_goes_through_its_gateways/1,
         names_are_left_out_where_there_are_many/1,
         the_keys_lead_through_the_graph/1,
         the_keys_lead_past_what_is_on_top_and_through_tables/1]).

-define(FIRST, <<"n001@host">>).
-define(PAIRS, "Pairs, what is farthest from the mean first").
-define(PROCESSES, "Busiest and largest processes, in a fifth of a second").

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [numbers_have_two_digits_or_are_whole, a_group_may_have_any_name,
     what_can_not_be_read_is_told_and_the_next_model_is_shown, what_is_no_frame_ends_the_connection,
     a_server_that_closes_at_once_is_called_less_and_less, a_comment_stays_while_it_is_written,
     no_path_is_asked_for_that_nobody_sees, who_leaves_a_view_and_comes_back_asks_once,
     why_a_recording_can_not_be_read_is_told_until_the_next_step,
     what_takes_too_long_does_not_end_the_replay,
     of_the_past_nothing_of_today_is_shown, while_a_recording_is_shown_nothing_is_broken,
     a_cell_of_the_matrix_has_what_is_known_of_its_pair,
     the_colours_of_the_matrix_say_what_is_far_from_the_mean,
     the_keys_lead_through_the_matrix,
     the_graph_shows_what_goes_where,
     a_circuit_goes_through_its_gateways,
     names_are_left_out_where_there_are_many,
     the_keys_lead_through_the_graph,
     the_keys_lead_past_what_is_on_top_and_through_tables].

init_per_suite(Config) ->
    Started = weft_test_nodes:begin_suite(Config),
    Options = #{dir => filename:join(?config(priv_dir, Config), "chromium"),
                lives_with => whereis(weft_test_nodes)},
    case weft_dashboard_chromium:start(Options) of
        {ok, Browser} ->
            [begin
                 {ok, Script} = file:read_file(filename:join(?config(data_dir, Config), File)),
                 weft_dashboard_chromium:before(Script, Browser)
             end || File <- ["server.js", "canvases.js"]],
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

%% --- the matrix ---------------------------------------------------------------------------------

a_cell_of_the_matrix_has_what_is_known_of_its_pair(Config) ->
    Browser = small("#view=matrix", Config),
    pairs_are(by_rate(), Browser),
    ?assertEqual([[<<"a@h">>, <<"x@h">>], [<<"b@h">>, <<"a@h">>], [<<"a@h">>, <<"b@h">>],
                  [<<"x@h">>, <<"a@h">>]],
                 [[From, To] || [From, To | _]
                                    <- lists:sublist(rows_as_they_are(?PAIRS, Browser), 4)]),
    choose(measure, <<"rtt_us">>, Browser),
    pairs_are([[<<"a@h">>, <<"b@h">>, <<"100 µs"/utf8>>], [<<"a@h">>, <<"x@h">>, <<"600 µs"/utf8>>],
               [<<"b@h">>, <<"g@h">>, <<"–"/utf8>>]], Browser),
    choose(measure, <<"hops">>, Browser),
    pairs_are([[<<"a@h">>, <<"x@h">>, <<"2">>], [<<"x@h">>, <<"y@h">>, <<"1">>]], Browser),
    cell_is("a@h", "x@h", [<<"9 kB/s">>, <<"600 µs"/utf8>>, <<"2">>, <<"5 B">>, <<"3">>, <<"1">>,
                           <<"up">>, <<"g@h">>, <<"none">>, <<"–"/utf8>>], Browser),
    cell_is("b@h", "g@h", [<<"–"/utf8>>, <<"–"/utf8>>, <<"–"/utf8>>, <<"7 B">>, <<"–"/utf8>>,
                           <<"–"/utf8>>, <<"none">>, <<"–"/utf8>>, <<"down">>, <<"closed">>],
            Browser),
    cell_is("b@h", "x@h", [<<"nothing: they do not talk">>], Browser),
    choose(cells, <<"groups">>, Browser),
    cell_is("left", "left", [<<"1 kB/s">>, <<"150 µs"/utf8>>, <<"1">>, <<"7 B">>, <<"0">>, <<"0">>,
                             <<"6">>, <<"2">>, <<"closed">>], Browser),
    cell_is("left", "right", [<<"9 kB/s">>, <<"500 µs"/utf8>>, <<"1.5">>, <<"5 B">>, <<"3">>,
                              <<"1">>, <<"2">>, <<"0">>, <<"none">>], Browser),
    ?assertEqual([], errors(Browser)).

%% From, to, value, how far off the mean of 3250 (a standard deviation is 3491), last error.
by_rate() ->
    None = [[<<From, "@h">>, <<To, "@h">>, <<"–"/utf8>>, <<"–"/utf8>>, Error]
            || {A, B, Error} <- [{$a, $g, <<>>}, {$g, $x, <<>>}, {$x, $y, <<>>},
                                 {$b, $g, <<"closed">>}],
               {From, To} <- [{A, B}, {B, A}]],
    [[<<"a@h">>, <<"b@h">>, <<"1 kB/s">>, <<"−0.6 σ"/utf8>>, <<>>],
     [<<"b@h">>, <<"a@h">>, <<"0 B/s">>, <<"−0.9 σ"/utf8>>, <<>>],
     [<<"a@h">>, <<"x@h">>, <<"9 kB/s">>, <<"+1.6 σ"/utf8>>, <<>>],
     [<<"x@h">>, <<"a@h">>, <<"3 kB/s">>, <<"−0.1 σ"/utf8>>, <<>>] | None].

%% Rows that begin like these are there; if these are whole, no others.
pairs_are(Expected, Browser) ->
    _ = evaluate("document.querySelector('[aria-label=Matrix] details').open = true", Browser),
    Length = length(hd(Expected)),
    weft_test_nodes:until(
      fun() ->
              Rows = [lists:sublist(Row, Length) || Row <- rows(?PAIRS, Browser)],
              case Length of
                  5 -> lists:sort(Expected) =:= Rows;
                  _ -> Expected -- Rows =:= []
              end
      end).

choose(What, Value, Browser) ->
    Index = case What of measure -> "0"; cells -> "1" end,
    _ = evaluate(["(select => { select.value = '", Value, "'; select.dispatchEvent(new Event("
                  "'change')); })(document.querySelectorAll('[aria-label=Matrix] select')[", Index,
                  "])"], Browser).

cell_is(From, To, Figures, Browser) ->
    _ = evaluate(["location.hash = new URLSearchParams({ ...Object.fromEntries("
                  "new URLSearchParams(location.hash.slice(1))), row: '", From, "', column: '", To,
                  "' })"], Browser),
    weft_test_nodes:until(fun() -> cell(Browser) =:= {<<(list_to_binary(From))/binary, " → "/utf8,
                                                        (list_to_binary(To))/binary>>, Figures}
                          end).

cell(Browser) ->
    {evaluate("document.querySelector('[aria-label=Cell] h2').textContent", Browser),
     evaluate("[...document.querySelectorAll('[aria-label=Cell] dd')].map(dd => dd.textContent)",
              Browser)}.

the_colours_of_the_matrix_say_what_is_far_from_the_mean(Config) ->
    Browser = small("#view=matrix&theme=light", Config),
    _ = until("Object.keys(cells()).length === 25", Browser),
    #{<<"a → x"/utf8>> := High, <<"b → a"/utf8>> := Low, <<"x → a"/utf8>> := Mean,
      <<"a → g"/utf8>> := NoValue, <<"b → x"/utf8>> := NoCell} = evaluate("shades()", Browser),
    ?assert(red(High) > 60),
    ?assert(red(Low) < -60),
    ?assert(abs(red(Mean)) < 30),
    ?assertEqual(evaluate("styled('none')", Browser), lists:sublist(NoValue, 3)),
    ?assertEqual(evaluate("styled('panel')", Browser), lists:sublist(NoCell, 3)),
    ?assert(evaluate("colours('b → g')", Browser) > 1),
    ?assertEqual(1, evaluate("colours('a → g')", Browser)),
    %% Who presses a cell chooses it.
    weft_dashboard_chromium:click(evaluate("cells()['x → g']", Browser), Browser),
    _ = until("location.hash.includes('row=x%40h&column=g%40h')", Browser),
    ?assertEqual([], errors(Browser)).

%% How much more red than blue there is.
red([Red, _, Blue, _]) -> Red - Blue.

the_keys_lead_through_the_matrix(Config) ->
    Browser = small("#view=matrix", Config),
    tab_to("e.className === 'matrix'", Browser),
    [begin
         key(<<"Arrow", Arrow/binary>>, Browser),
         Title = [From, <<"@h → "/utf8>>, To, "@h"],
         _ = until(["document.querySelector('[aria-label=Cell] h2').textContent === '", Title,
                    "' && document.activeElement.className === 'matrix'"], Browser)
     end || {Arrow, From, To} <- [{<<"Right">>, "a", "a"}, {<<"Right">>, "a", "b"},
                                  {<<"Up">>, "a", "b"}, {<<"Down">>, "b", "b"},
                                  {<<"Left">>, "b", "a"}, {<<"Left">>, "b", "a"},
                                  {<<"Up">>, "a", "a"}, {<<"Right">>, "a", "b"},
                                  {<<"Right">>, "a", "g"}, {<<"Right">>, "a", "x"}]],
    ?assertEqual(<<"a@h to x@h: bytes a second 9 kB/s">>,
                 evaluate("document.activeElement.getAttribute('aria-label')", Browser)),
    tab_to("e.textContent === 'Show the path'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.title === 'weft: Graph' && times('/api/path') > 0", Browser),
    ?assertEqual([<<"a@h">>, <<"x@h">>],
                 evaluate("['from', 'to'].map((key) => "
                          "new URLSearchParams(location.hash.slice(1)).get(key))", Browser)),
    ?assertEqual([], errors(Browser)).

%% --- the graph ----------------------------------------------------------------------------------

the_graph_shows_what_goes_where(Config) ->
    Browser = small("#view=graph&theme=light", Config),
    _ = until(ink(3, "where('y@h')", "3"), Browser),
    %% A gateway has the colours of both of its groups, each on its side.
    [Left, Right] = evaluate("[-5, 5].map((off) => inside('g@h', off))", Browser),
    ?assertNotEqual(Left, Right),
    ?assertEqual([[Left, Left], [Right, Right]],
                 evaluate("['a@h', 'x@h'].map((id) => [-5, 5].map((off) => inside(id, off)))",
                          Browser)),
    %% An idle link is below, what goes over one is as wide as that is much.
    [?assertEqual({Layer, Pair, IsDrawn},
                  {Layer, Pair, evaluate(ink(Layer, ["middle(", Pair, ")"], "4"), Browser)})
     || {Layer, Pair, IsDrawn} <- [{0, "'x@h', 'y@h'", true}, {1, "'x@h', 'y@h'", false},
                                   {0, "'a@h', 'b@h'", false}, {1, "'a@h', 'b@h'", true},
                                   {1, "'g@h', 'x@h'", true}]],
    Before = evaluate("ink(1, middle('a@h', 'b@h'), 8)", Browser),
    patch(#{traffic => #{<<"a@h b@h">> => #{bytes_out => 200000000}}}, Browser),
    _ = until(["ink(1, middle('a@h', 'b@h'), 8) > 1.5 * ", integer_to_list(Before)], Browser),
    %% One that is down has a red cross.
    ?assert(evaluate("(([red, green, blue, alpha]) => alpha > 60 && red > 2 * green && "
                     "red > 2 * blue)(colourAt(layers()[1], middle('b@h', 'g@h')))", Browser)),
    %% What is found has a ring, what does not report is hollow.
    Ring = ink(3, "{ x: where('x@h').x, y: where('x@h').y - 16 * scale() }", "2"),
    ?assertNot(evaluate(Ring, Browser)),
    _ = evaluate("location.hash = 'view=graph&theme=light&seek=x@h'", Browser),
    _ = until(Ring, Browser),
    patch(#{nodes => #{<<"x@h">> => #{state => silent}}}, Browser),
    _ = until("inside('x@h', 6) === styled('ground').join()", Browser),
    ?assertEqual([], errors(Browser)).

a_circuit_goes_through_its_gateways(Config) ->
    Browser = of_model(weft_dashboard_small:chain(), "#view=graph", Config),
    _ = until(ink(3, "where('p@h')", "3"), Browser),
    ?assertEqual([true, true, false],
                 [evaluate(ink(2, Point, "12"), Browser)
                  || Point <- ["where('g@h')", "where('h@h')", "middle('a@h', 'p@h')"]]),
    _ = evaluate("location.hash = 'view=graph&without=circuits'", Browser),
    _ = until(["!(", ink(2, "where('g@h')", "12"), ") && !(", ink(2, "where('h@h')", "12"), ")"],
              Browser),
    ?assertEqual([], errors(Browser)).

ink(Layer, Point, Radius) ->
    ["ink(", integer_to_list(Layer), ", ", Point, ", ", Radius, ") > 0"].

names_are_left_out_where_there_are_many(Config) ->
    [begin
         Browser = of_model(weft_dashboard_small:many(Count), "#view=graph", Config),
         _ = until(ink(3, "where(lowest())", "3"), Browser),
         Named = ink(3, ["{ x: where(lowest()).x, y: where(lowest()).y + ",
                         integer_to_list(Radius + 14), " * scale() }"], "4"),
         ?assertEqual({Count, IsNamed}, {Count, evaluate(Named, Browser)}),
         _ = evaluate("location.hash = `view=graph&from=${lowest()}`", Browser),
         _ = until(Named, Browser)
     end || {Count, Radius, IsNamed} <- [{50, 11, true}, {51, 7, false}]].

the_keys_lead_through_the_graph(Config) ->
    %% Seven nodes stand in a ring.
    Ring = of_model(weft_dashboard_small:many(7), "#view=graph", Config),
    tab_to("e.className === 'graph'", Ring),
    key(<<"ArrowDown">>, Ring),
    weft_test_nodes:until(fun() -> at(Ring) =/= none end),
    All = [<<"Right">>, <<"Down">>, <<"Left">>, <<"Up">>],
    [ahead(Key, Ring) || Key <- All ++ All ++ lists:reverse(All)],
    %% Where they are stays so when another model comes.
    patch(#{nodes => #{<<"n7@h">> => #{state => silent}}}, Ring),
    _ = until("layers().at(-1).picture.states()['n7@h'] === 'silent'", Ring),
    [ahead(Key, Ring) || Key <- [<<"Down">> | All]],
    Browser = small("#view=graph", Config),
    tab_to("e.className === 'graph'", Browser),
    key(<<"ArrowDown">>, Browser),
    Fitted = evaluate("far('a@h', 'x@h')", Browser),
    key(<<"+">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - 1.3 * Fitted) < 1),
    key(<<"-">>, Browser),
    key(<<"-">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - Fitted / 1.3) < 1),
    key(<<"0">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - Fitted) < 1),
    key(<<"Enter">>, Browser),
    Chosen = at(Browser),
    ?assertEqual(Chosen, evaluate("document.querySelector('[aria-label=\"Chosen node\"] h2')"
                                  ".textContent", Browser)),
    key(<<"Escape">>, Browser),
    _ = until("document.querySelector('[aria-label=\"Chosen node\"]').hidden", Browser),
    %% A group that is collapsed is one body, which Enter opens.
    _ = evaluate("location.hash = 'view=graph&open=none'", Browser),
    _ = until("layers().at(-1).picture.bodies().includes('group right')", Browser),
    weft_test_nodes:until(fun() -> key(<<"ArrowRight">>, Browser),
                                   key(<<"ArrowDown">>, Browser),
                                   key(<<"ArrowLeft">>, Browser),
                                   at(Browser) =:= <<"group right">>
                          end),
    key(<<"Enter">>, Browser),
    _ = until("location.hash.includes('open=right') && "
              "layers().at(-1).picture.bodies().includes('x@h')", Browser),
    ?assertEqual([], errors(Browser)).

at(Browser) ->
    case weft_dashboard_page_steps:focused(Browser) of
        <<"graph, at ", Body/binary>> -> Body;
        _ -> none
    end.

%% The next body is in that direction; if there is none, the focus stays.
ahead(Key, Browser) ->
    Here = at(Browser),
    key(<<"Arrow", Key/binary>>, Browser),
    There = at(Browser),
    Far = evaluate(["ahead('", Here, "', '", Key, "')"], Browser),
    ?assertEqual({Key, Here, There, true},
                 {Key, Here, There, lists:member(There, maps:keys(Far))
                                        orelse (Far =:= #{} andalso There =:= Here)}).

the_keys_lead_past_what_is_on_top_and_through_tables(Config) ->
    Browser = small("#view=matrix", Config),
    tab_to("e.className === 'skip'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.activeElement.id === 'main'", Browser),
    ?assertEqual({<<"weft: Matrix">>, <<"#view=matrix">>},
                 {evaluate("document.title", Browser), evaluate("location.hash", Browser)}),
    _ = evaluate("location.hash = 'view=graph'", Browser),
    _ = until("document.title === 'weft: Graph'", Browser),
    Sessions = [<<"a@h – x@h"/utf8>>, <<"a@h – b@h"/utf8>>],
    ?assertEqual(Sessions, [Pair || [Pair | _] <- rows_as_they_are("Sessions", Browser)]),
    tab_to("e.tagName === 'BUTTON' && e.textContent === 'Traffic'", Browser),
    key(<<"Enter">>, Browser),
    ?assertEqual({<<"ascending">>, lists:reverse(Sessions)},
                 {evaluate("document.activeElement.parentElement.getAttribute('aria-sort')",
                           Browser),
                  [Pair || [Pair | _] <- rows_as_they_are("Sessions", Browser)]}),
    %% A link is the same one after a row has come before its own.
    tab_to("e.tagName === 'A' && e.textContent === 'b@h'", Browser),
    patch(#{nodes => #{<<"aa@h">> => weft_dashboard_small:node_in([])}}, Browser),
    weft_test_nodes:until(fun() -> length(rows("Nodes", Browser)) =:= 6 end),
    ?assertEqual(<<"b@h">>, evaluate("document.activeElement.textContent", Browser)),
    ?assertEqual([], errors(Browser)).

%% --- steps --------------------------------------------------------------------------------------

small(Address, Config) -> of_model(weft_dashboard_small:model(), Address, Config).

of_model(Model, Address, Config) ->
    Undo = weft_dashboard_chromium:before(["window.model = ", json(Model), ";"],
                                          ?config(browser, Config)),
    Browser = opened(Address, Config),
    _ = Undo(),
    Browser.

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
