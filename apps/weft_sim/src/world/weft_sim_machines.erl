%% SPDX-License-Identifier: Apache-2.0
%% @doc The machines of one simulated node, and the views that they have written; pure.
%%
%% A machine is any module with the contract `weft_core'. Each start of one has a generation, so
%% that timers of an earlier start can be told apart. The order is that of the first starts.
-module(weft_sim_machines).

-export([none/0, start/4, handle/4, names/1, generation/2, state/2,
         put_view/4, forget_views/2, view/2, views/1]).
-export_type([machines/0]).

-record(machines, {
    running = [] :: [{atom(), module(), State :: term(), Generation :: non_neg_integer()}],
    views = #{} :: #{Key :: term() => {Machine :: atom(), Value :: term()}}}).
-opaque machines() :: #machines{}.

-spec none() -> machines().
none() -> #machines{}.

%% @doc Starts a machine on that node, or starts it again. Also what it wants done.
-spec start(node(), {Name :: atom(), module(), Options :: map()},
            Generation :: non_neg_integer(), machines()) -> {machines(), weft_core:effects()}.
start(Node, {Name, Module, Options}, Generation, #machines{running = Running} = Machines) ->
    {State, Effects} = Module:init(Node, Options),
    Entry = {Name, Module, State, Generation},
    {Machines#machines{running = lists:keystore(Name, 1, Running, Entry)}, Effects}.

%% @doc Something happens to a machine.
-spec handle(Name :: atom(), weft_core:event(), NowMs :: integer(), machines()) ->
          {machines(), weft_core:effects()}.
handle(Name, Event, NowMs, #machines{running = Running} = Machines) ->
    {_, Module, State0, Generation} = lists:keyfind(Name, 1, Running),
    {State, Effects} = Module:handle(Event, NowMs, State0),
    Entry = {Name, Module, State, Generation},
    {Machines#machines{running = lists:keyreplace(Name, 1, Running, Entry)}, Effects}.

%% @doc Those that run.
-spec names(machines()) -> [atom()].
names(#machines{running = Running}) -> [Name || {Name, _, _, _} <- Running].

%% @doc Which start of a machine that runs this is.
-spec generation(Name :: atom(), machines()) -> non_neg_integer().
generation(Name, #machines{running = Running}) ->
    {_, _, _, Generation} = lists:keyfind(Name, 1, Running),
    Generation.

-spec state(Name :: atom(), machines()) -> {ok, State :: term()} | error.
state(Name, #machines{running = Running}) ->
    case lists:keyfind(Name, 1, Running) of
        {_, _, State, _} -> {ok, State};
        false -> error
    end.

%% @doc A machine writes a view, or takes it back.
-spec put_view(Key :: term(), Value :: term() | delete, Name :: atom(), machines()) -> machines().
put_view(Key, delete, _Name, #machines{views = Views} = Machines) ->
    Machines#machines{views = maps:remove(Key, Views)};
put_view(Key, Value, Name, #machines{views = Views} = Machines) ->
    Machines#machines{views = Views#{Key => {Name, Value}}}.

%% @doc Those that this machine has written.
-spec forget_views(Name :: atom(), machines()) -> machines().
forget_views(Name, #machines{views = Views} = Machines) ->
    Machines#machines{views = maps:filter(fun(_, {Owner, _}) -> Owner =/= Name end, Views)}.

-spec view(Key :: term(), machines()) -> Value :: term() | undefined.
view(Key, #machines{views = Views}) ->
    case Views of
        #{Key := {_, Value}} -> Value;
        #{} -> undefined
    end.

-spec views(machines()) -> #{Key :: term() => Value :: term()}.
views(#machines{views = Views}) ->
    maps:map(fun(_, {_, Value}) -> Value end, Views).
