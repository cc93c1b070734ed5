%% SPDX-License-Identifier: Apache-2.0
%% @doc What happened, made of what changed from one sample of a node to the next, and of alarms.
%% Pure.
%%
%% An event has the time of the sample that shows it, so several agents that are told the same
%% sample make the same event of it. `merged/1' leaves one of each.
-module(weft_ops_events).

-export([sample/2, silent/2, left/2, alarm/2, merged/1]).
-export_type([event/0, kind/0]).

%% joined: a node came up; back: it reports again after it was silent. told: of somebody who says
%% what he does (`weft_ops:tell/2'); then `about' is what he said it is about.
-type kind() :: joined | back | silent | left | session_up | session_down | resumed | rerouted
              | link_up | link_down | link_flapped | groups_changed | name_conflict | cut | healed
              | alarm_raised | alarm_acknowledged | alarm_cleared | told.
%% at_ms: system time, of the node that it is about or of its agent. about: the other node of a
%% session or a link, the identity of an alarm, and so on.
-type event() :: #{at_ms := integer(), kind := kind(), node := node(),
                   about := term(), text := binary()}.

%% A node that is up for so long was there before its agent knew of it.
-define(YOUNG_MS, 60000).
%% Agents find out that a node is silent each in its own time.
-define(SAME_MS, 10000).
-define(EACH_BY_ITSELF, [silent, left, back, alarm_raised, alarm_acknowledged, alarm_cleared]).

%% @doc What the next sample of a node shows, after its last one. With `silent' it did not report
%% for a while after that one, and with `none' it never did.
-spec sample(weft_ops_sample:sample() | {silent, weft_ops_sample:sample()} | none,
             weft_ops_sample:sample()) -> [event()].
sample(none, #{uptime_ms := UptimeMs} = Now) ->
    [event(joined, Now, none, "it came up") || UptimeMs < ?YOUNG_MS] ++ told(Now);
sample({silent, Before}, Now) ->
    sample(Before, Now, [event(back, Now, none, "it reports again")]);
sample(Before, Now) ->
    sample(Before, Now, []).

%% It may have run for a shorter time before: then it was started after that sample.
sample(#{uptime_ms := Earlier, at_ms := BeforeMs}, #{uptime_ms := UptimeMs, at_ms := AtMs} = Now,
       _Back) when UptimeMs < Earlier; AtMs - UptimeMs > BeforeMs ->
    [event(joined, Now, none, "it came up again") | told(Now)];
sample(Before, Now, Back) ->
    lists:append([Back, sessions(Before, Now), links(Before, Now), groups(Before, Now),
                  conflicts(Now), cuts(Before, Now), told(Now)]).

%% --- sessions ---------------------------------------------------------------------------------

sessions(#{peers := Before}, #{peers := Peers} = Now) ->
    Known = by_node(Before),
    Ended = maps:without([Node || #{node := Node} <- Peers], Known),
    lists:append([session(maps:get(Node, Known, none), Peer, Now)
                  || #{node := Node} = Peer <- Peers])
        ++ [event(session_down, Now, Node, ["the session with ", name(Node), " ended"])
            || Node <- lists:sort(maps:keys(Ended))].

session(none, #{node := Node}, Now) ->
    [event(session_up, Now, Node, ["a session with ", name(Node)])];
session(#{via := Former}, #{node := Node, via := Via, resumes := Resumes} = Peer, Now) ->
    [event(resumed, Now, Node, ["the session with ", name(Node), " went on, on a new path"])
     || Resumes > 0]
        ++ [event(rerouted, Now, Node, ["to ", name(Node), " by way of ", name(Via), ", before of ",
                                        name(Former)])
            || maps:get(reroutes, Peer, 0) > 0].

by_node(Peers) -> maps:from_list([{Node, Peer} || #{node := Node} = Peer <- Peers]).

%% --- links ------------------------------------------------------------------------------------

links(#{links := Before}, #{links := Links} = Now) ->
    Known = by_node(Before),
    Closed = maps:without([Node || #{node := Node} <- Links], Known),
    lists:append([link(maps:get(Node, Known, #{state => down}), Link, Now)
                  || #{node := Node} = Link <- Links])
        ++ [event(link_down, Now, Node, ["the link to ", name(Node), " is closed"])
            || {Node, #{state := up}} <- lists:sort(maps:to_list(Closed))].

link(#{state := up}, #{state := up, ups := Ups, node := Node} = Link, Now) when Ups > 0 ->
    [event(link_flapped, Now, Node,
           io_lib:format("the link to ~ts broke and came up ~b times: ~ts",
                         [Node, Ups, maps:get(last_error, Link)]))];
link(#{state := up}, #{state := up}, _Now) ->
    [];
%% Its process did not answer.
link(_Before, #{state := unknown}, _Now) ->
    [];
link(#{state := unknown}, #{state := up}, _Now) ->
    [];
link(#{state := unknown}, Link, Now) ->
    link(#{state => up}, Link, Now);
link(#{state := up}, #{node := Node, last_error := LastError}, Now) ->
    [event(link_down, Now, Node, ["the link to ", name(Node), " is down: ", LastError])];
link(_NotUp, #{state := up, node := Node}, Now) ->
    [event(link_up, Now, Node, ["the link to ", name(Node), " is up"])];
link(_NotUp, _NotUpNow, _Now) ->
    [].

%% --- the rest ---------------------------------------------------------------------------------

groups(#{groups := Same}, #{groups := Same}) ->
    [];
groups(#{groups := Before}, #{groups := Groups} = Now) ->
    [event(groups_changed, Now, Groups,
           io_lib:format("its groups are ~0tp, before ~0tp", [Groups, Before]))].

conflicts(Now) ->
    [event(name_conflict, Now, Count, io_lib:format("it resolved ~b conflicts of names", [Count]))
     || Count <- [maps:get(conflicts, Now, 0)], Count > 0].

cuts(Before, Now) ->
    [Were, Are] = [maps:get(cuts, Sample, []) || Sample <- [Before, Now]],
    [event(cut, Now, Node, ["the link to ", name(Node), " was cut on purpose"])
     || Node <- Are -- Were]
        ++ [event(healed, Now, Node, ["the link to ", name(Node), " is not cut any more"])
            || Node <- Were -- Are].

told(Now) ->
    [event(told, Now, About, Text) || {About, Text} <- maps:get(told, Now, [])].

%% @doc A node stopped to report.
-spec silent(node(), AtMs :: integer()) -> event().
silent(Node, AtMs) ->
    event(silent, #{node => Node, at_ms => AtMs}, none, "it does not report any more").

%% @doc A node is no member any more, or was silent for so long that it is forgotten.
-spec left(node(), AtMs :: integer()) -> event().
left(Node, AtMs) ->
    event(left, #{node => Node, at_ms => AtMs}, none, "it is not watched any more").

%% @doc What happened to an alarm.
-spec alarm({raised | acknowledged | cleared, weft_ops_alarms_core:alarm()}, AtMs :: integer()) ->
          event().
alarm({What, #{id := {Kind, Node, _About} = Id, text := Text} = Alarm}, AtMs) ->
    Said = case Alarm of
               #{acknowledged := #{comment := Comment}} when What =:= acknowledged ->
                   [Text, " (", Comment, ")"];
               #{} ->
                   Text
           end,
    event(case What of
              raised -> alarm_raised;
              acknowledged -> alarm_acknowledged;
              cleared -> alarm_cleared
          end, #{node => Node, at_ms => AtMs}, Id, [atom_to_list(Kind), ": ", Said]).

%% @doc Each event once, the oldest first.
-spec merged([event()]) -> [event()].
merged(Events) ->
    {Kept, _Last} = lists:foldl(fun merge/2, {[], #{}}, lists:usort(fun is_earlier/2, Events)),
    lists:reverse(Kept).

is_earlier(#{at_ms := A} = EventA, #{at_ms := B} = EventB) -> {A, EventA} =< {B, EventB}.

%% Of what each agent finds out by itself the first one counts.
merge(#{at_ms := AtMs, kind := Kind, node := Node, about := About} = Event, {Kept, Last}) ->
    Key = {Kind, Node, About},
    case lists:member(Kind, ?EACH_BY_ITSELF) andalso Last of
        #{Key := BeforeMs} when AtMs - BeforeMs < ?SAME_MS -> {Kept, Last};
        _ -> {[Event | Kept], Last#{Key => AtMs}}
    end.

event(Kind, #{node := Node, at_ms := AtMs}, About, Text) ->
    #{at_ms => AtMs, kind => Kind, node => Node, about => About,
      text => unicode:characters_to_binary(Text)}.

name(Node) -> atom_to_list(Node).
