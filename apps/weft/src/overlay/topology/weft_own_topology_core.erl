%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a topology that is not part of weft, `{Module, Options}' in the configuration, so that
%% its errors end neither the overlay nor a link.
%%
%% Everything is passed on to the module, whose callbacks are those of `weft_core' and
%% `weft_topology'. Its messages reach the same module on other nodes only. A callback that crashes,
%% or returns what is no state with effects, has failed: nothing of what it returned is carried out,
%% and the notice `{warning, {topology_failed, ..}}' says what happened. From then on the links that
%% the module wanted last are kept up, what it showed stays, and after a pause the module begins
%% anew with `init'. The pause is a second after the first failure and doubles up to a minute; after
%% a minute without a failure it is a second again. While the module does not run messages and
%% notices to it are lost, `leave' gives up all links, and other commands are answered with an
%% error.
%%
%% Not here: a callback that does not return, or takes all memory, is not noticed.
-module(weft_own_topology_core).
-behaviour(weft_core).

-export([init/2, handle/3, neighbours/1, has_failed/1, check/3]).

-define(VERSION, {own_topology, 1}).
-define(PAUSE_MS, 1000).
-define(PAUSE_MAX_MS, 60000).
%% As long as a new core has to ask for its links before those of the former one are given up.
-define(HANDOVER_MS, 3000).
%% Thirty years. The VM has no timers for a time beyond the end of its clock, some 300 years away.
-define(TIMER_MAX_MS, 1000000000000).

-record(own, {
    self :: weft_core:node_id(),
    module :: module(),
    options :: weft_core:options(),
    %% `left': it failed when it was to leave, and does not begin anew.
    mode = failed :: {running, State :: term()} | failed | left,
    %% Timers of an earlier start are stale.
    generation = 0 :: non_neg_integer(),
    failures = 0 :: non_neg_integer(),
    started_ms = undefined :: undefined | integer(),
    asked = #{} :: #{weft_core:node_id() => []},
    views = #{} :: #{Key :: term() => []},
    leaving = none :: none | {ref, term()},
    %% The links that are up; while the module does not run also those that are wanted.
    links :: weft_wanted_links:links()}).

%% @doc See `weft_core'. Option: `own', the module with its options. The module gets `seed',
%% `incarnation' and `known' besides.
-spec init(weft_core:node_id(), weft_core:options()) -> {#own{}, weft_core:effects()}.
init(Self, #{own := {Module, Options}} = Outer) ->
    started(#own{self = Self, module = Module, links = weft_wanted_links:new(Self, Outer),
                 options = maps:merge(Options, maps:with([seed, incarnation, known], Outer))},
            undefined).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #own{}) -> {#own{}, weft_core:effects()}.
handle(Event, NowMs, #own{started_ms = undefined} = Own) ->
    handle(Event, NowMs, Own#own{started_ms = NowMs});
handle({timer, {again, Generation}}, NowMs, #own{generation = Generation, mode = failed} = Own) ->
    again(NowMs, Own);
handle({timer, {handover, Generation}}, _NowMs,
       #own{generation = Generation, mode = {running, _}, asked = Asked} = Own) ->
    given_up(maps:keys(Asked) -- neighbours(Own), Own);
handle({timer, {held, Timer}}, _NowMs, #own{links = Links} = Own) ->
    held(weft_wanted_links:timer(Timer, Links), Own);
handle({timer, {own, Generation, Timer}}, NowMs, #own{generation = Generation} = Own) ->
    passed_on({timer, Timer}, NowMs, Own);
handle({timer, _OfAnEarlierStart}, _NowMs, Own) ->
    {Own, []};
handle({neighbour_up, Node} = Event, NowMs, #own{links = Links} = Own) ->
    passed_on(Event, NowMs, Own#own{links = weft_wanted_links:up(Node, Links)});
handle({neighbour_down, Node, _Reason} = Event, NowMs, #own{links = Links} = Own0) ->
    {Own1, Dials} = held(weft_wanted_links:down(Node, Links), Own0),
    {Own, Effects} = passed_on(Event, NowMs, Own1),
    {Own, Dials ++ Effects};
handle({message, From, {?VERSION, Module, Message}}, NowMs, #own{module = Module} = Own) ->
    passed_on({message, From, Message}, NowMs, Own);
handle({message, _From, _OfAnotherTopology}, _NowMs, Own) ->
    {Own, []};
handle({command, Ref, leave} = Event, NowMs, Own) ->
    passed_on(Event, NowMs, Own#own{leaving = {ref, Ref}});
handle(Event, NowMs, Own) ->
    passed_on(Event, NowMs, Own).

passed_on(Event, NowMs, #own{mode = {running, State}, module = Module} = Own) ->
    case tried(fun() -> Module:handle(Event, NowMs, State) end, Own) of
        {ok, Next, Effects} -> performed(Effects, Own#own{mode = {running, Next}});
        {failed, Why} -> failed(Why#{event => kind(Event)}, Event, NowMs, Own)
    end;
passed_on({command, Ref, leave}, _NowMs, Own) ->
    left(Ref, Own);
passed_on({command, Ref, _Command}, _NowMs, Own) ->
    {Own, [{reply, Ref, {error, topology_failed}}]};
passed_on(_Event, _NowMs, Own) ->
    {Own, []}.

%% --- start, failure, start again --------------------------------------------------------------

started(#own{self = Self, module = Module, options = Options, generation = Generation} = Own0,
        NowMs) ->
    Own = Own0#own{generation = Generation + 1, started_ms = NowMs},
    case tried(fun() -> Module:init(Self, Options) end, Own) of
        {ok, State, Effects} ->
            performed(Effects, Own#own{mode = {running, State}});
        {failed, Why} ->
            failed(Why#{event => init}, init, NowMs, Own)
    end.

again(NowMs, #own{views = Before, links = Links0} = Own0) ->
    Links = weft_wanted_links:rest(Links0),
    {Own, Effects} = started(Own0#own{links = Links, views = #{}}, NowMs),
    case Own of
        #own{mode = {running, _}, views = Views, generation = Generation} ->
            Stale = [{view, Key, delete} || Key <- maps:keys(maps:without(maps:keys(Views),
                                                                          Before))],
            {Told, More} = told(weft_wanted_links:linked(Links), NowMs, Own),
            {Told, Effects ++ Stale ++ [{after_ms, ?HANDOVER_MS, {handover, Generation}} | More]};
        #own{views = Views} ->
            {Own#own{views = maps:merge(Before, Views)}, Effects}
    end.

told(Nodes, NowMs, Own) ->
    lists:foldl(fun(Node, {Own0, Effects}) ->
                        {Own1, More} = passed_on({neighbour_up, Node}, NowMs, Own0),
                        {Own1, Effects ++ More}
                end, {Own, []}, Nodes).

failed(Why, Event, NowMs, #own{module = Module, generation = Generation, asked = Asked} = Own0) ->
    Failures = failures(NowMs, Own0),
    PauseMs = min(?PAUSE_MAX_MS, ?PAUSE_MS bsl min(Failures - 1, 10)),
    Warning = {notice, {warning, {topology_failed,
                                  Why#{module => Module, again_after_ms => PauseMs,
                                       kept_links => lists:sort(maps:keys(Asked))}}}},
    case Own0#own{mode = failed, failures = Failures} of
        #own{leaving = {ref, Ref}} = Own ->
            {Left, Effects} = left(Ref, Own),
            {Left, [Warning | Effects]};
        Own ->
            {Held, Dials} = lists:foldl(fun hold/2, {Own, []}, lists:sort(maps:keys(Asked))),
            {Held, [Warning, {after_ms, PauseMs, {again, Generation}} | Dials ++ refused(Event)]}
    end.

failures(NowMs, #own{failures = Before, started_ms = StartedMs}) ->
    case is_integer(NowMs) andalso is_integer(StartedMs)
        andalso NowMs - StartedMs >= ?PAUSE_MAX_MS of
        true -> 1;
        false -> Before + 1
    end.

refused({command, Ref, _Command}) -> [{reply, Ref, {error, topology_failed}}];
refused(_Event) -> [].

hold(Node, {#own{links = Links} = Own0, Effects}) ->
    {Own, More} = held(weft_wanted_links:want(Node, Links), Own0),
    {Own, Effects ++ More}.

held({Links, Effects}, Own) ->
    {Own#own{links = Links}, [case Effect of
                                  {after_ms, Ms, Timer} -> {after_ms, Ms, {held, Timer}};
                                  _ -> Effect
                              end || Effect <- Effects]}.

left(Ref, #own{asked = Asked, links = Links} = Own) ->
    {Left, Effects} = given_up(maps:keys(Asked), Own#own{mode = left,
                                                         links = weft_wanted_links:rest(Links)}),
    {Left, Effects ++ [{reply, Ref, ok}]}.

given_up(Nodes, #own{asked = Asked} = Own) ->
    {Own#own{asked = maps:without(Nodes, Asked)}, [{disconnect, Node} || Node <- Nodes]}.

%% --- what the module returns ------------------------------------------------------------------

tried(Fun, #own{self = Self, module = Module}) ->
    try Fun() of
        {State, Effects} when length(Effects) >= 0 -> % no improper list
            case [Wrong || Wrong <- Effects, not is_effect(Wrong, Self, Module)] of
                [] -> {ok, State, Effects};
                [Wrong | _] -> {failed, #{no_effect => Wrong}}
            end;
        Other ->
            {failed, #{returned => Other, expected => "{State, [Effect]}"}}
    catch
        Class:Reason:Stack -> {failed, #{crashed => {Class, Reason}, stacktrace => Stack}}
    end.

is_effect({send, To, _Message}, _Self, _Module) -> is_atom(To);
is_effect({after_ms, Ms, _Timer}, _Self, _Module) ->
    is_integer(Ms) andalso Ms >= 0 andalso Ms =< ?TIMER_MAX_MS;
is_effect({Kind, Node}, Self, _Module)
  when Kind =:= connect; Kind =:= disconnect; Kind =:= break ->
    is_atom(Node) andalso Node =/= Self;
is_effect({neighbour, Node, IsNeighbour}, Self, _Module) ->
    is_atom(Node) andalso Node =/= Self andalso is_boolean(IsNeighbour);
is_effect({notice, _Notice}, _Self, _Module) -> true;
%% As that of a command; `gen_server:reply/2' takes nothing else.
is_effect({reply, {_To, _Tag}, _Reply}, _Self, _Module) -> true;
is_effect({view, {Kind, _}, _Value}, _Self, Module) ->
    Kind =:= member orelse Kind =:= failed orelse Kind =:= Module;
is_effect(_Other, _Self, _Module) -> false.

performed(Effects, Own) ->
    {Done, Out} = lists:foldl(fun(Effect, {Own0, Before}) ->
                                      {remembered(Effect, Own0), [outward(Effect, Own0) | Before]}
                              end, {Own, []}, Effects),
    {Done, lists:reverse(Out)}.

remembered({connect, Node}, #own{asked = Asked} = Own) -> Own#own{asked = Asked#{Node => []}};
remembered({disconnect, Node}, #own{asked = Asked} = Own) ->
    Own#own{asked = maps:remove(Node, Asked)};
remembered({view, Key, delete}, #own{views = Views} = Own) ->
    Own#own{views = maps:remove(Key, Views)};
remembered({view, Key, _Value}, #own{views = Views} = Own) -> Own#own{views = Views#{Key => []}};
remembered(_Effect, Own) -> Own.

outward({send, To, Message}, #own{module = Module}) -> {send, To, {?VERSION, Module, Message}};
outward({after_ms, Ms, Timer}, #own{generation = Generation}) ->
    {after_ms, Ms, {own, Generation, Timer}};
outward(Effect, _Own) -> Effect.

kind(Event) -> element(1, Event).

%% --- for weft_topology ------------------------------------------------------------------------

%% @doc See `weft_topology'. While the module does not run these are the links that are kept.
-spec neighbours(#own{}) -> [weft_core:node_id()].
neighbours(#own{mode = {running, State}, module = Module} = Own) ->
    try Module:neighbours(State) of
        Nodes when length(Nodes) >= 0 -> Nodes;
        _NoList -> kept(Own)
    catch
        _:_ -> kept(Own)
    end;
neighbours(Own) ->
    kept(Own).

kept(#own{asked = Asked}) -> lists:sort(maps:keys(Asked)).

%% @doc Has the module ever failed since this core was started?
-spec has_failed(#own{}) -> boolean().
has_failed(#own{failures = Failures}) -> Failures > 0.

%% @doc Do the callbacks of the module return, with these options, what they have to? Called before
%% it is used; a core is pure, so that its first step may be tried.
-spec check(weft_core:node_id(), module(), Options :: map()) -> ok | {error, iolist()}.
check(Self, Module, Options) ->
    weft_topology_rules:first_error(
      [fun() -> asked(validate, [Self, Options], Module) end,
       fun() -> asked(partial, [Self, Options], Module) end,
       fun() -> first_step(Self, Module, Options) end]).

asked(Function, Arguments, Module) ->
    try {Function, apply(Module, Function, Arguments)} of
        {validate, ok} -> ok;
        {validate, {error, Text}} -> {error, Text};
        {partial, IsPartial} when is_boolean(IsPartial) -> ok;
        {_, Other} ->
            {error, io_lib:format("~0tp of topology ~0tp returned ~0tp: see the callbacks of "
                                  "weft_topology", [Function, Module, Other])}
    catch
        Class:Reason:Stack -> {error, crashed(Function, Module, {Class, Reason}, Stack)}
    end.

first_step(Self, Module, Options) ->
    Own = #own{self = Self, module = Module, options = Options,
               links = weft_wanted_links:new(Self, #{})},
    Given = Options#{seed => 0, incarnation => 0},
    case tried(fun() -> Module:init(Self, Given) end, Own) of
        {ok, State, _Effects} -> wanted(Module, State);
        {failed, #{crashed := What, stacktrace := Stack}} ->
            {error, crashed(init, Module, What, Stack)};
        {failed, Why} ->
            {error, io_lib:format("init of topology ~0tp returned what is not {State, [Effect]} "
                                  "(see weft_core): ~0tp", [Module, Why])}
    end.

wanted(Module, State) ->
    try Module:neighbours(State) of
        Nodes when length(Nodes) >= 0 -> ok;
        Other -> {error, io_lib:format("neighbours of topology ~0tp returned ~0tp: return a list "
                                       "of nodes", [Module, Other])}
    catch
        Class:Reason:Stack -> {error, crashed(neighbours, Module, {Class, Reason}, Stack)}
    end.

crashed(Function, Module, {Class, Reason}, Stack) ->
    io_lib:format("~0tp of topology ~0tp crashed: ~0tp:~0tp ~0tP",
                  [Function, Module, Class, Reason, Stack, 20]).
