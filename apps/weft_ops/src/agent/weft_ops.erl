%% SPDX-License-Identifier: Apache-2.0
%% @doc What you call on a node on which weft_ops runs, to see the whole cluster. This module has no
%% logic; what it answers comes from `weft_ops_picture', which asks the agents (`weft_ops_agents').
-module(weft_ops).

-export([picture/0, traffic/0, alarms/0, acknowledge/2, events/1, tell/2]).

-define(TIMEOUT_MS, 5000).

%% @doc The last sample of each node, as the agents of groups and of free nodes have them.
-spec picture() -> weft_ops_picture:picture().
picture() -> weft_ops_picture:take(?TIMEOUT_MS).

%% @doc Who talks to whom: between nodes, and between groups; bytes per second of the last sample.
-spec traffic() -> weft_ops_traffic:traffic().
traffic() ->
    #{nodes := Samples} = picture(),
    weft_ops_traffic:of_samples(Samples, weft_group:groups()).

%% @doc The alarms that are raised now, the oldest first.
-spec alarms() -> [weft_ops_alarms_core:alarm()].
alarms() ->
    #{alarms := Alarms} = picture(),
    Alarms.

%% @doc Says that somebody takes care of an alarm. All agents that have raised it are told: those of
%% its node, or of any one if it is `unreachable'. `{silent, Duties}': they are, but those that have
%% these duties, and may have raised it, did not answer; say it again when they do.
%% `{error, {silent, Duties}}': none that has answered knows the alarm. A node to which nothing
%% leads counts as one that has ended. A comment that is no text is an error `{no_text, Comment}'.
-spec acknowledge(weft_ops_alarms_core:id(), Comment :: unicode:chardata()) ->
          ok | {silent, Duties} | {error, unknown_alarm | {silent, Duties}}
              when Duties :: [weft_ops_agents:duty(), ...].
acknowledge(Id, Comment) ->
    weft_ops_picture:acknowledge(Id, text(Comment), ?TIMEOUT_MS).

%% @doc What happened in the cluster since that system time (milliseconds), the oldest first: nodes
%% that came and went, sessions, links, groups, alarms. Each agent knows the last thousand.
-spec events(SinceMs :: integer()) -> [weft_ops_events:event()].
events(SinceMs) -> weft_ops_picture:events(SinceMs, ?TIMEOUT_MS).

%% @doc Makes an event of kind `told' of what somebody does on this node, such as a fault on
%% purpose or a deployment. It comes with the next sample. What is no text is an error
%% `{no_text, Text}'.
-spec tell(About :: term(), Text :: unicode:chardata()) -> ok.
tell(About, Text) -> weft_ops_sampler:tell(About, text(Text)).

text(Chardata) ->
    case unicode:characters_to_binary(Chardata) of
        Text when is_binary(Text) -> Text;
        _NoText -> error({no_text, Chardata})
    end.
