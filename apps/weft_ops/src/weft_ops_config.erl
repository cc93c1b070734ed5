%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of the application weft_ops: what may be in its environment, and what is.
%%
%% `http': `#{port => 9469, ip => {127, 0, 0, 1}, hosts => []}', where the metrics are served;
%% port 0 takes a free one. `hosts': other names of this machine that scrapers use, see
%% `weft_ops_host'.
%% Without this key there is no listener. `dist_peers_max' (28): with more connected
%% nodes /metrics has no families that have a series for each of them. `timeout_ms' (4000): what
%% has not answered by then is left out of a scrape.
%%
%% `sample_ms' (2000): how often an agent is told of this node. `thresholds': what is unusual, see
%% `weft_ops_anomalies'. `grace_ms': how long that has to hold before it is an alarm, by kind
%% (`default': 10000). `clear_ms' (30000): how long it must not hold before the alarm is over.
%% `alarms_max' (1000): how many there may be; critical ones may be twice as many.
%%
%% `recording': `#{dir => Dir, bytes_max => 52428800}': this node records the cluster in that
%% directory, see `weft_ops_recorder'. Without this key it does not.
%%
%% `webhook': `#{url => "https://host/path"}': who is told of alarms, see `weft_ops_webhook'. No
%% text of an error names the URL: it may be a secret, and in a file of its own then
%% (`url => {file, Path}').
-module(weft_ops_config).

-export([read/0, parse/1, is_url/1]).
-export_type([config/0, http/0, recording/0, webhook/0]).

-define(WHERE, "weft_ops").
-define(EXAMPLE, "#{port => 9469, ip => {127,0,0,1}}").
-define(HTTP, #{port => 9469, ip => {127, 0, 0, 1}, hosts => []}).
-define(RECORDING, #{dir => "/var/lib/weft", bytes_max => 52428800}).
-define(WEBHOOK, #{url => none, secret_file => none, cacert_file => none, timeout_ms => 5000,
                   queue_max => 1000, tries_max => 10, retry_ms => 1000, retry_max_ms => 60000}).
-define(GRACE_MS, #{default => 10000, silent => 0, unreachable => 30000}).
-define(DEFAULTS, #{http => none, dist_peers_max => 28, timeout_ms => 4000, sample_ms => 2000,
                    thresholds => weft_ops_anomalies:thresholds(), grace_ms => ?GRACE_MS,
                    clear_ms => 30000, alarms_max => 1000, recording => none, webhook => none}).

-type http() :: #{port := inet:port_number(), ip := inet:ip_address(), hosts := [string()]}.
-type recording() :: #{dir := file:filename_all(), bytes_max := pos_integer()}.
-type webhook() :: #{url := string() | {file, file:filename_all()},
                     secret_file := file:filename_all() | none,
                     cacert_file := file:filename_all() | none, timeout_ms := pos_integer(),
                     queue_max := pos_integer(), tries_max := pos_integer(),
                     retry_ms := pos_integer(), retry_max_ms := pos_integer()}.
-type config() :: #{http := http() | none, dist_peers_max := non_neg_integer(),
                    timeout_ms := pos_integer(), sample_ms := pos_integer(),
                    thresholds := weft_ops_anomalies:thresholds(),
                    grace_ms := weft_ops_alarms_core:graces_ms(),
                    clear_ms := non_neg_integer(), alarms_max := pos_integer(),
                    recording := recording() | none, webhook => webhook() | none}.

%% @doc What the environment says.
-spec read() -> {ok, config()} | {error, Text :: string()}.
read() ->
    parse(proplists:delete(included_applications, application:get_all_env(weft_ops))).

%% @doc Checks an environment. The text says what is wrong, where, and what it must be.
-spec parse([{atom(), term()}]) -> {ok, config()} | {error, Text :: string()}.
parse(Env) ->
    keys(Env, ?DEFAULTS).

keys([], Config) ->
    {ok, Config};
keys([{Key, Value} | Others], Config) ->
    case key(Key, Value) of
        {ok, Taken} -> keys(Others, Config#{Key => Taken});
        {error, Text} -> {error, text("~ts, in the environment of " ?WHERE, [Text])}
    end.

key(http, #{} = Http) ->
    http(maps:keys(Http) -- maps:keys(?HTTP), maps:merge(?HTTP, Http));
key(http, Value) ->
    {error, text("http is ~0tp: make it a map such as " ?EXAMPLE ", or leave it out for no "
                 "listener", [Value])};
key(recording, #{dir := _} = Recording) ->
    recording(maps:keys(Recording) -- maps:keys(?RECORDING), maps:merge(?RECORDING, Recording));
key(recording, Value) ->
    {error, text("recording is ~0tp: make it a map such as #{dir => \"/var/lib/weft\"}, or leave "
                 "it out for no recording", [Value])};
key(webhook, #{url := _} = Webhook) ->
    webhook(maps:keys(Webhook) -- maps:keys(?WEBHOOK), maps:merge(?WEBHOOK, Webhook));
key(webhook, _MayBeSecret) ->
    {error, "webhook has no url: make it a map such as #{url => \"https://host/path\"}, or leave "
            "it out for no webhook"};
key(dist_peers_max, Value) ->
    at_least(0, dist_peers_max, Value);
key(timeout_ms, Value) ->
    at_least(1, timeout_ms, Value);
%% Each link and session is asked each time.
key(sample_ms, Value) ->
    at_least(100, sample_ms, Value);
key(clear_ms, Value) ->
    at_least(0, clear_ms, Value);
key(alarms_max, Value) ->
    at_least(1, alarms_max, Value);
key(thresholds, Value) ->
    numbers(thresholds, 1, Value, weft_ops_anomalies:thresholds());
key(grace_ms, Value) ->
    Kinds = maps:from_list([{Kind, 10000} || Kind <- weft_ops_anomalies:kinds()]),
    case numbers(grace_ms, 0, Value, maps:merge(Kinds, ?GRACE_MS)) of
        {ok, _WithAllKinds} -> {ok, maps:merge(?GRACE_MS, Value)};
        Error -> Error
    end;
key(Key, _Value) ->
    {error, text("the key ~0tp is unknown: remove it; there are ~ts", [Key, listed(?DEFAULTS)])}.

%% A map of integers, of which some are set.
numbers(Key, Min, #{} = Set, Defaults) ->
    case {maps:keys(Set) -- maps:keys(Defaults),
          [Wrong || {_, Value} = Wrong <- maps:to_list(Set),
                    not is_integer(Value) orelse Value < Min]} of
        {[], []} ->
            {ok, maps:merge(Defaults, Set)};
        {[Unknown | _], _} ->
            {error, text("~ts has the unknown key ~0tp: remove it; there are ~ts",
                         [Key, Unknown, listed(Defaults)])};
        {[], [{One, Value} | _]} ->
            {error, text("~ts of ~ts is ~0tp: make it an integer of at least ~b",
                         [One, Key, Value, Min])}
    end;
numbers(Key, _Min, Value, Defaults) ->
    {error, text("~ts is ~0tp: make it a map with some of ~ts", [Key, Value, listed(Defaults)])}.

at_least(Min, _Key, Value) when is_integer(Value), Value >= Min ->
    {ok, Value};
at_least(Min, Key, Value) ->
    {error, text("~ts is ~0tp: make it an integer of at least ~b", [Key, Value, Min])}.

http([], #{port := Port, ip := Ip, hosts := Hosts} = Http) ->
    case {weft_http_address:port("the port of http", Port),
          weft_http_address:ip("the ip of http", Ip), is_hosts(Hosts)} of
        {{ok, _}, {ok, _}, true} ->
            {ok, Http};
        {{error, Text}, _, _} ->
            {error, Text};
        {_, {error, Text}, _} ->
            {error, Text};
        {_, _, false} ->
            {error, text("hosts of http is ~0tp: make it a list of names as strings, such as "
                         "[\"h1.example.org\"], without a port", [Hosts])}
    end;
http([Key | _], _Http) ->
    {error, text("http has the unknown key ~0tp: remove it; there are ~ts", [Key, listed(?HTTP)])}.

%% A chunk of a large cluster has to fit into a file.
recording([], #{dir := Dir, bytes_max := BytesMax} = Recording) ->
    case {is_path(Dir), at_least(1048576, bytes_max, BytesMax)} of
        {true, {ok, _}} ->
            {ok, Recording};
        {false, _} ->
            {error, text("the dir of recording is ~0tp: make it a path as a string", [Dir])};
        {true, {error, Text}} ->
            {error, text("in recording, ~ts", [Text])}
    end;
recording([Key | _], _Recording) ->
    {error, text("recording has the unknown key ~0tp: remove it; there are ~ts",
                 [Key, listed(?RECORDING)])}.

webhook([], #{url := Url} = Webhook) ->
    Files = [Key || Key <- [secret_file, cacert_file], Path <- [maps:get(Key, Webhook)],
                    Path =/= none, not is_path(Path)],
    Numbers = [{Key, maps:get(Key, Webhook)}
               || Key <- [timeout_ms, queue_max, tries_max, retry_ms, retry_max_ms]],
    case {is_url(Url) orelse is_file(Url), Files,
          [Error || {Key, Value} <- Numbers, {error, Error} <- [at_least(1, Key, Value)]]} of
        {true, [], []} -> {ok, Webhook#{url := case Url of
                                                   {file, _} -> Url;
                                                   _ -> unicode:characters_to_list(Url)
                                               end}};
        {false, _, _} -> {error, "the url of webhook is none: make it a string that begins with "
                                 "https:// or http:// and names a host, or {file, Path} of a file "
                                 "with it"};
        {true, [Key | _], _} -> {error, text("the ~ts of webhook is no path: make it a string",
                                             [Key])};
        {true, [], [Error | _]} -> {error, text("in webhook, ~ts", [Error])}
    end;
webhook([Key | _], _Webhook) ->
    {error, text("webhook has the unknown key ~0tp: remove it; there are ~ts",
                 [Key, listed(?WEBHOOK)])}.

%% @doc Can that be the URL of a webhook?
-spec is_url(term()) -> boolean().
is_url(Url) when is_binary(Url); is_list(Url) ->
    try uri_string:parse(unicode:characters_to_list(Url)) of
        #{scheme := Scheme, host := [_ | _]} -> lists:member(Scheme, ["http", "https"]);
        _ -> false
    catch
        error:_ -> false
    end;
is_url(_Url) ->
    false.

is_file({file, Path}) -> is_path(Path);
is_file(_Value) -> false.

is_path(Dir) when is_binary(Dir) -> Dir =/= <<>>;
is_path(Dir) -> Dir =/= "" andalso io_lib:char_list(Dir).

is_hosts(Hosts) when length(Hosts) >= 0 -> % not an improper list
    lists:all(fun(Host) -> Host =/= "" andalso io_lib:char_list(Host)
                               andalso not lists:member($:, Host)
              end, Hosts);
is_hosts(_Hosts) ->
    false.

listed(Map) -> lists:join(", ", [atom_to_list(Key) || Key <- lists:sort(maps:keys(Map))]).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).
