%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes of the carrier, under the kernel's network supervisor. Sessions are not here:
%% as in the stock carrier they belong to the connection that the kernel asked for.
-module(weft_carrier_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    ok = weft_config:load(),
    ok = weft_identity:init(false),
    ok = weft_stock:init(),
    ok = weft_preload:start(),
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
init([]) ->
    ok = weft_never_stopped:new(),
    Children = [#{id => weft_refusals, start => {weft_refusals, start_link, []}},
                #{id => weft_pins, start => {weft_pins, start_link, []}},
                #{id => weft_sessions, start => {weft_sessions, start_link, []}},
                #{id => weft_links, start => {weft_links, start_link, [weft_switch]}}],
    {ok, {#{strategy => one_for_all, intensity => 0}, Children}}.
