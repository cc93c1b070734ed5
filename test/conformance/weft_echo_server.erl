%% SPDX-License-Identifier: Apache-2.0
%% @doc A gen_server for conformance cases: echoes, counts casts, and replies when told to.
-module(weft_echo_server).
-behaviour(gen_server).

-export([start/1, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% @doc Starts the server under a local name.
-spec start(atom()) -> {ok, pid()}.
start(Name) ->
    gen_server:start({local, Name}, ?MODULE, [], []).

%% @doc Starts the server under a local name, linked.
-spec start_link(atom()) -> {ok, pid()}.
start_link(Name) ->
    gen_server:start_link({local, Name}, ?MODULE, [], []).

%% @private The state: newest cast first, and the caller that waits for `release'.
init([]) ->
    {ok, #{casts => [], waiting => none}}.

%% @private
handle_call({echo, Term}, _From, State) ->
    {reply, {Term, node()}, State};
handle_call(casts, _From, #{casts := Casts} = State) ->
    {reply, lists:reverse(Casts), State};
handle_call(wait, From, State) ->
    {noreply, State#{waiting => From}};
handle_call({stop, Reason}, _From, State) ->
    {stop, Reason, stopping, State};
handle_call({die, Reason}, _From, _State) ->
    exit(Reason).

%% @private
handle_cast({release, Reply}, #{waiting := From} = State) ->
    gen_server:reply(From, Reply),
    {noreply, State#{waiting => none}};
handle_cast({add, Term}, #{casts := Casts} = State) ->
    {noreply, State#{casts => [Term | Casts]}}.

%% @private
handle_info({add, Term}, State) ->
    handle_cast({add, Term}, State).
