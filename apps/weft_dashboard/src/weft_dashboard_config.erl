%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of the application weft_dashboard: what may be in its environment, and
%% what is.
%%
%% `ip' ({127,0,0,1}) and `port' (9470; 0 takes a free one): where browsers connect. `token' (none):
%% a string of at least 16 characters, or `{file, Path}' of a file that has it; without a token
%% nothing can be changed from a browser. `origins' ([]): other addresses under which browsers know
%% the dashboard, as a proxy has them, such as "https://weft.example.org". `period_ms' (1000): how
%% often browsers get the newest state. `browsers_max' (32): how many there may be. `chaos' (false):
%% whether whoever has the token may break things. `recording' (none): the directory of what
%% weft_ops has recorded.
-module(weft_dashboard_config).

-export([read/0, parse/1]).
-export_type([config/0, source/0, chaos/0]).

-define(PORT, 9470).
-define(DEFAULTS, #{ip => {127, 0, 0, 1}, port => ?PORT, token => none, origins => [],
                    period_ms => 1000, browsers_max => 32, chaos => false, recording => none}).

%% Where pictures of the cluster come from: from agents (`weft_ops'), or from a fun that is called
%% with what it answered before.
-type source() :: agents | fun((term()) -> {weft_dashboard_model_core:seen(), term()}).
%% Who carries out what a browser wants broken: nobody, weft_chaos on the nodes, or a fun.
-type chaos() :: boolean() | fun((weft_dashboard_chaos:fault()) -> ok | {error, iodata()}).
-type config() :: #{ip := inet:ip_address(), port := inet:port_number(),
                    token := weft_http_token:token(), origins := [binary()],
                    period_ms := pos_integer(), browsers_max := pos_integer(), chaos := chaos(),
                    recording := none | file:filename(), source := source()}.

%% @doc What the environment says.
-spec read() -> {ok, config()} | {error, Text :: string()}.
read() ->
    parse(proplists:delete(included_applications, application:get_all_env(weft_dashboard))).

%% @doc Checks an environment. The text says what is wrong, where, and what it must be.
-spec parse([{atom(), term()}]) -> {ok, config()} | {error, Text :: string()}.
parse(Env) ->
    keys(Env, ?DEFAULTS#{source => agents}).

keys([], #{chaos := true, token := none}) ->
    {error, "chaos is true without a token, in the environment of weft_dashboard: set token, or "
            "leave chaos out"};
keys([], Config) ->
    {ok, Config};
keys([{Key, Value} | Others], Config) ->
    case key(Key, Value) of
        {ok, Taken} -> keys(Others, Config#{Key => Taken});
        {error, Text} -> {error, text("~ts, in the environment of weft_dashboard", [Text])}
    end.

key(port, Value) ->
    weft_http_address:port("port", Value);
key(ip, Value) ->
    weft_http_address:ip("ip", Value);
key(token, Value) ->
    weft_http_token:parse(Value);
key(origins, Value) ->
    origins(Value);
%% Each period the agents are asked.
key(period_ms, Value) ->
    at_least(200, period_ms, Value);
key(browsers_max, Value) ->
    at_least(1, browsers_max, Value);
key(chaos, Value) when is_boolean(Value) ->
    {ok, Value};
key(chaos, Value) ->
    {error, text("chaos is ~0tp: make it true or false", [Value])};
key(recording, none) ->
    {ok, none};
key(recording, Value) ->
    case io_lib:printable_unicode_list(Value) andalso Value =/= "" of
        true -> {ok, Value};
        false -> {error, text("recording is ~0tp: make it the directory of the recording, as a "
                              "string", [Value])}
    end;
key(Key, _Value) ->
    {error, text("the key ~0tp is unknown: remove it; there are ~ts", [Key, listed(?DEFAULTS)])}.

at_least(Min, _Key, Value) when is_integer(Value), Value >= Min ->
    {ok, Value};
at_least(Min, Key, Value) ->
    {error, text("~ts is ~0tp: make it an integer of at least ~b", [Key, Value, Min])}.

%% --- origins ----------------------------------------------------------------------------------

origins(Values) when length(Values) >= 0 -> % not of an improper list
    Texts = [unicode:characters_to_binary(Value) || Value <- Values, is_text(Value)],
    case length(Texts) =:= length(Values) andalso [T || T <- Texts, not is_origin(T)] of
        [] -> {ok, Texts};
        [Wrong | _] -> {error, text("the origin ~ts is none: write it as browsers do, such as "
                                    "\"https://weft.example.org\" or with :PORT", [Wrong])};
        false -> not_origins(Values)
    end;
origins(Value) ->
    not_origins(Value).

not_origins(Value) ->
    {error, text("origins is ~0tp: make it a list of strings, such as "
                 "[\"https://weft.example.org\"]", [Value])}.

is_text(Value) -> Value =/= [] andalso io_lib:printable_unicode_list(Value).

is_origin(Text) ->
    re:run(Text, "^https?://[a-z0-9.-]+(:[0-9]+)?$", [{capture, none}, dollar_endonly]) =:= match.

listed(Map) -> lists:join(", ", [atom_to_list(Key) || Key <- lists:sort(maps:keys(Map))]).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
