%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_crdt and its configuration. A wrong value stops the start with an error
%% that names it.
-module(weft_crdt_app).
-behaviour(application).

-export([start/2, stop/1, config/1]).

-define(DEFAULTS, #{keys_max => 100000, waiting_max => 50000, operation_bytes => 1048576,
                    message_bytes => 65536, sync_ms => 3000, flush_ms => 5, resend_ms => 2000,
                    dir => none}).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case config(application:get_all_env(weft_crdt)) of
        {ok, Config} -> weft_crdt_sup:start_link(Config);
        {error, Reason} -> {error, {weft_crdt, Reason}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) -> ok.

%% @doc The configuration with its defaults.
-spec config([{atom(), term()}]) -> {ok, map()} | {error, {unknown_key | bad_value, term()}}.
config(Environment) ->
    Given = maps:from_list(proplists:delete(included_applications, Environment)),
    case {maps:keys(maps:without(maps:keys(?DEFAULTS), Given)),
          [Pair || Pair <- lists:sort(maps:to_list(Given)),
                   not is_valid(Pair)]} of
        {[], []} -> {ok, maps:merge(?DEFAULTS, Given)};
        {[Key | _], _} -> {error, {unknown_key, Key}};
        {[], [Pair | _]} -> {error, {bad_value, Pair}}
    end.

is_valid({dir, Dir}) -> Dir =:= none orelse io_lib:char_list(Dir);
%% Timers take no more than 32 bits.
is_valid({_, Value}) -> is_integer(Value) andalso Value >= 1 andalso Value =< 16#FFFFFFFF.
