%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, nothing changes any more. A protocol that is right again and again,
%% but never comes to rest, is caught here.
%%
%% Option: `quiet_ms' (5000), how long no view of any node may have changed.
-module(weft_sim_quiet_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the time of the last change with now.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    QuietMs = weft_sim_world:now_ms(World) - weft_sim_world:view_changed_ms(World),
    case QuietMs >= maps:get(quiet_ms, Options, 5000) of
        true -> ok;
        false -> {violation, io_lib:format("a view changed ~b ms ago", [QuietMs])}
    end.
