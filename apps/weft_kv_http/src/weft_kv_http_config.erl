%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of the application weft_kv_http: what may be in its environment, and what
%% is.
%%
%% `port' (none: nothing listens; 0 takes a free one) and `ip' ({127,0,0,1}): where clients connect.
%% `token' (none): a string of at least 16 characters, or `{file, Path}' of a file that has it;
%% every request has to have it then. Other addresses than those of this host's loopback need one.
%% `hosts' ([]): other names under which clients know this listener. `connections_max' (256): so
%% many clients at a time; each may send a value as large as its bucket takes. `body_ms' (10000): so
%% long a client may take to send it.
%%
%% Of the token only a hash is kept, so it is in no log.
-module(weft_kv_http_config).

-export([read/0, parse/1, is_token/2]).
-export_type([config/0]).

-define(TOKEN_MIN, 16).
-define(DEFAULTS, #{port => none, ip => {127, 0, 0, 1}, token => none, hosts => [],
                    connections_max => 256, body_ms => 10000}).

-type config() :: #{port := inet:port_number() | none, ip := inet:ip_address(),
                    token := none | {sha256, binary()}, hosts := [binary()],
                    connections_max := pos_integer(), body_ms := pos_integer()}.

%% @doc What the environment says.
-spec read() -> {ok, config()} | {error, Text :: string()}.
read() ->
    parse(proplists:delete(included_applications, application:get_all_env(weft_kv_http))).

%% @doc Checks an environment. The text says what is wrong, where, and what it must be.
-spec parse([{atom(), term()}]) -> {ok, config()} | {error, Text :: string()}.
parse(Env) ->
    keys(Env, ?DEFAULTS).

keys([], #{ip := Ip, token := none}) when element(1, Ip) =/= 127, Ip =/= {0,0,0,0,0,0,0,1} ->
    {error, text("ip is ~ts without a token, in the environment of weft_kv_http: set token, or "
                 "leave ip out", [inet:ntoa(Ip)])};
keys([], Config) ->
    {ok, Config};
keys([{Key, Value} | Others], Config) ->
    case key(Key, Value) of
        {ok, Taken} -> keys(Others, Config#{Key => Taken});
        {error, Text} -> {error, Text ++ ", in the environment of weft_kv_http"}
    end.

key(port, none) ->
    {ok, none};
key(port, Port) when is_integer(Port), Port >= 0, Port =< 65535 ->
    {ok, Port};
key(port, Value) ->
    {error, text("port is ~0tp: make it an integer from 0 to 65535", [Value])};
key(ip, Ip) ->
    case is_tuple(Ip) andalso inet:ntoa(Ip) =/= {error, einval} of
        true -> {ok, Ip};
        false -> {error, text("ip is ~0tp: make it an address as a tuple, such as {127,0,0,1}",
                              [Ip])}
    end;
key(token, Value) ->
    token(Value);
key(hosts, Hosts) ->
    case is_list(Hosts) andalso [H || H <- Hosts, not is_host(H)] of
        [] -> {ok, [list_to_binary(string:lowercase(Host)) || Host <- Hosts]};
        _ -> {error, text("hosts is ~0tp: make it a list of names as strings, without ports",
                          [Hosts])}
    end;
key(Key, Value) when Key =:= connections_max; Key =:= body_ms ->
    case is_integer(Value) andalso Value >= 1 of
        true -> {ok, Value};
        false -> {error, text("~ts is ~0tp: make it an integer of at least 1", [Key, Value])}
    end;
key(Key, _Value) ->
    {error, text("the key ~0tp is unknown: remove it; there are ~ts",
                 [Key, lists:join(", ", [atom_to_list(K) || K <- maps:keys(?DEFAULTS)])])}.

is_host(Host) ->
    io_lib:printable_latin1_list(Host)
        andalso re:run(Host, "^[A-Za-z0-9.-]+$", [{capture, none}]) =:= match.

%% --- the token --------------------------------------------------------------------------------

%% What was given is in none of these texts: it may be nearly the right one.
token(none) ->
    {ok, none};
token({file, Path}) ->
    case io_lib:printable_unicode_list(Path) andalso file:read_file(Path) of
        {ok, Content} -> hashed(string:trim(Content));
        {error, Reason} -> {error, text("the token can not be read from ~ts: ~ts",
                                        [Path, file:format_error(Reason)])};
        false -> {error, "token is {file, Path} with a path that is no string"}
    end;
token(Token) when is_list(Token) ->
    case io_lib:printable_latin1_list(Token) of
        true -> hashed(list_to_binary(Token));
        false -> {error, "the token has other signs than letters, digits and punctuation of ASCII"}
    end;
token(Token) when is_binary(Token) ->
    hashed(Token);
token(_Value) ->
    {error, "token is no string: make it one, or {file, Path} of a file with it, or none"}.

hashed(Token) when byte_size(Token) < ?TOKEN_MIN ->
    {error, text("the token is too short: make it at least ~b characters", [?TOKEN_MIN])};
hashed(Token) ->
    case re:run(Token, "^[!-~]+$", [{capture, none}]) of
        match -> {ok, {sha256, crypto:hash(sha256, Token)}};
        nomatch -> {error, "the token has other signs than letters, digits and punctuation of "
                           "ASCII"}
    end.

%% @doc Is that the token? Takes the same time whatever is wrong with it.
-spec is_token(binary(), config()) -> boolean().
is_token(Given, #{token := {sha256, Hash}}) ->
    crypto:hash_equals(crypto:hash(sha256, Given), Hash).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
