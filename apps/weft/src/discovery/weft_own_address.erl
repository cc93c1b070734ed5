%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a name that was found is a name of this very node, which is not to be dialled.
%%
%% epmd and name servers know a host under other names and addresses than the one in the name of the
%% node: app@10.0.0.7 and app@localhost may be app@web1. Two nodes of one machine have different
%% names before the @. So a name with the same part before the @ as this node, on a host with an
%% address of this machine, is this node.
-module(weft_own_address).

-export([is_own/1]).

%% @doc May wait for a name server, if the part before the @ is that of this node and the host has a
%% similar name.
-spec is_own(node()) -> boolean().
is_own(Node) when Node =:= node() ->
    true;
is_own(Node) ->
    case string:split(atom_to_list(Node), "@") of
        [Name, Host] -> Name =:= weft_discovery_names:own_name() andalso is_here(Host);
        _ -> false
    end.

%% Only names like that of this host are looked up: if all nodes have the same part before the @,
%% this would be a look-up for every host.
is_here(Host) ->
    case inet:parse_address(Host) of
        {ok, Address} -> is_own_address(Address);
        {error, _} -> is_like_ours(Host) andalso lists:any(fun is_own_address/1, addresses(Host))
    end.

is_like_ours(Host) ->
    {ok, Own} = inet:gethostname(),
    Label = label(Host),
    Label =:= "localhost" orelse Label =:= label(Own).

label(Host) -> string:lowercase(hd(string:split(Host, "."))).

addresses(Host) ->
    case inet:getaddrs(Host, weft_config:get(family)) of
        {ok, Addresses} -> Addresses;
        {error, _} -> []
    end.

is_own_address({127, _, _, _}) -> true;
is_own_address({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
is_own_address(Address) -> lists:member(Address, own_addresses()).

own_addresses() ->
    case inet:getifaddrs() of
        {ok, Interfaces} ->
            [Address || {_Interface, Options} <- Interfaces, {addr, Address} <- Options];
        {error, _} ->
            []
    end.
