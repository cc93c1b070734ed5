%% SPDX-License-Identifier: Apache-2.0
%% @doc The load balancer: it numbers the actors, and says on which node each of them is and where
%% its sequence of chance begins. Numbers and chance do not depend on the nodes.
-module(weft_diasca_balancer).

-export([is_actor/1, birth/4, restored/2, place/3]).
-export_type([birth/0]).

%% What a manager needs to make an actor: a new one, or one of a checkpoint.
-type birth() :: {weft_diasca_actor:id(), {new, map()} | {saved, map()}}.

%% @doc Whether an actor can be made of it.
-spec is_actor(term()) -> boolean().
is_actor({Module, _Arguments, Options}) when is_atom(Module), is_map(Options) ->
    maps:without([place], Options) =:= #{};
is_actor(_) ->
    false.

%% @doc A new actor, and its node.
-spec birth(weft_diasca_actor:id(), {module(), term(), weft_diasca_actor:options()},
            Settings :: map(), [node(), ...]) -> {node(), birth()}.
birth(Id, {Module, Arguments, Options}, #{seed := Seed, order := Order}, Nodes) ->
    Place = maps:get(place, Options, turn),
    {place(Id, Place, Nodes),
     {Id, {new, #{module => Module, arguments => Arguments, order => Order,
                  place => Place, random => weft_diasca_random:new(Seed, Id)}}}}.

%% @doc An actor of a checkpoint, and its node, which may be another one than before.
-spec restored(Saved :: map(), [node(), ...]) -> {node(), birth()}.
restored(#{id := Id, place := Place} = Saved, Nodes) ->
    {place(Id, Place, Nodes), {Id, {saved, Saved}}}.

%% @doc The node of an actor.
-spec place(weft_diasca_actor:id(), turn | (Hint :: term()), [node(), ...]) -> node().
place(Id, turn, Nodes) -> lists:nth((Id - 1) rem length(Nodes) + 1, Nodes);
place(_Id, Hint, Nodes) -> lists:nth(erlang:phash2(Hint, length(Nodes)) + 1, Nodes).
