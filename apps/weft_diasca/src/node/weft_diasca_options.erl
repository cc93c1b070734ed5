%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of a run: their defaults, and what is wrong with others. A run that goes on from
%% a checkpoint keeps those that its results depend on.
-module(weft_diasca_options).

-export([new/2, again/1]).
-export_type([options/0]).

%% What the root process needs, and the settings of the simulation.
-type options() :: #{nodes := [node(), ...], diasca_ms := pos_integer(),
                     checkpoint := none | file:filename(), code := same | any,
                     settings := map()}.

-define(RUN, [nodes, diasca_ms, checkpoint, code]).

%% @doc Those of a new run of a workload that simulates so many ticks by itself.
-spec new(map(), weft_diasca_actor:tick()) -> {ok, options()} | {error, {option, term(), term()}}.
new(Given, Ticks) ->
    checked(maps:merge((defaults())#{ticks => Ticks}, Given), maps:keys(defaults())).

%% @doc Those of a run that goes on; settings that are not given stay what they were.
-spec again(map()) -> {ok, options()} | {error, {option, term(), term()}}.
again(Given) ->
    Wrong = [Key || Key <- [seed, order, options], is_map_key(Key, Given)],
    case Wrong of
        [Key | _] -> {error, {option, Key, is_in_the_checkpoint}};
        [] -> checked(maps:merge(maps:with(?RUN, defaults()), Given), maps:keys(defaults()))
    end.

%% Without a file there are no checkpoints; with a file there is one when the run is stopped.
settings(#{checkpoint := none} = Options) -> Options#{checkpoint_ticks => never};
settings(#{checkpoint_ticks := never} = Options) -> Options#{checkpoint_ticks := stop};
settings(Options) -> Options.

defaults() ->
    #{nodes => [node()], diasca_ms => 60000, checkpoint => none, code => same, options => #{},
      seed => 1, ticks => 0, order => sorted, probes => all, checkpoint_ticks => never,
      actors_max => 100000, messages_max => 1000000, diascas_max => 10000,
      probes_max => 1000000}.

checked(Options, Known) ->
    case [{Key, Value} || {Key, Value} <- maps:to_list(Options),
                          not (lists:member(Key, Known) andalso is_right(Key, Value))] of
        [] ->
            case Options of
                #{checkpoint := none, checkpoint_ticks := Every} when Every =/= never ->
                    {error, {option, checkpoint, none}};
                #{} ->
                    {ok, (maps:with(?RUN, Options))#{
                           settings => maps:without([options | ?RUN], settings(Options))}}
            end;
        [{Key, Value} | _] ->
            {error, {option, Key, case lists:member(Key, Known) of
                                      true -> Value;
                                      false -> unknown
                                  end}}
    end.

is_right(nodes, Nodes) when length(Nodes) > 0 ->
    lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes);
is_right(nodes, _Other) -> false;
is_right(checkpoint, File) ->
    File =:= none orelse (io_lib:printable_unicode_list(File) andalso File =/= "");
is_right(code, Code) -> lists:member(Code, [same, any]);
is_right(options, Options) -> is_map(Options);
is_right(seed, _Seed) -> true;
is_right(ticks, Ticks) -> is_integer(Ticks) andalso Ticks >= 0;
is_right(order, Order) -> lists:member(Order, [sorted, shuffled]);
is_right(probes, Probes) when length(Probes) >= 0 -> true;
is_right(probes, Probes) -> lists:member(Probes, [all, none]);
is_right(checkpoint_ticks, never) -> true;
%% A timer takes no more.
is_right(diasca_ms, Ms) when Ms > 16#FFFFFFFF -> false;
is_right(_Count, Count) -> is_integer(Count) andalso Count > 0.
