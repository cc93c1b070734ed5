%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_ring and its configuration. A wrong value stops the start with an error
%% that names it.
-module(weft_ring_app).
-behaviour(application).

-export([start/2, stop/1, config/1]).

-define(DEFAULTS, #{partitions => 64, n_val => 3, location => node(), dir => none,
                    handoff => none, handoffs_max => 2, sync_ms => 5000}).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case config(application:get_all_env(weft_ring)) of
        {ok, Config} -> weft_ring_sup:start_link(Config);
        {error, Reason} -> {error, {weft_ring, Reason}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    weft_ring_lookup:withdraw(weft_ring).

%% @doc The configuration with its defaults.
-spec config([{atom(), term()}]) -> {ok, map()} | {error, {unknown_key | bad_value, term()}}.
config(Environment) ->
    Given = maps:from_list(proplists:delete(included_applications, Environment)),
    case {maps:keys(maps:without(maps:keys(?DEFAULTS), Given)),
          [Pair || {Key, Value} = Pair <- lists:sort(maps:to_list(Given)),
                   not is_valid(Key, Value)]} of
        {[], []} -> {ok, maps:merge(?DEFAULTS, Given)};
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
is_valid(Key, Value) when Key =:= handoffs_max; Key =:= sync_ms ->
    is_integer(Value) andalso Value >= 1;
is_valid(_, _) -> false.
