%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by the DNS: `{dns, #{name => "app.example.org", type => a | aaaa | srv}}'.
%%
%% Each address (a, aaaa) or target (srv, RFC 2782) of the name is the host of a node called `node'
%% (default: the name of this node before the @): `app@10.0.0.7', `app@web-1.example.org'. Port,
%% priority and weight of SRV records say nothing about nodes and are not used.
-module(weft_discovery_dns).
-behaviour(weft_discovery).

-export([discover/1]).

-type options() :: #{name := string(), type := a | aaaa | srv, node := own | string(),
                     nameservers := [{inet:ip_address(), inet:port_number()}],
                     timeout_ms := pos_integer(), _ => _}.

%% @doc See `weft_discovery'. Errors: nxdomain (there is no such name), timeout (no server
%% answered), others of `inet_res:resolve/5'.
-spec discover(options()) -> {ok, [node()]} | {error, term()}.
discover(#{name := Name, type := Type, timeout_ms := TimeoutMs} = Options) ->
    case inet_res:resolve(Name, in, Type, resolver_options(Options), TimeoutMs) of
        {ok, Message} ->
            Texts = [Part ++ "@" ++ Host || Part <- [name_part(Options)],
                                            Host <- hosts(Type, Message)],
            {ok, weft_discovery_names:nodes(Texts)};
        {error, {Reason, _Message}} -> {error, Reason};
        {error, Reason} -> {error, Reason}
    end.

resolver_options(#{nameservers := []}) -> [];
resolver_options(#{nameservers := Servers}) -> [{nameservers, Servers}, {alt_nameservers, []}].

name_part(#{node := own}) -> weft_discovery_names:own_name();
name_part(#{node := Name}) -> Name.

%% An answer may begin with aliases (CNAME).
hosts(Type, Message) ->
    [host(inet_dns:rr(Record, data)) || Record <- inet_dns:msg(Message, anlist),
                                        inet_dns:rr(Record, type) =:= Type].

host({_Priority, _Weight, _Port, Target}) when is_list(Target) ->
    string:trim(Target, trailing, ".");
host(Address) ->
    inet:ntoa(Address).
