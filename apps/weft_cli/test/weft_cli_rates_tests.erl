%% SPDX-License-Identifier: Apache-2.0
%% @doc Rates between two samples, from statuses as nodes give them, and how a sample is shown.
-module(weft_cli_rates_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@h').
-define(B, 'b@h').

status(UptimeMs, Out, In) ->
    status(UptimeMs, Out, In, 0).

status(UptimeMs, Out, In, Relayed) ->
    #{os_pid => "1", uptime_ms => UptimeMs,
      links => [#{node => ?B, queued_bytes => 7, relayed_bytes => Relayed},
                #{node => 'command@h', queued_bytes => 100, relayed_bytes => 100}],
      sessions => [#{node => ?B, bytes_out => Out, bytes_in => In, resumes => 1,
                     unacked_bytes => 5}]}.

row(Before, Now) ->
    [Row, _] = weft_cli_rates:rows([?B, ?A], Before, Now),
    Row.

second_look_has_rates_test() ->
    Before = #{?A => status(1000, 100, 10, 5)},
    ?assertEqual(#{node => ?A, running => true, bytes_out_per_s => 200, bytes_in_per_s => 50,
                   relayed_per_s => 10, resumes => 0, queued_bytes => 7, unacked_bytes => 5},
                 row(Before, #{?A => status(3000, 500, 110, 25)})).

first_look_has_none_test() ->
    ?assertMatch(#{bytes_out_per_s := undefined, relayed_per_s := undefined, resumes := undefined,
                   queued_bytes := 7}, row(#{}, #{?A => status(1000, 100, 10)})).

node_that_is_gone_has_no_row_of_numbers_test() ->
    ?assertEqual(#{node => ?A, running => false}, row(#{?A => status(1, 1, 1)}, #{})).

node_that_was_started_again_begins_anew_test() ->
    Now = status(3000, 500, 110),
    ?assertMatch(#{bytes_out_per_s := undefined},
                 row(#{?A => status(1000, 1, 1)}, #{?A => Now#{os_pid => "2"}})),
    ?assertMatch(#{bytes_out_per_s := undefined}, row(#{?A => status(4000, 1, 1)}, #{?A => Now})).

no_rate_is_negative_test() ->
    ?assertMatch(#{bytes_out_per_s := 0, bytes_in_per_s := 90, resumes := 0},
                 row(#{?A => status(1000, 100, 10)}, #{?A => status(2000, 50, 100)})).

new_session_counts_from_nothing_test() ->
    Before = (status(1000, 0, 0))#{sessions => []},
    ?assertMatch(#{bytes_out_per_s := 60, resumes := 1},
                 row(#{?A => Before}, #{?A => status(2000, 60, 0)})).

counts_of_the_node_are_preferred_test() ->
    With = fun(UptimeMs, Counters) -> (status(UptimeMs, 1, 1, 1))#{counters => Counters} end,
    Before = With(1000, #{bytes_out => 100, bytes_in => 1000, resumes => 2}),
    Now = With(2000, #{bytes_out => 400, bytes_in => 3000, resumes => 5}),
    ?assertMatch(#{bytes_out_per_s := 300, bytes_in_per_s := 2000, resumes := 3,
                   relayed_per_s := 0}, row(#{?A => Before}, #{?A => Now})).

sums_leave_out_what_is_unknown_test() ->
    ?assertMatch(#{bytes_out_per_s := undefined, queued_bytes := undefined},
                 weft_cli_rates:sum([#{node => ?A, running => false}])),
    Row = row(#{?A => status(1000, 0, 0)}, #{?A => status(2000, 60, 0)}),
    ?assertMatch(#{bytes_out_per_s := 60, queued_bytes := 14},
                 weft_cli_rates:sum([Row, Row#{bytes_out_per_s => undefined}])).

%% --- what is shown ------------------------------------------------------------------------------

look(Count, Height) -> look(Count, Height, []).

look(Count, Height, Lost) -> look(Count, Height, Lost, #{}).

look(Count, Height, Lost, Alarms) ->
    Nodes = [list_to_atom("n" ++ integer_to_list(N) ++ "@h") || N <- lists:seq(1, Count)],
    Picture = #{links => #{used => 1}, sessions => 2, circuits => [], resumes => 3},
    Rows = weft_cli_rates:rows(Nodes, #{}, maps:from_list([{N, status(1, 1, 1)} || N <- Nodes])),
    Text = weft_cli_watch:text(#{name => "x", lost => Lost}, Picture, Rows, Alarms, Height),
    string:split(string:trim(unicode:characters_to_list(Text)), "\n", all).

every_node_has_a_line_test() ->
    ?assertMatch([_, "", "node" ++ _, "n1 " ++ _, "n2 " ++ _, "all " ++ _], look(2, infinity)),
    ?assertEqual(104, length(look(100, infinity))).

look_fits_the_terminal_test() ->
    [?assertMatch({_, Lines} when Lines =< 9, {Count, length(look(Count, 10))})
     || Count <- lists:seq(1, 30)],
    ?assertEqual(9, length(look(5, 10))),
    ?assertMatch([_, "", "node" ++ _, "n1 " ++ _, _, _, _, "and 2 more " ++ _, "all " ++ _],
                 look(6, 10)).

hosts_that_are_lost_have_a_line_each_test() ->
    Lost = [{"a", "no route"}, {"b", "refused"}],
    ?assertMatch([_, "", "node" ++ _, "n1 " ++ _, "all " ++ _, "a can not be reached: no route",
                  "b can not be reached: refused"], look(1, 10, Lost)),
    ?assertEqual(9, length(look(30, 10, Lost))).

%% The worst ones first, and as many as fit into a line.
alarms_have_the_last_line_test() ->
    Alarm = fun(Severity, Kind, Node) ->
                #{severity => Severity, kind => Kind, node => Node, text => <<"x">>}
            end,
    Alarms = [Alarm(note, lanes_unequal, 'a@h'), Alarm(warning, busy, 'b@h'),
              Alarm(critical, silent, 'c@h'), Alarm(warning, busy, 'd@h')],
    Line = fun(Of, Silent) ->
               lists:last(look(30, 10, [], #{alarms => Of, silent => Silent}))
           end,
    ?assertEqual("4 alarms: critical silent c, warning busy b, warning busy d and 1 more "
                 "(weft alarms)", Line(Alarms, [])),
    ?assertEqual("1 alarm: note lanes_unequal a (weft alarms); no agent answered for group x, "
                 "node y@h", Line(lists:sublist(Alarms, 1), [<<"group x">>, <<"node y@h">>])),
    ?assertEqual("no alarms", Line([], [])),
    ?assertEqual(9, length(look(30, 10, [], #{alarms => [], silent => []}))),
    ?assertMatch([_, "", "node" ++ _, "n1 " ++ _, "all " ++ _, "no alarms"],
                 look(1, infinity, [], #{alarms => [], silent => []})).

what_is_on_a_lost_host_is_not_known_test() ->
    #{nodes := Nodes} = weft_local_picture:of_statuses(#{nodes => [?A, ?B], unknown => [?B]}, #{}),
    ?assertEqual([#{node => ?A, running => false}, #{node => ?B, running => undefined}], Nodes),
    Picture = #{links => #{used => 0}, sessions => 0, circuits => [], resumes => 0},
    Text = weft_cli_watch:text(#{name => "x", lost => []}, Picture, Nodes, #{}, infinity),
    ?assertMatch({match, _}, re:run(Text, "0 of 2 nodes up.*\na +down\nb +not known\n", [dotall])).
