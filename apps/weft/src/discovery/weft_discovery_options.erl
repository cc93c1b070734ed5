%% SPDX-License-Identifier: Apache-2.0
%% @doc What may be written under the key `discovery': the sources and their options.
%%
%% `parse/1' checks everything and fills in the defaults; each error says which source and option
%% are wrong and what to write. A source that is not listed here is a module of the user with the
%% callbacks of `weft_discovery'; its options must be a map.
-module(weft_discovery_options).

-export([parse/1]).

-type check() :: fun((term()) -> boolean()).
-type option() :: {Key :: atom(), Default :: term() | required, check(), MustBe :: string()}.

%% @doc All sources: {Name, Module, Options}.
-spec sources() -> [{atom(), module(), [option()]}].
sources() ->
    [{static, weft_discovery_static,
      [{nodes, required, fun is_nodes/1, "a list ['name@host', ...]"}]},
     {file, weft_discovery_file,
      [{path, required, fun is_text/1, "the name of a file with a node on each line"}]},
     {env, weft_discovery_env,
      [{variable, required, fun is_text/1, "the name of a variable with nodes, as \"a@h b@h\""}]},
     {dns, weft_discovery_dns,
      [{name, required, fun is_text/1, "a name of the DNS, as \"app.example.org\""},
       {type, a, one_of([a, aaaa, srv]), "a, aaaa or srv"} | dns_options()]},
     {kubernetes, weft_discovery_kubernetes,
      [{service, required, fun is_text/1, "the name of a headless service"},
       {namespace, required, fun is_text/1, "the namespace of the service"},
       {domain, "cluster.local", fun is_text/1, "the domain of the cluster"},
       {by, hostname, one_of([hostname, ip]), "hostname or ip: what follows the @ of a node name"}
       | dns_options()]},
     {epmd, weft_discovery_epmd,
      [{hosts, required, fun is_texts/1, "a list of host names [\"host1\", ...]"},
       {prefix, "", fun is_text/1, "how the names of the nodes begin"},
       {timeout_ms, 5000, between(10, 20000), "milliseconds, from 10 to 20000"}]},
     {gossip, weft_discovery_gossip,
      [{address, {233, 252, 1, 32}, fun is_ip4/1, "a multicast or broadcast address {A, B, C, D}"},
       {interface, {0, 0, 0, 0}, fun is_ip4/1, "the address of a network interface {A, B, C, D}"},
       {port, 45892, between(1, 65535), "a UDP port"},
       {ttl, 1, between(0, 255), "how many routers a packet may pass, from 0 to 255"},
       {interval_ms, 1500, between(50, 600000), "milliseconds, from 50 to 600000"}]}].

dns_options() ->
    [{node, own, fun is_name/1, "what precedes the @ of a node name, as \"app\""},
     {nameservers, [], fun is_servers/1, "a list [{{A, B, C, D}, Port}, ...]"},
     {timeout_ms, 5000, between(10, 20000), "milliseconds, from 10 to 20000"}].

%% @doc Checks the configured term.
-spec parse(term()) -> {ok, [weft_discovery:source()]} | {error, iolist()}.
parse(Sources) when length(Sources) >= 0 -> % no improper list
    parse(Sources, []);
parse(Other) ->
    {error, io_lib:format("discovery is ~0tp: write a list of sources [{Source, Options}, ...]; "
                          "sources are ~ts", [Other, names()])}.

parse([], Parsed) ->
    case length([gossip || {gossip, _, _} <- Parsed]) of
        Count when Count > 1 -> {error, "discovery has the source gossip twice: remove one"};
        _ -> {ok, lists:reverse(Parsed)}
    end;
parse([Source | Rest], Parsed) ->
    case source(Source) of
        {ok, Good} -> parse(Rest, [Good | Parsed]);
        {error, Text} -> {error, Text}
    end.

source({Name, Options}) when is_atom(Name), is_map(Options) ->
    case lists:keyfind(Name, 1, sources()) of
        {Name, Module, Known} -> options(Name, Module, Options, Known);
        false -> own_module(Name, Options)
    end;
source(Other) ->
    {error, io_lib:format("discovery has ~0tp: write {Source, #{Option => Value}}; sources are ~ts",
                          [Other, names()])}.

own_module(Module, Options) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, discover, 1) of
                true -> {ok, {Module, Module, Options}};
                false -> {error, io_lib:format("discovery: module ~0tp has no function discover/1",
                                               [Module])}
            end;
        {error, _} ->
            {error, io_lib:format("discovery: ~0tp is neither a source (~ts) nor a module on the "
                                  "code path", [Module, names()])}
    end.

options(Name, Module, Options, Known) ->
    Unknown = maps:keys(Options) -- [Key || {Key, _, _, _} <- Known],
    Wrong = [Text || Option <- Known, Text <- option(Name, Option, Options)],
    case {Unknown, Wrong} of
        {[], []} ->
            Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- Known]),
            {ok, {Name, Module, maps:merge(Defaults, Options)}};
        {[Key | _], _} ->
            {error, io_lib:format("discovery source ~ts has no option ~0tp: its options are ~ts",
                                  [Name, Key, words([K || {K, _, _, _} <- Known])])};
        {[], [Text | _]} ->
            {error, Text}
    end.

option(Name, {Key, Default, Check, MustBe}, Options) ->
    case Options of
        #{Key := Value} ->
            [io_lib:format("~ts of discovery source ~ts is ~0tp, it must be ~ts",
                           [Key, Name, Value, MustBe]) || not Check(Value)];
        #{} ->
            [io_lib:format("discovery source ~ts needs ~ts: ~ts", [Name, Key, MustBe])
             || Default =:= required]
    end.

names() ->
    words([Name || {Name, _, _} <- sources()]).

words(Atoms) ->
    lists:join(", ", [atom_to_list(Atom) || Atom <- Atoms]).

is_nodes(Nodes) ->
    weft_value:is_atoms(Nodes)
        andalso lists:all(fun(Node) -> weft_discovery_names:is_name(atom_to_list(Node)) end, Nodes).

is_text(Text) ->
    is_list(Text) andalso io_lib:char_list(Text).

is_texts(Texts) when length(Texts) > 0 ->
    lists:all(fun is_text/1, Texts) andalso not lists:member("", Texts);
is_texts(_Other) ->
    false.

is_name(own) -> true;
is_name(Name) -> is_text(Name) andalso weft_discovery_names:is_name(Name ++ "@host").

is_servers(Servers) when length(Servers) >= 0 ->
    lists:all(fun({Ip, Port}) -> inet:is_ip_address(Ip) andalso (between(1, 65535))(Port);
                 (_) -> false
              end, Servers);
is_servers(_Other) ->
    false.

is_ip4(Address) ->
    inet:is_ipv4_address(Address).

one_of(Allowed) ->
    fun(Value) -> lists:member(Value, Allowed) end.

between(Min, Max) ->
    fun(Value) -> is_integer(Value) andalso Value >= Min andalso Value =< Max end.
