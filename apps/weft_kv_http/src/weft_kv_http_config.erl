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
-module(weft_kv_http_config).

-export([read/0, parse/1]).
-export_type([config/0]).

-define(DEFAULTS, #{port => none, ip => {127, 0, 0, 1}, token => none, hosts => [],
                    connections_max => 256, body_ms => 10000}).

-type config() :: #{port := inet:port_number() | none, ip := inet:ip_address(),
                    token := weft_http_token:token(), hosts := [binary()],
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
key(port, Value) ->
    weft_http_address:port("port", Value);
key(ip, Value) ->
    weft_http_address:ip("ip", Value);
key(token, Value) ->
    weft_http_token:parse(Value);
key(hosts, Hosts) when length(Hosts) >= 0 -> % not an improper list
    case lists:all(fun is_host/1, Hosts) of
        true -> {ok, [list_to_binary(string:lowercase(Host)) || Host <- Hosts]};
        false -> no_hosts(Hosts)
    end;
key(hosts, Hosts) ->
    no_hosts(Hosts);
key(Key, Value) when Key =:= connections_max; Key =:= body_ms ->
    case is_integer(Value) andalso Value >= 1 of
        true -> {ok, Value};
        false -> {error, text("~ts is ~0tp: make it an integer of at least 1", [Key, Value])}
    end;
key(Key, _Value) ->
    {error, text("the key ~0tp is unknown: remove it; there are ~ts",
                 [Key, lists:join(", ", [atom_to_list(K) || K <- maps:keys(?DEFAULTS)])])}.

no_hosts(Hosts) ->
    {error, text("hosts is ~0tp: make it a list of names as strings, without ports", [Hosts])}.

is_host(Host) ->
    io_lib:printable_latin1_list(Host)
        andalso re:run(Host, "^[A-Za-z0-9.-]+$", [{capture, none}, dollar_endonly]) =:= match.

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
