%% SPDX-License-Identifier: Apache-2.0
%% @doc A gen_statem for conformance cases: a door that is open or shut. What wants to pass a shut
%% door is postponed; an opened door shuts itself after a state timeout.
-module(weft_door_statem).
-behaviour(gen_statem).

-export([start/1]).
-export([callback_mode/0, init/1, shut/3, open/3]).

%% @doc Starts the door under a local name, shut.
-spec start(atom()) -> {ok, pid()}.
start(Name) ->
    gen_statem:start({local, Name}, ?MODULE, [], []).

%% @private
callback_mode() ->
    state_functions.

%% @private
init([]) ->
    {ok, shut, []}.

%% @private
shut({call, _}, pass, _Data) ->
    {keep_state_and_data, postpone};
shut({call, From}, {open_for_ms, Ms}, Data) ->
    {next_state, open, Data, [{reply, From, opened}, {state_timeout, Ms, shut}]};
shut(Type, Event, Data) ->
    common(Type, Event, shut, Data).

%% @private
open({call, From}, pass, _Data) ->
    {keep_state_and_data, {reply, From, passed}};
open(state_timeout, shut, Data) ->
    {next_state, shut, Data};
open(Type, Event, Data) ->
    common(Type, Event, open, Data).

common({call, From}, state, State, _Data) ->
    {keep_state_and_data, {reply, From, State}};
common({call, From}, notes, _State, Data) ->
    {keep_state_and_data, {reply, From, lists:reverse(Data)}};
common(cast, {note, Term}, _State, Data) ->
    {keep_state, [Term | Data]}.
