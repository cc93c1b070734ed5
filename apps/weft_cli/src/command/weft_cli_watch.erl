%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft watch': the status of the cluster again and again, with rates
%% (`weft_cli_rates'), and the alarms, where weft_ops runs. It prints by itself, as it has no answer
%% before it ends.
%%
%% Agents may be silent for seconds. So a process beside asks for alarms, and each sample shows what
%% it has said last.
-module(weft_cli_watch).

-export([watch/2, text/5]).

-import(weft_cli_table, [plural/2, bytes/1]).
-import(weft_local_spec, [short/1]).

%% Lines of a sample that are no nodes, and no hosts that are lost: the head, an empty line, the
%% titles, the sum, and the line with the cursor. The alarms have another one, where there are
%% agents.
-define(OTHER_LINES, 5).
%% No sooner are agents asked again: the answer has samples of all nodes in it.
-define(ALARMS_MS, 5000).

%% @doc weft watch.
-spec watch([], weft_argparse:given()) -> weft_cli:answer().
watch([], #{interval := IntervalS} = Options) ->
    Show = show(Options),
    weft_cli_cluster:with_cluster(
      Options, fun(Cluster) ->
                       sample(Cluster, #{}, maps:get(count, Options, infinity),
                              #{show => Show, interval_ms => round(IntervalS * 1000),
                                asker => none, due_ms => erlang:monotonic_time(millisecond),
                                alarms => #{}})
               end).

sample(#{name := Name} = Cluster, Before, Left, How0) ->
    BegunMs = erlang:monotonic_time(millisecond),
    How = asked(Cluster, BegunMs, How0),
    {Seen, Statuses} = weft_cli_nodes:seen(Cluster),
    case map_size(Statuses) > 0 orelse weft_cli_nodes:is_up(Seen) of
        true -> seen(Seen, Before, Statuses, Left, heard(How#{begun_ms => BegunMs}));
        false -> {not_up, ["the cluster ", Name, " is down"]}
    end.

asked(Cluster, NowMs, #{asker := none, due_ms := DueMs} = How) when NowMs >= DueMs ->
    How#{asker := asker(Cluster), due_ms := NowMs + ?ALARMS_MS};
asked(_Cluster, _NowMs, How) ->
    How.

%% What an agent of another version says may not be understood.
asker(Cluster) ->
    Watch = self(),
    spawn_link(fun() ->
                   Watch ! {self(), try weft_cli_ops:known(Cluster) catch _:_ -> #{} end}
               end).

heard(#{asker := Asker} = How) ->
    receive {Asker, Alarms} -> How#{asker := none, alarms := Alarms}
    after 0 -> How
    end.

seen(#{cluster := Cluster, nodes := Nodes} = Seen, Before, Statuses, Left,
     #{show := Show, interval_ms := IntervalMs, begun_ms := BegunMs, alarms := Alarms} = How) ->
    Rows = known(weft_cli_rates:rows(Nodes, Before, Statuses), Seen),
    %% Whoever reads may have seen enough, and has closed the pipe.
    try Show(Seen, weft_local_picture:of_statuses(Seen, Statuses), Rows, Alarms) of
        ok -> again(Cluster, Statuses, left(Left), How, BegunMs + IntervalMs)
    catch
        error:terminated -> shown
    end.

%% Of a node on a lost host it is not known whether it runs.
known(Rows, #{unknown := Unknown}) ->
    [case lists:member(Node, Unknown) of
         true -> Row#{running := undefined};
         false -> Row
     end || #{node := Node} = Row <- Rows].

left(infinity) -> infinity;
left(Count) -> Count - 1.

again(_Cluster, _Statuses, 0, _How, _NextMs) ->
    shown;
again(Cluster, Statuses, Left, How, NextMs) ->
    receive after max(0, NextMs - erlang:monotonic_time(millisecond)) ->
        sample(Cluster, Statuses, Left, How)
    end.

%% --- showing ------------------------------------------------------------------------------------

show(#{json := true}) ->
    fun(Cluster, Picture, Rows, Alarms) ->
            io:put_chars([unicode:characters_to_binary(
                            weft_json:encode(json(Cluster, Picture, Rows, Alarms))), $\n])
    end;
show(_Options) ->
    case weft_cli_terminal:is_terminal(output) of
        true ->
            fun(Cluster, Picture, Rows, Alarms) ->
                    Text = text(Cluster, Picture, Rows, Alarms, weft_cli_terminal:height()),
                    io:put_chars(over(unicode:characters_to_list(Text)))
            end;
        false ->
            fun(Cluster, Picture, Rows, Alarms) ->
                    io:put_chars([text(Cluster, Picture, Rows, Alarms, infinity), $\n])
            end
    end.

%% Over what is there, and what is left of that is cleared: no flicker.
over(Text) ->
    ["\e[H", string:replace(Text, "\n", "\e[K\n", all), "\e[J"].

json(#{name := Name} = Seen, #{links := Links, tcp_connections := Connections,
                               sessions := Sessions, circuits := Circuits, resumes := Resumes},
     Rows, Alarms) ->
    (weft_cli_nodes:lost_json(Seen))
        #{name => unicode:characters_to_binary(Name),
          alarms => maps:get(alarms, Alarms, undefined),
          silent => maps:get(silent, Alarms, undefined),
          time => list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second))),
          nodes_up => length(up(Rows)), links => Links, tcp_connections => Connections,
          sessions => Sessions, circuits => length(Circuits), resumes => Resumes, nodes => Rows,
          all => weft_cli_rates:sum(Rows)}.

%% @doc One sample in at most so many lines.
-spec text(weft_cli_nodes:seen(), weft_local_picture:picture(), [weft_cli_rates:row()],
           weft_cli_ops:known(), Height :: pos_integer() | infinity) -> unicode:chardata().
text(#{name := Name, lost := Lost} = Seen,
     #{links := #{used := Links}, sessions := Sessions, circuits := Circuits, resumes := Resumes},
     Rows, Alarms, Height) ->
    Others = ?OTHER_LINES + length(Lost) + min(1, map_size(Alarms)),
    {Shown, More} = fitting(Rows, Height, Others),
    [io_lib:format("~ts at ~ts: ~b of ~ts up, ~ts, ~ts, ~ts among them, ~ts~n~n",
                   [Name, now_text(), length(up(Rows)), plural(length(Rows), "node"),
                    plural(Links, "link"), plural(Sessions, "session"),
                    plural(length(Circuits), "circuit"), plural(Resumes, "resume")]),
     weft_cli_table:format(
       [["node", "out/s", "in/s", "relayed/s", "resumes", "queued", "unacked"]]
       ++ [cells(short(Node), Row) || #{node := Node} = Row <- Shown]
       ++ [cells(io_lib:format("and ~b more", [length(More)]), weft_cli_rates:sum(More))
           || More =/= []]
       ++ [cells("all", weft_cli_rates:sum(Rows))]),
     weft_cli_nodes:lost_text(Seen), weft_cli_ops:line(Alarms)].

up(Rows) -> [Row || #{running := true} = Row <- Rows].

fitting(Rows, infinity, _Others) ->
    {Rows, []};
fitting(Rows, Height, Others) when length(Rows) =< Height - Others ->
    {Rows, []};
fitting(Rows, Height, Others) ->
    lists:split(min(length(Rows), max(1, Height - Others - 1)), Rows).

cells(Title, #{running := undefined}) ->
    [Title, "not known"];
cells(Title, #{running := false}) ->
    [Title, "down"];
cells(Title, #{bytes_out_per_s := Out, bytes_in_per_s := In, relayed_per_s := Relayed,
               resumes := Resumes, queued_bytes := Queued, unacked_bytes := Unacked}) ->
    [Title, number(Out), number(In), number(Relayed),
     case Resumes of undefined -> "-"; _ -> integer_to_list(Resumes) end,
     number(Queued), number(Unacked)].

number(undefined) -> "-";
number(Bytes) -> bytes(Bytes).

now_text() ->
    {_Date, {Hour, Minute, Second}} = calendar:local_time(),
    io_lib:format("~2..0b:~2..0b:~2..0b", [Hour, Minute, Second]).
