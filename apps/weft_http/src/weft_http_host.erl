%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a request names this machine: what keeps a page of somebody else, whose name was
%% made to lead here, from reading what a listener tells (DNS rebinding).
%%
%% The Host of a request must be an address, `localhost', or one of the names that are given: a
%% browser that was led here has the name of the foreign page in it. It is no authentication.
-module(weft_http_host).

-export([is_known/2, own/0]).

%% @doc Whether that Host, in small letters and without its port, is an address, `localhost' or one
%% of these names.
-spec is_known(binary(), [binary()]) -> boolean().
is_known(<<"localhost">>, _Names) -> true;
is_known(<<"[", _/binary>>, _Names) -> true;
is_known(Host, Names) -> is_address(Host) orelse lists:member(Host, Names).

is_address(Host) ->
    case inet:parse_ipv4strict_address(binary_to_list(Host)) of
        {ok, _} -> true;
        {error, _} -> false
    end.

%% @doc The names of this machine: of its host, and of the node.
-spec own() -> [binary()].
own() ->
    {ok, Short} = inet:gethostname(),
    [_Alive, OfNode] = string:split(atom_to_list(node()), "@"),
    lists:usort([unicode:characters_to_binary(string:lowercase(Name))
                 || Name <- [Short, net_adm:localhost(), OfNode]]).
