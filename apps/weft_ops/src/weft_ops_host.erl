%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether a request names this machine: what keeps a page of somebody else, whose name was
%% made to lead here, from reading what a listener tells (DNS rebinding).
%%
%% The Host of a request must be an address, `localhost', or one of the names that are given: a
%% browser that was led here has the name of the foreign page in it. It is no authentication.
-module(weft_ops_host).
-behaviour(cowboy_middleware).

-export([execute/2, is_known/2, own/0]).

%% @doc The names are those in `hosts' of the environment. Others are answered with 403, in words.
-spec execute(cowboy_req:req(), cowboy_middleware:env()) ->
          {ok, cowboy_req:req(), cowboy_middleware:env()} | {stop, cowboy_req:req()}.
execute(Request, #{hosts := Names} = Env) ->
    case is_known(cowboy_req:host(Request), Names) of
        true ->
            {ok, Request, Env};
        false ->
            Headers = #{<<"content-type">> => <<"text/plain; charset=utf-8">>},
            {stop, cowboy_req:reply(403, Headers, <<"This is no name of this machine. Use an "
                                                    "address, or name it in `hosts' of the key "
                                                    "http of weft_ops.\n">>, Request)}
    end.

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
