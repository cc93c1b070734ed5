%% SPDX-License-Identifier: Apache-2.0
%% @doc What is simulated: a module that says which actors there are in the beginning. They get the
%% identifiers 1, 2, ... in the order of the list.
%%
%% A module is found by its name on the code path, so a workload of one's own needs no registration.
%% What actors do is not here (`weft_diasca_actor').
-module(weft_diasca_workload).

-export([about/1, actors/2, names/0, module/1]).
-export_type([about/0]).

%% `ticks': the last tick, if the run says nothing else. `options': all that it understands, with
%% their defaults.
-type about() :: #{text := string(), ticks := weft_diasca_actor:tick(), options := map()}.

-callback about() -> about().
-callback actors(Options :: map()) ->
    [{module(), Arguments :: term(), weft_diasca_actor:options()}] | {error, Text :: iodata()}.

%% @doc What a module says of itself, or `none' if it is no workload.
-spec about(module()) -> about() | none.
about(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, about, 0)
                 andalso erlang:function_exported(Module, actors, 1) of
                true -> Module:about();
                false -> none
            end;
        {error, _} -> none
    end.

%% @doc The first actors, or what is wrong with the options, or with what a module says they are.
-spec actors(module(), Options :: map()) ->
    {ok, [{module(), term(), weft_diasca_actor:options()}]} | {error, Text :: iodata()}.
actors(Module, Options) ->
    case Module:actors(Options) of
        {error, Text} -> {error, Text};
        Actors when length(Actors) >= 0 -> checked(1, Actors, Actors);
        Other -> {error, io_lib:format("actors/1 is to return a list, and returned ~0tP",
                                       [Other, 20])}
    end.

checked(_Id, [], Actors) ->
    {ok, Actors};
checked(Id, [One | Others], Actors) ->
    case weft_diasca_balancer:is_actor(One) of
        true -> checked(Id + 1, Others, Actors);
        false -> {error, io_lib:format("actor ~b is to be {Module, Arguments, Options}, of which "
                                       "Options is a map that may have place, and is ~0tP",
                                       [Id, One, 20])}
    end.

%% @doc The names of those that come with the engine.
-spec names() -> [atom(), ...].
names() -> [soda, phold, city].

%% @doc The module of a name; any other atom is a module of the user.
-spec module(atom()) -> module().
module(soda) -> weft_diasca_soda;
module(phold) -> weft_diasca_phold;
module(city) -> weft_diasca_city;
module(Module) -> Module.
