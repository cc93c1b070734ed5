%% SPDX-License-Identifier: Apache-2.0
%% @doc What a former agent gives to the one that takes its place: alarms that it can not follow any
%% more, and the last samples of nodes that are silent, which will not report to the new one. Pure.
%%
%% So an alarm that goes on is not told as cleared by who has lost sight of it, and is cleared by
%% who sees its end. What comes from another node is checked before it is used.
-module(weft_ops_handover).

-export([new/3, is_handover/1, alarms/2, without_witness/2]).
-export_type([handover/0]).

%% silent: last samples, and how long ago they came. alarms: with system times.
-type handover() :: #{duty := weft_ops_agents:duty(),
                      silent := [{weft_ops_sample:sample(), AgeMs :: non_neg_integer()}],
                      alarms := [weft_ops_alarms_core:alarm()]}.

%% @doc What is given, by an agent that has given up the duty. OffsetMs: from its clock to system
%% time.
-spec new(weft_ops_agents:duty(), [{weft_ops_sample:sample(), non_neg_integer()}],
          {[weft_ops_alarms_core:alarm()], OffsetMs :: integer()}) -> handover().
new(Duty, Silent, {Alarms, OffsetMs}) ->
    #{duty => Duty, silent => Silent, alarms => [shifted(OffsetMs, Alarm) || Alarm <- Alarms]}.

%% @doc The alarms, with times of the clock of who takes them.
-spec alarms(handover(), OffsetMs :: integer()) -> [weft_ops_alarms_core:alarm()].
alarms(#{alarms := Alarms}, OffsetMs) -> [shifted(-OffsetMs, Alarm) || Alarm <- Alarms].

shifted(Ms, #{raised_ms := RaisedMs, acknowledged := Said} = Alarm) ->
    Alarm#{raised_ms := RaisedMs + Ms,
           acknowledged := case Said of
                               no -> no;
                               #{at_ms := AtMs} -> Said#{at_ms := AtMs + Ms}
                           end}.

%% @doc Does nobody whom the agent hears, or misses, say anything about this alarm any more? Samples
%% of nodes, or `silent'.
-spec without_witness(weft_ops_alarms_core:id(), #{node() => weft_ops_sample:sample() | silent}) ->
          boolean().
without_witness({unreachable, Gone, _}, Nodes) ->
    not lists:any(fun(#{unreachable := Missed}) -> lists:member(Gone, Missed);
                     (silent) -> false
                  end, maps:values(Nodes));
without_witness({_Kind, Node, _About}, Nodes) ->
    not is_map_key(Node, Nodes).

%% @doc Is this a whole handover of this version?
-spec is_handover(term()) -> boolean().
is_handover(Term) ->
    try is_whole(Term) catch error:_ -> false end.

is_whole(#{duty := {What, _}, silent := Silent, alarms := Alarms}) ->
    lists:member(What, [group, node])
        andalso lists:all(fun({Sample, AgeMs}) ->
                                  weft_ops_sample:is_sample(Sample) andalso is_integer(AgeMs)
                                      andalso AgeMs >= 0
                          end, Silent)
        andalso lists:all(fun is_alarm/1, Alarms).

is_alarm(#{id := {Kind, Node, _About}, severity := Severity, text := Text, raised_ms := RaisedMs,
           acknowledged := Said} = Alarm) ->
    lists:member(Kind, weft_ops_anomalies:kinds()) andalso is_atom(Node) andalso is_binary(Text)
        andalso lists:member(Severity, [critical, warning, note]) andalso is_integer(RaisedMs)
        andalso is_said(Said) andalso map_size(Alarm) =:= 5.

is_said(no) -> true;
is_said(#{comment := Comment, at_ms := AtMs}) -> is_binary(Comment) andalso is_integer(AtMs).
