%% SPDX-License-Identifier: Apache-2.0
%% @doc What an actor of a simulation is: a module with these callbacks, whose state and messages
%% are plain data.
%%
%% Time is {Tick, Diasca}. An actor acts at tick T because it has scheduled that tick (`on_tick', at
%% diasca 0), or because messages were sent to it (`on_message', one diasca after they were sent).
%% A callback returns the new state and what is to be done; nothing is done by side effects. The
%% messages of one diasca come in the order of their contents, then of their senders, so the result
%% depends neither on the nodes nor on the order of arrival. It follows that an actor must not use
%% clocks, process identifiers or `rand' without a state: what it needs of chance begins with
%% `random' in the context of `init' (`weft_diasca_random').
-module(weft_diasca_actor).

-export_type([id/0, tick/0, time/0, context/0, effect/0, options/0]).

%% Actor 0 is the engine itself, which tells an actor the identifier of what it has created.
-type id() :: non_neg_integer().
-type tick() :: non_neg_integer().
-type time() :: {tick(), Diasca :: non_neg_integer()}.
-type context() :: #{id := id(), tick := tick(), diasca := non_neg_integer(),
                     random => weft_diasca_random:random()}.
%% Actors with equal `place' are on one node; others are dealt to the nodes in turn.
-type options() :: #{place => term()}.
-type effect() ::
    {send, id(), Message :: term()}
  | {schedule, tick()}
  | {withdraw, tick()}
  | {probe, Name :: term(), Value :: term()}
  | {create, Tag :: term(), module(), Arguments :: term(), options()}
  | terminate.
%% `schedule' names a tick after this one. `create': in the next diasca the new actor is
%% initialized, and this one gets `{created, Tag, Id}' from actor 0. `terminate': the actor is
%% removed when this diasca ends, and what was sent to it and not read is dropped.

%% The first callback of an actor, at {0, 0} or when it was created.
-callback init(Arguments :: term(), context()) -> {State :: term(), [effect()]}.
-callback on_tick(State, context()) -> {State, [effect()]} when State :: term().
-callback on_message(From :: id(), Message :: term(), State, context()) -> {State, [effect()]}
              when State :: term().
%% When it is removed, and at the end of the simulation: last probes, nothing else.
-callback terminate(State :: term(), context()) -> [{probe, Name :: term(), Value :: term()}].
-optional_callbacks([terminate/2]).
