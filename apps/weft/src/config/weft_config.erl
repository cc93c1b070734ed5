%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of a node: application environment of `weft', with defaults and checks.
%%
%% Each layer has a module with this behaviour that lists the keys that it reads, with type, default
%% and meaning. Keys that are set often are written directly in the configuration. All others are
%% meant to be in the map `tuning', but may be written directly too, as in versions without the map.
%% An unknown key, a value of the wrong type or a key that is given twice is an error that says what
%% to change. Values are read when a link, session or overlay starts, not on the data path.
%%
%% The carrier starts with the kernel, before any other application, so `load/0' makes the
%% environment of `weft' (sys.config, `-weft key value') available that early.
-module(weft_config).

-export([load/0, get/1, of_env/2, net_ticktime_ms/0, check/0, check/1, keys/0, tuning/0]).
-export_type([row/0, read/0]).

%% What the value must be is also given in words.
-type row() :: {Key :: atom(), Default :: term(), Check :: fun((term()) -> boolean()),
                Expected :: string()}.
%% Reads the value of a key, or its default.
-type read() :: fun((Key :: atom()) -> term()).

%% Keys that are written directly, and those for `tuning'.
-callback keys() -> [row()].
-callback tuning() -> [row()].
%% Errors of values that are correct each by itself, but not together.
-callback relations(read()) -> [iolist()].
-optional_callbacks([relations/1]).

%% By name: nothing of them is needed before a key is read.
-define(LAYERS, [weft_link_keys, weft_overlay_keys, weft_discovery_keys, weft_carrier_keys,
                 weft_service_keys]).
%% Defaults, and what is in `tuning', of all keys that are not written directly.
-define(VALUES, {?MODULE, values}).

%% @doc The keys that are written directly.
-spec keys() -> [row()].
keys() -> lists:append([Layer:keys() || Layer <- ?LAYERS]).

%% @doc The keys of the map `tuning'.
-spec tuning() -> [row()].
tuning() -> lists:append([Layer:tuning() || Layer <- ?LAYERS]).

%% @doc Loads the application description so that its environment can be read before it is started,
%% and reads the map `tuning' now.
-spec load() -> ok.
load() ->
    case application:load(weft) of
        ok -> ok;
        {error, {already_loaded, weft}} -> ok;
        {error, _NoAppFile} -> ok
    end,
    renew().

%% --- values -----------------------------------------------------------------------------------

%% @doc The value of a key, or its default.
-spec get(Key :: atom()) -> term().
get(Key) ->
    case application:get_env(weft, Key) of
        {ok, Value} -> Value;
        undefined -> tuned(Key)
    end.

%% Links ask for several keys each second, and to make all rows each time would cost more than all
%% else that they do. An upgrade may have brought a new key.
tuned(Key) ->
    case persistent_term:get(?VALUES, none) of
        #{Key := Value} ->
            Value;
        _ ->
            ok = renew(),
            map_get(Key, persistent_term:get(?VALUES))
    end.

renew() ->
    Tuning = given(application:get_env(weft, tuning, #{})),
    persistent_term:put(?VALUES, maps:merge(defaults(), maps:from_list(Tuning))).

defaults() ->
    maps:from_list([{Key, Default} || {Key, Default, _, _} <- rows()]).

%% @doc The value of a key in an environment that is not that of this node, or its default.
-spec of_env(Key :: atom(), Env :: [{atom(), term()}]) -> term().
of_env(Key, Env) ->
    {Tuning, ByThemselves} = tuning_of(Env),
    proplists:get_value(Key, ByThemselves ++ given(Tuning), map_get(Key, defaults())).

%% @doc How long the kernel waits for a silent node, about (`net_ticktime' of kernel(6)). As the
%% kernel does, it takes what is no number for the default.
-spec net_ticktime_ms() -> pos_integer().
net_ticktime_ms() ->
    case application:get_env(kernel, net_ticktime) of
        {ok, Seconds} when is_integer(Seconds) -> 1000 * max(1, Seconds);
        _ -> 60000
    end.

%% --- checks -----------------------------------------------------------------------------------

%% @doc Loads and checks the whole environment. The text says which key is wrong, and what it must
%% be.
-spec check() -> ok | {error, string()}.
check() ->
    ok = load(),
    check(application:get_all_env(weft)).

%% @doc The same for a given list of keys and values.
-spec check([{atom(), term()}]) -> ok | {error, string()}.
check(Env) ->
    {Tuning, ByThemselves} = tuning_of([One || {Key, _} = One <- Env,
                                               Key =/= included_applications]),
    case check_tuning(Tuning, ByThemselves)
        ++ [Text || {Key, Value} <- ByThemselves, Text <- check_key(Key, Value, rows())]
        ++ check_relations(ByThemselves ++ given(Tuning)) of
        [] -> ok;
        Errors -> {error, lists:flatten(lists:join("; ", Errors))}
    end.

rows() -> keys() ++ tuning().

tuning_of(Env) ->
    case lists:keytake(tuning, 1, Env) of
        {value, {tuning, Tuning}, Others} -> {Tuning, Others};
        false -> {#{}, Env}
    end.

given(Tuning) when is_map(Tuning) -> maps:to_list(Tuning);
given(_NoMap) -> [].

check_tuning(Tuning, ByThemselves) when is_map(Tuning) ->
    [Text || {Key, Value} <- lists:sort(maps:to_list(Tuning)),
             Text <- check_tuned(Key, Value, lists:keymember(Key, 1, ByThemselves),
                                 lists:keymember(Key, 1, keys()))];
check_tuning(Tuning, _ByThemselves) ->
    [io_lib:format("weft: tuning is ~0p, it must be a map of options", [Tuning])].

check_tuned(Key, _Value, true, _IsForTuning) ->
    [io_lib:format("weft: ~0p is given twice, by itself and in tuning: leave one of them out",
                   [Key])];
check_tuned(Key, Value, false, true) ->
    [io_lib:format("weft: ~0p is no option of tuning, it stands by itself: {~0p, ~0p}",
                   [Key, Key, Value])];
check_tuned(Key, Value, false, false) ->
    check_key(Key, Value, tuning()).

check_key(Key, Value, Rows) ->
    case lists:keyfind(Key, 1, Rows) of
        {Key, _Default, Check, Expected} ->
            case Check(Value) of
                true -> [];
                false -> [io_lib:format("weft: ~s is ~0p, it must be ~s", [Key, Value, Expected])]
            end;
        false ->
            [io_lib:format("weft: unknown option ~0p~s", [Key, nearest(Key, Rows)])]
    end.

check_relations(Given) ->
    Defaults = defaults(),
    Read = fun(Key) -> proplists:get_value(Key, Given, map_get(Key, Defaults)) end,
    lists:append([Layer:relations(Read) || Layer <- ?LAYERS, has_relations(Layer)]).

has_relations(Layer) ->
    {module, Layer} = code:ensure_loaded(Layer),
    erlang:function_exported(Layer, relations, 1).

nearest(Key, Rows) ->
    Name = lists:flatten(io_lib:format("~0p", [Key])),
    Known = [atom_to_list(K) || {K, _, _, _} <- Rows],
    case lists:min([{different_letters(Name, K), K} || K <- Known]) of
        {Different, Likely} when Different =< 3 -> ", did you mean " ++ Likely ++ "?";
        _ -> ". Known: " ++ lists:join(" ", Known)
    end.

different_letters(A, B) ->
    length(A -- B) + length(B -- A).
