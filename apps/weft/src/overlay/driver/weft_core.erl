%% SPDX-License-Identifier: Apache-2.0
%% @doc The contract of every protocol of weft: a pure state machine.
%%
%% A core gets events and answers with its new state and a list of effects. Time, randomness (the
%% option `seed') and identity are arguments. A core calls no clock, no `self()', sends nothing, and
%% touches no table, logger or application environment. The same module therefore runs unchanged on
%% real links (`weft_driver'), in virtual time (`weft_sim') and in a unit test.
%%
%% Rules that both interpreters keep:
%% <ul>
%% <li>Effects are carried out in the order of the list.</li>
%% <li>Messages to one neighbour arrive in the order sent, or not at all once the link is lost.
%%     `neighbour_up' comes before the first message of a link, `neighbour_down' after the
%%     last.</li>
%% <li>A timer can not be cancelled. Its term carries a token, and the core ignores on arrival a
%%     timer whose token is no longer the current one.</li>
%% <li>`neighbour_down' is also the answer to a `connect' that failed, so it may name a node whose
%%     link was never up.</li>
%% </ul>
%% Messages that come from other nodes may be of a newer protocol version: a core ignores a message
%% whose version tag it does not know. Anything else unknown is a programming error and crashes.
-module(weft_core).

-export([seed/3]).
-export_type([node_id/0, event/0, effect/0, effects/0, options/0]).

-type node_id() :: node().

-type options() :: #{seed => term(), incarnation => non_neg_integer(), atom() => term()}.
%% `seed': any term, start of the random sequence of this core. `incarnation': number of this start
%% of the node, higher than that of its earlier starts (the driver takes the time of the start, in
%% seconds).

-type event() ::
    {message, From :: node_id(), Msg :: term()}
  | {timer, Timer :: term()}
  | {neighbour_up, node_id()}
  | {neighbour_down, node_id(), Reason :: term()}
  | {command, Ref :: term(), Command :: term()}
  | {notice, Notice :: term()}.
%% `command' is a request of this node, answered by the effect `reply' with the same `Ref'.
%% `notice' comes from another core or a measurement of this node.

-type effect() ::
    {send, To :: node_id(), Msg :: term()}
  | {after_ms, Ms :: non_neg_integer(), Timer :: term()}
  | {connect, node_id()}
  | {disconnect, node_id()}
  | {break, node_id()}
  | {neighbour, node_id(), boolean()}
  | {notice, Notice :: term()}
  | {reply, Ref :: term(), Reply :: term()}
  | {view, Key :: term(), Value :: term() | delete}
  | {watch, pid()}
  | {unwatch, pid()}
  | {tell, pid(), Msg :: term()}
  | {exit, pid(), Reason :: term()}.
%% `send' to a node that is no neighbour is dropped. `connect' may be repeated. It is answered by
%% `neighbour_up' (at once if the link is up already) or `neighbour_down'. `break' closes the link
%% if there is one, whichever core wants it; a core that still wants it dials anew. `neighbour' is
%% for a topology that decides which nodes are neighbours: with `true' other cores use the link from
%% now on, with `false' they stop soon; it ends also when the link goes down. `view' writes what
%% readers of this node see; each key belongs to one core. `watch' is answered once by `{notice,
%% {gone, Pid, Reason}}' when the process ends (soon, if it has ended already), unless `unwatch'
%% comes first. `tell' and `exit' are messages and exit signals to processes.

-type effects() :: [effect()].

-callback init(Self :: node_id(), Options :: options()) -> {State :: term(), effects()}.
-callback handle(event(), NowMs :: integer(), State) -> {State, effects()} when State :: term().
%% This node has another name: distribution has begun, or ended, after the core.
-callback named(Self :: node_id(), State) -> {State, effects()} when State :: term().
-optional_callbacks([named/2]).

%% @doc Start of the random sequence of one core. Cores of one node share the option `seed', so each
%% gives its own `Salt'.
-spec seed(node_id(), Salt :: atom(), options()) -> rand:state().
seed(Self, Salt, Options) ->
    Seed = maps:get(seed, Options, 0),
    {A, B, C} = {erlang:phash2({Seed, Self, Salt}), erlang:phash2({Self, Seed, Salt, b}),
                 erlang:phash2({Salt, Self, Seed, c})},
    rand:seed_s(exsss, {A, B, C}).
