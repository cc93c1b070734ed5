%% SPDX-License-Identifier: Apache-2.0
%% @doc A gen_event handler for conformance cases: keeps the events it has seen.
-module(weft_tally_handler).
-behaviour(gen_event).

-export([init/1, handle_event/2, handle_call/2, terminate/2]).

%% @private The argument is a process that is told of our end, or `none'.
init(Owner) ->
    {ok, {Owner, []}}.

%% @private
handle_event(crash, _State) ->
    exit(crashed);
handle_event(Event, {Owner, Events}) ->
    {ok, {Owner, [Event | Events]}}.

%% @private
handle_call(events, {_, Events} = State) ->
    {ok, lists:reverse(Events), State}.

%% @private
terminate(_Reason, {none, _}) ->
    ok;
terminate(Reason, {Owner, Events}) ->
    Owner ! {handler_ends, Reason, lists:reverse(Events)},
    ok.
