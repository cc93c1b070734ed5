%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of a partition of the store: their defaults, and what is wrong with those that
%% were given. What they mean is in `weft_kv_vnode'.
-module(weft_kv_vnode_options).

-export([check/1, siblings_max/1]).

-define(SIBLINGS_MAX, 100).
-define(DEFAULTS, #{bytes_max => infinity, grace_ms => 86400000, siblings_max => ?SIBLINGS_MAX,
                    dir => none}).

%% @doc All options.
-spec check(map() | []) -> {ok, map()} | {error, {bad_option, term()}}.
check([]) -> check(#{});
check(Given) when is_map(Given) ->
    All = maps:merge(?DEFAULTS, Given),
    case maps:to_list(maps:without(maps:keys(?DEFAULTS), Given))
        ++ [Pair || {Key, Value} = Pair <- maps:to_list(All), not is_valid(Key, Value)] of
        [] -> {ok, All};
        [Wrong | _] -> {error, {bad_option, Wrong}}
    end;
check(Given) -> {error, {bad_option, Given}}.

is_valid(dir, Dir) -> Dir =:= none orelse io_lib:char_list(Dir);
is_valid(siblings_max, 0) -> false;
is_valid(_, Value) -> Value =:= infinity orelse is_integer(Value) andalso Value >= 0.

%% @doc How many siblings a key may have. A process that was started by an earlier version was not
%% told.
-spec siblings_max(map()) -> pos_integer() | infinity.
siblings_max(Options) -> maps:get(siblings_max, Options, ?SIBLINGS_MAX).
