%% SPDX-License-Identifier: Apache-2.0
%% @doc What happened in the cluster, for browsers: the events that agents know, and models of times
%% that a recording of `weft_ops' has (`recording' in the configuration).
%%
%% At most the newest 2000 events are told. A recording is read at each request, by a few at a time;
%% others wait for a turn. All of it takes bounded time, and ends with the one who has asked. If the
%% recording is not read by then, the events that agents know are told alone.
-module(weft_dashboard_past).

-export([events/2, span/1, model/2]).

-define(EVENTS_MAX, 2000).
-define(READ_MS, 10000).
%% The end of the year 9999.
-define(LATEST_MS, 253402300799999).

%% @doc The events since that system time in milliseconds: those that agents know and, before them,
%% those of the recording. `missing' says of whom not: `agents' or `recording'.
-spec events(integer(), weft_dashboard_config:config()) -> weft_dashboard_api:answer().
events(SinceMs, #{source := agents, recording := Dir}) ->
    Asker = self(),
    {Answers, Missing} = weft_ask:all([agents | [recording || Dir =/= none]],
                                      fun(Who) ->
                                          weft_dashboard_turns:watched(
                                            Asker, fun() -> known(Who, SinceMs, Dir) end)
                                      end, ?READ_MS),
    case Answers of
        [] -> late();
        _ -> {200, newest(lists:append([Events || {_Who, Events} <- Answers]), Missing)}
    end;
events(_SinceMs, _Config) ->
    {409, #{error => <<"this dashboard asks no agents, and they are who knows events">>}}.

known(agents, SinceMs, _Dir) ->
    weft_ops:events(SinceMs);
known(recording, SinceMs, Dir) ->
    case in_turn(fun() -> weft_ops_recording:events(Dir, {SinceMs, infinity}) end) of
        {ok, Read, _Problems} ->
            [Event || #{at_ms := AtMs, kind := _, node := _, about := _, text := _} = Event <- Read,
                      AtMs >= SinceMs];
        {error, _NothingYet} -> []
    end.

newest(Events, Missing) ->
    All = weft_ops_events:merged(Events),
    Newest = lists:nthtail(max(0, length(All) - ?EVENTS_MAX), All),
    #{events => [event(Event) || Event <- Newest], more => length(All) - length(Newest),
      missing => Missing}.

event(#{at_ms := AtMs, kind := Kind, node := Node, about := About, text := Text}) ->
    #{at_ms => AtMs, kind => Kind, node => Node, about => weft_dashboard_model_core:text(About),
      text => Text}.

%% @doc The times of the first and the last entry of the recording; none, and why, if it has no
%% entry yet or can not be read.
-spec span(weft_dashboard_config:config()) -> weft_dashboard_api:answer().
span(#{recording := none}) ->
    none();
span(#{recording := Dir}) ->
    in_time(fun() ->
                    case in_turn(fun() -> weft_ops_recording:span(Dir) end) of
                        {ok, {FromMs, ToMs}} ->
                            {200, #{from_ms => FromMs, to_ms => ToMs}};
                        {error, Text} ->
                            {200, #{from_ms => undefined, to_ms => undefined,
                                    why => unicode:characters_to_binary(Text)}}
                    end
            end).

%% @doc The model as it was at that time. Who was in which group is known of the nodes that were
%% up. In a gap of the recording all of them are silent, and an alarm says from when to when: so a
%% replay goes on.
-spec model(integer(), weft_dashboard_config:config()) -> weft_dashboard_api:answer().
model(_AtMs, #{recording := none}) ->
    none();
model(AtMs, #{recording := Dir}) ->
    in_time(fun() ->
                    case in_turn(fun() -> weft_ops_recording:picture(Dir, AtMs) end) of
                        {ok, Picture} -> {200, of_picture(Picture, groups(Picture), AtMs)};
                        {gap, Span, Before} -> {200, of_gap(Span, Before, AtMs)};
                        {error, Text} -> {404, #{error => unicode:characters_to_binary(Text)}}
                    end
            end).

groups(#{nodes := Nodes}) ->
    Members = [{Group, Node} || {Node, #{groups := Groups}} <- maps:to_list(Nodes),
                                Group <- Groups],
    lists:foldl(fun({Group, Node}, All) ->
                        maps:update_with(Group, fun(Others) -> [Node | Others] end, [Node], All)
                end, #{}, Members).

of_picture(Picture, Groups, AtMs) ->
    weft_dashboard_model_core:model(Picture#{groups => Groups},
                                    #{node => node(), at_ms => AtMs, source => recording}).

of_gap({FromMs, ToMs}, #{nodes := Nodes} = Before, AtMs) ->
    Silent = Before#{nodes := maps:map(fun(_, _) -> silent end, Nodes), agents := #{},
                     alarms := []},
    Text = ["nothing was recorded from ", time(FromMs),
            case ToMs of infinity -> " on"; _ -> [" to ", time(ToMs)] end],
    Alarm = #{<<"kind">> => <<"not recorded">>, <<"node">> => atom_to_binary(node()),
              <<"about">> => atom_to_binary(node()), <<"severity">> => <<"note">>,
              <<"text">> => unicode:characters_to_binary(Text), <<"at_ms">> => FromMs},
    (of_picture(Silent, groups(Before), AtMs))#{<<"alarms">> := #{<<"not recorded">> => Alarm}}.

%% A file may say any time.
time(Ms) ->
    calendar:system_time_to_rfc3339(min(max(0, Ms), ?LATEST_MS),
                                    [{unit, millisecond}, {offset, "Z"}]).

none() ->
    {409, #{error => <<"this dashboard knows no recording: `recording' in its configuration is "
                       "the directory of one">>}}.

in_time(Fun) ->
    case weft_dashboard_turns:in_time(?READ_MS, Fun) of
        {ok, Answer} -> Answer;
        late -> late()
    end.

late() -> {504, #{error => <<"this took too long">>}}.

in_turn(Read) -> weft_dashboard_turns:in_turn(read, Read).
