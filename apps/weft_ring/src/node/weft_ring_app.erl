%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_ring and its configuration. A wrong value stops the start with an error
%% that names it.
%%
%% A node says where it is when it makes a ring or joins one. It is what `location' says: any term,
%% or the value that an attribute of the node has when this application starts. Without that key it
%% is the attribute `location' if there is one, and otherwise the node.
-module(weft_ring_app).
-behaviour(application).

-export([start/2, stop/1, config/1]).

-define(DEFAULTS, #{partitions => 64, n_val => 3, location => node(), dir => none,
                    handoff => none, handoffs_max => 2, sync_ms => 5000,
                    vnodes => [], queue_max => 1000, handoff_items => 500, handoff_pace_ms => 10,
                    channel => bulk}).
-define(ATTRIBUTE_MS, 5000).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case config(application:get_all_env(weft_ring)) of
        {ok, Config} -> weft_ring_sup:start_link(handed_over(Config));
        {error, Reason} -> {error, {weft_ring, Reason}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    weft_ring_lookup:withdraw(weft_ring).

%% What vnodes have, they hand over themselves.
handed_over(#{vnodes := [_ | _], handoff := none} = Config) ->
    Config#{handoff := {weft_vnode_handoff, hand_over}};
handed_over(Config) ->
    Config.

%% @doc The configuration with its defaults.
-spec config([{atom(), term()}]) ->
          {ok, map()} | {error, {unknown_key | bad_value | location, term()}}.
config(Environment) ->
    Given = maps:from_list(proplists:delete(included_applications, Environment)),
    case {maps:keys(maps:without(maps:keys(?DEFAULTS), Given)),
          [Pair || {Key, Value} = Pair <- lists:sort(maps:to_list(Given)),
                   not is_valid(Key, Value)]} of
        {[], []} -> located(Given, with_options(maps:merge(?DEFAULTS, Given)));
        {[Key | _], _} -> {error, {unknown_key, Key}};
        {[], [Pair | _]} -> {error, {bad_value, Pair}}
    end.

is_valid(partitions, Size) ->
    is_integer(Size) andalso Size >= 8 andalso Size =< 1024 andalso Size band (Size - 1) =:= 0;
is_valid(n_val, N) -> is_integer(N) andalso N >= 1 andalso N =< 8;
is_valid(location, _) -> true;
is_valid(dir, Dir) -> Dir =:= none orelse io_lib:char_list(Dir);
is_valid(handoff, none) -> true;
is_valid(handoff, {Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_valid(vnodes, Vnodes) when length(Vnodes) >= 0 -> % not of an improper list
    lists:all(fun is_vnode/1, Vnodes)
        andalso length(Vnodes) =:= length(lists:usort([module_of(Vnode) || Vnode <- Vnodes]));
is_valid(channel, Channel) -> is_atom(Channel);
is_valid(handoff_pace_ms, Ms) -> is_integer(Ms) andalso Ms >= 0;
is_valid(Key, Value) when Key =:= handoffs_max; Key =:= sync_ms; Key =:= queue_max;
                          Key =:= handoff_items ->
    is_integer(Value) andalso Value >= 1;
is_valid(_, _) -> false.

is_vnode({Module, _Options}) -> is_atom(Module);
is_vnode(Module) -> is_atom(Module).

module_of({Module, _Options}) -> Module;
module_of(Module) -> Module.

located(#{location := {attribute, Name}}, Config) ->
    case attribute(Name) of
        {ok, Value} -> {ok, Config#{location := Value}};
        none -> {error, {location, {no_attribute, Name, {not_in_the_configuration_of, weft,
                                                         {tuning, attributes}}}}}
    end;
located(#{location := _}, Config) ->
    {ok, Config};
located(_, Config) ->
    case attribute(location) of
        {ok, Value} -> {ok, Config#{location := Value}};
        none -> {ok, Config}
    end.

%% That of a dynamic one is asked for here, and may hang.
attribute(Name) ->
    case weft_ask:all([Name], fun(N) -> weft_attributes:read([N]) end, ?ATTRIBUTE_MS) of
        {[{Name, #{Name := Value}}], []} -> {ok, Value};
        _ -> none
    end.

with_options(#{vnodes := Vnodes} = Config) ->
    Config#{vnodes := [case Vnode of {_, _} -> Vnode; Module -> {Module, []} end
                       || Vnode <- Vnodes]}.
