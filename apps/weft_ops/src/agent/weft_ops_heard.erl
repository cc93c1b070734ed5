%% SPDX-License-Identifier: Apache-2.0
%% @doc What an agent has heard of the nodes of one duty: the last sample of each, and who is silent
%% by that. Pure.
%%
%% A node is silent when it has not reported for three periods, and forgotten after an hour. Its
%% period may be longer than that of the agent, but not so long that it is forgotten before it is
%% silent. The clock of a node is compared with the agent's when a sample comes. How often its links
%% came up is remembered for a minute.
%%
%% Which duties there are, who reports to whom, and what follows from a node that is silent is in
%% `weft_ops_agent', which keeps this for each duty.
-module(weft_ops_heard).

-export([hear/4, last/2, states/3, silent/3, is_kept/4, later/3, ages/2, of_ages/2, upgrade/1,
         silent_periods/0]).
-export_type([heard/0, reports/0, clocks/0]).

-define(SILENT_PERIODS, 3).
-define(FORGET_MS, 3600000).
%% A minute of samples.
-define(SKEWS, 30).
-define(UPS_MS, 60000).

-record(heard, {sample :: weft_ops_sample:sample(),
                at_ms :: integer(),
                %% How far its clock is ahead, the newest first.
                skews_ms :: [integer(), ...],
                %% That of a node that stood still is longer in one sample.
                period_ms :: pos_integer(),
                %% When links came up, and to which nodes, the newest first.
                ups = [] :: [{AtMs :: integer(), #{node() => pos_integer()}}]}).
-opaque heard() :: #heard{}.
-type reports() :: #{node() => heard()}.
%% Of the agent: the monotonic one, and the system time.
-type clocks() :: {NowMs :: integer(), SystemMs :: integer()}.

%% @doc A sample has come. `Self' is the node of the agent.
-spec hear(weft_ops_sample:sample(), Self :: node(), clocks(), reports()) -> reports().
hear(#{node := Node} = Sample, Self, {NowMs, SystemMs}, Reports) ->
    Reports#{Node => #heard{sample = Sample, at_ms = NowMs,
                            skews_ms = skews_ms(Sample, skew_ms(Sample, Self, SystemMs), Reports),
                            period_ms = usual_ms(Sample, Reports),
                            ups = ups(Sample, NowMs, Reports)}}.

%% One that stood still says a long period once. One that was started again may have another one.
usual_ms(#{node := Node, period_ms := Ms, uptime_ms := UptimeMs}, Reports) ->
    case Reports of
        #{Node := #heard{sample = #{period_ms := LastMs, uptime_ms := LastUptimeMs}}}
          when LastUptimeMs =< UptimeMs -> min(LastMs, Ms);
        #{} -> Ms
    end.

ups(#{node := Node, links := Links}, NowMs, Reports) ->
    Before = case Reports of
                 #{Node := #heard{ups = Ups}} -> recent(Ups, NowMs);
                 #{} -> []
             end,
    Now = maps:from_list([{Peer, Count} || #{node := Peer, ups := Count} <- Links, Count > 0]),
    [{NowMs, Now} || map_size(Now) > 0] ++ Before.

recent(Ups, NowMs) -> lists:takewhile(fun({AtMs, _}) -> NowMs - AtMs < ?UPS_MS end, Ups).

%% The largest one counts: on its way a sample can only be delayed, and then the clock seems to be
%% behind. The round trip of the link is no skew either.
skews_ms(#{node := Node}, SkewMs, Reports) ->
    Before = case Reports of
                 #{Node := #heard{skews_ms = SkewsMs}} -> SkewsMs;
                 #{} -> []
             end,
    lists:sublist([SkewMs | Before], ?SKEWS).

skew_ms(#{at_ms := AtMs} = Sample, Self, SystemMs) ->
    case AtMs - SystemMs of
        AheadMs when AheadMs >= 0 -> AheadMs;
        BehindMs -> min(0, BehindMs + round_trip_ms(Sample, Self))
    end.

round_trip_ms(#{peers := Peers, links := Links}, Self) ->
    lists:max([0 | [RttUs div 1000 || #{node := Peer, via := Via} <- Peers, Peer =:= Self,
                                      #{node := To, rtt_us := RttUs} <- Links, To =:= Via,
                                      is_integer(RttUs)]]).

%% @doc The last sample of a node, if it has reported.
-spec last(node(), reports()) -> {ok, weft_ops_sample:sample()} | none.
last(Node, Reports) ->
    case Reports of
        #{Node := #heard{sample = Sample}} -> {ok, Sample};
        #{} -> none
    end.

%% @doc Each node with its last sample and how far its clock is ahead, or silent. In that sample a
%% link tells how often it came up in the last minute. `PeriodMs' is that of the agent.
-spec states(reports(), NowMs :: integer(), PeriodMs :: pos_integer()) ->
          #{node() => {weft_ops_sample:sample(), SkewMs :: integer()} | silent}.
states(Reports, NowMs, PeriodMs) ->
    maps:map(fun(_, #heard{at_ms = AtMs, skews_ms = SkewsMs} = One) ->
                     case NowMs - AtMs >= ?SILENT_PERIODS * longer_ms(One, PeriodMs) of
                         true -> silent;
                         false -> {of_a_minute(One, NowMs), lists:max(SkewsMs)}
                     end
             end, Reports).

of_a_minute(#heard{sample = Sample, ups = Ups}, NowMs) ->
    case recent(Ups, NowMs) of
        [] -> Sample;
        Recent -> Sample#{links := [summed(Link, Recent) || Link <- map_get(links, Sample)]}
    end.

summed(#{node := Node} = Link, Recent) ->
    Link#{ups := lists:sum([maps:get(Node, Counts, 0) || {_, Counts} <- Recent])}.

%% @doc Those that are silent.
-spec silent(reports(), NowMs :: integer(), PeriodMs :: pos_integer()) -> [node()].
silent(Reports, NowMs, PeriodMs) ->
    [Node || {Node, silent} <- maps:to_list(states(Reports, NowMs, PeriodMs))].

%% @doc Whether it is still to be known of a node what was heard of it: as long as it is not silent,
%% or, if nobody else knows it, for an hour.
-spec is_kept(heard(), IsElsewhere :: boolean(), NowMs :: integer(), PeriodMs :: pos_integer()) ->
          boolean().
is_kept(#heard{at_ms = AtMs} = One, IsElsewhere, NowMs, PeriodMs) ->
    NowMs - AtMs < case IsElsewhere of
                       true -> ?SILENT_PERIODS * longer_ms(One, PeriodMs);
                       false -> ?FORGET_MS
                   end.

%% A node has the period that it was configured with, and says it. Whatever it says, it is silent
%% before it is forgotten.
longer_ms(#heard{period_ms = Ms}, PeriodMs) ->
    max(PeriodMs, min(Ms, ?FORGET_MS div (2 * ?SILENT_PERIODS))).

%% @doc The agent stood still for so long: nobody is silent for that.
-spec later(LateMs :: integer(), NowMs :: integer(), reports()) -> reports().
later(LateMs, NowMs, Reports) ->
    maps:map(fun(_, #heard{at_ms = AtMs} = One) ->
                     One#heard{at_ms = min(NowMs, AtMs + LateMs)}
             end, Reports).

%% @doc The samples, for another agent: how long ago each came.
-spec ages(reports(), NowMs :: integer()) -> [{weft_ops_sample:sample(), AgeMs :: integer()}].
ages(Reports, NowMs) ->
    [{Sample, NowMs - AtMs} || #heard{sample = Sample, at_ms = AtMs} <- maps:values(Reports)].

%% @doc The same of another agent. The clocks of its nodes were not compared with that of this one.
-spec of_ages([{weft_ops_sample:sample(), AgeMs :: integer()}], NowMs :: integer()) -> reports().
of_ages(Ages, NowMs) ->
    maps:from_list([{Node, #heard{sample = Sample, at_ms = NowMs - AgeMs, skews_ms = [0],
                                  period_ms = Ms}}
                    || {#{node := Node, period_ms := Ms} = Sample, AgeMs} <- Ages]).

%% @doc What earlier code kept of a node: it ends with one skew, or with the period.
-spec upgrade(tuple()) -> heard().
upgrade({heard, #{period_ms := Ms} = Sample, AtMs, SkewMs}) ->
    #heard{sample = Sample, at_ms = AtMs, skews_ms = [SkewMs], period_ms = Ms};
upgrade({heard, Sample, AtMs, SkewsMs, PeriodMs}) ->
    #heard{sample = Sample, at_ms = AtMs, skews_ms = SkewsMs, period_ms = PeriodMs};
upgrade(#heard{} = One) ->
    One.

%% @doc After how many periods without a sample a node is silent.
-spec silent_periods() -> pos_integer().
silent_periods() -> ?SILENT_PERIODS.
