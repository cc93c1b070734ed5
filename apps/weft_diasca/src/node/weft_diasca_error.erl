%% SPDX-License-Identifier: Apache-2.0
%% @doc Why a run has ended, in words: what happened, where and when, and what to do. Each reason
%% that a run can end with has its clause.
-module(weft_diasca_error).

-export([text/1]).

-spec text(term()) -> string().
text(Reason) -> lists:flatten(words(Reason)).

words({no_workload, Module}) ->
    f("there is no workload ~tp: weft_diasca:workloads() lists those that are here, and a module "
      "has the functions about/0 and actors/1 (is it in the code path?)", [Module]);
words({workload, Module, Text}) ->
    f("~tp: ~ts", [Module, Text]);
words({option, Key, unknown}) ->
    f("a run has no option ~tp", [Key]);
words({option, Key, is_in_the_checkpoint}) ->
    f("~tp can not be changed: it is what the checkpoint says", [Key]);
words({option, ticks, {before_the_checkpoint, Ticks, Tick}}) ->
    f("the last tick can not be ~b: the checkpoint is of tick ~b", [Ticks, Tick]);
words({option, checkpoint, none}) ->
    "checkpoint_ticks says how often, and `checkpoint' in which file: it is not there";
words({option, Key, Value}) ->
    f("the option ~tp can not be ~0tP", [Key, Value, 20]);
words({no_node, Node, no_code}) ->
    f("node ~ts has no code of weft_diasca, or that of an earlier version: put it in its code path",
      [Node]);
words({no_node, Node, Why}) ->
    f("node ~ts can not be used: ~0tP", [Node, Why, 20]);
words({no_module, Node, Module, Why}) ->
    f("node ~ts can not load the module ~tp (~0tP): put it in its code path, or load it there "
      "before the run", [Node, Module, Why, 20]);
words({other_code, Node, Module, Than}) ->
    f("node ~ts has another version of the module ~tp than ~ts: put the same one in the code path "
      "of both, and load it. If both do the same, say `code => any'", [Node, Module, Than]);
words({node_lost, Node, Time, Why}) ->
    What = case Why of noconnection -> "node"; _ -> "the manager on node" end,
    f("~ts ~ts was lost ~ts: ~0tP. With `checkpoint' a run can be continued on other nodes",
      [What, Node, at(Time), Why, 20]);
words({actor_failed, Node, Time, Id, Why}) ->
    f("actor ~b on ~ts failed ~ts: ~ts", [Id, Node, at(Time), failure(Why)]);
words({late, Phase, Time, Late}) ->
    f("the diasca (~ts) ~ts did not end in time (diasca_ms). ~ts", [Phase, at(Time), all(Late)]);
words({connection_lost, {Node, Other}, Time, Late}) ->
    f("the connection between the nodes ~ts and ~ts was lost ~ts, so what their actors sent each "
      "other may not have arrived, and the diasca did not end in time (diasca_ms). ~ts. With "
      "`checkpoint' a run can be continued", [Node, Other, at(Time), all(Late)]);
words({checkpoint, File, damaged}) ->
    f("~ts is no checkpoint, or is damaged", [File]);
words({checkpoint, File, {not_writable, Why}}) ->
    f("checkpoints can not be written to ~ts: ~ts. Name another file with `checkpoint', or `none'",
      [File, posix(Why)]);
words({checkpoint, File, Why}) ->
    f("checkpoint ~ts: ~ts", [File, posix(Why)]);
words({run_lost, Why}) ->
    f("the process of the run has ended: ~0tP", [Why, 20]);
words(Limit) ->
    limit(Limit).

limit({too_many_actors, Node, Max}) ->
    f("node ~ts would have more than ~b actors (actors_max): use more nodes, or raise it",
      [Node, Max]);
limit({too_many_messages, Time, Max}) ->
    f("more than ~b messages were sent ~ts (messages_max)", [Max, at(Time)]);
limit({too_many_diascas, Tick, Max}) ->
    f("tick ~b has more than ~b diascas (diascas_max): do actors answer each other for ever?",
      [Tick, Max]);
limit({too_many_probes, Max}) ->
    f("more than ~b values of probes (probes_max): name those to keep with `probes'", [Max]);
limit(Other) ->
    f("~0tP", [Other, 40]).

at({Tick, Diasca}) -> f("at tick ~b, diasca ~b", [Tick, Diasca]).

failure({_Module, _Class, {no_such_actor, Id}, _}) ->
    f("it sent to actor ~b, and there was never one with that number", [Id]);
failure({_Module, _Class, {no_effect, Effect, _, _}, _}) ->
    f("~0tP can not be done; see the type effect() of weft_diasca_actor", [Effect, 20]);
failure({_Module, _Class, {not_plain, Value}, _}) ->
    f("the value of a probe has ~0tP in it, which is not the same everywhere", [Value, 20]);
failure({Module, Class, Why, Stack}) ->
    f("~tp, ~tp: ~0tP ~0tP", [Module, Class, Why, 20, lists:sublist(Stack, 2), 30]).

all(Late) -> lists:join("; ", [late(One) || One <- Late]).

late({Node, silent}) -> f("~ts does not answer", [Node]);
late({Node, []}) -> f("~ts has no late actor", [Node]);
late({Node, Ids}) -> f("~ts waits for actors ~w, or they for others", [Node, Ids]).

posix(Why) when is_atom(Why) -> file:format_error(Why);
posix(Why) -> f("~0tp", [Why]).

f(Format, Arguments) -> io_lib:format(Format, Arguments).
