%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `phold', the synthetic one that engines of simulation are compared by (R. Fujimoto,
%% Performance of Time Warp under synthetic workloads, 1990): a fixed number of events moves between
%% actors at random.
%%
%% Each actor begins with some events in the future. An event that is due is given to an actor of
%% chance (itself, or with the probability `away_percent' any of them), and is due there after a
%% delay of 1 to `delay_max' ticks, evenly. In the end each actor tells how many events it has
%% handled, and a checksum over when they came from whom.
-module(weft_diasca_phold).
-behaviour(weft_diasca_workload).
-behaviour(weft_diasca_actor).

-export([about/0, actors/1]).
-export([init/2, on_tick/2, on_message/4, terminate/2]).

-record(process, {actors, events, away_percent, delay_max, random, due = #{}, handled = 0,
                  checksum = 0}).

%% @private
about() ->
    #{text => "PHOLD: events that move between actors at random",
      ticks => 100,
      options => #{actors => 64, events => 4, away_percent => 50, delay_max => 10}}.

%% @private
actors(#{actors := Actors, events := Events, away_percent := Percent, delay_max := Delay})
  when is_integer(Actors), Actors > 0, is_integer(Events), Events >= 0, is_integer(Percent),
       Percent >= 0, Percent =< 100, is_integer(Delay), Delay > 0 ->
    Process = #process{actors = Actors, events = Events, away_percent = Percent,
                       delay_max = Delay},
    lists:duplicate(Actors, {?MODULE, Process, #{}});
actors(_Options) ->
    {error, "actors, events and delay_max are numbers, away_percent is 0 to 100"}.

%% @private
init(#process{events = Events, delay_max = Max} = Process, #{tick := Tick, random := Random}) ->
    lists:foldl(fun(_, {#process{random = R0} = P, Effects}) ->
                        {Delay, R} = weft_diasca_random:uniform(Max, R0),
                        {Next, New} = due(Tick + Delay, P#process{random = R}),
                        {Next, New ++ Effects}
                end, {Process#process{random = Random}, []}, lists:seq(1, Events)).

due(Tick, #process{due = Due} = Process) ->
    {Process#process{due = Due#{Tick => maps:get(Tick, Due, 0) + 1}}, [{schedule, Tick}]}.

%% @private
on_tick(#process{due = Due, handled = Handled} = Process, #{id := Id, tick := Tick}) ->
    {Count, Later} = maps:take(Tick, Due),
    lists:foldl(fun(_, {P, Effects}) -> passed_on(Id, Tick, P, Effects) end,
                {Process#process{due = Later, handled = Handled + Count}, []},
                lists:seq(1, Count)).

passed_on(Id, Tick, #process{actors = Actors, away_percent = Percent, delay_max = Max,
                             random = Random0} = Process, Effects) ->
    {Chance, Random1} = weft_diasca_random:uniform(100, Random0),
    {Any, Random2} = weft_diasca_random:uniform(Actors, Random1),
    {Delay, Random} = weft_diasca_random:uniform(Max, Random2),
    To = case Chance =< Percent of true -> Any; false -> Id end,
    {Process#process{random = Random}, [{send, To, {event, Tick + Delay}} | Effects]}.

%% @private
on_message(From, {event, Tick}, #process{checksum = Checksum} = Process, #{tick := Now}) ->
    due(Tick, Process#process{checksum = erlang:phash2({Checksum, From, Now, Tick})}).

%% @private
terminate(#process{handled = Handled, checksum = Checksum}, _Context) ->
    [{probe, handled, Handled}, {probe, checksum, Checksum}].
