%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts the chat: tallies at zero, the supervisors, and the rooms which the application
%% environment (`rooms') places on this node.
-module(chat_app).
-behaviour(application).

-export([start/2, stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    ok = chat_tally:reset(),
    case chat_sup:start_link() of
        {ok, Sup} ->
            ok = chat:open_rooms(application:get_env(chat, rooms, #{})),
            {ok, Sup};
        Error ->
            Error
    end.

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
