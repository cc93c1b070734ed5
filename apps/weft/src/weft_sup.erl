%% SPDX-License-Identifier: Apache-2.0
%% @doc Top supervisor of the application: the overlay, if one is configured.
%% The carrier is not here; it lives under the kernel's network supervisor (`weft_carrier_sup').
-module(weft_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(none | weft_overlay_sup:config()) -> {ok, pid()} | {error, term()}.
start_link(Overlay) ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, Overlay) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason};
        ignore -> {error, ignore}
    end.

%% @private
-spec init(none | weft_overlay_sup:config()) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(none) ->
    {ok, {#{strategy => one_for_one}, []}};
init(Overlay) ->
    Child = #{id => weft_overlay_sup, type => supervisor,
              start => {weft_overlay_sup, start_link, [Overlay]}},
    {ok, {#{strategy => one_for_one, intensity => 1, period => 60}, [Child]}}.
