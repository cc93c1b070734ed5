%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries the direct messages of one user, one after the other, each by a gen_server:call
%% that waits for the receiver. The user itself never waits: two users writing to each other
%% would otherwise wait for each other.
%% A message that fails is counted and not repeated, since it may have arrived.
-module(chat_courier).
-behaviour(gen_server).

-export([start_link/0, carry/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(CALL_TIMEOUT_MS, 15000).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link(?MODULE, [], []).

%% @doc Takes a message along for the user at `Address'.
-spec carry(pid(), chat_address:address(), tuple()) -> ok.
carry(Courier, Address, Message) ->
    gen_server:cast(Courier, {carry, Address, Message}).

init([]) ->
    {ok, no_state}.

handle_call(_Request, _Caller, State) ->
    {reply, {error, unknown_request}, State}.

handle_cast({carry, Address, Message}, State) ->
    try gen_server:call(Address, Message, ?CALL_TIMEOUT_MS) of
        received -> ok
    catch
        exit:{Reason, _Call} -> failed(Reason)
    end,
    {noreply, State}.

failed(Reason) ->
    chat_tally:add(failed),
    case Reason of
        {nodedown, _Node} -> chat_tally:add(nodedowns);
        _ -> ok
    end.
