%% SPDX-License-Identifier: Apache-2.0
%% @doc The application `weft': checks the configuration and starts the overlay if there is a
%% topology. The carrier itself starts with the kernel (`-proto_dist weft'), without this.
-module(weft_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case check() of
        {ok, Overlay} -> weft_sup:start_link(Overlay);
        {error, Text} -> {error, {weft, unicode:characters_to_list(Text)}}
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    %% Without an overlay there is no core that decides, but links are used all the same. None is
    %% kept for its own sake: the topology that is started next may be another one.
    _ = weft_links:owner() =/= undefined andalso weft_links:admitting(none),
    lists:foreach(fun weft_links:disconnect/1, weft_links:all_wanted()).

check() ->
    case weft_config:check() of
        ok -> check_scopes(weft_names:check(weft_config:get(scopes)));
        {error, Text} -> {error, Text}
    end.

check_scopes(ok) -> weft_topology_change:check();
check_scopes({error, Text}) -> {error, Text}.
